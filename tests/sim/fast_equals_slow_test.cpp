// The engine that leaps equals the engine that walks: the same bytes for every random scenario.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "models/lora.h"
#include "tests/sim/swarm.h"
#include "workloads/adapter_traffic.h"

namespace routesim::sim::testing {
namespace {

RunResult run(const RunPlan& plan, std::uint64_t seed, bool reference) {
  Diagnostics found;
  RunOptions options;
  options.seed = seed;
  options.reference = reference;
  options.keep_requests = true;
  options.check = true;
  Simulation simulation(plan, options, found);
  for (const Diagnostic& d : found.items()) ADD_FAILURE() << to_string(d);
  return simulation.run();
}

void expect_same_record(const RequestRecord& a, const RequestRecord& b) {
  ASSERT_EQ(a.id, b.id);
  ASSERT_EQ(a.stage, b.stage);
  ASSERT_EQ(a.endpoint, b.endpoint) << "request " << a.id;
  ASSERT_EQ(a.prefill_endpoint, b.prefill_endpoint) << "request " << a.id;
  ASSERT_EQ(a.sent.ns(), b.sent.ns()) << "request " << a.id;
  ASSERT_EQ(a.first_token.ns(), b.first_token.ns()) << "request " << a.id;
  ASSERT_EQ(a.end.ns(), b.end.ns()) << "request " << a.id;
  ASSERT_EQ(a.cached_tokens, b.cached_tokens) << "request " << a.id;
  ASSERT_EQ(a.preemptions, b.preemptions) << "request " << a.id;
  ASSERT_EQ(a.outcome, b.outcome) << "request " << a.id;
}

void expect_same_samples(const Samples& a, const Samples& b) {
  ASSERT_EQ(a.count(), b.count());
  ASSERT_EQ(a.sum(), b.sum());
  ASSERT_EQ(a.min(), b.min());
  ASSERT_EQ(a.max(), b.max());
  for (const double q : {10.0, 50.0, 90.0, 99.0}) ASSERT_EQ(a.percentile(q), b.percentile(q));
}

void expect_same_tiers(const TierCounters& a, const TierCounters& b) {
  ASSERT_EQ(a.query_tokens, b.query_tokens);
  ASSERT_EQ(a.hit_tokens, b.hit_tokens);
  ASSERT_EQ(a.loads, b.loads);
  ASSERT_EQ(a.stored_chunks, b.stored_chunks);
  ASSERT_EQ(a.evicted_chunks, b.evicted_chunks);
  ASSERT_EQ(a.refused_stores, b.refused_stores);
  ASSERT_EQ(a.loaded_bytes, b.loaded_bytes);
  ASSERT_EQ(a.stored_bytes, b.stored_bytes);
  ASSERT_EQ(a.pulled_bytes, b.pulled_bytes);
  ASSERT_EQ(a.pulls, b.pulls);
  ASSERT_EQ(a.pulls_arrived, b.pulls_arrived);
  ASSERT_EQ(a.pulls_failed, b.pulls_failed);
  ASSERT_EQ(a.pulls_served, b.pulls_served);
  ASSERT_EQ(a.disk_lookups, b.disk_lookups);
  ASSERT_EQ(a.disk_reads, b.disk_reads);
  ASSERT_EQ(a.disk_read_bytes, b.disk_read_bytes);
  ASSERT_EQ(a.disk_writes, b.disk_writes);
  ASSERT_EQ(a.disk_waits.total, b.disk_waits.total);
  ASSERT_EQ(a.load_waits.total, b.load_waits.total);
  ASSERT_EQ(a.pull_waits.total, b.pull_waits.total);
}

void expect_same_replica(const ReplicaResult& a, const ReplicaResult& b) {
  ASSERT_EQ(a.name, b.name);
  ASSERT_EQ(a.requests, b.requests);
  ASSERT_EQ(a.steps, b.steps);
  ASSERT_EQ(a.busy_s, b.busy_s);
  ASSERT_EQ(a.prefix_query_tokens, b.prefix_query_tokens);
  ASSERT_EQ(a.prefix_hit_tokens, b.prefix_hit_tokens);
  ASSERT_EQ(a.preemptions, b.preemptions);
  ASSERT_EQ(a.evicted_blocks, b.evicted_blocks);
  ASSERT_EQ(a.kv_cache_usage_mean, b.kv_cache_usage_mean);
  ASSERT_EQ(a.kv_cache_usage_max, b.kv_cache_usage_max);
  ASSERT_EQ(a.max_running, b.max_running);
  ASSERT_EQ(a.max_waiting, b.max_waiting);
  ASSERT_EQ(a.tiers.has_value(), b.tiers.has_value());
  if (!a.tiers) return;
  expect_same_tiers(a.tiers->did, b.tiers->did);
  ASSERT_EQ(a.tiers->used_bytes, b.tiers->used_bytes);
  ASSERT_EQ(a.tiers->links.to_gpus, b.tiers->links.to_gpus);
  ASSERT_EQ(a.tiers->links.to_host, b.tiers->links.to_host);
  ASSERT_EQ(a.tiers->links.nic_in, b.tiers->links.nic_in);
}

void expect_same(const RunResult& a, const RunResult& b) {
  ASSERT_EQ(a.requests.size(), b.requests.size());
  for (std::size_t i = 0; i < a.requests.size(); ++i) {
    expect_same_record(a.requests[i], b.requests[i]);
    if (::testing::Test::HasFatalFailure()) return;
  }
  ASSERT_EQ(a.fingerprint, b.fingerprint);
  ASSERT_EQ(a.end, b.end);
  ASSERT_EQ(a.stages.size(), b.stages.size());
  for (std::size_t s = 0; s < a.stages.size(); ++s) {
    expect_same_samples(a.stages[s].inter_token_latency, b.stages[s].inter_token_latency);
    ASSERT_EQ(a.stages[s].kv_cache_usage_mean, b.stages[s].kv_cache_usage_mean);
    if (::testing::Test::HasFatalFailure()) return;
  }
  ASSERT_EQ(a.step_times.size(), b.step_times.size());
  for (std::size_t p = 0; p < a.step_times.size(); ++p) {
    ASSERT_EQ(a.step_times[p].busy_s, b.step_times[p].busy_s);
    ASSERT_EQ(a.step_times[p].extrapolated_s, b.step_times[p].extrapolated_s);
    ASSERT_EQ(a.step_times[p].trust, b.step_times[p].trust);
  }
  for (std::size_t r = 0; r < a.replicas.size(); ++r) {
    expect_same_replica(a.replicas[r], b.replicas[r]);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

struct Totals {
  std::int64_t requests = 0, preemptions = 0, timeouts = 0, disaggregated = 0, hits = 0, loads = 0,
               extrapolated = 0, pulls = 0, failed_pulls = 0, vain_pulls = 0;
};

void count(const RunResult& r, Totals& t) {
  for (const RequestRecord& q : r.requests) {
    ++t.requests;
    t.timeouts += q.outcome == workloads::Outcome::kTimeout ? 1 : 0;
    t.disaggregated += q.prefill_endpoint >= 0 ? 1 : 0;
  }
  for (const StepTimes& q : r.step_times) t.extrapolated += q.extrapolated_s > 0 ? 1 : 0;
  for (const ReplicaResult& q : r.replicas) {
    t.preemptions += q.preemptions;
    t.hits += q.prefix_hit_tokens > 0 ? 1 : 0;
    if (!q.tiers) continue;
    t.loads += q.tiers->did.hit_tokens > 0 ? 1 : 0;
    t.pulls += q.tiers->did.pulls_arrived;
    t.failed_pulls += q.tiers->did.pulls_failed;
    t.vain_pulls += q.tiers->did.pulls - q.tiers->did.pulls_arrived - q.tiers->did.pulls_failed;
  }
}

/// Which scenarios run can be changed from outside to look at one: ROUTESIM_SWARM_FIRST and _COUNT.
std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

void expect_fast_equals_slow(const RunPlan& plan, std::uint64_t seed, Totals& totals) {
  SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + describe_plan(plan));
  try {
    const RunResult fast = run(plan, seed, false);
    const RunResult slow = run(plan, seed, true);
    expect_same(fast, slow);
    count(fast, totals);
  } catch (const InternalError& e) {
    FAIL() << e.what();
  }
}

TEST(FastEqualsSlow, ForAThousandRandomScenarios) {
  const std::uint64_t first = from_environment("ROUTESIM_SWARM_FIRST", 1);
  const std::uint64_t scenarios = from_environment("ROUTESIM_SWARM_COUNT", 3000);
  Totals totals;
  for (std::uint64_t seed = first; seed < first + scenarios; ++seed) {
    expect_fast_equals_slow(swarm_plan(seed), seed, totals);
    if (HasFailure()) return;
  }
  if (scenarios < 1000) return;
  // The swarm must reach what it is meant to compare.
  EXPECT_GT(totals.requests, 20'000);
  EXPECT_GT(totals.preemptions, 4'000);
  EXPECT_GT(totals.timeouts, 500);
  EXPECT_GT(totals.disaggregated, 2'000);
  EXPECT_GT(totals.hits, 500);
  EXPECT_GT(totals.loads, 200);
  EXPECT_GT(totals.extrapolated, 150);
  EXPECT_GT(totals.pulls, 400);
  EXPECT_GT(totals.failed_pulls, 10);
  EXPECT_GT(totals.vain_pulls, 20);
}

/// Scenario number `seed` with four adapters, of which servers hold one to three.
RunPlan swarm_plan_with_adapters(std::uint64_t seed) {
  RunPlan plan = swarm_plan(seed);
  plan.adapters = {"a", "b", "c", "d"};
  for (ResolvedPool& pool : plan.pools) {
    pool.rules.adapters = 4;
    if (seed % 5 == 0)
      pool.rules.prefill_schedule_interval = 2 + static_cast<std::int64_t>(seed % 4);
    pool.rules.max_loras = 1 + static_cast<std::int64_t>(seed % 3);
    pool.rules.max_cpu_loras = pool.rules.max_loras + static_cast<std::int64_t>(seed % 2);
    pool.latency = std::make_shared<models::LoraLatency>(
        pool.latency,
        models::LoraCosts{.step = 300'007, .token = 1'003, .load = 2'000'003, .read = 5'000'011});
  }
  plan.make_load = [make = plan.make_load](std::uint64_t s, Diagnostics& d) {
    const auto assignment =
        s % 4 == 0 ? workloads::LoraAssignment::kRoundRobin : workloads::LoraAssignment::kRandom;
    return workloads::with_adapters(
        make(s, d),
        {.shares = {{0, 0.2}, {1, 0.3}, {2, 0.2}, {3, 0.2}, {4, 0.1}}, .assignment = assignment},
        s);
  };
  return plan;
}

TEST(FastEqualsSlow, WithAdapters) {
  Totals totals;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    expect_fast_equals_slow(swarm_plan_with_adapters(seed), seed, totals);
    if (HasFailure()) return;
  }
  EXPECT_GT(totals.requests, 4'000);
  EXPECT_GT(totals.preemptions, 800);
  EXPECT_GT(totals.disaggregated, 400);
}

// Servers whose windowed layers take blocks of their own visit every sequence either way.
TEST(FastEqualsSlow, WithWindowedLayers) {
  std::int64_t compared = 0;
  Totals totals;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    RunPlan plan = swarm_plan(seed);
    for (ResolvedPool& pool : plan.pools) {
      // Only tiers that others can pull from know groups of layers.
      const TierRules& tiers = pool.rules.tiers;
      if (tiers.in_use() && (!tiers.pulls() || tiers.disk.in_use())) continue;
      pool.rules.window_groups = 1 + static_cast<std::int64_t>(seed % 3);
      pool.rules.window_tokens = 8 + static_cast<std::int64_t>(seed % 50);
    }
    expect_fast_equals_slow(plan, seed, totals);
    if (HasFailure()) return;
    ++compared;
  }
  EXPECT_EQ(compared, 400);
}

// Sequences hold one block more for each group of layers with a state.
TEST(FastEqualsSlow, WithStates) {
  Totals totals;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    RunPlan plan = swarm_plan(seed);
    for (ResolvedPool& pool : plan.pools) {
      if (pool.rules.tiers.in_use()) continue;
      pool.rules.window_groups = 1 + static_cast<std::int64_t>(seed % 4);
      pool.rules.state_groups = true;
      pool.rules.enable_prefix_caching = false;
    }
    expect_fast_equals_slow(plan, seed, totals);
    if (HasFailure()) return;
  }
}

// Servers that speculate visit every sequence either way; how long they may sleep differs.
TEST(FastEqualsSlow, WithSpeculation) {
  Totals totals;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    RunPlan plan = swarm_plan(seed);
    for (ResolvedPool& pool : plan.pools) {
      if (pool.rules.tiers.in_use()) continue;
      SpeculationRules& s = pool.rules.speculation;
      s.tokens = 1 + static_cast<std::int64_t>(seed % 4);
      s.lookahead = seed % 3 == 0 ? 0 : s.tokens;
      s.drops_last_hit = seed % 3 == 1;
      for (std::int64_t i = 0; i < s.tokens; ++i)
        s.acceptance.push_back(1 -
                               0.07 * static_cast<double>(seed % 5) * static_cast<double>(i + 1));
    }
    expect_fast_equals_slow(plan, seed, totals);
    if (HasFailure()) return;
  }
  EXPECT_GT(totals.requests, 4'000);
  EXPECT_GT(totals.preemptions, 500);
  EXPECT_GT(totals.disaggregated, 400);
}

// So do pipelines whose stages overlap.
TEST(FastEqualsSlow, WithPipelines) {
  Totals totals;
  std::int64_t pools = 0;
  for (std::uint64_t seed = 1; seed <= 800; ++seed) {
    RunPlan plan = seed % 4 == 0 ? swarm_plan_with_adapters(seed) : swarm_plan(seed);
    for (ResolvedPool& pool : plan.pools) {
      if (pool.lock_step || pool.rules.tiers.in_use()) continue;
      pool.rules.pipeline_stages = 2 + static_cast<std::int64_t>(seed % 3);
      pool.rules.async_scheduling = false;
      if (seed % 5 == 0) {
        pool.rules.window_groups = 1 + static_cast<std::int64_t>(seed % 2);
        pool.rules.window_tokens = 8 + static_cast<std::int64_t>(seed % 50);
      }
      ++pools;
    }
    expect_fast_equals_slow(plan, seed, totals);
    if (HasFailure()) return;
  }
  EXPECT_GT(pools, 400);
  EXPECT_GT(totals.requests, 5'000);
  EXPECT_GT(totals.preemptions, 500);
  EXPECT_GT(totals.disaggregated, 400);
  EXPECT_GT(totals.timeouts, 100);
}

// SGLang's scheduler in the servers that do nothing that only vLLM does.
TEST(FastEqualsSlow, WithSglang) {
  Totals totals;
  std::int64_t pools = 0;
  for (std::uint64_t seed = 1; seed <= 800; ++seed) {
    RunPlan plan = swarm_plan(seed);
    for (ResolvedPool& pool : plan.pools) {
      if (pool.config.role != PoolRole::kBoth || pool.rules.tiers.in_use()) continue;
      const double ratio = static_cast<double>(seed % 7) / 10;
      pool.rules.sglang = SglangRules{
          .policy = seed % 3 == 0 ? SglangPolicy::kLpm : SglangPolicy::kFcfs,
          .chunk_tokens = static_cast<std::int64_t>(seed % 5) * 2 * pool.rules.block_size,
          .max_prefill_tokens = 20 + static_cast<std::int64_t>(seed % 11) * 30,
          .largest_graph = 256,
          .first_ratio = ratio,
          .least_ratio = 0.14 * ratio};
      pool.rules.scheduling_policy = SchedulingPolicy::kFcfs;
      pool.rules.free_queue = FreeQueue::kUnhashedFirst;
      ++pools;
    }
    expect_fast_equals_slow(plan, seed, totals);
    if (HasFailure()) return;
  }
  EXPECT_GT(pools, 400);
  EXPECT_GT(totals.requests, 5'000);
  EXPECT_GT(totals.preemptions, 500);
  EXPECT_GT(totals.timeouts, 100);
}

// Found by longer runs, each once a difference.
TEST(FastEqualsSlow, WhereItOnceDidNot) {
  Totals totals;
  // A blocked head fits although nobody leaves: a free block it hits is evicted, its twin is in
  // use.
  expect_fast_equals_slow(swarm_plan(792203), 792203, totals);
  EXPECT_GT(totals.disaggregated, 0);
}

}  // namespace
}  // namespace routesim::sim::testing
