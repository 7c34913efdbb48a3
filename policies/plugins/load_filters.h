// Filters by load, cached prefix, latency and attributes.
// llm-d-router pkg/epp/framework/plugins/scheduling/filter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/describe.h"
#include "policies/build_context.h"
#include "policies/plugins/inflight_load.h"
#include "policies/plugins/topology_affinity.h"

namespace routesim::policies {

struct UtilizationCondition {
  std::string metric;
  std::optional<double> max_value;
};
inline void describe(Describer& d, UtilizationCondition& p) {
  field(
      d,
      {"metric", "active-requests, running-requests, waiting-queue or kv-cache-utilization.", true},
      p.metric);
  field(d, {"maxValue", "Largest value that passes.", true}, p.max_value, RealRange{0});
}

struct UtilizationFilterParameters {
  std::vector<UtilizationCondition> conditions;
  bool fallback_on_empty = false;
  std::string in_flight_producer;
};
inline void describe(Describer& d, UtilizationFilterParameters& p) {
  field(d, {"conditions", "All must hold.", true}, p.conditions);
  field(d, {"fallbackOnEmpty", "Keep everything rather than nothing."}, p.fallback_on_empty);
  field(d, {"inFlightLoadProducerName", "Instance that counts requests."}, p.in_flight_producer);
}

struct PrefixAffinityParameters {
  double affinity_threshold = 0.8;
  std::optional<double> exploration_probability, max_ttft_penalty_ms;
  std::int64_t max_tokens_in_flight_penalty = 0;
  std::string ttft_source = "prefillThroughput";
  double peak_prefill_throughput = 15928;
  std::string prefix_producer, in_flight_producer, prediction_producer;
};
inline void describe(Describer& d, PrefixAffinityParameters& p) {
  field(d, {"affinityThreshold", "Matched share from which an endpoint is sticky; 0 = off."},
        p.affinity_threshold);
  field(d, {"explorationProbability", "Chance to keep everything (default 0; 2026-05: 0.01)."},
        p.exploration_probability, RealRange{0, 1});
  field(d,
        {"maxTTFTPenaltyMs",
         "Extra TTFT stickiness may cost; 0 = any (default 18000; 2026-05: 5000)."},
        p.max_ttft_penalty_ms, RealRange{0});
  field(d,
        {"maxTokensInFlightPenalty",
         "Extra tokens in flight stickiness may cost; 0 = any (2026-05 only)."},
        p.max_tokens_in_flight_penalty, IntRange{0});
  field(d, {"ttftSource", "prefillThroughput or latencyPredictor."}, p.ttft_source);
  field(d, {"peakPrefillThroughput", "Prefill tokens per second of one endpoint."},
        p.peak_prefill_throughput, RealRange{0});
  field(d, {"prefixMatchInfoProducerName", "Producer of the matched share."}, p.prefix_producer);
  field(d, {"inFlightLoadProducerName", "Instance that counts tokens."}, p.in_flight_producer);
  field(d, {"latencyPredictionInfoProducerName", "Instance that predicts."}, p.prediction_producer);
}

struct SloTierParameters {
  double epsilon_explore_neg = 0.01;
};
inline void describe(Describer& d, SloTierParameters& p) {
  field(d, {"epsilonExploreNeg", "Chance to keep the endpoints that would miss the SLO."},
        p.epsilon_explore_neg, RealRange{0, 1});
}

struct AttributeThreshold {
  std::string comparison;
  std::optional<double> value;
};
inline void describe(Describer& d, AttributeThreshold& p) {
  field(d,
        {"operator",
         "LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual, Equal or NotEqual.", true},
        p.comparison);
  field(d, {"value", "What to compare with.", true}, p.value);
}

struct AttributeFilterAlgorithm {
  std::string type;
  std::optional<AttributeThreshold> threshold;
};
inline void describe(Describer& d, AttributeFilterAlgorithm& p) {
  field(d, {"type", "threshold.", true}, p.type);
  field(d, {"threshold", "The comparison.", true}, p.threshold);
}

struct AttributeFilterParameters {
  std::string attribute, producer = "core-metrics-extractor", on_missing = "Pass";
  bool fallback_on_empty = false;
  AttributeFilterAlgorithm algorithm;
};
inline void describe(Describer& d, AttributeFilterParameters& p) {
  field(d, {"attribute", "Numeric endpoint attribute.", true}, p.attribute);
  field(d, {"producer", "Instance that writes it."}, p.producer);
  field(d, {"onMissing", "Pass or Fail."}, p.on_missing);
  field(d, {"fallbackOnEmpty", "Keep everything rather than nothing."}, p.fallback_on_empty);
  field(d, {"algorithm", "The test.", true}, p.algorithm);
}

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
