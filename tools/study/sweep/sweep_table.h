// A sweep's rows for people.
#pragma once

#include <string>
#include <vector>

#include "tools/study/sweep/sweep_plan.h"

namespace routesim::tools {

/// Name, question and a table with one line per row (and per reported stage, where a row has
/// several): the axes, the variant, and the mean of each of the first metrics with the half width
/// of its 95 % interval. `rows` are lines as they are stored.
std::string sweep_text(const SweepPlan& plan, const std::vector<std::string>& rows);

}  // namespace routesim::tools
