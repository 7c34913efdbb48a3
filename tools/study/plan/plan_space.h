// The fleets a plan may choose from: hardware x policy, each with pools to size.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/resolve.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/ingest/tree/config_merge.h"
#include "tools/study/plan/plan_goal.h"

namespace routesim::tools {

/// Replicas of each sized pool, in the order of the file.
using FleetSize = std::vector<std::int64_t>;

/// How GPUs are paid for.
enum class Contract { kOnDemand, kReserved, kSpot };

/// What one replica of a pool takes.
struct ReplicaCost {
  std::size_t price = 0;  ///< Of its accelerator, in PlanConfig::prices.
  std::int64_t gpus = 0;
  double others_per_hour = 0;  ///< Besides GPUs.
};

/// One hardware behind one policy.
struct PlanFamily {
  std::string hardware;
  std::string policy;
  std::string variant;                  ///< Empty when the scenario has none.
  std::optional<double> host_gib = {};  ///< Of one engine core, where the plan tries some.
  /// The same hardware and policy without host memory, where the plan tries that.
  std::optional<std::size_t> without = {};
  std::vector<Assignment> assignments = {};  ///< From the hardware and from the policy.
  std::vector<ReplicaCost> costs = {};       ///< Of the sized pools.
  /// Of the others, with their replicas.
  std::vector<std::pair<ReplicaCost, std::int64_t>> fixed = {};
  std::vector<PlanPrice> prices = {};            ///< Of the file.
  models::Trust trust = models::Trust::kFitted;  ///< The least known of its pools.
  std::vector<std::string> step_times = {};      ///< By pool: which model, from what data.
  std::string scenario_hash = {};  ///< Hash of its smallest fleet, everything resolved.
  std::uint64_t seed = 0;          ///< Seed of its first replication.
  std::string impossible = {};     ///< Why it cannot run at all; empty when it can.

  /// Dollars an hour, on demand.
  double price(const FleetSize& size) const { return *price(size, Contract::kOnDemand); }
  /// Nothing where the file has no such price of some GPU.
  std::optional<double> price(const FleetSize& size, Contract contract) const;
  std::int64_t gpus(const FleetSize& size) const;
  /// GPUs of the whole nodes that hold the fleet. A replica that fills a node has nodes of its own;
  /// the others share them, the largest first, each in the fullest node that has room.
  std::int64_t paid_gpus(const FleetSize& size) const;

 private:
  /// By entry of `prices`: GPUs to pay for.
  std::vector<std::int64_t> paid(const FleetSize& size) const;
};

/// The demand of the plan's day, today.
struct PlanDay {
  ConfigNode::Ptr node = nullptr;  ///< As written; null without a day.
  double peak = 1;                 ///< Requests/s of its busiest stage,
  double mean = 0;                 ///< and of all of it.
  double hours = 0;
  std::vector<std::vector<SourceLocation>> autoscaler_places = {};  ///< Of each assignment.
};

struct PlanSpace {
  PlanConfig config;
  std::string path;
  std::string scenario_path;
  std::vector<Assignment> base;  ///< Made in every fleet.
  std::vector<PlanGoal> goals;
  GoodputGoals goodput;
  std::vector<PlanFamily> families;
  SourceLocation demand_where;
  std::vector<SourceLocation> demand_places;  ///< Place of each assignment of the demand.
  std::vector<SourceLocation> pool_where;     ///< Place of each sized pool's name.
  std::vector<std::vector<PlanGoal>> window_goals = {};  ///< By entry of `survives`.
  PlanDay day = {};

  /// `, in a fleet of 2 a, 3 b`: ends the message of a run that cannot go on.
  std::string in_fleet(const FleetSize& size) const {
    std::string text;
    for (std::size_t p = 0; p < size.size(); ++p)
      text += (p == 0 ? ", in a fleet of " : ", ") + std::to_string(size[p]) + " " +
              config.pools[p].pool;
    return text;
  }
  /// The fleet to buy where `needed` holds: with the spares.
  FleetSize bought(FleetSize needed) const {
    for (std::int64_t& n : needed) n += config.spares;
    return needed;
  }
  double rate_today() const { return config.demand.rate.value_or(day.peak); }
  double planned_rate() const { return rate_today() * (1 + config.demand.growth); }
  /// Of a window of `survives`, counted from 1; of the steady rate: 0.
  const std::vector<PlanGoal>& goals_of(std::size_t survival) const {
    return survival == 0 ? goals : window_goals[survival - 1];
  }
  /// The rate so many months after the planned one.
  double rate_in(std::int64_t months) const;
};

/// A plan file and the options of the command line.
struct PlanRequest {
  std::string path;
  std::vector<std::string> sets = {};
  std::optional<std::int64_t> seed = {};
};

/// Reads the file and prepares the smallest fleet of every family. A family whose model does not
/// fit its hardware is marked impossible; everything else that is wrong is an error, as is a space
/// in which every family is impossible. Usable only without errors.
PlanSpace load_plan(const PlanRequest& request, Diagnostics& diagnostics);

/// `text` with every `{name}` replaced.
std::string filled(std::string text, const std::string& name, const std::string& value);

/// The fleet under a load of `rate` requests/s.
ScenarioRequest fleet_request(const PlanSpace& space, const PlanFamily& family,
                              const FleetSize& size, double rate, Diagnostics& diagnostics);

}  // namespace routesim::tools
