// Plugins of a document need each other without a reference that says so. This file tells which
// need is not met, and how they do without. The router starts all the same, so it only warns.
#pragma once

#include "base/diagnostic.h"
#include "policies/config/document.h"

namespace routesim::policies {

/// Whether `spec`, a precise prefix plugin, owns an index instead of reading the one of a producer.
bool owns_precise_index(const EndpointPickerConfig& config, const PluginSpec& spec);

/// Whether KV events reach the index that `spec` owns. Without them it holds at most speculative
/// entries.
bool receives_kv_events(const EndpointPickerConfig& config, const PluginSpec& spec);

/// Whether the router reads the prompts of OpenAI requests: not where passthrough-parser takes
/// them.
bool reads_prompts(const EndpointPickerConfig& config);

/// Warns of a precise index that nothing feeds, of a prefill endpoint that is picked and never
/// named to the side-car, and of prompts that nothing reads. The document must be complete.
void check_wiring(const EndpointPickerConfig& config, Diagnostics& diagnostics);

}  // namespace routesim::policies
