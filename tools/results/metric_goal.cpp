#include "tools/results/metric_goal.h"

#include "base/scalar_parse.h"
#include "base/text.h"

namespace routesim::tools {

Parsed<MetricGoal> parse_metric_goal(std::string_view text) {
  const std::string hint = "for example ttft_ms.p99 < 500 or output_tokens_per_s > 8000";
  const std::size_t sign = text.find_first_of("<>");
  if (sign == std::string_view::npos)
    return {{}, "must be METRIC < NUMBER or METRIC > NUMBER (got " + printable(text) + ")", hint};
  const bool or_equal = sign + 1 < text.size() && text[sign + 1] == '=';
  const Parsed<double> bound = parse_real(trimmed(text.substr(sign + (or_equal ? 2 : 1))), {});
  const Parsed<MetricName> metric = parse_metric_name(trimmed(text.substr(0, sign)));
  if (!bound.value) return {{}, "the bound " + bound.message, hint};
  if (!metric.value) return {{}, metric.message, metric.hint.empty() ? hint : metric.hint};
  MetricGoal goal{
      .text = {}, .metric = *metric.value, .upper = text[sign] == '<', .bound = *bound.value};
  goal.text = goal.metric.text + (goal.upper ? " < " : " > ") + number_text(goal.bound);
  return {std::move(goal), {}, {}};
}

}  // namespace routesim::tools
