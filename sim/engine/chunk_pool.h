// Chunks of KV blocks by key, in the order in which they make room for others.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>

#include "sim/engine/kv_cache.h"

namespace routesim::sim {

/// A least-recently-used set of chunks, as stores outside vLLM keep one: each chunk has a place of
/// its own in the order, other than in KvCache, whose runs stay together. Every call costs O(1) per
/// chunk, and eviction O(chunks that are kept).
class ChunkPool {
 public:
  static constexpr std::int64_t kNoLimit = -1;
  explicit ChunkPool(std::int64_t capacity) : capacity_(capacity) {}

  bool contains(BlockKey key) const { return chunks_.contains(key); }
  /// How many of the first `chunks` are there in front of the first that is missing.
  std::int64_t leading(std::span<const BlockKey> chunks) const;
  /// Makes chunks, which are all there, the youngest: the first one youngest of all.
  void touch(std::span<const BlockKey> chunks);
  /// Keeps chunks, which are all there, from being evicted; as often as release() gives them up.
  void keep(std::span<const BlockKey> chunks);
  void release(std::span<const BlockKey> chunks);
  /// The chunk is there, as the youngest if it was not. Others make room for it; false if none can.
  bool insert(BlockKey key);

  std::int64_t capacity() const { return capacity_; }
  std::int64_t size() const { return std::ssize(chunks_); }
  std::int64_t evictions() const { return evictions_; }
  /// Engines that share it.
  void add_user() { ++users_; }
  std::int64_t users() const { return users_; }
  /// Throws InternalError unless the order has each chunk once and none is over the capacity.
  void verify() const;

 private:
  struct Chunk {
    std::list<BlockKey>::iterator place;
    std::int32_t keepers = 0;
  };
  bool evict();

  std::int64_t capacity_;
  std::int64_t evictions_ = 0;
  std::int64_t users_ = 0;
  std::list<BlockKey> order_;  ///< The first one goes first.
  std::unordered_map<BlockKey, Chunk> chunks_;
};

}  // namespace routesim::sim
