#include "policies/plugins/detectors.h"

#include <algorithm>

namespace routesim::policies {
namespace {

// The more binding of queue and KV cache, as a share of its threshold.
double utilization(const EndpointTable& t, EndpointRow r, std::int64_t queue, double kv) {
  return std::max(t.waiting()[r] / static_cast<double>(queue), t.kv_usage()[r] / kv);
}

}  // namespace

bool UtilizationDetector::fresh(const EndpointTable& endpoints, EndpointRow row,
                                SimTime now) const {
  return endpoints.has_metrics(row) &&
         now - endpoints.updated()[row] <= parameters_.metrics_staleness_threshold;
}

bool UtilizationDetector::has_room(const EndpointTable& endpoints, EndpointRow row,
                                   SimTime now) const {
  return fresh(endpoints, row, now) &&
         endpoints.waiting()[row] <= static_cast<double>(parameters_.queue_depth_threshold) &&
         endpoints.kv_usage()[row] <= parameters_.kv_cache_util_threshold;
}

double UtilizationDetector::saturation(const EndpointTable& endpoints,
                                       std::span<const EndpointRow> candidates, SimTime now) const {
  if (candidates.empty()) return 1.0;
  if (closes_without_room_)
    return std::any_of(candidates.begin(), candidates.end(),
                       [&](EndpointRow r) { return has_room(endpoints, r, now); })
               ? 0.0
               : 1.0;
  double sum = 0;
  for (const EndpointRow r : candidates)
    sum += fresh(endpoints, r, now) ? utilization(endpoints, r, parameters_.queue_depth_threshold,
                                                  parameters_.kv_cache_util_threshold)
                                    : 1.0;
  return sum / static_cast<double>(candidates.size());
}

void UtilizationDetector::filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const {
  const EndpointTable& t = cycle.endpoints();
  const double room = 1 + parameters_.headroom;
  const double queue = static_cast<double>(parameters_.queue_depth_threshold) * room;
  const double kv = parameters_.kv_cache_util_threshold * room;
  std::vector<EndpointRow>& kept = cycle.row_buffer();
  kept.clear();
  for (const EndpointRow r : candidates)
    if (fresh(t, r, cycle.now()) && t.waiting()[r] < queue && t.kv_usage()[r] < kv)
      kept.push_back(r);
  if (!kept.empty()) candidates.assign(kept.begin(), kept.end());
}

double ConcurrencyDetector::saturation(const EndpointTable&,
                                       std::span<const EndpointRow> candidates, SimTime) const {
  if (candidates.empty()) return 1.0;
  const auto n = static_cast<double>(candidates.size());
  const auto requests_cap = static_cast<double>(parameters_.max_concurrency);
  const auto tokens_cap = static_cast<double>(parameters_.max_token_concurrency);
  double requests = 0, tokens = 0, worst = 0;
  for (const EndpointRow r : candidates) {
    const auto here = static_cast<double>(load_->requests(r));
    const auto tokens_here = static_cast<double>(load_->tokens(r));
    requests += here;
    tokens += tokens_here;
    worst += std::max(here / requests_cap, tokens_here / tokens_cap);
  }
  switch (parameters_.mode) {
    case ConcurrencyMode::kRequests:
      return requests / (n * requests_cap);
    case ConcurrencyMode::kTokens:
      return tokens / (n * tokens_cap);
    case ConcurrencyMode::kHybrid:
      return worst / n;
  }
  return 0;
}

void ConcurrencyDetector::filter(Cycle&, std::vector<EndpointRow>& candidates) const {
  const double room = 1 + parameters_.headroom;
  const auto limit = [room](std::int64_t cap) {
    return static_cast<std::int64_t>(static_cast<double>(cap) * room);
  };
  const std::int64_t requests = limit(parameters_.max_concurrency);
  const std::int64_t tokens = limit(parameters_.max_token_concurrency);
  std::erase_if(candidates, [&](EndpointRow r) {
    const bool by_requests = parameters_.mode != ConcurrencyMode::kTokens;
    const bool by_tokens = parameters_.mode != ConcurrencyMode::kRequests;
    return (by_requests && load_->requests(r) >= requests) ||
           (by_tokens && load_->tokens(r) >= tokens);
  });
}

double ProbabilisticAdmitter::saturation(const EndpointTable& endpoints,
                                         std::span<const EndpointRow> candidates) const {
  if (candidates.empty()) return 1.0;
  double sum = 0;
  for (const EndpointRow r : candidates)
    sum += utilization(endpoints, r, parameters_.queue_depth_threshold,
                       parameters_.kv_cache_util_threshold);
  return sum / static_cast<double>(candidates.size());
}

const char* ProbabilisticAdmitter::refuse(Cycle& cycle) const {
  const double p = refusal_probability(saturation(cycle.endpoints(), cycle.candidates()),
                                       parameters_.power, parameters_.k);
  return cycle.exploration_random().uniform() < p ? "saturated" : nullptr;
}

LatencySloAdmitter::LatencySloAdmitter(const NoParameters&, const PluginSpec& spec,
                                       BuildContext& context) {
  context.needs().metrics = context.needs().predictions = true;
  context.producer("", Facts::kLatencyEstimates, spec, "");
}

const char* LatencySloAdmitter::refuse(Cycle& cycle) const {
  constexpr double kColdUsage = 0.02;
  const RequestView& request = cycle.request();
  if (request.slo_ttft_ms <= 0 && request.slo_tpot_ms <= 0) return nullptr;
  bool predicted = false;
  for (const EndpointRow r : cycle.candidates()) {
    const EndpointTable& t = cycle.endpoints();
    if (t.running()[r] == 0 || t.kv_usage()[r] < kColdUsage) return nullptr;
    if (r >= cycle.latency().size() || !cycle.latency()[r].present) continue;
    predicted = true;
    if (cycle.latency()[r].valid) return nullptr;
  }
  return predicted ? "no endpoint can meet the latency objectives" : nullptr;
}

}  // namespace routesim::policies
