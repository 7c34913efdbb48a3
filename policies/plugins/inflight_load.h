// inflight-load-producer: what this router has sent and not seen finished, per endpoint, exact and
// immediate. llm-d-router pkg/epp/framework/plugins/requestcontrol/dataproducer/inflightload.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/describe.h"
#include "base/field_fates.h"
#include "policies/build_context.h"
#include "policies/plugins.h"

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
std::int64_t estimate_output_tokens(std::int64_t input_tokens, double ratio,
                                    std::optional<std::int64_t> client_cap,
                                    std::optional<std::int64_t> operator_cap);

/// max(0, total - match) * bs, plus whatever of the n tokens lies beyond the indexed blocks.
std::int64_t uncached_tokens(std::int64_t input_tokens, std::int64_t match, std::int64_t total,
                             std::int64_t block_size);

/// The counter. Requests and tokens per endpoint row.
class InFlightLoad final : public Producer, public InFlightCounts {
 public:
  InFlightLoad(const InFlightLoadParameters& parameters, const PluginSpec& spec,
               BuildContext& context);

  std::int64_t requests(EndpointRow r) const override {
    return r < load_.size() ? load_[r].requests : 0;
  }
  std::int64_t tokens(EndpointRow r) const override {
    return r < load_.size() ? load_[r].tokens : 0;
  }
  /// Tokens this request would add on an endpoint.
  std::int64_t request_tokens(const Cycle& cycle, EndpointRow row) const;
  std::size_t tracked_requests() const override { return live_.size(); }

  void produce(Cycle&) const override {}  // Its counts are read live.
  Facts facts() const override { return Facts::kLoad; }
  void on_decided(Cycle& cycle, Decision& decision) const override;
  void on_routed(const RequestView& request, const Decision& decision,
                 const EndpointTable& endpoints, SimTime now) override;
  void on_first_token(std::uint64_t request, SimTime now) override;
  void on_completed(std::uint64_t request, SimTime now) override;
  void on_endpoint_removed(EndpointRow row, SimTime now) override;

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
  void release_tokens(Share& share);
  void release_request(Share& share);

  InFlightLoadParameters parameters_;
  std::size_t prefix_slot_ = 0;
  std::vector<std::uint8_t> is_prefill_profile_;
  std::vector<Load> load_;
  std::unordered_map<std::uint64_t, std::vector<Share>> live_;  // Never iterated.
};

/// The counter instance `name`; empty = the default one, which is created if the document has none.
/// nullptr with an error when `name` is no counter.
InFlightLoad* in_flight_load(BuildContext& context, const std::string& name,
                             const PluginSpec& user);

}  // namespace routesim::policies
