// The registry: one line per plugin type. A new plugin is a line here, a struct in config.h and a
// file of its own.
#include "policies/factory.h"

#include "policies/filters.h"
#include "policies/inflight_load.h"
#include "policies/pickers.h"
#include "policies/prefix_producers.h"
#include "policies/profile_handlers.h"
#include "policies/scorers/kv_cache_utilization.h"
#include "policies/scorers/load_aware.h"
#include "policies/scorers/no_hit_lru.h"
#include "policies/scorers/precise_prefix_cache.h"
#include "policies/scorers/prefix_cache.h"
#include "policies/scorers/queue.h"

namespace routesim::policies {
namespace {

PluginType inert(std::string_view type, std::uint32_t roles, std::string_view note) {
  return {.type = type, .roles = roles, .support = PluginType::Support::kInert, .note = note,
          .since = Era::kV0_3_2, .create = {}, .describe_parameters = {}};
}

// prefix-cache-scorer changed its parameters when producers were split off.
PluginType prefix_cache_scorer() {
  PluginType type = implemented<PrefixCacheScorer, PrefixCacheParameters>(
      "prefix-cache-scorer", kScorerRole, "Matched share of the prompt's blocks.");
  type.create = [](const PluginSpec& spec, BuildContext& context) -> std::unique_ptr<Plugin> {
    if (context.traits().match_info_producers) {
      const auto p = read_parameters<PrefixCacheParameters>(spec, context.unknown_keys(),
                                                            context.diagnostics());
      return std::make_unique<PrefixCacheScorer>(p, spec, context);
    }
    const auto p = read_parameters<ApproxPrefixParameters>(spec, context.unknown_keys(),
                                                           context.diagnostics());
    return std::make_unique<OwningPrefixCacheScorer>(p, spec, context);
  };
  return type;
}

void add_scorers(PluginRegistry& r) {
  r.add(implemented<QueueScorer, NoParameters>(
      "queue-scorer", kScorerRole, "Fewer waiting requests score higher (min-max)."));
  r.add(implemented<RunningRequestsScorer, NoParameters>(
      "running-requests-size-scorer", kScorerRole,
      "Fewer running requests score higher (min-max)."));
  r.add(implemented<KvCacheUtilizationScorer, NoParameters>(
      "kv-cache-utilization-scorer", kScorerRole, "1 - KV cache usage."));
  r.add(implemented<LoadAwareScorer, LoadAwareParameters>(
      "load-aware-scorer", kScorerRole, "0.5 falling to 0 as the queue grows."));
  r.add(prefix_cache_scorer());
  r.add(implemented<PrecisePrefixScorer, PrecisePrefixParameters>(
      "precise-prefix-cache-scorer", kScorerRole | kProducerRole | kExtractorRole,
      "Share of the prompt's KV blocks held, from KV events."));
  r.add(implemented<NoHitLruScorer, NoHitLruParameters>(
      "no-hit-lru-scorer", kScorerRole, "Spreads cold requests over the least recently used."));
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
      "inflight-load-producer", kProducerRole, "Requests and tokens in flight per endpoint."));
  constexpr std::string_view kTokens = "The caller tokenises: RequestView carries the counts.";
  r.add(inert("token-producer", kProducerRole, kTokens));
  r.add(inert("tokenizer", kProducerRole, kTokens));
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
}

}  // namespace

const PluginRegistry& PluginRegistry::standard() {
  static const PluginRegistry kStandard = [] {
    PluginRegistry r;
    add_scorers(r);
    add_filters(r);
    add_pickers_and_handlers(r);
    add_producers(r);
    add_data_layer(r);
    return r;
  }();
  return kStandard;
}

void PluginRegistry::add(PluginType type) {
  for (PluginType& t : types_) {
    if (t.type != type.type) continue;
    t = std::move(type);
    return;
  }
  types_.push_back(std::move(type));
}

const PluginType* PluginRegistry::find(std::string_view type) const {
  for (const PluginType& t : types_)
    if (t.type == type) return &t;
  return nullptr;
}

std::vector<std::string> PluginRegistry::type_names() const {
  std::vector<std::string> names;
  for (const PluginType& t : types_) names.emplace_back(t.type);
  return names;
}

}  // namespace routesim::policies
