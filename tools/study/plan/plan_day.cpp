#include "tools/study/plan/plan_day.h"

#include <algorithm>
#include <cmath>

#include "base/run_error.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "sim/fleet/fleet.h"
#include "tools/results/metrics.h"
#include "tools/study/experiment/candidate.h"

namespace routesim::tools {

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

DayOutcome outcome_of(const PlanSpace& space, const DayFleet& fleet, const sim::RunResult& run) {
  DayOutcome out;
  out.servers = mean_servers(space, fleet, run);
  for (const double servers : out.servers) out.server_hours += servers * space.day.hours;
  out.price_per_day = 24 * mean_price(space, fleet, run);
  const std::vector<PlanGoal> goals = day_goals(space.goals);
  for (const PlanGoal& goal : goals) {
    const double whole = goal_value(goal, run.summary);
    out.goals.push_back({.value = whole, .meets_whole = goal.holds(whole)});
  }
  for (const sim::StageResult* stage : reported_stages(run)) {
    if (stage->requests == 0) continue;
    ++out.stages;
    bool missed = false;
    for (std::size_t g = 0; g < goals.size(); ++g) {
      const double value = goal_value(goals[g], *stage), off = goals[g].shortfall(value);
      DayGoal& of_goal = out.goals[g];
      if (of_goal.worst_at.empty() || off > of_goal.shortfall) {
        of_goal.worst = value;
        of_goal.worst_at = stage->info.name;
        of_goal.shortfall = off;
      }
      if (goals[g].holds(value)) continue;
      ++of_goal.missed;
      missed = true;
    }
    if (missed) ++out.missed;
  }
  return out;
}

}  // namespace

std::vector<PlanGoal> day_goals(const std::vector<PlanGoal>& goals) {
  std::vector<PlanGoal> asked;
  for (const PlanGoal& goal : goals)
    if (goal.kind != PlanGoal::Kind::kGrowth && goal.kind != PlanGoal::Kind::kRate &&
        !goal.label.ends_with("_per_s"))
      asked.push_back(goal);
  return asked;
}

bool DayOutcome::meets() const {
  return missed == 0 && std::ranges::all_of(goals, &DayGoal::meets_whole);
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
  double seconds = 0, requests = 0, most = 0, longest = 0;
  for (const workloads::StageInfo& stage : load.stages()) {
    if (!stage.reported) continue;
    const double asked = stage.requested_rate * stage.duration_s;
    most = std::max(most, asked);
    longest = std::max(longest, stage.duration_s);
    seconds += stage.duration_s;
    requests += asked;
  }
  // The last stage may be short, and one of a trace have a few requests in no time.
  day.peak = most / longest / (1 + growth);
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

std::vector<std::vector<DayOutcome>> run_day(const PlanSpace& space,
                                             std::span<const DayFleet> fleets,
                                             Experiment& experiment) {
  if (space.day.node == nullptr) return {};
  const std::size_t modes = 1 + space.config.autoscalers.size();
  std::vector<std::vector<DayOutcome>> outcomes(fleets.size(), std::vector<DayOutcome>(modes));
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
    DayOutcome& out = outcomes[i / modes][mode];
    out = outcome_of(space, fleet, *run);
    if (mode > 0) out.mode = space.config.autoscalers[mode - 1].name;
  });
  return outcomes;
}

}  // namespace routesim::tools
