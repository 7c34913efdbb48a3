// The parameters of every plugin, each struct described once. Adding a scorer adds a struct here.
// Key names are the ones of EndpointPickerConfig documents (camelCase).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "base/field_fates.h"
#include "policies/config/document.h"
#include "policies/plugins/config_admission.h"
#include "policies/plugins/config_filters.h"

namespace routesim::policies {

inline constexpr std::string_view kTokensCome = "requests come with their tokens";
inline constexpr std::string_view kIndexInMemory = "the index is in memory, without podCacheSize";
inline constexpr std::string_view kOwnMetrics = "it is about metrics of the router itself";
inline constexpr std::string_view kEventsArrive =
    "events arrive as routing.kv_event_delay and kv_event_loss say";

/// Plugins that take none.
struct NoParameters {};
inline void describe(Describer&, NoParameters&) {}

struct LoadAwareParameters {
  std::int64_t threshold = 128;
};
inline void describe(Describer& d, LoadAwareParameters& p) {
  field(d, {"threshold", "Waiting requests at which the score reaches 0; not positive = 128."},
        p.threshold);
}

struct ActiveRequestParameters {
  std::optional<std::int64_t> idle_threshold;
  std::optional<double> max_busy_score;
  std::string in_flight_producer;
  std::string request_timeout;
};
inline void describe(Describer& d, ActiveRequestParameters& p) {
  field(d, {"idleThreshold", "Endpoints with at most this many requests score 1 (default 0)."},
        p.idle_threshold);
  field(d, {"maxBusyScore", "Best score of a busy endpoint, 0..1; other values are ignored."},
        p.max_busy_score);
  field(d, {"inFlightLoadProducerName", "Instance that counts requests; empty = the default."},
        p.in_flight_producer);
  field(d, {"requestTimeout", "Own counters only: when an unfinished request stops counting."},
        p.request_timeout);
}

struct TokenLoadParameters {
  std::int64_t queue_threshold_tokens = 4'194'304;
  std::string in_flight_producer;
};
inline void describe(Describer& d, TokenLoadParameters& p) {
  field(d, {"queueThresholdTokens", "Tokens at which the score reaches 0; not positive = default."},
        p.queue_threshold_tokens);
  field(d, {"inFlightLoadProducerName", "Instance that counts tokens; empty = the default."},
        p.in_flight_producer);
}

struct PrefixCacheParameters {
  std::string producer;
  double match_length_weight = 0;
  double match_length_scale_tokens = 8192;
};
inline void describe(Describer& d, PrefixCacheParameters& p) {
  field(d, {"prefixMatchInfoProducerName", "Producer to score; empty = the approximate one."},
        p.producer);
  field(d, {"matchLengthWeight", "Weight of the squared matched length against the ratio."},
        p.match_length_weight, RealRange{0, 1});
  field(d, {"matchLengthScaleTokens", "Matched tokens that count as a full length."},
        p.match_length_scale_tokens);
}

/// Approximate prefix producer, and prefix-cache-scorer of the eras in which it owned the index.
struct ApproxPrefixParameters {
  bool auto_tune = true;
  std::int64_t block_size_tokens = 16;
  std::optional<std::int64_t> block_size;
  std::optional<std::int64_t> max_prefix_blocks;
  std::int64_t max_prefix_tokens = 131'072;
  std::int64_t lru_capacity = 31'250;
  std::string hash_source;
};
inline void describe(Describer& d, ApproxPrefixParameters& p) {
  field(d, {"autoTune", "Take block size and capacity from what the engines report."}, p.auto_tune);
  field(d, {"blockSizeTokens", "Tokens per block when not auto-tuned (raised to 64)."},
        p.block_size_tokens);
  field(d, {"blockSize", "Older name; characters per block in byte-hashing eras (default 64)."},
        p.block_size);
  field(d, {"maxPrefixBlocksToMatch", "Cap in blocks; 0 = none (default 2048, older eras 256)."},
        p.max_prefix_blocks, IntRange{0});
  field(d, {"maxPrefixTokensToMatch", "Cap in tokens; wins over the cap in blocks; 0 = unset."},
        p.max_prefix_tokens, IntRange{0});
  field(d, {"lruCapacityPerServer", "Hashes kept per endpoint when not auto-tuned."},
        p.lru_capacity, IntRange{1});
  field(d,
        no_effect("prefixHashSource", "Who hashes the prompt.",
                  "either side computes the same hashes"),
        p.hash_source);
}

struct TokenProcessorParameters {
  std::optional<std::int64_t> block_size_tokens;
  std::optional<std::int64_t> block_size;
  std::string hash_seed;
  std::string hash_algorithm = "cbor-fnv";
};
inline void describe(Describer& d, TokenProcessorParameters& p) {
  field(d, {"blockSizeTokens", "Canonical block size in tokens; 0 = blockSize, or 16."},
        p.block_size_tokens);
  field(d, {"blockSize", "Older name of blockSizeTokens; 0 = 16."}, p.block_size);
  field(d, {"hashSeed", "Seed of the key chain; PYTHONHASHSEED in SHA-256 eras."}, p.hash_seed);
  field(d, {"hashAlgorithm", "cbor-fnv or xxh64."}, p.hash_algorithm);
}

struct TierWeight {
  std::string name;
  double weight = 1;
};
inline void describe(Describer& d, TierWeight& p) {
  field(d, {"name", "Storage tier, lower case: gpu, cpu, …", true}, p.name);
  field(d, {"weight", "What one matched block there counts."}, p.weight);
}

struct InMemoryIndexParameters {
  std::int64_t size = 100'000'000;
  std::int64_t pod_cache_size = 10;
};
inline void describe(Describer& d, InMemoryIndexParameters& p) {
  field(d, {"size", "Keys in the index."}, p.size, IntRange{1});
  field(d, {"podCacheSize", "Distinct (endpoint, tier) entries kept per key."}, p.pod_cache_size,
        IntRange{1});
}

/// Anything: settings of parts that have no influence on decisions (tokenizer pools, metrics).
struct FreeForm {};
inline void describe(Describer&, FreeForm&) {}

struct CostAwareIndexParameters {
  std::string size = "2GiB";
};
inline void describe(Describer& d, CostAwareIndexParameters& p) {
  field(d, {"size", "Bytes, humanised."}, p.size);
}

struct RedisIndexParameters {
  std::string address = "redis://127.0.0.1:6379";
  std::string backend_type;
  bool enable_rdma = false;
};
inline void describe(Describer& d, RedisIndexParameters& p) {
  field(d, no_effect("address", "Server address.", kIndexInMemory), p.address);
  field(d, no_effect("backendType", "redis or valkey.", kIndexInMemory), p.backend_type);
  field(d, no_effect("enableRDMA", "Transport.", kIndexInMemory), p.enable_rdma);
}

struct BlockIndexParameters {
  std::optional<InMemoryIndexParameters> in_memory;
  std::optional<CostAwareIndexParameters> cost_aware;
  std::optional<RedisIndexParameters> redis, valkey;
  bool enable_metrics = false;
  std::string metrics_logging_interval;
};
inline void describe(Describer& d, BlockIndexParameters& p) {
  field(d, {"inMemoryConfig", "The in-memory backend."}, p.in_memory);
  field(d, {"costAwareMemoryConfig", "A memory-bounded backend."}, p.cost_aware);
  field(d, {"redisConfig", "A shared backend; here it is memory without podCacheSize."}, p.redis);
  field(d, {"valkeyConfig", "The same."}, p.valkey);
  field(d, no_effect("enableMetrics", "Count hits.", kOwnMetrics), p.enable_metrics);
  field(d, no_effect("metricsLoggingInterval", "How often to log them.", kOwnMetrics),
        p.metrics_logging_interval);
}

struct HuggingFaceParameters {
  bool enabled = true;
  std::string token, cache_dir;
};
inline void describe(Describer& d, HuggingFaceParameters& p) {
  field(d, no_effect("enabled", "Use it.", kTokensCome), p.enabled);
  field(d, no_effect("huggingFaceToken", "Download credential.", kTokensCome), p.token);
  field(d, no_effect("tokenizersCacheDir", "Download directory.", kTokensCome), p.cache_dir);
}

struct UdsTokenizerParameters {
  std::string socket_file;
};
inline void describe(Describer& d, UdsTokenizerParameters& p) {
  field(d, no_effect("socketFile", "Socket of the tokenizer side-car.", kTokensCome),
        p.socket_file);
}

struct LocalTokenizerParameters {
  std::string auto_discovery_dir, auto_discovery_tokenizer_file_name;
};
inline void describe(Describer& d, LocalTokenizerParameters& p) {
  field(d, no_effect("autoDiscoveryDir", "Folder with tokenizers.", kTokensCome),
        p.auto_discovery_dir);
  field(d, no_effect("autoDiscoveryTokenizerFileName", "Name of a tokenizer's file.", kTokensCome),
        p.auto_discovery_tokenizer_file_name);
}

struct TokenizersPoolParameters {
  std::string model_name;
  std::int64_t workers_count = 5;
  double min_prefix_overlap_ratio = 0.8;
  std::string hugging_face_token, tokenizers_cache_dir;
  std::optional<HuggingFaceParameters> hf;
  std::optional<LocalTokenizerParameters> local;
  std::optional<UdsTokenizerParameters> uds;
};
inline void describe(Describer& d, TokenizersPoolParameters& p) {
  field(d, no_effect("modelName", "Tokenizer to load.", kTokensCome), p.model_name);
  field(d, no_effect("workersCount", "Parallel tokenizer workers.", kTokensCome), p.workers_count,
        IntRange{1});
  field(d, {"minPrefixOverlapRatio", "Share of known text above which only it is tokenised."},
        p.min_prefix_overlap_ratio, RealRange{0, 1});
  field(d, no_effect("huggingFaceToken", "Download credential.", kTokensCome),
        p.hugging_face_token);
  field(d, no_effect("tokenizersCacheDir", "Download directory.", kTokensCome),
        p.tokenizers_cache_dir);
  field(d, {"hf", "Hugging Face tokenizer."}, p.hf);
  field(d, {"local", "Local tokenizer files."}, p.local);
  field(d, {"uds", "Tokenizer side-car."}, p.uds);
}

struct PrefixStoreParameters {
  std::int64_t cache_size = 500'000;
  std::int64_t block_size = 256;
};
inline void describe(Describer& d, PrefixStoreParameters& p) {
  field(d, {"cacheSize", "Text chunks remembered, to save tokenizer work."}, p.cache_size,
        IntRange{1});
  field(d, {"blockSize", "Bytes of text per chunk."}, p.block_size, IntRange{1});
}

struct IndexerParameters {
  std::optional<TokenProcessorParameters> token_processor;
  std::optional<PrefixStoreParameters> prefix_store;
  BlockIndexParameters block_index;
  std::optional<std::vector<TierWeight>> backends;
  std::optional<TokenizersPoolParameters> tokenizers_pool;
};
inline void describe(Describer& d, IndexerParameters& p) {
  field(d, {"tokenProcessorConfig", "Block keys; its place up to v0.4.0."}, p.token_processor);
  field(d, {"prefixStoreConfig", "Text-to-token cache of older eras."}, p.prefix_store);
  field(d, {"kvBlockIndexConfig", "Where block holders are kept."}, p.block_index);
  field(d, {"kvCacheBackendConfigs", "Tier weights; replaces gpu 1.0, cpu 0.8."}, p.backends);
  field(d, {"tokenizersPoolConfig", "Tokenizers of the router."}, p.tokenizers_pool);
}

struct PodDiscoveryParameters {
  std::string pod_label_selector = "llm-d.ai/inference-serving=true";
  std::string pod_namespace;
  std::int64_t socket_port = 5557;
  std::int64_t replay_socket_port = 0;
};
inline void describe(Describer& d, PodDiscoveryParameters& p) {
  field(d, {"podLabelSelector", "Which pods to subscribe to."}, p.pod_label_selector);
  field(d, no_effect("podNamespace", "Empty = all.", kEventsArrive), p.pod_namespace);
  field(d,
        no_effect("socketPort", "Event port of rank 0; rank i uses socketPort + i.", kEventsArrive),
        p.socket_port, IntRange{1, 65535});
  field(d, no_effect("replaySocketPort", "Replay port; 0 = off.", kEventsArrive),
        p.replay_socket_port, IntRange{0, 65535});
}

struct KvEventsParameters {
  std::optional<std::string> zmq_endpoint;
  std::string topic_filter = "kv@";
  std::int64_t concurrency = 4;
  std::string engine_type = "vllm";
  std::optional<bool> discover_pods;
  PodDiscoveryParameters pod_discovery;
};
inline void describe(Describer& d, KvEventsParameters& p) {
  field(d, {"zmqEndpoint", "Address the router binds; engines connect to it."}, p.zmq_endpoint);
  field(d, no_effect("topicFilter", "Subscription prefix.", kEventsArrive), p.topic_filter);
  field(d,
        no_effect("concurrency", "Event workers.",
                  "events arrive after routing.kv_event_delay, in order"),
        p.concurrency, IntRange{1});
  field(d, {"engineType", "vllm or sglang."}, p.engine_type);
  field(d, {"discoverPods", "Dial every endpoint instead of binding."}, p.discover_pods);
  field(d, {"podDiscoveryConfig", "How to find the pods."}, p.pod_discovery);
}

struct PrecisePrefixParameters {
  std::optional<TokenProcessorParameters> token_processor;
  IndexerParameters indexer;
  KvEventsParameters kv_events;
  bool speculative_indexing = false;
  std::string speculative_ttl = "2s";
};
inline void describe(Describer& d, PrecisePrefixParameters& p) {
  field(d, {"tokenProcessorConfig", "Block keys (v0.5.0 and later)."}, p.token_processor);
  field(d, {"indexerConfig", "The block index."}, p.indexer);
  field(d, {"kvEventsConfig", "Where KV events come from."}, p.kv_events);
  field(d, {"speculativeIndexing", "Index a prompt at its target as soon as it is routed."},
        p.speculative_indexing);
  field(d, {"speculativeTTL", "How long such an entry lasts; not positive = 2s."},
        p.speculative_ttl);
}

struct NoHitLruParameters {
  std::int64_t lru_size = 1024;
  std::string producer, prefix_plugin_type, prefix_plugin_name;
};
inline void describe(Describer& d, NoHitLruParameters& p) {
  field(d, {"lruSize", "Endpoints remembered."}, p.lru_size);
  field(d, {"prefixMatchInfoProducerName", "Producer that tells cold from warm."}, p.producer);
  field(d, {"prefixPluginType", "Older way to name the prefix plugin."}, p.prefix_plugin_type);
  field(d, {"prefixPluginName", "Older way to name the prefix plugin."}, p.prefix_plugin_name);
}

struct InFlightLoadParameters {
  bool add_estimated_output_tokens = false;
  double output_ratio = 1.5;
  std::optional<std::int64_t> max_estimated_output_tokens;
  std::string prefix_producer;
  bool sync_cross_replica_state = true;
};
inline void describe(Describer& d, InFlightLoadParameters& p) {
  field(d, {"addEstimatedOutputTokens", "Count an estimate of the answer too."},
        p.add_estimated_output_tokens);
  field(d, {"outputRatio", "Estimated answer tokens per prompt token."}, p.output_ratio,
        RealRange{0});
  field(d, {"maxEstimatedOutputTokens", "Cap of the estimate."}, p.max_estimated_output_tokens);
  field(d, {"prefixMatchInfoProducerName", "Producer of the cached prefix to subtract."},
        p.prefix_producer);
  field(d,
        approximated("syncCrossReplicaState", "Share the counts between routers.",
                     "every router counts its own requests only"),
        p.sync_cross_replica_state);
}

struct PickerParameters {
  std::int64_t max_num_of_endpoints = 1;
};
inline void describe(Describer& d, PickerParameters& p) {
  field(d, {"maxNumOfEndpoints", "Targets returned, best first; not positive = 1."},
        p.max_num_of_endpoints);
}

struct ContextLengthParameters {
  std::optional<std::string> label;
  bool enable_filtering = false;
};
inline void describe(Describer& d, ContextLengthParameters& p) {
  field(d, {"label", "Label with the range 'min-max' (default by distribution)."}, p.label);
  field(d, {"enableFiltering", "Also drop endpoints whose range does not fit."},
        p.enable_filtering);
}

struct EncodedHeaderParameters {
  std::string header = "x-session-token";
};
inline void describe(Describer& d, EncodedHeaderParameters& p) {
  field(d, {"header", "Header that holds the encoded endpoint."}, p.header);
}

struct SessionSource {
  std::string header, attribute, producer;
};
inline void describe(Describer& d, SessionSource& p) {
  field(d, {"header", "Take the session id from this header."}, p.header);
  field(d, {"attribute", "Or from this request attribute."}, p.attribute);
  field(d, {"producer", "Producer of the attribute."}, p.producer);
}

struct SessionIdParameters {
  std::optional<std::vector<SessionSource>> sources;
  std::int64_t eviction_ttl_seconds = 300;
  std::int64_t eviction_sweep_seconds = 10;
};
inline void describe(Describer& d, SessionIdParameters& p) {
  field(d, {"sources", "Where the session id comes from (default header x-session-id)."},
        p.sources);
  field(d, {"evictionTtlSeconds", "Idle seconds after which a binding goes; 0 = 300."},
        p.eviction_ttl_seconds, IntRange{0});
  field(d, {"evictionSweepSeconds", "Seconds between sweeps; 0 = 10."}, p.eviction_sweep_seconds,
        IntRange{0});
}

struct SessionAffinityParameters {
  std::string strategy = "encoded_endpoint_header";
  EncodedHeaderParameters encoded_header;
  SessionIdParameters session_id;
  std::string profile_name;
};
inline void describe(Describer& d, SessionAffinityParameters& p) {
  field(d, {"strategy", "encoded_endpoint_header or session_id."}, p.strategy);
  field(d, {"encodedEndpointHeaderConfig", "For encoded_endpoint_header."}, p.encoded_header);
  field(d, {"sessionIdConfig", "For session_id."}, p.session_id);
  field(d, {"profileName", "Profile whose first target the response header names."},
        p.profile_name);
}

struct HeaderLabelParameters {
  std::string header_name, label_key;
};
inline void describe(Describer& d, HeaderLabelParameters& p) {
  field(d, {"headerName", "Request header to compare.", true}, p.header_name);
  field(d, {"labelKey", "Endpoint label to compare with.", true}, p.label_key);
}

struct TopologyParameters {
  std::string min_affinity = "host";
  std::string topology_producer;
};
inline void describe(Describer& d, TopologyParameters& p) {
  field(d, {"minAffinity", "host, rack, zone or region (filter only)."}, p.min_affinity);
  field(d, {"topologyProducerName", "Instance that knows the topology."}, p.topology_producer);
}

struct FixedRange {
  double min = 0, max = 0;
};
inline void describe(Describer& d, FixedRange& p) {
  field(d, {"min", "Lower end."}, p.min);
  field(d, {"max", "Upper end."}, p.max);
}

/// The key that is there selects the mode; none is adaptiveRange.
struct AttributeNormalization {
  std::optional<FixedRange> fixed_range;
  std::optional<NoParameters> adaptive_range;
};
inline void describe(Describer& d, AttributeNormalization& p) {
  field(d, {"fixedRange", "Score between these bounds."}, p.fixed_range);
  field(d, {"adaptiveRange", "Score between the candidates' extremes (the default)."},
        p.adaptive_range);
}

struct AttributeAlgorithm {
  std::string type;
  AttributeNormalization normalization;
};
inline void describe(Describer& d, AttributeAlgorithm& p) {
  field(d, {"type", "linear_lower_is_better or linear_higher_is_better.", true}, p.type);
  field(d, {"normalization", "How values map to 0..1."}, p.normalization);
}

struct AttributeScorerParameters {
  std::string attribute, attribute_key, producer = "core-metrics-extractor";
  AttributeAlgorithm algorithm;
};
inline void describe(Describer& d, AttributeScorerParameters& p) {
  field(d, {"attributeKey", "Numeric endpoint attribute to score."}, p.attribute_key);
  field(d, {"attribute", "Other name of attributeKey."}, p.attribute);
  field(d, {"producer", "Instance that writes it."}, p.producer);
  field(d, {"algorithm", "How values become scores."}, p.algorithm);
}

struct LatencyParameters {
  double ttft_weight = 0.8, tpot_weight = 0.2;
  std::string strategy = "least";
  double composite_kv_weight = 1, composite_queue_weight = 1, composite_prefix_weight = 1;
  std::string prefix_producer, prediction_producer;
};
inline void describe(Describer& d, LatencyParameters& p) {
  field(d, {"ttftWeight", "Weight of the TTFT headroom."}, p.ttft_weight, RealRange{0});
  field(d, {"tpotWeight", "Weight of the TPOT headroom."}, p.tpot_weight, RealRange{0});
  field(d, {"headroomSelectionStrategy", "least or most."}, p.strategy);
  field(d, {"compositeKVWeight", "Without predictions: weight of free KV cache."},
        p.composite_kv_weight, RealRange{0});
  field(d, {"compositeQueueWeight", "Without predictions: weight of the queue."},
        p.composite_queue_weight, RealRange{0});
  field(d, {"compositePrefixWeight", "Without predictions: weight of the prefix ratio."},
        p.composite_prefix_weight, RealRange{0});
  field(d, {"prefixMatchInfoProducerName", "Producer of the prefix ratio."}, p.prefix_producer);
  field(d, {"latencyPredictionInfoProducerName", "Producer of the predictions."},
        p.prediction_producer);
}

struct LMetricParameters {
  std::string prefix_producer, in_flight_producer;
};
inline void describe(Describer& d, LMetricParameters& p) {
  field(d, {"prefixMatchInfoProducerName", "Producer of the cached prefix."}, p.prefix_producer);
  field(d, {"inFlightLoadProducerName", "Instance that counts requests."}, p.in_flight_producer);
}

}  // namespace routesim::policies
