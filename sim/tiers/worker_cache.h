// KV chunks in host memory that the workers of an engine copy while its steps wait.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/tiers/chunk_pool.h"
#include "sim/tiers/kv_tiers.h"

namespace routesim::sim {

/// The pool of LMCache in the worker of each GPU; all workers of an engine do the same, each with
/// its part of a chunk. A lookup goes from the start of the sequence. A step loads before it
/// computes and stores after that, and both make it longer. What it stores is there for the passes
/// after its end. Keys come into the LRU order head first, and a lookup turns what it finds
/// round. A prompt copies all its chunks behind its hit, those that came meanwhile, too.
///
/// Sources: LMCache v0.4.7 integration/vllm/vllm_v1_adapter.py (get_num_new_matched_tokens,
/// start_load_kv, wait_for_save), v1/cache_engine.py (store, lookup),
/// v1/storage_backend/local_cpu_backend.py and cache_policy/lru.py; v0.3.5 to v0.5.6 likewise. Two
/// rules are left out: a request that waits for GPU blocks keeps the hit of its first lookup; a
/// chunk that is stored twice needs memory twice until the step ends.
class WorkerCache final : public KvTiers {
 public:
  /// `sequences` outlives this.
  WorkerCache(const TierRules& rules, std::int64_t block_size, SequenceTable& sequences)
      : KvTiers(rules, block_size, sequences), pool_(rules.cpu_chunks) {}

  TierFound lookup(Sequence& q, Keys keys, std::int64_t hit) override;
  std::int64_t held_blocks(Keys keys, std::int64_t hit) const override;
  /// The step of this pass loads.
  Duration load(SequenceSlot s, Keys keys, std::int64_t hit, std::int64_t window_first) override;
  bool store(SequenceSlot s, Keys keys, std::int64_t blocks) override;
  std::int64_t close_pass() override;
  Duration copy_time(std::int64_t step) const override;
  void end_step(std::int64_t step) override;
  std::int64_t chunks() const override { return pool_.size(); }
  std::int64_t capacity() const override { return pool_.capacity(); }
  void verify() const override { pool_.verify(); }

 private:
  /// The copies of one step.
  struct Step {
    std::vector<BlockKey> loads;
    std::vector<std::vector<BlockKey>> stores;  ///< By request.
    std::int64_t stored = 0;                    ///< Keys of all of them.
    bool open = false;
  };
  Step& this_pass();
  Duration time_of(std::int64_t loads, std::int64_t stores) const;

  ChunkPool pool_;
  std::vector<Step> steps_;  ///< Two at most are under way.
  std::int64_t pass_ = -1;   ///< Which of them this pass fills.
};

}  // namespace routesim::sim
