// The stopping rule of `run --until`, as it is written.
#pragma once

#include <string>

#include "tools/results/metric_name.h"
#include "tools/study/experiment/replicate.h"

namespace routesim::tools {

struct UntilRule {
  std::string text;  ///< In its one spelling: `ttft_ms.mean±2%`.
  MetricName metric;
  StoppingRule rule;
};

/// `METRIC±NUMBER%`; `+-` and `+/-` may stand for the sign.
Parsed<UntilRule> parse_until(const std::string& text);

}  // namespace routesim::tools
