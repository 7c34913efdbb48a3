// The life of servers as the objects around them say it: autoscalers, disruption budgets, and what
// a workload says of its pods' probes, ends and roll-outs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "base/diagnostic.h"

namespace routesim::tools {

/// What the files say about the life of one workload's servers: nodes, which life_keys() reads.
struct ServerLife {
  std::string kind = {};            ///< Of the workload: `Deployment`; empty in values of charts.
  std::string name = {};            ///< Its own, which autoscalers have.
  std::string name_space = {};      ///< Empty where nothing says it.
  ConfigNode::Ptr workload = {};    ///< The object; null where there is none.
  ConfigNode::Ptr grace = {};       ///< terminationGracePeriodSeconds.
  ConfigNode::Ptr pre_stop = {};    ///< The engine's preStop hook.
  ConfigNode::Ptr readiness = {};   ///< The engine's readinessProbe.
  ConfigNode::Ptr startup = {};     ///< Its startupProbe, after which that one begins.
  std::int64_t pods_of_server = 1;  ///< A LeaderWorkerSet has more.
  std::vector<ConfigNode::Ptr> scalers = {};  ///< HorizontalPodAutoscalers, ScaledObjects.
  std::vector<ConfigNode::Ptr> budgets = {};  ///< PodDisruptionBudgets.
  /// What the metrics of the scalers are: PrometheusRules, ConfigMaps of prometheus-adapter.
  std::vector<ConfigNode::Ptr> rules = {};
};

/// Notes what the pod says (a map with `containers`) and what its engine's container says.
void note_pod_life(const ConfigNode& pod, ServerLife& life);
void note_container_life(const ConfigNode& container, ServerLife& life);

/// The autoscaler and the budget of an element of the vLLM production stack's `modelSpec`, and the
/// strategy of its Deployment, as its chart makes objects of them.
void note_stack_life(const ConfigNode& values, const ConfigNode& model, ServerLife& life);

/// The objects of files that are about the servers of other objects.
class LifeObjects {
 public:
  /// Adds those of a file: one object, a list of them, or a `kind: List`.
  void add(const ConfigNode::Ptr& root);
  bool empty() const { return scalers_.empty() && budgets_.empty() && rules_.empty(); }
  /// Puts those that are about a workload into its `life`; `labels` are those of its pods, as
  /// `key=value`.
  void give(ServerLife& life, const std::vector<ConfigNode::Ptr>& labels);
  /// Whether something was given of what was added.
  bool was_given() const;
  /// Warns of each scaler and budget that was never given.
  void warn_of_unused(const std::string& key_path, Diagnostics& diagnostics) const;
  /// Lists what becomes of all their keys.
  void note_all_keys(const std::string& key_path, Diagnostics& diagnostics) const;

 private:
  struct Object {
    ConfigNode::Ptr node;
    bool given = false;
    std::string elsewhere = {};  ///< The namespace of what it is about, where it has another.
  };
  std::vector<Object> scalers_, budgets_, rules_;
};

/// The file without the objects that LifeObjects takes from it, which have a table of their own.
ConfigNode::Ptr without_life_objects(const ConfigNode::Ptr& root);

/// The number of servers that an autoscaler leaves of `replicas` (null: 1) at its first look:
/// within its bounds, but for KEDA's idle and paused objects. What is no number comes back as it
/// is.
ConfigNode::Ptr bounded_replicas(const ConfigNode::Ptr& replicas, const ServerLife& life);

/// The keys of the pool that they stand for (`autoscaler`, `most_evicted` or `min_available`,
/// `termination`, `start_up`), but those for which `says` is true: the pool says them itself. What
/// cannot be read is an error at its place; a hook that is not understood is a warning.
std::vector<ConfigNode::Member> life_keys(const ServerLife& life,
                                          const std::function<bool(std::string_view)>& says,
                                          const std::string& key_path, Diagnostics& diagnostics);

/// Why a crash ends more than its container, at its place: the servers are groups of a
/// LeaderWorkerSet, which makes the whole group new. Null where they are not.
ConfigNode::Ptr group_restart(const ServerLife& life);

/// `max_surge` and `max_unavailable` of the workload's roll-outs, or `recreate`; none where it
/// leaves them to Kubernetes' defaults for Deployments.
std::vector<ConfigNode::Member> roll_out_bounds(const ServerLife& life, const std::string& key_path,
                                                Diagnostics& diagnostics);

}  // namespace routesim::tools
