// How one engine core schedules: vLLM's flags, and the switches that differ between its releases,
// or SGLang's; and the API server in front of it.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "base/describe.h"
#include "base/units.h"
#include "sim/rules/sglang_config.h"
#include "sim/rules/speculation_config.h"
#include "sim/rules/tier_config.h"

namespace routesim::sim {

/// The most that engine.max_model_len can be, tokens.
constexpr std::int64_t kMostModelLength = 16'777'216;

/// vLLM releases whose scheduler rules differ; see sim/README.md for the table of switches.
enum class EnginePreset { k2025Q3, k2025H2, k2026H1, k2026H2 };
constexpr bool from_2026(EnginePreset preset) { return preset >= EnginePreset::k2026H1; }
/// The product whose scheduler runs.
enum class EngineKind { kVllm, kSglang };
/// Order of the waiting queue.
enum class SchedulingPolicy { kFcfs, kPriority };
/// The place of freed blocks: all go to the tail of the free queue, or unhashed ones to its head.
enum class FreeQueue { kAppendAll, kUnhashedFirst };

/// Kernels of routed experts (--moe-backend), as far as step times depend on them: what the release
/// takes, Marlin, or Triton.
enum class MoeBackend { kAuto, kMarlin, kTriton };

/// The engine as the user configures it. Absent optionals take the preset's or the device's value.
struct EngineConfig {
  EngineKind kind = EngineKind::kVllm;
  EnginePreset preset = EnginePreset::k2026H1;
  std::int64_t block_size = 16;
  std::optional<std::int64_t> num_gpu_blocks;
  std::optional<std::int64_t> kv_cache_tokens;
  std::optional<double> gpu_memory_utilization;
  std::optional<std::int64_t> max_num_batched_tokens;
  std::optional<std::int64_t> max_num_seqs;
  std::optional<std::int64_t> max_model_len;
  std::int64_t long_prefill_token_threshold = 0;
  std::int64_t prefill_schedule_interval = 1;
  std::int64_t moe_dp_chunk_size = 0;
  bool enable_chunked_prefill = true;
  bool enable_prefix_caching = true;
  bool enforce_eager = false;
  SchedulingPolicy scheduling_policy = SchedulingPolicy::kFcfs;
  std::optional<bool> reserve_full_isl;
  std::optional<double> watermark;
  std::optional<FreeQueue> free_queue;
  std::optional<bool> async_scheduling;
  MoeBackend moe_backend = MoeBackend::kAuto;
  std::optional<bool> skip_unallocatable_head;
  std::optional<bool> idle_polling;
  std::optional<bool> hybrid_kv_manager;
  std::optional<std::int64_t> max_loras, max_cpu_loras;
  std::int64_t max_lora_rank = 16;
  std::optional<KvTierConfig> kv_tiers;
  std::optional<SpeculationConfig> speculative;
  std::optional<SglangConfig> sglang;  ///< With kind sglang only.
};
void describe(Describer& d, EngineConfig& c);
/// The first key that is set although it means nothing to the engine's kind; empty for none.
std::string_view foreign_key(const EngineConfig& c);

/// The same with every value decided: what the scheduler really runs with.
struct EngineRules {
  std::int64_t block_size = 16;     ///< Tokens per KV block.
  std::int64_t num_gpu_blocks = 0;  ///< N, the null block included: N - 1 are usable.
  std::int64_t max_num_batched_tokens = 8192;
  std::int64_t max_num_seqs = 1024;
  std::int64_t max_model_len = 131072;
  std::int64_t long_prefill_token_threshold = 0;  ///< 0 = off.
  std::int64_t prefill_schedule_interval = 1;
  std::int64_t moe_dp_chunk_size = 0;  ///< Lock step: experts see multiples of it; 0 = exact.
  std::int64_t watermark_blocks = 0;   ///< Kept free at admission while others run.
  /// Groups of windowed layers, each with blocks of its own in the pool, and their window in
  /// tokens. 0 = none, or they hold as much as the others.
  std::int64_t window_groups = 0;
  std::int64_t window_tokens = 0;
  bool state_groups = false;  ///< These are layers with a state: one block per sequence and group.
  /// LoRA adapters that one step may compute, and as many in host memory; 0 = the base model only.
  std::int64_t max_loras = 0, max_cpu_loras = 0;
  std::uint32_t adapters = 0;  ///< How many there are; all servers have all.
  bool enable_chunked_prefill = true;
  bool enable_prefix_caching = true;
  bool reserve_full_isl = true;  ///< Admission needs room for the whole prompt.
  bool async_scheduling = true;  ///< Step k+1 is scheduled when step k starts.
  bool skip_unallocatable_head =
      false;  ///< With nothing running, look past a head that cannot fit.
  /// An engine without requests still looks for ended transfers. vLLM from v0.22 on
  /// (vllm-project/vllm#43433: Scheduler.has_finished_requests); before, it hears of them at the
  /// end of its next step.
  bool idle_polling = true;
  bool remote_partial_block = true;  ///< PD: the partial last prompt block is transferred too.
  /// Lock step: ranks are padded to the largest one where that has at most so many tokens. vLLM
  /// pads for its CUDA graphs; from 2026 on not where none is captured.
  std::int64_t rank_padding_limit = std::numeric_limits<std::int64_t>::max();
  SchedulingPolicy scheduling_policy = SchedulingPolicy::kFcfs;
  FreeQueue free_queue = FreeQueue::kAppendAll;
  TierRules tiers;  ///< KV blocks outside GPU memory.
  SpeculationRules speculation;
  /// Pipeline stages that work on different batches at a time; 1: a step passes all of them alone.
  std::int64_t pipeline_stages = 1;
  std::optional<SglangRules> sglang;  ///< Absent: vLLM schedules.

  /// Tokens of sequences that decode are counted one by one, when the result of their step is
  /// there: it may bring several, or none of the next steps may hold the sequence.
  bool by_result() const { return speculation.in_use() || pipeline_stages > 1; }
};

/// The API server as the user configures it. Absent values are the engine preset's.
struct ApiServerConfig {
  std::optional<std::int64_t> processes;      ///< --api-server-count.
  std::optional<Duration> request_time;       ///< Event loop: HTTP, validation, chat template.
  std::optional<Duration> prompt_token_time;  ///< Tokeniser thread.
};
void describe(Describer& d, ApiServerConfig& c);

/// The same with every value decided. The default costs nothing.
struct ApiServerTimes {
  std::int64_t processes = 1;
  Duration request;       ///< Of a process's event loop, per request.
  Duration prompt_token;  ///< Of a process's tokeniser thread, per token of the prompt.
};

/// Applies the defaults of `preset`; sources in docs/model.md. `ranks_behind`: DP ranks that share
/// this API server (internal balancing), else 1. From 2026 on vLLM starts a process for each.
ApiServerTimes resolve_api_server(const ApiServerConfig& config, EnginePreset preset,
                                  std::int64_t ranks_behind);

/// From the end of a prefill until the decode server reads the request, besides what its API server
/// costs. vllm-project/vllm#50913 (v0.14, vllm-project/router): 263 and 197 ms from the end of
/// prefill to the first token with blocks of 16 and 64, of which parsing, tokenising and admission
/// take 32 ms; 8 ms of these are neither in the API server's times nor in the wait for a step. The
/// oldest preset's value makes one request through v0.9 and its example proxy take twice the TTFT
/// of one server (vllm-project/vllm#21037, #22454), which is an assumption about both.
Duration default_handover(EnginePreset preset);
/// TransferConfig::descriptor_time of a release.
Duration default_descriptor_time(EnginePreset preset);

/// Applies the preset and the device-dependent defaults of vLLM's OpenAI server entry point
/// (8192 tokens and 1024 sequences on GPUs of 70 GiB or more that are not an A100, else 2048 and
/// 256; the 2025-H2 preset has 256 sequences on the small ones and 1024 on the large ones, too).
/// The KV blocks are left to set_kv_blocks(): how many there are depends on these rules.
EngineRules resolve_engine_rules(const EngineConfig& config, std::int64_t default_max_model_len,
                                 bool large_gpu);
/// The same for SGLang. set_kv_blocks() decides how many requests run where nothing says so.
EngineRules resolve_sglang_engine(const EngineConfig& config, std::int64_t default_max_model_len,
                                  const SglangDevice& device);
void set_kv_blocks(EngineRules& rules, const EngineConfig& config, std::int64_t num_gpu_blocks);

/// The facts beside the engine's rules by which vLLM's log counts the tokens of the KV cache.
struct KvLog {
  EnginePreset preset = EnginePreset::k2026H1;
  bool chunked_windows = false;
  std::int64_t pipeline_stages = 1;
};
/// N of the line "GPU KV cache size: N tokens", or of SGLang's "max_total_num_tokens=N". Groups of
/// windowed layers share the blocks, so N is not blocks times block_size: until v0.20 the blocks
/// are divided evenly among the groups
/// (_report_kv_cache_config); since then N is the longest length times how many requests of that
/// length fit at once (get_kv_cache_capacity, vllm/v1/core/kv_cache_utils.py).
std::int64_t reported_kv_tokens(const EngineRules& rules, const KvLog& log);
/// The fewest blocks with which the log says `tokens`. Does not read rules.num_gpu_blocks.
std::int64_t blocks_of_reported_tokens(std::int64_t tokens, const EngineRules& rules,
                                       const KvLog& log);

/// Other facts about a server; they decide whether windowed layers get KV blocks of their own.
struct HybridKvUse {
  bool kv_events = false;        ///< It publishes KV events: a precise router listens.
  bool kv_transfer = false;      ///< It has a KV connector: a disaggregated pair, or tiers.
  bool one_group = false;        ///< That connector knows one group of layers only: LMCache's.
  bool chunked_windows = false;  ///< Its windowed layers look at chunks (Llama 4).
};
/// True where windowed layers hold no more blocks than their window takes (vLLM's hybrid KV cache
/// manager), false where they hold as many as the others. By default off in presets of 2025 for
/// chunked windows (VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE is 0 until
/// vllm-project/vllm#29627, and 1 since) and with KV events (vLLM until v0.16), and with KV
/// transfer until 2026-H1, later with connectors that are not SupportsHMA.
bool uses_hybrid_kv_manager(const EngineConfig& config, const HybridKvUse& use);

/// Share of device memory set aside for CUDA graphs before KV blocks are counted: vLLM does that
/// from v0.21 on, and says that 0.82 then is as much as 0.8048 before.
double graph_memory_share(const EngineConfig& config);

/// The preset's default of --gpu-memory-utilization.
double default_gpu_memory_utilization(EnginePreset preset);

}  // namespace routesim::sim

template <>
struct routesim::EnumNames<routesim::sim::EngineKind> {
  static constexpr std::array<std::string_view, 2> value = {"vllm", "sglang"};
};
template <>
struct routesim::EnumNames<routesim::sim::EnginePreset> {
  static constexpr std::array<std::string_view, 4> value = {"2025-Q3", "2025-H2", "2026-H1",
                                                            "2026-H2"};
};
template <>
struct routesim::EnumNames<routesim::sim::MoeBackend> {
  static constexpr std::array<std::string_view, 3> value = {"auto", "marlin", "triton"};
};
template <>
struct routesim::EnumNames<routesim::sim::SchedulingPolicy> {
  static constexpr std::array<std::string_view, 2> value = {"fcfs", "priority"};
};
template <>
struct routesim::EnumNames<routesim::sim::FreeQueue> {
  static constexpr std::array<std::string_view, 2> value = {"append-all", "unhashed-first"};
};
