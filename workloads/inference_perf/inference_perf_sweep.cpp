// load.sweep of inference-perf: what can be wrong with it, its probe and the stages it makes.
#include <algorithm>
#include <string>
#include <utility>

#include "workloads/inference_perf/inference_perf_data.h"

namespace routesim::workloads::inference_perf {
namespace {

/// The probe's requests are due within these seconds.
constexpr double kProbeSeconds = 5;
/// Of one stage, as elsewhere.
constexpr double kMostRequests = 1e9;

std::unique_ptr<ArrivalStream> rate_arrivals(LoadType type, double rate, double duration_s,
                                             RandomStream random) {
  return type == LoadType::kPoisson ? poisson_arrivals(rate, duration_s, random)
                                    : constant_arrivals(rate, duration_s, random);
}

}  // namespace

void check_sweep(const Config& c, Diagnostics& out) {
  const Sweep& s = *c.load.sweep;
  if (c.load.type != LoadType::kConstant && c.load.type != LoadType::kPoisson)
    out.error({}, "load.sweep",
              "needs a load type with rates (got " + std::string(enum_name(c.load.type)) + ")",
              "use constant or poisson, or list the stages");
  if (c.data.trace)
    out.error({}, "data.trace", "says how many requests a stage has: a sweep cannot",
              "list the stages");
  if (!c.load.stages.empty())
    out.warning({}, "load.stages", "has no effect: load.sweep makes the stages");
  if (c.load.num_workers == 0)
    out.error({}, "load.num_workers", "a sweep needs worker processes (got 0)",
              "without them the tool never sends the probe, and has no stages");
  // No more than all of the probe's requests can end within half a second.
  const double most = 2 * static_cast<double>(s.num_requests);
  if (most * static_cast<double>(s.stage_duration) > kMostRequests)
    out.error(
        {}, "load.sweep.stage_duration",
        "makes stages of up to 2 * num_requests * stage_duration requests, and 1000000000 are "
        "the most (got 2 * " +
            std::to_string(s.num_requests) + " * " + std::to_string(s.stage_duration) + ")");
}

std::vector<StageLoad> sweep_stages(const Config& c, const WorkloadOptions& options) {
  const Sweep& s = *c.load.sweep;
  std::vector<StageLoad> out(static_cast<std::size_t>(s.num_stages) + 1);
  StageInfo& probe = out.front().info;
  probe.name = "probe";
  probe.requested_rate = static_cast<double>(s.num_requests) / kProbeSeconds;
  probe.duration_s = kProbeSeconds;
  probe.requests = requests_of_stage(probe.requested_rate, kProbeSeconds);
  probe.reported = false;
  probe.is_preparation = true;
  out.front().arrivals = rate_arrivals(c.load.type, probe.requested_rate, kProbeSeconds,
                                       RandomStream(options.seed, Stream::kArrivals, 0));
  for (std::size_t i = 1; i < out.size(); ++i) {
    StageInfo& info = out[i].info;
    info.name = std::to_string(i - 1);
    info.duration_s = static_cast<double>(s.stage_duration);
    info.requests = -1;
    info.reported = i > static_cast<std::size_t>(options.warmup_stages);
  }
  return out;
}

std::unique_ptr<RateSweep> make_sweep(const Config& c, const WorkloadOptions& options) {
  const Sweep& s = *c.load.sweep;
  const auto duration = static_cast<double>(s.stage_duration);
  SweepSettings settings;
  settings.spacing = s.type == SweepType::kLinear ? RateSpacing::kLinear : RateSpacing::kGeometric;
  settings.stages = s.num_stages;
  settings.stage_duration_s = duration;
  settings.timeout_s = s.timeout;
  settings.saturation_percentile = s.saturation_percentile;
  settings.grace = Duration::from_seconds(c.load.stage_teardown_grace_seconds);
  settings.arrivals = [type = c.load.type, seed = options.seed, duration](std::size_t stage,
                                                                          double rate) {
    return rate_arrivals(type, rate, duration, RandomStream(seed, Stream::kArrivals, stage));
  };
  return std::make_unique<RateSweep>(std::move(settings));
}

}  // namespace routesim::workloads::inference_perf
