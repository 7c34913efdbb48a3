// KV chunks in host memory that the workers of an engine copy while its steps wait.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/chunk_pool.h"
#include "sim/engine/kv_cache.h"
#include "sim/engine/sequence.h"
#include "sim/engine/tier_config.h"

namespace routesim::sim {

class TierEventSink;

/// What a tier has behind a prefix that GPU memory has.
struct TierFound {
  std::int64_t blocks = 0;  ///< To be loaded into GPU memory.
  std::int64_t tokens = 0;  ///< There will be from the sequence's start, the hit included.
  bool wait = false;        ///< Ask again in the next pass: chunks are on their way.
};

/// The pool of LMCache in the worker of each GPU; all workers of an engine do the same, each with
/// its part of a chunk. A lookup goes from the start of the sequence. A step loads before it
/// computes and stores after that, and both make it longer. What it stores is there for the passes
/// after its end. Chunks come into the LRU order head first, and a lookup turns what it finds
/// round. A prompt copies all its chunks behind its hit, those that came meanwhile, too.
///
/// Sources: LMCache v0.4.7 integration/vllm/vllm_v1_adapter.py (get_num_new_matched_tokens,
/// start_load_kv, wait_for_save), v1/cache_engine.py (store, lookup),
/// v1/storage_backend/local_cpu_backend.py and cache_policy/lru.py; v0.3.5 to v0.5.6 likewise. Two
/// rules are left out: a request that waits for GPU blocks keeps the hit of its first lookup; a
/// chunk that is stored twice needs memory twice until the step ends.
class WorkerCache {
 public:
  using Chunks = std::span<const BlockKey>;
  /// `counters` outlives this.
  WorkerCache(const TierRules& rules, std::int64_t block_size, TierCounters& counters);

  /// Behind `hit` blocks that GPU memory has of a sequence with these chunks.
  TierFound lookup(Sequence& q, Chunks chunks, std::int64_t hit);
  /// Chunks that can be read from the start on. Changes nothing.
  std::int64_t leading(Chunks chunks) const { return pool_.leading(chunks); }
  /// The step of this pass loads what lookup() found behind `hit` blocks. Returns how long it
  /// takes.
  Duration load(const Sequence& q, Chunks chunks, std::int64_t hit);
  /// It stores what the sequence has not stored of its first `end` chunks.
  void store(Sequence& q, Chunks chunks, std::int64_t end);

  /// Ends the pass: the number of what its step copies, -1 if that is nothing.
  std::int64_t close_pass();
  /// How long these copies take.
  Duration copy_time(std::int64_t step) const;
  /// The step has ended.
  void end_step(std::int64_t step, TierEventSink* sink);

  std::int64_t chunks() const { return pool_.size(); }
  void verify() const { pool_.verify(); }

 private:
  /// What one step copies.
  struct Step {
    std::vector<BlockKey> loads;
    std::vector<std::vector<BlockKey>> stores;  ///< By request.
    std::int64_t stored = 0;                    ///< Chunks of all of them.
    bool open = false;
  };
  Step& this_pass();
  Duration copy_time(std::int64_t loads, std::int64_t stores) const;

  TierRules rules_;
  std::int64_t block_size_;
  double chunk_bytes_;
  TierCounters& counters_;
  ChunkPool pool_;
  std::vector<Step> steps_;  ///< Two at most are under way.
  std::int64_t pass_ = -1;   ///< Which of them this pass fills.
};

}  // namespace routesim::sim
