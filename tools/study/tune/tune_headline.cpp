#include "tools/study/tune/tune_headline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

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
      text += fmt::format("{} #{}{}", &member == &judged_.front.front() ? "" : ",",
                          member.candidate, member.candidate == 0 ? " (your file)" : "");
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

}  // namespace

std::string tune_headline(const TuneSpace& space, const TuneSearchResult& search,
                          const TuneJudgement& judgement) {
  const Words words(space, search, judgement);
  return words.headline() + words.others();
}

std::string gains_text(const TuneSpace& space, const JudgedLoad& load) {
  std::string text;
  for (const TuneGoal& goal : space.goals)
    text += (text.empty() ? "" : " and ") + goal.metric.text + " " + goal_gain(load, goal);
  return text;
}

std::string loss_text(const JudgedMetric& metric) {
  const Difference& d = metric.difference;
  if (d.base.mean == 0)
    return fmt::format("{} is {} instead of 0", metric.metric.text, short_number(d.changed.mean));
  return fmt::format("{} is {} % worse [{}, {}]", metric.metric.text,
                     loss_number(-metric.gain.percent), loss_number(-metric.gain.high),
                     loss_number(-metric.gain.low));
}

}  // namespace routesim::tools
