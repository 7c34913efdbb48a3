// What llm-d's router got in the summer of 2026, as runs show it: eviction of requests in flight,
// bursts that wait together, observed latencies, and a hub of clusters.
#include <algorithm>
#include <set>

#include "tests/sim/plan_fixture.h"

namespace routesim::sim::testing {
namespace {

policies::EndpointPickerConfig evicting(std::int64_t cap, bool evicts) {
  return DocumentBuilder()
      .plugin("single-profile-handler")
      .plugin("queue-scorer")
      .plugin("concurrency-detector", map({{"maxConcurrency", tree::number(cap)}}))
      .plugin("max-score-picker")
      .profile("default", {{"queue-scorer", 1}, {"max-score-picker"}})
      .set("featureGates", list({text("flowControl")}))
      .set("flowControl",
           map({{"enableEviction", tree::boolean(evicts)},
                {"saturationDetector", map({{"pluginRef", text("concurrency-detector")}})}}))
      .build();
}

/// Eight requests of ten seconds fill the pool; eight short ones come after half a second. Some of
/// both are sheddable.
RunPlan crowded(bool evicts) {
  std::vector<Sent> script;
  for (std::uint64_t i = 0; i < 16; ++i)
    script.push_back({.at_ms = i < 8 ? 0 : 500, .parts = {{i, 16}}, .output = i < 8 ? 1000 : 10});
  RunPlan plan = hand_made_plan(script, 1);
  plan.scenario.workload.sheddable_fraction = 0.5;
  plan.endpoint_picker = evicting(8, evicts);
  return plan;
}

TEST(EvictionRun, EndsTheNewestSheddableRequestsOneByOne) {
  const RunResult r = run_by_hand(crowded(true));
  std::vector<RequestRecord> victims;
  for (const RequestRecord& q : r.requests)
    if (q.outcome != workloads::Outcome::kSuccess) victims.push_back(q);
  std::sort(victims.begin(), victims.end(),
            [](const RequestRecord& a, const RequestRecord& b) { return a.end < b.end; });
  ASSERT_GE(victims.size(), 2u);
  EXPECT_EQ(r.summary.failures_by_label.at("429 Too Many Requests"), std::ssize(victims));
  for (std::size_t i = 0; i < victims.size(); ++i) {
    // At saturation 1 one request is enough, and the next decision is due 10 ms after its end.
    EXPECT_EQ(victims[i].end, at_ms(500 + 10 * static_cast<std::int64_t>(i)));
    EXPECT_LT(victims[i].id, 8) << "it ran";
    if (i > 0) {
      EXPECT_LT(victims[i].id, victims[i - 1].id) << "the newest first";
    }
  }
  const auto at_once = std::count_if(r.requests.begin() + 8, r.requests.end(),
                                     [](const auto& q) { return q.first_token < at_ms(700); });
  EXPECT_GE(at_once, std::ssize(victims)) << "each made room for one that waited";
}

TEST(EvictionRun, WithoutItEveryoneWaits) {
  const RunResult r = run_by_hand(crowded(false));
  EXPECT_EQ(r.summary.successes, 16);
  for (std::size_t i = 8; i < 16; ++i) EXPECT_GE(r.requests[i].first_token, at_ms(10'000));
}

policies::EndpointPickerConfig gathering(bool flow_control) {
  DocumentBuilder document;
  document.plugin("single-profile-handler")
      .plugin("burst-prefix-cache-producer")
      .plugin("prefix-cache-scorer",
              map({{"prefixMatchInfoProducerName", text("burst-prefix-cache-producer")}}))
      .plugin("max-score-picker")
      .profile("default", {{"prefix-cache-scorer", 1}, {"max-score-picker"}});
  if (flow_control) document.set("featureGates", list({text("flowControl")}));
  return document.build();
}

TEST(BurstRun, RequestsOfAWindowWaitForItsEndAndShareAServer) {
  std::vector<Sent> script;
  for (const std::int64_t at : {0, 20, 40, 60, 80, 99})  // Two prompts in turn.
    script.push_back({.at_ms = at, .parts = {{at % 40 == 0 ? 1ULL : 2ULL, 128}}});
  script.push_back({.at_ms = 130, .parts = {{1, 128}}});
  script.push_back({.at_ms = 50, .parts = {{3, 128}}, .timeout_ms = 20});
  std::stable_sort(script.begin(), script.end(),
                   [](const Sent& a, const Sent& b) { return a.at_ms < b.at_ms; });
  for (const bool flow_control : {false, true}) {
    RunPlan plan = hand_made_plan(script, 4);
    plan.endpoint_picker = gathering(flow_control);
    const RunResult r = run_by_hand(plan);
    std::set<std::int64_t> servers[2];
    for (const RequestRecord& q : r.requests) {
      const Sent& sent = script[static_cast<std::size_t>(q.id)];
      if (sent.timeout_ms > 0) {
        EXPECT_EQ(q.outcome, workloads::Outcome::kTimeout);
        EXPECT_EQ(q.end, at_ms(70)) << "while it waited";
      } else if (sent.at_ms == 130) {
        EXPECT_EQ(q.first_token, at_ms(240)) << "a window of its own";
      } else {
        EXPECT_GE(q.first_token, at_ms(110)) << "the end of the window and a step";
        // Flow control waits for the first scrape, so the window begins a millisecond later.
        EXPECT_LE(q.first_token, at_ms(flow_control ? 121 : 120));
        servers[sent.parts[0].first - 1].insert(q.endpoint);
      }
    }
    EXPECT_EQ(servers[0].size(), 1u);
    EXPECT_EQ(servers[1].size(), 1u);
    EXPECT_NE(servers[0], servers[1]);
  }
}

// A server is trusted once its times differ and requests were in flight when others came.
TEST(LatencyObserverRun, LearnsWhichServerIsSlow) {
  std::vector<Sent> script;
  for (std::uint64_t i = 0; i < 300; ++i)
    script.push_back({.at_ms = static_cast<std::int64_t>(50 * i + i * 37 % 41),
                      .parts = {{i, 160}},
                      .output = 20});
  RunPlan plan = hand_made_plan(script, 1);
  plan.pools[0].rules.max_num_batched_tokens = 64;
  plan.pools.push_back(plan.pools[0]);
  plan.pools[1].config.name = "slow";
  plan.pools[1].latency = std::make_shared<FixedLatency>(40);
  plan.endpoint_picker =
      DocumentBuilder()
          .plugin("latency-observer-producer-hub")
          .plugin("latency-observation-scorer-hub")
          .plugin("max-score-picker")
          .profile("default", {{"latency-observation-scorer-hub", 1}, {"max-score-picker"}})
          .set("dataLayer",
               map({{"sources",
                     list({map({{"pluginRef", text("latency-observer-producer-hub")}})})}}))
          .build();
  const RunResult r = run_by_hand(plan);
  const auto to_fast = [&](std::ptrdiff_t from, std::ptrdiff_t to) {
    return std::count_if(r.requests.begin() + from, r.requests.begin() + to,
                         [](const RequestRecord& q) { return q.endpoint == 0; });
  };
  EXPECT_NEAR(static_cast<double>(to_fast(0, 20)), 10, 7) << "all are cold, and a draw decides";
  EXPECT_GE(to_fast(200, 300), 90) << "what is known of both";
}

// The first means show one request; the next, five seconds later, all the others.
TEST(MulticlusterRun, AllGoWhereTheLastMeansWereLow) {
  std::vector<Sent> script;
  for (std::uint64_t i = 0; i < 45; ++i)
    script.push_back(
        {.at_ms = static_cast<std::int64_t>(200 * i), .parts = {{i, 16}}, .output = 900});
  RunPlan plan = hand_made_plan(script, 2);
  plan.endpoint_picker = DocumentBuilder()
                             .plugin("multicluster-metrics-extractor")
                             .plugin("multicluster-kv-cache-utilization-scorer")
                             .plugin("max-score-picker")
                             .profile("default", {{"multicluster-kv-cache-utilization-scorer", 1},
                                                  {"max-score-picker"}})
                             .build();
  const RunResult r = run_by_hand(plan);
  const std::int64_t first = r.requests[0].endpoint;
  for (std::size_t i = 1; i < r.requests.size(); ++i)
    EXPECT_EQ(r.requests[i].endpoint == first, script[i].at_ms > 5000) << "request " << i;
}

}  // namespace
}  // namespace routesim::sim::testing
