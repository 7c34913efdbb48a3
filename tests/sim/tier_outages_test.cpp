// What servers that end leave in their KV tiers, by hand: steps of 10 ms, blocks of 16 tokens that
// take 1 ms between GPU, host, files and network. Servers start in 100 ms, routers know it 1 ms
// later, and a GPU has room for 11 blocks.
#include <gtest/gtest.h>

#include "sim/plan/fleet_plan.h"
#include "tests/sim/plan_fixture.h"

namespace routesim::sim::testing {
namespace {

constexpr std::int64_t kNextPod = 350'100;  ///< From a machine's loss until another pod serves.

FleetEventConfig happens(FleetEventKind kind, std::int64_t at, std::vector<std::int64_t> servers) {
  FleetEventConfig e;
  e.kind = kind;
  e.at = Duration::milliseconds(at);
  e.servers = std::move(servers);
  return e;
}

void add_events(RunPlan& plan, std::vector<FleetEventConfig> events) {
  const Duration ms = Duration::milliseconds(1);
  plan.scenario.routing.discovery = DiscoveryConfig{.join = ms, .leave = ms, .leave_unseen = ms};
  plan.scenario.events = std::move(events);
  ResolvedPool& pool = plan.pools.front();
  plan.scenario.cluster.pools = {pool.config};
  pool.extra_places = places_of(plan.scenario, 0) - pool.config.replicas;
  pool.start_up.load = Duration::milliseconds(100);
}

TierRules tiers_with_files(bool shared = false) {
  TierRules t = host_memory();
  t.disk = {.root = "/kv",
            .shared = shared,
            .read_threads = 1,
            .write_threads = 1,
            .thread_bytes_per_s = 1e9};
  return t;
}

TierRules tiers_of_workers() {
  TierRules t = host_memory();
  t.copies_in_steps = true;
  return t;
}

/// `chunks` of each server, or of another process for all of them.
TierRules tiers_with_store(std::int64_t chunks, bool whole) {
  TierRules t = host_memory();
  t.cpu_chunks = chunks;
  t.waits_for_writes = false;
  t.shared_store = true;
  t.whole_store = whole;
  return t;
}

/// Servers take turns; each has a host of its own unless `gpus` fit in one.
RunPlan in_turns(std::vector<Sent> script, std::int64_t servers, const TierRules& tiers,
                 std::vector<FleetEventConfig> events, std::int64_t gpus = 1) {
  RunPlan plan = hand_made_plan(std::move(script), servers);
  plan.scenario.routing.balancer = BalancerKind::kRoundRobin;
  plan.scenario.cluster.transfer.bandwidth_gbps = 8;
  plan.scenario.cluster.host = HostConfig{.gpus = gpus};
  plan.pools.front().rules = plain_rules(12);
  plan.pools.front().rules.tiers = tiers;
  add_events(plan, std::move(events));
  return plan;
}

/// One more pool that is as the first one but for its tiers. Events name the first one `pool`.
void add_pool(RunPlan& plan, std::int64_t servers, const TierRules& tiers) {
  ResolvedPool other = plan.pools.front();
  other.config.name = "other";
  other.config.replicas = servers;
  other.rules.tiers = tiers;
  plan.scenario.cluster.pools.push_back(other.config);
  other.extra_places = places_of(plan.scenario, 1) - servers;
  plan.pools.push_back(std::move(other));
}

/// A prompt of ten blocks at 0 ms, another one at 50 ms that evicts it from the GPU, and the first
/// one again, a block longer.
std::vector<Sent> again_at(std::vector<std::int64_t> times) {
  std::vector<Sent> script = {{.at_ms = 0, .parts = {{1, 160}}},
                              {.at_ms = 50, .parts = {{2, 176}}}};
  for (const std::int64_t at : times) script.push_back({.at_ms = at, .parts = {{1, 160}, {3, 16}}});
  return script;
}

SimTime sampled_at(const RunResult& r, std::size_t i) { return r.requests[i].first_token; }

// Host memory is the memory of a process, of the engine or of its workers.
TEST(TierOutages, HostMemoryEndsWithTheProcess) {
  for (const TierRules& tiers : {host_memory(), tiers_of_workers()}) {
    const auto run = [&](std::int64_t crash) {
      return run_by_hand(
          in_turns(again_at({400}), 1, tiers, {happens(FleetEventKind::kCrash, crash, {0})}));
    };
    RunResult r = run(1'000);
    EXPECT_EQ(r.requests[2].cached_tokens, 160);
    EXPECT_EQ(r.replicas[0].tiers->did.hit_tokens, 160);
    r = run(200);
    EXPECT_EQ(r.requests[2].cached_tokens, 0);
    EXPECT_EQ(r.replicas[0].tiers->did.hit_tokens, 0);
    // Counters go on over the restart.
    EXPECT_EQ(r.replicas[0].tiers->did.query_tokens, 160 + 176 + 176);
    EXPECT_EQ(r.replicas[0].tiers->hbm_query_tokens, 160 + 176 + 176);
    r = run(0);
    EXPECT_EQ(r.requests[0].outcome, workloads::Outcome::kError);
    EXPECT_EQ(r.requests[2].cached_tokens, 0);
  }
}

// The first prompt's copy to the host runs from 10 to 20 ms and is cut; so is the read of 421 ms.
TEST(TierOutages, CopiesUnderWayEndWithTheProcess) {
  RunResult r = run_by_hand(
      in_turns(again_at({400}), 1, host_memory(), {happens(FleetEventKind::kCrash, 15, {0})}));
  EXPECT_EQ(r.requests[0].outcome, workloads::Outcome::kSuccess);
  EXPECT_EQ(r.requests[2].cached_tokens, 0);
  r = run_by_hand(in_turns(again_at({400, 600}), 1, tiers_with_files(),
                           {happens(FleetEventKind::kCrash, 405, {0})}));
  EXPECT_EQ(r.requests[2].outcome, workloads::Outcome::kError);
  EXPECT_EQ(r.requests[3].cached_tokens, 160);
}

// Asked at 400 ms, known at 401, in host memory at 411, in GPU memory at 421.
TEST(TierOutages, FilesOutliveAContainer) {
  RunResult r = run_by_hand(in_turns(again_at({400}), 1, tiers_with_files(),
                                     {happens(FleetEventKind::kCrash, 200, {0})}));
  EXPECT_EQ(r.requests[2].cached_tokens, 160);
  EXPECT_EQ(sampled_at(r, 2), at_ms(400 + 1 + 10 + 10 + 10));
  EXPECT_EQ(r.replicas[0].tiers->did.disk_reads, 1);
  // The job that writes them, from 21 ms to 31 ms, does not.
  r = run_by_hand(
      in_turns(again_at({400}), 1, tiers_with_files(), {happens(FleetEventKind::kCrash, 25, {0})}));
  EXPECT_EQ(r.requests[2].cached_tokens, 0);
}

// The next pod takes place 1: on the same machine it finds the files, on another one only with a
// mount for all.
TEST(TierOutages, FilesStayOnTheirMachine) {
  for (const std::int64_t gpus : {8, 1})
    for (const bool shared : {false, true}) {
      const RunResult r = run_by_hand(in_turns(again_at({400}), 1, tiers_with_files(shared),
                                               {happens(FleetEventKind::kDrain, 200, {0})}, gpus));
      EXPECT_EQ(r.requests[2].endpoint, 1);
      EXPECT_EQ(r.requests[2].cached_tokens, shared || gpus == 8 ? 160 : 0);
    }
}

TEST(TierOutages, FilesEndWithTheirMachine) {
  for (const bool shared : {false, true}) {
    const RunResult r =
        run_by_hand(in_turns(again_at({kNextPod + 400}), 1, tiers_with_files(shared),
                             {happens(FleetEventKind::kNodeLoss, 200, {0})}));
    EXPECT_EQ(r.requests[2].endpoint, 0) << "the same place, another machine";
    EXPECT_EQ(r.requests[2].cached_tokens, shared ? 160 : 0);
  }
  // A container that is down when its machine is lost.
  const RunResult r = run_by_hand(in_turns(
      again_at({kNextPod + 400}), 1, tiers_with_files(),
      {happens(FleetEventKind::kCrash, 200, {0}), happens(FleetEventKind::kNodeLoss, 250, {0})}));
  EXPECT_EQ(r.requests[2].cached_tokens, 0);
}

// Both servers of a machine end at once. The first request after that goes to one, which writes
// until 31 ms later what the other one finds then.
TEST(TierOutages, TwoServersMayShareFiles) {
  for (const FleetEventKind kind : {FleetEventKind::kCrash, FleetEventKind::kNodeLoss}) {
    std::vector<Sent> script = again_at({kNextPod + 400, kNextPod + 500});
    script.erase(script.begin() + 1);
    const RunResult r =
        run_by_hand(in_turns(script, 2, tiers_with_files(), {happens(kind, 200, {0, 1})}, 8));
    EXPECT_EQ(r.requests[1].cached_tokens, kind == FleetEventKind::kCrash ? 160 : 0);
    EXPECT_EQ(r.requests[2].cached_tokens, 175) << "all but the last token";
    EXPECT_NE(r.requests[1].endpoint, r.requests[2].endpoint);
  }
  // The machine of one is lost, which the router knows after 50 s: the other one keeps its files.
  const RunResult r = run_by_hand(in_turns(again_at({60'000}), 2, tiers_with_files(),
                                           {happens(FleetEventKind::kNodeLoss, 200, {0})}, 8));
  EXPECT_EQ(r.requests[2].endpoint, 1);
  EXPECT_EQ(r.requests[2].cached_tokens, 160);
}

// The next pod of a drained server takes place 1, and loses its machine with the files. The one
// after that takes place 0, on another machine.
TEST(TierOutages, AMachineThatNoServerIsLeftOnIsGone) {
  RunResult r = run_by_hand(in_turns(
      again_at({kNextPod + 1'200}), 1, tiers_with_files(),
      {happens(FleetEventKind::kDrain, 200, {0}), happens(FleetEventKind::kNodeLoss, 1'000, {1})},
      8));
  EXPECT_EQ(r.requests[2].endpoint, 0);
  EXPECT_EQ(r.requests[2].cached_tokens, 0);
}

TEST(TierOutages, AStoreOfItsOwnOutlivesItsServers) {
  for (const FleetEventKind kind :
       {FleetEventKind::kCrash, FleetEventKind::kNodeLoss, FleetEventKind::kDrain}) {
    const RunResult r = run_by_hand(
        in_turns(again_at({60'000}), 2, tiers_with_store(1000, true), {happens(kind, 200, {0})}));
    EXPECT_EQ(sampled_at(r, 2), at_ms(60'000 + 10 + 10));
    EXPECT_EQ(r.requests[2].cached_tokens, 160);
  }
}

// The only server had the store in its memory. Until 10.2 s the master does not know that it is
// gone, and loads of ten blocks fail: so does the request, or it tries again, for the last time at
// 10.2 s, and computes all.
TEST(TierOutages, AStoreLosesThePartOfAServerThatDies) {
  RunPlan plan = in_turns(again_at({400}), 1, tiers_with_store(1000, false),
                          {happens(FleetEventKind::kCrash, 205, {0})});
  RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.requests[2].failure, std::string("500 Internal Server Error"));
  EXPECT_EQ(r.requests[2].end, at_ms(410));
  EXPECT_EQ(r.replicas[0].tiers->did.hit_tokens, 0);
  EXPECT_EQ(r.replicas[0].tiers->did.loaded_bytes, 0);
  plan.scenario.cluster.transfer.load_failure = KvLoadFailure::kRecompute;
  r = run_by_hand(plan);
  EXPECT_EQ(sampled_at(r, 2), at_ms(10'200 + 10 + 10));
  EXPECT_EQ(r.requests[2].cached_tokens, 0);
  EXPECT_EQ(r.replicas[0].tiers->did.hit_tokens, 0);
  EXPECT_EQ(r.replicas[0].tiers->did.loaded_bytes, 0);
}

// A server that is told to end takes its part with it at once: nothing is found, nothing fails.
TEST(TierOutages, AServerThatIsToldToEndLeavesTheStore) {
  const RunResult r = run_by_hand(in_turns(again_at({400}), 1, tiers_with_store(1000, false),
                                           {happens(FleetEventKind::kDrain, 200, {0})}));
  EXPECT_EQ(r.requests[2].endpoint, 1);
  EXPECT_EQ(sampled_at(r, 2), at_ms(400 + 10));
}

// Two servers give five chunks each. Both are full with the ten of the first prompt; the end of
// server 0 leaves five, of which those in front of the first lost one count. After a crash all ten
// are loaded, as often as nothing comes, until the master knows at 10'205 ms.
TEST(TierOutages, EachChunkLiesInOneServer) {
  std::int64_t some = 0, none = 0;
  for (std::uint64_t content = 1; content <= 10; ++content)
    for (const FleetEventKind kind : {FleetEventKind::kCrash, FleetEventKind::kDrain}) {
      RunPlan plan = in_turns({{.at_ms = 0, .parts = {{content, 160}}},
                               {.at_ms = 400, .parts = {{content, 160}, {30, 16}}}},
                              2, tiers_with_store(5, false), {happens(kind, 205, {0})});
      plan.scenario.cluster.transfer.load_failure = KvLoadFailure::kRecompute;
      // Not back before the end.
      if (kind == FleetEventKind::kCrash) plan.scenario.events[0].lasts = Duration::seconds(20);
      plan.pools.front().start_up.load = Duration::seconds(20);
      const RunResult r = run_by_hand(plan);
      const RequestRecord& second = r.requests[1];
      EXPECT_EQ(r.summary.tiers->capacity_bytes, 5e6);
      EXPECT_EQ(second.endpoint, 1);
      EXPECT_LE(second.cached_tokens, 80);
      EXPECT_EQ(second.cached_tokens, r.summary.tiers->did.hit_tokens);
      EXPECT_EQ(static_cast<double>(second.cached_tokens / 16) * 1e6,
                r.summary.tiers->did.loaded_bytes);
      ++(second.cached_tokens > 0 ? some : none);
      if (kind == FleetEventKind::kDrain)
        EXPECT_EQ(second.first_token, at_ms(400 + second.cached_tokens / 16 + 10));
      else if (second.cached_tokens > 0)
        EXPECT_EQ(second.first_token, at_ms(400 + 10 + 10));
      else
        EXPECT_EQ(second.first_token, at_ms(10'210 + 10));
    }
  EXPECT_GT(some, 2);
  EXPECT_GT(none, 2);
}

// Prompts of 10 and 11 blocks stay in it when the only server is down.
TEST(TierOutages, AStoreCountsOnceAndAsAWhole) {
  RunPlan plan = in_turns(again_at({400}), 1, tiers_with_store(1000, true),
                          {happens(FleetEventKind::kCrash, 205, {0})});
  plan.scenario.events[0].lasts = Duration::seconds(20);
  RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.requests[2].outcome, workloads::Outcome::kError);
  EXPECT_EQ(r.summary.tiers->capacity_bytes, 1000e6);
  EXPECT_EQ(r.summary.tiers->used_bytes, 21e6);
  EXPECT_EQ(r.replicas[0].tiers->capacity_bytes, 0);
  r = run_by_hand(in_turns(again_at({400}), 3, tiers_with_store(22, true), {}));
  EXPECT_EQ(r.summary.tiers->capacity_bytes, 22e6);
  EXPECT_EQ(r.replicas[0].tiers->capacity_bytes, 22e6 / 3);
  // Engines without tiers have no share in it.
  plan = in_turns(again_at({400}), 2, tiers_with_store(0, false), {});
  add_pool(plan, 1, tiers_with_store(22, false));
  r = run_by_hand(plan);
  EXPECT_EQ(r.summary.tiers->capacity_bytes, 22e6);
  EXPECT_EQ(r.replicas[2].tiers->capacity_bytes, 22e6);
}

// However many servers another pool has that would give parts of it.
TEST(TierOutages, AStoreOfItsOwnIsTheWholeStore) {
  for (const std::int64_t servers : {0, 1, 2}) {
    RunPlan plan = in_turns(again_at({400}), 1, tiers_with_store(22, true), {});
    add_pool(plan, servers, tiers_with_store(20, false));
    EXPECT_EQ(run_by_hand(plan).summary.tiers->capacity_bytes, 22e6);
  }
}

// Server 0 gives nothing and dies when the other pool grows. The store forgets it 10 s later, and
// has both parts of the other pool, which three prompts of ten blocks fill.
TEST(TierOutages, AServerMayGiveNothing) {
  FleetEventConfig crash = happens(FleetEventKind::kCrash, 200, {0});
  FleetEventConfig grow = happens(FleetEventKind::kScale, 200, {});
  crash.pool = "pool";
  crash.lasts = Duration::seconds(20);
  grow.pool = "other";
  grow.replicas = 2;
  std::vector<Sent> script;
  for (std::uint64_t i = 1; i <= 3; ++i)
    script.push_back({.at_ms = 11'000 + 100 * static_cast<std::int64_t>(i), .parts = {{i, 160}}});
  script.push_back({.at_ms = 12'000});
  RunPlan plan = in_turns(script, 2, tiers_with_store(0, false), {crash, grow});
  add_pool(plan, 1, tiers_with_store(5, false));
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(r.summary.tiers->capacity_bytes, 10e6);
  EXPECT_EQ(r.summary.tiers->used_bytes, 10e6);
}

/// Two servers; the second request is computed where the first was not, and pulls.
RunResult run_pull(FleetEventKind kind, std::int64_t at, bool of_source, std::int64_t asks = 100) {
  for (const std::int64_t server : {0, 1})
    for (std::uint64_t seed = 1; seed < 200; ++seed) {
      RunPlan plan = two_hosts(
          {{.at_ms = 0, .parts = {{1, 160}}}, {.at_ms = asks, .parts = {{1, 160}, {2, 16}}}});
      add_events(plan, {happens(kind, at, {server})});
      plan.scenario.routing.discovery->leave_unseen = Duration::seconds(1000);
      const RunResult r = run_by_hand(plan, seed);
      if (r.requests[0].endpoint != r.requests[1].endpoint &&
          (of_source ? r.requests[0] : r.requests[1]).endpoint == server)
        return r;
    }
  ADD_FAILURE() << "no seed keeps them apart";
  return RunResult();
}

// The bytes move from 103 to 113 ms. The prompt is computed in one step once the asker knows: a
// message later, after ZeroMQ's heartbeat, or, where nobody was there to be asked, when the pull
// has taken 30 s.
TEST(TierOutages, APullFailsWithItsSource) {
  const auto seen = [](const RunResult& r) {
    EXPECT_EQ(r.requests[1].cached_tokens, 0);
    EXPECT_EQ(r.summary.tiers->did.pulls_failed, 1);
    return r.requests[1].first_token;
  };
  EXPECT_EQ(seen(run_pull(FleetEventKind::kCrash, 108, true)), at_ms(108 + 1 + 10));
  EXPECT_EQ(seen(run_pull(FleetEventKind::kNodeLoss, 108, true)), at_ms(108 + 10'000 + 10));
  EXPECT_EQ(seen(run_pull(FleetEventKind::kNodeLoss, 90, true)), at_ms(100 + 30'000 + 10));
}

TEST(TierOutages, ASourceForgetsAnAskerThatDies) {
  const RunResult r = run_pull(FleetEventKind::kCrash, 108, false);
  EXPECT_EQ(r.requests[1].outcome, workloads::Outcome::kError);
  EXPECT_EQ(r.summary.tiers->did.pulls_served, 0);
  EXPECT_EQ(r.summary.tiers->did.pulls_failed, 0);
}

// A pool that begins empty: no server has given anything to the store.
TEST(TierOutages, APoolMayBeginEmpty) {
  for (const TierRules& tiers : {host_memory(), tiers_of_workers(), tiers_with_files(),
                                 tiers_with_store(1000, true), tiers_with_store(1000, false)}) {
    FleetEventConfig two = happens(FleetEventKind::kScale, 20, {});
    two.replicas = 1;
    const RunResult r = run_by_hand(in_turns(
        {{.at_ms = 130, .parts = {{1, 160}}}, {.at_ms = 300, .parts = {{1, 160}, {3, 16}}}}, 0,
        tiers, {two}));
    EXPECT_EQ(r.requests[1].cached_tokens, 160);
    EXPECT_EQ(r.summary.tiers->capacity_bytes, 1000e6);
  }
}

}  // namespace
}  // namespace routesim::sim::testing
