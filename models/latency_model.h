// How long one engine step takes. The only question the engine asks of models/.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "base/describe.h"

namespace routesim::models {

/// Step times are integers in ticks of 2^-10 ns, so that k steps summed at once and one by one are
/// the same number. int64 ticks hold 104 days.
inline constexpr std::int64_t kTicksPerNanosecond = 1024;
inline constexpr std::int64_t kTicksPerMillisecond = kTicksPerNanosecond * 1'000'000;

/// No model answers with a longer step: 12 hours. What would take longer is answered with this very
/// value, so that a clock near its end can still add two of them.
inline constexpr std::int64_t kLongestStepTicks = kTicksPerMillisecond * 12 * 3'600'000;

/// The work of one forward pass of one engine core (one DP rank). Token counts.
struct BatchShape {
  std::int64_t decode_requests = 0;  ///< B: sequences that decode.
  std::int64_t draft_tokens = 0;     ///< Tokens that they verify besides one each (speculation).
  std::int64_t decode_context = 0;   ///< T: sum of their contexts, shared blocks every time.
  std::int64_t shared_context = 0;   ///< T - U: the part of T that stands in blocks another running
                                     ///< sequence also holds (all but one holder of each block).
  std::int64_t shared_once = 0;      ///< The tokens of those blocks, each once: a mean block has
                                     ///< 1 + shared_context / shared_once readers. 0: many.
  std::int64_t prefill_requests = 0;  ///< Prompt chunks in the step.
  std::int64_t prefill_tokens = 0;    ///< P: new prompt tokens computed.
  std::int64_t prefill_context = 0;   ///< K_p: sum over chunks of (computed + new) tokens read.
  std::int64_t prefill_pairs = 0;     ///< S: sum over chunks of (computed + new)^2 - computed^2.
  std::int64_t group_tokens = 0;  ///< Lock-step DP: what all ranks are padded to: the most of any,
                                  ///< in whole buffers; 0 when the rank stands alone.
  std::int64_t group_total_tokens = 0;  ///< Lock-step DP: tokens of all ranks (all-to-all volume).
  std::int64_t group_rounds = 1;    ///< Lock-step DP: buffers of tokens the experts get one by one.
  std::int64_t adapter_tokens = 0;  ///< Tokens of requests with a LoRA adapter.
  std::int64_t adapter_loads = 0;   ///< Adapters that come from host memory before the step,
  std::int64_t adapter_reads = 0;   ///< and that come to it from disk.

  std::int64_t tokens() const { return decode_requests + draft_tokens + prefill_tokens; }
  /// Rows of logits: a token of each sequence, and each draft.
  std::int64_t sampled() const { return decode_requests + draft_tokens + prefill_requests; }
};

/// The shared context in tokens that are as cheap as with many readers; the rest costs as if nobody
/// else read it. A second reader of a prefix finds less of it in the GPU's L2 cache than an eighth:
/// two readers save 0.6, four 0.75 of what many do (means of an H100 and an H200 with vLLM's
/// FlashAttention 3, `scenarios/measured/gpu_kernels`, flash_attention_groups.csv). The length of
/// the prefix changes nothing there.
std::int64_t widely_shared(const BatchShape& s);

/// A run of pure-decode steps in which each of the B sequences grows by one token per step and
/// nothing else changes: step i (from 0) takes `first + i * increment` ticks while i < steps.
struct DecodeRun {
  std::int64_t first = 0;
  std::int64_t increment = 0;
  std::int64_t steps = 1;
};

/// The basis of the step times of a batch, from the best known to the least.
enum class Trust {
  kFitted,        ///< Measured, or fitted to measurements of this deployment.
  kExtrapolated,  ///< The same, but the batch lies outside the range of those measurements.
  kKernels,       ///< A sum of measured kernels; nothing of this deployment was measured.
  kRoofline,      ///< First principles, with efficiencies measured on this accelerator.
  kDataSheet,     ///< First principles, with efficiencies of a similar one, or the defaults.
};

}  // namespace routesim::models

namespace routesim {
template <>
struct EnumNames<models::Trust> {
  static constexpr std::array<std::string_view, 5> value = {"fitted", "outside the fitted range",
                                                            "kernels", "roofline", "data sheet"};
};
}  // namespace routesim

namespace routesim::models {

/// A deterministic step-time model. Implementations are immutable and shared between replicas.
class LatencyModel {
 public:
  virtual ~LatencyModel() = default;

  /// Ticks one step with this batch takes; at least 1 for a non-empty batch. `shape` may be the
  /// dummy batch of an idle lock-step rank (decode_requests 0, prefill_tokens 0, group_tokens > 0).
  virtual std::int64_t step_ticks(const BatchShape& shape) const = 0;

  /// The longest run from `shape` (prefill fields 0, decode_requests >= 1) that is affine in the
  /// step index. Law, tested: for all i < run.steps, with decode_context advanced by
  /// i * decode_requests, step_ticks == first + i * increment. The default is one step.
  virtual DecodeRun decode_run(const BatchShape& shape) const { return {step_ticks(shape), 0, 1}; }

  /// The part of step_ticks(shape) that only the last stage of a pipeline works on: the output
  /// projection. The default knows of none.
  virtual std::int64_t last_stage_ticks(const BatchShape&) const { return 0; }

  /// Whether `shape` lies inside the range the model was fitted on.
  virtual Trust trust(const BatchShape& shape) const = 0;

  /// One line: which model, from what data.
  virtual std::string provenance() const = 0;
};

/// The same model with steps `factor` (above 0) times as long, to a thousandth; 1 = as it was, also
/// where `model` is slowed already.
std::shared_ptr<const LatencyModel> slowed(std::shared_ptr<const LatencyModel> model,
                                           double factor);

}  // namespace routesim::models
