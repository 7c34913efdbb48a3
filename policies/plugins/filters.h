// Filters by label and role. llm-d-router pkg/epp/framework/plugins/scheduling/filter/bylabel.
#pragma once

#include <cstring>

#include "policies/build_context.h"

namespace routesim::policies {

struct ByLabelParameters {
  std::string label;
  std::vector<std::string> valid_values;
  bool allows_no_label = false;
};
inline void describe(Describer& d, ByLabelParameters& p) {
  field(d, {"label", "Label to look at.", true}, p.label);
  field(d, {"validValues", "Values that pass."}, p.valid_values);
  field(d, {"allowsNoLabel", "Endpoints without the label pass too."}, p.allows_no_label);
}

/// The label that holds an endpoint's role.
inline std::string_view role_label(Distribution distribution) {
  return distribution == Distribution::kHeimdall ? "mif.moreh.io/role" : "llm-d.ai/role";
}

/// The part of a request that an endpoint serves.
enum class ServingRole { kDecode, kPrefill, kEncode };

/// Whether an endpoint with this role label (nullptr = no label) serves that part. `legacy`: the
/// sets of releases up to v0.6.0 and Heimdall generation 1.
inline bool serves_role(ServingRole role, const std::string* label, bool legacy) {
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

/// decode-filter, prefill-filter, encode-filter.
template <ServingRole R>
class RoleFilter final : public Filter {
 public:
  explicit RoleFilter(BuildContext& context)
      : label_(role_label(context.distribution())),
        legacy_(context.traits().legacy_role_sets ||
                context.distribution() == Distribution::kHeimdall) {}
  void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const override {
    const EndpointTable& table = cycle.endpoints();
    const auto serves = cycle.row_flags(index(), [&](EndpointRow r) -> std::uint8_t {
      const auto& labels = table.info(r).labels;
      const auto it = labels.find(label_);
      return serves_role(R, it == labels.end() ? nullptr : &it->second, legacy_) ? 1 : 0;
    });
    if (consecutive(candidates) &&
        std::memchr(&serves[candidates.front()], 0, candidates.size()) == nullptr)
      return;  // All serve, as in a pool of one role.
    std::erase_if(candidates, [&](EndpointRow r) { return serves[r] == 0; });
  }

 private:
  std::string label_;
  bool legacy_;
};

/// by-label: one label with a list of values.
class ByLabelFilter final : public Filter {
 public:
  ByLabelFilter(const ByLabelParameters& p, const PluginSpec& spec, BuildContext& context)
      : parameters_(p) {
    if (p.label.empty() && spec.parameters->find("label") != nullptr)
      context.error(spec, "label", "must not be empty");
    if (p.valid_values.empty() && !p.allows_no_label)
      context.error(spec, "validValues", "or allowsNoLabel must be given");
  }
  void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const override {
    std::erase_if(candidates, [&](EndpointRow r) {
      const auto& labels = cycle.endpoints().info(r).labels;
      const auto it = labels.find(parameters_.label);
      if (it == labels.end()) return !parameters_.allows_no_label;
      const auto& values = parameters_.valid_values;
      return std::find(values.begin(), values.end(), it->second) == values.end();
    });
  }

 private:
  ByLabelParameters parameters_;
};

}  // namespace routesim::policies
