#include "tools/study/compare/gate.h"

#include <cmath>
#include <vector>

#include "base/text.h"

namespace routesim::tools {

namespace {

constexpr char kGateExample[] =
    "for example ttft_ms.p99>+5%, output_tokens_per_s<-2%, ttft_ms.p99>+20 or ttft_ms.p99>500";

}  // namespace

Parsed<Gate> parse_gate(const std::string& text) {
  const std::size_t at = text.find_first_of("<>");
  if (at == std::string::npos || (at + 1 < text.size() && text[at + 1] == '='))
    return {{}, "must be METRIC>BOUND or METRIC<BOUND (got " + printable(text) + ")", kGateExample};
  Parsed<MetricName> metric = parse_metric_name(trimmed(std::string_view(text).substr(0, at)));
  if (!metric.value) return {{}, metric.message, metric.hint};
  Gate gate{.text = std::string(trimmed(text)),
            .metric = std::move(*metric.value),
            .greater = text[at] == '>',
            .kind = Gate::Kind::kValue,
            .bound = 0};
  std::string_view number = trimmed(std::string_view(text).substr(at + 1));
  if (number.starts_with('+') || number.starts_with('-')) gate.kind = Gate::Kind::kAbsolute;
  if (number.ends_with('%')) {
    gate.kind = Gate::Kind::kRelative;
    number = trimmed(number.substr(0, number.size() - 1));
  }
  if (number.starts_with('+')) number.remove_prefix(1);
  if (number.starts_with('+'))
    return {{}, "has two signs (got " + printable(text) + ")", kGateExample};
  const Parsed<double> bound = parse_real(number, {});
  if (!bound.value) return {{}, "bound " + bound.message, kGateExample};
  gate.bound = *bound.value;
  return {std::move(gate), {}, {}};
}

Decision judge_gate(const Gate& gate, std::span<const double> base, std::span<const double> changed,
                    bool paired) {
  const double factor = gate.kind == Gate::Kind::kRelative   ? 1 + gate.bound / 100
                        : gate.kind == Gate::Kind::kAbsolute ? 1
                                                             : 0;
  const double offset = gate.kind == Gate::Kind::kRelative ? 0 : gate.bound;
  sim::Estimate excess = gate.kind == Gate::Kind::kValue ? sim::estimate(changed)
                         : paired ? sim::paired_difference(base, changed, factor)
                                  : sim::independent_difference(base, changed, factor);
  excess.mean -= offset;
  if (!gate.greater) excess.mean = -excess.mean;
  return decide_below_zero(excess, true);
}

}  // namespace routesim::tools
