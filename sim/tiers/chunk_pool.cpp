#include "sim/tiers/chunk_pool.h"

#include "base/check.h"
#include "base/rng.h"

namespace routesim::sim {

std::int64_t ChunkPool::leading(std::span<const BlockKey> chunks) const {
  std::int64_t n = 0;
  for (const BlockKey key : chunks) {
    if (!contains(key)) break;
    ++n;
  }
  return n;
}

std::int64_t ChunkPool::look_up(std::span<const BlockKey> chunks) {
  found_.clear();
  for (const BlockKey key : chunks) {
    const Index i = find(key);
    if (i == 0) break;
    found_.push_back(i);
  }
  for (std::size_t n = found_.size(); n-- > 0;) {
    if (parts_[chunks_[found_[n]].part].lost) continue;
    unlink(found_[n]);
    append(found_[n]);
  }
  return std::ssize(found_);
}

void ChunkPool::keep(std::span<const BlockKey> chunks) {
  for (const BlockKey key : chunks) ++chunks_[find(key)].keepers;
}

void ChunkPool::release(std::span<const BlockKey> chunks) {
  for (const BlockKey key : chunks) --chunks_[find(key)].keepers;
}

void ChunkPool::unlink(Index i) {
  const Chunk& c = chunks_[i];
  chunks_[c.previous].next = c.next;
  chunks_[c.next].previous = c.previous;
}

void ChunkPool::append(Index i) {
  const Index last = chunks_[0].previous;
  chunks_[i].previous = last;
  chunks_[i].next = 0;
  chunks_[last].next = i;
  chunks_[0].previous = i;
}

bool ChunkPool::evict() {
  Index i = chunks_[0].next;
  while (i != 0 && chunks_[i].keepers > 0) i = chunks_[i].next;
  if (i == 0) return false;
  unlink(i);
  forget(chunks_[i].key);
  unused_.push_back(i);
  --parts_[chunks_[i].part].used;
  --size_;
  ++evictions_;
  return true;
}

// Slots behind the one that becomes empty move up, where they may: no search stops too early.
void ChunkPool::forget(BlockKey key) {
  const std::size_t mask = table_.size() - 1;
  std::size_t hole = slot(key);
  for (std::size_t s = (hole + 1) & mask; table_[s].chunk != 0; s = (s + 1) & mask) {
    if (((s - home(table_[s].key)) & mask) < ((s - hole) & mask)) continue;
    table_[hole] = table_[s];
    hole = s;
  }
  table_[hole] = {};
}

void ChunkPool::grow() {
  std::vector<Slot> old(2 * table_.size());
  old.swap(table_);
  for (const Slot& s : old)
    if (s.chunk != 0) table_[slot(s.key)] = s;
}

bool ChunkPool::insert(BlockKey key) {
  if (contains(key)) return true;
  if (size_ == capacity_ && !evict()) return false;
  Index i = static_cast<Index>(chunks_.size());
  if (unused_.empty()) {
    chunks_.emplace_back();
  } else {
    i = unused_.back();
    unused_.pop_back();
  }
  chunks_[i] = {.key = key, .part = part_for(key)};
  ++parts_[chunks_[i].part].used;
  append(i);
  ++size_;
  if (2 * (chunks_.size() - 1 - unused_.size()) > table_.size()) grow();
  table_[slot(key)] = {.key = key, .chunk = i};
  return true;
}

// Any part with room, as Mooncake's RandomAllocationStrategy takes one (allocation_strategy.h).
std::uint32_t ChunkPool::part_for(BlockKey key) const {
  std::size_t part = parts_.size() == 1 ? 0 : mix64(key) % parts_.size();
  while (parts_.size() > 1 && (parts_[part].lost || parts_[part].used == parts_[part].room))
    part = (part + 1) % parts_.size();
  return static_cast<std::uint32_t>(part);
}

std::uint32_t ChunkPool::add_part(std::int64_t chunks) {
  capacity_ += chunks;
  std::size_t part = 1;
  while (part < parts_.size() && parts_[part].in_use) ++part;
  if (part == parts_.size()) parts_.emplace_back();
  parts_[part] = {.room = chunks, .in_use = true};
  return static_cast<std::uint32_t>(part);
}

void ChunkPool::lose_part(std::uint32_t part) {
  Part& p = parts_[part];
  p.lost = true;
  capacity_ -= p.room;
  size_ -= p.used;
  for (Index i = chunks_[0].next; i != 0; i = chunks_[i].next)
    if (chunks_[i].part == part) p.lost_chunks.push_back(i);
  for (const Index i : p.lost_chunks) unlink(i);
}

void ChunkPool::forget_part(std::uint32_t part) {
  for (const Index i : parts_[part].lost_chunks) {
    forget(chunks_[i].key);
    unused_.push_back(i);
  }
  parts_[part] = {};
}

std::int64_t ChunkPool::readable(std::span<const BlockKey> chunks) const {
  const auto lost = std::find_if(chunks.begin(), chunks.end(), [this](BlockKey key) {
    return parts_[chunks_[find(key)].part].lost;
  });
  return lost - chunks.begin();
}

void ChunkPool::verify() const {
  std::int64_t n = 0, used = 0;
  for (Index i = chunks_[0].next; i != 0; i = chunks_[i].next, ++n)
    ROUTESIM_CHECK(find(chunks_[i].key) == i && chunks_[chunks_[i].next].previous == i &&
                       chunks_[i].keepers >= 0,
                   "a chunk is not where its pool says");
  for (const Part& p : parts_) used += p.lost ? 0 : p.used;
  ROUTESIM_CHECK(n == size_ && n == used, "a chunk has no place in the order, or two");
  ROUTESIM_CHECK(capacity_ == kNoLimit || size_ <= capacity_, "a pool holds too many chunks");
}

}  // namespace routesim::sim
