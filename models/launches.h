// CUDA graphs: which steps they hold, and what launches cost the others.
#pragma once

#include <cstdint>

#include "models/latency_model.h"
#include "models/specs.h"

namespace routesim::models {

/// vLLM's default capture size a batch of `tokens` runs with; `tokens` itself above 512.
std::int64_t padded_to_graph(std::int64_t tokens);

/// The step is one CUDA graph: no sequence has more than its next token. With drafts all must have
/// as many, and together no more than the largest capture (`max_num_seqs * decode_query_len * 2`,
/// at most 512, vllm/config/vllm.py of v0.12 to v0.24).
bool runs_as_one_graph(const BatchShape& shape);

/// Which steps are in graphs.
struct GraphRules {
  bool cuda_graphs = true;  ///< False: eager.
  bool full_graphs = true;  ///< False: graphs end before each layer's attention.
  ServingEngine engine = ServingEngine::kVllm;
  std::int64_t largest_graph = 512;  ///< SGLang: decode steps of more sequences have no graph.
};

/// What launches add to the GPU's part of a step: of a whole model, by how much of it is in graphs.
class LaunchCost {
 public:
  LaunchCost() = default;
  LaunchCost(const AcceleratorSpec& a, const ModelSpec& m, const Parallelism& p,
             const GraphRules& rules);
  /// Rows of the products: those of the graph that is replayed. SGLang has graphs of decodes only,
  /// of vLLM's sizes and of 12 (_generate_cuda_graph_batch_sizes in server_args.py of 0.5.9).
  std::int64_t rows(const BatchShape& shape) const;
  /// The part with its launches, `ns` being its kernels but the attention of decodes.
  double added_to(double ns, const BatchShape& shape) const;

 private:
  bool is_one_graph(const BatchShape& shape) const;

  GraphRules rules_;
  double chunk_ns_ = 0;   ///< Of a step with more than one token of a prompt in it.
  double gaps_ns_ = 0;    ///< Between the graphs of a step.
  double eager_ns_ = 0;   ///< Without graphs: least time to launch all kernels.
  double prompt_ns_ = 0;  ///< SGLang: least time to launch a prompt.
};

}  // namespace routesim::models
