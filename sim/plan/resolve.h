// From what a scenario says to what a run needs: catalogue entries, KV capacity, step-time models,
// the load. Everything that can be wrong with a scenario's meaning is found here.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/diagnostic.h"
#include "models/catalogue.h"
#include "models/kv_cache_spec.h"
#include "models/latency_model.h"
#include "policies/config/document.h"
#include "sim/fleet/start_up.h"
#include "sim/plan/scenario.h"
#include "sim/rules/engine_config.h"
#include "workloads/load_generator.h"

namespace routesim::sim {

/// The inputs that tools/ read for a scenario besides its YAML.
struct ScenarioInputs {
  models::Catalogue catalogue;
  std::optional<policies::EndpointPickerConfig> endpoint_picker;
  std::vector<workloads::LoadInputs> loads;  ///< The data that the load names, or each of a mix.
  SourceLocation where;                      ///< The scenario file, for messages.
};

/// A pool with every number decided.
struct ResolvedPool {
  PoolConfig config;
  EngineRules rules;
  ApiServerTimes api_server;
  models::KvCachePlan kv_plan;
  std::int64_t kv_cache_tokens = 0;  ///< Of one engine core, as vLLM's log counts them.
  std::shared_ptr<const models::LatencyModel> latency;
  double kv_bytes_per_token = 0;  ///< Of one engine core, all its GPUs: what a transfer moves.
  std::int64_t descriptors = 0;   ///< One of its GPUs pulls a KV block in so many.
  bool lock_step = false;         ///< Its DP ranks step together.
  std::int64_t extra_places = 0;  ///< For servers beyond `replicas`, where the fleet changes.
  StartUpTimes start_up;

  /// The most servers at once.
  std::int64_t places() const { return config.replicas + extra_places; }
};

/// One variant, ready to run, any number of times.
struct RunPlan {
  Scenario scenario;
  std::vector<ResolvedPool> pools;
  std::optional<policies::EndpointPickerConfig> endpoint_picker;  ///< Where it is the balancer.
  /// The place of a key in the scenario, for what only a run can find; may be empty.
  std::function<SourceLocation(const std::string& path)> where;
  /// Names and values of the headers of a request, by its traffic class. One entry without classes.
  std::vector<std::vector<std::pair<std::string, std::string>>> headers{1};
  bool price_decisions = false;  ///< Fill RequestRecord::regret_s (see Omniscient).
  std::optional<PredictorSettings> latency_predictor;  ///< Where something asks it.
  std::vector<std::string> adapters;  ///< LoRA adapters of the load; request.prompt->adapter - 1.
  std::function<std::unique_ptr<workloads::LoadGenerator>(std::uint64_t seed, Diagnostics&)>
      make_load;
  /// Per router process, instead of the scenario's balancer; not set by resolve().
  std::function<std::unique_ptr<policies::Balancer>(std::uint64_t process)> make_balancer;
  /// Some servers compute prompts for others.
  bool has_prefill() const {
    return std::ranges::any_of(pools, [](auto& p) { return p.config.role == PoolRole::kPrefill; });
  }
};

/// Decisions are priced where the plan asks for it, and behind the omniscient router.
inline bool prices_decisions(const RunPlan& plan) {
  return plan.price_decisions || plan.scenario.routing.balancer == BalancerKind::kOmniscient;
}

/// The latency predictor beside the router with this document: what `routing` says, otherwise the
/// default one where the document declares predicted-latency-producer. Nothing without any.
std::optional<PredictorSettings> deciding_predictor(const RoutingConfig& routing,
                                                    const policies::EndpointPickerConfig& config);

/// The part of resolve() that only looks up names, for a scenario that is wrong elsewhere: pools of
/// unknown accelerators, models, KV formats and latency models.
void check_names(const Scenario& scenario, const ScenarioInputs& inputs, Diagnostics& diagnostics);

/// Nothing when `diagnostics` received an error.
std::optional<RunPlan> resolve(const Scenario& scenario, const ScenarioInputs& inputs,
                               Diagnostics& diagnostics);

/// The workload with every rate of its load multiplied by `rate_scale`: of inference-perf's stages
/// (requests or sessions), of `vllm bench` and its runs, of groups; a trace plays so much faster. A
/// load without rates (a closed loop, everything at once, rates that the tool finds itself, the
/// times in inference-perf's own trace) is an error unless the scale is 1.
WorkloadConfig at_scaled_rate(const WorkloadConfig& workload, Diagnostics& diagnostics);

/// Makes the plan's load one stage (workloads::hold_rate()); what is due in its warm-up belongs to
/// a stage that is not reported. The loads of a mix keep their shares of the rate. Returns why the
/// load has no rate to hold, or "".
std::string hold_rate(RunPlan& plan, const HeldRate& hold);

}  // namespace routesim::sim
