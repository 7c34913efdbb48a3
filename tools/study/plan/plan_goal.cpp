#include "tools/study/plan/plan_goal.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/results/metric_name.h"
#include "tools/results/metrics.h"

namespace routesim::tools {

namespace {

/// One run lasts at most thirty days. With the highest rate and growth, requests still fit 64 bits.
constexpr std::int64_t kMostSeconds = 30 * 86'400;

}  // namespace

std::optional<std::int64_t> parse_month(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd";
  if (text.size() != kForm.size()) return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i)
    if (kForm[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != kForm[i]) return std::nullopt;
  std::int64_t year = 0, month = 0;
  std::from_chars(text.data(), text.data() + 4, year);
  std::from_chars(text.data() + 5, text.data() + 7, month);
  return month < 1 || month > 12 ? std::nullopt : std::optional(12 * year + month - 1);
}

void describe(Describer& d, PlanDemand& p) {
  field(d, {"rate", "Requests per second today. Absent: the peak of `day`."}, p.rate,
        RealRange{.min = 0, .max = 1e7, .min_open = true});
  field(d, {"growth", "Planned for: 0.25 plans for 1.25 times the rate."}, p.growth,
        RealRange{.min = 0, .max = 100});
  field(d,
        {"growth_per_month",
         "Growth from the planned rate on, compounded: 0.05 is 5 % a month. With `months`."},
        p.growth_per_month, RealRange{.min = 0, .max = 10});
  field(d,
        {"months",
         "Months to look ahead, the first at the planned rate: when the next server is due, and "
         "what they cost together. 0 = none."},
        p.months, IntRange{0, 120});
  field(d, {"from", "The first month, such as 2026-12, so that results can name months."}, p.from);
  field(d,
        {"duration",
         "How long each run sends at least, behind its warm-up. It sends longer where 3,000 "
         "requests or four of their answers take longer."},
        p.duration,
        DurationRange{.min = Duration::seconds(1), .max = Duration::seconds(kMostSeconds)});
  field(d,
        {"cold_start",
         "Count the start with empty caches, too: a run is then the load that `set` makes, "
         "over the duration alone."},
        p.cold_start);
  field(d,
        {"set",
         "Assignments that make the scenario's workload this load: KEY=VALUE, where {rate}, "
         "{requests} and {seconds} stand for the rate probed, the requests sent and the duration.",
         true},
        p.set);
}

void describe(Describer& d, PlanGoodput& p) {
  field(d, {"share", "Least share of requests that meet every bound."}, p.share,
        RealRange{.min = 0, .max = 1});
  field(d, {"bounds", "Bounds of one request, such as ttft:500ms or tpot:50ms.", true}, p.bounds);
}

void describe(Describer& d, PlanPrice& p) {
  field(d, {"accelerator", "Catalogue name.", true}, p.accelerator);
  field(d, {"per_hour", "Price of one GPU for one hour, in dollars.", true}, p.per_hour,
        RealRange{.min = 0});
  field(d, {"reserved_per_hour", "The same with a reservation. Results show both."},
        p.reserved_per_hour, RealRange{.min = 0});
  field(d, {"spot_per_hour", "The same where the GPU may be taken away. Results show both."},
        p.spot_per_hour, RealRange{.min = 0});
  field(d,
        {"gpus_per_node",
         "GPUs of one machine. Machines are paid for whole, so idle GPUs cost as much."},
        p.gpus_per_node, IntRange{1, 1024});
}

void describe(Describer& d, PlanHostMemory& p) {
  field(
      d,
      {"gib", "Sizes to try: engine.kv_tiers.cpu_gib of every sized pool, GiB; 0 = no tier.", true},
      p.gib, RealRange{.min = 0, .max = 1'000'000});
  field(d, {"per_gib_hour", "Price of one GiB for one hour, in dollars."}, p.per_gib_hour,
        RealRange{.min = 0});
}

void describe(Describer& d, PlanHardware& p) {
  field(d, {"name", "Name in results; made from the keys below when absent."}, p.name);
  field(d, {"accelerator", "Of every sized pool; the scenario's when absent."}, p.accelerator);
  field(d, {"tensor_parallel", "Of every sized pool; the scenario's when absent."},
        p.tensor_parallel, IntRange{1, 1024});
  field(d, {"data_parallel", "Of every sized pool; the scenario's when absent."}, p.data_parallel,
        IntRange{1, 1024});
  field(d, {"set", "Further assignments: KEY=VALUE, as --set."}, p.set);
}

void describe(Describer& d, PlanPolicy& p) {
  field(d, {"name", "Name in results; the variant's when absent."}, p.name);
  field(d, {"variant", "Variant of the scenario; may be absent when it has none."}, p.variant);
  field(d, {"set", "Further assignments, such as another policy file: KEY=VALUE."}, p.set);
}

void describe(Describer& d, PlanPool& p) {
  field(d, {"pool", "Name of a pool of the scenario.", true}, p.pool);
  field(d, {"min", "Fewest replicas."}, p.min, IntRange{1, 65'536});
  field(d, {"max", "Most replicas."}, p.max, IntRange{1, 65'536});
}

void describe(Describer& d, PlanSurvival& p) {
  field(d, {"name", "Name in results, such as `a crash`.", true}, p.name);
  field(d,
        {"events",
         "What happens, as `events` of a scenario. `at` counts from the beginning of the window.",
         true},
        p.events);
  field(d,
        {"window",
         "How long requests are judged. Absent: until every server that the events touch serves "
         "again, an hour at most, and for 1,000 requests at least."},
        p.window,
        DurationRange{.min = Duration::seconds(1), .max = Duration::seconds(kMostSeconds)});
  field(d, {"max_failure_rate", "Largest share of the window's requests that may fail."},
        p.max_failure_rate, RealRange{.min = 0, .max = 1});
}

void describe(Describer& d, PlanAutoscaler& p) {
  field(d, {"name", "Name in results.", true}, p.name);
  field(d,
        {"set",
         "Assignments that give pools an autoscaler: KEY=VALUE, where {servers} stands for the "
         "servers of the fleet.",
         true},
        p.set);
}

void describe(Describer& d, PlanConfig& c) {
  field(d, {"name", "Name of the plan, as printed in results.", true}, c.name);
  field(d, {"question", "The question the plan answers, one sentence."}, c.question);
  field(d, {"scenario", "The base scenario, a path relative to this file.", true}, c.scenario);
  field(d, {"set", "Assignments made in every fleet first: KEY=VALUE, as --set."}, c.set);
  field(d, {"seed", "Seed of the first replication; the scenario's when absent."}, c.seed,
        IntRange{0});
  field(d, {"demand", "The load the fleet must hold.", true}, c.demand);
  field(d, {"goals", "What must hold, such as ttft_ms.p99 < 500; each with the confidence."},
        c.goals);
  field(d,
        {"goodput",
         "A share of requests that must meet several bounds at once. Loads of a mix with a goodput "
         "of their own are held to that instead, and each to the same share."},
        c.goodput);
  field(d, {"max_failure_rate", "Largest share of requests that may fail."}, c.max_failure_rate,
        RealRange{.min = 0, .max = 1});
  field(d, {"confidence", "With which a goal must be shown to hold, one-sided."}, c.confidence,
        RealRange{.min = 0.5, .max = 0.9999, .min_open = true});
  field(d, {"replications", "Runs of a fleet that is not clearly too small."}, c.replications,
        IntRange{2, 1000});
  field(d, {"max_replications", "Runs at most, while the interval does not decide."},
        c.max_replications, IntRange{2, 1000});
  field(d, {"spares", "Replicas (of each pool) that may be gone while the goals still hold."},
        c.spares, IntRange{0, 1000});
  field(d, {"knee_limit", "Highest rate tried for the knee, in planned rates."}, c.knee_limit,
        RealRange{.min = 1, .max = 1000});
  field(d, {"prices", "What a GPU costs.", true}, c.prices);
  field(d, {"host_memory", "Host memory for KV blocks, to try with every hardware."},
        c.host_memory);
  field(d, {"hardware", "What a replica may be made of; the scenario's when absent."}, c.hardware);
  field(d, {"policies", "Routing policies; all variants of the scenario when absent."}, c.policies);
  field(d, {"pools", "Pools whose replicas are chosen.", true}, c.pools);
  field(d, {"survives", "Events through which the goals must hold, too, each on its own."},
        c.survives);
  field(d,
        {"day",
         "Demand by the clock. Its highest rate of any report_every is the rate to plan for, and "
         "the fleets that are found are run over all of it."},
        c.day);
  field(d, {"autoscalers", "What the fleets are run with over the day, beside fixed servers."},
        c.autoscalers);
}

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

PlanGoal make_goal(PlanGoal::Kind kind, const std::string& label, bool upper, double bound) {
  return {.kind = kind,
          .text = label + (upper ? " <= " : " >= ") + number_text(bound),
          .label = label,
          .upper = upper,
          .bound = bound};
}

}  // namespace

std::vector<PlanGoal> read_goals(const PlanConfig& config, const Provenance& provenance,
                                 Diagnostics& diagnostics) {
  std::vector<PlanGoal> goals;
  for (std::size_t i = 0; i < config.goals.size(); ++i) {
    const std::string path = element_path("goals", i);
    const Parsed<MetricGoal> goal = parse_metric_goal(config.goals[i]);
    if (!goal.value) {
      diagnostics.error(provenance.nearest(path), path, goal.message, goal.hint);
      continue;
    }
    const MetricGoal& g = *goal.value;
    if (needs_goals(g.metric) && !is_of_run(g.metric))
      diagnostics.error(provenance.nearest(path), path,
                        g.metric.text + " has a key of its own in a plan",
                        "goodput: {share: 0.95, bounds: [ttft:500ms]}");
    if (is_of_run(g.metric))
      diagnostics.error(provenance.nearest(path), path,
                        g.metric.text + " is no goal of a plan, which chooses the fleet",
                        "see `prices`, `pools`, `survives` and `day`");
    goals.push_back({.kind = PlanGoal::Kind::kMetric,
                     .text = g.text,
                     .label = g.metric.text,
                     .metric = g.metric,
                     .upper = g.upper,
                     .bound = g.bound});
  }
  if (config.goodput)
    goals.push_back(make_goal(PlanGoal::Kind::kGoodput, "goodput", false, config.goodput->share));
  goals.push_back(
      make_goal(PlanGoal::Kind::kFailures, "failure_rate", true, config.max_failure_rate));
  goals.push_back(make_goal(PlanGoal::Kind::kGrowth, "queue_growth", true, sim::kMostQueueGrowth));
  goals.push_back(make_goal(PlanGoal::Kind::kRate, "sent_rate_error", true, kMostRateError));
  return goals;
}

bool has_own_goals(const std::vector<PlanGoal>& goals) {
  return std::ranges::any_of(goals, [](const PlanGoal& goal) {
    return goal.kind == PlanGoal::Kind::kMetric || goal.kind == PlanGoal::Kind::kGoodput;
  });
}

std::vector<PlanGoal> goals_of_loads(const PlanConfig& config, const sim::Scenario& scenario) {
  const double share = config.goodput ? config.goodput->share
                                      : expected_share(scenario).value_or(PlanGoodput{}.share);
  std::vector<PlanGoal> goals;
  const std::vector<sim::MixPart>& mix = scenario.workload.mix;
  for (std::size_t i = 0; i < mix.size(); ++i) {
    if (mix[i].goodput.empty()) continue;
    goals.push_back(make_goal(PlanGoal::Kind::kGoodput, "goodput of " + mix[i].name, false, share));
    goals.back().part = static_cast<std::int64_t>(i);
  }
  return goals;
}

GoodputGoals read_goodput(const PlanConfig& config, const Provenance& provenance,
                          Diagnostics& diagnostics) {
  GoodputGoals bounds;
  if (!config.goodput) return bounds;
  for (std::size_t i = 0; i < config.goodput->bounds.size(); ++i) {
    const std::string path = element_path("goodput.bounds", i);
    const std::string error = read_goal(config.goodput->bounds[i], bounds);
    if (!error.empty()) diagnostics.error(provenance.nearest(path), path, error);
  }
  if (bounds.empty() && config.goodput->bounds.empty())
    diagnostics.error(provenance.nearest("goodput.bounds"), "goodput.bounds",
                      "there is nothing to meet", "for example [ttft:500ms, tpot:50ms]");
  return bounds;
}

double rate_error(const sim::RunResult& run, double rate) {
  constexpr double kStandardErrors = 4;
  double nearest = kInfinity, together = 0, all_gaps = 0;
  const auto off_by = [&](double sent, double gaps) {
    const double ratio = sent / rate;
    const double off = 1 - std::min(ratio, 1 / ratio);
    nearest = std::min(nearest, std::max(0.0, off - kStandardErrors / std::sqrt(gaps)));
  };
  for (const sim::StageResult* stage : reported_stages(run)) {
    const double seconds = stage->send_duration_s();
    const auto gaps = static_cast<double>(stage->requests - 1);
    if (stage->requests == 1) return 0;  // One request has no rate.
    if (seconds <= 0) continue;
    if (stage->info.part < 0) off_by(gaps / seconds, gaps);
    together += stage->info.part < 0 ? 0 : gaps / seconds;
    all_gaps += gaps;
  }
  // The loads of a mix send it together, each in one stage.
  if (together > 0) off_by(together, all_gaps);
  return nearest;
}

std::optional<double> other_rate_asked(std::span<const workloads::StageInfo> stages, double rate) {
  constexpr double kSame = 1e-3;  // Rates of the load's own arithmetic are rounded.
  std::optional<double> nearest;
  std::vector<double> of_parts;  // The loads of a mix ask for it together, each at its highest.
  for (const workloads::StageInfo& stage : stages) {
    if (!stage.reported) continue;
    double asked = stage.requested_rate;
    if (stage.part >= 0) {
      const auto part = static_cast<std::size_t>(stage.part);
      of_parts.resize(std::max(of_parts.size(), part + 1));
      of_parts[part] = std::max(of_parts[part], asked);
      if (&stage != &stages.back()) continue;
      asked = std::ranges::min(of_parts) > 0 ? std::reduce(of_parts.begin(), of_parts.end()) : 0;
    }
    if (!std::isfinite(asked) || asked <= 0 || std::abs(asked / rate - 1) <= kSame)
      return std::nullopt;
    if (!nearest || std::abs(asked - rate) < std::abs(*nearest - rate)) nearest = asked;
  }
  return nearest;
}

double goal_value(const PlanGoal& goal, const sim::StageResult& of) {
  const double worst = goal.upper ? kInfinity : -kInfinity;
  const auto share = [&of](std::int64_t part, double of_none) {
    const auto requests = static_cast<double>(of.requests);
    return requests > 0 ? static_cast<double>(part) / requests : of_none;
  };
  if (goal.kind == PlanGoal::Kind::kMetric) return metric_value(of, goal.metric).value_or(worst);
  if (goal.kind == PlanGoal::Kind::kGoodput) return share(of.good_requests.value_or(0), 0);
  return share(of.failures, worst);
}

std::vector<double> goal_values(const std::vector<PlanGoal>& goals, const sim::RunResult& run,
                                double rate) {
  std::vector<double> values;
  for (const PlanGoal& goal : goals) switch (goal.kind) {
      case PlanGoal::Kind::kGrowth:
        values.push_back(run.summary.queue_growth);
        break;
      case PlanGoal::Kind::kRate:
        values.push_back(rate_error(run, rate));
        break;
      default:
        values.push_back(goal_value(
            goal, goal.part < 0 ? run.summary : run.classes[static_cast<std::size_t>(goal.part)]));
    }
  return values;
}

double window_distance(double shortfall, double mean) {
  constexpr double kEndless = 1e6;
  if (!std::isfinite(shortfall)) shortfall = kEndless * (1 + std::abs(mean));
  return std::isfinite(shortfall) ? shortfall / (1 + shortfall) : 1;
}

double PlanGoal::shortfall(double value) const {
  const double over = upper ? value : bound, under = upper ? bound : value;
  return under > 0 ? std::max(0.0, over) / under : (over > under ? kInfinity : 0.0);
}

GoalState judge(const PlanGoal& goal, const std::vector<double>& values, double confidence) {
  GoalState state;
  const bool finite = std::ranges::all_of(values, [](double v) { return std::isfinite(v); });
  if (!finite || values.empty()) {
    state.estimate = {.n = values.size(), .mean = goal.upper ? kInfinity : -kInfinity};
    state.verdict = values.empty() ? GoalVerdict::kOpen : GoalVerdict::kMisses;
    state.shortfall = kInfinity;
    return state;
  }
  // A two-sided interval with twice the error has the one-sided bound as its end.
  state.estimate = sim::estimate(values, 1 - 2 * (1 - confidence));
  const sim::Estimate& e = state.estimate;
  state.shortfall = goal.shortfall(e.mean);
  if (goal.kind == PlanGoal::Kind::kGrowth || goal.kind == PlanGoal::Kind::kFailures ||
      goal.kind == PlanGoal::Kind::kRate) {
    // Growth and rates have their own error taken off, and failures are counted, not estimated.
    state.verdict = goal.holds(e.mean) ? GoalVerdict::kMeets : GoalVerdict::kMisses;
    if (e.n < 2 && state.verdict == GoalVerdict::kMeets) state.verdict = GoalVerdict::kOpen;
  } else if (e.n < 2) {
    if (state.shortfall > kClearMiss) state.verdict = GoalVerdict::kMisses;
  } else if (goal.holds(goal.upper ? e.high() : e.low())) {
    state.verdict = GoalVerdict::kMeets;
  } else if (!goal.holds(goal.upper ? e.low() : e.high())) {
    state.verdict = GoalVerdict::kMisses;
  }
  return state;
}

}  // namespace routesim::tools
