// The registry: one line per plugin type. A new plugin is a line here, a struct in config.h and a
// file of its own.
#include "policies/config/factory.h"

#include "policies/flow/flow_policies.h"
#include "policies/plugins/active_request.h"
#include "policies/plugins/context_length.h"
#include "policies/plugins/detectors.h"
#include "policies/plugins/endpoint_attribute.h"
#include "policies/plugins/filters.h"
#include "policies/plugins/header_label_affinity.h"
#include "policies/plugins/inflight_load.h"
#include "policies/plugins/kv_cache_utilization.h"
#include "policies/plugins/label_selector.h"
#include "policies/plugins/latency.h"
#include "policies/plugins/lmetric.h"
#include "policies/plugins/load_aware.h"
#include "policies/plugins/load_filters.h"
#include "policies/plugins/lora_affinity.h"
#include "policies/plugins/mm_embeddings_cache.h"
#include "policies/plugins/no_hit_lru.h"
#include "policies/plugins/pickers.h"
#include "policies/plugins/precise_prefix_cache.h"
#include "policies/plugins/precise_prefix_parameters.h"
#include "policies/plugins/predicted_latency.h"
#include "policies/plugins/prefix_cache.h"
#include "policies/plugins/prefix_producers.h"
#include "policies/plugins/profile_handlers.h"
#include "policies/plugins/queue.h"
#include "policies/plugins/response_headers.h"
#include "policies/plugins/session_affinity.h"
#include "policies/plugins/token_load.h"
#include "policies/plugins/topology_affinity.h"

namespace routesim::policies {
namespace {

/// Any keys: they are listed by name only.
struct FreeForm {};
void describe(Describer&, FreeForm&) {}

PluginType inert(std::string_view type, std::uint32_t roles, std::string_view note) {
  return {.type = type,
          .roles = roles,
          .support = PluginType::Support::kInert,
          .note = note,
          .since = Era::kV0_3_2,
          .create = {},
          .describe_parameters = {}};
}

PluginType refused(std::string_view type, std::uint32_t roles, std::string_view note) {
  return {.type = type,
          .roles = roles,
          .support = PluginType::Support::kRefused,
          .note = note,
          .since = Era::kV0_3_2,
          .create = {},
          .describe_parameters = {}};
}

// prefix-cache-scorer changed its parameters when producers were split off.
PluginType prefix_cache_scorer() {
  PluginType type = implemented<PrefixCacheScorer, PrefixCacheParameters>(
      "prefix-cache-scorer", kScorerRole, "Matched share of the prompt's blocks.");
  type.create = [](const PluginSpec& spec, BuildContext& context) -> std::unique_ptr<Plugin> {
    if (context.traits().match_info_producers) {
      const auto p = read_parameters<PrefixCacheParameters>(spec, context.unknown_keys(),
                                                            context.diagnostics());
      return make_plugin<PrefixCacheScorer>(p, spec, context);
    }
    const auto p = read_parameters<ApproxPrefixParameters>(spec, context.unknown_keys(),
                                                           context.diagnostics());
    return make_plugin<OwningPrefixCacheScorer>(p, spec, context);
  };
  return type;
}

// active-request-scorer counted by itself before inflight-load-producer existed.
PluginType active_request_scorer() {
  PluginType type = implemented<ActiveRequestScorer, ActiveRequestParameters>(
      "active-request-scorer", kScorerRole, "Fewer requests in flight score higher.");
  type.create = [](const PluginSpec& spec, BuildContext& context) -> std::unique_ptr<Plugin> {
    const auto p = read_parameters<ActiveRequestParameters>(spec, context.unknown_keys(),
                                                            context.diagnostics());
    if (context.traits().active_requests == ActiveRequestCounts::kInFlightProducer)
      return make_plugin<ActiveRequestScorer>(p, spec, context);
    return make_plugin<OwnCountsActiveRequestScorer>(p, spec, context);
  };
  return type;
}

PluginType label_selector(std::string_view name) {
  return {.type = name,
          .roles = kFilterRole,
          .support = PluginType::Support::kImplemented,
          .note = "Keeps endpoints that a Kubernetes label selector matches.",
          .since = Era::kV0_3_2,
          .create = [](const PluginSpec& spec, BuildContext& context) -> std::unique_ptr<Plugin> {
            std::optional<LabelSelector> selector = LabelSelector::parse(spec, context);
            if (!selector) return nullptr;
            return make_plugin<LabelSelectorFilter>(std::move(*selector));
          },
          .describe_parameters =
              [](Describer& d) {
                FreeForm labels;
                std::vector<LabelExpression> expressions;
                field(d, {"matchLabels", "Labels that must have these values."}, labels);
                field(d, {"matchExpressions", "What else labels must satisfy."}, expressions);
              }};
}

void add_scorers(PluginRegistry& r) {
  r.add(implemented<QueueScorer, NoParameters>("queue-scorer", kScorerRole,
                                               "Fewer waiting requests score higher (min-max)."));
  r.add(implemented<RunningRequestsScorer, NoParameters>(
      "running-requests-size-scorer", kScorerRole,
      "Fewer running requests score higher (min-max)."));
  r.add(implemented<KvCacheUtilizationScorer, NoParameters>("kv-cache-utilization-scorer",
                                                            kScorerRole, "1 - KV cache usage."));
  r.add(implemented<LoadAwareScorer, LoadAwareParameters>("load-aware-scorer", kScorerRole,
                                                          "0.5 falling to 0 as the queue grows."));
  r.add(prefix_cache_scorer());
  r.add(implemented<PrecisePrefixScorer, PrecisePrefixParameters>(
      "precise-prefix-cache-scorer", kScorerRole | kProducerRole | kExtractorRole,
      "Share of the prompt's KV blocks held, from KV events."));
  r.add(implemented<NoHitLruScorer, NoHitLruParameters>(
      "no-hit-lru-scorer", kScorerRole, "Spreads cold requests over the least recently used."));
  r.add(active_request_scorer());
  r.add(implemented<TokenLoadScorer, TokenLoadParameters>("token-load-scorer", kScorerRole,
                                                          "Fewer tokens in flight score higher."));
  r.add(implemented<LoraAffinityScorer, NoParameters>(
      "lora-affinity-scorer", kScorerRole, "Endpoints with the adapter, then with a free slot."));
  r.add(implemented<SessionAffinityScorer, SessionAffinityParameters>(
      "session-affinity-scorer", kScorerRole, "The endpoint the session is bound to."));
  r.add(implemented<ContextLengthAware, ContextLengthParameters>(
      "context-length-aware", kScorerRole | kFilterRole, "Endpoints labelled for this length."));
}

void add_alpha_scorers(PluginRegistry& r) {
  r.add(implemented<LatencyScorer, LatencyParameters>(
      "latency-scorer", kScorerRole, "Headroom of predicted latencies to the SLOs.",
      Era::kMay2026));
  r.add(implemented<LMetricScorer, LMetricParameters>(
      "lmetric-scorer", kScorerRole, "Uncached tokens times requests in flight.", Era::kMay2026));
  r.add(implemented<MmEmbeddingsCacheScorer, NoParameters>(
      "mm-embeddings-cache-scorer", kScorerRole, "Share of multimodal items cached."));
  r.add(implemented<HeaderLabelAffinityScorer, HeaderLabelParameters>(
      "header-label-affinity-scorer", kScorerRole, "A label equal to a request header."));
  r.add(implemented<EndpointAttributeScorer, AttributeScorerParameters>(
      "endpoint-attribute-scorer", kScorerRole, "A numeric attribute, linearly."));
  r.add(implemented<TopologyAffinityScorer, TopologyParameters>(
      "topology-affinity-scorer", kScorerRole, "Nearness to the other stage's pick."));
  r.add(implemented<MulticlusterQueueScorer, NoParameters>("multicluster-queue-scorer", kScorerRole,
                                                           "Shorter pool queues score higher."));
  r.add(implemented<MulticlusterKvScorer, NoParameters>("multicluster-kv-cache-utilization-scorer",
                                                        kScorerRole, "1 - KV usage of the pool."));
}

void add_filters(PluginRegistry& r) {
  r.add(implemented<RoleFilter<ServingRole::kDecode>, NoParameters>(
      "decode-filter", kFilterRole, "Keeps endpoints whose role label serves decode."));
  r.add(implemented<RoleFilter<ServingRole::kPrefill>, NoParameters>(
      "prefill-filter", kFilterRole, "Keeps endpoints whose role label serves prefill."));
  r.add(implemented<RoleFilter<ServingRole::kEncode>, NoParameters>(
      "encode-filter", kFilterRole, "Keeps endpoints whose role label serves encode."));
  r.add(implemented<ByLabelFilter, ByLabelParameters>("by-label", kFilterRole,
                                                      "Keeps endpoints by one label's value."));
  for (const std::string_view type : {"label-selector-filter", "by-label-selector"})
    r.add(label_selector(type));
  for (const std::string_view type :
       {"session-affinity-filter", "multicluster-session-affinity-filter"})
    r.add(implemented<SessionAffinityFilter, SessionAffinityParameters>(
        type, kFilterRole, "Only the endpoint the session is bound to, if it is there."));
  r.add(implemented<EndpointAttributeFilter, AttributeFilterParameters>(
      "endpoint-attribute-filter", kFilterRole, "A numeric attribute against a threshold."));
  r.add(implemented<TopologyAffinityFilter, TopologyParameters>(
      "topology-affinity-filter", kFilterRole, "Endpoints near the other stage's pick."));
  r.add(implemented<UtilizationFilter, UtilizationFilterParameters>(
      "utilization-filter", kFilterRole, "Endpoints below maxima of load."));
  PluginType affinity = implemented<PrefixCacheAffinityFilter, PrefixAffinityParameters>(
      "prefix-cache-affinity-filter", kFilterRole, "Endpoints that hold most of the prompt.");
  affinity.describe_applied = [](Describer& d, const PluginSpec& spec, Era era) {
    Diagnostics reported_elsewhere;
    const auto p =
        read_parameters<PrefixAffinityParameters>(spec, Severity::kWarning, reported_elsewhere);
    describe_applied(d, p, era);
  };
  r.add(std::move(affinity));
  r.add(implemented<SloHeadroomTierFilter, SloTierParameters>(
      "slo-headroom-tier-filter", kFilterRole, "Endpoints predicted to meet the SLOs."));
  r.add(implemented<HeaderTestingFilter, NoParameters>("header-based-testing-filter", kFilterRole,
                                                       "Addresses listed in a header (tests)."));
}

void add_admission(PluginRegistry& r) {
  r.add(implemented<UtilizationDetector, UtilizationDetectorParameters>(
      "utilization-detector", kDetectorRole | kFilterRole, "Saturation by queue and KV usage."));
  r.add(implemented<ConcurrencyDetector, ConcurrencyDetectorParameters>(
      "concurrency-detector", kDetectorRole | kFilterRole, "Saturation by requests in flight."));
  r.add(implemented<ProbabilisticAdmitter, ProbabilisticAdmitterParameters>(
      "probabilistic-admitter", kAdmitterRole, "Sheds sheddable requests at random."));
  r.add(implemented<LatencySloAdmitter, NoParameters>(
      "latency-slo-admitter", kAdmitterRole, "Sheds sheddable requests that would be late."));
  r.add(implemented<GlobalStrictFairness, NoParameters>(
      "global-strict-fairness-policy", kFairnessPolicyRole, "The best head over all flows."));
  r.add(implemented<RoundRobinFairness, NoParameters>("round-robin-fairness-policy",
                                                      kFairnessPolicyRole, "Flows take turns."));
  r.add(implemented<ProgramAwareFairness, ProgramAwareParameters>(
      "program-aware-fairness", kFairnessPolicyRole, "Least attained service first."));
  r.add(implemented<FcfsOrdering, NoParameters>("fcfs-ordering-policy", kOrderingPolicyRole,
                                                "First come, first served."));
  r.add(implemented<EdfOrdering, NoParameters>("edf-ordering-policy", kOrderingPolicyRole,
                                               "Earliest expiry first."));
  r.add(implemented<SloDeadlineOrdering, NoParameters>(
      "slo-deadline-ordering-policy", kOrderingPolicyRole, "Earliest TTFT objective first."));
  r.add(implemented<StaticUsageLimit, StaticLimitParameters>(
      "static-usage-limit-policy", kUsageLimitPolicyRole, "One ceiling for every band."));
  r.add(implemented<PriorityHoldback, HoldbackParameters>(
      "priority-holdback-policy", kUsageLimitPolicyRole, "Lower bands stop earlier."));
  r.add(implemented<SoftReflectiveCeiling, NoParameters>(
      "soft-reflective-ceiling-policy", kUsageLimitPolicyRole, "Lower bands pass less often."));
}

void add_pickers_and_handlers(PluginRegistry& r) {
  r.add(implemented<MaxScorePicker, PickerParameters>("max-score-picker", kPickerRole,
                                                      "The best total; ties at random."));
  r.add(implemented<RandomPicker, PickerParameters>("random-picker", kPickerRole,
                                                    "Uniformly at random."));
  r.add(implemented<WeightedRandomPicker, PickerParameters>(
      "weighted-random-picker", kPickerRole, "At random in proportion to the total."));
  r.add(implemented<SingleProfileHandler, NoParameters>(
      "single-profile-handler", kProfileHandlerRole, "Runs the only profile."));
  r.add(implemented<PdProfileHandler, PdProfileParameters>(
      "pd-profile-handler", kProfileHandlerRole, "Decode, then prefill when it pays."));
  r.add(implemented<DisaggProfileHandler, DisaggProfileParameters>(
      "disagg-profile-handler", kProfileHandlerRole, "Encode, prefill and decode stages."));
  r.add(implemented<DataParallelProfileHandler, DataParallelParameters>(
      "data-parallel-profile-handler", kProfileHandlerRole,
      "Sends to a side-car that forwards to the picked rank."));
  r.add(implemented<HeaderProfileHandler, HeaderProfileParameters>(
      "header-profile-handler", kProfileHandlerRole, "The profile a request header names."));
  r.add(implemented<AlwaysDecider, NoParameters>("always-disagg-pd-decider", kDeciderRole,
                                                 "Always disaggregates."));
  r.add(implemented<MultimodalDecider, NoParameters>("always-disagg-multimodal-decider",
                                                     kDeciderRole, "Multimodal requests only."));
  r.add(implemented<PrefixDecider, PrefixDeciderParameters>(
      "prefix-based-pd-decider", kDeciderRole, "When enough of the prompt is not cached."));
}

void add_producers(PluginRegistry& r) {
  r.add(implemented<ApproxPrefixProducer, ApproxPrefixParameters>(
      "approx-prefix-cache-producer", kProducerRole, "Prefix matches from routing history."));
  r.add(implemented<PrecisePrefixProducer, PrecisePrefixParameters>(
      "precise-prefix-cache-producer", kProducerRole | kExtractorRole,
      "Prefix matches from KV events."));
  r.add(implemented<InFlightLoad, InFlightLoadParameters>(
      "inflight-load-producer", kProducerRole | kExtractorRole,
      "Requests and tokens in flight per endpoint."));
  r.add(implemented<PredictedLatencyProducer, PredictedLatencyParameters>(
      "predicted-latency-producer", kProducerRole, "Headrooms of the side-car's predictions."));
  constexpr std::string_view kTokens = "The caller tokenises: RequestView carries the counts.";
  r.add(inert("token-producer", kProducerRole, kTokens));
  r.add(inert("tokenizer", kProducerRole, kTokens));
  r.add(inert("session-id-producer", kProducerRole, "The caller fills RequestView::session."));
  r.add(inert("mm-embeddings-cache-producer", kProducerRole | kExtractorRole,
              "The caller fills RequestView::cached_item_size."));
}

void add_unavailable(PluginRegistry& r) {
  constexpr std::string_view kFederation = "it needs multi-cluster federation";
  r.add(refused("multicluster-prefix-cache-scorer", kScorerRole, kFederation));
  r.add(refused("multicluster-approx-prefix-cache-producer", kProducerRole, kFederation));
  r.add(refused("multicluster-metrics-data-source", kDataSourceRole, kFederation));
  for (const std::string_view type :
       {"multicluster-core-metrics-extractor", "multicluster-metrics-extractor"})
    r.add(refused(type, kExtractorRole, kFederation));
  r.add(refused("multicluster-file-discovery", kDiscoveryRole, kFederation));
  constexpr std::string_view kUnknown = "its rule is not public";
  r.add(refused("burst-prefix-cache-producer", kProducerRole,
                "it holds requests back to batch them, which is not modelled"));
  r.add(refused("p2p-source-producer", kProducerRole,
                "servers that pull KV blocks from each other are not modelled"));
  r.add(refused("running-requests-detector", kDetectorRole, kUnknown));
  constexpr std::string_view kEviction = "evicting running requests is not modelled";
  r.add(refused("sheddable-eviction-filter", kOtherRole, kEviction));
  r.add(refused("priority-then-time-eviction-order-policy", kOtherRole, kEviction));
  r.add(refused("thunder-agent", kScorerRole | kDetectorRole | kFairnessPolicyRole,
                "admission by an agent's projected footprint is not modelled"));
  r.add(refused("dp-rank-header-handler", kOtherRole,
                "a rank chosen by a header is not modelled: make every rank an endpoint"));
  constexpr std::string_view kSlo = "latency-scorer and predicted-latency-producer replaced it";
  for (const std::string_view type :
       {"slo-request-tracker", "slo-scorer", "slo-aware-routing", "predicted-latency-scorer"})
    r.add(refused(type, kScorerRole, kSlo));
  constexpr std::string_view kPairs = "its pairing of prefill with decode is not modelled";
  for (const std::string_view type :
       {"slo-aware-profile-handler", "predicted-latency-profile-handler"})
    r.add(refused(type, kProfileHandlerRole, kSlo));
  for (const std::string_view type : {"pd-slo-optimizer", "pd-slo-pair-optimizer"})
    r.add(refused(type, kScorerRole, kPairs));
  r.add(refused("pd-slo-profile-handler", kProfileHandlerRole, kPairs));
  constexpr std::string_view kEncode =
      "encoding images apart is not modelled, and disagg-profile-handler replaced it";
  r.add(refused("ed-profile-handler", kProfileHandlerRole, kEncode));
  r.add(refused("always-encode-decider", kDeciderRole, kEncode));
  r.add(refused("kvcache-aware-scorer", kScorerRole,
                "it is called 'precise-prefix-cache-scorer' now, and takes parameters instead of "
                "environment variables"));
  constexpr std::string_view kTree = "filters of mid-2025; scorers replaced the decision tree";
  for (const std::string_view type :
       {"decision-tree-filter", "low-queue-filter", "least-queue-filter", "least-kv-cache-filter",
        "lora-affinity-filter"})
    r.add(refused(type, kFilterRole, kTree));
}

void add_data_layer(PluginRegistry& r) {
  constexpr std::string_view kTable = "The caller fills the EndpointTable.";
  r.add(inert("metrics-data-source", kDataSourceRole, kTable));
  r.add(inert("core-metrics-extractor", kExtractorRole, kTable));
  r.add(inert("models-data-source", kDataSourceRole, kTable));
  r.add(inert("models-data-extractor", kExtractorRole, kTable));
  r.add(inert("dcgm-data-source", kDataSourceRole, kTable));
  r.add(inert("dcgm-extractor", kExtractorRole, kTable));
  r.add(inert("topology-extractor", kExtractorRole, kTable));
  r.add(inert("k8s-notification-source", kDataSourceRole, kTable));
  r.add(inert("endpoint-notification-source", kDataSourceRole, kTable));
  r.add(inert("file-discovery", kDiscoveryRole, kTable));
  constexpr std::string_view kParse = "The caller parses requests.";
  for (const std::string_view parser :
       {"openai-parser", "anthropic-parser", "vllmhttp-parser", "vllmgrpc-parser",
        "sglanghttp-parser", "vertexai-parser", "passthrough-parser"})
    r.add(inert(parser, kParserRole, kParse));
  constexpr std::string_view kReport = "It reports and has no part in decisions.";
  r.add(inert("agent-identity", kOtherRole, "The caller names the flow of a request."));
  r.add(inert("request-attribute-reporter", kOtherRole, kReport));
  r.add(inert("disaggregatedset-rollout-screener", kOtherRole,
              "It keeps revisions apart during a rollout; here all servers are of one."));
  r.add(inert("destination-endpoint-served-verifier", kOtherRole, kReport));
  for (const std::string_view type : {"kv-cache-hint", "kv-cache-hint-v2"})
    r.add(inert(type, kOtherRole, "It tells engines how long to keep KV blocks."));
  r.add(inert("session-interturn-latency-producer", kProducerRole, kReport));
  r.add(inert("encoder-header-handler", kOtherRole,
              "It served ed-profile-handler, which is not modelled."));
  for (const std::string_view type : {"disagg-headers-handler", "prefill-header-handler"})
    r.add(implemented<DisaggHeadersHandler, DisaggHeadersParameters>(
        type, kOtherRole, "Names the picked prefill and encode endpoints to the side-car."));
  r.add(implemented<ResponseHeaderHandler, NoParameters>(
      "response-header-handler", kOtherRole, "Tells the client which endpoints served it."));
}

}  // namespace

const PluginRegistry& standard_registry() {
  static const PluginRegistry kStandard = [] {
    PluginRegistry r;
    add_scorers(r);
    add_alpha_scorers(r);
    add_filters(r);
    add_pickers_and_handlers(r);
    add_producers(r);
    add_data_layer(r);
    add_admission(r);
    add_unavailable(r);
    return r;
  }();
  return kStandard;
}

}  // namespace routesim::policies
