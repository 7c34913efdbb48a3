// Runs of fleets, many at once, until each is decided.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "sim/simulation.h"
#include "tools/study/plan/plan_space.h"

namespace routesim::tools {

/// One fleet under one rate.
struct FleetProbe {
  std::size_t family = 0;
  FleetSize size;
  double rate = 0;
  double step_factor = 1;  ///< Every engine step takes so many times as long.
  bool operator<(const FleetProbe& other) const {
    return std::tie(family, size, rate, step_factor) <
           std::tie(other.family, other.size, other.rate, other.step_factor);
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

/// A fleet after as many runs as its verdict took.
struct FleetEvaluation {
  FleetProbe probe;
  std::shared_ptr<const sim::RunPlan> plan;
  std::vector<FleetRun> runs;     ///< By replication: seed, seed + 1, ...
  std::vector<GoalState> states;  ///< By goal.
  GoalVerdict verdict = GoalVerdict::kOpen;

  bool holds() const { return verdict == GoalVerdict::kMeets; }
  /// The largest shortfall of any goal, and which goal it is.
  double shortfall() const;
  std::size_t worst_goal() const;
  double mean_of(double FleetRun::*number) const;
  /// The least trusted class among the runs.
  models::Trust trust() const;
};

/// The parts of a search, in their order. Their number never changes, so a display has an end; how
/// many fleets each of them tries depends on what was found.
inline constexpr std::array<std::string_view, 6> kPlanSteps = {
    "smallest fleets", "fleets to buy", "errors of step times", "knees", "bottlenecks", "spares"};

/// How far a search has come, for a display in another thread.
struct PlanProgress {
  sim::Progress run;                      ///< Its `stop` ends the search.
  std::atomic<std::size_t> step{0};       ///< Into kPlanSteps.
  std::atomic<std::size_t> answered{0};   ///< Questions of this step with an answer ...
  std::atomic<std::size_t> questions{0};  ///< ... and all of them; 0 = not counted.
  std::atomic<std::size_t> runs{0};
  std::atomic<std::size_t> fleets{0};
};

/// Thrown out of a search when it was stopped or when a run had errors.
struct PlanStopped {};

class FleetEvaluator {
 public:
  FleetEvaluator(const PlanSpace& space, std::size_t jobs, PlanProgress& progress,
                 Diagnostics& diagnostics)
      : space_(space), jobs_(jobs), progress_(progress), diagnostics_(diagnostics) {}

  /// Evaluates what has not been evaluated yet; all runs of a wave share the machine. One run each
  /// first: a clear miss needs no second. Then the file's number of replications, then more while
  /// an interval does not decide. The results do not depend on `jobs` or on what is asked together.
  void evaluate(std::span<const FleetProbe> probes);
  const FleetEvaluation& at(const FleetProbe& probe) const { return evaluations_.at(probe); }
  /// Everything evaluated so far.
  const std::map<FleetProbe, FleetEvaluation>& all() const { return evaluations_; }

  /// One run of a changed plan with the first seed, under a load of `rate`: what if? Not
  /// remembered. In parallel.
  std::vector<FleetRun> run_once(std::span<const sim::RunPlan> plans, double rate);

  std::size_t runs() const { return progress_.runs; }

  /// Tells the display which step of the search has begun, and how many of its questions are open.
  void begin_step(std::size_t step) {
    progress_.step = step;
    tell_open(0, 0);
  }
  void tell_open(std::size_t open, std::size_t questions) {
    progress_.answered = questions - open;
    progress_.questions = questions;
  }

 private:
  void prepare(FleetEvaluation& evaluation);
  FleetRun run(const sim::RunPlan& plan, double rate, std::uint64_t seed);
  void refuse_rate(double asked, double rate);
  std::size_t wanted_runs(const FleetEvaluation& evaluation) const;
  void judge_all(FleetEvaluation& evaluation) const;
  void fail(const Diagnostics& found);
  void throw_if_stopped() const;

  const PlanSpace& space_;
  std::size_t jobs_;
  PlanProgress& progress_;
  Diagnostics& diagnostics_;
  std::mutex mutex_;
  std::map<FleetProbe, FleetEvaluation> evaluations_;
};

}  // namespace routesim::tools
