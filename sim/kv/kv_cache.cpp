#include "sim/kv/kv_cache.h"

#include <algorithm>
#include <bit>
#include <string>

#include "base/check.h"

namespace routesim::sim {

namespace {

constexpr std::size_t kSmallestTable = 64;
/// Further down the free queue runs have left the processor's caches.
constexpr int kRunsToLookAt = 3;

std::uint32_t tag_of(BlockKey key) { return static_cast<std::uint32_t>(key); }

}  // namespace

KvCache::KvCache(std::int64_t num_blocks, std::int64_t block_size, FreeQueue mode)
    : num_blocks_(num_blocks), block_size_(block_size), mode_(mode), runs_(1) {
  ROUTESIM_CHECK(num_blocks >= 2, "a KV cache needs a null block and a usable one");
  ROUTESIM_CHECK(num_blocks < (std::int64_t{1} << 31), "too many KV blocks");
  table_.resize(kSmallestTable);
  shift_ = 64 - std::countr_zero(kSmallestTable);
  free_blank(num_blocks - 1);
}

// ---- Runs ---------------------------------------------------------------------------------------

RunIndex KvCache::new_run(Kind kind, std::int64_t blocks) {
  RunIndex r = 0;
  if (unused_runs_.empty()) {
    r = static_cast<RunIndex>(runs_.size());
    runs_.emplace_back();
  } else {
    r = unused_runs_.back();
    unused_runs_.pop_back();
  }
  Run& run = at(r);
  run.kind = kind;
  run.blocks = static_cast<std::int32_t>(blocks);
  return r;
}

// A run without blocks, in no list any more. Its vector keeps its memory for the next user.
void KvCache::retire(RunIndex r) {
  Run& run = at(r);
  run.keys.clear();
  run.blocks = run.references = 0;
  run.rest = run.same_key = 0;
  run.kind = Kind::kUnused;
  run.copy = Copy::kNone;
  run.twin = run.window = false;
  ++run.stamp;
  unused_runs_.push_back(r);
}

void KvCache::unlink(RunIndex r) {
  Run& run = at(r);
  at(run.previous).next = run.next;
  at(run.next).previous = run.previous;
}

void KvCache::link_before(RunIndex r, RunIndex before) {
  Run& run = at(r);
  run.previous = at(before).previous;
  run.next = before;
  at(run.previous).next = r;
  at(before).previous = r;
}

RunIndex KvCache::split(RunIndex r, std::int64_t blocks) {
  ROUTESIM_DCHECK(blocks > 0 && blocks < at(r).blocks, "nothing to split");
  const RunIndex rest = new_run(at(r).kind, at(r).blocks - blocks);
  Run& first = at(r);
  Run& second = at(rest);
  first.blocks = static_cast<std::int32_t>(blocks);
  second.references = first.references;
  second.copy = first.copy;
  second.rest = first.rest;
  first.rest = rest;
  if (first.references == 0) link_before(rest, r);
  if (first.kind == Kind::kPublic) {
    second.keys.assign(first.keys.begin() + blocks, first.keys.end());
    first.keys.resize(static_cast<std::size_t>(blocks));
    second.first_key = second.keys.front();
    insert_in_table(rest);
  }
  ++version_;
  return rest;
}

RunIndex KvCache::last_run(const BlockHolding& holding) const {
  if (holding.pieces.empty()) return 0;
  const RunPiece last = holding.pieces.back();
  RunIndex r = last.run;
  for (std::int32_t left = last.blocks - at(r).blocks; left > 0; left -= at(r).blocks)
    r = at(r).rest;
  return r;
}

// ---- Table --------------------------------------------------------------------------------------

std::size_t KvCache::find_slot(BlockKey key) const {
  const std::size_t mask = table_.size() - 1;
  std::size_t slot = home(key);
  const std::uint32_t tag = tag_of(key);
  while (table_[slot].run != 0 &&
         (table_[slot].tag != tag || at(table_[slot].run).first_key != key))
    slot = (slot + 1) & mask;
  return slot;
}

// The first key must not be in the table.
void KvCache::insert_in_table(RunIndex r) {
  if ((table_used_ + 1) * 4 > table_.size()) grow_table();
  const std::size_t slot = find_slot(at(r).first_key);
  ROUTESIM_DCHECK(table_[slot].run == 0, "a run was to be found already");
  table_[slot] = {.run = r, .tag = tag_of(at(r).first_key)};
  ++table_used_;
}

void KvCache::grow_table() {
  std::vector<TableSlot> old = std::move(table_);
  table_.assign(old.size() * 2, {});
  shift_ = 64 - std::countr_zero(table_.size());
  for (const TableSlot& s : old)
    if (s.run != 0) table_[find_slot(at(s.run).first_key)] = s;
}

// Takes one run out, whether alone under its key or one of several.
void KvCache::erase_from_table(RunIndex r) {
  const std::size_t slot = find_slot(at(r).first_key);
  ROUTESIM_DCHECK(table_[slot].run != 0, "an evicted run is not in the table");
  if (table_[slot].run != r || at(r).same_key != 0) {
    RunIndex* link = &table_[slot].run;
    while (*link != r) link = &at(*link).same_key;
    *link = at(r).same_key;
    const RunIndex first = table_[slot].run;
    if (at(first).same_key == 0) at(first).twin = false;
    return;
  }
  // Backward-shift deletion keeps probe sequences unbroken without tombstones.
  const std::size_t mask = table_.size() - 1;
  std::size_t hole = slot;
  for (std::size_t i = (hole + 1) & mask; table_[i].run != 0; i = (i + 1) & mask) {
    const std::size_t wanted = home(at(table_[i].run).first_key);
    if (((i - wanted) & mask) >= ((i - hole) & mask)) {
      table_[hole] = table_[i];
      hole = i;
    }
  }
  table_[hole] = {};
  --table_used_;
}

// ---- Reading ------------------------------------------------------------------------------------

std::int64_t KvCache::lookup(std::span<const BlockKey> keys, CachedPrefix& hits) const {
  hits.clear();
  while (!keys.empty()) {
    const RunIndex r = find(keys.front());
    if (r == 0) break;
    const std::span<const BlockKey> held = at(r).keys;
    std::size_t n = std::min(held.size(), keys.size());
    if (held[n - 1] != keys[n - 1]) {
      const auto differs = [&](std::size_t i) { return held[i] != keys[i]; };
      std::size_t equal = 1, unequal = n - 1;
      while (equal < unequal) {
        const std::size_t middle = (equal + unequal) / 2;
        differs(middle) ? void(unequal = middle) : void(equal = middle + 1);
      }
      n = equal;
    }
    hits.pieces.push_back({.run = r, .blocks = static_cast<std::int32_t>(n)});
    hits.blocks += static_cast<std::int64_t>(n);
    keys = keys.subspan(n);
  }
  return hits.blocks;
}

std::int64_t KvCache::count_unreferenced(const CachedPrefix& hits) const {
  std::int64_t n = 0;
  for (const RunPiece& p : hits.pieces) n += at(p.run).references == 0 ? p.blocks : 0;
  return n;
}

bool KvCache::has_free_twin(const CachedPrefix& hits) const {
  return std::any_of(hits.pieces.begin(), hits.pieces.end(), [this](const RunPiece& p) {
    return at(p.run).references == 0 && at(p.run).twin;
  });
}

// ---- Changing -----------------------------------------------------------------------------------

void KvCache::take_hits(const CachedPrefix& hits, BlockHolding& holding) {
  ROUTESIM_DCHECK(holding.blocks == 0, "hits come first");
  for (const RunPiece& p : hits.pieces) {
    if (p.blocks < at(p.run).blocks) split(p.run, p.blocks);
    Run& run = at(p.run);
    if (run.references++ == 0) {
      unlink(p.run);
      free_count_ -= run.blocks;
    } else if (!run.window) {
      extra_references_ += run.blocks;
      if (run.references == 2) shared_blocks_ += run.blocks;
    }
  }
  holding.pieces = hits.pieces;
  holding.blocks = hits.blocks;
}

void KvCache::touch(const CachedPrefix& hits) {
  for (std::size_t i = hits.pieces.size(); i-- > 0;) {
    const RunPiece& p = hits.pieces[i];
    if (at(p.run).references > 0) continue;
    if (p.blocks < at(p.run).blocks) split(p.run, p.blocks);
    unlink(p.run);
    link_before(p.run, 0);
  }
}

void KvCache::mark(const BlockHolding& holding, Copy copy) {
  for (const RunPiece& piece : holding.pieces) {
    RunIndex r = piece.run;
    for (std::int32_t left = piece.blocks; left > 0; r = at(r).rest) {
      at(r).copy = copy;
      left -= at(r).blocks;
    }
  }
}

// Evicts the last `n` blocks of the run at the head of the free queue.
void KvCache::eat(RunIndex r, std::int64_t n) {
  Run& run = at(r);
  if (run.kind != Kind::kBlank) evictions_ += n;
  if (run.kind == Kind::kPublic) {
    ++version_;
    const std::size_t left = run.keys.size() - static_cast<std::size_t>(n);
    // vLLM announces every removed block. Routers without duplicate counting forget the key
    // although a twin may survive; the sink decides what to make of it, so it hears every removal.
    if (sink_ != nullptr && !run.window) sink_->removed(std::span(run.keys).subspan(left));
    run.keys.resize(left);
  }
  run.blocks -= static_cast<std::int32_t>(n);
  if (run.blocks > 0) return;
  unlink(r);
  if (run.kind == Kind::kPublic) erase_from_table(r);
  retire(r);
}

std::int64_t KvCache::blocks_before_known(std::int64_t enough) const {
  std::int64_t n = 0;
  RunIndex r = at(0).next;
  for (int i = 0; i < kRunsToLookAt && n < enough && r != 0; ++i, r = at(r).next) {
    if (at(r).kind == Kind::kPublic) break;
    n += at(r).blocks;
  }
  return n;
}

void KvCache::pop(std::int64_t n) {
  ROUTESIM_DCHECK(free_count_ >= 0, "allocation beyond the free queue");
  while (n > 0) {
    const RunIndex head = at(0).next;
    const std::int64_t bite = std::min<std::int64_t>(n, at(head).blocks);
    eat(head, bite);
    n -= bite;
  }
}

void KvCache::register_keys(BlockHolding& holding, std::span<const BlockKey> keys) {
  ROUTESIM_DCHECK(std::ssize(keys) <= holding.blank, "more keys than blank blocks");
  ++version_;
  holding.blank -= std::ssize(keys);
  while (!keys.empty()) {
    const auto held =
        std::find_if(keys.begin(), keys.end(), [this](BlockKey key) { return find(key) != 0; });
    const auto n = static_cast<std::size_t>(held - keys.begin());
    if (n > 0) append_to_last_run(holding, keys.first(n));
    if (n == keys.size()) return;
    register_twin(find(keys[n]), keys[n], holding);
    keys = keys.subspan(n + 1);
  }
}

// More blocks under keys nobody has: the last run grows if the holding is the only one to have it.
void KvCache::append_to_last_run(BlockHolding& holding, std::span<const BlockKey> keys) {
  const auto n = static_cast<std::int32_t>(keys.size());
  RunIndex r = last_run(holding);
  if (r == 0 || at(r).kind != Kind::kPublic || at(r).references != 1 || at(r).twin) {
    r = new_run(Kind::kPublic, 0);
    at(r).references = 1;
    at(r).first_key = keys.front();
    insert_in_table(r);
    holding.pieces.push_back({.run = r, .blocks = 0});
  }
  holding.pieces.back().blocks += n;
  at(r).blocks += n;
  at(r).keys.insert(at(r).keys.end(), keys.begin(), keys.end());
}

// One more block under a key that `other` begins with. By rule 3 either gets a run of its own.
void KvCache::register_twin(RunIndex other, BlockKey key, BlockHolding& holding) {
  if (at(other).blocks > 1) split(other, 1);
  const RunIndex r = new_run(Kind::kPublic, 1);
  Run& run = at(r);
  run.references = 1;
  run.first_key = key;
  run.keys.push_back(key);
  run.twin = at(other).twin = true;
  while (at(other).same_key != 0) other = at(other).same_key;
  at(other).same_key = r;
  holding.pieces.push_back({.run = r, .blocks = 1});
}

void KvCache::register_window(BlockHolding& holding, BlockKey key) {
  ROUTESIM_DCHECK(holding.blank > 0, "more keys than blank blocks");
  --holding.blank;
  ++version_;
  if (const RunIndex other = find(key); other != 0) {
    register_twin(other, key, holding);
  } else {
    const RunIndex r = new_run(Kind::kPublic, 1);
    at(r).references = 1;
    at(r).first_key = key;
    at(r).keys.push_back(key);
    insert_in_table(r);
    holding.pieces.push_back({.run = r, .blocks = 1});
  }
  at(holding.pieces.back().run).window = true;
}

void KvCache::release_front(BlockHolding& holding, std::int64_t n) {
  const auto keyed = std::min(n, std::ssize(holding.pieces));
  for (std::int64_t i = keyed; i-- > 0;) {  // The last of them first, as in vLLM.
    const RunPiece piece = holding.pieces[static_cast<std::size_t>(i)];
    Run& run = at(piece.run);
    ROUTESIM_DCHECK(piece.blocks == 1 && run.references > 0, "only single blocks leave in front");
    if (--run.references > 0) continue;
    link_before(piece.run, 0);
    ++free_count_;
  }
  holding.pieces.erase(holding.pieces.begin(), holding.pieces.begin() + keyed);
  holding.blank -= n - keyed;
  holding.blocks -= n;
  free_blank(n - keyed);
}

RunRef KvCache::register_private(BlockHolding& holding, std::int64_t n) {
  ROUTESIM_DCHECK(n > 0 && n <= holding.blank, "more keys than blank blocks");
  const RunIndex r = new_run(Kind::kPrivate, n);
  at(r).references = 1;
  holding.blank -= n;
  holding.pieces.push_back({.run = r, .blocks = static_cast<std::int32_t>(n)});
  return {.run = r, .stamp = at(r).stamp};
}

// Blank blocks to the end of the free queue, or to its head.
void KvCache::free_blank(std::int64_t n) {
  if (n == 0) return;
  free_count_ += n;
  const bool first = mode_ == FreeQueue::kUnhashedFirst;
  const RunIndex neighbour = first ? at(0).next : at(0).previous;
  if (neighbour != 0 && at(neighbour).kind == Kind::kBlank) {
    at(neighbour).blocks += static_cast<std::int32_t>(n);
    return;
  }
  const RunIndex r = new_run(Kind::kBlank, n);
  link_before(r, first ? at(0).next : 0);
}

void KvCache::release(BlockHolding& holding) {
  free_blank(holding.blank);
  for (std::size_t i = holding.pieces.size(); i-- > 0;) {
    const RunPiece piece = holding.pieces[i];
    parts_.clear();
    for (std::int32_t left = piece.blocks; left > 0; left -= at(parts_.back()).blocks)
      parts_.push_back(parts_.empty() ? piece.run : at(parts_.back()).rest);
    for (std::size_t k = parts_.size(); k-- > 0;) {
      Run& run = at(parts_[k]);
      ROUTESIM_DCHECK(run.references > 0, "released a run nobody holds");
      if (--run.references > 0) {
        if (run.window) continue;
        extra_references_ -= run.blocks;
        if (run.references == 1) shared_blocks_ -= run.blocks;
        continue;
      }
      link_before(parts_[k], 0);
      free_count_ += run.blocks;
    }
  }
  holding.pieces.clear();
  holding.blank = holding.blocks = 0;
}

void KvCache::discard(BlockHolding& holding) {
  for (const RunPiece& piece : holding.pieces) {
    RunIndex r = piece.run;
    for (std::int32_t left = piece.blocks; left > 0;) {
      ROUTESIM_CHECK(at(r).references == 1, "discarded a block that somebody else holds");
      const std::int32_t blocks = at(r).blocks;
      const RunIndex rest = at(r).rest;
      if (at(r).kind == Kind::kPublic) erase_from_table(r);
      retire(r);
      free_blank(blocks);
      left -= blocks;
      r = rest;
    }
  }
  free_blank(holding.blank);
  ++version_;
  holding.pieces.clear();
  holding.blank = holding.blocks = 0;
}

bool KvCache::reset() {
  if (free_count_ != usable_blocks()) return false;
  std::fill(table_.begin(), table_.end(), TableSlot{});
  table_used_ = 0;
  while (at(0).next != 0) {
    const RunIndex r = at(0).next;
    unlink(r);
    retire(r);
  }
  free_count_ = 0;
  free_blank(usable_blocks());
  ++version_;
  return true;
}

// ---- Checks -------------------------------------------------------------------------------------

std::vector<BlockKey> KvCache::free_queue() const {
  std::vector<BlockKey> out;
  for (RunIndex r = at(0).next; r != 0; r = at(r).next)
    for (std::int32_t i = at(r).blocks; i-- > 0;)
      out.push_back(at(r).kind == Kind::kPublic ? at(r).keys[static_cast<std::size_t>(i)] : 0);
  return out;
}

std::int64_t KvCache::count(Kind kind) const {
  std::int64_t n = 0;
  for (const Run& run : runs_) n += run.kind == kind ? run.blocks : 0;
  return n;
}

void KvCache::verify() const {
  std::int64_t free_seen = 0;
  for (RunIndex r = at(0).next; r != 0; r = at(r).next) {
    ROUTESIM_CHECK(at(r).references == 0, "a free block is referenced");
    ROUTESIM_CHECK(at(r).blocks > 0, "an empty run stands in the free queue");
    free_seen += at(r).blocks;
    ROUTESIM_CHECK(free_seen <= usable_blocks(), "the free queue has a cycle");
  }
  ROUTESIM_CHECK(free_seen == free_count_, "free queue length " + std::to_string(free_seen) +
                                               " differs from the count " +
                                               std::to_string(free_count_));
  std::int64_t extra = 0, shared = 0, unreferenced = 0, findable = 0;
  for (std::size_t i = 1; i < runs_.size(); ++i) {
    const Run& run = runs_[i];
    if (run.kind == Kind::kUnused) continue;
    ROUTESIM_CHECK(run.references >= 0, "negative reference count");
    if (run.references == 0) unreferenced += run.blocks;
    if (run.references > 1 && !run.window) {
      extra += std::int64_t{run.blocks} * (run.references - 1);
      shared += run.blocks;
    }
    if (run.kind != Kind::kPublic) continue;
    ++findable;
    ROUTESIM_CHECK(std::ssize(run.keys) == run.blocks && run.keys.front() == run.first_key,
                   "the keys of a run are not one per block");
    ROUTESIM_CHECK(!run.twin || run.blocks == 1, "a key held twice stands in a longer run");
    bool found = false;
    for (RunIndex r = find(run.first_key); r != 0; r = at(r).same_key) {
      found = found || r == static_cast<RunIndex>(i);
      ROUTESIM_CHECK(at(r).kind == Kind::kPublic && at(r).first_key == run.first_key,
                     "a lookup could return a block that was evicted");
    }
    ROUTESIM_CHECK(found, "a keyed block cannot be found under its key");
    for (std::size_t k = 1; k < run.keys.size(); ++k)
      ROUTESIM_CHECK(find(run.keys[k]) == 0, "a key held twice is inside a run");
  }
  ROUTESIM_CHECK(unreferenced == free_count_, "an unreferenced block is not in the free queue");
  ROUTESIM_CHECK(extra == extra_references_ && shared == shared_blocks_,
                 "shared-reference count drifted");
  ROUTESIM_CHECK(findable >= static_cast<std::int64_t>(table_used_), "the table holds dead keys");
}

void KvCache::verify_holdings(std::span<const BlockHolding* const> holdings,
                              std::int64_t unassigned) const {
  std::vector<std::int32_t> holders(runs_.size());
  std::int64_t held = unassigned;
  for (const BlockHolding* h : holdings) {
    std::int64_t blocks = h->blank;
    for (const RunPiece& p : h->pieces) {
      RunIndex r = p.run;
      for (std::int32_t left = p.blocks; left > 0; r = at(r).rest) {
        ++holders[static_cast<std::size_t>(r)];
        left -= at(r).blocks;
        ROUTESIM_CHECK(left >= 0 && at(r).blocks > 0, "a holding does not end where a run does");
      }
      blocks += p.blocks;
    }
    ROUTESIM_CHECK(blocks == h->blocks, "a holding has lost count of its blocks");
    held += blocks;
  }
  for (std::size_t i = 1; i < runs_.size(); ++i)
    ROUTESIM_CHECK(runs_[i].references == holders[i],
                   "a block's reference count is not the number of its holders");
  std::int64_t extra = extra_references_;
  for (const Run& run : runs_)
    if (run.window && run.references > 1) extra += run.references - 1;
  ROUTESIM_CHECK(held - extra == used_blocks(), "blocks are not conserved");
}

}  // namespace routesim::sim
