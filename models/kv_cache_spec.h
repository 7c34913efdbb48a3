// How many KV blocks an engine gets: device memory, less weights, activations and overhead.
// The rule is vLLM's (worker.determine_available_memory): utilisation · memory − what the profile
// run occupied; block bytes per layer from the attention kind.
#pragma once

#include <cstdint>
#include <optional>

#include "base/diagnostic.h"
#include "models/specs.h"

namespace routesim::models {

/// The inputs that decide the capacity of one engine core (one DP rank).
struct KvCacheInput {
  AcceleratorSpec accelerator;
  ModelSpec model;
  Parallelism parallelism;
  KvDtype kv_dtype = KvDtype::kBf16;
  std::int64_t block_size = 16;                ///< Tokens per block, >= 1.
  double gpu_memory_utilization = 0.90;        ///< (0, 1].
  std::int64_t max_num_batched_tokens = 8192;  ///< Sizes the activations of the profile run.
  std::int64_t max_num_seqs = 1024;            ///< Sizes the logits of the profile run.
  std::int64_t max_model_len = 0;  ///< One sequence of this length must fit; 0 skips the check.
  /// Known capacity (the engine log's number) replaces the estimate when present.
  std::optional<std::int64_t> num_gpu_blocks = std::nullopt;
  /// Overhead in bytes that replaces accelerator.overhead_bytes + activations when present.
  std::optional<double> overhead_bytes = std::nullopt;
  bool hybrid_manager = true;  ///< Windowed layers hold no more KV than their window takes.
  double graph_share = 0;      ///< Of device memory, set aside for CUDA graphs.
  double adapter_bytes = 0;    ///< Slots for LoRA adapters, on one GPU.
  double drafter_bytes = 0;    ///< Weights of a drafter, on one GPU.
  std::int64_t drafter_block_bytes = 0;  ///< What its layers add to a block, on one GPU.
};

/// The capacity and the account of where the memory went, per GPU, in bytes.
struct KvCachePlan {
  std::int64_t num_gpu_blocks = 0;  ///< vLLM's N; one of them is the permanent null block.
  std::int64_t block_size = 0;
  std::int64_t bytes_per_block = 0;  ///< On one GPU.
  double memory = 0;                 ///< utilisation · device memory.
  double weights = 0;
  double activations = 0;
  double overhead = 0;
  double available = 0;          ///< What is left for KV.
  bool explicit_blocks = false;  ///< num_gpu_blocks was given, not estimated.

  std::int64_t tokens() const { return num_gpu_blocks * block_size; }
};

/// Bytes that a token leaves in one layer on one GPU, in a layer that sees everything and in one
/// with a window. GQA heads divide by tp down to one head per GPU (then they are replicated); an
/// MLA latent is never divided. In fp8 a latent that is read sparsely has scales and keeps its
/// positions in bf16 (656 bytes for DeepSeek V3.2, 584 for V4, MLAAttentionSpec in
/// vllm/v1/kv_cache_interface.py of v0.24.0).
std::int64_t kv_entry_bytes(const ModelSpec& m, KvDtype dtype, std::int64_t tp);
std::int64_t window_entry_bytes(const ModelSpec& m, KvDtype dtype, std::int64_t tp);

/// Bytes of one sequence's state in one layer that keeps a state, on one GPU: the matrices of its
/// heads, and the convolution's last inputs in bf16 (MambaStateShapeCalculator in
/// vllm/model_executor/layers/mamba/mamba_utils.py of v0.24.0).
std::int64_t state_bytes(const StateLayers& s, std::int64_t tp);

/// The KV cache as vLLM lays it out on one GPU. Its groups of layers take blocks of one size from
/// one pool (get_kv_cache_groups in vllm/v1/core/kv_cache_utils.py of v0.24.0).
struct KvLayout {
  std::int64_t block_size = 0;       ///< Tokens of a block, at least as many as were asked for.
  std::int64_t bytes_per_block = 0;  ///< Of all layers of a group.
  /// Groups that do not grow with the sequence, each as large as that of the layers that do: 1 for
  /// gpt-oss, 6 for Gemma-3-27B, 3 for Qwen3.5; 0 where no layer has a window, or all have.
  std::int64_t fixed_groups = 0;
  bool states = false;  ///< These groups keep one block per sequence: its state. Else a window.
};

/// The layout for blocks of `block_size` tokens. A model with states gets blocks so long that keys
/// and values fill at least the page of a state, in steps of 16 tokens, of 64 with MLA
/// (Platform._align_hybrid_block_size, vllm/platforms/interface.py of v0.24.0, and before v0.19
/// HybridAttentionMambaModelConfig, vllm/model_executor/models/config.py). Where windowed layers
/// keep more bytes per token, blocks are longer by as much (unify_kv_cache_spec_page_size), and a
/// group of such layers counts so many times. Without vLLM's `hybrid` KV cache manager windowed
/// layers grow like the others. With decode context parallelism each GPU has a block of
/// `block_size` tokens, and the scheduler counts them together as one (SingleTypeKVCacheManager in
/// vllm/v1/core/single_type_kv_cache_manager.py: block_size *= dcp_world_size).
KvLayout kv_layout(const ModelSpec& m, KvDtype dtype, const Parallelism& p, std::int64_t block_size,
                   bool hybrid = true);

/// KV bytes by which a token makes a sequence grow on one GPU. With the `hybrid` manager windowed
/// layers do not count: they hold a constant number of blocks per sequence, and the capacity that
/// vLLM reports grows by full-attention layers only. The deepest pipeline stage decides.
std::int64_t kv_bytes_per_token_per_gpu(const ModelSpec& m, KvDtype dtype, const Parallelism& p,
                                        bool hybrid = true);

/// Peak activations of vLLM's profile run on one GPU: three residual-width tensors and the wider of
/// attention and MLP intermediates for every batched token, plus the sampler's logits copies.
double activation_bytes(const ModelSpec& m, const Parallelism& p, std::int64_t batched_tokens,
                        std::int64_t sequences);

/// The capacity, or nothing with at least one error in `diagnostics`. An impossible fit says by how
/// many GiB per GPU, and what would make it fit.
std::optional<KvCachePlan> plan_kv_cache(const KvCacheInput& in, Diagnostics& diagnostics);

}  // namespace routesim::models
