// predicted-latency-producer: turns the side-car's predictions, which come with the request, into
// headrooms to the SLOs. llm-d-router
// pkg/epp/framework/plugins/requestcontrol/dataproducer/predictedlatency.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/describe.h"
#include "base/scalar_parse.h"
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
                           BuildContext& context)
      : parameters_(p) {
    context.needs().predictions = true;
    if (!go_duration(p.context_ttl))
      context.error(spec, "contextTTL", "must be a duration (got '" + p.context_ttl + "')");
  }
  void produce(Cycle& cycle) const override {
    const auto predictions = cycle.request().predictions;
    if (!parameters_.predict_in_produce || predictions.empty()) return;
    cycle.latency().assign(cycle.endpoints().rows(), LatencyEstimate{});
    for (const EndpointRow r : cycle.candidates())
      if (r < predictions.size() && predictions[r].present)
        cycle.latency()[r] = estimate(cycle, r, predictions[r]);
  }
  Facts facts() const override { return Facts::kLatencyEstimates; }
  void on_routed(const RequestView& request, const Decision& decision,
                 const EndpointTable& endpoints, SimTime) override {
    const EndpointRow row = decision.primary.value();
    if (running_.size() < endpoints.rows()) running_.resize(endpoints.rows());
    Running& r = running_[row];
    ++r.requests;
    if (request.slo_tpot_ms > 0) r.tpot_slos_ms.push_back(request.slo_tpot_ms);
    live_[request.id] = {row, r.generation, request.slo_tpot_ms};
  }
  void on_completed(std::uint64_t request, SimTime) override {
    const auto it = live_.find(request);
    if (it == live_.end()) return;
    const Sent sent = it->second;
    live_.erase(it);
    Running& r = running_[sent.row];
    if (r.generation != sent.generation) return;
    --r.requests;
    const auto slo = std::find(r.tpot_slos_ms.begin(), r.tpot_slos_ms.end(), sent.tpot_slo_ms);
    if (slo == r.tpot_slos_ms.end()) return;
    *slo = r.tpot_slos_ms.back();
    r.tpot_slos_ms.pop_back();
  }
  void on_endpoint_removed(EndpointRow row, SimTime) override {
    if (row >= running_.size()) return;
    running_[row] = {.tpot_slos_ms = {}, .requests = 0, .generation = running_[row].generation + 1};
  }

 private:
  // The requests this router has running on one endpoint.
  struct Running {
    std::vector<double> tpot_slos_ms;  // One per request that has one.
    std::int64_t requests = 0;
    std::uint32_t generation = 0;
  };
  struct Sent {
    EndpointRow row;
    std::uint32_t generation;
    double tpot_slo_ms;
  };
  LatencyEstimate estimate(const Cycle& cycle, EndpointRow row,
                           const LatencyPrediction& prediction) const {
    const RequestView& request = cycle.request();
    LatencyEstimate e{.present = true, .ttft_ms = prediction.ttft_ms};
    e.ttft_headroom_ms = request.slo_ttft_ms - prediction.ttft_ms;
    bool tpot_counts = parameters_.streaming_mode;
    if (!parameters_.endpoint_role_label.empty()) {
      const auto& labels = cycle.endpoints().info(row).labels;
      const auto it = labels.find(parameters_.endpoint_role_label);
      if (it != labels.end() && it->second == "prefill") tpot_counts = false;
    }
    if (tpot_counts) {
      double budget = request.slo_tpot_ms * parameters_.slo_buffer_factor;
      if (row < running_.size() && !running_[row].tpot_slos_ms.empty()) {
        const auto& slos = running_[row].tpot_slos_ms;
        const double tightest = *std::min_element(slos.begin(), slos.end());
        budget = std::min(budget, tightest * parameters_.slo_buffer_factor);
      }
      e.tpot_headroom_ms = budget - prediction.tpot_ms;
    }
    e.valid = prediction.ttft_ms < request.slo_ttft_ms && (!tpot_counts || e.tpot_headroom_ms > 0);
    e.dispatched = row < running_.size() ? running_[row].requests : 0;
    return e;
  }

  PredictedLatencyParameters parameters_;
  std::vector<Running> running_;
  std::unordered_map<std::uint64_t, Sent> live_;  // Never iterated.
};

}  // namespace routesim::policies
