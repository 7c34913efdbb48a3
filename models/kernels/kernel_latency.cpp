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

/// Tokens of all data-parallel ranks, and the rounds in which the experts get them.
struct GroupTokens {
  double all = 0, rounds = 1;
};
GroupTokens of_all_ranks(const BatchShape& s, std::int64_t ranks) {
  const std::int64_t all = s.group_total_tokens > 0 ? s.group_total_tokens : s.tokens() * ranks;
  return {as_real(std::max<std::int64_t>(1, all)),
          as_real(std::max<std::int64_t>(1, s.group_rounds))};
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
  out.launches_ = LaunchCost(gpu, m, p, options.graphs());
  out.ranks_ = p.dp;
  out.shared_price_ = gpu.shared_context_weight;
  out.provenance_ = "measured kernels of " +
                    kernels::KernelLibrary::of(gpu.name, options.engine)->name() + ": " + m.name +
                    " tp" + std::to_string(p.tp) + (p.dp > 1 ? " dp" + std::to_string(p.dp) : "") +
                    (p.ep > 1 ? " ep" + std::to_string(p.ep) : "");
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
  // A state takes the new tokens one after another, whatever is cached before them.
  return std::max(surface_.context.at(prompts, length),
                  as_real(read.first) / static_cast<double>(kTicksPerNanosecond)) +
         surface_.states.at(prompts, as_real(s.prefill_tokens) / prompts);
}

std::int64_t KernelLatency::padded_tokens(const BatchShape& s) const {
  return std::max(launches_.rows(s), s.group_tokens);
}

double KernelLatency::group_ns(const BatchShape& s) const {
  const auto [all, rounds] = of_all_ranks(s, ranks_);
  return rounds * surface_.group.at(all / rounds);
}

double KernelLatency::fixed_ns(const BatchShape& s) const {
  const std::int64_t sampled = options_.draft_pass ? s.sampled() - s.draft_tokens : s.sampled();
  double ns = surface_.tokens.at(as_real(padded_tokens(s))) + group_ns(s) +
              surface_.sampled.at(as_real(sampled));
  if (s.prefill_tokens > 0) ns += prompt_ns(s);
  return launches_.added_to(ns, s);
}

DecodeLine KernelLatency::decode_line(const BatchShape& s) const {
  if (s.decode_requests == 0) return {.first = 0, .slope = 0, .steps = kUnboundedSteps};
  const auto saved = static_cast<std::int64_t>(as_real(widely_shared(s)) * (1 - shared_price_));
  DecodeLine line =
      models::decode_line(surface_.decode, s.decode_requests, s.decode_context - saved);
  if (s.prefill_tokens > s.prefill_requests)
    line.first = std::max(line.first, ns_to_ticks(beside_prompt_ns_ * as_real(s.decode_context)));
  return line;
}

std::int64_t KernelLatency::host_ticks(const BatchShape& s) const {
  if (options_.draft_pass) return 0;
  const double sequences = as_real(s.decode_requests + s.prefill_requests);
  return ms_to_ticks(kHostStepMs + kHostSequenceMs * sequences);
}

std::int64_t KernelLatency::step_ticks(const BatchShape& s) const {
  if (s.tokens() == 0 && s.group_tokens == 0) return 0;
  const std::int64_t gpu =
      bounded_ticks(static_cast<WideTicks>(ns_to_ticks(fixed_ns(s))) + decode_line(s).first);
  const std::int64_t host = host_ticks(s);
  return std::max<std::int64_t>(1, options_.async_scheduling
                                       ? std::max(gpu, host)
                                       : bounded_ticks(static_cast<WideTicks>(gpu) + host));
}

DecodeRun KernelLatency::decode_run(const BatchShape& s) const {
  const DecodeLine line = decode_line(s);
  const std::int64_t gpu =
      bounded_ticks(static_cast<WideTicks>(ns_to_ticks(fixed_ns(s))) + line.first);
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
  p.shared_context_weight = shared_price_;
  p.async_scheduling = options_.async_scheduling;
  (options_.async_scheduling ? p.cpu_step_ms : p.step_ms) += kHostStepMs;
  (options_.async_scheduling ? p.cpu_sequence_ms : p.sequence_ms) += kHostSequenceMs;
  return p;
}

std::vector<KernelLatency::Share> KernelLatency::shares(const BatchShape& s) const {
  const double own = as_real(padded_tokens(s));
  const auto [all, rounds] = of_all_ranks(s, ranks_);
  std::vector<Share> out;
  for (const kernels::OperationTime& o : surface_.operations)
    out.push_back({o.name, o.kernel, o.origin,
                   o.of_all_ranks ? rounds * o.by_tokens.at(all / rounds) : o.by_tokens.at(own)});
  out.push_back({"output and sampler", "gemm/bfloat16", kernels::Origin::kTable,
                 surface_.sampled.at(as_real(s.sampled()))});
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
