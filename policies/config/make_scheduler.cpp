#include "policies/config/make_scheduler.h"

#include "policies/build_context.h"
#include "policies/config/factory.h"

namespace routesim::policies {

std::unique_ptr<Scheduler> make_scheduler(const EndpointPickerConfig& config,
                                          const SchedulerOptions& options,
                                          Diagnostics& diagnostics) {
  SchedulerOptions complete = options;
  if (complete.registry == nullptr) complete.registry = &standard_registry();
  auto scheduler = std::make_unique<Scheduler>(config, complete, diagnostics);
  return scheduler->valid() ? std::move(scheduler) : nullptr;
}

std::optional<Requirements> requirements(const EndpointPickerConfig& config,
                                         Diagnostics& diagnostics, const PluginRegistry* registry) {
  EndpointPickerConfig complete = config;
  PluginSet plugins;
  Requirements out;
  Diagnostics found;
  BuildContext(complete, registry != nullptr ? *registry : standard_registry(), plugins,
               out.signals, false, found)
      .build_all();
  const bool bad = found.has_errors();
  for (const Diagnostic& d : found.items()) diagnostics.add(d);
  for (const KeyUse& use : found.keys()) diagnostics.key(use);
  if (bad) return std::nullopt;
  out.precise_index = plugins.precise != nullptr;
  if (out.precise_index) out.block_keys = plugins.precise->options().scheme;
  out.kv_ingest = plugins.kv_ingest_options();
  out.approx = plugins.approx.settings;
  out.plugins = std::move(complete.plugins);
  return out;
}

std::optional<Requirements> requirements(const EndpointPickerConfig& config) {
  if (config.needs != nullptr) return *config.needs;
  Diagnostics reported_elsewhere;
  return requirements(config, reported_elsewhere);
}

}  // namespace routesim::policies
