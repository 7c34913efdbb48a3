// prefix-cache-scorer: matched over total blocks, optionally mixed with the squared matched length.
// llm-d-router pkg/epp/framework/plugins/scheduling/scorer/prefix. Before separate producers
// existed (up to April 2026) the same type owned the approximate index and scored the plain ratio.
#pragma once

#include "policies/plugins/prefix_producers.h"

namespace routesim::policies {

struct PrefixCacheParameters {
  std::string producer;
  double match_length_weight = 0;
  double match_length_scale_tokens = 8192;
};
inline void describe(Describer& d, PrefixCacheParameters& p) {
  field(d, {"prefixMatchInfoProducerName", "Producer to score; empty = the approximate one."},
        p.producer);
  field(d, {"matchLengthWeight", "Weight of the squared matched length against the ratio."},
        p.match_length_weight, RealRange{0, 1});
  field(d, {"matchLengthScaleTokens", "Matched tokens that count as a full length."},
        p.match_length_scale_tokens);
}

/// w * min(1, match*bs/S)^2 + (1-w) * match/total; 0 without blocks.
inline double prefix_cache_score(std::int64_t match, std::int64_t total, std::int64_t block_size,
                                 double weight, double scale_tokens) {
  if (total <= 0) return 0;
  const double ratio = static_cast<double>(match) / static_cast<double>(total);
  if (weight == 0) return ratio;
  const double length =
      std::min(1.0, static_cast<double>(match) * static_cast<double>(block_size) / scale_tokens);
  return weight * length * length + (1 - weight) * ratio;
}

class PrefixCacheScorer final : public Scorer {
 public:
  PrefixCacheScorer(const PrefixCacheParameters& p, const PluginSpec& spec, BuildContext& context)
      : parameters_(p), slot_(context.prefix_slot_of(p.producer, spec)) {
    if (p.match_length_weight > 0 && !(p.match_length_scale_tokens > 0))
      context.error(spec, "matchLengthScaleTokens",
                    "must be greater than 0 when matchLengthWeight is");
  }
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    const PrefixMatches& m = cycle.prefix(slot_);
    score_holders(m, candidates, scores, [&](EndpointRow r) {
      return !m.written ? 0
                        : prefix_cache_score(m.match[r], m.total_blocks, m.block_size,
                                             parameters_.match_length_weight,
                                             parameters_.match_length_scale_tokens);
    });
  }

 private:
  PrefixCacheParameters parameters_;
  std::size_t slot_;
};

/// The type as it was up to April 2026: index, hooks and score in one plugin.
class OwningPrefixCacheScorer final : public ApproxPrefixProducer, public Scorer {
 public:
  OwningPrefixCacheScorer(const ApproxPrefixParameters& p, const PluginSpec& spec,
                          BuildContext& context)
      : ApproxPrefixProducer(p, spec, context),
        prepares_(context.traits().precise.lookup_candidates_only) {}
  void produce(Cycle& cycle) const override {
    if (prepares_) ApproxPrefixProducer::produce(cycle);
  }
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    ApproxPrefixProducer::produce(cycle);
    const PrefixMatches& m = cycle.prefix(slot());
    score_holders(m, candidates, scores, [&](EndpointRow r) {
      return prefix_cache_score(m.match[r], m.total_blocks, m.block_size, 0, 1);
    });
  }

 private:
  bool prepares_;
};

}  // namespace routesim::policies
