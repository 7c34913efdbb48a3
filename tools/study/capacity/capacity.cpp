#include "tools/study/capacity/capacity.h"

#include <algorithm>
#include <cmath>

#include "sim/plan/fleet_plan.h"

namespace routesim::tools {

namespace {

/// Probes beside an estimate, as shares of it: near enough to bracket it, far enough to tell.
constexpr double kAbove = 1.05, kBelow = 0.97;
/// The first probe beside a guess. It should overload the servers.
constexpr double kFirst = 1.4;
constexpr int kMostProbes = 14;

class Search {
 public:
  explicit Search(const CapacityRules& rules) : rules_(rules) {}

  /// The rate to probe next; nothing when the interval is narrow.
  std::optional<double> next() const {
    if (!grows_) return sustained_ ? std::optional(sustained_->rate * 2) : kFirst * rules_.guess;
    const double answers = grows_->window.answered_per_s;
    if (!sustained_) {
      if (grows_->rate > 1.15 * answers && answers > 0) return kAbove * answers;
      return kBelow * std::min(answers, grows_->rate);
    }
    const double low = sustained_->rate, high = grows_->rate;
    if (high <= rules_.narrow * low) return std::nullopt;
    // What it answers when it is asked for more is the best guess, where it can be right.
    if (kBelow * answers > low * 1.01 && kBelow * answers < high) {
      if (kAbove * answers < high / 1.02) return kAbove * answers;
      return kBelow * answers;
    }
    if (answers > low * 0.99 && kAbove * answers < high / 1.02) return kAbove * answers;
    return std::sqrt(low * high);
  }

  void tell(const RateProbe& probe) {
    if (probe.sustains == Sustains::kYes) {
      if (!sustained_ || probe.rate > sustained_->rate) sustained_ = probe;
    } else if (!grows_ || probe.rate < grows_->rate) {
      grows_ = probe;
    }
  }

  Capacity answer() const {
    Capacity out;
    if (sustained_) out.low = sustained_->rate;
    if (grows_) {
      const SteadyWindow& w = grows_->window;
      const double low = out.low.value_or(0), answers = w.answered_per_s + 2 * w.answered_error;
      // Overload may make servers slower: then only the rate itself is a bound.
      const bool slower = answers < low;
      out.high = slower ? grows_->rate : std::min(answers, grows_->rate);
      out.rate =
          slower ? std::sqrt(low * grows_->rate) : std::clamp(w.answered_per_s, low, *out.high);
      out.limit = limit_name(grows_->limit);
    } else if (sustained_) {
      out.rate = sustained_->rate;
    }
    return out;
  }

 private:
  CapacityRules rules_;
  std::optional<RateProbe> sustained_, grows_;
};

}  // namespace

RateProbe probe_rate(const sim::RunPlan& plan, const WatchRules& rules, Experiment& experiment,
                     Diagnostics& found) {
  sim::RunPlan held = plan;
  sim::forget_events(held);
  // The watch ends it before, unless a client falls behind.
  const double seconds = 4 * static_cast<double>(rules.most_sends) / rules.rate;
  constexpr double kMostSeconds = 50 * 86'400.0;  // Within what the clock of a run holds.
  RateProbe probe{.rate = rules.rate, .window = {}};
  probe.why_not = seconds > kMostSeconds
                      ? "its requests come too rarely"
                      : sim::hold_rate(held, {rules.rate, Duration::from_seconds(seconds), {}});
  if (!probe.why_not.empty()) return probe;
  sim::Progress progress;
  LoadWatch watch(rules, progress.stop);
  experiment.probe(held, plan.scenario.seed, watch, progress, found);
  probe.sustains = watch.sustains();
  probe.window = watch.window();
  probe.limit = watch.limit();
  probe.sent = watch.sent();
  probe.warm_up_s = watch.warm_up_s();
  if (probe.window.answered_per_s > 0)
    probe.answer_s = static_cast<double>(watch.in_flight()) / probe.window.answered_per_s;
  return probe;
}

Capacity find_capacity(const sim::RunPlan& plan, const CapacityRules& rules, Experiment& experiment,
                       Diagnostics& found) {
  for (const sim::ResolvedPool& pool : plan.pools)
    if (pool.config.autoscaler) return {.why_not = "an autoscaler changes its servers"};
  Search search(rules);
  std::int64_t requests = 0;
  for (int probes = 0; probes < kMostProbes && requests < rules.most_sends; ++probes) {
    const std::optional<double> rate = search.next();
    if (!rate) break;
    const RateProbe probe = probe_rate(
        plan, {.rate = *rate, .most_sends = std::max(rules.sends, kWatchBins)}, experiment, found);
    if (!probe.why_not.empty() || found.has_errors()) return {.why_not = probe.why_not};
    experiment.throw_if_stopped();
    requests += probe.sent;
    if (probe.sustains == Sustains::kOpen) break;
    search.tell(probe);
  }
  Capacity out = search.answer();
  out.requests = requests;
  if (!out.rate) out.why_not = "no probe of it settled";
  return out;
}

CapacityRules capacity_rules(const sim::RunResult& result) {
  // A run of many tokens takes long; a short one of few tokens may take twenty times as long.
  constexpr double kFloor = 50'000, kTokens = 3'000;
  const sim::StageResult& all = result.summary;
  const double tokens = all.prompt_tokens.mean() + all.output_tokens.mean();
  const double floor = kFloor * std::min(1.0, kTokens / std::max(1.0, tokens));
  const double most = std::max(2.0 * static_cast<double>(all.requests), floor);
  return {.guess = guess_capacity(result), .most_sends = static_cast<std::int64_t>(most)};
}

double guess_capacity(const sim::RunResult& result) {
  double guess = 0;
  for (const sim::StageResult& s : result.stages) {
    if (!s.info.reported || s.successes == 0 || s.total_time_s() <= 0) continue;
    const double answered = s.per_second(static_cast<double>(s.successes));
    guess = std::max(guess, s.keeps_rate() && !s.overloaded()
                                ? std::min(s.info.requested_rate, 1.5 * answered)
                                : answered);
  }
  return guess;
}

}  // namespace routesim::tools
