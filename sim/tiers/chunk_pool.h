// Chunks of KV blocks by key, in the order in which they make room for others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/kv/kv_cache.h"

namespace routesim::sim {

/// A least-recently-used set of chunks, as stores outside vLLM keep one: each chunk has a place of
/// its own in the order, other than in KvCache, whose runs stay together. It may consist of parts
/// that come and go; a chunk lies in any one that has room. Every call costs O(1) per chunk,
/// eviction O(chunks that are kept), and the end of a part O(chunks).
class ChunkPool {
 public:
  static constexpr std::int64_t kNoLimit = -1;
  /// One part that stays; without room others are added.
  explicit ChunkPool(std::int64_t capacity)
      : capacity_(capacity),
        parts_{{.room = capacity, .in_use = true}},
        chunks_(1),
        table_(1 << 10) {}

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

  /// It has no part that stays.
  bool in_parts() const { return parts_.front().room == 0; }
  /// Returns the number of a new part with so much room.
  std::uint32_t add_part(std::int64_t chunks);
  /// The part is gone. Its chunks are found until forget_part(), and cannot be read; whoever keeps
  /// some gives them up before that.
  void lose_part(std::uint32_t part);
  void forget_part(std::uint32_t part);
  /// How many of the first `chunks`, which are all there, can be read.
  std::int64_t readable(std::span<const BlockKey> chunks) const;
  /// Engines that share it.
  void add_users(std::int64_t n) { users_ += n; }
  std::int64_t users() const { return std::max<std::int64_t>(users_, 1); }
  /// Throws InternalError unless the order has each chunk once and none is over the capacity.
  void verify() const;

 private:
  using Index = std::uint32_t;  ///< Of a chunk; 0 is none, and begins and ends the order.
  struct Chunk {
    BlockKey key = 0;
    Index previous = 0, next = 0;
    std::int32_t keepers = 0;
    std::uint32_t part = 0;
  };
  struct Part {
    std::int64_t room = 0, used = 0;
    bool in_use = false;  ///< Its number is taken, also without room.
    bool lost = false;
    std::vector<Index> lost_chunks{};  ///< In the table, and no longer in the order.
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
  std::uint32_t part_for(BlockKey key) const;
  void forget(BlockKey key);
  void grow();

  std::int64_t capacity_;
  std::int64_t size_ = 0;  ///< Chunks in the order.
  std::int64_t evictions_ = 0;
  std::int64_t users_ = 0;
  std::vector<Part> parts_;
  std::vector<Chunk> chunks_;  ///< In a ring, those that go first in front.
  std::vector<Index> unused_;
  std::vector<Slot> table_;   ///< Open addressing, linear probing, at most half full.
  std::vector<Index> found_;  ///< Scratch.
};

}  // namespace routesim::sim
