#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/describe.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/results/json_writer.h"
#include "tools/results/statistics.h"
#include "tools/results/text_table.h"
#include "tools/results/trust_errors.h"
#include "tools/results/version.h"
#include "tools/study/plan/plan_search.h"
#include "tools/study/what_if.h"

namespace routesim::tools {

namespace {

/// Four digits, for people.
std::string plan_number(double v) {
  const double size = std::abs(v);
  if (!std::isfinite(v)) return "-";
  if (size >= 1000 || size == 0) return fixed_text(v, 0);
  if (size >= 100) return fixed_text(v, 1);
  return fixed_text(v, size >= 10 ? 2 : 3);
}

/// `8 vllm`, `1 prefill + 2 decode`.
std::string size_text(const PlanSpace& space, const FleetSize& size) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < size.size(); ++i)
    parts.push_back(fmt::format("{} {}", size[i], printable(space.config.pools[i].pool)));
  return fmt::format("{}", fmt::join(parts, " + "));
}

std::string family_text(const PlanFamily& family) {
  return printable(family.hardware) +
         (family.policy.empty() ? "" : ", " + printable(family.policy));
}

std::string state_text(const GoalState& state) {
  std::string text = plan_number(state.estimate.mean);
  if (std::isfinite(state.estimate.half_width) && state.estimate.half_width > 0)
    text.append(" ±").append(plan_number(state.estimate.half_width));
  return text;
}

std::string binding_text(const Binding& binding) {
  if (binding.goal.empty()) return "nothing up to the limit";
  return binding.what.empty() ? "nothing alone" : binding.what;
}

std::string goals_text(const PlanSpace& space) {
  std::vector<std::string> texts;
  for (const PlanGoal& goal : space.goals)
    if (goal.kind != PlanGoal::Kind::kGrowth && goal.kind != PlanGoal::Kind::kRate)
      texts.push_back(printable(goal.text));
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// Goals of the file: those that always hold need no column.
std::vector<std::size_t> shown_goals(const PlanSpace& space) {
  std::vector<std::size_t> shown;
  for (std::size_t g = 0; g < space.goals.size(); ++g)
    if (space.goals[g].kind == PlanGoal::Kind::kMetric ||
        space.goals[g].kind == PlanGoal::Kind::kGoodput)
      shown.push_back(g);
  return shown;
}

/// `22 vllm at $44.00/h`.
std::string fleet_text(const PlanSpace& space, const FoundPlan& plan, const FleetSize& size) {
  return fmt::format("{} at ${:.2f}/h", size_text(space, size),
                     space.families[plan.family].price(size));
}

/// The fleets that the cheapest plan would need at the ends of its error band.
std::string band_text(const PlanSpace& space, const FoundPlan& plan) {
  const std::string percent = number_text(std::round(100 * plan.band.fraction)) + " %";
  if (plan.band.longer == plan.size && plan.band.shorter == plan.size)
    return fmt::format("It takes as many with steps {} longer or shorter.", percent);
  const auto fleet = [&](std::string_view verb, const std::optional<FleetSize>& size) {
    return size ? fmt::format("{}{}", verb, fleet_text(space, plan, *size))
                : std::string("no size of this space would do");
  };
  return fmt::format("Were its steps {} longer, {}; {} shorter, {}.", percent,
                     fleet("it would take ", plan.band.longer), percent,
                     fleet("", plan.band.shorter));
}

/// Which other plans may be cheaper than the first when both err within their bands.
std::string flip_text(const PlanSpace& space, const PlanResult& result) {
  const FoundPlan& best = result.plans.front();
  const PlanFamily& family = space.families[best.family];
  const double most =
      best.band.longer ? family.price(*best.band.longer) : std::numeric_limits<double>::infinity();
  std::vector<std::string> rivals;
  for (std::size_t i = 1; i < result.plans.size(); ++i) {
    const FoundPlan& other = result.plans[i];
    if (!other.band.shorter) continue;
    if (space.families[other.family].price(*other.band.shorter) >= most) continue;
    rivals.push_back(fleet_text(space, other, *other.band.shorter) + " of " +
                     family_text(space.families[other.family]));
  }
  if (!rivals.empty())
    return fmt::format(
        "Errors of that size can flip the answer: within its own band it may also be {}.",
        fmt::join(rivals, ", "));
  if (result.plans.size() == 1) return "No other fleet met the goals.";
  return best.band.longer ? "No other plan gets cheaper than that within its own band."
                          : "No other plan holds within its own band.";
}

/// A sentence that says how far the answer survives another KV capacity.
std::string capacity_text(const FoundPlan& plan) {
  const std::string percent = number_text(std::round(100 * kCapacityBand));
  if (plan.holds_with_fewer_blocks && plan.holds_with_more_blocks)
    return fmt::format("It holds with {0} % fewer and with {0} % more KV blocks.", percent);
  const std::string_view direction = plan.holds_with_more_blocks    ? "fewer"
                                     : plan.holds_with_fewer_blocks ? "more"
                                                                    : "fewer or more";
  return fmt::format("It does not hold with {} % {} KV blocks.", percent, direction);
}

/// Says so where the runs of the cheapest plan end before its batches have filled; else empty.
std::string too_short_text(const PlanResult& result) {
  const FleetEvaluation& best = result.plans.front().evaluation;
  const double sent = best.mean_of(&FleetRun::send_s);
  const double answer = best.mean_of(&FleetRun::mean_latency_s);
  if (sent >= 3 * answer) return {};
  return fmt::format(
      "Too short to tell: a run sends for {} s and an answer takes {} s, so batches still "
      "fill when it ends. Set demand.duration to {} s or more. ",
      plan_number(sent), plan_number(answer), fixed_text(10 * std::ceil(0.5 * answer), 0));
}

/// Errors that the answer survives, and errors that flip it.
std::string robustness_text(const PlanSpace& space, const PlanResult& result) {
  const FoundPlan& best = result.plans.front();
  return band_text(space, best) + " " + flip_text(space, result) + " " + capacity_text(best);
}

/// The answer in one sentence, and what it rests on.
std::string answer_text(const PlanSpace& space, const PlanResult& result) {
  const std::string chance = fmt::format(
      "The {} % confidence covers chance between runs, not errors of step times, of KV capacity or "
      "of the load.\n",
      number_text(100 * space.config.confidence));
  if (result.plans.empty()) return chance;
  const FoundPlan& best = result.plans.front();
  return too_short_text(result) +
         fmt::format("Cheapest: {} of {}, ${:.2f}/h, resting on {}. {} For such step times, {}. {}",
                     size_text(space, best.size), family_text(space.families[best.family]),
                     best.price_per_hour, trust_clause(best.trust), robustness_text(space, result),
                     trust_errors_text(best.trust), chance);
}

/// `36.00 to 54.00`: at the ends of the error band; `-` where no size holds.
std::string band_prices(const PlanFamily& family, const StepTimeBand& band) {
  return (band.shorter ? fixed_text(family.price(*band.shorter), 2) : "-") + " to " +
         (band.longer ? fixed_text(family.price(*band.longer), 2) : "-");
}

std::string plans_table(const PlanSpace& space, const PlanResult& result) {
  TextTable table(5);
  std::vector<std::string> header = {"",         "hardware",         "policy",
                                     "replicas", "step times",       "GPUs",
                                     "$/h",      "$/h within error", "$/M tokens"};
  for (const std::size_t g : shown_goals(space)) header.push_back(space.goals[g].label);
  header.insert(header.end(), {"knee req/s", "spare today"});
  table.add_row(std::move(header));
  for (std::size_t i = 0; i < result.plans.size(); ++i) {
    const FoundPlan& plan = result.plans[i];
    const PlanFamily& family = space.families[plan.family];
    std::vector<std::string> row = {
        std::to_string(i + 1),
        printable(family.hardware),
        printable(family.policy),
        size_text(space, plan.size),
        std::string(enum_name(plan.trust)),
        std::to_string(family.gpus(plan.size)),
        fixed_text(plan.price_per_hour, 2),
        band_prices(family, plan.band),
        plan.price_per_million_tokens ? fixed_text(*plan.price_per_million_tokens, 2) : "-"};
    for (const std::size_t g : shown_goals(space))
      row.push_back(state_text(plan.evaluation.states[g]));
    row.push_back((plan.knee_fails ? "" : "over ") + plan_number(plan.knee));
    row.push_back(std::to_string(plan.spares_today));
    table.add_row(std::move(row));
  }
  return table.str();
}

/// The resource that each plan runs short of, just above its knee.
std::string bindings_text(const PlanResult& result) {
  std::string text;
  for (std::size_t i = 0; i < result.plans.size(); ++i) {
    const FoundPlan& plan = result.plans[i];
    text += std::to_string(i + 1) + ": ";
    if (!plan.knee_fails) {
      text += fmt::format("no rate up to {} req/s fails\n", plan_number(plan.knee));
      continue;
    }
    const std::string missed_by = plan_number(plan.binding.missed_by);
    text += fmt::format("{} binds: at {} req/s {} ", binding_text(plan.binding),
                        plan_number(*plan.knee_fails), plan.binding.goal);
    text += plan.binding.missed_by > 1
                ? "misses by a factor of " + missed_by
                : "is at " + missed_by + " of its bound, too near for the confidence";
    const bool helped = plan.binding.with_double < plan.binding.missed_by;
    if (helped) text += ", with twice as much by " + plan_number(plan.binding.with_double);
    text += helped && plan.binding.with_double <= 1 ? ", which meets it\n" : "\n";
  }
  return text;
}

/// The gain from the host memory of each plan: against the same fleet without it, and against the
/// fleet that does without.
std::string memory_text(const PlanSpace& space, const PlanResult& result) {
  std::string text;
  for (std::size_t i = 0; i < result.plans.size(); ++i) {
    const FoundPlan& plan = result.plans[i];
    if (!plan.without) continue;
    const PlanFamily& family = space.families[plan.family];
    std::vector<std::string> changes;
    for (const std::size_t g : shown_goals(space))
      changes.push_back(fmt::format("{} {}", space.goals[g].label,
                                    plan_number(plan.without->states[g].estimate.mean)));
    changes.push_back(
        fmt::format("{} output tokens/s instead of {}",
                    plan_number(plan.without->mean_of(&FleetRun::output_tokens_per_s)),
                    plan_number(plan.evaluation.mean_of(&FleetRun::output_tokens_per_s))));
    const std::optional<FleetSize>& bare = result.families[*family.without].size;
    text += fmt::format("{}: {} GiB of host memory per engine: without it the same fleet has {}; ",
                        i + 1, number_text(*family.host_gib), fmt::join(changes, ", "));
    if (!bare) {
      text += "no size of this space meets the goals without it\n";
      continue;
    }
    FleetSize bought = *bare;
    for (std::int64_t& n : bought) n += space.config.spares;
    text += fmt::format("the goals take {} at ${:.2f}/h without it, ${:.2f}/h with it\n",
                        size_text(space, bought), space.families[*family.without].price(bought),
                        plan.price_per_hour);
  }
  return text;
}

std::string method_text(const FamilyOutcome& outcome) {
  const std::string tried = fmt::format("{} of {}", outcome.sizes_tried, outcome.sizes);
  if (outcome.method == SizeMethod::kScan) return tried + " splits in the order of their price";
  if (outcome.tried_singly) return tried + " sizes by doubling, then all around the nearest";
  return tried + (outcome.size ? " sizes by doubling, then halving" : " sizes by doubling");
}

/// One line per family: what was found, or how near it came.
std::string families_text(const PlanSpace& space, const PlanResult& result) {
  std::string text;
  for (std::size_t f = 0; f < result.families.size(); ++f) {
    const PlanFamily& family = space.families[f];
    const FamilyOutcome& outcome = result.families[f];
    text += "  " + family_text(family) + ": ";
    if (!family.impossible.empty()) {
      text += "cannot run, " + printable(family.impossible, 200) + "\n";
      continue;
    }
    if (outcome.size) {
      text += size_text(space, *outcome.size);
    } else {
      const FleetEvaluation& miss = *outcome.near_miss;
      const PlanGoal& goal = space.goals[miss.worst_goal()];
      text += fmt::format("no size meets the goals; nearest {} with {} {} (goal {})",
                          size_text(space, miss.probe.size), goal.label,
                          state_text(miss.states[miss.worst_goal()]),
                          goal.text.substr(goal.label.size() + 1));
      if (miss.verdict == GoalVerdict::kOpen) text += ", which the interval does not decide";
    }
    text += "; " + method_text(outcome) + "\n";
  }
  return text;
}

void write_size(JsonWriter& json, const PlanSpace& space, const FleetSize& size) {
  json.begin_object();
  for (std::size_t i = 0; i < size.size(); ++i) json.member(space.config.pools[i].pool, size[i]);
  json.end_object();
}

/// A fleet with its price, or null.
void write_bought(JsonWriter& json, const PlanSpace& space, const PlanFamily& family,
                  std::string_view key, const std::optional<FleetSize>& size) {
  json.key(key);
  if (!size) {
    json.null();
    return;
  }
  json.begin_object().key("replicas");
  write_size(json, space, *size);
  json.member("price_per_hour", family.price(*size)).end_object();
}

std::string_view verdict_name(GoalVerdict verdict) {
  if (verdict == GoalVerdict::kMeets) return "meets";
  return verdict == GoalVerdict::kMisses ? "misses" : "open";
}

void write_states(JsonWriter& json, const PlanSpace& space, const FleetEvaluation& evaluation) {
  json.key("goals").begin_array();
  for (std::size_t g = 0; g < space.goals.size(); ++g) {
    const GoalState& state = evaluation.states[g];
    json.begin_object().member("goal", space.goals[g].text);
    json.member("name", space.goals[g].label).member("bound", space.goals[g].bound);
    json.member("verdict", verdict_name(state.verdict));
    json.member("mean", state.estimate.mean).member("half_width", state.estimate.half_width);
    json.key("values").begin_array();
    for (const FleetRun& run : evaluation.runs) json.value(run.values[g]);
    json.end_array().end_object();
  }
  json.end_array();
}

void write_memory(JsonWriter& json, const PlanSpace& space, const PlanFamily& family,
                  const FoundPlan& plan, const PlanResult& result) {
  json.key("host_memory").begin_object().member("gib", *family.host_gib);
  if (plan.without) {
    json.key("same_fleet_without").begin_object();
    json.member("output_tokens_per_s", plan.without->mean_of(&FleetRun::output_tokens_per_s));
    json.member("request_latency_s", plan.without->mean_of(&FleetRun::mean_latency_s));
    write_states(json, space, *plan.without);
    json.end_object();
    std::optional<FleetSize> bought = result.families[*family.without].size;
    if (bought)
      for (std::int64_t& n : *bought) n += space.config.spares;
    write_bought(json, space, space.families[*family.without], "fleet_without", bought);
  }
  json.end_object();
}

void write_plan(JsonWriter& json, const PlanSpace& space, const FoundPlan& plan,
                const PlanResult& result) {
  const PlanFamily& family = space.families[plan.family];
  json.begin_object().member("hardware", family.hardware).member("policy", family.policy);
  json.key("replicas");
  write_size(json, space, plan.size);
  json.key("needed");
  write_size(json, space, plan.needed);
  json.member("gpus", family.gpus(plan.size)).member("price_per_hour", plan.price_per_hour);
  json.member("step_times", enum_name(plan.trust)).key("validation");
  write_trust_errors(json, plan.trust);
  json.key("step_time_band").begin_object().member("fraction", plan.band.fraction);
  write_bought(json, space, family, "longer", plan.band.longer);
  write_bought(json, space, family, "shorter", plan.band.shorter);
  json.end_object().key("kv_capacity").begin_object().member("band", kCapacityBand);
  json.member("holds_with_fewer", plan.holds_with_fewer_blocks);
  json.member("holds_with_more", plan.holds_with_more_blocks).end_object();
  json.member("price_per_million_output_tokens", plan.price_per_million_tokens);
  json.member("output_tokens_per_s", plan.evaluation.mean_of(&FleetRun::output_tokens_per_s));
  json.member("knee_requests_per_s", plan.knee);
  json.member("knee_fails_at", plan.knee_fails);
  json.member("spare_replicas_today", plan.spares_today);
  json.key("binding").begin_object().member("resource", plan.binding.what);
  json.member("goal", plan.binding.goal).member("missed_by", plan.binding.missed_by);
  json.member("missed_by_with_double", plan.binding.with_double).end_object();
  write_states(json, space, plan.evaluation);
  if (family.host_gib) write_memory(json, space, family, plan, result);
  json.end_object();
}

void write_family(JsonWriter& json, const PlanSpace& space, const PlanFamily& family,
                  const FamilyOutcome& outcome) {
  json.begin_object().member("hardware", family.hardware).member("policy", family.policy);
  json.member("method", outcome.method == SizeMethod::kDoubling ? "doubling" : "scan");
  json.member("tried_singly", outcome.tried_singly);
  json.member("sizes", outcome.sizes).member("sizes_tried", outcome.sizes_tried);
  if (!family.impossible.empty()) {
    json.member("impossible", family.impossible);
  } else {
    json.member("step_times", enum_name(family.trust)).list("sources", family.step_times);
    json.member("seed", family.seed).member("scenario_hash", family.scenario_hash);
  }
  if (outcome.size) {
    json.key("replicas");
    write_size(json, space, *outcome.size);
    json.member("price_per_hour", family.price(*outcome.size));
  }
  if (outcome.near_miss) {
    json.key("near_miss").begin_object().key("replicas");
    write_size(json, space, outcome.near_miss->probe.size);
    json.member("price_per_hour", family.price(outcome.near_miss->probe.size));
    write_states(json, space, *outcome.near_miss);
    json.end_object();
  }
  json.end_object();
}

/// The mean over the runs that have the number.
std::optional<double> mean_of(const FleetEvaluation& evaluation,
                              std::optional<double> FleetRun::*number) {
  std::vector<double> known;
  for (const FleetRun& run : evaluation.runs)
    if (run.*number) known.push_back(*(run.*number));
  return known.empty() ? std::nullopt : std::optional(sim::mean(known));
}

/// A fleet as a point between price and latency, and the goal it misses by most.
void write_evaluated(JsonWriter& json, const PlanSpace& space, const FleetEvaluation& evaluation) {
  const PlanFamily& family = space.families[evaluation.probe.family];
  json.begin_object().member("hardware", family.hardware).member("policy", family.policy);
  json.key("replicas");
  write_size(json, space, evaluation.probe.size);
  json.member("gpus", family.gpus(evaluation.probe.size));
  json.member("price_per_hour", family.price(evaluation.probe.size));
  json.member("verdict", verdict_name(evaluation.verdict)).member("runs", evaluation.runs.size());
  json.member("ttft_s.p90", mean_of(evaluation, &FleetRun::ttft_p90_s));
  json.member("tpot_s.p90", mean_of(evaluation, &FleetRun::tpot_p90_s));
  if (!evaluation.holds()) {
    const std::size_t worst = evaluation.worst_goal();
    const GoalState& state = evaluation.states[worst];
    json.key("worst").begin_object().member("goal", space.goals[worst].text);
    json.member("name", space.goals[worst].label).member("bound", space.goals[worst].bound);
    json.member("mean", state.estimate.mean).member("shortfall", state.shortfall).end_object();
  }
  json.end_object();
}

/// Hardware, policy and size of the nearest of all misses.
std::string nearest_miss(const PlanSpace& space, const PlanResult& result) {
  const FamilyOutcome* nearest = nullptr;
  std::size_t family = 0;
  for (std::size_t f = 0; f < result.families.size(); ++f) {
    const FamilyOutcome& outcome = result.families[f];
    if (!outcome.near_miss) continue;
    if (nearest != nullptr && outcome.near_miss->shortfall() >= nearest->near_miss->shortfall())
      continue;
    nearest = &outcome;
    family = f;
  }
  if (nearest == nullptr) return {};
  return size_text(space, nearest->near_miss->probe.size) + " of " +
         family_text(space.families[family]);
}

}  // namespace

std::string render_plan_text(const PlanSpace& space, const PlanResult& result) {
  const PlanConfig& config = space.config;
  std::string text = printable(config.name) + ", routesim " + version() + "\n";
  if (!config.question.empty()) text += printable(config.question, 500) + "\n";
  text += answer_text(space, result);
  text += "Demand: " + plan_number(space.planned_rate()) + " req/s";
  if (config.demand.growth > 0)
    text += " (" + plan_number(config.demand.rate) + " today, " +
            plan_number(100 * config.demand.growth) + " % growth)";
  text += ". Goals, each with " + number_text(100 * config.confidence) +
          " % confidence: " + goals_text(space) + ".\n\n";
  if (result.plans.empty()) {
    text +=
        "No plan in this space meets every goal. Nearest: " + nearest_miss(space, result) + ".\n";
  } else {
    text += plans_table(space, result) + "\n" + bindings_text(result) + memory_text(space, result);
  }
  return text + "\nWhat was searched, in " + std::to_string(result.runs) + " runs:\n" +
         families_text(space, result);
}

std::string render_plan_json(const PlanSpace& space, const PlanResult& result) {
  const PlanConfig& config = space.config;
  JsonWriter json;
  json.begin_object().member("plan", config.name).member("question", config.question);
  json.member("version", version());
  if (!commit().empty()) json.member("commit", commit());
  json.member("met", !result.plans.empty());
  if (!result.plans.empty())
    json.member("rests_on", trust_clause(result.plans.front().trust))
        .member("robustness", too_short_text(result) + robustness_text(space, result));
  json.member("scenario", config.scenario).key("prices").begin_array();
  for (const PlanPrice& price : config.prices)
    json.begin_object()
        .member("accelerator", price.accelerator)
        .member("per_hour", price.per_hour)
        .end_object();
  json.end_array();
  if (config.host_memory) json.member("host_memory_per_gib_hour", config.host_memory->per_gib_hour);
  json.member("rate_today", config.demand.rate).member("growth", config.demand.growth);
  json.member("planned_rate", space.planned_rate()).member("confidence", config.confidence);
  json.key("goals").begin_array();
  for (const PlanGoal& goal : space.goals) json.value(goal.text);
  json.end_array().key("plans").begin_array();
  for (const FoundPlan& plan : result.plans) write_plan(json, space, plan, result);
  json.end_array().key("families").begin_array();
  for (std::size_t f = 0; f < result.families.size(); ++f)
    write_family(json, space, space.families[f], result.families[f]);
  json.end_array().key("evaluated").begin_array();
  for (const FleetEvaluation& e : result.evaluated) write_evaluated(json, space, e);
  json.end_array().member("runs", result.runs).end_object();
  return json.str() + "\n";
}

}  // namespace routesim::tools
