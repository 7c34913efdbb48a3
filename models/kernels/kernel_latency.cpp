#include "models/kernels/kernel_latency.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "models/roofline_parts.h"
#include "models/ticks.h"

namespace routesim::models {
namespace {

/// vLLM's host prepares a step while the GPU waits, unless scheduling is asynchronous. The step:
/// v0.12 with Qwen3-32B on two, four and eight H100 alike (aiconfigurator's closed loops). The
/// sequence: 0.013 and 0.019 ms, v0.24 on an H100 (`scenarios/measured/gpu_kernels`,
/// host_step.csv).
constexpr double kHostStepMs = 1.2, kHostSequenceMs = 0.015;
/// How much of the price of a token of context a reader pays that is not its first, by the readers
/// of a prefix: medians of vLLM's kernel on an H100 and an H200
/// (`scenarios/measured/gpu_kernels`, flash_attention_groups.csv).
constexpr std::array<double, 4> kReaders = {1, 2, 4, 8};
constexpr std::array<double, 4> kSlowL2 = {1, 0.83, 0.82, 0.75};
constexpr std::array<double, 4> kFastL2 = {1, 0.77, 0.61, 0.54};

double price_of_shared(double readers, bool fast_memory) {
  const std::array<double, 4>& price = fast_memory ? kSlowL2 : kFastL2;
  for (std::size_t i = 1; i < kReaders.size(); ++i)
    if (readers < kReaders[i])
      return price[i - 1] + (price[i] - price[i - 1]) * (readers - kReaders[i - 1]) /
                                (kReaders[i] - kReaders[i - 1]);
  return price.back();
}

}  // namespace

std::optional<KernelLatency> KernelLatency::make(const AcceleratorSpec& gpu, const ModelSpec& m,
                                                 const Parallelism& p,
                                                 const RooflineOptions& options) {
  auto surface = kernels::make_surface(gpu, m, p, options);
  if (!surface) return std::nullopt;
  KernelLatency out;
  out.surface_ = std::move(*surface);
  out.options_ = options;
  out.chunk_ns_ = gpu.chunk_layer_us * 1e3 * as_real(m.layers);
  out.fast_memory_ = gpu.memory_tb_per_s > 4;  // Faster than an H100's, with the same L2.
  out.provenance_ = "measured kernels of " +
                    kernels::KernelLibrary::of(gpu.name, options.engine)->name() + ": " + m.name +
                    " tp" + std::to_string(p.tp) + (p.ep > 1 ? " ep" + std::to_string(p.ep) : "");
  if (!m.is_mla() && gpu.mixed_decode_rows > 0) {
    // FlashAttention 2 computes whole tiles for decodes beside a prompt (AttentionCost).
    const double length = as_real(out.surface_.context.y.back());
    out.beside_prompt_ns_ =
        2 * as_real(gpu.mixed_decode_rows) * out.surface_.context.at(1, length) / (length * length);
  }
  return out;
}

double KernelLatency::prompt_ns(const BatchShape& s) const {
  const double prompts = as_real(std::max<std::int64_t>(1, s.prefill_requests));
  // A chunk behind a cached part has as many pairs of tokens as a whole prompt of this length.
  const double length = std::sqrt(as_real(s.prefill_pairs) / prompts);
  const DecodeLine read = models::decode_line(
      surface_.decode, std::max<std::int64_t>(1, s.prefill_requests), s.prefill_context);
  return std::max(surface_.context.at(prompts, length),
                  as_real(read.first) / static_cast<double>(kTicksPerNanosecond));
}

// Rows of the products: those of the CUDA graph that is replayed. SGLang has graphs of decodes
// only, of vLLM's sizes and of 12 (_generate_cuda_graph_batch_sizes in server_args.py of 0.5.9).
std::int64_t KernelLatency::rows(const BatchShape& s) const {
  const std::int64_t tokens = std::max<std::int64_t>(1, s.tokens());
  if (!options_.cuda_graphs) return tokens;
  if (options_.engine == ServingEngine::kVllm) return padded_to_graph(tokens);
  if (s.prefill_tokens > 0 || tokens > options_.largest_graph) return tokens;
  return tokens > 4 && tokens <= 12 ? (tokens + 3) / 4 * 4 : padded_to_graph(tokens);
}

// What a step without a full graph takes more.
double KernelLatency::launches_ns(const BatchShape& s) const {
  const bool any = options_.engine == ServingEngine::kVllm
                       ? s.prefill_tokens > s.prefill_requests
                       : s.prefill_tokens > 0 || s.decode_requests > options_.largest_graph;
  return any ? chunk_ns_ : 0;
}

double KernelLatency::fixed_ns(const BatchShape& s) const {
  double ns = surface_.tokens.at(as_real(rows(s))) +
              surface_.sampled.at(as_real(s.decode_requests + s.prefill_requests));
  if (s.prefill_tokens > 0) ns += prompt_ns(s);
  return ns;
}

DecodeLine KernelLatency::decode_line(const BatchShape& s) const {
  if (s.decode_requests == 0) return {.first = 0, .slope = 0, .steps = kUnboundedSteps};
  std::int64_t context = s.decode_context;
  if (s.shared_context > 0) {
    const double groups = as_real(std::max<std::int64_t>(1, s.decode_requests - s.shared_readers));
    const double price = price_of_shared(as_real(s.decode_requests) / groups, fast_memory_);
    context -= static_cast<std::int64_t>(as_real(s.shared_context) * (1 - price));
  }
  DecodeLine line = models::decode_line(surface_.decode, s.decode_requests, context);
  if (s.prefill_tokens > s.prefill_requests)
    line.first = std::max(line.first, ns_to_ticks(beside_prompt_ns_ * as_real(s.decode_context)));
  return line;
}

std::int64_t KernelLatency::host_ticks(const BatchShape& s) const {
  const double sequences = as_real(s.decode_requests + s.prefill_requests);
  return ms_to_ticks(kHostStepMs + kHostSequenceMs * sequences);
}

std::int64_t KernelLatency::step_ticks(const BatchShape& s) const {
  if (s.tokens() == 0 && s.group_tokens == 0) return 0;
  const double ns = fixed_ns(s) + launches_ns(s);
  const std::int64_t gpu =
      bounded_ticks(static_cast<WideTicks>(ns_to_ticks(ns)) + decode_line(s).first);
  const std::int64_t host = host_ticks(s);
  return std::max<std::int64_t>(1, options_.async_scheduling
                                       ? std::max(gpu, host)
                                       : bounded_ticks(static_cast<WideTicks>(gpu) + host));
}

DecodeRun KernelLatency::decode_run(const BatchShape& s) const {
  const DecodeLine line = decode_line(s);
  const double ns = fixed_ns(s) + launches_ns(s);
  const std::int64_t gpu = bounded_ticks(static_cast<WideTicks>(ns_to_ticks(ns)) + line.first);
  const std::int64_t increment =
      bounded_ticks(static_cast<WideTicks>(line.slope) * s.decode_requests);
  const std::int64_t host = host_ticks(s);
  if (options_.async_scheduling) return run_behind_cpu(gpu, increment, host, line.steps);
  return run_behind_cpu(bounded_ticks(static_cast<WideTicks>(gpu) + host), increment, 1,
                        line.steps);
}

CostCurveParameters KernelLatency::as_cost_curve() const {
  constexpr double kTickNs = 1.0 / static_cast<double>(kTicksPerNanosecond);
  constexpr std::int64_t kFew = 8, kMany = 128, kContext = 4096, kPrompt = 8192;
  const auto fixed_ms = [&](std::int64_t sequences) {
    return fixed_ns({.decode_requests = sequences}) * 1e-6 +
           as_real(models::decode_line(surface_.decode, sequences, 0).first) * kTickNs * 1e-6;
  };
  CostCurveParameters p;
  p.sequence_ms = std::max(0.0, (fixed_ms(kMany) - fixed_ms(kFew)) / as_real(kMany - kFew));
  p.step_ms = std::max(0.0, fixed_ms(kFew) - as_real(kFew) * p.sequence_ms);
  p.prefill_us_per_token =
      (surface_.tokens.at(kPrompt) - surface_.tokens.at(kPrompt / 2)) / (kPrompt / 2) * 1e-3;
  const double longest = as_real(surface_.context.y.back());
  p.prefill_pair_ns = surface_.context.at(1, longest) / (longest * longest);
  const DecodeLine line = models::decode_line(surface_.decode, kMany, kMany * kContext);
  p.context_us_per_ktok = as_real(line.slope) * kTickNs;
  p.shared_context_weight = price_of_shared(as_real(kFew), fast_memory_);
  p.async_scheduling = options_.async_scheduling;
  (options_.async_scheduling ? p.cpu_step_ms : p.step_ms) += kHostStepMs;
  (options_.async_scheduling ? p.cpu_sequence_ms : p.sequence_ms) += kHostSequenceMs;
  return p;
}

std::vector<KernelLatency::Share> KernelLatency::shares(const BatchShape& s) const {
  const std::int64_t tokens = rows(s);
  std::vector<Share> out;
  for (const kernels::OperationTime& o : surface_.operations)
    out.push_back({o.name, o.kernel, o.origin, o.by_tokens.at(as_real(tokens))});
  out.push_back({"output and sampler", "gemm/bfloat16", kernels::Origin::kTable,
                 surface_.sampled.at(as_real(s.decode_requests + s.prefill_requests))});
  out.push_back({"attention of decodes", "decode", surface_.attention,
                 as_real(decode_line(s).first) / static_cast<double>(kTicksPerNanosecond)});
  out.push_back({"attention of prompts", "context", surface_.attention,
                 s.prefill_tokens > 0 ? prompt_ns(s) : 0});
  out.push_back({"host and graphs", "", kernels::Origin::kPrinciples,
                 static_cast<double>(step_ticks(s)) / static_cast<double>(kTicksPerNanosecond)});
  for (std::size_t i = 0; i + 1 < out.size(); ++i) out.back().ns -= out[i].ns;
  return out;
}

}  // namespace routesim::models
