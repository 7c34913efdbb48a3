// lmetric-scorer: uncached tokens times (requests in flight + 1), inverse min-max. llm-d-router,
// commits 184ee18 and 1fee9c8 (unmerged; a guide overlay uses it).
#pragma once

#include <limits>

#include "policies/plugins/endpoint_attribute.h"
#include "policies/plugins/inflight_load.h"

namespace routesim::policies {

struct LMetricParameters {
  std::string prefix_producer, in_flight_producer;
};
inline void describe(Describer& d, LMetricParameters& p) {
  field(d, {"prefixMatchInfoProducerName", "Producer of the cached prefix."}, p.prefix_producer);
  field(d, {"inFlightLoadProducerName", "Instance that counts requests."}, p.in_flight_producer);
}

/// At least one token is always left to compute.
inline double lmetric_cost(std::int64_t match, std::int64_t total, std::int64_t block_size,
                           std::int64_t requests) {
  std::int64_t uncached = (total - std::clamp<std::int64_t>(match, 0, total)) * block_size;
  if (uncached <= 0) uncached = 1;
  return static_cast<double>(uncached) * static_cast<double>(requests + 1);
}

class LMetricScorer final : public Scorer {
 public:
  LMetricScorer(const LMetricParameters& p, const PluginSpec& spec, BuildContext& context)
      : prefix_slot_(context.prefix_slot_of(p.prefix_producer, spec)),
        load_(in_flight_load(context, p.in_flight_producer, spec)) {}
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    const PrefixMatches& m = cycle.prefix(prefix_slot_);
    std::vector<double>& costs = cycle.value_buffer();
    costs.resize(candidates.size());
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const EndpointRow r = candidates[i];
      costs[i] = m.written && m.total_blocks > 0
                     ? lmetric_cost(m.match[r], m.total_blocks, m.block_size, load_->requests(r))
                     : std::numeric_limits<double>::quiet_NaN();
    }
    attribute_scores(costs, true, std::nullopt, 0, scores);
  }

 private:
  std::size_t prefix_slot_;
  const InFlightLoad* load_;
};

}  // namespace routesim::policies
