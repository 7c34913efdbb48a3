// Chunks of KV blocks by key, in the order in which they make room for others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/kv/kv_cache.h"

namespace routesim::sim {

/// A least-recently-used set of chunks, as stores outside vLLM keep one: each chunk has a place of
/// its own in the order, other than in KvCache, whose runs stay together. Every call costs O(1) per
/// chunk, and eviction O(chunks that are kept).
class ChunkPool {
 public:
  static constexpr std::int64_t kNoLimit = -1;
  explicit ChunkPool(std::int64_t capacity) : capacity_(capacity), chunks_(1), table_(1 << 10) {}

  bool contains(BlockKey key) const { return find(key) != 0; }
  /// How many of the first `chunks` are there in front of the first that is missing.
  std::int64_t leading(std::span<const BlockKey> chunks) const;
  /// The same, and makes them the youngest: the first one youngest of all.
  std::int64_t look_up(std::span<const BlockKey> chunks);
  /// Keeps chunks, which are all there, from being evicted; as often as release() gives them up.
  void keep(std::span<const BlockKey> chunks);
  void release(std::span<const BlockKey> chunks);
  /// The chunk is there, as the youngest if it was not. Others make room for it; false if none can.
  bool insert(BlockKey key);

  std::int64_t capacity() const { return capacity_; }
  std::int64_t size() const { return size_; }
  std::int64_t evictions() const { return evictions_; }
  /// Engines that share it.
  void add_user() { ++users_; }
  std::int64_t users() const { return users_; }
  /// Throws InternalError unless the order has each chunk once and none is over the capacity.
  void verify() const;

 private:
  using Index = std::uint32_t;  ///< Of a chunk; 0 is none, and begins and ends the order.
  struct Chunk {
    BlockKey key = 0;
    Index previous = 0, next = 0;
    std::int32_t keepers = 0;
  };
  struct Slot {
    BlockKey key = 0;
    Index chunk = 0;
  };
  std::size_t home(BlockKey key) const {
    return static_cast<std::size_t>(key * 0x9e3779b97f4a7c15ULL >> 16) & (table_.size() - 1);
  }
  std::size_t slot(BlockKey key) const {
    std::size_t s = home(key);
    while (table_[s].chunk != 0 && table_[s].key != key) s = (s + 1) & (table_.size() - 1);
    return s;
  }
  Index find(BlockKey key) const { return table_[slot(key)].chunk; }
  void unlink(Index i);
  void append(Index i);
  bool evict();
  void forget(BlockKey key);
  void grow();

  std::int64_t capacity_;
  std::int64_t size_ = 0;
  std::int64_t evictions_ = 0;
  std::int64_t users_ = 0;
  std::vector<Chunk> chunks_;  ///< In a ring, those that go first in front.
  std::vector<Index> unused_;
  std::vector<Slot> table_;   ///< Open addressing, linear probing, at most half full.
  std::vector<Index> found_;  ///< Scratch.
};

}  // namespace routesim::sim
