#include "tools/study/tune/tune_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/scalar_parse.h"

namespace routesim::tools {

namespace {

/// Members of a front that are judged.
constexpr std::size_t kMostOnFront = 12;

/// One configuration under one load, and its values: by metric, then by seed.
struct JudgedRun {
  Choice choice;
  std::vector<Assignment> extra = {};
  std::optional<sim::RunPlan> plan = {};
  SeedValues values = {};
  std::string problem = {};
};

bool is_finite(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double v) { return std::isfinite(v); });
}

std::size_t metric_index(const TuneSpace& space, const MetricName& metric) {
  return static_cast<std::size_t>(std::ranges::find(space.metrics, metric) - space.metrics.begin());
}

void add_name(std::string& names, const MetricName& metric) {
  names += (names.empty() ? "" : ", ") + metric.text;
}

/// difference_of() with intervals of another level.
Difference difference_at(const std::vector<double>& base, const std::vector<double>& changed,
                         const MetricName& metric, double confidence) {
  Difference d = difference_of(base, changed, metric, true);
  d.difference = sim::paired_difference(base, changed, 1, confidence);
  d.verdict = sim::verdict(d.difference, metric.direction);
  d.percent_interval.reset();
  if (const auto ratio = sim::paired_ratio(base, changed, confidence); ratio && d.percent)
    d.percent_interval = {.low = 100 * (ratio->low - 1), .high = 100 * (ratio->high - 1)};
  return d;
}

/// The numbers of one load, from the values of both configurations.
JudgedLoad judged_load(const TuneSpace& space, const TuneSearchResult& search,
                       std::size_t candidate, const LoadValues& values, double confidence) {
  JudgedLoad judged;
  if (!values.published_problem.empty())
    judged.why_not = "your file cannot run: " + values.published_problem;
  else if (!values.candidate_problem.empty())
    judged.why_not = fmt::format("#{} cannot run: {}", candidate, values.candidate_problem);
  if (!judged.why_not.empty()) return judged;
  for (std::size_t m = 0; m < space.metrics.size(); ++m) {
    JudgedMetric metric{.metric = space.metrics[m]};
    const auto guard = std::ranges::find(search.guards, metric.metric);
    metric.is_guard = guard != search.guards.end();
    if (metric.is_guard) metric.metric = *guard;
    metric.is_goal =
        std::ranges::find(space.goals, metric.metric, &TuneGoal::metric) != space.goals.end();
    const bool has_base = is_finite(values.published[m]);
    const bool has_number = is_finite(values.candidate[m]);
    const bool is_needed = decides(space, search, metric.metric);
    if (!has_base && is_needed) add_name(judged.published_lacks, metric.metric);
    if (!has_number && (is_needed || (metric.is_guard && has_base)))
      add_name(judged.candidate_lacks, metric.metric);
    if (!has_base || !has_number) continue;
    metric.difference = difference_at(values.published[m], values.candidate[m], metric.metric,
                                      metric.is_goal ? confidence : sim::kConfidence);
    metric.gain = gain_of(metric.difference, metric.metric);
    judged.metrics.push_back(std::move(metric));
  }
  return judged;
}

/// The conditions that these excesses break beyond chance.
std::vector<std::string> broken_by(const TuneSpace& space, const TuneSearchResult& search,
                                   const RaceEntry& entry) {
  std::vector<std::string> broken;
  for (std::size_t c = 0; c < search.conditions.size(); ++c)
    if (is_condition_broken(entry.excesses[c], 1 - space.config.confidence))
      broken.push_back(search.conditions[c].text);
  return broken;
}

/// Whether the candidate meets the conditions, and which of them it breaks.
std::pair<Conditions, std::vector<std::string>> conditions_of(const TuneSpace& space,
                                                              const TuneSearchResult& search,
                                                              const SeedValues& values,
                                                              const SeedValues& published,
                                                              std::size_t seeds) {
  const SeedValues* const one = &values;
  const RaceEntry entry = entries_of(space, search.conditions, {&one, 1}, published, seeds).front();
  std::vector<std::string> broken = broken_by(space, search, entry);
  if (!broken.empty()) return {Conditions::kBroken, std::move(broken)};
  return {entry.violation() > 0 ? Conditions::kUnsure : Conditions::kMet, {}};
}

/// Decides by gains, conditions and guards.
TuneDecision decision_of(const TuneJudgement& out, Conditions candidate, Conditions published) {
  const JudgedLoad& given = out.loads.front();
  if (!given.published_lacks.empty()) return TuneDecision::kUndecided;
  std::vector<Gain> elsewhere;
  bool fails_elsewhere = false;
  for (const JudgedLoad& load : std::span(out.loads).subspan(1)) {
    for (const Gain& gain : gains_of(load)) elsewhere.push_back(gain);
    fails_elsewhere = fails_elsewhere || !load.why_not.empty() ||
                      (!load.candidate_lacks.empty() && load.published_lacks.empty()) ||
                      (published != Conditions::kBroken && !load.broken().empty());
  }
  const bool has_numbers = out.candidate != 0 && given.candidate_lacks.empty();
  const TuneDecision decision =
      decide(has_numbers ? gains_of(given) : std::vector<Gain>{}, elsewhere,
             has_numbers ? candidate : Conditions::kBroken, published);
  if (published != Conditions::kBroken && decision != TuneDecision::kTrade &&
      !given.broken().empty())
    return TuneDecision::kNothing;
  return decision == TuneDecision::kBetter && fails_elsewhere ? TuneDecision::kFragile : decision;
}

/// The runs of a judgement.
class Judge {
 public:
  Judge(const TuneSpace& space, const TuneSearchResult& search, Experiment& experiment)
      : space_(space), search_(search), experiment_(experiment) {}

  TuneJudgement run() {
    std::vector<Trial> trials;
    do {
      trials.push_back(judge(trials.size()));
    } while (trials.back().judged.is_refused() &&
             trials.size() < std::min(kMostJudged, search_.finalists.size()));
    const auto rank = [](const Trial& trial) {
      const TuneDecision decision = trial.judged.decision;
      return decision == TuneDecision::kBetter ? 0 : decision == TuneDecision::kFragile ? 1 : 2;
    };
    const auto chosen = std::ranges::min_element(trials, {}, rank);
    TuneJudgement out = std::move(chosen->judged);
    add_details(chosen->published, chosen->values, out);
    for (auto trial = trials.begin(); trial != trials.end(); ++trial)
      if (trial != chosen) out.passed_over.push_back(std::move(trial->judged));
    out.runs = runs_;
    return out;
  }

 private:
  /// One candidate on its seeds, with the values of both configurations under the load as given.
  struct Trial {
    TuneJudgement judged;
    SeedValues published, values;
  };

  const Choice& choice_of(std::size_t candidate) const {
    return search_.candidates[candidate].choice;
  }

  /// Judges finalist number `place`: as given, and unless that decides, under the other loads.
  Trial judge(std::size_t place) {
    const std::size_t candidate = search_.finalists.empty() ? 0 : search_.finalists[place];
    std::vector<std::uint64_t> seeds;
    const auto n = static_cast<std::uint64_t>(space_.config.fresh_seeds);
    for (std::uint64_t s = 0; s < n; ++s)
      seeds.push_back(space_.seed + kFreshSeeds + place * n + s);
    std::vector<LoadValues> loads = run_loads(candidate, seeds, {{}});
    TuneJudgement judged = conclude(space_, search_, candidate, seeds, loads);
    if (candidate != 0 && !judged.is_refused() && !space_.shifts.empty()) {
      std::vector<std::vector<Assignment>> extras;
      for (const ShiftedLoad& load : space_.shifts) extras.push_back(load.extra);
      for (LoadValues& load : run_loads(candidate, seeds, extras)) loads.push_back(std::move(load));
      judged = conclude(space_, search_, candidate, seeds, loads);
    }
    return {std::move(judged), std::move(loads[0].published), std::move(loads[0].candidate)};
  }

  /// Both configurations under these loads. Nobody needs to run your file twice.
  std::vector<LoadValues> run_loads(std::size_t candidate, const std::vector<std::uint64_t>& seeds,
                                    const std::vector<std::vector<Assignment>>& extras) {
    std::vector<JudgedRun> runs;
    for (const std::vector<Assignment>& extra : extras) {
      runs.push_back({.choice = space_.published(), .extra = extra});
      if (candidate != 0) runs.push_back({.choice = choice_of(candidate), .extra = extra});
    }
    run_all(runs, seeds);
    const std::size_t each = candidate != 0 ? 2 : 1;
    std::vector<LoadValues> loads;
    for (std::size_t i = 0; i < runs.size(); i += each) {
      const JudgedRun& own = runs[i + each - 1];
      loads.push_back({runs[i].values, own.values, runs[i].problem, own.problem});
    }
    return loads;
  }

  void run_all(std::vector<JudgedRun>& runs, const std::vector<std::uint64_t>& seeds) {
    experiment_.each(runs.size(), [&](std::size_t i, Diagnostics&) {
      JudgedRun& run = runs[i];
      Diagnostics found;
      run.plan = prepare_choice(space_, run.choice, run.extra, found);
      run.problem = problem_of(found);
    });
    std::vector<SeedRuns> all;
    for (JudgedRun& run : runs) {
      run.values.resize(space_.metrics.size());
      if (run.plan) all.push_back({.plan = &*run.plan, .seeds = seeds, .values = &run.values});
    }
    runs_ += all.size() * seeds.size();
    experiment_.progress().planned = experiment_.progress().runs + all.size() * seeds.size();
    run_candidates(space_, all, experiment_);
  }

  /// The router that knows everything, with the published engines and as much time for a decision.
  JudgedRun omniscient() const {
    JudgedRun run{.choice = space_.published()};
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
    return run;
  }

  /// The ceiling, the worth of each change and the front, on the seeds of the candidate that was
  /// chosen. Where nothing is better, nobody asks for the worth of a change.
  void add_details(const SeedValues& published, const SeedValues& values, TuneJudgement& out) {
    std::vector<std::size_t> changed;
    if (out.decision != TuneDecision::kNothing && out.decision != TuneDecision::kUnmet)
      changed = space_.changed(choice_of(out.candidate));
    std::vector<JudgedRun> runs = {omniscient()};
    for (const std::size_t knob : changed) {
      runs.push_back({.choice = choice_of(out.candidate)});
      runs.back().choice[knob] = space_.knobs[knob].published;
    }
    for (std::size_t i = 0; i < std::min(kMostOnFront, search_.front.size()); ++i)
      runs.push_back({.choice = choice_of(search_.front[i])});
    run_all(runs, out.seeds);
    add_ceiling(runs.front(), published, out);
    for (std::size_t i = 0; i < changed.size(); ++i)
      add_worth(changed[i], runs[1 + i].values, values, out);
    add_front(std::span(runs).subspan(1 + changed.size()), published, out);
  }

  void add_ceiling(const JudgedRun& ceiling, const SeedValues& published,
                   TuneJudgement& out) const {
    out.no_omniscient = ceiling.problem;
    if (!ceiling.plan) return;
    for (JudgedMetric& metric : out.loads.front().metrics) {
      const std::size_t m = metric_index(space_, metric.metric);
      if (!is_finite(ceiling.values[m])) continue;
      metric.omniscient = sim::estimate(ceiling.values[m]);
      const sim::Estimate gap = sim::paired_difference(published[m], ceiling.values[m]);
      if (metric.metric.has_direction &&
          sim::verdict(gap, metric.metric.direction) == sim::Verdict::kBetter)
        metric.gap_closed = metric.difference.difference.mean / gap.mean;
    }
  }

  void add_worth(std::size_t knob, const SeedValues& without, const SeedValues& values,
                 TuneJudgement& out) const {
    KnobWorth worth{.knob = knob};
    for (const TuneGoal& goal : space_.goals) {
      const std::size_t m = metric_index(space_, goal.metric);
      if (without[m].empty() || !is_finite(without[m]) || !is_finite(values[m])) return;
      const Gain back =
          gain_of(difference_of(values[m], without[m], goal.metric, true), goal.metric);
      worth.by_goal.push_back(
          {{.percent = -back.percent, .low = -back.high, .high = -back.low}, goal.metric.text});
    }
    out.worth.push_back(std::move(worth));
  }

  /// The members of the search's front that no other one beats on fresh seeds either.
  void add_front(std::span<const JudgedRun> runs, const SeedValues& published,
                 TuneJudgement& out) const {
    std::vector<const SeedValues*> values;
    std::vector<FrontMember> members;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (!runs[i].plan) continue;
      FrontMember member{.id = static_cast<std::int64_t>(search_.front[i]),
                         .values = space_.values_of(runs[i].choice)};
      for (const TuneGoal& goal : space_.goals) {
        const auto e = sim::estimate(runs[i].values[metric_index(space_, goal.metric)]);
        member.metrics.items.emplace_back(goal.metric.text, JudgedMean{e.mean, e.low(), e.high()});
      }
      if (!std::ranges::all_of(member.metrics.items,
                               [](const auto& item) { return std::isfinite(item.second.mean); }))
        continue;
      values.push_back(&runs[i].values);
      members.push_back(std::move(member));
    }
    if (values.empty()) return;
    for (const std::size_t i :
         front_of(entries_of(space_, search_.conditions, values, published, out.seeds.size())))
      out.front.push_back(std::move(members[i]));
  }

  const TuneSpace& space_;
  const TuneSearchResult& search_;
  Experiment& experiment_;
  std::size_t runs_ = 0;  ///< So far.
};

}  // namespace

double repeat_confidence(std::size_t n) {
  if (n < 2) return sim::kConfidence;
  const auto degrees = static_cast<double>(n - 1);
  const auto width = [degrees](double level) {
    return sim::student_t_quantile(0.5 + level / 2, degrees);
  };
  const double wanted = std::sqrt(2.0) * width(sim::kConfidence);
  double low = sim::kConfidence;
  double high = 1;
  for (int i = 0; i < 40; ++i) {  // Halves a span of 0.05 down to 5e-14.
    const double middle = (low + high) / 2;
    (width(middle) < wanted ? low : high) = middle;
  }
  return low;
}

const JudgedMetric* JudgedLoad::find(const MetricName& metric) const {
  const auto at = std::ranges::find(metrics, metric, &JudgedMetric::metric);
  return at == metrics.end() ? nullptr : &*at;
}

std::vector<const JudgedMetric*> JudgedLoad::broken() const {
  std::vector<const JudgedMetric*> out;
  for (const JudgedMetric& metric : metrics)
    if (metric.is_guard && metric.is_worse()) out.push_back(&metric);
  return out;
}

bool TuneJudgement::is_refused() const {
  const auto breaks = [](const JudgedLoad& load) { return !load.broken().empty(); };
  if (decision == TuneDecision::kTrade) return false;
  return !candidate_breaks.empty() ||
         (published_breaks.empty() && std::ranges::any_of(loads, breaks));
}

std::vector<Gain> gains_of(const JudgedLoad& load) {
  std::vector<Gain> out;
  for (const JudgedMetric& metric : load.metrics)
    if (metric.is_goal) out.push_back(metric.gain);
  return out;
}

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

TuneJudgement conclude(const TuneSpace& space, const TuneSearchResult& search,
                       std::size_t candidate, const std::vector<std::uint64_t>& seeds,
                       std::span<const LoadValues> loads) {
  TuneJudgement out{.candidate = candidate, .seeds = seeds};
  const double confidence = repeat_confidence(seeds.size());
  for (std::size_t i = 0; i < loads.size(); ++i) {
    out.loads.push_back(judged_load(space, search, candidate, loads[i], confidence));
    out.loads.back().load = i == 0 ? "as given" : space.shifts[i - 1].name;
  }
  const LoadValues& given = loads.front();
  Conditions published = Conditions::kMet;
  Conditions own = Conditions::kBroken;
  if (given.published_problem.empty())
    std::tie(published, out.published_breaks) =
        conditions_of(space, search, given.published, given.published, seeds.size());
  if (out.loads.front().why_not.empty())
    std::tie(own, out.candidate_breaks) =
        conditions_of(space, search, given.candidate, given.published, seeds.size());
  out.decision = decision_of(out, own, published);
  if ((out.decision == TuneDecision::kNothing || out.decision == TuneDecision::kUnmet) &&
      is_small(space, search))
    out.decision = TuneDecision::kUndecided;
  return out;
}

bool is_small(const TuneSpace& space, const TuneSearchResult& search) {
  const double for_races = static_cast<double>(search.budget) * (1 - kSimplifyShare);
  const auto needed =
      static_cast<double>(search.runs) + 2.0 * static_cast<double>(space.config.block);
  return search.tried() < least_candidates(space) && search.budget < least_budget(space) &&
         (search.best != 0 || needed > for_races);
}

bool decides(const TuneSpace& space, const TuneSearchResult& search, const MetricName& metric) {
  const auto is_this = [&](const auto& item) { return item.metric == metric; };
  return std::ranges::any_of(space.goals, is_this) ||
         std::ranges::any_of(search.conditions, is_this);
}

std::size_t least_judgement_runs(const TuneSpace& space) {
  return (2 * (space.shifts.size() + 1) + 1) * static_cast<std::size_t>(space.config.fresh_seeds);
}

TuneJudgement judge_tune(const TuneSpace& space, const TuneSearchResult& search,
                         Experiment& experiment) {
  return Judge(space, search, experiment).run();
}

}  // namespace routesim::tools
