#include "sim/kv/window_groups.h"

#include <algorithm>

#include "base/check.h"
#include "base/rng.h"

namespace routesim::sim {

namespace {

/// The key of a group's block: no group finds another's.
BlockKey window_key(BlockKey key, std::size_t group) { return mix64(key, group + 1) | 1; }

std::int64_t blocks_of(std::int64_t tokens, std::int64_t block_size) {
  return (tokens + block_size - 1) / block_size;
}

}  // namespace

WindowGroups::WindowGroups(const EngineRules& rules, KvCache& kv)
    : kv_(kv),
      states_(rules.state_groups),
      window_tokens_(rules.window_tokens),
      seen_blocks_(blocks_of(rules.window_tokens - 1, rules.block_size)),
      step_blocks_(blocks_of(rules.max_num_batched_tokens, rules.block_size)),
      hits_(static_cast<std::size_t>(rules.window_groups)) {}

std::int64_t WindowGroups::most_blocks(std::int64_t blocks) const {
  if (states_) return groups() * std::min<std::int64_t>(blocks, 1);
  return groups() * std::min(blocks, seen_blocks_ + step_blocks_ + 1);
}

std::int64_t WindowGroups::most_needed(const Sequence& q, std::int64_t more) const {
  if (q.windows.empty()) return 0;
  if (states_) return taken_with(q, more);
  const std::int64_t room = seen_blocks_ + step_blocks_ + 1 - q.windows.front().blocks;
  return groups() * std::min(more, room);
}

std::int64_t WindowGroups::taken_with(const Sequence& q, std::int64_t blocks) const {
  if (states_ && !q.windows.empty())
    blocks = std::min<std::int64_t>(blocks, 1 - q.windows.front().blocks);
  return groups() * blocks;
}

std::int64_t WindowGroups::need(const Sequence& q, std::int64_t blocks) const {
  if (q.windows.empty()) return 0;
  if (states_) return 1 - q.windows.front().blocks;
  return blocks - q.window_first - q.windows.front().blocks;
}

std::int64_t WindowGroups::pulled_blocks(std::int64_t blocks) const {
  return states_ ? most_blocks(blocks) : groups() * std::min(blocks, seen_blocks_);
}

// The longest cached prefix of at most `hit` blocks whose end one group has the window of: from the
// right, the first stretch of as many blocks as the window takes, or else one that begins with the
// prompt.
std::int64_t WindowGroups::shorten(std::size_t group, std::span<const BlockKey> keys,
                                   std::int64_t hit) const {
  std::int64_t found = 0;
  for (std::int64_t i = hit; i-- > 0;) {
    if (kv_.find(window_key(keys[static_cast<std::size_t>(i)], group)) == 0) {
      found = 0;
      continue;
    }
    if (++found == seen_blocks_) return i + found;
  }
  return found;
}

void WindowGroups::lookup(std::span<const BlockKey> keys, CachedPrefix& hits) {
  std::int64_t hit = hits.blocks;
  for (std::size_t g = 0; g < hits_.size();) {
    const std::int64_t shorter = shorten(g, keys, hit);
    g = shorter < hit ? 0 : g + 1;
    hit = shorter;
  }
  if (hit < hits.blocks) kv_.lookup(keys.first(static_cast<std::size_t>(hit)), hits);
  const std::int64_t first = std::max<std::int64_t>(0, hit - seen_blocks_);
  for (std::size_t g = 0; g < hits_.size(); ++g) {
    hits_[g].clear();
    for (std::int64_t i = first; i < hit; ++i) {
      const BlockKey key = window_key(keys[static_cast<std::size_t>(i)], g);
      hits_[g].pieces.push_back({.run = kv_.find(key), .blocks = 1});
      ++hits_[g].blocks;
    }
  }
}

std::int64_t WindowGroups::hit_blocks() const {
  return hits_.empty() ? 0 : groups() * hits_.front().blocks;
}

std::int64_t WindowGroups::unreferenced_hits() const {
  std::int64_t n = 0;
  for (const CachedPrefix& w : hits_) n += kv_.count_unreferenced(w);
  return n;
}

void WindowGroups::take_hits(Sequence& q, std::int64_t hit) {
  if (q.windows.empty()) return;
  q.window_first = hit - hits_.front().blocks;
  for (std::size_t g = 0; g < q.windows.size(); ++g) kv_.take_hits(hits_[g], q.windows[g]);
}

std::int64_t WindowGroups::first_loaded(std::int64_t hit, std::int64_t blocks) const {
  return std::max(hit, blocks - seen_blocks_);
}

// The found blocks are the last ones of the hit.
CachedPrefix WindowGroups::seen_hits(std::size_t group, std::int64_t hit,
                                     std::int64_t blocks) const {
  CachedPrefix seen = hits_[group];
  const std::int64_t n = std::clamp<std::int64_t>(hit - (blocks - seen_blocks_), 0, seen.blocks);
  seen.pieces.erase(seen.pieces.begin(), seen.pieces.end() - n);
  seen.blocks = n;
  return seen;
}

std::int64_t WindowGroups::unreferenced_hits(std::int64_t hit, std::int64_t blocks) const {
  std::int64_t n = 0;
  for (std::size_t g = 0; g < hits_.size(); ++g)
    n += kv_.count_unreferenced(seen_hits(g, hit, blocks));
  return n;
}

void WindowGroups::take_hits(Sequence& q, std::int64_t hit, std::int64_t blocks) {
  if (q.windows.empty()) return;
  q.window_first = std::max<std::int64_t>(0, blocks - seen_blocks_);
  for (std::size_t g = 0; g < q.windows.size(); ++g)
    kv_.take_hits(seen_hits(g, hit, blocks), q.windows[g]);
}

bool WindowGroups::leave(Sequence& q) {
  if (q.windows.empty() || states_) return false;
  const std::int64_t seen = (q.computed - window_tokens_ + 1) / kv_.block_size();
  const std::int64_t n = std::min(seen - q.window_first, q.windows.front().blocks);
  if (n <= 0) return false;
  for (BlockHolding& w : q.windows) kv_.release_front(w, n);
  q.window_first += n;
  return true;
}

void WindowGroups::allocate(Sequence& q, std::int64_t blocks) {
  if (states_ && !q.windows.empty()) blocks = taken_with(q, blocks) / groups();
  for (BlockHolding& w : q.windows) kv_.allocate(blocks, w);
}

void WindowGroups::register_keys(Sequence& q, std::span<const BlockKey> keys) {
  for (std::size_t g = 0; g < q.windows.size(); ++g)
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::int64_t block = q.registered + static_cast<std::int64_t>(i);
      if (block < q.window_first) continue;
      ROUTESIM_DCHECK(q.window_first + std::ssize(q.windows[g].pieces) == block,
                      "a windowed block was passed over");
      kv_.register_window(q.windows[g], window_key(keys[i], g));
    }
}

void WindowGroups::release(Sequence& q) {
  for (BlockHolding& w : q.windows) kv_.release(w);
  q.window_first = 0;
}

}  // namespace routesim::sim
