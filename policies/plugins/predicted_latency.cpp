#include "policies/plugins/predicted_latency.h"

#include <algorithm>

#include "base/scalar_parse.h"

namespace routesim::policies {

PredictedLatencyProducer::PredictedLatencyProducer(const PredictedLatencyParameters& p,
                                                   const PluginSpec& spec, BuildContext& context)
    : parameters_(p) {
  context.needs().predictions = true;
  if (!go_duration(p.context_ttl))
    context.error(spec, "contextTTL", "must be a duration (got '" + p.context_ttl + "')");
}

LatencyEstimate PredictedLatencyProducer::estimate(const Cycle& cycle, EndpointRow row,
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

void PredictedLatencyProducer::produce(Cycle& cycle) const {
  const auto predictions = cycle.request().predictions;
  if (!parameters_.predict_in_produce || predictions.empty()) return;
  cycle.latency().assign(cycle.endpoints().rows(), LatencyEstimate{});
  for (const EndpointRow r : cycle.candidates())
    if (r < predictions.size() && predictions[r].present)
      cycle.latency()[r] = estimate(cycle, r, predictions[r]);
}

void PredictedLatencyProducer::on_routed(const RequestView& request, const Decision& decision,
                                         const EndpointTable& endpoints, SimTime) {
  const EndpointRow row = decision.primary.value();
  if (running_.size() < endpoints.rows()) running_.resize(endpoints.rows());
  Running& r = running_[row];
  ++r.requests;
  if (request.slo_tpot_ms > 0) r.tpot_slos_ms.push_back(request.slo_tpot_ms);
  live_[request.id] = {row, r.generation, request.slo_tpot_ms};
}

void PredictedLatencyProducer::on_completed(std::uint64_t request, SimTime) {
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

void PredictedLatencyProducer::on_endpoint_removed(EndpointRow row, SimTime) {
  if (row >= running_.size()) return;
  running_[row] = {.tpot_slos_ms = {}, .requests = 0, .generation = running_[row].generation + 1};
}

}  // namespace routesim::policies
