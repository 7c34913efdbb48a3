#include "sim/scaling/fleet_metrics.h"

#include <algorithm>
#include <array>

namespace routesim::sim {

namespace {

// vllm/v1/metrics/loggers.py (v0.11).
constexpr std::array kVllmTtft = {0.001, 0.005, 0.01, 0.02,  0.04,  0.06,  0.08, 0.1,
                                  0.25,  0.5,   0.75, 1.0,   2.5,   5.0,   7.5,  10.0,
                                  20.0,  40.0,  80.0, 160.0, 640.0, 2560.0};
constexpr std::array kVllmTpot = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,  0.3,  0.4, 0.5,
                                  0.75, 1.0,   2.5,  5.0,   7.5, 10.0, 20.0, 40.0, 80.0};
constexpr std::array kVllmLatency = {0.3,  0.5,   0.8,   1.0,   1.5,   2.0,    2.5,
                                     5.0,  10.0,  15.0,  20.0,  30.0,  40.0,   50.0,
                                     60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0};
// llm-d-router pkg/epp/metrics/metrics.go (@04706996), generalLatencyBuckets.
constexpr std::array kRouterLatency = {
    0.005, 0.025, 0.05,  0.1,   0.2,   0.4,   0.6,   0.8,    1.0,    1.25,   1.5,   2.0,
    3.0,   4.0,   5.0,   6.0,   8.0,   10.0,  15.0,  20.0,   30.0,   45.0,   60.0,  120.0,
    180.0, 240.0, 300.0, 360.0, 480.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0};
// The same repository's predictedlatency plugin, tpotBuckets.
constexpr std::array kRouterTpot = {0.0005, 0.00205, 0.005, 0.01, 0.02,  0.04,  0.06,  0.08, 0.1,
                                    0.125,  0.15,    0.2,   0.3,  0.4,   0.5,   0.6,   0.8,  1.0,
                                    1.5,    2.0,     3.0,   4.5,  6.0,   12.0,  18.0,  24.0, 30.0,
                                    36.0,   48.0,    60.0,  90.0, 120.0, 180.0, 270.0, 360.0};

struct Row {
  FleetMetric metric;
  FleetMetricKind kind;
  std::string_view names;  ///< With spaces between them.
};
using M = FleetMetric;
constexpr FleetMetricKind kG = FleetMetricKind::kGauge, kC = FleetMetricKind::kCounter,
                          kH = FleetMetricKind::kHistogram;

/// In the order of the enumerators. The endpoint picker's names changed twice: inference_* is
/// Gateway API inference extension's, llm_d_router_epp_* and llm_d_epp_* are llm-d's.
constexpr std::array<Row, kFleetMetrics> kRows = {{
    {M::kWaiting, kG, "vllm:num_requests_waiting sglang:num_queue_reqs"},
    {M::kRunning, kG, "vllm:num_requests_running sglang:num_running_reqs"},
    {M::kKvUsage, kG, "vllm:kv_cache_usage_perc vllm:gpu_cache_usage_perc sglang:token_usage"},
    {M::kInflightTokens, kG, "llm_d_epp_inflight_tokens llm_d_router_epp_inflight_tokens"},
    {M::kPromptTokens, kC, "vllm:prompt_tokens_total sglang:prompt_tokens_total"},
    {M::kGenerationTokens, kC, "vllm:generation_tokens_total sglang:generation_tokens_total"},
    {M::kFinished, kC, "vllm:request_success_total sglang:num_requests_total"},
    {M::kPreemptions, kC, "vllm:num_preemptions_total"},
    {M::kPrefixQueries, kC, "vllm:prefix_cache_queries_total vllm:gpu_prefix_cache_queries_total"},
    {M::kPrefixHits, kC, "vllm:prefix_cache_hits_total vllm:gpu_prefix_cache_hits_total"},
    {M::kServerTtft, kH, "vllm:time_to_first_token_seconds sglang:time_to_first_token_seconds"},
    {M::kServerTpot, kH, "vllm:request_time_per_output_token_seconds"},
    {M::kServerItl, kH,
     "vllm:inter_token_latency_seconds vllm:time_per_output_token_seconds "
     "sglang:inter_token_latency_seconds sglang:time_per_output_token_seconds"},
    {M::kServerQueueTime, kH, "vllm:request_queue_time_seconds sglang:queue_time_seconds"},
    {M::kServerLatency, kH, "vllm:e2e_request_latency_seconds sglang:e2e_request_latency_seconds"},
    {M::kPoolKvUsage, kG,
     "inference_pool_average_kv_cache_utilization llm_d_router_epp_average_kv_cache_utilization "
     "llm_d_epp_average_kv_cache_utilization"},
    {M::kPoolQueue, kG,
     "inference_pool_average_queue_size llm_d_router_epp_average_queue_size "
     "llm_d_epp_average_queue_size"},
    {M::kPoolRunning, kG,
     "inference_pool_average_running_requests llm_d_router_epp_average_running_requests "
     "llm_d_epp_average_running_requests"},
    {M::kPoolReady, kG,
     "inference_pool_ready_pods llm_d_router_epp_ready_endpoints llm_d_epp_ready_endpoints"},
    {M::kFlowQueue, kG,
     "inference_extension_flow_control_queue_size llm_d_router_epp_flow_control_queue_size "
     "llm_d_epp_flow_control_queue_size"},
    {M::kFlowQueueBytes, kG,
     "inference_extension_flow_control_queue_bytes llm_d_router_epp_flow_control_queue_bytes "
     "llm_d_epp_flow_control_queue_bytes"},
    {M::kFlowSaturation, kG,
     "inference_extension_flow_control_pool_saturation "
     "llm_d_router_epp_flow_control_pool_saturation llm_d_epp_flow_control_pool_saturation"},
    {M::kRouterRunning, kG,
     "inference_objective_running_requests llm_d_router_epp_running_requests "
     "llm_d_epp_request_running"},
    // KubeAI @2f32ef4 internal/metrics/metrics.go: those that wait for a server among them.
    {M::kRouterActive, kG, "kubeai_inference_requests_active"},
    {M::kRouterRequests, kC,
     "inference_objective_request_total llm_d_router_epp_request_total llm_d_epp_request_total"},
    // vllm-stack 0.1.12 services/request_service/request.py: before it looks for a server.
    {M::kRouterIncoming, kC, "vllm:num_incoming_requests_total"},
    {M::kRouterErrors, kC,
     "inference_objective_request_error_total llm_d_router_epp_request_error_total "
     "llm_d_epp_request_error_total"},
    {M::kRouterTtft, kH,
     "inference_objective_request_ttft_seconds llm_d_router_epp_request_ttft_seconds "
     "llm_d_epp_request_ttft_seconds"},
    {M::kRouterPredictedTtft, kH,
     "inference_objective_request_predicted_ttft_seconds "
     "llm_d_router_epp_request_predicted_ttft_seconds llm_d_epp_request_predicted_ttft_seconds"},
    {M::kRouterTpot, kH,
     "inference_objective_request_tpot_seconds llm_d_router_epp_request_tpot_seconds "
     "llm_d_epp_request_streaming_tpot_seconds"},
    {M::kRouterPredictedTpot, kH,
     "inference_objective_request_predicted_tpot_seconds "
     "llm_d_router_epp_request_predicted_tpot_seconds llm_d_epp_request_predicted_tpot_seconds"},
    {M::kRouterLatency, kH,
     "inference_objective_request_duration_seconds llm_d_router_epp_request_duration_seconds "
     "llm_d_epp_request_duration_seconds"},
    {M::kReplicas, kG, "kube_deployment_status_replicas kube_deployment_spec_replicas"},
    {M::kReplicasReady, kG,
     "kube_deployment_status_replicas_ready kube_deployment_status_replicas_available"},
    {M::kReplicasUnavailable, kG, "kube_deployment_status_replicas_unavailable"},
}};

const Row& row_of(FleetMetric metric) { return kRows[static_cast<std::size_t>(metric)]; }

/// Calls `visit` with each word of `text` until it returns true.
template <class Visit>
bool any_word(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (visit(text.substr(0, end))) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

}  // namespace

FleetExporter exporter_of(std::string_view name) {
  if (name.starts_with("vllm:num_incoming")) return FleetExporter::kProductionStack;
  if (name.starts_with("vllm:")) return FleetExporter::kVllm;
  if (name.starts_with("sglang:")) return FleetExporter::kSglang;
  if (name.starts_with("kubeai_")) return FleetExporter::kKubeAi;
  return name.starts_with("kube_") ? FleetExporter::kKubernetes : FleetExporter::kEndpointPicker;
}

FleetMetricKind kind_of(FleetMetric metric) { return row_of(metric).kind; }

bool is_per_pod(FleetMetric metric) { return metric < FleetMetric::kPoolKvUsage; }

std::span<const double> bucket_bounds(FleetMetric metric) {
  switch (metric) {
    case FleetMetric::kServerTtft:
      return kVllmTtft;
    case FleetMetric::kServerTpot:
    case FleetMetric::kServerItl:
      return kVllmTpot;
    case FleetMetric::kServerQueueTime:
    case FleetMetric::kServerLatency:
      return kVllmLatency;
    case FleetMetric::kRouterTpot:
    case FleetMetric::kRouterPredictedTpot:
      return kRouterTpot;
    default:
      return kRouterLatency;
  }
}

void BucketCounts::add(double seconds) {
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), seconds);
  ++counts_[static_cast<std::size_t>(bound - bounds_.begin())];
  sum_ += seconds;
}

std::optional<SeriesName> series_of(std::string_view name) {
  for (const Row& row : kRows) {
    SeriesName series{row.metric, HistogramPart::kNone};
    const bool is_histogram = row.kind == FleetMetricKind::kHistogram;
    const bool found = any_word(row.names, [&](std::string_view base) {
      if (!name.starts_with(base)) return false;
      const std::string_view rest = name.substr(base.size());
      if (is_histogram && rest == "_bucket") series.part = HistogramPart::kBucket;
      if (is_histogram && rest == "_sum") series.part = HistogramPart::kSum;
      if (is_histogram && rest == "_count") series.part = HistogramPart::kCount;
      return is_histogram ? series.part != HistogramPart::kNone : rest.empty();
    });
    if (found) return series;
  }
  return std::nullopt;
}

std::vector<std::string> fleet_metric_names() {
  std::vector<std::string> names;
  for (const Row& row : kRows)
    any_word(row.names, [&](std::string_view name) {
      names.emplace_back(name);
      return false;
    });
  return names;
}

}  // namespace routesim::sim
