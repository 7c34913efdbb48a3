// How the parameters of the precise prefix plugins become an index.
#include <limits>

#include "base/scalar_parse.h"
#include "policies/plugins/precise_prefix_parameters.h"
#include "policies/plugins/prefix_producers.h"

namespace routesim::policies {
namespace {

constexpr std::int64_t kMostHolders = 65535;  // Per key of the index.

// kvCacheBackendConfigs replaces the whole default list. Up to August 2026 its names are compared
// as they are written with those of events, which are lower case (llm-d-router pkg/kvcache/
// backend.go, kvblock_scorer.go). Speculative rows have no tier and weigh 1.
std::vector<double> tier_weights(const PrecisePrefixParameters& p, const PreciseTraits& traits,
                                 TierRegistry& tiers) {
  if (traits.tier_weights == 0) return {};
  std::vector<double> weights = {1.0};
  const auto set = [&](std::optional<TierId> id, double weight) {
    if (!id) return;
    if (weights.size() <= *id) weights.resize(std::size_t{*id} + 1, traits.unlisted_tier_weight);
    weights[*id] = weight;
  };
  if (p.indexer.backends) {
    for (const TierWeight& w : *p.indexer.backends)
      set(traits.lower_case_tier_names && !w.name.empty() ? tiers.intern_medium(w.name)
                                                          : tiers.intern(w.name),
          w.weight);
    return weights;
  }
  for (const NamedTierWeight& w : std::span(kDefaultTierWeights).first(traits.tier_weights))
    set(tiers.intern(w.tier), w.weight);
  return weights;
}

const TokenProcessorParameters& token_processor(const PrecisePrefixParameters& p,
                                                const PluginSpec& spec, BuildContext& context) {
  static const TokenProcessorParameters kDefault;
  const bool nested = context.traits().precise.token_processor_in_indexer;
  const auto& wanted = nested ? p.indexer.token_processor : p.token_processor;
  const auto& misplaced = nested ? p.token_processor : p.indexer.token_processor;
  if (misplaced) {
    context.error(spec, nested ? "tokenProcessorConfig" : "indexerConfig.tokenProcessorConfig",
                  "is not read in era " + std::string(name(context.era())),
                  nested ? "up to v0.4.0 it belongs inside indexerConfig; or set another era"
                         : "from v0.5.0 on it stands beside indexerConfig; or set another era");
  }
  return wanted ? *wanted : kDefault;
}

// An absent field is 0 upstream, so 0 means the older name, and that failing the default.
std::int64_t block_size_tokens(const TokenProcessorParameters& tp, const PluginSpec& spec,
                               BuildContext& context) {
  constexpr std::int64_t kDefault = 16;
  const bool old_name = tp.block_size_tokens.value_or(0) == 0 && tp.block_size.value_or(0) != 0;
  const std::int64_t size = old_name ? *tp.block_size : tp.block_size_tokens.value_or(0);
  if (size == 0) return kDefault;
  const std::string base = context.traits().precise.token_processor_in_indexer
                               ? "indexerConfig.tokenProcessorConfig."
                               : "tokenProcessorConfig.";
  const std::string path = base + (old_name ? "blockSize" : "blockSizeTokens");
  if (size > 0 && size <= std::numeric_limits<std::int32_t>::max()) return size;
  context.error(
      spec, path,
      "must be in [1, 2147483647], or 0 for the default (got " + std::to_string(size) + ")");
  return kDefault;
}

BlockKeyScheme key_scheme(const PrecisePrefixParameters& p, const PluginSpec& spec,
                          BuildContext& context) {
  const TokenProcessorParameters& tp = token_processor(p, spec, context);
  BlockKeyScheme scheme;
  scheme.block_size = block_size_tokens(tp, spec, context);
  scheme.hash_seed = tp.hash_seed;
  const std::optional<KeyAlgorithm> algorithm = parse_key_algorithm(tp.hash_algorithm);
  if (!algorithm || (*algorithm != KeyAlgorithm::kCborFnv && *algorithm != KeyAlgorithm::kXxh64))
    context.error(spec, "tokenProcessorConfig.hashAlgorithm",
                  "must be 'cbor-fnv' or 'xxh64' (got '" + tp.hash_algorithm + "')");
  else
    scheme.algorithm = *algorithm;
  if (context.traits().precise.index_by_engine_hash) scheme.algorithm = KeyAlgorithm::kSha256Cbor;
  return scheme;
}

Duration speculative_ttl(const PrecisePrefixParameters& p, const PluginSpec& spec,
                         BuildContext& context) {
  constexpr Duration kDefault = Duration::seconds(2);
  if (p.speculative_ttl.empty()) return kDefault;
  const std::optional<Duration> ttl = go_duration(p.speculative_ttl);
  if (!ttl) {
    context.error(spec, "speculativeTTL",
                  "must be a duration such as 2s (got '" + p.speculative_ttl + "')");
    return kDefault;
  }
  return *ttl <= Duration::zero() ? kDefault : *ttl;
}

// A backend that admits what it likes would have to be rebuilt to know which endpoint holds what.
void check_backend(const PrecisePrefixParameters& p, const PluginSpec& spec,
                   BuildContext& context) {
  if (p.indexer.block_index.cost_aware)
    context.error(spec, "indexerConfig.kvBlockIndexConfig.costAwareMemoryConfig",
                  "is a backend this library does not have", "use inMemoryConfig");
}

// Redis and Valkey hold what memory does, without a limit of holders per key.
InMemoryIndexParameters memory_of(const BlockIndexParameters& b) {
  if (b.in_memory) return *b.in_memory;
  InMemoryIndexParameters memory;
  if (b.redis || b.valkey) memory.pod_cache_size = kMostHolders;
  return memory;
}

}  // namespace

PrecisePrefixProducer::PrecisePrefixProducer(const PrecisePrefixParameters& p,
                                             const PluginSpec& spec, BuildContext& context,
                                             bool is_wrapper)
    : traits_(context.traits()),
      slot_(context.prefix_slot(spec.name)),
      by_address_(indexes_by_address(context.era(), context.distribution())) {
  context.needs().block_keys = true;
  if (receives_kv_events(context.config(), spec, p.kv_events)) context.needs().kv_events = true;
  if (asks_for_replays(context.config(), spec, p.kv_events)) context.needs().kv_replays = true;
  check_backend(p, spec, context);
  if (!is_wrapper && p.indexer.tokenizers_pool)
    context.error(spec, "indexerConfig.tokenizersPoolConfig",
                  "is not accepted by precise-prefix-cache-producer",
                  "declare a token-producer instead");
  if (p.kv_events.engine_type != "vllm" && p.kv_events.engine_type != "sglang")
    context.error(spec, "kvEventsConfig.engineType",
                  "must be vllm or sglang (got '" + p.kv_events.engine_type + "')");
  if (p.speculative_indexing && !traits_.precise.speculative_indexing)
    context.error(spec, "speculativeIndexing",
                  "does not exist in era " + std::string(policies::name(context.era())));
  TierRegistry tiers;
  PreciseStore::Options options;
  options.scheme = key_scheme(p, spec, context);
  options.tiers = traits_.precise.tier_weights > 0;
  options.speculative = p.speculative_indexing;
  options.speculative_ttl = speculative_ttl(p, spec, context);
  const InMemoryIndexParameters memory = memory_of(p.indexer.block_index);
  options.index.size = static_cast<std::size_t>(memory.size);
  options.index.pod_cache_size = static_cast<std::size_t>(memory.pod_cache_size);
  options.index.count_duplicates = traits_.precise.counts_duplicate_stores;
  options.index.clear_on_all_blocks_cleared = traits_.precise.clears_on_all_blocks_cleared;
  options.index.tier_weights = tier_weights(p, traits_.precise, tiers);
  options.index.unlisted_tier_weight = traits_.precise.unlisted_tier_weight;
  std::unique_ptr<PreciseStore>& shared = context.plugins().precise;
  if (memory.pod_cache_size > kMostHolders) {
    context.error(spec, "indexerConfig.kvBlockIndexConfig.inMemoryConfig.podCacheSize",
                  "must be at most 65535 (got " + std::to_string(memory.pod_cache_size) + ")");
    return;
  }
  if (shared && shared->options().scheme != options.scheme) {
    context.error(spec, "tokenProcessorConfig",
                  "two precise prefix plugins with different block keys are not supported");
  } else if (!shared) {
    shared =
        std::make_unique<PreciseStore>(std::move(options), std::move(tiers), context.thread_safe());
  }
  store_ = shared.get();
  if (p.indexer.prefix_store) {
    context.needs().prompt_bytes = true;
    known_text_ = std::make_unique<KnownText>(KnownText::Options{
        .chunk_bytes = p.indexer.prefix_store->block_size,
        .cache_chunks = p.indexer.prefix_store->cache_size,
        .overlap_ratio =
            p.indexer.tokenizers_pool.value_or(TokenizersPoolParameters{}).min_prefix_overlap_ratio,
        .block_tokens = store_->options().scheme.block_size});
  }
}

}  // namespace routesim::policies
