#include "models/launches.h"

#include <algorithm>

namespace routesim::models {
namespace {

/// Tokens of the largest batch that vLLM captures by default.
constexpr std::int64_t kLargestGraph = 512;

/// Some twenty launches per layer at 5 to 6 us each: what an eager decode step cannot beat.
constexpr double kEagerLayerNs = 110e3;

/// SGLang 0.5 launches prompts from Python, kernel by kernel. One prompt token of DeepSeek-V3, 61
/// layers of latent attention and experts, takes 82.6 ms, and up to 100 tokens as long
/// (sgl-project/sglang#12160). The 12 layers of GPT-2 take 4.9 ms without graphs
/// (deepspeedai/DeepSpeed#8352, SGLang on an H200), and nobody has published other dense models.
constexpr double kSglangLatentLayerNs = 1.35e6;
constexpr double kSglangLayerNs = 400e3;

/// A layer waits so long for the next graph if graphs end before each attention: vLLM until v0.10
/// (PIECEWISE; FULL_AND_PIECEWISE is the default since, v0.11.0 config/compilation.py). One graph
/// for all took 7 % off the median TPOT of Qwen2.5-1.5B, 28 layers (vllm-project/vllm#16072). Each
/// GPU more makes the gap a quarter longer, since all wait for the last launch: an assumption.
constexpr double kGraphGapNs = 10e3;
constexpr double kGapShare = 0.25;

}  // namespace

bool runs_as_one_graph(const BatchShape& s) {
  if (s.draft_tokens == 0) return s.prefill_tokens <= s.prefill_requests;
  return s.prefill_requests == 0 && s.draft_tokens % s.decode_requests == 0 &&
         s.tokens() <= kLargestGraph;
}

std::int64_t padded_to_graph(std::int64_t tokens) {
  if (tokens <= 2 || tokens > kLargestGraph) return tokens;
  if (tokens <= 4) return 4;
  const std::int64_t stride = tokens <= 256 ? 8 : 16;
  return (tokens + stride - 1) / stride * stride;
}

LaunchCost::LaunchCost(const AcceleratorSpec& a, const ModelSpec& m, const Parallelism& p,
                       const GraphRules& rules)
    : rules_(rules) {
  if (!rules.cuda_graphs)
    eager_ns_ = kEagerLayerNs * m.whole_layers();
  else
    chunk_ns_ = a.chunk_layer_us * 1e3 * m.whole_layers();
  if (rules.engine == ServingEngine::kSglang)
    prompt_ns_ = (m.is_mla() ? kSglangLatentLayerNs : kSglangLayerNs) * m.whole_layers();
  if (rules.cuda_graphs && !rules.full_graphs)
    gaps_ns_ = kGraphGapNs * (1 + kGapShare * as_real(p.tp - 1)) * m.whole_layers();
}

std::int64_t LaunchCost::rows(const BatchShape& s) const {
  const std::int64_t tokens = std::max<std::int64_t>(1, s.tokens());
  if (!rules_.cuda_graphs) return tokens;
  if (rules_.engine == ServingEngine::kVllm) return padded_to_graph(tokens);
  if (!is_one_graph(s)) return tokens;
  return tokens > 4 && tokens <= 12 ? (tokens + 3) / 4 * 4 : padded_to_graph(tokens);
}

bool LaunchCost::is_one_graph(const BatchShape& s) const {
  if (rules_.engine == ServingEngine::kVllm) return runs_as_one_graph(s);
  return s.prefill_tokens == 0 && s.decode_requests <= rules_.largest_graph;
}

double LaunchCost::added_to(double ns, const BatchShape& s) const {
  // One token each, as a decode server starts on prompts whose KV it pulled, replays a full graph
  // (`_is_uniform_decode` of vLLM's gpu_model_runner.py).
  if (is_one_graph(s)) return std::max(ns + gaps_ns_, eager_ns_);
  return std::max({ns + chunk_ns_, eager_ns_, s.prefill_tokens > 0 ? prompt_ns_ : 0});
}

}  // namespace routesim::models
