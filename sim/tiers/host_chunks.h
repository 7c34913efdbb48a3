// The chunks in the host memory of one engine core.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/kv/kv_cache.h"
#include "sim/tiers/kv_tiers.h"

namespace routesim::sim {

/// Owns the host memory of an engine core as vLLM's OffloadingConnector keeps it: an LRU pool of
/// chunks, each found by the key of its last block, with one set of chunks per group of layers.
/// Finds the chunks of a sequence, gives room to others, and keeps both from being evicted. Chunks
/// are kept as runs (KvCache), so a call costs by the run, not by the chunk; groups with a window
/// cost by the chunk. Calls that name chunks by number mean those scanned last.
class HostChunks final : private KvEventSink {
 public:
  using Chunks = std::span<const BlockKey>;
  using Holdings = std::vector<BlockHolding>;
  explicit HostChunks(const EngineRules& rules);

  /// Finds what there is of `chunks`.
  void scan(Chunks chunks);
  /// Number of the last scan.
  std::uint64_t scans() const { return scans_; }
  /// The tokens that can be loaded behind `computed` ones; nothing while that is not certain.
  std::optional<std::int64_t> find_tokens(Chunks chunks, std::int64_t computed,
                                          std::int64_t tokens) const;
  /// Another request loads some chunk that a load of [first, end) reads.
  bool being_read(Chunks chunks, std::int64_t first, std::int64_t end) const;
  /// Makes the chunks the youngest, the first one youngest of all; those of groups with a window
  /// only as far as a hit of `hit` chunks needs them. Scans again where chunks were evicted.
  void touch(Chunks chunks, std::int64_t hit);
  /// How many chunks a reader finds from `first` on; nothing while some of them are being written.
  std::optional<std::int64_t> readable_from(Chunks chunks, std::int64_t first);
  /// The end of those that are there from `first` on, being written or not. Changes nothing.
  std::int64_t held_until(Chunks chunks, std::int64_t first) const;

  /// Chunks that are missing from [first, end), those of groups with a window from `window_first`
  /// on included.
  std::int64_t find_missing(Chunks chunks, std::int64_t first, std::int64_t end,
                            std::int64_t window_first);
  /// Others can make room for so many, without those that find_missing() found there.
  bool has_room(std::int64_t missing) const {
    return missing <= pool_.free_blocks() - pool_.count_unreferenced(present_);
  }
  /// Gives the chunks that find_missing() missed room, and keeps them from readers.
  void write_missing(Chunks chunks, Holdings& written);
  /// Keeps [first, end) from being evicted, of groups with a window from `window_first` on.
  void take(Chunks chunks, std::int64_t first, std::int64_t end, std::int64_t window_first,
            Holdings& taken);
  /// The first chunk of the window that a hit of `end` chunks needs.
  std::int64_t window_before(std::int64_t end) const { return end - window_chunks_; }

  void begin_read(const Holdings& chunks);
  void end_read(Holdings& chunks);
  /// Written chunks can be read from now on, and are kept.
  void announce(const BlockHolding& chunks);
  /// The same, and they can be evicted.
  void make_readable(Holdings& chunks);
  void release(Holdings& chunks);
  /// Written chunks will never come.
  void discard(Holdings& chunks);

  /// Grows when what a lookup found may hold no more.
  std::uint64_t changes() const { return changes_; }
  void note_change() { ++changes_; }
  template <class F>
  void for_each_key_run(const BlockHolding& chunks, F f) const {
    pool_.for_each_key_run(chunks, f);
  }
  std::int64_t evictions() const { return pool_.evictions(); }
  std::int64_t size() const { return pool_.keyed_blocks(); }
  void set_sink(TierEventSink* sink);
  /// Throws InternalError unless every chunk is free, evictable or in one of `holdings`.
  void verify(std::span<const BlockHolding* const> holdings) const;

 private:
  /// Chunks [begin, begin + blocks) of a sequence are the first ones of a run.
  struct Stretch {
    std::int64_t begin = 0;
    std::int64_t blocks = 0;
    RunIndex run = 0;
    std::uint32_t stamp = 0;  ///< RunRef::stamp of the run.
    std::int64_t end() const { return begin + blocks; }
  };
  /// The part of a stretch of chunks that one group has.
  struct Count {
    std::int64_t chunks = 0;
    bool pending = false;  ///< Some are being written: nothing is certain yet.
  };
  void removed(std::span<const BlockKey> keys) override { sink_->removed_from_tier(keys); }
  template <class F>
  void for_each_run(Chunks chunks, CachedPrefix& scratch, F f) const;
  void cut_stretches_at(std::int64_t chunk);
  bool still_there() const;
  CachedPrefix& pieces_of(std::int64_t first, std::int64_t end);
  Count prefix(std::int64_t first, std::int64_t end) const;
  Count window(std::size_t group, Chunks chunks, std::int64_t first, std::int64_t end) const;
  void find_missing_windows(Chunks chunks, std::int64_t first);
  void write(Holdings& written, Chunks chunks, std::int64_t from, std::int64_t to);
  bool there(RunIndex r) const {
    return r != 0 && (waits_for_writes_ || pool_.copy_of(r) != KvCache::Copy::kWrite);
  }

  std::int64_t chunk_tokens_;
  std::size_t groups_;          ///< With a window.
  std::int64_t window_chunks_;  ///< Chunks before its end that a group with a window needs.
  bool waits_for_writes_;       ///< TierRules::waits_for_writes.
  KvCache pool_;
  TierEventSink* sink_ = nullptr;  ///< Null when nobody listens. Hears nothing of windows.
  std::uint64_t scans_ = 0, changes_ = 0;
  std::size_t scanned_ = 0;         ///< Chunks of the last scan.
  std::vector<Stretch> stretches_;  ///< What the pool has of them, in order.
  // Scratch.
  CachedPrefix present_, found_;
  std::vector<std::pair<std::int64_t, std::int64_t>> missing_;
  std::vector<std::pair<BlockKey, std::size_t>> missing_windows_;  ///< Keys, and their groups.
};

}  // namespace routesim::sim
