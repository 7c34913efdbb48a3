// What a scenario says about the life of its fleet, checked and with every number decided.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/diagnostic.h"
#include "models/specs.h"
#include "sim/fleet/fleet.h"
#include "sim/plan/scenario.h"

namespace routesim::sim {

struct RunPlan;

/// Something happens to the fleet: otherwise it is the same from beginning to end.
bool fleet_changes(const Scenario& s);

/// The fleet has other servers after the event than before it.
inline bool changes_servers(const FleetEventConfig& e) {
  return e.kind == FleetEventKind::kScale || !e.to.empty();
}

/// Some GPUs have a price.
bool has_price(const Scenario& s);

/// Results tell of the fleet over time.
inline bool tells_fleet(const Scenario& s) { return fleet_changes(s) || has_price(s); }

/// Gives the plan other events, which have no fault, and its pools the places that these need.
void set_events(RunPlan& plan, std::vector<FleetEventConfig> events);

/// Takes out events, for a run in which nothing happens to the fleet.
void forget_events(RunPlan& plan);

/// The most servers that a pool of the scenario has at once, those that are ending included.
/// O(events x pools^2).
std::int64_t places_of(const Scenario& s, std::size_t pool);

/// Reports events that cannot happen, or would mean nothing. Places are keys of the scenario.
void check_fleet(const Scenario& s, const SourceLocation& where, Diagnostics& diagnostics);

/// The start of a pool's servers.
StartUpTimes start_up_of(const PoolConfig& pool, const models::ModelSpec& model,
                         const models::AcceleratorSpec& gpu, const EngineRules& rules);

/// How soon the router hears of servers that come and go: what the scenario says, otherwise as its
/// product does (see discovery.h).
Discovery discovery_of(const RoutingConfig& routing);

/// The router carries the requests that it routes, so that they are lost with it. An endpoint
/// picker and AIBrix's plugin only name servers to Envoy, and a Kubernetes Service has no process.
bool carries_requests(const RoutingConfig& routing);

/// The router asks for KV events that it missed, and may miss some.
bool asks_for_replays(const RunPlan& plan);

/// The replay socket of the engine sends frames that llm-d's router reads: vLLM's do from v0.26.0
/// on (vllm-project/vllm#45177), SGLang's do not.
inline bool answers_replays(const EngineConfig& engine) {
  return engine.kind == EngineKind::kVllm && engine.preset == EnginePreset::k2026H2;
}

/// The pools as a Fleet wants them.
std::vector<FleetPool> fleet_pools(const RunPlan& plan);

/// Tells the fleet where endpoint pickers elect a leader. Call before Fleet::begin().
void elect_leader(Fleet& fleet, const RunPlan& plan);

/// The events, with names for what is absent.
std::vector<FleetEventConfig> fleet_events(const Scenario& s);

}  // namespace routesim::sim
