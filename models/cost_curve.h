// A step-time curve with a handful of physical coefficients, fitted to measurements:
//
//   gpu = a + c·B + d·(T − (1−θ)·W) + p1·P + p2·S + k·chunks + m·tokens + group terms
//   cpu = h0 + h1·sequences
//   step = async ? max(gpu, cpu) : gpu + cpu
//
// W is widely_shared(). Decode and prefill of a mixed step add up: that is what static-batch
// measurements of vLLM show. FlashAttention 2 computes a tile for each head of a decode beside a
// prompt chunk: a token of decode context costs at least mixed_context there.
#pragma once

#include <cstdint>
#include <string>

#include "base/describe.h"
#include "models/latency_model.h"

namespace routesim::models {

/// The coefficients. All are >= 0; units are in the names.
struct CostCurveParameters {
  double step_ms = 0;                    ///< a: weights streamed once, launches.
  double sequence_ms = 0;                ///< c: per decoding sequence.
  double context_us_per_ktok = 0;        ///< d: per 1000 effective KV tokens read by decode.
  double shared_context_weight = 1;      ///< θ in [0, 1]: cost of context that many read.
  double mixed_context_us_per_ktok = 0;  ///< The same beside a prompt chunk; 0: no dearer.
  double prefill_us_per_token = 0;       ///< p1.
  double prefill_pair_ns = 0;     ///< p2: per unit of S = Σ (computed+new)² − computed².
  double prefill_chunk_ms = 0;    ///< k: per prompt chunk.
  double token_us = 0;            ///< m: communication, per token of any kind.
  double cpu_step_ms = 0;         ///< h0.
  double cpu_sequence_ms = 0;     ///< h1: per sequence in the step.
  bool async_scheduling = false;  ///< CPU work hides behind the GPU.
  double group_round_ms = 0;      ///< Lock-step DP: per round of tokens through the experts.
  double group_padding_us = 0;    ///< Lock-step DP: per token below the largest rank's count.
  double group_token_us = 0;      ///< Lock-step DP: per token of all ranks (all-to-all, experts).
};

void describe(Describer& d, CostCurveParameters& p);

/// The box of batches the coefficients were fitted on; 0 means "no upper limit known".
struct FittedRange {
  std::int64_t max_decode_requests = 0;
  std::int64_t max_decode_context = 0;  ///< Effective tokens: those that many read count θ.
  std::int64_t max_prefill_tokens = 0;
  std::int64_t max_prefill_context = 0;  ///< Longest prompt, as the mean over the step's chunks.
};

void describe(Describer& d, FittedRange& r);

/// The curve as a latency model. Coefficients become integers (ticks per token, and ticks/2^8 per
/// pair), so a run of decode steps is affine to the last tick.
class CostCurve final : public LatencyModel {
 public:
  /// Negative or non-finite parameters are a bug of the caller (tools check ranges first).
  CostCurve(const CostCurveParameters& parameters, const FittedRange& range,
            std::string provenance);

  std::int64_t step_ticks(const BatchShape& shape) const override;
  DecodeRun decode_run(const BatchShape& shape) const override;
  Trust trust(const BatchShape& shape) const override;
  std::string provenance() const override { return provenance_; }
  const CostCurveParameters& parameters() const { return parameters_; }
  const FittedRange& range() const { return range_; }

 private:
  std::int64_t gpu_ticks(const BatchShape& shape) const;
  std::int64_t cpu_ticks(const BatchShape& shape) const;

  std::int64_t step_ = 0, sequence_ = 0, context_ = 0, shared_context_ = 0, mixed_context_ = 0;
  std::int64_t prefill_token_ = 0, prefill_pair_q8_ = 0, prefill_chunk_ = 0, token_ = 0;
  std::int64_t cpu_step_ = 0, cpu_sequence_ = 0;
  std::int64_t group_round_ = 0, group_padding_ = 0, group_token_ = 0;
  bool async_ = false;
  CostCurveParameters parameters_;
  FittedRange range_;
  std::string provenance_;
};

}  // namespace routesim::models
