// KV that a prefill server holds: handshakes, leases, heartbeats, and what happens when it is gone.
#include "tests/sim/plan_fixture.h"

namespace routesim::sim::testing {
namespace {

/// One decode server of `decode_blocks` usable blocks and one prefill server; pulls take no time.
RunPlan two_servers(std::vector<Sent> script, std::int64_t decode_blocks) {
  RunPlan plan = hand_made_plan(std::move(script), 1);
  plan.pools[0].config.name = "decode";
  plan.pools[0].config.role = PoolRole::kDecode;
  plan.pools[0].config.engine.preset = EnginePreset::k2026H1;
  plan.pools.push_back(plan.pools[0]);
  plan.pools[0].rules.num_gpu_blocks = decode_blocks + 1;
  plan.pools[1].config.name = "prefill";
  plan.pools[1].config.role = PoolRole::kPrefill;
  plan.scenario.cluster.transfer = {.bandwidth_gbps = 1e6,
                                    .setup = Duration::zero(),
                                    .descriptor_time = Duration::zero(),
                                    .handover = Duration::zero(),
                                    .first_contact = Duration::zero(),
                                    .lease = std::nullopt};
  plan.endpoint_picker = disaggregated_config(16);
  return plan;
}

/// The first fills the decode server until 1.5 s; the second is prefilled at 0.11 s and finds no
/// room for its 16 blocks until then.
std::vector<Sent> crowd() {
  return {{.at_ms = 0, .parts = {{1, 160}}, .output = 150},
          {.at_ms = 100, .parts = {{2, 256}}, .output = 4}};
}

TEST(FirstContact, ShakesHandsOncePerPair) {
  std::vector<Sent> script;
  for (const std::int64_t at : {0, 30, 1000})
    script.push_back({.at_ms = at, .parts = {{static_cast<std::uint64_t>(at) + 1, 64}}});
  RunPlan plan = two_servers(script, 100);
  plan.scenario.cluster.transfer.first_contact = Duration::milliseconds(100);
  const RunResult r = run_by_hand(plan);
  // Prefill ends after 10 ms, then the handshake; one decode step of 10 ms gives the token.
  EXPECT_NEAR(r.requests[0].first_token.to_seconds(), 0.120, 1e-6);
  EXPECT_NEAR(r.requests[1].first_token.to_seconds(), 0.130, 1.1e-2) << "the same handshake";
  EXPECT_GT(r.requests[1].first_token, at_ms(110));
  EXPECT_NEAR(r.requests[2].first_token.to_seconds(), 1.020, 1e-6) << "they know each other";
}

/// The worker looks for ended pulls when a step starts, and the scheduler hears of it at its end.
TEST(PullNotice, ComesWithTheOutputOfALaterStep) {
  for (const bool async : {false, true}) {
    // The first decodes in steps of 10 ms all the time; the second's prompt is ready at 115 ms.
    RunPlan plan = two_servers({{.at_ms = 0, .parts = {{1, 256}}, .output = 100},
                                {.at_ms = 105, .parts = {{2, 256}}, .output = 4}},
                               100);
    plan.pools[0].rules.async_scheduling = async;
    const RunResult r = run_by_hand(plan);
    // Asked for at 115 ms, so that the pass of 120 ms starts the pull, which ends at once, within
    // the step of [120, 130). Without async scheduling that of [130, 140) looks and tells, and the
    // one after it samples. With it the step of [130, 140) has been launched before: the one of
    // [140, 150) tells, and the next pass is for [160, 170).
    const std::int64_t first = async ? 170 : 150;
    EXPECT_EQ(r.requests[1].first_token.ns() / 1'000'000, first) << (async ? "async" : "sync");
  }
}

TEST(PullNotice, IsAtOnceOnAnIdleServer) {
  RunPlan plan = two_servers({{.at_ms = 0, .parts = {{1, 256}}, .output = 4}}, 100);
  EXPECT_NEAR(run_by_hand(plan).requests[0].first_token.to_seconds(), 0.020, 1e-6)
      << "a step of prefill, one of decode";
}

/// 20 ms without, as above: one step of each server.
TEST(HandOver, TakesItsTimeAndThatOfEachDescriptor) {
  RunPlan plan = two_servers({{.at_ms = 0, .parts = {{1, 256}}, .output = 4}}, 100);
  plan.scenario.cluster.transfer.handover = Duration::milliseconds(7);
  EXPECT_NEAR(run_by_hand(plan).requests[0].first_token.to_seconds(), 0.027, 1e-6);
  // 16 blocks of 128 descriptors at 2 us: 4.096 ms. Eight times larger blocks: 2 of them.
  plan.scenario.cluster.transfer.descriptor_time = Duration::microseconds(2);
  plan.pools[0].descriptors = 128;
  EXPECT_NEAR(run_by_hand(plan).requests[0].first_token.to_seconds(), 0.031096, 1e-6);
  for (ResolvedPool& pool : plan.pools) pool.rules.block_size = 128;
  EXPECT_NEAR(run_by_hand(plan).requests[0].first_token.to_seconds(), 0.027512, 1e-6);
}

TEST(HandOver, LastsAsLongAsTheReleaseTakes) {
  for (const auto& [preset, token_ms] : {std::pair{EnginePreset::k2025Q3, 20 + 35},
                                         {EnginePreset::k2025H2, 20},
                                         {EnginePreset::k2026H1, 20 + 8},
                                         {EnginePreset::k2026H2, 20 + 8}}) {
    RunPlan plan = two_servers({{.at_ms = 0, .parts = {{1, 256}}, .output = 4}}, 100);
    plan.scenario.cluster.transfer.handover.reset();
    plan.pools[0].config.engine.preset = preset;
    EXPECT_NEAR(run_by_hand(plan).requests[0].first_token.to_seconds(), token_ms * 1e-3, 1e-6);
  }
}

/// A client that gives up while its request is between the servers frees the prefill server.
TEST(HandOver, EndsWithTheRequest) {
  RunPlan plan =
      two_servers({{.at_ms = 0, .parts = {{1, 256}}, .output = 4, .timeout_ms = 15}}, 100);
  plan.scenario.cluster.transfer.handover = Duration::milliseconds(50);
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.requests[0].end, at_ms(15));
  EXPECT_EQ(r.requests[0].outcome, workloads::Outcome::kTimeout);
  EXPECT_EQ(r.replicas[0].requests, 0) << "the decode server never heard of it";
}

TEST(Lease, IsOverAfterItsTime) {
  RunPlan plan = two_servers(crowd(), 20);
  plan.scenario.cluster.transfer.lease = Duration::seconds(2);
  EXPECT_EQ(run_by_hand(plan).summary.successes, 2) << "read in time";
  plan.scenario.cluster.transfer.lease = Duration::seconds(1);
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.summary.successes, 1);
  EXPECT_EQ(r.summary.failures_by_label.at("500 Internal Server Error"), 1);
  // It learns of it when the first request leaves and the pull starts.
  EXPECT_EQ(r.requests[1].end, r.requests[0].end);
}

TEST(Lease, IsRenewedByHeartbeatsOfNewServers) {
  RunPlan plan = two_servers(crowd(), 20);
  for (ResolvedPool& pool : plan.pools) pool.config.engine.preset = EnginePreset::k2026H2;
  plan.scenario.cluster.transfer.lease = Duration::seconds(1);
  EXPECT_EQ(run_by_hand(plan).summary.successes, 2);
}

TEST(Lease, LostKvCanBeRecomputed) {
  RunPlan plan = two_servers(crowd(), 20);
  plan.scenario.cluster.transfer.lease = Duration::seconds(1);
  plan.scenario.cluster.transfer.load_failure = KvLoadFailure::kRecompute;
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.summary.successes, 2);
  // The whole prompt in one step on the decode server, then three more tokens.
  EXPECT_NEAR((r.requests[1].first_token - r.requests[0].end).to_seconds(), 0.010, 1.1e-2);
  EXPECT_EQ((r.requests[1].end - r.requests[1].first_token), Duration::milliseconds(30));
}

TEST(Lease, EndsAPullUnderWay) {
  RunPlan plan = two_servers({{.at_ms = 0, .parts = {{1, 256}}, .output = 4}}, 100);
  // 256 kB over 0.1 MB/s take 2.56 s.
  plan.scenario.cluster.transfer.bandwidth_gbps = 0.0008;
  plan.scenario.cluster.transfer.lease = Duration::seconds(3);
  EXPECT_NEAR(run_by_hand(plan).requests[0].first_token.to_seconds(), 0.010 + 2.560 + 0.010, 1e-3);
  plan.scenario.cluster.transfer.lease = Duration::seconds(1);
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.requests[0].end, at_ms(1010)) << "a second after the prefill";
  EXPECT_EQ(r.requests[0].outcome, workloads::Outcome::kError);
}

/// Two servers of 20 blocks that prefill and decode for each other, and two prompts of 16 blocks.
RunPlan mutual(EnginePreset preset, KvLoadFailure policy) {
  RunPlan plan = two_servers({{.at_ms = 0, .parts = {{1, 256}}, .output = 4},
                              {.at_ms = 0, .parts = {{2, 256}}, .output = 4}},
                             20);
  plan.pools.pop_back();
  plan.pools[0].config.name = "server";
  plan.pools[0].config.role = PoolRole::kBoth;
  plan.pools[0].config.replicas = 2;
  plan.pools[0].config.engine.preset = preset;
  plan.scenario.cluster.transfer.lease = Duration::seconds(1);
  plan.scenario.cluster.transfer.load_failure = policy;
  plan.endpoint_picker = DocumentBuilder()
                             .plugin("always-disagg-pd-decider")
                             .plugin("prefill-header-handler")
                             .plugin("pd-profile-handler",
                                     map({{"deciderPluginName", text("always-disagg-pd-decider")}}))
                             .plugin("queue-scorer")
                             .plugin("max-score-picker")
                             .profile("prefill", {{"queue-scorer", 1}, {"max-score-picker"}})
                             .profile("decode", {{"queue-scorer", 1}, {"max-score-picker"}})
                             .build();
  return plan;
}

/// A seed with which each server holds the KV the other one wants.
std::uint64_t crossed() {
  const RunPlan plan = mutual(EnginePreset::k2026H1, KvLoadFailure::kFail);
  for (std::uint64_t seed = 1; seed < 200; ++seed) {
    const auto r = run_by_hand(plan, seed).requests;
    if (r[0].prefill_endpoint >= 0 && r[1].prefill_endpoint >= 0 && r[0].endpoint != r[1].endpoint)
      return seed;
  }
  ADD_FAILURE() << "no seed crosses the two";
  return 1;
}

TEST(Lease, BreaksAMutualWait) {
  const std::uint64_t seed = crossed();
  const RunResult failed = run_by_hand(mutual(EnginePreset::k2026H1, KvLoadFailure::kFail), seed);
  EXPECT_EQ(failed.summary.failures_by_label.at("500 Internal Server Error"), 2);
  EXPECT_EQ(failed.requests[0].end, at_ms(1010));
  const RunResult again =
      run_by_hand(mutual(EnginePreset::k2026H1, KvLoadFailure::kRecompute), seed);
  EXPECT_EQ(again.summary.successes, 2);
}

TEST(Watchdog, NamesServersThatWaitForEachOther) {
  // Heartbeats keep both leases alive for ever.
  const std::uint64_t seed = crossed();
  const RunPlan plan = mutual(EnginePreset::k2026H2, KvLoadFailure::kFail);
  try {
    run_by_hand(plan, seed);
    FAIL() << "the run ended";
  } catch (const StuckError& e) {
    const std::string text = e.what();
    for (const char* part :
         {"2 requests are outstanding",
          "waits for blocks at server-0 for the KV that server-1 holds",
          "waits for blocks at server-1 for the KV that server-0 holds", "held for transfer 1"})
      EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
  }
}

}  // namespace
}  // namespace routesim::sim::testing
