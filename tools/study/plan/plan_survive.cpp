#include "tools/study/plan/plan_survive.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "sim/fleet/fleet.h"
#include "sim/plan/fleet_plan.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

/// A fleet without requests, which notes when something last came back.
class DryFleet final : public sim::FleetActions {
 public:
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
    while (next != SimTime::max()) fleet.tick(std::exchange(next, SimTime::max()));
    return back_;
  }

 private:
  void start(std::uint32_t, SimTime now) override { back_ = now; }
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
  std::int64_t requests_in(std::uint32_t) const override { return 0; }
  const sim::FleetMetrics& metrics(std::uint32_t, SimTime) override {
    throw std::logic_error("a dry run has no autoscaler");
  }

  SimTime back_ = SimTime::zero();
};

/// The number of the pool that the event is about.
std::size_t pool_of(const sim::Scenario& s, const sim::FleetEventConfig& e) {
  if (e.pool.empty()) return 0;
  const auto& pools = s.cluster.pools;
  return static_cast<std::size_t>(std::ranges::find(pools, e.pool, &sim::PoolConfig::name) -
                                  pools.begin());
}

/// The events without servers that are not there, and without those that have none left.
std::vector<sim::FleetEventConfig> possible(const sim::Scenario& s,
                                            std::vector<sim::FleetEventConfig> events) {
  std::erase_if(events, [&s](sim::FleetEventConfig& e) {
    const std::int64_t replicas = s.cluster.pools[pool_of(s, e)].replicas;
    return std::erase_if(e.servers, [replicas](std::int64_t n) { return n >= replicas; }) > 0 &&
           e.servers.empty();
  });
  return events;
}

}  // namespace

Duration recovery_time(const sim::RunPlan& plan, std::vector<sim::FleetEventConfig> events) {
  sim::RunPlan changed = plan;
  sim::set_events(changed, std::move(events));
  return DryFleet().run(changed) - SimTime::zero();
}

SurvivalPlan survival_plan(const sim::RunPlan& steady, const PlanSurvival& survival, double rate,
                           Duration lead) {
  constexpr double kFewest = 1'000;
  std::vector<sim::FleetEventConfig> events = possible(steady.scenario, survival.events);
  SurvivalPlan out{.plan = steady, .window = {}, .recovery = recovery_time(steady, events)};
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
      error(event + ".to", "names another pool, and a plan judges one fleet",
            "leave it out to replace all servers by the same ones");
    const std::size_t pool = pool_of(s, e);
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

}  // namespace routesim::tools
