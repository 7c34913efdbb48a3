// What a pool's settings come to: which ranks step together, what a transfer moves, how much KV
// fits.
#include "sim/plan/resolve.h"

#include "tests/sim/plan_fixture.h"
#include "tools/ingest/servers/catalogue_file.h"

namespace routesim::sim::testing {
namespace {

Scenario one_pool(const std::string& model, EnginePreset preset) {
  Scenario s;
  PoolConfig& pool = s.cluster.pools.emplace_back();
  pool.accelerator = "H100-SXM";
  pool.model = model;
  pool.engine.preset = preset;
  pool.engine.max_model_len = 4096;
  s.routing.balancer = BalancerKind::kRoundRobin;
  s.workload.load.emplace<workloads::GroupLoadConfig>();
  return s;
}

Scenario scout(EnginePreset preset) {
  Scenario s = one_pool("Llama-4-Scout", preset);
  s.cluster.pools[0].tensor_parallel = 8;
  return s;
}

/// A scenario that names no other files.
ScenarioInputs no_files() { return {.catalogue = tools::builtin_catalogue()}; }

ResolvedPool resolved(const Scenario& s, const ScenarioInputs& inputs = no_files()) {
  Diagnostics d;
  const std::optional<RunPlan> plan = resolve(s, inputs, d);
  EXPECT_TRUE(plan.has_value()) << (d.items().empty() ? "" : d.items().front().message);
  return plan ? plan->pools.front() : ResolvedPool{};
}

TEST(LockStepRule, ExpertsAndOldReleasesStepTogether) {
  const auto steps_together = [](const char* model, EnginePreset preset, bool experts,
                                 std::int64_t ranks) {
    Scenario s = one_pool(model, preset);
    s.cluster.pools[0].data_parallel = ranks;
    s.cluster.pools[0].expert_parallel = experts;
    return resolved(s).lock_step;
  };
  EXPECT_TRUE(steps_together("Qwen3-30B-A3B", EnginePreset::k2026H1, true, 2));
  EXPECT_TRUE(steps_together("Qwen3-30B-A3B", EnginePreset::k2026H1, false, 2))
      << "without expert parallelism the experts are one wide tensor-parallel group";
  EXPECT_FALSE(steps_together("Qwen3-30B-A3B", EnginePreset::k2025H2, false, 1));
  EXPECT_TRUE(steps_together("Qwen3-8B", EnginePreset::k2025H2, false, 2));
  EXPECT_FALSE(steps_together("Qwen3-8B", EnginePreset::k2026H1, false, 2));
}

TEST(TransferBytes, EveryTensorParallelGpuPullsTheWholeLatent) {
  Scenario s = one_pool("DeepSeek-R1", EnginePreset::k2026H1);
  s.cluster.pools[0].accelerator = "H200-SXM";
  s.cluster.pools[0].tensor_parallel = 8;
  EXPECT_EQ(resolved(s).kv_bytes_per_token, 8 * 70'272.0);
  Scenario heads = one_pool("Qwen3-32B", EnginePreset::k2026H1);
  heads.cluster.pools[0].tensor_parallel = 2;
  EXPECT_EQ(resolved(heads).kv_bytes_per_token, 262'144.0) << "heads are divided";
}

TEST(TransferDescriptors, ArePerLayerWithKeysAndValuesApartUntil2026H2) {
  const auto descriptors = [](const char* model, EnginePreset preset) {
    Scenario s = one_pool(model, preset);
    s.cluster.pools[0].accelerator = "H200-SXM";
    s.cluster.pools[0].tensor_parallel = 8;
    return resolved(s).descriptors;
  };
  EXPECT_EQ(descriptors("Qwen3-32B", EnginePreset::k2025H2), 2 * 64);
  EXPECT_EQ(descriptors("Qwen3-32B", EnginePreset::k2026H1), 2 * 64);
  EXPECT_EQ(descriptors("Qwen3-32B", EnginePreset::k2026H2), 64);
  EXPECT_EQ(descriptors("DeepSeek-R1", EnginePreset::k2026H1), 61) << "a latent is one";
}

TEST(SpeculationPlan, TheDrafterTakesMemoryMovesAndHasAPrice) {
  Scenario s = one_pool("Qwen3-32B", EnginePreset::k2026H2);
  s.cluster.pools[0].tensor_parallel = 2;
  const ResolvedPool plain = resolved(s);
  SpeculationConfig& c = s.cluster.pools[0].engine.speculative.emplace();
  c.method = SpeculationMethod::kEagle3;
  c.num_speculative_tokens = 3;
  const ResolvedPool drafts = resolved(s);
  EXPECT_EQ(plain.rules.speculation.tokens, 0);
  EXPECT_EQ(drafts.rules.speculation.tokens, 3);
  EXPECT_NEAR(drafts.kv_plan.weights - plain.kv_plan.weights, 861'143'040, 1e5);
  // A 65th layer of 8 heads, keys and values of 128 in bf16.
  EXPECT_EQ(drafts.kv_plan.bytes_per_block * 64, plain.kv_plan.bytes_per_block * 65);
  EXPECT_EQ(drafts.kv_bytes_per_token, 262'144.0 + 4'096);
  EXPECT_EQ(drafts.descriptors, 65);
  EXPECT_LT(drafts.rules.num_gpu_blocks, plain.rules.num_gpu_blocks);
  // The fitted curve has no price for drafts.
  EXPECT_EQ(plain.latency->trust({}), models::Trust::kFitted);
  EXPECT_EQ(drafts.latency->trust({}), models::Trust::kKernels);
  s.cluster.pools[0].latency_model = "roofline";
  EXPECT_EQ(resolved(s).latency->trust({}), models::Trust::kRoofline);
}

TEST(HybridKvManager, IsOffWhereVllmTurnsItOff) {
  const auto on = [](EnginePreset preset, HybridKvUse use, std::optional<bool> said = {}) {
    EngineConfig c;
    c.preset = preset;
    c.hybrid_kv_manager = said;
    return uses_hybrid_kv_manager(c, use);
  };
  using P = EnginePreset;
  for (const P preset : {P::k2025H2, P::k2026H1, P::k2026H2}) {
    EXPECT_TRUE(on(preset, {}));
    EXPECT_EQ(on(preset, {.chunked_windows = true}), preset != P::k2025H2);
    EXPECT_TRUE(on(preset, {.kv_events = true, .chunked_windows = true}, true));
    EXPECT_FALSE(on(preset, {}, false));
    EXPECT_EQ(on(preset, {.kv_events = true}), preset != P::k2025H2);
    EXPECT_EQ(on(preset, {.kv_transfer = true}), preset == P::k2026H2);
  }
}

// 48 layers, 12 of which see everything: a block of all has four times the bytes of one of a group.
TEST(HybridKvManager, Llama4HasBlocksOfItsOwnForChunksFrom2026On) {
  const ResolvedPool old = resolved(scout(EnginePreset::k2025H2));
  const ResolvedPool now = resolved(scout(EnginePreset::k2026H1));
  EXPECT_EQ(old.rules.window_groups, 0);
  EXPECT_EQ(now.rules.window_groups, 3);
  EXPECT_EQ(old.kv_bytes_per_token, 4 * now.kv_bytes_per_token);
}

// On four GPUs a layer keeps 16 states of 128 x 128 in fp32 and three inputs of 3,072 channels:
// 1,067,008 bytes, which 1,042 tokens of one KV head of 256 fill: 66 times 16.
TEST(HybridKvManager, BlocksAreAsLongAsAStateAndPrefixesAreNotKept) {
  Scenario s = one_pool("Qwen3.5-122B-A10B", EnginePreset::k2026H1);
  s.cluster.pools[0].tensor_parallel = 4;
  Diagnostics d;
  const std::optional<RunPlan> plan = resolve(s, no_files(), d);
  ASSERT_TRUE(plan) << to_string(d.items().front());
  const ResolvedPool& pool = plan->pools.front();
  EXPECT_EQ(pool.rules.block_size, 1'056);
  EXPECT_EQ(pool.config.engine.block_size, 1'056);
  EXPECT_EQ(pool.rules.window_groups, 3);
  EXPECT_TRUE(pool.rules.state_groups);
  EXPECT_FALSE(pool.rules.enable_prefix_caching);
  ASSERT_EQ(d.items().size(), 1U);
  EXPECT_NE(to_string(d.items()[0]).find("engine.enable_prefix_caching: is off"),
            std::string::npos);
  s.cluster.pools[0].engine.enable_prefix_caching = false;
  Diagnostics silent;
  EXPECT_TRUE(resolve(s, no_files(), silent));
  EXPECT_TRUE(silent.items().empty());
}

// vLLM v0.12 with one group, v0.19 with two (gpt-oss: full and windowed): _report_kv_cache_config
// divides the blocks by the groups.
TEST(KvCacheTokens, BlocksAreSharedByTheGroupsUntilV020) {
  const EngineRules one{.block_size = 16, .num_gpu_blocks = 1001};
  EXPECT_EQ(reported_kv_tokens(one, {.preset = EnginePreset::k2025H2}), 16'016);
  const EngineRules two{
      .block_size = 16, .num_gpu_blocks = 1001, .window_groups = 1, .window_tokens = 128};
  EXPECT_EQ(reported_kv_tokens(two, {.preset = EnginePreset::k2026H1}), 8'000);
  EXPECT_EQ(blocks_of_reported_tokens(8'000, two, {.preset = EnginePreset::k2026H1}), 1000);
}

// get_kv_cache_capacity: a request of 4096 tokens takes 256 blocks of the full layers and, with two
// steps of 1024 tokens in flight, (127 + 2048) / 16 = 136 and one more of the windowed ones.
TEST(KvCacheTokens, NewestReleasesCountRequestsOfTheLongestLength) {
  const EngineRules r{.block_size = 16,
                      .num_gpu_blocks = 3930,
                      .max_num_batched_tokens = 1024,
                      .max_model_len = 4096,
                      .window_groups = 1,
                      .window_tokens = 128,
                      .async_scheduling = true};
  const KvLog log{.preset = EnginePreset::k2026H2};
  EXPECT_EQ(reported_kv_tokens(r, log), 40'960) << "ten requests of 256 + 137 blocks";
  EXPECT_EQ(blocks_of_reported_tokens(40'960, r, log), 3930);
  KvLog chunks = log;
  chunks.chunked_windows = true;
  EXPECT_EQ(blocks_of_reported_tokens(4'096, r, chunks), 256 + 136);
  KvLog staged = log;
  staged.pipeline_stages = 4;
  EXPECT_EQ(blocks_of_reported_tokens(4'096, r, staged), 256 + 257) << "no longer than a request";
}

TEST(KvCacheTokens, OfTheLogStandForBlocks) {
  Scenario s = one_pool("gpt-oss-20b", EnginePreset::k2026H1);
  s.cluster.pools[0].engine.kv_cache_tokens = 160'000;
  const ResolvedPool pool = resolved(s);
  EXPECT_EQ(pool.rules.num_gpu_blocks, 20'000);
  EXPECT_EQ(pool.kv_cache_tokens, 160'000);
  EXPECT_TRUE(pool.kv_plan.explicit_blocks);
  s.cluster.pools[0].engine.num_gpu_blocks = 20'000;
  Diagnostics d;
  EXPECT_FALSE(resolve(s, no_files(), d));
  // So few blocks are a warning, too.
  ASSERT_TRUE(d.has_errors());
  const auto error = std::ranges::find(d.items(), Severity::kError, &Diagnostic::severity);
  EXPECT_EQ(error->path, "cluster.pools[0].engine.kv_cache_tokens");
  s = one_pool("Qwen3-8B", EnginePreset::k2026H1);
  s.cluster.pools[0].engine.kv_cache_tokens = 16;  // One block, which is the null block.
  Diagnostics small;
  EXPECT_FALSE(resolve(s, no_files(), small));
  ASSERT_EQ(small.items().size(), 1U);
  EXPECT_EQ(small.items()[0].path, "cluster.pools[0].engine.kv_cache_tokens");
}

TEST(HybridKvManager, HalvesTheCacheOfGptOssBehindAPreciseRouterOf2025) {
  Scenario s = one_pool("gpt-oss-120b", EnginePreset::k2025H2);
  const ResolvedPool alone = resolved(s);
  ScenarioInputs inputs = no_files();
  inputs.endpoint_picker = precise_config(16);
  s.routing.balancer = BalancerKind::kEndpointPicker;
  const ResolvedPool behind = resolved(s, inputs);
  EXPECT_NEAR(static_cast<double>(alone.rules.num_gpu_blocks),
              2.0 * static_cast<double>(behind.rules.num_gpu_blocks), 2.0);
}

TEST(HybridKvManager, DisaggregatedPairsHaveWindowBlocksFrom2026H2On) {
  for (const EnginePreset preset : {EnginePreset::k2026H1, EnginePreset::k2026H2}) {
    Scenario s = one_pool("gpt-oss-120b", preset);
    s.cluster.pools.front().role = PoolRole::kDecode;
    const ResolvedPool pool = resolved(s);
    EXPECT_EQ(pool.rules.window_groups, preset == EnginePreset::k2026H2 ? 1 : 0);
  }
}

TEST(DecidingDocument, IsNoneWhereAnotherBalancerIsNamed) {
  Scenario s = one_pool("gpt-oss-120b", EnginePreset::k2025H2);
  ScenarioInputs inputs = no_files();
  inputs.endpoint_picker = precise_config(16);
  for (const BalancerKind balancer : {BalancerKind::kLeastLoad, BalancerKind::kEndpointPicker}) {
    s.routing.balancer = balancer;
    Diagnostics d;
    const std::optional<RunPlan> plan = resolve(s, inputs, d);
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(plan->endpoint_picker.has_value(), balancer == BalancerKind::kEndpointPicker);
    EXPECT_EQ(plan->pools.front().rules.window_groups > 0, balancer == BalancerKind::kLeastLoad)
        << "nobody listens to KV events, so the hybrid manager is on";
  }
}

TEST(GraphMemory, IsSetAsideByTheNewestReleases) {
  EngineConfig c;
  EXPECT_EQ(graph_memory_share(c), 0);
  c.preset = EnginePreset::k2026H2;
  EXPECT_NEAR(graph_memory_share(c), 0.0152, 1e-9) << "vLLM's log: 0.82 is as much as 0.8048 was";
  c.enforce_eager = true;
  EXPECT_EQ(graph_memory_share(c), 0);
}

/// Two H100 with Qwen3-32B: 4 MiB per block of 16 tokens.
TierRules tiers_of(const KvTierConfig& config, EnginePreset preset = EnginePreset::k2026H2) {
  Scenario s = one_pool("Qwen3-32B", preset);
  s.cluster.pools[0].tensor_parallel = 2;
  s.cluster.pools[0].engine.kv_tiers = config;
  return resolved(s).rules.tiers;
}

TEST(KvTierRules, LmcacheKeepsFiveGibPerGpuInChunksOf256Tokens) {
  const TierRules r = tiers_of({.connector = KvConnector::kLmcache});
  EXPECT_EQ(r.chunk_blocks, 16);
  EXPECT_EQ(r.cpu_chunks, 2 * 5 * 1024 / 64);
  EXPECT_EQ(r.link_bytes_per_s, 2 * 54.6e9);
  EXPECT_TRUE(r.copies_in_steps && r.prompt_only);
  EXPECT_FALSE(r.pulls());
  EXPECT_FALSE(tiers_of({.connector = KvConnector::kLmcache, .cpu_gib_per_gpu = 0}).in_use());
}

TEST(KvTierRules, ACopyTakesAFixedTimeBesideItsBytes) {
  const KvTierConfig offloading{.connector = KvConnector::kOffloading, .cpu_gib = 1};
  const auto rate = [](double bytes) { return bytes / (0.44e-6 + bytes / 54.6e9); };
  EXPECT_NEAR(tiers_of(offloading).link_bytes_per_s, 2 * rate(2 << 20), 1) << "2 MiB per GPU";
  Scenario s = one_pool("gpt-oss-120b", EnginePreset::k2026H2);
  s.cluster.pools[0].engine.kv_tiers = offloading;
  EXPECT_NEAR(resolved(s).rules.tiers.link_bytes_per_s, rate(32 << 10), 1)
      << "blocks of one layer, because windowed layers form a group of their own";
}

TEST(KvTierRules, EveryGpuGivesFourGibToMooncakeUnlessTheStoreStandsAlone) {
  const TierRules given = tiers_of({.connector = KvConnector::kMooncakeStore});
  EXPECT_EQ(given.cpu_chunks, 2 * 4 * 1024 / 4);
  EXPECT_TRUE(given.shared_store && !given.whole_store && given.keeps_blocks());
  const TierRules alone = tiers_of({.connector = KvConnector::kMooncakeStore, .cpu_gib = 100});
  EXPECT_EQ(alone.cpu_chunks, 100 * 1024 / 4);
  EXPECT_TRUE(alone.whole_store);
}

TEST(KvTierRules, FilesHaveThreadsAndComeWithTheNewestPreset) {
  KvTierConfig config{.cpu_gib = 1};
  config.disk = KvDiskConfig{.root = "/kv"};
  const DiskRules files = tiers_of(config).disk;
  EXPECT_EQ(files.read_threads, 16);
  EXPECT_EQ(files.write_threads, 16);
  EXPECT_EQ(files.thread_bytes_per_s, 3e9);
  EXPECT_FALSE(files.shared);
  EXPECT_FALSE(tiers_of(config, EnginePreset::k2026H1).disk.in_use());
}

TEST(KvTierRules, WrongKeysAreErrorsBeforeAnythingIsComputed) {
  const auto said = [](const KvTierConfig& config) {
    Scenario s = one_pool("Qwen3-32B", EnginePreset::k2026H2);
    s.cluster.pools[0].engine.kv_tiers = config;
    Diagnostics d;
    resolve(s, no_files(), d);
    std::string all;
    for (const Diagnostic& item : d.items()) all += to_string(item) + "\n";
    return all;
  };
  const auto has = [&](const KvTierConfig& config, const char* part) {
    EXPECT_NE(said(config).find(part), std::string::npos) << part << "\n" << said(config);
  };
  has({.connector = KvConnector::kLmcache, .cpu_gib = 20, .chunk_tokens = 8},
      "chunk_tokens: must be a multiple of block_size (got 8)");
  has({.cpu_gib = 1, .cpu_gib_per_gpu = 2}, "cpu_gib_per_gpu: says the same as cpu_gib");
  has({.cpu_gib = 1, .cpu_chunks = 3}, "cpu_chunks: says the same as the size in GiB");
  has({}, "cpu_gib: is needed by connector offloading");
  has({.cpu_gib = 0}, "has no memory for a single chunk: the servers run without the tiers");
  has({.cpu_gib = 20, .chunk_tokens = 1 << 20}, "has no memory for a single chunk");
  has({.connector = KvConnector::kLmcache, .pulls = KvPullConfig{}},
      "pulls: is not modelled: no server pulls from another one");
}

TEST(MoeBackend, IsSaidToHaveNoEffectWithoutExpertsInFourBits) {
  const auto said = [](const char* model, MoeBackend backend) {
    Scenario s = one_pool(model, EnginePreset::k2026H1);
    s.cluster.pools[0].tensor_parallel = 8;
    s.cluster.pools[0].engine.moe_backend = backend;
    Diagnostics d;
    resolve(s, no_files(), d);
    for (const Diagnostic& item : d.items())
      if (item.path == "cluster.pools[0].engine.moe_backend") return item.message;
    return std::string();
  };
  EXPECT_EQ(said("Qwen3-30B-A3B", MoeBackend::kMarlin),
            "has no effect: Qwen3-30B-A3B has no experts in 4-bit floating point");
  EXPECT_EQ(said("Qwen3-32B", MoeBackend::kTriton),
            "has no effect: Qwen3-32B has no experts in 4-bit floating point");
  EXPECT_EQ(said("gpt-oss-120b", MoeBackend::kMarlin), "");
  EXPECT_EQ(said("Qwen3-32B", MoeBackend::kAuto), "");
}

TEST(KvTierRules, GroupsOfLayersAreForOffloading) {
  Scenario s = one_pool("gpt-oss-120b", EnginePreset::k2026H2);
  s.cluster.pools[0].engine.kv_tiers = KvTierConfig{.connector = KvConnector::kLmcache};
  EXPECT_EQ(resolved(s).rules.window_groups, 0) << "LMCacheConnectorV1 is not SupportsHMA";
  EXPECT_TRUE(resolved(s).rules.tiers.in_use());
  s.cluster.pools[0].engine.kv_tiers->connector = KvConnector::kMooncakeStore;
  EXPECT_GT(resolved(s).rules.window_groups, 0);
  EXPECT_FALSE(resolved(s).rules.tiers.in_use());
}

Scenario sglang_pool(const std::string& model) {
  Scenario s = one_pool(model, EnginePreset::k2026H1);
  s.cluster.pools[0].engine.kind = EngineKind::kSglang;
  return s;
}

// 85.5e9 bytes: 0.834 of them, less 1.2e9 of the context and 32.76 G parameters on two GPUs.
TEST(SglangPool, MemoryAndKernelsAreSglangs) {
  Scenario s = sglang_pool("Qwen3-32B");
  s.cluster.pools[0].tensor_parallel = 2;
  const ResolvedPool pool = resolved(s);
  EXPECT_EQ(pool.rules.block_size, 1);
  const double bytes = 0.834 * 85.5e9 - 1.2e9 - pool.kv_plan.weights;
  EXPECT_NEAR(static_cast<double>(pool.rules.num_gpu_blocks), bytes / (131'072), 2)
      << "64 layers of 4 heads of 128, keys and values, two bytes";
  EXPECT_EQ(pool.rules.max_num_seqs, 4096);
  EXPECT_EQ(pool.latency->provenance(),
            "measured kernels of H100-SXM with SGLang 0.5.14: Qwen3-32B tp2")
      << "no curve, which would be vLLM's";
  s.cluster.pools[0].engine.kv_cache_tokens = 100'000;
  EXPECT_EQ(resolved(s).rules.num_gpu_blocks, 100'001);
  EXPECT_EQ(resolved(s).kv_cache_tokens, 100'000);
  s.cluster.pools[0].engine.sglang = SglangConfig{.page_size = 64};
  EXPECT_EQ(resolved(s).rules.num_gpu_blocks, 1563);
  EXPECT_EQ(resolved(s).rules.block_size, 64);
}

TEST(PipelinePool, StagesOverlapWhereACoreStandsAlone) {
  const auto resolved_with = [](EnginePreset preset, auto change, std::string& said) {
    Scenario s = one_pool("Qwen3-32B", preset);
    s.cluster.pools[0].pipeline_parallel = 2;
    change(s.cluster.pools[0]);
    Diagnostics d;
    const std::optional<RunPlan> plan = resolve(s, no_files(), d);
    said = d.items().empty() ? "" : d.items().front().path + " " + d.items().front().message;
    return plan ? std::optional(plan->pools[0].rules) : std::nullopt;
  };
  std::string said;
  const auto nothing = [](PoolConfig&) {};
  for (const EnginePreset preset : {EnginePreset::k2025H2, EnginePreset::k2026H1}) {
    const std::optional<EngineRules> rules = resolved_with(preset, nothing, said);
    ASSERT_TRUE(rules) << said;
    EXPECT_EQ(said, "");
    EXPECT_EQ(rules->pipeline_stages, 2);
    EXPECT_FALSE(rules->async_scheduling) << "scheduled from results";
  }
  const auto ranks = [](PoolConfig& p) { p.data_parallel = 2; };
  const std::optional<EngineRules> step = resolved_with(EnginePreset::k2025H2, ranks, said);
  ASSERT_TRUE(step) << said;
  EXPECT_EQ(step->pipeline_stages, 1);
  EXPECT_EQ(said,
            "cluster.pools[0].pipeline_parallel stages run one after another here where "
            "there are DP ranks in lock step; vLLM keeps a batch in each, which can bring up "
            "to 2 times the throughput of a saturated server");
  EXPECT_EQ(resolved_with(EnginePreset::k2026H1, ranks, said)->pipeline_stages, 2)
      << "ranks of a dense model";
  const auto tiers = [](PoolConfig& p) { p.engine.kv_tiers = KvTierConfig{.cpu_gib = 10}; };
  const std::optional<EngineRules> offloading = resolved_with(EnginePreset::k2026H1, tiers, said);
  ASSERT_TRUE(offloading) << said;
  EXPECT_EQ(offloading->pipeline_stages, 1);
  EXPECT_TRUE(offloading->async_scheduling);
  EXPECT_NE(said.find("where there are kv_tiers;"), std::string::npos) << said;
  const auto async = [](PoolConfig& p) { p.engine.async_scheduling = true; };
  EXPECT_TRUE(resolved_with(EnginePreset::k2026H1, async, said));
  EXPECT_FALSE(resolved_with(EnginePreset::k2025H2, async, said));
  EXPECT_EQ(said,
            "cluster.pools[0].engine.async_scheduling cannot be true with pipeline_parallel "
            "in presets of 2025: vLLM refuses both together");
}

TEST(SharedContext, BlocksHoldAsManyTimesTheTokens) {
  Scenario s = one_pool("DeepSeek-R1", EnginePreset::k2026H1);
  s.cluster.pools[0].accelerator = "H200-SXM";
  s.cluster.pools[0].tensor_parallel = 8;
  s.cluster.pools[0].latency_model = "roofline";
  const ResolvedPool alone = resolved(s);
  s.cluster.pools[0].decode_context_parallel = 8;
  const ResolvedPool shared = resolved(s);
  EXPECT_EQ(shared.rules.block_size, 8 * alone.rules.block_size);
  EXPECT_EQ(shared.rules.num_gpu_blocks, alone.rules.num_gpu_blocks);
  EXPECT_EQ(shared.kv_cache_tokens, 8 * alone.kv_cache_tokens);
  EXPECT_NE(shared.latency->provenance().find(" dcp8"), std::string::npos);
  const auto said = [&](auto change) {
    Scenario other = s;
    change(other.cluster.pools[0]);
    Diagnostics d;
    EXPECT_FALSE(resolve(other, no_files(), d));
    return d.items().empty() ? "" : d.items().front().path + " " + d.items().front().message;
  };
  const std::string key = "cluster.pools[0].decode_context_parallel ";
  EXPECT_EQ(said([](PoolConfig& p) { p.engine.kv_tiers = KvTierConfig{.cpu_gib = 10}; }),
            key + "is not simulated beside kv_tiers");
  EXPECT_EQ(said([](PoolConfig& p) { p.role = PoolRole::kDecode; }),
            key + "is not simulated in prefill and decode pools");
  EXPECT_EQ(said([](PoolConfig& p) { p.decode_context_parallel = 3; }),
            key + "must divide the 8 tensor-parallel GPUs (got 3)");
  EXPECT_EQ(said([](PoolConfig& p) { p.latency_model = "kernels"; }),
            "cluster.pools[0].latency_model cannot be kernels: attention over KV that GPUs share "
            "has no measured kernels");
}

TEST(SglangPool, WhatItLacksIsSaid) {
  const auto error = [](const Scenario& s) {
    Diagnostics d;
    EXPECT_FALSE(resolve(s, no_files(), d));
    return d.items().front().path + " " + d.items().front().message;
  };
  const auto with = [](auto change) {
    Scenario s = sglang_pool("Qwen3-32B");
    change(s.cluster.pools[0]);
    return s;
  };
  EXPECT_EQ(error(with([](PoolConfig& p) { p.data_parallel = 2; })),
            "cluster.pools[0].data_parallel must be 1: SGLang's data parallelism is not simulated");
  EXPECT_EQ(error(with([](PoolConfig& p) { p.pipeline_parallel = 2; })),
            "cluster.pools[0].pipeline_parallel must be 1: SGLang's pipeline is not simulated");
  EXPECT_EQ(error(with([](PoolConfig& p) { p.engine.watermark = 0.1; })),
            "cluster.pools[0].engine.watermark means nothing to engine.kind sglang");
  EXPECT_EQ(error(with([](PoolConfig& p) {
              p.engine.sglang = SglangConfig{.page_size = 64, .chunked_prefill_size = 100};
            })),
            "cluster.pools[0].engine.sglang.chunked_prefill_size must be a multiple of page_size "
            "(got 100)");
  EXPECT_EQ(error(with([](PoolConfig& p) { p.model = "Qwen3.5-27B"; })),
            "cluster.pools[0].model has layers that are simulated for vLLM only");
  Scenario vllm = one_pool("Qwen3-32B", EnginePreset::k2026H1);
  vllm.cluster.pools[0].engine.sglang = SglangConfig{};
  EXPECT_EQ(error(vllm), "cluster.pools[0].engine.sglang means nothing to engine.kind vllm");
}

}  // namespace
}  // namespace routesim::sim::testing
