// The parameters of filters, profile handlers, deciders, detectors and flow-control policies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/describe.h"
#include "base/units.h"

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

/// One entry of matchExpressions, as in Kubernetes.
struct LabelExpression {
  std::string key, comparison;
  std::vector<std::string> values;
};
inline void describe(Describer& d, LabelExpression& p) {
  field(d, {"key", "Label to look at.", true}, p.key);
  field(d, {"operator", "In, NotIn, Exists or DoesNotExist.", true}, p.comparison);
  field(d, {"values", "Values of In and NotIn."}, p.values);
}

struct PdProfileParameters {
  std::string decode_profile = "decode", prefill_profile = "prefill";
  std::int64_t primary_port = 0;
  std::optional<std::string> decider;
  std::string prefix_producer, prefix_plugin_name, prefix_plugin_type;
  double threshold = 0;
  std::int64_t hash_block_size = 64;
};
inline void describe(Describer& d, PdProfileParameters& p) {
  field(d, {"decodeProfile", "Profile that picks the decode endpoint."}, p.decode_profile);
  field(d, {"prefillProfile", "Profile that picks the prefill endpoint."}, p.prefill_profile);
  field(d, {"primaryPort", "Port of the data-parallel side-car; 0 = none."}, p.primary_port,
        IntRange{0, 65535});
  field(d, {"deciderPluginName", "Decider instance (v0.6.0 and later)."}, p.decider);
  field(d, {"prefixMatchInfoProducerName", "Accepted; deciders read the default producer."},
        p.prefix_producer);
  field(d, {"prefixPluginName", "Prefix plugin of the threshold (up to v0.5.0)."},
        p.prefix_plugin_name);
  field(d, {"prefixPluginType", "Its type (default prefix-cache-scorer)."}, p.prefix_plugin_type);
  field(d, {"threshold", "Uncached bytes from which prefill is separate; 0 = always."}, p.threshold,
        RealRange{0});
  field(d, {"hashBlockSize", "Bytes per matched block for the threshold."}, p.hash_block_size,
        IntRange{1});
}

struct DataParallelParameters {
  std::int64_t primary_port = 8000;
};
inline void describe(Describer& d, DataParallelParameters& p) {
  field(d, {"primaryPort", "Port of the side-car that forwards to the rank."}, p.primary_port,
        IntRange{0, 65535});
}

struct PrefixDeciderParameters {
  std::int64_t non_cached_tokens = 0, prompt_tokens = 0;
};
inline void describe(Describer& d, PrefixDeciderParameters& p) {
  field(d,
        {"nonCachedTokens",
         "Uncached tokens from which a prefill endpoint is used; 0 = never "
         "(v0.6.0: always)."},
        p.non_cached_tokens, IntRange{0});
  field(d, {"promptTokens", "Prompts shorter than this are never disaggregated."}, p.prompt_tokens,
        IntRange{0});
}

struct DisaggHeadersParameters {
  std::string prefill_profile = "prefill", encode_profile = "encode";
};
inline void describe(Describer& d, DisaggHeadersParameters& p) {
  field(d, {"prefillProfile", "Profile that picks the prefill endpoint."}, p.prefill_profile);
  field(d, {"encodeProfile", "Profile that picks the encode endpoints."}, p.encode_profile);
}

struct DisaggProfiles {
  std::optional<std::string> decode, prefill, encode;
};
inline void describe(Describer& d, DisaggProfiles& p) {
  field(d, {"decode", "Profile of the decode stage (default decode)."}, p.decode);
  field(d, {"prefill", "Profile of the prefill stage (default prefill)."}, p.prefill);
  field(d, {"encode", "Profile of the encode stage (default encode)."}, p.encode);
}

struct DisaggDeciders {
  std::optional<std::string> prefill, encode;
};
inline void describe(Describer& d, DisaggDeciders& p) {
  field(d, {"prefill", "Decider instance of the prefill stage; none = skipped."}, p.prefill);
  field(d, {"encode", "Decider instance of the encode stage; none = skipped."}, p.encode);
}

struct DisaggProfileParameters {
  std::string stage_order = "decode-first";
  std::optional<DisaggProfiles> profiles;
  std::optional<DisaggDeciders> deciders;
  std::optional<std::string> decode_profile, prefill_profile, encode_profile;
  std::optional<std::string> prefill_decider, decider, encode_decider;
};
inline void describe(Describer& d, DisaggProfileParameters& p) {
  field(d, {"stageOrder", "decode-first or prefill-first; empty = decode-first."}, p.stage_order);
  field(d, {"profiles", "Names of the stages' profiles."}, p.profiles);
  field(d, {"deciders", "Deciders of the optional stages."}, p.deciders);
  field(d, {"decodeProfile", "Older name of profiles.decode."}, p.decode_profile);
  field(d, {"prefillProfile", "Older name of profiles.prefill."}, p.prefill_profile);
  field(d, {"encodeProfile", "Older name of profiles.encode."}, p.encode_profile);
  field(d, {"prefillDeciderPluginName", "Older name of deciders.prefill."}, p.prefill_decider);
  field(d, {"deciderPluginName", "The same, as pd-profile-handler called it."}, p.decider);
  field(d, {"encodeDeciderPluginName", "Older name of deciders.encode."}, p.encode_decider);
}

struct HeaderProfileParameters {
  std::string header_name = "EPP-Profile", default_profile = "decode";
};
inline void describe(Describer& d, HeaderProfileParameters& p) {
  field(d, {"headerName", "Request header that names the profile to run; empty = EPP-Profile."},
        p.header_name);
  field(d, {"defaultProfile", "Profile without that header; empty = decode."}, p.default_profile);
}

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

struct PredictedLatencyParameters {
  double slo_buffer_factor = 1.0;
  std::string context_ttl = "5m";
  bool streaming_mode = false;
  std::string endpoint_role_label;
  bool predict_in_produce = true, use_encoder_cache_features = false;
  double sampling_mean = 1000;
  std::int64_t max_decode_samples = 0;
  std::string prefix_producer, in_flight_producer;
};
inline void describe(Describer& d, PredictedLatencyParameters& p) {
  field(d, {"sloBufferFactor", "Share of the TPOT SLO to use."}, p.slo_buffer_factor,
        RealRange{.min = 0, .min_open = true});
  field(d, {"contextTTL", "How long upstream remembers a request."}, p.context_ttl);
  field(d, {"streamingMode", "TPOT counts only when answers stream."}, p.streaming_mode);
  field(d, {"endpointRoleLabel", "Label with the role; 'prefill' has no TPOT."},
        p.endpoint_role_label);
  field(d, {"predictInProduce", "False leaves every endpoint without a prediction."},
        p.predict_in_produce);
  field(d, {"useEncoderCacheFeatures", "A feature of the side-car's model."},
        p.use_encoder_cache_features);
  field(d, {"samplingMean", "Accepted and ignored, as upstream does."}, p.sampling_mean);
  field(d, {"maxDecodeTokenSamplesForPrediction", "Accepted and ignored, as upstream does."},
        p.max_decode_samples);
  field(d, {"prefixMatchInfoProducerName", "A feature of the side-car's model."},
        p.prefix_producer);
  field(d, {"inFlightLoadProducerName", "A feature of the side-car's model."},
        p.in_flight_producer);
}

}  // namespace routesim::policies
