// The costs of speculative decoding for a server: the drafter's memory, and its passes in each
// step.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/describe.h"
#include "models/kv_cache_spec.h"
#include "models/latency_model.h"
#include "models/roofline.h"
#include "models/specs.h"

namespace routesim::models {

/// The kinds of drafters, by the names that vLLM gives them.
enum class DraftMethod { kEagle3, kEagle, kMtp, kDraftModel, kNgram };

/// A drafter as one GPU sees it.
struct Drafter {
  DraftMethod method = DraftMethod::kEagle3;
  std::int64_t tokens = 0;  ///< Tokens guessed in each step (k).
  /// Its layers and its output projection; no layers: it computes nothing (n-gram).
  ModelSpec model;
  /// Weights, on one GPU, of projections that no layer of `model` has: in its first pass of a step,
  /// and in each pass.
  double first_parameters = 0, pass_parameters = 0;
  bool owns_output = false;     ///< Its output projection is not the target's.
  bool owns_embedding = false;  ///< Nor is its embedding.
};

/// The drafter that belongs to `target`, from vLLM v0.12 to v0.24. `model` is that of a draft model
/// and null for the others, which are one layer beside the target:
/// - EAGLE-3 (model_executor/models/llama_eagle3.py): a dense bf16 layer whose first product takes
///   the token's embedding beside the hidden state; three hidden states of the target are joined
///   once in a step; an output projection of its own to 32,000 frequent tokens.
/// - EAGLE (llama_eagle.py): a dense bf16 layer behind a projection of embedding and hidden state;
///   the target's output projection.
/// - MTP (deepseek_mtp.py and others): one more layer of the target, experts and format included,
///   behind the same projection; the target's output projection.
/// The MLP of a dense layer beside a mixture of experts is as wide as all experts of a token.
Drafter make_drafter(DraftMethod method, std::int64_t tokens, const ModelSpec& target,
                     const ModelSpec* model, const Parallelism& p);

/// Bytes of its weights on one GPU.
double drafter_bytes_per_gpu(const Drafter& d, const Parallelism& p);
/// Bytes that it adds to a KV block of the target on one GPU: vLLM counts its layers among the
/// target's (get_kv_cache_specs), so that one block holds the tokens of both.
std::int64_t drafter_block_bytes(const Drafter& d, KvDtype dtype, const Parallelism& p,
                                 std::int64_t block_size);

/// A latency model whose steps verify drafts, and guess the next ones. The target computes drafts
/// as rows of its products and of its logits (BatchShape::draft_tokens), and reads the context of a
/// sequence once for all its rows. The drafter's first pass takes all tokens of the step, the
/// others one of each sequence; they run on the GPU behind the target's pass.
class SpeculativeLatency final : public LatencyModel {
 public:
  /// `pass` prices a pass of the drafter's layers (RooflineOptions::draft_pass); null: it has none.
  SpeculativeLatency(std::shared_ptr<const LatencyModel> target,
                     std::shared_ptr<const LatencyModel> pass, const Drafter& drafter,
                     const AcceleratorSpec& gpu);

  std::int64_t step_ticks(const BatchShape& shape) const override;
  Trust trust(const BatchShape& shape) const override { return target_->trust(shape); }
  std::string provenance() const override;

  /// The target's part of a step, and the drafter's.
  std::int64_t target_ticks(const BatchShape& shape) const { return target_->step_ticks(shape); }
  std::int64_t draft_ticks(const BatchShape& shape) const;
  const LatencyModel& target() const { return *target_; }
  std::int64_t tokens() const { return tokens_; }
  /// The method, the number of tokens, and what prices a pass.
  std::string drafting() const;

 private:
  double projections_ns(double parameters, double rows) const;

  std::shared_ptr<const LatencyModel> target_, pass_;
  std::int64_t tokens_;
  double first_parameters_, pass_parameters_;
  double kernel_ns_, byte_ns_, flop_ns_;
  std::string drafter_;
};

}  // namespace routesim::models

template <>
struct routesim::EnumNames<routesim::models::DraftMethod> {
  static constexpr std::array<std::string_view, 5> value = {"eagle3", "eagle", "mtp", "draft_model",
                                                            "ngram"};
};
