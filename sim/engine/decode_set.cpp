#include "sim/engine/decode_set.h"

#include <algorithm>

#include "base/check.h"

namespace routesim::sim {

void FinishList::add(std::int64_t pass, SequenceRef sequence) {
  const Entry entry{pass, sequence};
  if (empty() || entries_.back().pass <= pass) {
    entries_.push_back(entry);
    return;
  }
  const auto later = [](std::int64_t p, const Entry& e) { return p < e.pass; };
  const auto first = entries_.begin() + static_cast<std::ptrdiff_t>(head_);
  entries_.insert(std::upper_bound(first, entries_.end(), pass, later), entry);
}

SequenceRef FinishList::pop() {
  const SequenceRef sequence = entries_[head_++].sequence;
  if (empty()) {
    clear();
  } else if (head_ >= 64 && 2 * head_ >= entries_.size()) {
    entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }
  return sequence;
}

std::size_t DecodeSet::bucket_of(const Sequence& q) const {
  // The pass in which the sequence needs slot number held * block_size, one past what it owns.
  const std::int64_t held = q.holding.blocks;
  const std::int64_t crossing = q.entry_pass + held * block_.divisor() + 1 - q.computed;
  return static_cast<std::size_t>(block_.remainder(crossing));
}

void DecodeSet::add_to_bucket(SequenceSlot s) {
  const std::size_t b = bucket_of(sequences_[s]);
  sequences_[s].bucket_position = crossings_[b]++;
  buckets_[b].push_back(s);
}

void DecodeSet::remove_from_bucket(SequenceSlot s) {
  const std::size_t b = bucket_of(sequences_[s]);
  --crossings_[b];
  std::vector<SequenceSlot>& bucket = buckets_[b];
  const std::uint32_t position = sequences_[s].bucket_position;
  bucket[position] = bucket.back();
  sequences_[bucket[position]].bucket_position = position;
  bucket.pop_back();
}

void DecodeSet::enter(SequenceSlot s, StepPlan& plan, bool steady) {
  Sequence& q = sequences_[s];
  ++q.sampled;
  q.sample_pass = pass_;
  q.entry_pass = pass_;
  q.finish_pass = pass_ + (q.request.output_tokens - q.sampled);
  if (steady) {
    ++plan.steady;
  } else {
    q.streak_pass = pass_;
    plan.sampled.push_back(sequences_.ref(s));
  }
  const bool last = q.sampled == q.request.output_tokens;
  if (last) {
    plan.finishing.push_back(sequences_.ref(s));
    if (!q.wastes_slot) {
      q.state = SequenceState::kDraining;
      return;
    }
    ++wasted_slots_;  // the scheduler does not know yet that it ends: one more slot, in vain
  }
  q.state = SequenceState::kDecode;
  ++size_;
  context_ += q.computed;
  last_order_ = std::max(last_order_, q.order);
  add_to_bucket(s);
  if (last) return;
  finishes_.add(q.finish_pass, sequences_.ref(s));
}

void DecodeSet::leave(SequenceSlot s) {
  Sequence& q = sequences_[s];
  ROUTESIM_DCHECK(q.state == SequenceState::kDecode, "only members can leave");
  remove_from_bucket(s);
  --size_;
  const std::int64_t computed = computed_after(q, pass_);
  assign_blocks(q, computed);
  context_ -= computed;
  q.state = SequenceState::kDraining;
  q.computed = computed;
}

void DecodeSet::leave_aborted(SequenceSlot s) {
  const Sequence& q = sequences_[s];
  if (q.wastes_slot && q.sampled == q.request.output_tokens) --wasted_slots_;
  leave(s);
}

void DecodeSet::settle_counts(Sequence& q) const {
  q.computed = computed_after(q, pass_ - 1);
  assign_blocks(q, q.computed);
  q.sampled =
      std::min(q.request.output_tokens, q.request.output_tokens - (q.finish_pass - (pass_ - 1)));
  q.sample_pass = std::min(q.finish_pass, pass_ - 1);
  q.entry_pass = std::min(q.entry_pass, pass_ - 1);
}

void DecodeSet::leave_for_preemption(SequenceSlot s) {
  Sequence& q = sequences_[s];
  remove_from_bucket(s);
  settle_counts(q);
  --size_;
  context_ -= q.computed;
  if (q.wastes_slot && q.sampled == q.request.output_tokens) --wasted_slots_;
}

void DecodeSet::retire_leavers() {
  for (const SequenceRef r : leavers_)
    if (sequences_.current(r) && sequences_[r.slot].state == SequenceState::kDecode) leave(r.slot);
  leavers_.clear();
}

void DecodeSet::note_finishing(StepPlan& plan) {
  wasted_slots_ = 0;
  while (!finishes_.empty() && finishes_.first_pass() <= pass_) {
    const std::int64_t pass = finishes_.first_pass();
    const SequenceRef r = finishes_.pop();
    if (!sequences_.current(r) || pass != pass_) continue;
    Sequence& q = sequences_[r.slot];
    if (q.finish_pass != pass) continue;
    plan.finishing.push_back(r);
    q.sampled = q.request.output_tokens;
    q.sample_pass = pass_;
    if (q.wastes_slot)
      ++wasted_slots_;
    else
      leavers_.push_back(r);
  }
}

void DecodeSet::decode_all(StepPlan& plan) {
  plan.steady = size_ - wasted_slots_;
  plan.shape.decode_requests = size_;
  context_ += size_;
  plan.shape.decode_context = context_;
  note_finishing(plan);
}

void DecodeSet::advance(std::int64_t passes) {
  pass_ += passes;
  phase_ = phase_after(passes);
  context_ += passes * size_;
}

void DecodeSet::assign_blocks(Sequence& q, std::int64_t computed) const {
  KvCache::assign(blocks_for(computed) - q.holding.blocks, q.holding);
}

void DecodeSet::dissolve(std::span<const SequenceSlot> running) {
  for (const SequenceSlot s : running) {
    Sequence& q = sequences_[s];
    q.scheduled = 0;
    if (q.state == SequenceState::kDecode) settle_counts(q);
  }
  for (std::vector<SequenceSlot>& bucket : buckets_) bucket.clear();
  std::fill(crossings_.begin(), crossings_.end(), 0);
  finishes_.clear();
  leavers_.clear();
  size_ = 0;
  context_ = 0;
  wasted_slots_ = 0;
}

std::int64_t DecodeSet::crossings_until(std::int64_t passes) const {
  std::int64_t total = block_.quotient(passes) * size_;
  std::size_t phase = phase_;
  for (std::int64_t i = block_.remainder(passes); i > 0; --i) {
    phase = phase + 1 == crossings_.size() ? 0 : phase + 1;
    total += crossings_[phase];
  }
  return total;
}

std::int64_t DecodeSet::passes_before_finish(std::int64_t limit, bool& ends) const {
  ends = false;
  if (finishes_.empty()) return limit;
  const std::int64_t before = finishes_.first_pass() - pass_ - 1;
  if (before > limit) return limit;
  ends = before >= 0;
  return before;
}

std::int64_t DecodeSet::verify() const {
  std::int64_t members = 0, context = 0, unassigned = 0;
  for (const Sequence& q : sequences_.all()) {
    if (q.state != SequenceState::kDecode) continue;
    ++members;
    const std::int64_t computed = computed_after(q, pass_);
    context += computed;
    const std::int64_t owed = blocks_for(computed) - q.holding.blocks;
    ROUTESIM_CHECK(owed == 0 || (owed > 0 && q.request.private_answer),
                   "a decoding sequence holds the wrong number of blocks");
    unassigned += owed;
  }
  ROUTESIM_CHECK(members == size_, "decode set size drifted");
  ROUTESIM_CHECK(context == context_, "sum of decode contexts drifted");
  return unassigned;
}

}  // namespace routesim::sim
