#include "tools/study/verdict/run_verdict.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "tools/render/document.h"
#include "tools/results/text_table.h"
#include "tools/study/verdict/run_view.h"
#include "tools/study/verdict/verdict_parts.h"

namespace routesim::tools {

namespace {

using Indices = std::vector<std::size_t>;

constexpr char kMayBeChance[] = ", which may be chance";

std::string percent(double share) { return fixed_text(100 * share, 1) + " %"; }

std::string capital(std::string text) {
  if (!text.empty() && text.front() >= 'a' && text.front() <= 'z')
    text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text;
}

/// The requests of a traffic class; null when there is no such class.
const StageView* find_class(const VariantView& v, const std::string& name) {
  const auto found = std::ranges::find(v.classes, name, &StageView::name);
  return found == v.classes.end() ? nullptr : &*found;
}

/// The stage of most load, the last of equal ones, of those that are held. An overloaded stage of a
/// demand leaves its queue to the next: those before it count, and without any the last one held.
std::optional<std::size_t> busiest(const VariantView& v, const Indices& stages,
                                   const std::function<bool(std::size_t)>& is_held) {
  const auto load = [&](std::size_t i) {
    return v.stages[i].rate.value_or(v.stages[i].concurrency.value_or(0));
  };
  std::optional<std::size_t> most, last;
  bool queue = false;
  for (const std::size_t i : stages) {
    const bool held = is_held(i);
    if (held) last = i;
    if (held && !queue && (!most || load(i) >= load(*most))) most = i;
    queue = queue || (!held && v.by_clock);
  }
  return most ? most : last;
}

/// The words of one contest.
class Wording {
 public:
  Wording(const PageRun& run, const Contest& contest) : run_(run), contest_(contest) {}

  bool has_winner() const {
    return !none_within_goals() && changing_lead().empty() && contest_.leaders().size() == 1;
  }

  /// Names the winner, its base, the measure and the difference. `brief` leaves the runner-up
  /// out where the base is another variant.
  std::string headline(bool brief) const {
    if (none_within_goals())
      return "No variant serves a request within the goals; the base is " +
             variant(contest_.base()).name + ".";
    const std::string leads = changing_lead();
    if (!leads.empty())
      return "No single winner by " + by().title + ": " + leads + "." + by_class();
    const Indices same = contest_.leaders();
    std::string text = same.size() > 1 ? tie(same) : win(brief);
    const std::string load = overload_of(variant(winner()));
    if (!load.empty() && same.size() == 1 &&
        contest_.reason(winner(), runner_up()) == Reason::kMeasure)
      text += " " + variant(winner()).name + " is itself overloaded " + load + ".";
    return (text.starts_with("the base ") ? capital(text) : text) + by_class();
  }

  /// The winner's gains and losses against the base, or against the runner-up where it is the base.
  /// Without a winner the best variant besides the base takes its place.
  std::vector<VerdictLine> lines() const {
    const VariantView& one = variant(compared().first);
    const VariantView& other = variant(compared().second);
    // Latencies of an overloaded stage depend on how long it lasts; those of the highest load that
    // both hold do not. The output of an overloaded server is what it can do.
    bool overload = false;
    for (const VariantView* const v : {&one, &other})
      for (const std::size_t i : reported_stages(*v)) overload = overload || !holds_stage(*v, i);
    const std::vector<std::size_t> common = common_stages({&one, &other});
    const auto both_hold = busiest(
        one, common, [&](std::size_t i) { return holds_stage(one, i) && holds_stage(other, i); });
    const auto last = busiest(one, common, [](std::size_t) { return true; });
    // Runs at other rates, or an interrupted one, compare in the stages that both have.
    const bool whole = are_whole_runs({&one, &other}, common);
    const bool late = end_late({&one, &other}, common);
    std::vector<VerdictLine> lines;
    for (const std::string_view key : {"failed_requests", "ttft.mean", "ttft.p99",
                                       "output_throughput", "itl.mean", "prefix_cache_hit_rate"}) {
      const Measure shown = measure(key);
      const bool latency = shown.unit == Unit::kSeconds;
      const bool by_stage = !whole || (overload && (latency || key == "output_throughput"));
      const std::optional<std::size_t> stage = latency ? both_hold : last;
      if ((by_stage && !stage) || (late && key == "output_throughput")) continue;
      if (std::optional<VerdictLine> l = by_stage
                                             ? line(shown, one.stages[*stage], other.stages[*stage],
                                                    " at " + stage_place(one, *stage))
                                             : line(shown, one.summary, other.summary, ""))
        lines.push_back(std::move(*l));
    }
    for (const std::string& c : compared_classes())
      for (const std::string_view key : {"failed_requests", "ttft.mean", "request_latency.mean"}) {
        std::optional<VerdictLine> l =
            line(measure(key), *find_class(one, c), *find_class(other, c), " of class " + c);
        if (l && l->better) lines.push_back(std::move(*l));
      }
    return lines;
  }

  /// All variants, best first.
  std::string ranking() const {
    if (size() < 3) return {};
    const bool by_load = std::ranges::any_of(contest_.order(), [this](std::size_t i) {
      return contest_.reason(winner(), i) == Reason::kLoad;
    });
    std::vector<std::string> places;
    for (const std::size_t i : contest_.order()) {
      const Reason reason = contest_.reason(winner(), i);
      const std::optional<double> value = contest_.value(i);
      std::string text = name(i);
      if (reason == Reason::kFailures)
        text += " fails " + percent(share_of_failures(variant(i).summary));
      if (reason == Reason::kMeasure && value) text += " " + human(*value, by().unit);
      places.push_back(std::move(text));
    }
    return std::string("Best first, by ") + (by_load ? "load, then by " : "") + by().title +
           stage_count() + ": " + listed(places) + ".";
  }

 private:
  const VariantView& variant(std::size_t i) const { return run_.variants[i]; }
  std::size_t winner() const { return contest_.winner(); }
  std::size_t runner_up() const { return contest_.order()[1]; }
  std::size_t size() const { return contest_.order().size(); }
  const Measure& by() const { return contest_.yardstick().by; }

  /// The variant that the lines are about, and the one that it is compared with.
  std::pair<std::size_t, std::size_t> compared() const {
    const std::size_t base = contest_.base();
    if (winner() != base) return {winner(), base};
    return has_winner() ? std::pair(base, runner_up()) : std::pair(runner_up(), base);
  }

  bool none_within_goals() const { return contest_.by_goals() && contest_.value(winner()) == 0.0; }

  std::string name(std::size_t i) const {
    return i == contest_.base() ? "the base " + variant(i).name : variant(i).name;
  }

  /// `the base a`, `the runner-up b`.
  std::string called(std::size_t i) const {
    return i == contest_.base() || size() == 2 ? name(i) : "the runner-up " + name(i);
  }

  std::string names(const Indices& all) const {
    std::vector<std::string> texts;
    for (const std::size_t i : all) texts.push_back(name(i));
    return joined(texts);
  }

  std::string among() const { return " among " + std::to_string(size()) + " variants"; }

  /// The servers of a variant, over time where their number changes.
  static double mean_servers_of(const VariantView& v) {
    if (v.pools.empty()) return static_cast<double>(v.servers.size());
    double servers = 0;
    for (const ServerView& pool : v.pools)
      if (const auto n = pool.values.find("mean_servers"); n != pool.values.end())
        servers += n->second.value;
    return servers;
  }

  /// A bigger fleet wins easily, so the sentence says that it is bigger.
  std::string servers(std::size_t other) const {
    const double mine = mean_servers_of(variant(winner())),
                 theirs = mean_servers_of(variant(other));
    if (mine == theirs || mine == 0 || theirs == 0) return {};
    const bool change = !variant(winner()).pools.empty() || !variant(other).pools.empty();
    return " (" + human(mine, Unit::kCount) + (mine == 1 ? " server" : " servers") +
           " instead of " + human(theirs, Unit::kCount) + (change ? " on average)" : ")");
  }

  /// Nobody wins among variants that cannot be told apart.
  std::string tie(const Indices& same) const {
    bool undecided = false;
    for (const std::size_t i : same)
      undecided = undecided || (i != winner() && contest_.apart(winner(), i) == Apart::kUndecided);
    const std::string how = (undecided ? "not distinguishable over " +
                                             std::to_string(run_.replications) + " replications in "
                                       : "within 1 % of each other in ") +
                            by().title + stage_count();
    if (same.size() == size())
      return (size() == 2
                  ? names(same) + " are "
                  : "No variant wins: all " + std::to_string(size()) + " variants, the base " +
                        variant(contest_.base()).name + " included, are ") +
             how + ".";
    std::string text = names(same) + " lead" + among() + " and are " + how;
    if (std::ranges::find(same, contest_.base()) == same.end())
      text += ". " + variant(winner()).name + " against " + name(contest_.base()) + ": " +
              by_how_much(contest_.base(), "") +
              (contest_.apart(winner(), contest_.base()) == Apart::kSlight ? kMayBeChance : "");
    return text + ".";
  }

  std::string win(bool brief) const {
    const std::size_t base = contest_.base();
    const std::size_t other = winner() == base ? runner_up() : base;
    // The runner-up may be close where the base is far behind.
    const bool slight_base = contest_.apart(winner(), other) == Apart::kSlight;
    const bool slight_next = contest_.apart(winner(), runner_up()) == Apart::kSlight;
    const bool slight = slight_base || slight_next, pair = size() == 2;
    std::string text = name(winner());
    if (slight)
      text += pair ? " is ahead of " + name(other) : " is ahead" + among();
    else
      text += pair ? " wins against " + name(other) : " wins" + among();
    text += (slight_base ? " in this one run" + std::string(kMayBeChance) + ": " : ": ") +
            by_how_much(other, pair ? "" : called(other));
    if ((!brief || slight_next) && winner() != base && runner_up() != base)
      text += also(runner_up()) + (slight_next && !slight_base ? kMayBeChance : "");
    return text + ".";
  }

  /// Says of the runner-up what by_how_much() says of the base: `, and 2 times sooner than with b
  /// (2 s)`.
  std::string also(std::size_t other) const {
    const Reason reason = contest_.reason(winner(), other);
    const std::optional<double> a = contest_.value(winner()), b = contest_.value(other);
    if (reason != contest_.reason(winner(), contest_.base()) ||
        (reason == Reason::kMeasure && (!a || !b || *a == 0 || *b == 0)))
      return ". " + capital(by_how_much(other, called(other)));
    if (reason == Reason::kFailures)
      return ", " + called(other) + " " + percent(share_of_failures(variant(other).summary));
    if (reason == Reason::kLoad)
      return (variant(other).capacity ? ", " + called(other) + " " + per_second(other)
                                      : "; " + called(other) + " " + held(other)) +
             servers(other);
    const double most = std::max(*a, *b), least = std::min(*a, *b);
    const bool less = by().less_is_better, many = most >= 1.5 * least;
    const std::string change =
        many ? times(most, least) : percent(less ? 1 - least / most : most / least - 1);
    return ", and " + change +
           (less   ? " sooner than with "
            : many ? " as many as "
                   : " more than ") +
           called(other) + " (" + human(*b, by().unit) + ")";
  }

  /// `a leads up to 15 req/s, the base b from 20 req/s on`; empty where one variant leads
  /// throughout.
  std::string changing_lead() const {
    struct Span {
      std::size_t who, first, last, stages;
    };
    std::vector<Span> spans;
    std::optional<std::size_t> leader;
    for (const std::size_t i : in_load_order(variant(winner()), contest_.contested_stages())) {
      leader = contest_.leader_at(i, leader);
      if (!leader) continue;
      if (spans.empty() || spans.back().who != *leader) spans.push_back({*leader, i, i, 0});
      // A stage where it is not clearly ahead may lie inside its span, but does not end it.
      if (contest_.leader_at(i, std::nullopt) == leader) spans.back().last = i;
      ++spans.back().stages;
    }
    if (spans.size() < 2) return {};
    const auto place = [this](std::size_t i) { return stage_place(variant(winner()), i); };
    constexpr std::size_t kMostSpans = 3;
    std::string text;
    if (spans.size() > kMostSpans) {
      for (const std::size_t v : contest_.order()) {
        std::size_t stages = 0;
        for (const Span& span : spans) stages += span.who == v ? span.stages : 0;
        if (stages > 0)
          text +=
              (text.empty() ? "" : ", ") + name(v) + " in " + std::to_string(stages) + " stages";
      }
      return text;
    }
    for (std::size_t s = 0; s < spans.size(); ++s) {
      text += (s == 0 ? "" : ", ") + name(spans[s].who);
      if (s == 0)
        text += " leads up to " + place(spans[s].last);
      else if (s + 1 == spans.size())
        text += " from " + place(spans[s].first) + " on";
      else if (spans[s].stages == 1)
        text += " at " + place(spans[s].first);
      else
        text += " from " + place(spans[s].first) + " to " + place(spans[s].last);
    }
    return text;
  }

  /// The traffic classes of which both have all requests.
  std::vector<std::string> compared_classes() const {
    const VariantView& one = variant(compared().first);
    const VariantView& other = variant(compared().second);
    std::vector<std::string> names;
    if (!are_whole_runs({&one, &other}, common_stages({&one, &other}))) return names;
    for (const StageView& requests : one.classes)
      if (find_class(other, requests.name) != nullptr) names.push_back(requests.name);
    return names;
  }

  /// Differences that the mean hides: ` Traffic classes differ: chat finishes sooner with b.`
  /// Nothing where the winner is the faster one for each class.
  std::string by_class() const {
    const auto [one, other] = compared();
    std::vector<std::string> texts;
    bool hidden = !has_winner();
    for (const std::string& c : compared_classes()) {
      const StageView& x = *find_class(variant(one), c);
      const StageView& y = *find_class(variant(other), c);
      for (const auto& [key, what] :
           {std::pair("ttft.mean", "gets its first token"), {"request_latency.mean", "finishes"}}) {
        const Datum *a = x.find(key), *b = y.find(key);
        if (a == nullptr || b == nullptr || apart(x, y, measure(key)) != Apart::kClear) continue;
        const bool better = a->value < b->value;
        hidden = hidden || !better;
        texts.push_back(c + " " + what + " sooner with " + name(better ? one : other));
        break;
      }
    }
    return texts.empty() || !hidden ? "" : " Traffic classes differ: " + joined(texts) + ".";
  }

  /// `called` names the other variant where the sentence does not do so before.
  std::string by_how_much(std::size_t other, const std::string& called) const {
    const std::string& mine = variant(winner()).name;
    switch (contest_.reason(winner(), other)) {
      case Reason::kFailures:
        return name(other) + " fails " + percent(share_of_failures(variant(other).summary)) +
               " of its requests, " + mine + " " +
               percent(share_of_failures(variant(winner()).summary));
      case Reason::kLoad:
        if (variant(winner()).capacity && variant(other).capacity)
          return "it sustains " + per_second(winner()) + " of this load, " + this->called(other) +
                 " " + per_second(other) + servers(other);
        return "it " + held(winner()) + "; " + name(other) + " " + held(other) + servers(other);
      case Reason::kMeasure:
        break;
    }
    const std::optional<double> a = contest_.value(winner());
    const std::optional<double> b = contest_.value(other);
    if (!a) return "no request succeeds";
    if (!b) return "no request of " + name(other) + " succeeds";
    const std::string values = human(*a, by().unit) + " instead of " + human(*b, by().unit);
    if (by().less_is_better)
      return "its requests finish " + (*b >= 1.5 * *a ? times(*b, *a) : percent(1 - *a / *b)) +
             " sooner" + (called.empty() ? "" : " than with " + called) + stage_count() +
             ", after " + values + " on average" + servers(other);
    const std::string what = contest_.by_goals() ? "requests within the goals" : "output tokens";
    if (*b == 0)
      return "it delivers " + what + stage_count() + ", " + human(*a, by().unit) + ", and " +
             name(other) + " none" + servers(other);
    const bool many = *a >= 1.5 * *b;
    return "it delivers " + (many ? times(*a, *b) + " as many " : percent(*a / *b - 1) + " more ") +
           what + (called.empty() ? "" : (many ? " as " : " than ") + called) + stage_count() +
           ", " + values + servers(other);
  }

  std::string held(std::size_t i) const {
    const Knee knee = knee_of({&variant(i)}, variant(i).name);
    return knee.text;
  }

  /// What it sustains.
  std::string per_second(std::size_t i) const {
    return human(*variant(i).capacity->rate, Unit::kRequestsPerSecond);
  }

  /// ` in the 3 stages that both hold`; empty where the whole run counts.
  std::string stage_count() const {
    const std::size_t n = contest_.yardstick().stages.size();
    if (n == 0) return {};
    return (n == 1 ? " in the one stage" : " in the " + std::to_string(n) + " stages") +
           (contest_.yardstick().held ? " that they hold" : " that they share");
  }

  /// `first token, mean: 213 ms instead of 55.5 s with the base a (-99.6 %)`.
  std::optional<VerdictLine> line(const Measure& shown, const StageView& x, const StageView& y,
                                  const std::string& place) const {
    const auto [one, other] = compared();
    const Datum* a = x.find(shown.key);
    const Datum* b = y.find(shown.key);
    if (a == nullptr || b == nullptr) return std::nullopt;
    const Apart how = apart(x, y, shown);
    if (how == Apart::kEqual || how == Apart::kUndecided) return std::nullopt;
    const bool slight = how == Apart::kSlight;
    VerdictLine line{
        .text = shown.title + place + ": " + human(a->value, shown.unit) +
                (has_winner() ? "" : " with " + name(one)) + " instead of " +
                human(b->value, shown.unit) + " with " + called(other) +
                (b->value == 0 ? "" : " (" + change_text(b->value, a->value, shown.unit) + ")") +
                (slight ? kMayBeChance : "")};
    line.better =
        slight ? std::nullopt : std::optional((a->value < b->value) == shown.less_is_better);
    return line;
  }

  const PageRun& run_;
  const Contest& contest_;
};

/// A variant without another one to compare it with: what it holds.
std::string alone(const VariantView& v) {
  const StageView* shown = &v.summary;
  std::string place;
  const std::vector<std::size_t> stages = reported_stages(v);
  const bool whole = are_whole_runs({&v}, stages);
  std::optional<std::size_t> held;
  if (!overload_of(v).empty() || !whole)
    held = busiest(v, stages, [&](std::size_t i) {
      return v.stages[i].find("ttft.mean") != nullptr && !v.stages[i].overloaded;
    });
  if (!held && !whole && !stages.empty() && v.stages[stages.front()].find("ttft.mean") != nullptr)
    held = stages.front();
  if (held) {
    shown = &v.stages[*held];
    place = " at " + stage_place(v, *held);
  }
  const Datum* first = shown->find("ttft.mean");
  const Datum* p99 = shown->find("ttft.p99");
  const Datum* output = shown->find("output_throughput");
  const Datum* share = shown->find("goodput");
  std::string text = v.name + " answers no request";
  if (first != nullptr) {
    text = v.name + place + " answers with a first token after " +
           human(first->value, Unit::kSeconds) + " on average";
    if (p99 != nullptr) text += " (p99 " + human(p99->value, Unit::kSeconds) + ")";
  }
  if (output != nullptr && first == nullptr) text = v.name + place;
  if (output != nullptr)
    text += std::string(first != nullptr ? " and" : "") + " delivers " +
            human(output->value, Unit::kTokensPerSecond);
  if (share != nullptr)
    text += ", " + human(share->value, Unit::kRatio) + " of the requests within the goals";
  text += ".";
  if (const std::string load = overload_of(v); !load.empty())
    text += " It is overloaded " + load + ".";
  if (const double failed = share_of_failures(v.summary); failed > 0.01)
    text += " " + human(failed, Unit::kRatio) + " of its requests fail.";
  return text;
}

/// The load that a variant faces, as text: equal texts are equal loads.
std::string load_of(const VariantView& v) {
  std::string text;
  for (const auto& [path, value] : v.resolved)
    if (path.starts_with("workload.")) text.append(path).append("=").append(value).append("\n");
  return text;
}

/// The variants by the load they face, in their order.
std::vector<Indices> by_load(const PageRun& run) {
  std::vector<std::pair<std::string, Indices>> groups;
  for (std::size_t i = 0; i < run.variants.size(); ++i)
    entry_of(groups, load_of(run.variants[i])).push_back(i);
  std::vector<Indices> all;
  for (auto& [load, members] : groups) all.push_back(std::move(members));
  return all;
}

/// Whether a fixed number of requests is in flight in each stage.
bool is_closed_loop(const VariantView& v) {
  const std::vector<std::size_t> stages = reported_stages(v);
  return !stages.empty() && std::ranges::all_of(stages, [&](std::size_t i) {
    return v.stages[i].concurrency.value_or(0) > 0 && v.stages[i].rate.value_or(0) <= 0;
  });
}

/// Adds, for a scan of fleets, the fewest servers with which each policy holds the load.
void add_fewest_servers(const PageRun& run, const Indices& members, Verdict& verdict) {
  std::vector<std::string> told;
  const VariantView& first = run.variants[members.front()];
  if (!first.fleet_of.empty() && is_closed_loop(first)) {
    verdict.lines.push_back(
        {.text = "a closed loop overloads no fleet, because it waits for its answers: no number of "
                 "servers is too small, so compare their latencies and output",
         .better = std::nullopt});
    return;
  }
  for (const std::size_t i : members) {
    const std::string& policy = run.variants[i].fleet_of;
    if (policy.empty() || std::ranges::find(told, policy) != told.end()) continue;
    told.push_back(policy);
    const VariantView* fewest = nullptr;  // That holds all, and
    const VariantView* most = nullptr;    // the largest that does not.
    for (const std::size_t m : members) {
      const VariantView& v = run.variants[m];
      if (v.fleet_of != policy) continue;
      const VariantView*& best = holds_all(v) ? fewest : most;
      const bool is_less = best != nullptr && v.servers.size() < best->servers.size();
      if (best == nullptr || is_less == holds_all(v)) best = &v;
    }
    std::string limit;
    if (most != nullptr)
      limit = most->name +
              (overload_of(*most).empty() && share_of_failures(most->summary) > 0
                   ? " fails " + percent(share_of_failures(most->summary)) + " of its requests"
                   : " " + knee_of({most}, most->name).text);
    if (fewest == nullptr)
      verdict.lines.push_back(
          {.text = "no size of " + policy + " that was tried holds the load: " + limit,
           .better = false});
    else
      verdict.lines.push_back({.text = "the fewest servers that hold the load: " + fewest->name +
                                       (limit.empty() ? "" : " (" + limit + ")"),
                               .better = true});
  }
}

/// `213 of 240 requests are longer than max_model_len`, of the first variant that cuts its load;
/// empty where none does.
std::string cut_text(const PageRun& run, const Indices& members) {
  for (const std::size_t i : members) {
    const StageView& all = run.variants[i].summary;
    if (is_cut(all))
      return human(too_long(all), Unit::kCount) + " of " +
             human(all.find("requests")->value, Unit::kCount) +
             " requests are longer than max_model_len";
  }
  return {};
}

void compare(const PageRun& run, const Indices& members, bool brief, Verdict& verdict) {
  if (const std::string cut = cut_text(run, members); !cut.empty()) {
    verdict.headline = cut + (members.size() > 1 ? ": no comparison." : ".");
    if (members.size() == 1) verdict.headline += " " + alone(run.variants[members.front()]);
    return;
  }
  if (members.size() == 1) {
    verdict.headline = alone(run.variants[members.front()]);
    return;
  }
  const Contest contest(run, members);
  const Wording wording(run, contest);
  verdict.headline = wording.headline(brief);
  verdict.lines = wording.lines();
  verdict.ranking = wording.ranking();
  add_fewest_servers(run, members, verdict);
  verdict.close = contest.is_close();
  if (wording.has_winner()) verdict.winner = run.variants[contest.winner()].name;
  if (contest.by_goals()) verdict.goals = goals_text(run.variants[contest.winner()]);
}

/// The variant that a scan changes the rate of, or the variant itself.
const std::string& family(const VariantView& v) { return v.scan_of.empty() ? v.name : v.scan_of; }

/// Several loads: each has a contest of its own, and a line.
void compare_loads(const PageRun& run, const std::vector<Indices>& groups, Verdict& verdict) {
  std::vector<std::string> winners, bases;  // One for each load that several variants face.
  for (const Indices& members : groups) {
    Verdict one;
    compare(run, members, true, one);
    VerdictLine line{.text = one.headline, .better = std::nullopt};
    const auto winner = std::ranges::find(run.variants, one.winner, &VariantView::name);
    if (members.size() > 1) {
      bases.push_back(family(run.variants[members.front()]));
      winners.push_back(one.winner.empty() ? "" : family(*winner));
      if (!one.winner.empty()) line.better = &*winner != &run.variants[members.front()];
    }
    verdict.lines.push_back(std::move(line));
    if (verdict.goals.empty()) verdict.goals = one.goals;
    verdict.close = verdict.close || one.close;
  }
  const auto are_same = [](const std::vector<std::string>& names) {
    return std::ranges::adjacent_find(names, std::not_equal_to<>()) == names.end();
  };
  if (winners.empty()) {
    for (const Knee& knee : verdict.knees)
      verdict.headline += (verdict.headline.empty() ? "" : "; ") + knee.variant + " " + knee.text;
    verdict.headline = verdict.headline.empty() ? "The " + std::to_string(groups.size()) +
                                                      " loads have no variant in common."
                                                : verdict.headline + ".";
    return;
  }
  const std::string loads =
      (winners.size() == 1 ? "the one load"
                           : "each of the " + std::to_string(winners.size()) + " loads") +
      (winners.size() == groups.size() ? "" : " that several variants face");
  const std::string base = are_same(bases) ? bases.front() : "";
  if (are_same(winners) && !winners.front().empty()) {
    verdict.winner = winners.front();
    verdict.headline = verdict.winner +
                       (verdict.winner == base ? ", the base, wins at "
                        : base.empty()         ? " wins at "
                                               : " wins against the base " + base + " at ") +
                       loads + ".";
  } else {
    verdict.headline = "No variant wins at " + loads +
                       "; each is compared with those that face the same load." +
                       (base.empty() ? "" : " The base is " + base + ".");
  }
}

std::string trust_sentence(const PageRun& run) {
  const std::string rests =
      rests_on(run) + idle_servers(run) + measured_beside(run) + not_judged(run);
  if (run.replications > 1)
    return "Over " + std::to_string(run.replications) +
           " replications; intervals hold the true mean in 95 of 100 such experiments." + rests;
  return "From one run of seed " + run.seed +
         (run.variants.size() > 1 ? ". Variants with the same load face the same requests; small "
                                    "differences may still be chance."
                                  : ". Another seed draws other requests.") +
         rests;
}

/// The stages of an interrupted run that ended, and the variants that have some.
PageRun ended_part(const PageRun& run) {
  PageRun ended = run;
  std::erase_if(ended.variants, [](const VariantView& v) {
    return reported_stages(v).empty() && std::ranges::any_of(v.stages, &StageView::unfinished);
  });
  return ended;
}

/// The verdict on stages that ended.
Verdict judge_ended(const PageRun& run) {
  Verdict verdict;
  verdict.knees = knees_of(run);
  const std::vector<Indices> groups = by_load(run);
  if (groups.size() == 1)
    compare(run, groups.front(), false, verdict);
  else if (!groups.empty())
    compare_loads(run, groups, verdict);
  for (VerdictLine& line : missed_lines(run)) verdict.lines.push_back(std::move(line));
  for (const VariantView& v : run.variants)
    if (v.timeline && v.timeline->goals && verdict.goals.empty()) verdict.goals = goals_text(v);
  for (const VariantView& v : run.variants)
    if (const std::string load = overload_of(v); !load.empty())
      verdict.overload += (verdict.overload.empty() ? "" : "; ") + v.name + " " + load;
  if (!verdict.overload.empty())
    verdict.overload =
        "Overloaded, so that latencies depend on how long a stage lasts: " + verdict.overload + ".";
  if (!verdict.goals.empty()) verdict.goals = "Goodput counts requests with " + verdict.goals + ".";
  verdict.trust = trust_sentence(run);
  return verdict;
}

}  // namespace

Verdict verdict_of(const PageRun& run) {
  if (run.variants.empty()) {
    Verdict none;
    none.headline = "No variant was run.";
    return none;
  }
  std::ptrdiff_t unfinished = 0;
  for (const VariantView& v : run.variants)
    unfinished += std::ranges::count_if(
        v.stages, [](const StageView& s) { return s.reported && s.unfinished; });
  const bool ran = std::ranges::any_of(
      run.variants, [](const VariantView& v) { return v.summary.number("requests", 0) > 0; });
  Verdict verdict;
  if (ran)
    verdict = judge_ended(unfinished > 0 ? ended_part(run) : run);
  else if (!run.interrupted)
    verdict.headline = "No stage had a request, so there is nothing to compare.";
  verdict.base = run.variants.front().name;
  for (const Judgement& e : run.expectations)
    if (e.decision != Decision::kHolds)
      verdict.failed.push_back(decision_text(e.decision) + std::string(": ") + title_of(e) +
                               ": found " + e.detail);
  if (run.interrupted) {
    std::string partial = "The run was interrupted, so its numbers are partial";
    if (unfinished > 0)
      partial += "; " + std::to_string(unfinished) +
                 (unfinished == 1 ? " stage did not end and is" : " stages did not end and are") +
                 " left out";
    verdict.headline =
        partial + ". " + (verdict.headline.empty() ? "No stage ended." : verdict.headline);
  }
  if (ran) verdict.next = next_steps(run, verdict);
  return verdict;
}

VerdictRecord verdict_record(const Verdict& verdict) {
  VerdictRecord out;
  out.headline = plain_spaces(verdict.headline);
  out.base = verdict.base;
  if (!verdict.winner.empty()) out.winner = verdict.winner;
  out.close = verdict.close;
  for (const std::string& text : verdict.failed) out.failed.push_back(plain_spaces(text));
  for (const VerdictLine& line : verdict.lines)
    out.lines.push_back({.text = plain_spaces(line.text), .better = line.better});
  out.ranking = plain_spaces(verdict.ranking);
  for (const Knee& knee : verdict.knees)
    out.knees.push_back({.variant = knee.variant,
                         .text = plain_spaces(knee.text),
                         .last_held = knee.last_held,
                         .first_overloaded = knee.first_overloaded});
  out.overload = plain_spaces(verdict.overload);
  out.goals = plain_spaces(verdict.goals);
  out.trust = plain_spaces(verdict.trust);
  for (const Step& step : verdict.next) out.next.push_back(plain_spaces(step.text()));
  return out;
}

}  // namespace routesim::tools
