// The registry: pickers, handlers, producers, and the types that are inert or refused. scorers.cpp
// and filters.cpp have the other rows.
#include "policies/config/factory.h"

#include "policies/plugins/burst_prefix.h"
#include "policies/plugins/inflight_load.h"
#include "policies/plugins/p2p_source.h"
#include "policies/plugins/pickers.h"
#include "policies/plugins/precise_prefix_parameters.h"
#include "policies/plugins/predicted_latency.h"
#include "policies/plugins/prefix_producers.h"
#include "policies/plugins/profile_handlers.h"
#include "policies/plugins/response_headers.h"
#include "policies/plugins/ttft_observer.h"

namespace routesim::policies {
namespace {

constexpr PluginRow inert(std::string_view type, std::uint32_t roles, std::string_view note) {
  return {.type = type, .note = note, .roles = roles, .support = PluginType::Support::kInert};
}
constexpr PluginRow refused(std::string_view type, std::uint32_t roles, std::string_view note) {
  return {.type = type, .note = note, .roles = roles, .support = PluginType::Support::kRefused};
}

constexpr PluginRow kPickersAndHandlers[] = {
    implemented<MaxScorePicker, PickerParameters>("max-score-picker",
                                                  "The best total; ties at random."),
    implemented<RandomPicker, PickerParameters>("random-picker", "Uniformly at random."),
    implemented<WeightedRandomPicker, PickerParameters>("weighted-random-picker",
                                                        "At random in proportion to the total."),
    implemented<SingleProfileHandler>("single-profile-handler", "Runs the only profile."),
    implemented<PdProfileHandler, PdProfileParameters>("pd-profile-handler",
                                                       "Decode, then prefill when it pays."),
    implemented<DisaggProfileHandler, DisaggProfileParameters>(
        "disagg-profile-handler", "Encode, prefill and decode stages."),
    implemented<DataParallelProfileHandler, DataParallelParameters>(
        "data-parallel-profile-handler", "Sends to a side-car that forwards to the picked rank."),
    implemented<HeaderProfileHandler, HeaderProfileParameters>(
        "header-profile-handler", "The profile a request header names."),
    implemented<AlwaysDecider>("always-disagg-pd-decider", "Always disaggregates."),
    implemented<MultimodalDecider>("always-disagg-multimodal-decider", "Multimodal requests only."),
    implemented<PrefixDecider, PrefixDeciderParameters>("prefix-based-pd-decider",
                                                        "When enough of the prompt is not cached."),
};

constexpr std::string_view kTokens = "The caller tokenises: RequestView carries the counts.";

constexpr PluginRow ttft_observer(std::string_view type) {
  return implemented<TtftObserver, TtftObserverParameters>(
      type, "Percentiles of observed TTFT and the load they were seen at.", Era::kAug2026,
      kDataSourceRole);
}

constexpr PluginRow kProducers[] = {
    implemented<ApproxPrefixProducer, ApproxPrefixParameters>(
        "approx-prefix-cache-producer", "Prefix matches from routing history."),
    implemented<ApproxPrefixProducer, ApproxPrefixParameters>(
        "multicluster-approx-prefix-cache-producer", "Prefix matches from routing history.",
        Era::kAug2026),
    implemented<PrecisePrefixProducer, PrecisePrefixParameters>("precise-prefix-cache-producer",
                                                                "Prefix matches from KV events.",
                                                                Era::kV0_3_2, kExtractorRole),
    implemented<InFlightLoad, InFlightLoadParameters>("inflight-load-producer",
                                                      "Requests and tokens in flight per endpoint.",
                                                      Era::kV0_3_2, kExtractorRole),
    implemented<PredictedLatencyProducer, PredictedLatencyParameters>(
        "predicted-latency-producer", "Headrooms of the side-car's predictions."),
    implemented<PullSourceProducer, PullSourceParameters>(
        "p2p-source-producer", "Names a peer to pull cached KV blocks from.", Era::kJul2026),
    implemented<BurstPrefixProducer, BurstPrefixParameters>(
        "burst-prefix-cache-producer", "Gathers requests and places equal prompts together.",
        Era::kAug2026),
    ttft_observer("latency-observer-producer"),
    ttft_observer("latency-observer-producer-hub"),
    inert("token-producer", kProducerRole, kTokens),
    inert("tokenizer", kProducerRole, kTokens),
    inert("session-id-producer", kProducerRole, "The caller fills RequestView::session."),
    inert("mm-embeddings-cache-producer", kProducerRole | kExtractorRole,
          "The caller fills RequestView::cached_item_size."),
};

constexpr std::string_view kTable = "The caller fills the EndpointTable.";
constexpr std::string_view kParse = "The caller parses requests.";
constexpr std::string_view kReport = "It reports and has no part in decisions.";
constexpr std::string_view kBuiltIn = "flowControl.enableEviction makes one of its own.";
constexpr std::string_view kHint = "It tells engines how long to keep KV blocks.";

constexpr PluginRow kDataLayer[] = {
    inert("metrics-data-source", kDataSourceRole, kTable),
    inert("core-metrics-extractor", kExtractorRole, kTable),
    inert("models-data-source", kDataSourceRole, kTable),
    inert("models-data-extractor", kExtractorRole, kTable),
    inert("dcgm-data-source", kDataSourceRole, kTable),
    inert("dcgm-extractor", kExtractorRole, kTable),
    inert("topology-extractor", kExtractorRole, kTable),
    inert("k8s-notification-source", kDataSourceRole, kTable),
    inert("endpoint-notification-source", kDataSourceRole, kTable),
    inert("file-discovery", kDiscoveryRole, kTable),
    inert("multicluster-metrics-data-source", kDataSourceRole, kTable),
    inert("multicluster-metrics-extractor", kExtractorRole, kTable),
    inert("multicluster-file-discovery", kDiscoveryRole, kTable),
    inert("openai-parser", kParserRole, kParse),
    inert("anthropic-parser", kParserRole, kParse),
    inert("vllmhttp-parser", kParserRole, kParse),
    inert("vllmgrpc-parser", kParserRole, kParse),
    inert("sglanghttp-parser", kParserRole, kParse),
    inert("vertexai-parser", kParserRole, kParse),
    inert("passthrough-parser", kParserRole, kParse),
    inert("sheddable-eviction-filter", kOtherRole, kBuiltIn),
    inert("priority-then-time-eviction-order-policy", kOtherRole, kBuiltIn),
    inert("agent-identity", kOtherRole, "The caller names the flow of a request."),
    inert("request-attribute-reporter", kOtherRole, kReport),
    inert("disaggregatedset-rollout-screener", kOtherRole,
          "It keeps revisions apart during a rollout; here all servers are of one."),
    inert("destination-endpoint-served-verifier", kOtherRole, kReport),
    inert("kv-cache-hint", kOtherRole, kHint),
    inert("kv-cache-hint-v2", kOtherRole, kHint),
    inert("session-interturn-latency-producer", kProducerRole, kReport),
    inert("encoder-header-handler", kOtherRole,
          "It served ed-profile-handler, which is not modelled."),
    implemented<DisaggHeadersHandler, DisaggHeadersParameters>(
        "disagg-headers-handler", "Names the picked prefill and encode endpoints to the side-car."),
    implemented<DisaggHeadersHandler, DisaggHeadersParameters>(
        "prefill-header-handler", "Names the picked prefill and encode endpoints to the side-car."),
    implemented<ResponseHeaderHandler>("response-header-handler",
                                       "Tells the client which endpoints served it."),
};

constexpr std::string_view kUnknown = "its rule is not public";
constexpr std::string_view kSlo = "latency-scorer and predicted-latency-producer replaced it";
constexpr std::string_view kPairs = "its pairing of prefill with decode is not modelled";
constexpr std::string_view kEncode =
    "encoding images apart is not modelled, and disagg-profile-handler replaced it";
/// Plugins of llm-d-router's head of autumn 2026 whose rules came after the newest era.
constexpr std::string_view kNewer = "it is newer than 2026-autumn, the newest release simulated";
constexpr std::string_view kTree = "filters of mid-2025; scorers replaced the decision tree";

constexpr PluginRow kUnavailable[] = {
    refused("running-requests-detector", kDetectorRole, kUnknown),
    refused("thunder-agent", kScorerRole | kDetectorRole | kFairnessPolicyRole,
            "admission by an agent's projected footprint is not modelled"),
    refused("dp-rank-header-handler", kOtherRole,
            "a rank chosen by a header is not modelled: make every rank an endpoint"),
    refused("slo-request-tracker", kScorerRole, kSlo),
    refused("slo-scorer", kScorerRole, kSlo),
    refused("slo-aware-routing", kScorerRole, kSlo),
    refused("predicted-latency-scorer", kScorerRole, kSlo),
    refused("slo-aware-profile-handler", kProfileHandlerRole, kSlo),
    refused("predicted-latency-profile-handler", kProfileHandlerRole, kSlo),
    refused("pd-slo-optimizer", kScorerRole, kPairs),
    refused("pd-slo-pair-optimizer", kScorerRole, kPairs),
    refused("pd-slo-profile-handler", kProfileHandlerRole, kPairs),
    refused("ed-profile-handler", kProfileHandlerRole, kEncode),
    refused("always-encode-decider", kDeciderRole, kEncode),
    refused("kvcache-aware-scorer", kScorerRole,
            "it is called 'precise-prefix-cache-scorer' now, and takes parameters instead of "
            "environment variables"),
    refused("load-aware-picker", kPickerRole, kNewer),
    refused("osl-bucket", kProducerRole, kNewer),
    refused("kv-cache-retention", kOtherRole, kNewer),
    refused("mrl-scorer-hub", kScorerRole, kNewer),
    refused("accelerator-capability-aware", kFilterRole | kScorerRole, kNewer),
    refused("header-phase-profile-handler", kProfileHandlerRole, kNewer),
    refused("reserve-endpoint", kOtherRole, kNewer),
    refused("decision-tree-filter", kFilterRole, kTree),
    refused("low-queue-filter", kFilterRole, kTree),
    refused("least-queue-filter", kFilterRole, kTree),
    refused("least-kv-cache-filter", kFilterRole, kTree),
    refused("lora-affinity-filter", kFilterRole, kTree),
};

}  // namespace

PluginRow::operator PluginType() const {
  return {type, roles, support, note, since, create, describe_parameters, describe_applied};
}

const PluginRegistry& standard_registry() {
  static const PluginRegistry kStandard = [] {
    PluginRegistry registry;
    for (const std::span<const PluginRow> rows : std::initializer_list<std::span<const PluginRow>>{
             scorer_rows(), filter_rows(), kPickersAndHandlers, kProducers, kDataLayer,
             admission_rows(), kUnavailable})
      for (const PluginRow& row : rows) registry.add(row);
    return registry;
  }();
  return kStandard;
}

}  // namespace routesim::policies
