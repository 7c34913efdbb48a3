// The fleets of a plan over its day: with all their servers, or with an autoscaler.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/study/experiment/experiment.h"
#include "tools/study/plan/plan_space.h"

namespace routesim::tools {

/// The goals that every stage of a day can be held to: not those of throughput, which a quiet hour
/// cannot reach, nor those of steadiness, which no day has.
std::vector<PlanGoal> day_goals(const std::vector<PlanGoal>& goals);

/// One goal over a day. No confidence: each day is run once, with the first seed.
struct DayGoal {
  double value = 0;           ///< Of the whole day.
  double worst = 0;           ///< Of the stage that misses it by most, or is nearest to it,
  std::string worst_at = {};  ///< and that stage's name, such as 09:00.
  double shortfall = 0;       ///< There: of the bound, above 1 where it is missed.
  std::size_t missed = 0;     ///< Stages that miss it.
  bool meets_whole = false;   ///< Over the whole day.
};

/// What a day of one fleet costs and does.
struct DayOutcome {
  std::string mode;             ///< An autoscaler's name; empty: the servers are fixed.
  std::vector<double> servers;  ///< Mean over time, of each sized pool.
  double server_hours = 0;      ///< Of sized pools, over the whole day.
  double price_per_day = 0;     ///< Of 24 hours.
  std::size_t stages = 0;       ///< That had requests,
  std::size_t missed = 0;       ///< and of these missed some goal.
  std::vector<DayGoal> goals;   ///< By day_goals().

  /// Every goal, in every stage and over the whole day.
  bool meets() const;
};

struct DayFleet {
  std::size_t family = 0;
  FleetSize size;
};

/// The fleet under the planned demand of the day: with fixed servers (mode 0), or with entry
/// `mode` - 1 of `autoscalers`.
ScenarioRequest day_request(const PlanSpace& space, const PlanFamily& family, const FleetSize& size,
                            std::size_t mode, Diagnostics& diagnostics);

/// Takes the day's peak (the mean of its busiest stage), mean and length from its load, which has
/// `growth` in it.
void measure_day(const workloads::LoadGenerator& load, double growth, PlanDay& day);

/// Reports pools whose number of servers nothing, or something else, decides in this mode.
void check_autoscaled(const PlanSpace& space, const sim::RunPlan& plan, std::size_t mode,
                      const Provenance& provenance, Diagnostics& diagnostics);

/// Findings about `workload.demand` as what they are: about `day`.
Diagnostics about_day(const Diagnostics& found, const Provenance& provenance);

/// Every fleet in every mode, all as one wave. Nothing where the plan has no day.
std::vector<std::vector<DayOutcome>> run_day(const PlanSpace& space,
                                             std::span<const DayFleet> fleets,
                                             Experiment& experiment);

}  // namespace routesim::tools
