// The host memory of one engine core, as vLLM's own connector uses it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/tiers/host_chunks.h"
#include "sim/tiers/kv_tiers.h"
#include "sim/tiers/tier_pulls.h"

namespace routesim::sim {

/// vLLM's OffloadingConnector: decides what is copied between GPU and host memory, and when.
/// Lookups extend the hit in GPU memory; a request that hits waits outside the running list while
/// the chunks are copied. Chunks of prompts are stored once, in the pass that computes them, and
/// the copy starts when that step has ended. Chunks of an answer are stored together when the
/// answer ends or is interrupted, although vLLM stores each one as it fills: the bytes and the room
/// are the same, but their copy starts later, and as a whole. Passes that only decode thus do
/// nothing here.
///
/// Sources: vLLM v0.27.1 kv_connector/v1/offloading/scheduler.py (get_num_new_matched_tokens,
/// _lookup, _build_store_jobs), v1/kv_offload/cpu/manager.py and cpu/policies/lru.py; v0.19.1
/// likewise. One rule is not modelled: a step that takes a GPU block whose copy to the host is
/// still under way waits for that copy (jobs_to_flush).
class OffloadTier final : public KvTiers {
 public:
  /// `sequences` outlives this.
  OffloadTier(const EngineRules& rules, SequenceTable& sequences);

  TierFound lookup(Sequence& q, Keys keys, std::int64_t hit) override;
  std::int64_t held_blocks(Keys keys, std::int64_t hit) const override;
  Duration load(SequenceSlot s, Keys keys, std::int64_t hit, std::int64_t window_first) override;
  bool store(SequenceSlot s, Keys keys, std::int64_t blocks) override;
  std::int64_t close_pass() override;
  void end_step(std::int64_t step) override;
  void copy_done(std::uint32_t id, std::vector<SequenceSlot>& ready) override;
  void settle(Sequence& q) override;
  bool idle() const override { return open_ + pulls_.open() == 0; }
  bool pull(SequenceSlot s, Keys keys, SimTime now) override;
  TierPulls* pulls() override { return &pulls_; }
  bool pulling() const override { return pulls_.pulling(); }
  std::int64_t chunks() const override { return chunks_.size(); }
  std::int64_t capacity() const override { return rules_.cpu_chunks; }
  void set_sink(TierEventSink* sink) override { chunks_.set_sink(sink); }
  /// Throws InternalError unless every chunk is free, evictable or held by a copy.
  void verify() const override;

 private:
  /// Chunks that a copy moves for one sequence.
  struct Part {
    SequenceSlot slot = 0;
    std::uint64_t owner = 0;  ///< TierProgress::id; another one has the slot since.
    HostChunks::Holdings chunks;
  };
  struct Copy {
    TierCopy::Direction direction = TierCopy::Direction::kToGpu;
    std::vector<Part> parts;
    double bytes = 0;
  };
  /// The last lookup, whose answer holds while nothing has changed.
  struct Asked {
    std::uint64_t owner = 0;
    std::int64_t hit = 0;
    std::int64_t tokens = 0;
    TierFound found;
    std::int64_t first = 0;  ///< The chunks found.
    std::int64_t end = 0;
    std::uint64_t changes = 0;  ///< HostChunks::changes(),
    std::uint64_t scan = 0;     ///< and scans().
  };
  std::uint32_t open_copy(TierCopy::Direction direction);
  Part& add_part(Copy& copy, SequenceSlot s);
  void start(std::int64_t id);
  std::int64_t first_window_chunk(const Sequence& q) const;

  std::int64_t groups_;  ///< With a window.
  HostChunks chunks_;
  TierPulls pulls_;
  std::vector<Copy> copies_;  ///< By id.
  std::vector<std::uint32_t> unused_;
  std::int64_t open_ = 0;
  std::int64_t pass_copy_ = -1;  ///< What this pass stores.
  Asked asked_;
};

}  // namespace routesim::sim
