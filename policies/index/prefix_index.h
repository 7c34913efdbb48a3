// The precise prefix index: which endpoint holds which KV block, learned from KV events. Two
// levels, as in llm-d's kv-cache library: request key -> small LRU set of holders, and engine key
// -> request keys, both bounded LRUs. The core is single-threaded; ConcurrentPrefixIndex wraps it
// with locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "policies/index/block_keys.h"
#include "policies/index/tier_registry.h"

namespace routesim::policies {

/// One row of a holder set. All fields are identity: the same endpoint on two tiers is two rows.
struct HolderEntry {
  EndpointId endpoint;
  TierId tier = kGpuTier;
  bool speculative = false;
  std::optional<std::uint32_t> group;  ///< Cache group of a hybrid model, < 2^24 - 1.
  auto operator<=>(const HolderEntry&) const = default;
};

struct PrefixIndexOptions {
  std::size_t size = 100'000'000;   ///< Cap of request keys, and separately of engine keys; >= 1.
  std::size_t pod_cache_size = 10;  ///< Cap of rows per key, 1..65535; the oldest is dropped.
  /// Router August 2026: a block stored n times by one (endpoint, tier, group) needs n removals.
  bool count_duplicates = true;
  /// Router August 2026: AllBlocksCleared removes the endpoint's rows. Earlier releases ignore it.
  bool clear_on_all_blocks_cleared = true;
  /// Weight of each tier in the raw score, by TierId. Default gpu 1.0, cpu 0.8 (kv-cache 0.4.0 and
  /// later); all 1.0 reproduces 0.3.2. The first is that of speculative rows.
  std::vector<double> tier_weights = {1.0, 1.0, 0.8};
  /// Weight of the tiers that `tier_weights` leaves out; 0 since llm-d-router pull request 2809.
  double unlisted_tier_weight = 1.0;
};

/// The match of one endpoint for one list of keys.
struct PrefixMatch {
  /// Sum over the contiguous prefix of the largest tier weight of the endpoint's rows: the raw
  /// score of llm-d's LongestPrefix scorer, summed in key order as doubles.
  double weighted = 0;
  EndpointId endpoint;
  std::uint32_t blocks = 0;  ///< Unweighted contiguous count ("cachedBlockCount").
};

/// Which rows of an endpoint a TierCount counts.
enum class TierRows : std::uint8_t {
  kTier,         ///< Those of one tier.
  kSpeculative,  ///< Speculative ones; upstream's tier name for them is "speculative".
  kConfirmed,    ///< All but speculative ones; the tier may change from block to block.
};

/// Contiguous blocks of one endpoint from the first key on, in one tier. Weights play no part. A
/// block that is in two tiers counts in both.
struct TierCount {
  EndpointId endpoint;
  TierRows rows = TierRows::kTier;
  TierId tier = kNoTier;  ///< With kTier.
  std::uint32_t blocks = 0;
  bool operator==(const TierCount&) const = default;
};

class PrefixIndexImpl;

/// Buffers a lookup needs; keep one per thread and reuse it.
class MatchScratch {
 public:
  /// The result of the last match(): one element per endpoint that holds the first key.
  std::span<const PrefixMatch> matches() const { return matches_; }

 private:
  friend class MatchScorer;
  friend class PrefixIndexImpl;
  struct Alive {
    std::uint32_t match;  ///< Position in matches_.
    std::uint32_t endpoint;
    double weight;  ///< Weight in the current run of keys.
  };
  std::vector<PrefixMatch> matches_;
  std::vector<Alive> alive_;  // Endpoints that held every key so far.
  // By endpoint: the best weight in the set of number `epoch_`.
  std::vector<std::uint64_t> seen_;
  std::vector<double> best_;
  std::uint64_t epoch_ = 0;
};

/// The single-threaded index. Endpoints are ids that the caller gives out; an id that is given to
/// another endpoint inherits its rows, so call remove_endpoint() first. Scheduler::index_holder()
/// and Balancer::index_holder() say which id an endpoint has in the index of a router. Keys are
/// hashes already; rows are 64-bit integers; no allocation per key. Layout: prefix_index_impl.h.
class PrefixIndex {
 public:
  explicit PrefixIndex(PrefixIndexOptions options = {});
  ~PrefixIndex();
  PrefixIndex(PrefixIndex&&) noexcept;
  PrefixIndex& operator=(PrefixIndex&&) noexcept;

  // ---- Events. Order matters per endpoint only. -----------------------------------------------

  /// BlockStored of `endpoint`: its blocks `engine_keys` hold what `request_keys` describe. The
  /// mapping is proportional (1:1, many:1 or 1:many). With equal engine and request keys (pass the
  /// same span) the index needs half the work. `parent` is the engine key of the preceding block or
  /// 0; an unknown parent makes the call a no-op returning false. `tokens_present` false and no
  /// request keys is a tier update, see tier_updated().
  bool stored(EndpointId endpoint, TierId tier, std::uint64_t parent,
              std::span<const std::uint64_t> engine_keys, std::span<const BlockKey> request_keys,
              bool tokens_present = true, std::optional<std::uint32_t> group = std::nullopt);

  /// BlockStored without tokens: copies of blocks that the engine keys name are in another tier.
  /// The keys may have been stored by any endpoint; those that nobody has stored are left out.
  /// Copies are of the last request key of an engine key.
  void tier_updated(EndpointId endpoint, TierId tier, std::span<const std::uint64_t> engine_keys,
                    std::optional<std::uint32_t> group = std::nullopt) {
    stored(endpoint, tier, 0, engine_keys, {}, false, group);
  }

  /// BlockRemoved: the rows of every request key the engine keys map to. Other tiers keep theirs.
  void removed(EndpointId endpoint, TierId tier, std::span<const std::uint64_t> engine_keys,
               std::optional<std::uint32_t> group = std::nullopt);
  void removed(EndpointId endpoint, TierId tier, std::uint64_t engine_key) {
    removed(endpoint, tier, std::span(&engine_key, 1));
  }

  /// AllBlocksCleared; does nothing when the era ignores it. Scans all keys.
  void cleared(EndpointId endpoint);
  /// The endpoint left the pool: as cleared(), in every era.
  void remove_endpoint(EndpointId endpoint);

  // ---- Rows directly, below the event level (speculative entries, tests, `routesim score`). ----

  /// Adds `entries` to every request key; empty `engine_keys` leave no engine mapping.
  void add(std::span<const std::uint64_t> engine_keys, std::span<const BlockKey> request_keys,
           std::span<const HolderEntry> entries);
  void evict_engine_key(std::uint64_t engine_key, std::span<const HolderEntry> entries);
  void evict_request_key(BlockKey request_key, std::span<const HolderEntry> entries);
  /// The same for each of many keys, in order; faster than one by one.
  void evict_request_keys(std::span<const BlockKey> request_keys,
                          std::span<const HolderEntry> entries);

  // ---- Reading ---------------------------------------------------------------------------------

  /// Longest-prefix lookup over the keys of one prompt; the result is in `scratch.matches()`, in
  /// holder order of the first key. It is not restricted to candidates: an endpoint's numbers do
  /// not depend on the others, so drop those you do not want. Refreshes the recency of the keys,
  /// unless it is a `dry_run`. O(keys), in stretches of keys with equal holders.
  void match(std::span<const BlockKey> keys, MatchScratch& scratch, bool dry_run = false);
  /// Per-tier contiguous counts of every endpoint that holds the first key, ascending by endpoint,
  /// then TierRows and tier. A block in two tiers counts in both, so a sum over tiers counts it
  /// twice; match() has what an endpoint holds in any tier. Refreshes nothing. O(keys), in
  /// stretches of keys with equal holders.
  void tier_counts(std::span<const BlockKey> keys, std::vector<TierCount>& counts) const;

  /// The last request key an engine key maps to. Refreshes its recency, like any use of it.
  std::optional<BlockKey> resolve_engine_key(std::uint64_t engine_key);
  /// All request keys of an engine key, without refreshing anything; empty when unknown.
  std::vector<BlockKey> request_keys_of(std::uint64_t engine_key) const;
  /// Rows of one key, least recently added first, without refreshing anything.
  std::vector<HolderEntry> holders(BlockKey key) const;
  /// All request keys, least recently used first; O(n log n), for tests and inspection.
  std::vector<BlockKey> keys_by_recency() const;

  std::size_t request_key_count() const;
  /// Request keys that an endpoint holds, in any tier. O(stretches of keys with equal holders).
  std::size_t block_count(EndpointId endpoint) const;
  std::size_t engine_key_count() const;
  std::size_t memory_bytes() const;
  const PrefixIndexOptions& options() const;

 private:
  std::unique_ptr<PrefixIndexImpl> impl_;
};

/// Speculative rows: at routing time the picked endpoint is assumed to hold the prompt's blocks,
/// until a fixed time to live is over. There is no reference count: the expiry of one request
/// removes the row another request has just refreshed, as upstream does.
class SpeculativeEntries {
 public:
  explicit SpeculativeEntries(Duration ttl) : ttl_(ttl) {}
  /// Adds the row (endpoint, speculative, no tier) under `keys`, due to be removed at now + ttl.
  void add(PrefixIndex& index, EndpointId endpoint, std::span<const BlockKey> keys, SimTime now);
  /// Removes what is due at `now`. Call before lookups; instants must not go back.
  void expire(PrefixIndex& index, SimTime now);
  std::size_t pending() const { return queue_.size(); }

 private:
  struct Item {
    SimTime due;
    EndpointId endpoint;
    std::vector<BlockKey> keys;
  };
  Duration ttl_;
  std::deque<Item> queue_;
  std::vector<std::vector<BlockKey>> spare_;  ///< Buffers for the keys of items to come.
};

/// A PrefixIndex for a live router: any number of threads may use it, one at a time.
class ConcurrentPrefixIndex {
 public:
  explicit ConcurrentPrefixIndex(PrefixIndexOptions options = {}) : index_(std::move(options)) {}

  /// Runs `f(PrefixIndex&)` alone and returns its result. A lookup or an event takes about a
  /// microsecond; while it runs, others wait.
  template <class F>
  auto exclusive(F&& f) {
    const std::lock_guard lock(mutex_);
    return f(index_);
  }

 private:
  std::mutex mutex_;
  PrefixIndex index_;
};

}  // namespace routesim::policies
