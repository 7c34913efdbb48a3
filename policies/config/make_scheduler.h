// From a configuration to a scheduler, or only to what the configuration needs.
#pragma once

#include <memory>
#include <optional>

#include "base/diagnostic.h"
#include "policies/endpoint_picker_config.h"
#include "policies/requirements.h"
#include "policies/scheduler.h"

namespace routesim::policies {

/// Builds every plugin and the scheduler that runs them. Returns nullptr and adds errors when a
/// parameter is bad. O(plugins), plus the memory of the indexes; call once per router process.
std::unique_ptr<Scheduler> make_scheduler(const EndpointPickerConfig& config,
                                          const SchedulerOptions& options,
                                          Diagnostics& diagnostics);

/// The needs of a scheduler of this configuration. Returns nothing and adds errors when a parameter
/// is bad. Thread-safe. `registry`: absent = standard_registry().
std::optional<Requirements> requirements(const EndpointPickerConfig& config,
                                         Diagnostics& diagnostics,
                                         const PluginRegistry* registry = nullptr);

/// The same for a configuration that was checked before: what it stores of that, else it is checked
/// again. Nothing when it has errors after all.
std::optional<Requirements> requirements(const EndpointPickerConfig& config);

}  // namespace routesim::policies
