// no-hit-lru-scorer: spreads cold requests (nobody holds any of the prompt) over the endpoints that
// received one longest ago; warm requests score 0.5 everywhere.
// llm-d-router pkg/epp/framework/plugins/scheduling/scorer/nohitlru.
#pragma once

#include <limits>

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

// The slot whose state tells cold from warm. Upstream looked it up by plugin type and name before
// producers existed; a type that writes no such state leaves every request cold.
inline std::optional<std::size_t> state_slot(const NoHitLruParameters& p, BuildContext& context) {
  const std::string type =
      p.prefix_plugin_type.empty() ? "prefix-cache-scorer" : p.prefix_plugin_type;
  const std::string wanted = p.prefix_plugin_name.empty() ? type : p.prefix_plugin_name;
  const bool precise_writes = context.era() >= Era::kV0_5_0;
  for (const PluginSpec& spec : context.config().plugins) {
    if (spec.type != type || spec.name != wanted) continue;
    if (spec.type == "precise-prefix-cache-scorer" && !precise_writes) return std::nullopt;
    return context.prefix_slot(spec.name);
  }
  return std::nullopt;
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
  NoHitLruScorer(const NoHitLruParameters& p, const PluginSpec& spec, BuildContext& context)
      : order_(p.lru_size > 0 ? static_cast<std::size_t>(p.lru_size) : 1024) {
    context.needs().in_flight = true;  // It learns from on_routed.
    if (!context.traits().match_info_producers) {
      slot_ = state_slot(p, context);
      if (slot_) {
        const std::string type =
            p.prefix_plugin_type.empty() ? "prefix-cache-scorer" : p.prefix_plugin_type;
        // The precise scorer of these releases writes an entry for every candidate, even 0.
        written_means_warm_ = type == "precise-prefix-cache-scorer";
      }
      return;
    }
    // In May 2026 match info was one attribute, which the precise scorer writes if it is there.
    if (p.producer.empty() && context.era() == Era::kMay2026) {
      for (const PluginSpec& other : context.config().plugins) {
        if (other.type != "precise-prefix-cache-scorer") continue;
        slot_ = context.prefix_slot(other.name);
        return;
      }
    }
    slot_ = context.prefix_slot_of(p.producer, spec);
  }
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    const bool cold = is_cold(cycle, candidates);
    // Upstream keeps one flag per request, so the profile scored last decides.
    cycle.decision().set_note(index(), kColdNote, cold ? 1 : 0);
    if (!cold) {
      std::fill(scores.begin(), scores.end(), 0.5);
      return;
    }
    constexpr std::uint32_t kNeverUsed = std::numeric_limits<std::uint32_t>::max();
    std::vector<std::uint32_t>& rank = cycle.count_buffer();
    rank.assign(cycle.endpoints().rows(), kNeverUsed);
    const std::span<const EndpointRow> used = order_.oldest_first();
    for (std::uint32_t i = 0; i < used.size(); ++i) rank[used[i]] = i;
    std::vector<EndpointRow>& fresh = cycle.row_buffer();
    fresh.clear();
    for (const EndpointRow r : candidates)
      if (rank[r] == kNeverUsed) fresh.push_back(r);
    cycle.arbitrary_order(fresh);
    const auto fresh_count = static_cast<std::uint32_t>(fresh.size());
    for (const EndpointRow r : used) rank[r] += fresh_count;
    for (std::uint32_t i = 0; i < fresh_count; ++i) rank[fresh[i]] = i;
    no_hit_lru_scores(candidates, rank, scores);
  }
  void on_routed(const RequestView&, const Decision& decision, const EndpointTable&,
                 SimTime) override {
    if (decision.note(index(), kColdNote, 0) == 0) return;
    for_each_cached_target(decision, [this](EndpointRow row) { order_.touch(row); });
  }
  void on_endpoint_removed(EndpointRow row, SimTime) override { order_.erase(row); }
  const ColdRequestOrder& order() const { return order_; }

 private:
  static constexpr std::uint32_t kColdNote = 0;
  bool is_cold(const Cycle& cycle, std::span<const EndpointRow> candidates) const {
    if (!slot_) return true;
    const PrefixMatches& m = cycle.prefix(*slot_);
    if (!m.written) return true;
    if (written_means_warm_) return false;
    const bool all = consecutive(candidates);
    return std::none_of(m.touched.begin(), m.touched.end(), [&](EndpointRow r) {
      return m.match[r] > 0 && (all ? r >= candidates.front() && r <= candidates.back()
                                    : std::binary_search(candidates.begin(), candidates.end(), r));
    });
  }

  ColdRequestOrder order_;
  std::optional<std::size_t> slot_;
  bool written_means_warm_ = false;
};

}  // namespace routesim::policies
