// Metrics by the names of `compare`, `sweep` and `plan` (`ttft_ms.p90`) as pages show them.
#pragma once

#include <string>
#include <string_view>

#include "tools/render/chart/numbers.h"
#include "tools/render/page/page_data.h"

namespace routesim::tools {

struct MetricView {
  std::string title;  ///< `TTFT p90`, `output tokens/s`; a name that is no metric stays as it is.
  Unit unit = Unit::kNone;
  double scale = 1;             ///< From the named unit to the base unit.
  bool less_is_better = false;  ///< Meaningless where neither direction is better.
  bool has_direction = false;
};

MetricView metric_view(std::string_view name);

/// A number of a run by its key in the metric table, with its statistic where it has several:
/// `ttft.p90`, `output_throughput`.
struct Measure {
  std::string key;
  std::string title;  ///< In words: `first token, p90`.
  Unit unit = Unit::kNone;
  bool less_is_better = false;  ///< Meaningless where neither direction is better.
  bool has_direction = false;
};
Measure measure(std::string_view key);

/// `datum` in base units, with the stored number as its `raw`.
Datum in_base_unit(Datum datum, const MetricView& view);

}  // namespace routesim::tools
