// When goals are missed, what is said to have happened then, and the sentences about it.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/plan/fleet_plan.h"
#include "tests/sim/plan_fixture.h"
#include "tools/results/metric_name.h"
#include "tools/results/report.h"
#include "tools/results/result_record.h"
#include "tools/results/result_set.h"
#include "tools/study/experiment/experiment.h"
#include "tools/study/run/fleet_tables.h"
#include "tools/study/verdict/verdict_parts.h"

namespace routesim::tools {
namespace {

using sim::RunResult;
using sim::Timeline;

// One server crashes at 20 s and serves again at 40 s. A request a second, at half seconds: those
// of 20.5 s to 39.5 s fail, 10 in each of two bins of 15 s.
TEST(OverTime, ACrashBySecond) {
  std::vector<sim::testing::Sent> script;
  for (std::int64_t ms = 500; ms < 60'000; ms += 1'000) script.push_back({.at_ms = ms});
  sim::RunPlan plan = sim::testing::hand_made_plan(script, 1);
  plan.scenario.routing.balancer = sim::BalancerKind::kRoundRobin;
  const Duration at_once = Duration::milliseconds(1);
  plan.scenario.routing.discovery =
      sim::DiscoveryConfig{.join = at_once, .leave = at_once, .leave_unseen = at_once};
  plan.scenario.cluster.pools = {plan.pools.front().config};
  sim::FleetEventConfig crash;
  crash.at = Duration::seconds(20);
  crash.servers = {0};
  plan.scenario.events = {crash};
  plan.pools.front().start_up.load = Duration::seconds(20);
  ExperimentProgress progress;
  Diagnostics found;
  Experiment experiment(1, progress, found);
  const std::optional<RunResult> r =
      experiment.run({.plan = plan, .goals = {.request_latency = 1}, .check = true}, found);
  ASSERT_TRUE(r && r->timeline && r->timeline->goals);
  using Bins = std::vector<std::int64_t>;
  EXPECT_EQ(r->timeline->sent, (Bins{15, 15, 15, 15}));
  EXPECT_EQ(r->timeline->answered, (Bins{15, 5, 5, 15}));
  EXPECT_EQ(r->timeline->failed, (Bins{0, 10, 10, 0}));
  EXPECT_EQ(r->timeline->goals->good, (Bins{15, 5, 5, 15}));
  ASSERT_EQ(r->timeline->goals->missed.size(), 1U);
  const sim::MissedSpan& span = r->timeline->goals->missed.front();
  EXPECT_EQ(span.from_s, 15);
  EXPECT_EQ(span.to_s, 45);
  EXPECT_EQ(span.why, "pool-0 crashes (0 of 1 server serve)");
  const auto metric = [&](const char* name) {
    return metric_value(r->summary, *parse_metric_name(name).value);
  };
  EXPECT_EQ(metric("minutes_missed"), 0.5);
  EXPECT_EQ(metric("fleet_mean_servers"), 1);
  EXPECT_EQ(metric("fleet_lost"), 0);  // Nothing was in the server.
}

// The machine of one of two servers is lost at 20 s. Its 20 requests of 19.9 s fail 924.6 s later:
// the crash at 300 s is none of their business.
TEST(OverTime, ALostConnectionIsOpenForLong) {
  std::vector<sim::testing::Sent> script;
  for (int i = 0; i < 40; ++i) script.push_back({.at_ms = 19'900, .output = 1'000});
  sim::RunPlan plan = sim::testing::hand_made_plan(script, 2);
  plan.scenario.routing.balancer = sim::BalancerKind::kRoundRobin;
  plan.scenario.routing.discovery = sim::DiscoveryConfig{};
  plan.scenario.cluster.pools = {plan.pools.front().config};
  sim::FleetEventConfig loss;
  loss.kind = sim::FleetEventKind::kNodeLoss;
  loss.at = Duration::seconds(20);
  loss.servers = {0};
  sim::FleetEventConfig crash = loss;
  crash.kind = sim::FleetEventKind::kCrash;
  crash.at = Duration::seconds(300);
  crash.servers = {1};
  plan.scenario.events = {loss, crash};
  ExperimentProgress progress;
  Diagnostics found;
  Experiment experiment(1, progress, found);
  const std::optional<RunResult> r =
      experiment.run({.plan = plan, .goals = {.request_latency = 100}, .check = true}, found);
  ASSERT_TRUE(r && r->timeline && r->timeline->goals);
  EXPECT_EQ(r->summary.failures, 20);
  EXPECT_NEAR((r->summary.last_end - SimTime::zero()).to_seconds(), 944.6, 1);
  ASSERT_EQ(r->timeline->goals->missed.size(), 1U);
  EXPECT_EQ(r->timeline->goals->missed[0].why,
            "pool-0 vanishes with its machine (1 of 2 servers serve)");
}

/// A minute by minute run of 40 requests each, of which minute 4 (60 s from 240 s on) loses half.
class Causes : public ::testing::Test {
 protected:
  Causes() {
    for (int minute = 0; minute < 10; ++minute)
      for (int i = 0; i < 40; ++i) {
        const SimTime sent = SimTime::zero() + Duration::milliseconds(60'000 * minute + 1'500 * i);
        counts_.on_sent(sent);
        counts_.on_done(sent, sent + Duration::seconds(2), true, minute != 4 || i % 2 == 0);
      }
    run_.summary.requests = run_.summary.successes = 400;
    scenario_.cluster.pools.emplace_back();
  }
  void servers(std::vector<sim::FleetPoint> points, std::vector<sim::FleetMark> marks = {}) {
    run_.fleet.emplace();
    run_.fleet->pools.push_back({.pool = "p", .points = std::move(points)});
    run_.fleet->marks = std::move(marks);
  }
  std::string why() {
    complete_timeline(counts_, loads_, scenario_, true, run_);
    const std::vector<sim::MissedSpan>& missed = run_.timeline->goals->missed;
    EXPECT_EQ(missed.size(), 1U);
    if (missed.size() != 1) return {};
    EXPECT_EQ(missed[0].from_s, 240);
    EXPECT_EQ(missed[0].to_s, 300);
    return missed[0].why;
  }

  sim::TimelineCounter counts_;
  std::map<std::int64_t, sim::TimelineCounter> loads_;
  sim::Scenario scenario_;
  RunResult run_;
};

TEST_F(Causes, NoEvent) {
  servers({{0, 8, 8, 8}});
  EXPECT_EQ(why(), "no event at that time, 0.667 req/s where 0.667 are the mean (all 8 serve)");
}

TEST_F(Causes, LaterCrashesHaveTheServersOfTheirTime) {
  servers({{0, 8, 8, 8}, {280, 8, 7, 8}}, {{280, "crashes", "p-3"}});
  EXPECT_EQ(
      why(),
      "no event at that time, 0.667 req/s where 0.667 are the mean; later p-3 crashes (7 of 8 "
      "servers serve then)");
}

TEST_F(Causes, LaterGrowthTakesNoServer) {
  servers({{0, 6, 6, 6}, {280, 8, 6, 8}}, {{280, "scales from 6 to 8", "p"}});
  EXPECT_EQ(
      why(),
      "no event at that time, 0.667 req/s where 0.667 are the mean; later p scales from 6 to 8 "
      "(all 6 serve)");
}

// A load with a tenth of the requests misses always: the whole has 97.5 %, which would be enough.
TEST_F(Causes, EachLoadOfAMixIsJudged) {
  for (int i = 0; i < 4; ++i) {
    const SimTime sent = SimTime::zero() + Duration::seconds(120 + i);
    for (int n = 0; n < 10; ++n) {
      loads_[1].on_sent(sent);
      loads_[1].on_done(sent, sent + Duration::seconds(3), true, false);
    }
  }
  scenario_.workload.mix.resize(2);
  scenario_.workload.mix[1].name = "chat";
  loads_[1] = loads_[1].in_bins_of(counts_);
  complete_timeline(counts_, loads_, scenario_, true, run_);
  const sim::Timeline::Goals& goals = *run_.timeline->goals;
  ASSERT_EQ(goals.missed.size(), 1U) << "the whole is not judged beside its loads";
  EXPECT_EQ(goals.missed[0].from_s, 120);
  EXPECT_EQ(goals.missed[0].sent, 40);
  EXPECT_EQ(goals.missed[0].why, "chat: no event at that time, 2.67 req/s where 2.67 are the mean");
  EXPECT_EQ(goals.missed_minutes, 0.25);
}

TEST_F(Causes, NothingOfAFleetThatStays) {
  EXPECT_EQ(why(), "no event at that time, 0.667 req/s where 0.667 are the mean");
}

TEST_F(Causes, ServersAreMissing) {
  servers({{0, 8, 8, 8}, {250, 8, 7, 8}, {255, 8, 6, 8}, {500, 8, 8, 8}},
          {{250, "crashes", "p-3"},
           {255, "vanishes with its machine", "p-4"},
           {500, "is ready", "p-3"}});
  EXPECT_EQ(why(), "p-3 crashes and p-4 vanishes with its machine (6 of 8 servers serve)");
}

// It began long before.
TEST_F(Causes, ServersAreStillMissing) {
  servers({{0, 8, 8, 8}, {100, 8, 7, 8}}, {{50, "is evicted", "p-1"}, {100, "crashes", "p-3"}});
  EXPECT_EQ(why(), "p-3 crashes 2 min before (7 of 8 servers serve)");
}

// The last request of the minute that misses ends at 300.5 s: a crash at 300.7 s is none of its
// business, until one more fails at 300.9 s.
TEST_F(Causes, AnEventMayEndWhatWasSentBefore) {
  servers({{0, 8, 8, 8}, {300.7, 8, 7, 8}}, {{300.7, "crashes", "p-3"}});
  EXPECT_EQ(why(), "no event at that time, 0.667 req/s where 0.667 are the mean (all 8 serve)");
  const SimTime sent = SimTime::zero() + Duration::milliseconds(299'900);
  counts_.on_sent(sent);
  counts_.on_done(sent, sent + Duration::seconds(1), false, false);
  ++run_.summary.requests;
  ++run_.summary.failures;
  EXPECT_EQ(why(),
            "no event at that time, 0.683 req/s where 0.668 are the mean; later p-3 crashes (7 of "
            "8 servers serve then)");
}

TEST_F(Causes, AnAutoscalerIsBehind) {
  servers({{0, 3, 3, 3}, {220, 5, 3, 5}, {320, 5, 5, 5}}, {{220, "scales from 3 to 5", "p"}});
  EXPECT_EQ(why(), "p scales from 3 to 5 20 s before (3 of 5 servers serve)");
}

// From 3 to 6 in two steps, and back to 5.
TEST_F(Causes, StepsOfAnAutoscalerAreOne) {
  servers({{0, 3, 3, 3}, {250, 4, 3, 4}, {260, 6, 3, 6}, {270, 5, 3, 5}, {320, 5, 5, 5}},
          {{250, "scales from 3 to 4", "p"},
           {260, "scales from 4 to 6", "p"},
           {270, "scales from 6 to 5", "p"}});
  EXPECT_EQ(
      why(),
      "p scales from 3 to 4; later p scales from 4 to 6 and p scales from 6 to 5 (3 of 4 servers "
      "serve)");
}

TEST_F(Causes, AnAutoscalerWantsFewServers) {
  scenario_.cluster.pools.front().autoscaler.emplace().max_replicas = 8;
  servers({{0, 3, 3, 3}, {290, 3, 3, 3}});
  EXPECT_EQ(why(),
            "no event at that time, 0.667 req/s where 0.667 are the mean "
            "(all 3 serve, of at most 8)");
}

TEST_F(Causes, ARollOutLasts) {
  servers({{0, 8, 8, 8}}, {{100, "roll-out begins", "p"}, {400, "roll-out is over", "p"}});
  EXPECT_EQ(why(), "p is being rolled out (all 8 serve)");
  run_.fleet->marks[1].at_s = 200;
  EXPECT_EQ(why(),
            "no event at that time, 0.667 req/s where 0.667 are the mean; p roll-out is over 40 s "
            "before (all 8 serve)");
}

TEST_F(Causes, AServerIsSlowUntilItIsGone) {
  servers({{0, 8, 8, 8}}, {{10, "is slow", "p-1"}});
  EXPECT_EQ(why(), "p-1 is slow (all 8 serve)");
  run_.fleet->marks.push_back({20, "is gone", "p-1"});
  EXPECT_EQ(why(), "no event at that time, 0.667 req/s where 0.667 are the mean (all 8 serve)");
}

TEST_F(Causes, ALinkIsLost) {
  servers({{0, 8, 8, 8}}, {{10, "loses its link", "p-1"},
                           {20, "has its link back", "p-1"},
                           {245, "loses its link", "p-2"}});
  EXPECT_EQ(why(), "p-2 loses its link (all 8 serve)");
}

TEST_F(Causes, ARouterIsAway) {
  servers({{0, 8, 8, 8}}, {{239, "restarts", "router 0"}, {244, "is back", "router 0"}});
  EXPECT_EQ(why(), "router 0 is away (all 8 serve)");
}

TEST_F(Causes, WhatLastsIsToldUntilItEnds) {
  const auto told = [this](std::vector<sim::FleetMark> marks) {
    servers({{0, 8, 8, 8}}, std::move(marks));
    return why();
  };
  EXPECT_EQ(told({{10, "is not scraped", "p-1"}}), "p-1 is not scraped (all 8 serve)");
  EXPECT_EQ(told({{10, "is not scraped", "p-1"},
                  {20, "is scraped again", "p-1"},
                  {250, "leads", "router 1"}}),
            "router 1 leads (all 8 serve)");
  EXPECT_EQ(told({{230, "drains", "router 0"}}), "router 0 drains (all 8 serve)");
  EXPECT_EQ(told({{200, "drains", "router 0"}, {230, "restarts", "router 0"}}),
            "router 0 is away (all 8 serve)");
  EXPECT_EQ(told({{100, "waits for its disruption budget", "p-2"}}),
            "p-2 waits for its disruption budget (all 8 serve)");
  // Both ends of a roll-out to another pool have the name of where it began.
  EXPECT_EQ(told({{100, "roll-out begins, to q", "p"},
                  {110, "roll-out is over", "p"},
                  {250, "crashes", "q-1"}}),
            "q-1 crashes (all 8 serve)");
}

TEST_F(Causes, Overload) {
  servers({{0, 8, 8, 8}});
  sim::StageResult& s = run_.stages.emplace_back();
  s.requests = 40;
  s.first_send = SimTime::zero() + Duration::seconds(240);
  s.last_send = s.last_end = SimTime::zero() + Duration::seconds(300);
  s.queue_growth = 1;
  EXPECT_EQ(why(), "overload, 0.667 req/s where 0.667 are the mean (all 8 serve)");
  servers({{0, 8, 8, 8}, {250, 8, 7, 8}}, {{250, "crashes", "p-3"}});
  EXPECT_EQ(why(), "p-3 crashes (7 of 8 servers serve)") << "it is no wonder";
  // Back at 255 s: after 15 s of the stretch, the stage goes on for 45 s. At 276 s: 36 s and 24 s.
  servers({{0, 8, 8, 8}, {250, 8, 7, 8}, {255, 8, 8, 8}}, {{250, "crashes", "p-3"}});
  EXPECT_EQ(why(), "p-3 crashes (7 of 8 servers serve), then overload (all 8 serve)");
  servers({{0, 8, 8, 8}, {250, 8, 7, 8}, {276, 8, 8, 8}}, {{250, "crashes", "p-3"}});
  EXPECT_EQ(why(), "p-3 crashes (7 of 8 servers serve)") << "it covers most";
  s.last_send = SimTime::zero() + Duration::seconds(254);
  servers({{0, 8, 8, 8}, {250, 8, 7, 8}, {255, 8, 8, 8}}, {{250, "crashes", "p-3"}});
  EXPECT_EQ(why(), "p-3 crashes (7 of 8 servers serve)") << "nothing is sent any more";
}

// The rate of the overloaded stage, minute 4 to 4.5 with 20 + 120 requests, is not that of the
// stretch: 140 / 30 s.
TEST_F(Causes, OverloadHasTheRateOfItsStage) {
  servers({{0, 8, 8, 8}});
  for (int i = 0; i < 120; ++i) {
    const SimTime sent = SimTime::zero() + Duration::milliseconds(240'000 + 250 * i);
    counts_.on_sent(sent);
    counts_.on_done(sent, sent, true, false);
  }
  run_.summary.requests = run_.summary.successes = 520;
  sim::StageResult& s = run_.stages.emplace_back();
  s.requests = 140;
  s.first_send = SimTime::zero() + Duration::seconds(240);
  s.last_send = s.last_end = SimTime::zero() + Duration::seconds(270);
  s.queue_growth = 1;
  EXPECT_EQ(why(), "overload, 4.67 req/s where 0.867 are the mean (all 8 serve)");
}

// 400 requests more in minute 4, 7.33 req/s in it and 1.33 on average: a burst.
TEST_F(Causes, ABurst) {
  servers({{0, 8, 8, 8}}, {{100, "roll-out begins", "p"}});
  for (int i = 0; i < 400; ++i) {
    const SimTime sent = SimTime::zero() + Duration::seconds(250);
    counts_.on_sent(sent);
    counts_.on_done(sent, sent, true, false);
  }
  run_.summary.requests = run_.summary.successes = 800;
  EXPECT_EQ(why(),
            "a burst of 7.33 req/s where 1.33 are the mean; p is being rolled out (all 8 serve)");
  sim::StageResult& s = run_.stages.emplace_back();
  s.info.name = "3";
  s.requests = 1;
  s.first_send = s.last_end = SimTime::zero() + Duration::seconds(250);
  s.last_send = SimTime::zero() + Duration::seconds(254);  // 410 requests in the bin of 240 s.
  EXPECT_EQ(why(),
            "stage 3 begins with 27.3 req/s where 1.33 are the mean; p is being rolled out "
            "(all 8 serve)");
  s.first_send = SimTime::zero() + Duration::seconds(256);
  s.last_send = s.last_end = SimTime::zero() + Duration::seconds(300);
  EXPECT_EQ(why(),
            "a burst of 7.33 req/s where 1.33 are the mean; p is being rolled out (all 8 serve)")
      << "it begins behind the first bin";
}

// Stages of 300 s: the first 5 minutes of the load that begins with the stretch count, not what it
// sends to the end of the stretch, nor a stage of another load of the mix.
TEST_F(Causes, AStageOfItsOwnLoad) {
  scenario_.workload.mix.resize(2);
  scenario_.workload.mix[0].name = "chat";
  for (int i = 0; i < 20; ++i) {
    const SimTime sent = SimTime::zero() + Duration::milliseconds(240'000 + 500 * i);
    for (auto* const counts : {&counts_, &loads_[0]}) {
      counts->on_sent(sent);
      counts->on_done(sent, sent, true, false);
    }
  }
  loads_[0].on_sent(SimTime::zero());
  loads_[0].on_done(SimTime::zero(), SimTime::zero(), true, true);
  loads_[0] = loads_[0].in_bins_of(counts_);
  run_.summary.requests = run_.summary.successes = 420;
  for (const int part : {0, 1}) {
    sim::StageResult& s = run_.stages.emplace_back();
    s.info.name = part == 0 ? "chat/09:00" : "batch/09:00";
    s.info.part = part;
    s.requests = 20;
    s.first_send = SimTime::zero() + Duration::seconds(240);
    s.last_send = s.last_end = SimTime::zero() + Duration::seconds(250);
  }
  complete_timeline(counts_, loads_, scenario_, true, run_);
  ASSERT_EQ(run_.timeline->goals->missed.size(), 1U);
  // 20 requests in a bin of 15 s; with one more, 21 in 255 s.
  EXPECT_EQ(run_.timeline->goals->missed[0].why,
            "chat: stage chat/09:00 begins with 1.33 req/s where 0.0824 are the mean");
}

TEST_F(Causes, ManyEventsAreCounted) {
  std::vector<sim::FleetMark> marks;
  for (int i = 0; i < 6; ++i) marks.push_back({250.0 + i, "is evicted", "p-" + std::to_string(i)});
  servers({{0, 8, 8, 8}}, marks);
  EXPECT_EQ(why(), "p-0 is evicted, p-1 is evicted and 4 more events (all 8 serve)");
}

TEST_F(Causes, TheScenarioMayExpectAShare) {
  sim::ExpectConfig e;
  e.that = "goodput_percent >= 40";
  scenario_.expect = {e};
  servers({{0, 8, 8, 8}});
  complete_timeline(counts_, loads_, scenario_, true, run_);
  EXPECT_EQ(run_.timeline->goals->share, 0.4);
  EXPECT_TRUE(run_.timeline->goals->expected);
  EXPECT_TRUE(run_.timeline->goals->missed.empty()) << "half of the requests are enough";
  for (const auto& [that, variant, stage] :
       {std::tuple("goodput > 50% of b", "", ""), std::tuple("goodput > 0.5", "other", ""),
        std::tuple("goodput > 0.5", "", "rush"), std::tuple("ttft_ms.p99 > 0.5", "", ""),
        std::tuple("goodput < 0.5", "", "")}) {
    e = {.that = that, .variant = variant, .stage = stage};
    scenario_.expect = {e};
    EXPECT_FALSE(expected_share(scenario_)) << that;
  }
}

VariantView view(const std::string& name, std::vector<sim::MissedSpan> missed) {
  VariantView v;
  v.name = name;
  v.timeline = Timeline{.bin_s = 15,
                        .sent = std::vector<std::int64_t>(240, 40),
                        .answered = std::vector<std::int64_t>(240, 40),
                        .failed = std::vector<std::int64_t>(240)};
  v.timeline->goals = Timeline::Goals{.share = 0.95, .missed = std::move(missed)};
  v.timeline->goals->missed_minutes =
      static_cast<double>(std::ranges::count(v.timeline->missed_bins(), true)) * 15 / 60;
  return v;
}

TEST(MissedLines, NameMinutesTimesAndEvents) {
  PageRun run;
  run.variants = {view("a", {{600, 900, 100, 10, "p-3 crashes (7 of 8 servers serve)"},
                             {1'200, 1'230, 80, 70, "no event at that time"},
                             {1'800, 1'890, 80, 20, "p roll-out begins (all 8 serve)"}}),
                  view("b", {})};
  const std::vector<VerdictLine> lines = missed_lines(run);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(plain_spaces(lines[0].text),
            "a misses its goals in 7 of 60 minutes, where 95 % within them count as enough: 10 min "
            "to 15 min, p-3 crashes (7 of 8 servers serve); 30 min to 31 min 30 s, p roll-out "
            "begins (all 8 serve); and 1 more time");
  EXPECT_EQ(lines[1].text, "b misses its goals in none of 60 minutes");
  run.variants[0].by_clock = true;
  run.variants[0].timeline->goals->missed = {{46'800, 47'100, 100, 10, "p-3 crashes"}};
  EXPECT_NE(missed_lines(run)[0].text.find(": 13:00 to 13:05, p-3 crashes"), std::string::npos)
      << missed_lines(run)[0].text;
}

TEST(MissedLines, OfManyVariantsTheWorstAndTheBest) {
  PageRun run;
  for (int i = 0; i < 6; ++i)
    run.variants.push_back(view("v" + std::to_string(i), {{0, 60.0 * ((i * 5) % 6), 40, 0, "x"}}));
  const std::vector<VerdictLine> lines = missed_lines(run);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(lines[0].text.starts_with("v1 misses its goals in 5 of 60"));
  EXPECT_TRUE(lines[1].text.starts_with("v0 misses its goals in 0 of 60")) << lines[1].text;
}

StageView hour(const std::string& name, double rate, std::map<std::string, double> values,
               bool overloaded = false) {
  StageView s{.name = name, .overloaded = overloaded, .rate = rate};
  for (const auto& [key, value] : values) s.values[key] = {.value = value};
  return s;
}

/// One stage of 9,000 requests at 10 req/s, of which `failed` fail and the others meet the goals.
/// The longest answer takes 3 s; `total_s`: from the first request sent to the last one ended.
VariantView of_stage(const std::string& name, double failed, double total_s) {
  const double good = 9'000 - failed;
  VariantView v{.name = name};
  v.stages = {hour("0", 10,
                   {{"requests", 9'000},
                    {"failed_requests", failed},
                    {"send_duration", 900},
                    {"request_latency.max", 3},
                    {"request_throughput", good / total_s},
                    {"output_throughput", 100 * good / total_s},
                    {"goodput", good / 9'000},
                    {"good_request_throughput", good / total_s}})};
  v.summary = v.stages.front();
  v.goals = {{"ttft", 1}};
  return v;
}

std::string said(const Verdict& verdict) {
  std::string text = verdict.headline;
  for (const VerdictLine& line : verdict.lines) text += "\n" + line.text;
  return plain_spaces(text);
}

// The last of 141 lost connections ends 924 s after the others: the same requests are sent at the
// same times, and 141 of 9,000 more are good.
TEST(SameLoad, IsJudgedByItsRequestsNotByTheTimeToTheLastFailure) {
  PageRun run;
  run.variants = {of_stage("calm", 0, 900), of_stage("lost", 141, 1'824)};
  const std::string text = said(verdict_of(run));
  EXPECT_NE(text.find("1.6 % more requests within the goals, 100 % instead of 98.4 %"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("output"), std::string::npos) << text;
  EXPECT_TRUE(end_late({run.variants.data(), &run.variants[1]}, {0}));
  const VariantView slow = of_stage("slow", 141, 903);
  EXPECT_FALSE(end_late({&slow}, {0}));
}

// Rounds of users are sent at a rate, but when the round before is answered: a slower fleet has
// fewer.
TEST(SameLoad, HasTheSameRequests) {
  PageRun run;
  run.variants = {of_stage("a", 0, 900), of_stage("b", 0, 1'800)};
  run.variants[1].stages[0].values["requests"].value = 8'999;
  EXPECT_NE(said(verdict_of(run)).find("10 req/s instead of 5 req/s"), std::string::npos)
      << said(verdict_of(run));
}

// Of a closed loop the requests within the goals a second are what a fleet does.
TEST(SameLoad, OfAClosedLoopIsARate) {
  PageRun run;
  run.variants = {of_stage("a", 0, 900), of_stage("b", 0, 450)};
  for (VariantView& v : run.variants) {
    v.stages[0].rate.reset();
    v.stages[0].concurrency = 8;
  }
  EXPECT_NE(said(verdict_of(run)).find("2 times as many requests within the goals, 20 req/s"),
            std::string::npos)
      << said(verdict_of(run));
}

/// Hours at 2, 10, 20, 30 (overloaded), 15 (its queue) and 2 req/s.
VariantView day_of(const std::string& name, double ttft) {
  VariantView v{.name = name, .by_clock = true};
  const std::vector<double> rates = {2, 10, 20, 30, 15, 2};
  for (std::size_t i = 0; i < rates.size(); ++i)
    v.stages.push_back(hour("0" + std::to_string(i) + ":00", rates[i],
                            {{"requests", 3'600 * rates[i]},
                             {"failed_requests", 0},
                             {"ttft.mean", ttft * (i == 4 ? 1'000 : 1)}},
                            i == 3));
  v.summary = hour("", 0, {{"requests", 284'400}, {"ttft.mean", 100}});
  v.resolved = {{"workload.demand.interpolate", "linear"}};
  return v;
}

TEST(ADay, ShowsTheBusiestHourThatIsHeldWithoutAQueue) {
  PageRun run;
  run.variants = {day_of("a", 0.1)};
  EXPECT_TRUE(said(verdict_of(run))
                  .starts_with("a at stage 02:00 answers with a first token after "
                               "100 ms on average"))
      << said(verdict_of(run));
  run.variants.push_back(day_of("b", 0.2));
  EXPECT_NE(said(verdict_of(run)).find("first token, mean at stage 02:00: "), std::string::npos)
      << said(verdict_of(run));
  for (VariantView& v : run.variants) v.by_clock = false;  // Each begins without a queue.
  EXPECT_NE(said(verdict_of(run)).find("first token, mean at stage 02:00: "), std::string::npos);
  for (VariantView& v : run.variants) v.stages[4].rate = 25;
  EXPECT_NE(said(verdict_of(run)).find("first token, mean at stage 04:00: "), std::string::npos)
      << said(verdict_of(run));
}

// A ramp has no rate to be held beside what the servers sustain, and a mix has one of all loads.
TEST(ADay, NamesItsOverloadedHours) {
  VariantView v = day_of("a", 0.1);
  v.capacity = {.rate = 31, .low = 30.5, .high = 32};
  EXPECT_EQ(plain_spaces(knee_of({&v}, "a").text),
            "sustains 31 req/s (30.5 to 32); it is overloaded at stage 03:00 (1 of 6 stages)");
  v.capacity.reset();
  EXPECT_EQ(knee_of({&v}, "a").text, "is overloaded at stage 03:00 (1 of 6 stages)");
  EXPECT_FALSE(knee_of({&v}, "a").last_held) << "20 req/s is the mean of a ramp";
  v.stages[3].overloaded = false;
  EXPECT_EQ(knee_of({&v}, "a").text, "is not overloaded");
  v.stages[2].telling_s = 9'000;
  EXPECT_EQ(knee_of({&v}, "a").text, "is not overloaded in stages long enough to tell");
  v.stages[3].values["failed_requests"].value = 5'400;  // Of 108,000.
  EXPECT_EQ(plain_spaces(knee_of({&v}, "a").text), "fails 5 % of its requests at stage 03:00");
  v.stages[3].overloaded = true;
  v.capacity = {.rate = 31, .low = 30.5, .high = 32};
  v.resolved = {{"workload.demand.interpolate", "steps"}};
  EXPECT_EQ(plain_spaces(knee_of({&v}, "a").text),
            "sustains 31 req/s (30.5 to 32); its stage at 30 req/s is overloaded");
  for (StageView& s : v.stages) {
    s.part_rate = s.rate;
    s.rate.reset();
    s.overloaded = false;
  }
  EXPECT_EQ(plain_spaces(knee_of({&v}, "a").text), "sustains 31 req/s (30.5 to 32)");
}

TEST(ADay, OfAMixBeginsAtMidnightToo) {
  RunRecord run;
  run.variants.resize(1);
  run.variants[0].stages.emplace_back().name = "batch/0";
  EXPECT_FALSE(page_run(run, "").variants[0].by_clock);
  run.variants[0].stages.emplace_back().name = "chat/00:00";
  EXPECT_TRUE(page_run(run, "").variants[0].by_clock);
}

// Which pool's servers 77 requests lost is not counted.
TEST(FleetTable, SeveralPoolsLoseTheirRequestsTogether) {
  RunRecord run;
  run.variants.resize(1);
  run.variants[0].name = "v";
  sim::FleetResult& fleet = run.variants[0].fleet.emplace();
  fleet.lost = 77;
  fleet.pools = {{.pool = "prefill"}, {.pool = "decode"}};
  const auto lost = [&] {
    std::vector<std::string> cells;
    for (const std::vector<Cell>& row : fleet_table(page_run(run, ""), false).rows)
      cells.push_back(row[0].text + ":" + row[8].text);
    return cells;
  };
  EXPECT_EQ(lost(), (std::vector<std::string>{"prefill:", "decode:", "all pools:77"}));
  fleet.pools.pop_back();
  EXPECT_EQ(lost(), (std::vector<std::string>{"prefill:77"}));
}

TEST(NextSteps, NameASeedThatFailsAndTheSlowestRequest) {
  PageRun run;
  run.seed = "7";
  run.replications = 3;
  run.command = {.input = "x.yaml", .variants = "", .options = " --seed 7", .scan = ""};
  run.variants = {of_stage("a", 4, 900)};
  VariantView& a = run.variants[0];
  a.summary.seeds["failed_requests"] = {0, 0, 12};
  a.summary.values["ttft.mean"] = {.value = 0.1};
  a.summary.values["ttft.p99"] = {.value = 0.9};
  const auto has = [&](const std::string& step) {
    const std::vector<Step> steps = next_steps(run, verdict_of(run));
    return std::ranges::any_of(
        steps, [&](const Step& s) { return plain_spaces(s.text()).ends_with(step); });
  };
  EXPECT_TRUE(
      has("Each failed request of a in seed 9 with its reason: routesim run x.yaml "
          "--records requests.csv --seed 9"));
  EXPECT_TRUE(has("routesim explain x.yaml --variant a --request slowest:1 --set seed=7"));
  a.summary.seeds["failed_requests"] = {1, 0, 11};
  EXPECT_TRUE(has("of a with its reason: routesim run x.yaml --seed 7 --records requests.csv"));
  run.command.options = "";
  a.summary.seeds["failed_requests"] = {0, 12, 0};
  EXPECT_TRUE(has("routesim run x.yaml --records requests.csv --seed 8"));
}

// Stages 3 and 5 of 6, then 5 and 6, behind which none is healthy.
TEST(CapacityText, SaysOnOnlyOfAllLaterStages) {
  VariantReport variant;
  for (int i = 1; i <= 6; ++i) {
    const StageSide side{.ttft_mean_s = 1, .overloaded = i == 3 || i == 5};
    variant.capacity_band.push_back(
        {.stage = std::to_string(i), .as_is = side, .fewer = side, .more = side});
  }
  variant.capacity_band[0].fewer.ttft_mean_s = 2;
  const auto ends = [&](const std::string& text) {
    EXPECT_TRUE(capacity_text(variant).ends_with(text)) << capacity_text(variant);
  };
  ends("; all three are overloaded in 2 of 6 stages, the first is 3");
  variant.capacity_band[2].more.overloaded = false;
  variant.capacity_band[5].more.overloaded = true;
  ends(
      "; it is overloaded in 2 of 6 stages, the first is 3, with fewer in 2 of 6 stages, the first "
      "is 3, with more from stage 5 on");
}

TEST(EstimateText, RoundingIsNoInterval) {
  EXPECT_EQ(estimate_text({.n = 5, .mean = 4, .sd = 1e-15, .half_width = 1e-15}), "4.000 ± 0");
  EXPECT_EQ(estimate_text({.n = 5, .mean = 0, .sd = 1, .half_width = 0.5}), "0.00 ± 0.50");
}

}  // namespace
}  // namespace routesim::tools
