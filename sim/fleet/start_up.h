// How long a server takes to start: a sum of phases, each with a rate that others measured.
// Sources: docs/model.md; what the sum is held to: scenarios/measured/start_up/start_up.csv.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "sim/fleet/fleet_config.h"

namespace routesim::sim {

/// The server that starts.
struct StartingServer {
  double weight_bytes = 0;         ///< Of the checkpoint.
  double gpu_weight_bytes = 0;     ///< On the fullest GPU.
  std::int64_t layers = 0;         ///< Of one pipeline stage.
  std::int64_t gpus = 1;           ///< A process reads the weights for each.
  std::int64_t slices = 1;         ///< A matrix is cut into so many (tensor parallelism).
  bool compiles = true;            ///< By torch.compile.
  std::int64_t cuda_graphs = 0;    ///< That it captures.
  double host_link_gb_per_s = 25;  ///< From host memory to one GPU, 10^9 bytes/s.
};

/// The phases of a start, in order.
struct StartUpTimes {
  Duration node, image_pull, process, load, compile, warm_up, probe;
  Duration cached;  ///< The part of `load` that a container started again in its pod does without.
  Duration waited;  ///< How much longer that one waits for its probe's first look.

  Duration cold() const { return node + image_pull + process + load + compile + warm_up + probe; }
  /// A container that is started again in its pod.
  Duration restart() const { return process + load - cached + compile + warm_up + waited + probe; }
};

/// Constant time.
StartUpTimes start_up_times(const StartUpConfig& config, const StartingServer& server);

}  // namespace routesim::sim
