#include "sim/tiers/kv_tiers.h"

#include <algorithm>

#include "base/check.h"
#include "base/rng.h"
#include "sim/tiers/store_client.h"
#include "sim/tiers/worker_cache.h"

namespace routesim::sim {

namespace {

/// The key of a chunk of a group with a window: no group finds another's.
BlockKey group_key(BlockKey key, std::size_t group) { return mix64(key, group + 1) | 1; }

}  // namespace

KvTiers::KvTiers(const EngineRules& rules, SequenceTable& sequences, ChunkPool* store)
    : rules_(rules.tiers),
      block_size_(rules.block_size),
      groups_(static_cast<std::size_t>(rules.window_groups)),
      window_chunks_(0),
      sequences_(sequences) {
  if (!rules_.in_use()) return;
  if (rules_.copies_in_steps) {
    other_ = std::make_unique<WorkerCache>(rules_, block_size_, counters_, sequences_);
    return;
  }
  if (rules_.shared_store) {
    ROUTESIM_CHECK(store != nullptr, "an engine has no store to share");
    other_ = std::make_unique<StoreClient>(rules_, block_size_, counters_, sequences_, *store);
    return;
  }
  const std::int64_t chunk = rules_.chunk_blocks * rules.block_size;
  window_chunks_ = (rules.window_tokens + chunk - 1) / chunk;
  // The pool has a null block, as in GPU memory. Chunks without a key never come back to it.
  pool_.emplace(rules_.cpu_chunks + 1, chunk, FreeQueue::kUnhashedFirst);
}

// The keys of whole chunks: each is that of its last block.
std::span<const BlockKey> KvTiers::chunk_keys(std::span<const BlockKey> keys) {
  if (rules_.chunk_blocks == 1) return keys;
  chunk_keys_.clear();
  const auto step = static_cast<std::size_t>(rules_.chunk_blocks);
  for (std::size_t i = step; i <= keys.size(); i += step) chunk_keys_.push_back(keys[i - 1]);
  return chunk_keys_;
}

// Finds what the pool has of `chunks`. A run is found by its first key, hence from the first chunk
// on: a hit may begin in the middle of a run.
void KvTiers::scan(Chunks chunks) {
  stretches_.clear();
  asked_.scanned_last = false;
  for_each_run(chunks, window_found_, [this](const Stretch& run) { stretches_.push_back(run); });
}

// Lets a run begin with that chunk, if the stretches scanned last have it.
void KvTiers::cut_stretches_at(std::int64_t chunk) {
  for (std::size_t i = 0; i < stretches_.size(); ++i) {
    Stretch& s = stretches_[i];
    if (s.begin >= chunk || s.end() <= chunk) continue;
    const RunRef second = pool_->ref(pool_->split(s.run, chunk - s.begin));
    const Stretch rest{
        .begin = chunk, .blocks = s.end() - chunk, .run = second.run, .stamp = second.stamp};
    s.blocks = chunk - s.begin;
    stretches_.insert(stretches_.begin() + static_cast<std::ptrdiff_t>(i) + 1, rest);
    return;
  }
}

// Nothing of the scanned stretches was evicted since.
bool KvTiers::still_there() const {
  return std::all_of(stretches_.begin(), stretches_.end(), [this](const Stretch& s) {
    return pool_->blocks_of({.run = s.run, .stamp = s.stamp}) >= s.blocks;
  });
}

// The scanned stretches of the chunks [first, end); no run may be cut at `first`.
CachedPrefix& KvTiers::pieces_of(std::int64_t first, std::int64_t end) {
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
KvTiers::Count KvTiers::prefix(std::int64_t first, std::int64_t end) const {
  Count found;
  std::int64_t at = first;
  for (const Stretch& s : stretches_) {
    if (s.end() <= at) continue;
    if (s.begin > at || at >= end || !there(s.run)) break;
    found.pending = found.pending || pool_->copy_of(s.run) == KvCache::Copy::kWrite;
    at = std::min(end, s.end());
  }
  found.chunks = at - first;
  return found;
}

// The last place in (first, end] at which a group has its window of chunks, or all of them from
// `first` on, counted from there; 0 if there is none.
KvTiers::Count KvTiers::window(std::size_t group, Chunks chunks, std::int64_t first,
                               std::int64_t end) const {
  Count found;
  for (std::int64_t i = end; i-- > first;) {
    const RunIndex r = i < std::ssize(chunks)
                           ? pool_->find(group_key(chunks[static_cast<std::size_t>(i)], group))
                           : 0;
    if (!there(r)) {
      found.chunks = 0;
      continue;
    }
    found.pending = found.pending || pool_->copy_of(r) == KvCache::Copy::kWrite;
    if (++found.chunks < window_chunks_) continue;
    found.chunks += i - first;
    return found;
  }
  return found;
}

// The tokens that can be loaded behind `computed` ones; nothing while that is not certain. Less
// than a chunk is not worth it. Every group may shorten what the ones before have found. As long as
// chunks are being written, that a group has no more does not count, and the next group looks at
// all.
std::optional<std::int64_t> KvTiers::find_tokens(Chunks chunks, std::int64_t computed,
                                                 std::int64_t tokens) const {
  const std::int64_t chunk = rules_.chunk_blocks * block_size_;
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

// Another request loads some chunk that a load of [first, end) reads.
bool KvTiers::being_read(Chunks chunks, std::int64_t first, std::int64_t end) const {
  for (const Stretch& s : stretches_)
    if (s.end() > first && s.begin < end && pool_->copy_of(s.run) == KvCache::Copy::kRead)
      return true;
  for (std::size_t g = 0; g < groups_; ++g)
    for (std::int64_t i = std::max(first, end - window_chunks_); i < end; ++i) {
      const RunIndex r = pool_->find(group_key(chunks[static_cast<std::size_t>(i)], g));
      if (pool_->copy_of(r) == KvCache::Copy::kRead) return true;
    }
  return false;
}

// Makes the scanned chunks the youngest, the first one youngest of all; those of groups with a
// window from `window_first` on.
void KvTiers::touch(Chunks chunks, std::int64_t window_first) {
  pool_->touch(pieces_of(0, std::ssize(chunks)));
  for (std::size_t g = 0; g < groups_; ++g) {
    present_.clear();
    for (std::int64_t i = std::max<std::int64_t>(0, window_first); i < std::ssize(chunks); ++i)
      if (const RunIndex r = pool_->find(group_key(chunks[static_cast<std::size_t>(i)], g)); r != 0)
        present_.pieces.push_back({.run = r, .blocks = 1});
    pool_->touch(present_);
  }
}

KvTiers::Found KvTiers::lookup(Sequence& q, std::span<const BlockKey> keys, std::int64_t hit) {
  if (other_) return other_->lookup(q, chunk_keys(keys), hit);
  // A preempted request may still be stored.
  if (q.tier.storing > 0 && !rules_.settles_at_request_end) return {.wait = true};
  if (asked_.owner == q.tier.id && asked_.hit == hit && asked_.tokens == q.target)
    return asked_.found;
  const Chunks chunks = chunk_keys(keys);
  const std::int64_t chunk = rules_.chunk_blocks * block_size_;
  const std::int64_t computed = hit * block_size_;
  scan(chunks);
  std::optional<std::int64_t> more = find_tokens(chunks, computed, q.target);
  const std::int64_t first = computed / chunk;
  const std::int64_t end = (computed + more.value_or(0) + chunk - 1) / chunk;
  if (more.value_or(0) > 0 && being_read(chunks, first, end)) more.reset();
  Found found{.wait = !more};
  if (more.value_or(0) > 0)
    found = {.blocks = end * rules_.chunk_blocks - hit, .tokens = computed + *more};
  q.tier.hit = (computed + more.value_or(0)) / chunk;
  touch(chunks, q.tier.hit - window_chunks_);
  asked_ = {.owner = q.tier.id,
            .hit = hit,
            .tokens = q.target,
            .found = found,
            .first = first,
            .end = end,
            .scanned_last = true};
  return found;
}

std::int64_t KvTiers::held_blocks(std::span<const BlockKey> keys, std::int64_t hit) const {
  if (!in_use()) return hit;
  std::vector<BlockKey> chunks;
  const auto step = static_cast<std::size_t>(rules_.chunk_blocks);
  for (std::size_t i = step; i <= keys.size(); i += step) chunks.push_back(keys[i - 1]);
  if (other_) return std::max(hit, other_->leading(chunks) * rules_.chunk_blocks);
  const std::int64_t first = hit / rules_.chunk_blocks;
  if (first >= std::ssize(chunks)) return hit;
  std::int64_t end = first;
  CachedPrefix found;
  for_each_run(chunks, found, [&end](const Stretch& run) {
    if (run.begin <= end) end = std::max(end, run.end());
  });
  for (std::size_t g = 0; g < groups_; ++g) end = first + window(g, chunks, first, end).chunks;
  return std::max(hit, end * rules_.chunk_blocks);
}

std::uint32_t KvTiers::open_copy(TierCopy::Direction direction) {
  std::uint32_t id = 0;
  if (copies_.unused.empty()) {
    id = static_cast<std::uint32_t>(copies_.all.size());
    copies_.all.emplace_back();
  } else {
    id = copies_.unused.back();
    copies_.unused.pop_back();
  }
  copies_.all[id].direction = direction;
  ++copies_.open;
  forget();
  return id;
}

KvTiers::Part& KvTiers::add_part(Copy& copy, SequenceSlot s) {
  copy.parts.push_back({.slot = s, .owner = sequences_[s].tier.id, .chunks = {}});
  return copy.parts.back();
}

void KvTiers::load(SequenceSlot s, std::span<const BlockKey> keys, std::int64_t window_first) {
  Sequence& q = sequences_[s];
  const Chunks chunks = chunk_keys(keys);
  if (other_) {
    other_->load(s, chunks, q.registered, to_start_);
    return;
  }
  const std::int64_t first = asked_.first, end = asked_.end;
  const bool scanned = asked_.scanned_last;
  const std::uint32_t id = open_copy(TierCopy::Direction::kToGpu);
  Copy& copy = copies_.all[id];
  if (!scanned) scan(chunks.first(static_cast<std::size_t>(end)));
  cut_stretches_at(first);
  pool_->take_hits(pieces_of(first, end), add_part(copy, s).chunks);
  for (std::size_t g = 0; g < groups_; ++g) {
    window_found_.clear();
    for (std::int64_t i = window_first / rules_.chunk_blocks; i < end; ++i) {
      const BlockKey key = group_key(chunks[static_cast<std::size_t>(i)], g);
      window_found_.pieces.push_back({.run = pool_->find(key), .blocks = 1});
      ++window_found_.blocks;
    }
    pool_->take_hits(window_found_, add_part(copy, s).chunks);
  }
  for (const Part& part : copy.parts) pool_->mark(part.chunks, KvCache::Copy::kRead);
  const std::int64_t last = end * rules_.chunk_blocks;
  const std::int64_t blocks =
      last - q.registered + static_cast<std::int64_t>(groups_) * (last - window_first);
  copy.bytes = static_cast<double>(blocks) * rules_.block_bytes;
  q.tier.stored = end;
  ++counters_.loads;
  counters_.loaded_bytes += copy.bytes;
  to_start_.push_back({.id = id, .direction = copy.direction, .bytes = copy.bytes});
}

// Gives room to the chunks [from, to), which the pool has not, and keeps them from readers. Those
// behind the last key are private.
void KvTiers::write(Part& part, Chunks chunks, std::int64_t from, std::int64_t to) {
  const std::int64_t keyed = std::clamp(std::ssize(chunks), from, to);
  pool_->allocate(to - from, part.chunks);
  pool_->register_keys(part.chunks, chunks.subspan(static_cast<std::size_t>(std::min(from, keyed)),
                                                   static_cast<std::size_t>(keyed - from)));
  if (to > keyed) pool_->register_private(part.chunks, to - keyed);
  pool_->mark(part.chunks, KvCache::Copy::kWrite);
}

// Fills missing_ with the stretches of the scanned chunks [first, end) that the pool has not, and
// present_ with those it has. Returns how many are missing.
std::int64_t KvTiers::find_missing(std::int64_t first, std::int64_t end) {
  cut_stretches_at(first);
  missing_.clear();
  std::int64_t at = first;
  for (const Stretch& there : stretches_) {
    if (there.begin > at) missing_.emplace_back(at, there.begin);
    at = std::max(at, there.end());
  }
  if (at < end) missing_.emplace_back(at, end);
  pieces_of(first, end);
  std::int64_t need = 0;
  for (const auto& [from, to] : missing_) need += to - from;
  return need;
}

// Gives missing_ and `windows` chunks of the pool. What is in present_ is not evicted for them.
void KvTiers::write_missing(Copy& copy, SequenceSlot s, Chunks chunks,
                            const MissingWindows& windows) {
  BlockHolding guard;
  pool_->take_hits(present_, guard);
  for (const auto& [from, to] : missing_) write(add_part(copy, s), chunks, from, to);
  for (std::size_t i = 0; i < windows.size();) {
    Part& part = add_part(copy, s);
    const std::size_t group = windows[i].second;
    for (; i < windows.size() && windows[i].second == group; ++i) {
      pool_->allocate(1, part.chunks);
      pool_->register_window(part.chunks, windows[i].first);
    }
    pool_->mark(part.chunks, KvCache::Copy::kWrite);
  }
  pool_->release(guard);
}

// Window chunks from `first` on that the pool has not; appends those it has to present_. A chunk
// counts as there when its last block is.
KvTiers::MissingWindows KvTiers::missing_windows(Chunks chunks, std::int64_t first) {
  MissingWindows missing;
  for (std::size_t g = 0; g < groups_; ++g)
    for (std::int64_t i = first; i < std::ssize(chunks); ++i) {
      const BlockKey key = group_key(chunks[static_cast<std::size_t>(i)], g);
      const RunIndex r = pool_->find(key);
      if (r == 0) {
        missing.emplace_back(key, g);
      } else {
        present_.pieces.push_back({.run = r, .blocks = 1});
        ++present_.blocks;
      }
    }
  return missing;
}

// A group with a window has blocks from Sequence::window_first on only; of the answer it had all of
// them, one after the other.
std::int64_t KvTiers::first_window_chunk(const Sequence& q) const {
  const std::int64_t answer = q.request.prompt_tokens / (rules_.chunk_blocks * block_size_);
  return std::max(q.tier.stored, std::min(answer, q.window_first / rules_.chunk_blocks));
}

bool KvTiers::store(SequenceSlot s, std::span<const BlockKey> keys, std::int64_t blocks) {
  Sequence& q = sequences_[s];
  const std::int64_t end = blocks / rules_.chunk_blocks;
  if (end <= q.tier.stored) return true;
  const Chunks all = chunk_keys(keys);
  if (other_) {
    other_->store(s, all, end);
    return true;
  }
  const Chunks chunks = all.first(static_cast<std::size_t>(std::min(end, std::ssize(all))));
  scan(chunks);
  std::int64_t need = find_missing(q.tier.stored, end);
  const MissingWindows windows = missing_windows(chunks, first_window_chunk(q));
  need += std::ssize(windows);
  if (need == 0) {
    q.tier.stored = end;
    return true;
  }
  if (need > pool_->free_blocks() - pool_->count_unreferenced(present_)) {
    ++counters_.refused_stores;
    return false;
  }
  if (pass_copy_ < 0) pass_copy_ = open_copy(TierCopy::Direction::kToHost);
  Copy& copy = copies_.all[static_cast<std::size_t>(pass_copy_)];
  const std::int64_t evictions = pool_->evictions();
  write_missing(copy, s, chunks, windows);
  q.tier.stored = end;
  ++q.tier.storing;
  const double bytes = static_cast<double>(need * rules_.chunk_blocks) * rules_.block_bytes;
  copy.bytes += bytes;
  counters_.stored_chunks += need;
  counters_.stored_bytes += bytes;
  counters_.evicted_chunks += pool_->evictions() - evictions;
  // Until v0.20 vLLM touches what is stored or was, since then all the request's chunks.
  const Chunks touched = rules_.settles_at_request_end ? chunks : all;
  // New chunks have a copy and are not touched, so the last scan will do unless some of it was
  // evicted.
  if (touched.size() != chunks.size() || !still_there()) scan(touched);
  touch(touched, q.tier.hit - window_chunks_);
  return true;
}

std::int64_t KvTiers::close_pass() {
  return other_ ? other_->close_pass() : std::exchange(pass_copy_, -1);
}

void KvTiers::store_answer(SequenceSlot s, std::span<const BlockKey> keys, std::int64_t blocks) {
  if (rules_.prompt_only) return;
  store(s, keys, blocks);
  if (const std::int64_t copy = close_pass(); copy >= 0) submit(copy);
}

void KvTiers::submit(std::int64_t id) {
  if (other_) return other_->end_step(id, sink_, to_start_);
  const Copy& copy = copies_.all[static_cast<std::size_t>(id)];
  to_start_.push_back(
      {.id = static_cast<std::uint32_t>(id), .direction = copy.direction, .bytes = copy.bytes});
}

void KvTiers::copy_done(std::uint32_t id, std::vector<SequenceSlot>& ready) {
  if (other_) return other_->copy_done(id, sink_, ready);
  forget();
  Copy& copy = copies_.all[id];
  const bool load = copy.direction == TierCopy::Direction::kToGpu;
  SequenceSlot last = ~SequenceSlot{0};
  std::vector<BlockHolding> stored;  // By one request.
  for (Part& part : copy.parts) {
    if (part.slot != last) write_to_disk(stored);
    Sequence& q = sequences_[part.slot];
    const bool there = q.tier.id == part.owner;
    if (there && part.slot != last) {
      if (!load) --q.tier.storing;
      if (load || (q.tier.settles && q.tier.storing == 0)) ready.push_back(part.slot);
    }
    last = part.slot;
    if (!load && there && rules_.settles_at_request_end && !q.tier.settles) {
      q.tier.unsettled.push_back(std::move(part.chunks));
      continue;
    }
    if (load) {
      pool_->mark(part.chunks, KvCache::Copy::kNone);
      pool_->release(part.chunks);
    } else if (has_disk()) {
      announce(part.chunks);
      stored.push_back(std::move(part.chunks));
    } else {
      make_readable(part.chunks);
    }
  }
  write_to_disk(stored);
  copy.parts.clear();
  copy.bytes = 0;
  copies_.unused.push_back(id);
  --copies_.open;
}

// Chunks that have come from the GPU go on to files, all of a request and step in one job, and stay
// in host memory until they are there (v1/kv_offload/tiering/manager.py, complete_store).
void KvTiers::write_to_disk(std::vector<BlockHolding>& chunks) {
  if (chunks.empty()) return;
  constexpr std::uint32_t kWrites = 0x8000'0000;  // Pulls have smaller numbers.
  auto made = std::make_unique<KvPull>();
  made->id = kWrites | static_cast<std::uint32_t>(counters_.disk_writes++);
  made->disk = true;
  for (const BlockHolding& some : chunks)
    pool_->for_each_key_run(some, [&](std::span<const BlockKey> keys) {
      made->chunks.insert(made->chunks.end(), keys.begin(), keys.end());
    });
  made->bytes = static_cast<double>(made->chunks.size()) * chunk_bytes();
  serving_[made->id] = std::exchange(chunks, {});
  KvPull* const write = made.get();
  messages_.push_back({.kind = PullMessage::Kind::kWrite, .pull = write, .made = std::move(made)});
}

bool KvTiers::pull(SequenceSlot s, std::span<const BlockKey> keys, SimTime now) {
  Sequence& q = sequences_[s];
  switch (q.tier.pull) {
    case PullState::kSettled:
      return false;
    case PullState::kAsked:
      return true;
    case PullState::kAnswered:
      if (make_room(*q.tier.answer)) {
        q.tier.pull = PullState::kAsked;
        return true;
      }
      send(PullMessage::Kind::kDrop, *q.tier.answer);
      end_wait(*q.tier.answer, now);
      return false;
    case PullState::kNone:
      break;
  }
  const Chunks chunks = chunk_keys(keys);
  const std::int64_t first = asked_.found.blocks > 0 ? asked_.end : asked_.first;
  // The chunks of a private answer count, too, though nobody has them.
  if (first >= q.target / (rules_.chunk_blocks * block_size_)) {
    q.tier.pull = PullState::kSettled;
    return false;
  }
  auto made = std::make_unique<KvPull>();
  made->handle = q.request.handle;
  made->slot = s;
  made->owner = q.tier.id;
  made->asked = now;
  made->chunks.assign(chunks.begin(), chunks.end());
  made->first = first;
  // The tiers behind host memory are asked in turn.
  made->disk = !q.request.pulls || q.tier.peer_asked;
  KvPull* const pull = made.get();
  messages_.push_back({.kind = PullMessage::Kind::kAsk, .pull = pull, .made = std::move(made)});
  q.tier.pull = PullState::kAsked;
  if (pull->disk) {
    ++counters_.disk_lookups;
    ++copies_.disk_lookups;
  } else {
    ++counters_.pulls;
  }
  return true;
}

// Chunks that came meanwhile are not fetched again. False when there is no room, or nothing to
// fetch.
bool KvTiers::make_room(KvPull& pull) {
  const std::int64_t end = pull.first + pull.found;
  const Chunks chunks = Chunks(pull.chunks).first(static_cast<std::size_t>(end));
  scan(chunks);
  std::int64_t need = find_missing(pull.first, end);
  const MissingWindows windows =
      missing_windows(chunks, std::max(pull.first, end - window_chunks_));
  need += std::ssize(windows);
  if (need == 0 || need > pool_->free_blocks() - pool_->count_unreferenced(present_)) return false;
  const std::uint32_t id = open_copy(TierCopy::Direction::kFromPeer);
  Copy& copy = copies_.all[id];
  const std::int64_t evictions = pool_->evictions();
  write_missing(copy, pull.slot, chunks, windows);
  counters_.evicted_chunks += pool_->evictions() - evictions;
  pull.copy = id;
  pull.bytes = static_cast<double>(need * rules_.chunk_blocks) * rules_.block_bytes;
  copy.bytes = pull.bytes;
  send(PullMessage::Kind::kFetch, pull);
  return true;
}

void KvTiers::pull_answered(KvPull& pull, SimTime now) {
  Sequence& q = sequences_[pull.slot];
  if (pull.disk) --copies_.disk_lookups;
  if (q.tier.id != pull.owner) {
    send(PullMessage::Kind::kDrop, pull);
    return;
  }
  if (pull.found == 0) {
    end_wait(pull, now);
    return;
  }
  q.tier.pull = PullState::kAnswered;
  q.tier.answer = &pull;
}

// True when the sequence that asked is still there.
bool KvTiers::end_wait(const KvPull& pull, SimTime now) {
  Sequence& q = sequences_[pull.slot];
  if (q.tier.id != pull.owner) return false;
  const bool last = pull.disk || !has_disk();
  q.tier.peer_asked = true;
  q.tier.pull = last ? PullState::kSettled : PullState::kNone;
  (pull.disk ? counters_.disk_waits : counters_.pull_waits).add(now - pull.asked);
  return true;
}

bool KvTiers::end_pull(const KvPull& pull, SimTime now) {
  forget();
  Copy& copy = copies_.all[pull.copy];
  copy.parts.clear();
  copy.bytes = 0;
  copies_.unused.push_back(pull.copy);
  --copies_.open;
  return end_wait(pull, now);
}

bool KvTiers::pull_arrived(const KvPull& pull, SimTime now) {
  for (Part& part : copies_.all[pull.copy].parts) make_readable(part.chunks);
  (pull.disk ? counters_.disk_reads : counters_.pulls_arrived) += 1;
  (pull.disk ? counters_.disk_read_bytes : counters_.pulled_bytes) += pull.bytes;
  return end_pull(pull, now);
}

void KvTiers::pull_failed(const KvPull& pull, SimTime now) {
  ++counters_.pulls_failed;
  if (pull.bytes > 0) {
    for (Part& part : copies_.all[pull.copy].parts) pool_->discard(part.chunks);
    end_pull(pull, now);
    return;
  }
  end_wait(pull, now);
}

void KvTiers::serve(KvPull& pull) {
  const Chunks chunks = pull.chunks;
  const std::int64_t first = pull.first;
  pull.found = 0;
  scan(chunks);
  Count has = prefix(first, std::ssize(chunks));
  for (std::size_t g = 0; g < groups_ && !has.pending; ++g)
    has = window(g, chunks, first, first + has.chunks);
  if (has.pending) {
    pull.found = kAskAgain;
    return;
  }
  if (has.chunks == 0) return;
  pull.found = has.chunks;
  const std::int64_t end = first + has.chunks;
  std::vector<BlockHolding>& kept = serving_[pull.id];
  cut_stretches_at(first);
  pool_->take_hits(pieces_of(first, end), kept.emplace_back());
  for (std::size_t g = 0; g < groups_; ++g) {
    window_found_.clear();
    for (std::int64_t i = std::max(first, end - window_chunks_); i < end; ++i) {
      const BlockKey key = group_key(chunks[static_cast<std::size_t>(i)], g);
      window_found_.pieces.push_back({.run = pool_->find(key), .blocks = 1});
      ++window_found_.blocks;
    }
    pool_->take_hits(window_found_, kept.emplace_back());
  }
}

void KvTiers::end_serving(const KvPull& pull) {
  const auto kept = serving_.find(pull.id);
  if (kept == serving_.end()) return;
  forget();
  for (BlockHolding& chunks : kept->second) pool_->release(chunks);
  serving_.erase(kept);
}

void KvTiers::sent(KvPull& pull) {
  ++counters_.pulls_served;
  end_serving(pull);
  send(PullMessage::Kind::kDone, pull);
}

void KvTiers::announce(BlockHolding& chunks) {
  pool_->mark(chunks, KvCache::Copy::kNone);
  if (sink_ == nullptr) return;
  pool_->for_each_key_run(chunks,
                          [this](std::span<const BlockKey> keys) { sink_->stored_in_tier(keys); });
}

void KvTiers::make_readable(BlockHolding& chunks) {
  announce(chunks);
  pool_->release(chunks);
}

void KvTiers::settle(Sequence& q) {
  if (!q.tier.unsettled.empty()) forget();
  for (BlockHolding& chunks : q.tier.unsettled) make_readable(chunks);
  q.tier.unsettled.clear();
}

bool KvTiers::pulling() const {
  const std::vector<Sequence>& all = sequences_.all();
  return std::any_of(all.begin(), all.end(), [](const Sequence& q) {
    return q.tier.pull == PullState::kAsked || q.tier.pull == PullState::kAnswered;
  });
}

std::int64_t KvTiers::chunks() const {
  if (other_) return other_->chunks();
  return in_use() ? pool_->keyed_blocks() : 0;
}

void KvTiers::set_sink(TierEventSink* sink) {
  if (!in_use()) return;
  sink_ = sink;
  if (other_) return;
  pool_->set_sink(sink == nullptr ? nullptr : this);
}

void KvTiers::verify() const {
  if (other_) other_->verify();
  if (!pool_) return;
  pool_->verify();
  std::vector<const BlockHolding*> holdings;
  for (const Copy& copy : copies_.all)
    for (const Part& part : copy.parts) holdings.push_back(&part.chunks);
  for (const auto& [pull, kept] : serving_)
    for (const BlockHolding& chunks : kept) holdings.push_back(&chunks);
  for (const Sequence& q : sequences_.all())
    for (const BlockHolding& chunks : q.tier.unsettled) holdings.push_back(&chunks);
  pool_->verify_holdings(holdings);
}

}  // namespace routesim::sim
