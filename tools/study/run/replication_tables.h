// Numbers over many seeds: means with intervals, and how variants differ from the first.
#pragma once

#include <vector>

#include "tools/render/document.h"
#include "tools/results/report.h"

namespace routesim::tools {

/// Adds how the numbers were made, and the tables: per number of the stages, and for the whole run,
/// every variant's mean with its 95 % interval, and the difference of each later variant to the
/// first, with a verdict.
void add_replications(const ResultSet& set, std::vector<Block>& blocks);

/// The whole run in short, for a pull request: means, changes in percent and verdicts.
Table markdown_numbers(const ResultSet& set);

/// The replications, or the numbers of the first seed where there are no others.
ResultSet result_set_of(const Report& report);

}  // namespace routesim::tools
