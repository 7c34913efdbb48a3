// One scheduling pass of vLLM v1: phase A gives tokens to running sequences in order, preempting
// the last one when blocks run out; phase B admits waiting ones (admission_pass.cpp).
#include <algorithm>

#include "base/check.h"
#include "sim/engine/batch_scheduler.h"

namespace routesim::sim {

void BatchScheduler::schedule(StepPlan& plan, StepPlan* in_flight, SimTime now,
                              std::vector<EngineOutput>& out) {
  // A pass in which a sequence preempted itself may schedule nothing. vLLM's loop then goes round
  // again at once; with a step still running there is time for that when it ends.
  do run_pass(plan, in_flight, now, out);
  while (in_flight == nullptr && preempted_ && plan.empty());
}

void BatchScheduler::run_pass(StepPlan& plan, StepPlan* in_flight, SimTime now,
                              std::vector<EngineOutput>& out) {
  plan.clear();
  if (!leavers_.empty()) retire_leavers();
  next_pass();
  deferred_ = rules_.prefill_schedule_interval > 1 &&
              pass_ % rules_.prefill_schedule_interval != 0 && !saturated_ && decodes_ > 0;
  ++counters_.passes;
  plan.pass = pass_;
  budget_ = rules_.max_num_batched_tokens;
  preempted_ = false;
  if (reference_ || !schedule_running_fast(plan, in_flight, now))
    walk_running(plan, in_flight, now);
  if (!preempted_ && !(waiting_.empty() && skipped_.empty())) admit(plan, now, out);
  if (rules_.max_loras > 0) place_adapters(plan);
  // Sequences that only hold blocks (prompts, pulls, hand-overs) share them, too, but read nothing.
  plan.shape.shared_context = std::min(kv_.shared_tokens(), plan.shape.decode_context);
  if (!deferred_) saturated_ = !waiting_.empty();
  counters_.max_running = std::max(counters_.max_running, running());
  // vLLM processes results in the order of its running list.
  const auto earlier = [this](SequenceRef a, SequenceRef b) {
    return seq(a.slot).order < seq(b.slot).order;
  };
  if (plan.sampled.size() > 1) std::sort(plan.sampled.begin(), plan.sampled.end(), earlier);
  if (plan.finishing.size() > 1) std::sort(plan.finishing.begin(), plan.finishing.end(), earlier);
}

// The common pass: every decode gets its token, then the prompts being prefilled share the rest of
// the budget. Changes nothing and returns false where every sequence must be looked at: one was
// left out last time, or a prompt stands before a decode and eats its budget.
bool BatchScheduler::schedule_running_fast(StepPlan& plan, StepPlan* in_flight, SimTime now) {
  if (decodes_ > budget_ || any_paused()) return false;
  std::int64_t need = crossings_[phase_];
  std::int64_t left = budget_ - decodes_;
  bool prompts_last = true;
  if (!deferred_ && !prefilling_.empty()) {
    std::int64_t wanted = 0;
    for (const Slot s : prefilling_) {
      Sequence& q = seq(s);
      std::int64_t n = q.target - q.computed;
      if (rules_.long_prefill_token_threshold > 0)
        n = std::min(n, rules_.long_prefill_token_threshold);
      wanted += n;
      q.scheduled = std::min(n, left);
      left -= q.scheduled;
      need += blocks_for(q.computed + q.scheduled) - q.holding.blocks;
    }
    prompts_last = decodes_ == 0 || seq(prefilling_.front()).order > last_decode_order_;
    if (wanted > budget_ - decodes_ && (!prompts_last || need > kv_.free_blocks())) return false;
  }
  // Order shows where blocks are short and, with listeners, in their events.
  if (need > kv_.free_blocks() || (sink_ != nullptr && crossings_[phase_] > 0 && !prompts_last)) {
    if (rules_.scheduling_policy != SchedulingPolicy::kFcfs) return false;
    allocate_in_order(in_flight, now);
  } else {
    cross_blocks();
  }
  schedule_decodes(plan);
  if (!deferred_) schedule_prefills(plan);
  return true;
}

bool BatchScheduler::any_paused() {
  if (paused_) {
    paused_ = std::any_of(running_.begin(), running_.end(),
                          [this](Slot s) { return seq(s).state == State::kPaused; });
  }
  return paused_;
}

void BatchScheduler::schedule_decodes(StepPlan& plan) {
  plan.steady = decodes_ - wasted_slots_;
  plan.shape.decode_requests = decodes_;
  decode_context_ += decodes_;
  plan.shape.decode_context = decode_context_;
  budget_ -= decodes_;
  note_finishing(plan);
}

void BatchScheduler::schedule_prefills(StepPlan& plan) {
  for (std::size_t i = 0; i < prefilling_.size();) {
    const Slot s = prefilling_[i];
    const std::int64_t n = seq(s).scheduled;
    if (n == 0) break;
    kv_.allocate(blocks_for(seq(s).computed + n) - seq(s).holding.blocks, seq(s).holding);
    budget_ -= n;
    give_prefill(s, n, plan);
    if (seq(s).state == State::kPrefill) ++i;
  }
}

// Gives blocks to those that need some in this pass, in the order of the running list, preempting
// from its end: what a walk does, without looking at sequences that need nothing. First come, first
// served only, where victims always stand behind those already served.
void BatchScheduler::allocate_in_order(StepPlan* in_flight, SimTime now) {
  needy_ = buckets_[phase_];
  if (!deferred_) needy_.insert(needy_.end(), prefilling_.begin(), prefilling_.end());
  std::sort(needy_.begin(), needy_.end(),
            [this](Slot a, Slot b) { return seq(a).order < seq(b).order; });
  for (const Slot s : needy_) {
    Sequence& q = seq(s);
    if (q.state != State::kDecode && q.state != State::kPrefill)
      return;  // preempted, as all behind
    const bool prefill = q.state == State::kPrefill;
    const std::int64_t tokens =
        prefill ? q.computed + q.scheduled : computed_after(q, pass_ - 1) + 1;
    if (!prefill) assign_blocks(q, tokens - 1);
    const std::int64_t need = blocks_for(tokens) - q.holding.blocks;
    while (need > kv_.free_blocks()) {
      const Slot victim = running_.back();
      running_.pop_back();
      if (seq(victim).state == State::kDecode) leave_for_preemption(victim);
      seq(victim).scheduled = 0;
      preempt(victim, in_flight, now);
      if (victim == s) return;
    }
    const std::int64_t registered = q.registered;
    if (!prefill && !q.request.private_answer) register_up_to(s, tokens - 1);
    kv_.allocate(need, q.holding);
    if (prefill) register_up_to(s, tokens);
    if (q.registered != registered) retry_admission_ = true;
  }
}

void BatchScheduler::dissolve_decode_set() {
  for (const Slot s : running_) {
    Sequence& q = seq(s);
    q.scheduled = 0;
    if (q.state == State::kDecode) settle_counts(q);
  }
  for (std::vector<Slot>& bucket : buckets_) bucket.clear();
  std::fill(crossings_.begin(), crossings_.end(), 0);
  finishes_.clear();
  leavers_.clear();
  decodes_ = 0;
  decode_context_ = 0;
  wasted_slots_ = 0;
}

void BatchScheduler::walk_running(StepPlan& plan, StepPlan* in_flight, SimTime now) {
  ++counters_.walks;
  dissolve_decode_set();
  for (std::size_t i = 0; i < running_.size() && budget_ > 0;) {
    const State state = seq(running_[i]).state;
    if (state == State::kDraining || (deferred_ && state == State::kPrefill)) {
      ++i;
      continue;
    }
    if (!walk_one(i, in_flight, now)) break;
  }
  settle_walk(plan, in_flight, now);
}

// Gives tokens to running_[i] and moves i on. False when the pass must stop because the sequence
// preempted itself.
bool BatchScheduler::walk_one(std::size_t& i, StepPlan* in_flight, SimTime now) {
  const Slot s = running_[i];
  std::int64_t n = 1;
  if (seq(s).state == State::kPrefill) {
    n = seq(s).target - seq(s).computed;
    if (rules_.long_prefill_token_threshold > 0)
      n = std::min(n, rules_.long_prefill_token_threshold);
    n = std::min(n, budget_);
  }
  const std::int64_t own = blocks_for(seq(s).computed + n) - seq(s).holding.blocks;
  leave_windows(seq(s));
  const std::int64_t window = window_need(seq(s), seq(s).computed + n);
  const std::int64_t need = own + rules_.window_groups * window;
  while (need > kv_.free_blocks()) {
    const std::size_t victim_index = choose_victim();
    const Slot victim = running_[victim_index];
    // As in vLLM, the place in the list moves only with a victim that was given tokens: after one
    // that merely waits for its last token, the next sequence is passed over.
    if (seq(victim).scheduled > 0) {
      budget_ += seq(victim).scheduled;
      --i;
    }
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(victim_index));
    preempt(victim, in_flight, now);
    if (victim == s) return false;
  }
  // Registered at once, as vLLM does, so that events come in the order of the running list.
  const std::int64_t registered = seq(s).registered;
  if (seq(s).state != State::kPrefill && !seq(s).request.private_answer)
    register_up_to(s, seq(s).computed);
  kv_.allocate(own, seq(s).holding);
  allocate_windows(seq(s), window);
  if (seq(s).state == State::kPrefill) register_up_to(s, seq(s).computed + n);
  if (seq(s).registered != registered) retry_admission_ = true;
  seq(s).scheduled = n;
  budget_ -= n;
  ++i;
  return true;
}

std::size_t BatchScheduler::choose_victim() const {
  if (rules_.scheduling_policy == SchedulingPolicy::kFcfs) return running_.size() - 1;
  std::size_t worst = 0;
  for (std::size_t i = 1; i < running_.size(); ++i) {
    const EngineRequest& a = seq(running_[worst]).request;
    const EngineRequest& b = seq(running_[i]).request;
    if (std::pair(a.priority, a.arrival_order) < std::pair(b.priority, b.arrival_order)) worst = i;
  }
  return worst;
}

bool BatchScheduler::awaits_token(const Sequence& q, const StepPlan* in_flight) const {
  if (in_flight == nullptr || q.state == State::kPrefill) return false;
  return q.state == State::kDecode ? q.finish_pass >= in_flight->pass
                                   : q.sample_pass == in_flight->pass;
}

void BatchScheduler::preempt(Slot s, StepPlan* in_flight, SimTime now) {
  Sequence& q = seq(s);
  // A token still being computed is not lost: vLLM delivers it to the preempted request, which may
  // even finish with it.
  const bool awaits = awaits_token(q, in_flight);
  if (awaits)
    in_flight->pausing.push_back(ref(s));
  else if (q.state == State::kDecode)
    q.last_token = now;
  // What was computed stays findable until its blocks are recycled.
  register_up_to(s, q.computed + q.scheduled - (awaits ? 1 : 0));
  if (q.state == State::kPrefill) erase_prefilling(s);
  free_blocks(s);
  ++q.preemptions;
  ++counters_.preemptions;
  q.state = State::kWaiting;
  q.target = q.request.prompt_tokens + q.sampled;
  hits_version_ = 0;
  q.finish_pass = -1;  // a place it may have among those to finish is void
  q.computed = 0;
  q.scheduled = 0;
  q.remote_done = true;
  preempted_ = true;
  retry_admission_ = true;
  if (rules_.scheduling_policy == SchedulingPolicy::kFcfs) {
    waiting_.push_front(s);
    return;
  }
  const auto before = [this](Slot a, Slot b) {
    const EngineRequest& x = seq(a).request;
    const EngineRequest& y = seq(b).request;
    return std::pair(x.priority, x.arrival_order) < std::pair(y.priority, y.arrival_order);
  };
  waiting_.insert(std::lower_bound(waiting_.begin(), waiting_.end(), s, before), s);
}

// After the walk every survivor takes its new place: prompts advance, decodes rejoin the set, and
// those the budget did not reach are paused.
void BatchScheduler::settle_walk(StepPlan& plan, StepPlan* in_flight, SimTime now) {
  count_adapters(plan);
  for (const Slot s : running_) {
    Sequence& q = seq(s);
    const bool decoding = q.state == State::kDecode || q.state == State::kPaused;
    if (!decoding) continue;
    if (q.scheduled == 0) {
      if (q.state == State::kPaused) continue;
      if (q.sampled == q.request.output_tokens) {
        q.state = State::kDraining;  // its last token is in flight; nothing more to schedule
        continue;
      }
      q.state = State::kPaused;
      paused_ = true;
      if (in_flight != nullptr && q.sample_pass == in_flight->pass)
        in_flight->pausing.push_back(ref(s));
      else
        q.last_token = now;
      continue;
    }
    ++q.computed;
    ++plan.shape.decode_requests;
    plan.shape.decode_context += q.computed;
    if (q.sampled == q.request.output_tokens) {
      q.state = State::kDraining;  // the slot an EOS request wastes under async scheduling
      continue;
    }
    enter_decode(s, plan, q.state == State::kDecode);
  }
  for (const Slot s : std::vector<Slot>(prefilling_))
    if (seq(s).scheduled > 0) give_prefill(s, seq(s).scheduled, plan);
}

void BatchScheduler::give_prefill(Slot s, std::int64_t n, StepPlan& plan) {
  Sequence& q = seq(s);
  const std::int64_t before = q.computed;
  q.computed += n;
  q.scheduled = 0;
  ++plan.shape.prefill_requests;
  plan.shape.prefill_tokens += n;
  plan.shape.prefill_context += q.computed;
  plan.shape.prefill_pairs += q.computed * q.computed - before * before;
  const std::int64_t registered = q.registered;
  register_up_to(s, q.computed);
  if (q.registered != registered) retry_admission_ = true;
  if (q.computed < q.target) return;
  erase_prefilling(s);
  enter_decode(s, plan, false);
}

}  // namespace routesim::sim
