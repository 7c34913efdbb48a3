#include "sim/rules/engine_config.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace routesim::sim {

// The rules that differ between releases.
static void describe_switches(Describer& d, EngineConfig& c) {
  field(d,
        {"reserve_full_isl",
         "Admit a request only when its whole prompt fits; the preset's "
         "value when absent."},
        c.reserve_full_isl);
  field(d, {"watermark", "Share of blocks kept free at admission."}, c.watermark,
        RealRange{.min = 0, .max = 0.9});
  field(d, {"free_queue", "Where freed blocks go; the preset's value when absent."}, c.free_queue);
  field(d,
        {"async_scheduling",
         "Schedule a step while the one before runs; the preset's value when "
         "absent."},
        c.async_scheduling);
  field(d,
        {"moe_backend",
         "Kernels of 4-bit experts: marlin (VLLM_MXFP4_USE_MARLIN=1; the presets of 2025), triton, "
         "or what the preset's releases take."},
        c.moe_backend);
  field(d,
        {"skip_unallocatable_head",
         "With nothing running, look past a head of queue that does "
         "not fit; the preset's value when absent."},
        c.skip_unallocatable_head);
  field(d,
        {"idle_polling",
         "An engine without requests still looks for ended KV transfers, and so frees blocks that "
         "were read or copied; otherwise with its next step. Absent: from preset 2026-H2 on."},
        c.idle_polling);
  field(
      d,
      {"hybrid_kv_manager",
       "Layers with a window hold no more KV than it takes; false: as much as the others "
       "(--disable-hybrid-kv-cache-manager). When absent as vLLM decides: off for Llama 4 and with "
       "KV events in preset 2025-H2, and in a disaggregated pair until 2026-H1."},
      c.hybrid_kv_manager);
}

static void describe_adapters(Describer& d, EngineConfig& c) {
  field(d,
        {"max_loras",
         "Serves LoRA adapters (--enable-lora), so many in one step (--max-loras, 1 by default in "
         "vLLM); absent: the base model only."},
        c.max_loras, IntRange{1, 100'000});
  field(d,
        {"max_cpu_loras",
         "Adapters in host memory (--max-cpu-loras); as many as max_loras when absent."},
        c.max_cpu_loras, IntRange{1, 100'000});
  field(d, {"max_lora_rank", "Rank that adapters are taken to have (--max-lora-rank)."},
        c.max_lora_rank, IntRange{1, 1024});
}

void describe(Describer& d, EngineConfig& c) {
  field(d,
        {"kind",
         "The engine: vllm, or sglang (0.5), for which block_size, preset and the other rules of "
         "vLLM's scheduler mean nothing and sglang has its own."},
        c.kind);
  field(
      d,
      {"preset",
       "vLLM release family whose rules apply: 2025-Q3 is v0.9-v0.10, 2025-H2 is v0.11-v0.12 (and "
       "stood for both until routesim 0.2), 2026-H1 is v0.14-v0.20, 2026-H2 is the newest."},
      c.preset);
  field(d, {"block_size", "Tokens per KV block (--block-size)."}, c.block_size, IntRange{1, 4096});
  field(d,
        {"num_gpu_blocks",
         "KV blocks of one engine core, as its log reports them; replaces the "
         "estimate from memory."},
        c.num_gpu_blocks, IntRange{2, 100'000'000});
  field(
      d,
      {"kv_cache_tokens",
       "The size of the KV cache as vLLM prints it at its start (\"GPU KV cache size: N tokens\"), "
       "instead of num_gpu_blocks. Where layers with a window have blocks of their own, several "
       "blocks hold the same tokens."},
      c.kv_cache_tokens, IntRange{1, 100'000'000'000});
  field(d,
        {"gpu_memory_utilization",
         "Share of GPU memory vLLM may use; the preset's default when "
         "absent."},
        c.gpu_memory_utilization, RealRange{.min = 0, .max = 1, .min_open = true});
  field(d, {"max_num_batched_tokens", "Token budget of one step; by device when absent."},
        c.max_num_batched_tokens, IntRange{1, 1'048'576});
  field(d, {"max_num_seqs", "Largest number of running requests; by device when absent."},
        c.max_num_seqs, IntRange{1, 65'536});
  field(d, {"max_model_len", "Longest prompt plus answer in tokens; the model's own when absent."},
        c.max_model_len, IntRange{1, kMostModelLength});
  field(d,
        {"long_prefill_token_threshold",
         "Most prompt tokens one request may compute in a step; "
         "0 = no limit."},
        c.long_prefill_token_threshold, IntRange{0, 1'048'576});
  field(d, {"prefill_schedule_interval", "Only every n-th step may run prefill work."},
        c.prefill_schedule_interval, IntRange{1, 1024});
  field(d,
        {"moe_dp_chunk_size",
         "MoE ranks in lock step: tokens of the fixed-size buffers that experts receive "
         "(VLLM_MOE_DP_CHUNK_SIZE), so that a step costs as much as the next multiple of it; "
         "0 = no padding."},
        c.moe_dp_chunk_size, IntRange{0, 1'048'576});
  field(d, {"enable_chunked_prefill", "Split long prompts over steps."}, c.enable_chunked_prefill);
  field(d, {"enable_prefix_caching", "Reuse KV blocks of equal prefixes."},
        c.enable_prefix_caching);
  field(d, {"enforce_eager", "No CUDA graphs."}, c.enforce_eager);
  field(d, {"scheduling_policy", "Order of the waiting queue."}, c.scheduling_policy);
  describe_switches(d, c);
  describe_adapters(d, c);
  field(d, {"kv_tiers", "KV blocks outside GPU memory."}, c.kv_tiers);
  field(d, {"speculative", "Speculative decoding (--speculative-config)."}, c.speculative);
  field(d, {"sglang", "What only SGLang has; with kind sglang."}, c.sglang);
}

std::string_view foreign_key(const EngineConfig& c) {
  if (c.kind == EngineKind::kVllm) return c.sglang ? "sglang" : "";
  const EngineConfig none;
  if (c.preset != none.preset) return "preset";
  if (c.block_size != none.block_size) return "block_size";
  if (c.max_num_batched_tokens) return "max_num_batched_tokens";
  if (c.long_prefill_token_threshold != 0) return "long_prefill_token_threshold";
  if (c.prefill_schedule_interval != 1) return "prefill_schedule_interval";
  if (c.moe_dp_chunk_size != 0) return "moe_dp_chunk_size";
  if (!c.enable_chunked_prefill) return "enable_chunked_prefill";
  if (c.scheduling_policy != none.scheduling_policy) return "scheduling_policy";
  if (c.reserve_full_isl) return "reserve_full_isl";
  if (c.watermark) return "watermark";
  if (c.free_queue) return "free_queue";
  if (c.moe_backend != none.moe_backend) return "moe_backend";
  if (c.skip_unallocatable_head) return "skip_unallocatable_head";
  if (c.idle_polling) return "idle_polling";
  if (c.hybrid_kv_manager) return "hybrid_kv_manager";
  if (c.max_loras) return "max_loras";
  if (c.speculative) return "speculative";
  return c.kv_tiers ? "kv_tiers" : "";
}

void set_kv_blocks(EngineRules& rules, const EngineConfig& config, std::int64_t num_gpu_blocks) {
  rules.num_gpu_blocks = num_gpu_blocks;
  rules.watermark_blocks = static_cast<std::int64_t>(config.watermark.value_or(0.0) *
                                                     static_cast<double>(num_gpu_blocks));
  if (rules.sglang && !config.max_num_seqs)
    rules.max_num_seqs =
        default_max_running((num_gpu_blocks - 1) * rules.block_size, rules.max_model_len);
}

EngineRules resolve_sglang_engine(const EngineConfig& c, std::int64_t default_max_model_len,
                                  const SglangDevice& device) {
  const SglangConfig own = c.sglang.value_or(SglangConfig{});
  EngineRules r;
  r.sglang = resolve_sglang(own, device);
  r.block_size = own.page_size;
  r.max_model_len = c.max_model_len.value_or(default_max_model_len);
  r.max_num_batched_tokens = std::max(r.sglang->chunk_tokens, r.sglang->max_prefill_tokens);
  r.max_num_seqs = c.max_num_seqs.value_or(4096);
  r.enable_prefix_caching = c.enable_prefix_caching;
  r.async_scheduling = c.async_scheduling.value_or(true);
  // Pages that hold nothing are taken before any that the radix cache has.
  r.free_queue = FreeQueue::kUnhashedFirst;
  r.reserve_full_isl = false;
  return r;
}

EngineRules resolve_engine_rules(const EngineConfig& c, std::int64_t default_max_model_len,
                                 bool large_gpu) {
  const bool newest = c.preset == EnginePreset::k2026H2;
  const bool recent = from_2026(c.preset);
  EngineRules r;
  r.block_size = c.block_size;
  r.max_model_len = c.max_model_len.value_or(default_max_model_len);
  std::int64_t tokens = large_gpu ? 8192 : 2048;
  std::int64_t seqs = large_gpu ? 1024 : 256;
  seqs = c.max_num_seqs.value_or(seqs);
  tokens = std::min(tokens, seqs * r.max_model_len);
  if (!c.enable_chunked_prefill) tokens = std::max(tokens, r.max_model_len);
  r.max_num_batched_tokens = c.max_num_batched_tokens.value_or(tokens);
  r.max_num_seqs = std::min(seqs, r.max_num_batched_tokens);
  r.long_prefill_token_threshold = c.long_prefill_token_threshold;
  r.prefill_schedule_interval = c.prefill_schedule_interval;
  r.moe_dp_chunk_size = c.moe_dp_chunk_size;
  r.enable_chunked_prefill = c.enable_chunked_prefill;
  r.enable_prefix_caching = c.enable_prefix_caching;
  r.reserve_full_isl = c.reserve_full_isl.value_or(recent);
  const bool ahead =
      !c.speculative || !c.speculative->method || schedules_ahead(*c.speculative->method, !newest);
  r.async_scheduling = c.async_scheduling.value_or(recent && ahead);
  r.skip_unallocatable_head = c.skip_unallocatable_head.value_or(newest);
  r.idle_polling = c.idle_polling.value_or(newest);
  r.remote_partial_block = recent;
  // The largest CUDA graph has 512 tokens.
  const std::int64_t largest_graph = recent ? 512 : std::numeric_limits<std::int64_t>::max();
  r.rank_padding_limit = c.enforce_eager ? 0 : largest_graph;
  if (c.speculative && c.speculative->method && c.speculative->num_speculative_tokens)
    r.speculation = resolve_speculation(*c.speculative);
  r.max_loras = c.max_loras.value_or(0);
  r.max_cpu_loras = std::max(r.max_loras, c.max_cpu_loras.value_or(r.max_loras));
  r.scheduling_policy = c.scheduling_policy;
  r.free_queue = c.free_queue.value_or(newest ? FreeQueue::kUnhashedFirst : FreeQueue::kAppendAll);
  return r;
}

namespace {

/// Blocks that one request of the longest length takes of all groups together.
std::int64_t blocks_of_longest(const EngineRules& r, const KvLog& log) {
  if (r.state_groups) return (r.max_model_len + r.block_size - 1) / r.block_size + r.window_groups;
  const auto blocks = [&](std::int64_t tokens) {
    return (tokens + r.block_size - 1) / r.block_size;
  };
  const std::int64_t in_flight =
      std::max<std::int64_t>(log.pipeline_stages, r.async_scheduling ? 2 : 1) *
      r.max_num_batched_tokens;
  const std::int64_t behind = log.chunked_windows ? r.window_tokens : r.window_tokens - 1;
  const std::int64_t window = blocks(std::min(behind + in_flight, r.max_model_len)) +
                              (log.chunked_windows ? 0 : 1);  // A window can begin inside a block.
  return blocks(r.max_model_len) + r.window_groups * window;
}

}  // namespace

std::int64_t reported_kv_tokens(const EngineRules& r, const KvLog& log) {
  if (r.sglang) return (r.num_gpu_blocks - 1) * r.block_size;
  if (log.preset != EnginePreset::k2026H2)
    return r.num_gpu_blocks / (1 + r.window_groups) * r.block_size;
  const double requests =
      static_cast<double>(r.num_gpu_blocks) / static_cast<double>(blocks_of_longest(r, log));
  return static_cast<std::int64_t>(requests * static_cast<double>(r.max_model_len));
}

std::int64_t blocks_of_reported_tokens(std::int64_t tokens, const EngineRules& r,
                                       const KvLog& log) {
  if (log.preset != EnginePreset::k2026H2)
    return (tokens + r.block_size - 1) / r.block_size * (1 + r.window_groups);
  const double requests = static_cast<double>(tokens) / static_cast<double>(r.max_model_len);
  return static_cast<std::int64_t>(
      std::ceil(requests * static_cast<double>(blocks_of_longest(r, log))));
}

bool uses_hybrid_kv_manager(const EngineConfig& c, const HybridKvUse& use) {
  const bool oldest = !from_2026(c.preset);
  const bool off = (oldest && (use.chunked_windows || use.kv_events)) ||
                   (use.kv_transfer && c.preset != EnginePreset::k2026H2) || use.one_group;
  return c.hybrid_kv_manager.value_or(!off);
}

double graph_memory_share(const EngineConfig& c) {
  constexpr double kShare = 0.82 - 0.8048;
  return c.preset == EnginePreset::k2026H2 && !c.enforce_eager ? kShare : 0;
}

void describe(Describer& d, ApiServerConfig& c) {
  field(d,
        {"processes",
         "API server processes (--api-server-count). By default 1; from preset 2026-H1 on one per "
         "DP rank that the server balances itself."},
        c.processes, IntRange{1, 1024});
  field(
      d,
      {"request_time",
       "What a request costs a process's event loop (HTTP, validation, chat template). By default "
       "6ms, and from preset 2026-H1 on 2ms."},
      c.request_time, DurationRange{Duration::zero(), Duration::seconds(60)});
  field(d,
        {"prompt_token_time",
         "What a token of a prompt costs a process's tokeniser. By default 1500 ns."},
        c.prompt_token_time, DurationRange{Duration::zero(), Duration::milliseconds(10)});
}

ApiServerTimes resolve_api_server(const ApiServerConfig& c, EnginePreset preset,
                                  std::int64_t ranks_behind) {
  const bool recent = from_2026(preset);
  return {.processes = c.processes.value_or(recent ? ranks_behind : 1),
          .request = c.request_time.value_or(Duration::milliseconds(recent ? 2 : 6)),
          .prompt_token = c.prompt_token_time.value_or(Duration::nanoseconds(1500))};
}

Duration default_handover(EnginePreset preset) {
  if (from_2026(preset)) return Duration::milliseconds(8);
  return Duration::milliseconds(preset == EnginePreset::k2025Q3 ? 35 : 0);
}

Duration default_descriptor_time(EnginePreset preset) {
  return from_2026(preset) ? Duration::microseconds(2) : Duration::zero();
}

double default_gpu_memory_utilization(EnginePreset preset) {
  return preset == EnginePreset::k2026H2 ? 0.92 : 0.90;
}

}  // namespace routesim::sim
