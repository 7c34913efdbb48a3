// Filters by label and role. llm-d-router pkg/epp/framework/plugins/scheduling/filter/bylabel.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
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
std::string_view role_label(Distribution distribution);

/// What part of a request an endpoint serves.
enum class ServingRole { kDecode, kPrefill, kEncode };

/// Whether an endpoint with this role label (nullptr = no label) serves that part. `legacy`: the
/// sets of releases up to v0.6.0 and Heimdall generation 1.
bool serves_role(ServingRole role, const std::string* label, bool legacy);

/// decode-filter, prefill-filter, encode-filter.
template <ServingRole R>
class RoleFilter final : public Filter {
 public:
  RoleFilter(const NoParameters&, const PluginSpec&, BuildContext& context)
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
    std::erase_if(candidates, [&](EndpointRow r) { return serves[r] == 0; });
  }

 private:
  std::string label_;
  bool legacy_;
};

/// by-label: one label with a list of values.
class ByLabelFilter final : public Filter {
 public:
  ByLabelFilter(const ByLabelParameters& p, const PluginSpec& spec, BuildContext& context);
  void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const override;

 private:
  ByLabelParameters parameters_;
};

}  // namespace routesim::policies
