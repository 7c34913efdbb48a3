// no-hit-lru-scorer: spreads cold requests (nobody holds any of the prompt) over the endpoints that
// received one longest ago; warm requests score 0.5 everywhere.
// llm-d-router pkg/epp/framework/plugins/scheduling/scorer/nohitlru.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/describe.h"
#include "policies/plugins/prefix_producers.h"

namespace routesim::policies {

struct NoHitLruParameters {
  std::int64_t lru_size = 1024;
  std::string producer, prefix_plugin_type, prefix_plugin_name;
};
inline void describe(Describer& d, NoHitLruParameters& p) {
  field(d, {"lruSize", "Endpoints remembered."}, p.lru_size);
  field(d, {"prefixMatchInfoProducerName", "Producer that tells cold from warm."}, p.producer);
  field(d, {"prefixPluginType", "Older way to name the prefix plugin."}, p.prefix_plugin_type);
  field(d, {"prefixPluginName", "Older way to name the prefix plugin."}, p.prefix_plugin_name);
}

/// Endpoints in the order of their last cold request, oldest first, at most `capacity` of them.
class ColdRequestOrder {
 public:
  explicit ColdRequestOrder(std::size_t capacity) : capacity_(capacity) {}
  void touch(EndpointRow row) {
    erase(row);
    order_.push_back(row);
    if (order_.size() > capacity_) order_.erase(order_.begin());
  }
  void erase(EndpointRow row) { std::erase(order_, row); }
  std::span<const EndpointRow> oldest_first() const { return order_; }

 private:
  std::size_t capacity_;
  std::vector<EndpointRow> order_;
};

/// Scores of a cold request by `rank`, per row the position in: never-used candidates in their
/// (arbitrary) order, then all used endpoints oldest first, candidates or not.
inline void no_hit_lru_scores(std::span<const EndpointRow> candidates,
                              std::span<const std::uint32_t> rank, std::span<double> scores) {
  if (candidates.size() == 1) {
    scores[0] = 1.0;
    return;
  }
  const double steps = static_cast<double>(candidates.size()) - 1;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    scores[i] = std::max(0.0, 1.0 - static_cast<double>(rank[candidates[i]]) / steps);
}

class NoHitLruScorer final : public Scorer {
 public:
  NoHitLruScorer(const NoHitLruParameters& p, const PluginSpec& spec, BuildContext& context);
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override;
  void on_routed(const RequestView&, const Decision& decision, const EndpointTable&,
                 SimTime) override {
    if (decision.note(index(), kColdNote, 0) == 0) return;
    const CachedTargets targets = cached_targets(decision);
    if (targets.primary) order_.touch(*targets.primary);
    if (targets.prefill) order_.touch(*targets.prefill);
  }
  void on_endpoint_removed(EndpointRow row, SimTime) override { order_.erase(row); }
  const ColdRequestOrder& order() const { return order_; }

 private:
  static constexpr std::uint32_t kColdNote = 0;
  bool is_cold(const Cycle& cycle, std::span<const EndpointRow> candidates) const;

  ColdRequestOrder order_;
  std::optional<std::size_t> slot_;
  bool written_means_warm_ = false;
};

}  // namespace routesim::policies
