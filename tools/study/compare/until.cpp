#include "tools/study/compare/until.h"

#include <array>

#include "base/text.h"

namespace routesim::tools {

namespace {

constexpr char kUntilExample[] = "for example ttft_ms.mean±2%, or ttft_ms.mean+-2%";

}  // namespace

Parsed<UntilRule> parse_until(const std::string& text) {
  constexpr std::array<std::string_view, 3> kSigns = {"±", "+/-", "+-"};
  std::size_t at = std::string::npos;
  std::string_view sign;
  for (const std::string_view s : kSigns)
    if (at == std::string::npos && (at = text.find(s)) != std::string::npos) sign = s;
  if (at == std::string::npos || !text.ends_with('%'))
    return {{}, "must be METRIC±NUMBER% (got " + printable(text) + ")", kUntilExample};
  Parsed<MetricName> metric = parse_metric_name(trimmed(std::string_view(text).substr(0, at)));
  if (!metric.value) return {{}, metric.message, metric.hint};
  const std::size_t from = at + sign.size();
  const Parsed<double> percent =
      parse_real(trimmed(std::string_view(text).substr(from, text.size() - from - 1)),
                 {.min = 0, .max = 100, .min_open = true, .max_open = true});
  if (!percent.value) return {{}, "width " + percent.message, kUntilExample};
  UntilRule rule{.text = metric.value->text + "±" + number_text(*percent.value) + "%",
                 .metric = *metric.value,
                 .rule = {}};
  rule.rule.relative_half_width = *percent.value / 100;
  return {std::move(rule), {}, {}};
}

}  // namespace routesim::tools
