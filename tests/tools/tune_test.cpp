// The parts of a tuning, by hand: the test of the race, the choices that are tried, what the gains
// come to, and the document that is written.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/rng.h"
#include "tests/tools/scenario_fixture.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/study/compare/result_file.h"
#include "tools/study/tune/knobs.h"
#include "tools/study/tune/race.h"
#include "tools/study/tune/tune_deploy.h"
#include "tools/study/tune/tune_judge.h"
#include "tools/study/tune/tune_search.h"

namespace routesim::tools {
namespace {

TEST(TuneRace, TheTestIsStudentsOneSidedOne) {
  // Mean 2, sd 2, n 4, so t = 2 / (2 / 2) = 2. t(0.95, 3) = 2.353, t(0.90, 3) = 1.638.
  const double s = std::sqrt(3.0);
  const std::vector<double> d = {2 - s, 2 - s, 2 + s, 2 + s};
  EXPECT_FALSE(is_above_zero(d, 0.05));
  EXPECT_TRUE(is_above_zero(d, 0.10));
  EXPECT_FALSE(is_above_zero(std::vector<double>{5}, 0.4));
  EXPECT_TRUE(is_above_zero(std::vector<double>{1, 1, 1}, 0.001));
  EXPECT_FALSE(is_above_zero(std::vector<double>{0, 0, 0}, 0.4));
  EXPECT_FALSE(is_above_zero(std::vector<double>{-1, -1, -1}, 0.4));
}

TEST(TuneRace, CostsAreRatiosWhereSmallerAndLargerMirrorEachOther) {
  EXPECT_DOUBLE_EQ(cost_of(100, sim::Direction::kSmallerIsBetter, true), std::log(100.0));
  EXPECT_DOUBLE_EQ(cost_of(100, sim::Direction::kLargerIsBetter, true), -std::log(100.0));
  EXPECT_DOUBLE_EQ(cost_of(0.9, sim::Direction::kLargerIsBetter, false), -0.9);
}

TEST(TuneRace, TheLevelIsSharedByTheComparisons) {
  // Differences to the best entry with t = 2.6: beyond t(0.95, 3) = 2.353, alone; with two
  // comparisons each has 2.5 %, and t(0.975, 3) = 3.182.
  const double s = 2 * std::sqrt(3.0) / 2.6;
  const std::vector<double> worse = {2 - s, 2 - s, 2 + s, 2 + s};
  const RaceEntry best{.costs = {{0, 0, 0, 0}}};
  const RaceEntry bad{.costs = {worse}};
  const RaceEntry middle{.costs = {{0.1, -0.1, 0.2, 0.1}}};
  const std::vector<RaceEntry> two = {best, bad};
  EXPECT_EQ(decide_round(two, 0.05)[1].exit, RaceExit::kWorse);
  const std::vector<RaceEntry> three = {best, bad, middle};
  EXPECT_EQ(decide_round(three, 0.05)[1].exit, RaceExit::kStays);
  EXPECT_EQ(decide_round(three, 0.05)[2].exit, RaceExit::kStays);
}

TEST(TuneRace, ThePublishedOneStaysAndEqualsLeave) {
  const RaceEntry published{.costs = {{9, 9.1, 9.2}}};
  const RaceEntry good{.costs = {{1, 1.1, 1.3}}};
  const std::vector<RaceEntry> entries = {published, good, good, published};
  const std::vector<RaceDecision> out = decide_round(entries, 0.05);
  EXPECT_EQ(out[0].exit, RaceExit::kStays);
  EXPECT_EQ(out[1].exit, RaceExit::kStays);
  EXPECT_EQ(out[2].exit, RaceExit::kSame);
  EXPECT_EQ(out[2].by, 1U);
  EXPECT_EQ(out[3].exit, RaceExit::kSame);
  EXPECT_EQ(out[3].by, 0U);
}

TEST(TuneRace, WhoBreaksAConditionIsOutAndIsNoMeasureForOthers) {
  const RaceEntry published{.costs = {{5, 5.1, 5.2}}, .excesses = {{0, 0, 0}}};
  const RaceEntry breaks{.costs = {{1, 1.1, 1.2}}, .excesses = {{1, 1.2, 1.1}}};
  const RaceEntry holds{.costs = {{4, 4.2, 4.1}}, .excesses = {{-1, -1, -1}}};
  const std::vector<RaceEntry> entries = {published, breaks, holds};
  const std::vector<RaceDecision> out = decide_round(entries, 0.05);
  EXPECT_EQ(out[1].exit, RaceExit::kBreaksCondition);
  EXPECT_EQ(out[2].exit, RaceExit::kStays);
  EXPECT_TRUE(comes_first(holds, breaks));
}

TEST(TuneRace, AConditionWithoutANumberDoesNotHold) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(is_condition_broken(std::vector<double>{-1, kNone, -1}, 0.05));
  EXPECT_FALSE(is_condition_broken(std::vector<double>{-1, -1.1, -1}, 0.05));
  const RaceEntry published{.costs = {{5, 5.1, 5.2}}, .excesses = {{0, 0, 0}}};
  const RaceEntry unknown{.costs = {{1, 1.1, 1.2}}, .excesses = {{-1, kNone, -1}}};
  EXPECT_EQ(decide_round(std::vector<RaceEntry>{published, unknown}, 0.05)[1].exit,
            RaceExit::kBreaksCondition);
  EXPECT_TRUE(comes_first(published, unknown));
}

TuneSpace space_of(const std::string& goal) {
  TuneSpace space;
  MetricName metric = *parse_metric_name(goal).value;
  space.metrics = {metric};
  space.goals = {{.metric = std::move(metric), .text = "minimise " + goal}};
  return space;
}

// Ratios where all values allow them; otherwise differences, of all that are compared.
TEST(TuneRace, WithAZeroDifferencesAreCompared) {
  const TuneSpace space = space_of("ttft_ms.p90");
  const std::vector<Condition> conditions = {*parse_condition("ttft_ms.p90 < 200% of x").value};
  const SeedValues published = {{10, 20}};
  const SeedValues other = {{5, 40}};
  const SeedValues zero = {{0, 40}};
  const std::vector<const SeedValues*> positive = {&published, &other};
  const std::vector<RaceEntry> ratios = entries_of(space, conditions, positive, published, 2);
  EXPECT_EQ(ratios[1].costs[0], (std::vector<double>{std::log(5.0), std::log(40.0)}));
  EXPECT_EQ(ratios[1].excesses[0], (std::vector<double>{std::log(0.25), std::log(1.0)}));
  const std::vector<const SeedValues*> all = {&published, &zero};
  const std::vector<RaceEntry> differences = entries_of(space, conditions, all, published, 2);
  EXPECT_EQ(differences[0].costs[0], (std::vector<double>{10, 20}));
  EXPECT_EQ(differences[1].costs[0], (std::vector<double>{0, 40}));
  EXPECT_EQ(differences[1].excesses[0], (std::vector<double>{-20, 0}));
  EXPECT_TRUE(ratios[0].by_ratio[0]);
  EXPECT_FALSE(differences[0].by_ratio[0]);
}

TEST(TuneRace, WithTwoGoalsOnlyTheDominatedLeave) {
  const RaceEntry published{.costs = {{5, 5, 5.01}, {5, 5, 5.01}}};
  const RaceEntry fast{.costs = {{1, 1, 1.01}, {6, 6, 6.01}}};
  const RaceEntry cheap{.costs = {{6, 6, 6.01}, {1, 1, 1.01}}};
  const RaceEntry bad{.costs = {{7, 7.02, 7}, {7, 7.02, 7}}};
  const std::vector<RaceEntry> entries = {published, fast, cheap, bad};
  const std::vector<RaceDecision> out = decide_round(entries, 0.05);
  EXPECT_EQ(out[1].exit, RaceExit::kStays);
  EXPECT_EQ(out[2].exit, RaceExit::kStays);
  EXPECT_EQ(out[3].exit, RaceExit::kWorse);
  EXPECT_EQ(front_of(entries), (std::vector<std::size_t>{0, 1, 2}));
}

// With no difference between candidates, a round throws out the one that is best in truth (any of
// them) in at most 5 % of races. Two thousand rounds of 20 candidates and 5 seeds, pure noise.
TEST(TuneRace, ChanceThrowsOutFewEquals) {
  int rounds_with_a_loss = 0;
  constexpr int kRounds = 2000;
  for (int r = 0; r < kRounds; ++r) {
    std::vector<RaceEntry> entries(20);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      RandomStream random(7, Stream::kTest, static_cast<std::uint64_t>(r) * 100 + i);
      entries[i].costs.emplace_back();
      for (int s = 0; s < 5; ++s) entries[i].costs[0].push_back(random.normal());
    }
    // The best of 20 by chance lies low, so this tests more than one comparison at a time.
    const std::vector<RaceDecision> out = decide_round(entries, 0.05);
    rounds_with_a_loss += static_cast<int>(out[1].exit == RaceExit::kWorse);
  }
  EXPECT_LT(rounds_with_a_loss, kRounds * 5 / 100);
}

Knob numbers(std::size_t count, std::size_t published) {
  Knob knob{.name = "n", .published = published, .ordered = true};
  for (std::size_t i = 0; i < count; ++i) knob.values.push_back({.text = std::to_string(i)});
  return knob;
}

TEST(TuneSample, SingleChangesTryNeighboursAndEnds) {
  const std::vector<Knob> knobs = {numbers(6, 2), numbers(2, 0)};
  EXPECT_EQ(single_changes(knobs), (std::vector<Choice>{{3, 0}, {2, 1}, {1, 0}, {5, 0}, {0, 0}}));
}

TEST(TuneSample, ALatinHypercubeUsesEveryValueEquallyOften) {
  const std::vector<Knob> knobs = {numbers(4, 0), numbers(3, 0), numbers(12, 0)};
  const std::vector<Choice> sample = latin_hypercube(knobs, 12, 1);
  for (std::size_t k = 0; k < knobs.size(); ++k) {
    std::vector<int> seen(knobs[k].values.size());
    for (const Choice& choice : sample) ++seen[choice[k]];
    for (const int n : seen) EXPECT_EQ(n, 12 / static_cast<int>(seen.size()));
  }
  EXPECT_EQ(sample, latin_hypercube(knobs, 12, 1));
  EXPECT_NE(sample, latin_hypercube(knobs, 12, 2));
}

TEST(TuneSample, ANeighbourDiffersAndStaysInTheSpace) {
  std::vector<Knob> knobs = {numbers(9, 4), numbers(3, 1), numbers(20, 0)};
  knobs[1].ordered = false;
  const Choice parent = {4, 1, 10};
  std::size_t changes = 0;
  constexpr int kDraws = 300;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    RandomStream random(1, Stream::kTest, i);
    const Choice choice = neighbour(knobs, parent, 0.2, random);
    for (std::size_t k = 0; k < knobs.size(); ++k) {
      ASSERT_LT(choice[k], knobs[k].values.size());
      changes += choice[k] != parent[k] ? 1 : 0;
    }
    EXPECT_NE(choice, parent);
  }
  // One is forced, the two others change with probability 2/3.
  EXPECT_NEAR(static_cast<double>(changes) / kDraws, 1 + 2 * 2.0 / 3, 0.15);
}

TEST(TuneKnobs, RangesHoldTheirEnds) {
  EXPECT_EQ(range_values(0, 10, 2.5, false, false), (std::vector<double>{0, 2.5, 5, 7.5, 10}));
  EXPECT_EQ(range_values(16, 1024, {}, true, true),
            (std::vector<double>{16, 32, 64, 128, 256, 512, 1024}));
  EXPECT_EQ(range_values(1, 4, {}, false, true), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(range_values(0, 10, {}, false, false).size(), 21U);
}

TEST(TuneDecision, GainsDecide) {
  constexpr auto kMet = Conditions::kMet;
  const auto one = [](Gain g, std::vector<Gain> elsewhere = {}, Conditions best = Conditions::kMet,
                      Conditions published = Conditions::kMet) {
    return decide({g}, elsewhere, best, published);
  };
  EXPECT_EQ(one({5, 3, 7}), TuneDecision::kBetter);
  EXPECT_EQ(one({0.5, 0.3, 0.7}), TuneDecision::kNothing);  // Sure, and too little.
  EXPECT_EQ(one({0.2, -0.4, 0.8}), TuneDecision::kNothing);
  EXPECT_EQ(one({2, -1, 5}), TuneDecision::kUndecided);
  EXPECT_EQ(one({-3, -5, -1}), TuneDecision::kNothing);
  EXPECT_EQ(one({5, 3, 7}, {{1, -2, 4}, {3, 2, 4}}), TuneDecision::kBetter);
  EXPECT_EQ(one({5, 3, 7}, {{-4, -6, -2}}), TuneDecision::kFragile);
  EXPECT_EQ(one({5, 3, 7}, {{-0.2, -0.3, -0.1}}), TuneDecision::kBetter);
  EXPECT_EQ(one({5, 3, 7}, {}, Conditions::kUnsure), TuneDecision::kBetter);
  EXPECT_EQ(one({5, 3, 7}, {}, Conditions::kBroken), TuneDecision::kNothing);
  // A candidate that meets the conditions beats a file that breaks them, whatever the gain.
  EXPECT_EQ(one({-5, -7, -3}, {}, kMet, Conditions::kBroken), TuneDecision::kBetter);
  EXPECT_EQ(one({5, 3, 7}, {}, Conditions::kUnsure, Conditions::kBroken), TuneDecision::kUndecided);
  EXPECT_EQ(one({5, 3, 7}, {}, Conditions::kBroken, Conditions::kBroken), TuneDecision::kUnmet);
  // A small gain that is sure counts when it is a larger one elsewhere.
  EXPECT_EQ(one({0.5, 0.3, 0.7}, {{3, 2, 4}}), TuneDecision::kBetter);
  EXPECT_EQ(one({0.5, 0.3, 0.7}, {{3, 2, 4}, {-4, -6, -2}}), TuneDecision::kFragile);
  EXPECT_EQ(one({0.5, -0.1, 0.9}, {{3, 2, 4}}), TuneDecision::kNothing);
  // Two goals: better in one, not worse in the other.
  EXPECT_EQ(decide({{5, 3, 7}, {0, -1, 1}}, {}, kMet, kMet), TuneDecision::kBetter);
  EXPECT_EQ(decide({{5, 3, 7}, {-2, -3, -1}}, {}, kMet, kMet), TuneDecision::kTrade);
  EXPECT_EQ(decide({{5, 3, 7}, {-2, -3, -1}}, {}, Conditions::kBroken, kMet),
            TuneDecision::kNothing);
  EXPECT_EQ(decide({{0.2, 0, 1}, {-2, -3, -1}}, {}, kMet, kMet), TuneDecision::kNothing);
}

TEST(TuneDecision, AGainPointsUpForBothDirections) {
  const MetricName ttft = *parse_metric_name("ttft_ms.mean").value;
  const MetricName rate = *parse_metric_name("output_tokens_per_s").value;
  const std::vector<double> base = {100, 102, 98, 100};
  const std::vector<double> less = {90, 92, 88, 90};
  const Gain smaller = gain_of(difference_of(base, less, ttft, true), ttft);
  const Gain larger = gain_of(difference_of(base, less, rate, true), rate);
  EXPECT_NEAR(smaller.percent, 10, 1e-9);
  EXPECT_LE(smaller.low, smaller.percent);
  EXPECT_LE(smaller.percent, smaller.high);
  EXPECT_NEAR(larger.percent, -10, 1e-9);
  EXPECT_LE(larger.low, larger.percent);
  EXPECT_LE(larger.percent, larger.high);
}

TEST(TuneDecision, FromZeroTheChangeIsTheWhole) {
  const MetricName rate = *parse_metric_name("output_tokens_per_s").value;
  const std::vector<double> base = {0, 0, 0};
  const std::vector<double> more = {4, 4, 4};
  EXPECT_NEAR(gain_of(difference_of(base, more, rate, true), rate).low, 100, 1e-9);
  EXPECT_EQ(gain_of(difference_of(base, base, rate, true), rate).percent, 0);
}

TEST(TuneBudget, TwoCandidatesForEachKnobAreTheLeast) {
  TuneSpace space;
  space.knobs = {numbers(6, 2), numbers(3, 0)};
  space.config.block = 5;
  EXPECT_EQ(least_candidates(space), 4U);
  // The published one and 4 candidates with 1.6 blocks each of 5 runs, in 80 % of the budget.
  EXPECT_EQ(least_budget(space), 47U);
  space.knobs = {numbers(2, 0)};
  EXPECT_EQ(least_candidates(space), 1U);  // There is one other choice.
}

ChangedDocument change(const std::string& text, const std::vector<std::string>& sets) {
  Diagnostics diagnostics;
  const ConfigNode::Ptr root = parse_config(text, {.file = "d.yaml"}, diagnostics);
  std::vector<Assignment> all;
  for (const std::string& set : sets)
    all.push_back(*parse_assignment_at(set, {.file = "t"}, diagnostics));
  EXPECT_FALSE(diagnostics.has_errors());
  return change_document(root, text, all);
}

TEST(TuneDocument, OnlyTheChangedValuesDiffer) {
  const std::string text =
      "# Ours.\n"
      "plugins:\n"
      "- type: max-score-picker  # the best\n"
      "- type: detector\n"
      "profiles:\n"
      "- name: default\n"
      "  plugins:\n"
      "  - pluginRef: a   # no weight\n"
      "  - pluginRef: b\n"
      "    weight: 2.0    # was 1\n"
      "  - {pluginRef: c, weight: \"3\"}\n";
  const ChangedDocument out =
      change(text, {"profiles[0].plugins[b].weight=5", "profiles[default].plugins[a].weight=0.5",
                    "profiles[default].plugins[c].weight=7", "plugins[0].type=random-picker",
                    "plugins[1].parameters.depth=9"});
  EXPECT_TRUE(out.kept);
  EXPECT_EQ(out.text,
            "# Ours.\n"
            "plugins:\n"
            "- type: random-picker  # the best\n"
            "- type: detector\n"
            "  parameters: {depth: 9}\n"
            "profiles:\n"
            "- name: default\n"
            "  plugins:\n"
            "  - pluginRef: a   # no weight\n"
            "    weight: 0.5\n"
            "  - pluginRef: b\n"
            "    weight: 5    # was 1\n"
            "  - {pluginRef: c, weight: 7}\n");
}

TEST(TuneDocument, WithoutChangesItIsTheSameText) {
  const std::string text = "a: 1 # x\n\nb: [1, 2]\n";
  EXPECT_EQ(change(text, {}).text, text);
}

// One anchor, two places: an edit of the text would change both.
TEST(TuneDocument, WhatCannotBeEditedIsWrittenAnew) {
  const ChangedDocument out = change("x: &v {weight: 1}\ny: *v\n# gone\n", {"y.weight=2"});
  EXPECT_FALSE(out.kept);
  Diagnostics none;
  const ConfigNode::Ptr read = parse_config(out.text, {.file = "n"}, none);
  ASSERT_NE(read, nullptr);
  EXPECT_TRUE(same_content(*read, *out.root));
  EXPECT_EQ(read->child("x")->child("weight")->text(), "1");
  EXPECT_EQ(read->child("y")->child("weight")->text(), "2");
}

class TuneFile : public testing::ScenarioTest {
 protected:
  std::vector<std::string> errors_of(const std::string& knobs) const {
    write("s.yaml", base() + "routing: {balancer: round-robin}\n");
    Diagnostics diagnostics;
    (void)load_tune({.path = write("tune.yaml", "scenario: s.yaml\n" + knobs)}, diagnostics);
    std::vector<std::string> out;
    for (const Diagnostic& d : diagnostics.items())
      if (d.severity == Severity::kError)
        out.push_back(std::to_string(d.where.line) + ": " + d.path + ": " + d.message);
    return out;
  }
};

TEST_F(TuneFile, KnobsAreJudgedAtTheirLines) {
  using Errors = std::vector<std::string>;
  const std::string seqs = "cluster.pools[a].engine.max_num_seqs";
  EXPECT_EQ(errors_of("knobs:\n- {set: \"" + seqs + "\", values: [64, 128]}\n"), Errors{});
  EXPECT_EQ(errors_of("goals: [less ttft_ms.p90]\n"),
            Errors{"2: goals[0]: must be minimise METRIC or maximise METRIC (got less "
                   "ttft_ms.p90)"});
  EXPECT_EQ(errors_of("goals: [minimise ttft_ms.p90, maximise p90_ttft_s]\n"),
            Errors{"2: goals[1]: has the metric of another goal too (got maximise ttft_s.p90 and "
                   "minimise ttft_ms.p90)"});
  EXPECT_EQ(errors_of("goals:\n- minimise ttft_ms.p90\n- minimise ttft_ms.p90\n"),
            Errors{"4: goals[1]: has the metric of another goal too (got minimise ttft_ms.p90 and "
                   "minimise ttft_ms.p90)"});
  EXPECT_EQ(errors_of("knobs:\n- {name: x}\n"),
            Errors{"3: knobs[0]: must have one of set, weight, picker and split (got 0 of them)"});
  EXPECT_EQ(errors_of("knobs:\n- {set: workload.groups.rate, values: [6, 8]}\n- {set: seed, "
                      "values: [3, 4]}\n"),
            (Errors{"3: knobs[0].set: is no key of a deployment (got workload.groups.rate)",
                    "4: knobs[1].set: is no key of a deployment (got seed)"}));
  EXPECT_EQ(errors_of("goals: [less x]\nknobs:\n- {set: \"" + seqs +
                      "\", values: [0]}\n- {set: \"" + seqs + "\", name: again, values: [-1]}\n"),
            (Errors{"2: goals[0]: must be minimise METRIC or maximise METRIC (got less x)",
                    "4: cluster.pools[0].engine.max_num_seqs: must be at least 1 (got 0)",
                    "5: cluster.pools[0].engine.max_num_seqs: must be at least 1 (got -1)"}))
      << "all at once";
  EXPECT_EQ(errors_of("knobs:\n- {weight: queue-scorer}\n"),
            Errors{"3: knobs[0].weight: needs an EndpointPickerConfig, and the variant has none"});
  EXPECT_EQ(errors_of("knobs:\n- {set: \"" + seqs + "\", range: [9, 1]}\n"),
            Errors{"3: knobs[0].range: must be the lowest and the highest number: [0, 10]"});
  EXPECT_EQ(errors_of("knobs:\n- {set: \"" + seqs + "\", values: [0, 128]}\n"),
            Errors{"3: cluster.pools[0].engine.max_num_seqs: must be at least 1 (got 0)"});
  EXPECT_EQ(errors_of("subject_to: [tpot_ms.mean < 90% of yours]\nknobs:\n- {set: \"" + seqs +
                      "\", values: [64]}\n"),
            Errors{"2: subject_to[0]: compares with something else than the published "
                   "configuration (got yours)"});
}

TEST_F(TuneFile, AVariantCalledDefaultIsJudgedItself) {
  Diagnostics diagnostics;
  const TuneSpace space = load_tune(
      {.path = write("s.yaml", base() + "variants:\n"
                                        "- {name: first, routing: {balancer: round-robin}}\n"
                                        "- {name: default, routing: {balancer: random}}\n"),
       .variant = "default"},
      diagnostics);
  const auto plan = prepare_choice(space, space.published(), {}, diagnostics);
  ASSERT_TRUE(plan) << diagnostics.items().front().message;
  EXPECT_EQ(plan->scenario.variant, "default");
  EXPECT_EQ(plan->scenario.routing.balancer, sim::BalancerKind::kRandom);
}

// 160e9 tokens for 2000 requests of 100,000 tokens and 1000 more: 792 runs.
TEST_F(TuneFile, LargeRunsGetFewerByDefault) {
  write("s.yaml", base() + "routing: {balancer: round-robin}\n");
  const auto budget = [this](const std::string& more) {
    Diagnostics diagnostics;
    const TuneSpace space =
        load_tune({.path = write("tune.yaml", "scenario: s.yaml\n" + more +
                                                  "knobs:\n- {set: \"cluster.pools[a].engine."
                                                  "max_num_seqs\", values: [64]}\n")},
                  diagnostics);
    EXPECT_FALSE(diagnostics.has_errors());
    ExperimentProgress progress;
    Experiment experiment(1, progress, diagnostics);
    return budget_of(space, experiment);
  };
  EXPECT_EQ(budget(""), 1000U);
  EXPECT_EQ(budget("budget: 70\n"), 70U);
  EXPECT_EQ(budget("set: [workload.groups.requests=2000, workload.groups.prefix_len=99000,\n"
                   "      workload.groups.suffix_len=1000, workload.groups.output_len=1,\n"
                   "      \"cluster.pools[a].engine.max_model_len=110000\"]\n"),
            792U);
}

TEST_F(TuneFile, ThreeBlocksFitTheBudget) {
  EXPECT_EQ(
      errors_of("budget: 29\nblock: 8\n"),
      (std::vector<std::string>{"3: block: is too large for the budget (got 8 seeds of 29 runs)"}));
  EXPECT_TRUE(errors_of("budget: 30\nblock: 8\nknobs:\n- {set: cluster.frontend_latency, "
                        "values: [1]}\n")
                  .empty());
}

TEST_F(TuneFile, DecidersHaveTheirOwnNamesAndParametersOfTheirType) {
  Diagnostics diagnostics;
  const TuneSpace space = load_tune(
      {.path = write("s.yaml",
                     "name: s\n"
                     "workload: {groups: {requests: 10, rate: 5, prefix_len: 100}}\n"
                     "cluster:\n"
                     "  pools:\n"
                     "  - {name: p, role: prefill, accelerator: H100-SXM, model: Qwen3-8B}\n"
                     "  - {name: d, role: decode, accelerator: H100-SXM, model: Qwen3-8B}\n"
                     "routing:\n"
                     "  balancer: endpoint-picker\n"
                     "  endpoint_picker:\n"
                     "    apiVersion: llm-d.ai/v1alpha1\n"
                     "    kind: EndpointPickerConfig\n"
                     "    plugins:\n"
                     "    - type: disagg-headers-handler\n"
                     "    - {type: always-disagg-pd-decider, name: d1}\n"
                     "    - {type: prefix-based-pd-decider, name: d2}\n"
                     "    - {type: disagg-profile-handler, parameters: {deciderPluginName: d2}}\n"
                     "    - type: prefill-filter\n"
                     "    - type: decode-filter\n"
                     "    - type: max-score-picker\n"
                     "    schedulingProfiles:\n"
                     "    - {name: prefill, plugins: [{pluginRef: prefill-filter}, {pluginRef: "
                     "max-score-picker}]}\n"
                     "    - {name: decode, plugins: [{pluginRef: decode-filter}, {pluginRef: "
                     "max-score-picker}]}\n")},
      diagnostics);
  ASSERT_FALSE(diagnostics.has_errors()) << diagnostics.items().front().message;
  const auto place = [&](const std::string& name) {
    return static_cast<std::size_t>(std::ranges::find(space.knobs, name, &Knob::name) -
                                    space.knobs.begin());
  };
  const std::size_t type = place("decider d2");
  const std::size_t tokens = place("nonCachedTokens of d2");
  ASSERT_LT(place("decider d1"), space.knobs.size());
  ASSERT_LT(type, space.knobs.size());
  ASSERT_LT(tokens, space.knobs.size());

  Choice choice = space.published();
  const auto other = [&](std::size_t k) { return space.knobs[k].published == 0 ? 1U : 0U; };
  choice[tokens] = other(tokens);
  EXPECT_EQ(space.possible(choice), choice);
  choice[type] = other(type);
  Diagnostics found;
  EXPECT_FALSE(prepare_choice(space, choice, {}, found));
  const Choice possible = space.possible(choice);
  EXPECT_EQ(possible[type], choice[type]);
  EXPECT_TRUE(prepare_choice(space, possible, {}, diagnostics));
}

TEST_F(TuneFile, APoolWithAnOddNameIsChosenByItsIndex) {
  std::string text = base();
  text.replace(text.find("name: a"), 7, "name: \"a]b\"");
  Diagnostics diagnostics;
  const TuneSpace space = load_tune(
      {.path = write("s.yaml", text + "routing: {balancer: round-robin}\n")}, diagnostics);
  EXPECT_FALSE(diagnostics.has_errors());
  ASSERT_FALSE(space.knobs.empty());
  EXPECT_EQ(space.knobs[0].values.front().assignments.front().path,
            "cluster.pools[0].engine.max_num_seqs");
}

TEST_F(TuneFile, EnginesAndBalancersHaveKnobsByThemselves) {
  write("s.yaml", base() + "routing: {balancer: smg-cache-aware}\n");
  Diagnostics diagnostics;
  const TuneSpace space = load_tune({.path = (folder_ / "s.yaml").string()}, diagnostics);
  EXPECT_FALSE(diagnostics.has_errors());
  std::vector<std::string> names;
  for (const Knob& knob : space.knobs) {
    names.push_back(knob.name);
    EXPECT_GE(knob.values.size(), 2U) << knob.name;
    EXPECT_TRUE(knob.values[knob.published].assignments.empty()) << knob.name;
    for (std::size_t v = 1; v < knob.values.size() && knob.ordered; ++v)
      EXPECT_LT(std::stod(knob.values[v - 1].text), std::stod(knob.values[v].text)) << knob.name;
  }
  for (const char* const name :
       {"smg.cache_threshold", "smg.balance_rel_threshold", "max_num_seqs"})
    EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
  const auto share = std::ranges::find(space.knobs, "smg.cache_threshold", &Knob::name);
  ASSERT_NE(share, space.knobs.end());
  std::vector<std::string> texts;
  for (const KnobValue& value : share->values) texts.push_back(value.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"0.075", "0.15", "0.3", "0.65"}));
}

}  // namespace
}  // namespace routesim::tools
