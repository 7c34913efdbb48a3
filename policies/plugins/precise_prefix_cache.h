// precise-prefix-cache-scorer: the share of the request's KV blocks an endpoint holds, from KV
// events. Normalisation differs between eras. llm-d-inference-scheduler
// pkg/plugins/scorer/precise_prefix_cache.go (to May 2026), llm-d-router preciseprefixcache.
#pragma once

#include "policies/plugins/prefix_producers.h"

namespace routesim::policies {

/// Min-max over every pod in the raw score map: a pod without an entry scores 0, and so does the
/// weakest one with an entry, unless all are equal.
inline double precise_min_max(double raw, bool has_entry, double lowest, double highest) {
  if (!has_entry) return 0;
  return lowest == highest ? 1.0 : (raw - lowest) / (highest - lowest);
}

class PrecisePrefixScorer final : public Scorer, public Producer {
 public:
  /// In eras with separate producers the scorer reads the document's only precise producer if
  /// there is one, and otherwise owns an index.
  PrecisePrefixScorer(const PrecisePrefixParameters& p, const PluginSpec& spec,
                      BuildContext& context);

  /// In eras with a prepare step the lookup is done once, before any profile; older ones do it
  /// when the scorer runs, so state read by other plugins appears only then.
  void produce(Cycle& cycle) const override {
    if (core_ && prepares_) core_->produce(cycle);
  }
  Facts facts() const override { return Facts::kPrefixMatches; }
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    if (core_) core_->produce(cycle);
    score_matches(cycle, candidates, scores);
  }
  void on_routed(const RequestView& request, const Decision& decision,
                 const EndpointTable& endpoints, SimTime now) override {
    if (core_) core_->on_routed(request, decision, endpoints, now);
  }

 private:
  void score_matches(Cycle& cycle, std::span<const EndpointRow> candidates,
                     std::span<double> scores) const;

  PreciseNormalization normalization_;
  bool prepares_;
  std::optional<PrecisePrefixProducer> core_;
  std::size_t slot_ = 0;
};

inline PrecisePrefixScorer::PrecisePrefixScorer(const PrecisePrefixParameters& p,
                                                const PluginSpec& spec, BuildContext& context)
    : normalization_(context.traits().precise.normalization),
      prepares_(context.traits().precise.lookup_candidates_only) {
  std::vector<std::string> producers;
  for (const PluginSpec& other : context.config().plugins)
    if (other.type == "precise-prefix-cache-producer") producers.push_back(other.name);
  if (producers.empty()) {
    core_.emplace(p, spec, context, true);
    slot_ = core_->slot();
    return;
  }
  if (producers.size() > 1)
    context.error(spec, "",
                  "cannot tell which of several precise-prefix-cache-producer instances to score",
                  "use prefix-cache-scorer with prefixMatchInfoProducerName");
  slot_ = context.prefix_slot_of(producers.front(), spec);
  if (spec.parameters->is_map())
    context.diagnostics().warning(spec.parameters->where(), spec.path + ".parameters",
                                  "have no effect: '" + producers.front() +
                                      "' is a precise-prefix-cache-producer and does the work",
                                  "move them there");
}

inline void PrecisePrefixScorer::score_matches(Cycle& cycle,
                                               std::span<const EndpointRow> candidates,
                                               std::span<double> scores) const {
  const PrefixMatches& m = cycle.prefix(slot_);
  if (m.keys == 0 || m.touched.empty()) {
    std::fill(scores.begin(), scores.end(), 0.0);
    return;
  }
  const auto keys = static_cast<double>(m.keys);
  const auto score_of = [&](EndpointRow r) {
    switch (normalization_) {
      case PreciseNormalization::kMinMax:
        return precise_min_max(m.raw[r], m.cached[r] > 0, m.lowest, m.highest);
      case PreciseNormalization::kAbsolute:
        return std::min(1.0, m.raw[r] / keys);
      case PreciseNormalization::kTruncated:
        break;
    }
    return static_cast<double>(m.match[r]) / keys;
  };
  score_holders(m, candidates, scores, score_of);
}

}  // namespace routesim::policies
