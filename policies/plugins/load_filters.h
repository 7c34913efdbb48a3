// Filters by load, cached prefix, latency and attributes.
// llm-d-router pkg/epp/framework/plugins/scheduling/filter.
#pragma once

#include <cmath>
#include <limits>

#include "base/text.h"
#include "policies/build_context.h"
#include "policies/plugins/endpoint_attribute.h"
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

// llm-d-router pull requests 1547 and 1639 (June 2026) changed the defaults and the source.
inline bool predicts_ttft(Era era) { return era <= Era::kMay2026; }

inline double exploration_probability(const PrefixAffinityParameters& p, Era era) {
  return p.exploration_probability.value_or(predicts_ttft(era) ? 0.01 : 0);
}

inline double max_ttft_penalty_ms(const PrefixAffinityParameters& p, Era era) {
  return p.max_ttft_penalty_ms.value_or(predicts_ttft(era) ? 5000 : 18000);
}

/// utilization-filter: every condition's value must not exceed its maximum.
class UtilizationFilter final : public Filter {
 public:
  UtilizationFilter(const UtilizationFilterParameters& p, const PluginSpec& spec,
                    BuildContext& context)
      : fallback_on_empty_(p.fallback_on_empty) {
    constexpr std::array<std::string_view, 4> kNames = {"active-requests", "running-requests",
                                                        "waiting-queue", "kv-cache-utilization"};
    if (p.conditions.empty() && spec.parameters->find("conditions") != nullptr)
      context.error(spec, "conditions", "must not be empty");
    for (const UtilizationCondition& c : p.conditions) {
      const auto it = std::find(kNames.begin(), kNames.end(), c.metric);
      if (it == kNames.end()) {
        context.error(spec, "conditions", "metric '" + c.metric + "' is unknown",
                      "known: active-requests, running-requests, waiting-queue, "
                      "kv-cache-utilization");
        continue;
      }
      const auto metric = static_cast<Metric>(it - kNames.begin());
      if (metric == Metric::kKvUsage && c.max_value.value_or(0) > 1)
        context.error(spec, "conditions", "maxValue of kv-cache-utilization must be at most 1");
      if (metric == Metric::kActive && load_ == nullptr)
        load_ = in_flight_load(context, p.in_flight_producer, spec);
      else
        context.needs().metrics = true;
      conditions_.push_back({metric, c.max_value.value_or(0)});
    }
  }
  void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const override {
    const EndpointTable& table = cycle.endpoints();
    const auto value = [&](Metric metric, EndpointRow r) {
      switch (metric) {
        case Metric::kActive:
          return static_cast<double>(load_->requests(r));
        case Metric::kRunning:
          return table.running()[r];
        case Metric::kWaiting:
          return table.waiting()[r];
        case Metric::kKvUsage:
          return table.kv_usage()[r];
      }
      return 0.0;
    };
    cycle.keep_where(candidates, fallback_on_empty_, [&](EndpointRow r) {
      return std::all_of(conditions_.begin(), conditions_.end(),
                         [&](const Condition& c) { return value(c.metric, r) <= c.max_value; });
    });
  }

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
inline void describe_applied(Describer& d, PrefixAffinityParameters p, Era era) {
  double exploration = exploration_probability(p, era), penalty = max_ttft_penalty_ms(p, era);
  field(d, {"affinityThreshold", "Matched share from which an endpoint is sticky."},
        p.affinity_threshold);
  field(d, {"explorationProbability", "Chance to keep everything."}, exploration);
  field(d, {"maxTTFTPenaltyMs", "Extra TTFT stickiness may cost; 0 = any."}, penalty);
  if (predicts_ttft(era)) {
    field(d, {"maxTokensInFlightPenalty", "Extra tokens in flight stickiness may cost; 0 = any."},
          p.max_tokens_in_flight_penalty);
    return;
  }
  field(d, {"ttftSource", "prefillThroughput or latencyPredictor."}, p.ttft_source);
  if (p.ttft_source == "prefillThroughput")
    field(d, {"peakPrefillThroughput", "Prefill tokens per second of one endpoint."},
          p.peak_prefill_throughput);
}

/// prefix-cache-affinity-filter: keeps the endpoints that hold most of the prompt, unless that
/// costs too much TTFT or (2026-05) too many tokens in flight, the best of both sides compared.
class PrefixCacheAffinityFilter final : public Filter {
 public:
  PrefixCacheAffinityFilter(const PrefixAffinityParameters& p, const PluginSpec& spec,
                            BuildContext& context)
      : parameters_(p),
        exploration_probability_(exploration_probability(p, context.era())),
        max_ttft_penalty_ms_(max_ttft_penalty_ms(p, context.era())),
        prefix_slot_(context.prefix_slot_of(p.prefix_producer, spec)) {
    if (p.affinity_threshold > 1) context.error(spec, "affinityThreshold", "must be at most 1");
    if (!predicts_ttft(context.era())) {
      choose_ttft_source(spec, context);
      return;
    }
    if (p.max_tokens_in_flight_penalty > 0)
      load_ = in_flight_load(context, p.in_flight_producer, spec);
    // The predictor is a side-car that only documents with its producer have. Without it TTFT is
    // unknown everywhere, which costs nothing.
    std::string predictor;
    for (const PluginSpec& other : context.config().plugins)
      if (other.type == "predicted-latency-producer") predictor = other.name;
    if (!predictor.empty())
      context.producer(predictor, Facts::kLatencyEstimates, spec,
                       "latencyPredictionInfoProducerName");
  }
  void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const override {
    if (candidates.size() <= 1 || parameters_.affinity_threshold <= 0) return;
    if (exploration_probability_ > 0 &&
        cycle.exploration_random().uniform() < exploration_probability_)
      return;
    const PrefixMatches& m = cycle.prefix(prefix_slot_);
    std::vector<EndpointRow>& kept = cycle.row_buffer();
    kept.clear();
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    double sticky_ttft = kInfinity, other_ttft = kInfinity;
    double sticky_tokens = kInfinity, other_tokens = kInfinity;
    const bool counts_tokens = parameters_.max_tokens_in_flight_penalty > 0;
    for (const EndpointRow r : candidates) {
      const bool holds = m.share(r) >= parameters_.affinity_threshold;
      double& fastest = holds ? sticky_ttft : other_ttft;
      fastest = std::min(fastest, ttft_ms(cycle, r));
      double& idlest = holds ? sticky_tokens : other_tokens;
      if (counts_tokens) idlest = std::min(idlest, static_cast<double>(load_->tokens(r)));
      if (holds) kept.push_back(r);
    }
    if (kept.empty()) return;
    const bool others = kept.size() < candidates.size();
    if (max_ttft_penalty_ms_ > 0 && others && sticky_ttft - other_ttft > max_ttft_penalty_ms_)
      return;
    if (counts_tokens && others &&
        sticky_tokens - other_tokens >
            static_cast<double>(parameters_.max_tokens_in_flight_penalty))
      return;
    candidates.assign(kept.begin(), kept.end());
  }

 private:
  double ttft_ms(const Cycle& cycle, EndpointRow row) const {
    if (from_throughput_)
      return static_cast<double>(load_->tokens(row)) / parameters_.peak_prefill_throughput * 1000;
    const LatencyEstimate* estimate = cycle.latency_at(row);
    return estimate != nullptr ? estimate->ttft_ms : std::numeric_limits<double>::infinity();
  }
  /// The default limit of the TTFT penalty, and the source of TTFT.
  void choose_ttft_source(const PluginSpec& spec, BuildContext& context) {
    const PrefixAffinityParameters& p = parameters_;
    if (p.max_tokens_in_flight_penalty > 0)
      context.error(spec, "maxTokensInFlightPenalty",
                    "was replaced by maxTTFTPenaltyMs and peakPrefillThroughput in June 2026",
                    "set the era to 2026-05, or divide by the prefill tokens per millisecond");
    from_throughput_ = p.ttft_source == "prefillThroughput";
    if (from_throughput_) {
      if (p.peak_prefill_throughput == 0)
        context.error(spec, "peakPrefillThroughput", "must be greater than 0 to be used");
      load_ = in_flight_load(context, p.in_flight_producer, spec);
    } else if (p.ttft_source == "latencyPredictor") {
      context.producer(p.prediction_producer, Facts::kLatencyEstimates, spec,
                       "latencyPredictionInfoProducerName");
    } else {
      context.error(spec, "ttftSource",
                    "must be prefillThroughput or latencyPredictor (got '" + p.ttft_source + "')");
    }
  }

  PrefixAffinityParameters parameters_;
  double exploration_probability_, max_ttft_penalty_ms_;
  bool from_throughput_ = false;
  std::size_t prefix_slot_;
  const InFlightLoad* load_ = nullptr;
};

/// slo-headroom-tier-filter: endpoints predicted to meet the SLOs, or now and then the others.
class SloHeadroomTierFilter final : public Filter {
 public:
  SloHeadroomTierFilter(const SloTierParameters& p, const PluginSpec& spec, BuildContext& context)
      : epsilon_(p.epsilon_explore_neg) {
    context.producer("", Facts::kLatencyEstimates, spec, "");
  }
  void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const override {
    if (candidates.size() <= 1) return;
    if (std::none_of(candidates.begin(), candidates.end(),
                     [&](EndpointRow r) { return cycle.latency_at(r) != nullptr; }))
      return;
    const auto positive = [&](EndpointRow r) {
      const LatencyEstimate* e = cycle.latency_at(r);
      return e != nullptr && e->ttft_headroom_ms >= 0 && e->tpot_headroom_ms >= 0;
    };
    const auto count = std::count_if(candidates.begin(), candidates.end(), positive);
    if (count == 0 || count == static_cast<std::ptrdiff_t>(candidates.size())) return;
    const bool explore = cycle.exploration_random().uniform() < epsilon_;
    std::erase_if(candidates, [&](EndpointRow r) { return positive(r) == explore; });
  }

 private:
  double epsilon_;
};

/// endpoint-attribute-filter: one numeric attribute against a threshold.
class EndpointAttributeFilter final : public Filter {
 public:
  EndpointAttributeFilter(const AttributeFilterParameters& p, const PluginSpec& spec,
                          BuildContext& context)
      : key_(p.producer + "/" + p.attribute),
        pass_missing_(p.on_missing == "Pass"),
        fallback_on_empty_(p.fallback_on_empty) {
    if (p.on_missing != "Pass" && p.on_missing != "Fail")
      context.error(spec, "onMissing", "must be Pass or Fail (got '" + p.on_missing + "')");
    if (p.algorithm.type != "threshold" && !p.algorithm.type.empty())
      context.error(spec, "algorithm.type", "must be threshold (got '" + p.algorithm.type + "')");
    if (!p.algorithm.threshold) return;  // Reported as missing by the reader.
    constexpr std::array<std::string_view, 6> kNames = {
        "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "Equal", "NotEqual"};
    const std::string& wanted = p.algorithm.threshold->comparison;
    const auto it = std::find(kNames.begin(), kNames.end(), wanted);
    if (it == kNames.end())
      context.error(spec, "algorithm.threshold.operator", "is unknown (got '" + wanted + "')");
    else
      comparison_ = static_cast<Comparison>(it - kNames.begin());
    value_ = p.algorithm.threshold->value.value_or(0);
  }
  void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const override {
    const std::span<const double> column = cycle.endpoints().attribute(key_);
    cycle.keep_where(candidates, fallback_on_empty_,
                     [&](EndpointRow r) { return holds(attribute_at(column, r)); });
  }

 private:
  enum class Comparison { kLess, kLessEqual, kGreater, kGreaterEqual, kEqual, kNotEqual };
  bool holds(double value) const {
    if (std::isnan(value)) return pass_missing_;
    switch (comparison_) {
      case Comparison::kLess:
        return value < value_;
      case Comparison::kLessEqual:
        return value <= value_;
      case Comparison::kGreater:
        return value > value_;
      case Comparison::kGreaterEqual:
        return value >= value_;
      case Comparison::kEqual:
        return value == value_;
      case Comparison::kNotEqual:
        return value != value_;
    }
    return false;
  }

  std::string key_;
  bool pass_missing_, fallback_on_empty_;
  Comparison comparison_ = Comparison::kLess;
  double value_ = 0;
};

/// topology-affinity-filter: endpoints at least as near to the other stage's pick as asked.
class TopologyAffinityFilter final : public Filter {
 public:
  TopologyAffinityFilter(const TopologyParameters& p, const PluginSpec& spec,
                         BuildContext& context) {
    const auto it =
        std::find(kTopologyLevelNames.begin(), kTopologyLevelNames.end() - 1, p.min_affinity);
    if (it == kTopologyLevelNames.end() - 1)
      context.error(spec, "minAffinity",
                    "must be host, rack, zone or region (got '" + p.min_affinity + "')");
    else
      level_ = static_cast<TopologyLevel>(it - kTopologyLevelNames.begin());
  }
  void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const override {
    const auto peer = cycle.peer();
    if (!peer) return;
    const Topology& there = cycle.endpoints().info(*peer).topology;
    std::erase_if(candidates, [&](EndpointRow r) {
      return shared_level(there, cycle.endpoints().info(r).topology) > level_;
    });
  }

 private:
  TopologyLevel level_ = TopologyLevel::kHost;
};

/// header-based-testing-filter: the addresses listed in the header test-epp-endpoint-selection.
class HeaderTestingFilter final : public Filter {
 public:
  HeaderTestingFilter(const NoParameters&, const PluginSpec&, BuildContext& context) {
    context.needs().headers = true;
  }
  void filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const override {
    const auto header = cycle.request().header("test-epp-endpoint-selection");
    if (!header || header->empty()) return;
    std::erase_if(candidates, [&](EndpointRow r) {
      const EndpointInfo& info = cycle.endpoints().info(r);
      for (std::string_view rest = *header; !rest.empty();) {
        const std::size_t comma = rest.find(',');
        const std::string_view item = trimmed(rest.substr(0, comma), " ");
        if (item == info.address || item == info.host_port()) return false;
        rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
      }
      return true;
    });
  }
};

}  // namespace routesim::policies
