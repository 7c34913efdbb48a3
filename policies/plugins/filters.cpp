#include "policies/plugins/filters.h"

#include <algorithm>

namespace routesim::policies {

std::string_view role_label(Distribution distribution) {
  return distribution == Distribution::kHeimdall ? "mif.moreh.io/role" : "llm-d.ai/role";
}

bool serves_role(ServingRole role, const std::string* label, bool legacy) {
  if (label == nullptr) return role == ServingRole::kDecode;
  const std::string& v = *label;
  if (legacy) {
    if (role == ServingRole::kDecode) return v == "decode" || v == "both";
    return role == ServingRole::kPrefill ? v == "prefill" : v == "encode";
  }
  switch (role) {
    case ServingRole::kDecode:
      return v == "decode" || v == "prefill-decode" || v == "both" || v == "encode-prefill-decode";
    case ServingRole::kPrefill:
      return v == "prefill" || v == "prefill-decode" || v == "both" ||
             v == "encode-prefill-decode" || v == "encode-prefill";
    case ServingRole::kEncode:
      return v == "encode" || v == "encode-prefill" || v == "encode-prefill-decode";
  }
  return false;
}

ByLabelFilter::ByLabelFilter(const ByLabelParameters& p, const PluginSpec& spec,
                             BuildContext& context)
    : parameters_(p) {
  if (p.label.empty() && spec.parameters->find("label") != nullptr)
    context.error(spec, "label", "must not be empty");
  if (p.valid_values.empty() && !p.allows_no_label)
    context.error(spec, "validValues", "or allowsNoLabel must be given");
}

void ByLabelFilter::filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const {
  std::erase_if(candidates, [&](EndpointRow r) {
    const auto& labels = cycle.endpoints().info(r).labels;
    const auto it = labels.find(parameters_.label);
    if (it == labels.end()) return !parameters_.allows_no_label;
    const auto& values = parameters_.valid_values;
    return std::find(values.begin(), values.end(), it->second) == values.end();
  });
}

}  // namespace routesim::policies
