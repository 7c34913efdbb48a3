// The KV cache of an engine core block by block, as vLLM's is written: what sim/kv/kv_cache.h
// does by runs. Slow and obvious; for comparison only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <span>
#include <vector>

#include "sim/kv/kv_cache.h"

namespace routesim::sim::testing {

class BlockCache {
 public:
  BlockCache(std::int64_t num_blocks, FreeQueue mode)
      : mode_(mode), blocks_(static_cast<std::size_t>(num_blocks)) {
    for (std::size_t b = 1; b < blocks_.size(); ++b) queue_.push_back(b);
  }

  std::int64_t free_blocks() const { return std::ssize(queue_); }
  std::int64_t evictions() const { return evictions_; }
  std::int64_t shared_blocks() const {
    std::int64_t n = 0;
    for (const Block& b : blocks_) n += std::max<std::int64_t>(0, b.references - 1);
    return n;
  }
  std::int64_t blocks_of_several() const {
    std::int64_t n = 0;
    for (const Block& b : blocks_) n += b.references > 1 ? 1 : 0;
    return n;
  }
  std::int64_t findable_blocks() const {
    std::int64_t n = 0;
    for (const auto& [key, holders] : table_) n += std::ssize(holders);
    return n;
  }

  std::vector<std::size_t> lookup(std::span<const BlockKey> keys) const {
    std::vector<std::size_t> hits;
    for (const BlockKey key : keys) {
      const auto found = table_.find(key);
      if (found == table_.end()) break;
      hits.push_back(found->second.front());  // the first registered
    }
    return hits;
  }
  std::int64_t count_unreferenced(std::span<const std::size_t> hits) const {
    return std::count_if(hits.begin(), hits.end(),
                         [this](std::size_t b) { return blocks_[b].references == 0; });
  }
  bool has_free_twin(std::span<const std::size_t> hits) const {
    return std::any_of(hits.begin(), hits.end(), [this](std::size_t b) {
      return blocks_[b].references == 0 && table_.at(blocks_[b].key).size() > 1;
    });
  }
  void take(std::span<const std::size_t> hits, std::vector<std::size_t>& owned) {
    for (const std::size_t b : hits) {
      if (blocks_[b].references++ == 0) queue_.remove(b);
      owned.push_back(b);
    }
  }
  void allocate(std::int64_t n, std::vector<std::size_t>& owned) {
    while (n-- > 0) {
      const std::size_t b = queue_.front();
      queue_.pop_front();
      if (blocks_[b].keyed) evict(b);
      blocks_[b].references = 1;
      owned.push_back(b);
    }
  }
  /// A key of 0 is private: in no table.
  void register_key(std::size_t b, BlockKey key) {
    blocks_[b].keyed = true;
    blocks_[b].key = key;
    if (key != 0) table_[key].push_back(b);
  }
  void release(std::vector<std::size_t>& owned) {
    for (std::size_t i = owned.size(); i-- > 0;) {
      const std::size_t b = owned[i];
      if (--blocks_[b].references > 0) continue;
      if (mode_ == FreeQueue::kUnhashedFirst && !blocks_[b].keyed)
        queue_.push_front(b);
      else
        queue_.push_back(b);
    }
    owned.clear();
  }
  std::vector<BlockKey> free_queue() const {
    std::vector<BlockKey> keys;
    for (const std::size_t b : queue_) keys.push_back(blocks_[b].key);
    return keys;
  }

  std::vector<BlockKey> removed;  ///< Every key that left, in order.

 private:
  struct Block {
    BlockKey key = 0;
    std::int64_t references = 0;
    bool keyed = false;
  };
  void evict(std::size_t b) {
    ++evictions_;
    Block& block = blocks_[b];
    if (block.key != 0) {
      removed.push_back(block.key);
      std::erase(table_[block.key], b);
      if (table_[block.key].empty()) table_.erase(block.key);
    }
    block.key = 0;
    block.keyed = false;
  }

  FreeQueue mode_;
  std::vector<Block> blocks_;
  std::list<std::size_t> queue_;
  std::map<BlockKey, std::vector<std::size_t>> table_;
  std::int64_t evictions_ = 0;
};

}  // namespace routesim::sim::testing
