#include "tools/render/run_verdict.h"

#include <algorithm>
#include <cmath>

#include "tools/render/contest.h"
#include "tools/render/verdict_parts.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

using Indices = std::vector<std::size_t>;

std::string percent(double share) { return fixed_text(100 * share, 1) + " %"; }

std::string capital(std::string text) {
  if (!text.empty() && text.front() >= 'a' && text.front() <= 'z')
    text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text;
}

/// The words of one contest.
class Wording {
 public:
  Wording(const PageRun& run, const Contest& contest) : run_(run), contest_(contest) {}

  bool has_winner() const;
  /// Who wins, against which base, by what measure and by how much.
  std::string headline() const;
  /// What the winner does better and worse than the base, or as the base than the runner-up.
  std::vector<VerdictLine> lines() const;
  /// All variants, best first.
  std::string ranking() const;

 private:
  const VariantView& variant(std::size_t i) const { return run_.variants[i]; }
  std::size_t winner() const { return contest_.winner(); }
  std::size_t runner_up() const { return contest_.order()[1]; }
  std::size_t size() const { return contest_.order().size(); }
  const Shown& by() const { return contest_.yardstick().by; }

  bool none_within_goals() const;
  std::string name(std::size_t i) const;
  std::string called(std::size_t i) const;
  std::string names(const Indices& all) const;
  std::string among() const;
  std::string servers(std::size_t other) const;
  std::string tie(const Indices& same) const;
  std::string win() const;
  std::string changing_lead() const;
  /// `called` names the other variant where the sentence does not do so before.
  std::string by_how_much(std::size_t other, const std::string& called) const;
  std::string held(std::size_t i) const;
  std::string stage_count() const;
  std::optional<VerdictLine> line(const Shown& shown, std::size_t other,
                                  std::optional<std::size_t> stage) const;

  const PageRun& run_;
  const Contest& contest_;
};

std::string Wording::name(std::size_t i) const {
  return i == contest_.base() ? "the base " + variant(i).name : variant(i).name;
}

std::string Wording::names(const Indices& all) const {
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i)
    text += (i == 0 ? "" : i + 1 == all.size() ? " and " : ", ") + name(all[i]);
  return text;
}

/// `the base a`, `the runner-up b`.
std::string Wording::called(std::size_t i) const {
  return i == contest_.base() ? name(i) : "the runner-up " + name(i);
}

std::string Wording::among() const { return " among " + std::to_string(size()) + " variants"; }

/// A bigger fleet wins easily, so the sentence says that it is bigger.
std::string Wording::servers(std::size_t other) const {
  const std::size_t mine = variant(winner()).servers.size();
  const std::size_t theirs = variant(other).servers.size();
  if (mine == theirs || mine == 0 || theirs == 0) return {};
  return " (" + std::to_string(mine) + " servers instead of " + std::to_string(theirs) + ")";
}

/// ` in the 3 stages that both hold`; empty where the whole run counts.
std::string Wording::stage_count() const {
  const std::size_t n = contest_.yardstick().stages.size();
  if (n == 0) return {};
  return n == 1 ? " in the one stage that they hold"
                : " in the " + std::to_string(n) + " stages that they hold";
}

std::string Wording::held(std::size_t i) const {
  const Knee knee = knee_of({&variant(i)}, variant(i).name);
  return knee.text;
}

std::string Wording::by_how_much(std::size_t other, const std::string& called) const {
  const std::string& mine = variant(winner()).name;
  switch (contest_.reason(winner(), other)) {
    case Reason::kFailures:
      return name(other) + " fails " + percent(share_of_failures(variant(other))) +
             " of its requests, " + mine + " " + percent(share_of_failures(variant(winner())));
    case Reason::kLoad:
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
           " sooner" + (called.empty() ? "" : " than with " + called) + stage_count() + ", after " +
           values + " on average" + servers(other);
  const bool many = *b > 0 && *a >= 1.5 * *b;
  const std::string more = many ? times(*a, *b) + " as many " : percent(*a / *b - 1) + " more ";
  return "it delivers " + (*b > 0 ? more : "") +
         (contest_.by_goals() ? "requests within the goals" : "output tokens") +
         (called.empty() ? "" : (many ? " as " : " than ") + called) + ", " + values +
         servers(other);
}

/// Nobody wins among variants that cannot be told apart.
std::string Wording::tie(const Indices& same) const {
  bool undecided = false;
  for (const std::size_t i : same)
    undecided = undecided || (i != winner() && contest_.apart(winner(), i) == Apart::kUndecided);
  const std::string how = (undecided ? "not distinguishable over " +
                                           std::to_string(run_.replications) + " replications in "
                                     : "within 1 % of each other in ") +
                          std::string(by().title) + stage_count();
  if (same.size() == size())
    return (size() == 2
                ? names(same) + " are "
                : "No variant wins: all " + std::to_string(size()) + " variants, the base " +
                      variant(contest_.base()).name + " included, are ") +
           how + ".";
  std::string text = names(same) + " lead" + among() + " and are " + how;
  if (std::ranges::find(same, contest_.base()) == same.end())
    text += "; of " + variant(winner()).name + ": " +
            by_how_much(contest_.base(), name(contest_.base()));
  return text + ".";
}

std::string Wording::win() const {
  const std::size_t base = contest_.base();
  const std::size_t other = winner() == base ? runner_up() : base;
  const bool slight = contest_.apart(winner(), other) == Apart::kSlight ||
                      contest_.apart(winner(), runner_up()) == Apart::kSlight;
  const bool pair = size() == 2;
  std::string text = name(winner());
  if (slight)
    text += pair ? " is ahead of " + name(other) : " is ahead" + among();
  else
    text += pair ? " wins against " + name(other) : " wins" + among();
  text += (slight ? " in this one run, which may be chance: " : ": ") +
          by_how_much(other, pair ? "" : called(other));
  if (winner() != base && runner_up() != base)
    text += ". " + capital(by_how_much(runner_up(), called(runner_up())));
  return text + ".";
}

/// `a up to 15 req/s, the base b from 20 req/s on`; empty where one variant leads throughout.
std::string Wording::changing_lead() const {
  struct Span {
    std::size_t who, first, last;
  };
  std::vector<Span> spans;
  std::optional<std::size_t> leader;
  for (const std::size_t i : contest_.contested_stages()) {
    leader = contest_.leader_at(i, leader);
    if (!leader) continue;
    if (spans.empty() || spans.back().who != *leader) spans.push_back({*leader, i, i});
    spans.back().last = i;
  }
  if (spans.size() < 2) return {};
  const auto place = [this](std::size_t i) { return stage_place(variant(winner()), i); };
  constexpr std::size_t kMostSpans = 3;
  std::string text;
  if (spans.size() > kMostSpans) {
    for (const std::size_t v : contest_.order()) {
      std::size_t stages = 0;
      std::optional<std::size_t> leads;
      for (const std::size_t i : contest_.contested_stages())
        stages += (leads = contest_.leader_at(i, leads)) == v ? 1 : 0;
      if (stages > 0)
        text += (text.empty() ? "" : ", ") + name(v) + " in " + std::to_string(stages) + " stages";
    }
  }
  for (std::size_t s = 0; s < spans.size() && spans.size() <= kMostSpans; ++s) {
    text += (s == 0 ? "" : ", ") + name(spans[s].who);
    if (s == 0)
      text += " leads up to " + place(spans[s].last);
    else if (s + 1 == spans.size())
      text += " from " + place(spans[s].first) + " on";
    else
      text += " from " + place(spans[s].first) + " to " + place(spans[s].last);
  }
  return text;
}

bool Wording::none_within_goals() const {
  return contest_.by_goals() && contest_.value(winner()) == 0.0;
}

bool Wording::has_winner() const {
  return !none_within_goals() && changing_lead().empty() && contest_.leaders().size() == 1;
}

std::string Wording::headline() const {
  if (none_within_goals())
    return "No variant serves a request within the goals; the base is " +
           variant(contest_.base()).name + ".";
  const std::string leads = changing_lead();
  if (!leads.empty()) return "No single winner by " + std::string(by().title) + ": " + leads + ".";
  const Indices same = contest_.leaders();
  std::string text = same.size() > 1 ? tie(same) : win();
  const std::string load = overload_of(variant(winner()));
  if (!load.empty() && same.size() == 1 &&
      contest_.reason(winner(), runner_up()) == Reason::kMeasure)
    text += " " + variant(winner()).name + " is itself overloaded " + load + ".";
  return text.starts_with("the base ") ? capital(text) : text;
}

/// `first token, mean: 213 ms instead of 55.5 s with the base a (-99.6 %)`.
std::optional<VerdictLine> Wording::line(const Shown& shown, std::size_t other,
                                         std::optional<std::size_t> stage) const {
  const StageView& x = stage ? variant(winner()).stages[*stage] : variant(winner()).summary;
  const StageView& y = stage ? variant(other).stages[*stage] : variant(other).summary;
  const Datum* a = x.find(shown.key);
  const Datum* b = y.find(shown.key);
  if (a == nullptr || b == nullptr) return std::nullopt;
  const Apart how = apart(x, y, shown);
  if (how == Apart::kEqual || how == Apart::kUndecided) return std::nullopt;
  const std::string place = stage ? " at " + stage_place(variant(winner()), *stage) : "";
  return VerdictLine{
      .text = std::string(shown.title) + place + ": " + human(a->value, shown.unit) +
              " instead of " + human(b->value, shown.unit) + " with " + called(other) +
              (b->value == 0 ? "" : " (" + change_text(b->value, a->value, shown.unit) + ")"),
      .better = (a->value < b->value) == shown.less_is_better};
}

std::vector<VerdictLine> Wording::lines() const {
  const std::size_t other = winner() == contest_.base() ? runner_up() : contest_.base();
  // Latencies of an overloaded stage depend on how long it lasts; those of the last stage that both
  // hold do not. The output of an overloaded server is what it can do.
  std::optional<std::size_t> both_hold, last;
  bool overload = false;
  for (const std::size_t i : reported_stages(variant(other)))
    overload = overload || variant(other).stages[i].overloaded;
  for (const std::size_t i : reported_stages(variant(winner())))
    overload = overload || variant(winner()).stages[i].overloaded;
  for (const std::size_t i : common_stages({&variant(winner()), &variant(other)})) {
    const bool healthy =
        !variant(winner()).stages[i].overloaded && !variant(other).stages[i].overloaded;
    if (healthy) both_hold = i;
    last = i;
  }
  std::vector<VerdictLine> lines;
  for (const std::string_view key :
       {"failures", "ttft.mean", "ttft.p99", "output_throughput", "itl.mean", "hit_ratio"})
    for (const Shown& shown : key_measures()) {
      if (shown.key != key) continue;
      const bool latency = shown.unit == Unit::kSeconds;
      std::optional<std::size_t> stage;
      if (overload && latency && !both_hold) continue;
      if (overload && latency) stage = both_hold;
      if (overload && key == "output_throughput" && !last) continue;
      if (overload && key == "output_throughput") stage = last;
      if (std::optional<VerdictLine> l = line(shown, other, stage)) lines.push_back(std::move(*l));
    }
  return lines;
}

std::string Wording::ranking() const {
  if (size() < 3) return {};
  const bool by_load = std::ranges::any_of(contest_.order(), [this](std::size_t i) {
    return contest_.reason(winner(), i) == Reason::kLoad;
  });
  std::vector<std::string> places;
  for (const std::size_t i : contest_.order()) {
    const Reason reason = contest_.reason(winner(), i);
    const std::optional<double> value = contest_.value(i);
    const Knee knee = knee_of({&variant(i)}, variant(i).name);
    std::string text = name(i);
    if (reason == Reason::kFailures)
      text += " fails " + percent(share_of_failures(variant(i)));
    else if (by_load)
      text += " " + (knee.last_held ? "holds " + human(*knee.last_held, Unit::kRequestsPerSecond)
                                    : knee.text);
    if (reason == Reason::kMeasure && value)
      text += (by_load ? " with " : " ") + human(*value, by().unit);
    places.push_back(std::move(text));
  }
  return std::string("Best first, by ") + (by_load ? "load, then by " : "") +
         std::string(by().title) + stage_count() + ": " + listed(places) + ".";
}

/// A variant without another one to compare it with: what it holds.
std::string alone(const VariantView& v) {
  const StageView* shown = &v.summary;
  std::string place;
  if (!overload_of(v).empty()) {
    for (const std::size_t i : reported_stages(v))
      if (!v.stages[i].overloaded) {
        shown = &v.stages[i];
        place = " at " + stage_place(v, i);
      }
  }
  const Datum* first = shown->find("ttft.mean");
  const Datum* p99 = shown->find("ttft.p99");
  const Datum* output = shown->find("output_throughput");
  const Datum* share = shown->find("goodput_percentage");
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
    text += ", " + human(share->value / 100, Unit::kRatio) + " of the requests within the goals";
  text += ".";
  if (const std::string load = overload_of(v); !load.empty())
    text += " It is overloaded " + load + ".";
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
  for (std::size_t i = 0; i < run.variants.size(); ++i) {
    const std::string load = load_of(run.variants[i]);
    auto group = std::ranges::find(groups, load, &std::pair<std::string, Indices>::first);
    if (group == groups.end()) group = groups.insert(group, {load, {}});
    group->second.push_back(i);
  }
  std::vector<Indices> all;
  for (auto& [load, members] : groups) all.push_back(std::move(members));
  return all;
}

/// Whether the servers hold every stage, as far as the run shows.
bool holds_all(const VariantView& v) { return overload_of(v).empty() && share_of_failures(v) == 0; }

/// Adds, for a scan of fleets, the fewest servers with which each policy holds the load.
void add_fewest_servers(const PageRun& run, const Indices& members, Verdict& verdict) {
  std::vector<std::string> told;
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
      limit = most->name + (overload_of(*most).empty()
                                ? " fails " + percent(share_of_failures(*most)) + " of its requests"
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

void compare(const PageRun& run, const Indices& members, Verdict& verdict) {
  if (members.size() == 1) {
    verdict.headline = alone(run.variants[members.front()]);
    return;
  }
  const Contest contest(run, members);
  const Wording wording(run, contest);
  verdict.headline = wording.headline();
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
  std::string leads;
  std::vector<std::string> winners;
  bool contested = false;
  for (const Indices& members : groups) {
    Verdict one;
    compare(run, members, one);
    if (members.size() > 1) {
      contested = true;
      const Contest contest(run, members);
      const Indices same = contest.leaders();
      const VariantView& winner = run.variants[contest.winner()];
      winners.push_back(same.size() == 1 ? family(winner) : "");
      verdict.lines.push_back({.text = one.headline, .better = contest.winner() != contest.base()});
    } else {
      verdict.lines.push_back({.text = one.headline, .better = true});
    }
    if (verdict.goals.empty()) verdict.goals = one.goals;
    verdict.close = verdict.close || one.close;
  }
  const std::string loads = std::to_string(groups.size()) + " loads";
  const std::string base = family(run.variants.front());
  if (!contested) {
    for (const Knee& knee : verdict.knees)
      verdict.headline += (verdict.headline.empty() ? "" : "; ") + knee.variant + " " + knee.text;
    verdict.headline = verdict.headline.empty() ? "The " + loads + " have no variant in common."
                                                : verdict.headline + ".";
  } else if (std::ranges::adjacent_find(winners, std::not_equal_to<>()) == winners.end() &&
             !winners.front().empty()) {
    verdict.headline =
        winners.front() +
        (winners.front() == base ? ", the base, wins at each of the "
                                 : " wins against the base " + base + " at each of the ") +
        loads + ".";
    verdict.winner = winners.front();
  } else {
    verdict.headline = "No variant wins at each of the " + loads +
                       "; each is compared with those that face the same load. The base is " +
                       base + ".";
  }
}

std::string trust_of(const PageRun& run) {
  const std::string rests = rests_on(run);
  if (run.replications > 1)
    return "Over " + std::to_string(run.replications) +
           " replications; intervals hold the true mean in 95 of 100 such experiments." + rests;
  return "From one run of seed " + run.seed +
         (run.variants.size() > 1 ? ". Variants with the same load face the same requests; small "
                                    "differences may still be chance."
                                  : ". Another seed draws other requests.") +
         rests;
}

}  // namespace

const std::vector<Shown>& key_measures() {
  static const std::vector<Shown> kMeasures = {
      {"requests", "requests", "", Unit::kCount, false},
      {"failures", "failures", "", Unit::kCount, true},
      {"goodput", "within goals, req/s", "", Unit::kRequestsPerSecond, false},
      {"output_throughput", "output, tokens/s", "", Unit::kTokensPerSecond, false},
      {"request_throughput", "requests/s answered", "", Unit::kRequestsPerSecond, false},
      {"ttft.mean", "first token, mean", "", Unit::kSeconds, true},
      {"ttft.p90", "first token, p90", "", Unit::kSeconds, true},
      {"ttft.p99", "first token, p99", "", Unit::kSeconds, true},
      {"itl.mean", "gap between tokens, mean", "", Unit::kSeconds, true},
      {"itl.p99", "gap between tokens, p99", "", Unit::kSeconds, true},
      {"tpot.mean", "time per output token, mean", "", Unit::kSeconds, true},
      {"request_latency.mean", "request latency, mean", "", Unit::kSeconds, true},
      {"request_latency.p99", "request latency, p99", "", Unit::kSeconds, true},
      {"hit_ratio", "prefix cache hits", "", Unit::kRatio, false},
      {"tier_hit_ratio", "hits in tiers", "", Unit::kRatio, false},
      {"tier_load_wait", "wait for a load, mean", "", Unit::kSeconds, true},
      {"tier_pull_wait", "wait for a pull, mean", "", Unit::kSeconds, true},
      {"kv_mean", "KV cache in use, mean", "", Unit::kRatio, true},
      {"preemptions", "preemptions", "", Unit::kCount, true},
      {"rejected", "refused by the router", "", Unit::kCount, true},
  };
  return kMeasures;
}

Verdict verdict_of(const PageRun& run) {
  Verdict verdict;
  if (run.variants.empty()) {
    verdict.headline = "No variant was run.";
    return verdict;
  }
  verdict.base = run.variants.front().name;
  verdict.knees = knees_of(run);
  const std::vector<Indices> groups = by_load(run);
  if (groups.size() == 1)
    compare(run, groups.front(), verdict);
  else
    compare_loads(run, groups, verdict);
  for (const ExpectationView& e : run.expectations)
    if (e.decision != "holds")
      verdict.failed.push_back((e.decision == "fails" ? "fails: " : e.decision + ": ") + e.text +
                               (e.scope.empty() ? "" : " (" + e.scope + ")") + ": found " +
                               e.detail);
  if (run.interrupted)
    verdict.headline = "The run was interrupted, so its numbers are partial. " + verdict.headline;
  for (const VariantView& v : run.variants)
    if (const std::string load = overload_of(v); !load.empty())
      verdict.overload += (verdict.overload.empty() ? "" : "; ") + v.name + " " + load;
  if (!verdict.overload.empty())
    verdict.overload =
        "Overloaded, so that latencies depend on how long a stage lasts: " + verdict.overload + ".";
  if (!verdict.goals.empty()) verdict.goals = "Goodput counts requests with " + verdict.goals + ".";
  verdict.trust = trust_of(run);
  verdict.next = next_steps(run, verdict);
  return verdict;
}

void write_verdict(JsonWriter& json, const Verdict& verdict) {
  const auto list = [&json](const char* name, const std::vector<std::string>& texts) {
    json.key(name).begin_array();
    for (const std::string& text : texts) json.value(plain_spaces(text));
    json.end_array();
  };
  json.begin_object().member("headline", plain_spaces(verdict.headline));
  json.member("base", verdict.base).key("winner");
  verdict.winner.empty() ? json.null() : json.value(verdict.winner);
  json.member("close", verdict.close);
  list("failed", verdict.failed);
  json.key("lines").begin_array();
  for (const VerdictLine& line : verdict.lines) {
    json.begin_object().member("text", plain_spaces(line.text));
    json.member("better", line.better).end_object();
  }
  json.end_array().member("ranking", plain_spaces(verdict.ranking)).key("knees").begin_array();
  for (const Knee& knee : verdict.knees) {
    json.begin_object().member("variant", knee.variant).member("text", plain_spaces(knee.text));
    json.member("last_held", knee.last_held).member("first_overloaded", knee.first_overloaded);
    json.end_object();
  }
  json.end_array().member("overload", plain_spaces(verdict.overload));
  json.member("goals", plain_spaces(verdict.goals)).member("trust", plain_spaces(verdict.trust));
  list("next", verdict.next);
  json.end_object();
}

}  // namespace routesim::tools
