// Requests enter and leave; pure-decode passes.
#include "sim/engine/batch_scheduler.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"

namespace routesim::sim {

BatchScheduler::BatchScheduler(const EngineRules& rules, bool reference, ChunkPool* store,
                               std::uint64_t seed)
    : decodes_(rules.block_size, sequences_),
      blocks_(rules),
      rules_(rules),
      mode_(reference || rules.window_groups > 0 || rules.max_loras > 0 || rules.by_result()
                ? PassMode::kWalkAll
                : PassMode::kSums),
      tiers_(make_kv_tiers(rules, sequences_, store)),
      waiting_(rules.scheduling_policy, sequences_),
      running_(sequences_),
      adapters_(rules),
      speculation_(rules, seed),
      stores_(rules_.tiers, sequences_, blocks_, tiers_.get()),
      sglang_(rules_.sglang ? std::make_unique<SglangPass>(*rules_.sglang, *this) : nullptr) {}

// Unchunked, a prompt (or all but the last token, after a preemption) must fit one step.
bool BatchScheduler::too_long(const EngineRequest& request) const {
  const std::int64_t longest = request.prompt_tokens + request.output_tokens;
  if (sglang_ != nullptr) return longest + 1 > sglang_->longest_request();
  return longest > rules_.max_model_len ||
         (!rules_.enable_chunked_prefill && longest - 1 > rules_.max_num_batched_tokens);
}

void BatchScheduler::enqueue(const EngineRequest& request, SimTime now,
                             std::vector<EngineOutput>& out) {
  if (!can_serve(request)) {
    out.push_back({.kind = EngineOutputKind::kUnservable,
                   .handle = request.handle,
                   .value = too_long(request) ? 1 : 0,
                   .at = now});
    return;
  }
  const Slot s = sequences_.acquire();
  Sequence& q = sequences_[s];
  q.request = request;
  q.state = State::kWaiting;
  q.target = request.prompt_tokens;
  q.tier.id = ++requests_;
  q.windows.resize(static_cast<std::size_t>(rules_.window_groups));
  if (speculation_.in_use()) speculation_.reset(s);
  q.wastes_slot = rules_.async_scheduling && request.output_tokens < request.max_tokens &&
                  request.prompt_tokens + request.output_tokens < rules_.max_model_len;
  // SGLang learns of any end from the result of a batch, when the next one runs already.
  if (sglang_ != nullptr) q.wastes_slot = rules_.async_scheduling;
  load_.pulls = load_.pulls || request.remote_tokens > 0;
  load_.public_answers = load_.public_answers || !request.private_answer;
  waiting_.add(s);
  counters_.max_waiting = std::max(counters_.max_waiting, waiting());
}

// Held blocks come last: while their release is under way the handle may have a new owner.
BatchScheduler::Slot BatchScheduler::find(std::uint32_t handle) const {
  const auto matches = [&](Slot s) { return sequences_[s].request.handle == handle; };
  for (const std::vector<Slot>* list : {&waiting_.loading(), &running_.all()}) {
    const auto it = std::find_if(list->begin(), list->end(), matches);
    if (it != list->end()) return *it;
  }
  const auto it = std::find_if(waiting_.queue().begin(), waiting_.queue().end(), matches);
  if (it != waiting_.queue().end()) return *it;
  const SequenceRef held = find_held(handle);
  return sequences_.current(held) ? held.slot : ~Slot{0};
}

bool BatchScheduler::abort(std::uint32_t handle, StepPlan* in_flight) {
  const Slot s = find(handle);
  if (s == ~Slot{0}) return false;
  Sequence& q = sequences_[s];
  switch (q.state) {
    case State::kWaiting:
      waiting_.remove(s);
      break;
    case State::kLoading:
      waiting_.remove_loading(s);
      break;
    case State::kHeld:
      held_.erase(std::find(held_.begin(), held_.end(), s));
      break;
    default: {
      // The running step must not count a token nobody will get; full blocks stay findable.
      const bool speculates = speculation_.in_use() && q.state == State::kPaused;
      const bool awaits = !speculates && awaits_token(q, in_flight);
      if (awaits && q.streak_pass < in_flight->pass) --in_flight->steady;
      if (q.state == State::kDecode) decodes_.leave_aborted(s);
      blocks_.register_up_to(q,
                             speculates ? speculation_.certain(s) : q.computed - (awaits ? 1 : 0));
      stores_.store_answer(s, q.computed - (awaits ? 1 : 0));
      if (q.state == State::kPrefill) running_.end_prefill(s);
      running_.remove(s);
      if (sglang_ != nullptr) sglang_->note_departure(s);
    }
  }
  if (stores_.end_request(s, true)) {
    waiting_.retry_head();  // its place among the running is free, if not its blocks
    return true;
  }
  free_blocks(s);
  sequences_.recycle(s);
  return true;
}

void BatchScheduler::transfer_done(SequenceRef sequence) {
  if (!sequences_.current(sequence)) return;
  RemoteKv& remote = sequences_[sequence.slot].remote;
  if (remote == RemoteKv::kMissing) remote = RemoteKv::kArrived;
}

void BatchScheduler::transfer_failed(std::uint32_t handle) {
  const std::vector<Slot>& loading = waiting_.loading();
  const auto it = std::find_if(loading.begin(), loading.end(),
                               [&](Slot s) { return sequences_[s].request.handle == handle; });
  if (it == loading.end()) return;
  const Slot s = *it;
  waiting_.remove_loading(s);
  free_blocks(s);
  sequences_[s].state = State::kWaiting;
  sequences_[s].remote = RemoteKv::kSettled;
  waiting_.add(s);
}

void BatchScheduler::release_held(SequenceRef sequence) {
  if (!sequences_.current(sequence)) return;
  held_.erase(std::find(held_.begin(), held_.end(), sequence.slot));
  free_blocks(sequence.slot);
  sequences_.recycle(sequence.slot);
}

void BatchScheduler::process(StepPlan& plan, SimTime now, std::vector<EngineOutput>& out) {
  if (sglang_ != nullptr) sglang_->cache_prompts(plan);
  heard_pass_ = plan.pass;
  for (const SequenceRef r : plan.sampled) {
    if (!sequences_.current(r)) continue;
    Sequence& q = sequences_[r.slot];
    EngineOutput o{.kind = EngineOutputKind::kFirstToken, .handle = q.request.handle, .at = now};
    if (q.started) {
      o.kind = EngineOutputKind::kResumedToken;
      o.value = (now - q.last_token).ns();
    }
    begin_answer(q);
    ++counters_.generation_tokens;
    out.push_back(o);
  }
  for (const StepPlan::Verified& v : plan.verified) process_verified(v, now, out);
  for (const SequenceRef r : plan.finishing)
    if (sequences_.current(r)) finish(r.slot, now, out);
  for (const SequenceRef r : plan.pausing)
    if (sequences_.current(r)) sequences_[r.slot].last_token = now;
}

// The sequence has at least its first token.
void BatchScheduler::begin_answer(Sequence& q) {
  if (!std::exchange(q.started, true)) counters_.prompt_tokens += q.request.prompt_tokens;
}

// The scheduler hears how many drafts were accepted.
void BatchScheduler::process_verified(const StepPlan::Verified& one, SimTime now,
                                      std::vector<EngineOutput>& out) {
  if (!sequences_.current(one.sequence)) return;
  const Slot s = one.sequence.slot;
  Sequence& q = sequences_[s];
  const bool running = q.state == State::kPaused;
  const std::int64_t tokens = speculation_.verify(s, q, one.drafts, running);
  EngineOutput o{.kind = EngineOutputKind::kFirstToken, .handle = q.request.handle, .at = now};
  if (q.started) {
    o.kind = EngineOutputKind::kResumedToken;
    o.value = (now - q.last_token).ns();
    o.together = tokens - 1;
  }
  begin_answer(q);
  counters_.generation_tokens += tokens;
  q.last_token = now;
  out.push_back(o);
  if (running)
    blocks_.register_up_to(q, speculation_.certain(s));
  else
    q.target = q.request.prompt_tokens + q.sampled;
  if (q.sampled == q.request.output_tokens) finish(s, now, out);
}

void BatchScheduler::finish(Slot s, SimTime now, std::vector<EngineOutput>& out) {
  Sequence& q = sequences_[s];
  if (q.state == State::kDecode) decodes_.leave(s);
  out.push_back({.kind = EngineOutputKind::kFinished,
                 .handle = q.request.handle,
                 .value = q.preemptions,
                 .cached_tokens = std::max<std::int64_t>(q.cached, 0),
                 .at = now});
  if (q.state == State::kWaiting) {
    waiting_.remove(s);  // preempted while this token was being computed
  } else {
    const std::int64_t tokens = speculation_.in_use()
                                    ? speculation_.certain(s)
                                    : q.request.prompt_tokens + q.request.output_tokens - 1;
    blocks_.register_up_to(q, tokens);
    stores_.store_answer(s, tokens);
    running_.remove(s);
    if (sglang_ != nullptr) sglang_->note_departure(s);
  }
  const bool keeps = stores_.end_request(s, !q.request.hold_blocks);
  if (q.request.hold_blocks) {
    q.state = State::kHeld;
    ++q.stamp;
    held_.push_back(s);
  }
  if (keeps || q.request.hold_blocks) {
    waiting_.retry_head();  // its place among the running is free, if not its blocks
    return;
  }
  free_blocks(s);
  sequences_.recycle(s);
}

void BatchScheduler::end_request(SequenceRef ended) {
  if (stores_.heard_of(ended)) end_storing(ended.slot);
}

void BatchScheduler::end_storing(Slot s) {
  stores_.give_up_one();
  free_blocks(s);
  sequences_.recycle(s);
}

void BatchScheduler::copy_done(std::uint32_t copy, SimTime now, std::vector<EngineOutput>& out) {
  for (const Slot s : stores_.copy_done(copy, now, out)) {
    if (sequences_[s].state == State::kLoading)
      transfer_failed(sequences_[s].request.handle);
    else
      end_storing(s);
  }
}

void BatchScheduler::free_blocks(Slot s) {
  blocks_.release(sequences_[s]);
  waiting_.retry_head();
}

// Gives a block to each member of the decode set that needs one in this pass. The key of a public
// answer's last block is announced now; what a private one holds matters only when it leaves the
// set, and the sequence is left alone.
void BatchScheduler::cross_blocks() {
  if (decodes_.crossings() == 0) return;
  if (!load_.public_answers) {
    kv().take(decodes_.crossings());
    return;
  }
  for (const Slot s : decodes_.crossing()) {
    Sequence& q = sequences_[s];
    if (q.request.private_answer) {
      kv().take(1);
    } else {
      // SGLang's radix cache gets an answer when it ends.
      if (sglang_ == nullptr) blocks_.register_up_to(q, q.holding.blocks * rules_.block_size);
      kv().allocate(1, q.holding);
    }
  }
}

// No sequence does or waits for anything but to decode.
bool BatchScheduler::decodes_only() const {
  if (mode_ == PassMode::kWalkAll || decodes_.size() == 0 || !running_.prefilling().empty() ||
      decodes_.has_leavers() || decodes_.wasted_slots() != 0)
    return false;
  if (sglang_ != nullptr)
    return running_.size() == decodes_.size() && sglang_->only_decodes() &&
           (waiting_.queue().empty() || sglang_->is_full());
  if (decodes_.size() > rules_.max_num_batched_tokens) return false;
  if (running_.size() != decodes_.size()) return false;  // paused or draining
  if (waiting_.any_arrived()) return false;
  if (stores_.any_behind()) return false;
  const bool queued = !waiting_.queue().empty();
  // While copies are under way, a head that is blocked may come to wait for one and let others by.
  if (queued && has_tiers() && !tiers_->idle()) return false;
  if (queued && (!waiting_.head_blocked() || rules_.tiers.shared_store)) return false;
  return rules_.prefill_schedule_interval <= 1 ||
         (last_release_ == LastRelease::kLeftWaiting) == queued;
}

BatchScheduler::Forecast BatchScheduler::forecast(std::int64_t limit) const {
  if (!decodes_only()) return {};
  bool finishes = false;
  std::int64_t n = decodes_.passes_before_finish(limit, finishes);
  if (n < 0) return {};
  if (kv().free_blocks() >= decodes_.size() * (blocks_.whole_count(n + 1) + 1))
    return {n, finishes};
  // Blocks are scarce: find how far they certainly last. Crossings grow with n, so halve.
  while (n > 0 && decodes_.crossings_until(n) > kv().free_blocks()) n /= 2;
  return {n, false};
}

std::int64_t BatchScheduler::passes_without_events(std::int64_t limit) const {
  if (!blocks_.announces()) return limit;
  if (load_.public_answers) return 0;
  // In as many passes as a block has tokens every sequence takes a block.
  const std::int64_t members = decodes_.size();
  const std::int64_t rounds = blocks_.whole_count(limit);
  std::int64_t blocks = kv().blocks_before_known(members * (rounds + 1));
  if (blocks >= members * (rounds + 1)) return limit;
  std::int64_t n = std::min(rounds, blocks / members) * rules_.block_size;
  blocks -= n / rules_.block_size * members;
  for (; n < limit; ++n) {
    blocks -= crossings_in(n + 1);
    if (blocks < 0) break;
  }
  return n;
}

void BatchScheduler::run_decode_pass() {
  decodes_.begin_pass();
  decodes_.count_tokens();
  ++counters_.passes;
  cross_blocks();
}

void BatchScheduler::run_decode_passes(std::int64_t passes, std::int64_t blocks) {
  decodes_.advance(passes);
  counters_.passes += passes;
  if (blocks > 0) kv().take(blocks);
}

void BatchScheduler::verify() const {
  blocks_.verify(sequences_.all(), decodes_.verify());
  if (has_tiers()) tiers_->verify();
  ROUTESIM_CHECK(running() <= rules_.max_num_seqs, "more sequences run than max_num_seqs");
}

std::string BatchScheduler::describe_queues() const {
  std::string text = "running " + std::to_string(running()) + ", waiting " +
                     std::to_string(waiting_.queue().size()) + ", waiting for remote KV " +
                     std::to_string(loading()) + ", held for transfer " + std::to_string(held()) +
                     ", free blocks " + std::to_string(kv().free_blocks()) + " of " +
                     std::to_string(kv().usable_blocks());
  if (!waiting_.queue().empty()) {
    const Sequence& head = sequences_[waiting_.queue().front()];
    text +=
        "; head of the queue needs " + std::to_string(blocks_.blocks_for(head.target)) + " blocks";
  }
  return text;
}

}  // namespace routesim::sim
