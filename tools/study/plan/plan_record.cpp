#include "tools/study/plan/plan_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/results/described_json.h"
#include "tools/results/statistics.h"
#include "tools/results/text_table.h"
#include "tools/results/trust_errors.h"
#include "tools/results/version.h"
#include "tools/study/plan/plan_search.h"

namespace routesim::tools {

void describe(Describer& d, PlanRecord::Goal& r) {
  field(d, {"goal", "With its bound."}, r.goal);
  field(d, {"name", "The number that is held to it."}, r.name);
  field(d, {"bound", "In the unit of the name."}, r.bound);
  field(d, {"verdict", "Of its runs."}, r.verdict);
  field(d, {"mean", "Over the runs."}, r.mean);
  field(d, {"half_width", "Of the one-sided bound."}, r.half_width);
  field(d, {"values", "By run."}, r.values);
}

void describe(Describer& d, PlanRecord::Fleet& r) {
  field(d, {"replicas", "By pool."}, r.replicas);
  field(d, {"price_per_hour", "Dollars."}, r.price_per_hour);
}

void describe(Describer& d, PlanRecord::Band& r) {
  field(d, {"fraction", "Error of its step times."}, r.fraction);
  field(d, nullable("longer", "The fleet to buy if steps were longer. Null: no size holds."),
        r.longer);
  field(d, nullable("shorter", "The same if they were shorter."), r.shorter);
}

void describe(Describer& d, PlanRecord::Capacity& r) {
  field(d, {"band", "Share of the KV blocks."}, r.band);
  field(d, {"holds_with_fewer", "Every goal is met with fewer blocks."}, r.holds_with_fewer);
  field(d, {"holds_with_more", "Every goal is met with more blocks."}, r.holds_with_more);
}

void describe(Describer& d, PlanRecord::Without& r) {
  field(d, {"output_tokens_per_s", "Tokens/s."}, r.output_tokens_per_s);
  field(d, {"request_latency_s", "Mean, s."}, r.request_latency_s);
  field(d, {"goals", "By goal."}, r.goals);
}

void describe(Describer& d, PlanRecord::Memory& r) {
  field(d, {"gib", "Of one engine core."}, r.gib);
  field(d, {"same_fleet_without", "The same fleet without it."}, r.same_fleet_without);
  Field without = nullable("fleet_without", "What the goals take without it. Null: no size.");
  without.null = r.same_fleet_without.has_value();
  field(d, without, r.fleet_without);
}

void describe(Describer& d, PlanRecord::Month& r) {
  field(d, {"month", "0 = the first, at the planned rate."}, r.month);
  field(d, {"requests_per_s", "The rate of that month."}, r.requests_per_s);
  field(d, nullable("fleet", "To buy by then. Null: no size holds, and the search ends."), r.fleet);
}

void describe(Describer& d, PlanRecord::Worst& r) {
  field(d, {"goal", "With its bound."}, r.goal);
  field(d, {"name", "The number that is held to it."}, r.name);
  field(d, {"bound", "In the unit of the name."}, r.bound);
  field(d, nullable("mean", "Over the runs. Null where one has no such number."), r.mean);
  field(d, nullable("shortfall", "Mean over bound, or bound over mean."), r.shortfall);
  text_unless_empty(d, {"survival", "The event that it is missed in. Absent: at the steady rate."},
                    r.survival);
}

void describe(Describer& d, PlanRecord::Window& r) {
  field(d, {"name", "The entry of `survives`."}, r.name);
  field(d, {"window_s", "How long requests are judged from the beginning of the events on."},
        r.window_s);
  field(d, {"recovery_s", "Until the last server that the events touch serves again."},
        r.recovery_s);
  field(d, {"goals", "By goal, of the window's requests."}, r.goals);
  field(d, {"unprepared_misses", "What `unprepared` misses here by most. Absent: nothing."},
        r.unprepared_misses);
}

void describe(Describer& d, Binding& r) {
  field(d, {"resource", "What runs short just above the knee. Empty: nothing alone."}, r.resource);
  field(d, {"goal", "The goal that is missed first."}, r.goal);
  field(d, nullable("missed_by", "Its shortfall there."), r.missed_by);
  field(d, nullable("missed_by_with_double", "The same with twice the resource."),
        r.missed_by_with_double);
}

void describe(Describer& d, PlanRecord::Day& r) {
  field(d, {"peak", "Requests/s of its busiest stage, today."}, r.peak);
  field(d, {"mean", "Requests/s over all of it, today."}, r.mean);
  field(d, {"hours", "How long it is."}, r.hours);
  field(d, {"report_every_s", "Length of its stages."}, r.report_every_s);
}

void describe(Describer& d, PlanRecord::Choice& r) {
  field(d, {"hardware", "Name of the hardware."}, r.hardware);
  field(d, {"policy", "Name of the policy."}, r.policy);
  field(d, {"replicas", "The fleet to buy, spares included, by pool."}, r.replicas);
  field(d, {"needed", "The least that holds, by pool."}, r.needed);
  field(d, {"gpus", "Of all pools."}, r.gpus);
  field(d, {"paid_gpus", "Of whole nodes."}, r.paid_gpus);
  field(d, {"price_per_hour", "Dollars."}, r.price_per_hour);
  field(d, {"reserved_price_per_hour", "The same with reservations."}, r.reserved_price_per_hour);
  field(d, {"spot_price_per_hour", "The same where GPUs may be taken away."},
        r.spot_price_per_hour);
  field(d, {"step_times", "The weakest basis of step times among its runs."}, r.step_times);
  field(d, {"validation", "What validation found for this basis."}, r.validation);
  field(d, {"step_time_band", "What errors of that size would change."}, r.step_time_band);
  field(d, {"kv_capacity", "What an error of the KV capacity would change."}, r.kv_capacity);
  field(d, nullable("price_per_million_output_tokens", "Dollars, at the planned rate."),
        r.price_per_million_output_tokens);
  field(d, {"output_tokens_per_s", "At the planned rate."}, r.output_tokens_per_s);
  field(d, {"knee_requests_per_s", "The highest rate that it holds."}, r.knee_requests_per_s);
  field(d, nullable("knee_fails_at", "The lowest rate that was seen to fail."), r.knee_fails_at);
  field(d,
        {"utilisation", "The planned rate over the highest that it holds, where that was found."},
        r.utilisation);
  field(d, {"spare_replicas_today", "Of any one pool, at today's rate."}, r.spare_replicas_today);
  field(d, {"binding", "What it runs short of."}, r.binding);
  field(d, {"goals", "By goal."}, r.goals);
  field(d, {"host_memory", "Where the plan tries some."}, r.host_memory);
  field(d, {"unprepared", "What would be bought if nothing had to be survived."}, r.unprepared);
  field(d, {"survives", "By entry of `survives`."}, r.survives);
  field(d, {"day", "Over the plan's day, with fixed servers and with each autoscaler."}, r.day);
  field(d, {"months", "The first month, and those in which it must grow."}, r.months);
  field(d, {"price_of_months", "Dollars of all months. Absent where no size holds the last."},
        r.price_of_months);
}

void describe(Describer& d, PlanRecord::NearMiss& r) {
  describe(d, static_cast<PlanRecord::Fleet&>(r));
  field(d, {"goals", "By goal."}, r.goals);
  text_unless_empty(d, {"survival", "The event that it misses. Absent: it misses the steady rate."},
                    r.survival);
}

void describe(Describer& d, PlanRecord::Family& r) {
  field(d, {"hardware", "Name of the hardware."}, r.hardware);
  field(d, {"policy", "Name of the policy."}, r.policy);
  field(d, {"method", "How sizes were searched."}, r.method);
  field(d, {"tried_singly", "A middle size came nearest, and those around it were run."},
        r.tried_singly);
  field(d, {"sizes", "In the space."}, r.sizes);
  field(d, {"sizes_tried", "Of these."}, r.sizes_tried);
  field(d, {"router_requests_per_s", "The most that its router decides, whatever its servers."},
        r.router_rate);
  field(d, {"impossible", "Why it cannot run at all."}, r.impossible);
  field(d, {"step_times", "The least known of its pools."}, r.step_times);
  field(d, {"sources", "By pool: which model, from what data."}, r.sources);
  field(d, {"seed", "Of its first replication."}, r.seed);
  field(d, {"scenario_hash", "Of its smallest fleet, everything resolved."}, r.scenario_hash);
  field(d, {"replicas", "The least that holds, by pool."}, r.replicas);
  field(d, {"price_per_hour", "Its price, dollars."}, r.price_per_hour);
  field(d, {"near_miss", "The best fleet seen, when none holds."}, r.near_miss);
}

void describe(Describer& d, PlanRecord::Evaluated& r) {
  field(d, {"hardware", "Name of the hardware."}, r.hardware);
  field(d, {"policy", "Name of the policy."}, r.policy);
  field(d, {"replicas", "By pool."}, r.replicas);
  field(d, {"gpus", "Of all pools."}, r.gpus);
  field(d, {"price_per_hour", "Dollars."}, r.price_per_hour);
  field(d, {"verdict", "Of all goals."}, r.verdict);
  field(d, {"runs", "How many were made."}, r.runs);
  field(d, nullable("ttft_s.p90", "Mean over the runs, s."), r.ttft_p90_s);
  field(d, nullable("tpot_s.p90", "Mean over the runs, s."), r.tpot_p90_s);
  field(d, {"goals", "Means over the runs, by goal, each in its own unit. Null without a number."},
        r.goals);
  field(d, {"worst", "The goal that it misses by most."}, r.worst);
  field(d,
        {"on_front",
         "No other that meets the goals is better in price, TTFT p90 or TPOT p90 and worse in "
         "none."},
        r.on_front);
}

void describe(Describer& d, PlanRecord& r) {
  field(d, {"plan", "Its name."}, r.plan);
  field(d, {"question", "As written."}, r.question);
  field(d, {"version", "The version that made it."}, r.version);
  text_unless_empty(d, {"commit", "Of that version."}, r.commit);
  field(d, {"met", "Some fleet meets every goal."}, r.met);
  field(d, {"partial", "The step in which the search was stopped. Absent: it was not."}, r.partial);
  field(d, {"rests_on", "The basis of the first answer, as a clause."}, r.rests_on);
  field(d, {"robustness", "Errors that it survives, and errors that flip it."}, r.robustness);
  field(d, {"scenario", "Path of the scenario, as written."}, r.scenario);
  field(d, {"prices", "As given."}, r.prices);
  field(d, {"host_memory_per_gib_hour", "As given, dollars."}, r.host_memory_per_gib_hour);
  field(d, {"rate_today", "Requests/s."}, r.rate_today);
  field(d, {"growth", "Planned for, as a share."}, r.growth);
  field(d, {"planned_rate", "Requests/s."}, r.planned_rate);
  field(d, {"growth_per_month", "As a share, compounded."}, r.growth_per_month);
  field(d, {"months", "That the plan looks ahead."}, r.months);
  field(d, {"from", "The first month."}, r.from);
  field(d, {"confidence", "That goals are met with."}, r.confidence);
  field(d, {"goals", "Of the file, and those of every plan."}, r.goals);
  field(d, {"plans", "Fleets that meet every goal, the cheapest first."}, r.plans);
  field(d, {"families", "Each hardware with each policy."}, r.families);
  field(d, {"evaluated", "Every fleet that was run at the planned rate."}, r.evaluated);
  field(d, {"runs", "Of the whole search."}, r.runs);
  field(d, {"day", "The demand by the clock, where the plan has one."}, r.day);
}

namespace {

using Replicas = PlanRecord::Replicas;

Replicas replicas_of(const PlanSpace& space, const FleetSize& size) {
  Replicas out;
  for (std::size_t i = 0; i < size.size(); ++i)
    out.items.emplace_back(space.config.pools[i].pool, size[i]);
  return out;
}

std::vector<PlanRecord::Goal> judged_goals(const PlanSpace& space,
                                           const FleetEvaluation& evaluation) {
  const std::vector<PlanGoal>& asked = space.goals_of(evaluation.probe.survival);
  std::vector<PlanRecord::Goal> goals;
  for (std::size_t g = 0; g < asked.size(); ++g) {
    const GoalState& state = evaluation.states[g];
    PlanRecord::Goal& goal =
        goals.emplace_back(PlanRecord::Goal{.goal = asked[g].text,
                                            .name = asked[g].label,
                                            .bound = asked[g].bound,
                                            .verdict = state.verdict,
                                            .mean = state.estimate.mean,
                                            .half_width = state.estimate.half_width});
    for (const FleetRun& run : evaluation.runs) goal.values.push_back(run.values[g]);
  }
  return goals;
}

std::string survival_of(const PlanSpace& space, const FleetEvaluation& e) {
  return e.probe.survival == 0 ? "" : space.config.survives[e.probe.survival - 1].name;
}

PlanRecord::Worst worst_of(const PlanSpace& space, const FleetEvaluation& e) {
  const std::size_t worst = e.worst_goal();
  const PlanGoal& goal = space.goals_of(e.probe.survival)[worst];
  return {.goal = goal.text,
          .name = goal.label,
          .bound = goal.bound,
          .mean = e.states[worst].estimate.mean,
          .shortfall = e.states[worst].shortfall,
          .survival = survival_of(space, e)};
}

std::vector<PlanRecord::Window> windows_of(const PlanSpace& space, const FoundPlan& plan) {
  std::vector<PlanRecord::Window> out;
  for (const auto& window : plan.evaluation.windows) {
    out.push_back({.name = survival_of(space, *window),
                   .window_s = window->window.to_seconds(),
                   .recovery_s = window->recovery.to_seconds(),
                   .goals = judged_goals(space, *window)});
    if (!plan.unprepared || plan.unprepared->windows.size() < out.size()) continue;
    const FleetEvaluation& bare = *plan.unprepared->windows[out.size() - 1];
    if (!bare.holds()) out.back().unprepared_misses = worst_of(space, bare);
  }
  return out;
}

PlanRecord::Memory memory_of(const PlanSpace& space, const PlanFamily& family,
                             const FoundPlan& plan, const PlanResult& result) {
  PlanRecord::Memory memory{.gib = *family.host_gib};
  if (!plan.without) return memory;
  memory.same_fleet_without = {
      .output_tokens_per_s = plan.without->mean_of(&FleetRun::output_tokens_per_s),
      .request_latency_s = plan.without->mean_of(&FleetRun::mean_latency_s),
      .goals = judged_goals(space, *plan.without)};
  if (const std::optional<FleetSize>& size = result.families[*family.without].size)
    memory.fleet_without = fleet_of(space, space.families[*family.without], space.bought(*size));
  return memory;
}

/// Of the months before `end`; nothing where no size holds the last.
std::optional<double> price_of(const std::vector<PlanRecord::Month>& months, std::int64_t end) {
  if (!months.back().fleet) return std::nullopt;
  double sum = 0;
  for (std::size_t i = 0; i < months.size(); ++i) {
    const std::int64_t next = i + 1 < months.size() ? months[i + 1].month : end;
    sum += months[i].fleet->price_per_hour * kHoursOfMonth *
           static_cast<double>(next - months[i].month);
  }
  return sum;
}

PlanRecord::Choice choice_of(const PlanSpace& space, const FoundPlan& plan,
                             const PlanResult& result) {
  const PlanFamily& family = space.families[plan.family];
  PlanRecord::Choice out = plan.found;
  out.hardware = family.hardware;
  out.policy = family.policy;
  out.replicas = replicas_of(space, plan.size);
  out.needed = replicas_of(space, plan.needed);
  out.gpus = family.gpus(plan.size);
  out.paid_gpus = family.paid_gpus(plan.size);
  out.reserved_price_per_hour = family.price(plan.size, Contract::kReserved);
  out.spot_price_per_hour = family.price(plan.size, Contract::kSpot);
  out.validation = validation_of(out.step_times);
  out.output_tokens_per_s = plan.evaluation.mean_of(&FleetRun::output_tokens_per_s);
  if (out.knee_requests_per_s.value_or(0) > 0 && out.knee_fails_at)
    out.utilisation = space.planned_rate() / *out.knee_requests_per_s;
  out.goals = judged_goals(space, plan.evaluation);
  if (plan.unprepared) out.unprepared = fleet_of(space, family, plan.unprepared->probe.size);
  if (!plan.evaluation.windows.empty()) out.survives = windows_of(space, plan);
  if (out.months) out.price_of_months = price_of(*out.months, space.config.demand.months);
  if (family.host_gib) out.host_memory = memory_of(space, family, plan, result);
  return out;
}

PlanRecord::Family family_of(const PlanSpace& space, const PlanFamily& family,
                             const FamilyOutcome& outcome) {
  PlanRecord::Family out{.hardware = family.hardware,
                         .policy = family.policy,
                         .method = outcome.method,
                         .tried_singly = outcome.tried_singly,
                         .sizes = static_cast<std::int64_t>(outcome.sizes),
                         .sizes_tried = static_cast<std::int64_t>(outcome.sizes_tried),
                         .router_rate = outcome.router_rate};
  if (!family.impossible.empty()) {
    out.impossible = family.impossible;
  } else {
    out.step_times = enum_name(family.trust);
    out.sources = family.step_times;
    out.seed = family.seed;
    out.scenario_hash = family.scenario_hash;
  }
  if (outcome.size) {
    out.replicas = replicas_of(space, space.bought(*outcome.size));
    out.price_per_hour = family.price(space.bought(*outcome.size));
  }
  if (const auto& miss = outcome.near_miss)
    out.near_miss =
        PlanRecord::NearMiss{fleet_of(space, family, miss->probe.size),
                             judged_goals(space, miss->missed() ? *miss->missed() : *miss),
                             miss->missed() ? survival_of(space, *miss->missed()) : ""};
  return out;
}

/// The mean over the runs that have the number.
std::optional<double> mean_of(const FleetEvaluation& evaluation,
                              std::optional<double> FleetRun::*number) {
  std::vector<double> known;
  for (const FleetRun& run : evaluation.runs)
    if (run.*number) known.push_back(*(run.*number));
  return known.empty() ? std::nullopt : std::optional(sim::mean(known));
}

/// A fleet as a point between price and latency, and the goal that it misses by most.
PlanRecord::Evaluated evaluated_of(const PlanSpace& space, const FleetEvaluation& e) {
  const PlanFamily& family = space.families[e.probe.family];
  PlanRecord::Evaluated out{.hardware = family.hardware,
                            .policy = family.policy,
                            .replicas = replicas_of(space, e.probe.size),
                            .gpus = family.gpus(e.probe.size),
                            .price_per_hour = family.price(e.probe.size),
                            .verdict = e.missed() ? e.missed()->verdict : e.verdict,
                            .runs = static_cast<std::int64_t>(e.runs.size()),
                            .ttft_p90_s = mean_of(e, &FleetRun::ttft_p90_s),
                            .tpot_p90_s = mean_of(e, &FleetRun::tpot_p90_s)};
  out.goals.emplace();
  for (const GoalState& state : e.states)
    out.goals->push_back(std::isfinite(state.estimate.mean) ? std::optional(state.estimate.mean)
                                                            : std::nullopt);
  if (e.holds()) return out;
  out.worst = worst_of(space, e.missed() ? *e.missed() : e);
  return out;
}

/// Fleets that meet the goals, also without their spares, and have both latencies are compared; the
/// others are on no front.
void mark_front(std::int64_t spares, std::vector<PlanRecord::Evaluated>& fleets) {
  const auto spared = [&](const PlanRecord::Evaluated& e) {
    PlanRecord::Replicas left = e.replicas;
    for (auto& [pool, n] : left.items) n -= spares;
    return spares == 0 || std::ranges::any_of(fleets, [&](const PlanRecord::Evaluated& other) {
             return other.verdict == GoalVerdict::kMeets && other.hardware == e.hardware &&
                    other.policy == e.policy && other.replicas.items == left.items;
           });
  };
  const auto counts = [&](const PlanRecord::Evaluated& e) {
    return spared(e) && e.verdict == GoalVerdict::kMeets && e.price_per_hour && e.ttft_p90_s &&
           e.tpot_p90_s;
  };
  const auto numbers = [](const PlanRecord::Evaluated& e) {
    return std::array{*e.price_per_hour, *e.ttft_p90_s, *e.tpot_p90_s};
  };
  for (PlanRecord::Evaluated& e : fleets) {
    if (e.verdict == GoalVerdict::kMeets) e.on_front = counts(e);
    if (!counts(e)) continue;
    const auto own = numbers(e);
    for (const PlanRecord::Evaluated& other : fleets)
      if (counts(other) && numbers(other) != own &&
          std::ranges::equal(numbers(other), own, std::ranges::less_equal{}))
        e.on_front = false;
  }
}

// --------------------------------------------------------------------------- how far it holds

/// `22 vllm at $44.00/h`.
std::string priced(const PlanRecord::Fleet& fleet) {
  return fmt::format("{} at ${:.2f}/h", fleet_text(fleet.replicas), fleet.price_per_hour);
}

/// The fleets that a plan would need at the ends of its error band.
std::string step_band_text(const PlanRecord::Choice& plan) {
  const PlanRecord::Band& band = *plan.step_time_band;
  const std::string percent = number_text(std::round(100 * band.fraction)) + " %";
  const auto is_plan = [&plan](const std::optional<PlanRecord::Fleet>& fleet) {
    return fleet && fleet->replicas.items == plan.replicas.items;
  };
  if (is_plan(band.longer) && is_plan(band.shorter))
    return fmt::format("It takes as many with steps {} longer or shorter.", percent);
  const auto said = [](std::string_view verb, const std::optional<PlanRecord::Fleet>& fleet) {
    return fleet ? fmt::format("{}{}", verb, priced(*fleet))
                 : std::string("no size of this space would do");
  };
  return fmt::format("Were its steps {} longer, {}; {} shorter, {}.", percent,
                     said("it would take ", band.longer), percent, said("", band.shorter));
}

/// Which other plans may be cheaper than the first when both err within their bands.
std::string flip_text(const PlanRecord& r) {
  const std::vector<PlanRecord::Choice>& plans = r.plans;
  const std::optional<PlanRecord::Fleet>& longest = plans.front().step_time_band->longer;
  const double most = longest ? longest->price_per_hour : std::numeric_limits<double>::infinity();
  std::vector<std::string> rivals;
  for (std::size_t i = 1; i < plans.size(); ++i) {
    const std::optional<PlanRecord::Fleet>& shorter = plans[i].step_time_band->shorter;
    if (!shorter || shorter->price_per_hour >= most) continue;
    rivals.push_back(priced(*shorter) + " of " + printable(plans[i].hardware) +
                     (plans[i].policy.empty() ? "" : ", " + printable(plans[i].policy)));
  }
  if (!rivals.empty())
    return fmt::format(
        "Errors of that size can flip the answer: within its own band it may also be {}.",
        fmt::join(rivals, ", "));
  if (r.families.size() == 1) return "No other hardware or policy was tried.";
  if (plans.size() == 1) return "No other hardware or policy met the goals.";
  return longest ? "No other plan gets cheaper than that within its own band."
                 : "No other plan holds within its own band.";
}

/// A sentence that says how far the answer survives another KV capacity.
std::string kv_capacity_text(const PlanRecord::Capacity& kv) {
  const std::string percent = number_text(std::round(100 * kCapacityBand));
  if (kv.holds_with_fewer && kv.holds_with_more)
    return fmt::format("It holds with {0} % fewer and with {0} % more KV blocks.", percent);
  const std::string_view direction = kv.holds_with_more    ? "fewer"
                                     : kv.holds_with_fewer ? "more"
                                                           : "fewer or more";
  return fmt::format("It does not hold with {} % {} KV blocks.", percent, direction);
}

/// Says so where the runs of the cheapest plan end before its batches have filled; else empty.
std::string too_short_text(const FleetEvaluation& best) {
  const double sent = best.mean_of(&FleetRun::send_s);
  const double answer = best.mean_of(&FleetRun::mean_latency_s);
  if (sent >= sim::kFewestAnswers * answer) return {};
  return fmt::format(
      "Too short to tell: a run sends for {} s and an answer takes {} s, so batches still "
      "fill when it ends. Set demand.duration to {} s or more. ",
      plan_number(sent), plan_number(answer), fixed_text(10 * std::ceil(0.5 * answer), 0));
}

}  // namespace

std::string plan_number(double v) {
  const double size = std::abs(v);
  if (!std::isfinite(v)) return "-";
  if (size >= 1000 || size == 0) return fixed_text(v, 0);
  if (size >= 100) return fixed_text(v, 1);
  return fixed_text(v, size >= 10 ? 2 : 3);
}

std::string fleet_text(const Replicas& replicas) {
  std::string text;
  for (const auto& [pool, count] : replicas.items)
    text += (text.empty() ? "" : " + ") + std::to_string(count) + " " + printable(pool);
  return text;
}

PlanRecord::Fleet fleet_of(const PlanSpace& space, const PlanFamily& family,
                           const FleetSize& size) {
  return {replicas_of(space, size), family.price(size)};
}

PlanRecord plan_record(const PlanSpace& space, const PlanResult& result) {
  const PlanConfig& config = space.config;
  PlanRecord r{.plan = config.name,
               .question = config.question,
               .version = version(),
               .commit = commit(),
               .met = !result.plans.empty(),
               .scenario = config.scenario,
               .prices = config.prices,
               .rate_today = space.rate_today(),
               .growth = config.demand.growth,
               .planned_rate = space.planned_rate(),
               .confidence = config.confidence,
               .runs = static_cast<std::int64_t>(result.runs)};
  if (!result.is_complete())
    r.partial = fmt::format("step {} of {}, {}", result.steps + 1, kPlanSteps.size(),
                            kPlanSteps[result.steps]);
  if (config.day)
    r.day = {.peak = space.day.peak,
             .mean = space.day.mean,
             .hours = space.day.hours,
             .report_every_s = config.day->report_every.to_seconds()};
  if (config.demand.months > 0) {
    r.months = config.demand.months;
    r.growth_per_month = config.demand.growth_per_month;
    if (!config.demand.from.empty()) r.from = config.demand.from;
  }
  if (config.host_memory) r.host_memory_per_gib_hour = config.host_memory->per_gib_hour;
  for (const PlanGoal& goal : space.goals) r.goals.push_back(goal.text);
  for (const FoundPlan& plan : result.plans) r.plans.push_back(choice_of(space, plan, result));
  for (std::size_t f = 0; f < result.families.size(); ++f)
    r.families.push_back(family_of(space, space.families[f], result.families[f]));
  for (const FleetEvaluation& e : result.evaluated) r.evaluated.push_back(evaluated_of(space, e));
  mark_front(config.spares, r.evaluated);
  if (!r.met) return r;
  const PlanRecord::Choice& best = r.plans.front();
  r.rests_on = trust_clause(best.step_times);
  if (result.steps < 3) return r;
  r.robustness = too_short_text(result.plans.front().evaluation) + step_band_text(best) + " " +
                 flip_text(r) + " " + kv_capacity_text(*best.kv_capacity);
  return r;
}

}  // namespace routesim::tools
