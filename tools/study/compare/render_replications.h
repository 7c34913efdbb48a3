// Intervals and paired differences of replicated runs, for people, programs and spreadsheets.
#pragma once

#include <string>

#include "tools/render/json_writer.h"
#include "tools/study/compare/result_set.h"

namespace routesim::tools {

/// Per ladder metric and for the whole run: every variant's mean with its 95 % interval, and the
/// paired difference of each later variant to the first, with a verdict.
std::string replications_text(const ResultSet& set);

/// One JSON object: seeds; per variant, stage and metric the mean, its interval and the value of
/// every seed; per later variant the paired differences to the first. Infinite half widths (one
/// run) are null, and so is a metric that some run does not have.
void write_replications(JsonWriter& json, const ResultSet& set);

/// One row per variant, stage and metric.
std::string replications_csv(const ResultSet& set);

/// "seeds 1 to 5", "seed 7".
std::string seeds_text(const ResultSet& set);

}  // namespace routesim::tools
