// The decode set of a BatchScheduler: sequences that take one token in every pass, kept as sums.
#include <algorithm>

#include "base/check.h"
#include "sim/engine/batch_scheduler.h"

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

std::int64_t BatchScheduler::computed_after(const Sequence& q, std::int64_t pass) const {
  return q.state == State::kDecode ? q.computed + (pass - q.entry_pass) : q.computed;
}

std::size_t BatchScheduler::bucket_of(const Sequence& q) const {
  // The pass in which the sequence needs slot number held * block_size, one past what it owns.
  const auto held = q.holding.blocks;
  const std::int64_t crossing = q.entry_pass + held * rules_.block_size + 1 - q.computed;
  return static_cast<std::size_t>(block_.remainder(crossing));
}

void BatchScheduler::add_to_bucket(Slot s) {
  const std::size_t b = bucket_of(seq(s));
  seq(s).bucket_position = crossings_[b]++;
  buckets_[b].push_back(s);
}

void BatchScheduler::remove_from_bucket(Slot s) {
  const std::size_t b = bucket_of(seq(s));
  --crossings_[b];
  std::vector<Slot>& bucket = buckets_[b];
  const std::uint32_t position = seq(s).bucket_position;
  bucket[position] = bucket.back();
  seq(bucket[position]).bucket_position = position;
  bucket.pop_back();
}

void BatchScheduler::enter_decode(Slot s, StepPlan& plan, bool steady) {
  Sequence& q = seq(s);
  ++q.sampled;
  q.sample_pass = pass_;
  q.entry_pass = pass_;
  q.finish_pass = pass_ + (q.request.output_tokens - q.sampled);
  if (steady) {
    ++plan.steady;
  } else {
    q.streak_pass = pass_;
    plan.sampled.push_back(ref(s));
  }
  const bool last = q.sampled == q.request.output_tokens;
  if (last) {
    plan.finishing.push_back(ref(s));
    if (!q.wastes_slot) {
      q.state = State::kDraining;
      return;
    }
    ++wasted_slots_;  // the scheduler does not know yet that it ends: one more slot, in vain
  }
  q.state = State::kDecode;
  ++decodes_;
  decode_context_ += q.computed;
  last_decode_order_ = std::max(last_decode_order_, q.order);
  add_to_bucket(s);
  if (last) return;
  finishes_.add(q.finish_pass, ref(s));
}

void BatchScheduler::leave_decode(Slot s) {
  Sequence& q = seq(s);
  ROUTESIM_DCHECK(q.state == State::kDecode, "only members can leave");
  remove_from_bucket(s);
  --decodes_;
  const std::int64_t computed = computed_after(q, pass_);
  assign_blocks(q, computed);
  decode_context_ -= computed;
  q.state = State::kDraining;
  q.computed = computed;
}

// Writes down what membership implied: counts as of the pass before this one.
void BatchScheduler::settle_counts(Sequence& q) {
  q.computed = computed_after(q, pass_ - 1);
  assign_blocks(q, q.computed);
  q.sampled =
      std::min(q.request.output_tokens, q.request.output_tokens - (q.finish_pass - (pass_ - 1)));
  q.sample_pass = std::min(q.finish_pass, pass_ - 1);
  q.entry_pass = std::min(q.entry_pass, pass_ - 1);
}

// Takes a member out before this pass counts it. It stays kDecode for preempt() to see.
void BatchScheduler::leave_for_preemption(Slot s) {
  Sequence& q = seq(s);
  remove_from_bucket(s);
  settle_counts(q);
  --decodes_;
  decode_context_ -= q.computed;
  if (q.wastes_slot && q.sampled == q.request.output_tokens) --wasted_slots_;
}

void BatchScheduler::retire_leavers() {
  for (const SequenceRef r : leavers_)
    if (current(r) && seq(r.slot).state == State::kDecode) leave_decode(r.slot);
  leavers_.clear();
}

void BatchScheduler::note_finishing(StepPlan& plan) {
  wasted_slots_ = 0;
  while (!finishes_.empty() && finishes_.first_pass() <= pass_) {
    const std::int64_t pass = finishes_.first_pass();
    const SequenceRef r = finishes_.pop();
    if (!current(r) || pass != pass_ || seq(r.slot).finish_pass != pass) continue;
    plan.finishing.push_back(r);
    seq(r.slot).sampled = seq(r.slot).request.output_tokens;
    seq(r.slot).sample_pass = pass_;
    if (seq(r.slot).wastes_slot)
      ++wasted_slots_;
    else
      leavers_.push_back(r);
  }
}

// Who needs a block in this pass gets one. The key of a public answer's last block is announced
// now; what a private one holds matters only when it leaves the set, and the sequence is left
// alone.
void BatchScheduler::cross_blocks() {
  if (crossings_[phase_] == 0) return;
  if (!public_answers_) {
    kv_.take(crossings_[phase_]);
    return;
  }
  for (const Slot s : buckets_[phase_]) {
    Sequence& q = seq(s);
    if (q.request.private_answer) {
      kv_.take(1);
    } else {
      register_up_to(s, q.holding.blocks * rules_.block_size);
      kv_.allocate(1, q.holding);
    }
  }
}

// Writes down the blocks that a member of the decode set with so many tokens has come to hold.
void BatchScheduler::assign_blocks(Sequence& q, std::int64_t computed) {
  KvCache::assign(blocks_for(computed) - q.holding.blocks, q.holding);
}

std::int64_t BatchScheduler::crossings_until(std::int64_t passes) const {
  std::int64_t total = block_.quotient(passes) * decodes_;
  std::size_t phase = phase_;
  for (std::int64_t i = block_.remainder(passes); i > 0; --i) {
    phase = phase + 1 == crossings_.size() ? 0 : phase + 1;
    total += crossings_[phase];
  }
  return total;
}

// No sequence does or waits for anything but to decode.
bool BatchScheduler::decodes_only() const {
  if (reference_ || decodes_ == 0 || !prefilling_.empty() || !leavers_.empty() ||
      wasted_slots_ != 0 || decodes_ > rules_.max_num_batched_tokens)
    return false;
  if (static_cast<std::int64_t>(running_.size()) != decodes_) return false;  // paused or draining
  if (any_promotable() || (!waiting_.empty() && retry_admission_)) return false;
  return rules_.prefill_schedule_interval <= 1 || saturated_ != waiting_.empty();
}

BatchScheduler::Foresight BatchScheduler::foresee(std::int64_t limit) const {
  if (!decodes_only()) return {};
  std::int64_t n = limit;
  bool finishes = false;
  if (!finishes_.empty() && finishes_.first_pass() - pass_ - 1 <= n) {
    n = finishes_.first_pass() - pass_ - 1;
    finishes = n >= 0;
  }
  if (n < 0) return {};
  if (kv_.free_blocks() >= decodes_ * (block_.quotient(n + 1) + 1)) return {n, finishes};
  // Blocks are scarce: find how far they certainly last. Crossings grow with n, so halve.
  while (n > 0 && crossings_until(n) > kv_.free_blocks()) n /= 2;
  return {n, false};
}

std::int64_t BatchScheduler::silent_passes(std::int64_t limit) const {
  if (sink_ == nullptr) return limit;
  if (public_answers_) return 0;
  // In as many passes as a block has tokens every sequence takes a block.
  const std::int64_t rounds = block_.quotient(limit);
  std::int64_t blocks = kv_.blocks_before_known(decodes_ * (rounds + 1));
  if (blocks >= decodes_ * (rounds + 1)) return limit;
  std::int64_t n = std::min(rounds, blocks / decodes_) * rules_.block_size;
  blocks -= n / rules_.block_size * decodes_;
  for (; n < limit; ++n) {
    blocks -= crossings_in(n + 1);
    if (blocks < 0) break;
  }
  return n;
}

void BatchScheduler::calm_pass() {
  next_pass();
  ++counters_.passes;
  decode_context_ += decodes_;
  cross_blocks();
}

void BatchScheduler::calm_passes(std::int64_t passes, std::int64_t blocks) {
  pass_ += passes;
  phase_ = phase_after(passes);
  counters_.passes += passes;
  decode_context_ += passes * decodes_;
  if (blocks > 0) kv_.take(blocks);
}

}  // namespace routesim::sim
