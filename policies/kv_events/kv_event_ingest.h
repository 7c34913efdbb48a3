// From decoded KV events to the index: what llm-d's event pool does between the wire and the block
// index. It recomputes request keys from an event's tokens at the router's own block size, skips
// what cannot be indexed, and calls the same PrefixIndex functions the simulator's short cut calls.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "policies/index/block_keys.h"
#include "policies/index/prefix_index.h"
#include "policies/index/tier_registry.h"
#include "policies/kv_events/kv_events.h"

namespace routesim::policies {

struct KvIngestOptions {
  KeyAlgorithm algorithm =
      KeyAlgorithm::kCborFnv;     ///< A SHA-256 one indexes engine hashes directly.
  std::uint32_t block_size = 16;  ///< Canonical block size in tokens, >= 1.
  std::string hash_seed;
  bool tiers = true;  ///< False reproduces v0.3.2, which files everything under one tier.
};

/// Counters; every event ends in exactly one of the first four or `skipped_*`.
struct KvIngestStats {
  std::uint64_t stored = 0;
  std::uint64_t removed = 0;
  std::uint64_t cleared = 0;
  std::uint64_t tier_updates = 0;
  std::uint64_t skipped_group = 0;    ///< Cache group that cannot be indexed.
  std::uint64_t skipped_parent = 0;   ///< Parent block unknown.
  std::uint64_t skipped_partial = 0;  ///< Fewer tokens than one canonical block.
  std::uint64_t skipped_limit = 0;    ///< Too many tiers or groups, or too long extra keys.
  std::uint64_t undecodable = 0;      ///< Whole messages.
};

/// Applies events to one index. Single-threaded; shard by kv_worker() to use several.
class KvEventIngestor {
 public:
  /// The index and the tier table must outlive the ingestor.
  KvEventIngestor(KvIngestOptions options, PrefixIndex& index, TierRegistry& tiers);

  /// One event of `endpoint`; `topic_model` is the model of the topic.
  void apply(EndpointId endpoint, std::string_view topic_model, const KvEvent& event);
  void apply(EndpointId endpoint, std::string_view topic_model, const KvEventBatch& batch);
  /// A whole message: decodes `payload`, applies it; returns the error, empty on success.
  std::string apply_message(EndpointId endpoint, std::string_view topic_model,
                            std::span<const std::uint8_t> payload);
  void remove_endpoint(EndpointId endpoint);

  const KvIngestStats& stats() const { return stats_; }

 private:
  void stored(EndpointId endpoint, std::string_view topic_model, const BlockStored& event);
  void removed(EndpointId endpoint, std::string_view topic_model, const BlockRemoved& event);
  bool indexable_group(EndpointId endpoint, const BlockStored& event);

  KvIngestOptions options_;
  PrefixIndex& index_;
  TierRegistry& tiers_;
  KvIngestStats stats_;
  std::map<std::pair<EndpointId, std::uint32_t>, bool> groups_;  // Learned: is the kind indexable?
  std::vector<BlockKey> keys_;
};

}  // namespace routesim::policies
