// Plugin types by name, and what a document may reference each as. config/factory.h has the
// registry of all types this library knows.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/describe.h"
#include "policies/endpoint_picker_config.h"
#include "policies/era.h"
#include "policies/plugins.h"

namespace routesim::policies {

class BuildContext;

/// The ways in which a plugin type can be referenced. A type may have several roles.
enum Role : std::uint32_t {
  kFilterRole = 1U << 0,
  kScorerRole = 1U << 1,
  kPickerRole = 1U << 2,
  kProfileHandlerRole = 1U << 3,
  kProducerRole = 1U << 4,
  kDeciderRole = 1U << 5,
  kDetectorRole = 1U << 6,
  kAdmitterRole = 1U << 7,
  kParserRole = 1U << 8,
  kDataSourceRole = 1U << 9,
  kExtractorRole = 1U << 10,
  kOrderingPolicyRole = 1U << 11,
  kFairnessPolicyRole = 1U << 12,
  kUsageLimitPolicyRole = 1U << 13,
  kDiscoveryRole = 1U << 14,
  kOtherRole = 1U << 15,
};
/// "filter+scorer".
inline std::string role_names(std::uint32_t roles) {
  constexpr std::array<std::string_view, 16> kNames = {// By bit.
                                                       "filter",
                                                       "scorer",
                                                       "picker",
                                                       "profile handler",
                                                       "data producer",
                                                       "decider",
                                                       "saturation detector",
                                                       "admitter",
                                                       "parser",
                                                       "data source",
                                                       "extractor",
                                                       "ordering policy",
                                                       "fairness policy",
                                                       "usage limit policy",
                                                       "discovery",
                                                       "other"};
  std::string text;
  for (std::size_t bit = 0; bit < kNames.size(); ++bit) {
    if ((roles >> bit & 1) == 0) continue;
    if (!text.empty()) text += '+';
    text += kNames[bit];
  }
  return text;
}

struct PluginType {
  enum class Support {
    kImplemented,
    kInert,    ///< Accepted: it reads, parses or reports, and has no part in decisions.
    kRefused,  ///< Known upstream, not available here; naming it is an error.
  };
  std::string_view type;
  std::uint32_t roles = 0;
  Support support = Support::kImplemented;
  std::string_view note;     ///< One sentence: what it does, or why it is inert or refused.
  Era since = Era::kV0_3_2;  ///< First era whose documents may name it.
  /// Builds one; adds errors to context.diagnostics() and may return nothing then.
  std::function<std::unique_ptr<Plugin>(const PluginSpec&, BuildContext&)> create;
  /// Describes the parameters with their defaults (for `routesim list plugins`).
  std::function<void(Describer&)> describe_parameters;
  /// Describes what an era reads of them, with its defaults. Absent where all eras are alike.
  std::function<void(Describer&, const PluginSpec&, Era)> describe_applied = {};
};

/// The set of plugin types a document may use. Immutable once handed to a loader.
class PluginRegistry {
 public:
  /// Adds or replaces a type.
  void add(PluginType type) {
    for (PluginType& t : types_) {
      if (t.type != type.type) continue;
      t = std::move(type);
      return;
    }
    types_.push_back(std::move(type));
  }
  const PluginType* find(std::string_view type) const {
    for (const PluginType& t : types_)
      if (t.type == type) return &t;
    return nullptr;
  }
  std::span<const PluginType> types() const { return types_; }
  std::vector<std::string> type_names() const {
    std::vector<std::string> names;
    for (const PluginType& t : types_) names.emplace_back(t.type);
    return names;
  }

 private:
  std::vector<PluginType> types_;
};

}  // namespace routesim::policies
