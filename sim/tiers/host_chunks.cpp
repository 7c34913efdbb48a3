#include "sim/tiers/host_chunks.h"

#include <algorithm>

#include "base/rng.h"

namespace routesim::sim {

namespace {

/// The key of a chunk of a group with a window: no group finds another's.
BlockKey group_key(BlockKey key, std::size_t group) { return mix64(key, group + 1) | 1; }

}  // namespace

// The pool has a null block, as in GPU memory. Chunks without a key never come back to it.
HostChunks::HostChunks(const EngineRules& rules)
    : chunk_tokens_(rules.tiers.chunk_blocks * rules.block_size),
      groups_(static_cast<std::size_t>(rules.window_groups)),
      window_chunks_((rules.window_tokens + chunk_tokens_ - 1) / chunk_tokens_),
      waits_for_writes_(rules.tiers.waits_for_writes),
      pool_(rules.tiers.cpu_chunks + 1, chunk_tokens_, FreeQueue::kUnhashedFirst) {}

template <class F>
void HostChunks::for_each_run(Chunks chunks, CachedPrefix& scratch, F f) const {
  constexpr std::int64_t kAhead = 8;
  for (std::int64_t i = 0; i < std::ssize(chunks); ++i) {
    if (i + kAhead < std::ssize(chunks))
      pool_.prefetch(chunks[static_cast<std::size_t>(i + kAhead)]);
    if (pool_.lookup(chunks.subspan(static_cast<std::size_t>(i)), scratch) == 0) continue;
    for (const RunPiece& p : scratch.pieces) {
      f(Stretch{.begin = i, .blocks = p.blocks, .run = p.run, .stamp = pool_.ref(p.run).stamp});
      i += p.blocks;
    }
    --i;
  }
}

// A run is found by its first key, hence from the first chunk on: a hit may begin inside one.
void HostChunks::scan(Chunks chunks) {
  ++scans_;
  scanned_ = chunks.size();
  stretches_.clear();
  for_each_run(chunks, found_, [this](const Stretch& run) { stretches_.push_back(run); });
}

// Lets a run begin with that chunk, if the stretches scanned last have it.
void HostChunks::cut_stretches_at(std::int64_t chunk) {
  for (std::size_t i = 0; i < stretches_.size(); ++i) {
    Stretch& s = stretches_[i];
    if (s.begin >= chunk || s.end() <= chunk) continue;
    const RunRef second = pool_.ref(pool_.split(s.run, chunk - s.begin));
    const Stretch rest{
        .begin = chunk, .blocks = s.end() - chunk, .run = second.run, .stamp = second.stamp};
    s.blocks = chunk - s.begin;
    stretches_.insert(stretches_.begin() + static_cast<std::ptrdiff_t>(i) + 1, rest);
    return;
  }
}

// Nothing of the scanned stretches was evicted since.
bool HostChunks::still_there() const {
  return std::all_of(stretches_.begin(), stretches_.end(), [this](const Stretch& s) {
    return pool_.blocks_of({.run = s.run, .stamp = s.stamp}) >= s.blocks;
  });
}

// The scanned stretches of the chunks [first, end); no run may be cut at `first`.
CachedPrefix& HostChunks::pieces_of(std::int64_t first, std::int64_t end) {
  present_.clear();
  for (const Stretch& s : stretches_) {
    if (s.begin < first || s.begin >= end) continue;
    const std::int64_t blocks = std::min(s.end(), end) - s.begin;
    present_.pieces.push_back({.run = s.run, .blocks = static_cast<std::int32_t>(blocks)});
    present_.blocks += blocks;
  }
  return present_;
}

// How many of the scanned chunks [first, end) there are in front of the first that is missing.
HostChunks::Count HostChunks::prefix(std::int64_t first, std::int64_t end) const {
  Count found;
  std::int64_t at = first;
  for (const Stretch& s : stretches_) {
    if (s.end() <= at) continue;
    if (s.begin > at || at >= end || !there(s.run)) break;
    found.pending = found.pending || pool_.copy_of(s.run) == KvCache::Copy::kWrite;
    at = std::min(end, s.end());
  }
  found.chunks = at - first;
  return found;
}

// The last place in (first, end] at which a group has its window of chunks, or all of them from
// `first` on, counted from there; 0 if there is none.
HostChunks::Count HostChunks::window(std::size_t group, Chunks chunks, std::int64_t first,
                                     std::int64_t end) const {
  Count found;
  for (std::int64_t i = end; i-- > first;) {
    const RunIndex r = i < std::ssize(chunks)
                           ? pool_.find(group_key(chunks[static_cast<std::size_t>(i)], group))
                           : 0;
    if (!there(r)) {
      found.chunks = 0;
      continue;
    }
    found.pending = found.pending || pool_.copy_of(r) == KvCache::Copy::kWrite;
    if (++found.chunks < window_chunks_) continue;
    found.chunks += i - first;
    return found;
  }
  return found;
}

// Less than a chunk is not worth it. Every group may shorten what the ones before have found. As
// long as chunks are being written, that a group has no more does not count, and the next group
// looks at all.
std::optional<std::int64_t> HostChunks::find_tokens(Chunks chunks, std::int64_t computed,
                                                    std::int64_t tokens) const {
  const std::int64_t chunk = chunk_tokens_;
  const std::int64_t first = computed / chunk;
  // The keys of a private answer are not known; no chunk has them.
  const std::int64_t all = tokens / chunk;
  // With windows vLLM keeps the last token to be computed.
  std::int64_t most = std::min(tokens - (groups_ > 0 ? 1 : 0), all * chunk);
  std::int64_t found = 0;
  bool wait = false;
  enum class Round { kNone, kWindows, kAll };
  for (Round next = Round::kAll; next != Round::kNone;) {
    // Group 0 is the one without a window.
    std::size_t g = next == Round::kAll ? 0 : 1;
    next = Round::kNone;
    for (bool window_seen = false; g <= groups_; ++g) {
      if (most - computed < chunk) return 0;
      const std::int64_t end = std::min((most + chunk - 1) / chunk, all);
      const Count has = g == 0 ? prefix(first, end) : window(g - 1, chunks, first, end);
      if (has.pending) {
        wait = true;
      } else {
        most = std::min(most, (first + has.chunks) * chunk);
      }
      if (most - computed < chunk) return 0;
      if (most - computed < found) {
        if (wait) {
          wait = false;
          next = Round::kAll;
        } else if (window_seen && next == Round::kNone) {
          next = Round::kWindows;
        }
      }
      window_seen = window_seen || g > 0;
      found = most - computed;
    }
  }
  if (wait) return std::nullopt;
  return found;
}

bool HostChunks::being_read(Chunks chunks, std::int64_t first, std::int64_t end) const {
  for (const Stretch& s : stretches_)
    if (s.end() > first && s.begin < end && pool_.copy_of(s.run) == KvCache::Copy::kRead)
      return true;
  for (std::size_t g = 0; g < groups_; ++g)
    for (std::int64_t i = std::max(first, window_before(end)); i < end; ++i) {
      const RunIndex r = pool_.find(group_key(chunks[static_cast<std::size_t>(i)], g));
      if (pool_.copy_of(r) == KvCache::Copy::kRead) return true;
    }
  return false;
}

void HostChunks::touch(Chunks chunks, std::int64_t hit) {
  if (chunks.size() != scanned_ || !still_there()) scan(chunks);
  pool_.touch(pieces_of(0, std::ssize(chunks)));
  for (std::size_t g = 0; g < groups_; ++g) {
    present_.clear();
    for (std::int64_t i = std::max<std::int64_t>(0, window_before(hit)); i < std::ssize(chunks);
         ++i)
      if (const RunIndex r = pool_.find(group_key(chunks[static_cast<std::size_t>(i)], g)); r != 0)
        present_.pieces.push_back({.run = r, .blocks = 1});
    pool_.touch(present_);
  }
}

std::optional<std::int64_t> HostChunks::readable_from(Chunks chunks, std::int64_t first) {
  scan(chunks);
  Count has = prefix(first, std::ssize(chunks));
  for (std::size_t g = 0; g < groups_ && !has.pending; ++g)
    has = window(g, chunks, first, first + has.chunks);
  if (has.pending) return std::nullopt;
  return has.chunks;
}

std::int64_t HostChunks::held_until(Chunks chunks, std::int64_t first) const {
  std::int64_t end = first;
  CachedPrefix found;
  for_each_run(chunks, found, [&end](const Stretch& run) {
    if (run.begin <= end) end = std::max(end, run.end());
  });
  for (std::size_t g = 0; g < groups_; ++g) end = first + window(g, chunks, first, end).chunks;
  return end;
}

// Fills missing_ with the stretches of the scanned chunks [first, end) that the pool has not, and
// present_ with those it has.
std::int64_t HostChunks::find_missing(Chunks chunks, std::int64_t first, std::int64_t end,
                                      std::int64_t window_first) {
  cut_stretches_at(first);
  missing_.clear();
  std::int64_t at = first;
  for (const Stretch& there : stretches_) {
    if (there.begin > at) missing_.emplace_back(at, there.begin);
    at = std::max(at, there.end());
  }
  if (at < end) missing_.emplace_back(at, end);
  pieces_of(first, end);
  find_missing_windows(chunks, window_first);
  std::int64_t need = std::ssize(missing_windows_);
  for (const auto& [from, to] : missing_) need += to - from;
  return need;
}

// Appends to present_ what there is. A chunk counts as there when its last block is.
void HostChunks::find_missing_windows(Chunks chunks, std::int64_t first) {
  missing_windows_.clear();
  for (std::size_t g = 0; g < groups_; ++g)
    for (std::int64_t i = first; i < std::ssize(chunks); ++i) {
      const BlockKey key = group_key(chunks[static_cast<std::size_t>(i)], g);
      const RunIndex r = pool_.find(key);
      if (r == 0) {
        missing_windows_.emplace_back(key, g);
      } else {
        present_.pieces.push_back({.run = r, .blocks = 1});
        ++present_.blocks;
      }
    }
}

// Chunks behind the last key are private.
void HostChunks::write(Holdings& written, Chunks chunks, std::int64_t from, std::int64_t to) {
  BlockHolding& room = written.emplace_back();
  const std::int64_t keyed = std::clamp(std::ssize(chunks), from, to);
  pool_.allocate(to - from, room);
  pool_.register_keys(room, chunks.subspan(static_cast<std::size_t>(std::min(from, keyed)),
                                           static_cast<std::size_t>(keyed - from)));
  if (to > keyed) pool_.register_private(room, to - keyed);
  pool_.mark(room, KvCache::Copy::kWrite);
}

// The chunks in present_ are not evicted for them.
void HostChunks::write_missing(Chunks chunks, Holdings& written) {
  BlockHolding guard;
  pool_.take_hits(present_, guard);
  for (const auto& [from, to] : missing_) write(written, chunks, from, to);
  for (std::size_t i = 0; i < missing_windows_.size();) {
    BlockHolding& room = written.emplace_back();
    const std::size_t group = missing_windows_[i].second;
    for (; i < missing_windows_.size() && missing_windows_[i].second == group; ++i) {
      pool_.allocate(1, room);
      pool_.register_window(room, missing_windows_[i].first);
    }
    pool_.mark(room, KvCache::Copy::kWrite);
  }
  pool_.release(guard);
}

void HostChunks::take(Chunks chunks, std::int64_t first, std::int64_t end,
                      std::int64_t window_first, Holdings& taken) {
  cut_stretches_at(first);
  pool_.take_hits(pieces_of(first, end), taken.emplace_back());
  for (std::size_t g = 0; g < groups_; ++g) {
    found_.clear();
    for (std::int64_t i = window_first; i < end; ++i) {
      const BlockKey key = group_key(chunks[static_cast<std::size_t>(i)], g);
      found_.pieces.push_back({.run = pool_.find(key), .blocks = 1});
      ++found_.blocks;
    }
    pool_.take_hits(found_, taken.emplace_back());
  }
}

void HostChunks::begin_read(const Holdings& chunks) {
  for (const BlockHolding& some : chunks) pool_.mark(some, KvCache::Copy::kRead);
}

void HostChunks::end_read(Holdings& chunks) {
  for (BlockHolding& some : chunks) {
    pool_.mark(some, KvCache::Copy::kNone);
    pool_.release(some);
  }
}

void HostChunks::announce(const BlockHolding& chunks) {
  pool_.mark(chunks, KvCache::Copy::kNone);
  if (sink_ == nullptr) return;
  pool_.for_each_key_run(chunks,
                         [this](std::span<const BlockKey> keys) { sink_->stored_in_tier(keys); });
}

void HostChunks::make_readable(Holdings& chunks) {
  for (BlockHolding& some : chunks) {
    announce(some);
    pool_.release(some);
  }
}

void HostChunks::release(Holdings& chunks) {
  for (BlockHolding& some : chunks) pool_.release(some);
}

void HostChunks::discard(Holdings& chunks) {
  for (BlockHolding& some : chunks) pool_.discard(some);
}

void HostChunks::set_sink(TierEventSink* sink) {
  sink_ = sink;
  pool_.set_sink(sink == nullptr ? nullptr : this);
}

void HostChunks::verify(std::span<const BlockHolding* const> holdings) const {
  pool_.verify();
  pool_.verify_holdings(holdings);
}

}  // namespace routesim::sim
