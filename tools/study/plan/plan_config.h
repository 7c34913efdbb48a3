// A plan file: a demand, goals, and the fleets that may meet them, with their prices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/describe.h"
#include "sim/fleet/fleet_config.h"
#include "workloads/demand/demand.h"

namespace routesim::tools {

/// The load a plan must hold.
struct PlanDemand {
  std::optional<double> rate;                  ///< Requests/s today. Absent: the peak of the day.
  double growth = 0;                           ///< Planned for: 0.25 plans for 1.25 times the rate.
  double growth_per_month = 0;                 ///< From the planned rate on, compounded.
  std::int64_t months = 0;                     ///< To look ahead, this one included; 0 = none.
  std::string from;                            ///< Of the first month: `2026-12`; empty = none.
  Duration duration = Duration::seconds(120);  ///< How long each run sends at least.
  /// Count the start with empty caches, too, over `duration` exactly. Otherwise a run counts from
  /// the end of its warm-up on.
  bool cold_start = false;
  /// Assignments that make the scenario's workload this load. `{rate}` stands for the rate,
  /// `{requests}` for rate times duration, `{seconds}` for the duration, rounded to whole numbers.
  std::vector<std::string> set;
};
void describe(Describer& d, PlanDemand& p);

/// Months since the year 0 of a text such as `2026-12`.
std::optional<std::int64_t> parse_month(std::string_view text);

/// A share of requests that must meet several bounds at once.
struct PlanGoodput {
  double share = 0.95;
  std::vector<std::string> bounds;  ///< `ttft:500ms`, as --goodput takes them.
};
void describe(Describer& d, PlanGoodput& p);

/// The price of one GPU.
struct PlanPrice {
  std::string accelerator;
  double per_hour = 0;
  std::optional<double> reserved_per_hour, spot_per_hour;
  std::int64_t gpus_per_node = 1;  ///< Whole nodes are paid for.
};
void describe(Describer& d, PlanPrice& p);

/// Host memory for KV blocks (engine.kv_tiers.cpu_gib of every sized pool).
struct PlanHostMemory {
  std::vector<double> gib;  ///< Sizes to try, of one engine core; 0 = no tier.
  double per_gib_hour = 0;
};
void describe(Describer& d, PlanHostMemory& p);

/// The hardware of a replica. Absent keys stay as the scenario has them.
struct PlanHardware {
  std::string name;  ///< Empty = made from the keys below.
  std::optional<std::string> accelerator;
  std::optional<std::int64_t> tensor_parallel;
  std::optional<std::int64_t> data_parallel;
  std::vector<std::string> set;  ///< Further assignments.
};
void describe(Describer& d, PlanHardware& p);

/// A routing policy: a variant of the scenario, and what to change in it.
struct PlanPolicy {
  std::string name;     ///< Empty = the variant's.
  std::string variant;  ///< A variant of the scenario; empty when it has none.
  std::vector<std::string> set;
};
void describe(Describer& d, PlanPolicy& p);

/// A pool whose replicas are chosen.
struct PlanPool {
  std::string pool;
  std::int64_t min = 1;
  std::int64_t max = 64;
};
void describe(Describer& d, PlanPool& p);

/// Something that happens to the fleet, which must meet the goals meanwhile.
struct PlanSurvival {
  std::string name;
  std::vector<sim::FleetEventConfig> events;  ///< Their `at` counts from the window's beginning.
  std::optional<Duration> window;             ///< Absent: until all servers are ready again.
  std::optional<double> max_failure_rate;     ///< Absent: the plan's.
};
void describe(Describer& d, PlanSurvival& p);

/// An autoscaler that the fleets found are run with over the day.
struct PlanAutoscaler {
  std::string name;
  std::vector<std::string> set;  ///< `{servers}` stands for the servers of the fleet's pool.
};
void describe(Describer& d, PlanAutoscaler& p);

/// A plan file.
struct PlanConfig {
  std::string name;
  std::string question;
  std::string scenario;
  std::vector<std::string> set;
  std::optional<std::int64_t> seed;
  PlanDemand demand;
  std::vector<std::string> goals;  ///< `ttft_ms.p99 < 500`.
  std::optional<PlanGoodput> goodput;
  double max_failure_rate = 0;
  double confidence = 0.95;
  std::int64_t replications = 3;
  std::int64_t max_replications = 10;
  std::int64_t spares = 0;
  double knee_limit = 8;
  std::vector<PlanPrice> prices;
  std::optional<PlanHostMemory> host_memory;
  std::vector<PlanHardware> hardware;
  std::vector<PlanPolicy> policies;
  std::vector<PlanPool> pools;
  std::vector<PlanSurvival> survives;
  std::optional<workloads::Demand> day;
  std::vector<PlanAutoscaler> autoscalers;
};
void describe(Describer& d, PlanConfig& c);

}  // namespace routesim::tools
