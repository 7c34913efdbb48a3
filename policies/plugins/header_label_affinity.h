// header-label-affinity-scorer: 1 where the endpoint's label equals a request header.
// llm-d-router pkg/epp/framework/plugins/scheduling/scorer.
#pragma once

#include "policies/build_context.h"

namespace routesim::policies {

struct HeaderLabelParameters {
  std::string header_name, label_key;
};
inline void describe(Describer& d, HeaderLabelParameters& p) {
  field(d, {"headerName", "Request header to compare.", true}, p.header_name);
  field(d, {"labelKey", "Endpoint label to compare with.", true}, p.label_key);
}

class HeaderLabelAffinityScorer final : public Scorer {
 public:
  HeaderLabelAffinityScorer(const HeaderLabelParameters& p, const PluginSpec& spec,
                            BuildContext& context)
      : parameters_(p) {
    context.needs().headers = true;
    if (p.header_name.empty() && spec.parameters->find("headerName") != nullptr)
      context.error(spec, "headerName", "must not be empty");
    if (p.label_key.empty() && spec.parameters->find("labelKey") != nullptr)
      context.error(spec, "labelKey", "must not be empty");
  }
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    const auto header = cycle.request().header(parameters_.header_name);
    const bool asks = header && !header->empty();  // Also where a label is empty.
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const auto& labels = cycle.endpoints().info(candidates[i]).labels;
      const auto it = labels.find(parameters_.label_key);
      scores[i] = asks && it != labels.end() && it->second == *header ? 1.0 : 0.0;
    }
  }

 private:
  HeaderLabelParameters parameters_;
};

}  // namespace routesim::policies
