// Tiers of KV blocks below GPU memory, by hand: host memory, disks, and pulls from other servers.
#include "sim/tiers/kv_tiers.h"

#include "sim/tiers/kv_disks.h"
#include "sim/tiers/kv_pulls.h"
#include "tests/sim/plan_fixture.h"
#include "tests/sim/sim_fixture.h"

namespace routesim::sim::testing {
namespace {

// KV blocks in host memory, by hand: steps of 10 ms, blocks of 16 tokens that take 1 ms each over a
// link of 1 GB/s.

EngineRules with_tier(std::int64_t usable_blocks, std::int64_t cpu_chunks) {
  EngineRules r = plain_rules(usable_blocks + 1);
  r.tiers = {
      .cpu_chunks = cpu_chunks, .block_bytes = 1e6, .link_bytes_per_s = 1e9, .prompt_only = true};
  return r;
}

/// A server that computed 160 tokens of content 1 at 0 ms and, at 30 ms, as many others as evict
/// `evicted` blocks of these from GPU memory, which has 11.
struct Warm {
  Warm(const EngineRules& rules, std::int64_t evicted)
      : server(rules, std::make_shared<FixedLatency>(10)) {
    server.send({.parts = {{1, 160}}}, at_ms(0));
    server.send({.parts = {{2, 16 * (evicted + 1)}}}, at_ms(30));
    server.run_until(at_ms(99));
  }
  /// Sends these 160 tokens at 100 ms, with 16 others behind them.
  const Fate& ask(std::uint64_t others = 3) {
    asked = server.send({.parts = {{1, 160}, {others, 16}}}, at_ms(100));
    server.run();
    server.replica().verify();
    return server.fates[asked];
  }
  Server server;
  std::uint32_t asked = 0;
};

TEST(KvTiers, WithRoomForAllEveryPromptChunkIsFoundAgain) {
  Warm w(with_tier(11, 100'000), 10);
  const Fate& f = w.ask();
  EXPECT_EQ(f.first, at_ms(100 + 10 + 10)) << "ten blocks to copy, then a step for the rest";
  EXPECT_EQ(f.cached, 160);
  const TierCounters& t = w.server.scheduler().tiers().counters();
  EXPECT_EQ(t.hit_tokens, 160);
  EXPECT_EQ(t.query_tokens, 160 + 176 + 176);
  EXPECT_EQ(t.stored_chunks, 10 + 11 + 1) << "what was loaded is not stored again";
  EXPECT_EQ(w.server.scheduler().tiers().chunks(), 22);
  EXPECT_EQ(t.evicted_chunks, 0);
}

TEST(KvTiers, WithoutRoomItIsAsIfThereWereNone) {
  for (const std::int64_t chunks : {0, 1}) {
    EngineRules rules = with_tier(11, chunks);
    rules.tiers.chunk_blocks = 64;  // No prompt has a whole chunk.
    Warm w(rules, 10);
    const Fate& f = w.ask();
    EXPECT_EQ(f.first, at_ms(110));
    EXPECT_EQ(f.cached, 0);
  }
}

TEST(KvTiers, WhatWasEvictedThereIsComputedAgain) {
  Warm w(with_tier(11, 11), 10);
  EXPECT_EQ(w.ask().first, at_ms(110)) << "the second prompt has taken all eleven chunks";
}

TEST(KvTiers, ExtendWhatGpuMemoryHas) {
  Warm w(with_tier(11, 1000), 5);
  const Fate& f = w.ask();
  EXPECT_EQ(f.first, at_ms(100 + 5 + 10)) << "the last five blocks were evicted";
  EXPECT_EQ(f.cached, 160);
  EXPECT_EQ(w.server.scheduler().tiers().counters().hit_tokens, 80);
}

TEST(KvTiers, LessThanAChunkIsNotLoaded) {
  EngineRules rules = with_tier(11, 1000);
  rules.tiers.chunk_blocks = 5;
  // Blocks 5 ... 9 are a chunk; GPU memory has 6 blocks of the prompt.
  Warm w(rules, 4);
  const Fate& f = w.ask();
  EXPECT_EQ(f.first, at_ms(110));
  EXPECT_EQ(f.cached, 96);
}

TEST(KvTiers, ARequestWaitsForWhatAnotherOneLoads) {
  Warm w(with_tier(12, 1000), 11);
  const std::uint32_t second = w.asked = w.server.send({.parts = {{1, 160}, {4, 16}}}, at_ms(100));
  const Fate& first = w.ask();
  EXPECT_EQ(first.first, at_ms(120));
  EXPECT_EQ(w.server.fates[second].first, at_ms(120)) << "it finds the blocks in GPU memory then";
  EXPECT_EQ(w.server.scheduler().tiers().counters().loads, 1);
}

TEST(KvTiers, ARequestWaitsForWhatIsBeingStored) {
  for (const bool waits : {false, true}) {
    EngineRules rules = with_tier(11, 1000);
    rules.tiers.block_bytes = 2e6;
    rules.tiers.waits_for_writes = waits;
    Server server(rules, std::make_shared<FixedLatency>(10));
    // The first prompt is copied from 10 to 30 ms; the second one evicts it at 10 ms.
    server.send({.parts = {{1, 160}}}, at_ms(0));
    server.send({.parts = {{2, 176}}}, at_ms(5));
    const std::uint32_t third = server.send({.parts = {{1, 160}, {3, 16}}}, at_ms(12));
    server.run();
    EXPECT_EQ(server.fates[third].first, waits ? at_ms(30 + 20 + 10) : at_ms(30));
  }
}

TEST(KvTiers, ALoadIsHeardOfOneOrTwoStepsLater) {
  for (const bool async : {false, true}) {
    EngineRules rules = with_tier(40, 1000);
    rules.async_scheduling = async;
    Server server(rules, std::make_shared<FixedLatency>(10));
    server.send({.parts = {{1, 160}}}, at_ms(0));
    server.send({.parts = {{2, 640}}}, at_ms(30));
    server.send({.parts = {{3, 16}}, .output = 40}, at_ms(100));  // keeps the server busy
    const std::uint32_t asked = server.send({.parts = {{1, 160}, {4, 16}}}, at_ms(125));
    server.run();
    // The request comes into the queue at 130, and the load ends at 140, in the step up to 150. The
    // step after that tells at 160, and the next one computes the rest. Asynchronous: a step later,
    // and the next one is already scheduled.
    EXPECT_EQ(server.fates[asked].first, async ? at_ms(190) : at_ms(170));
    EXPECT_EQ(server.fates[asked].cached, 160);
  }
}

TEST(KvTiers, BlocksAreKeptUntilTheyAreCopied) {
  for (const bool settles : {false, true}) {
    EngineRules rules = with_tier(11, 1000);
    rules.tiers.settles_at_request_end = settles;
    Server server(rules, std::make_shared<FixedLatency>(10));
    server.send({.parts = {{1, 160}}}, at_ms(0));
    server.run_until(at_ms(15));
    EXPECT_EQ(server.scheduler().kv().used_blocks(), settles ? 10 : 0);
    EXPECT_EQ(server.scheduler().storing(), settles ? 1 : 0);
    server.replica().verify();
    server.run_until(at_ms(20));
    EXPECT_EQ(server.scheduler().kv().used_blocks(), 0);
  }
}

/// The tiers of a core without its scheduler. Chunks are numbers.
class Tiers {
 public:
  explicit Tiers(const EngineRules& rules) : owned_(make_kv_tiers(rules, table_)), tiers(*owned_) {}
  ~Tiers() { tiers.verify(); }
  /// Asks for the chunks of a new request behind `gpu` ones.
  std::int64_t hit(const std::vector<BlockKey>& keys, std::int64_t gpu = 0) {
    slot = request(keys);
    return tiers.lookup(table_[slot], keys, gpu).blocks;
  }
  bool begin_store(const std::vector<BlockKey>& keys) {
    slot = request(keys);
    const bool stored = tiers.store(slot, keys, std::ssize(keys));
    copy = tiers.close_pass();
    return stored;
  }
  void end_store() { tiers.copy_done(static_cast<std::uint32_t>(copy), ready_); }
  void store(const std::vector<BlockKey>& keys) {
    ASSERT_TRUE(begin_store(keys));
    end_store();
  }
  Sequence& sequence() { return table_[slot]; }

  SequenceSlot slot = 0;
  std::int64_t copy = -1;

 private:
  SequenceSlot request(const std::vector<BlockKey>& keys) {
    const SequenceSlot s = table_.acquire();
    table_[s].tier.id = ++requests_;
    table_[s].target = std::ssize(keys) * 16 + 1;
    return s;
  }
  SequenceTable table_;
  std::uint64_t requests_ = 0;
  std::vector<SequenceSlot> ready_;
  std::unique_ptr<KvTiers> owned_;

 public:
  KvTiers& tiers;
};

TEST(KvTiers, TailsGoBeforeHeads) {
  Tiers t(with_tier(100, 3));
  t.store({11, 12});
  t.store({21, 22});
  EXPECT_EQ(t.hit({11, 12}), 1);
  EXPECT_EQ(t.hit({21, 22}), 2);
}

TEST(KvTiers, ALookupMakesChunksYoung) {
  Tiers t(with_tier(100, 4));
  t.store({11, 12});
  t.store({21, 22});
  EXPECT_EQ(t.hit({11, 12, 13}), 2);
  t.store({31, 32});
  EXPECT_EQ(t.hit({21, 22}), 0);
  EXPECT_EQ(t.hit({11, 12}), 2);
  EXPECT_EQ(t.hit({31, 32}), 2);
}

TEST(KvTiers, AHitMayBeginAnywhere) {
  Tiers t(with_tier(100, 10));
  t.store({11, 12, 13, 14, 15, 16});
  EXPECT_EQ(t.hit({11, 12, 13, 14, 15, 16}, 4), 2);
  EXPECT_EQ(t.hit({11, 12, 13, 24, 25}, 2), 1);
  // Only what is missing is stored, as another request with the same beginning has it.
  const std::int64_t before = t.tiers.counters().stored_chunks;
  t.store({11, 12, 13, 14, 15, 16, 17});
  EXPECT_EQ(t.tiers.counters().stored_chunks, before + 1);
}

TEST(KvTiers, AStoreThatFindsNoRoomComesBack) {
  Tiers t(with_tier(100, 3));
  ASSERT_TRUE(t.begin_store({11, 12}));
  const std::int64_t first = t.copy;
  EXPECT_FALSE(t.begin_store({21, 22})) << "what is being written cannot be evicted";
  EXPECT_EQ(t.copy, -1);
  EXPECT_EQ(t.sequence().tier.stored, 0);
  EXPECT_EQ(t.tiers.counters().refused_stores, 1);
  t.copy = first;
  t.end_store();
  t.store({21, 22});
  EXPECT_EQ(t.hit({21, 22}), 2);
}

TEST(KvTiers, OfWindowsOnlyTheLastChunksAreLoaded) {
  EngineRules rules = with_tier(100, 100);
  rules.window_groups = 2;
  rules.window_tokens = 32;
  Tiers t(rules);
  const std::vector<BlockKey> keys = {11, 12, 13, 14, 15, 16};
  t.store(keys);
  EXPECT_EQ(t.tiers.chunks(), 18) << "all chunks of each group";
  ASSERT_EQ(t.hit(keys), 6);
  t.sequence().tier.loading_tokens = 96;
  t.tiers.load(t.slot, keys, 0, 4);
  ASSERT_EQ(t.tiers.to_start().size(), 1U);
  EXPECT_EQ(t.tiers.to_start().front().bytes, (6 + 2 * 2) * 1e6);
  t.copy = t.tiers.to_start().front().id;
  t.tiers.verify();
  t.end_store();
}

TEST(KvTiers, AHitEndsWhereEveryGroupAgrees) {
  EngineRules rules = with_tier(100, 9);
  rules.window_groups = 1;
  rules.window_tokens = 32;
  Tiers t(rules);
  t.store({11, 12, 13, 14});
  // The last three chunks of the group that sees everything go: they were released first.
  t.store({21, 22});
  EXPECT_EQ(t.hit({11, 12, 13, 14, 15}), 1) << "the beginning cuts the window short";
}

// Files behind host memory, by hand: steps of 10 ms, blocks of 16 tokens that take 1 ms between GPU
// and host, and 1 ms between host and files.

/// GPU memory and host memory have room for 11 blocks each.
RunPlan with_files(std::vector<Sent> script, std::int64_t servers = 1) {
  RunPlan plan = hand_made_plan(std::move(script), servers);
  plan.scenario.routing.balancer = BalancerKind::kRoundRobin;
  ResolvedPool& pool = plan.pools.front();
  pool.rules = plain_rules(12);
  pool.rules.tiers = {
      .cpu_chunks = 11, .block_bytes = 1e6, .link_bytes_per_s = 1e9, .prompt_only = true};
  pool.rules.tiers.disk = {
      .root = "/kv", .read_threads = 1, .write_threads = 1, .thread_bytes_per_s = 1e9};
  plan.scenario.cluster.host = HostConfig{};
  return plan;
}

SimTime first_of(const RunResult& r, std::size_t i) { return r.requests[i].first_token; }

// Written by 31 ms; evicted from GPU memory by 61 ms and from host memory by 72 ms.
const std::vector<Sent> kOneServer = {
    {.at_ms = 0, .parts = {{1, 160}}},
    {.at_ms = 50, .parts = {{2, 176}}},
    {.at_ms = 150, .parts = {{1, 160}, {3, 16}}},
};

TEST(KvDisks, WhatHostMemoryHasLostIsRead) {
  const RunResult r = run_by_hand(with_files(kOneServer));
  EXPECT_EQ(first_of(r, 0), at_ms(1 + 10)) << "the files are asked first";
  EXPECT_EQ(first_of(r, 1), at_ms(51 + 10));
  // Asked at 150, known at 151, in host memory at 161, in GPU memory at 171.
  EXPECT_EQ(first_of(r, 2), at_ms(150 + 1 + 10 + 10 + 10));
  EXPECT_EQ(r.requests[2].cached_tokens, 160);
  const TierCounters& did = r.replicas[0].tiers->did;
  EXPECT_EQ(did.disk_lookups, 3);
  EXPECT_EQ(did.disk_reads, 1);
  EXPECT_EQ(did.disk_read_bytes, 10e6);
  EXPECT_EQ(did.disk_writes, 2) << "the run ends before the third";
  EXPECT_EQ(did.disk_waits.longest, Duration::milliseconds(11));
}

TEST(KvDisks, TheDriveIsALimit) {
  RunPlan plan = with_files(kOneServer);
  plan.scenario.cluster.host->disk_read_gb_per_s = 0.5;
  EXPECT_EQ(first_of(run_by_hand(plan), 2), at_ms(150 + 1 + 20 + 10 + 10));
}

TEST(KvDisks, WithoutFilesAllIsAsWithHostMemoryAlone) {
  RunPlan plan = with_files(kOneServer);
  plan.pools.front().rules.tiers.disk = {};
  const RunResult r = run_by_hand(plan);
  EXPECT_EQ(first_of(r, 0), at_ms(10));
  EXPECT_EQ(first_of(r, 2), at_ms(160));
}

// The second server asks for what the first one has written.
const std::vector<Sent> kTwoServers = {
    {.at_ms = 0, .parts = {{1, 160}}},
    {.at_ms = 100, .parts = {{1, 160}, {3, 16}}},
};

TEST(KvDisks, ServersOfOneHostShareFiles) {
  RunPlan plan = with_files(kTwoServers, 2);
  EXPECT_EQ(first_of(run_by_hand(plan), 1), at_ms(100 + 1 + 10 + 10 + 10));
  plan.scenario.cluster.host->gpus = 1;
  EXPECT_EQ(first_of(run_by_hand(plan), 1), at_ms(111)) << "each on a host of its own";
  plan.pools.front().rules.tiers.disk.shared = true;
  EXPECT_EQ(first_of(run_by_hand(plan), 1), at_ms(131)) << "a mount for all";
  plan.scenario.cluster.transfer.bandwidth_gbps = 4;
  EXPECT_EQ(first_of(run_by_hand(plan), 1), at_ms(141)) << "over a network of 0.5 GB/s";
}

TEST(KvDisks, AJobWaitsForAThread) {
  // The first server stores the one prompt until 16 ms, the other one until 26 ms, and needs 20 ms
  // to write each.
  const std::vector<Sent> script = {
      {.at_ms = 0, .parts = {{1, 80}}},
      {.at_ms = 0},
      {.at_ms = 0, .parts = {{2, 80}}},
      {.at_ms = 50, .parts = {{2, 80}, {3, 16}}},
  };
  for (const std::int64_t threads : {1, 2}) {
    RunPlan plan = with_files(script, 2);
    DiskRules& disk = plan.pools.front().rules.tiers.disk;
    disk.read_threads = threads;
    disk.write_threads = 0;  // Those for reading write, too.
    disk.thread_bytes_per_s = 0.25e9;
    // One thread has written the second prompt by 56 ms, two threads by 46 ms.
    EXPECT_EQ(first_of(run_by_hand(plan), 3),
              threads == 1 ? at_ms(50 + 1 + 10) : at_ms(50 + 1 + 20 + 5 + 10));
  }
}

// Pulls of chunks between the host memories of two servers, by hand: steps of 10 ms, blocks of 16
// tokens and 1 MB that take 1 ms over the bus of a server, and 1 ms over the network.

/// The first run of the plan in which the last request is computed on another server than all
/// others.
RunResult run_apart(const RunPlan& plan) {
  for (std::uint64_t seed = 1; seed < 200; ++seed) {
    RunResult r = run_by_hand(plan, seed);
    bool apart = true;
    for (std::size_t i = 0; i + 1 < r.requests.size(); ++i)
      apart = apart && r.requests[i].endpoint == r.requests.front().endpoint &&
              r.requests[i].endpoint != r.requests.back().endpoint;
    if (apart) return r;
  }
  ADD_FAILURE() << "no seed keeps them apart";
  return run_by_hand(plan);
}

const TierCounters& pulls_of(const RunResult& r, std::int64_t endpoint) {
  return r.replicas[static_cast<std::size_t>(endpoint)].tiers->did;
}

TEST(KvPulls, CostFourMessagesAndTheBytes) {
  const RunResult r = run_apart(
      two_hosts({{.at_ms = 0, .parts = {{1, 160}}}, {.at_ms = 100, .parts = {{1, 160}, {2, 16}}}}));
  // Ten blocks are computed until 10 ms and stored until 20 ms. At 100 ms the other server asks; at
  // 101 the question is there, at 102 the answer, and at 103 the order to send. Ten blocks take
  // 10 ms over the network; the notice of it is there at 114. They are loaded until 124, and a step
  // computes the last block.
  const RequestRecord& asked = r.requests[1];
  EXPECT_EQ(asked.first_token, at_ms(100 + 3 + 10 + 1 + 10 + 10));
  EXPECT_EQ(asked.cached_tokens, 160);
  const TierCounters& here = pulls_of(r, asked.endpoint);
  EXPECT_EQ(here.pulls, 1);
  EXPECT_EQ(here.pulls_arrived, 1);
  EXPECT_EQ(here.pulled_bytes, 10e6);
  EXPECT_EQ(here.pull_waits.count, 1);
  EXPECT_EQ(here.pull_waits.total, Duration::milliseconds(14));
  EXPECT_EQ(here.hit_tokens, 160);
  EXPECT_EQ(here.loaded_bytes, 10e6);
  EXPECT_EQ(here.load_waits.total, Duration::milliseconds(10));
  const TierCounters& there = pulls_of(r, r.requests[0].endpoint);
  EXPECT_EQ(there.pulls_served, 1);
  EXPECT_EQ(there.pulls, 0);
}

TEST(KvPulls, TheSourceActsWhenItsStepEnds) {
  // It decodes in steps that end every 10 ms, so that the question waits from 101 to 110, the order
  // to send from 112 to 120. The bytes are gone at 130, when a step has just begun.
  const RunResult r = run_apart(two_hosts({{.at_ms = 0, .parts = {{1, 160}}, .output = 100},
                                           {.at_ms = 100, .parts = {{1, 160}, {2, 16}}}}));
  EXPECT_EQ(r.requests[1].first_token, at_ms(110 + 1 + 1 + 8 + 10 + 10 + 1 + 10 + 10));
  EXPECT_EQ(r.requests[1].cached_tokens, 160);
}

TEST(KvPulls, OnlyWhatIsMissingMoves) {
  // The server that asks has computed six blocks of the ten itself, for the second request.
  RunPlan plan = two_hosts({{.at_ms = 0, .parts = {{1, 160}}},
                            {.at_ms = 0, .parts = {{1, 96}}},
                            {.at_ms = 100, .parts = {{1, 160}, {2, 16}}}});
  for (std::uint64_t seed = 1; seed < 200; ++seed) {
    const RunResult r = run_by_hand(plan, seed);
    if (r.requests[0].endpoint == r.requests[1].endpoint ||
        r.requests[1].endpoint != r.requests[2].endpoint)
      continue;
    const TierCounters& here = pulls_of(r, r.requests[2].endpoint);
    EXPECT_EQ(here.pulled_bytes, 4e6);
    EXPECT_EQ(here.loaded_bytes, 4e6) << "GPU memory has the six";
    EXPECT_EQ(r.requests[2].first_token, at_ms(100 + 3 + 4 + 1 + 4 + 10));
    return;
  }
  FAIL() << "no seed does that";
}

TEST(KvPulls, AreGivenUpAfterHalfAMinute) {
  RunPlan plan =
      two_hosts({{.at_ms = 0, .parts = {{1, 160}}}, {.at_ms = 100, .parts = {{1, 160}, {2, 16}}}});
  plan.scenario.cluster.transfer.bandwidth_gbps = 0.001;  // 8 s per block
  const RunResult r = run_apart(plan);
  EXPECT_EQ(r.requests[1].first_token, at_ms(100 + 30'000 + 10)) << "all of it computed in a step";
  EXPECT_EQ(r.requests[1].cached_tokens, 0);
  const TierCounters& here = pulls_of(r, r.requests[1].endpoint);
  EXPECT_EQ(here.pulls_failed, 1);
  EXPECT_EQ(here.pulled_bytes, 0);
  EXPECT_EQ(here.pull_waits.total, Duration::seconds(30));
}

TEST(KvPulls, NeedRoomWhereTheyGo) {
  RunPlan plan =
      two_hosts({{.at_ms = 0, .parts = {{1, 160}}}, {.at_ms = 100, .parts = {{1, 240}, {2, 16}}}});
  plan.pools.front().rules.tiers.cpu_chunks = 10;
  const RunResult r = run_apart(plan);
  // Ten fit, and are there at 114 and in GPU memory at 124.
  EXPECT_EQ(r.requests[1].first_token, at_ms(134));
  EXPECT_EQ(pulls_of(r, r.requests[1].endpoint).pulled_bytes, 10e6);
}

}  // namespace
}  // namespace routesim::sim::testing
