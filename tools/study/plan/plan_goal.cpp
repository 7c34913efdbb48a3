#include "tools/study/plan/plan_goal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/results/metric_goal.h"
#include "tools/results/metrics.h"

namespace routesim::tools {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

PlanGoal make_goal(PlanGoal::Kind kind, const std::string& label, bool upper, double bound) {
  return {.kind = kind,
          .text = label + (upper ? " <= " : " >= ") + number_text(bound),
          .label = label,
          .metric = {},
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
    if (needs_goals(g.metric))
      diagnostics.error(provenance.nearest(path), path,
                        g.metric.text + " has a key of its own in a plan",
                        "goodput: {share: 0.95, bounds: [ttft:500ms]}");
    if (g.metric.metric.starts_with("fleet_"))
      diagnostics.error(provenance.nearest(path), path,
                        g.metric.text + " is no goal of a plan, which chooses the fleet",
                        "see `prices`, `pools` and `survives`");
    goals.push_back({.kind = PlanGoal::Kind::kMetric,
                     .text = g.text,
                     .label = g.metric.text,
                     .metric = g.metric,
                     .upper = g.upper,
                     .bound = g.bound});
  }
  if (config.goodput)
    goals.push_back(make_goal(PlanGoal::Kind::kGoodput, "goodput", false, config.goodput->share));
  if (goals.empty() && config.goals.empty())
    diagnostics.error(provenance.nearest("goals"), "goals", "there is nothing to meet",
                      "for example goals: [ttft_ms.p99 < 500]");
  goals.push_back(
      make_goal(PlanGoal::Kind::kFailures, "failure_rate", true, config.max_failure_rate));
  goals.push_back(make_goal(PlanGoal::Kind::kGrowth, "queue_growth", true, sim::kMostQueueGrowth));
  goals.push_back(make_goal(PlanGoal::Kind::kRate, "sent_rate_error", true, kMostRateError));
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
        values.push_back(goal_value(goal, run.summary));
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
  const bool finite =
      std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
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
