// The verdict of a run: true for any number of variants, and no lie that a naive one would tell.
#include "tools/study/verdict/run_verdict.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/results/described_json.h"
#include "tools/results/result_record.h"

namespace routesim::tools {
namespace {

struct Stage {
  double rate;
  double latency;  ///< Mean, seconds.
  bool overloaded = false;
};

StageView view(double latency, double requests) {
  StageView s;
  const auto put = [&s](const char* key, double value) { s.values[key] = Datum{.value = value}; };
  put("requests", requests);
  put("failed_requests", 0);
  put("request_latency.mean", latency);
  put("ttft.mean", latency / 10);
  put("ttft.p99", latency / 5);
  put("output_throughput", 1000 / latency);
  return s;
}

/// Every stage has 100 requests, so the whole run's latency is the mean of its stages'.
VariantView variant(const std::string& name, const std::vector<Stage>& stages) {
  VariantView v{.name = name};
  double sum = 0;
  for (const Stage& stage : stages) {
    StageView s = view(stage.latency, 100);
    s.name = std::to_string(v.stages.size());
    s.rate = stage.rate;
    s.overloaded = stage.overloaded;
    v.stages.push_back(s);
    sum += stage.latency;
  }
  const auto n = static_cast<double>(stages.size());
  v.summary = view(sum / n, 100 * n);
  return v;
}

VariantView one_stage(const std::string& name, double latency) {
  return variant(name, {{10, latency}});
}

PageRun run_of(std::vector<VariantView> variants) {
  PageRun run;
  run.seed = "7";
  run.command = {.input = "x.yaml", .variants = "", .options = " --seed 7", .scan = ""};
  run.variants = std::move(variants);
  return run;
}

void set(VariantView& v, const char* key, double value) { v.summary.values[key].value = value; }

void set_goodput(VariantView& v, double per_second, double bound = 1) {
  v.goals = {{"ttft", bound}};
  set(v, "good_request_throughput", per_second);
  for (StageView& s : v.stages) s.values["good_request_throughput"].value = per_second;
}

/// The values of every seed, with their mean.
void set_seeds(VariantView& v, const std::vector<double>& latencies) {
  double mean = 0;
  for (const double value : latencies) mean += value / static_cast<double>(latencies.size());
  for (StageView* s : {&v.summary, v.stages.data()}) {
    s->values["request_latency.mean"].value = mean;
    s->seeds["request_latency.mean"] = latencies;
  }
}

/// The text with plain spaces.
std::string plain(std::string text) {
  for (std::size_t at; (at = text.find("\u00a0")) != std::string::npos;) text.replace(at, 2, " ");
  return text;
}

std::string headline(const PageRun& run) { return plain(verdict_of(run).headline); }

bool mentions(const std::vector<Step>& steps, const std::string& part) {
  for (const Step& step : steps)
    if (plain(step.text()).find(part) != std::string::npos) return true;
  return false;
}

std::vector<std::string> lines(const PageRun& run) {
  std::vector<std::string> texts;
  for (const VerdictLine& line : verdict_of(run).lines) texts.push_back(plain(line.text));
  return texts;
}

/// As many servers with as little latency.
std::vector<VariantView> fleets(const std::vector<std::size_t>& sizes, std::size_t enough) {
  std::vector<VariantView> variants;
  for (const std::size_t servers : sizes) {
    VariantView v =
        one_stage("a, " + std::to_string(servers) + " replicas", 10 / static_cast<double>(servers));
    v.stages[0].overloaded = servers < enough;
    v.fleet_of = "a";
    v.servers.resize(servers);
    variants.push_back(v);
  }
  return variants;
}

void add_class(VariantView& v, const std::string& name, double latency) {
  v.classes.push_back(view(latency, 100));
  v.classes.back().name = name;
}

TEST(RunVerdict, OneVariantSaysWhatItHolds) {
  const PageRun run = run_of({one_stage("a", 1)});
  const Verdict verdict = verdict_of(run);
  EXPECT_EQ(plain(verdict.headline),
            "a answers with a first token after 100 ms on average (p99 200 ms) and delivers "
            "1000 tok/s.");
  EXPECT_TRUE(verdict.lines.empty());
  EXPECT_TRUE(verdict.ranking.empty());
  ASSERT_EQ(verdict.knees.size(), 1U);
  EXPECT_EQ(plain(verdict.knees[0].text), "holds 10 req/s");
}

TEST(RunVerdict, OneOverloadedVariantShowsTheStageThatItHolds) {
  const PageRun run = run_of({variant("a", {{5, 1}, {10, 2}, {20, 60, true}})});
  EXPECT_EQ(headline(run),
            "a at 10 req/s answers with a first token after 200 ms on average (p99 400 ms) and "
            "delivers 500 tok/s. It is overloaded at 20 req/s (1 of 3 stages).");
}

TEST(RunVerdict, NamesWinnerBaseMeasureAndBothValues) {
  const PageRun run = run_of({one_stage("a", 3), one_stage("b", 1)});
  const Verdict verdict = verdict_of(run);
  EXPECT_EQ(plain(verdict.headline),
            "b wins against the base a: its requests finish 3 times sooner, "
            "after 1 s instead of 3 s on average.");
  ASSERT_FALSE(verdict.lines.empty());
  EXPECT_EQ(plain(verdict.lines[0].text),
            "first token, mean: 100 ms instead of 300 ms with the base a (-66.7 %)");
  EXPECT_TRUE(verdict.lines[0].better);
}

TEST(RunVerdict, ABaseThatIsBestIsComparedWithTheRunnerUp) {
  const PageRun run = run_of({one_stage("a", 1), one_stage("b", 3), one_stage("c", 2)});
  const Verdict verdict = verdict_of(run);
  EXPECT_EQ(plain(verdict.headline),
            "The base a wins among 3 variants: its requests finish 2 times sooner than with the "
            "runner-up c, "
            "after 1 s instead of 2 s on average.");
  EXPECT_EQ(plain(verdict.ranking),
            "Best first, by mean request latency: the base a 1 s, c 2 s, b 3 s.");
  for (const VerdictLine& line : verdict.lines)
    EXPECT_NE(line.text.find("with the runner-up c"), std::string::npos) << line.text;
}

/// The third of three wins: both the base and the runner-up are named, each with its own number.
TEST(RunVerdict, OfThreeBaseAndRunnerUpAreTold) {
  const PageRun run = run_of({one_stage("a", 4), one_stage("b", 2), one_stage("c", 1)});
  EXPECT_EQ(headline(run),
            "c wins among 3 variants: its requests finish 4 times sooner than with the base a, "
            "after 1 s instead of 4 s on average, and 2 times sooner than with the runner-up b "
            "(2 s).");
}

/// The runner-up is compared by what decides against the base, without the winner's part again.
TEST(RunVerdict, AHeadlineSaysEachFactOnce) {
  EXPECT_EQ(headline(run_of({variant("a", {{5, 1}, {10, 9, true}, {20, 9, true}}),
                             variant("b", {{5, 1}, {10, 1}, {20, 9, true}}),
                             variant("c", {{5, 1}, {10, 1}, {20, 1}})})),
            "c wins among 3 variants: it holds every rate, no knee up to 20 req/s; the base a "
            "holds 5 req/s and is overloaded from 10 req/s on; the runner-up b holds 10 req/s and "
            "is overloaded from 20 req/s on.");
  PageRun goals = run_of({one_stage("a", 1), one_stage("b", 1), one_stage("c", 1)});
  for (std::size_t i = 0; i < 3; ++i)
    set_goodput(goals.variants[i], 2 + 3 * static_cast<double>(i));
  EXPECT_EQ(headline(goals),
            "c wins among 3 variants: it delivers 4 times as many requests within the goals as the "
            "base a, 8 req/s instead of 2 req/s, and 1.6 times as many as the runner-up b "
            "(5 req/s).");
  PageRun failing = run_of({one_stage("a", 2), one_stage("b", 1), one_stage("c", 3)});
  set(failing.variants[0], "failed_requests", 50);
  set(failing.variants[1], "failed_requests", 20);
  EXPECT_EQ(headline(failing),
            "c wins among 3 variants: the base a fails 50.0 % of its requests, c 0.0 %, the "
            "runner-up b 20.0 %.");
}

TEST(RunVerdict, OfEightEachHasItsPlace) {
  std::vector<VariantView> variants;
  for (int i = 0; i < 8; ++i)
    variants.push_back(one_stage("v" + std::to_string(i), 1 + (i * 5) % 8));
  const Verdict verdict = verdict_of(run_of(std::move(variants)));
  EXPECT_EQ(plain(verdict.headline).rfind("The base v0 wins among 8 variants", 0), 0U);
  EXPECT_EQ(plain(verdict.ranking),
            "Best first, by mean request latency: the base v0 1 s, v5 2 s, v2 3 s, v7 4 s, v4 5 s, "
            "v1 6 s, v6 7 s, v3 8 s.");
  EXPECT_EQ(verdict.knees.size(), 8U);
}

TEST(RunVerdict, EqualValuesHaveNoWinner) {
  const PageRun pair = run_of({one_stage("a", 1), one_stage("b", 1.005)});
  EXPECT_EQ(headline(pair),
            "The base a and b are within 1 % of each other in mean request latency.");
  const PageRun four =
      run_of({one_stage("a", 1), one_stage("b", 1), one_stage("c", 1.004), one_stage("d", 1.002)});
  EXPECT_EQ(headline(four),
            "No variant wins: all 4 variants, the base a included, are within 1 % of each other in "
            "mean request latency.");
}

/// Two of four lead, and the base is not among them: it is named with its distance.
TEST(RunVerdict, SeveralLeadersShareTheLead) {
  const PageRun run =
      run_of({one_stage("a", 2), one_stage("b", 1), one_stage("c", 1.003), one_stage("d", 3)});
  EXPECT_EQ(headline(run),
            "b and c lead among 4 variants and are within 1 % of each other in mean request "
            "latency. b against the base a: its requests finish 2 times sooner, after 1 s instead "
            "of 2 s on average.");
  EXPECT_EQ(headline(run_of({one_stage("a", 1.03), one_stage("b", 1), one_stage("c", 1)})),
            "b and c lead among 3 variants and are within 1 % of each other in mean request "
            "latency. b against the base a: its requests finish 2.9 % sooner, after 1 s instead of "
            "1.03 s on average, which may be chance.");
}

/// In a tie the lines are about the variant that is not the base, and name it.
TEST(RunVerdict, LinesOfATieNameBothVariants) {
  PageRun run = run_of({one_stage("a", 1), one_stage("b", 1.004)});
  set(run.variants[1], "ttft.mean", 0.5);
  set(run.variants[1], "ttft.p99", 0.206);
  EXPECT_EQ(lines(run),
            (std::vector<std::string>{
                "first token, mean: 500 ms with b instead of 100 ms with the base a (+400.0 %)",
                "first token, p99: 206 ms with b instead of 200 ms with the base a (+3.0 %), which "
                "may be chance"}));
  const Verdict verdict = verdict_of(run);
  EXPECT_EQ(verdict.lines[0].better, std::optional(false));
  EXPECT_EQ(verdict.lines[1].better, std::nullopt);
  const std::string text = render_verdict(verdict, true);
  EXPECT_NE(text.find("\x1b[31m  - first token, mean: 500 ms"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  * first token, p99: 206 ms"), std::string::npos) << text;
}

TEST(RunVerdict, ABaseThatWinsAgainstOneVariantHasNoRunnerUp) {
  const PageRun run = run_of({one_stage("a", 1), one_stage("b", 3)});
  ASSERT_FALSE(lines(run).empty());
  for (const std::string& line : lines(run)) {
    EXPECT_NE(line.find(" with b"), std::string::npos) << line;
    EXPECT_EQ(line.find("runner-up"), std::string::npos) << line;
  }
}

/// The mean over all requests is the same; one class gains what the other loses.
TEST(RunVerdict, SaysWhichTrafficClassesATieHides) {
  PageRun run = run_of({one_stage("a", 1), one_stage("b", 1)});
  add_class(run.variants[0], "chat", 1);
  add_class(run.variants[0], "batch", 1);
  add_class(run.variants[1], "chat", 0.2);
  add_class(run.variants[1], "batch", 1.8);
  EXPECT_EQ(headline(run),
            "The base a and b are within 1 % of each other in mean request latency. Traffic "
            "classes differ: chat gets its first token sooner with b and batch gets its first "
            "token sooner with the base a.");
  EXPECT_EQ(lines(run),
            (std::vector<std::string>{
                "first token, mean of class chat: 20 ms with b instead of 100 ms with the base a "
                "(-80.0 %)",
                "request latency, mean of class chat: 200 ms with b instead of 1 s with the base a "
                "(-80.0 %)",
                "first token, mean of class batch: 180 ms with b instead of 100 ms with the base a "
                "(+80.0 %)",
                "request latency, mean of class batch: 1.8 s with b instead of 1 s with the base a "
                "(+80.0 %)"}));
  run.variants[1].classes[1] = run.variants[0].classes[1];
  run.variants[1].classes[0] = run.variants[0].classes[0];
  EXPECT_EQ(headline(run).find("Traffic"), std::string::npos) << "within noise";
}

TEST(RunVerdict, AWinnerThatIsWorseForAClassSaysSo) {
  PageRun run = run_of({one_stage("a", 2), one_stage("b", 1)});
  for (const char* name : {"chat", "batch"}) add_class(run.variants[0], name, 2);
  for (const char* name : {"chat", "batch"}) add_class(run.variants[1], name, 1);
  EXPECT_EQ(headline(run).find("Traffic"), std::string::npos) << "better for both";
  run.variants[1].classes[0] = view(4, 100);
  run.variants[1].classes[0].name = "chat";
  EXPECT_NE(headline(run).find("Traffic classes differ: chat gets its first token sooner with the "
                               "base a and batch gets its first token sooner with b."),
            std::string::npos)
      << headline(run);
}

TEST(RunVerdict, ASmallLeadOfOneRunMayBeChance) {
  const PageRun run = run_of({one_stage("a", 1), one_stage("b", 0.97)});
  EXPECT_EQ(headline(run),
            "b is ahead of the base a in this one run, which may be chance: its requests finish "
            "3.0 % sooner, after 970 ms instead of 1 s on average.");
  EXPECT_TRUE(mentions(verdict_of(run).next, "routesim run x.yaml --seed 7 --replications 5"));
  EXPECT_TRUE(verdict_of(run).close);
  EXPECT_TRUE(verdict_of(run_of({one_stage("a", 1.2), one_stage("b", 1)})).close)
      << "other seeds may turn a fifth";
  EXPECT_FALSE(verdict_of(run_of({one_stage("a", 1.3), one_stage("b", 1)})).close);
}

/// No change in percent has a base of zero.
TEST(RunVerdict, ALineBesideZeroHasNoPercentage) {
  PageRun run = run_of({one_stage("a", 3), one_stage("b", 1)});
  run.variants[0].summary.values["prefix_cache_hit_rate"].value = 0;
  run.variants[1].summary.values["prefix_cache_hit_rate"].value = 0.5;
  EXPECT_EQ(lines(run).back(), "prefix cache hits: 50 % instead of 0 % with the base a");
  EXPECT_EQ(verdict_of(run).lines.back().better, std::optional(true));
}

/// Over seeds the lead changes hands: the means differ by 4 %, the paired interval holds zero.
TEST(RunVerdict, WhatReplicationsDoNotDecideHasNoWinner) {
  PageRun run = run_of({one_stage("a", 1), one_stage("b", 1)});
  run.replications = 4;
  set_seeds(run.variants[0], {1.0, 1.1, 0.9, 1.0});
  set_seeds(run.variants[1], {0.8, 1.2, 0.7, 1.14});
  EXPECT_EQ(
      headline(run),
      "b and the base a are not distinguishable over 4 replications in mean request latency.");
  EXPECT_TRUE(mentions(verdict_of(run).next, "--replications 16"));
  set_seeds(run.variants[1], {1.0, 1.1, 0.9, 1.0});
  EXPECT_FALSE(mentions(verdict_of(run).next, "--replications")) << "no seed tells equals apart";
}

/// The values of two variants overlap, but with the same seed one is always better: paired.
TEST(RunVerdict, PairedSeedsDecideBetweenVariantsThatAreNotTheBase) {
  PageRun run = run_of({one_stage("a", 9), one_stage("b", 1), one_stage("c", 1)});
  run.replications = 4;
  set_seeds(run.variants[0], {9, 9, 9, 9.1});
  set_seeds(run.variants[1], {1.0, 2.0, 3.0, 4.0});
  set_seeds(run.variants[2], {0.9, 1.9, 2.91, 3.9});
  EXPECT_EQ(headline(run).rfind("c wins among 3 variants", 0), 0U) << headline(run);
}

TEST(RunVerdict, AVariantThatFailsDoesNotWinByTheRequestsThatItServes) {
  PageRun run = run_of({one_stage("a", 3), one_stage("b", 1)});
  set(run.variants[1], "failed_requests", 50);
  EXPECT_EQ(headline(run), "The base a wins against b: b fails 50.0 % of its requests, a 0.0 %.");
  EXPECT_TRUE(mentions(verdict_of(run).next, "--records requests.csv"));
}

/// b has the better mean latency of the whole run, for its overloaded stage is short.
TEST(RunVerdict, AnOverloadedVariantDoesNotWinByItsMean) {
  const PageRun run =
      run_of({variant("a", {{10, 5}, {20, 5}}), variant("b", {{10, 1}, {20, 2, true}})});
  EXPECT_EQ(headline(run),
            "The base a wins against b: it holds every rate, no knee up to 20 req/s; b holds 10 "
            "req/s and is overloaded from 20 req/s on.");
  for (const VerdictLine& line : verdict_of(run).lines)
    EXPECT_NE(plain(line.text).find(" at "), std::string::npos)
        << "not of the whole run: " << line.text;
}

TEST(RunVerdict, WhereAllAreOverloadedOutputDecides) {
  const PageRun run = run_of({variant("a", {{10, 5, true}}), variant("b", {{10, 2, true}})});
  EXPECT_EQ(headline(run),
            "b wins against the base a: it delivers 2.5 times as many output tokens, "
            "500 tok/s instead of 200 tok/s. b is itself overloaded at 10 req/s.");
  EXPECT_TRUE(mentions(verdict_of(run).next, "--rate 0.25x,0.5x"));
}

TEST(RunVerdict, OverloadInTheSameStageLeavesTheOthersToDecide) {
  const PageRun run = run_of({variant("a", {{5, 1}, {10, 2}, {20, 90, true}}),
                              variant("b", {{5, 2}, {10, 4}, {20, 80, true}})});
  EXPECT_EQ(headline(run),
            "The base a wins against b: its requests finish 2 times sooner in the 2 "
            "stages that they hold, after 1.5 s instead of 3 s on average. a is itself overloaded "
            "at 20 req/s (1 of 3 stages).");
}

TEST(RunVerdict, SaysWhereTheLeadChanges) {
  const PageRun run = run_of({variant("a", {{5, 2}, {10, 2}, {20, 3}, {40, 4}}),
                              variant("b", {{5, 1}, {10, 1}, {20, 5}, {40, 9}})});
  EXPECT_EQ(headline(run),
            "No single winner by mean request latency: b leads up to 10 req/s, the base a from 20 "
            "req/s on.");
}

TEST(RunVerdict, TheLeadChangesWithTheRateWhateverTheOrderOfTheStages) {
  EXPECT_EQ(headline(run_of({variant("a", {{5, 1}, {40, 9}, {20, 2}, {10, 1}}),
                             variant("b", {{5, 2}, {40, 5}, {20, 1}, {10, 2}})})),
            "No single winner by mean request latency: the base a leads up to 10 req/s, b from 20 "
            "req/s on.");
  EXPECT_EQ(headline(run_of({variant("a", {{5, 1}, {20, 1}, {10, 2}}),
                             variant("b", {{5, 2}, {20, 2}, {10, 1}})})),
            "No single winner by mean request latency: the base a leads up to 5 req/s, b at 10 "
            "req/s, the base a from 20 req/s on.");
}

TEST(RunVerdict, AWarmUpStageChangesNoLead) {
  PageRun run = run_of({variant("a", {{5, 1}, {10, 4}}), variant("b", {{5, 3}, {10, 1}})});
  for (VariantView& v : run.variants) {
    v.stages[0].reported = false;
    v.stages[0].overloaded = true;
    v.summary.values["request_latency.mean"] = v.stages[1].values["request_latency.mean"];
  }
  EXPECT_EQ(headline(run).rfind("b wins against the base a: its requests finish 4 times sooner", 0),
            0U);
  EXPECT_EQ(plain(verdict_of(run).knees[0].text), "holds 10 req/s");
}

/// A load that finds its rates sends each variant others: only the stages at the same rate compare.
TEST(RunVerdict, RunsAtOtherRatesCompareInTheStagesTheyShare) {
  PageRun run = run_of({variant("a", {{1, 2}, {8, 4}}), variant("b", {{1, 1}, {8.5, 8}})});
  for (VariantView& v : run.variants) {
    const bool b = v.name == "b";
    v.summary.values["prefix_cache_hit_rate"].value = b ? 0.9 : 0.3;
    for (StageView& s : v.stages) s.values["prefix_cache_hit_rate"].value = b ? 0.5 : 0.1;
  }
  EXPECT_EQ(headline(run).rfind("b wins against the base a: its requests finish 2 times sooner in "
                                "the one stage that they hold, after 1 s instead of 2 s",
                                0),
            0U)
      << headline(run);
  EXPECT_EQ(lines(run).back(),
            "prefix cache hits at 1 req/s: 50 % instead of 10 % with the base a (+40.0 points)");
  for (VariantView& v : run.variants) set_goodput(v, v.name == "b" ? 4 : 2);
  set(run.variants[0], "good_request_throughput", 100);
  EXPECT_NE(headline(run).find("requests within the goals in the one stage that they share, 4 "
                               "req/s instead of 2 req/s"),
            std::string::npos)
      << headline(run);
}

TEST(RunVerdict, GoalsDecideByGoodput) {
  PageRun run = run_of({one_stage("a", 1), one_stage("b", 2)});
  set_goodput(run.variants[0], 4);
  set_goodput(run.variants[1], 8);
  const Verdict verdict = verdict_of(run);
  EXPECT_EQ(plain(verdict.headline),
            "b wins against the base a: it delivers 2 times as many requests within the goals, "
            "8 req/s instead of 4 req/s.");
  EXPECT_EQ(plain(verdict.goals), "Goodput counts requests with ttft ≤ 1 s.");
}

/// The caveat is about the runner-up, which is close; the base is not.
TEST(RunVerdict, ABaseThatServesNoneWithinTheGoalsIsNotBeatenByChance) {
  PageRun run = run_of({one_stage("a", 1), one_stage("b", 2)});
  set_goodput(run.variants[0], 0);
  set_goodput(run.variants[1], 4);
  EXPECT_EQ(headline(run),
            "b wins against the base a: it delivers requests within the goals, 4 req/s, and the "
            "base a none.");
  run.variants.push_back(one_stage("c", 2));
  set_goodput(run.variants[2], 4.1);
  EXPECT_EQ(headline(run),
            "c is ahead among 3 variants: it delivers requests within the goals, 4.1 req/s, and "
            "the base a none, and 2.5 % more than the runner-up b (4 req/s), which may be chance.");
}

TEST(RunVerdict, GoalsOfOneVariantDecideNothing) {
  PageRun run = run_of({one_stage("a", 1), one_stage("b", 2)});
  set_goodput(run.variants[1], 8);
  EXPECT_EQ(headline(run).rfind("The base a wins against b: its requests finish", 0), 0U);
  set_goodput(run.variants[0], 4, 0.5);
  EXPECT_EQ(headline(run).rfind("The base a wins against b: its requests finish", 0), 0U)
      << "goodput by other goals is another measure";
}

TEST(RunVerdict, NobodyServesWithinTheGoals) {
  PageRun run = run_of({one_stage("a", 1), one_stage("b", 2)});
  for (VariantView& v : run.variants) set_goodput(v, 0);
  EXPECT_EQ(headline(run), "No variant serves a request within the goals; the base is a.");
}

TEST(RunVerdict, KneesComeFromTheLadder) {
  const PageRun run =
      run_of({variant("a", {{5, 1}, {10, 1}, {20, 9, true}, {40, 9, true}}),
              variant("b", {{5, 9, true}, {10, 9, true}, {20, 9, true}, {40, 9, true}}),
              variant("c", {{5, 1}, {10, 9, true}, {20, 1}, {40, 9, true}}),
              variant("d", {{5, 1}, {10, 1}, {20, 1}, {40, 1}})});
  const Verdict verdict = verdict_of(run);
  ASSERT_EQ(verdict.knees.size(), 4U);
  EXPECT_EQ(plain(verdict.knees[0].text), "holds 10 req/s and is overloaded from 20 req/s on");
  EXPECT_EQ(verdict.knees[0].last_held, 10);
  EXPECT_EQ(verdict.knees[0].first_overloaded, 20);
  EXPECT_EQ(plain(verdict.knees[1].text), "is overloaded at 5 req/s, the lowest rate");
  EXPECT_FALSE(verdict.knees[1].last_held);
  EXPECT_EQ(plain(verdict.knees[2].text),
            "holds 5 req/s and is overloaded at 10 req/s, though it holds 20 req/s again");
  EXPECT_EQ(plain(verdict.knees[3].text), "holds every rate, no knee up to 40 req/s");
  EXPECT_FALSE(verdict.knees[3].first_overloaded);
  EXPECT_TRUE(mentions(verdict.next,
                       "No knee of d up to 40 req/s; scan higher rates: routesim run "
                       "x.yaml --seed 7 --rate 2x"));
  EXPECT_EQ(plain(verdict.overload),
            "Overloaded, so that latencies depend on how long a stage lasts: a from 20 req/s on (2 "
            "of 4 stages); b in every stage; c at 10 req/s, 40 req/s (2 of 4 stages).");
}

/// A queue limit or a timeout keeps queues short: the requests that fail show the knee.
TEST(RunVerdict, NextNamesTheBoundOfEachVariant) {
  const Verdict verdict = verdict_of(
      run_of({variant("a", {{4, 9, true}}), variant("b", {{4, 1}}), variant("c", {{8, 1}}),
              variant("d", {{8, 1}}), variant("e", {{12, 9, true}})}));
  EXPECT_TRUE(mentions(verdict.next, "No knee of b up to 4 req/s, of c, d up to 8 req/s; scan"));
  EXPECT_TRUE(
      mentions(verdict.next, "No held rate of a down to 4 req/s, of e down to 12 req/s; scan"));
}

/// Factors scale a load of several rates; rates do not.
TEST(RunVerdict, NextScansAsTheRunDid) {
  PageRun run = run_of({variant("a", {{5, 1}, {10, 1}})});
  run.command.scan = " --rate 0.1x,0.2x --replicas 2,4";
  EXPECT_TRUE(mentions(verdict_of(run).next, " --rate 0.3x,0.4x --replicas 2,4"));
  run.command.scan = " --rate 133.3,3.3333";
  EXPECT_TRUE(mentions(verdict_of(run).next, " --rate 200,267"));
  run.variants[0].stages[0].overloaded = true;
  EXPECT_TRUE(mentions(verdict_of(run).next, " --rate 0.833,1.67"));
}

TEST(RunVerdict, AStageThatFailsRequestsIsNotHeld) {
  PageRun run = run_of({variant("a", {{5, 1}, {10, 1}, {20, 1}}), variant("b", {{5, 1}}),
                        variant("c", {{5, 1}, {10, 1}, {20, 1}})});
  run.variants[0].stages[1].values["failed_requests"].value = 2;
  run.variants[1].stages[0].values["failed_requests"].value = 40;
  run.variants[2].stages[0].values["failed_requests"].value = 1;
  const Verdict verdict = verdict_of(run);
  EXPECT_EQ(plain(verdict.knees[0].text),
            "holds 5 req/s and fails 2 % of its requests at 10 req/s, though it holds 20 req/s "
            "again");
  EXPECT_EQ(verdict.knees[0].first_overloaded, 10);
  EXPECT_EQ(plain(verdict.knees[1].text), "fails 40 % of its requests at 5 req/s");
  EXPECT_EQ(plain(verdict.knees[2].text), "holds every rate, no knee up to 20 req/s");
  run.variants.pop_back();
  run.variants.pop_back();
  EXPECT_FALSE(mentions(verdict_of(run).next, "scan higher rates"));
}

TEST(RunVerdict, AFleetThatFailsRequestsIsTooSmall) {
  PageRun run = run_of(fleets({2, 3}, 0));
  run.variants[0].stages[0].values["failed_requests"].value = 50;
  set(run.variants[0], "failed_requests", 50);
  EXPECT_EQ(lines(run).back(),
            "the fewest servers that hold the load: a, 3 replicas (a, 2 replicas fails 50.0 % of "
            "its requests)");
}

/// The stages send for so many seconds.
void set_lengths(VariantView& v, const std::vector<double>& seconds) {
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    v.stages[i].values["send_duration"].value = seconds[i];
    v.stages[i].values["requests"].value = seconds[i] * *v.stages[i].rate;
  }
}

std::string knee(const VariantView& v) { return plain(verdict_of(run_of({v})).knees.front().text); }

/// Servers may take all requests of a stage at once that sends for less than three answers.
TEST(RunVerdict, AStageThatIsShorterThanThreeAnswersShowsNoKnee) {
  VariantView v = variant("a", {{5, 9}, {50, 10}, {100, 10}});
  set_lengths(v, {27, 30, 29.9});
  EXPECT_EQ(knee(v), "holds 50 req/s; its stage at 100 req/s is too short to tell");
  EXPECT_FALSE(mentions(verdict_of(run_of({v})).next, "scan")) << "neither higher nor lower";
  v.stages[2].overloaded = true;
  EXPECT_EQ(knee(v), "holds 50 req/s and is overloaded from 100 req/s on");
  set_lengths(v, {20, 20, 20});
  EXPECT_EQ(
      knee(v),
      "is overloaded from 100 req/s on; its stages from 5 req/s to 50 req/s are too short to tell");
  EXPECT_FALSE(mentions(verdict_of(run_of({v})).next, "scan lower rates"));
  v.stages[2].overloaded = false;
  EXPECT_EQ(knee(v),
            "is overloaded at no rate up to 100 req/s, in stages that are too short to tell what "
            "it holds");
  VariantView one = variant("a", {{100, 3}});
  set_lengths(one, {8});
  EXPECT_EQ(knee(one), "has a stage that is too short to tell at 100 req/s");
}

TEST(RunVerdict, AStageThatIsTooShortIsNoReasonForFewerServers) {
  std::vector<VariantView> variants = fleets({4, 4}, 5);
  variants[1].stages[0].overloaded = false;
  variants[1].name = "b";
  PageRun run = run_of(variants);
  for (VariantView& v : run.variants) {
    v.fleet_of.clear();
    v.resolved = {{"cluster.pools[0].replicas", "4"}};
  }
  EXPECT_TRUE(mentions(verdict_of(run).next, "may need fewer servers than 4"));
  set_lengths(run.variants[1], {1});
  EXPECT_FALSE(mentions(verdict_of(run).next, "may need fewer servers"));
}

/// A cold stage, and a warm one of the same rate.
TEST(RunVerdict, TheLongestStageAnswersForItsRate) {
  VariantView v = variant("a", {{14, 3, true}, {3, 1}, {6, 1}, {14, 1}});
  set_lengths(v, {12, 60, 60, 60});
  EXPECT_EQ(knee(v), "holds every rate, no knee up to 14 req/s");
  v = variant("a", {{18, 3}, {6, 1}, {18, 9, true}});
  set_lengths(v, {20, 60, 60});
  EXPECT_EQ(knee(v), "holds 6 req/s and is overloaded from 18 req/s on");
}

TEST(RunVerdict, AShortStageBeyondAnOverloadedRateHoldsNothing) {
  VariantView v = variant("a", {{9, 3}, {24, 9, true}, {30, 9}});
  set_lengths(v, {60, 60, 15});
  EXPECT_EQ(
      knee(v),
      "holds 9 req/s and is overloaded from 24 req/s on; its stage at 30 req/s is too short to "
      "tell");
}

TEST(RunVerdict, ServersThatGetNothingAreNamed) {
  PageRun run = run_of({one_stage("a", 1), one_stage("b", 1)});
  run.variants[1].servers = {{.name = "p-0", .pool = "p", .values = {{"requests", {.value = 9}}}},
                             {.name = "p-1", .pool = "p", .values = {{"requests", {.value = 0}}}}};
  EXPECT_NE(verdict_of(run).trust.find(" b sends nothing to p-1."), std::string::npos)
      << verdict_of(run).trust;
}

TEST(RunVerdict, RequestsThatAreTooLongCompareNothing) {
  PageRun run = run_of({one_stage("a", 1), one_stage("b", 2)});
  for (VariantView& v : run.variants)
    for (StageView* s : {&v.summary, v.stages.data()})
      s->values["failed_requests"].value = s->values["too_long"].value = 89;
  EXPECT_EQ(headline(run), "89 of 100 requests are longer than max_model_len: no comparison.");
  EXPECT_EQ(verdict_of(run).winner, "");
  EXPECT_EQ(plain(verdict_of(run).knees[0].text), "refuses requests that are too long at any load");
  run.variants.pop_back();
  EXPECT_EQ(headline(run).rfind("89 of 100 requests are longer than max_model_len. a answers", 0),
            0U)
      << headline(run);
}

/// inference-perf writes the number of requests as the rate of a closed loop.
TEST(RunVerdict, AClosedLoopIsNotHeldBack) {
  const auto run_with = [](double rate) {
    RunRecord run;
    run.variants.resize(1);
    LoadRecord& load = run.variants[0].stages.emplace_back().lifecycle.load;
    load.count = 60;
    load.stage->requested_rate = rate;
    load.stage->achieved_rate = 5;
    load.stage->concurrency = 2;
    load.schedule_delay = SamplesRecord{.mean = 4};
    return page_run(run, "/runs/0");
  };
  EXPECT_FALSE(run_with(60).variants[0].stages[0].overloaded);
  EXPECT_TRUE(run_with(50).variants[0].stages[0].overloaded) << "a rate and a cap";
}

TEST(RunVerdict, AllThatRestOnTheSameAreNamed) {
  PageRun run = run_of({variant("a", {{5, 1}}), variant("b", {{5, 2}}), variant("c", {{5, 3}})});
  run.variants[0].trust = run.variants[2].trust = "rests on a curve";
  run.variants[1].trust = "rests on the roofline";
  EXPECT_NE(plain(verdict_of(run).trust).find(" a and c rest on a curve. b rests on the roofline."),
            std::string::npos)
      << verdict_of(run).trust;
}

/// At 10 req/s b is ahead by less than a clear difference: neither's span ends there.
TEST(RunVerdict, AnUnclearStageEndsNoLead) {
  const Verdict verdict = verdict_of(run_of({variant("a", {{2, 1}, {5, 1}, {10, 3.03}, {20, 9}}),
                                             variant("b", {{2, 2}, {5, 2}, {10, 3}, {20, 4}})}));
  EXPECT_NE(plain(verdict.headline).find("the base a leads up to 5 req/s, b from 20 req/s on"),
            std::string::npos)
      << verdict.headline;
}

/// Variants that a scan runs at several rates are compared at each rate, never across.
TEST(RunVerdict, AScanOfRatesComparesWithinEachLoad) {
  std::vector<VariantView> variants;
  for (const double rate : {10.0, 20.0})
    for (const char* policy : {"a", "b"}) {
      const bool slow = policy == std::string("a");
      VariantView v = variant(policy + (" @ " + std::to_string(rate)),
                              {{rate, slow ? 3.0 : 1.0, slow && rate > 15}});
      v.scan_of = policy;
      v.resolved = {{"workload.rate_scale", std::to_string(rate / 10)}};
      variants.push_back(v);
    }
  const Verdict verdict = verdict_of(run_of(std::move(variants)));
  EXPECT_EQ(plain(verdict.headline), "b wins against the base a at each of the 2 loads.");
  ASSERT_EQ(verdict.lines.size(), 2U);
  EXPECT_EQ(verdict.lines[0].text.rfind("b @ 10", 0), 0U);
  EXPECT_EQ(verdict.lines[1].text.rfind("b @ 20", 0), 0U);
  ASSERT_EQ(verdict.knees.size(), 2U);
  EXPECT_EQ(verdict.knees[0].variant, "a");
  EXPECT_EQ(plain(verdict.knees[0].text), "holds 10 req/s and is overloaded from 20 req/s on");
  EXPECT_EQ(plain(verdict.knees[1].text), "holds every rate, no knee up to 20 req/s");
}

TEST(RunVerdict, ALoadOfOneVariantIsNoContest) {
  std::vector<VariantView> variants;
  for (const auto& [name, load] : {std::pair("a", "1"), {"b", "2"}, {"c", "2"}, {"d", "3"}}) {
    variants.push_back(one_stage(name, name == std::string("c") ? 1 : 3));
    variants.back().resolved = {{"workload.rate_scale", load}};
  }
  EXPECT_EQ(headline(run_of(variants)),
            "c wins against the base b at the one load that several variants face.");
  variants.push_back(one_stage("c", 1));
  variants.back().resolved = {{"workload.rate_scale", "3"}};
  EXPECT_EQ(headline(run_of(variants)),
            "c wins at each of the 2 loads that several variants face.");
}

TEST(RunVerdict, FailedExpectationsAndInterruptionsAreSaid) {
  PageRun run = run_of({one_stage("a", 1)});
  run.interrupted = true;
  run.expectations = {{.what = "ttft_ms.p99 < 5",
                       .scope = "a",
                       .where = {},
                       .decision = Decision::kFails,
                       .detail = "9"},
                      {.what = "ttft_ms.p99 < 50", .scope = "a", .where = {}, .detail = ""}};
  const Verdict verdict = verdict_of(run);
  EXPECT_EQ(verdict.failed, std::vector<std::string>{"fails: ttft_ms.p99 < 5 (a): found 9"});
  EXPECT_EQ(verdict.headline.rfind("The run was interrupted, so its numbers are partial.", 0), 0U);
  ASSERT_EQ(verdict.next.size(), 1U);
  EXPECT_EQ(verdict.next[0].why, "Run it to its end");
  EXPECT_EQ(verdict.next[0].command, "routesim run x.yaml --seed 7");
}

/// The stage that an interrupt cut short, and those after it, are no part of any sentence.
TEST(RunVerdict, UnfinishedStagesAreLeftOutAndCounted) {
  PageRun run = run_of({variant("a", {{5, 2}, {10, 2}, {20, 2}}),
                        variant("b", {{5, 1}, {10, 90, true}, {20, 90, true}})});
  run.interrupted = true;
  run.variants[1].stages[1].unfinished = run.variants[1].stages[2].unfinished = true;
  const Verdict verdict = verdict_of(run);
  EXPECT_EQ(plain(verdict.headline),
            "The run was interrupted, so its numbers are partial; 2 stages did not end and are "
            "left out. b wins against the base a: its requests finish 2 times sooner in the one "
            "stage that they hold, after 1 s instead of 2 s on average.");
  EXPECT_EQ(verdict.overload, "");
  EXPECT_EQ(plain(verdict.knees[1].text), "holds 5 req/s");
  for (const std::string& line : lines(run))
    EXPECT_NE(line.find(" at 5 req/s"), std::string::npos) << line;
}

TEST(RunVerdict, AVariantWithoutAFinishedStageIsNotJudged) {
  PageRun run = run_of({one_stage("a", 2), one_stage("b", 1)});
  run.interrupted = true;
  run.variants[1].stages[0].unfinished = true;
  const Verdict one = verdict_of(run);
  EXPECT_NE(plain(one.headline).find("1 stage did not end and is left out. a answers"),
            std::string::npos)
      << one.headline;
  EXPECT_EQ(one.knees.size(), 1U);
  run.variants[0].stages[0].unfinished = true;
  EXPECT_NE(verdict_of(run).headline.find("2 stages did not end and are left out. No stage ended."),
            std::string::npos);
}

TEST(RunVerdict, ABiggerFleetIsNamedAsBigger) {
  PageRun run = run_of({one_stage("4 replicas", 3), one_stage("8 replicas", 1)});
  run.variants[0].servers.resize(4);
  run.variants[1].servers.resize(8);
  EXPECT_NE(headline(run).find("(8 servers instead of 4)"), std::string::npos) << headline(run);
  run.variants[1].servers.resize(1);
  EXPECT_NE(headline(run).find("(1 server instead of 4)"), std::string::npos) << headline(run);
}

/// A scan of fleets asks for the fewest servers, not for the fastest fleet.
TEST(RunVerdict, AScanOfFleetsNamesTheFewestServersThatHold) {
  const Verdict verdict = verdict_of(run_of(fleets({2, 3, 4, 5}, 4)));
  EXPECT_EQ(plain(verdict.lines.back().text),
            "the fewest servers that hold the load: a, 4 replicas (a, 3 replicas is overloaded at "
            "10 req/s)");
  EXPECT_EQ(plain(verdict.ranking),
            "Best first, by load, then by mean request latency: a, 5 replicas 2 s; a, 4 replicas "
            "2.5 s; a, 3 replicas; the base a, 2 replicas.")
      << "the table of loads says what each holds";
}

TEST(RunVerdict, AScanOfFleetsThatAreAllTooSmallSaysSo) {
  const Verdict verdict = verdict_of(run_of(fleets({2, 3}, 4)));
  EXPECT_EQ(plain(verdict.lines.back().text),
            "no size of a that was tried holds the load: a, 3 replicas is overloaded at 10 req/s");
  EXPECT_EQ(verdict.lines.back().better, std::optional(false));
}

/// A closed loop waits for its answers, so it "holds" on any fleet.
TEST(RunVerdict, AClosedLoopIsNoProofThatAFleetIsLargeEnough) {
  std::vector<VariantView> variants = fleets({2, 3}, 0);
  for (VariantView& v : variants) {
    v.stages[0].rate = 0;
    v.stages[0].concurrency = 16;
  }
  const PageRun run = run_of(std::move(variants));
  EXPECT_EQ(lines(run).back().rfind("a closed loop overloads no fleet", 0), 0U)
      << lines(run).back();
  for (const std::string& line : lines(run))
    EXPECT_EQ(line.find("hold the load"), std::string::npos) << line;
}

/// (110 - 100) / 100 and (80 - 100) / 100: 15 % on average, at worst -20 %.
TEST(RunVerdict, TrustNamesTheErrorsBesideTheScenariosOwnNumbers) {
  PageRun run = run_of({variant("a", {{5, 1.1}, {10, 0.8}, {20, 1}})});
  EXPECT_EQ(verdict_of(run).trust.find("measured"), std::string::npos);
  for (std::size_t i = 0; i < 2; ++i) run.variants[0].stages[i].measured["ttft.mean"] = 0.1;
  run.variants[0].stages[2].measured["ttft.mean"] = 0.1;
  run.variants[0].stages[2].unfinished = true;
  EXPECT_NE(verdict_of(run).trust.find("Mean error beside the scenario's measured numbers (how "
                                       "many, worst): a: TTFT mean 15.0 % (2, worst -20.0 %)."),
            std::string::npos)
      << verdict_of(run).trust;
}

TEST(RunVerdict, AScanSaysThatItJudgesNoExpectation) {
  PageRun run = run_of({one_stage("a", 1)});
  run.variants[0].resolved = {{"expect[0].that", "ttft_ms.p99 < 5"}};
  EXPECT_EQ(verdict_of(run).trust.find("expectation"), std::string::npos);
  run.variants[0].scan_of = "b";
  EXPECT_NE(verdict_of(run).trust.find("A scan judges no expectation"), std::string::npos);
}

TEST(RunVerdict, IsTheSameInJson) {
  const Verdict verdict = verdict_of(run_of({one_stage("a", 3), one_stage("b", 1)}));
  JsonWriter writer;
  VerdictRecord record = verdict_record(verdict);
  write_value(writer, record);
  const nlohmann::json value = nlohmann::json::parse(writer.str());
  EXPECT_EQ(value["headline"], plain(verdict.headline));
  ASSERT_EQ(value["lines"].size(), verdict.lines.size());
  EXPECT_EQ(value["lines"][0]["better"], true);
  EXPECT_EQ(value["knees"][1]["last_held"], 10);
  EXPECT_TRUE(value["knees"][1]["first_overloaded"].is_null());
  ASSERT_EQ(value["next"].size(), verdict.next.size());
  ASSERT_FALSE(verdict.next.empty());
  EXPECT_EQ(value["next"][0], plain(verdict.next[0].why + ": " + verdict.next[0].command));
  JsonWriter tie;
  record = verdict_record(verdict_of(run_of({one_stage("a", 1), one_stage("b", 1.03)})));
  write_value(tie, record);
  EXPECT_TRUE(nlohmann::json::parse(tie.str())["lines"][0]["better"].is_null());
}

TEST(RunVerdict, NoVariantHasNoWinner) {
  EXPECT_EQ(verdict_of(PageRun{}).headline, "No variant was run.");
}

}  // namespace
}  // namespace routesim::tools
