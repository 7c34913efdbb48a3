// The parameters of every plugin, each struct described once. Adding a scorer adds a struct here.
// Key names are the ones of EndpointPickerConfig documents (camelCase).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/document.h"
#include "sim/base/describe.h"

namespace routesim::policies {

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
};
inline void describe(Describer& d, ApproxPrefixParameters& p) {
  field(d, {"autoTune", "Take block size and capacity from what the engines report."},
        p.auto_tune);
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
}

struct TokenProcessorParameters {
  std::optional<std::int64_t> block_size_tokens;
  std::optional<std::int64_t> block_size;
  std::string hash_seed;
  std::string hash_algorithm = "cbor-fnv";
};
inline void describe(Describer& d, TokenProcessorParameters& p) {
  field(d, {"blockSizeTokens", "Canonical block size in tokens (default 16)."},
        p.block_size_tokens, IntRange{1});
  field(d, {"blockSize", "Older name of blockSizeTokens."}, p.block_size, IntRange{1});
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
};
inline void describe(Describer& d, RedisIndexParameters& p) {
  field(d, {"address", "Server address."}, p.address);
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
  field(d, {"redisConfig", "A shared backend."}, p.redis);
  field(d, {"valkeyConfig", "A shared backend."}, p.valkey);
  field(d, {"enableMetrics", "Counters only."}, p.enable_metrics);
  field(d, {"metricsLoggingInterval", "Counters only."}, p.metrics_logging_interval);
}

struct HuggingFaceParameters {
  bool enabled = true;
  std::string token, cache_dir;
};
inline void describe(Describer& d, HuggingFaceParameters& p) {
  field(d, {"enabled", "Use it."}, p.enabled);
  field(d, {"huggingFaceToken", "Download credential; not used here."}, p.token);
  field(d, {"tokenizersCacheDir", "Download directory; not used here."}, p.cache_dir);
}

struct UdsTokenizerParameters {
  std::string socket_file;
};
inline void describe(Describer& d, UdsTokenizerParameters& p) {
  field(d, {"socketFile", "Socket of the tokenizer side-car; not used here."}, p.socket_file);
}

struct LocalTokenizerParameters {
  std::string auto_discovery_dir, auto_discovery_tokenizer_file_name;
};
inline void describe(Describer& d, LocalTokenizerParameters& p) {
  field(d, {"autoDiscoveryDir", "Not used here."}, p.auto_discovery_dir);
  field(d, {"autoDiscoveryTokenizerFileName", "Not used here."},
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
  field(d, {"modelName", "Tokenizer to load; tokens come with the request here."}, p.model_name);
  field(d, {"workersCount", "Parallel tokenizer workers."}, p.workers_count, IntRange{1});
  field(d, {"minPrefixOverlapRatio", "Share of known text above which only it is tokenised."},
        p.min_prefix_overlap_ratio, RealRange{0, 1});
  field(d, {"huggingFaceToken", "Download credential; not used here."}, p.hugging_face_token);
  field(d, {"tokenizersCacheDir", "Download directory; not used here."}, p.tokenizers_cache_dir);
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
  field(d, {"podNamespace", "Empty = all."}, p.pod_namespace);
  field(d, {"socketPort", "Event port of rank 0; rank i uses socketPort + i."}, p.socket_port,
        IntRange{1, 65535});
  field(d, {"replaySocketPort", "Replay port; 0 = off."}, p.replay_socket_port,
        IntRange{0, 65535});
}

struct KvEventsParameters {
  std::string zmq_endpoint;
  std::string topic_filter = "kv@";
  std::int64_t concurrency = 4;
  std::string engine_type = "vllm";
  std::optional<bool> discover_pods;
  PodDiscoveryParameters pod_discovery;
};
inline void describe(Describer& d, KvEventsParameters& p) {
  field(d, {"zmqEndpoint", "Address the router binds; engines connect to it."}, p.zmq_endpoint);
  field(d, {"topicFilter", "Subscription prefix."}, p.topic_filter);
  field(d, {"concurrency", "Event workers."}, p.concurrency, IntRange{1});
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

}  // namespace routesim::policies
