// What clients say of their sessions, as affinity and fairness show it, and what no plugin is told.
#include <set>

#include "policies/config/make_scheduler.h"
#include "sim/plan/unsupplied_inputs.h"
#include "tests/sim/plan_fixture.h"

namespace routesim::sim::testing {
namespace {

/// `rounds` turns of each of three sessions (0 = of nobody), a second apart.
std::vector<Sent> turns(std::int64_t rounds, bool with_sessions) {
  std::vector<Sent> script;
  for (std::int64_t i = 0; i < 3 * rounds; ++i)
    script.push_back({.at_ms = 1000 * i,
                      .parts = {{static_cast<std::uint64_t>(i), 16}},
                      .session = with_sessions ? static_cast<std::uint64_t>(i % 3) + 1 : 0});
  return script;
}

policies::EndpointPickerConfig affinity(const std::string& strategy) {
  return DocumentBuilder()
      .plugin("session-affinity-scorer", map({{"strategy", text(strategy)}}))
      .plugin("max-score-picker")
      .profile("default", {{"session-affinity-scorer", 1}, {"max-score-picker"}})
      .build();
}

/// Over how many servers the turns of each session went, at most.
std::size_t spread(const RunResult& r) {
  std::size_t most = 0;
  for (std::size_t session = 0; session < 3; ++session) {
    std::set<std::int32_t> servers;
    for (std::size_t i = session; i < r.requests.size(); i += 3)
      servers.insert(r.requests[i].endpoint);
    most = std::max(most, servers.size());
  }
  return most;
}

TEST(ClientSessions, AreKeptWhereTheyBegan) {
  for (const std::string strategy : {"session_id", "encoded_endpoint_header"}) {
    RunPlan plan = hand_made_plan(turns(6, true), 8);
    plan.endpoint_picker = affinity(strategy);
    EXPECT_EQ(spread(run_by_hand(plan)), 1U) << strategy;
    RunPlan strangers = hand_made_plan(turns(6, false), 8);
    strangers.endpoint_picker = affinity(strategy);
    EXPECT_GT(spread(run_by_hand(strangers)), 1U) << "requests without a session are free";
  }
}

// Every request names its server; without the header the first of two idle ones would take turns.
TEST(ClientSessions, HeadersOfTheLoadReachTheRouter) {
  const auto servers = [](std::vector<std::pair<std::string, std::string>> headers) {
    RunPlan plan = hand_made_plan(turns(4, false), 2);
    plan.endpoint_picker =
        DocumentBuilder()
            .plugin("header-profile-handler",
                    map({{"headerName", text("X-Profile")}, {"defaultProfile", text("nobody")}}))
            .plugin("by-label",
                    map({{"label", text("none")}, {"validValues", list({text("at-all")})}}))
            .plugin("random-picker")
            .profile("nobody", {{"by-label"}, {"random-picker"}})
            .profile("all", {{"random-picker"}})
            .build();
    plan.headers = {std::move(headers)};
    std::size_t served = 0;
    for (const auto& request : run_by_hand(plan).requests)
      if (request.endpoint >= 0) ++served;
    return served;
  };
  EXPECT_EQ(servers({}), 0U) << "the default profile has no endpoint";
  EXPECT_EQ(servers({{"x-profile", "all"}}), 12U) << "names are compared without regard to case";
}

TEST(ClientSessions, HeadersOfTheLoadGoBeforeThoseOfTheSession) {
  const policies::EndpointPickerConfig config = affinity("session_id");
  Diagnostics d;
  const auto scheduler = policies::make_scheduler(config, {}, d);
  ASSERT_NE(scheduler, nullptr);
  ClientSessions sessions(*scheduler, {{{"x-session-id", "one"}, {"other", "x"}}});
  workloads::Request request;
  request.session = 7;
  policies::RequestView view;
  sessions.send(request, view);
  EXPECT_EQ(view.header("X-Session-Id"), "one");
  EXPECT_EQ(view.header("Other"), "x");
  EXPECT_EQ(sessions.flow(request), "default-flow") << "no policy tells flows apart";
}

TEST(ClientSessions, ShareASaturatedPoolFairly) {
  const auto end_of_last = [](const std::string& policy) {
    std::vector<Sent> script;
    for (std::uint64_t i = 0; i < 6; ++i)
      script.push_back({.parts = {{i, 16}}, .output = 10, .session = 1});
    script.push_back({.at_ms = 1, .parts = {{9, 16}}, .output = 10, .session = 2});
    RunPlan plan = hand_made_plan(script, 1);
    const tree::Node band = map({{"fairnessPolicyRef", text(policy)}});
    plan.endpoint_picker =
        DocumentBuilder()
            .plugin("concurrency-detector", map({{"maxConcurrency", number(1)}}))
            .plugin("round-robin-fairness-policy")
            .plugin("agent-identity")
            .plugin("queue-scorer")
            .profile("default", {{"queue-scorer", 1}})
            .set("featureGates", list({text("flowControl")}))
            .set("flowControl",
                 map({{"saturationDetector", map({{"pluginRef", text("concurrency-detector")}})},
                      {"defaultPriorityBand", band}}))
            .build();
    return run_by_hand(plan).requests.back().end;
  };
  EXPECT_EQ(end_of_last("global-strict-fairness-policy"), at_ms(700)) << "the last to come";
  EXPECT_EQ(end_of_last("round-robin-fairness-policy"), at_ms(200)) << "the other session's turn";
}

TEST(UnsuppliedInputs, AreNamedWithWhatThePluginDoesThen) {
  const policies::EndpointPickerConfig config =
      DocumentBuilder()
          .plugin("latency-scorer")
          .plugin("topology-affinity-scorer")
          .plugin("prefix-cache-affinity-filter")
          .plugin("queue-scorer")
          .profile("default", {{"latency-scorer", 1}, {"topology-affinity-scorer", 1}})
          .build();
  Diagnostics found;
  warn_unsupplied_inputs(config, "epp", found);
  ASSERT_EQ(found.items().size(), 2U) << "the filter measures by throughput, the queue is known";
  EXPECT_EQ(to_string(found.items()[0]),
            "<input>: warning: epp.plugins[0]: plugin 'latency-scorer' runs without its input: no "
            "latency predictor stands beside the router (routing.latency_predictor), so it falls "
            "back to its composite score of KV usage, "
            "queue and prefix");
  EXPECT_EQ(unsupplied_input("topology-affinity-scorer"),
            "the topology of servers is not simulated, so every endpoint scores 0");
  EXPECT_EQ(unsupplied_input("queue-scorer"), "");
}

TEST(UnsuppliedInputs, AHeaderThatTheLoadSendsIsAnInput) {
  const policies::EndpointPickerConfig config =
      DocumentBuilder()
          .plugin("header-label-affinity-scorer",
                  map({{"headerName", text("X-Zone")}, {"labelKey", text("zone")}}))
          .profile("default", {{"header-label-affinity-scorer", 1}})
          .build();
  Diagnostics without;
  warn_unsupplied_inputs(config, "", without);
  ASSERT_EQ(without.items().size(), 1U);
  EXPECT_NE(without.items()[0].message.find("the load sends no such header"), std::string::npos);
  Diagnostics with;
  const std::vector<std::string> sent = {"x-zone"};
  warn_unsupplied_inputs(config, "", with, {.headers = sent, .predictions = false, .tiers = false});
  EXPECT_TRUE(with.items().empty());
  const std::vector<std::string> read = headers_read(config);
  EXPECT_NE(std::find(read.begin(), read.end(), "X-Zone"), read.end());
}

TEST(UnsuppliedInputs, TiersOfKvBesideTheGpuAreSaidToBeLeftOut) {
  const auto said = [](const policies::EndpointPickerConfig& config) {
    Diagnostics d;
    warn_unsupplied_inputs(config, "epp", d);
    std::string all;
    for (const Diagnostic& item : d.items()) all += to_string(item) + "\n";
    return all;
  };
  const auto tier = [](const char* name, double weight) {
    return map({{"name", text(name)}, {"weight", tree::number(weight)}});
  };
  const auto precise = [&](std::vector<tree::Node> tiers) {
    return said(DocumentBuilder()
                    .plugin("token-producer", map({{"modelName", text("m")}}))
                    .plugin("precise-prefix-cache-scorer",
                            map({{"indexerConfig",
                                  map({{"kvCacheBackendConfigs", list(std::move(tiers))}})}}))
                    .profile("default", {{"precise-prefix-cache-scorer", 1}})
                    .build());
  };
  EXPECT_NE(precise({tier("gpu", 1.0), tier("cpu", 0.4)})
                .find("weighs KV blocks in other tiers than the GPU (cpu), and no pool has "
                      "kv_tiers: these weights have no effect"),
            std::string::npos);
  EXPECT_EQ(precise({tier("gpu", 0.7)}), "");
  EXPECT_NE(said(DocumentBuilder()
                     .plugin("p2p-source-producer")
                     .plugin("queue-scorer")
                     .profile("default", {{"queue-scorer", 1}})
                     .build())
                .find("plugin 'p2p-source-producer' names servers to pull KV blocks from, and no "
                      "pool has kv_tiers to pull them through"),
            std::string::npos);
  const auto approximate = [&](tree::Node parameters) {
    policies::EndpointPickerConfig config = DocumentBuilder()
                                                .plugin("approx-prefix-cache-producer")
                                                .plugin("queue-scorer")
                                                .profile("default", {{"queue-scorer", 1}})
                                                .build();
    policies::PluginSpec second = config.plugins.front();
    second.name = "cpu-index";
    second.parameters = std::move(parameters);
    config.plugins.push_back(second);
    return said(config);
  };
  EXPECT_NE(approximate(
                map({{"autoTune", tree::boolean(false)}, {"lruCapacityPerServer", number(41'000)}}))
                .find("plugin 'cpu-index' keeps a second prefix index, as of KV in CPU memory, "
                      "and no pool has kv_tiers: it expects blocks that no server has any more"),
            std::string::npos);
  EXPECT_NE(approximate(map({{"lruCapacityPerServer", number(41'000)}}))
                .find("its lruCapacityPerServer has no effect"),
            std::string::npos);
  EXPECT_EQ(approximate(map({})), "");
}

TEST(UnsuppliedInputs, PreciseScoringWithoutATokenizerIsSaidToMissUpstream) {
  const auto found = [](bool declared, const policies::LoadOptions& options,
                        tree::Node parameters = {}) {
    DocumentBuilder document;
    if (declared) document.plugin("token-producer", std::move(parameters));
    Diagnostics d;
    warn_unsupplied_inputs(document.plugin("precise-prefix-cache-producer")
                               .plugin("queue-scorer")
                               .profile("default", {{"queue-scorer", 1}})
                               .build(options),
                           "", d);
    return d.items().empty() ? std::string() : to_string(d.items()[0]);
  };
  EXPECT_NE(found(false, {}).find("has no token-producer with a tokenizer"), std::string::npos);
  EXPECT_NE(found(true, {}).find("upstream the default estimate"), std::string::npos);
  EXPECT_NE(found(true, {}, map({{"estimate", map({})}})), "");
  EXPECT_EQ(found(true, {}, map({{"modelName", text("m")}})), "");
  policies::LoadOptions may;
  may.era = policies::Era::kMay2026;
  EXPECT_EQ(found(false, may), "") << "the estimate came in June";
}

}  // namespace
}  // namespace routesim::sim::testing
