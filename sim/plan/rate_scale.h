// `workload.rate_scale`: the same load at a multiple of its rate.
#pragma once

#include "base/diagnostic.h"
#include "sim/plan/scenario.h"

namespace routesim::sim {

/// The workload with every rate of its load multiplied by `rate_scale`: of inference-perf's stages
/// (requests or sessions), of `vllm bench` and its runs, of groups; a trace plays so much faster. A
/// load without rates (a closed loop, everything at once, rates that the tool finds itself, the
/// times in inference-perf's own trace) is an error unless the scale is 1.
WorkloadConfig at_scaled_rate(const WorkloadConfig& workload, Diagnostics& diagnostics);

}  // namespace routesim::sim
