#include "sim/kv_cache.h"

#include <bit>
#include <string>

#include "sim/base/check.h"

namespace routesim::sim {

KvCache::KvCache(std::int64_t num_blocks, std::int64_t block_size, FreeQueue mode)
    : num_blocks_(num_blocks), block_size_(block_size), mode_(mode) {
  ROUTESIM_CHECK(num_blocks >= 2, "a KV cache needs a null block and a usable one");
  ROUTESIM_CHECK(num_blocks < (std::int64_t{1} << 31), "too many KV blocks");
  blocks_.resize(static_cast<std::size_t>(num_blocks));
  for (BlockIndex b = 1; b < num_blocks; ++b) append(b);
  free_count_ = num_blocks - 1;
  const std::size_t capacity = std::bit_ceil(static_cast<std::size_t>(num_blocks) * 2);
  table_.resize(capacity);
  mask_ = capacity - 1;
  shift_ = 64 - std::countr_zero(capacity);
}

void KvCache::unlink(BlockIndex b) {
  Block& block = at(b);
  at(block.previous).next = block.next;
  at(block.next).previous = block.previous;
}

void KvCache::append(BlockIndex b) {
  Block& block = at(b);
  Block& sentinel = at(0);
  block.previous = sentinel.previous;
  block.next = 0;
  at(sentinel.previous).next = b;
  sentinel.previous = b;
}

void KvCache::prepend(BlockIndex b) {
  Block& block = at(b);
  Block& sentinel = at(0);
  block.next = sentinel.next;
  block.previous = 0;
  at(sentinel.next).previous = b;
  sentinel.next = b;
}

std::size_t KvCache::find_slot(BlockKey key) const {
  std::size_t slot = home(key);
  while (table_[slot] != 0 && at(table_[slot]).key != key) slot = (slot + 1) & mask_;
  return slot;
}

void KvCache::erase_slot(std::size_t slot) {
  // Backward-shift deletion keeps probe sequences unbroken without tombstones.
  std::size_t hole = slot;
  for (std::size_t i = (hole + 1) & mask_; table_[i] != 0; i = (i + 1) & mask_) {
    const std::size_t wanted = home(at(table_[i]).key);
    if (((i - wanted) & mask_) >= ((i - hole) & mask_)) {
      table_[hole] = table_[i];
      hole = i;
    }
  }
  table_[hole] = 0;
  --table_used_;
}

std::int64_t KvCache::lookup(std::span<const BlockKey> keys, std::vector<BlockIndex>& hits) const {
  hits.resize(keys.size());
  std::size_t n = 0;
  for (; n < keys.size(); ++n) {
    hits[n] = table_[find_slot(keys[n])];
    if (hits[n] == 0) break;
  }
  hits.resize(n);
  return static_cast<std::int64_t>(n);
}

std::int64_t KvCache::count_unreferenced(std::span<const BlockIndex> hits) const {
  std::int64_t n = 0;
  for (const BlockIndex b : hits) n += at(b).references == 0 ? 1 : 0;
  return n;
}

void KvCache::take_hits(std::span<const BlockIndex> hits, std::vector<BlockIndex>& owned) {
  for (const BlockIndex b : hits) {
    Block& block = at(b);
    if (block.references == 0) {
      unlink(b);
      --free_count_;
    } else {
      ++extra_references_;
    }
    ++block.references;
  }
  owned.insert(owned.end(), hits.begin(), hits.end());
}

void KvCache::evict(BlockIndex b) {
  Block& block = at(b);
  ++evictions_;
  if (!block.findable) {
    block.key = 0;
    return;
  }
  ++version_;
  const std::size_t slot = find_slot(block.key);
  ROUTESIM_DCHECK(table_[slot] != 0, "evicted block is not in the table");
  if (table_[slot] == b) {
    if (block.same_key != 0) {
      table_[slot] = block.same_key;
    } else {
      erase_slot(slot);
    }
  } else {
    BlockIndex before = table_[slot];
    while (at(before).same_key != b) before = at(before).same_key;
    at(before).same_key = block.same_key;
  }
  block.same_key = 0;
  block.findable = false;
  // vLLM announces every removed block. Routers without duplicate counting forget the key although
  // a twin may survive; the sink decides what to make of it, so it hears every removal.
  if (sink_ != nullptr) sink_->removed(block.key);
  block.key = 0;
}

void KvCache::allocate(std::int64_t n, std::vector<BlockIndex>& owned) {
  ROUTESIM_DCHECK(n <= free_count_, "allocation beyond the free queue");
  for (std::int64_t i = 0; i < n; ++i) {
    const BlockIndex b = at(0).next;
    unlink(b);
    Block& block = at(b);
    if (block.key != 0) evict(b);
    block.references = 1;
    owned.push_back(b);
  }
  free_count_ -= n;
}

void KvCache::register_key(BlockIndex b, BlockKey key) {
  Block& block = at(b);
  if (block.key != 0) return;
  const std::size_t slot = find_slot(key);
  block.key = key;
  block.findable = true;
  ++version_;
  if (table_[slot] == 0) {
    table_[slot] = b;
    ++table_used_;
    return;
  }
  BlockIndex last = table_[slot];
  while (at(last).same_key != 0) last = at(last).same_key;
  at(last).same_key = b;
}

void KvCache::register_private(BlockIndex b, BlockKey key) {
  Block& block = at(b);
  if (block.key == 0) block.key = key;
}

void KvCache::release(std::vector<BlockIndex>& owned) {
  for (std::size_t i = owned.size(); i-- > 0;) {
    const BlockIndex b = owned[i];
    Block& block = at(b);
    ROUTESIM_DCHECK(block.references > 0, "released a block nobody holds");
    if (--block.references > 0) {
      --extra_references_;
      continue;
    }
    if (mode_ == FreeQueue::kUnhashedFirst && block.key == 0)
      prepend(b);
    else
      append(b);
    ++free_count_;
  }
  owned.clear();
}

bool KvCache::reset() {
  if (free_count_ != usable_blocks()) return false;
  for (Block& block : blocks_) {
    block.key = 0;
    block.same_key = 0;
    block.findable = false;
  }
  ++version_;
  for (BlockIndex& slot : table_) slot = 0;
  table_used_ = 0;
  return true;
}

std::vector<BlockIndex> KvCache::free_queue() const {
  std::vector<BlockIndex> out;
  for (BlockIndex b = at(0).next; b != 0; b = at(b).next) out.push_back(b);
  return out;
}

void KvCache::verify() const {
  std::int64_t free_seen = 0;
  for (BlockIndex b = at(0).next; b != 0; b = at(b).next) {
    ROUTESIM_CHECK(at(b).references == 0, "a free block is referenced");
    ROUTESIM_CHECK(++free_seen <= usable_blocks(), "the free queue has a cycle");
  }
  ROUTESIM_CHECK(free_seen == free_count_, "free queue length " + std::to_string(free_seen) +
                                               " differs from the count " +
                                               std::to_string(free_count_));
  std::int64_t extra = 0, unreferenced = 0, keyed = 0;
  for (std::size_t i = 1; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    ROUTESIM_CHECK(block.references >= 0, "negative reference count");
    if (block.references == 0) ++unreferenced;
    if (block.references > 1) extra += block.references - 1;
    ROUTESIM_CHECK(block.key != 0 || !block.findable, "a block without a key is findable");
    if (block.findable) {
      ++keyed;
      bool found = false;
      for (BlockIndex b = table_[find_slot(block.key)]; b != 0; b = at(b).same_key)
        found = found || b == static_cast<BlockIndex>(i);
      ROUTESIM_CHECK(found, "a keyed block cannot be found under its key");
    }
  }
  ROUTESIM_CHECK(unreferenced == free_count_, "an unreferenced block is not in the free queue");
  ROUTESIM_CHECK(extra == extra_references_, "shared-reference count drifted");
  ROUTESIM_CHECK(keyed >= static_cast<std::int64_t>(table_used_), "the table holds dead keys");
  for (const BlockIndex head : table_)
    for (BlockIndex b = head; b != 0; b = at(b).same_key)
      ROUTESIM_CHECK(at(b).findable && at(b).key == at(head).key,
                     "a lookup could return a block that was evicted");
}

}  // namespace routesim::sim
