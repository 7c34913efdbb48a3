// The registry of scorers: one row each.
#include "policies/config/factory.h"
#include "policies/plugins/active_request.h"
#include "policies/plugins/context_length.h"
#include "policies/plugins/endpoint_attribute.h"
#include "policies/plugins/header_label_affinity.h"
#include "policies/plugins/kv_cache_utilization.h"
#include "policies/plugins/latency.h"
#include "policies/plugins/latency_observation.h"
#include "policies/plugins/lmetric.h"
#include "policies/plugins/load_aware.h"
#include "policies/plugins/lora_affinity.h"
#include "policies/plugins/mm_embeddings_cache.h"
#include "policies/plugins/no_hit_lru.h"
#include "policies/plugins/precise_prefix_cache.h"
#include "policies/plugins/precise_prefix_parameters.h"
#include "policies/plugins/prefix_cache.h"
#include "policies/plugins/queue.h"
#include "policies/plugins/session_affinity.h"
#include "policies/plugins/token_load.h"
#include "policies/plugins/topology_affinity.h"

namespace routesim::policies {
namespace {

// prefix-cache-scorer changed its parameters when producers were split off.
constexpr PluginRow prefix_cache_scorer() {
  PluginRow row = implemented<PrefixCacheScorer, PrefixCacheParameters>(
      "prefix-cache-scorer", "Matched share of the prompt's blocks.");
  row.create = [](const PluginSpec& spec, BuildContext& context) {
    return context.traits().match_info_producers
               ? create_plugin<PrefixCacheScorer, PrefixCacheParameters>(spec, context)
               : create_plugin<OwningPrefixCacheScorer, ApproxPrefixParameters>(spec, context);
  };
  return row;
}

// active-request-scorer counted by itself before inflight-load-producer existed.
constexpr PluginRow active_request_scorer() {
  PluginRow row = implemented<ActiveRequestScorer, ActiveRequestParameters>(
      "active-request-scorer", "Fewer requests in flight score higher.");
  row.create = [](const PluginSpec& spec, BuildContext& context) {
    const ActiveRequestCounts counts = context.traits().active_requests;
    if (counts == ActiveRequestCounts::kInFlightProducer)
      return create_plugin<ActiveRequestScorer, ActiveRequestParameters>(spec, context);
    if (counts == ActiveRequestCounts::kOwnUntilHeaders &&
        context.distribution() != Distribution::kHeimdall)
      return create_plugin<UntilHeadersActiveRequestScorer, ActiveRequestParameters>(spec, context);
    return create_plugin<OwnCountsActiveRequestScorer, ActiveRequestParameters>(spec, context);
  };
  return row;
}

constexpr PluginRow latency_observation(std::string_view type) {
  return implemented<LatencyObservationScorer, LatencyObservationParameters>(
      type, "Expected TTFT from observed ones, at the present load.", Era::kAug2026);
}

constexpr PluginRow kScorers[] = {
    implemented<QueueScorer>("queue-scorer", "Fewer waiting requests score higher (min-max)."),
    implemented<RunningRequestsScorer>("running-requests-size-scorer",
                                       "Fewer running requests score higher (min-max)."),
    implemented<KvCacheUtilizationScorer>("kv-cache-utilization-scorer", "1 - KV cache usage."),
    implemented<LoadAwareScorer, LoadAwareParameters>("load-aware-scorer",
                                                      "0.5 falling to 0 as the queue grows."),
    prefix_cache_scorer(),
    implemented<PrecisePrefixScorer, PrecisePrefixParameters>(
        "precise-prefix-cache-scorer", "Share of the prompt's KV blocks held, from KV events.",
        Era::kV0_3_2, kExtractorRole),
    implemented<NoHitLruScorer, NoHitLruParameters>(
        "no-hit-lru-scorer", "Spreads cold requests over the least recently used."),
    active_request_scorer(),
    implemented<TokenLoadScorer, TokenLoadParameters>("token-load-scorer",
                                                      "Fewer tokens in flight score higher."),
    implemented<LoraAffinityScorer>("lora-affinity-scorer",
                                    "Endpoints with the adapter, then with a free slot."),
    implemented<SessionAffinityScorer, SessionAffinityParameters>(
        "session-affinity-scorer", "The endpoint the session is bound to."),
    implemented<ContextLengthAware, ContextLengthParameters>("context-length-aware",
                                                             "Endpoints labelled for this length."),
    implemented<LatencyScorer, LatencyParameters>(
        "latency-scorer", "Headroom of predicted latencies to the SLOs.", Era::kMay2026),
    latency_observation("latency-observation-scorer"),
    latency_observation("latency-observation-scorer-hub"),
    implemented<LMetricScorer, LMetricParameters>(
        "lmetric-scorer", "Uncached tokens times requests in flight.", Era::kMay2026),
    implemented<MmEmbeddingsCacheScorer>("mm-embeddings-cache-scorer",
                                         "Share of multimodal items cached."),
    implemented<HeaderLabelAffinityScorer, HeaderLabelParameters>(
        "header-label-affinity-scorer", "A label equal to a request header."),
    implemented<EndpointAttributeScorer, AttributeScorerParameters>(
        "endpoint-attribute-scorer", "A numeric attribute, linearly."),
    implemented<TopologyAffinityScorer, TopologyParameters>("topology-affinity-scorer",
                                                            "Nearness to the other stage's pick."),
    implemented<MulticlusterQueueScorer>("multicluster-queue-scorer",
                                         "Shorter pool queues score higher."),
    implemented<MulticlusterKvScorer>("multicluster-kv-cache-utilization-scorer",
                                      "1 - KV usage of the pool."),
    // The endpoints are clusters, which changes nothing in the scorer.
    implemented<PrefixCacheScorer, PrefixCacheParameters>(
        "multicluster-prefix-cache-scorer", "Matched share of the prompt's blocks.", Era::kAug2026),
};

}  // namespace

std::span<const PluginRow> scorer_rows() { return kScorers; }

}  // namespace routesim::policies
