// The KV block pool and prefix cache of one engine core, as vLLM v1 keeps them: reference counts,
// a free queue that doubles as the LRU list, lazy eviction, several blocks per key allowed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine_config.h"

namespace routesim::sim {

using BlockIndex = std::int32_t;  ///< 1 … N-1; block 0 is vLLM's null block.
using BlockKey = std::uint64_t;   ///< Chained content key of a full block; 0 means "not hashed".

/// Told about every key that enters or leaves the prefix cache; nullptr when nobody listens.
class KvEventSink {
 public:
  virtual ~KvEventSink() = default;
  virtual void removed(BlockKey key) = 0;
};

/// Block-level cache. Indices are stable; contents move only through the calls below.
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
  std::int64_t evictions() const { return evictions_; }
  std::int64_t cached_keys() const { return static_cast<std::int64_t>(table_used_); }
  /// Changes whenever the answer of a lookup() might.
  std::uint64_t version() const { return version_; }
  void set_sink(KvEventSink* sink) { sink_ = sink; }

  /// Length of the longest cached prefix of `keys`, in blocks; the blocks are written to `hits`
  /// (cleared first). Does not touch the LRU order.
  std::int64_t lookup(std::span<const BlockKey> keys, std::vector<BlockIndex>& hits) const;

  /// How many of `hits` are in the free queue, so that taking them shrinks it.
  std::int64_t count_unreferenced(std::span<const BlockIndex> hits) const;

  /// References each hit, unlinking unreferenced ones from the free queue, and appends to `owned`.
  void take_hits(std::span<const BlockIndex> hits, std::vector<BlockIndex>& owned);

  /// Pops `n` blocks from the head of the free queue (n <= free_blocks()), evicting their keys,
  /// and appends them to `owned` with one reference each.
  void allocate(std::int64_t n, std::vector<BlockIndex>& owned);

  /// Makes `block` findable under `key` (non-zero); no effect if it already has a key.
  void register_key(BlockIndex block, BlockKey key);

  /// Gives `block` a key that nobody but its owner will ever ask for, and not through lookup(): the
  /// owner remembers the block and asks key(). No effect if the block already has a key.
  void register_private(BlockIndex block, BlockKey key);

  /// Drops one reference of each block, last block first, and clears `owned`.
  void release(std::vector<BlockIndex>& owned);

  /// Drops every key; only legal when no block is referenced. Returns false otherwise.
  bool reset();

  /// Full consistency check for the invariant checker: throws InternalError.
  void verify() const;

  std::int32_t references(BlockIndex b) const {
    return blocks_[static_cast<std::size_t>(b)].references;
  }
  BlockKey key(BlockIndex b) const { return blocks_[static_cast<std::size_t>(b)].key; }
  /// The free queue from head to tail; for tests.
  std::vector<BlockIndex> free_queue() const;

 private:
  struct Block {
    BlockKey key = 0;
    std::int32_t references = 0;
    bool findable = false;    ///< The key is in the table, or in a chain that starts there.
    BlockIndex previous = 0;  ///< Free-queue links; the sentinel is block 0.
    BlockIndex next = 0;
    BlockIndex same_key = 0;  ///< Next block with the same key, 0 = none.
  };
  Block& at(BlockIndex b) { return blocks_[static_cast<std::size_t>(b)]; }
  const Block& at(BlockIndex b) const { return blocks_[static_cast<std::size_t>(b)]; }
  void unlink(BlockIndex b);
  void append(BlockIndex b);
  void prepend(BlockIndex b);
  void evict(BlockIndex b);
  std::size_t home(BlockKey key) const {
    return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15ULL) >> shift_);
  }
  std::size_t find_slot(BlockKey key) const;
  void erase_slot(std::size_t slot);

  std::int64_t num_blocks_;
  std::int64_t block_size_;
  FreeQueue mode_;
  std::int64_t free_count_ = 0;
  std::int64_t extra_references_ = 0;
  std::int64_t evictions_ = 0;
  std::uint64_t version_ = 1;
  std::vector<Block> blocks_;
  /// Open addressing, linear probing, at most half full; 0 = empty. Keys stand in the blocks, which
  /// a hit touches anyway, so the table stays small enough for the cache.
  std::vector<BlockIndex> table_;
  std::size_t table_used_ = 0;
  std::size_t mask_ = 0;
  int shift_ = 0;
  KvEventSink* sink_ = nullptr;
};

}  // namespace routesim::sim
