// The sequences of one engine core that take one token in every pass, kept as sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/step_plan.h"
#include "sim/kv/divisor.h"
#include "sim/kv/sequence.h"

namespace routesim::sim {

/// Sequences by the pass that samples their last token. Answers are mostly of similar length, so
/// most come in the order in which they go.
class FinishList {
 public:
  bool empty() const { return head_ == entries_.size(); }
  /// The pass of the first; there must be one.
  std::int64_t first_pass() const { return entries_[head_].pass; }
  void add(std::int64_t pass, SequenceRef sequence);
  SequenceRef pop();
  void clear() {
    entries_.clear();
    head_ = 0;
  }

 private:
  struct Entry {
    std::int64_t pass;
    SequenceRef sequence;
  };
  std::vector<Entry> entries_;  ///< Sorted from head_ on; what is before has gone.
  std::size_t head_ = 0;
};

/// Counts the passes of an engine core and the sequences that decode in each of them: how many, the
/// sum of their contexts, in which pass (modulo the block size) each needs its next block, and in
/// which each ends. A pass costs O(1) plus its finishes; entering and leaving cost O(1).
class DecodeSet {
 public:
  DecodeSet(std::int64_t block_size, SequenceTable& sequences)
      : block_(block_size),
        crossings_(static_cast<std::size_t>(block_size)),
        buckets_(crossings_.size()),
        sequences_(sequences) {}
  DecodeSet(const DecodeSet&) = delete;
  DecodeSet& operator=(const DecodeSet&) = delete;

  /// The pass under way; the first is 1.
  std::int64_t pass() const { return pass_; }
  std::int64_t size() const { return size_; }
  /// Sum of contexts as of the last pass.
  std::int64_t context() const { return context_; }
  /// Members whose next slot is in vain: they end by EOS under async scheduling.
  std::int64_t wasted_slots() const { return wasted_slots_; }
  /// The largest place in the running list that a member ever had.
  std::uint64_t last_order() const { return last_order_; }
  bool has_leavers() const { return !leavers_.empty(); }

  void begin_pass() {
    ++pass_;
    phase_ = phase_ + 1 == buckets_.size() ? 0 : phase_ + 1;
  }
  /// Gives every member its token of this pass and lists those that end with it.
  void decode_all(StepPlan& plan);
  /// Counts a token of every member: decode_all() where none ends.
  void count_tokens() { context_ += size_; }
  /// `passes` passes at once in which members take tokens and nothing else happens.
  void advance(std::int64_t passes);

  /// Members that need a block in this pass.
  std::span<const SequenceSlot> crossing() const { return buckets_[phase_]; }
  std::int64_t crossings() const { return crossings_[phase_]; }
  /// Members that need a block in the `i`-th pass from now, 1 = the next.
  std::int64_t crossings_in(std::int64_t i) const { return crossings_[phase_after(i)]; }
  /// Blocks that `passes` passes take.
  std::int64_t crossings_until(std::int64_t passes) const;
  /// Fetches what crossings_in() reads into the processor's caches.
  void prefetch_crossings() const { __builtin_prefetch(&crossings_[phase_]); }
  /// Passes from now before the one in which a member ends, at most `limit`; `ends` tells whether
  /// that one is among them. -1 where a member has ended already.
  std::int64_t passes_before_finish(std::int64_t limit, bool& ends) const;

  /// Tokens of a sequence computed after `pass`.
  std::int64_t computed_after(const Sequence& q, std::int64_t pass) const {
    return q.state == SequenceState::kDecode ? q.computed + (pass - q.entry_pass) : q.computed;
  }
  /// Adds a sequence that samples in this pass. `steady`: it also did in the one before.
  void enter(SequenceSlot s, StepPlan& plan, bool steady);
  /// Takes out a member whose last token is scheduled.
  void leave(SequenceSlot s);
  /// Takes out a member that is aborted.
  void leave_aborted(SequenceSlot s);
  /// Takes a member out before this pass counts it. Its state stays kDecode for the preemption.
  void leave_for_preemption(SequenceSlot s);
  /// Takes out the members that ended with the last pass.
  void retire_leavers();
  /// Writes down the blocks that a member with `computed` tokens has come to hold.
  void assign_blocks(Sequence& q, std::int64_t computed) const;
  /// Empties the set for a pass that visits every running sequence: each member gets its own counts
  /// as of the pass before.
  void dissolve(std::span<const SequenceSlot> running);

  /// Throws InternalError where the sums differ from the sequences' own counts. Returns the blocks
  /// that were taken for members and not assigned yet.
  std::int64_t verify() const;

 private:
  std::size_t phase_after(std::int64_t passes) const {
    return static_cast<std::size_t>(block_.remainder(static_cast<std::int64_t>(phase_) + passes));
  }
  std::int64_t blocks_for(std::int64_t tokens) const {
    return block_.quotient(tokens + block_.divisor() - 1);
  }
  std::size_t bucket_of(const Sequence& q) const;
  void add_to_bucket(SequenceSlot s);
  void remove_from_bucket(SequenceSlot s);
  void settle_counts(Sequence& q) const;
  void note_finishing(StepPlan& plan);

  // Data that pure decode passes need, side by side.
  Divisor block_;                         ///< By the block size.
  std::size_t phase_ = 0;                 ///< pass_ modulo block size.
  std::vector<std::uint32_t> crossings_;  ///< Sizes of buckets_.
  std::int64_t pass_ = 0;
  std::int64_t size_ = 0;
  std::int64_t context_ = 0;

  std::vector<std::vector<SequenceSlot>> buckets_;  ///< By phase of the next block crossing.
  FinishList finishes_;
  std::vector<SequenceRef> leavers_;  ///< Sampled their last token in the last pass.
  std::int64_t wasted_slots_ = 0;
  std::uint64_t last_order_ = 0;
  SequenceTable& sequences_;
};

}  // namespace routesim::sim
