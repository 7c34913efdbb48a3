#include "tools/study/plan/plan_evaluate.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "base/run_error.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "sim/fleet/fleet.h"
#include "sim/observe/metrics_collector.h"
#include "sim/plan/fleet_plan.h"
#include "tools/results/described_json.h"
#include "tools/results/metric_name.h"
#include "tools/results/metrics.h"
#include "tools/results/text_table.h"
#include "tools/study/capacity/capacity.h"
#include "tools/study/experiment/experiment.h"
#include "tools/study/what_if.h"

namespace routesim::tools {

namespace {

/// A fleet without requests, which notes when something last came back.
class DryFleet final : public sim::FleetActions {
 public:
  /// Requests that a server has when it is asked to end go on for so long.
  explicit DryFleet(Duration answer) : answer_(answer) {}

  /// When the last server, or router, is back.
  SimTime run(const sim::RunPlan& plan) {
    const sim::Scenario& s = plan.scenario;
    std::vector<sim::FleetPool> pools = sim::fleet_pools(plan);
    for (sim::FleetPool& pool : pools) pool.autoscaler.reset();
    SimTime next = SimTime::max();
    sim::Fleet fleet(std::move(pools), sim::fleet_events(s), sim::discovery_of(s.routing), s.seed,
                     *this, [&next](SimTime at) { next = at; });
    sim::elect_leader(fleet, plan);
    fleet.begin();
    // A drain that its budget blocks for good is tried again without end.
    const SimTime longest = SimTime::zero() + Duration::seconds(30 * 86'400);
    while (next < longest) {
      now_ = std::exchange(next, SimTime::max());
      fleet.tick(now_);
    }
    return back_;
  }

 private:
  void start(std::uint32_t server, SimTime now) override {
    back_ = now;
    ends_.erase(server);
  }
  void stop(std::uint32_t, sim::ServerEnd, SimTime) override {}
  void join(std::uint32_t, std::int64_t, SimTime now) override { back_ = now; }
  void lose_machine(std::uint32_t, SimTime) override {}
  void leave(std::uint32_t, SimTime) override {}
  void set_pace(std::uint32_t, double, SimTime now) override { back_ = now; }
  void set_events_lost(std::uint32_t, bool, SimTime now) override { back_ = now; }
  void set_scrapes_lost(std::uint32_t, bool, SimTime now) override { back_ = now; }
  void set_link(std::uint32_t, bool, SimTime now) override { back_ = now; }
  void stop_router(std::uint32_t, SimTime) override {}
  void start_router(std::uint32_t, SimTime now) override { back_ = now; }
  void lead_router(std::uint32_t, SimTime now) override { back_ = now; }
  /// Asked from the end of its preStop hook on.
  std::int64_t requests_in(std::uint32_t server) const override {
    return now_ < ends_.try_emplace(server, now_).first->second + answer_ ? 1 : 0;
  }
  const sim::FleetMetrics& metrics(std::uint32_t, SimTime) override {
    throw std::logic_error("a dry run has no autoscaler");
  }

  Duration answer_;
  SimTime back_ = SimTime::zero(), now_ = SimTime::zero();
  mutable std::map<std::uint32_t, SimTime> ends_;  ///< When a server was asked to end.
};

/// The number of the pool that the event is about.
std::size_t pool_number(const sim::Scenario& s, const sim::FleetEventConfig& e) {
  if (e.pool.empty()) return 0;
  const auto& pools = s.cluster.pools;
  return static_cast<std::size_t>(std::ranges::find(pools, e.pool, &sim::PoolConfig::name) -
                                  pools.begin());
}

/// The events without servers that are not there, and without those that have none left.
std::vector<sim::FleetEventConfig> possible(const sim::Scenario& s,
                                            std::vector<sim::FleetEventConfig> events) {
  std::erase_if(events, [&s](sim::FleetEventConfig& e) {
    const std::int64_t replicas = s.cluster.pools[pool_number(s, e)].replicas;
    return std::erase_if(e.servers, [replicas](std::int64_t n) { return n >= replicas; }) > 0 &&
           e.servers.empty();
  });
  return events;
}

/// Until the last server that `events` touch is one that the router sends to again, by a dry run of
/// the fleet, where what a server that ends still has takes `answer`; 0 where nothing comes back.
/// O(events and starts of servers).
Duration recovery_time(const sim::RunPlan& plan, std::vector<sim::FleetEventConfig> events,
                       Duration answer) {
  sim::RunPlan changed = plan;
  sim::set_events(changed, std::move(events));
  return DryFleet(answer).run(changed) - SimTime::zero();
}

}  // namespace

std::vector<PlanGoal> window_goals(const std::vector<PlanGoal>& goals,
                                   const PlanSurvival& survival) {
  std::vector<PlanGoal> asked;
  for (PlanGoal goal : goals) {
    if (goal.kind == PlanGoal::Kind::kGrowth || goal.kind == PlanGoal::Kind::kRate) continue;
    if (goal.kind == PlanGoal::Kind::kFailures && survival.max_failure_rate) {
      goal.bound = *survival.max_failure_rate;
      goal.text = goal.label + " <= " + number_text(goal.bound);
    }
    asked.push_back(std::move(goal));
  }
  return asked;
}

void check_survival(const sim::RunPlan& plan, const PlanSurvival& survival, std::size_t index,
                    const Provenance& provenance, Diagnostics& diagnostics) {
  const std::string entry = element_path("survives", index);
  const auto error = [&](const std::string& key, const std::string& what, const std::string& hint) {
    const std::string path = entry + "." + key;
    diagnostics.error(provenance.nearest(path), path, what, hint);
  };
  sim::Scenario s = plan.scenario;
  for (std::size_t i = 0; i < survival.events.size(); ++i) {
    const sim::FleetEventConfig& e = survival.events[i];
    const std::string event = element_path("events", i);
    if (e.mean_time_between)
      error(event + ".mean_time_between", "is a rate, and a window asks what one event does",
            "give `at`");
    if (e.at && survival.window && *e.at >= *survival.window)
      error(event + ".at",
            "lies behind the window of " + duration_text(*survival.window) + " (got " +
                duration_text(*e.at) + ")",
            "make the window longer");
    if (e.at && !survival.window && *e.at >= kLongestWindow)
      error(event + ".at",
            "lies behind the longest window that a plan takes by itself, " +
                duration_text(kLongestWindow) + " (got " + duration_text(*e.at) + ")",
            "say how long the window is");
    if (!e.to.empty())
      error(event + ".to", "names a pool, and a plan judges fleets that stay as they are",
            "leave it out to replace all servers by the same ones");
    const std::size_t pool = pool_number(s, e);
    if (pool == s.cluster.pools.size()) continue;
    const std::int64_t replicas = s.cluster.pools[pool].replicas;
    for (const std::int64_t number : e.servers)
      if (number >= replicas)
        error(event + ".servers",
              "names no server of the smallest fleet (got " + std::to_string(number) + ")",
              "pool " + printable(s.cluster.pools[pool].name) + " has at least " +
                  counted(static_cast<std::size_t>(replicas), "server") + ", from number 0 on");
  }
  s.events = survival.events;
  Diagnostics found;
  sim::check_fleet(s, {}, found);
  for (const Diagnostic& d : found.items()) {
    const bool is_event = d.path.starts_with("events");
    Diagnostic placed = d;
    placed.path = entry + "." + (is_event ? d.path : "events");
    placed.where = provenance.nearest(placed.path);
    if (!is_event) placed.message = d.path + " " + d.message;
    if (!is_broken(diagnostics, placed.path)) diagnostics.add(std::move(placed));
  }
}

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
    const auto most = static_cast<double>(*std::ranges::max_element(requests));
    worst = std::max(worst, most / mean);
  }
  return worst;
}

std::optional<double> p90_of(const sim::RunResult& result, std::string_view metric) {
  return metric_value(result.summary, *parse_metric_name(metric).value);
}

/// The measured stage of `steady`, which holds `rate`, becomes the window, and what was sent within
/// `lead` before it: requests under way when it begins are its requests, too. Servers that the
/// fleet does not have, since it is smaller than any of the space, cannot fail.
SurvivalPlan survival_plan(const sim::RunPlan& steady, const PlanSurvival& survival, double rate,
                           Duration lead) {
  constexpr double kFewest = 1'000;
  std::vector<sim::FleetEventConfig> events = possible(steady.scenario, survival.events);
  SurvivalPlan out{.plan = steady, .recovery = recovery_time(steady, events, lead)};
  // Where an event only takes servers away, nothing recovers: the window goes on behind it.
  Duration last{};
  for (const sim::FleetEventConfig& e : events) last = std::max(last, *e.at);
  const Duration fewest = Duration::from_seconds(kFewest / rate);
  out.window = survival.window.value_or(std::max(std::min(out.recovery, kLongestWindow),
                                                 out.recovery > last ? fewest : last + fewest));
  const Duration warm_up = steady.scenario.workload.hold->warm_up;
  sim::hold_rate(out.plan, {rate, warm_up + lead + out.window, warm_up});
  for (sim::FleetEventConfig& e : events) e.at = warm_up + lead + *e.at;
  events.insert(events.begin(), steady.scenario.events.begin(), steady.scenario.events.end());
  sim::set_events(out.plan, std::move(events));
  return out;
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

namespace {

/// Requests that are turned away have a goal of their own, and do not let a queue show; so has a
/// client that sends too little.
std::optional<SteadyProbe> steady_probe(const RateProbe& probe) {
  const bool is_told = probe.sustains != Sustains::kOpen && probe.window.turned_away <= 0.01;
  if (!is_told || probe.limit == Limit::kClient) return std::nullopt;
  return SteadyProbe{.sustains = probe.sustains == Sustains::kYes,
                     .unanswered = std::max(0.0, 1 - probe.window.answered_per_s / probe.rate)};
}

/// The factor by which a queue misses: requests sent over requests answered.
double shortfall_of(const SteadyProbe& steady) {
  return steady.sustains ? 0 : 1 / std::max(1e-6, 1 - steady.unanswered);
}

constexpr std::int64_t kProbeSends = 4'000;

}  // namespace

/// Makes the load one that is steady at the rate: a probe tells whether the fleet sustains it, and
/// how long its warm-up takes. What a run measures is long enough for its percentiles, whatever the
/// file's duration, so that the answer does not depend on it.
void FleetEvaluator::hold_demand(sim::RunPlan& plan, FleetEvaluation& evaluation,
                                 Diagnostics& found) {
  constexpr double kRequests = 3'000, kAnswers = 4;
  const double rate = evaluation.probe.rate;
  const RateProbe probe = probe_rate(
      plan, {.rate = rate, .most_sends = kProbeSends, .answered_error = 0.05, .patient = true},
      experiment_, found);
  if (!probe.why_not.empty() || found.has_errors()) return;
  evaluation.steady = steady_probe(probe);
  const bool is_told = evaluation.steady.has_value();
  // The queue decides about one that falls behind, and longer runs of it only show longer waits.
  const bool falls_behind = is_told && !evaluation.steady->sustains;
  if (falls_behind && probe.decisions_per_s < rate)
    evaluation.steady->router_rate = probe.decisions_per_s;
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
  // Answers behind the last send make up for those to requests that came before the first.
  if (plan.scenario.workload.hold) {
    result->summary.last_end = result->summary.last_send;
    for (auto& one : result->classes) one.last_end = one.last_send;
  }
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
  state.shortfall = shortfall_of(steady);
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

std::vector<double> FleetEvaluator::queue_shortfalls(std::span<const sim::RunPlan> plans,
                                                     double rate) {
  std::vector<double> found_by(plans.size());
  experiment_.each(plans.size(), [&](std::size_t i, Diagnostics& found) {
    const RateProbe probe = probe_rate(
        plans[i],
        {.rate = rate, .most_sends = kProbeSends, .answered_error = 0.02, .patient = true},
        experiment_, found);
    const std::optional<SteadyProbe> steady = steady_probe(probe);
    found_by[i] = steady ? shortfall_of(*steady) : 0;
  });
  return found_by;
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

namespace {

/// Servers of each sized pool, the mean over time.
std::vector<double> mean_servers(const PlanSpace& space, const DayFleet& fleet,
                                 const sim::RunResult& run) {
  std::vector<double> out(fleet.size.begin(), fleet.size.end());
  for (std::size_t i = 0; run.fleet && i < out.size(); ++i)
    for (const sim::FleetPoolResult& pool : run.fleet->pools)
      if (pool.pool == space.config.pools[i].pool) out[i] = pool.mean_servers;
  return out;
}

/// Dollars an hour, on a line between whole servers.
double price_between(const PlanFamily& family, const std::vector<double>& servers) {
  FleetSize low;
  for (const double n : servers) low.push_back(static_cast<std::int64_t>(n));
  const double least = family.price(low);
  double sum = least;
  for (std::size_t i = 0; i < low.size(); ++i) {
    FleetSize high = low;
    ++high[i];
    sum += (servers[i] - static_cast<double>(low[i])) * (family.price(high) - least);
  }
  return sum;
}

/// Dollars an hour, the mean over the run: what its servers cost from each change to the next.
double mean_price(const PlanSpace& space, const DayFleet& fleet, const sim::RunResult& run) {
  struct Change {
    double at_s = 0;
    std::size_t pool = 0;
    std::int64_t servers = 0;
  };
  const PlanFamily& family = space.families[fleet.family];
  std::vector<Change> changes;
  bool complete = true;
  for (std::size_t i = 0; run.fleet && i < fleet.size.size(); ++i)
    for (const sim::FleetPoolResult& pool : run.fleet->pools)
      if (pool.pool == space.config.pools[i].pool) {
        for (const sim::FleetPoint& p : pool.points) changes.push_back({p.at_s, i, p.servers});
        complete = complete && pool.points.size() < sim::Fleet::kMostMarks;
      }
  if (!complete) return price_between(family, mean_servers(space, fleet, run));
  std::ranges::stable_sort(changes, {}, &Change::at_s);
  FleetSize size = fleet.size;
  double sum = 0, since = 0;
  const double end = (run.end - SimTime::zero()).to_seconds();
  for (const Change& c : changes) {
    sum += family.price(size) * (c.at_s - since);
    since = c.at_s;
    size[c.pool] = c.servers;
  }
  sum += family.price(size) * (end - since);
  return sum / end;
}

DayOfFleet day_outcome(const PlanSpace& space, const DayFleet& fleet, const sim::RunResult& run) {
  DayOfFleet out{.meets = true};
  const std::vector<double> servers = mean_servers(space, fleet, run);
  for (std::size_t i = 0; i < servers.size(); ++i) {
    out.servers.items.emplace_back(space.config.pools[i].pool, servers[i]);
    out.server_hours += servers[i] * space.day.hours;
  }
  out.price_per_day = 24 * mean_price(space, fleet, run);
  const std::vector<PlanGoal> goals = day_goals(space.goals);
  for (const PlanGoal& goal : goals) {
    const double whole = goal_value(goal, run.summary);
    out.goals.push_back(
        {.goal = goal.text, .name = goal.label, .bound = goal.bound, .value = whole, .worst = 0});
    out.meets = out.meets && goal.holds(whole);
  }
  std::vector<double> shortfalls(goals.size());  // Of the worst stage so far.
  for (const sim::StageResult* stage : reported_stages(run)) {
    if (stage->requests == 0) continue;
    ++out.stages;
    bool missed = false;
    for (std::size_t g = 0; g < goals.size(); ++g) {
      const double value = goal_value(goals[g], *stage), off = goals[g].shortfall(value);
      DayGoal& of_goal = out.goals[g];
      if (of_goal.worst_at.empty() || off > shortfalls[g]) {
        of_goal.worst = value;
        of_goal.worst_at = stage->info.name;
        shortfalls[g] = off;
      }
      if (goals[g].holds(value)) continue;
      ++of_goal.missed;
      missed = true;
    }
    if (missed) ++out.missed;
  }
  out.meets = out.meets && out.missed == 0;
  return out;
}

}  // namespace

void describe(Describer& d, DayGoal& r) {
  field(d, {"goal", "With its bound."}, r.goal);
  field(d, {"name", "The number that is held to it."}, r.name);
  field(d, {"bound", "In the unit of the name."}, r.bound);
  field(d, nullable("value", "Over the whole day."), r.value);
  field(d, nullable("worst", "In its worst stage. Null: it has no such number there."), r.worst);
  field(d, {"worst_at", "That stage, such as 09:00."}, r.worst_at);
  field(d, {"missed", "Stages that miss it."}, r.missed);
}

void describe(Describer& d, DayOfFleet& r) {
  text_unless_empty(d, {"autoscaler", "Its name. Absent: the servers are fixed."}, r.autoscaler);
  field(d, {"meets", "Every goal, in every stage and over the whole day."}, r.meets);
  field(d, {"servers", "Mean over time, by pool."}, r.servers);
  field(d, {"server_hours", "Over the whole day."}, r.server_hours);
  field(d, {"price_per_day", "Dollars for 24 hours."}, r.price_per_day);
  field(d, {"stages", "Of the day, that had requests."}, r.stages);
  field(d, {"missed", "Of these, that miss some goal."}, r.missed);
  field(d, {"goals", "By goal; one run, so without a confidence."}, r.goals);
  text_unless_empty(d, {"note", "Queries of the autoscaler that mostly failed. Absent: none."},
                    r.note);
}

std::vector<PlanGoal> day_goals(const std::vector<PlanGoal>& goals) {
  std::vector<PlanGoal> asked;
  for (const PlanGoal& goal : goals)
    if (goal.kind != PlanGoal::Kind::kGrowth && goal.kind != PlanGoal::Kind::kRate &&
        !goal.label.ends_with("_per_s"))
      asked.push_back(goal);
  return asked;
}

ScenarioRequest day_request(const PlanSpace& space, const PlanFamily& family, const FleetSize& size,
                            std::size_t mode, Diagnostics& diagnostics) {
  ScenarioRequest request = fleet_request(space, family, size, space.planned_rate(), diagnostics);
  const SourceLocation& where = space.day.node->where();
  const auto assign = [&](const std::string& text, const SourceLocation& at) {
    std::optional<Assignment> a = parse_assignment_at(text, at, diagnostics);
    if (a) request.assignments.push_back(std::move(*a));
  };
  // The day has rates of its own.
  assign("workload.hold=null", where);
  assign("workload.rate_scale=1", where);
  assign("workload.demand=null", where);
  request.assignments.back().value = space.day.node;
  if (space.config.demand.growth > 0)
    assign("workload.demand.scale=" +
               number_text(space.config.day->scale * (1 + space.config.demand.growth)),
           where);
  if (mode == 0) return request;
  const std::vector<std::string>& set = space.config.autoscalers[mode - 1].set;
  for (std::size_t i = 0; i < set.size(); ++i)
    assign(filled(set[i], "servers", std::to_string(size.front())),
           space.day.autoscaler_places[mode - 1][i]);
  return request;
}

void measure_day(const workloads::LoadGenerator& load, double growth, PlanDay& day) {
  constexpr double kShort = 0.1;
  double seconds = 0, requests = 0, most = 0, longest = 0;
  for (const workloads::StageInfo& stage : load.stages())
    if (stage.reported) longest = std::max(longest, stage.duration_s);
  for (const workloads::StageInfo& stage : load.stages()) {
    if (!stage.reported) continue;
    const double asked = stage.requested_rate * stage.duration_s;
    // The last stage may be short, and one of a trace have a few requests in no time.
    most = std::max(most, asked / std::max(stage.duration_s, kShort * longest));
    seconds += stage.duration_s;
    requests += asked;
  }
  day.peak = most / (1 + growth);
  day.mean = requests / seconds / (1 + growth);
  day.hours = seconds / 3600;
}

void check_autoscaled(const PlanSpace& space, const sim::RunPlan& plan, std::size_t mode,
                      const Provenance& provenance, Diagnostics& diagnostics) {
  bool any = false;
  const std::string path = mode > 0           ? element_path("autoscalers", mode - 1) + ".set"
                           : space.config.day ? "day"
                                              : "scenario";
  const auto error = [&](const std::string& what, const std::string& hint) {
    diagnostics.error(provenance.nearest(path), path, what, hint);
  };
  for (const sim::PoolConfig& pool : plan.scenario.cluster.pools) {
    if (!pool.autoscaler) continue;
    any = true;
    const std::string name = printable(pool.name);
    if (mode == 0)
      error("needs fleets that nobody scales, and pool " + name + " has an autoscaler",
            "take it out with set: [\"cluster.pools[" + name + "].autoscaler=null\"]");
    else if (std::ranges::find(space.config.pools, pool.name, &PlanPool::pool) ==
             space.config.pools.end())
      error("scales pool " + name + ", whose servers the plan does not choose",
            "add the pool to `pools`");
  }
  const auto& events = plan.scenario.events;
  for (std::size_t i = 0; mode == 0 && i < events.size(); ++i)
    if (events[i].kind == sim::FleetEventKind::kScale || !events[i].to.empty())
      error("needs fleets that nobody scales, and " + element_path("events", i) +
                " changes the number of servers",
            "take it out with set: [\"events=null\"]");
  if (mode > 0 && !any)
    error("gives no pool an autoscaler",
          "for example \"cluster.pools[0].autoscaler={kind: hpa, max_replicas: {servers}, ...}\"");
}

Diagnostics about_day(const Diagnostics& found, const Provenance& provenance) {
  const std::string key = "workload.demand";
  Diagnostics out;
  for (Diagnostic d : found.items()) {
    if (d.path.starts_with(key)) {
      d.path = "day" + d.path.substr(key.size());
      d.where = provenance.nearest(d.path);
    }
    out.add(std::move(d));
  }
  return out;
}

std::vector<std::vector<DayOfFleet>> run_day(const PlanSpace& space,
                                             std::span<const DayFleet> fleets,
                                             Experiment& experiment) {
  if (space.day.node == nullptr) return {};
  const std::size_t modes = 1 + space.config.autoscalers.size();
  std::vector<std::vector<DayOfFleet>> outcomes(fleets.size(), std::vector<DayOfFleet>(modes));
  experiment.each(fleets.size() * modes, [&](std::size_t i, Diagnostics& found) {
    const DayFleet& fleet = fleets[i / modes];
    const std::size_t mode = i % modes;
    const std::optional<sim::RunPlan> plan = prepare_candidate(
        day_request(space, space.families[fleet.family], fleet.size, mode, found), found);
    if (!plan) return;
    std::optional<sim::RunResult> run;
    try {
      run = experiment.run({.plan = *plan, .seed = plan->scenario.seed, .goals = space.goodput},
                           found);
    } catch (RunError& e) {
      e.diagnostic().message += space.in_fleet(fleet.size) + " on its day";
      throw;
    }
    if (!run) return;
    DayOfFleet& out = outcomes[i / modes][mode];
    out = day_outcome(space, fleet, *run);
    for (const std::string& note : run->notes)
      if (note.starts_with("autoscaler of ")) out.note += (out.note.empty() ? "" : "; ") + note;
    if (mode > 0) out.autoscaler = space.config.autoscalers[mode - 1].name;
  });
  return outcomes;
}

}  // namespace routesim::tools
