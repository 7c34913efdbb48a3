
#include "policies/config/document_loader.h"
#include "policies/plugins/precise_prefix_parameters.h"
#include "policies/plugins/profile_handlers.h"

namespace routesim::policies {
namespace {

template <class P>
P parameters_of(const PluginSpec& spec) {
  Diagnostics reported_elsewhere;
  return read_parameters<P>(spec, Severity::kWarning, reported_elsewhere);
}

bool is_precise(const PluginSpec& spec) {
  return spec.type == "precise-prefix-cache-producer" || spec.type == "precise-prefix-cache-scorer";
}

/// The place of the topic filter, or else of the plugin.
SourceLocation filter_place(const PluginSpec& spec) {
  const ConfigNode* events = spec.parameters->child("kvEventsConfig");
  const ConfigNode::Member* filter = events == nullptr ? nullptr : events->find("topicFilter");
  return filter == nullptr ? spec.where : filter->key_where;
}

std::string what_follows(const PrecisePrefixParameters& p) {
  return p.speculative_indexing ? ": its index has only speculative entries"
                                : ", so every endpoint scores 0";
}

/// Tells of a filter that leaves engines out. False when it leaves out all.
bool check_topics(const PluginSpec& spec, const PrecisePrefixParameters& p,
                  Diagnostics& diagnostics) {
  const std::string& filter = p.kv_events.topic_filter;
  if (kTopicStart.starts_with(filter)) return true;
  const std::string path = spec.path + ".parameters.kvEventsConfig.topicFilter";
  const std::string hint = "set topicFilter: kv@ to hear every engine";
  const bool hears = hears_engines(filter);
  const std::string what = "hears only topics that begin with '" + filter + "'";
  // The ledger takes the fate that says most: other filters have no effect.
  diagnostics.key(key_use(filter_place(spec), kDocumentFormat, path,
                          hears ? Fate::kApproximated : Fate::kUsed,
                          hears ? "the events of every engine arrive" : ""));
  if (hears)
    diagnostics.warning(filter_place(spec), path, what + "; here the events of every engine arrive",
                        hint);
  else
    diagnostics.warning(filter_place(spec), path,
                        what + ", and engines publish as kv@POD@MODEL" + what_follows(p), hint);
  return hears;
}

void check_index(const EndpointPickerConfig& config, const PluginSpec& spec,
                 Diagnostics& diagnostics) {
  if (!owns_precise_index(config, spec)) return;
  const auto p = parameters_of<PrecisePrefixParameters>(spec);
  if (p.kv_events.pod_discovery.replay_socket_port > 0 &&
      !asks_for_replays(config, spec, p.kv_events))
    diagnostics.warning(
        spec.where, spec.path + ".parameters.kvEventsConfig.podDiscoveryConfig.replaySocketPort",
        "is not read: subscriptions to endpoints ask for replays, from llm-d-router v0.10.0 on",
        "leave it out, or set `era` to the release that runs");
  if (!check_topics(spec, p, diagnostics) || receives_kv_events(config, spec, p.kv_events)) return;
  const bool discovers = p.kv_events.discover_pods.value_or(true);
  std::string hint = "set kvEventsConfig.zmqEndpoint";
  if (traits(config.era).precise.kv_event_feed == KvEventFeed::kDialsNotified)
    hint +=
        ", or name the plugin among the extractors of an endpoint-notification-source in "
        "dataLayer.sources";
  if (!discovers) hint += ", or leave kvEventsConfig.discoverPods out";
  diagnostics.warning(spec.where, spec.path,
                      "plugin '" + spec.name + "' receives no KV events" + what_follows(p), hint);
}

/// Whether the profile handler picks an endpoint that another plugin must name to the side-car.
bool leaves_headers_to_others(const EndpointPickerConfig& config, const PluginSpec& handler) {
  if (config.distribution == Distribution::kHeimdall) return false;
  if (handler.type == "pd-profile-handler") return true;
  if (handler.type != "disagg-profile-handler" || traits(config.era).disagg_handler_sets_headers)
    return false;
  // Without a decider it picks a decode endpoint only.
  const auto p = parameters_of<DisaggProfileParameters>(handler);
  return p.prefill_decider || p.decider || (p.deciders && p.deciders->prefill);
}

void check_headers(const EndpointPickerConfig& config, Diagnostics& diagnostics) {
  const PluginSpec* handler = config.find(config.profile_handler);
  if (handler == nullptr || !leaves_headers_to_others(config, *handler)) return;
  for (const PluginSpec& spec : config.plugins)
    if (spec.type == "prefill-header-handler" || spec.type == "disagg-headers-handler") return;
  std::string hint = "declare a plugin of type ";
  hint += config.era < Era::kV0_7_0 ? "prefill-header-handler" : "disagg-headers-handler";
  if (traits(config.era).disagg_handler_sets_headers)
    hint += ", or use disagg-profile-handler, which names it itself";
  diagnostics.warning(handler->where, handler->path,
                      "plugin '" + handler->name +
                          "' picks a prefill endpoint, but nothing names it to the side-car: every "
                          "request is prefilled where it is decoded",
                      hint);
}

void check_parser(const EndpointPickerConfig& config, Diagnostics& diagnostics) {
  if (reads_prompts(config)) return;
  const PluginSpec* parser = config.find(*openai_parser(config));
  if (parser == nullptr) return;
  diagnostics.warning(parser->where, parser->path,
                      "plugin '" + parser->name +
                          "' leaves prompts unread: plugins that look at tokens or prefixes see "
                          "none",
                      "use openai-parser for OpenAI requests");
}

}  // namespace

void check_wiring(const EndpointPickerConfig& config, Diagnostics& diagnostics) {
  for (const PluginSpec& spec : config.plugins)
    if (is_precise(spec)) check_index(config, spec, diagnostics);
  check_headers(config, diagnostics);
  check_parser(config, diagnostics);
}

}  // namespace routesim::policies
