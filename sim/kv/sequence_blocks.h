// The blocks that sequences of one engine core hold of its KV cache, and their blocks in the cache.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/kv/divisor.h"
#include "sim/kv/kv_cache.h"
#include "sim/kv/sequence.h"
#include "sim/kv/window_groups.h"
#include "sim/rules/engine_config.h"

namespace routesim::sim {

/// Hears which full blocks became findable; `first_block` counts from the start of the sequence.
class BlockEventSink : public KvEventSink {
 public:
  virtual void stored(std::uint32_t handle, std::int64_t first_block,
                      std::span<const BlockKey> keys) = 0;
};

/// Owns the KV cache of an engine core and moves blocks between it and the sequences: finds cached
/// prefixes, allocates, registers full blocks under their keys, and releases. The full-attention
/// blocks and those of the window groups always move together here.
class SequenceBlocks {
 public:
  explicit SequenceBlocks(const EngineRules& rules);
  SequenceBlocks(const SequenceBlocks&) = delete;
  SequenceBlocks& operator=(const SequenceBlocks&) = delete;

  const KvCache& kv() const { return kv_; }
  KvCache& kv() { return kv_; }
  const WindowGroups& windows() const { return windows_; }
  WindowGroups& windows() { return windows_; }
  bool announces() const { return sink_ != nullptr; }
  void set_sink(BlockEventSink* sink) {
    sink_ = sink;
    kv_.set_sink(sink);
  }
  /// The source of answers' keys where one key serves engine and router; null elsewhere.
  void set_answer_keys(SequenceKeySource* keys) { answer_keys_ = keys; }

  std::int64_t blocks_for(std::int64_t tokens) const {
    return block_.quotient(tokens + block_.divisor() - 1);
  }
  /// Full blocks among `tokens` tokens.
  std::int64_t whole_count(std::int64_t tokens) const { return block_.quotient(tokens); }
  /// `tokens` without those of a last block that is not full.
  std::int64_t whole_tokens(std::int64_t tokens) const { return tokens - block_.remainder(tokens); }

  /// Finds the longest cached prefix of a waiting sequence and returns its length in blocks. The
  /// head of the queue asks again and again while it does not fit, mostly with the same result.
  std::int64_t find_prefix(Sequence& q, SequenceRef ref);
  /// Forgets what find_prefix() found; the next call looks again.
  void forget_prefix() { found_version_ = 0; }
  /// No prefix: for a sequence that has its blocks already.
  void clear_prefix() {
    hits_.clear();
    found_version_ = 0;
  }
  /// Blocks of the found prefix that are in the free queue, so that taking them shrinks it.
  std::int64_t unreferenced_hits() const;
  /// Some block of the found prefix may be evicted without being lost.
  bool has_free_twin() const { return kv_.has_free_twin(hits_); }

  /// The same where `need` blocks behind them are loaded.
  std::int64_t unreferenced_hits(std::int64_t hit, std::int64_t need) const {
    const std::int64_t n = kv_.count_unreferenced(hits_);
    return hit == 0 ? n : n + windows_.unreferenced_hits(hit, hit + need);
  }

  /// Gives `q` the found prefix of `hit` blocks and `need` new blocks.
  void take(Sequence& q, std::int64_t hit, std::int64_t need);
  /// The same where `need` blocks are loaded from a tier: groups with a window get what the window
  /// sees of all these.
  void take_for_load(Sequence& q, std::int64_t hit, std::int64_t need);
  /// The keys of the first `blocks` full blocks of a sequence, and all those of its prompt; of a
  /// private answer none, unless it was preempted and may look for its own blocks in the tiers.
  /// Good until the next call that reads keys.
  std::span<const BlockKey> keys_of(const Sequence& q, std::int64_t blocks);
  /// Makes the full blocks among the first `tokens` findable; true if any is new. Those of a
  /// private answer can wait until the sequence gives them up: nobody looks for them before.
  bool register_up_to(Sequence& q, std::int64_t tokens);
  /// Gives back all blocks of `q`.
  void release(Sequence& q);

  /// Throws InternalError unless every block is free or held. `unassigned` blocks were taken for
  /// `sequences` and not assigned yet.
  void verify(const std::vector<Sequence>& sequences, std::int64_t unassigned) const;

 private:
  void look_up_prefix(Sequence& q, SequenceRef ref);
  void append_given_up_blocks(Sequence& q, std::int64_t prompt_blocks, std::int64_t limit);
  BlockKey block_key(const Sequence& q, std::int64_t block, BlockKey previous) const;

  Divisor block_;  ///< By the block size.
  bool prefix_caching_;
  bool drops_last_hit_;
  bool names_answers_;  ///< Files need a name for every chunk.
  KvCache kv_;
  WindowGroups windows_;
  BlockEventSink* sink_ = nullptr;
  SequenceKeySource* answer_keys_ = nullptr;
  CachedPrefix hits_;                ///< The prefix that find_prefix() found.
  SequenceRef found_for_;            ///< Its sequence, while found_version_ is the cache's.
  std::uint64_t found_version_ = 0;  ///< 0 = the next call looks again.
  std::vector<BlockKey> keys_;       ///< Scratch for lookups and registrations.
};

}  // namespace routesim::sim
