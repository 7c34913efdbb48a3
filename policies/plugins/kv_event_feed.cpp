#include "policies/plugins/kv_event_feed.h"

#include <algorithm>

namespace routesim::policies {
namespace {

/// Whether an endpoint-notification-source of the data layer has the plugin among its extractors.
bool hears_of_endpoints(const EndpointPickerConfig& config, const PluginSpec& spec) {
  const auto& sources = config.data_layer.sources;
  return std::any_of(sources.begin(), sources.end(), [&](const DataSourceSpec& source) {
    const PluginSpec* of = config.find(source.source.name);
    return of != nullptr && of->type == "endpoint-notification-source" &&
           std::any_of(source.extractors.begin(), source.extractors.end(),
                       [&](const PluginReference& r) { return r.name == spec.name; });
  });
}

}  // namespace

bool hears_engines(std::string_view topic_filter) {
  return kTopicStart.starts_with(topic_filter) || topic_filter.starts_with(kTopicStart);
}

bool owns_precise_index(const EndpointPickerConfig& config, const PluginSpec& spec) {
  if (spec.type != "precise-prefix-cache-scorer")
    return spec.type == "precise-prefix-cache-producer";
  return std::none_of(config.plugins.begin(), config.plugins.end(), [](const PluginSpec& other) {
    return other.type == "precise-prefix-cache-producer";
  });
}

// Up to 0.4.0 llm-d-kv-cache-manager binds tcp://*:5557 unless told otherwise. From 0.5.0 on the
// scorer dials the endpoints it scores, by default; llm-d-router 0.9.0 dials only endpoints that
// the data layer notifies it of (preciseprefixcache/extractor.go).
bool receives_kv_events(const EndpointPickerConfig& config, const PluginSpec& spec,
                        const KvEventsParameters& events) {
  const KvEventFeed feed = traits(config.era).precise.kv_event_feed;
  if (!hears_engines(events.topic_filter)) return false;
  if (events.zmq_endpoint) {
    if (!events.zmq_endpoint->empty()) return true;
  } else if (feed == KvEventFeed::kSocket) {
    return true;
  }
  if (feed == KvEventFeed::kSocket || !events.discover_pods.value_or(true)) return false;
  return feed == KvEventFeed::kDialsScored || hears_of_endpoints(config, spec);
}

}  // namespace routesim::policies
