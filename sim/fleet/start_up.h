// How long a server takes to start.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "sim/fleet/fleet_config.h"

namespace routesim::sim {

/// The server that starts.
struct StartingServer {
  double weight_bytes = 0;  ///< On all its GPUs.
  std::int64_t layers = 0;
  std::int64_t gpus = 1;
};

/// The phases of a start, in order. A container that is started again in its pod begins with
/// `load`.
struct StartUpTimes {
  Duration node, image_pull, load, compile, probe;

  Duration cold() const { return node + image_pull + restart(); }
  Duration restart() const { return load + compile + probe; }
};

StartUpTimes start_up_times(const StartUpConfig& config, const StartingServer& server);

}  // namespace routesim::sim
