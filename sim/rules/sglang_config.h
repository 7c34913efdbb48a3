// How one SGLang scheduler decides: the flags of launch_server, and what follows from the device.
// Everything is as in SGLang 0.5.9 (python/sglang/srt/server_args.py and managers/scheduler.py).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/describe.h"

namespace routesim::sim {

/// Order of the waiting queue (--schedule-policy): as they came, or the longest cached prefix
/// first.
enum class SglangPolicy { kFcfs, kLpm };

/// SGLang's own flags, as the user configures them. Absent optionals follow from the device.
struct SglangConfig {
  std::int64_t page_size = 1;
  SglangPolicy schedule_policy = SglangPolicy::kFcfs;
  std::optional<std::int64_t> chunked_prefill_size;  ///< 0 = prompts are never split.
  std::int64_t max_prefill_tokens = 16384;
  double schedule_conservativeness = 1;
  std::optional<std::int64_t> cuda_graph_max_bs;
};
void describe(Describer& d, SglangConfig& c);

/// The same with every value decided.
struct SglangRules {
  SglangPolicy policy = SglangPolicy::kFcfs;
  std::int64_t chunk_tokens = 8192;  ///< Most tokens of one prefill batch; 0 = no such limit.
  std::int64_t max_prefill_tokens = 16384;  ///< No prompt is added to a batch of so many.
  std::int64_t largest_graph = 256;         ///< Sequences of the largest decode graph.
  /// Share of the tokens that running requests may still generate for which admission keeps room:
  /// from the first value down to the second, in even steps of one decode batch each.
  double first_ratio = 0.7, least_ratio = 0.098;
};

/// The facts about a server that defaults follow from.
struct SglangDevice {
  double memory_bytes = 0;
  std::int64_t tp = 1, pp = 1;
};
/// Decode batches in which the ratio falls to its least (SGLANG_NEW_TOKEN_RATIO_DECAY_STEPS).
constexpr std::int64_t kSglangRatioSteps = 600;

SglangRules resolve_sglang(const SglangConfig& config, const SglangDevice& device);
/// The default of --mem-fraction-static.
double default_mem_fraction(const SglangRules& rules, const SglangDevice& device);
/// The default of --max-running-requests, by the tokens of the KV cache and the longest request.
std::int64_t default_max_running(std::int64_t kv_tokens, std::int64_t context_len);

}  // namespace routesim::sim

template <>
struct routesim::EnumNames<routesim::sim::SglangPolicy> {
  static constexpr std::array<std::string_view, 2> value = {"fcfs", "lpm"};
};
