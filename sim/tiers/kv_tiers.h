// KV blocks of one engine core outside GPU memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/kv/sequence.h"
#include "sim/rules/engine_config.h"
#include "sim/tiers/tier_counters.h"

namespace routesim::sim {

class ChunkPool;
class TierPulls;

/// A copy between GPU and host memory, or a store, that an engine core wants done.
struct TierCopy {
  enum class Direction : std::uint8_t { kToGpu, kToHost };
  std::uint32_t id = 0;  ///< Comes back with KvTiers::copy_done().
  Direction direction = Direction::kToGpu;
  double bytes = 0;
};

/// The hit of a tier behind a prefix that GPU memory has.
struct TierFound {
  std::int64_t blocks = 0;  ///< To be loaded into GPU memory.
  std::int64_t tokens = 0;  ///< There will be from the sequence's start, the hit included.
  bool wait = false;        ///< Ask again in the next pass: chunks are on their way.
};

/// Hears which chunks can be read from a tier, by the keys of their last blocks.
class TierEventSink {
 public:
  virtual ~TierEventSink() = default;
  virtual void stored_in_tier(std::span<const BlockKey> keys) = 0;
  /// The last one was evicted first.
  virtual void removed_from_tier(std::span<const BlockKey> keys) = 0;
};

/// The connector of one engine core to chunks of KV blocks outside GPU memory. Owns what connectors
/// of all kinds count, and the copies that they want done. A chunk has the key of its last block.
class KvTiers {
 public:
  using Keys = std::span<const BlockKey>;
  virtual ~KvTiers() = default;
  KvTiers(const KvTiers&) = delete;
  KvTiers& operator=(const KvTiers&) = delete;

  /// Finds what is behind a prefix of `hit` blocks that GPU memory has. `keys` are those of all
  /// full blocks of the sequence, which has q.target tokens so far.
  virtual TierFound lookup(Sequence& q, Keys keys, std::int64_t hit) = 0;
  /// Leading blocks of a prompt that can be read, `hit` of them in GPU memory. Changes nothing.
  virtual std::int64_t held_blocks(Keys keys, std::int64_t hit) const = 0;
  /// Loads what the last lookup() found behind `hit` blocks; the sequence has its GPU blocks by
  /// now. Groups with a window load from block `window_first` on. Returns how much longer the step
  /// of this pass takes.
  virtual Duration load(SequenceSlot s, Keys keys, std::int64_t hit, std::int64_t window_first) = 0;
  /// Stores what is new among the first `blocks` blocks of a sequence scheduled in this pass. False
  /// if there is no room: the next pass of the sequence tries again. The last ones of a private
  /// answer have no key: no lookup finds them.
  virtual bool store(SequenceSlot s, Keys keys, std::int64_t blocks) = 0;
  /// Ends the pass: the number of what its step copies, -1 if that is nothing.
  virtual std::int64_t close_pass() = 0;
  /// How much longer the step takes for that.
  virtual Duration copy_time(std::int64_t /*step*/) const { return Duration::zero(); }
  /// The step has ended.
  virtual void end_step(std::int64_t step) = 0;
  /// Outside of passes: stores what is new of a sequence that runs no longer, answer included, and
  /// starts the copy.
  void store_answer(SequenceSlot s, Keys keys, std::int64_t blocks);
  /// A copy has ended; returns the handle of the request whose load failed. Then the engine hears
  /// of it. Appends the sequences that wait for nothing more: the one that loaded, those that are
  /// over and stored.
  virtual std::optional<std::uint32_t> landed(std::uint32_t /*copy*/) { return std::nullopt; }
  virtual void copy_done(std::uint32_t /*copy*/, std::vector<SequenceSlot>& /*ready*/) {}
  /// Others have lost chunks that they kept: loads of them fail.
  virtual void lose_sources() {}
  /// Makes what the sequence has stored readable: its request is over, or preempted.
  virtual void settle(Sequence& /*q*/) {}

  /// The request could get more from another engine or from files: asks them. True while it has to
  /// wait.
  virtual bool pull(SequenceSlot /*s*/, Keys /*keys*/, SimTime /*now*/) { return false; }
  /// The other side of such pulls; null where there are none.
  virtual TierPulls* pulls() { return nullptr; }
  /// Some request waits for another engine's chunks, or for its answer. Looks at every sequence.
  virtual bool pulling() const { return false; }
  /// No copy is under way or about to start.
  virtual bool idle() const { return true; }

  /// The store that they share with other engines; null where there is none.
  virtual const ChunkPool* shared() const { return nullptr; }
  /// Chunks that are there, those being written included; those of the whole store.
  virtual std::int64_t chunks() const = 0;
  virtual std::int64_t capacity() const = 0;
  /// Null when nobody listens. Groups with a window are not announced.
  virtual void set_sink(TierEventSink* sink) { sink_ = sink; }
  /// Throws InternalError unless every chunk is in order.
  virtual void verify() const = 0;

  const TierRules& rules() const { return rules_; }
  double chunk_bytes() const {
    return static_cast<double>(rules_.chunk_blocks) * rules_.block_bytes;
  }
  std::int64_t chunk_tokens() const { return rules_.chunk_blocks * block_size_; }
  TierCounters& counters() { return counters_; }
  const TierCounters& counters() const { return counters_; }
  /// Copies to start since the last call; the caller clears it.
  std::vector<TierCopy>& to_start() { return to_start_; }

 protected:
  /// `sequences` outlives this.
  KvTiers(const TierRules& rules, std::int64_t block_size, SequenceTable& sequences)
      : rules_(rules), block_size_(block_size), sequences_(sequences) {}
  /// The keys of whole chunks, in `scratch` or as they are.
  Keys chunk_keys(Keys keys, std::vector<BlockKey>& scratch) const;
  Keys chunk_keys(Keys keys) { return chunk_keys(keys, chunk_keys_); }

  TierRules rules_;
  std::int64_t block_size_;
  SequenceTable& sequences_;
  TierCounters counters_;
  std::vector<TierCopy> to_start_;
  TierEventSink* sink_ = nullptr;

 private:
  std::vector<BlockKey> chunk_keys_;  ///< Scratch.
};

/// Null for an engine without tiers. `sequences` outlives them, and so does `store`, which is
/// needed where all servers share one.
std::unique_ptr<KvTiers> make_kv_tiers(const EngineRules& rules, SequenceTable& sequences,
                                       ChunkPool* store = nullptr);

}  // namespace routesim::sim
