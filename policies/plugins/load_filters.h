// Filters by load, cached prefix, latency and attributes.
// llm-d-router pkg/epp/framework/plugins/scheduling/filter.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/config/factory.h"
#include "policies/plugins/inflight_load.h"
#include "policies/plugins/topology_affinity.h"

namespace routesim::policies {

/// utilization-filter: every condition's value must not exceed its maximum.
class UtilizationFilter final : public Filter {
 public:
  UtilizationFilter(const UtilizationFilterParameters& p, const PluginSpec& spec,
                    BuildContext& context);
  void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const override;

 private:
  enum class Metric { kActive, kRunning, kWaiting, kKvUsage };
  struct Condition {
    Metric metric;
    double max_value;
  };
  std::vector<Condition> conditions_;
  bool fallback_on_empty_;
  const InFlightLoad* load_ = nullptr;
};

/// Describes the parameters that an era reads of prefix-cache-affinity-filter, with its defaults.
void describe_applied(Describer& d, PrefixAffinityParameters p, Era era);

/// prefix-cache-affinity-filter: keeps the endpoints that hold most of the prompt, unless that
/// costs too much TTFT or (2026-05) the best of them has too many more tokens in flight than the
/// best of the others.
class PrefixCacheAffinityFilter final : public Filter {
 public:
  PrefixCacheAffinityFilter(const PrefixAffinityParameters& p, const PluginSpec& spec,
                            BuildContext& context);
  void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const override;

 private:
  double ttft_ms(const Cycle& cycle, EndpointRow row) const;
  /// What TTFT costs when nothing is written, and where it is read from.
  void choose_ttft_source(const PluginSpec& spec, BuildContext& context);

  PrefixAffinityParameters parameters_;
  double exploration_probability_, max_ttft_penalty_ms_;
  bool from_throughput_ = false;
  std::size_t prefix_slot_;
  const InFlightLoad* load_ = nullptr;
};

/// slo-headroom-tier-filter: endpoints predicted to meet the SLOs, or now and then the others.
class SloHeadroomTierFilter final : public Filter {
 public:
  SloHeadroomTierFilter(const SloTierParameters& p, const PluginSpec& spec, BuildContext& context);
  void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const override;

 private:
  double epsilon_;
};

/// endpoint-attribute-filter: one numeric attribute against a threshold.
class EndpointAttributeFilter final : public Filter {
 public:
  EndpointAttributeFilter(const AttributeFilterParameters& p, const PluginSpec& spec,
                          BuildContext& context);
  void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const override;

 private:
  enum class Comparison { kLess, kLessEqual, kGreater, kGreaterEqual, kEqual, kNotEqual };
  bool holds(double value) const;

  std::string key_;
  bool pass_missing_, fallback_on_empty_;
  Comparison comparison_ = Comparison::kLess;
  double value_ = 0;
};

/// topology-affinity-filter: endpoints at least as near to the other stage's pick as asked.
class TopologyAffinityFilter final : public Filter {
 public:
  TopologyAffinityFilter(const TopologyParameters& p, const PluginSpec& spec,
                         BuildContext& context);
  void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const override;

 private:
  TopologyLevel level_ = TopologyLevel::kHost;
};

/// header-based-testing-filter: the addresses listed in the header test-epp-endpoint-selection.
class HeaderTestingFilter final : public Filter {
 public:
  HeaderTestingFilter(const NoParameters&, const PluginSpec&, BuildContext& context) {
    context.needs().headers = true;
  }
  void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const override;
};

}  // namespace routesim::policies
