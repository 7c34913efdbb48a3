// One scheduling pass of vLLM v1: phase A gives tokens to running sequences in order, preempting
// the last one when blocks run out; phase B admits waiting ones, first come first served.
#include <algorithm>

#include "sim/base/check.h"
#include "sim/batch_scheduler.h"

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
  retire_leavers();
  ++pass_;
  deferred_ = rules_.prefill_schedule_interval > 1 &&
              pass_ % rules_.prefill_schedule_interval != 0 && !saturated_ && decodes_ > 0;
  ++counters_.passes;
  plan.pass = pass_;
  budget_ = rules_.max_num_batched_tokens;
  preempted_ = false;
  if (reference_ || !schedule_running_fast(plan, in_flight, now))
    walk_running(plan, in_flight, now);
  if (!preempted_) admit(plan, now, out);
  // Sequences that only hold blocks (prompts, pulls, hand-overs) share them, too, but read nothing.
  plan.shape.shared_context = std::min(kv_.shared_tokens(), plan.shape.decode_context);
  if (!deferred_) saturated_ = !waiting_.empty();
  counters_.max_running = std::max(counters_.max_running, running());
  // vLLM processes results in the order of its running list.
  const auto earlier = [this](SequenceRef a, SequenceRef b) {
    return seq(a.slot).order < seq(b.slot).order;
  };
  std::sort(plan.sampled.begin(), plan.sampled.end(), earlier);
  std::sort(plan.finishing.begin(), plan.finishing.end(), earlier);
}

// The common pass: every decode gets its token, then the prompts being prefilled share the rest of
// the budget. Changes nothing and returns false where every sequence must be looked at: one was
// left out last time, or a prompt stands before a decode and eats its budget.
bool BatchScheduler::schedule_running_fast(StepPlan& plan, StepPlan* in_flight, SimTime now) {
  if (decodes_ > budget_ || any_paused()) return false;
  const std::vector<Slot>& crossing = buckets_[static_cast<std::size_t>(pass_ % rules_.block_size)];
  auto need = static_cast<std::int64_t>(crossing.size());
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
      need += blocks_for(q.computed + q.scheduled) - static_cast<std::int64_t>(q.blocks.size());
    }
    prompts_last = decodes_ == 0 || seq(prefilling_.front()).order > last_decode_order_;
    if (wanted > budget_ - decodes_ && (!prompts_last || need > kv_.free_blocks())) return false;
  }
  // Order shows where blocks are short and, with listeners, in their events.
  if (need > kv_.free_blocks() || (sink_ != nullptr && !crossing.empty() && !prompts_last)) {
    if (rules_.scheduling_policy != SchedulingPolicy::kFcfs) return false;
    allocate_in_order(in_flight, now);
  } else {
    for (const Slot s : crossing) cross_block(s);
  }
  schedule_decodes(plan);
  if (!deferred_) schedule_prefills(plan);
  return true;
}

bool BatchScheduler::any_paused() const {
  if (running() == decodes_ + std::ssize(prefilling_)) return false;
  return std::any_of(running_.begin(), running_.end(),
                     [this](Slot s) { return seq(s).state == State::kPaused; });
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
    kv_.allocate(blocks_for(seq(s).computed + n) - std::ssize(seq(s).blocks), seq(s).blocks);
    budget_ -= n;
    give_prefill(s, n, plan);
    if (seq(s).state == State::kPrefill) ++i;
  }
}

// Gives blocks to those that need some in this pass, in the order of the running list, preempting
// from its end: what a walk does, without looking at sequences that need nothing. First come, first
// served only, where victims always stand behind those already served.
void BatchScheduler::allocate_in_order(StepPlan* in_flight, SimTime now) {
  needy_ = buckets_[static_cast<std::size_t>(pass_ % rules_.block_size)];
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
    const std::int64_t need = blocks_for(tokens) - std::ssize(q.blocks);
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
    kv_.allocate(need, q.blocks);
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
  finish_heap_.clear();
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
  const std::int64_t need =
      blocks_for(seq(s).computed + n) - static_cast<std::int64_t>(seq(s).blocks.size());
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
  kv_.allocate(need, seq(s).blocks);
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
  remember_private_blocks(s);
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

void BatchScheduler::admit(StepPlan& plan, SimTime now, std::vector<EngineOutput>& out) {
  for (std::size_t i = 0; i < skipped_.size() && budget_ > 0;) {
    const Slot s = skipped_[i];
    if (!seq(s).remote_ready) {
      ++i;
      continue;
    }
    if (running() >= rules_.max_num_seqs) return;
    if (!seq(s).remote_done) accept_loaded(s);
    if (try_admit(s, plan, now, out) != Admission::kAdmitted) return;
    skipped_.erase(skipped_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (waiting_.empty() || (!retry_admission_ && !reference_)) return;
  std::size_t position = 0;
  while (position < waiting_.size() && budget_ > 0) {
    if (running() >= rules_.max_num_seqs) {
      retry_admission_ = false;  // until a sequence leaves
      return;
    }
    const Slot s = waiting_[position];
    const Admission result = try_admit(s, plan, now, out);
    if (result == Admission::kNoBudget) {
      retry_admission_ = true;
      return;
    }
    if (result == Admission::kBlocked) {
      if (rules_.skip_unallocatable_head && running_.empty()) {
        ++position;
        continue;
      }
      retry_admission_ = false;
      return;
    }
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(position));
  }
  retry_admission_ = true;
}

// Fills hits_ with the longest cached prefix of a waiting sequence and returns its length. The head
// of the queue asks again and again while it does not fit, mostly with the same result.
std::int64_t BatchScheduler::lookup_prefix(Slot s) {
  const Sequence& q = seq(s);
  if (!rules_.enable_prefix_caching || q.request.keys == nullptr) {
    hits_.clear();
    return 0;
  }
  if (hits_version_ == kv_.version() && hits_of_.slot == s && hits_of_.stamp == q.stamp)
    return std::ssize(hits_);
  hits_version_ = 0;
  // At least one token must be computed to sample from, so never the whole prompt.
  const std::int64_t limit = (q.target - 1) / rules_.block_size;
  const std::span<const BlockKey> prompt = q.request.keys->engine;
  const std::int64_t prompt_blocks = std::ssize(prompt);
  if (limit <= prompt_blocks || q.request.private_answer) {
    const std::int64_t known = std::min(limit, prompt_blocks);
    const std::int64_t hit = kv_.lookup(prompt.first(static_cast<std::size_t>(known)), hits_);
    if (limit <= prompt_blocks) {
      hits_of_ = ref(s);
      hits_version_ = kv_.version();
    } else if (hit == prompt_blocks) {
      append_former_blocks(q, limit);
    }
    return std::ssize(hits_);
  }
  keys_.assign(prompt.begin(), prompt.end());
  for (auto b = static_cast<std::int64_t>(prompt.size()); b < limit; ++b)
    keys_.push_back(block_key(q, b, keys_.empty() ? 0 : keys_.back()));
  return kv_.lookup(keys_, hits_);
}

// A private block is in no table: the sequence remembers which blocks were its own, and the first
// registered of those that still hold a position is the one vLLM would find.
void BatchScheduler::append_former_blocks(const Sequence& q, std::int64_t limit) {
  for (std::int64_t b = std::ssize(hits_); b < limit; ++b) {
    const BlockKey key = private_key(q, b);
    const auto found = std::find_if(q.former.begin(), q.former.end(), [&](const FormerBlock& f) {
      return f.position == b && kv_.key(f.block) == key;
    });
    if (found == q.former.end()) return;
    hits_.push_back(found->block);
  }
}

// Before a preempted sequence gives up its blocks.
void BatchScheduler::remember_private_blocks(Slot s) {
  Sequence& q = seq(s);
  if (!q.request.private_answer || !rules_.enable_prefix_caching) return;
  const std::int64_t prompt_blocks = std::ssize(q.request.keys->engine);
  // Hits are remembered already, at their place in the order.
  for (std::int64_t b = std::max(prompt_blocks, q.reused); b < q.registered; ++b) {
    const BlockIndex block = q.blocks[static_cast<std::size_t>(b)];
    std::erase_if(q.former, [block](const FormerBlock& f) { return f.block == block; });
    q.former.push_back({.position = b, .block = block});
  }
}

BatchScheduler::Admission BatchScheduler::try_admit(Slot s, StepPlan& plan, SimTime now,
                                                    std::vector<EngineOutput>& out) {
  Sequence& q = seq(s);
  std::int64_t hit = 0;
  if (q.computed == 0) {
    hit = lookup_prefix(s);
    if (q.request.remote_tokens > 0 && !q.remote_done) {
      const Admission started = start_remote_load(s, hit, now, out);
      if (started == Admission::kLoading || started == Admission::kBlocked) return started;
    }
  } else {
    hits_.clear();
    hits_version_ = 0;
  }
  const std::int64_t computed = q.computed + hit * rules_.block_size;
  if (deferred_ && computed < q.target - 1) return Admission::kNoBudget;
  std::int64_t n = q.target - computed;
  if (rules_.long_prefill_token_threshold > 0) n = std::min(n, rules_.long_prefill_token_threshold);
  if (!rules_.enable_chunked_prefill && n > budget_) return Admission::kNoBudget;
  n = std::min(n, budget_);

  const auto held = static_cast<std::int64_t>(q.blocks.size());
  const std::int64_t need = blocks_for(computed + n) - held - hit;
  const std::int64_t wanted =
      rules_.reserve_full_isl ? std::max(need, blocks_for(q.target) - held - hit) : need;
  const std::int64_t reserve = running_.empty() ? 0 : rules_.watermark_blocks;
  const std::int64_t free = kv_.free_blocks() - reserve - wanted;
  if (free < 0 || kv_.count_unreferenced(hits_) > free) return Admission::kBlocked;

  if (q.cached < 0) {
    q.cached = std::min(hit * rules_.block_size, q.request.prompt_tokens);
    counters_.prefix_query_tokens += q.request.prompt_tokens;
    counters_.prefix_hit_tokens += q.cached;
  }
  if (hit > 0) {
    q.last_key = kv_.key(hits_.back());
    q.registered = hit;
    kv_.take_hits(hits_, q.blocks);
  }
  if (q.computed == 0) q.reused = hit;
  kv_.allocate(need, q.blocks);
  q.computed = computed;
  q.state = State::kPrefill;
  q.order = ++next_order_;
  q.remote_done = true;
  running_.push_back(s);
  prefilling_.push_back(s);
  budget_ -= n;
  give_prefill(s, n, plan);
  return Admission::kAdmitted;
}

std::int64_t BatchScheduler::blocks_owed_to_prefills() const {
  std::int64_t owed = 0;
  for (const std::vector<Slot>* list : {&prefilling_, &skipped_})
    for (const Slot s : *list)
      owed += blocks_for(seq(s).target) - static_cast<std::int64_t>(seq(s).blocks.size());
  return owed;
}

// PD decode leg: all blocks of the prompt at once, so that the pull has somewhere to land. Returns
// kAdmitted when nothing is left to pull and the request can go on like any other.
BatchScheduler::Admission BatchScheduler::start_remote_load(Slot s, std::int64_t hit, SimTime now,
                                                            std::vector<EngineOutput>& out) {
  Sequence& q = seq(s);
  std::int64_t covered = std::min(q.request.remote_tokens, q.request.prompt_tokens);
  if (!rules_.remote_partial_block) covered -= covered % rules_.block_size;
  const std::int64_t missing = covered - hit * rules_.block_size;
  if (missing <= 0) {
    q.remote_done = true;
    out.push_back(
        {.kind = EngineOutputKind::kNothingToPull, .handle = q.request.handle, .at = now});
    return Admission::kAdmitted;
  }
  const std::int64_t need = blocks_for(covered) - hit;
  const std::int64_t unreferenced = kv_.count_unreferenced(hits_);
  const std::int64_t reserve = running_.empty() ? 0 : rules_.watermark_blocks;
  const std::int64_t free = kv_.free_blocks() - blocks_owed_to_prefills();
  if (need + unreferenced + reserve > free) return Admission::kBlocked;
  q.cached = std::min(hit * rules_.block_size, q.request.prompt_tokens);
  counters_.prefix_query_tokens += q.request.prompt_tokens;
  counters_.prefix_hit_tokens += q.cached;
  if (hit > 0) {
    q.last_key = kv_.key(hits_.back());
    q.registered = hit;
    kv_.take_hits(hits_, q.blocks);
  }
  kv_.allocate(need, q.blocks);
  q.state = State::kRemote;
  skipped_.push_back(s);
  out.push_back({.kind = EngineOutputKind::kTransferNeeded,
                 .handle = q.request.handle,
                 .value = need,
                 .at = now});
  return Admission::kLoading;
}

void BatchScheduler::accept_loaded(Slot s) {
  Sequence& q = seq(s);
  std::int64_t covered = std::min(q.request.remote_tokens, q.request.prompt_tokens);
  if (!rules_.remote_partial_block) covered -= covered % rules_.block_size;
  register_up_to(s, covered);
  retry_admission_ = true;  // a waiting prompt may hit what has just arrived
  q.computed = covered == q.target ? covered - 1 : covered;
  q.remote_done = true;
}

}  // namespace routesim::sim
