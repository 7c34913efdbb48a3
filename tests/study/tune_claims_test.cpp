// What a tuning says, over random results: every claim is recomputed from the numbers of its record
// by rules written a second time here. And each number of the record, once, by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "tools/results/described_json.h"
#include "tools/study/tune/race.h"
#include "tools/study/tune/tune_record.h"

namespace routesim::tools {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kSeed = 20261128;

std::string number(const char* format, double v) {
  char text[64];
  std::snprintf(text, sizeof text, format, v);
  return text;
}

/// `+6.6 % [+4.0, +9.1]`, written without the functions of the product. Zero has no minus.
std::string gain_words(const Json& gain) {
  const auto text = [&gain](const char* key) {
    std::string t = number("%+.1f", gain[key].get<double>());
    return t == "-0.0" ? std::string("+0.0") : t;
  };
  return text("percent") + " % [" + text("low") + ", " + text("high") + "]";
}

Knob knob_of(const std::string& name, const std::vector<std::string>& values) {
  Knob knob{.name = name, .ordered = true};
  for (const std::string& value : values) {
    knob.values.push_back({.text = value});
    if (value != values.front()) knob.values.back().assignments = {make_assignment(name, value)};
  }
  return knob;
}

/// A tuning without a scenario, and the values that its judgement would have got.
struct Case {
  TuneSpace space;
  TuneSearchResult search;
  std::vector<LoadValues> loads;
  std::vector<std::uint64_t> seeds;
};

MetricName metric(const std::string& text) { return *parse_metric_name(text).value; }

/// The goals, and metrics as a real space has them: goals, guards, then others.
TuneSpace space_with(const std::vector<std::string>& goals,
                     const std::vector<std::string>& guards) {
  TuneSpace space;
  space.scenario_path = "s.yaml";
  space.config.name = "t";
  space.config.variant = "v";
  space.knobs = {knob_of("a", {"1", "2", "3"}), knob_of("b", {"x", "y"})};
  for (const std::string& goal : goals)
    space.goals.push_back({.metric = metric(goal), .text = "minimise " + goal});
  if (goals.back().ends_with("_per_s")) space.goals.back().text = "maximise " + goals.back();
  for (const std::string& guard : guards) space.guards.push_back(metric(guard));
  std::set<std::string> seen;
  const auto add = [&](const std::string& text) {
    if (seen.insert(text).second) space.metrics.push_back(metric(text));
  };
  for (const std::string& text : goals) add(text);
  for (const std::string& text : guards) add(text);
  for (const char* text : {"ttft_ms.mean", "tpot_ms.mean", "itl_ms.p99", "output_tokens_per_s",
                           "prefix_cache_hit_rate", "failure_rate", "input_length.mean"})
    add(text);
  return space;
}

class RandomCase {
 public:
  explicit RandomCase(std::uint64_t n) : random_(kSeed, Stream::kTest, n) {}

  Case make() {
    Case c;
    const bool two = one_of(4) == 0;
    c.space = two ? space_with({"ttft_ms.p90", "output_tokens_per_s"},
                               {"ttft_ms.mean", "ttft_ms.p99", "requests_per_s", "failure_rate"})
                  : space_with({"ttft_ms.p90"}, {"ttft_ms.mean", "ttft_ms.p99", "failure_rate"});
    for (std::uint64_t i = one_of(3); i > 0; --i)
      c.space.shifts.push_back({.name = "load " + std::to_string(i)});
    const std::size_t n = 4 + one_of(57);
    for (std::size_t s = 0; s < n; ++s) c.seeds.push_back(10'001 + s);
    c.search.guards = c.space.guards;
    c.search.candidates.resize(4);
    for (std::size_t i = 0; i < 4; ++i) {
      c.search.candidates[i].choice = {i % 3, i / 3};
      c.search.candidates[i].values.assign(c.space.metrics.size(), {1});
    }
    c.search.best = 1;
    c.search.finalists = {1, 2, 3};
    c.search.budget = one_of(8) == 0 ? 20 : 1000;
    c.search.runs = c.search.budget / 2;
    for (std::size_t load = 0; load <= c.space.shifts.size(); ++load)
      c.loads.push_back(values(c.space, n));
    return c;
  }

 private:
  std::uint64_t one_of(std::uint64_t n) { return random_.below(n); }

  LoadValues values(const TuneSpace& space, std::size_t seeds) {
    LoadValues load;
    // Most metrics do not change, or clearly do: then each branch of the decision is reached.
    const double effects[] = {0, 0, 0, 0.003, -0.003, 0.02, -0.02, 0.3, -0.3};
    for (const MetricName& name : space.metrics) {
      const bool is_zero = name.text == "failure_rate" && one_of(2) == 0;
      const bool is_goal = name.text == space.goals.front().metric.text;
      const double effect = is_goal && one_of(2) == 0 ? -0.2 : effects[one_of(9)];
      const double noise = one_of(3) == 0 ? 0 : 0.01;
      std::vector<double> base, changed;
      for (std::size_t s = 0; s < seeds; ++s) {
        base.push_back(is_zero ? 0 : 100 * std::exp(0.1 * random_.normal()));
        changed.push_back(is_zero ? std::max(0.0, effect)
                                  : base[s] * (1 + effect + noise * random_.normal()));
      }
      load.published.push_back(std::move(base));
      load.candidate.push_back(std::move(changed));
    }
    return load;
  }

  RandomStream random_;
};

Json record_of(const Case& c, const TuneJudgement& judgement) {
  TuneReport report{c.space, c.search, judgement};
  TuneRecord record = tune_record(report);
  return Json::parse(json_text(record));
}

bool is_goal(const Json& r, const std::string& metric) {
  for (const Json& goal : r["goals"])
    if (goal.get<std::string>().ends_with(" " + metric)) return true;
  return false;
}

bool has_direction(const std::string& text) { return metric(text).has_direction; }

std::vector<Json> rows_of(const Json& r, bool goals, bool as_given) {
  std::vector<Json> rows;
  for (const Json& row : r["judged"])
    if (is_goal(r, row["metric"]) == goals && (row["load"] == "as given") == as_given)
      rows.push_back(row);
  return rows;
}

bool any(const std::vector<Json>& rows, const std::function<bool(const Json&)>& test) {
  return std::ranges::any_of(rows, test);
}

bool guard_broken(const Json& r, bool as_given) {
  for (const Json& worse : r["worse"])
    if (worse["guard"] == true && (worse["load"] == "as given") == as_given) return true;
  return false;
}

/// The decision that the numbers of the record allow; no condition, and all numbers are there.
std::string decision_by_hand(const Case& c, const Json& r) {
  const std::vector<Json> given = rows_of(r, true, true), other = rows_of(r, true, false);
  const auto sure = [](const Json& row) { return row["gain"]["low"] > 0; };
  const auto worth = [&](const Json& row) { return sure(row) && row["gain"]["percent"] >= 1; };
  const auto loses = [](const Json& row) { return row["gain"]["high"] < 0; };
  const bool better = any(given, worth) || (any(given, sure) && any(other, worth));
  const bool is_small = c.search.budget < 47;  // 3 candidates of 4, see TuneBudget.
  const std::string nothing = is_small ? "undecided" : "nothing better";
  if (any(given, loses)) return better ? "a trade" : nothing;
  if (guard_broken(r, true)) return nothing;
  if (!better)
    return any(given,
               [](const Json& row) { return row["gain"]["low"] <= 0 && row["gain"]["high"] >= 1; })
               ? "undecided"
               : nothing;
  const bool harmed =
      any(other, [&](const Json& row) { return loses(row) && row["gain"]["percent"] <= -1; });
  return harmed || guard_broken(r, false) ? "better only as given" : "better";
}

/// The words that name a loss, from the numbers of its row.
std::string loss_words(const Json& row) {
  if (row["published"] == 0.0) return row["metric"].get<std::string>() + " is ";
  const Json& gain = row["gain"];
  const auto text = [](double v) { return number(std::abs(v) < 0.1 ? "%.2g" : "%.1f", v); };
  return row["metric"].get<std::string>() + " is " + text(-gain["percent"].get<double>()) +
         " % worse [" + text(-gain["high"].get<double>()) + ", " +
         text(-gain["low"].get<double>()) + "]";
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// Means, differences and gains of the rows are those of the values.
void expect_rows_are_of_the_values(const Case& c, const Json& r) {
  for (const Json& row : r["judged"]) {
    std::size_t load = 0;
    while (r["loads"][load]["load"] != row["load"]) ++load;
    std::size_t m = 0;
    while (c.space.metrics[m].text != row["metric"]) ++m;
    const std::vector<double>& base = c.loads[load].published[m];
    const std::vector<double>& changed = c.loads[load].candidate[m];
    const auto n = static_cast<double>(base.size());
    double p = 0, q = 0, square = 0;
    for (std::size_t s = 0; s < base.size(); ++s) {
      p += base[s] / n;
      q += changed[s] / n;
    }
    for (std::size_t s = 0; s < base.size(); ++s)
      square += std::pow(changed[s] - base[s] - (q - p), 2);
    const double error = std::sqrt(square / (n - 1) / n);
    const double t = sim::student_t_quantile(0.975, n - 1);
    const double width = t * error * (is_goal(r, row["metric"]) ? std::sqrt(2.0) : 1);
    EXPECT_NEAR(row["published"].get<double>(), p, 1e-9 * (1 + p));
    EXPECT_NEAR(row["candidate"].get<double>(), q, 1e-9 * (1 + q));
    EXPECT_NEAR(row["difference"]["low"].get<double>(), q - p - width, 1e-6);
    EXPECT_NEAR(row["difference"]["high"].get<double>(), q - p + width, 1e-6);
    const double sign =
        metric(row["metric"]).direction == sim::Direction::kSmallerIsBetter ? -1 : 1;
    if (p > 0) {
      EXPECT_NEAR(row["gain"]["percent"].get<double>(), sign * 100 * (q / p - 1), 1e-6);
    }
    // The interval in percent decides as that of the difference does, which noise alone can move.
    const double away = std::abs(q - p) - width;
    if (std::abs(away) > 1e-9) {
      EXPECT_EQ(row["gain"]["low"] > 0 || row["gain"]["high"]<0, away> 0) << row;
    }
  }
}

/// `worse` has every row that is worse beyond its interval, and nothing else.
void expect_worse_is_complete(const Json& r) {
  std::set<std::pair<std::string, std::string>> expected, found;
  const auto guards = r["guards"].get<std::set<std::string>>();
  for (const Json& row : r["judged"])
    if (has_direction(row["metric"]) && row["gain"]["high"] < 0)
      expected.emplace(row["load"].get<std::string>(), row["metric"].get<std::string>());
  for (const Json& worse : r["worse"]) {
    found.emplace(worse["load"].get<std::string>(), worse["metric"].get<std::string>());
    EXPECT_EQ(worse["guard"], guards.contains(worse["metric"].get<std::string>()));
    EXPECT_LT(worse["high"], 0);
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(r["worse"].size(), expected.size());
}

/// A claim of a gain: its numbers, and every loss under every load, and no other one.
void expect_claim_is_complete(const Json& r) {
  const std::string said = r["verdict"]["headline"];
  int changes = 0;
  for (const Json& knob : r["knobs"]) changes += knob["candidate"] != knob["published"] ? 1 : 0;
  EXPECT_EQ(said.find(std::to_string(changes) +
                      (changes == 1 ? " change of 2 knobs beats your file"
                                    : " changes of 2 knobs beat your file") +
                      " on " + std::to_string(r["fresh_seeds"].size()) + " fresh seeds"),
            0U)
      << said;
  for (const Json& row : rows_of(r, true, true))
    EXPECT_NE(said.find(row["metric"].get<std::string>() + " " + gain_words(row["gain"])),
              std::string::npos)
        << said;
  std::size_t losses = 0;
  for (const Json& row : r["judged"]) {
    const bool named = said.find(loss_words(row)) != std::string::npos;
    if (is_goal(r, row["metric"])) {
      EXPECT_NE(said.find(gain_words(row["gain"])), std::string::npos) << said;
      continue;
    }
    const bool is_worse = has_direction(row["metric"]) && row["gain"]["high"] < 0;
    losses += is_worse ? 1 : 0;
    EXPECT_TRUE(named || !is_worse) << loss_words(row) << "\n" << said;
  }
  EXPECT_EQ(count(said, " % worse [") + count(said, " instead of 0"), losses) << said;
}

/// What a headline says when nothing is claimed.
void expect_refusal_is_true(const Json& r) {
  const std::string said = r["verdict"]["headline"];
  const auto says = [&said](const char* words) { return said.find(words) != std::string::npos; };
  const auto sure = [](const Json& row) { return row["gain"]["low"] > 0; };
  if (says("Nothing beats your file by more than noise")) {
    EXPECT_FALSE(any(rows_of(r, true, true), sure)) << said;
  }
  if (says("Nothing beats your file by 1 % or more")) {
    EXPECT_TRUE(any(rows_of(r, true, true), sure)) << said;
    EXPECT_FALSE(any(rows_of(r, true, true), [](const Json& row) {
      return row["gain"]["low"] > 0 && row["gain"]["percent"] >= 1;
    })) << said;
  }
  EXPECT_EQ(says(" breaks a guard on ") || says(" guards on "),
            guard_broken(r, true) && !says("No candidate beats"))
      << said;
  for (const Json& worse : r["worse"])
    if (worse["guard"] == true && says(" guard on ") && worse["load"] == "as given") {
      EXPECT_NE(said.find(worse["metric"].get<std::string>() + " is "), std::string::npos) << said;
    }
  if (says("More fresh seeds would decide")) {
    EXPECT_TRUE(any(rows_of(r, true, true), [](const Json& row) {
      return row["gain"]["low"] <= 0 && row["gain"]["high"] >= 1;
    })) << said;
  }
  for (const Json& row : rows_of(r, true, true)) {
    if (!says("No candidate beats your file in both goals")) continue;
    const std::string verb = row["gain"]["high"] < 0 ? "loses " : "gains ";
    EXPECT_NE(said.find(verb + row["metric"].get<std::string>() + " " + gain_words(row["gain"])),
              std::string::npos)
        << said;
  }
}

TEST(TuneClaims, EverySentenceFollowsFromTheNumbers) {
  std::map<std::string, int> seen;
  for (std::uint64_t n = 0; n < 600; ++n) {
    SCOPED_TRACE("case " + std::to_string(n) + " of seed " + std::to_string(kSeed));
    const Case c = RandomCase(n).make();
    const TuneJudgement judgement = conclude(c.space, c.search, 1, c.seeds, c.loads);
    const Json r = record_of(c, judgement);
    EXPECT_EQ(r["candidate"], 1);
    ++seen[r["verdict"]["decision"]];
    EXPECT_EQ(r["verdict"]["decision"], decision_by_hand(c, r)) << r["verdict"]["headline"];
    expect_rows_are_of_the_values(c, r);
    expect_worse_is_complete(r);
    const bool claims = r["verdict"]["decision"].get<std::string>().starts_with("better");
    EXPECT_EQ(r["best"], claims ? 1 : 0);
    EXPECT_EQ(r["knobs"][0]["best"], claims ? "2" : "1");
    if (claims)
      expect_claim_is_complete(r);
    else
      expect_refusal_is_true(r);
    if (HasFailure()) break;
  }
  for (const char* decision :
       {"better", "better only as given", "a trade", "nothing better", "undecided"})
    EXPECT_GE(seen[decision], 10) << decision << " is hardly tested";
}

// A candidate that was judged too stands in the record and the headline, with why it is not the
// one.
TEST(TuneClaims, TheOthersThatWereJudgedAreNamed) {
  int named = 0;
  for (std::uint64_t n = 0; n < 200; ++n) {
    SCOPED_TRACE("case " + std::to_string(n) + " of seed " + std::to_string(kSeed));
    const Case c = RandomCase(n).make();
    TuneJudgement judgement = conclude(c.space, c.search, 1, c.seeds, c.loads);
    std::vector<std::uint64_t> seeds;
    for (const std::uint64_t seed : c.seeds) seeds.push_back(seed + c.seeds.size());
    TuneJudgement other = conclude(c.space, c.search, 2, seeds, c.loads);
    if (!other.is_refused()) continue;
    ++named;
    judgement.passed_over.push_back(std::move(other));
    const Json r = record_of(c, judgement);
    ASSERT_EQ(r["passed_over"].size(), 1U);
    const Json& passed = r["passed_over"][0];
    EXPECT_EQ(passed["candidate"], 2);
    EXPECT_EQ(passed["fresh_seeds"], Json(seeds));
    EXPECT_EQ(passed["worse"], r["worse"]);  // The values are the same.
    std::string guards;
    for (const Json& worse : passed["worse"]) {
      if (worse["guard"] != true) continue;
      const std::string said = r["verdict"]["headline"];
      const std::size_t at = said.find("#2, which breaks the guard");
      ASSERT_NE(at, std::string::npos) << said;
      EXPECT_NE(said.find(worse["metric"].get<std::string>(), at), std::string::npos) << said;
    }
    for (const Json& gain : passed["gains"])
      for (const Json& row : rows_of(r, true, true))
        EXPECT_TRUE(row["metric"] != gain["metric"] || gain["percent"] == row["gain"]["percent"]);
  }
  EXPECT_GE(named, 20);
}

const std::vector<double> kBase = {100, 100, 100, 100}, kBest = {80, 78, 82, 80};

Case case_by_hand() {
  Case c;
  c.space = space_with({"ttft_ms.p90"}, {"ttft_ms.mean"});
  c.space.metrics.resize(2);
  c.space.shifts = {{.name = "rates x 1.25"}};
  c.search.guards = c.space.guards;
  c.search.budget = c.search.runs = 1000;
  c.search.candidates.resize(2);
  c.search.candidates[0].choice = {0, 0};
  c.search.candidates[1].choice = {1, 1};
  for (TuneCandidate& candidate : c.search.candidates) candidate.values = {{1}, {1}};
  c.search.best = 1;
  c.seeds = {10'001, 10'002, 10'003, 10'004};
  c.loads = {{{kBase, kBase}, {kBest, kBest}}, {{}, {}, "", "too large."}};
  return c;
}

// Four seeds, t(0.975, 3) = 3.1824. The differences -20, -22, -18, -20 have the mean -20 and the
// standard error sqrt(8/3)/2 = 0.8165, so 95 % are -20 +- 2.598. A goal has sqrt(2) times that.
TEST(TuneClaims, NumbersOfTheRecordByHand) {
  const Case c = case_by_hand();
  TuneJudgement judgement = conclude(c.space, c.search, 1, c.seeds, c.loads);
  const Gain back =
      gain_of(difference_of(kBest, kBase, metric("ttft_ms.p90"), true), metric("ttft_ms.p90"));
  judgement.worth.push_back(
      {0, {{{.percent = -back.percent, .low = -back.high, .high = -back.low}, "ttft_ms.p90"}}});
  judgement.runs = 20;
  const Json r = record_of(c, judgement);

  EXPECT_EQ(r["candidate"], 1);
  EXPECT_EQ(r["best"], 1);
  EXPECT_EQ(r["judgement_runs"], 20);
  EXPECT_EQ(r["guards"], Json({"ttft_ms.mean"}));
  EXPECT_EQ(r["worse"], Json::array());
  EXPECT_EQ(r["passed_over"], Json::array());
  EXPECT_EQ(r["fresh_seeds"], Json(c.seeds));
  EXPECT_EQ(r["loads"], Json({{{"load", "as given"},
                               {"why_not", ""},
                               {"published_lacks", ""},
                               {"candidate_lacks", ""}},
                              {{"load", "rates x 1.25"},
                               {"why_not", "#1 cannot run: too large."},
                               {"published_lacks", ""},
                               {"candidate_lacks", ""}}}));
  EXPECT_EQ(r["verdict"]["decision"], "better only as given");
  // From 100 without noise, percent are the numbers themselves.
  const double width = 3.18244630528 * std::sqrt(8.0 / 3) / 2;
  ASSERT_EQ(r["judged"].size(), 2U);
  for (const double factor : {std::sqrt(2.0), 1.0}) {
    const Json& row = r["judged"][factor == 1 ? 1 : 0];
    EXPECT_EQ(row["published"], 100);
    EXPECT_EQ(row["candidate"], 80);
    EXPECT_NEAR(row["difference"]["low"].get<double>(), -20 - factor * width, 1e-6);
    EXPECT_NEAR(row["gain"]["percent"].get<double>(), 20, 1e-9);
    EXPECT_NEAR(row["gain"]["low"].get<double>(), 20 - factor * width, 1e-6);
    EXPECT_NEAR(row["gain"]["high"].get<double>(), 20 + factor * width, 1e-6);
  }
  // Taken back, 80 becomes 100 again: a loss of 25 %.
  ASSERT_EQ(r["knobs"][0]["worth"].size(), 1U);
  EXPECT_EQ(r["knobs"][0]["worth"][0]["metric"], "ttft_ms.p90");
  EXPECT_NEAR(r["knobs"][0]["worth"][0]["percent"].get<double>(), 25, 1e-9);
  EXPECT_LT(r["knobs"][0]["worth"][0]["low"], 25);
  EXPECT_EQ(r["knobs"][1]["worth"], Json::array());
  EXPECT_EQ(r["set"], Json({"a=2", "b=y"}));
  EXPECT_EQ(r["command"],
            "routesim run s.yaml --variant v --set a=2 --set b=y --seed 10001 --replications 4");
  EXPECT_EQ(r["verdict"]["headline"],
            "2 changes of 2 knobs beat your file on 4 fresh seeds (a gain of ttft_ms.p90 " +
                gain_words(r["judged"][0]["gain"]) +
                "), but not on every load; rates x 1.25: cannot run.");
}

// Of two candidates the faster one makes a guard worse: it leaves, and is no measure for the other.
TEST(TuneClaims, WhoBreaksAGuardLeavesTheRace) {
  const RaceEntry published{.costs = {{5, 5.1, 5.2}}, .guards = {{0, 0, 0}}};
  const RaceEntry breaks{.costs = {{1, 1.1, 1.2}}, .guards = {{1, 1.2, 1.1}}};
  const RaceEntry holds{.costs = {{4, 4.2, 4.1}}, .guards = {{0.1, -0.1, 0}}};
  const std::vector<RaceDecision> out =
      decide_round(std::vector<RaceEntry>{published, breaks, holds}, 0.05);
  EXPECT_EQ(out[1].exit, RaceExit::kBreaksGuard);
  EXPECT_EQ(out[2].exit, RaceExit::kStays);
}

// 19 of 20 means of n values lie within the interval of n others: noise of 4000 pairs of samples.
TEST(TuneClaims, ARepeatFallsIntoTheIntervalOfAGoal) {
  RandomStream random(kSeed, Stream::kTest, 1'000'000);
  constexpr int kPairs = 4000;
  int inside = 0;
  for (int i = 0; i < kPairs; ++i) {
    std::vector<double> first(10), second(10);
    for (std::vector<double>* values : {&first, &second})
      for (double& v : *values) v = random.normal();
    inside += sim::estimate(first, repeat_confidence(10)).holds(sim::mean(second)) ? 1 : 0;
  }
  // Three standard errors: sqrt(0.95 x 0.05 / 4000) = 0.0034.
  EXPECT_NEAR(inside / static_cast<double>(kPairs), 0.95, 0.0104);
}

}  // namespace
}  // namespace routesim::tools
