// mm-embeddings-cache-scorer: the share, by size, of the request's multimodal items whose
// embeddings an endpoint has cached. llm-d-router
// pkg/epp/framework/plugins/scheduling/scorer/mmcacheaffinity.
#pragma once

#include "policies/build_context.h"

namespace routesim::policies {

inline double mm_embeddings_score(double cached_size, double total_size) {
  return total_size > 0 ? cached_size / total_size : 0;
}

class MmEmbeddingsCacheScorer final : public Scorer {
 public:
  explicit MmEmbeddingsCacheScorer(BuildContext& context) { context.needs().encoder_cache = true; }
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    const RequestView& request = cycle.request();
    double total = 0;
    for (const EncoderItem& item : request.items) total += item.size;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const EndpointRow r = candidates[i];
      const double cached = r < request.cached_item_size.size() ? request.cached_item_size[r] : 0;
      scores[i] = mm_embeddings_score(cached, total);
    }
  }
};

}  // namespace routesim::policies
