// A bound on one metric: what plans and pages of sweeps are held to.
#pragma once

#include <string>
#include <string_view>

#include "tools/results/metric_name.h"

namespace routesim::tools {

/// `ttft_ms.p90 < 500`, `output_tokens_per_s > 6000`; `<=` and `>=` mean the same.
struct MetricGoal {
  std::string text;  ///< In one spelling.
  MetricName metric;
  bool upper = true;  ///< The number must stay below the bound, not above.
  double bound = 0;   ///< In the unit of the metric's name.

  bool holds(double value) const { return upper ? value <= bound : value >= bound; }
};

Parsed<MetricGoal> parse_metric_goal(std::string_view text);

}  // namespace routesim::tools
