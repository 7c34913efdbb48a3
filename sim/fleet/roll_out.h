// The rolling update of a Deployment.
#pragma once

#include <cstdint>

namespace routesim::sim {

/// The servers of a Deployment while new ones replace old ones. `spec` is what a ReplicaSet is told
/// to have, `available` what is ready.
struct RollOutCounts {
  std::int64_t replicas = 0;  ///< That the Deployment is to have.
  std::int64_t new_spec = 0, new_available = 0;
  std::int64_t old_spec = 0, old_available = 0;
  std::int64_t max_surge = 1, max_unavailable = 0;
};

/// What the ReplicaSets are told next.
struct RollOutStep {
  std::int64_t new_spec = 0, old_spec = 0;
  bool operator==(const RollOutStep&) const = default;
};

/// One reconciliation: first the new ReplicaSet grows, or else the old one shrinks, its unready
/// servers first. With both bounds 0 one server may be missing. Kubernetes v1.34
/// pkg/controller/deployment/rolling.go (reconcileNewReplicaSet, reconcileOldReplicaSets) and
/// util/deployment_util.go (NewRSNewReplicas, ResolveFenceposts).
RollOutStep roll_out_step(const RollOutCounts& c);

}  // namespace routesim::sim
