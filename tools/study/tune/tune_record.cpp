#include "tools/study/tune/tune_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/render/document.h"
#include "tools/results/described_json.h"
#include "tools/results/statistics.h"
#include "tools/results/text_table.h"
#include "tools/results/version.h"

namespace routesim::tools {

namespace {

// The answer of a tuning in a sentence, from the numbers of its judgement.

std::string goal_gain(const JudgedLoad& load, const TuneGoal& goal) {
  const JudgedMetric* const metric = load.find(goal.metric);
  if (metric == nullptr) return "no number";
  return percent_text(metric->gain.percent, metric->gain.low, metric->gain.high);
}

/// One decimal, or two digits that count.
std::string loss_number(double percent) {
  return std::abs(percent) < 0.1 ? fmt::format("{:.2g}", percent + 0.0)
                                 : fmt::format("{:.1f}", percent);
}

/// `ttft_ms.p90 +6.6 % [+4.0, +9.1]`, of every goal.
std::string gains_text(const TuneSpace& space, const JudgedLoad& load) {
  std::string text;
  for (const TuneGoal& goal : space.goals)
    text += (text.empty() ? "" : " and ") + goal.metric.text + " " + goal_gain(load, goal);
  return text;
}

/// `ttft_ms.p99 is 13.6 % worse [4.5, 23.7]`.
std::string loss_text(const JudgedMetric& metric) {
  const Difference& d = metric.difference;
  if (d.base.mean == 0)
    return fmt::format("{} is {} instead of 0", metric.metric.text, short_number(d.changed.mean));
  return fmt::format("{} is {} % worse [{}, {}]", metric.metric.text,
                     loss_number(-metric.gain.percent), loss_number(-metric.gain.high),
                     loss_number(-metric.gain.low));
}

/// Metrics that are worse beyond chance; the goals have texts of their own.
std::vector<std::string> losses(const JudgedLoad& load) {
  std::vector<std::string> texts;
  for (const JudgedMetric& metric : load.metrics)
    if (metric.is_worse() && !metric.is_goal) texts.push_back(loss_text(metric));
  return texts;
}

std::string losses_text(const JudgedLoad& load, const std::string& before) {
  const std::vector<std::string> texts = losses(load);
  return texts.empty() ? std::string() : before + joined(texts);
}

/// The words of one judgement.
class Words {
 public:
  Words(const TuneSpace& space, const TuneSearchResult& search, const TuneJudgement& judgement)
      : space_(space),
        search_(search),
        judged_(judgement),
        given_(judgement.loads.front()),
        seeds_(fmt::format("{} fresh seeds", judgement.seeds.size())),
        gained_(gains_text(space, given_)) {}

  std::string headline() const {
    const std::vector<std::string>& broken = judged_.published_breaks;
    switch (judged_.decision) {
      case TuneDecision::kBetter:
        return fmt::format("{} on {}: {}{}{}{}.", who(), seeds_, broken.empty() ? "a gain of " : "",
                           gained_, losses_text(given_, ", but "), elsewhere());
      case TuneDecision::kFragile:
        return fmt::format("{} on {} (a gain of {}{}), but not on every load{}.", who(), seeds_,
                           gained_, losses_text(given_, ", but "), elsewhere());
      case TuneDecision::kTrade:
        return trade();
      case TuneDecision::kNothing:
        return nothing();
      case TuneDecision::kUnmet:
        return fmt::format(
            "Nothing that was tried meets the conditions: your file breaks {}, and {}.",
            joined(broken), judged_.candidate == 0 ? nobody() : unmet());
      case TuneDecision::kUndecided:
        break;
    }
    return undecided();
  }

  /// The others that were judged, and why none of them is the best one.
  std::string others() const {
    std::string text;
    for (const TuneJudgement& other : judged_.passed_over)
      text +=
          fmt::format("{} #{}, which {}", text.empty() ? "" : ";", other.candidate, why_not(other));
    if (text.empty()) return text;
    return " Judged too, each on fresh seeds of its own:" + text + ".";
  }

 private:
  /// `2 changes of 7 knobs beat your file`.
  std::string who() const {
    const std::size_t changes = space_.changed(search_.candidates[judged_.candidate].choice).size();
    const std::string what =
        counted(changes, "change") + " of " + counted(space_.knobs.size(), "knob");
    const std::vector<std::string>& broken = judged_.published_breaks;
    if (broken.empty()) return what + (changes == 1 ? " beats your file" : " beat your file");
    return fmt::format("Your file breaks {}, and {} meet{} {}", joined(broken), what,
                       changes == 1 ? "s" : "", broken.size() == 1 ? "it" : "them");
  }

  /// The candidate that the numbers are of. With two goals it speaks for itself alone.
  std::string candidate() const {
    if (!judged_.passed_over.empty()) return fmt::format("#{}", judged_.candidate);
    if (space_.goals.size() > 1) return fmt::format("#{}, the only one judged,", judged_.candidate);
    if (search_.tried() == 1) return "the only candidate";
    return "the best of " + counted(search_.tried(), "candidate");
  }

  std::string nobody() const {
    switch (search_.tried()) {
      case 0:
        return "no other candidate can run";
      case 1:
        return "the other candidate left the race";
      default:
        return fmt::format("every one of the other {} candidates left the race", search_.tried());
    }
  }

  /// How the judged candidate fails the conditions, or has no numbers.
  std::string unmet() const {
    const std::string& lacks = given_.candidate_lacks;
    return candidate() +
           (lacks.empty() ? " breaks " + joined(judged_.candidate_breaks)
                          : " has no " + lacks + " in some run") +
           " on " + seeds_;
  }

  std::string undecided() const {
    const std::vector<std::string>& broken = judged_.published_breaks;
    if (!given_.published_lacks.empty())
      return fmt::format("Undecided: your file has no {} in some run on {}.",
                         given_.published_lacks, seeds_);
    if (is_small(space_, search_))
      return fmt::format(
          "Undecided: the search was small. It tried {} for {} in {} of {} runs, and none {}{}. "
          "Raise the budget to {} runs or more.",
          counted(search_.tried(), "candidate"), counted(space_.knobs.size(), "knob"), search_.runs,
          search_.budget, broken.empty() ? "beat your file" : "met " + joined(broken),
          broken.empty() ? guards(": the best one ") : "", least_budget(space_));
    if (!broken.empty())
      return fmt::format(
          "Undecided: your file breaks {}, and {} breaks a condition too on {}, but not beyond "
          "chance (a gain of {}). More fresh seeds would decide.",
          joined(broken), candidate(), seeds_, gained_);
    return fmt::format("Undecided: {} gains {} on {}{}. More fresh seeds would decide.",
                       candidate(), gained_, seeds_, losses_text(given_, ", but "));
  }

  std::string trade() const {
    std::string text =
        fmt::format("No candidate beats your file in both goals: #{}", judged_.candidate);
    for (const TuneGoal& goal : space_.goals) {
      const JudgedMetric* const metric = given_.find(goal.metric);
      text += (&goal == &space_.goals.front() ? " " : " and ") +
              std::string(metric != nullptr && metric->gain.high < 0 ? "loses " : "gains ") +
              goal.metric.text + " " + goal_gain(given_, goal);
    }
    text += " on " + seeds_ + losses_text(given_, "; ") + ". On the front:";
    for (const FrontMember& member : judged_.front)
      text += fmt::format("{} #{}{}", &member == &judged_.front.front() ? "" : ",", member.id,
                          member.id == 0 ? " (your file)" : "");
    return text + ".";
  }

  /// `breaks a guard on 60 fresh seeds: ttft_ms.p99 is 17.0 % worse [11.2, 23.0]`; empty when the
  /// candidate breaks none under the load as given.
  std::string guards(const std::string& before) const {
    std::vector<std::string> texts;
    for (const JudgedMetric* metric : given_.broken()) texts.push_back(loss_text(*metric));
    if (texts.empty()) return {};
    return fmt::format("{}breaks {} on {}: {}", before,
                       texts.size() == 1 ? "a guard" : counted(texts.size(), "guard"), seeds_,
                       joined(texts));
  }

  std::string nothing() const {
    if (judged_.candidate == 0) return "Nothing beats your file: " + nobody() + ".";
    if (!given_.candidate_lacks.empty()) return "Nothing beats your file: " + unmet() + ".";
    if (!judged_.candidate_breaks.empty())
      return fmt::format("Nothing beats your file: {} (a gain of {}).", unmet(), gained_);
    if (const std::string broken = guards(" "); !broken.empty())
      return fmt::format("Nothing beats your file: {}{} (a gain of {}).", candidate(), broken,
                         gained_);
    const bool sure =
        std::ranges::any_of(gains_of(given_), [](const Gain& gain) { return gain.low > 0; });
    return fmt::format("Nothing beats your file by {}: {} gains {} on {}{}{}.",
                       sure ? "1 % or more" : "more than noise", candidate(), gained_, seeds_,
                       losses_text(given_, ", but "), sure ? elsewhere() : std::string());
  }

  std::string elsewhere() const {
    std::string text;
    for (const JudgedLoad& load : std::span(judged_.loads).subspan(1)) {
      text += "; " + load.load + ": " +
              (!load.why_not.empty()     ? "cannot run"
               : space_.goals.size() > 1 ? gains_text(space_, load)
                                         : goal_gain(load, space_.goals.front())) +
              losses_text(load, ", but ");
    }
    return text;
  }

  /// Why a candidate that was judged is not the best one.
  std::string why_not(const TuneJudgement& other) const {
    if (!other.candidate_breaks.empty()) return "breaks " + joined(other.candidate_breaks);
    std::vector<std::string> texts;
    for (const JudgedLoad& load : other.loads)
      for (const JudgedMetric* metric : load.broken())
        texts.push_back(metric->metric.text +
                        (&load == &other.loads.front() ? "" : " (" + load.load + ")"));
    if (!texts.empty() && other.published_breaks.empty())
      return (texts.size() == 1 ? "breaks the guard on " : "breaks the guards on ") + joined(texts);
    return "gains " + gains_text(space_, other.loads.front());
  }

  const TuneSpace& space_;
  const TuneSearchResult& search_;
  const TuneJudgement& judged_;
  const JudgedLoad& given_;
  std::string seeds_;
  std::string gained_;
};

/// The answer: what is gained, everything that gets worse, and who else was judged.
std::string tune_headline(const TuneSpace& space, const TuneSearchResult& search,
                          const TuneJudgement& judgement) {
  const Words words(space, search, judgement);
  return words.headline() + words.others();
}

}  // namespace

void describe(Describer& d, Gain& r) {
  field(d, {"percent", "Positive is better, %."}, r.percent);
  field(d,
        {"low",
         "Lower end of its interval, %: of a goal, 95 % of repeats on as many other seeds lie "
         "inside; of all others, it is that of the mean, 95 %."},
        r.low);
  field(d, {"high", "Upper end, %."}, r.high);
}

void describe(Describer& d, TuneRecord::Verdict& r) {
  field(d, {"headline", "The answer in a sentence."}, r.headline);
  field(d, {"decision", "What was decided."}, r.decision);
}

void describe(Describer& d, MetricGain& r) {
  field(d, {"metric", "Of the goal."}, r.metric);
  describe(d, static_cast<Gain&>(r));
}

void describe(Describer& d, TuneRecord::Knob& r) {
  field(d, {"name", "What it sets."}, r.name);
  field(d, {"published", "Its value in the file."}, r.published);
  field(d, {"best", "Its value to deploy."}, r.best);
  field(d, {"candidate", "Its value in the judged candidate."}, r.candidate);
  field(d, {"ordered", "Its values are numbers, ascending."}, r.ordered);
  field(d, {"range", "The values that were tried."}, r.range);
  field(d, {"worth", "The loss when its change is taken back, by goal."}, r.worth);
}

void describe(Describer& d, TuneRound& r) {
  field(d, {"round", "Counts from 1."}, r.round);
  field(d, {"iteration", "Of the search."}, r.iteration);
  field(d, {"seeds", "That decided."}, r.seeds);
  field(d, {"candidates", "Before it."}, r.candidates);
  field(d, {"left", "After it."}, r.left);
}

void describe(Describer& d, TuneRecord::Candidate& r) {
  field(d, {"id", "Its number; 0 is the published one."}, r.id);
  field(d, {"values", "By knob."}, r.values);
  field(d, {"metrics", "Means over its seeds."}, r.metrics);
  field(d, {"rounds", "That it faced."}, r.rounds);
  field(d, {"seeds", "Of its means."}, r.seeds);
  field(d, nullable("dropped", "Why it left the race. Null for those that stayed."), r.dropped);
}

void describe(Describer& d, JudgedMean& r) {
  field(d, {"mean", "Over the fresh seeds."}, r.mean);
  field(d, {"low", "Lower end of its interval."}, r.low);
  field(d, {"high", "Upper end."}, r.high);
}

void describe(Describer& d, TuneRecord::Judged& r) {
  field(d, {"load", "Under which it was judged."}, r.load);
  field(d, {"metric", "With unit and statistic."}, r.metric);
  field(d, {"seeds", "How many fresh ones."}, r.seeds);
  field(d, nullable("published", "Mean of the published configuration."), r.published);
  field(d, nullable("candidate", "Mean of the judged one."), r.candidate);
  field(d, nullable("omniscient", "Mean of a router that knows everything."), r.omniscient);
  field(d, {"difference", "Candidate less published."}, r.difference);
  field(d, {"gain", "In percent of published."}, r.gain);
  field(d, nullable("gap_closed", "Share of the gap between published and omniscient."),
        r.gap_closed);
}

void describe(Describer& d, TuneRecord::Worse& r) {
  field(d, {"load", "Under which it was judged."}, r.load);
  field(d, {"metric", "With unit and statistic."}, r.metric);
  field(d, {"guard", "Whether it is one of the guards."}, r.guard);
  describe(d, static_cast<Gain&>(r));
}

void describe(Describer& d, TuneRecord::Passed& r) {
  field(d, {"candidate", "Its number."}, r.candidate);
  field(d, {"fresh_seeds", "That it was judged on, and no other one."}, r.fresh_seeds);
  field(d, {"conditions", "Those that it breaks."}, r.conditions);
  field(d, {"gains", "Of the goals, under the load as given."}, r.gains);
  field(d, {"worse", "What gets worse beyond chance."}, r.worse);
}

void describe(Describer& d, LoadLacks& r) {
  field(d, {"load", "Its name."}, r.load);
  field(d, {"why_not", "Who cannot run under it, and why."}, r.why_not);
  field(d, {"published_lacks", "Metrics without a number."}, r.published_lacks);
  field(d, {"candidate_lacks", "The same of the judged one."}, r.candidate_lacks);
}

void describe(Describer& d, FrontMember& r) {
  field(d, {"id", "Its number."}, r.id);
  field(d, {"values", "By knob."}, r.values);
  field(d, {"metrics", "Of the goals, on fresh seeds."}, r.metrics);
}

void describe(Describer& d, TuneRecord& r) {
  field(d, {"tune", "Its name."}, r.tune);
  field(d, {"question", "As written."}, r.question);
  field(d, {"scenario", "Its name."}, r.scenario);
  field(d, {"variant", "That was tuned."}, r.variant);
  field(d, {"seed", "Of the first run and of the search."}, r.seed);
  field(d, {"version", "The version that made it."}, r.version);
  field(d, {"goals", "As written."}, r.goals);
  field(d, {"subject_to", "Conditions, as written."}, r.subject_to);
  field(d, {"guards", "Metrics that may not get worse beyond chance, under any load."}, r.guards);
  field(d, {"budget", "Runs that the search might take."}, r.budget);
  field(d, {"search_runs", "Runs that it took."}, r.search_runs);
  field(d, {"judgement_runs", "Runs of the judgement."}, r.judgement_runs);
  field(d, {"verdict", "The answer."}, r.verdict);
  field(d, {"best", "The candidate to deploy; 0 is the published one."}, r.best);
  field(d, {"candidate", "The candidate that was judged."}, r.candidate);
  field(d, {"knobs", "What could be chosen."}, r.knobs);
  field(d, {"race", "By round."}, r.race);
  field(d, {"candidates", "Every one."}, r.candidates);
  field(d, {"fresh_seeds", "That the search has not seen."}, r.fresh_seeds);
  field(d, {"judged", "By load and metric."}, r.judged);
  field(d, {"worse", "What the candidate makes worse beyond chance: every metric."}, r.worse);
  field(d, {"passed_over", "Candidates that were judged too and are not the best one."},
        r.passed_over);
  field(d, {"loads", "What a load lacks."}, r.loads);
  field(d, {"no_omniscient", "Why there is no omniscient ceiling."}, r.no_omniscient);
  field(d, {"notes", "Numbers that the judgement lacks."}, r.notes);
  field(d, {"front", "With two goals: what no other beats in both."}, r.front);
  field(d, nullable("epp", "The router's document to deploy."), r.epp);
  field(d, {"flags", "Of the engines to deploy."}, r.flags);
  field(d, {"set", "Assignments that make the judged candidate."}, r.set);
  field(d, {"command", "How `run` repeats it."}, r.command);
  field(d, {"command_document", "The document that the command reads."}, r.command_document);
}

namespace {

TuneRecord::Knob knob_of(const TuneReport& report, std::size_t k) {
  const Knob& knob = report.space.knobs[k];
  TuneRecord::Knob out{.name = knob.name,
                       .published = knob.values[knob.published].text,
                       .candidate = knob.values[best_of(report).choice[k]].text,
                       .ordered = knob.ordered};
  for (const KnobWorth& worth : report.judgement.worth)
    if (worth.knob == k) out.worth = worth.by_goal;
  out.best = deploys_best(report) ? out.candidate : out.published;
  for (const KnobValue& value : knob.values) out.range.push_back(value.text);
  return out;
}

TuneRecord::Candidate candidate_of(const TuneReport& report, std::size_t i) {
  const TuneCandidate& candidate = report.search.candidates[i];
  TuneRecord::Candidate out{.id = static_cast<std::int64_t>(i),
                            .values = report.space.values_of(candidate.choice),
                            .rounds = static_cast<std::int64_t>(candidate.rounds),
                            .seeds = static_cast<std::int64_t>(candidate.seeds())};
  for (std::size_t m = 0; m < candidate.values.size(); ++m) {
    const double mean = sim::mean(candidate.values[m]);
    out.metrics.items.emplace_back(report.space.metrics[m].text,
                                   std::isfinite(mean) ? std::optional(mean) : std::nullopt);
  }
  if (!candidate.dropped.empty()) out.dropped = candidate.dropped;
  return out;
}

TuneRecord::Judged judged_of(const TuneReport& report, const std::string& load,
                             const JudgedMetric& metric) {
  const Difference& d = metric.difference;
  TuneRecord::Judged out{.load = load,
                         .metric = metric.metric.text,
                         .seeds = static_cast<std::int64_t>(report.judgement.seeds.size()),
                         .published = d.base.mean,
                         .candidate = d.changed.mean,
                         .difference = {d.difference.mean, d.difference.low(), d.difference.high()},
                         .gain = metric.gain,
                         .gap_closed = metric.gap_closed,
                         .published_text = estimate_text(d.base),
                         .candidate_text = estimate_text(d.changed)};
  if (metric.omniscient) {
    out.omniscient = metric.omniscient->mean;
    out.omniscient_text = estimate_text(*metric.omniscient);
  }
  return out;
}

std::vector<TuneRecord::Worse> worse_of(const TuneJudgement& judgement) {
  std::vector<TuneRecord::Worse> out;
  for (const JudgedLoad& load : judgement.loads)
    for (const JudgedMetric& metric : load.metrics)
      if (metric.is_worse())
        out.push_back({metric.gain, load.load, metric.metric.text, metric.is_guard});
  return out;
}

TuneRecord::Passed passed_of(const TuneJudgement& judgement) {
  TuneRecord::Passed out{.candidate = static_cast<std::int64_t>(judgement.candidate),
                         .fresh_seeds = judgement.seeds,
                         .conditions = judgement.candidate_breaks,
                         .worse = worse_of(judgement)};
  for (const JudgedMetric& metric : judgement.loads.front().metrics)
    if (metric.is_goal) out.gains.push_back({metric.gain, metric.metric.text});
  return out;
}

/// Sentences about numbers that the judgement lacks.
std::vector<std::string> lacking_numbers(const TuneReport& report) {
  const std::string judged =
      deploys_best(report) ? "best" : fmt::format("#{}", report.judgement.candidate);
  std::vector<std::string> notes;
  for (const JudgedLoad& load : report.judgement.loads) {
    if (!load.why_not.empty()) notes.push_back(load.load + ": " + load.why_not + ".");
    for (const auto& [name, lacks] : {std::pair(std::string("your file"), load.published_lacks),
                                      std::pair(judged, load.candidate_lacks)})
      if (!lacks.empty())
        notes.push_back(fmt::format("{}: {} has no {} in some run.", load.load, name, lacks));
  }
  if (!report.judgement.no_omniscient.empty())
    notes.push_back("There is no omniscient ceiling: " + report.judgement.no_omniscient + ".");
  return notes;
}

/// Whether a metric is 0 in some run of the search, and not in all.
bool is_zero_in_some_run(const TuneReport& report, std::size_t m) {
  std::size_t runs = 0;
  std::size_t zeros = 0;
  for (const TuneCandidate& candidate : report.search.candidates) {
    if (candidate.values.empty()) continue;
    runs += candidate.seeds();
    zeros += static_cast<std::size_t>(std::ranges::count(candidate.values[m], 0.0));
  }
  return zeros > 0 && zeros < runs;
}

std::string how_text(const TuneReport& report) {
  const std::string conditions = comma_list(report.search.conditions, &Condition::text);
  std::string with_zeros;
  for (std::size_t m = 0; m < report.space.metrics.size(); ++m)
    if (const MetricName& metric = report.space.metrics[m];
        decides(report.space, report.search, metric) && is_ratio_metric(metric) &&
        is_zero_in_some_run(report, m))
      with_zeros += (with_zeros.empty() ? "" : ", ") + metric.text;
  if (!with_zeros.empty())
    with_zeros = "Where " + with_zeros + " is 0 in a run, differences are compared, not ratios. ";
  return fmt::format(
      "{} and your file in {} of {} runs, then {} to judge. A candidate left the race when a "
      "one-sided paired t-test at {:.3g} %, divided by the number of comparisons (Bonferroni), "
      "said that it was worse than the best one{}. {}Gains count on seeds {} to {}, which the "
      "search has not seen. Of 100 repeats on as many other seeds, 95 find the gain of a goal in "
      "its interval; the intervals of all other numbers are 95 %.",
      counted(report.search.tried(), "candidate"), report.search.runs, report.search.budget,
      counted(report.judgement.runs, "run"), 100 * (1 - report.space.config.confidence),
      (conditions.empty() ? "" : " or that it broke a condition (" + conditions + ")") +
          (report.search.guards.empty() ? "" : " or a guard"),
      with_zeros, report.judgement.seeds.front(), report.judgement.seeds.back());
}

/// The judgement and what is to be deployed.
void add_judgement(const TuneReport& report, TuneRecord& r) {
  const TuneJudgement& judgement = report.judgement;
  r.verdict = {tune_headline(report.space, report.search, judgement), judgement.decision};
  r.fresh_seeds = judgement.seeds;
  for (const JudgedLoad& load : judgement.loads) {
    r.loads.push_back(load);
    for (const JudgedMetric& metric : load.metrics)
      r.judged.push_back(judged_of(report, load.load, metric));
  }
  r.worse = worse_of(judgement);
  for (const TuneJudgement& other : judgement.passed_over)
    r.passed_over.push_back(passed_of(other));
  r.no_omniscient = judgement.no_omniscient;
  r.notes = lacking_numbers(report);
  r.front = judgement.front;
  if (report.document) r.epp = report.document->text;
  r.flags = deployed_flags(report);
  const RepeatCommand command = repeat_command(report);
  r.set = command.sets;
  r.command = command.text;
  r.command_document = command.document;
  r.how = how_text(report);
}

/// The candidates as they were made; before the judgement the published one, those in the race, the
/// better first, and the others.
std::vector<std::size_t> order_of(const TuneReport& report) {
  std::vector<std::size_t> order(report.search.candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!report.judgement.loads.empty()) return order;
  const std::vector<std::size_t>& race = report.search.finalists;
  std::ranges::stable_sort(order, {}, [&race](std::size_t i) {
    return i == 0 ? -1 : std::ranges::find(race, i) - race.begin();
  });
  return order;
}

/// The race without a judgement.
void add_standing(const TuneReport& report, TuneRecord& r) {
  const TuneSearchResult& search = report.search;
  r.how =
      fmt::format("{} of {} runs of the search were made, and nothing is judged on fresh seeds.",
                  search.runs, search.budget);
  if (search.best == 0) {
    r.verdict.headline = "No candidate is ahead of your file in the race.";
    return;
  }
  std::vector<std::string> changes;
  const TuneCandidate& best = search.candidates[search.best];
  for (const std::size_t k : report.space.changed(best.choice)) {
    const Knob& knob = report.space.knobs[k];
    changes.push_back(knob.name + " = " + knob.values[best.choice[k]].text);
  }
  r.verdict.headline =
      fmt::format("Candidate {} is the best of {} in the race, not judged yet: {}.", search.best,
                  search.finalists.size(), fmt::join(changes, ", "));
}

}  // namespace

std::string TuneRecord::judged_name() const {
  return !candidate || *candidate == best ? "the best" : fmt::format("candidate {}", *candidate);
}

TuneRecord tune_record(const TuneReport& report) {
  const TuneSpace& space = report.space;
  const TuneSearchResult& search = report.search;
  TuneRecord r;
  r.tune = space.config.name;
  r.question = space.config.question;
  r.scenario = space.scenario_name;
  r.variant = space.config.variant;
  r.seed = space.seed;
  r.version = version();
  for (const TuneGoal& goal : space.goals) r.goals.push_back(goal.text);
  for (const Condition& condition : search.conditions) r.subject_to.push_back(condition.text);
  for (const MetricName& guard : search.guards) r.guards.push_back(guard.text);
  r.budget = static_cast<std::int64_t>(search.budget);
  r.search_runs = static_cast<std::int64_t>(search.runs);
  r.judgement_runs = static_cast<std::int64_t>(report.judgement.runs);
  r.candidate = static_cast<std::int64_t>(report.judgement.candidate);
  r.best = deploys_best(report) ? *r.candidate : 0;
  for (std::size_t k = 0; k < space.knobs.size(); ++k) r.knobs.push_back(knob_of(report, k));
  r.race = search.rounds;
  for (const std::size_t i : order_of(report)) r.candidates.push_back(candidate_of(report, i));
  if (report.judgement.loads.empty())
    add_standing(report, r);
  else
    add_judgement(report, r);
  return r;
}

std::string tune_csv(const TuneRecord& record) {
  std::string text = "id";
  for (const TuneRecord::Knob& knob : record.knobs) text += "," + csv_field(knob.name);
  const auto& metrics = record.candidates.front().metrics.items;
  for (const auto& [metric, mean] : metrics) text += "," + csv_field(metric);
  text += ",rounds,seeds,dropped\n";
  for (const TuneRecord::Candidate& candidate : record.candidates) {
    text += std::to_string(candidate.id);
    for (const auto& [knob, value] : candidate.values.items) text += "," + csv_field(value);
    for (std::size_t m = 0; m < metrics.size(); ++m) {
      const auto& own = candidate.metrics.items;
      const bool has = m < own.size() && own[m].second;
      text.append(",").append(has ? number_text(*own[m].second) : std::string());
    }
    text += fmt::format(",{},{},{}\n", candidate.rounds, candidate.seeds,
                        csv_field(candidate.dropped.value_or("")));
  }
  return text;
}

}  // namespace routesim::tools
