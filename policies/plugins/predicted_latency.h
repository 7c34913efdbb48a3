// predicted-latency-producer: turns the side-car's predictions, which come with the request, into
// headrooms to the SLOs. llm-d-router
// pkg/epp/framework/plugins/requestcontrol/dataproducer/predictedlatency.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/describe.h"
#include "policies/build_context.h"

namespace routesim::policies {

struct PredictedLatencyParameters {
  double slo_buffer_factor = 1.0;
  std::string context_ttl = "5m";
  bool streaming_mode = false;
  std::string endpoint_role_label;
  bool predict_in_produce = true, use_encoder_cache_features = false;
  double sampling_mean = 1000;
  std::int64_t max_decode_samples = 0;
  std::string prefix_producer, in_flight_producer;
};
inline void describe(Describer& d, PredictedLatencyParameters& p) {
  field(d, {"sloBufferFactor", "Share of the TPOT SLO to use."}, p.slo_buffer_factor,
        RealRange{.min = 0, .min_open = true});
  field(d, {"contextTTL", "How long upstream remembers a request."}, p.context_ttl);
  field(d, {"streamingMode", "TPOT counts only when answers stream."}, p.streaming_mode);
  field(d, {"endpointRoleLabel", "Label with the role; 'prefill' has no TPOT."},
        p.endpoint_role_label);
  field(d, {"predictInProduce", "False leaves every endpoint without a prediction."},
        p.predict_in_produce);
  field(d, {"useEncoderCacheFeatures", "A feature of the side-car's model."},
        p.use_encoder_cache_features);
  field(d, {"samplingMean", "Accepted and ignored, as upstream does."}, p.sampling_mean);
  field(d, {"maxDecodeTokenSamplesForPrediction", "Accepted and ignored, as upstream does."},
        p.max_decode_samples);
  field(d, {"prefixMatchInfoProducerName", "A feature of the side-car's model."},
        p.prefix_producer);
  field(d, {"inFlightLoadProducerName", "A feature of the side-car's model."},
        p.in_flight_producer);
}

class PredictedLatencyProducer final : public Producer {
 public:
  PredictedLatencyProducer(const PredictedLatencyParameters& p, const PluginSpec& spec,
                           BuildContext& context);
  void produce(Cycle& cycle) const override;
  Facts facts() const override { return Facts::kLatencyEstimates; }
  void on_routed(const RequestView& request, const Decision& decision,
                 const EndpointTable& endpoints, SimTime now) override;
  void on_completed(std::uint64_t request, SimTime now) override;
  void on_endpoint_removed(EndpointRow row, SimTime now) override;

 private:
  // The requests this router has running on one endpoint.
  struct Running {
    std::vector<double> tpot_slos_ms;  // Of those that have one.
    std::int64_t requests = 0;
    std::uint32_t generation = 0;
  };
  struct Sent {
    EndpointRow row;
    std::uint32_t generation;
    double tpot_slo_ms;
  };
  LatencyEstimate estimate(const Cycle& cycle, EndpointRow row,
                           const LatencyPrediction& prediction) const;

  PredictedLatencyParameters parameters_;
  std::vector<Running> running_;
  std::unordered_map<std::uint64_t, Sent> live_;  // Never iterated.
};

}  // namespace routesim::policies
