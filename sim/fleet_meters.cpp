#include "sim/fleet_meters.h"

#include <algorithm>

namespace routesim::sim {

using M = FleetMetric;

FleetMeters::FleetMeters(const RunPlan& plan, const Fleet& fleet, Servers& servers,
                         const Router& router, const LiveRequests& live)
    : plan_(plan), fleet_(fleet), servers_(servers), router_(router), live_(live) {
  books_.resize(fleet.servers());
  for (std::uint32_t p = 0; p < plan.pools.size(); ++p) pools_.emplace_back(*this, p);
}

void FleetMeters::on_first_token(const LiveRequest& live, SimTime now) {
  books_[servers_.server_of(live.route.endpoint)].ttft.add((now - live.entered).to_seconds());
  router_ttft_.add((now - live.sent).to_seconds());
  // The predictions of an answer are written down when its first token comes (llm-d-router's
  // predictedlatency plugin).
  if (!live.route.predicted.present) return;
  predicted_ttft_.add(live.route.predicted.ttft_ms / 1000);
  predicted_tpot_.add(live.route.predicted.tpot_ms / 1000);
}

// A prefill server answers with one token.
void FleetMeters::on_prefilled(const LiveRequest& live, SimTime now) {
  finish(*live.route.prefill, live, 1, now).ttft.add((now - live.entered).to_seconds());
}

FleetMeters::Server& FleetMeters::finish(EndpointId e, const LiveRequest& live, std::int64_t tokens,
                                         SimTime now) {
  Server& s = books_[servers_.server_of(e)];
  s.prompt_tokens += live.request.prompt->tokens;
  s.generation_tokens += tokens;
  ++s.finished;
  s.latency.add((now - live.entered).to_seconds());
  return s;
}

void FleetMeters::on_finished(const LiveRequest& live, SimTime now) {
  const std::int64_t tokens = live.request.output_tokens;
  Server& s = finish(live.route.endpoint, live, tokens, now);
  router_latency_.add((now - live.sent).to_seconds());
  if (tokens < 2) return;
  const SimTime first = live.first_token - plan_.scenario.workload.response_overhead;
  const double tpot = (now - first).to_seconds() / static_cast<double>(tokens - 1);
  s.tpot.add(tpot);
  router_tpot_.add(tpot);
}

void FleetMeters::restart(std::uint32_t server) { books_[server] = {}; }

const FleetMetrics& FleetMeters::of(std::uint32_t pool, SimTime now) {
  now_ = now;
  return pools_[pool];
}

// Of all ranks of a server's process, whose own counters began at 0 with it.
std::optional<double> FleetMeters::server_value(FleetMetric metric, std::uint32_t server) {
  if (!fleet_.serves(server)) return std::nullopt;
  const Server& books = books_[server];
  const auto number = [](std::int64_t n) { return static_cast<double>(n); };
  const auto sum = [&](auto of_rank) {
    double all = 0;
    const Servers::Range range = servers_.endpoints_of(server);
    for (std::uint32_t e = range.first; e < range.end; ++e) {
      const EndpointHome& at = servers_.endpoints()[e];
      servers_.replica(at.replica).advance_to(now_);
      all += of_rank(servers_.replica(at.replica), at);
    }
    return all;
  };
  const auto gauge = [&](std::int64_t Gauges::*which) {
    return sum(
        [&](const Replica& r, const EndpointHome& at) { return number(r.gauges(at.rank).*which); });
  };
  const bool sglang = servers_.pool(servers_.home(EndpointId(servers_.endpoints_of(server).first)))
                          .rules.sglang.has_value();
  const auto counter = [&](std::int64_t EngineCounters::*which) {
    return sum([&](const Replica& r, const EndpointHome& at) {
      return number(r.scheduler(at.rank).counters().*which);
    });
  };
  switch (metric) {
    case M::kWaiting:
      return gauge(&Gauges::waiting);
    case M::kRunning:
      return gauge(&Gauges::running);
    case M::kKvUsage: {
      const Servers::Range range = servers_.endpoints_of(server);
      return sum([&](const Replica& r, const EndpointHome& at) {
        const double free = number(r.gauges(at.rank).free_blocks);
        return (1 - free / servers_.usable_blocks(at)) / (range.end - range.first);
      });
    }
    case M::kPromptTokens:
      return sglang ? number(books.prompt_tokens) : counter(&EngineCounters::prompt_tokens);
    case M::kGenerationTokens:
      return sglang ? number(books.generation_tokens) : counter(&EngineCounters::generation_tokens);
    case M::kFinished:
      return number(books.finished);
    case M::kPreemptions:
      return counter(&EngineCounters::preemptions);
    case M::kPrefixQueries:
      return counter(&EngineCounters::prefix_query_tokens);
    case M::kPrefixHits:
      return counter(&EngineCounters::prefix_hit_tokens);
    default:
      return std::nullopt;
  }
}

// The endpoint picker's means are over the endpoints that it knows, as last scraped.
std::optional<double> FleetMeters::pool_value(FleetMetric metric, std::uint32_t pool) const {
  const policies::EndpointTable& table = router_.table();
  const auto candidates = table.candidates();
  const auto mean = [&](std::span<const double> column) -> std::optional<double> {
    if (candidates.empty() || !router_.reads_metrics()) return std::nullopt;
    double sum = 0;
    for (const policies::EndpointRow r : candidates) sum += column[r];
    return sum / static_cast<double>(candidates.size());
  };
  switch (metric) {
    case M::kPoolKvUsage:
      return mean(table.kv_usage());
    case M::kPoolQueue:
      return mean(table.waiting());
    case M::kPoolRunning:
      return mean(table.running());
    case M::kPoolReady:
      return static_cast<double>(candidates.size());
    case M::kFlowQueue:
      return static_cast<double>(router_.queued());
    case M::kFlowSaturation:
      return router_.saturation(now_);
    case M::kRouterActive:
      return static_cast<double>(live_.outstanding());
    case M::kRouterRequests:
      return static_cast<double>(routed_);
    case M::kRouterIncoming:
      return static_cast<double>(incoming_);
    case M::kRouterErrors:
      return static_cast<double>(errors_);
    case M::kReplicas:
      return static_cast<double>(fleet_.replicas(pool));
    case M::kReplicasReady:
      return static_cast<double>(fleet_.ready_of(pool));
    case M::kReplicasUnavailable:
      return static_cast<double>(
          std::max<std::int64_t>(0, fleet_.replicas(pool) - fleet_.ready_of(pool)));
    default:
      return std::nullopt;
  }
}

std::int32_t FleetMeters::Pool::spec_replicas() const {
  return static_cast<std::int32_t>(meters_.fleet_.replicas(pool_));
}

void FleetMeters::Pool::pods(std::vector<FleetPod>& out) const {
  meters_.fleet_.list_pods(pool_, meters_.now_, out);
}

std::optional<double> FleetMeters::Pool::value(FleetMetric metric, std::int64_t pod) const {
  if (pod == kPool) return meters_.pool_value(metric, pool_);
  return meters_.server_value(metric, Fleet::server_of_pod(pod));
}

const BucketCounts* FleetMeters::Pool::histogram(FleetMetric metric, std::int64_t pod) const {
  if (pod == kPool) {
    if (metric == M::kRouterTtft) return &meters_.router_ttft_;
    if (metric == M::kRouterTpot) return &meters_.router_tpot_;
    if (metric == M::kRouterPredictedTtft) return &meters_.predicted_ttft_;
    if (metric == M::kRouterPredictedTpot) return &meters_.predicted_tpot_;
    return metric == M::kRouterLatency ? &meters_.router_latency_ : nullptr;
  }
  const std::uint32_t server = Fleet::server_of_pod(pod);
  if (!meters_.fleet_.serves(server)) return nullptr;
  const Server& books = meters_.books_[server];
  if (metric == M::kServerTtft) return &books.ttft;
  if (metric == M::kServerTpot) return &books.tpot;
  return metric == M::kServerLatency ? &books.latency : nullptr;
}

}  // namespace routesim::sim
