// predicted-latency-producer: turns the side-car's predictions, which come with the request, into
// headrooms to the SLOs. llm-d-router
// pkg/epp/framework/plugins/requestcontrol/dataproducer/predictedlatency.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "policies/config/factory.h"

namespace routesim::policies {

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
