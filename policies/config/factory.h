// The registry of every plugin type this library knows, and how an implemented type gets its row.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include "policies/build_context.h"
#include "policies/parameters.h"
#include "policies/plugin_registry.h"

namespace routesim::policies {

/// Every type of the llm-d router and of Heimdall generation 1. Immutable, so thread-safe.
const PluginRegistry& standard_registry();

/// The roles that class T has by its bases.
template <class T>
constexpr std::uint32_t roles_of() {
  std::uint32_t roles = 0;
  const auto role = [&roles](Role r, bool has) {
    if (has) roles |= r;
  };
  role(kFilterRole, std::is_base_of_v<Filter, T>);
  role(kScorerRole, std::is_base_of_v<Scorer, T>);
  role(kPickerRole, std::is_base_of_v<Picker, T>);
  role(kProfileHandlerRole, std::is_base_of_v<ProfileHandler, T>);
  role(kProducerRole, std::is_base_of_v<Producer, T>);
  role(kDeciderRole, std::is_base_of_v<Decider, T>);
  role(kDetectorRole, std::is_base_of_v<SaturationDetector, T>);
  role(kAdmitterRole, std::is_base_of_v<Admitter, T>);
  role(kOrderingPolicyRole, std::is_base_of_v<OrderingPolicy, T>);
  role(kFairnessPolicyRole, std::is_base_of_v<FairnessPolicy, T>);
  role(kUsageLimitPolicyRole, std::is_base_of_v<UsageLimitPolicy, T>);
  return roles != 0 ? roles : kOtherRole;
}

/// Reads the parameters P of a plugin and makes one of class T, which is constructed from
/// (parameters, spec, context), from the context, or from nothing.
template <class T, class P = NoParameters>
std::unique_ptr<Plugin> create_plugin(const PluginSpec& spec, BuildContext& context) {
  const auto p = read_parameters<P>(spec, context.unknown_keys(), context.diagnostics());
  if constexpr (std::is_constructible_v<T, const P&, const PluginSpec&, BuildContext&>)
    return make_plugin<T>(p, spec, context);
  else if constexpr (std::is_constructible_v<T, BuildContext&>)
    return make_plugin<T>(context);
  else
    return make_plugin<T>();
}

template <class P>
void describe_parameters(Describer& d) {
  P parameters{};
  describe(d, parameters);
}

/// One row of the registry. Converts to what PluginRegistry::add() takes.
struct PluginRow {
  std::string_view type;
  std::string_view note;
  std::uint32_t roles = 0;
  Era since = Era::kV0_3_2;
  PluginType::Support support = PluginType::Support::kImplemented;
  std::unique_ptr<Plugin> (*create)(const PluginSpec&, BuildContext&) = nullptr;
  void (*describe_parameters)(Describer&) = nullptr;
  void (*describe_applied)(Describer&, const PluginSpec&, Era) = nullptr;

  operator PluginType() const;
};

/// The row of class T with the parameters P. `also`: roles that T does not have by its bases.
template <class T, class P = NoParameters>
constexpr PluginRow implemented(std::string_view type, std::string_view note,
                                Era since = Era::kV0_3_2, std::uint32_t also = 0) {
  return {.type = type,
          .note = note,
          .roles = roles_of<T>() | also,
          .since = since,
          .create = create_plugin<T, P>,
          .describe_parameters = describe_parameters<P>};
}

/// The rows of scorers.cpp and filters.cpp.
std::span<const PluginRow> scorer_rows();
std::span<const PluginRow> filter_rows();
std::span<const PluginRow> admission_rows();

}  // namespace routesim::policies
