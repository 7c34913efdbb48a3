// Whole decisions over several profiles: Heimdall's PD configuration, disaggregation with topology,
// data parallelism, sessions, admission and the eras' quirks.
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "policies/plugins/inflight_load.h"
#include "tests/policies/scheduler_fixture.h"

namespace routesim::policies {
namespace {

/// Moreh's fleet: `prefill` pods and one decode pod, eight ranks each on ports 8000..8007.
EndpointTable heimdall_fleet(std::size_t prefill_pods) {
  EndpointTable table;
  for (std::size_t pod = 0; pod <= prefill_pods; ++pod) {
    for (std::int32_t rank = 0; rank < 8; ++rank) {
      EndpointInfo info;
      info.address = "10.1.0." + std::to_string(pod);
      info.port = 8000 + rank;
      info.rank = rank;
      info.pod_name = "pod" + std::to_string(pod) + "-rank-" + std::to_string(rank);
      info.labels["mif.moreh.io/role"] = pod < prefill_pods ? "prefill" : "decode";
      const EndpointId id = table.add(std::move(info));
      table.set_metrics(id, 0, 0, 0, SimTime::zero());
    }
  }
  return table;
}

std::unique_ptr<Scheduler> heimdall(const char* file) {
  return make_scheduler(read_repository_file(std::string("tests/policies/data/") + file));
}

std::map<std::string, std::string> headers_of(const Decision& d) {
  return {d.headers.begin(), d.headers.end()};
}

TEST(Heimdall, RandomConfigurationSplitsEveryRequest) {
  const auto s = heimdall("heimdall-values-random.yaml");
  const EndpointTable table = heimdall_fleet(2);
  std::vector<int> prefill(24, 0), decode(24, 0);
  for (std::uint64_t id = 0; id < 2400; ++id) {
    RequestView request;
    request.id = id;
    const Decision d = s->schedule(request, table, SimTime::zero());
    ASSERT_TRUE(d.routed());
    ASSERT_TRUE(d.prefill.valid()) << "threshold 0 disaggregates every request";
    ++prefill[d.prefill.value()];
    ++decode[d.primary.value()];
    EXPECT_EQ(headers_of(d).at("x-prefiller-host-port"), table.info(d.prefill.value()).host_port());
  }
  for (std::size_t r = 0; r < 24; ++r) {
    if (r < 16) {
      EXPECT_EQ(decode[r], 0);
      EXPECT_GT(prefill[r], 100);
    } else {
      EXPECT_EQ(prefill[r], 0);
      EXPECT_GT(decode[r], 200);
    }
  }
}

TEST(Heimdall, MinMaxSpansPodsOutsideTheProfile) {
  const auto s = heimdall("heimdall-values.yaml");
  const EndpointTable table = heimdall_fleet(2);
  std::vector<std::uint64_t> keys(10);
  std::iota(keys.begin(), keys.end(), 77);
  const auto hold = [&](EndpointRow row, std::size_t n) {
    s->precise_index()->stored(EndpointId(s->index_holder(table, row)), kGpuTier, 0,
                               std::span(keys).first(n), std::span(keys).first(n));
  };
  hold(0, 6);    // Prefill pod 0.
  hold(8, 4);    // Prefill pod 1.
  hold(16, 10);  // The decode pod holds most, and is no prefill candidate.
  RequestView request;
  request.block_keys = keys;
  Explanation e;
  s->explain(request, table, SimTime::zero(), e);
  const auto& precise = e.profiles[1].scorers[2];
  EXPECT_DOUBLE_EQ(precise.scores[0], (6.0 - 4.0) / (10.0 - 4.0));
  EXPECT_DOUBLE_EQ(precise.scores[8], 0.0);
}

// Up to v0.6.0 the index knows a pod by its bare address.
TEST(PodKeys, AllRanksOfAPodShareItsIndexEntriesUntilTheLastIsGone) {
  const auto s = heimdall("llm-d-precise-2026-01.values.yaml");
  EndpointTable table = heimdall_fleet(1);
  EXPECT_EQ(s->index_holder(table, 0), s->index_holder(table, 7));
  EXPECT_NE(s->index_holder(table, 7), s->index_holder(table, 8));
  const std::vector<std::uint64_t> keys = {1, 2, 3};
  s->precise_index()->stored(EndpointId(s->index_holder(table, 8)), kGpuTier, 0, keys, keys);
  RequestView request;
  request.block_keys = keys;
  Explanation e;
  const Decision d = s->explain(request, table, SimTime::zero(), e);
  const auto& precise = e.profiles[0].scorers[0];
  ASSERT_EQ(precise.plugin, "precise-prefix-cache-scorer");
  ASSERT_EQ(precise.scores.size(), 16U);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(precise.scores[i], i < 8 ? 0.0 : 1.0);
  EXPECT_GE(d.primary.value(), 8U);
  for (EndpointRow rank = 8; rank < 16; ++rank) {
    EXPECT_EQ(s->precise_index()->holders(1).size(), 1U) << "rank " << rank;
    s->on_endpoint_removed(rank, table, SimTime::zero());
    table.remove(EndpointId(rank));
  }
  EXPECT_TRUE(s->precise_index()->holders(1).empty());
}

// llm-d-router pull request 1738 (June 2026) clears the entries of an endpoint that is not ready.
TEST(PodKeys, AnEndpointThatIsNotReadyIsForgottenSince1738) {
  const std::string yaml =
      "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n"
      "- type: precise-prefix-cache-scorer\n- type: single-profile-handler\n"
      "schedulingProfiles:\n- name: default\n  plugins:\n"
      "  - pluginRef: precise-prefix-cache-scorer\n";
  for (const Era era : {Era::kV0_7_0, Era::kMay2026, Era::kV0_9_0, Era::kJul2026, Era::kLate2026}) {
    const auto s = make_scheduler(yaml, {.era = era, .distribution = {}, .registry = nullptr});
    ASSERT_NE(s, nullptr);
    const EndpointTable table = make_endpoints(2);
    const std::vector<std::uint64_t> keys = {1, 2, 3};
    for (const EndpointRow row : {0U, 1U})
      s->precise_index()->stored(EndpointId(s->index_holder(table, row)), kGpuTier, 0, keys, keys);
    s->on_endpoint_unready(0, table, SimTime::zero());
    EXPECT_EQ(s->precise_index()->holders(1).size(), era < Era::kJul2026 ? 2U : 1U) << name(era);
    s->forget_blocks(0, table);
    EXPECT_EQ(s->precise_index()->holders(1).size(), 1U);
    s->on_endpoint_removed(1, table, SimTime::zero());
    EXPECT_TRUE(s->precise_index()->holders(1).empty());
  }
}

std::string disagg_document(const std::string& decode_scorers) {
  return "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n"
         "- type: disagg-profile-handler\n  parameters:\n    stageOrder: prefill-first\n"
         "- type: prefill-filter\n- type: decode-filter\n- type: topology-affinity-scorer\n"
         "- type: queue-scorer\n- type: inflight-load-producer\n"
         "schedulingProfiles:\n"
         "- name: prefill\n  plugins:\n  - pluginRef: prefill-filter\n"
         "  - pluginRef: queue-scorer\n"
         "- name: decode\n  plugins:\n  - pluginRef: decode-filter\n" +
         decode_scorers;
}

TEST(Disagg, DecodeFollowsPrefillToItsHost) {
  const auto s = make_scheduler(disagg_document("  - pluginRef: topology-affinity-scorer\n"));
  EndpointTable table;
  for (int i = 0; i < 8; ++i) {
    EndpointInfo info;
    info.address = "10.0.0." + std::to_string(i);
    info.labels["llm-d.ai/role"] = i < 4 ? "prefill" : "decode";
    info.topology.host = "host" + std::to_string(i % 4);
    table.set_metrics(table.add(std::move(info)), 0, 0, 0, SimTime::zero());
  }
  for (std::uint64_t id = 0; id < 100; ++id) {
    RequestView request;
    request.id = id;
    request.prompt_tokens = 100;
    const Decision d = s->schedule(request, table, SimTime::zero());
    ASSERT_TRUE(d.prefill.valid());
    EXPECT_EQ(d.primary.value(), d.prefill.value() + 4);
    s->on_routed(request, d, table, SimTime::zero());
    EXPECT_EQ(s->in_flight()->requests(d.prefill.value()), 1);
    s->on_first_token(id, SimTime::zero());
    EXPECT_EQ(s->in_flight()->requests(d.prefill.value()), 0) << "prefill is over";
    EXPECT_EQ(s->in_flight()->requests(d.primary.value()), 1);
    s->on_completed(id, SimTime::zero());
  }
}

TEST(Disagg, ToleratesAMissingPrefillAndNotAMissingDecode) {
  const auto s = make_scheduler(disagg_document("  - pluginRef: queue-scorer\n"));
  EndpointTable decode_only = make_endpoints(2);  // Unlabelled endpoints decode.
  const Decision d = s->schedule({}, decode_only, SimTime::zero());
  EXPECT_TRUE(d.routed());
  EXPECT_FALSE(d.prefill.valid());
  EXPECT_TRUE(d.headers.empty());
  EndpointTable prefill_only = make_endpoints(1);
  prefill_only.mutable_info(EndpointId(0)).labels["llm-d.ai/role"] = "prefill";
  const Decision none = s->schedule({}, prefill_only, SimTime::zero());
  EXPECT_EQ(none.outcome, Outcome::kFilteredOut);
  EXPECT_EQ(none.http_status, 429);
  EXPECT_STREQ(none.reason, "failed to find available decode workers");
}

TEST(Outcomes, HaveUpstreamsStatus) {
  const std::string yaml = document("- type: decode-filter\n", "  - pluginRef: decode-filter\n");
  EndpointTable table = make_endpoints(1);
  const auto s = make_scheduler(yaml);
  EXPECT_EQ(s->schedule({}, EndpointTable(), SimTime::zero()).http_status, 503);
  table.mutable_info(EndpointId(0)).labels["llm-d.ai/role"] = "encode";
  EXPECT_EQ(s->schedule({}, table, SimTime::zero()).http_status, 429);
  const auto old =
      make_scheduler(yaml, {.era = Era::kV0_7_0, .distribution = {}, .registry = nullptr});
  EXPECT_EQ(old->schedule({}, table, SimTime::zero()).http_status, 500);
}

TEST(Outcomes, OnlySheddableRequestsAreRefusedWithoutFlowControl) {
  const auto s =
      make_scheduler(document("- type: queue-scorer\n", "  - pluginRef: queue-scorer\n"));
  EndpointTable table = make_endpoints(1);
  table.set_metrics(EndpointId(0), 100, 0, 0.9, SimTime::zero());
  RequestView request;
  EXPECT_TRUE(s->schedule(request, table, SimTime::zero()).routed());
  request.priority = -1;
  const Decision d = s->schedule(request, table, SimTime::zero());
  EXPECT_EQ(d.outcome, Outcome::kRefused);
  EXPECT_EQ(d.http_status, 429);
}

TEST(Outcomes, ConditionalDecodeNeedsSomethingCached) {
  const auto s = make_scheduler(
      document("- type: prefix-cache-scorer\n", "  - pluginRef: prefix-cache-scorer\n"));
  const EndpointTable table = make_endpoints(2);
  const std::vector<std::uint64_t> hashes = {5, 6};
  const Header prefer{"Prefer", "if-available"};
  RequestView request;
  request.approx_hashes = hashes;
  request.headers = std::span(&prefer, 1);
  const Decision cold = s->schedule(request, table, SimTime::zero());
  EXPECT_EQ(cold.outcome, Outcome::kPreconditionFailed);
  EXPECT_EQ(cold.http_status, 412);
  request.headers = {};
  const Decision sent = s->schedule(request, table, SimTime::zero());
  s->on_routed(request, sent, table, SimTime::zero());
  request.headers = std::span(&prefer, 1);
  const Decision warm = s->schedule(request, table, SimTime::zero());
  EXPECT_TRUE(warm.routed());
  EXPECT_EQ(warm.primary, sent.primary);
}

TEST(Subset, RestrictsTheCandidates) {
  const auto s =
      make_scheduler(document("- type: queue-scorer\n", "  - pluginRef: queue-scorer\n"));
  EndpointTable table = make_endpoints(6);
  table.set_ready(EndpointId(4), false);
  const std::vector<EndpointRow> subset = {4, 5, 99};
  RequestView request;
  request.subset = subset;
  for (request.id = 0; request.id < 20; ++request.id)
    EXPECT_EQ(s->schedule(request, table, SimTime::zero()).primary, EndpointId(5));
  const std::vector<EndpointRow> gone = {4};
  request.subset = gone;
  EXPECT_EQ(s->schedule(request, table, SimTime::zero()).outcome, Outcome::kNoEndpoints);
}

TEST(Sessions, ABindingMovesOnlyWhenItsEndpointIsAbsent) {
  const auto s = make_scheduler(
      document("- type: session-affinity-scorer\n  parameters:\n    strategy: session_id\n"
               "- type: queue-scorer\n",
               "  - pluginRef: session-affinity-scorer\n  - pluginRef: queue-scorer\n"
               "    weight: 5\n"));
  EndpointTable table = make_endpoints(2);
  const Header header{"x-session-id", "s"};
  RequestView request;
  request.headers = std::span(&header, 1);
  const auto route = [&](std::uint64_t id, SimTime now) {
    request.id = id;
    const Decision d = s->schedule(request, table, now);
    s->on_routed(request, d, table, now);
    return d.primary.value();
  };
  const EndpointRow home = route(1, SimTime::zero());
  const EndpointRow away = 1 - home;
  table.set_metrics(EndpointId(home), 9, 0, 0, SimTime::zero());
  EXPECT_EQ(route(2, SimTime::zero()), away) << "the queue outweighs the session";
  table.set_metrics(EndpointId(home), 0, 0, 0, SimTime::zero());
  EXPECT_EQ(route(3, SimTime::zero()), home) << "the binding stayed";
  table.set_ready(EndpointId(home), false);
  EXPECT_EQ(route(4, SimTime::zero()), away);
  table.set_ready(EndpointId(home), true);
  EXPECT_EQ(route(5, SimTime::zero()), away) << "the binding moved";
  s->advance(SimTime::zero() + Duration::seconds(301));
  std::map<EndpointRow, int> picked;
  for (std::uint64_t id = 10; id < 60; ++id) {
    request.id = id;
    ++picked[s->schedule(request, table, SimTime::zero()).primary.value()];
  }
  EXPECT_EQ(picked.size(), 2U) << "the binding expired";
}

TEST(Eras, MaxBusyScoreBugMakesScoresBinary) {
  const std::string yaml = document(
      "- type: active-request-scorer\n  parameters:\n    idleThreshold: 0\n- type: random-picker\n",
      "  - pluginRef: active-request-scorer\n  - pluginRef: random-picker\n");
  for (const Era era : {Era::kV0_7_0, Era::kMay2026, Era::kAug2026}) {
    const auto s = make_scheduler(yaml, {.era = era, .distribution = {}, .registry = nullptr});
    const EndpointTable table = make_endpoints(2);
    // Give endpoint 0 one request and endpoint 1 two, whatever the picker says.
    for (std::uint64_t id = 0; id < 3; ++id) {
      RequestView request;
      request.id = id;
      Decision d = s->schedule(request, table, SimTime::zero());
      d.primary = EndpointId(id == 0 ? 0 : 1);
      d.profiles[0].targets = {d.primary.value()};
      s->on_routed(request, d, table, SimTime::zero());
    }
    Explanation e;
    s->explain({}, table, SimTime::zero(), e);
    EXPECT_EQ(e.profiles[0].scorers[0].scores[0], era == Era::kAug2026 ? 0.5 : 0.0);
  }
}

TEST(Eras, NoHitLruCannotSeeThePreciseScorerBeforeMay2026) {
  const std::string plugins =
      "- type: precise-prefix-cache-scorer\n- type: no-hit-lru-scorer\n  parameters:\n"
      "    prefixPluginType: precise-prefix-cache-scorer\n";
  const std::string profile =
      "  - pluginRef: precise-prefix-cache-scorer\n  - pluginRef: no-hit-lru-scorer\n";
  const auto lru_scores = [&](Era era) {
    const auto s =
        make_scheduler(document(plugins, profile, "inference.networking.x-k8s.io/v1alpha1"),
                       {.era = era, .distribution = {}, .registry = nullptr});
    const EndpointTable table = make_endpoints(2);
    const std::vector<std::uint64_t> keys = {1, 2, 3};
    RequestView request;
    request.block_keys = keys;
    Explanation e;
    s->explain(request, table, SimTime::zero(), e);
    return e.profiles[0].scorers[1].scores;
  };
  // v0.4.x: no state, every request looks cold; v0.5.x: an entry per candidate, all look warm.
  EXPECT_NE(lru_scores(Era::kV0_4_0), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(lru_scores(Era::kV0_5_0), (std::vector<double>{0.5, 0.5}));
  EXPECT_NE(lru_scores(Era::kMay2026), (std::vector<double>{0.5, 0.5}));
}

}  // namespace
}  // namespace routesim::policies
