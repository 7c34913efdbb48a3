#include "sim/engine/chunk_pool.h"

#include "base/check.h"

namespace routesim::sim {

std::int64_t ChunkPool::leading(std::span<const BlockKey> chunks) const {
  std::int64_t n = 0;
  for (const BlockKey key : chunks) {
    if (!contains(key)) break;
    ++n;
  }
  return n;
}

void ChunkPool::touch(std::span<const BlockKey> chunks) {
  for (std::size_t i = chunks.size(); i-- > 0;)
    order_.splice(order_.end(), order_, chunks_.at(chunks[i]).place);
}

void ChunkPool::keep(std::span<const BlockKey> chunks) {
  for (const BlockKey key : chunks) ++chunks_.at(key).keepers;
}

void ChunkPool::release(std::span<const BlockKey> chunks) {
  for (const BlockKey key : chunks) --chunks_.at(key).keepers;
}

bool ChunkPool::evict() {
  for (auto it = order_.begin(); it != order_.end(); ++it) {
    const auto chunk = chunks_.find(*it);
    if (chunk->second.keepers > 0) continue;
    order_.erase(it);
    chunks_.erase(chunk);
    ++evictions_;
    return true;
  }
  return false;
}

bool ChunkPool::insert(BlockKey key) {
  if (contains(key)) return true;
  if (size() == capacity_ && !evict()) return false;
  chunks_[key].place = order_.insert(order_.end(), key);
  return true;
}

void ChunkPool::verify() const {
  ROUTESIM_CHECK(order_.size() == chunks_.size(), "a chunk has no place in the order, or two");
  ROUTESIM_CHECK(capacity_ == kNoLimit || size() <= capacity_, "a pool holds too many chunks");
  for (auto it = order_.begin(); it != order_.end(); ++it) {
    const auto chunk = chunks_.find(*it);
    ROUTESIM_CHECK(
        chunk != chunks_.end() && chunk->second.place == it && chunk->second.keepers >= 0,
        "a chunk is not where its pool says");
  }
}

}  // namespace routesim::sim
