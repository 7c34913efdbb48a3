#include "sim/rules/sglang_config.h"

#include <algorithm>
#include <cmath>

namespace routesim::sim {

void describe(Describer& d, SglangConfig& c) {
  field(d, {"page_size", "Tokens of a page of the KV cache (--page-size)."}, c.page_size,
        IntRange{1, 4096});
  field(d,
        {"schedule_policy",
         "Order of the waiting queue (--schedule-policy): fcfs, or lpm, the longest cached prefix "
         "first while at most 128 wait."},
        c.schedule_policy);
  field(d,
        {"chunked_prefill_size",
         "Most prompt tokens of one batch (--chunked-prefill-size); 0 = prompts are never split. "
         "By GPU memory when absent: 8192 from 60 to 160 GiB, 16384 above."},
        c.chunked_prefill_size, IntRange{0, 1'048'576});
  field(d,
        {"max_prefill_tokens",
         "No prompt is added to a batch of so many tokens (--max-prefill-tokens)."},
        c.max_prefill_tokens, IntRange{1, 16'777'216});
  field(d,
        {"schedule_conservativeness",
         "Scales the share of answers for which admission keeps room "
         "(--schedule-conservativeness)."},
        c.schedule_conservativeness, RealRange{.min = 0, .max = 100});
  field(d,
        {"cuda_graph_max_bs",
         "Sequences of the largest decode graph (--cuda-graph-max-bs); by GPU memory and tensor "
         "parallelism when absent."},
        c.cuda_graph_max_bs, IntRange{1, 65'536});
}

namespace {

/// server_args.py, _handle_gpu_memory_settings: prompts and graphs by memory, where `mib` is below
/// the first number.
struct MemoryClass {
  double mib;
  std::int64_t chunk, graph, graph_wide;  ///< The last one from four GPUs on.
};
constexpr std::array<MemoryClass, 6> kMemoryClasses = {{{20 * 1024, 2048, 8, 8},
                                                        {35 * 1024, 2048, 24, 80},
                                                        {60 * 1024, 4096, 32, 160},
                                                        {90 * 1024, 8192, 256, 512},
                                                        {160 * 1024, 8192, 256, 512},
                                                        {1e12, 16384, 512, 512}}};

double mib(const SglangDevice& device) { return device.memory_bytes / (1024 * 1024); }

}  // namespace

SglangRules resolve_sglang(const SglangConfig& c, const SglangDevice& device) {
  const auto* by_memory = kMemoryClasses.begin();
  while (mib(device) >= by_memory->mib) ++by_memory;
  SglangRules r;
  r.policy = c.schedule_policy;
  r.chunk_tokens = c.chunked_prefill_size.value_or(by_memory->chunk);
  r.max_prefill_tokens = c.max_prefill_tokens;
  r.largest_graph =
      c.cuda_graph_max_bs.value_or(device.tp < 4 ? by_memory->graph : by_memory->graph_wide);
  // SGLANG_INIT_NEW_TOKEN_RATIO and SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR (environ.py).
  r.first_ratio = std::min(1.0, 0.7 * c.schedule_conservativeness);
  r.least_ratio = std::min(1.0, r.first_ratio * 0.14);
  return r;
}

double default_mem_fraction(const SglangRules& r, const SglangDevice& device) {
  const std::int64_t prompt = r.chunk_tokens > 0 ? r.chunk_tokens : r.max_prefill_tokens;
  double reserved = 512 + 1.5 * static_cast<double>(std::max<std::int64_t>(prompt, 2048)) +
                    2 * static_cast<double>(r.largest_graph) +
                    static_cast<double>(device.tp * device.pp) / 8 * 1024;
  if (mib(device) > 60 * 1024) reserved = std::max(reserved, 10 * 1024.0);
  return std::round((mib(device) - reserved) / mib(device) * 1000) / 1000;
}

std::int64_t default_max_running(std::int64_t kv_tokens, std::int64_t context_len) {
  const double longest = static_cast<double>(kv_tokens) / static_cast<double>(context_len);
  const auto scaled = static_cast<std::int64_t>(longest * 512);
  return std::min(std::clamp<std::int64_t>(scaled, 2048, 4096),
                  std::max<std::int64_t>(1, kv_tokens / 2));
}

}  // namespace routesim::sim
