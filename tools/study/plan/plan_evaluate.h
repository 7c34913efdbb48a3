// Runs of fleets, many at once, until each is decided.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "tools/study/experiment/experiment.h"
#include "tools/study/plan/plan_space.h"

namespace routesim::tools {

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
  double unanswered = 0;  ///< Share of the rate that it does not answer.
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

}  // namespace routesim::tools
