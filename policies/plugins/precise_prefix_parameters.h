// Parameters of the precise prefix plugins: block keys, index, tokenizers and KV events.
#pragma once

#include "policies/build_context.h"

namespace routesim::policies {

inline constexpr std::string_view kTokensCome = "requests come with their tokens";
inline constexpr std::string_view kIndexInMemory = "the index is in memory, without podCacheSize";
inline constexpr std::string_view kOwnMetrics = "it is about metrics of the router itself";
inline constexpr std::string_view kEventsArrive =
    "events arrive as routing.kv_event_delay and kv_event_loss say";

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
  field(d, {"name", "Storage tier, lower case: gpu, cpu, storage, …", true}, p.name);
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
  field(d, {"kvCacheBackendConfigs", "Tier weights; replaces the default (gpu 1.0, cpu 0.8)."},
        p.backends);
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
  field(d, {"replaySocketPort", "Port for events that were missed; 0 = off. From v0.10.0 on."},
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

// ---- Whether the KV events of the engines reach the index -------------------------------------

/// Engines of llm-d publish as kv@POD@MODEL (llm-d-kv-cache 0.5.0
/// pkg/kvevents/zmq_subscriber.go).
inline constexpr std::string_view kTopicStart = "kv@";

/// Whether an endpoint-notification-source of the data layer has the plugin among its extractors.
inline bool hears_of_endpoints(const EndpointPickerConfig& config, const PluginSpec& spec) {
  const auto& sources = config.data_layer.sources;
  return std::any_of(sources.begin(), sources.end(), [&](const DataSourceSpec& source) {
    const PluginSpec* of = config.find(source.source.name);
    return of != nullptr && of->type == "endpoint-notification-source" &&
           std::any_of(source.extractors.begin(), source.extractors.end(),
                       [&](const PluginReference& r) { return r.name == spec.name; });
  });
}

/// Whether a subscription hears engines: it hears the topics that begin with its filter.
inline bool hears_engines(std::string_view topic_filter) {
  return kTopicStart.starts_with(topic_filter) || topic_filter.starts_with(kTopicStart);
}

/// Whether `spec`, a precise prefix plugin, owns an index instead of reading the one of a producer.
inline bool owns_precise_index(const EndpointPickerConfig& config, const PluginSpec& spec) {
  if (spec.type != "precise-prefix-cache-scorer")
    return spec.type == "precise-prefix-cache-producer";
  return std::none_of(config.plugins.begin(), config.plugins.end(), [](const PluginSpec& other) {
    return other.type == "precise-prefix-cache-producer";
  });
}

/// Whether KV events reach the index that `spec` owns. Without them it holds at most speculative
/// entries. `events` are the parameters of `spec`.
// Up to 0.4.0 llm-d-kv-cache-manager binds tcp://*:5557 unless told otherwise. From 0.5.0 on the
// scorer dials the endpoints it scores, by default; llm-d-router 0.9.0 dials only endpoints that
// the data layer notifies it of (preciseprefixcache/extractor.go).
inline bool receives_kv_events(const EndpointPickerConfig& config, const PluginSpec& spec,
                               const KvEventsParameters& events) {
  const KvEventFeed feed = traits(config.era).precise.kv_event_feed;
  if (!hears_engines(events.topic_filter)) return false;
  if (events.zmq_endpoint) {
    if (!events.zmq_endpoint->empty()) return true;
  } else if (feed == KvEventFeed::kSocket) {
    return true;
  }
  if (feed == KvEventFeed::kSocket || !events.discover_pods.value_or(true)) return false;
  return feed == KvEventFeed::kDialsScored || hears_of_endpoints(config, spec);
}

/// Whether a subscription of `spec` asks an engine for the events that it missed (llm-d-router pull
/// request 1887). A socket that the router binds does not.
inline bool asks_for_replays(const EndpointPickerConfig& config, const PluginSpec& spec,
                             const KvEventsParameters& events) {
  return traits(config.era).precise.asks_for_replays &&
         events.pod_discovery.replay_socket_port > 0 &&
         (!events.zmq_endpoint || events.zmq_endpoint->empty()) &&
         receives_kv_events(config, spec, events);
}

}  // namespace routesim::policies
