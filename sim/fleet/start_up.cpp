#include "sim/fleet/start_up.h"

#include <cmath>

namespace routesim::sim {

namespace {

Duration seconds(double s) { return Duration::nanoseconds(std::llround(s * 1e9)); }

}  // namespace

StartUpTimes start_up_times(const StartUpConfig& config, const StartingServer& server) {
  StartUpTimes t;
  t.node = config.node.value_or(Duration::zero());
  t.image_pull = config.image_pull.value_or(Duration::zero());
  t.load = config.load.value_or(seconds(server.weight_bytes / (config.storage_gb_per_s * 1e9)));
  t.compile = config.compile.value_or(
      seconds((config.compile_cache ? 30 : 60) + 0.5 * static_cast<double>(server.layers)));
  t.probe = config.probe_period / 2;
  if (!config.total) return t;
  // A measured whole keeps the shares of the phases.
  const double whole = t.cold().to_seconds();
  if (whole <= 0) {
    t.load = *config.total;
    return t;
  }
  const double scale = config.total->to_seconds() / whole;
  for (Duration StartUpTimes::*phase : {&StartUpTimes::node, &StartUpTimes::image_pull,
                                        &StartUpTimes::compile, &StartUpTimes::probe})
    t.*phase = seconds((t.*phase).to_seconds() * scale);
  t.load = *config.total - t.node - t.image_pull - t.compile - t.probe;
  return t;
}

}  // namespace routesim::sim
