#include "policies/kv_events/kv_event_ingest.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace routesim::policies {
namespace {

// Hybrid models have a handful of cache groups; what is learned about them must stay bounded.
constexpr std::uint32_t kMaxGroups = 1024;

// An image's identifier is a digest of some dozens of bytes. Without a limit one long identifier
// could be repeated for, and hashed with, every small block of a long event.
constexpr std::size_t kMaxExtraBytes = std::size_t{16} << 20;

// At least the bytes of all identifiers after realign_extras().
std::size_t realigned_bytes(std::span<const BlockExtra> engine, std::size_t count) {
  std::size_t bytes = 0;
  for (const BlockExtra& identifiers : engine)
    for (const std::string& identifier : identifiers) bytes += identifier.size();
  return bytes > 0 && engine.size() < count ? bytes * (count / engine.size() + 1) : bytes;
}

bool is_full_attention(std::string_view kind) {
  return kind == "full_attention" || kind == "mla_attention" || kind == "sink_full_attention";
}

}  // namespace

KvEventIngestor::KvEventIngestor(KvIngestOptions options, PrefixIndex& index, TierRegistry& tiers)
    : options_(std::move(options)), index_(index), tiers_(tiers) {
  ROUTESIM_CHECK(options_.block_size >= 1, "a block holds at least one token");
}

void KvEventIngestor::apply(EndpointId endpoint, std::string_view topic_model,
                            const KvEvent& event) {
  if (const auto* s = std::get_if<BlockStored>(&event)) return stored(endpoint, topic_model, *s);
  if (const auto* r = std::get_if<BlockRemoved>(&event)) return removed(endpoint, topic_model, *r);
  index_.cleared(endpoint);
  ++stats_.cleared;
}

void KvEventIngestor::apply(EndpointId endpoint, std::string_view topic_model,
                            const KvEventBatch& batch) {
  for (const KvEvent& event : batch.events) apply(endpoint, topic_model, event);
}

std::string KvEventIngestor::apply_message(EndpointId endpoint, std::string_view topic_model,
                                           std::span<const std::uint8_t> payload) {
  KvEventBatch batch;
  std::string error = decode_kv_batch(payload, batch);
  if (error.empty())
    apply(endpoint, topic_model, batch);
  else
    ++stats_.undecodable;
  return error;
}

void KvEventIngestor::remove_endpoint(EndpointId endpoint) {
  index_.remove_endpoint(endpoint);
  const auto first = groups_.lower_bound({endpoint, 0});
  groups_.erase(first, groups_.upper_bound({endpoint, UINT32_MAX}));
}

// Hybrid models have several cache groups; only those whose blocks stand for whole prefixes count.
bool KvEventIngestor::indexable_group(EndpointId endpoint, const BlockStored& event) {
  if (!event.group_idx) return true;
  const std::pair key(endpoint, *event.group_idx);
  bool indexable = false;
  if (event.kv_cache_spec_kind) {
    indexable = is_full_attention(*event.kv_cache_spec_kind);
    groups_[key] = indexable;
  } else if (const auto known = groups_.find(key); known != groups_.end()) {
    indexable = known->second;
  }
  if (!indexable || event.tokens.empty()) return indexable;
  // Dense: every token of the span belongs to one of the hashes.
  return event.block_size > 0 && event.tokens.size() % event.hashes.size() == 0 &&
         static_cast<std::uint64_t>(event.block_size) == event.tokens.size() / event.hashes.size();
}

void KvEventIngestor::stored(EndpointId endpoint, std::string_view topic_model,
                             const BlockStored& event) {
  if (!endpoint.valid() || (event.group_idx && *event.group_idx >= kMaxGroups)) {
    ++stats_.skipped_limit;
    return;
  }
  if (event.group_idx && (event.hashes.empty() || !indexable_group(endpoint, event))) {
    ++stats_.skipped_group;
    return;
  }
  const auto tier = options_.tiers ? tiers_.intern_medium(event.medium) : kGpuTier;
  if (!tier) {
    ++stats_.skipped_limit;
    return;
  }
  keys_.clear();
  if (is_sha(options_.algorithm)) {
    // These releases file the engine's own hashes under (model, hash) and look at nothing else.
    const std::uint64_t scope = sha_model_scope(topic_model);
    for (const std::uint64_t hash : event.hashes) keys_.push_back(hash ^ scope);
    index_.stored(endpoint, *tier, 0, keys_, keys_);
    ++stats_.stored;
    return;
  }
  BlockKey parent = 0;
  if (event.parent != 0) {
    const auto resolved = index_.resolve_engine_key(event.parent);
    if (!resolved) {
      ++stats_.skipped_parent;
      return;
    }
    parent = *resolved;
  }
  const bool lora = event.lora_name && !event.lora_name->empty();
  const BlockKeyChain chain(options_.algorithm, options_.block_size, options_.hash_seed,
                            lora ? std::string_view(*event.lora_name) : topic_model);
  std::vector<BlockExtra> extras;
  if (event.extra_keys) {
    const std::size_t count = event.tokens.size() / options_.block_size;
    if (realigned_bytes(*event.extra_keys, count) > kMaxExtraBytes) {
      ++stats_.skipped_limit;
      return;
    }
    extras = realign_extras(*event.extra_keys, count);
  }
  chain.append_keys(parent, event.tokens, keys_, extras);
  index_.stored(endpoint, *tier, event.parent, event.hashes, keys_, !event.tokens.empty(),
                event.group_idx);
  ++(!keys_.empty()         ? stats_.stored
     : event.tokens.empty() ? stats_.tier_updates
                            : stats_.skipped_partial);
}

void KvEventIngestor::removed(EndpointId endpoint, std::string_view topic_model,
                              const BlockRemoved& event) {
  const auto tier = options_.tiers ? tiers_.intern_medium(event.medium) : kGpuTier;
  if (!endpoint.valid() || !tier) {
    ++stats_.skipped_limit;
    return;
  }
  if (event.group_idx) {
    const auto known = groups_.find({endpoint, *event.group_idx});
    if (known == groups_.end() || !known->second) {
      ++stats_.skipped_group;
      return;
    }
  }
  if (is_sha(options_.algorithm)) {
    const std::uint64_t scope = sha_model_scope(topic_model);
    keys_.clear();
    for (const std::uint64_t hash : event.hashes) keys_.push_back(hash ^ scope);
    index_.removed(endpoint, *tier, keys_);
  } else {
    index_.removed(endpoint, *tier, event.hashes, event.group_idx);
  }
  ++stats_.removed;
}

}  // namespace routesim::policies
