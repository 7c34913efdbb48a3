#include "models/cost_curve.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "models/ticks.h"

namespace routesim::models {

void describe(Describer& d, CostCurveParameters& p) {
  const RealRange amount{.min = 0, .max = 1e6};
  field(d, {"step_ms", "Constant part of a step, ms."}, p.step_ms, amount);
  field(d, {"sequence_ms", "Per decoding sequence, ms."}, p.sequence_ms, amount);
  field(d, {"context_us_per_ktok", "Per 1000 effective KV tokens decode reads, us."},
        p.context_us_per_ktok, amount);
  field(d,
        {"shared_context_weight",
         "Cost of context in blocks that eight or more sequences read, 1 is full; two readers save "
         "0.6 of what they do, four 0.75."},
        p.shared_context_weight, RealRange{.min = 0, .max = 1});
  field(d,
        {"mixed_context_us_per_ktok",
         "Least per 1000 KV tokens that decode reads beside a prompt chunk, us: FlashAttention 2 "
         "computes a tile of rows for each head. 0: no dearer than alone."},
        p.mixed_context_us_per_ktok, amount);
  field(d, {"prefill_us_per_token", "Per new prompt token, us."}, p.prefill_us_per_token, amount);
  field(d, {"prefill_pair_ns", "Per unit of the sum of (computed+new)^2 - computed^2, ns."},
        p.prefill_pair_ns, amount);
  field(d, {"prefill_chunk_ms", "Per prompt chunk, ms."}, p.prefill_chunk_ms, amount);
  field(d, {"token_us", "Communication per token of any kind, us."}, p.token_us, amount);
  field(d, {"cpu_step_ms", "CPU part of a step, ms."}, p.cpu_step_ms, amount);
  field(d, {"cpu_sequence_ms", "CPU part per sequence in the step, ms."}, p.cpu_sequence_ms,
        amount);
  field(d, {"async_scheduling", "CPU part hides behind the GPU part."}, p.async_scheduling);
  field(d,
        {"group_round_ms",
         "Lock-step ranks: per round of tokens through the experts (dispatch, their weights, "
         "combine), ms. A step has one, or one per moe_dp_chunk_size tokens."},
        p.group_round_ms, amount);
  field(d, {"group_padding_us", "Lock-step ranks: per token below the largest rank, us."},
        p.group_padding_us, amount);
  field(d, {"group_token_us", "Lock-step ranks: per token of all ranks, us."}, p.group_token_us,
        amount);
}

void describe(Describer& d, FittedRange& r) {
  const IntRange amount{.min = 0};
  field(d, {"max_decode_requests", "Most decoding sequences; 0 is unknown."}, r.max_decode_requests,
        amount);
  field(d, {"max_decode_context", "Most effective context tokens; 0 is unknown."},
        r.max_decode_context, amount);
  field(d, {"max_prefill_tokens", "Most prompt tokens in a step; 0 is unknown."},
        r.max_prefill_tokens, amount);
  field(d, {"max_prefill_context", "Longest prompt, tokens; 0 is unknown."}, r.max_prefill_context,
        amount);
}

CostCurve::CostCurve(const CostCurveParameters& p, const FittedRange& range, std::string provenance)
    : step_(ms_to_ticks(p.step_ms)),
      sequence_(ms_to_ticks(p.sequence_ms)),
      context_(ns_to_ticks(p.context_us_per_ktok)),  // us per 1000 tokens is ns per token.
      shared_context_(ns_to_ticks(p.context_us_per_ktok * p.shared_context_weight)),
      mixed_context_(ns_to_ticks(p.mixed_context_us_per_ktok)),
      prefill_token_(us_to_ticks(p.prefill_us_per_token)),
      prefill_pair_q8_(ns_to_ticks(p.prefill_pair_ns * 256)),
      prefill_chunk_(ms_to_ticks(p.prefill_chunk_ms)),
      token_(us_to_ticks(p.token_us)),
      cpu_step_(ms_to_ticks(p.cpu_step_ms)),
      cpu_sequence_(ms_to_ticks(p.cpu_sequence_ms)),
      group_round_(ms_to_ticks(p.group_round_ms)),
      group_padding_(us_to_ticks(p.group_padding_us)),
      group_token_(us_to_ticks(p.group_token_us)),
      async_(p.async_scheduling),
      parameters_(p),
      range_(range),
      provenance_(std::move(provenance)) {
  for (double v :
       {p.step_ms, p.sequence_ms, p.context_us_per_ktok, p.prefill_us_per_token, p.prefill_pair_ns,
        p.prefill_chunk_ms, p.token_us, p.cpu_step_ms, p.cpu_sequence_ms, p.group_round_ms,
        p.group_padding_us, p.group_token_us, p.mixed_context_us_per_ktok})
    ROUTESIM_CHECK(std::isfinite(v) && v >= 0, "cost curve coefficient out of range");
  ROUTESIM_CHECK(p.shared_context_weight >= 0 && p.shared_context_weight <= 1,
                 "shared_context_weight out of range");
}

std::int64_t CostCurve::gpu_ticks(const BatchShape& s) const {
  const auto times = [](std::int64_t ticks, std::int64_t count) {
    return static_cast<WideTicks>(ticks) * count;
  };
  const std::int64_t shared = widely_shared(s);
  WideTicks context = times(context_, s.decode_context - shared) + times(shared_context_, shared);
  if (s.prefill_tokens > s.prefill_requests)
    context = std::max(context, times(mixed_context_, s.decode_context));
  WideTicks t = step_ + times(sequence_, s.decode_requests) + context + times(token_, s.tokens());
  if (s.prefill_tokens > 0)
    t += times(prefill_token_, s.prefill_tokens) + (times(prefill_pair_q8_, s.prefill_pairs) >> 8) +
         times(prefill_chunk_, s.prefill_requests);
  if (s.group_tokens > 0)
    t += times(group_round_, s.group_rounds) +
         times(group_padding_, std::max<std::int64_t>(0, s.group_tokens - s.tokens())) +
         times(group_token_, s.group_total_tokens);
  return bounded_ticks(t);
}

std::int64_t CostCurve::cpu_ticks(const BatchShape& s) const {
  return bounded_ticks(cpu_step_ + static_cast<WideTicks>(cpu_sequence_) *
                                       (s.decode_requests + s.prefill_requests));
}

std::int64_t CostCurve::step_ticks(const BatchShape& s) const {
  if (s.tokens() == 0 && s.group_tokens == 0) return 0;
  const std::int64_t gpu = gpu_ticks(s);
  const std::int64_t cpu = cpu_ticks(s);
  return std::max<std::int64_t>(1, async_ ? std::max(gpu, cpu) : bounded_ticks(gpu + cpu));
}

DecodeRun CostCurve::decode_run(const BatchShape& s) const {
  const std::int64_t gpu = gpu_ticks(s);
  const std::int64_t cpu = cpu_ticks(s);
  const std::int64_t increment =
      bounded_ticks(static_cast<WideTicks>(context_) * s.decode_requests);
  // A floor of one tick is a knee like any other; it only ever binds for all-zero coefficients.
  if (async_)
    return run_behind_cpu(gpu, increment, std::max<std::int64_t>(1, cpu), kUnboundedSteps);
  return run_behind_cpu(bounded_ticks(gpu + cpu), increment, 1, kUnboundedSteps);
}

Trust CostCurve::trust(const BatchShape& s) const {
  const auto beyond = [](std::int64_t value, std::int64_t limit) {
    return limit > 0 && value > limit;
  };
  if (beyond(s.decode_requests, range_.max_decode_requests)) return Trust::kExtrapolated;
  if (beyond(s.prefill_tokens, range_.max_prefill_tokens)) return Trust::kExtrapolated;
  if (s.prefill_requests > 0 &&
      beyond(s.prefill_context / s.prefill_requests, range_.max_prefill_context))
    return Trust::kExtrapolated;
  const auto saved = static_cast<std::int64_t>(static_cast<double>(widely_shared(s)) *
                                               (1 - parameters_.shared_context_weight));
  const std::int64_t effective = s.decode_context - saved;
  return beyond(effective, range_.max_decode_context) ? Trust::kExtrapolated : Trust::kFitted;
}

}  // namespace routesim::models
