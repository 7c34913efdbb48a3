// Prompts as routers hash them: their bytes, their blocks, and the store of who was sent which
// block, which routers keep that learn prefixes from their own decisions.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/text.h"
#include "base/units.h"
#include "policies/balancers/kit/prompt_text.h"
#include "policies/index/holder_sets.h"
#include "policies/index/slot_table.h"

namespace routesim::policies {

/// The first characters of a text in UTF-8. A simulated text has no characters: it gets a name of
/// more than 100 bytes, which two texts share exactly when they begin alike.
inline std::string text_name(const PromptText& text, std::int64_t characters = 1LL << 50) {
  std::string name;
  bool real = true;
  std::uint64_t hash = 0;
  auto left = static_cast<std::int64_t>(
      std::ceil(static_cast<double>(characters) / text.characters_per_unit));
  for (const TextRun& r : text.runs) {
    const std::int64_t length = std::min(r.length, left);
    if (length <= 0) break;
    left -= length;
    real = real && r.length == 1 && r.offset == 0 && r.content < 0x110000;
    const int tails = r.content < 0x80 ? 0 : r.content < 0x800 ? 1 : r.content < 0x10000 ? 2 : 3;
    constexpr std::array<int, 4> kLead = {0, 0xc0, 0xe0, 0xf0};
    for (int t = tails; real && t >= 0; --t) {
      const auto bits = static_cast<int>(r.content >> (6 * t));
      name += static_cast<char>(t == tails ? kLead[tails] | bits : 0x80 | (bits & 0x3f));
    }
    hash = mix64(mix64(mix64(hash, r.content), static_cast<std::uint64_t>(r.offset)),
                 static_cast<std::uint64_t>(length));
  }
  return real ? name : "simulated " + hex_digits(hash) + std::string(100, '.');
}

/// Units of text that stand for a block of `characters` characters; at least one.
inline std::int64_t block_units(const PromptText& text, std::int64_t characters) {
  const double units = static_cast<double>(characters) / text.characters_per_unit;
  return std::max<std::int64_t>(1, std::llround(units));
}

/// Hashes of the blocks of a text. Each covers the text before it, too, so equal hashes mean equal
/// prefixes. Which hash a product uses decides nothing. O(runs + blocks).
class TextBlocks {
 public:
  /// A last block below `units` counts only with `keep_tail`. Valid until the next call.
  std::span<const std::uint64_t> cut(const PromptText& text, std::int64_t units, bool keep_tail) {
    hashes_.clear();
    hash_ = 0;
    piece_ = {};
    std::int64_t room = units;
    for (const TextRun& run : text.runs) {
      for (std::int64_t at = 0; at < run.length;) {
        const std::int64_t n = std::min(room, run.length - at);
        take({.content = run.content, .offset = run.offset + at, .length = n});
        at += n;
        room -= n;
        if (room > 0) continue;
        end_block();
        room = units;
      }
    }
    if (keep_tail && room < units) end_block();
    return hashes_;
  }

 private:
  /// Runs that continue each other count as one, so that it does not matter how a text was split.
  void take(const TextRun& next) {
    if (next.content == piece_.content && next.offset == piece_.offset + piece_.length) {
      piece_.length += next.length;
      return;
    }
    end_piece();
    piece_ = next;
  }
  void end_piece() {
    if (piece_.length == 0) return;
    hash_ = mix64(hash_, mix64(piece_.content, mix64(static_cast<std::uint64_t>(piece_.offset),
                                                     static_cast<std::uint64_t>(piece_.length))));
  }
  void end_block() {
    end_piece();
    piece_ = {};
    hash_ = mix64(hash_);
    hashes_.push_back(hash_);
  }

  std::vector<std::uint64_t> hashes_;
  std::uint64_t hash_ = 0;
  TextRun piece_;
};

/// The blocks sent to each server. Writing a block makes it the newest; the oldest leaves first.
class BlockStore {
 public:
  struct Match {
    std::uint32_t server;
    std::uint32_t blocks;  ///< Blocks from the first on that it has without a gap; at least 1.
  };

  /// Keeps at most `capacity` blocks.
  explicit BlockStore(std::size_t capacity) : capacity_(capacity) {}

  /// Servers that have the first block, until the next call. O(blocks + changes of holders).
  std::span<const Match> match(std::span<const std::uint64_t> blocks) {
    matches_.clear();
    alive_.clear();
    SetId set = 0;
    std::uint32_t length = 0;
    std::uint32_t at = kNoSlot;
    for (const std::uint64_t block : blocks) {
      at = find(block, at);
      if (at == kNoSlot) break;
      if (entries_[at].set != set) {
        narrow(length, set == 0, sets_.rows(entries_[at].set));
        set = entries_[at].set;
        if (alive_.empty()) break;
      }
      ++length;
    }
    for (const std::uint32_t server : alive_) matches_.push_back({server, length});
    return matches_;
  }

  void add(std::span<const std::uint64_t> blocks, std::uint32_t server, SimTime now) {
    std::uint32_t at = kNoSlot;
    std::optional<SetId> from;  // Neighbours mostly have the same holders.
    SetId to = 0;
    for (const std::uint64_t block : blocks) {
      at = find_or_insert(block, at);
      const SetId old = entries_[at].set;
      if (old != from) {
        from = old;
        to = sets_.with(old, server).set;
      }
      if (to != old) {
        sets_.acquire(to);
        if (old != 0) sets_.release(old);
        entries_[at].set = to;
      }
      entries_[at].written = now;
      if (size() > capacity_) drop_oldest();
    }
  }

  void drop_before(SimTime limit) {
    while (oldest_ != kNoSlot && entries_[oldest_].written < limit) drop_oldest();
  }
  std::size_t size() const { return table_.count(); }

 private:
  struct Entry {
    std::uint64_t key;
    SimTime written;
    SetId set;
    std::uint32_t older, newer;
  };

  friend class SlotTable;
  std::uint64_t key(std::uint32_t at) const { return entries_[at].key; }

  void narrow(std::uint32_t length, bool first, std::span<const Row> holders) {
    if (first) {
      for (const Row row : holders) alive_.push_back(static_cast<std::uint32_t>(row));
      return;
    }
    std::erase_if(alive_, [&](std::uint32_t server) {
      const bool gone = !std::binary_search(holders.begin(), holders.end(), Row{server});
      if (gone) matches_.push_back({server, length});
      return gone;
    });
  }
  /// The entry of a key. Blocks that arrived together mostly lie side by side, so the entry after
  /// that of the previous block is looked at first.
  std::uint32_t find(std::uint64_t key, std::uint32_t previous) const {
    const std::size_t next = std::size_t{previous} + 1;
    if (previous != kNoSlot && next < entries_.size() && entries_[next].key == key &&
        entries_[next].set != 0)
      return static_cast<std::uint32_t>(next);
    return table_.find(*this, key);
  }
  std::uint32_t find_or_insert(std::uint64_t key, std::uint32_t previous) {
    std::uint32_t at = find(key, previous);
    if (at != kNoSlot) {
      unlink(at);
    } else {
      at = take_slot();
      entries_[at] = {.key = key, .written = {}, .set = 0, .older = kNoSlot, .newer = kNoSlot};
      table_.insert(key, at);
    }
    entries_[at].older = newest_;
    entries_[at].newer = kNoSlot;
    (newest_ == kNoSlot ? oldest_ : entries_[newest_].newer) = at;
    newest_ = at;
    return at;
  }
  std::uint32_t take_slot() {
    if (free_.empty()) {
      entries_.emplace_back();
      return static_cast<std::uint32_t>(entries_.size() - 1);
    }
    const std::uint32_t at = free_.front();
    free_.pop_front();
    return at;
  }
  void unlink(std::uint32_t at) {
    const Entry& e = entries_[at];
    (e.older == kNoSlot ? oldest_ : entries_[e.older].newer) = e.newer;
    (e.newer == kNoSlot ? newest_ : entries_[e.newer].older) = e.older;
  }
  void drop_oldest() {
    const std::uint32_t at = oldest_;
    unlink(at);
    sets_.release(entries_[at].set);
    table_.erase(entries_[at].key, at);
    entries_[at].set = 0;
    free_.push_back(at);
  }

  std::size_t capacity_;
  HolderSets sets_{1, RowOrder::kSorted};
  std::vector<Entry> entries_;
  std::deque<std::uint32_t> free_;  ///< In the order of leaving, which is mostly ascending.
  SlotTable table_;
  std::uint32_t oldest_ = kNoSlot, newest_ = kNoSlot;
  std::vector<Match> matches_;
  std::vector<std::uint32_t> alive_;
};

}  // namespace routesim::policies
