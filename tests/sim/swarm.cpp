#include "tests/sim/swarm.h"

#include <sstream>
#include <utility>

#include "tests/sim/endpoint_picker_fixture.h"
#include "tests/sim/sim_fixture.h"
#include "tests/sim/swarm_load.h"
#include "workloads/mix/mixed_load.h"

namespace routesim::sim::testing {

namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed, Stream::kTest, 3), random_draws_(true) {}
  explicit Dice(std::span<const std::uint8_t> choices)
      : random_(1, Stream::kTest, 3), choices_(choices) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low + 1)));
  }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  double uniform() {
    return random_draws_ ? random_.uniform() : static_cast<double>(below(1024)) / 1024;
  }

 private:
  std::uint64_t below(std::uint64_t n) {
    if (random_draws_) return random_.below(n);
    std::uint64_t value = 0;
    for (std::uint64_t reach = 1; reach < n && !choices_.empty(); reach *= 256) {
      value = value * 256 + choices_.front();
      choices_ = choices_.subspan(1);
    }
    return value % n;
  }

  RandomStream random_;
  bool random_draws_ = false;
  std::span<const std::uint8_t> choices_;
};

EngineRules swarm_rules(Dice& dice, std::int64_t block_size) {
  EngineConfig c;
  c.preset = static_cast<EnginePreset>(dice.between(0, 3));
  c.block_size = block_size;
  c.max_num_batched_tokens = dice.between(4, dice.one_in(2) ? 60 : 600);
  c.max_num_seqs = dice.between(1, dice.one_in(2) ? 6 : 64);
  c.max_model_len = dice.one_in(6) ? 150 : 4000;
  if (dice.one_in(8)) {
    c.enable_chunked_prefill = false;
    c.max_num_batched_tokens = c.max_model_len;
  } else if (dice.one_in(4)) {
    c.long_prefill_token_threshold = dice.between(2, 30);
  }
  if (dice.one_in(5)) c.prefill_schedule_interval = dice.between(2, 5);
  if (dice.one_in(8)) c.enable_prefix_caching = false;
  if (dice.one_in(4)) c.scheduling_policy = SchedulingPolicy::kPriority;
  if (dice.one_in(4)) c.reserve_full_isl = dice.one_in(2);
  if (dice.one_in(4)) c.watermark = 0.1;
  if (dice.one_in(4)) c.async_scheduling = dice.one_in(2);
  if (dice.one_in(4)) c.skip_unallocatable_head = dice.one_in(2);
  if (dice.one_in(4))
    c.free_queue = dice.one_in(2) ? FreeQueue::kAppendAll : FreeQueue::kUnhashedFirst;
  // From preemption storms to comfort.
  const std::int64_t tokens = dice.one_in(2) ? dice.between(150, 400) : dice.between(400, 6000);
  EngineRules rules = resolve_engine_rules(c, 4000, true);
  set_kv_blocks(rules, c, 2 + tokens / block_size);
  return rules;
}

ResolvedPool swarm_pool(Dice& dice, std::int64_t block_size, PoolRole role) {
  ResolvedPool p;
  p.config.name = role == PoolRole::kPrefill ? "prefill" : "pool";
  p.config.role = role;
  p.config.model = "test-model";
  p.config.replicas = dice.between(1, role == PoolRole::kBoth ? 4 : 2);
  if (dice.one_in(3)) {
    p.config.data_parallel = dice.between(2, 3);
    p.lock_step = !dice.one_in(3);
    if (dice.one_in(3)) p.config.data_parallel_balancing = DataParallelBalancing::kInternal;
  }
  p.config.engine.preset = static_cast<EnginePreset>(dice.between(0, 3));
  p.rules = swarm_rules(dice, block_size);
  KneeLatency::Coefficients k;
  if (dice.one_in(2)) k.floor = dice.between(1'000'000'000, 6'000'000'000);
  if (dice.one_in(4)) k.context = 0;
  p.latency = std::make_shared<KneeLatency>(k);
  p.kv_bytes_per_token = 40'000;
  p.descriptors = 64;
  return p;
}

SwarmLoadOptions swarm_load(Dice& dice) {
  SwarmLoadOptions o;
  o.users = dice.between(2, 30);
  o.turns = dice.between(1, 6);
  o.stages = dice.one_in(4) ? 2 : 1;
  o.conversation = dice.one_in(3);
  o.spread_ms = dice.one_in(2) ? 0 : dice.uniform() * 200;
  o.think_ms = dice.one_in(2) ? 0 : dice.uniform() * 40;
  if (!o.conversation && dice.one_in(3)) o.pool_prompts = dice.between(1, 10);
  o.head = dice.between(4, 80);
  o.tail = dice.between(1, 60);
  o.output = dice.between(1, dice.one_in(4) ? 150 : 40);
  o.early_end = dice.one_in(3) ? 0.3 : 0;
  o.timeouts = dice.one_in(3) ? 0.3 : 0;
  o.timeout_ms = 1 + dice.uniform() * 100;
  return o;
}

void choose_routing(Dice& dice, RunPlan& plan, std::int64_t block_size) {
  RoutingConfig& r = plan.scenario.routing;
  r.router_replicas = dice.between(1, 2);
  r.scrape_interval = Duration::microseconds(dice.between(500, 50'000));
  r.kv_event_delay = Duration::microseconds(dice.between(0, 3'000));
  r.kv_event_loss = dice.one_in(5) ? 0.1 : 0;
  r.decision_latency = Duration::microseconds(dice.between(0, 2'000));
  const std::int64_t kind = dice.between(0, 9);
  r.balancer = BalancerKind::kEndpointPicker;
  if (kind < 3) {
    // The router's blocks may be larger than the engine's.
    plan.endpoint_picker = precise_config(block_size * (dice.one_in(3) ? 2 : 1), dice.one_in(2));
  } else if (kind == 3) {
    plan.endpoint_picker = load_aware_config(dice.one_in(2));
    if (dice.one_in(2)) plan.scenario.workload.sheddable_fraction = 0.5;
  } else if (kind < 6) {
    plan.endpoint_picker = disaggregated_config(block_size);
  } else {
    static constexpr BalancerKind kinds[] = {BalancerKind::kRoundRobin, BalancerKind::kRandom,
                                             BalancerKind::kLeastLoad, BalancerKind::kPrefixHash,
                                             BalancerKind::kK8sService};
    r.balancer = kinds[dice.between(0, 4)];
  }
  const bool disaggregated = kind == 4 || kind == 5;
  plan.pools.push_back(
      swarm_pool(dice, block_size, disaggregated ? PoolRole::kDecode : PoolRole::kBoth));
  if (disaggregated) plan.pools.push_back(swarm_pool(dice, block_size, PoolRole::kPrefill));
}

}  // namespace

namespace {

void add_tier(Dice& dice, ResolvedPool& pool) {
  KvTierConfig tiers;
  if (dice.one_in(4)) tiers.connector = KvConnector::kLmcache;
  if (dice.one_in(5)) tiers.connector = KvConnector::kMooncakeStore;
  const std::int64_t block_size = pool.rules.block_size;
  const std::int64_t chunk = block_size * (dice.one_in(2) ? 1 : dice.between(2, 4));
  tiers.chunk_tokens = chunk;
  if (dice.one_in(2)) tiers.prompt_only = dice.one_in(2);
  const double token_bytes = static_cast<double>(dice.between(5'000, 400'000));
  const auto chunks = static_cast<double>(dice.between(1, dice.one_in(2) ? 20 : 2'000));
  tiers.cpu_gib = chunks * static_cast<double>(chunk) * token_bytes / (1 << 30) * 1.0001;
  pool.config.engine.kv_tiers = tiers;
  pool.rules.enable_prefix_caching = true;
  pool.rules.tiers =
      resolve_tiers(tiers, {.preset = pool.config.engine.preset,
                            .block_size = block_size,
                            .kv_bytes_per_token = token_bytes,
                            .gpus = dice.between(1, 2),
                            .link_bytes_per_s = static_cast<double>(dice.between(1, 8)) * 1e9,
                            .descriptor_bytes = 1 << 20});
  const bool offloads = tiers.connector == KvConnector::kOffloading;
  if (offloads && !pool.rules.tiers.settles_at_request_end && dice.one_in(3)) {
    pool.rules.tiers.disk = {
        .root = "/kv",
        .shared = dice.one_in(2),
        .bytes_per_s = dice.one_in(2) ? 0 : static_cast<double>(dice.between(1, 9)) * 1e9,
        .read_threads = dice.between(0, 3),
        .write_threads = dice.between(1, 3),
        .thread_bytes_per_s = static_cast<double>(dice.between(1, 5)) * 1e9};
  } else if (offloads && dice.one_in(4)) {
    pool.rules.window_groups = dice.between(1, 3);
    pool.rules.window_tokens = dice.between(2, 80);
  }
}

// About half of the scenarios: host memory for a few chunks up to plenty, and machines on which now
// the bus of a server, now the memory of all of them is the bottleneck.
void add_tiers(Dice& dice, RunPlan& plan) {
  if (!dice.one_in(2)) return;
  HostConfig host;
  host.gpus = dice.between(1, 4);
  host.memory_gb_per_s = dice.one_in(2) ? 1000 : static_cast<double>(dice.between(1, 8));
  plan.scenario.cluster.host = host;
  for (ResolvedPool& pool : plan.pools)
    // The requests of a decode server bring their prompts with them.
    if (pool.config.role != PoolRole::kDecode || dice.one_in(4)) add_tier(dice, pool);
}

// Servers of one pool that have tiers pull from each other, now and then over a network too slow
// for that.
void add_pulls(Dice& dice, RunPlan& plan, std::int64_t block_size) {
  if (plan.pools.size() > 1 || !plan.pools.front().rules.tiers.in_use() || !dice.one_in(2)) return;
  plan.scenario.routing.balancer = BalancerKind::kEndpointPicker;
  plan.endpoint_picker =
      pulling_config(block_size, dice.one_in(2) ? 1 : dice.between(2, 60), dice.one_in(2));
  ResolvedPool& pool = plan.pools.front();
  pool.config.replicas = std::max<std::int64_t>(2, pool.config.replicas);
  // Mostly as releases with pulls have it. Other connectors ignore who could be pulled from.
  TierRules& tiers = pool.rules.tiers;
  if (!tiers.copies_in_steps && !tiers.shared_store) {
    tiers.settles_at_request_end = !tiers.disk.in_use() && dice.one_in(6);
    tiers.waits_for_writes = !tiers.settles_at_request_end && !dice.one_in(6);
  }
  if (dice.one_in(6)) plan.scenario.cluster.transfer.bandwidth_gbps = 0.01;
}

// A second pool cuts prompts into other blocks than the first, or a prefill pool than its decode
// pool.
void add_other_blocks(Dice& dice, RunPlan& plan) {
  const std::int64_t block_size = std::int64_t{1} << dice.between(1, 5);
  const bool pulls = plan.endpoint_picker && plan.pools.front().rules.tiers.pulls();
  if (!dice.one_in(3) || block_size == plan.pools.front().rules.block_size || pulls) return;
  const bool disaggregated = plan.pools.size() > 1;
  ResolvedPool pool =
      swarm_pool(dice, block_size, disaggregated ? PoolRole::kPrefill : PoolRole::kBoth);
  if (plan.scenario.cluster.host && dice.one_in(2)) add_tier(dice, pool);
  if (disaggregated) plan.pools.pop_back();
  pool.config.name = "other-blocks";
  plan.pools.push_back(std::move(pool));
}

/// A second load beside that of the plan.
void mix_in(SwarmLoadOptions other, RunPlan& plan) {
  other.first_content = 1'000'000;
  plan.headers.resize(2);
  plan.make_load = [other, first = plan.make_load](std::uint64_t s, Diagnostics& d) {
    std::vector<workloads::MixedPart> parts;
    parts.push_back({.name = "first", .load = first(s, d)});
    parts.push_back({.name = "other", .load = std::make_unique<SwarmLoad>(other, s + 1)});
    return workloads::mix_loads(std::move(parts));
  };
}

RunPlan make_plan(Dice dice, const std::string& name) {
  RunPlan plan;
  plan.scenario.name = name;
  const std::int64_t block_size = std::int64_t{1} << dice.between(1, 5);
  choose_routing(dice, plan, block_size);
  plan.scenario.workload.client_overhead = Duration::microseconds(dice.between(0, 1'000));
  plan.scenario.workload.response_overhead = Duration::microseconds(dice.between(0, 1'000));
  plan.scenario.cluster.frontend_latency = Duration::microseconds(dice.between(0, 5'000));
  plan.scenario.cluster.transfer.bandwidth_gbps = static_cast<double>(dice.between(1, 100));
  plan.scenario.cluster.transfer.setup = Duration::microseconds(dice.between(0, 1'000));
  TransferConfig& transfer = plan.scenario.cluster.transfer;
  transfer.first_contact = Duration::microseconds(dice.between(0, 10'000));
  transfer.descriptor_time = Duration::nanoseconds(dice.between(0, 2'000));
  transfer.handover = Duration::microseconds(dice.one_in(2) ? 0 : dice.between(1, 40'000));
  if (dice.one_in(3)) transfer.lease = Duration::microseconds(dice.between(1'000, 60'000));
  if (dice.one_in(2)) transfer.load_failure = KvLoadFailure::kRecompute;
  const SwarmLoadOptions load = swarm_load(dice);
  // Drawn last: what came before keeps its draws.
  for (ResolvedPool& pool : plan.pools) {
    if (dice.one_in(2)) continue;
    pool.api_server = {
        .processes = dice.between(1, 3),
        .request = Duration::microseconds(dice.one_in(4) ? 0 : dice.between(1, 4'000)),
        .prompt_token = Duration::nanoseconds(dice.between(0, 20'000))};
  }
  add_tiers(dice, plan);
  add_pulls(dice, plan, block_size);
  add_other_blocks(dice, plan);
  plan.make_load = [load](std::uint64_t s, Diagnostics&) {
    return std::make_unique<SwarmLoad>(load, s);
  };
  // Few pulls fail, and they should still be seen.
  if (!plan.pools.front().rules.tiers.in_use() && dice.one_in(6)) mix_in(swarm_load(dice), plan);
  return plan;
}

}  // namespace

RunPlan swarm_plan(std::uint64_t seed) {
  return make_plan(Dice(seed), "swarm-" + std::to_string(seed));
}

RunPlan swarm_plan(std::span<const std::uint8_t> choices) {
  return make_plan(Dice(choices), "chosen");
}

std::string describe_plan(const RunPlan& plan) {
  std::ostringstream out;
  out << plan.scenario.name << ": balancer " << static_cast<int>(plan.scenario.routing.balancer)
      << " routers " << plan.scenario.routing.router_replicas << " loss "
      << plan.scenario.routing.kv_event_loss;
  for (const ResolvedPool& p : plan.pools) {
    const EngineRules& r = p.rules;
    out << "\n  " << p.config.name << " x" << p.config.replicas << " dp " << p.config.data_parallel
        << (p.lock_step ? " lock-step" : "") << " block " << r.block_size << " blocks "
        << r.num_gpu_blocks << " budget " << r.max_num_batched_tokens << " seqs " << r.max_num_seqs
        << " len " << r.max_model_len << " long " << r.long_prefill_token_threshold << " interval "
        << r.prefill_schedule_interval << " chunked " << r.enable_chunked_prefill << " caching "
        << r.enable_prefix_caching << " isl " << r.reserve_full_isl << " wm " << r.watermark_blocks
        << " async " << r.async_scheduling << " skip " << r.skip_unallocatable_head << " policy "
        << static_cast<int>(r.scheduling_policy) << " free " << static_cast<int>(r.free_queue);
    const TierRules& t = r.tiers;
    if (t.in_use())
      out << " chunks " << t.cpu_chunks << " of " << t.chunk_blocks << " windows "
          << r.window_groups << " x " << r.window_tokens << " prompt_only " << t.prompt_only
          << " waits " << t.waits_for_writes << " settles " << t.settles_at_request_end
          << " in steps " << t.copies_in_steps << " store " << t.shared_store << " files "
          << t.disk.in_use();
  }
  return out.str();
}

}  // namespace routesim::sim::testing
