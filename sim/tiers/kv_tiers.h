// KV blocks of one engine core outside GPU memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/kv/kv_cache.h"
#include "sim/kv/sequence.h"
#include "sim/rules/engine_config.h"
#include "sim/tiers/chunk_tier.h"

namespace routesim::sim {

/// Chunks that one engine core asks another one for, through host memory on both sides: vLLM's p2p
/// tier (v0.27.1 v1/kv_offload/tiering/p2p). Each side acts once per step. KvPulls owns it.
struct KvPull {
  std::uint32_t id = 0;
  std::uint32_t handle = 0;      ///< Of the request that asks.
  SequenceSlot slot = 0;         ///< Its sequence at the asking engine,
  std::uint64_t owner = 0;       ///< and the sequence's TierProgress::id.
  SimTime asked;                 ///< When.
  std::vector<BlockKey> chunks;  ///< Keys of all whole chunks of the request.
  std::int64_t first = 0;        ///< The first chunk that is missing.
  std::int64_t found = 0;        ///< How many the other engine has from there on.
  double bytes = 0;              ///< That move, groups with a window included.
  std::uint32_t copy = 0;        ///< Of the asking engine, while chunks are on their way.
  bool disk = false;             ///< Files answer, not another engine.
};

/// What an engine core tells the other side of a pull.
struct PullMessage {
  enum class Kind : std::uint8_t {
    kAsk,     ///< From the engine that wants chunks: it has made a pull.
    kAnswer,  ///< From the one that has them: `found` is known, and stays until the end.
    kFetch,   ///< There is room for what was found: send it.
    kSend,    ///< The bytes can move.
    kWrite,   ///< Chunks for files: `pull`, of which only `chunks` and `bytes` count.
    kDone,    ///< They have moved.
    kDrop     ///< Nobody wants them any more, or there is no room.
  };
  Kind kind = Kind::kAsk;
  KvPull* pull = nullptr;
  std::unique_ptr<KvPull> made = {};  ///< With kAsk and kWrite: `pull`, which the receiver owns.
};
/// KvPull::found of an answer that has to be asked for again: chunks are being written.
inline constexpr std::int64_t kAskAgain = -1;

/// Owns the host-memory tier as vLLM's OffloadingConnector keeps it: an LRU pool of chunks, each
/// found by the key of its last block, with one set of chunks per group of layers. Lookups extend
/// the hit in GPU memory; a request that hits waits outside the running list while the chunks are
/// copied. Chunks of prompts are stored once, in the pass that computes them, and the copy starts
/// when that step has ended. Chunks of an answer are stored together when the answer ends or is
/// interrupted, although vLLM stores each one as it fills: the bytes and the room are the same, but
/// their copy starts later, and as a whole. Passes that only decode thus do nothing here. Chunks
/// are kept as runs (KvCache), so a call costs by the run, not by the chunk; groups with a window
/// cost by the chunk.
///
/// Sources: vLLM v0.27.1 kv_connector/v1/offloading/scheduler.py (get_num_new_matched_tokens,
/// _lookup, _build_store_jobs), v1/kv_offload/cpu/manager.py and cpu/policies/lru.py; v0.19.1
/// likewise. One rule is not modelled: a step that takes a GPU block whose copy to the host is
/// still under way waits for that copy (jobs_to_flush).
class KvTiers final : private KvEventSink {
 public:
  /// `store` outlives this; needed where all servers share one.
  KvTiers(const EngineRules& rules, SequenceTable& sequences, ChunkPool* store = nullptr);
  KvTiers(const KvTiers&) = delete;
  KvTiers& operator=(const KvTiers&) = delete;

  bool in_use() const { return rules_.in_use(); }
  /// Copies are part of the steps.
  bool copies_in_steps() const { return rules_.copies_in_steps; }
  /// Other servers change what lookups find.
  bool shared() const { return rules_.shared_store; }
  /// No copy is under way or about to start.
  bool idle() const {
    return copies_.open + copies_.disk_lookups + (other_ ? other_->open_copies() : 0) == 0;
  }
  bool has_disk() const { return rules_.disk.in_use(); }

  /// Some request waits for another engine's chunks, or for its answer. Looks at every sequence.
  bool pulling() const;

  using Found = TierFound;
  /// What the tier has behind a prefix of `hit` blocks that GPU memory has. `keys` are those of all
  /// full blocks of the sequence, which has q.target tokens so far.
  Found lookup(Sequence& q, std::span<const BlockKey> keys, std::int64_t hit);
  /// Leading blocks of a prompt that can be read, `hit` of them in GPU memory. Changes nothing.
  std::int64_t held_blocks(std::span<const BlockKey> keys, std::int64_t hit) const;
  /// Starts to load what the last lookup() found; the sequence has its GPU blocks by now.
  /// Groups with a window load from block `window_first` on.
  void load(SequenceSlot s, std::span<const BlockKey> keys, std::int64_t window_first);

  /// With copies in steps: the step of this pass loads that. Returns how long it takes.
  Duration load_in_step(SequenceSlot s, std::span<const BlockKey> keys, std::int64_t hit) {
    return other_->load(s, chunk_keys(keys), hit, to_start_);
  }

  /// Stores what is new among the first `blocks` blocks of a sequence scheduled in this pass. False
  /// if there is no room: the next pass of the sequence tries again. The last ones of a private
  /// answer have no key: no lookup finds them.
  bool store(SequenceSlot s, std::span<const BlockKey> keys, std::int64_t blocks);
  /// Ends the pass: the id of the copy of all it stored, -1 if it stored nothing.
  std::int64_t close_pass();
  /// Outside of passes: stores what is new of a sequence that runs no longer, answer included, and
  /// starts the copy.
  void store_answer(SequenceSlot s, std::span<const BlockKey> keys, std::int64_t blocks);
  /// How much longer that makes the step of the pass.
  Duration time_in_step(std::int64_t copy) const {
    return other_ ? other_->copy_time(copy) : Duration::zero();
  }
  /// The step of that pass has ended: its copy can start.
  void submit(std::int64_t copy);
  /// Copies to start since the last call; the caller clears it.
  std::vector<TierCopy>& to_start() { return to_start_; }

  /// The request could get more from another engine: asks for the chunks behind those that the last
  /// lookup found, or makes room for what was found. True while the request has to wait.
  bool pull(SequenceSlot s, std::span<const BlockKey> keys, SimTime now);
  /// The other engine has answered.
  void pull_answered(KvPull& pull, SimTime now);
  /// The chunks are here, or will never come. True while the request still waits for them.
  bool pull_arrived(const KvPull& pull, SimTime now);
  void pull_failed(const KvPull& pull, SimTime now);
  /// The other side: looks for the chunks, and keeps what it finds until end_serving().
  void serve(KvPull& pull);
  void end_serving(const KvPull& pull);
  void sent(KvPull& pull);
  /// Messages to send since the last call; the caller clears it.
  std::vector<PullMessage>& messages() { return messages_; }
  void send(PullMessage::Kind kind, KvPull& pull) {
    messages_.push_back({.kind = kind, .pull = &pull});
  }

  /// A copy has ended; the engine hears of it later.
  void landed(std::uint32_t copy) {
    if (other_) other_->landed(copy);
  }
  /// A copy is done. Appends the sequences that wait for nothing more: the one that loaded, those
  /// that are over and stored.
  void copy_done(std::uint32_t id, std::vector<SequenceSlot>& ready);
  /// Makes what the sequence has stored readable: its request is over, or preempted.
  void settle(Sequence& q);
  /// Something of the sequence is not copied, or not readable yet.
  static bool unsettled(const Sequence& q) {
    return q.tier.storing > 0 || !q.tier.unsettled.empty();
  }
  /// Counts the tokens behind the hit in GPU memory that a new request asks for, and gets.
  void count_query(std::int64_t tokens, std::int64_t hits) {
    counters_.query_tokens += tokens;
    counters_.hit_tokens += hits;
  }
  /// Ends the wait of a sequence for its load.
  void count_load_wait(Duration wait) { counters_.load_waits.add(wait); }
  /// Tokens of the chunks that a pull found.
  std::int64_t found_tokens(const KvPull& pull) const {
    return pull.found * rules_.chunk_blocks * block_size_;
  }

  const TierCounters& counters() const { return counters_; }
  std::int64_t capacity_chunks() const { return other_ ? other_->capacity() : rules_.cpu_chunks; }
  /// Chunks in the pool, those being written included.
  std::int64_t chunks() const;
  double chunk_bytes() const {
    return static_cast<double>(rules_.chunk_blocks) * rules_.block_bytes;
  }
  /// Null when nobody listens. Groups with a window are not announced.
  void set_sink(TierEventSink* sink);
  /// Throws InternalError unless every chunk is free, evictable or held by a copy.
  void verify() const;

 private:
  /// Chunks that one sequence stores, or has stored.
  struct Part {
    SequenceSlot slot = 0;
    std::uint64_t owner = 0;  ///< TierProgress::id; another one has the slot since.
    BlockHolding chunks;
  };
  struct Copy {
    TierCopy::Direction direction = TierCopy::Direction::kToGpu;
    std::vector<Part> parts;
    double bytes = 0;
  };

  struct Copies {
    std::vector<Copy> all;  ///< By id.
    std::vector<std::uint32_t> unused;
    std::int64_t open = 0;
    std::int64_t disk_lookups = 0;  ///< Not answered yet.
  };

  void removed(std::span<const BlockKey> keys) override { sink_->removed_from_tier(keys); }
  /// Something has changed in the pool: the next lookup() looks again.
  void forget() { asked_.owner = 0; }
  void announce(BlockHolding& chunks);
  void make_readable(BlockHolding& chunks);
  void write_to_disk(std::vector<BlockHolding>& chunks);
  bool make_room(KvPull& pull);
  bool end_pull(const KvPull& pull, SimTime now);
  bool end_wait(const KvPull& pull, SimTime now);
  /// Chunks [begin, begin + blocks) of a sequence are the first ones of a run.
  struct Stretch {
    std::int64_t begin = 0;
    std::int64_t blocks = 0;
    RunIndex run = 0;
    std::uint32_t stamp = 0;  ///< RunRef::stamp of the run.
    std::int64_t end() const { return begin + blocks; }
  };
  /// What one group has of a stretch of chunks.
  struct Count {
    std::int64_t chunks = 0;
    bool pending = false;  ///< Some are being written: nothing is certain yet.
  };
  using Chunks = std::span<const BlockKey>;

  std::span<const BlockKey> chunk_keys(std::span<const BlockKey> keys);
  template <class F>
  void for_each_run(Chunks chunks, CachedPrefix& scratch, F f) const {
    constexpr std::int64_t kAhead = 8;
    for (std::int64_t i = 0; i < std::ssize(chunks); ++i) {
      if (i + kAhead < std::ssize(chunks))
        pool_->prefetch(chunks[static_cast<std::size_t>(i + kAhead)]);
      if (pool_->lookup(chunks.subspan(static_cast<std::size_t>(i)), scratch) == 0) continue;
      for (const RunPiece& p : scratch.pieces) {
        const std::uint32_t stamp = pool_->ref(p.run).stamp;
        f(Stretch{.begin = i, .blocks = p.blocks, .run = p.run, .stamp = stamp});
        i += p.blocks;
      }
      --i;
    }
  }
  void scan(Chunks chunks);
  void cut_stretches_at(std::int64_t chunk);
  bool still_there() const;
  CachedPrefix& pieces_of(std::int64_t first, std::int64_t end);
  Count prefix(std::int64_t first, std::int64_t end) const;
  Count window(std::size_t group, Chunks chunks, std::int64_t first, std::int64_t end) const;
  std::optional<std::int64_t> find_tokens(Chunks chunks, std::int64_t computed,
                                          std::int64_t tokens) const;
  bool being_read(Chunks chunks, std::int64_t first, std::int64_t end) const;
  void touch(Chunks chunks, std::int64_t window_first);
  /// Keys of window chunks, and their groups.
  using MissingWindows = std::vector<std::pair<BlockKey, std::size_t>>;
  MissingWindows missing_windows(Chunks chunks, std::int64_t first);
  std::int64_t find_missing(std::int64_t first, std::int64_t end);
  std::int64_t first_window_chunk(const Sequence& q) const;
  void write_missing(Copy& copy, SequenceSlot s, Chunks chunks, const MissingWindows& windows);
  bool there(RunIndex r) const {
    return r != 0 && (rules_.waits_for_writes || pool_->copy_of(r) != KvCache::Copy::kWrite);
  }
  std::uint32_t open_copy(TierCopy::Direction direction);
  Part& add_part(Copy& copy, SequenceSlot s);
  void write(Part& part, Chunks chunks, std::int64_t from, std::int64_t to);

  TierRules rules_;
  std::int64_t block_size_;
  std::size_t groups_;          ///< With a window.
  std::int64_t window_chunks_;  ///< Chunks before its end that a group with a window needs.
  SequenceTable& sequences_;
  std::optional<KvCache> pool_;
  std::unique_ptr<ChunkTier> other_;  ///< Instead of the pool, with another connector.
  Copies copies_;
  std::int64_t pass_copy_ = -1;  ///< What this pass stores.
  std::vector<TierCopy> to_start_;
  std::vector<PullMessage> messages_;
  std::map<std::uint32_t, std::vector<BlockHolding>> serving_;  ///< By pull, or write to files.
  TierCounters counters_;
  TierEventSink* sink_ = nullptr;
  // Scratch.
  std::vector<Stretch> stretches_;  ///< What the pool has of the chunks scanned last, in order.
  CachedPrefix present_, window_found_;
  /// The last lookup, whose answer holds while nothing has changed in the pool.
  struct Asked {
    std::uint64_t owner = 0;
    std::int64_t hit = 0;
    std::int64_t tokens = 0;
    Found found;
    std::int64_t first = 0;  ///< The chunks found.
    std::int64_t end = 0;
    bool scanned_last = false;  ///< stretches_ are those of this lookup.
  };
  Asked asked_;
  std::vector<std::pair<std::int64_t, std::int64_t>> missing_;
  std::vector<BlockKey> chunk_keys_;
};

}  // namespace routesim::sim
