// Layers with a window, as vLLM's hybrid KV cache manager keeps them. They form groups as large as
// that of the layers that see everything, and each group takes blocks from the same pool: for every
// block of a prompt one more per group. A sequence gives up those that leave its window; they stay
// findable until they are evicted, which is before the others, as they were freed before. A prefix
// counts as cached only as far as every group has the window before its end.
#include <algorithm>

#include "base/check.h"
#include "base/rng.h"
#include "sim/engine/batch_scheduler.h"

namespace routesim::sim {

namespace {

/// The key of a group's block: no group finds another's.
BlockKey window_key(BlockKey key, std::size_t group) { return mix64(key, group + 1) | 1; }

/// Blocks that must be there for the next token to see its whole window.
std::int64_t blocks_seen(const EngineRules& rules) {
  return (rules.window_tokens - 1 + rules.block_size - 1) / rules.block_size;
}

}  // namespace

// Of a sequence of so many blocks, if it came to that without a hit: the window, and what one step
// adds to it.
std::int64_t BatchScheduler::most_window_blocks(std::int64_t blocks) const {
  if (rules_.window_groups == 0) return 0;
  const std::int64_t most = blocks_seen(rules_) + blocks_for(rules_.max_num_batched_tokens) + 1;
  return rules_.window_groups * std::min(blocks, most);
}

// Blocks that each group lacks for `tokens`.
std::int64_t BatchScheduler::window_need(const Sequence& q, std::int64_t tokens) const {
  if (q.windows.empty()) return 0;
  return blocks_for(tokens) - q.window_first - q.windows.front().blocks;
}

// The longest cached prefix of at most `hit` blocks whose end one group has the window of: from the
// right, the first stretch of as many blocks as the window takes, or else one that begins with the
// prompt.
std::int64_t BatchScheduler::shorten_to_window(std::size_t group, std::span<const BlockKey> keys,
                                               std::int64_t hit) const {
  std::int64_t found = 0;
  for (std::int64_t i = hit; i-- > 0;) {
    if (kv_.find(window_key(keys[static_cast<std::size_t>(i)], group)) == 0) {
      found = 0;
      continue;
    }
    if (++found == blocks_seen(rules_)) return i + found;
  }
  return found;
}

// Shortens hits_, which has `hit` blocks of `keys`, to what all groups have, and fills
// window_hits_.
std::int64_t BatchScheduler::lookup_windows(std::span<const BlockKey> keys, std::int64_t hit) {
  for (std::size_t g = 0; g < window_hits_.size();) {
    const std::int64_t shorter = shorten_to_window(g, keys, hit);
    g = shorter < hit ? 0 : g + 1;
    hit = shorter;
  }
  if (hit < hits_.blocks) kv_.lookup(keys.first(static_cast<std::size_t>(hit)), hits_);
  const std::int64_t first = std::max<std::int64_t>(0, hit - blocks_seen(rules_));
  for (std::size_t g = 0; g < window_hits_.size(); ++g) {
    window_hits_[g].clear();
    for (std::int64_t i = first; i < hit; ++i) {
      const BlockKey key = window_key(keys[static_cast<std::size_t>(i)], g);
      window_hits_[g].pieces.push_back({.run = kv_.find(key), .blocks = 1});
      ++window_hits_[g].blocks;
    }
  }
  return hit;
}

std::int64_t BatchScheduler::window_hit_blocks(std::int64_t hit) const {
  if (hit == 0 || window_hits_.empty()) return 0;
  return rules_.window_groups * window_hits_.front().blocks;
}

// Of so many blocks that are pulled from elsewhere, those that the windows still see: of the others
// nobody needs what is in them.
std::int64_t BatchScheduler::window_pull_blocks(std::int64_t blocks) const {
  return rules_.window_groups * std::min(blocks, blocks_seen(rules_));
}

// Hits that are in the free queue, so that taking them shrinks it.
std::int64_t BatchScheduler::count_unreferenced_hits() const {
  std::int64_t n = kv_.count_unreferenced(hits_);
  if (hits_.blocks == 0) return n;
  for (const CachedPrefix& w : window_hits_) n += kv_.count_unreferenced(w);
  return n;
}

void BatchScheduler::take_window_hits(Sequence& q, std::int64_t hit) {
  if (q.windows.empty()) return;
  q.window_first = hit - window_hits_.front().blocks;
  for (std::size_t g = 0; g < q.windows.size(); ++g) kv_.take_hits(window_hits_[g], q.windows[g]);
}

// Gives up the blocks that the next token to be computed does not see.
void BatchScheduler::leave_windows(Sequence& q) {
  if (q.windows.empty()) return;
  const std::int64_t seen = (q.computed - rules_.window_tokens + 1) / rules_.block_size;
  const std::int64_t n = std::min(seen - q.window_first, q.windows.front().blocks);
  if (n <= 0) return;
  for (BlockHolding& w : q.windows) kv_.release_front(w, n);
  q.window_first += n;
  retry_admission_ = true;
}

void BatchScheduler::allocate_windows(Sequence& q, std::int64_t blocks) {
  for (BlockHolding& w : q.windows) kv_.allocate(blocks, w);
}

// The blocks q.registered, ... of the sequence become findable; those of a group follow the ones it
// has.
void BatchScheduler::register_windows(Sequence& q, std::span<const BlockKey> keys) {
  for (std::size_t g = 0; g < q.windows.size(); ++g)
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::int64_t block = q.registered + static_cast<std::int64_t>(i);
      if (block < q.window_first) continue;
      ROUTESIM_DCHECK(q.window_first + std::ssize(q.windows[g].pieces) == block,
                      "a windowed block was passed over");
      kv_.register_window(q.windows[g], window_key(keys[i], g));
    }
}

void BatchScheduler::free_windows(Sequence& q) {
  for (BlockHolding& w : q.windows) kv_.release(w);
  q.window_first = 0;
}

}  // namespace routesim::sim
