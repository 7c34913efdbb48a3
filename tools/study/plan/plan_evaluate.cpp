#include "tools/study/plan/plan_evaluate.h"

#include <algorithm>
#include <cmath>

#include "base/run_error.h"
#include "base/scalar_parse.h"
#include "sim/observe/metrics_collector.h"
#include "tools/results/metric_name.h"
#include "tools/study/capacity/capacity.h"
#include "tools/study/experiment/candidate.h"
#include "tools/study/plan/plan_survive.h"
#include "tools/study/what_if.h"

namespace routesim::tools {

namespace {

/// Requests of the busiest endpoint of a pool over those of the pool's mean one; the worst pool
/// that the router chooses from.
double imbalance(const sim::RunResult& result) {
  std::map<std::string, std::vector<std::int64_t>> pools;
  for (const sim::ReplicaResult& r : result.replicas) pools[r.pool].push_back(r.requests);
  double worst = 1;
  for (const auto& [name, requests] : pools) {
    std::int64_t sum = 0;
    for (const std::int64_t n : requests) sum += n;
    if (sum == 0) continue;
    const double mean = static_cast<double>(sum) / static_cast<double>(requests.size());
    const auto most = static_cast<double>(*std::max_element(requests.begin(), requests.end()));
    worst = std::max(worst, most / mean);
  }
  return worst;
}

std::optional<double> p90_of(const sim::RunResult& result, std::string_view metric) {
  return metric_value(result.summary, *parse_metric_name(metric).value);
}

}  // namespace

const FleetEvaluation* FleetEvaluation::missed() const {
  const FleetEvaluation* worst = nullptr;
  for (const auto& w : windows)
    if (!w->holds() && (worst == nullptr || w->shortfall() > worst->shortfall())) worst = w.get();
  return worst;
}

double FleetEvaluation::shortfall() const {
  if (const FleetEvaluation* const in = missed()) return in->shortfall();
  return states.empty() ? 0 : states[worst_goal()].shortfall;
}

double FleetEvaluation::distance() const {
  const FleetEvaluation* const in = missed();
  return in == nullptr ? 1 + shortfall()
                       : window_distance(shortfall(), in->states[in->worst_goal()].estimate.mean);
}

std::size_t FleetEvaluation::worst_goal() const {
  std::size_t worst = 0;
  for (std::size_t i = 1; i < states.size(); ++i)
    if (states[i].shortfall > states[worst].shortfall) worst = i;
  return worst;
}

double FleetEvaluation::mean_of(double FleetRun::*number) const {
  double sum = 0;
  for (const FleetRun& run : runs) sum += run.*number;
  return runs.empty() ? 0 : sum / static_cast<double>(runs.size());
}

models::Trust FleetEvaluation::trust() const {
  models::Trust least = models::Trust::kFitted;
  for (const FleetRun& run : runs) least = std::max(least, run.trust);
  return least;
}

void FleetEvaluator::prepare(FleetEvaluation& evaluation, Diagnostics& found) {
  const FleetProbe& probe = evaluation.probe;
  if (probe.survival > 0) return prepare_window(evaluation);
  std::optional<sim::RunPlan> plan = prepare_candidate(
      fleet_request(space_, space_.families[probe.family], probe.size, probe.rate, found), found);
  if (!plan) return;
  const auto load = plan->make_load(plan->scenario.seed, found);
  if (load == nullptr) return;
  if (const std::optional<double> asked = other_rate_asked(load->stages(), probe.rate)) {
    found.error(space_.demand_where, "demand.set",
                "does not make the load this rate: its stages ask for " + number_text(*asked) +
                    " requests/s, the plan for " + number_text(probe.rate),
                "put {rate} where the reported stage has its rate");
    return;
  }
  if (probe.step_factor != 1) plan = sim::with_step_times(*plan, probe.step_factor);
  if (!space_.config.demand.cold_start) hold_demand(*plan, evaluation, found);
  evaluation.plan = std::make_shared<const sim::RunPlan>(std::move(*plan));
}

/// The fleet at its steady rate was evaluated before, and is warm. What is sent in twice the time
/// of a mean answer before the window is taken to be all that is under way when it begins.
void FleetEvaluator::prepare_window(FleetEvaluation& evaluation) const {
  constexpr double kAnswers = 2;
  FleetProbe steady = evaluation.probe;
  steady.survival = 0;
  const FleetEvaluation& before = at(steady);
  const double answer_s = before.mean_of(&FleetRun::mean_latency_s);
  SurvivalPlan found = survival_plan(
      *before.plan, space_.config.survives[evaluation.probe.survival - 1], steady.rate,
      Duration::from_seconds(std::isfinite(answer_s) ? kAnswers * answer_s : 0));
  evaluation.window = found.window;
  evaluation.recovery = found.recovery;
  evaluation.plan = std::make_shared<const sim::RunPlan>(std::move(found.plan));
}

/// Makes the load one that is steady at the rate: a probe tells whether the fleet sustains it, and
/// how long its warm-up takes. What a run measures is long enough for its percentiles, whatever the
/// file's duration, so that the answer does not depend on it.
void FleetEvaluator::hold_demand(sim::RunPlan& plan, FleetEvaluation& evaluation,
                                 Diagnostics& found) {
  constexpr std::int64_t kProbeSends = 4'000;
  constexpr double kRequests = 3'000, kAnswers = 4;
  const double rate = evaluation.probe.rate;
  const RateProbe probe = probe_rate(
      plan, {.rate = rate, .most_sends = kProbeSends, .answered_error = 0.05, .patient = true},
      experiment_, found);
  if (!probe.why_not.empty() || found.has_errors()) return;
  // What is turned away has a goal of its own, and does not let a queue show.
  const bool is_told = probe.sustains != Sustains::kOpen && probe.window.turned_away <= 0.01;
  if (is_told)
    evaluation.steady = {.sustains = probe.sustains == Sustains::kYes,
                         .unanswered = std::max(0.0, 1 - probe.window.answered_per_s / rate)};
  // The queue decides about one that falls behind, and longer runs of it only show longer waits.
  const bool falls_behind = is_told && !evaluation.steady->sustains;
  const double answer_s = falls_behind ? 0 : probe.answer_s;
  const double asked_s = falls_behind ? 0 : space_.config.demand.duration.to_seconds();
  const double warm_up_s = std::max(probe.warm_up_s, answer_s);
  const double measured_s = std::max({asked_s, kRequests / rate, kAnswers * answer_s});
  sim::hold_rate(plan, {rate, Duration::from_seconds(warm_up_s + measured_s),
                        Duration::from_seconds(warm_up_s)});
}

FleetRun FleetEvaluator::run(const sim::RunPlan& plan, const FleetProbe& probe, std::uint64_t seed,
                             Diagnostics& found) {
  std::optional<sim::RunResult> result;
  try {
    result = experiment_.run({.plan = plan, .seed = seed, .goals = space_.goodput}, found);
  } catch (RunError& e) {
    e.diagnostic().message += space_.in_fleet(probe.size);
    if (probe.survival > 0)
      e.diagnostic().message += " under survives[" + std::to_string(probe.survival - 1) + "]";
    throw;
  }
  if (!result) return {};
  const sim::StageResult& all = result->summary;
  return {.values = goal_values(space_.goals_of(probe.survival), *result, probe.rate),
          .output_tokens_per_s = all.per_second(static_cast<double>(all.output_tokens_total)),
          .mean_latency_s = all.request_latency.mean(),
          .ttft_p90_s = p90_of(*result, "ttft_s.p90"),
          .tpot_p90_s = p90_of(*result, "tpot_s.p90"),
          .send_s = all.send_duration_s(),
          .trust = result->trust(),
          .imbalance = imbalance(*result)};
}

std::size_t FleetEvaluator::wanted_runs(const FleetEvaluation& evaluation) const {
  const std::size_t have = evaluation.runs.size();
  if (have == 0) return 1;
  if (evaluation.verdict != GoalVerdict::kOpen) return have;
  const auto usual = static_cast<std::size_t>(space_.config.replications);
  const auto most = static_cast<std::size_t>(space_.config.max_replications);
  return have < usual ? usual : std::min(have + 2, most);
}

namespace {

/// What the probe says of the queue takes the place of what single runs show. Of a fleet that falls
/// behind, the other goals say how long its runs were, and may have no value at all: the queue is
/// what it misses most.
void judge_growth(const SteadyProbe& steady, GoalState& state, std::span<GoalState> others) {
  state.verdict = steady.sustains ? GoalVerdict::kMeets : GoalVerdict::kMisses;
  state.estimate.mean = steady.sustains ? 0 : steady.unanswered;
  state.estimate.half_width = 0;
  state.shortfall = steady.sustains ? 0 : 1 / std::max(1e-6, 1 - steady.unanswered);
  if (steady.sustains) return;
  for (GoalState& other : others)
    if (&other != &state)
      other.shortfall = std::min(other.shortfall, std::nextafter(state.shortfall, 0.0));
}

}  // namespace

void judge_goals(const PlanSpace& space, FleetEvaluation& evaluation) {
  const std::vector<PlanGoal>& goals = space.goals_of(evaluation.probe.survival);
  evaluation.states.clear();
  for (std::size_t g = 0; g < goals.size(); ++g) {
    std::vector<double> values;
    for (const FleetRun& run : evaluation.runs) values.push_back(run.values[g]);
    evaluation.states.push_back(judge(goals[g], values, space.config.confidence));
  }
  for (std::size_t g = 0; g < goals.size(); ++g)
    if (goals[g].kind == PlanGoal::Kind::kGrowth && evaluation.steady)
      judge_growth(*evaluation.steady, evaluation.states[g], evaluation.states);
  const bool meets = std::ranges::all_of(evaluation.states, [](const GoalState& state) {
    return state.verdict == GoalVerdict::kMeets;
  });
  const bool misses = std::ranges::find(evaluation.states, GoalVerdict::kMisses,
                                        &GoalState::verdict) != evaluation.states.end();
  evaluation.verdict =
      misses ? GoalVerdict::kMisses : (meets ? GoalVerdict::kMeets : GoalVerdict::kOpen);
}

void FleetEvaluator::evaluate(std::span<const FleetProbe> probes) {
  std::vector<FleetEvaluation*> open;
  for (const FleetProbe& probe : probes) {
    const auto [it, is_new] = evaluations_.try_emplace(probe);
    if (!is_new) continue;
    it->second.probe = probe;
    open.push_back(&it->second);
  }
  experiment_.progress().candidates += open.size();
  experiment_.each(open.size(),
                   [&](std::size_t i, Diagnostics& found) { prepare(*open[i], found); });
  while (!open.empty()) {
    struct Task {
      FleetEvaluation* evaluation;
      std::size_t replication;
    };
    std::vector<Task> tasks;
    for (FleetEvaluation* evaluation : open) {
      const std::size_t have = evaluation->runs.size();
      evaluation->runs.resize(wanted_runs(*evaluation));
      for (std::size_t r = have; r < evaluation->runs.size(); ++r) tasks.push_back({evaluation, r});
    }
    if (tasks.empty()) return;
    experiment_.each(tasks.size(), [&](std::size_t i, Diagnostics& found) {
      const FleetEvaluation& evaluation = *tasks[i].evaluation;
      const sim::RunPlan& plan = *evaluation.plan;
      tasks[i].evaluation->runs[tasks[i].replication] =
          run(plan, evaluation.probe, plan.scenario.seed + tasks[i].replication, found);
    });
    for (FleetEvaluation* evaluation : open) judge_goals(space_, *evaluation);
    std::erase_if(open,
                  [this](const FleetEvaluation* e) { return wanted_runs(*e) == e->runs.size(); });
  }
}

void FleetEvaluator::survive(std::span<const FleetProbe> probes) {
  std::vector<FleetProbe> steady, windows;
  for (const FleetProbe& probe : probes) {
    const FleetEvaluation& evaluation = at(probe);
    if (evaluation.verdict != GoalVerdict::kMeets || !evaluation.windows.empty()) continue;
    steady.push_back(probe);
    for (FleetProbe window = probe; window.survival < space_.config.survives.size();) {
      ++window.survival;
      windows.push_back(window);
    }
  }
  evaluate(windows);
  std::size_t next = 0;
  for (const FleetProbe& probe : steady) {
    std::vector<std::shared_ptr<const FleetEvaluation>> found;
    for (std::size_t i = 0; i < space_.config.survives.size(); ++i)
      found.push_back(std::make_shared<const FleetEvaluation>(at(windows[next++])));
    evaluations_.at(probe).windows = std::move(found);
  }
}

std::vector<FleetEvaluation> FleetEvaluator::at_planned_rate() const {
  std::vector<FleetEvaluation> out;
  const auto is_in_space = [&](const FleetSize& size) {  // What spares is may be below it.
    return std::ranges::equal(size, space_.config.pools, std::ranges::greater_equal{}, {},
                              &PlanPool::min);
  };
  for (const auto& [probe, evaluation] : evaluations_) {
    if (probe.rate != space_.planned_rate() || probe.step_factor != 1 || probe.survival > 0 ||
        !is_in_space(probe.size))
      continue;
    FleetEvaluation ended = evaluation;
    const auto open =
        std::ranges::find_if(ended.runs, [](const FleetRun& run) { return run.values.empty(); });
    if (open == ended.runs.begin()) continue;
    ended.runs.erase(open, ended.runs.end());
    judge_goals(space_, ended);
    if (ended.verdict == GoalVerdict::kMeets &&
        ended.windows.size() < space_.config.survives.size())
      continue;
    out.push_back(std::move(ended));
  }
  return out;
}

std::vector<FleetRun> FleetEvaluator::run_once(std::span<const sim::RunPlan> plans, double rate,
                                               std::size_t survival) {
  const FleetProbe probe{.rate = rate, .survival = survival};
  std::vector<FleetRun> runs(plans.size());
  experiment_.each(plans.size(), [&](std::size_t i, Diagnostics& found) {
    runs[i] = run(plans[i], probe, plans[i].scenario.seed, found);
  });
  return runs;
}

}  // namespace routesim::tools
