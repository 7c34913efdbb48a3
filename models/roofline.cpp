#include "models/roofline.h"

#include <algorithm>

#include "models/ticks.h"

namespace routesim::models {
Roofline::Roofline(const AcceleratorSpec& a, const ModelSpec& m, const Parallelism& p,
                   const RooflineOptions& options)
    : options_(options),
      dense_(a, m, p),
      experts_(a, m, p, options.older_experts),
      attention_(a, m, p, options.kv_dtype, options.older_fp8_cache),
      communication_(a, m, p),
      context_exchange_(a, m, p, options.kv_dtype),
      launches_(a, m, p, options.graphs()),
      host_step_(ms_to_ticks(a.host_step_ms)),
      host_sequence_(ms_to_ticks(p.tp * p.pp == 1 && a.one_gpu_sequence_ms > 0
                                     ? a.one_gpu_sequence_ms
                                     : a.host_sequence_ms)),
      trust_(a.measured ? Trust::kRoofline : Trust::kDataSheet) {
  provenance_ = "roofline, unfitted: " + m.name + " on " + a.name + " tp" + std::to_string(p.tp) +
                (p.pp > 1 ? " pp" + std::to_string(p.pp) : "") +
                (p.dp > 1 ? " dp" + std::to_string(p.dp) : "") +
                (p.ep > 1 ? " ep" + std::to_string(p.ep) : "") +
                (p.dcp > 1 ? " dcp" + std::to_string(p.dcp) : "") + " (" + a.source + ")";
}

std::int64_t Roofline::fixed_ticks(const BatchShape& s) const {
  const double tokens = as_real(std::max(launches_.rows(s), s.group_tokens));
  double ns =
      dense_.ns(tokens, as_real(options_.draft_pass ? s.sampled() - s.draft_tokens : s.sampled())) +
      experts_.ns(s);
  ns = communication_.add_to(ns, tokens) + context_exchange_.ns(s);
  if (s.prefill_tokens > 0) ns += attention_.prefill_ns(s);
  return ns_to_ticks(launches_.added_to(ns, s));
}

std::int64_t Roofline::host_ticks(const BatchShape& s) const {
  if (options_.draft_pass) return 0;
  return bounded_ticks(host_step_ + static_cast<WideTicks>(host_sequence_) *
                                        (s.decode_requests + s.prefill_requests));
}

std::int64_t Roofline::step_ticks(const BatchShape& s) const {
  if (s.tokens() == 0 && s.group_tokens == 0) return 0;
  const std::int64_t gpu = bounded_ticks(fixed_ticks(s) + attention_.decode_ticks(s));
  const std::int64_t host = host_ticks(s);
  return std::max<std::int64_t>(
      1, options_.async_scheduling ? std::max(gpu, host) : bounded_ticks(gpu + host));
}

std::int64_t Roofline::last_stage_ticks(const BatchShape& s) const {
  return ns_to_ticks(dense_.output_ns(as_real(s.sampled())));
}

DecodeRun Roofline::decode_run(const BatchShape& s) const {
  const std::int64_t gpu = bounded_ticks(fixed_ticks(s) + attention_.decode_ticks(s));
  const std::int64_t host = host_ticks(s);
  const auto [slope, steps] = attention_.growth(s);
  const std::int64_t increment = bounded_ticks(static_cast<WideTicks>(slope) * s.decode_requests);
  if (options_.async_scheduling)
    return run_behind_cpu(gpu, increment, std::max<std::int64_t>(1, host), steps);
  return run_behind_cpu(bounded_ticks(gpu + host), increment, 1, steps);
}

CostCurveParameters Roofline::as_cost_curve() const {
  const double tick_ns = 1.0 / static_cast<double>(kTicksPerNanosecond);
  const auto fixed_ms = [&](std::int64_t decode, std::int64_t prefill) {
    BatchShape s;
    s.decode_requests = decode;
    s.prefill_tokens = prefill;
    return as_real(fixed_ticks(s)) * tick_ns * 1e-6;
  };
  const double host_step_ms = as_real(host_step_) * tick_ns * 1e-6;
  const double host_sequence_ms = as_real(host_sequence_) * tick_ns * 1e-6;
  CostCurveParameters p;
  p.sequence_ms = (fixed_ms(128, 0) - fixed_ms(8, 0)) / 120.0;
  p.step_ms = std::max(0.0, fixed_ms(8, 0) - 8.0 * p.sequence_ms);
  p.prefill_us_per_token = (fixed_ms(0, 8192) - fixed_ms(0, 4096)) / 4096.0 * 1e3;
  p.prefill_pair_ns = attention_.pair_ns();
  const std::int64_t context = attention_.context_ticks();
  p.context_us_per_ktok = as_real(context) * tick_ns;
  p.shared_context_weight =
      context > 0 ? as_real(attention_.shared_context_ticks()) / as_real(context) : 1.0;
  const std::int64_t beside_prompt =
      attention_.decode_ticks({.decode_context = 1, .prefill_requests = 1, .prefill_tokens = 2});
  if (beside_prompt > context) p.mixed_context_us_per_ktok = as_real(beside_prompt) * tick_ns;
  p.async_scheduling = options_.async_scheduling;
  if (options_.async_scheduling) {
    p.cpu_step_ms = host_step_ms;
    p.cpu_sequence_ms = host_sequence_ms;
  } else {
    p.step_ms += host_step_ms;
    p.sequence_ms += host_sequence_ms;
  }
  return p;
}

}  // namespace routesim::models
