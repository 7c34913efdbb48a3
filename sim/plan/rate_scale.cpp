#include "sim/plan/rate_scale.h"

#include <string>

namespace routesim::sim {

WorkloadConfig at_scaled_rate(const WorkloadConfig& workload, Diagnostics& diagnostics) {
  WorkloadConfig out = workload;
  if (workload.rate_scale == 1) return out;
  const std::string nothing = scale_rates(out.load, workload.rate_scale);
  if (!nothing.empty())
    diagnostics.error({}, "workload.rate_scale", "has no rate to multiply: " + nothing,
                      "leave it out, and change what the load has instead");
  return out;
}

}  // namespace routesim::sim
