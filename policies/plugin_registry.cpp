#include "policies/plugin_registry.h"

#include <array>
#include <utility>

namespace routesim::policies {

std::string role_names(std::uint32_t roles) {
  constexpr std::array<std::pair<std::uint32_t, const char*>, 16> kNames = {{
      {kFilterRole, "filter"},
      {kScorerRole, "scorer"},
      {kPickerRole, "picker"},
      {kProfileHandlerRole, "profile handler"},
      {kProducerRole, "data producer"},
      {kDeciderRole, "decider"},
      {kDetectorRole, "saturation detector"},
      {kAdmitterRole, "admitter"},
      {kParserRole, "parser"},
      {kDataSourceRole, "data source"},
      {kExtractorRole, "extractor"},
      {kOrderingPolicyRole, "ordering policy"},
      {kFairnessPolicyRole, "fairness policy"},
      {kUsageLimitPolicyRole, "usage limit policy"},
      {kDiscoveryRole, "discovery"},
      {kOtherRole, "other"},
  }};
  std::string text;
  for (const auto& [role, name] : kNames) {
    if ((roles & role) == 0) continue;
    if (!text.empty()) text += '+';
    text += name;
  }
  return text;
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
