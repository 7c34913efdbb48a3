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

/// `datum` in base units, with the stored number as its `raw`.
Datum in_base_unit(Datum datum, const MetricView& view);

}  // namespace routesim::tools
