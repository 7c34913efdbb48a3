// Whether the engines' KV events reach the index of a precise prefix plugin.
#pragma once

#include <string_view>

#include "policies/endpoint_picker_config.h"
#include "policies/plugins/precise_prefix_parameters.h"

namespace routesim::policies {

/// Engines of llm-d publish as kv@POD@MODEL (llm-d-kv-cache 0.5.0
/// pkg/kvevents/zmq_subscriber.go).
inline constexpr std::string_view kTopicStart = "kv@";

/// Whether a subscription hears engines: it hears the topics that begin with its filter.
bool hears_engines(std::string_view topic_filter);

/// Whether `spec`, a precise prefix plugin, owns an index instead of reading the one of a producer.
bool owns_precise_index(const EndpointPickerConfig& config, const PluginSpec& spec);

/// Whether KV events reach the index that `spec` owns. Without them it holds at most speculative
/// entries. `events` are the parameters of `spec`.
bool receives_kv_events(const EndpointPickerConfig& config, const PluginSpec& spec,
                        const KvEventsParameters& events);

}  // namespace routesim::policies
