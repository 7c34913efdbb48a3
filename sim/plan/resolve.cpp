#include "sim/plan/resolve.h"

#include <cmath>
#include <string>
#include <utility>

#include "models/kernels/make_latency_model.h"
#include "models/lora.h"
#include "models/roofline.h"
#include "policies/config/make_scheduler.h"
#include "sim/plan/adapter_demand.h"
#include "sim/plan/discovery.h"
#include "sim/plan/fleet_plan.h"
#include "sim/plan/mix.h"
#include "sim/plan/resolve_sglang.h"
#include "sim/plan/router_costs.h"
#include "sim/plan/speculation_plan.h"
#include "workloads/mix/mixed_load.h"
#include "workloads/warmed_load.h"

namespace routesim::sim {

namespace {

/// Leaves a run days for its last answers before the clock of its steps ends (simulation.cpp).
constexpr double kLongestLoadDays = 100;

/// Requests in flight take some 1.2 KB each: 2.4 GB.
constexpr std::int64_t kMostAtOnce = 2'000'000;

/// The A100 is excepted by name in vLLM's defaults.
bool has_large_defaults(const models::AcceleratorSpec& gpu) {
  return gpu.memory_bytes >= 70.0 * (1 << 30) && gpu.name.find("A100") == std::string::npos;
}

/// Ranks of one server wait for each other in every step where experts are spread over all of them
/// (with expert parallelism, or as one wide tensor-parallel group), and until v0.13 in any model
/// (vllm-project/vllm#30739).
bool steps_together(const PoolConfig& c, const models::ModelSpec& model) {
  return c.data_parallel > 1 && (model.is_moe() || !from_2026(c.engine.preset));
}

/// NIXL's, of a KV block that one GPU pulls. Keys and values are apart until some release of 2026:
/// in August a transfer of 167 MB in blocks of 64 had 1,785 descriptors (vllm-project/vllm#50913).
/// A drafter's layers are pulled, too.
std::int64_t descriptors(const PoolConfig& c, const models::ModelSpec& model,
                         std::int64_t drafter_layers, bool hybrid) {
  const bool joined = model.is_mla() || c.engine.preset == EnginePreset::k2026H2;
  return ((hybrid ? model.kv_capacity_layers() : model.layers) + drafter_layers) *
         (joined ? 1 : 2) / c.pipeline_parallel;
}

double drafter_bytes(const std::optional<models::Drafter>& d, const models::Parallelism& p) {
  return d ? models::drafter_bytes_per_gpu(*d, p) : 0;
}

std::int64_t drafter_block_bytes(const std::optional<models::Drafter>& d, models::KvDtype dtype,
                                 const models::Parallelism& p, const models::KvLayout& layout) {
  return d ? models::drafter_block_bytes(*d, dtype, p, layout.block_size) : 0;
}

/// Slots for adapters are allocated when a server starts.
double adapter_bytes(const EngineConfig& c, const models::ModelSpec& model,
                     const models::Parallelism& p) {
  const double experts =
      from_2026(c.preset) ? models::lora_expert_slot_bytes(model, p, c.max_lora_rank) : 0;
  return static_cast<double>(c.max_loras.value_or(0)) *
         (models::lora_bytes_per_gpu(model, p, c.max_lora_rank) + experts);
}

ApiServerTimes api_server(const PoolConfig& c) {
  const bool internal = c.data_parallel_balancing == DataParallelBalancing::kInternal;
  return resolve_api_server(c.api_server, c.engine.preset, internal ? c.data_parallel : 1);
}

/// The document that decides: a variant may name another balancer than the one its base has a
/// document for.
std::optional<policies::EndpointPickerConfig> deciding_document(const Scenario& scenario,
                                                                const ScenarioInputs& inputs) {
  if (scenario.routing.balancer != BalancerKind::kEndpointPicker) return std::nullopt;
  return inputs.endpoint_picker;
}

/// The router has a precise prefix index, which lives on the engines' KV events.
bool listens_to_events(const std::optional<policies::EndpointPickerConfig>& config) {
  if (!config) return false;
  const std::optional<policies::Requirements> needed = policies::requirements(*config);
  return needed && needed->signals.block_keys;
}

class Resolver {
 public:
  /// `publishes_events`: somebody listens to the engines' KV events.
  Resolver(const ScenarioInputs& inputs, bool publishes_events, Diagnostics& diagnostics)
      : inputs_(inputs), diagnostics_(diagnostics), publishes_events_(publishes_events) {}

  std::optional<ResolvedPool> pool(const PoolConfig& config, const std::string& path);
  void check_names(const PoolConfig& config, const std::string& path) { (void)named(config, path); }
  void cross_rules(const Scenario& scenario);
  void check_profiles(const Scenario& s);
  void warn_of_idle_keys(const Scenario& s);
  std::vector<AdapterDemand> adapters(const Scenario& scenario);
  void relocate(const Diagnostics& found, const std::string& path, bool tokens_given = false);
  void error(const std::string& path, const std::string& message, const std::string& hint = {}) {
    diagnostics_.error(inputs_.where, path, message, hint);
    ++errors_;
  }
  int errors() const { return errors_; }

  void check_files(const std::vector<ResolvedPool>& pools);

 private:
  struct Named {
    const models::AcceleratorSpec* gpu = nullptr;
    const models::ModelSpec* model = nullptr;
    models::KvDtype kv_dtype = models::KvDtype::kBf16;
  };
  std::optional<Named> named(const PoolConfig& config, const std::string& path);
  std::shared_ptr<const models::LatencyModel> latency(
      const PoolConfig& config, const models::AcceleratorSpec& gpu, const models::ModelSpec& model,
      const models::Parallelism& parallelism, const models::RooflineOptions& options,
      const std::optional<models::Drafter>& drafter, const std::string& path);
  std::optional<models::Drafter> drafter(const PoolConfig& config, const models::ModelSpec& model,
                                         const models::KvLayout& layout, const std::string& path);
  std::optional<std::int64_t> stated_blocks(const PoolConfig& config, const EngineRules& rules,
                                            const KvLog& log, const std::string& path);
  bool check_tiers(const KvTierConfig& tiers, std::int64_t block_size, const std::string& at);
  void add_tiers(ResolvedPool& pool, const TierHost& host, const std::string& path);
  void set_stages(ResolvedPool& pool, const std::string& path);
  PoolConfig adapted(PoolConfig c, const models::ModelSpec& model, const models::KvLayout& layout,
                     const std::string& path);
  std::optional<models::KvDtype> kv_dtype(const PoolConfig& config, const std::string& path);

  const ScenarioInputs& inputs_;
  Diagnostics& diagnostics_;
  bool publishes_events_;
  int errors_ = 0;
};

/// Windowed layers and those with a state have groups of blocks of their own.
void set_groups(EngineRules& rules, const models::ModelSpec& model,
                const models::KvLayout& layout) {
  rules.window_groups = layout.fixed_groups;
  rules.window_tokens = layout.states ? 0 : model.sliding_window;
  rules.state_groups = layout.states;
}

/// Releases of 2025 take Marlin's kernels where the GPU does not multiply in four bits.
bool marlin_experts(const EngineConfig& c, const models::AcceleratorSpec& gpu) {
  if (c.moe_backend != MoeBackend::kAuto) return c.moe_backend == MoeBackend::kMarlin;
  return !from_2026(c.preset) && gpu.fp4_tflops == 0;
}

models::Parallelism parallelism_of(const PoolConfig& c) {
  return {.tp = c.tensor_parallel,
          .pp = c.pipeline_parallel,
          .dp = c.data_parallel,
          .ep = c.expert_parallel ? c.tensor_parallel * c.data_parallel : 1,
          .dcp = c.decode_context_parallel};
}

/// The scenario with one load of its mix alone; as it is without a mix.
Scenario with_load(const Scenario& scenario, std::size_t part) {
  Scenario out = scenario;
  if (!scenario.workload.mix.empty()) out.workload = part_alone(scenario.workload, part);
  return out;
}

/// The first thing that is not simulated beside decode context parallelism.
std::optional<PoolFault> shared_kv_fault(const PoolConfig& c) {
  if (c.decode_context_parallel == 1) return std::nullopt;
  const auto beside = [](const std::string& what) {
    return PoolFault{"decode_context_parallel", "is not simulated " + what,
                     "leave one of the two out"};
  };
  if (c.engine.kind == EngineKind::kSglang) return beside("with engine.kind sglang");
  if (c.role != PoolRole::kBoth) return beside("in prefill and decode pools");
  if (c.engine.kv_tiers) return beside("beside kv_tiers");
  if (c.engine.speculative) return beside("beside speculative");
  return std::nullopt;
}

std::string suggestion(const std::string& name, const std::string& otherwise) {
  return name.empty() ? otherwise : "did you mean `" + name + "`?";
}

/// An unknown model is misspelled, of a family whose layers are not simulated, or new.
std::pair<std::string, std::string> unknown_model(const models::Catalogue& catalogue,
                                                  const std::string& name) {
  if (const std::string_view part = models::unsimulated_part(name); !part.empty())
    return {"has " + std::string(part) + ", which is not simulated (got " + name + ")",
            "write the model as a catalogue entry of what comes closest"};
  return {"unknown model (got " + name + ")",
          suggestion(catalogue.suggest_model(name),
                     "see `routesim list models`, or give the path of the model's config.json")};
}

std::optional<models::KvDtype> Resolver::kv_dtype(const PoolConfig& c, const std::string& path) {
  if (c.kv_cache_dtype == "auto" || c.kv_cache_dtype == "bf16") return models::KvDtype::kBf16;
  if (c.kv_cache_dtype.rfind("fp8", 0) == 0) return models::KvDtype::kFp8;
  error(path + ".kv_cache_dtype", "must be auto, bf16 or fp8 (got " + c.kv_cache_dtype + ")");
  return std::nullopt;
}

std::shared_ptr<const models::LatencyModel> Resolver::latency(
    const PoolConfig& c, const models::AcceleratorSpec& gpu, const models::ModelSpec& model,
    const models::Parallelism& parallelism, const models::RooflineOptions& options,
    const std::optional<models::Drafter>& drafter, const std::string& path) {
  std::string why;
  // A fitted curve has one price for a sequence that decodes, and none for its drafts.
  const bool automatic = drafter && c.latency_model == "auto";
  const std::string name = automatic ? "kernels" : c.latency_model;
  auto named = models::latency_model_named(name, inputs_.catalogue, gpu, model, parallelism,
                                           enum_name(c.engine.preset), options, why);
  if (named == nullptr && automatic)
    named = models::latency_model_named("roofline", inputs_.catalogue, gpu, model, parallelism,
                                        enum_name(c.engine.preset), options, why);
  if (named != nullptr && drafter)
    named = models::make_speculative_latency(named, *drafter, gpu, parallelism, options,
                                             c.latency_model != "roofline");
  if (named == nullptr)
    error(path + ".latency_model", "cannot be " + c.latency_model + ": " + why,
          c.latency_model == "measured" ? "add step_times to a file that catalogue names"
                                        : "auto takes what is known best");
  return named;
}

std::optional<models::Drafter> Resolver::drafter(const PoolConfig& c,
                                                 const models::ModelSpec& model,
                                                 const models::KvLayout& layout,
                                                 const std::string& path) {
  Diagnostics found;
  auto made = plan_drafter(c, model, layout, parallelism_of(c), inputs_.catalogue, path, found);
  for (Diagnostic d : found.items()) {
    d.where = inputs_.where;
    diagnostics_.add(d);
    if (d.severity == Severity::kError) ++errors_;
  }
  return made;
}

// Pipeline stages overlap in engine cores that stand alone and have no tiers. There passes are
// scheduled from results, with async_scheduling, too: no step holds a request that is in a batch
// under way (vllm-project/vllm#32359). What that hides of the host's work, the step times know.
void Resolver::set_stages(ResolvedPool& pool, const std::string& path) {
  const PoolConfig& c = pool.config;
  if (c.pipeline_parallel == 1 || pool.rules.sglang) return;
  if (c.engine.async_scheduling.value_or(false) && !from_2026(c.engine.preset))
    error(path + ".engine.async_scheduling",
          "cannot be true with pipeline_parallel in presets of 2025: vLLM refuses both together",
          "leave it out; presets of 2026 have both");
  const bool tiers = pool.rules.tiers.in_use();
  if (!pool.lock_step && !tiers) {
    pool.rules.pipeline_stages = c.pipeline_parallel;
    pool.rules.async_scheduling = false;
    return;
  }
  diagnostics_.warning(inputs_.where, path + ".pipeline_parallel",
                       "stages run one after another here where there are " +
                           std::string(tiers ? "kv_tiers" : "DP ranks in lock step") +
                           "; vLLM keeps a batch in each, which can bring up to " +
                           std::to_string(c.pipeline_parallel) +
                           " times the throughput of a saturated server");
}

// The catalogue entries that a pool names, and its KV format; errors where something is unknown.
std::optional<Resolver::Named> Resolver::named(const PoolConfig& c, const std::string& path) {
  const int before = errors_;
  Named out;
  out.gpu = inputs_.catalogue.find_accelerator(c.accelerator);
  if (out.gpu == nullptr)
    error(path + ".accelerator", "unknown accelerator (got " + c.accelerator + ")",
          suggestion(inputs_.catalogue.suggest_accelerator(c.accelerator),
                     "see `routesim list accelerators`"));
  out.model = inputs_.catalogue.find_model(c.model);
  if (out.model == nullptr) {
    const auto [message, hint] = unknown_model(inputs_.catalogue, c.model);
    error(path + ".model", message, hint);
  } else if (inputs_.catalogue.is_fine_tune(c.model)) {
    diagnostics_.warning(
        inputs_.where, path + ".model",
        "is taken for " + out.model->name + ", which its name holds (got " + c.model + ")",
        "give the path of its config.json if its layers differ");
  }
  const std::optional<models::KvDtype> dtype = kv_dtype(c, path);
  if (c.latency_model != "auto" && c.latency_model != "measured" && c.latency_model != "kernels" &&
      c.latency_model != "roofline")
    error(path + ".latency_model",
          "must be auto, measured, kernels or roofline (got " + c.latency_model + ")");
  if (out.model != nullptr && out.model->max_context <= 0 && !c.engine.max_model_len)
    error(path + ".engine.max_model_len",
          "is needed: model " + out.model->name + " states no max_context",
          "set it here, or max_context in the catalogue");
  if (errors_ != before) return std::nullopt;
  out.kv_dtype = *dtype;
  return out;
}

// By num_gpu_blocks, or by the tokens that stand for them.
std::optional<std::int64_t> Resolver::stated_blocks(const PoolConfig& c, const EngineRules& rules,
                                                    const KvLog& log, const std::string& path) {
  if (!c.engine.kv_cache_tokens) return c.engine.num_gpu_blocks;
  // --max-total-tokens; SGLang's page that holds nothing comes on top.
  if (rules.sglang) return *c.engine.kv_cache_tokens / rules.block_size + 1;
  if (c.engine.num_gpu_blocks)
    error(path + ".engine.kv_cache_tokens", "says the same as num_gpu_blocks",
          "give one of them: the log's tokens, or its blocks");
  return blocks_of_reported_tokens(*c.engine.kv_cache_tokens, rules, log);
}

HybridKvUse hybrid_use(const PoolConfig& c, bool kv_events, const models::ModelSpec& model) {
  const bool lmcache = c.engine.kv_tiers && c.engine.kv_tiers->connector == KvConnector::kLmcache;
  return {.kv_events = kv_events,
          .kv_transfer = c.role != PoolRole::kBoth || c.engine.kv_tiers.has_value(),
          .one_group = lmcache,
          .chunked_windows = model.chunked_windows};
}

/// A worker copies a block of all layers at once where they form one group, which vLLM lays out in
/// one piece from v0.12 on, else a block of one layer.
std::int64_t descriptor_bytes(const ResolvedPool& pool, const models::ModelSpec& model) {
  const double block = static_cast<double>(pool.config.engine.block_size) *
                       pool.kv_bytes_per_token / models::as_real(pool.config.tensor_parallel);
  const std::int64_t layers = pool.rules.window_groups > 0 ? model.kv_capacity_layers() : 1;
  return static_cast<std::int64_t>(block) / layers;
}

TierHost tier_host(const ResolvedPool& pool, const models::AcceleratorSpec& gpu,
                   const models::ModelSpec& model) {
  return {.preset = pool.config.engine.preset,
          .block_size = pool.config.engine.block_size,
          .kv_bytes_per_token = pool.kv_bytes_per_token,
          .gpus = pool.config.tensor_parallel * pool.config.pipeline_parallel,
          .link_bytes_per_s = gpu.host_link_gb_per_s * 1e9,
          .descriptor_bytes = descriptor_bytes(pool, model)};
}

// Refuses keys of which no tier can be made.
bool Resolver::check_tiers(const KvTierConfig& tiers, std::int64_t block_size,
                           const std::string& at) {
  const std::int64_t before = errors_;
  const bool sized = tiers.cpu_gib || tiers.cpu_gib_per_gpu || tiers.cpu_chunks;
  if (tiers.connector == KvConnector::kOffloading && !sized)
    error(at + "cpu_gib", "is needed by connector offloading", "give the host memory it gets, GiB");
  if (tiers.cpu_gib && tiers.cpu_gib_per_gpu)
    error(at + "cpu_gib_per_gpu", "says the same as cpu_gib", "give one of them");
  if (tiers.cpu_chunks && (tiers.cpu_gib || tiers.cpu_gib_per_gpu))
    error(at + "cpu_chunks", "says the same as the size in GiB", "give one of them");
  if (tiers.chunk_tokens && tiers.chunk_blocks)
    error(at + "chunk_blocks", "says the same as chunk_tokens", "give one of them");
  if (tiers.chunk_tokens && *tiers.chunk_tokens % block_size != 0)
    error(at + "chunk_tokens",
          "must be a multiple of block_size (got " + std::to_string(*tiers.chunk_tokens) + ")",
          "block_size is " + std::to_string(block_size));
  return errors_ == before;
}

// Pools with one root share a file system, which has one speed.
void Resolver::check_files(const std::vector<ResolvedPool>& pools) {
  for (std::size_t i = 0; i < pools.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) {
      const DiskRules& a = pools[k].rules.tiers.disk;
      const DiskRules& b = pools[i].rules.tiers.disk;
      if (!a.in_use() || !b.in_use() || a.root != b.root) continue;
      if (a.shared == b.shared && a.bytes_per_s == b.bytes_per_s) continue;
      error("cluster.pools[" + std::to_string(i) + "].engine.kv_tiers.disk",
            "has another gb_per_s or shared than cluster.pools[" + std::to_string(k) +
                "] for the same root",
            "give both the same, or roots of their own");
      return;
    }
}

// The tiers of a pool. Says what is wrong with them, and what is left out.
void Resolver::add_tiers(ResolvedPool& pool, const TierHost& host, const std::string& path) {
  const KvTierConfig& tiers = *pool.config.engine.kv_tiers;
  const std::string at = path + ".engine.kv_tiers.";
  const auto left_out = [&](const std::string& key, const std::string& why) {
    diagnostics_.warning(inputs_.where, at + key, "is not modelled: " + why);
  };
  const bool lmcache = tiers.connector == KvConnector::kLmcache;
  const bool mooncake = tiers.connector == KvConnector::kMooncakeStore;
  if (tiers.connector != KvConnector::kOffloading && !lmcache && !mooncake)
    return left_out("connector", "the servers run without the tiers of " +
                                     std::string(enum_name(tiers.connector)));
  const std::string without =
      "the servers run without the tiers of " + std::string(enum_name(tiers.connector));
  if ((lmcache || mooncake) && !pool.rules.enable_prefix_caching)
    return left_out("connector",
                    "without enable_prefix_caching there are no keys of blocks, and " + without);
  if ((lmcache || mooncake) && pool.rules.window_groups > 0)
    return left_out("connector", "the model has groups of windowed layers, and " + without);
  if (!check_tiers(tiers, pool.rules.block_size, at)) return;
  pool.rules.tiers = resolve_tiers(tiers, host);
  if (!pool.rules.tiers.in_use()) {
    diagnostics_.warning(inputs_.where, at + "connector",
                         "has no memory for a single chunk: " + without);
    return;
  }
  if (tiers.eviction.value_or(KvEviction::kLru) != KvEviction::kLru)
    left_out("eviction", "the blocks least recently used make room, as with lru");
  if (tiers.blocking_loads.value_or(lmcache) != lmcache)
    left_out("blocking_loads", lmcache ? "a step waits for the loads of its requests"
                                       : "steps go on while requests wait for their loads");
  if ((lmcache || mooncake) && !tiers.prompt_only.value_or(true))
    left_out("prompt_only", "blocks of answers are not stored");
  if (tiers.disk && (lmcache || mooncake || pool.rules.window_groups > 0 ||
                     pool.config.engine.preset != EnginePreset::k2026H2)) {
    left_out("disk", "there is no tier below host memory");
    pool.rules.tiers.disk = {};
  } else if (tiers.disk && (tiers.disk->gib || tiers.disk->gib_per_gpu)) {
    left_out("disk", "files are never removed");
  }
  if (tiers.pulls && (lmcache || mooncake)) left_out("pulls", "no server pulls from another one");
  if (tiers.min_hit_tokens.value_or(0) > 0 && !lmcache)
    left_out("min_hit_tokens", "every hit is loaded");
  if (!pool.rules.enable_prefix_caching)
    error(path + ".engine.enable_prefix_caching", "is needed by kv_tiers",
          "tiers find blocks by the keys of the prefix cache");
}

EngineRules engine_rules(const PoolConfig& c, const models::ModelSpec& model,
                         const models::AcceleratorSpec& gpu) {
  if (c.engine.kind == EngineKind::kSglang)
    return resolve_sglang_engine(c.engine, model.max_context, sglang_device(c, gpu));
  return resolve_engine_rules(c.engine, model.max_context, has_large_defaults(gpu));
}

/// Share of the memory for weights and KV, and what comes with them.
double memory_share(const PoolConfig& c, const EngineRules& rules,
                    const models::AcceleratorSpec& gpu) {
  const double otherwise = rules.sglang ? default_mem_fraction(*rules.sglang, sglang_device(c, gpu))
                                        : default_gpu_memory_utilization(c.engine.preset);
  return c.engine.gpu_memory_utilization.value_or(otherwise);
}

/// The inputs of its KV cache that do not depend on the layout.
models::KvCacheInput kv_input(const PoolConfig& c, const EngineRules& rules,
                              const models::AcceleratorSpec& gpu, const models::ModelSpec& model) {
  models::KvCacheInput in{.accelerator = gpu, .model = model, .parallelism = parallelism_of(c)};
  in.gpu_memory_utilization = memory_share(c, rules, gpu);
  in.max_num_batched_tokens = rules.max_num_batched_tokens;
  in.max_num_seqs = rules.max_num_seqs;
  in.adapter_bytes = adapter_bytes(c.engine, model, in.parallelism);
  // SGLang's share is of weights and KV alone.
  if (rules.sglang)
    in.overhead_bytes = gpu.overhead_bytes;
  else
    in.graph_share = graph_memory_share(c.engine);
  return in;
}

models::RooflineOptions step_options(const PoolConfig& c, const EngineRules& rules,
                                     models::KvDtype dtype, const models::AcceleratorSpec& gpu) {
  models::RooflineOptions o{.kv_dtype = dtype,
                            .cuda_graphs = !c.engine.enforce_eager,
                            .full_graphs = c.engine.preset != EnginePreset::k2025Q3,
                            .async_scheduling = rules.async_scheduling,
                            .older_experts = marlin_experts(c.engine, gpu),
                            .older_fp8_cache = c.engine.preset != EnginePreset::k2026H2};
  if (!rules.sglang) return o;
  o.older_experts = o.older_fp8_cache = false;
  o.engine = models::ServingEngine::kSglang;
  o.largest_graph = rules.sglang->largest_graph;
  return o;
}

// The pool as its model makes its engine run it.
PoolConfig Resolver::adapted(PoolConfig c, const models::ModelSpec& model,
                             const models::KvLayout& layout, const std::string& path) {
  const auto warn = [&](const std::string& key, const std::string& message) {
    diagnostics_.warning(inputs_.where, path + key, message);
  };
  if (c.engine.moe_backend != MoeBackend::kAuto &&
      !(model.is_moe() && (model.weights == models::WeightDtype::kMxfp4 ||
                           model.weights == models::WeightDtype::kNvfp4)))
    warn(".engine.moe_backend",
         "has no effect: " + model.name + " has no experts in 4-bit floating point");
  if (c.engine.kind == EngineKind::kVllm && layout.block_size != c.engine.block_size &&
      !layout.states && model.compressed.empty() && c.decode_context_parallel == 1)
    warn(".engine.block_size", "is " + std::to_string(layout.block_size) +
                                   " for the layers that see everything, so that their blocks are "
                                   "as large as those of the windowed ones");
  c.engine.block_size = layout.block_size;
  if (!layout.states) return c;
  if (c.engine.enable_prefix_caching)
    warn(".engine.enable_prefix_caching",
         c.engine.preset == EnginePreset::k2026H2
             ? "is off: hits of prompts that end where a state was kept are not simulated"
             : "is off, as vLLM's default is for models whose layers keep a state: their hits are "
               "not simulated");
  if (c.role != PoolRole::kBoth)
    warn(".role",
         "moves keys and values only: the states of " + model.name + " are taken for free");
  c.engine.enable_prefix_caching = false;
  return c;
}

std::optional<ResolvedPool> Resolver::pool(const PoolConfig& given, const std::string& path) {
  const std::optional<Named> entries = named(given, path);
  if (!entries) return std::nullopt;
  const auto& [gpu, model, dtype] = *entries;
  std::optional<PoolFault> fault = sglang_fault(given, *model);
  if (!fault) fault = shared_kv_fault(given);
  if (fault) {
    error(path + "." + fault->key, fault->message, fault->hint);
    return std::nullopt;
  }
  const bool sglang = given.engine.kind == EngineKind::kSglang;
  const models::Parallelism parallelism = parallelism_of(given);
  const bool hybrid =
      !sglang && uses_hybrid_kv_manager(given.engine, hybrid_use(given, publishes_events_, *model));
  const std::int64_t asked =
      sglang ? given.engine.sglang.value_or(SglangConfig{}).page_size : given.engine.block_size;
  const models::KvLayout layout = models::kv_layout(*model, dtype, parallelism, asked, hybrid);
  ResolvedPool out;
  out.config = adapted(given, *model, layout, path);
  const PoolConfig& c = out.config;
  std::optional<models::Drafter> drafts;
  if (c.engine.speculative) drafts = drafter(c, *model, layout, path);
  if (c.engine.speculative && !drafts) return std::nullopt;
  out.api_server = api_server(c);
  out.rules = engine_rules(c, *model, *gpu);
  set_groups(out.rules, *model, layout);
  const KvLog log{.preset = c.engine.preset,
                  .chunked_windows = model->chunked_windows,
                  .pipeline_stages = c.pipeline_parallel};
  Diagnostics found;
  models::KvCacheInput memory = kv_input(c, out.rules, *gpu, *model);
  memory.kv_dtype = dtype;
  memory.block_size = asked;
  memory.num_gpu_blocks = stated_blocks(c, out.rules, log, path);
  memory.hybrid_manager = hybrid;
  memory.drafter_bytes = drafter_bytes(drafts, parallelism);
  memory.drafter_block_bytes = drafter_block_bytes(drafts, dtype, parallelism, layout);
  const std::optional<models::KvCachePlan> kv = models::plan_kv_cache(memory, found);
  relocate(found, path, c.engine.kv_cache_tokens.has_value());
  if (!kv) return std::nullopt;
  out.kv_plan = *kv;
  set_kv_blocks(out.rules, c.engine, kv->num_gpu_blocks);
  out.kv_cache_tokens = reported_kv_tokens(out.rules, log);
  out.latency =
      latency(c, *gpu, *model, parallelism, step_options(c, out.rules, dtype, *gpu), drafts, path);
  if (out.latency == nullptr) return std::nullopt;
  if (out.rules.max_loras > 0)
    out.latency = std::make_shared<models::LoraLatency>(
        out.latency, models::lora_costs(*gpu, *model, parallelism, c.engine.max_lora_rank));
  out.kv_bytes_per_token =
      models::as_real(kv->bytes_per_block * c.tensor_parallel) / models::as_real(layout.block_size);
  out.descriptors = descriptors(c, *model, drafts ? drafts->model.layers : 0, hybrid);
  if (c.engine.kv_tiers) add_tiers(out, tier_host(out, *gpu, *model), path);
  out.lock_step = steps_together(c, *model);
  out.start_up = start_up_of(c, *model, *gpu, out.rules);
  set_stages(out, path);
  return out;
}

// Errors of models/ are about its own structs; name the scenario's keys instead.
void Resolver::relocate(const Diagnostics& found, const std::string& path, bool tokens_given) {
  for (const Diagnostic& d : found.items()) {
    std::string key = d.path;
    if (key == "tp") key = "tensor_parallel";
    if (key == "pp") key = "pipeline_parallel";
    if (key == "dp") key = "data_parallel";
    if (key == "ep") key = "expert_parallel";
    if (key == "dcp") key = "decode_context_parallel";
    if (key == "num_gpu_blocks" && tokens_given) key = "kv_cache_tokens";
    if (key == "gpu_memory_utilization" || key == "num_gpu_blocks" || key == "kv_cache_tokens" ||
        key == "block_size" || key == "max_model_len")
      key = "engine." + key;
    Diagnostic moved = d;
    moved.where = inputs_.where;
    moved.path = key.empty() ? path : path + "." + key;
    diagnostics_.add(std::move(moved));
    if (d.severity == Severity::kError) ++errors_;
  }
}

void Resolver::cross_rules(const Scenario& s) {
  bool prefill = false, decode = false;
  for (const PoolConfig& p : s.cluster.pools) {
    prefill = prefill || p.role == PoolRole::kPrefill;
    decode = decode || p.role != PoolRole::kPrefill;
  }
  if (!decode && !s.cluster.pools.empty())
    error("cluster.pools", "no pool can decode", "give one pool role `both` or `decode`");
  for (const BalancerFault& fault : balancer_faults(s.routing))
    error("routing." + fault.key, fault.message, fault.hint);
  Diagnostics fleet;
  check_fleet(s, inputs_.where, fleet);
  for (const Diagnostic& d : fleet.items()) diagnostics_.add(d);
  errors_ += fleet.has_errors() ? 1 : 0;
  check_profiles(s);
  const std::optional<RetryConfig> retry =
      s.routing.gateway ? s.routing.gateway->retry : std::nullopt;
  if (retry && retry->max_interval && *retry->max_interval < retry->base_interval)
    error("routing.gateway.retry.max_interval", "must be at least base_interval");
  warn_of_idle_keys(s);
  const policies::BalancerRow& balancer = policies::balancer_row(s.routing.balancer);
  if (prefill && balancer.disaggregation == policies::Disaggregation::kNo)
    error("routing.balancer", std::string(balancer.name) + " reaches no prefill pool",
          "use an endpoint picker, or a balancer that `routesim list balancers` shows with "
          "prefill and decode");
  if (!prefill && balancer.disaggregation == policies::Disaggregation::kRequired)
    error("routing.balancer", std::string(balancer.name) + " needs a pool with role `prefill`");
  if (s.routing.balancer == BalancerKind::kEndpointPicker && !inputs_.endpoint_picker)
    error("routing.endpoint_picker", "balancer endpoint-picker needs a document");
  if (!s.workload.classes.empty() && s.workload.sheddable_fraction > 0)
    error("workload.sheddable_fraction", "stands beside workload.classes",
          "give a class a negative objective");
  Diagnostics classes;
  if (s.workload.mix.empty())
    workloads::check_traffic_classes(s.workload.classes, "workload.classes", classes);
  else
    check_mix(s.workload, classes);
  for (const Diagnostic& d : classes.items()) diagnostics_.add(d);
  errors_ += classes.has_errors() ? 1 : 0;
  for_each_load(s.workload, [this](const std::string& path, const workloads::Load& load,
                                   const std::optional<workloads::Demand>&) {
    if (load.tools_given == 1) return;
    std::string keys;
    for (const std::string& key : workloads::load_keys()) keys += (keys.empty() ? "" : ", ") + key;
    error(path,
          "exactly one source of load must be given (got " + std::to_string(load.tools_given) + ")",
          "one of " + keys);
  });
}

/// Keys that do nothing, or not what one may think, behind this router.
void Resolver::warn_of_idle_keys(const Scenario& s) {
  const bool picks = s.routing.balancer == BalancerKind::kEndpointPicker;
  const auto warn = [this](const std::string& key, const std::string& message) {
    diagnostics_.warning(inputs_.where, key, message);
  };
  if (s.routing.gateway && s.routing.gateway->retry && picks &&
      !s.routing.gateway->retry->picker_refusals)
    warn("routing.gateway.retry",
         "retries nothing that the endpoint picker refuses: Envoy's own answers are not retried "
         "(picker_refusals says otherwise)");
  if (s.routing.retries &&
      discovery_facts(s.routing.balancer).retries.on == RetriedByRouter::kNothing)
    warn("routing.retries", "has no effect: this router does not try again by itself");
  const std::optional<policies::RaySettings>& ray = s.routing.balancing.ray;
  if (ray && s.routing.router_replicas > 1 &&
      ray->max_ongoing_requests != policies::RaySettings().max_ongoing_requests)
    warn("routing.ray.max_ongoing_requests",
         "holds for each of the router_replicas alone: every router counts only its own requests, "
         "so a replica may get so many from each");
  const bool by_priority =
      std::any_of(s.cluster.pools.begin(), s.cluster.pools.end(), [](const PoolConfig& p) {
        return p.engine.scheduling_policy == SchedulingPolicy::kPriority;
      });
  const std::vector<workloads::TrafficClass> classes = classes_of(s.workload);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const std::string at = class_path(s.workload, i) + ".";
    if (classes[i].objective != 0 && !picks)
      warn(at + "objective", "has no effect: only endpoint pickers read objectives");
    if (classes[i].priority != 0 && !by_priority)
      warn(at + "priority", "has no effect: no pool has engine.scheduling_policy `priority`");
  }
}

/// AIBrix's profiles belong to pools, and their tables to their axes.
void Resolver::check_profiles(const Scenario& s) {
  if (!s.routing.balancing.aibrix) return;
  const std::vector<policies::AibrixProfile>& profiles = s.routing.balancing.aibrix->profiles;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const std::string at = "routing.aibrix.profiles[" + std::to_string(i) + "]";
    const policies::AibrixProfile& p = profiles[i];
    const bool known = std::any_of(s.cluster.pools.begin(), s.cluster.pools.end(),
                                   [&p](const PoolConfig& pool) { return pool.name == p.gpu; });
    if (!p.gpu.empty() && !known) error(at + ".gpu", "is the name of no pool");
    const std::string fault = policies::profile_fault(p);
    if (!fault.empty()) error(at, fault);
  }
}

/// One for each load.
std::vector<AdapterDemand> Resolver::adapters(const Scenario& s) {
  std::vector<AdapterDemand> out(std::max<std::size_t>(1, s.workload.mix.size()));
  if (s.cluster.pools.empty()) return out;
  const std::string& model = s.cluster.pools.front().model;
  const auto is_base = [&](const std::string& name) {
    const models::ModelSpec* known = inputs_.catalogue.find_model(name);
    return name == model || (known != nullptr && known == inputs_.catalogue.find_model(model));
  };
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Scenario one = with_load(s, i);
    out[i] = adapter_demand(one.workload, is_base,
                            i > 0 ? out[i - 1].names : std::vector<std::string>());
    Diagnostics found;
    check_adapters(one, out[i], inputs_.where, found);
    if (s.workload.mix.empty())
      for (const Diagnostic& d : found.items()) diagnostics_.add(d);
    else
      place_in_mix(found, s.workload, i, diagnostics_);
    errors_ += found.has_errors() ? 1 : 0;
  }
  return out;
}

/// The rate that a load with `hold` is held at.
HeldRate scaled_hold(const WorkloadConfig& w) {
  return {w.hold->rate * w.rate_scale, w.hold->duration, w.hold->warm_up};
}

/// Why the load has no rate to hold, or "".
std::string held(WorkloadConfig& workload, const HeldRate& hold) {
  std::string why_not = hold_rate(workload.load, hold.rate, hold.duration.to_seconds());
  if (!why_not.empty()) return why_not;
  workload.hold = hold;
  workload.demand.reset();
  workload.options.warmup_stages = 0;
  return why_not;
}

constexpr const char* kHeldInstead =
    "has no effect: workload.hold takes its place, one steady rate";

/// Warm-up stages are those of the load's own, which a demand or a held rate replaces.
void warn_of_warm_up(const WorkloadConfig& workload, Diagnostics& diagnostics) {
  if (workload.options.warmup_stages > 0 && (workload.demand || workload.hold))
    diagnostics.warning({}, "workload.options.warmup_stages",
                        "has no effect: the load's own stages are replaced");
}

/// Whether the rate can be held. `why_not`: why the load has none, or "".
bool check_hold(const HeldRate& hold, const std::string& why_not, Diagnostics& diagnostics) {
  if (hold.warm_up >= hold.duration)
    diagnostics.error({}, "workload.hold.warm_up", "leaves nothing to report",
                      "it is a part of the duration");
  if (!why_not.empty()) diagnostics.error({}, "workload.hold", "has no rate to hold: " + why_not);
  return why_not.empty() && hold.warm_up < hold.duration;
}

/// The load made ready for its demand, or an error.
void prepare_demand(WorkloadConfig& workload, Diagnostics& diagnostics) {
  if (workload.hold) {
    diagnostics.warning({}, "workload.demand", kHeldInstead);
    return;
  }
  const std::string why_not = take_demand(workload.load);
  if (!why_not.empty())
    diagnostics.error({}, "workload.demand", "has no rates to take the place of: " + why_not,
                      "groups, vllm_bench with random data, and inference_perf with load type "
                      "constant or poisson and data without turns can have one");
  workload.options.warmup_stages = 0;
}

/// The load with what its tool does by default, which is of the same release as the servers.
WorkloadConfig with_release_defaults(const Scenario& s, Diagnostics& diagnostics) {
  WorkloadConfig out = at_scaled_rate(s.workload, diagnostics);
  if (!s.cluster.pools.empty())
    set_release_defaults(out.load, !from_2026(s.cluster.pools.front().engine.preset));
  warn_of_warm_up(out, diagnostics);
  if (out.demand) prepare_demand(out, diagnostics);
  if (const auto hold = out.hold) check_hold(*hold, held(out, *hold), diagnostics);
  return out;
}

std::unique_ptr<workloads::LoadGenerator> make_load(const WorkloadConfig& w,
                                                    const workloads::LoadInputs& inputs,
                                                    std::uint64_t seed, Diagnostics& d) {
  workloads::WorkloadOptions options = w.options;
  options.seed = seed;
  if (w.demand) return make_load_generator(w.load, *w.demand, options, inputs, d);
  return make_load_generator(w.load, options, inputs, d);
}

/// Refuses a load that goes on beyond what the clock can count.
void check_length(const WorkloadConfig& workload, const workloads::LoadGenerator& load,
                  Diagnostics& diagnostics) {
  double seconds = traits_of(workload.load).interval_s * static_cast<double>(load.stages().size());
  // Its stages follow each other without a pause.
  if (workload.demand && !workload.hold) seconds = 0;
  for (const workloads::StageInfo& stage : load.stages())
    if (stage.requested_rate > 0 && std::isfinite(stage.requested_rate) && stage.requests > 0)
      seconds += static_cast<double>(stage.requests) / stage.requested_rate;
    else if (stage.requests < 0)
      seconds += stage.duration_s;
  const double days = seconds / 86'400;
  if (days <= kLongestLoadDays) return;
  const std::string shown = days < 1e9 ? std::to_string(std::llround(days)) : "more than 10^9";
  diagnostics.error({}, "workload",
                    "goes on for " + shown + " days, and a run holds at most " +
                        std::to_string(std::llround(kLongestLoadDays)),
                    "send requests at a higher rate, or fewer of them");
}

/// Refuses a load that hands over at once more requests than a run should hold.
void check_burst(const workloads::LoadGenerator& load, Diagnostics& diagnostics) {
  std::int64_t most = 0;
  for (const workloads::StageInfo& stage : load.stages()) {
    const bool at_once =
        std::isinf(stage.requested_rate) || (stage.requested_rate == 0 && stage.duration_s == 0);
    const std::int64_t limit = std::max(stage.in_flight_cap, stage.concurrency);
    const std::int64_t held = limit > 0 ? std::min(limit, stage.requests) : stage.requests;
    if (at_once) most = std::max(most, held);
  }
  if (most > kMostAtOnce)
    diagnostics.error({}, "workload",
                      "sends " + std::to_string(most) +
                          " requests at once, and a run holds at most " +
                          std::to_string(kMostAtOnce) + " in flight from the start",
                      "limit those in flight (max_concurrency), or give a finite rate");
}

/// Whether the load can be made: one that cannot is an error of the scenario, not of the run.
bool try_load(const Scenario& scenario, const workloads::LoadInputs& inputs,
              Diagnostics& diagnostics) {
  if (scenario.workload.load.tools_given != 1) return false;
  Diagnostics found;
  const std::unique_ptr<workloads::LoadGenerator> made =
      make_load(with_release_defaults(scenario, found), inputs, scenario.seed, found);
  if (made != nullptr) check_length(scenario.workload, *made, found);
  if (made != nullptr) check_burst(*made, found);
  for (const Diagnostic& d : found.items()) diagnostics.add(d);
  return made != nullptr && !found.has_errors();
}

/// The data of a load.
workloads::LoadInputs files_for(const ScenarioInputs& inputs, std::size_t part) {
  return part < inputs.loads.size() ? inputs.loads[part] : workloads::LoadInputs();
}

bool try_loads(const Scenario& s, const ScenarioInputs& inputs, Diagnostics& diagnostics) {
  if (s.workload.mix.empty()) return try_load(s, files_for(inputs, 0), diagnostics);
  bool good = true;
  for (std::size_t i = 0; i < s.workload.mix.size(); ++i) {
    Diagnostics found;
    good = try_load(with_load(s, i), files_for(inputs, i), found) && good;
    place_in_mix(found, s.workload, i, diagnostics);
  }
  return good;
}

/// A header of the class takes the place of the load tool's own of the same name.
std::vector<std::vector<std::pair<std::string, std::string>>> headers_by_class(
    const WorkloadConfig& workload) {
  const std::vector<workloads::TrafficClass> classes = classes_of(workload);
  std::vector<std::vector<std::pair<std::string, std::string>>> out;
  for (std::size_t i = 0; i < std::max<std::size_t>(1, classes.size()); ++i) {
    const workloads::Load& load = workload.mix.empty() ? workload.load : workload.mix[i].load;
    out.push_back(workloads::headers_of(traits_of(load).headers));
  }
  for (std::size_t i = 0; i < classes.size(); ++i)
    for (auto& header : workloads::headers_of(classes[i].headers)) {
      std::erase_if(out[i], [&header](const auto& other) {
        return policies::same_header(other.first, header.first);
      });
      out[i].push_back(std::move(header));
    }
  return out;
}

/// RunPlan::make_load of a scenario.
struct LoadMaker {
  WorkloadConfig workload;
  workloads::LoadInputs files;
  AdapterDemand adapters;

  std::unique_ptr<workloads::LoadGenerator> operator()(std::uint64_t seed, Diagnostics& d) const {
    std::unique_ptr<workloads::LoadGenerator> load = make_load(workload, files, seed, d);
    if (load == nullptr) return load;
    if (workload.hold && workload.hold->warm_up > Duration::zero())
      load = workloads::with_warm_up(std::move(load), workload.hold->warm_up);
    if (!adapters.traffic.shares.empty())
      load = workloads::with_adapters(std::move(load), adapters.traffic, seed);
    if (!workload.classes.empty())
      load = workloads::with_traffic_classes(std::move(load), workload.classes, seed);
    return load;
  }
};

/// RunPlan::make_load of a scenario with a mix.
struct MixMaker {
  WorkloadConfig whole;
  std::vector<LoadMaker> parts;

  std::unique_ptr<workloads::LoadGenerator> operator()(std::uint64_t seed, Diagnostics& d) const {
    std::vector<workloads::MixedPart> made;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const MixPart& part = whole.mix[i];
      Diagnostics found;
      made.push_back({.name = part.name,
                      .priority = static_cast<std::int32_t>(part.priority),
                      .load = parts[i](workloads::seed_of_part(seed, part.name), found)});
      place_in_mix(found, whole, i, d);
      if (made.back().load == nullptr) return nullptr;
    }
    return workloads::mix_loads(std::move(made));
  }
};

/// Requests per second that reported stages ask for, on average; 0 where one has no rate.
double mean_rate(const std::vector<workloads::StageInfo>& stages) {
  double requests = 0, seconds = 0;
  for (const workloads::StageInfo& stage : stages) {
    if (!stage.reported) continue;
    const bool is_pause = stage.requested_rate == 0 && stage.duration_s > 0 && stage.requests <= 0;
    const bool keeps_rate = stage.requested_rate > 0 && std::isfinite(stage.requested_rate);
    if (!is_pause && !keeps_rate) return 0;
    const double sent = stage.requests < 0 ? stage.requested_rate * stage.duration_s
                                           : static_cast<double>(stage.requests);
    requests += sent;
    seconds += is_pause ? stage.duration_s : sent / stage.requested_rate;
  }
  return seconds > 0 ? requests / seconds : 0;
}

/// Holds the loads at `hold.rate` together, each with its share of their mean rates.
std::string held(MixMaker& mix, const HeldRate& hold, std::uint64_t seed) {
  std::vector<double> rates;
  double all = 0;
  for (std::size_t i = 0; i < mix.parts.size(); ++i) {
    Diagnostics known;  // resolve() has made the load without an error.
    const auto load = mix.parts[i](seed, known);
    rates.push_back(load != nullptr ? mean_rate(load->stages()) : 0);
    if (rates.back() <= 0) return "the load " + mix.whole.mix[i].name + " has no rate";
    all += rates.back();
  }
  for (std::size_t i = 0; i < mix.parts.size(); ++i) {
    HeldRate own = hold;
    own.rate *= rates[i] / all;
    if (const std::string why_not = held(mix.parts[i].workload, own); !why_not.empty())
      return mix.whole.mix[i].name + ": " + why_not;
  }
  return {};
}

/// Sets what makes the load, or each load of a mix, whose loads can be made; false after an error.
bool set_load_maker(RunPlan& plan, const Scenario& s, const ScenarioInputs& inputs,
                    const std::vector<AdapterDemand>& adapters, Diagnostics& diagnostics) {
  Diagnostics scaled;  // try_load says it.
  const auto maker = [&](std::size_t i) {
    return LoadMaker{with_release_defaults(with_load(s, i), scaled), files_for(inputs, i),
                     adapters[i]};
  };
  if (s.workload.mix.empty()) {
    plan.make_load = maker(0);
    return true;
  }
  MixMaker mix{.whole = s.workload, .parts = {}};
  for (std::size_t i = 0; i < s.workload.mix.size(); ++i) mix.parts.push_back(maker(i));
  if (s.workload.hold) {
    warn_of_warm_up(s.workload, diagnostics);
    const HeldRate hold = scaled_hold(s.workload);
    if (!check_hold(hold, held(mix, hold, s.seed), diagnostics)) return false;
    for (std::size_t i = 0; i < s.workload.mix.size(); ++i)
      if (s.workload.mix[i].demand) diagnostics.warning({}, part_path(i) + ".demand", kHeldInstead);
  }
  plan.make_load = std::move(mix);
  plan.scenario.workload.classes = classes_of(s.workload);
  return true;
}

void warn_of_predictor(const RunPlan& plan, const SourceLocation& where, Diagnostics& diagnostics) {
  const std::optional<PredictorSettings>& asked = plan.scenario.routing.latency_predictor;
  if (!asked || asked->kind == PredictorKind::kNone || plan.latency_predictor) return;
  diagnostics.warning(where, "routing.latency_predictor",
                      plan.endpoint_picker ? "has no effect: no plugin asks for predictions"
                                           : "has no effect: only endpoint pickers ask for it");
}

/// A router that asks for replays in vain deletes what it knows, and hears nothing more.
void warn_of_replays(const RunPlan& plan, const SourceLocation& where, Diagnostics& diagnostics) {
  if (!asks_for_replays(plan)) return;
  for (std::size_t i = 0; i < plan.pools.size(); ++i)
    if (!answers_replays(plan.pools[i].config.engine))
      diagnostics.warning(where, "cluster.pools[" + std::to_string(i) + "].engine",
                          "sends replays that the router cannot read: once it has missed events of "
                          "such a server, its index has nothing of it until the server restarts",
                          "vLLM does from v0.26.0 on (preset: 2026-H2); or take replaySocketPort "
                          "out of the router's configuration");
}

}  // namespace

std::optional<PredictorSettings> deciding_predictor(const RoutingConfig& routing,
                                                    const policies::EndpointPickerConfig& config) {
  const bool declared = std::any_of(
      config.plugins.begin(), config.plugins.end(),
      [](const auto& spec) { return spec.type == "predicted-latency-producer" && !spec.implicit; });
  PredictorSettings settings;
  Diagnostics reported_at_load;
  if (routing.latency_predictor)
    settings = *routing.latency_predictor;
  else if (!declared)
    return std::nullopt;
  else
    settings = settings_of(*config.predictor, reported_at_load);
  if (settings.kind == PredictorKind::kNone) return std::nullopt;
  const std::optional<policies::Requirements> needed = policies::requirements(config);
  if (!needed || !needed->signals.predictions) return std::nullopt;
  return settings;
}

std::optional<RunPlan> resolve(const Scenario& scenario, const ScenarioInputs& inputs,
                               Diagnostics& diagnostics) {
  RunPlan plan;
  plan.scenario = scenario;
  plan.endpoint_picker = deciding_document(scenario, inputs);
  const policies::BalancerNeeds needs = balancer_needs(scenario.routing);
  if (!scenario.routing.scrape_interval)
    plan.scenario.routing.scrape_interval = default_scrape_interval(scenario.routing);
  set_default_costs(plan.scenario.routing, plan.endpoint_picker);
  Resolver resolver(inputs, needs.kv_events || listens_to_events(plan.endpoint_picker),
                    diagnostics);
  if (scenario.cluster.pools.empty())
    resolver.error("cluster.pools", "at least one pool is needed");
  for (std::size_t i = 0; i < scenario.cluster.pools.size(); ++i) {
    std::optional<ResolvedPool> pool =
        resolver.pool(scenario.cluster.pools[i], "cluster.pools[" + std::to_string(i) + "]");
    if (!pool) continue;
    pool->extra_places = places_of(scenario, i) - scenario.cluster.pools[i].replicas;
    plan.pools.push_back(std::move(*pool));
  }
  resolver.cross_rules(scenario);
  resolver.check_files(plan.pools);
  const std::vector<AdapterDemand> adapters = resolver.adapters(scenario);
  if (resolver.errors() > 0) {
    (void)try_loads(scenario, inputs, diagnostics);
    return std::nullopt;
  }
  plan.adapters = adapters.back().names;
  // Servers that could, but need not, step as if they could not.
  for (ResolvedPool& pool : plan.pools) {
    pool.rules.adapters = static_cast<std::uint32_t>(plan.adapters.size());
    if (plan.adapters.empty()) pool.rules.max_loras = 0;
  }
  plan.headers = headers_by_class(scenario.workload);
  if (plan.endpoint_picker)
    plan.latency_predictor = deciding_predictor(scenario.routing, *plan.endpoint_picker);
  warn_of_predictor(plan, inputs.where, diagnostics);
  warn_of_replays(plan, inputs.where, diagnostics);
  if (!try_loads(scenario, inputs, diagnostics) ||
      !set_load_maker(plan, scenario, inputs, adapters, diagnostics))
    return std::nullopt;
  return plan;
}

void check_names(const Scenario& scenario, const ScenarioInputs& inputs, Diagnostics& diagnostics) {
  Resolver resolver(inputs, false, diagnostics);
  for (std::size_t i = 0; i < scenario.cluster.pools.size(); ++i)
    resolver.check_names(scenario.cluster.pools[i], "cluster.pools[" + std::to_string(i) + "]");
}

std::string hold_rate(RunPlan& plan, const HeldRate& hold) {
  std::string why_not = "the load is made by a caller";
  if (const auto* maker = plan.make_load.target<LoadMaker>()) {
    LoadMaker changed = *maker;
    why_not = held(changed.workload, hold);
    if (why_not.empty()) plan.make_load = std::move(changed);
  } else if (const auto* mix = plan.make_load.target<MixMaker>()) {
    MixMaker changed = *mix;
    why_not = held(changed, hold, plan.scenario.seed);
    if (why_not.empty()) plan.make_load = std::move(changed);
  }
  if (!why_not.empty()) return why_not;
  plan.scenario.workload.hold = hold;
  plan.scenario.workload.rate_scale = 1;
  plan.scenario.workload.demand.reset();
  return {};
}

WorkloadConfig at_scaled_rate(const WorkloadConfig& workload, Diagnostics& diagnostics) {
  WorkloadConfig out = workload;
  for (std::size_t i = 0; i < workload.mix.size(); ++i) {
    Diagnostics found;
    WorkloadConfig scaled = at_scaled_rate(part_alone(workload, i), found);
    out.mix[i].load = std::move(scaled.load);
    out.mix[i].demand = std::move(scaled.demand);
    place_in_mix(found, workload, i, diagnostics);
  }
  if (out.hold) {
    out.hold = scaled_hold(workload);
    return out;
  }
  if (workload.rate_scale == 1 || !workload.mix.empty()) return out;
  if (out.demand) {
    out.demand->scale *= workload.rate_scale;
    return out;
  }
  const std::string nothing = scale_rates(out.load, workload.rate_scale);
  if (!nothing.empty())
    diagnostics.error({}, "workload.rate_scale", "has no rate to multiply: " + nothing,
                      "leave it out, and change what the load has instead");
  return out;
}

}  // namespace routesim::sim
