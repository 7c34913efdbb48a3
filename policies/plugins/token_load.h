// token-load-scorer: falls linearly with the tokens in flight plus this request's uncached tokens.
// llm-d-router pkg/epp/framework/plugins/scheduling/scorer/tokenload.
#pragma once

#include "policies/plugins/inflight_load.h"

namespace routesim::policies {

struct TokenLoadParameters {
  std::int64_t queue_threshold_tokens = 4'194'304;
  std::string in_flight_producer;
};
inline void describe(Describer& d, TokenLoadParameters& p) {
  field(d, {"queueThresholdTokens", "Tokens at which the score reaches 0; not positive = default."},
        p.queue_threshold_tokens);
  field(d, {"inFlightLoadProducerName", "Instance that counts tokens; empty = the default."},
        p.in_flight_producer);
}

/// 1 when idle, 0 at `threshold` tokens (> 0).
inline double token_load_score(std::int64_t load, double threshold) {
  if (load <= 0) return 1;
  return 1 - std::min(static_cast<double>(load), threshold) / threshold;
}

class TokenLoadScorer final : public Scorer {
 public:
  TokenLoadScorer(const TokenLoadParameters& p, const PluginSpec& spec, BuildContext& context)
      : threshold_(p.queue_threshold_tokens > 0 ? static_cast<double>(p.queue_threshold_tokens)
                                                : 4'194'304.0),
        load_(counter(p, spec, context)) {}
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const EndpointRow r = candidates[i];
      scores[i] = token_load_score(load_->tokens(r) + load_->request_tokens(cycle, r), threshold_);
    }
  }

 private:
  // llm-d-router 0.9.0 pkg/epp/datalayer/data_graph.go makes a missing producer only where every
  // attribute it is needed for has a default one. UncachedRequestTokens has none.
  static InFlightLoad* counter(const TokenLoadParameters& p, const PluginSpec& spec,
                               BuildContext& context) {
    const PluginSpec* declared = context.config().find("inflight-load-producer");
    if (context.traits().token_load_needs_producer && p.in_flight_producer.empty() &&
        (declared == nullptr || declared->implicit))
      context.error(
          spec, "",
          "needs a declared inflight-load-producer: without one the router does not start",
          "add 'type: inflight-load-producer' to plugins");
    return in_flight_load(context, p.in_flight_producer, spec);
  }

  double threshold_;
  const InFlightLoad* load_;
};

}  // namespace routesim::policies
