// inflight-load-producer: what this router has sent and not seen finished, per endpoint, exact and
// immediate. llm-d-router pkg/epp/framework/plugins/requestcontrol/dataproducer/inflightload.
#pragma once

#include <cmath>
#include <unordered_map>

#include "policies/build_context.h"

namespace routesim::policies {

struct InFlightLoadParameters {
  bool add_estimated_output_tokens = false;
  double output_ratio = 1.5;
  std::optional<std::int64_t> max_estimated_output_tokens;
  std::string prefix_producer;
  bool sync_cross_replica_state = true;
};
inline void describe(Describer& d, InFlightLoadParameters& p) {
  field(d, {"addEstimatedOutputTokens", "Count an estimate of the answer too."},
        p.add_estimated_output_tokens);
  field(d, {"outputRatio", "Estimated answer tokens per prompt token."}, p.output_ratio,
        RealRange{0});
  field(d, {"maxEstimatedOutputTokens", "Cap of the estimate."}, p.max_estimated_output_tokens);
  field(d, {"prefixMatchInfoProducerName", "Producer of the cached prefix to subtract."},
        p.prefix_producer);
  field(d,
        approximated("syncCrossReplicaState", "Share the counts between routers.",
                     "every router counts its own requests only"),
        p.sync_cross_replica_state);
}

/// min(round(n * ratio), the client's cap if >= 0, the operator's cap if >= 0); 0 when n <= 0.
inline std::int64_t estimate_output_tokens(std::int64_t input_tokens, double ratio,
                                           std::optional<std::int64_t> client_cap,
                                           std::optional<std::int64_t> operator_cap) {
  if (input_tokens <= 0) return 0;
  const double estimate = std::round(static_cast<double>(input_tokens) * ratio);
  auto tokens = estimate >= 9e18 ? std::int64_t{9'000'000'000'000'000'000}
                                 : static_cast<std::int64_t>(estimate);
  if (client_cap && *client_cap >= 0) tokens = std::min(tokens, *client_cap);
  if (operator_cap && *operator_cap >= 0) tokens = std::min(tokens, *operator_cap);
  return tokens;
}

/// max(0, total - match) * bs, plus whatever of the n tokens lies beyond the indexed blocks.
inline std::int64_t uncached_tokens(std::int64_t input_tokens, std::int64_t match,
                                    std::int64_t total, std::int64_t block_size) {
  return std::max<std::int64_t>(0, total - match) * block_size +
         std::max<std::int64_t>(0, input_tokens - total * block_size);
}

/// The counter. Requests and tokens per endpoint row.
class InFlightLoad final : public Producer, public InFlightCounts {
 public:
  InFlightLoad(const InFlightLoadParameters& parameters, const PluginSpec& spec,
               BuildContext& context)
      : parameters_(parameters) {
    context.needs().in_flight = context.needs().prompt_tokens = true;
    // Prefix info is optional: without a producer the slot stays empty and every token counts.
    prefix_slot_ = parameters.prefix_producer.empty()
                       ? context.prefix_slot("approx-prefix-cache-producer")
                       : context.prefix_slot_of(parameters.prefix_producer, spec);
    for (const ProfileSpec& p : context.config().profiles)
      is_prefill_profile_.push_back(p.name == "prefill" ? 1 : 0);
    if (context.plugins().in_flight == nullptr) context.plugins().in_flight = this;
  }

  std::int64_t requests(EndpointRow r) const override {
    return r < load_.size() ? load_[r].requests : 0;
  }
  std::int64_t tokens(EndpointRow r) const override {
    return r < load_.size() ? load_[r].tokens : 0;
  }
  /// Tokens this request would add on an endpoint.
  std::int64_t request_tokens(const Cycle& cycle, EndpointRow row) const {
    const RequestView& request = cycle.request();
    const std::int64_t n = request.prompt_tokens;
    std::int64_t tokens = n;
    const PrefixMatches& m = cycle.prefix(prefix_slot_);
    if (m.written) tokens = uncached_tokens(n, m.match[row], m.total_blocks, m.block_size);
    if (parameters_.add_estimated_output_tokens)
      tokens += estimate_output_tokens(n, parameters_.output_ratio, request.max_tokens,
                                       parameters_.max_estimated_output_tokens);
    return tokens;
  }
  std::size_t tracked_requests() const override { return live_.size(); }

  void produce(Cycle&) const override {}  // Its counts are read live.
  Facts facts() const override { return Facts::kLoad; }
  void on_decided(Cycle& cycle, Decision& decision) const override {
    for (const ProfileResult& result : decision.profiles) {
      if (!result.has_target()) continue;
      const EndpointRow row = result.targets.front();
      decision.set_note(index(), row, request_tokens(cycle, row));
    }
  }
  void on_routed(const RequestView& request, const Decision& decision,
                 const EndpointTable& endpoints, SimTime) override {
    if (load_.size() < endpoints.rows()) load_.resize(endpoints.rows());
    std::vector<Share>& shares = live_[request.id];
    for (std::size_t p = 0; p < decision.profiles.size(); ++p) {
      const ProfileResult& result = decision.profiles[p];
      if (!result.has_target()) continue;
      const EndpointRow row = result.targets.front();
      const std::int64_t tokens = decision.note(index(), row, request.prompt_tokens);
      load_[row].requests += 1;
      load_[row].tokens += tokens;
      shares.push_back({.row = row,
                        .generation = load_[row].generation,
                        .tokens = tokens,
                        .prefill = p < is_prefill_profile_.size() && is_prefill_profile_[p] != 0,
                        .counted = true});
    }
  }
  void on_first_token(std::uint64_t request, SimTime) override {
    const auto it = live_.find(request);
    if (it == live_.end()) return;
    for (Share& share : it->second) {
      if (!parameters_.add_estimated_output_tokens || share.prefill) release_tokens(share);
      if (share.prefill) release_request(share);
    }
  }
  void on_completed(std::uint64_t request, SimTime) override {
    const auto it = live_.find(request);
    if (it == live_.end()) return;
    for (Share& share : it->second) {
      release_tokens(share);
      release_request(share);
    }
    live_.erase(it);
  }
  void on_endpoint_removed(EndpointRow row, SimTime) override {
    if (row >= load_.size()) return;
    load_[row] = {.requests = 0, .tokens = 0, .generation = load_[row].generation + 1};
  }

 private:
  struct Load {
    std::int64_t requests = 0;
    std::int64_t tokens = 0;
    std::uint32_t generation = 0;  // Grows when the row changes owner, so late releases miss.
  };
  struct Share {
    EndpointRow row;
    std::uint32_t generation;
    std::int64_t tokens;
    bool prefill;
    bool counted;  // Its request is still counted.
  };
  void release_tokens(Share& share) {
    Load& load = load_[share.row];
    if (load.generation == share.generation)
      load.tokens = std::max<std::int64_t>(0, load.tokens - share.tokens);
    share.tokens = 0;
  }
  void release_request(Share& share) {
    Load& load = load_[share.row];
    if (share.counted && load.generation == share.generation)
      load.requests = std::max<std::int64_t>(0, load.requests - 1);
    share.counted = false;
  }

  InFlightLoadParameters parameters_;
  std::size_t prefix_slot_ = 0;
  std::vector<std::uint8_t> is_prefill_profile_;
  std::vector<Load> load_;
  std::unordered_map<std::uint64_t, std::vector<Share>> live_;  // Never iterated.
};

/// The counter instance `name`; empty = the default one, which is created if the document has none.
/// nullptr with an error when `name` is no counter.
inline InFlightLoad* in_flight_load(BuildContext& context, const std::string& name,
                                    const PluginSpec& user) {
  return dynamic_cast<InFlightLoad*>(
      context.producer(name, Facts::kLoad, user, "inFlightLoadProducerName"));
}

}  // namespace routesim::policies
