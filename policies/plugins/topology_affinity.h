// topology-affinity-scorer: how near an endpoint stands to the one picked for the other stage.
// llm-d-router pkg/epp/framework/plugins/scheduling/{scorer/topologyaffinity,util/topology}.
#pragma once

#include "policies/build_context.h"

namespace routesim::policies {

struct TopologyParameters {
  std::string min_affinity = "host";
  std::string topology_producer;
};
inline void describe(Describer& d, TopologyParameters& p) {
  field(d, {"minAffinity", "host, rack, zone or region (filter only)."}, p.min_affinity);
  field(d, {"topologyProducerName", "Instance that knows the topology."}, p.topology_producer);
}

/// Nearest first.
enum class TopologyLevel { kHost, kRack, kZone, kRegion, kNone };
inline constexpr std::array<std::string_view, 5> kTopologyLevelNames = {"host", "rack", "zone",
                                                                        "region", "none"};

/// The nearest level two places share; unknown (empty) levels never match.
inline TopologyLevel shared_level(const Topology& a, const Topology& b) {
  const auto same = [](const std::string& x, const std::string& y) { return !x.empty() && x == y; };
  if (same(a.host, b.host)) return TopologyLevel::kHost;
  if (same(a.rack, b.rack)) return TopologyLevel::kRack;
  if (same(a.zone, b.zone)) return TopologyLevel::kZone;
  if (same(a.region, b.region)) return TopologyLevel::kRegion;
  return TopologyLevel::kNone;
}

inline double topology_score(TopologyLevel level) {
  constexpr std::array<double, 5> kScores = {1.0, 0.2, 0.05, 0.02, 0.0};
  return kScores[static_cast<std::size_t>(level)];
}

class TopologyAffinityScorer final : public Scorer {
 public:
  TopologyAffinityScorer(const TopologyParameters&, const PluginSpec&, BuildContext&) {}
  void score(Cycle& cycle, std::span<const EndpointRow> candidates,
             std::span<double> scores) const override {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      scores[i] = 0;
      if (const auto peer = cycle.peer())
        scores[i] = topology_score(shared_level(cycle.endpoints().info(*peer).topology,
                                                cycle.endpoints().info(candidates[i]).topology));
    }
  }
};

}  // namespace routesim::policies
