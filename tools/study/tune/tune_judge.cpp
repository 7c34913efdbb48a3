#include "tools/study/tune/tune_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/scalar_parse.h"
#include "tools/results/text_table.h"

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
  SeedValues values = {};
  std::string problem = {};
};

bool is_finite(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double v) { return std::isfinite(v); });
}

class Judge {
 public:
  Judge(const TuneSpace& space, const TuneSearchResult& search, Experiment& experiment)
      : space_(space), search_(search), experiment_(experiment) {
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
    decide_all();
    out_.headline = headline();
    return std::move(out_);
  }

 private:
  const Choice& best() const { return search_.candidates[search_.best].choice; }

  /// The router that knows everything, with the published engines and as much time for a decision.
  void make_omniscient(JudgedRun& run) const {
    Diagnostics said;
    if (const auto published = prepare_choice(space_, run.choice, run.extra, said)) {
      const sim::RoutingConfig& routing = published->scenario.routing;
      for (const auto& [key, time] :
           {std::pair("decision_latency", routing.decision_latency),
            std::pair("decision_latency_per_1000_tokens", routing.decision_latency_per_1000_tokens),
            std::pair("service_time", routing.service_time),
            std::pair("service_time_per_megabyte", routing.service_time_per_megabyte)})
        run.extra.push_back(
            make_assignment("routing." + std::string(key),
                            number_text(time.value_or(Duration::zero()).to_seconds()) + "s"));
    }
    run.extra.push_back(make_assignment("routing.balancer", "omniscient"));
  }

  void add_runs() {
    for (std::size_t load = 0; load <= space_.shifts.size(); ++load) {
      const std::vector<Assignment> extra =
          load > 0 ? space_.shifts[load - 1].extra : std::vector<Assignment>{};
      runs_.push_back({.choice = space_.published(), .extra = extra});
      runs_.push_back({.choice = best(), .extra = extra});
      runs_.push_back({.choice = space_.published(), .extra = extra});
      make_omniscient(runs_.back());
    }
    for (const std::size_t knob : space_.changed(best())) {
      runs_.push_back({.choice = best(), .extra = {}});
      runs_.back().choice[knob] = space_.knobs[knob].published;
    }
    for (std::size_t i = 0; i < std::min(kMostOnFront, search_.front.size()); ++i)
      runs_.push_back({.choice = search_.candidates[search_.front[i]].choice, .extra = {}});
  }

  void run_all() {
    experiment_.each(runs_.size(), [&](std::size_t i, Diagnostics&) {
      JudgedRun& run = runs_[i];
      Diagnostics found;
      run.plan = prepare_choice(space_, run.choice, run.extra, found);
      run.problem = problem_of(found);
    });
    std::vector<SeedRuns> all;
    for (JudgedRun& run : runs_) {
      run.values.resize(space_.metrics.size());
      if (run.plan) all.push_back({.plan = &*run.plan, .seeds = out_.seeds, .values = &run.values});
    }
    out_.runs = all.size() * out_.seeds.size();
    experiment_.progress().planned = experiment_.progress().runs + out_.runs;
    run_candidates(space_, all, experiment_);
  }

  const JudgedRun& at(std::size_t load, Who who) const { return runs_[kWhoCount * load + who]; }
  std::size_t first_worth() const { return kWhoCount * (space_.shifts.size() + 1); }

  void judge_load(std::size_t load) {
    JudgedLoad& judged = out_.loads.emplace_back();
    judged.load = load == 0 ? "as given" : space_.shifts[load - 1].name;
    for (const Who who : {kPublished, kBest})
      if (const std::string& problem = at(load, who).problem;
          judged.why_not.empty() && !problem.empty())
        judged.why_not = (who == kPublished ? "your file" : fmt::format("#{}", search_.best)) +
                         " cannot run: " + problem;
    if (!judged.why_not.empty()) return;
    for (std::size_t m = 0; m < space_.metrics.size(); ++m) {
      const std::vector<double>& published = at(load, kPublished).values[m];
      const std::vector<double>& best = at(load, kBest).values[m];
      const MetricName& name = space_.metrics[m];
      if (!is_finite(published) && decides(space_, search_, name))
        add_name(judged.published_lacks, name);
      if (!is_finite(best) && decides(space_, search_, name)) add_name(judged.best_lacks, name);
      if (!is_finite(published) || !is_finite(best)) continue;
      JudgedMetric& metric = judged.metrics.emplace_back();
      metric.metric = name;
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

  static void add_name(std::string& names, const MetricName& metric) {
    names += (names.empty() ? "" : ", ") + metric.text;
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
        const std::vector<double>& values = at(0, kBest).values[m];
        if (without.plan && is_finite(without.values[m]) && is_finite(values))
          worth.by_goal.push_back(difference_of(values, without.values[m], goal.metric, true));
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
    std::vector<const SeedValues*> values;
    std::vector<FrontMember> members;
    const std::size_t first = first_worth() + space_.changed(best()).size();
    for (std::size_t i = first; i < runs_.size(); ++i) {
      if (!runs_[i].plan) continue;
      FrontMember member{.candidate = search_.front[i - first]};
      for (const TuneGoal& goal : space_.goals)
        member.goals.push_back(sim::estimate(runs_[i].values[metric_index(goal)]));
      if (!std::ranges::all_of(member.goals, [](const auto& e) { return std::isfinite(e.mean); }))
        continue;
      values.push_back(&runs_[i].values);
      members.push_back(std::move(member));
    }
    for (const std::size_t i : front_of(entries(values)))
      out_.front.push_back(std::move(members[i]));
  }

  static std::optional<Gain> find_gain(const JudgedLoad& load, const TuneGoal& goal) {
    const auto at = std::ranges::find(load.metrics, goal.metric, &JudgedMetric::metric);
    if (at == load.metrics.end()) return std::nullopt;
    return gain_of(at->difference, goal.metric);
  }

  /// Gains of the goals that have numbers.
  std::vector<Gain> gains(const JudgedLoad& load) const {
    std::vector<Gain> out;
    for (const TuneGoal& goal : space_.goals)
      if (const std::optional<Gain> gain = find_gain(load, goal)) out.push_back(*gain);
    return out;
  }

  /// The conditions that are broken beyond chance under the load as given.
  std::vector<std::string> broken_by(const RaceEntry& entry) const {
    std::vector<std::string> broken;
    for (std::size_t c = 0; c < search_.conditions.size(); ++c)
      if (is_condition_broken(entry.excesses[c], 1 - space_.config.confidence))
        broken.push_back(search_.conditions[c].text);
    return broken;
  }

  RaceEntry entry_of(Who who) const {
    const SeedValues* const values = &at(0, who).values;
    return entries({&values, 1}).front();
  }

  Conditions conditions_of(Who who) const {
    const RaceEntry entry = entry_of(who);
    if (!broken_by(entry).empty()) return Conditions::kBroken;
    return entry.violation() > 0 ? Conditions::kUnsure : Conditions::kMet;
  }

  void decide_all() {
    const JudgedLoad& given = out_.loads.front();
    std::vector<Gain> elsewhere;
    bool fails_elsewhere = false;
    for (const JudgedLoad& load : std::span(out_.loads).subspan(1)) {
      for (const Gain& gain : gains(load)) elsewhere.push_back(gain);
      fails_elsewhere = fails_elsewhere || !load.why_not.empty() ||
                        (!load.best_lacks.empty() && load.published_lacks.empty());
    }
    if (!given.published_lacks.empty()) {
      out_.decision = TuneDecision::kUndecided;
      return;
    }
    const Conditions published = conditions_of(kPublished);
    const bool has_best = search_.best != 0 && given.best_lacks.empty();
    out_.decision = decide(has_best ? gains(given) : std::vector<Gain>{}, elsewhere,
                           has_best ? conditions_of(kBest) : Conditions::kBroken, published);
    if (out_.decision == TuneDecision::kBetter && fails_elsewhere)
      out_.decision = TuneDecision::kFragile;
    if ((out_.decision == TuneDecision::kNothing || out_.decision == TuneDecision::kUnmet) &&
        is_small())
      out_.decision = TuneDecision::kUndecided;
  }

  /// Whether a better configuration may well exist that the search had no runs for. A search that
  /// all candidates left before the runs were short is not small.
  bool is_small() const {
    const double for_races = static_cast<double>(search_.budget) * (1 - kSimplifyShare);
    const auto needed =
        static_cast<double>(search_.runs) + 2.0 * static_cast<double>(space_.config.block);
    return search_.tried() < least_candidates(space_) && search_.budget < least_budget(space_) &&
           (search_.best != 0 || needed > for_races);
  }

  /// The candidate that the numbers are of. With two goals it speaks for itself alone.
  std::string judged_text() const {
    if (space_.goals.size() > 1) return fmt::format("#{}, the only one judged,", search_.best);
    if (search_.tried() == 1) return "the only candidate";
    return "the best of " + counted(search_.tried(), "candidate");
  }

  std::string nobody_text() const {
    switch (search_.tried()) {
      case 0:
        return "no other candidate can run";
      case 1:
        return "the other candidate left the race";
      default:
        return fmt::format("every one of the other {} candidates left the race", search_.tried());
    }
  }

  static std::string gain_text(const std::optional<Gain>& gain) {
    if (!gain) return "no number";
    return percent_text(gain->percent, gain->low, gain->high);
  }

  /// `ttft_ms.p90 +6.6 % [+4.0, +9.1]`, of every goal.
  std::string gains_text(const JudgedLoad& load) const {
    std::string text;
    for (const TuneGoal& goal : space_.goals)
      text +=
          (text.empty() ? "" : " and ") + goal.metric.text + " " + gain_text(find_gain(load, goal));
    return text;
  }

  /// `, but ttft_ms.p99 is 13.6 % worse [4.5, 23.7]`: metrics of the load as given that lose beyond
  /// chance, and by as much as a gain must be.
  std::string losers_text() const {
    std::string text;
    for (const JudgedMetric& metric : out_.loads.front().metrics) {
      const auto is_goal = [&](const TuneGoal& g) { return g.metric == metric.metric; };
      if (!metric.metric.has_direction || std::ranges::any_of(space_.goals, is_goal)) continue;
      const Gain gain = gain_of(metric.difference, metric.metric);
      if (gain.high >= 0 || gain.percent > -100 * kLeastGain) continue;
      text +=
          (text.empty() ? ", but " : " and ") + metric.metric.text +
          fmt::format(" is {:.1f} % worse [{:.1f}, {:.1f}]", -gain.percent, -gain.high, -gain.low);
    }
    return text;
  }

  std::string headline() const {
    const JudgedLoad& given = out_.loads.front();
    const std::string seeds = fmt::format("{} fresh seeds", out_.seeds.size());
    const std::string gained = gains_text(given);
    const std::size_t changes = space_.changed(best()).size();
    const std::vector<std::string> broken = broken_by(entry_of(kPublished));
    std::string what = counted(changes, "change") + " of " + counted(space_.knobs.size(), "knob");
    if (broken.empty())
      what += changes == 1 ? " beats your file" : " beat your file";
    else
      what = fmt::format("Your file breaks {}, and {} meet{} {}", joined(broken), what,
                         changes == 1 ? "s" : "", broken.size() == 1 ? "it" : "them");
    switch (out_.decision) {
      case TuneDecision::kBetter:
        return fmt::format("{} on {}: {}{}{}{}.", what, seeds, broken.empty() ? "a gain of " : "",
                           gained, losers_text(), elsewhere_text());
      case TuneDecision::kFragile:
        return fmt::format("{} on {} (a gain of {}{}), but not on every load{}.", what, seeds,
                           gained, losers_text(), elsewhere_text());
      case TuneDecision::kTrade:
        return trade_text(seeds);
      case TuneDecision::kNothing:
        return nothing_text(seeds, gained);
      case TuneDecision::kUnmet:
        return fmt::format(
            "Nothing that was tried meets the conditions: your file breaks {}, and {}.",
            joined(broken), search_.best == 0 ? nobody_text() : unmet_text(seeds));
      case TuneDecision::kUndecided:
        break;
    }
    if (!given.published_lacks.empty())
      return fmt::format("Undecided: your file has no {} in some run on {}.", given.published_lacks,
                         seeds);
    if (is_small())
      return fmt::format(
          "Undecided: the search was small. It tried {} for {} in {} of {} runs, and none {}. "
          "Raise "
          "the budget to {} runs or more.",
          counted(search_.tried(), "candidate"), counted(space_.knobs.size(), "knob"), search_.runs,
          search_.budget, broken.empty() ? "beat your file" : "met " + joined(broken),
          least_budget(space_));
    if (!broken.empty())
      return fmt::format(
          "Undecided: your file breaks {}, and {} breaks a condition too on {}, but not beyond "
          "chance (a gain of {}). More fresh seeds would decide.",
          joined(broken), judged_text(), seeds, gained);
    return fmt::format("Undecided: {} gains {} on {}. More fresh seeds would decide.",
                       judged_text(), gained, seeds);
  }

  /// How the judged candidate fails the conditions, or has no numbers.
  std::string unmet_text(const std::string& seeds) const {
    const std::string& lacks = out_.loads.front().best_lacks;
    return judged_text() +
           (lacks.empty() ? " breaks " + joined(broken_by(entry_of(kBest)))
                          : " has no " + lacks + " in some run") +
           " on " + seeds;
  }

  std::string trade_text(const std::string& seeds) const {
    std::string text = fmt::format("No candidate beats your file in both goals: #{}", search_.best);
    for (const TuneGoal& goal : space_.goals) {
      const std::optional<Gain> gain = find_gain(out_.loads.front(), goal);
      text += (&goal == &space_.goals.front() ? " " : " and ") +
              std::string(gain && gain->high < 0 ? "loses " : "gains ") + goal.metric.text + " " +
              gain_text(gain);
    }
    text += " on " + seeds + ". On the front:";
    for (const FrontMember& member : out_.front)
      text += fmt::format("{} #{}{}", &member == &out_.front.front() ? "" : ",", member.candidate,
                          member.candidate == 0 ? " (your file)" : "");
    return text + ".";
  }

  std::string nothing_text(const std::string& seeds, const std::string& gained) const {
    if (search_.best == 0) return "Nothing beats your file: " + nobody_text() + ".";
    if (!out_.loads.front().best_lacks.empty())
      return "Nothing beats your file: " + unmet_text(seeds) + ".";
    if (conditions_of(kBest) == Conditions::kBroken)
      return fmt::format("Nothing beats your file: {} (a gain of {}).", unmet_text(seeds), gained);
    const bool sure = std::ranges::any_of(gains(out_.loads.front()),
                                          [](const Gain& gain) { return gain.low > 0; });
    return fmt::format("Nothing beats your file by {}: {} gains {} on {}{}.",
                       sure ? "1 % or more" : "more than noise", judged_text(), gained, seeds,
                       sure ? elsewhere_text() : std::string());
  }

  std::string elsewhere_text() const {
    std::string text;
    for (const JudgedLoad& load : std::span(out_.loads).subspan(1)) {
      text += "; " + load.load + ": " +
              (!load.why_not.empty()     ? "cannot run"
               : space_.goals.size() > 1 ? gains_text(load)
                                         : gain_text(find_gain(load, space_.goals.front())));
    }
    return text;
  }

  const TuneSpace& space_;
  const TuneSearchResult& search_;
  Experiment& experiment_;
  std::vector<JudgedRun> runs_;  ///< By load and Who, then the knobs taken back, then the front.
  TuneJudgement out_;
};

}  // namespace

Gain gain_of(const Difference& difference, const MetricName& metric) {
  const double sign = metric.direction == sim::Direction::kSmallerIsBetter ? -1 : 1;
  // From zero there is no ratio: the new value counts as 100 %.
  const double base = std::abs(difference.base.mean);
  const double whole = base > 0 ? base : std::abs(difference.changed.mean);
  const double scale = whole > 0 ? 100 / whole : 0;
  sim::Interval interval{.low = scale * difference.difference.low(),
                         .high = scale * difference.difference.high()};
  if (difference.percent_interval) interval = *difference.percent_interval;
  const double percent = difference.percent.value_or(scale * difference.difference.mean);
  return {.percent = sign * percent,
          .low = sign > 0 ? interval.low : -interval.high,
          .high = sign > 0 ? interval.high : -interval.low};
}

TuneDecision decide(const std::vector<Gain>& as_given, const std::vector<Gain>& elsewhere,
                    Conditions best, Conditions published) {
  if (published == Conditions::kBroken) {
    if (best == Conditions::kUnsure) return TuneDecision::kUndecided;
    return best == Conditions::kMet ? TuneDecision::kBetter : TuneDecision::kUnmet;
  }
  if (best == Conditions::kBroken) return TuneDecision::kNothing;
  const double least = 100 * kLeastGain;
  const auto is_worth_it = [&](const Gain& g) { return g.low > 0 && g.percent >= least; };
  const auto harms = [&](const Gain& g) { return g.high < 0 && g.percent <= -least; };
  bool better = false;
  bool worse = false;
  bool undecided = false;
  for (const Gain& gain : as_given) {
    better = better || is_worth_it(gain) ||
             (gain.low > 0 && std::ranges::any_of(elsewhere, is_worth_it));
    worse = worse || gain.high < 0;
    undecided = undecided || (gain.low <= 0 && gain.high >= least);
  }
  if (worse) return better ? TuneDecision::kTrade : TuneDecision::kNothing;
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
                         Experiment& experiment) {
  return Judge(space, search, experiment).run();
}

}  // namespace routesim::tools
