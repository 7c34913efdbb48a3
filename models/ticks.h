// Conversions to ticks and the one place where a decode run is cut at a knee. Private to models/.
#pragma once

#include <algorithm>
#include <cstdint>

#include "models/latency_model.h"

namespace routesim::models {

/// Steps of a run that no knee ends. Small enough that first + i·increment stays within int64 for
/// every run a simulation can reach (2^30 steps are months at 5 ms).
inline constexpr std::int64_t kUnboundedSteps = std::int64_t{1} << 30;

/// Nanoseconds to the nearest tick; negative values are clipped to 0.
inline std::int64_t ns_to_ticks(double ns) {
  const double ticks = ns * static_cast<double>(kTicksPerNanosecond);
  return ticks <= 0 ? 0 : static_cast<std::int64_t>(ticks + 0.5);
}

inline std::int64_t us_to_ticks(double us) { return ns_to_ticks(us * 1e3); }
inline std::int64_t ms_to_ticks(double ms) { return ns_to_ticks(ms * 1e6); }

/// A run whose GPU time starts at `gpu` and grows by `increment` >= 0 per step, behind a constant
/// CPU time: below the crossing every step takes `cpu`, above it `gpu`; a run never spans both.
inline DecodeRun run_behind_cpu(std::int64_t gpu, std::int64_t increment, std::int64_t cpu,
                                std::int64_t steps) {
  if (gpu >= cpu) return {gpu, increment, steps};
  if (increment == 0) return {cpu, 0, steps};
  return {cpu, 0, std::min(steps, (cpu - gpu) / increment + 1)};
}

}  // namespace routesim::models
