// The registry of every plugin type this library knows, and how an implemented type gets its line.
#pragma once

#include <memory>
#include <string_view>

#include "policies/build_context.h"
#include "policies/parameters.h"
#include "policies/plugin_registry.h"

namespace routesim::policies {

/// Every type of the llm-d router and of Heimdall generation 1. Immutable, so thread-safe.
const PluginRegistry& standard_registry();

/// An implemented type whose class is constructed from (parameters, spec, context).
template <class T, class P>
PluginType implemented(std::string_view type, std::uint32_t roles, std::string_view note,
                       Era since = Era::kV0_3_2) {
  return {.type = type,
          .roles = roles,
          .support = PluginType::Support::kImplemented,
          .note = note,
          .since = since,
          .create = [](const PluginSpec& spec, BuildContext& context) -> std::unique_ptr<Plugin> {
            P parameters = read_parameters<P>(spec, context.unknown_keys(), context.diagnostics());
            return make_plugin<T>(parameters, spec, context);
          },
          .describe_parameters =
              [](Describer& d) {
                P parameters{};
                describe(d, parameters);
              }};
}

}  // namespace routesim::policies
