// Searches against brute force, plans with a resource doubled, and what runs say about a goal.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "tools/study/plan/plan_goal.h"
#include "tools/study/plan/plan_search.h"
#include "tools/study/what_if.h"

namespace routesim::sim {
namespace {

// Searches against brute force, and plans with a resource doubled.

TEST(Bisection, FindsEveryThresholdAndSeesThatItIsOne) {
  for (std::int64_t low = 1; low <= 3; ++low)
    for (std::int64_t high = low; high <= 70; ++high)
      for (std::int64_t threshold = low; threshold <= high + 1; ++threshold) {
        Bisection search(low, high);
        std::set<std::int64_t> probed;
        while (const auto n = search.next()) {
          EXPECT_TRUE(low <= *n && *n <= high);
          EXPECT_FALSE(search.answer());
          EXPECT_TRUE(probed.insert(*n).second) << "probed twice";
          search.tell(*n >= threshold);
        }
        if (threshold > high) {
          EXPECT_FALSE(search.answer());
          EXPECT_EQ(probed.size(), 1U);
          continue;
        }
        ASSERT_EQ(search.answer(), threshold);
        EXPECT_TRUE(probed.contains(threshold));
        if (threshold > low) {
          EXPECT_TRUE(probed.contains(threshold - 1));
        }
        const auto most = 1 + std::ceil(std::log2(static_cast<double>(high - low + 1)));
        EXPECT_LE(static_cast<double>(probed.size()), most);
      }
}

TEST(UpwardSearch, FindsEveryThresholdWhateverTheLimit) {
  for (std::int64_t low = 1; low <= 3; ++low)
    for (std::int64_t high = low; high <= 70; ++high)
      for (std::int64_t threshold = low; threshold <= high + 1; ++threshold) {
        UpwardSearch search(low, high);
        std::set<std::int64_t> probed;
        while (const auto n = search.next()) {
          EXPECT_TRUE(low <= *n && *n <= high);
          EXPECT_FALSE(search.answer());
          EXPECT_TRUE(probed.insert(*n).second) << "probed twice";
          search.tell(*n >= threshold, 1.0 / static_cast<double>(*n));
        }
        EXPECT_FALSE(search.tried_singly());
        if (threshold > high) {
          EXPECT_FALSE(search.answer());
          EXPECT_LE(static_cast<double>(probed.size()),
                    2 + std::ceil(std::log2(static_cast<double>(high))));
          continue;
        }
        ASSERT_EQ(search.answer(), threshold);
        if (threshold > low) {
          EXPECT_TRUE(probed.contains(threshold - 1));
        }
        const auto most = 3 + 2 * std::log2(static_cast<double>(threshold));
        EXPECT_LE(static_cast<double>(probed.size()), most);
      }
}

TEST(UpwardSearch, FindsWhatHoldsOnlyBelowTheLimit) {
  for (std::int64_t high = 1; high <= 40; ++high)
    for (std::int64_t first = 1; first <= high; ++first)
      for (std::int64_t last = first; last <= high; ++last) {
        // Too few are too slow, and too many share too little.
        const double middle = 0.5 * static_cast<double>(first + last);
        UpwardSearch search(1, high);
        std::set<std::int64_t> probed;
        while (const auto n = search.next()) {
          EXPECT_TRUE(probed.insert(*n).second) << "probed twice";
          search.tell(first <= *n && *n <= last, std::abs(static_cast<double>(*n) - middle));
        }
        if (!search.answer()) {  // More helped up to the end, as far as the doubling saw.
          EXPECT_FALSE(search.tried_singly());
          EXPECT_LT(static_cast<double>(high) - middle, middle);
          continue;
        }
        ASSERT_EQ(search.answer(), first) << high << ' ' << first << ' ' << last;
      }
}

TEST(RateSearch, BracketsTheKnee) {
  for (const double knee : {10.0, 10.1, 14.9, 15.0, 40.0, 79.0}) {
    RateSearch search(10, 80, 0.03);
    int probes = 0;
    while (const auto rate = search.next()) {
      ++probes;
      search.tell(*rate <= knee);
    }
    EXPECT_LE(search.holds(), knee);
    ASSERT_TRUE(search.fails());
    EXPECT_GT(*search.fails(), knee);
    EXPECT_LE(*search.fails() / search.holds(), 1.03);
    EXPECT_LE(probes, 12);
  }
}

TEST(RateSearch, StopsAtTheLimit) {
  RateSearch search(10, 80, 0.03);
  while (search.next()) search.tell(true);
  EXPECT_EQ(search.holds(), 80);
  EXPECT_FALSE(search.fails());
}

/// 1000 ticks, 7 per prompt token, 20 per decoding sequence and 1 per token of its context.
class Simple final : public models::LatencyModel {
 public:
  std::int64_t step_ticks(const models::BatchShape& s) const override {
    return 1000 + 7 * s.prefill_tokens + 20 * s.decode_requests + s.decode_context;
  }
  models::Trust trust(const models::BatchShape&) const override { return models::Trust::kFitted; }
  std::string provenance() const override { return "simple"; }
};

RunPlan plan_of(PoolRole role) {
  RunPlan plan;
  ResolvedPool& pool = plan.pools.emplace_back();
  pool.config.role = role;
  pool.rules.num_gpu_blocks = 100;
  pool.latency = std::make_shared<const Simple>();
  plan.scenario.cluster.transfer.bandwidth_gbps = 200;
  return plan;
}

models::BatchShape shape(std::int64_t prefill, std::int64_t decode) {
  models::BatchShape s;
  s.prefill_requests = prefill > 0 ? 1 : 0;
  s.prefill_tokens = prefill;
  s.decode_requests = decode;
  s.decode_context = 100 * decode;
  return s;
}

TEST(WhatIf, HalvesThePartOfTheStepThatIsDueToTheWork) {
  const RunPlan base = plan_of(PoolRole::kBoth);
  const auto ticks = [&](Resource r, const models::BatchShape& s) {
    return with_doubled(base, r).pools[0].latency->step_ticks(s);
  };
  // 512 prompt tokens beside 10 sequences: 1000 + 3584 + 200 + 1000 = 5784.
  EXPECT_EQ(base.pools[0].latency->step_ticks(shape(512, 10)), 5784);
  EXPECT_EQ(ticks(Resource::kPrefillCompute, shape(512, 10)), 5784 - 3584 / 2);
  EXPECT_EQ(ticks(Resource::kDecodeBandwidth, shape(512, 10)), 5784 - 1200 / 2);
  // Alone, the whole step is due to the work, its fixed part included.
  EXPECT_EQ(ticks(Resource::kPrefillCompute, shape(512, 0)), 4584 / 2);
  EXPECT_EQ(ticks(Resource::kDecodeBandwidth, shape(0, 10)), 2200 / 2);
  // And nothing of it is due to the other.
  EXPECT_EQ(ticks(Resource::kPrefillCompute, shape(0, 10)), 2200);
  EXPECT_EQ(ticks(Resource::kDecodeBandwidth, shape(512, 0)), 4584);
}

TEST(WhatIf, ServersOfOneKindAreFasterAsAWhole) {
  const RunPlan prefill = plan_of(PoolRole::kPrefill);
  const auto ticks = [](const RunPlan& plan) {
    return plan.pools[0].latency->step_ticks(shape(512, 10));
  };
  EXPECT_EQ(ticks(with_doubled(prefill, Resource::kPrefillCompute)), 5784 / 2);
  EXPECT_EQ(ticks(with_doubled(prefill, Resource::kDecodeBandwidth)), 5784);
  EXPECT_TRUE(has_resource(prefill, Resource::kTransfer));
  EXPECT_FALSE(has_resource(plan_of(PoolRole::kBoth), Resource::kTransfer));
  RunPlan routed = prefill;
  EXPECT_FALSE(has_resource(routed, Resource::kRouter)) << "its decisions take no time";
  routed.scenario.routing.service_time = Duration::milliseconds(40);
  EXPECT_TRUE(has_resource(routed, Resource::kRouter));
  EXPECT_EQ(with_doubled(routed, Resource::kRouter).scenario.routing.service_time,
            Duration::milliseconds(20));
}

TEST(WhatIf, DoublesBlocksAndLinksAndLeavesTheOriginal) {
  const RunPlan base = plan_of(PoolRole::kPrefill);
  EXPECT_EQ(with_doubled(base, Resource::kKvBlocks).pools[0].rules.num_gpu_blocks, 200);
  EXPECT_EQ(with_doubled(base, Resource::kTransfer).scenario.cluster.transfer.bandwidth_gbps, 400);
  EXPECT_EQ(base.pools[0].rules.num_gpu_blocks, 100);
  EXPECT_EQ(base.scenario.cluster.transfer.bandwidth_gbps, 200);
  for (const Resource r : kResources)
    EXPECT_EQ(with_doubled(base, r).pools[0].latency == base.pools[0].latency,
              r != Resource::kPrefillCompute);
}

}  // namespace
}  // namespace routesim::sim

namespace routesim::tools {
namespace {

// What runs say about a goal, by hand.

PlanGoal below(double bound) {
  return {.kind = PlanGoal::Kind::kMetric,
          .text = "",
          .label = "x",
          .metric = {},
          .upper = true,
          .bound = bound};
}
PlanGoal above(double bound) {
  return {.kind = PlanGoal::Kind::kMetric,
          .text = "",
          .label = "x",
          .metric = {},
          .upper = false,
          .bound = bound};
}

TEST(PlanGoal, OneRunDecidesOnlyAClearMiss) {
  EXPECT_EQ(judge(below(100), {10}, 0.95).verdict, GoalVerdict::kOpen);
  EXPECT_EQ(judge(below(100), {149}, 0.95).verdict, GoalVerdict::kOpen);
  EXPECT_EQ(judge(below(100), {151}, 0.95).verdict, GoalVerdict::kMisses);
  EXPECT_EQ(judge(above(100), {60}, 0.95).verdict, GoalVerdict::kMisses);
  EXPECT_EQ(judge(above(100), {70}, 0.95).verdict, GoalVerdict::kOpen);
  EXPECT_EQ(judge(above(100), {900}, 0.95).verdict, GoalVerdict::kOpen);
}

TEST(PlanGoal, TheOneSidedBoundDecides) {
  // Mean 90, sd 10, n 4: t(0.95, 3) = 2.3534, half width 2.3534 * 10 / 2 = 11.767.
  const std::vector<double> values = {90 - 8.660254, 90 - 8.660254, 90 + 8.660254, 90 + 8.660254};
  const GoalState state = judge(below(100), values, 0.95);
  EXPECT_NEAR(state.estimate.mean, 90, 1e-6);
  EXPECT_NEAR(state.estimate.half_width, 11.767, 1e-3);
  EXPECT_EQ(state.verdict, GoalVerdict::kOpen);
  EXPECT_NEAR(state.shortfall, 0.9, 1e-6);
  EXPECT_EQ(judge(below(102), values, 0.95).verdict, GoalVerdict::kMeets);
  EXPECT_EQ(judge(below(78), values, 0.95).verdict, GoalVerdict::kMisses);
  EXPECT_EQ(judge(above(78), values, 0.95).verdict, GoalVerdict::kMeets);
  EXPECT_EQ(judge(above(80), values, 0.95).verdict, GoalVerdict::kOpen);
  EXPECT_EQ(judge(above(102), values, 0.95).verdict, GoalVerdict::kMisses);
  // Less confidence, a narrower bound: t(0.8, 3) = 0.9785, half width 4.89.
  EXPECT_EQ(judge(below(95), values, 0.8).verdict, GoalVerdict::kMeets);
}

TEST(PlanGoal, AMissingNumberIsAMiss) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(judge(below(100), {10, infinity}, 0.95).verdict, GoalVerdict::kMisses);
  EXPECT_EQ(judge(above(100), {900, -infinity}, 0.95).verdict, GoalVerdict::kMisses);
}

TEST(PlanGoal, FailuresAreCountedNotEstimated) {
  PlanGoal goal = below(0);
  goal.kind = PlanGoal::Kind::kFailures;
  EXPECT_EQ(judge(goal, {0, 0}, 0.95).verdict, GoalVerdict::kMeets);
  EXPECT_EQ(judge(goal, {0, 0.001}, 0.95).verdict, GoalVerdict::kMisses);
}

TEST(PlanGoal, EveryWrongGoalIsNamed) {
  PlanConfig config;
  config.goals = {"ttft_ms.p99 < 500", "ttft_ms.p99 = 500", "tftt_ms.p99 < 500",
                  "ttft_ms.p99 < five", "output_tokens_per_s >= 8000"};
  Diagnostics diagnostics;
  const std::vector<PlanGoal> goals = read_goals(config, {}, diagnostics);
  ASSERT_EQ(diagnostics.items().size(), 3U);
  EXPECT_EQ(diagnostics.items()[0].path, "goals[1]");
  EXPECT_EQ(diagnostics.items()[1].path, "goals[2]");
  EXPECT_EQ(diagnostics.items()[2].path, "goals[3]");
  ASSERT_EQ(goals.size(), 5U);  // Failures, growth and the rate are always there.
  EXPECT_EQ(goals[0].text, "ttft_ms.p99 < 500");
  EXPECT_TRUE(goals[0].upper);
  EXPECT_FALSE(goals[1].upper);
  EXPECT_EQ(goals[2].label, "failure_rate");
  EXPECT_EQ(goals[3].label, "queue_growth");
  EXPECT_EQ(goals[4].label, "sent_rate_error");
}

/// A stage of `requests` at `sent` requests/s, that should have been `asked`.
sim::StageResult stage(std::int64_t requests, double sent, double asked) {
  sim::StageResult s;
  s.info.requested_rate = asked;
  s.requests = requests;
  s.first_send = SimTime::zero();
  const double seconds = requests > 0 ? static_cast<double>(requests - 1) / sent : 0;
  s.last_send = SimTime::zero() + Duration::from_seconds(seconds);
  return s;
}

std::vector<workloads::StageInfo> infos(const sim::RunResult& run) {
  std::vector<workloads::StageInfo> out;
  for (const sim::StageResult& s : run.stages) out.push_back(s.info);
  return out;
}

TEST(PlanGoal, TheRateThatWasSentIsCompared) {
  sim::RunResult run;
  run.stages = {stage(1601, 40, 50)};
  // A fifth too slow, less 4 / sqrt(1600).
  EXPECT_NEAR(rate_error(run, 50), 0.2 - 0.1, 1e-6);
  EXPECT_NEAR(rate_error(run, 20), 0.5 - 0.1, 1e-6);
  EXPECT_EQ(rate_error(run, 41), 0);
  EXPECT_FALSE(other_rate_asked(infos(run), 50));
  EXPECT_EQ(other_rate_asked(infos(run), 40), 50);
  // One stage of several may be the load that is meant; a warm-up that is not reported is not it.
  run.stages.push_back(stage(401, 10, 10));
  EXPECT_FALSE(other_rate_asked(infos(run), 10));
  EXPECT_EQ(rate_error(run, 10), 0);
  EXPECT_EQ(other_rate_asked(infos(run), 20), 10);
  run.stages.back().info.reported = false;
  EXPECT_EQ(other_rate_asked(infos(run), 10), 50);
  // Closed loops have no rate to compare with; nothing sent is no load at all, and one request has
  // no rate.
  run.stages = {stage(1601, 40, 0)};
  EXPECT_FALSE(other_rate_asked(infos(run), 50));
  EXPECT_NEAR(rate_error(run, 50), 0.2 - 0.1, 1e-6);
  run.stages = {stage(1, 1, 50)};
  EXPECT_EQ(rate_error(run, 50), 0);
  run.stages = {stage(0, 1, 50)};
  EXPECT_EQ(judge({.kind = PlanGoal::Kind::kRate,
                   .text = {},
                   .label = {},
                   .metric = {},
                   .upper = true,
                   .bound = kMostRateError},
                  {rate_error(run, 50)}, 0.95)
                .verdict,
            GoalVerdict::kMisses);
}

TEST(PlanGoal, GoodputHasAKeyOfItsOwn) {
  PlanConfig config;
  config.goals = {"goodput > 0.9", "good_requests_per_s > 3", "fleet_cost < 100"};
  Diagnostics diagnostics;
  (void)read_goals(config, {}, diagnostics);
  ASSERT_EQ(diagnostics.items().size(), 3U);
  EXPECT_EQ(diagnostics.items()[2].message,
            "fleet_cost is no goal of a plan, which chooses the fleet");
  EXPECT_EQ(diagnostics.items()[0].message, "goodput has a key of its own in a plan");
  EXPECT_EQ(diagnostics.items()[1].path, "goals[1]");
}

}  // namespace
}  // namespace routesim::tools
