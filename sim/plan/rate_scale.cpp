#include "sim/plan/rate_scale.h"

#include <cmath>
#include <string>

namespace routesim::sim {
namespace {

/// Multiplies a rate that is there and finite; says whether it did.
bool scale(std::optional<double>& rate, double by) {
  if (!rate || !std::isfinite(*rate)) return false;
  *rate *= by;
  return true;
}

bool scale(double& rate, double by) {
  if (!std::isfinite(rate)) return false;
  rate *= by;
  return true;
}

/// Why there is nothing to scale, or "".
std::string scale_inference_perf(workloads::inference_perf::Load& load, double by) {
  using workloads::inference_perf::LoadType;
  if (load.sweep) return "load.sweep finds its rates itself";
  if (load.type == LoadType::kTraceReplay)
    return "load type trace_replay has the times of its file";
  bool scaled = false;
  for (workloads::inference_perf::Stage& stage : load.stages) {
    const bool requests = scale(stage.rate, by);
    const bool sessions = scale(stage.session_rate, by);
    scaled = scaled || requests || sessions;
  }
  return scaled || load.stages.empty() ? "" : "its stages have a concurrency, and no rate";
}

std::string scale_vllm_bench(workloads::vllm_bench::Config& bench, double by) {
  if (bench.dataset_name == workloads::vllm_bench::Dataset::kTimedTrace &&
      bench.timed_trace.self_timed) {
    bench.timed_trace.sec_multiplier /= by;
    return {};
  }
  bool scaled = scale(bench.request_rate, by);
  for (auto* rate : {&bench.ramp_up_start_rps, &bench.ramp_up_end_rps})
    scaled = scale(*rate, by) || scaled;
  for (workloads::vllm_bench::Run& run : bench.runs) scaled = scale(run.request_rate, by) || scaled;
  return scaled ? "" : "request_rate is inf: all requests are sent at once";
}

}  // namespace

WorkloadConfig at_scaled_rate(const WorkloadConfig& workload, Diagnostics& diagnostics) {
  WorkloadConfig out = workload;
  const double by = workload.rate_scale;
  if (by == 1) return out;
  std::string nothing;
  if (out.inference_perf_config)
    nothing = scale_inference_perf(out.inference_perf_config->load, by);
  else if (out.vllm_bench)
    nothing = scale_vllm_bench(*out.vllm_bench, by);
  else if (out.conversations)
    nothing = "conversations are a closed loop: each client waits for its answers";
  else if (out.trace)
    out.trace->replay.time_scale /= by;
  else if (out.groups && !scale(out.groups->rate, by))
    nothing = "groups.rate is infinite: all requests are sent at once";
  if (!nothing.empty())
    diagnostics.error({}, "workload.rate_scale", "has no rate to multiply: " + nothing,
                      "leave it out, and change what the load has instead");
  return out;
}

}  // namespace routesim::sim
