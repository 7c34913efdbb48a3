// Whether a published number can be what its row says.
#pragma once

#include <string>
#include <string_view>

#include "tools/ingest/measured_file.h"

namespace routesim::tools {

/// Why the row's unit or value is impossible for `metric` (the row's, in the simulator's word): a
/// unit of another quantity, a negative number, a share above one. Empty when nothing is wrong, and
/// for a metric that is not known here. `unit` is the row's, in its plain spelling.
std::string why_impossible(const MeasuredRow& row, std::string_view metric, std::string_view unit);

}  // namespace routesim::tools
