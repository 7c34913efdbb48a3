// Loads side by side and classes of one load.
#include "sim/plan/mix.h"

#include "tests/sim/plan_fixture.h"
#include "workloads/mix/mixed_load.h"

namespace routesim::sim::testing {
namespace {

// Loads side by side, on servers with steps of 10 ms.

/// A server, and these scripts as the loads `a`, `b`, … of a mix.
RunPlan mixed(const std::vector<std::vector<Sent>>& scripts, std::int64_t servers = 1) {
  RunPlan plan = hand_made_plan({}, servers);
  plan.scenario.routing.balancer = BalancerKind::kRoundRobin;
  for (std::size_t i = 0; i < scripts.size(); ++i) {
    MixPart& part = plan.scenario.workload.mix.emplace_back();
    part.name = std::string(1, static_cast<char>('a' + i));
    part.load.emplace<workloads::GroupLoadConfig>();
  }
  plan.scenario.workload.classes = classes_of(plan.scenario.workload);
  plan.headers.resize(scripts.size());
  plan.make_load = [scripts, whole = plan.scenario.workload](std::uint64_t, Diagnostics&) {
    std::vector<workloads::MixedPart> parts;
    for (std::size_t i = 0; i < scripts.size(); ++i)
      parts.push_back(
          {.name = whole.mix[i].name, .load = std::make_unique<ScriptedLoad>(scripts[i])});
    return workloads::mix_loads(std::move(parts));
  };
  return plan;
}

std::vector<std::int64_t> ttfts_ms(const RunResult& r, std::uint32_t part) {
  std::vector<std::int64_t> out;
  for (const RequestRecord& q : r.requests)
    if (q.traffic_class == part) out.push_back((q.first_token - q.sent).ns() / 1'000'000);
  return out;
}

// Answers of five steps, 50 ms, never meet: a sends at 0, 200, 400 ms and b at 100, 300 ms.
TEST(Mix, LoadsThatDoNotMeetAreServedAsAlone) {
  const std::vector<Sent> a = {{.at_ms = 0, .parts = {{1, 16}}, .output = 5},
                               {.at_ms = 200, .parts = {{2, 16}}, .output = 5},
                               {.at_ms = 400, .parts = {{3, 16}}, .output = 5}};
  const std::vector<Sent> b = {{.at_ms = 100, .parts = {{4, 16}}, .output = 5},
                               {.at_ms = 300, .parts = {{5, 16}}, .output = 5}};
  const RunResult together = run_by_hand(mixed({a, b}));
  EXPECT_EQ(ttfts_ms(together, 0), ttfts_ms(run_by_hand(mixed({a})), 0));
  EXPECT_EQ(ttfts_ms(together, 1), ttfts_ms(run_by_hand(mixed({b})), 0));
  EXPECT_EQ(ttfts_ms(together, 0), (std::vector<std::int64_t>{10, 10, 10}));
}

// Both send at 0, and the first step has only a's request. A step of 10 ms gives each a token: a
// ends after 3 of them, b's first after 7, and the one at 100 ms after 2.
TEST(Mix, StagesAndClassesAreByLoad) {
  const RunResult r = run_by_hand(mixed({{{.at_ms = 0, .parts = {{1, 16}}, .output = 3}},
                                         {{.at_ms = 0, .parts = {{2, 16}}, .output = 6},
                                          {.at_ms = 100, .parts = {{3, 16}}, .output = 2}}}));
  ASSERT_EQ(r.stages.size(), 2U);
  EXPECT_EQ(r.stages[0].info.name, "a/0");
  EXPECT_EQ(r.stages[1].info.name, "b/0");
  EXPECT_NEAR(r.stages[0].request_latency.mean(), 0.03, 1e-9);
  EXPECT_NEAR(r.stages[1].request_latency.mean(), (0.07 + 0.02) / 2, 1e-9);
  ASSERT_EQ(r.classes.size(), 2U);
  EXPECT_EQ(r.classes[0].info.name, "a");
  EXPECT_EQ(r.classes[0].output_tokens_total, 3);
  EXPECT_EQ(r.classes[1].output_tokens_total, 8);
  EXPECT_EQ(r.summary.requests, 3);
  EXPECT_NEAR(r.summary.total_time_s(), 0.12, 1e-9);
  EXPECT_EQ(r.stages[0].inter_token_latency.count(), 0) << "the server does not tell whose";
  EXPECT_EQ(r.summary.inter_token_latency.count(), 2 + 5 + 1);
  EXPECT_NEAR(r.summary.kv_cache_usage_mean, r.stages[1].kv_cache_usage_mean, 1e-9)
      << "b's stage is the whole run";
  EXPECT_GT(r.stages[0].kv_cache_usage_mean, r.stages[1].kv_cache_usage_mean)
      << "two requests at once, then pauses";
}

TEST(Mix, APartAloneHasBothScales) {
  WorkloadConfig w;
  w.rate_scale = 3;
  w.options.warmup_stages = 2;
  MixPart& part = w.mix.emplace_back();
  part.name = "a";
  part.rate_scale = 2;
  part.load.emplace<workloads::GroupLoadConfig>().rate = 5;
  const WorkloadConfig alone = part_alone(w, 0);
  EXPECT_EQ(alone.rate_scale, 6);
  EXPECT_TRUE(alone.mix.empty());
  EXPECT_EQ(alone.options.warmup_stages, 2);
  Diagnostics d;
  EXPECT_EQ(at_scaled_rate(w, d).mix[0].load.get<workloads::GroupLoadConfig>()->rate, 30);
  EXPECT_TRUE(d.items().empty());
}

TEST(Mix, FaultsStandWhereTheScenarioHasThem) {
  WorkloadConfig w;
  for (const char* name : {"a", "b"}) {
    w.mix.emplace_back().name = name;
    w.mix.back().load.emplace<workloads::GroupLoadConfig>();
  }
  Diagnostics found, out;
  found.error({}, "workload", "one");
  found.error({}, "workload.demand.profile", "two");
  found.error({}, "prefix_len", "three");
  found.error({}, "workload.options.turn_work", "four");
  found.error({}, "workload.rate_scale", "five");
  found.error({}, "cluster.pools[0].engine.max_loras", "six");
  place_in_mix(found, w, 1, out);
  std::vector<std::string> paths;
  for (const Diagnostic& d : out.items()) paths.push_back(d.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"workload.mix[1]", "workload.mix[1].demand.profile",
                                             "workload.mix[1].groups.prefix_len",
                                             "workload.options.turn_work", "workload.rate_scale",
                                             "cluster.pools[0].engine.max_loras"}));
  EXPECT_EQ(out.items()[5].message, "six (load b)");
}

// Traffic classes as a run shows them: who goes first, and what each class is told.

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
