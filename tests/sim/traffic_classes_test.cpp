// Traffic classes as a run shows them: who goes first, and what each class is told.
#include "tests/sim/plan_fixture.h"

namespace routesim::sim::testing {
namespace {

/// Four requests of ten steps of 10 ms at one instant; the third is of class 1.
RunPlan four_requests() {
  std::vector<Sent> script;
  for (std::uint64_t i = 0; i < 4; ++i)
    script.push_back({.parts = {{i, 16}}, .output = 10, .traffic_class = i == 2 ? 1U : 0U});
  RunPlan plan = hand_made_plan(script, 1);
  plan.scenario.workload.classes = {{.name = "batch", .user = {}, .headers = {}},
                                    {.name = "chat", .user = {}, .headers = {}}};
  plan.headers = {{}, {}};
  return plan;
}

/// One request at a time; the others wait at the router.
policies::EndpointPickerConfig one_by_one(const std::string& fairness) {
  return DocumentBuilder()
      .plugin("concurrency-detector", map({{"maxConcurrency", number(1)}}))
      .plugin(fairness)
      .plugin("queue-scorer")
      .profile("default", {{"queue-scorer", 1}})
      .set("featureGates", list({text("flowControl")}))
      .set("flowControl",
           map({{"saturationDetector", map({{"pluginRef", text("concurrency-detector")}})},
                {"defaultPriorityBand", map({{"fairnessPolicyRef", text(fairness)}})}}))
      .build();
}

std::vector<std::int64_t> ends_ms(const RunResult& r) {
  std::vector<std::int64_t> out;
  for (const RequestRecord& q : r.requests) out.push_back(q.end.ns() / 1'000'000);
  return out;
}

TEST(TrafficClassRun, AHigherObjectiveGoesFirst) {
  RunPlan plan = four_requests();
  plan.endpoint_picker = one_by_one("global-strict-fairness-policy");
  EXPECT_EQ(ends_ms(run_by_hand(plan)), (std::vector<std::int64_t>{100, 200, 300, 400}));
  plan.scenario.workload.classes[1].objective = 5;
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(ends_ms(r), (std::vector<std::int64_t>{100, 300, 200, 400}));

  ASSERT_EQ(r.classes.size(), 2U);
  const StageResult& batch = r.classes[0];
  const StageResult& chat = r.classes[1];
  EXPECT_EQ(batch.info.name, "batch");
  EXPECT_EQ(batch.requests, 3);
  EXPECT_EQ(chat.requests, 1);
  EXPECT_NEAR(batch.request_latency.mean(), (0.1 + 0.3 + 0.4) / 3, 1e-9);
  EXPECT_NEAR(chat.request_latency.mean(), 0.2, 1e-9);
  EXPECT_NEAR(chat.time_to_first_token.mean(), 0.11, 1e-9) << "100 ms in the queue, one step";
  EXPECT_EQ(batch.output_tokens_total, 30);
  EXPECT_EQ(chat.output_tokens_total, 10);
  EXPECT_EQ(batch.prompt_tokens_total + chat.prompt_tokens_total, r.summary.prompt_tokens_total);
  EXPECT_EQ(chat.inter_token_latency.count(), 0) << "gaps are counted by server";
}

TEST(TrafficClassRun, TenantsShareBands) {
  RunPlan plan = four_requests();
  plan.headers = {{{"x-llm-d-inference-fairness-id", "a"}},
                  {{"x-llm-d-inference-fairness-id", "b"}}};
  plan.endpoint_picker = one_by_one("round-robin-fairness-policy");
  EXPECT_EQ(ends_ms(run_by_hand(plan)), (std::vector<std::int64_t>{100, 300, 200, 400}))
      << "after one request of a it is b's turn";
}

TEST(TrafficClassRun, ANegativeObjectiveIsSheddable) {
  RunPlan plan = four_requests();
  plan.endpoint_picker =
      DocumentBuilder()
          .plugin("concurrency-detector", map({{"maxConcurrency", number(1)}}))
          .plugin("queue-scorer")
          .profile("default", {{"queue-scorer", 1}})
          .set("flowControl",
               map({{"saturationDetector", map({{"pluginRef", text("concurrency-detector")}})}}))
          .build();
  plan.scenario.workload.classes[1].objective = -1;
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.classes[0].failures, 0);
  EXPECT_EQ(r.classes[1].failures, 1);
  EXPECT_EQ(r.classes[1].failures_by_label,
            (std::map<std::string, std::int64_t>{{"429 Too Many Requests", 1}}));
}

}  // namespace
}  // namespace routesim::sim::testing
