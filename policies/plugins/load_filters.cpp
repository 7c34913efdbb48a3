#include "policies/plugins/load_filters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "policies/plugins/endpoint_attribute.h"

namespace routesim::policies {

UtilizationFilter::UtilizationFilter(const UtilizationFilterParameters& p, const PluginSpec& spec,
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

void UtilizationFilter::filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const {
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
  std::vector<EndpointRow>& kept = cycle.row_buffer();
  kept.clear();
  for (const EndpointRow r : candidates)
    if (std::all_of(conditions_.begin(), conditions_.end(),
                    [&](const Condition& c) { return value(c.metric, r) <= c.max_value; }))
      kept.push_back(r);
  if (kept.empty() && fallback_on_empty_) return;
  candidates.assign(kept.begin(), kept.end());
}

namespace {

// llm-d-router pull requests 1547 and 1639 (June 2026) changed the defaults and the source.
bool predicts_ttft(Era era) { return era <= Era::kMay2026; }
double exploration_probability(const PrefixAffinityParameters& p, Era era) {
  return p.exploration_probability.value_or(predicts_ttft(era) ? 0.01 : 0);
}
double max_ttft_penalty_ms(const PrefixAffinityParameters& p, Era era) {
  return p.max_ttft_penalty_ms.value_or(predicts_ttft(era) ? 5000 : 18000);
}

}  // namespace

void describe_applied(Describer& d, PrefixAffinityParameters p, Era era) {
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

PrefixCacheAffinityFilter::PrefixCacheAffinityFilter(const PrefixAffinityParameters& p,
                                                     const PluginSpec& spec, BuildContext& context)
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

void PrefixCacheAffinityFilter::choose_ttft_source(const PluginSpec& spec, BuildContext& context) {
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

double PrefixCacheAffinityFilter::ttft_ms(const Cycle& cycle, EndpointRow row) const {
  if (from_throughput_)
    return static_cast<double>(load_->tokens(row)) / parameters_.peak_prefill_throughput * 1000;
  const bool known = row < cycle.latency().size() && cycle.latency()[row].present;
  return known ? cycle.latency()[row].ttft_ms : std::numeric_limits<double>::infinity();
}

void PrefixCacheAffinityFilter::filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const {
  if (candidates.size() <= 1 || parameters_.affinity_threshold <= 0) return;
  if (exploration_probability_ > 0 &&
      cycle.exploration_random().uniform() < exploration_probability_)
    return;
  const PrefixMatches& m = cycle.prefix(prefix_slot_);
  const auto sticky = [&](EndpointRow r) {
    if (!m.written || m.total_blocks <= 0) return false;
    const double share = static_cast<double>(m.match[r]) / static_cast<double>(m.total_blocks);
    return share >= parameters_.affinity_threshold;
  };
  std::vector<EndpointRow>& kept = cycle.row_buffer();
  kept.clear();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double sticky_ttft = kInfinity, other_ttft = kInfinity;
  double sticky_tokens = kInfinity, other_tokens = kInfinity;
  const bool counts_tokens = parameters_.max_tokens_in_flight_penalty > 0;
  for (const EndpointRow r : candidates) {
    const bool holds = sticky(r);
    double& fastest = holds ? sticky_ttft : other_ttft;
    fastest = std::min(fastest, ttft_ms(cycle, r));
    double& idlest = holds ? sticky_tokens : other_tokens;
    if (counts_tokens) idlest = std::min(idlest, static_cast<double>(load_->tokens(r)));
    if (holds) kept.push_back(r);
  }
  if (kept.empty()) return;
  const bool others = kept.size() < candidates.size();
  if (max_ttft_penalty_ms_ > 0 && others && sticky_ttft - other_ttft > max_ttft_penalty_ms_) return;
  if (counts_tokens && others &&
      sticky_tokens - other_tokens > static_cast<double>(parameters_.max_tokens_in_flight_penalty))
    return;
  candidates.assign(kept.begin(), kept.end());
}

SloHeadroomTierFilter::SloHeadroomTierFilter(const SloTierParameters& p, const PluginSpec& spec,
                                             BuildContext& context)
    : epsilon_(p.epsilon_explore_neg) {
  context.producer("", Facts::kLatencyEstimates, spec, "");
}

void SloHeadroomTierFilter::filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const {
  if (candidates.size() <= 1) return;
  const auto estimate = [&](EndpointRow r) -> const LatencyEstimate* {
    const bool known = r < cycle.latency().size() && cycle.latency()[r].present;
    return known ? &cycle.latency()[r] : nullptr;
  };
  if (std::none_of(candidates.begin(), candidates.end(), estimate)) return;
  const auto positive = [&](EndpointRow r) {
    const LatencyEstimate* e = estimate(r);
    return e != nullptr && e->ttft_headroom_ms >= 0 && e->tpot_headroom_ms >= 0;
  };
  const auto count = std::count_if(candidates.begin(), candidates.end(), positive);
  if (count == 0 || count == static_cast<std::ptrdiff_t>(candidates.size())) return;
  const bool explore = cycle.exploration_random().uniform() < epsilon_;
  std::erase_if(candidates, [&](EndpointRow r) { return positive(r) == explore; });
}

EndpointAttributeFilter::EndpointAttributeFilter(const AttributeFilterParameters& p,
                                                 const PluginSpec& spec, BuildContext& context)
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

bool EndpointAttributeFilter::holds(double value) const {
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

void EndpointAttributeFilter::filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const {
  const std::span<const double> column = cycle.endpoints().attribute(key_);
  std::vector<EndpointRow>& kept = cycle.row_buffer();
  kept.clear();
  for (const EndpointRow r : candidates)
    if (holds(attribute_at(column, r))) kept.push_back(r);
  if (kept.empty() && fallback_on_empty_) return;
  candidates.assign(kept.begin(), kept.end());
}

TopologyAffinityFilter::TopologyAffinityFilter(const TopologyParameters& p, const PluginSpec& spec,
                                               BuildContext& context) {
  const auto it =
      std::find(kTopologyLevelNames.begin(), kTopologyLevelNames.end() - 1, p.min_affinity);
  if (it == kTopologyLevelNames.end() - 1)
    context.error(spec, "minAffinity",
                  "must be host, rack, zone or region (got '" + p.min_affinity + "')");
  else
    level_ = static_cast<TopologyLevel>(it - kTopologyLevelNames.begin());
}

void TopologyAffinityFilter::filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const {
  const auto peer = cycle.peer();
  if (!peer) return;
  const Topology& there = cycle.endpoints().info(*peer).topology;
  std::erase_if(candidates, [&](EndpointRow r) {
    return shared_level(there, cycle.endpoints().info(r).topology) > level_;
  });
}

void HeaderTestingFilter::filter(Cycle& cycle, std::vector<EndpointRow>& candidates) const {
  const auto header = cycle.request().header("test-epp-endpoint-selection");
  if (!header || header->empty()) return;
  std::erase_if(candidates, [&](EndpointRow r) {
    const EndpointInfo& info = cycle.endpoints().info(r);
    for (std::string_view rest = *header; !rest.empty();) {
      const std::size_t comma = rest.find(',');
      std::string_view item = rest.substr(0, comma);
      while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
      while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
      if (item == info.address || item == info.host_port()) return false;
      rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    }
    return true;
  });
}

}  // namespace routesim::policies
