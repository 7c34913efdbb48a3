// What runs say about a goal, by hand.
#include "tools/study/plan/plan_goal.h"

#include <gtest/gtest.h>

#include <limits>

namespace routesim::tools {
namespace {

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
