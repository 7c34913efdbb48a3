// Runs of fleets, many at once, until each is decided.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "sim/plan/resolve.h"
#include "tools/study/experiment/experiment.h"
#include "tools/study/plan/plan_goal.h"
#include "tools/study/plan/plan_space.h"

namespace routesim::tools {

// Windows of a plan: a steady fleet to which something happens, and the requests that feel it.

/// The window without `window` in the file lasts no longer, whatever the fleet needs.
inline constexpr Duration kLongestWindow = Duration::seconds(3600);

/// A steady plan with what happens in it.
struct SurvivalPlan {
  sim::RunPlan plan;
  Duration window = {};  ///< Judged from the beginning of the events' clock on.
  Duration recovery;     ///< recovery_time(): longer than the window where that ends before.
};

/// The goals of a window: those of the plan without those that only a steady run has.
std::vector<PlanGoal> window_goals(const std::vector<PlanGoal>& goals,
                                   const PlanSurvival& survival);

/// Reports what cannot happen to `plan`, the smallest fleet, in entry `index` of `survives`.
/// `diagnostics` is empty.
void check_survival(const sim::RunPlan& plan, const PlanSurvival& survival, std::size_t index,
                    const Provenance& provenance, Diagnostics& diagnostics);

/// One fleet under one rate.
struct FleetProbe {
  std::size_t family = 0;
  FleetSize size = {};
  double rate = 0;
  double step_factor = 1;    ///< Every engine step takes so many times as long.
  std::size_t survival = 0;  ///< Entry of `survives`, from 1 on; 0 = the steady rate.
  bool operator<(const FleetProbe& other) const {
    return std::tie(family, size, rate, step_factor, survival) <
           std::tie(other.family, other.size, other.rate, other.step_factor, other.survival);
  }
};

/// The numbers of one run of a fleet.
struct FleetRun {
  std::vector<double> values;  ///< By goal.
  double output_tokens_per_s = 0;
  double mean_latency_s = 0;
  std::optional<double> ttft_p90_s, tpot_p90_s;  ///< Absent where a client sees no tokens.
  double send_s = 0;                             ///< How long it sent.
  models::Trust trust = models::Trust::kFitted;  ///< RunResult::trust().
  double imbalance = 1;  ///< Requests of the busiest endpoint over those of the mean one.
};

/// Whether a fleet sustains a rate, from a run that ends when it has told.
struct SteadyProbe {
  bool sustains = false;
  double unanswered = 0;                   ///< Share of the rate that it does not answer.
  std::optional<double> router_rate = {};  ///< What its router decides, where that is less.
};

/// A fleet after as many runs as its verdict took.
struct FleetEvaluation {
  FleetProbe probe = {};
  std::shared_ptr<const sim::RunPlan> plan = {};
  std::optional<SteadyProbe> steady = {};  ///< Nothing of a load that has no rate to hold.
  std::vector<FleetRun> runs = {};         ///< By replication: seed, seed + 1, ...
  std::vector<GoalState> states = {};      ///< By goal.
  GoalVerdict verdict = GoalVerdict::kOpen;
  Duration window = {}, recovery = {};  ///< Of a survival: SurvivalPlan.
  /// Of a steady fleet: its survivals, in the file's order, once they were asked.
  std::vector<std::shared_ptr<const FleetEvaluation>> windows = {};

  /// At the steady rate, and in every window that was asked.
  bool holds() const { return verdict == GoalVerdict::kMeets && missed() == nullptr; }
  /// The requests/s that its router decides, where that is too few whatever its servers.
  std::optional<double> router_rate() const { return steady ? steady->router_rate : std::nullopt; }
  /// Of the windows that do not hold the one that is missed by most; null when all hold.
  const FleetEvaluation* missed() const;
  /// The largest shortfall of any goal, in `missed()` where there is one.
  double shortfall() const;
  /// How near it is to holding, to compare misses by: below 1 where only a window is missed.
  double distance() const;
  /// The goal with the largest shortfall of this evaluation alone.
  std::size_t worst_goal() const;
  double mean_of(double FleetRun::*number) const;
  /// The least trusted class among the runs.
  models::Trust trust() const;
};

/// Fills in the states and the verdict of the runs.
void judge_goals(const PlanSpace& space, FleetEvaluation& evaluation);

/// The parts of a search, in their order. Their number never changes, so a display has an end; how
/// many fleets each of them tries depends on what was found.
inline constexpr std::array<std::string_view, 8> kPlanSteps = {"smallest fleets",
                                                               "fleets to buy",
                                                               "errors of step times",
                                                               "knees",
                                                               "bottlenecks",
                                                               "spares",
                                                               "days",
                                                               "months"};

class FleetEvaluator {
 public:
  FleetEvaluator(const PlanSpace& space, Experiment& experiment)
      : space_(space), experiment_(experiment) {}

  /// Evaluates what has not been evaluated yet; all runs of a wave share the machine. One run each
  /// first: a clear miss needs no second. Then the file's number of replications, then more while
  /// an interval does not decide. The results do not depend on what is asked together. Throws
  /// Stopped, as run_once().
  void evaluate(std::span<const FleetProbe> probes);
  const FleetEvaluation& at(const FleetProbe& probe) const { return evaluations_.at(probe); }
  /// Evaluates the windows of those of the steady probes that meet their goals.
  void survive(std::span<const FleetProbe> probes);
  /// Every fleet that was run at the planned rate with the step times as they are, by family and
  /// size. After a stop with those of its runs that came to their end. Without fleets that meet the
  /// goals at the rate, and whose windows nobody asked for.
  std::vector<FleetEvaluation> at_planned_rate() const;

  /// One run of a changed plan with the first seed, under a load of `rate`: what if? Not
  /// remembered. In parallel.
  std::vector<FleetRun> run_once(std::span<const sim::RunPlan> plans, double rate,
                                 std::size_t survival = 0);

  /// The factor by which the queue of each plan's load misses at `rate`, by a probe; 0 = it holds.
  /// In parallel.
  std::vector<double> queue_shortfalls(std::span<const sim::RunPlan> plans, double rate);

  std::size_t runs() const { return experiment_.progress().runs; }
  Experiment& experiment() { return experiment_; }

  /// Experiment::tell().
  void tell(const std::function<void()>& collect) { experiment_.tell(collect); }
  /// Tells the display which step of the search has begun, and how many of its questions are open.
  void begin_step(std::size_t step) {
    experiment_.progress().step = step;
    tell_open(0, 0);
  }
  void tell_open(std::size_t open, std::size_t questions) {
    experiment_.progress().answered = questions - open;
    experiment_.progress().questions = questions;
  }

 private:
  void prepare(FleetEvaluation& evaluation, Diagnostics& found);
  void hold_demand(sim::RunPlan& plan, FleetEvaluation& evaluation, Diagnostics& found);
  void prepare_window(FleetEvaluation& evaluation) const;
  FleetRun run(const sim::RunPlan& plan, const FleetProbe& probe, std::uint64_t seed,
               Diagnostics& found);
  std::size_t wanted_runs(const FleetEvaluation& evaluation) const;

  const PlanSpace& space_;
  Experiment& experiment_;
  std::map<FleetProbe, FleetEvaluation> evaluations_;
};

// The fleets of a plan over its day: with all their servers, or with an autoscaler.

/// The goals that every stage of a day can be held to: not those of throughput, which a quiet hour
/// cannot reach, nor those of steadiness, which no day has.
std::vector<PlanGoal> day_goals(const std::vector<PlanGoal>& goals);

/// One goal over a day. No confidence: each day is run once, with the first seed.
struct DayGoal {
  std::string goal, name;  ///< `ttft_ms.p99 < 500`, `ttft_ms.p99`.
  std::optional<double> bound;
  std::optional<double> value = {};  ///< Of the whole day.
  std::optional<double> worst = {};  ///< Of the stage that misses it by most, or is nearest to it,
  std::string worst_at = {};         ///< and that stage's name, such as 09:00.
  std::int64_t missed = 0;           ///< Stages that miss it.
};
void describe(Describer& d, DayGoal& r);

/// What a day of one fleet costs and does.
struct DayOfFleet {
  std::string autoscaler = {};      ///< Empty: the servers are fixed.
  bool meets = false;               ///< Every goal, in every stage and over the whole day.
  Named<double> servers = {};       ///< Mean over time, of each sized pool.
  double server_hours = 0;          ///< Of sized pools, over the whole day.
  double price_per_day = 0;         ///< Of 24 hours.
  std::int64_t stages = 0;          ///< That had requests,
  std::int64_t missed = 0;          ///< and of these missed some goal.
  std::vector<DayGoal> goals = {};  ///< By day_goals().
  std::string note = {};            ///< Queries of the autoscaler that mostly failed; or empty.
};
void describe(Describer& d, DayOfFleet& r);

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
std::vector<std::vector<DayOfFleet>> run_day(const PlanSpace& space,
                                             std::span<const DayFleet> fleets,
                                             Experiment& experiment);

}  // namespace routesim::tools
