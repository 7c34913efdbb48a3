// What a run shows of the router's knowledge: several router processes that know only their own,
// KV events that are late or lost, and prompts that are disaggregated or not.
#include "sim/router/balancer_inputs.h"
#include "tests/sim/plan_fixture.h"

namespace routesim::sim::testing {
namespace {

/// Long requests with nothing in common, ten milliseconds apart.
std::vector<Sent> strangers(std::int64_t n) {
  std::vector<Sent> script;
  for (std::int64_t i = 0; i < n; ++i)
    script.push_back(
        {.at_ms = 10 * i, .parts = {{static_cast<std::uint64_t>(i), 64}}, .output = 500});
  return script;
}

policies::EndpointPickerConfig fewest_in_flight(const policies::LoadOptions& options = {}) {
  return DocumentBuilder(options.era ? "inference.networking.x-k8s.io/v1alpha1"
                                     : "llm-d.ai/v1alpha1")
      .plugin("single-profile-handler")
      .plugin("active-request-scorer")
      .plugin("max-score-picker")
      .profile("default", {{"active-request-scorer", 1}, {"max-score-picker"}})
      .build(options);
}

std::vector<std::int32_t> endpoints(const RunResult& r) {
  std::vector<std::int32_t> out;
  for (const RequestRecord& q : r.requests) out.push_back(q.endpoint);
  return out;
}

TEST(RouterReplicas, CountOnlyTheirOwnRequestsInFlight) {
  RunPlan plan = hand_made_plan(strangers(8), 2);
  plan.endpoint_picker = fewest_in_flight();
  int together = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    plan.scenario.routing.router_replicas = 1;
    const std::vector<std::int32_t> one = endpoints(run_by_hand(plan, seed));
    for (std::size_t i = 0; i < 8; i += 2) EXPECT_NE(one[i], one[i + 1]) << "seed " << seed;
    plan.scenario.routing.router_replicas = 2;
    const std::vector<std::int32_t> two = endpoints(run_by_hand(plan, seed));
    // Requests alternate between the routers, and each of them balances what it sees.
    for (const std::size_t i : {0, 1, 4, 5}) EXPECT_NE(two[i], two[i + 2]) << "seed " << seed;
    together += two[0] == two[1] ? 1 : 0;
  }
  EXPECT_GT(together, 3) << "the second router does not know of the first one's request";
  EXPECT_LT(together, 17);
}

/// v0.3 hears the end of a stream at its headers, which a server sends when it has read the
/// request.
TEST(RouterEras, AStreamCountsUntilItsServerHasReadTheRequest) {
  RunPlan plan = hand_made_plan(strangers(8), 2);
  const auto run = [&](policies::Era era, std::int64_t token_us, std::uint64_t seed) {
    plan.endpoint_picker = fewest_in_flight({.era = era, .distribution = {}, .registry = nullptr});
    plan.pools[0].api_server.prompt_token = Duration::microseconds(token_us);
    return endpoints(run_by_hand(plan, seed));
  };
  int together = 0, together_soon = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<std::int32_t> complete = run(policies::Era::kV0_5_0, 0, seed);
    for (std::size_t i = 0; i < 8; i += 2) EXPECT_NE(complete[i], complete[i + 1]);
    const std::vector<std::int32_t> headers = run(policies::Era::kV0_3_2, 0, seed);
    together += headers[0] == headers[1] ? 1 : 0;
    // 64 tokens take 15 ms, and requests come every 10 ms: each sees the one before it only.
    const std::vector<std::int32_t> reading = run(policies::Era::kV0_3_2, 234, seed);
    for (std::size_t i = 0; i < 7; ++i) EXPECT_NE(reading[i], reading[i + 1]) << "seed " << seed;
    const std::vector<std::int32_t> late = run(policies::Era::kV0_3_2, 150, seed);
    together_soon += late[0] == late[1] ? 1 : 0;
  }
  EXPECT_GT(together, 3) << "nothing counts";
  EXPECT_LT(together, 17);
  EXPECT_GT(together_soon, 3) << "9.6 ms are over when the next one comes";
  EXPECT_LT(together_soon, 17);
  // Headers of an answer in one piece come with it.
  plan.scenario.workload.load.emplace<workloads::inference_perf::Workload>().config.emplace();
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const std::vector<std::int32_t> whole = run(policies::Era::kV0_3_2, 0, seed);
    for (std::size_t i = 0; i < 8; i += 2) EXPECT_NE(whole[i], whole[i + 1]) << "seed " << seed;
  }
}

/// The production stack's kvaware looks up `prompt`, which a chat does not have.
TEST(BalancerInputs, AChatWithoutATextHasNoBlockKeys) {
  RunPlan plan = hand_made_plan(strangers(1), 1);
  policies::BalancerNeeds needs;
  needs.block_keys = true;
  workloads::Request request;
  request.prompt = make_prompt(1, {{1, 64}}, 0);
  PromptKeys keys;
  keys.request = {11, 12, 13, 14};
  plan.scenario.workload.load.emplace<workloads::ConversationsConfig>();
  EXPECT_EQ(BalancerInputs(needs, plan, 1).request(request, keys, {}).block_keys.size(), 4U);
  needs.chat_text = policies::ChatText::kNone;
  EXPECT_TRUE(BalancerInputs(needs, plan, 1).request(request, keys, {}).block_keys.empty());
  plan.scenario.workload.load.emplace<workloads::GroupLoadConfig>();
  EXPECT_EQ(BalancerInputs(needs, plan, 1).request(request, keys, {}).block_keys.size(), 4U)
      << "a completion has one";
}

/// The same 640-token prompt again and again, a second apart.
std::vector<Sent> repeats(std::int64_t n) {
  std::vector<Sent> script;
  for (std::int64_t i = 0; i < n; ++i)
    script.push_back({.at_ms = 1000 * i, .parts = {{7, 640}}, .output = 2});
  return script;
}

policies::EndpointPickerConfig by_history() {
  return DocumentBuilder()
      .plugin("single-profile-handler")
      .plugin("approx-prefix-cache-producer")
      .plugin("prefix-cache-scorer")
      .plugin("max-score-picker")
      .profile("default", {{"prefix-cache-scorer", 1}, {"max-score-picker"}})
      .build();
}

std::vector<std::int64_t> predicted(const RunResult& r) {
  std::vector<std::int64_t> out;
  for (const RequestRecord& q : r.requests) out.push_back(q.predicted_hit_tokens);
  return out;
}

TEST(RouterReplicas, HaveTheirOwnIndex) {
  RunPlan plan = hand_made_plan(repeats(4), 2);
  plan.endpoint_picker = by_history();
  // The approximate index has blocks of 64 tokens.
  EXPECT_EQ(predicted(run_by_hand(plan)), (std::vector<std::int64_t>{0, 640, 640, 640}));
  plan.scenario.routing.router_replicas = 2;
  EXPECT_EQ(predicted(run_by_hand(plan)), (std::vector<std::int64_t>{0, 0, 640, 640}));
}

TEST(ApproximateIndex, OfTextKnowsAsManyTokensAsItsBytesHold) {
  // A release that hashes text: ten blocks of 64 bytes.
  RunPlan plan = hand_made_plan(repeats(2), 1);
  plan.endpoint_picker =
      DocumentBuilder("inference.networking.x-k8s.io/v1alpha1")
          .plugin("single-profile-handler")
          .plugin("prefix-cache-scorer",
                  map({{"hashBlockSize", number(64)}, {"maxPrefixBlocksToMatch", number(10)}}))
          .plugin("max-score-picker")
          .profile("default", {{"prefix-cache-scorer", 1}, {"max-score-picker"}})
          .build();
  EXPECT_EQ(predicted(run_by_hand(plan)), (std::vector<std::int64_t>{0, 160}));
  plan.scenario.workload.options.bytes_per_token = 6.4;
  EXPECT_EQ(predicted(run_by_hand(plan)), (std::vector<std::int64_t>{0, 100}));
  plan.scenario.workload.options.bytes_per_token.reset();
  plan.scenario.workload.load.emplace<workloads::vllm_bench::Config>().dataset_name =
      workloads::vllm_bench::Dataset::kRandom;
  EXPECT_EQ(predicted(run_by_hand(plan)), (std::vector<std::int64_t>{0, 100}))
      << "random tokens: 64 bytes are 10.5 of them";
}

TEST(KvEvents, LostOnesAreNeverKnown) {
  RunPlan plan = hand_made_plan(repeats(4), 1);
  plan.endpoint_picker = precise_config(16);
  const RunResult heard = run_by_hand(plan);
  EXPECT_EQ(predicted(heard), (std::vector<std::int64_t>{0, 640, 640, 640}));
  EXPECT_EQ(heard.routing.predicted_hit_tokens, 3 * 640);
  plan.scenario.routing.kv_event_loss = 1;
  const RunResult lost = run_by_hand(plan);
  EXPECT_EQ(predicted(lost), (std::vector<std::int64_t>{0, 0, 0, 0}));
  // The servers' caches do not care: all but the block of the last prompt token is hit.
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(lost.requests[i].cached_tokens, 624);
}

TEST(KvEvents, AnIndexThatNothingFeedsStaysEmpty) {
  const auto predictions = [](bool speculative) {
    RunPlan plan = hand_made_plan(repeats(4), 1);
    plan.endpoint_picker =
        DocumentBuilder()
            .plugin("precise-prefix-cache-scorer",
                    map({{"tokenProcessorConfig", map({{"blockSize", number(16)}})},
                         {"speculativeIndexing", tree::boolean(speculative)},
                         {"speculativeTTL", text("10s")}}))
            .plugin("max-score-picker")
            .profile("default", {{"precise-prefix-cache-scorer", 1}, {"max-score-picker"}})
            .build();
    return predicted(run_by_hand(plan));
  };
  EXPECT_EQ(predictions(false), (std::vector<std::int64_t>{0, 0, 0, 0}));
  // The router remembers where it sent the prompt.
  EXPECT_EQ(predictions(true), (std::vector<std::int64_t>{0, 640, 640, 640}));
}

TEST(KvEvents, SomeLostLeaveSomeUnknown) {
  std::vector<Sent> script;
  for (std::int64_t i = 0; i < 400; ++i)
    script.push_back(
        {.at_ms = 100 * i, .parts = {{static_cast<std::uint64_t>(i) % 200, 64}}, .output = 1});
  RunPlan plan = hand_made_plan(script, 1);
  plan.endpoint_picker = precise_config(16);
  plan.scenario.routing.kv_event_loss = 0.25;
  const RunResult r = run_by_hand(plan);
  std::int64_t known = 0, hit = 0;
  for (std::size_t i = 200; i < 400; ++i) {
    known += r.requests[i].predicted_hit_tokens == 64 ? 1 : 0;
    hit += r.requests[i].cached_tokens == 48 ? 1 : 0;
  }
  EXPECT_EQ(hit, 200);
  // One batch announces a prompt, so 200 prompts are lost with probability 1/4 each: sd 6.1.
  EXPECT_NEAR(static_cast<double>(known), 150, 25);
}

TEST(KvEvents, LateOnesAreNotYetKnown) {
  std::vector<Sent> script = repeats(2);
  script[1].at_ms = 100;
  RunPlan plan = hand_made_plan(script, 1);
  plan.endpoint_picker = precise_config(16);
  // The prompt is computed at 10 ms; its blocks are announced then, or 90 ms later at the latest.
  plan.scenario.routing.kv_event_delay = Duration::milliseconds(90);
  EXPECT_EQ(predicted(run_by_hand(plan)), (std::vector<std::int64_t>{0, 640}));
  plan.scenario.routing.kv_event_delay = Duration::milliseconds(91);
  EXPECT_EQ(predicted(run_by_hand(plan)), (std::vector<std::int64_t>{0, 0}));
}

/// A prefill and a decode server; prompts of at least `threshold` uncached tokens are
/// disaggregated.
RunPlan decided_by_prefix(std::vector<Sent> script, std::int64_t threshold,
                          const char* names_the_endpoint = "prefill-header-handler") {
  RunPlan plan = hand_made_plan(std::move(script), 1);
  plan.pools[0].config.name = "decode";
  plan.pools[0].config.role = PoolRole::kDecode;
  plan.pools.push_back(plan.pools[0]);
  plan.pools[1].config.name = "prefill";
  plan.pools[1].config.role = PoolRole::kPrefill;
  plan.endpoint_picker =
      DocumentBuilder()
          .plugin("prefix-based-pd-decider", map({{"nonCachedTokens", tree::number(threshold)}}))
          .plugin("approx-prefix-cache-producer")
          .plugin(names_the_endpoint)
          .plugin("pd-profile-handler",
                  map({{"deciderPluginName", text("prefix-based-pd-decider")}}))
          .plugin("prefill-filter")
          .plugin("decode-filter")
          .plugin("prefix-cache-scorer")
          .plugin("max-score-picker")
          .profile("prefill",
                   {{"prefill-filter"}, {"prefix-cache-scorer", 1}, {"max-score-picker"}})
          .profile("decode", {{"decode-filter"}, {"prefix-cache-scorer", 1}, {"max-score-picker"}})
          .build();
  return plan;
}

TEST(ConditionalDisaggregation, TakesWhatIsLongAndNotCached) {
  const RunPlan plan = decided_by_prefix({{.at_ms = 0, .parts = {{1, 192}}},
                                          {.at_ms = 1000, .parts = {{2, 320}}},
                                          {.at_ms = 2000, .parts = {{2, 320}}},
                                          {.at_ms = 3000, .parts = {{2, 320}, {3, 256}}}},
                                         256);
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.requests[0].prefill_endpoint, -1) << "192 uncached tokens are below the threshold";
  EXPECT_EQ(r.requests[1].prefill_endpoint, 1) << "320 uncached tokens";
  EXPECT_EQ(r.requests[2].prefill_endpoint, -1) << "all of it stands on the decode server";
  EXPECT_EQ(r.requests[3].prefill_endpoint, 1) << "256 new tokens";
  EXPECT_EQ(r.routing.disaggregated, 2);
  EXPECT_EQ(r.summary.successes, 4);
}

// llm-d-router ebab6879 pd_profile_handler.go picks an endpoint; disagg_headers_handler.go sends
// its name to the side-car.
TEST(ConditionalDisaggregation, WithoutAHeaderTheSideCarPrefillsLocally) {
  // Any plugin without a part in decisions stands for the missing one.
  const RunResult r = run_by_hand(
      decided_by_prefix({{.at_ms = 0, .parts = {{2, 320}}}}, 256, "models-data-source"));
  EXPECT_EQ(r.requests[0].prefill_endpoint, -1);
  EXPECT_EQ(r.routing.disaggregated, 0);
  EXPECT_EQ(r.summary.successes, 1);
}

TEST(ConditionalDisaggregation, WithoutPrefillServersEverythingIsLocal) {
  RunPlan plan = decided_by_prefix({{.at_ms = 0, .parts = {{2, 320}}}}, 256);
  plan.pools.pop_back();
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.requests[0].outcome, workloads::Outcome::kSuccess);
  EXPECT_EQ(r.requests[0].prefill_endpoint, -1);
}

}  // namespace
}  // namespace routesim::sim::testing
