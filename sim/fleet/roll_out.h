// How a Deployment spreads its servers over its ReplicaSets: roll-outs, and scaling meanwhile.
#pragma once

#include <cstdint>
#include <vector>

namespace routesim::sim {

/// A ReplicaSet.
struct RollOutSet {
  std::int64_t spec = 0;       ///< Servers that it is told to have,
  std::int64_t available = 0;  ///< and those that are ready.
  std::int64_t most = 0;       ///< Replicas and surge of the Deployment when it was last sized.
  bool operator==(const RollOutSet&) const = default;
};

/// A Deployment while new servers replace old ones.
struct RollOutState {
  std::int64_t replicas = 0;  ///< That it is to have.
  std::int64_t max_surge = 1, max_unavailable = 0;
  std::vector<RollOutSet> sets;  ///< By age, but the one with the present configuration is last.
};

/// One reconciliation, changing what the sets are told: first the new one grows, or else old ones
/// shrink, their unready servers first. With both bounds 0 one server may be missing. False if
/// there is nothing to do. Kubernetes v1.34 pkg/controller/deployment/rolling.go
/// (reconcileNewReplicaSet, reconcileOldReplicaSets) and util/deployment_util.go (NewRSNewReplicas,
/// ResolveFenceposts).
bool roll_out_step(RollOutState& d);

/// The same with strategy Recreate (recreate.go): the new set grows when no old server is left,
/// those that are ending included.
bool recreate_step(RollOutState& d, bool old_servers_left);

/// `replicas` is another number than before: each set that has servers gets its share of the
/// difference (sync.go: scale, util/deployment_util.go: GetReplicaSetProportion). One such set gets
/// all of it.
void share_out(RollOutState& d, bool recreates);

}  // namespace routesim::sim
