#include "tools/study/tune/tune_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/results/text_table.h"
#include "tools/study/parallel.h"

namespace routesim::tools {

namespace {

/// Members of a front that are judged.
constexpr std::size_t kMostOnFront = 12;

/// The configurations that run under every load.
enum Who : std::size_t { kPublished, kBest, kOmniscient, kWhoCount };

/// One configuration under one load, and its values: by metric, then by seed.
struct JudgedRun {
  Choice choice;
  std::vector<Assignment> extra;
  std::optional<sim::RunPlan> plan = {};
  std::vector<std::vector<double>> values = {};
  std::string problem = {};
};

bool is_finite(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double v) { return std::isfinite(v); });
}

class Judge {
 public:
  Judge(const TuneSpace& space, const TuneSearchResult& search, TuneRunner& runner)
      : space_(space), search_(search), runner_(runner) {
    for (std::int64_t s = 0; s < space.config.fresh_seeds; ++s)
      out_.seeds.push_back(space.seed + kFreshSeeds + static_cast<std::uint64_t>(s));
  }

  TuneJudgement run() {
    add_runs();
    run_all();
    out_.no_omniscient = at(0, kOmniscient).problem;
    for (std::size_t load = 0; load <= space_.shifts.size(); ++load) judge_load(load);
    judge_knobs();
    judge_front();
    if (search_.best != 0) decide_all();
    out_.headline = headline();
    return std::move(out_);
  }

 private:
  const Choice& best() const { return search_.candidates[search_.best].choice; }

  /// The router that knows everything, with the published engines.
  static Assignment omniscient() { return make_assignment("routing.balancer", "omniscient"); }

  void add_runs() {
    for (std::size_t load = 0; load <= space_.shifts.size(); ++load) {
      const std::vector<Assignment> extra =
          load > 0 ? space_.shifts[load - 1].extra : std::vector<Assignment>{};
      runs_.push_back({.choice = space_.published(), .extra = extra});
      runs_.push_back({.choice = best(), .extra = extra});
      runs_.push_back({.choice = space_.published(), .extra = extra});
      runs_.back().extra.push_back(omniscient());
    }
    for (const std::size_t knob : space_.changed(best())) {
      runs_.push_back({.choice = best(), .extra = {}});
      runs_.back().choice[knob] = space_.knobs[knob].published;
    }
    for (std::size_t i = 0; i < std::min(kMostOnFront, search_.front.size()); ++i)
      runs_.push_back({.choice = search_.candidates[search_.front[i]].choice, .extra = {}});
  }

  void run_all() {
    sim::for_each_index(runs_.size(), runner_.jobs(), [&](std::size_t i) {
      JudgedRun& run = runs_[i];
      Diagnostics found;
      run.plan = prepare_choice(space_, run.choice, run.extra, found);
      for (const Diagnostic& d : found.items())
        if (d.severity == Severity::kError && run.problem.empty())
          run.problem = d.path + " " + d.message;
    });
    std::vector<TuneRun> all;
    for (const JudgedRun& run : runs_)
      for (const std::uint64_t seed : out_.seeds)
        if (run.plan) all.push_back({.plan = &*run.plan, .seed = seed});
    runner_.progress().planned = runner_.progress().runs + all.size();
    runner_.run(all);
    out_.runs = all.size();
    std::size_t next = 0;
    for (JudgedRun& run : runs_) {
      run.values.assign(space_.metrics.size(), {});
      if (!run.plan) continue;
      for (std::size_t s = 0; s < out_.seeds.size(); ++s, ++next)
        for (std::size_t m = 0; m < space_.metrics.size(); ++m)
          run.values[m].push_back(all[next].values[m]);
    }
  }

  const JudgedRun& at(std::size_t load, Who who) const { return runs_[kWhoCount * load + who]; }
  std::size_t first_worth() const { return kWhoCount * (space_.shifts.size() + 1); }

  void judge_load(std::size_t load) {
    JudgedLoad& judged = out_.loads.emplace_back();
    judged.load = load == 0 ? "as given" : space_.shifts[load - 1].name;
    for (const Who who : {kPublished, kBest})
      if (judged.why_not.empty()) judged.why_not = at(load, who).problem;
    if (!judged.why_not.empty()) return;
    for (std::size_t m = 0; m < space_.metrics.size(); ++m) {
      const std::vector<double>& published = at(load, kPublished).values[m];
      const std::vector<double>& best = at(load, kBest).values[m];
      if (!is_finite(published) || !is_finite(best)) continue;
      JudgedMetric& metric = judged.metrics.emplace_back();
      metric.metric = space_.metrics[m];
      metric.difference = difference_of(published, best, metric.metric, true);
      add_ceiling(at(load, kOmniscient).values[m], published, metric);
    }
  }

  void add_ceiling(const std::vector<double>& ceiling, const std::vector<double>& published,
                   JudgedMetric& metric) const {
    if (ceiling.empty() || !is_finite(ceiling)) return;
    metric.omniscient = sim::estimate(ceiling);
    const sim::Estimate gap = sim::paired_difference(published, ceiling);
    if (metric.metric.has_direction &&
        sim::verdict(gap, metric.metric.direction) == sim::Verdict::kBetter)
      metric.gap_closed = metric.difference.difference.mean / gap.mean;
  }

  std::size_t metric_index(const TuneGoal& goal) const {
    return static_cast<std::size_t>(std::ranges::find(space_.metrics, goal.metric) -
                                    space_.metrics.begin());
  }

  void judge_knobs() {
    const std::vector<std::size_t> changed = space_.changed(best());
    for (std::size_t i = 0; i < changed.size(); ++i) {
      const JudgedRun& without = runs_[first_worth() + i];
      KnobWorth worth{.knob = changed[i]};
      for (const TuneGoal& goal : space_.goals) {
        const std::size_t m = metric_index(goal);
        if (without.plan && is_finite(without.values[m]))
          worth.by_goal.push_back(
              difference_of(at(0, kBest).values[m], without.values[m], goal.metric, true));
      }
      if (worth.by_goal.size() == space_.goals.size()) out_.worth.push_back(std::move(worth));
    }
  }

  std::vector<RaceEntry> entries(std::span<const SeedValues* const> values) const {
    return entries_of(space_, search_.conditions, values, at(0, kPublished).values,
                      out_.seeds.size());
  }

  /// The members of the search's front that no other one beats on fresh seeds either.
  void judge_front() {
    const std::size_t first = first_worth() + space_.changed(best()).size();
    for (std::size_t i = first; i < runs_.size(); ++i) {
      FrontMember member{.candidate = search_.front[i - first]};
      for (const TuneGoal& goal : space_.goals)
        member.goals.push_back(sim::estimate(runs_[i].values[metric_index(goal)]));
      out_.front.push_back(std::move(member));
    }
  }

  std::vector<Gain> gains(const JudgedLoad& load) const {
    std::vector<Gain> out;
    for (const TuneGoal& goal : space_.goals)
      for (const JudgedMetric& metric : load.metrics)
        if (metric.metric == goal.metric) out.push_back(gain_of(metric.difference, goal.metric));
    return out;
  }

  /// A condition is broken when its excess is above zero beyond chance.
  bool conditions_hold() const {
    const double level = 1 - space_.config.confidence;
    const SeedValues* const best = &at(0, kBest).values;
    return std::ranges::none_of(entries({&best, 1}).front().excesses, [&](const auto& excesses) {
      return is_condition_broken(excesses, level);
    });
  }

  void decide_all() {
    std::vector<Gain> elsewhere;
    for (std::size_t load = 1; load < out_.loads.size(); ++load)
      for (const Gain& gain : gains(out_.loads[load])) elsewhere.push_back(gain);
    out_.decision = decide(gains(out_.loads.front()), elsewhere, conditions_hold());
  }

  static std::string gain_text(const Gain& gain) {
    return percent_text(gain.percent, gain.low, gain.high);
  }

  std::string headline() const {
    const std::string seeds = fmt::format("{} fresh seeds", out_.seeds.size());
    const std::size_t tried = search_.candidates.size() - 1;
    if (search_.best == 0)
      return fmt::format(
          "Nothing beats your file: every one of the other {} candidates left the "
          "race.",
          tried);
    std::string gained;
    const std::vector<Gain> as_given = gains(out_.loads.front());
    for (std::size_t g = 0; g < as_given.size(); ++g)
      gained +=
          (g > 0 ? " and of " : "") + space_.goals[g].metric.text + " " + gain_text(as_given[g]);
    const std::size_t changes = space_.changed(best()).size();
    const std::string what = fmt::format("{} change{} of {} knobs", changes,
                                         changes == 1 ? "" : "s", space_.knobs.size());
    switch (out_.decision) {
      case TuneDecision::kBetter:
        return fmt::format("{} beat{} your file on {}: a gain of {}{}.", what,
                           changes == 1 ? "s" : "", seeds, gained, elsewhere_text());
      case TuneDecision::kFragile:
        return fmt::format("{} beat{} your file on {} (a gain of {}), but not on every load{}.",
                           what, changes == 1 ? "s" : "", seeds, gained, elsewhere_text());
      case TuneDecision::kNothing: {
        if (!conditions_hold())
          return fmt::format(
              "Nothing beats your file: the best of {} candidates breaks a condition "
              "on {} (a gain of {}).",
              tried, seeds, gained);
        const bool sure = std::ranges::any_of(as_given, [](const Gain& g) { return g.low > 0; });
        return fmt::format(
            "Nothing beats your file by {}: the best of {} candidates gains {} on {}{}.",
            sure ? "1 % or more" : "more than noise", tried, gained, seeds,
            sure ? elsewhere_text() : std::string());
      }
      case TuneDecision::kUndecided:
        break;
    }
    return fmt::format(
        "Undecided: the best of {} candidates gains {} on {}. More fresh seeds would "
        "decide.",
        tried, gained, seeds);
  }

  std::string elsewhere_text() const {
    std::string text;
    for (std::size_t load = 1; load < out_.loads.size(); ++load) {
      const std::vector<Gain> all = gains(out_.loads[load]);
      if (!all.empty()) text += "; " + out_.loads[load].load + ": " + gain_text(all.front());
    }
    return text;
  }

  const TuneSpace& space_;
  const TuneSearchResult& search_;
  TuneRunner& runner_;
  std::vector<JudgedRun> runs_;  ///< By load and Who, then the knobs taken back, then the front.
  TuneJudgement out_;
};

}  // namespace

std::string_view decision_name(TuneDecision decision) {
  constexpr std::array<std::string_view, 4> kNames = {"better", "better only as given",
                                                      "nothing better", "undecided"};
  return kNames[static_cast<std::size_t>(decision)];
}

Gain gain_of(const Difference& difference, const MetricName& metric) {
  const double sign = metric.direction == sim::Direction::kSmallerIsBetter ? -1 : 1;
  const double base = std::abs(difference.base.mean);
  const double scale = base > 0 ? 100 / base : 0;
  sim::Interval interval{.low = scale * difference.difference.low(),
                         .high = scale * difference.difference.high()};
  if (difference.percent_interval) interval = *difference.percent_interval;
  const double percent = difference.percent.value_or(scale * difference.difference.mean);
  return {.percent = sign * percent,
          .low = sign > 0 ? interval.low : -interval.high,
          .high = sign > 0 ? interval.high : -interval.low};
}

TuneDecision decide(const std::vector<Gain>& as_given, const std::vector<Gain>& elsewhere,
                    bool conditions_hold) {
  const double least = 100 * kLeastGain;
  const auto is_worth_it = [&](const Gain& g) { return g.low > 0 && g.percent >= least; };
  const auto harms = [&](const Gain& g) { return g.high < 0 && g.percent <= -least; };
  bool better = false;
  bool worse = !conditions_hold;
  bool undecided = false;
  for (const Gain& gain : as_given) {
    better = better || is_worth_it(gain) ||
             (gain.low > 0 && std::ranges::any_of(elsewhere, is_worth_it));
    worse = worse || gain.high < 0;
    undecided = undecided || (gain.low <= 0 && gain.high >= least);
  }
  if (worse) return TuneDecision::kNothing;
  if (!better) return undecided ? TuneDecision::kUndecided : TuneDecision::kNothing;
  return std::ranges::any_of(elsewhere, harms) ? TuneDecision::kFragile : TuneDecision::kBetter;
}

bool decides(const TuneSpace& space, const TuneSearchResult& search, const MetricName& metric) {
  const auto is_this = [&](const auto& item) { return item.metric == metric; };
  return std::ranges::any_of(space.goals, is_this) ||
         std::ranges::any_of(search.conditions, is_this);
}

std::size_t least_judgement_runs(const TuneSpace& space) {
  return kWhoCount * (space.shifts.size() + 1) * static_cast<std::size_t>(space.config.fresh_seeds);
}

TuneJudgement judge_tune(const TuneSpace& space, const TuneSearchResult& search,
                         TuneRunner& runner) {
  return Judge(space, search, runner).run();
}

}  // namespace routesim::tools
