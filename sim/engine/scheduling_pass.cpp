// One scheduling pass of vLLM v1: phase A gives tokens to running sequences in order, preempting
// the last one when blocks run out; phase B admits waiting ones, first come, first served, onto the
// blocks that the prefix cache has of them and new ones for the rest.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sim/engine/batch_scheduler.h"

namespace routesim::sim {

void BatchScheduler::schedule(StepPlan& plan, StepPlan* in_flight, SimTime now,
                              std::vector<EngineOutput>& out) {
  // A pass in which a sequence preempted itself may schedule nothing. vLLM's loop then goes round
  // again at once; with a step still running there is time for that when it ends.
  do run_pass(plan, in_flight, now, out);
  while (in_flight == nullptr && plan.empty() &&
         (sglang_ != nullptr ? sglang_->goes_round() : pass_.preempted));
}

void BatchScheduler::run_pass(StepPlan& plan, StepPlan* in_flight, SimTime now,
                              std::vector<EngineOutput>& out) {
  if (sglang_ != nullptr) {
    sglang_->run(plan, in_flight, now);
    return finish_plan(plan);
  }
  plan.clear();
  if (decodes_.has_leavers()) decodes_.retire_leavers();
  decodes_.begin_pass();
  ++counters_.passes;
  plan.pass = decodes_.pass();
  pass_ = {.budget = rules_.max_num_batched_tokens,
           .prefills_deferred = rules_.prefill_schedule_interval > 1 &&
                                plan.pass % rules_.prefill_schedule_interval != 0 &&
                                last_release_ == LastRelease::kAdmittedAll && decoding() > 0};
  if (mode_ == PassMode::kWalkAll || !schedule_running_fast(plan, in_flight, now))
    walk_running(plan, in_flight, now);
  if (!pass_.preempted && !waiting_.empty()) admit(plan, now, out);
  if (adapters_.in_use()) adapters_.place(plan);
  if (has_tiers()) stores_.store_computed(plan);
  if (!pass_.prefills_deferred)
    last_release_ =
        waiting_.queue().empty() ? LastRelease::kAdmittedAll : LastRelease::kLeftWaiting;
  finish_plan(plan);
}

// Sequences that only hold blocks (prompts, pulls, hand-overs) share them, too, but read nothing.
// Of a pipeline's batches each has its part of the readers, by context.
void BatchScheduler::share_context(StepPlan& plan) const {
  const std::int64_t once = kv().shared_once();
  std::int64_t shared = kv().shared_tokens();
  if (rules_.pipeline_stages > 1) {
    const std::int64_t all = std::max<std::int64_t>(1, decode_context());
    shared = std::max<std::int64_t>(0, plan.shape.decode_context * (shared + once) / all - once);
  }
  plan.shape.shared_context = std::min(shared, plan.shape.decode_context);
  plan.shape.shared_once = once;
}

void BatchScheduler::finish_plan(StepPlan& plan) {
  share_context(plan);
  counters_.max_running = std::max(counters_.max_running, running());
  // Results are processed in the order of the running list.
  const auto earlier = [this](SequenceRef a, SequenceRef b) {
    return sequences_[a.slot].order < sequences_[b.slot].order;
  };
  if (plan.sampled.size() > 1) std::sort(plan.sampled.begin(), plan.sampled.end(), earlier);
  if (plan.finishing.size() > 1) std::sort(plan.finishing.begin(), plan.finishing.end(), earlier);
  std::sort(plan.verified.begin(), plan.verified.end(),
            [&](const StepPlan::Verified& a, const StepPlan::Verified& b) {
              return earlier(a.sequence, b.sequence);
            });
}

// The common pass: every decode gets its token, then the prompts being prefilled share the rest of
// the budget. Changes nothing and returns false where every sequence must be looked at: one was
// left out last time, or a prompt stands before a decode and uses its budget.
bool BatchScheduler::schedule_running_fast(StepPlan& plan, StepPlan* in_flight, SimTime now) {
  if (decodes_.size() > pass_.budget || running_.any_paused()) return false;
  const std::int64_t crossings = decodes_.crossings();
  std::int64_t need = crossings;
  std::int64_t left = pass_.budget - decodes_.size();
  bool prompts_last = true;
  if (!pass_.prefills_deferred && !running_.prefilling().empty()) {
    std::int64_t wanted = 0;
    for (const Slot s : running_.prefilling()) {
      Sequence& q = sequences_[s];
      std::int64_t n = q.target - q.computed;
      if (rules_.long_prefill_token_threshold > 0)
        n = std::min(n, rules_.long_prefill_token_threshold);
      wanted += n;
      q.scheduled = std::min(n, left);
      left -= q.scheduled;
      need += blocks_.blocks_for(q.computed + q.scheduled) - q.holding.blocks;
    }
    prompts_last = decodes_.size() == 0 ||
                   sequences_[running_.prefilling().front()].order > decodes_.last_order();
    if (wanted > pass_.budget - decodes_.size() && (!prompts_last || need > kv().free_blocks()))
      return false;
  }
  // Order shows where blocks are short and, with listeners, in their events.
  if (need > kv().free_blocks() || (blocks_.announces() && crossings > 0 && !prompts_last)) {
    if (rules_.scheduling_policy != SchedulingPolicy::kFcfs) return false;
    allocate_in_order(in_flight, now);
  } else {
    cross_blocks();
  }
  stores_.note_behind();
  schedule_decodes(plan);
  if (!pass_.prefills_deferred) schedule_prefills(plan);
  return true;
}

void BatchScheduler::schedule_decodes(StepPlan& plan) {
  pass_.budget -= decodes_.size();
  decodes_.decode_all(plan);
}

void BatchScheduler::schedule_prefills(StepPlan& plan) {
  for (std::size_t i = 0; i < running_.prefilling().size();) {
    const Slot s = running_.prefilling()[i];
    Sequence& q = sequences_[s];
    const std::int64_t n = q.scheduled;
    if (n == 0) break;
    kv().allocate(blocks_.blocks_for(q.computed + n) - q.holding.blocks, q.holding);
    pass_.budget -= n;
    give_prefill(s, n, plan);
    if (q.state == State::kPrefill) ++i;
  }
}

// Gives blocks to sequences that need some in this pass, in the order of the running list,
// preempting from its end: what a walk does, without looking at sequences that need nothing. First
// come, first served only, where victims always stand behind those already served.
void BatchScheduler::allocate_in_order(StepPlan* in_flight, SimTime now) {
  needy_.assign(decodes_.crossing().begin(), decodes_.crossing().end());
  if (!pass_.prefills_deferred)
    needy_.insert(needy_.end(), running_.prefilling().begin(), running_.prefilling().end());
  std::sort(needy_.begin(), needy_.end(),
            [this](Slot a, Slot b) { return sequences_[a].order < sequences_[b].order; });
  for (const Slot s : needy_) {
    Sequence& q = sequences_[s];
    // A preempted sequence: all behind it are, too.
    if (q.state != State::kDecode && q.state != State::kPrefill) return;
    const bool prefill = q.state == State::kPrefill;
    const std::int64_t tokens =
        prefill ? q.computed + q.scheduled : decodes_.computed_after(q, decodes_.pass() - 1) + 1;
    if (!prefill) decodes_.assign_blocks(q, tokens - 1);
    const std::int64_t need = blocks_.blocks_for(tokens) - q.holding.blocks;
    while (need > kv().free_blocks()) {
      const Slot victim = running_.all().back();
      running_.remove_at(running_.all().size() - 1);
      if (sequences_[victim].state == State::kDecode) decodes_.leave_for_preemption(victim);
      sequences_[victim].scheduled = 0;
      preempt(victim, in_flight, now);
      if (victim == s) return;
    }
    bool registered = false;
    if (!prefill && !q.request.private_answer) registered = blocks_.register_up_to(q, tokens - 1);
    kv().allocate(need, q.holding);
    if (prefill) registered = blocks_.register_up_to(q, tokens);
    if (registered) waiting_.retry_head();
  }
}

void BatchScheduler::walk_running(StepPlan& plan, StepPlan* in_flight, SimTime now) {
  ++counters_.walks;
  decodes_.dissolve(running_.all());
  for (std::size_t i = 0; i < running_.all().size() && pass_.budget > 0;) {
    const State state = sequences_[running_.all()[i]].state;
    if (state == State::kDraining || (pass_.prefills_deferred && state == State::kPrefill)) {
      ++i;
      continue;
    }
    if (!walk_one(i, in_flight, now)) break;
  }
  settle_walk(plan, in_flight, now);
}

// Gives tokens to the i-th running sequence and moves i on. False when the pass must stop because
// the sequence preempted itself.
bool BatchScheduler::walk_one(std::size_t& i, StepPlan* in_flight, SimTime now) {
  const Slot s = running_.all()[i];
  Sequence& q = sequences_[s];
  std::int64_t n = 1;
  if (q.state == State::kPrefill) {
    n = q.target - q.computed;
    if (rules_.long_prefill_token_threshold > 0)
      n = std::min(n, rules_.long_prefill_token_threshold);
    n = std::min(n, pass_.budget);
  } else if (speculation_.in_use()) {
    n = std::min(speculation_.wanted(s, q), pass_.budget);
    if (rules_.long_prefill_token_threshold > 0)
      n = std::min(n, rules_.long_prefill_token_threshold);
    if (n == 0) {
      ++i;
      return true;
    }
  }
  WindowGroups& windows = blocks_.windows();
  const std::int64_t total = blocks_.blocks_for(speculation_.slots(q.computed + n));
  const std::int64_t own = std::max<std::int64_t>(0, total - q.holding.blocks);
  if (windows.leave(q)) waiting_.retry_head();
  const std::int64_t window = windows.need(q, total);
  const std::int64_t need = own + rules_.window_groups * window;
  while (need > kv().free_blocks()) {
    const std::size_t victim_index = running_.victim(rules_.scheduling_policy);
    const Slot victim = running_.all()[victim_index];
    // The place in the list moves, as in vLLM, only with a victim that was given tokens: after one
    // that merely waits for its last token, the next sequence is passed over.
    if (sequences_[victim].scheduled > 0) {
      pass_.budget += sequences_[victim].scheduled;
      --i;
    }
    running_.remove_at(victim_index);
    preempt(victim, in_flight, now);
    if (victim == s) return false;
  }
  // Registered at once, as vLLM does, so that events come in the order of the running list.
  bool registered = false;
  if (q.state != State::kPrefill && !q.request.private_answer && !speculation_.in_use())
    registered = blocks_.register_up_to(q, q.computed);
  kv().allocate(own, q.holding);
  if (q.state != State::kPrefill && speculation_.in_use())
    registered = blocks_.register_up_to(q, speculation_.note_blocks(s, q, n));
  windows.allocate(q, window);
  if (q.state == State::kPrefill) registered = blocks_.register_up_to(q, q.computed + n);
  if (registered) waiting_.retry_head();
  q.scheduled = n;
  pass_.budget -= n;
  ++i;
  return true;
}

bool BatchScheduler::awaits_token(const Sequence& q, const StepPlan* in_flight) const {
  if (in_flight == nullptr || q.state == State::kPrefill) return false;
  return q.state == State::kDecode ? q.finish_pass >= in_flight->pass
                                   : q.sample_pass == in_flight->pass;
}

void BatchScheduler::preempt(Slot s, StepPlan* in_flight, SimTime now) {
  Sequence& q = sequences_[s];
  // A token still being computed is not lost: vLLM delivers it to the preempted request, which may
  // even finish with it.
  const bool speculates = speculation_.in_use() && q.state != State::kPrefill;
  const bool awaits = !speculates && awaits_token(q, in_flight);
  if (awaits)
    in_flight->pausing.push_back(sequences_.ref(s));
  else if (q.state == State::kDecode)
    q.last_token = now;
  // Computed blocks stay findable until they are recycled.
  blocks_.register_up_to(
      q, speculates ? speculation_.certain(s) : q.computed + q.scheduled - (awaits ? 1 : 0));
  if (speculation_.in_use()) speculation_.reset(s);
  ++q.preemptions;
  ++counters_.preemptions;
  stores_.store_answer(s, q.computed - (awaits ? 1 : 0));
  if (q.state == State::kPrefill) running_.end_prefill(s);
  free_blocks(s);
  q.state = State::kWaiting;
  q.target = q.request.prompt_tokens + q.sampled;
  blocks_.forget_prefix();
  q.finish_pass = -1;  // a place it may have among those to finish is void
  q.computed = 0;
  q.scheduled = 0;
  q.remote = RemoteKv::kSettled;
  if (has_tiers()) tiers_->settle(q);
  pass_.preempted = true;
  waiting_.put_back(s);
}

// After the walk every survivor takes its new place: prompts advance, decodes rejoin the set, and
// those the budget did not reach are paused.
void BatchScheduler::settle_walk(StepPlan& plan, StepPlan* in_flight, SimTime now) {
  if (adapters_.in_use()) {
    adapters_.begin_pass();
    for (const Slot s : running_.all())
      adapters_.add(sequences_[s].request.adapter, sequences_[s].scheduled, plan);
  }
  for (const Slot s : running_.all()) {
    const State state = sequences_[s].state;
    if (speculation_.in_use() && state == State::kPaused)
      settle_speculative(s, plan);
    else if (state == State::kDecode || state == State::kPaused)
      settle_decode(s, plan, in_flight, now);
  }
  for (const Slot s : std::vector<Slot>(running_.prefilling()))
    if (sequences_[s].scheduled > 0) give_prefill(s, sequences_[s].scheduled, plan);
}

void BatchScheduler::settle_speculative(Slot s, StepPlan& plan) {
  Sequence& q = sequences_[s];
  if (q.scheduled == 0)
    speculation_.leave_out(s);
  else
    speculation_.schedule(s, q, sequences_.ref(s), plan);
  if (q.scheduled > 0) q.batch_pass = plan.pass;
}

void BatchScheduler::settle_decode(Slot s, StepPlan& plan, StepPlan* in_flight, SimTime now) {
  Sequence& q = sequences_[s];
  const bool last_sampled = q.sampled == q.request.output_tokens;
  if (q.scheduled == 0) {
    if (q.state == State::kPaused) return;
    if (last_sampled) {
      q.state = State::kDraining;  // its last token is in flight; nothing more to schedule
      return;
    }
    q.state = State::kPaused;
    running_.note_paused();
    if (in_flight != nullptr && q.sample_pass == in_flight->pass)
      in_flight->pausing.push_back(sequences_.ref(s));
    else
      q.last_token = now;
    return;
  }
  ++q.computed;
  if (stores_.any_behind()) stores_.note_computed(s, q.computed);
  ++plan.shape.decode_requests;
  plan.shape.decode_context += q.computed;
  if (last_sampled)
    q.state = State::kDraining;  // the slot an EOS request wastes under async scheduling
  else
    decodes_.enter(s, plan, q.state == State::kDecode);
}

void BatchScheduler::give_prefill(Slot s, std::int64_t n, StepPlan& plan) {
  Sequence& q = sequences_[s];
  const std::int64_t before = q.computed;
  q.computed += n;
  q.scheduled = 0;
  q.batch_pass = plan.pass;
  ++plan.shape.prefill_requests;
  plan.shape.prefill_tokens += n;
  plan.shape.prefill_context += q.computed;
  plan.shape.prefill_pairs += q.computed * q.computed - before * before;
  if (blocks_.register_up_to(q, q.computed)) waiting_.retry_head();
  stores_.note_computed(s, q.computed);
  if (q.computed < q.target) return;
  running_.end_prefill(s);
  if (!speculation_.in_use()) return decodes_.enter(s, plan, false);
  q.state = State::kPaused;
  speculation_.begin(s, q, sequences_.ref(s), plan);
}

// Prompts that this pass left out will be in the next batch: their adapters are reserved. So are
// those of all that run in a pipeline, whose batches may meet in one. vLLM counts only the batch at
// hand, admits more adapters than slots, and stops at an assertion when they meet.
bool BatchScheduler::has_adapter_slot(Slot s) const {
  const std::uint32_t adapter = sequences_[s].request.adapter;
  if (adapter == 0) return true;
  AdapterSet reserved = 0;
  if (rules_.pipeline_stages > 1)
    reserved = adapters_of(running_.all());
  else if (pass_.prefills_deferred)
    reserved = adapters_of(running_.prefilling());
  return adapters_.has_slot(adapter, reserved);
}

// Admits requests whose remote KV has arrived. False when the pass can admit no more.
bool BatchScheduler::admit_loaded(StepPlan& plan, SimTime now, std::vector<EngineOutput>& out) {
  for (std::size_t i = 0; i < waiting_.loading().size() && pass_.budget > 0;) {
    const Slot s = waiting_.loading()[i];
    if (sequences_[s].remote == RemoteKv::kMissing || !has_adapter_slot(s)) {
      ++i;
      continue;
    }
    if (running() >= rules_.max_num_seqs) return false;
    if (sequences_[s].remote == RemoteKv::kArrived) accept_loaded(s);
    if (try_admit(s, plan, now, out) != Admission::kAdmitted) return false;
    waiting_.remove_loading_at(i);
  }
  return true;
}

void BatchScheduler::admit(StepPlan& plan, SimTime now, std::vector<EngineOutput>& out) {
  if (!admit_loaded(plan, now, out)) return;
  const std::deque<Slot>& queue = waiting_.queue();
  // A request that waits also touches its blocks in the tiers.
  const bool skips = mode_ == PassMode::kSums && !has_tiers();
  if (queue.empty() || (waiting_.head_blocked() && skips)) return;
  std::size_t position = 0;
  while (position < queue.size() && pass_.budget > 0) {
    if (running() >= rules_.max_num_seqs) {
      waiting_.block_head();  // until a sequence leaves
      return;
    }
    const Slot s = queue[position];
    // Preempted while it was in a batch: vLLM passes over it until the output is there
    // (num_stale_output_tokens, vllm-project/vllm#48245).
    if (in_batch(sequences_[s]) || !has_adapter_slot(s)) {
      ++position;
      continue;
    }
    const Admission result = try_admit(s, plan, now, out);
    if (result == Admission::kNoBudget) break;
    if (result == Admission::kDeferred) {
      ++position;
      continue;
    }
    if (result == Admission::kBlocked) {
      if (rules_.skip_unallocatable_head && running_.empty()) {
        ++position;
        continue;
      }
      // It may fit although nobody leaves: once a free block it hits gives way to its twin in use,
      // or is evicted and then loaded from a tier, for which less room is enough.
      waiting_.block_head();
      const bool may_load = has_tiers() && !rules_.reserve_full_isl;
      if (blocks_.has_free_twin() || (may_load && blocks_.unreferenced_hits() > 0))
        waiting_.retry_head();
      return;
    }
    waiting_.remove_at(position);
  }
  waiting_.retry_head();
}

void BatchScheduler::count_hits(Sequence& q, std::int64_t hit) {
  q.cached = std::min(hit * rules_.block_size, q.request.prompt_tokens);
  counters_.prefix_query_tokens += q.request.prompt_tokens;
  counters_.prefix_hit_tokens += q.cached;
}

BatchScheduler::Admission BatchScheduler::try_admit(Slot s, StepPlan& plan, SimTime now,
                                                    std::vector<EngineOutput>& out) {
  Sequence& q = sequences_[s];
  std::int64_t hit = 0;
  TierFound loaded;  // In the step itself.
  if (q.computed == 0) {
    hit = blocks_.find_prefix(q, sequences_.ref(s));
    if (q.request.remote_tokens > 0 && q.remote != RemoteKv::kSettled) {
      const Admission started = start_remote_load(s, hit, now, out);
      if (started != Admission::kAdmitted) return started;
    } else if (has_tiers()) {
      const std::span<const BlockKey> keys = blocks_.keys_of(q, blocks_.whole_count(q.target));
      const TierFound found = tiers_->lookup(q, keys, hit);
      const bool asks = q.request.pull_source || rules_.tiers.disk.in_use();
      if (found.wait || (asks && tiers_->pull(s, keys, now))) return Admission::kDeferred;
      if (found.blocks > 0 && !rules_.tiers.copies_in_steps)
        return start_tier_load(s, hit, found, now);
      loaded = found;
    }
  } else {
    blocks_.clear_prefix();
  }
  const std::int64_t computed =
      loaded.blocks > 0 ? loaded.tokens : q.computed + hit * rules_.block_size;
  if (pass_.prefills_deferred && computed < q.target - 1) return Admission::kNoBudget;
  std::int64_t n = q.target - computed;
  if (rules_.long_prefill_token_threshold > 0) n = std::min(n, rules_.long_prefill_token_threshold);
  if (!rules_.enable_chunked_prefill && n > pass_.budget) return Admission::kNoBudget;
  n = std::min(n, pass_.budget);

  const WindowGroups& windows = blocks_.windows();
  const std::int64_t held = q.holding.blocks;
  // Only one whose KV was pulled has slots for drafts yet (effective_lookahead_tokens).
  const std::int64_t slots = q.computed > 0 ? speculation_.slots(computed + n) : computed + n;
  const std::int64_t need = std::max<std::int64_t>(0, blocks_.blocks_for(slots) - held - hit);
  const std::int64_t wanted =
      rules_.reserve_full_isl ? std::max(need, blocks_.blocks_for(q.target) - held - hit) : need;
  const std::int64_t reserve = running_.empty() ? 0 : rules_.watermark_blocks;
  const std::int64_t in_windows =
      std::max(windows.taken_with(q, need),
               windows.most_needed(q, wanted) - (hit > 0 ? windows.hit_blocks() : 0));
  const std::int64_t free = kv().free_blocks() - reserve - wanted - in_windows;
  if (free < 0 || blocks_.unreferenced_hits() > free) return Admission::kBlocked;

  if (loaded.blocks > 0) {
    load_in_step(s, hit, loaded, now, out);
  } else if (q.cached < 0) {
    count_hits(q, hit);
    if (has_tiers()) tiers_->counters().query_tokens += q.request.prompt_tokens - q.cached;
  }
  blocks_.take(q, hit, need);
  q.computed = computed;
  q.state = State::kPrefill;
  q.remote = RemoteKv::kSettled;
  running_.add(s);
  pass_.budget -= n;
  adapters_.add(q.request.adapter, n, plan);
  give_prefill(s, n, plan);
  return Admission::kAdmitted;
}

std::int64_t BatchScheduler::blocks_owed_to_prefills() const {
  std::int64_t owed = 0;
  for (const std::vector<Slot>* list : {&running_.prefilling(), &waiting_.loading()})
    for (const Slot s : *list) {
      const Sequence& q = sequences_[s];
      const std::int64_t blocks = blocks_.blocks_for(speculation_.slots(q.target));
      owed += blocks - q.holding.blocks + rules_.window_groups * blocks_.windows().need(q, blocks);
    }
  return owed;
}

// Tokens of the prompt whose KV is pulled.
std::int64_t BatchScheduler::remote_tokens(const Sequence& q) const {
  const std::int64_t covered = std::min(q.request.remote_tokens, q.request.prompt_tokens);
  return rules_.remote_partial_block ? covered : blocks_.whole_tokens(covered);
}

// PD decode leg: all blocks of the prompt at once, so that the pull has somewhere to land. Returns
// kAdmitted when nothing is left to pull and the request can go on like any other.
BatchScheduler::Admission BatchScheduler::start_remote_load(Slot s, std::int64_t hit, SimTime now,
                                                            std::vector<EngineOutput>& out) {
  Sequence& q = sequences_[s];
  const std::int64_t covered = remote_tokens(q);
  const std::int64_t missing = covered - hit * rules_.block_size;
  if (missing <= 0) {
    q.remote = RemoteKv::kSettled;
    out.push_back(
        {.kind = EngineOutputKind::kNothingToPull, .handle = q.request.handle, .at = now});
    return Admission::kAdmitted;
  }
  const std::int64_t need = blocks_.blocks_for(covered) - hit;
  const std::int64_t reserve = running_.empty() ? 0 : rules_.watermark_blocks;
  const std::int64_t free = kv().free_blocks() - blocks_owed_to_prefills();
  // Its first step needs slots for drafts, too, without which it would wait for ever.
  const std::int64_t ahead =
      blocks_.blocks_for(speculation_.slots(q.target)) - blocks_.blocks_for(q.target);
  const std::int64_t wanted =
      need + ahead + blocks_.windows().taken_with(q, need) + blocks_.unreferenced_hits();
  if (wanted + reserve > free) return Admission::kBlocked;
  count_hits(q, hit);
  blocks_.take(q, hit, need);
  q.state = State::kLoading;
  waiting_.add_loading(s);
  out.push_back({.kind = EngineOutputKind::kTransferNeeded,
                 .handle = q.request.handle,
                 .value = need + blocks_.windows().pulled_blocks(need),
                 .at = now});
  return Admission::kLoading;
}

// Counts hits at first admission, when there will be `tokens` tokens.
void BatchScheduler::count_tier_hits(Sequence& q, std::int64_t hit, std::int64_t tokens) {
  if (q.cached >= 0) return;
  count_hits(q, hit);
  const std::int64_t in_gpu = q.cached;
  q.cached = std::min(tokens, q.request.prompt_tokens - 1);  // the last one is computed
  q.tier.hit_tokens = q.cached - in_gpu;
  tiers_->counters().query_tokens += q.request.prompt_tokens - in_gpu;
  tiers_->counters().hit_tokens += q.tier.hit_tokens;
}

// The request runs at once, and the step that computes the rest of it loads first.
void BatchScheduler::load_in_step(Slot s, std::int64_t hit, const TierFound& found, SimTime now,
                                  std::vector<EngineOutput>& out) {
  Sequence& q = sequences_[s];
  count_tier_hits(q, hit, found.tokens);
  const Duration time = tiers_->load(s, blocks_.keys_of(q, hit + found.blocks), hit, 0);
  out.push_back({.kind = EngineOutputKind::kLoaded,
                 .handle = q.request.handle,
                 .value = time.ns(),
                 .cached_tokens = std::exchange(q.tier.hit_tokens, 0),
                 .at = now});
}

// The blocks that the load fills, at once; room for the rest of the prompt where admission needs
// it.
BatchScheduler::Admission BatchScheduler::start_tier_load(Slot s, std::int64_t hit,
                                                          const TierFound& found, SimTime now) {
  Sequence& q = sequences_[s];
  const std::int64_t whole = blocks_.blocks_for(q.target) - hit;
  const std::int64_t wanted =
      rules_.reserve_full_isl ? std::max(found.blocks, whole) : found.blocks;
  const std::int64_t all = hit + found.blocks;
  const std::int64_t first_in_windows = blocks_.windows().first_loaded(hit, all);
  const std::int64_t windows = rules_.window_groups * (all - first_in_windows);
  const std::int64_t reserve = running_.empty() ? 0 : rules_.watermark_blocks;
  const std::int64_t free = kv().free_blocks() - blocks_owed_to_prefills();
  if (wanted + windows + blocks_.unreferenced_hits(hit, found.blocks) + reserve > free)
    return Admission::kBlocked;
  count_tier_hits(q, hit, found.tokens);
  blocks_.take_for_load(q, hit, found.blocks);
  q.state = State::kLoading;
  q.remote = RemoteKv::kMissing;
  q.tier.loading_tokens = found.tokens;
  q.tier.load_begin = now;
  waiting_.add_loading(s);
  tiers_->load(s, blocks_.keys_of(q, all), q.registered, first_in_windows);
  return Admission::kLoading;
}

void BatchScheduler::accept_loaded(Slot s) {
  Sequence& q = sequences_[s];
  const std::int64_t loaded = std::exchange(q.tier.loading_tokens, 0);
  const std::int64_t covered = loaded > 0 ? loaded : remote_tokens(q);
  blocks_.register_up_to(q, covered);
  waiting_.retry_head();  // a waiting prompt may hit what has just arrived
  q.computed = covered == q.target ? covered - 1 : covered;
  q.remote = RemoteKv::kSettled;
}

}  // namespace routesim::sim
