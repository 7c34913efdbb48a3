// The words that KV tiers of all kinds share, and the interface of those outside vLLM.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/kv/kv_cache.h"
#include "sim/kv/sequence.h"
#include "sim/rules/tier_config.h"
#include "sim/tiers/chunk_pool.h"

namespace routesim::sim {

/// A copy between GPU and host memory, or a store, that an engine core wants done.
struct TierCopy {
  enum class Direction : std::uint8_t { kToGpu, kToHost, kFromPeer };
  std::uint32_t id = 0;  ///< Comes back with KvTiers::copy_done().
  Direction direction = Direction::kToGpu;
  double bytes = 0;
};

/// What a tier has behind a prefix that GPU memory has.
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

/// A connector whose chunks another program keeps: LMCache or Mooncake. Lookups go from the start
/// of a sequence.
class ChunkTier {
 public:
  using Chunks = std::span<const BlockKey>;
  virtual ~ChunkTier() = default;

  /// Behind `hit` blocks that GPU memory has of a sequence with these chunks.
  virtual TierFound lookup(Sequence& q, Chunks chunks, std::int64_t hit) = 0;
  /// Chunks that can be read from the start on. Changes nothing.
  virtual std::int64_t leading(Chunks chunks) const = 0;
  /// Loads what lookup() found behind `hit` blocks. Returns how much longer the step takes.
  virtual Duration load(SequenceSlot s, Chunks chunks, std::int64_t hit,
                        std::vector<TierCopy>& to_start) = 0;
  /// Stores what the sequence has not stored of its first `end` chunks, after this pass's step.
  virtual void store(SequenceSlot s, Chunks chunks, std::int64_t end) = 0;
  /// Ends the pass: the number of what its step copies, -1 if that is nothing.
  virtual std::int64_t close_pass() = 0;
  /// How much longer the step takes for that.
  virtual Duration copy_time(std::int64_t /*step*/) const { return Duration::zero(); }
  /// The step has ended.
  virtual void end_step(std::int64_t step, TierEventSink* sink,
                        std::vector<TierCopy>& to_start) = 0;
  /// A copy has ended; then, the engine hears of it. Appends who waits for nothing more.
  virtual void landed(std::uint32_t /*copy*/) {}
  virtual void copy_done(std::uint32_t /*copy*/, TierEventSink* /*sink*/,
                         std::vector<SequenceSlot>& /*ready*/) {}
  virtual std::int64_t open_copies() const { return 0; }

  virtual std::int64_t chunks() const = 0;
  virtual std::int64_t capacity() const = 0;
  virtual void verify() const = 0;
};

}  // namespace routesim::sim
