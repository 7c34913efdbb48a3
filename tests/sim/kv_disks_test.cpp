// Files behind host memory, by hand: steps of 10 ms, blocks of 16 tokens that take 1 ms between GPU
// and host, and 1 ms between host and files.
#include "sim/tiers/kv_disks.h"

#include "tests/sim/plan_fixture.h"

namespace routesim::sim::testing {
namespace {

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

}  // namespace
}  // namespace routesim::sim::testing
