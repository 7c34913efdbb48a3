// Holds a result to what must be true of any result, whatever was run: invariants 15 and 16 of
// sim/README.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/observe/run_result.h"

namespace routesim::sim {

/// The statistics that a report prints of a set of samples.
struct Distribution {
  std::int64_t count = 0;
  double sum = 0;
  double min = 0, mean = 0, max = 0;
  std::vector<double> percentiles{};  ///< At p0.1, p1, ..., p99.9, in rising order.
};
Distribution distribution_of(const Samples& samples);

/// Throws InvariantError 15 unless min <= p0.1 <= ... <= p99.9 <= max and min <= mean <= max.
/// `who` begins the message.
void check_order(const Distribution& samples, const std::string& who);

/// Throws InvariantError 15 for a stage or the summary with samples out of order, and 16 where
/// parts do not add up: counts of outcomes, sums of tokens and of times between them, the summary
/// over its stages, servers over requests, shares outside 0..1. A run that was stopped early
/// (`complete` is false) may leave requests that have not ended.
void check_result(const RunResult& result, bool complete);

}  // namespace routesim::sim
