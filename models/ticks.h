// Conversions to ticks and the one place where a decode run is cut at a knee. Private to models/.
#pragma once

#include <algorithm>
#include <cstdint>

#include "models/latency_model.h"

namespace routesim::models {

/// Steps of a run that no knee ends; no simulation reaches as many (2^30 are months at 5 ms).
inline constexpr std::int64_t kUnboundedSteps = std::int64_t{1} << 30;

/// Sums and products of ticks before they are bounded: a coefficient and a count have 64 bits each.
__extension__ using WideTicks = __int128;

/// A sum of non-negative terms, at most the longest step.
inline std::int64_t bounded_ticks(WideTicks ticks) {
  return static_cast<std::int64_t>(std::min<WideTicks>(ticks, kLongestStepTicks));
}

/// Nanoseconds to the nearest tick, between 0 and the longest step.
inline std::int64_t ns_to_ticks(double ns) {
  const double ticks = ns * static_cast<double>(kTicksPerNanosecond);
  if (ticks >= static_cast<double>(kLongestStepTicks)) return kLongestStepTicks;
  return ticks > 0 ? static_cast<std::int64_t>(ticks + 0.5) : 0;
}

inline std::int64_t us_to_ticks(double us) { return ns_to_ticks(us * 1e3); }
inline std::int64_t ms_to_ticks(double ms) { return ns_to_ticks(ms * 1e6); }

/// The run, cut before a step would be longer than the longest.
inline DecodeRun bounded_run(DecodeRun run) {
  if (run.increment > 0)
    run.steps = std::min(run.steps, (kLongestStepTicks - run.first) / run.increment + 1);
  return run;
}

/// A run whose GPU time starts at `gpu` and grows by `increment` >= 0 per step, behind a constant
/// CPU time: below the crossing every step takes `cpu`, above it `gpu`; a run never spans both. All
/// three are bounded.
inline DecodeRun run_behind_cpu(std::int64_t gpu, std::int64_t increment, std::int64_t cpu,
                                std::int64_t steps) {
  if (gpu >= cpu) return bounded_run({gpu, increment, steps});
  if (increment == 0) return {cpu, 0, steps};
  return {cpu, 0, std::min(steps, (cpu - gpu) / increment + 1)};
}

}  // namespace routesim::models
