// The KV block pool and prefix cache of one engine core, as vLLM v1 keeps them: reference counts,
// a free queue that doubles as the LRU list, lazy eviction, several blocks per key allowed.
//
// Blocks that a prompt brought together are used, freed and evicted together, so they are kept as
// *runs*: stretches of a key chain whose blocks have the same reference count and stand next to
// each other in the free queue. A prompt of 450 blocks is two or three of them. Three rules make
// this exact, block for block:
//  1. Keys are chained, so two chains that agree in one key agree in all before it. A run is found
//     by its first key, and how far it serves a prompt by bisection.
//  2. Blocks are freed last first and evicted first freed first. A free run is thus eaten from its
//     end, and what is split off its end stands in the free queue just before it.
//  3. A key that several blocks hold has each of them in a run of its own. They are chained in the
//     order of registration, and the first one is what vLLM would find.
// A block of no content ("blank") is like any other, so blanks are only counted.
// tests/sim/block_cache.h does the same block by block; a property test compares the two.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/rules/engine_config.h"

namespace routesim::sim {

using BlockKey = std::uint64_t;  ///< Chained content key of a full block; never 0.
using RunIndex = std::int32_t;   ///< 1 …; 0 is no run.

/// Told about every key that enters or leaves the prefix cache; nullptr when nobody listens.
class KvEventSink {
 public:
  virtual ~KvEventSink() = default;
  /// The blocks of `keys` were evicted, the last one first.
  virtual void removed(std::span<const BlockKey> keys) = 0;
};

/// The first `blocks` blocks of a run, or of a run and those split off its end since.
struct RunPiece {
  RunIndex run = 0;
  std::int32_t blocks = 0;
};

/// A cached prefix, as lookup() found it. Good until KvCache::version() changes.
struct CachedPrefix {
  std::vector<RunPiece> pieces;
  std::int64_t blocks = 0;
  void clear() {
    pieces.clear();
    blocks = 0;
  }
  void drop_last() {
    if (blocks == 0) return;
    --blocks;
    if (--pieces.back().blocks == 0) pieces.pop_back();
  }
};

/// The blocks that one sequence holds, in order: blocks with a key, then blank ones.
struct BlockHolding {
  std::vector<RunPiece> pieces;
  std::int64_t blank = 0;
  std::int64_t blocks = 0;  ///< All of them.
};

/// Names a run for good: it goes stale when the last block of the run is evicted.
struct RunRef {
  RunIndex run = 0;
  std::uint32_t stamp = 0;
};

/// Block-level cache. Runs move only through the calls below.
class KvCache {
 public:
  /// num_blocks counts the null block: num_blocks - 1 are usable.
  KvCache(std::int64_t num_blocks, std::int64_t block_size, FreeQueue mode);

  std::int64_t usable_blocks() const { return num_blocks_ - 1; }
  std::int64_t free_blocks() const { return free_count_; }
  std::int64_t used_blocks() const { return usable_blocks() - free_count_; }
  std::int64_t block_size() const { return block_size_; }
  /// Tokens of context that stand in blocks another sequence also holds: block_size times the sum
  /// over blocks of (references - 1).
  std::int64_t shared_tokens() const { return extra_references_ * block_size_; }
  /// The tokens of those blocks, each once.
  std::int64_t shared_once() const { return shared_blocks_ * block_size_; }
  std::int64_t evictions() const { return evictions_; }
  /// Changes whenever the answer of a lookup() might, or how it is cut into runs.
  std::uint64_t version() const { return version_; }
  void set_sink(KvEventSink* sink) { sink_ = sink; }

  /// Finds the longest cached prefix of `keys` and returns its length in blocks. Does not touch the
  /// LRU order.
  std::int64_t lookup(std::span<const BlockKey> keys, CachedPrefix& hits) const;

  /// How many blocks of `hits` are in the free queue, so that taking them shrinks it.
  std::int64_t count_unreferenced(const CachedPrefix& hits) const;
  /// True when some hit may be evicted without being lost: it is free, and another block holds the
  /// same.
  bool has_free_twin(const CachedPrefix& hits) const;

  /// References the blocks of `hits`, unlinking unreferenced ones from the free queue. The holding
  /// must be empty.
  void take_hits(const CachedPrefix& hits, BlockHolding& holding);

  /// Moves those blocks of `hits` that nobody references to the end of the free queue, the last
  /// one first: they are evicted later than all others.
  void touch(const CachedPrefix& hits);

  /// Cuts a run behind its first `blocks` blocks; whoever holds it holds both parts. Returns the
  /// second one, which lookups find by its first key.
  RunIndex split(RunIndex r, std::int64_t blocks);

  /// A copy that reads or writes blocks of a tier. Blocks being written are referenced by the copy
  /// alone.
  enum class Copy : std::uint8_t { kNone, kWrite, kRead };
  Copy copy_of(RunIndex r) const { return at(r).copy; }
  /// Calls `f` with the keys of each stretch of public blocks of `holding`, windows left out.
  template <class F>
  void for_each_key_run(const BlockHolding& holding, F f) const {
    for (const RunPiece& piece : holding.pieces) {
      RunIndex r = piece.run;
      for (std::int32_t left = piece.blocks; left > 0; r = at(r).rest) {
        if (!at(r).window && !at(r).keys.empty()) f(std::span<const BlockKey>(at(r).keys));
        left -= at(r).blocks;
      }
    }
  }
  /// Marks the blocks with a key in `holding`.
  void mark(const BlockHolding& holding, Copy copy);

  /// Pops `n` blocks from the head of the free queue (n <= free_blocks()), evicting their keys, and
  /// adds them to `holding` as blank.
  void allocate(std::int64_t n, BlockHolding& holding) {
    if (n <= 0) return;
    take(n);
    assign(n, holding);
  }
  /// The two halves of allocate(), for n > 0: blocks are taken when they are needed, but who has
  /// them is written down when somebody asks.
  static void assign(std::int64_t n, BlockHolding& holding) {
    holding.blank += n;
    holding.blocks += n;
  }
  void take(std::int64_t n) {
    free_count_ -= n;
    Run& head = at(at(0).next);
    if (head.kind == Kind::kBlank && head.blocks > n)
      head.blocks -= static_cast<std::int32_t>(n);
    else
      pop(n);
  }

  /// So many blocks can certainly be allocated before one is evicted that lookups could find. Looks
  /// at the head of the free queue only, and not beyond `enough`.
  std::int64_t blocks_before_known(std::int64_t enough) const;

  /// Makes the first blank blocks of `holding` findable under `keys`, one each.
  void register_keys(BlockHolding& holding, std::span<const BlockKey> keys);

  /// Gives the first `n` blank blocks keys that nobody but their owner will ever ask for: they are
  /// in the LRU order as others with a key, but no lookup() finds them. The owner may come back
  /// with the reference returned, which is to n > 0 blocks.
  RunRef register_private(BlockHolding& holding, std::int64_t n);

  /// The same for a block of layers with a window: `key` is findable by find(), one block at a
  /// time, since such blocks are given up from the front. Nobody hears of it.
  void register_window(BlockHolding& holding, BlockKey key);
  /// A run whose first block has this key, 0 = none.
  RunIndex find(BlockKey key) const { return table_[find_slot(key)].run; }
  /// Fetches what find() and lookup() read first into the processor's caches.
  void prefetch(BlockKey key) const { __builtin_prefetch(&table_[home(key)]); }
  /// Drops one reference of the first `n` blocks, which must be single ones or blank.
  void release_front(BlockHolding& holding, std::int64_t n);

  /// The key of the last public block of `holding`; it must end in one, blank blocks apart.
  BlockKey last_key(const BlockHolding& holding) const { return at(last_run(holding)).keys.back(); }

  RunRef ref(RunIndex r) const { return {.run = r, .stamp = at(r).stamp}; }
  /// Blocks left of a run, 0 when none is.
  std::int64_t blocks_of(RunRef r) const {
    return at(r.run).stamp == r.stamp ? at(r.run).blocks : 0;
  }

  /// Drops one reference of each block, last block first, and empties the holding.
  void release(BlockHolding& holding);

  /// Gives the blocks back without their keys. Nobody else may hold them.
  void discard(BlockHolding& holding);

  /// Drops every key; only legal when no block is referenced. Returns false otherwise.
  bool reset();

  /// Full consistency check for the invariant checker: throws InternalError.
  void verify() const;
  /// The same for who holds what: `holdings` must be all there are, `unassigned` the blocks that
  /// were taken for them and not assigned yet.
  void verify_holdings(std::span<const BlockHolding* const> holdings,
                       std::int64_t unassigned = 0) const;

  /// Keys of the free queue from head to tail, 0 for blank and private blocks; for tests.
  std::vector<BlockKey> free_queue() const;
  /// Blocks that lookups could find; for tests.
  std::int64_t findable_blocks() const { return count(Kind::kPublic); }
  /// These, and private ones.
  std::int64_t keyed_blocks() const { return findable_blocks() + count(Kind::kPrivate); }

 private:
  enum class Kind : std::uint8_t { kUnused, kBlank, kPublic, kPrivate };
  /// One cache line: runs are looked at one by one, all over the cache.
  struct alignas(64) Run {
    std::vector<BlockKey> keys;  ///< One per block of a public run.
    BlockKey first_key = 0;      ///< Of a public run: what the table knows it by.
    std::int32_t blocks = 0;
    std::int32_t references = 0;
    RunIndex previous = 0;  ///< Free-queue links; the sentinel is run 0.
    RunIndex next = 0;
    RunIndex rest = 0;      ///< What was last split off the end; for holders of both.
    RunIndex same_key = 0;  ///< Next run with the same first key, 0 = none.
    std::uint32_t stamp = 0;
    Kind kind : 4 = Kind::kUnused;
    Copy copy : 4 = Copy::kNone;
    bool twin = false;    ///< Other blocks have the same key: a run of one block.
    bool window = false;  ///< Of layers with a window: a run of one block, and nobody's business.
  };
  Run& at(RunIndex r) { return runs_[static_cast<std::size_t>(r)]; }
  const Run& at(RunIndex r) const { return runs_[static_cast<std::size_t>(r)]; }

  std::int64_t count(Kind kind) const;
  RunIndex new_run(Kind kind, std::int64_t blocks);
  void retire(RunIndex r);
  void unlink(RunIndex r);
  void link_before(RunIndex r, RunIndex before);
  void free_blank(std::int64_t n);
  void pop(std::int64_t n);
  void eat(RunIndex r, std::int64_t n);
  RunIndex last_run(const BlockHolding& holding) const;
  void append_to_last_run(BlockHolding& holding, std::span<const BlockKey> keys);
  void register_twin(RunIndex other, BlockKey key, BlockHolding& holding);

  /// A run in the table, and a part of its first key: others are not looked at.
  struct TableSlot {
    RunIndex run = 0;  ///< 0 = empty.
    std::uint32_t tag = 0;
  };
  std::size_t home(BlockKey key) const {
    return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15ULL) >> shift_);
  }
  std::size_t find_slot(BlockKey key) const;
  void insert_in_table(RunIndex r);
  void erase_from_table(RunIndex r);
  void grow_table();

  std::int64_t num_blocks_;
  std::int64_t block_size_;
  FreeQueue mode_;
  std::int64_t free_count_ = 0;
  std::int64_t extra_references_ = 0;
  std::int64_t shared_blocks_ = 0;  ///< With two references or more.
  std::int64_t evictions_ = 0;
  std::uint64_t version_ = 1;
  std::vector<Run> runs_;
  std::vector<RunIndex> unused_runs_;
  std::vector<RunIndex> parts_;  ///< Scratch of release().
  /// First keys to runs: open addressing, linear probing, at most a quarter full, since most
  /// of what is looked up is not there.
  std::vector<TableSlot> table_;
  std::size_t table_used_ = 0;
  int shift_ = 0;
  KvEventSink* sink_ = nullptr;
};

}  // namespace routesim::sim
