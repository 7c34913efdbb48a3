// A sweep's rows for people.
#pragma once

#include <string>
#include <vector>

#include "tools/study/sweep/sweep_plan.h"

namespace routesim::tools {

/// A row as it is stored, without its line break.
using RowLine = std::string;

/// One line per row (and per reported stage, where a row has several): the axes, the variant, and
/// the mean of each of the first metrics with the half width of its 95 % interval.
std::string sweep_table(const SweepPlan& plan, const std::vector<RowLine>& rows);

}  // namespace routesim::tools
