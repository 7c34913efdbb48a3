#include "sim/engine/batch_scheduler.h"

#include <algorithm>
#include <string>

#include "base/check.h"

namespace routesim::sim {

BatchScheduler::BatchScheduler(const EngineRules& rules, bool reference)
    : block_(rules.block_size),
      crossings_(static_cast<std::size_t>(rules.block_size)),
      rules_(rules),
      reference_(reference || rules.window_groups > 0 || rules.max_loras > 0),
      kv_(rules.num_gpu_blocks, rules.block_size, rules.free_queue),
      buckets_(crossings_.size()),
      adapter_slots_(rules.max_loras, rules.max_cpu_loras, rules.adapters),
      window_hits_(static_cast<std::size_t>(rules.window_groups)) {}

BatchScheduler::Slot BatchScheduler::acquire() {
  if (free_slots_.empty()) {
    sequences_.emplace_back();
    return static_cast<Slot>(sequences_.size() - 1);
  }
  const Slot s = free_slots_.back();
  free_slots_.pop_back();
  return s;
}

void BatchScheduler::recycle(Slot s) {
  Sequence& q = seq(s);
  // Their memory is for the next user.
  BlockHolding holding = std::move(q.holding);
  std::vector<FormerRun> former = std::move(q.former);
  former.clear();
  const std::uint32_t stamp = q.stamp + 1;
  q = Sequence{};
  q.stamp = stamp;
  q.holding = std::move(holding);
  q.former = std::move(former);
  free_slots_.push_back(s);
}

// Unchunked, a prompt (or all but the last token, after a preemption) must fit one step.
bool BatchScheduler::too_long(const EngineRequest& request) const {
  const std::int64_t longest = request.prompt_tokens + request.output_tokens;
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
  const Slot s = acquire();
  Sequence& q = seq(s);
  q.request = request;
  q.state = State::kWaiting;
  q.target = request.prompt_tokens;
  q.windows.resize(static_cast<std::size_t>(rules_.window_groups));
  q.wastes_slot = rules_.async_scheduling && request.output_tokens < request.max_tokens &&
                  request.prompt_tokens + request.output_tokens < rules_.max_model_len;
  pulls_ = pulls_ || request.remote_tokens > 0;
  public_answers_ = public_answers_ || !request.private_answer;
  enqueue_waiting(s);
  counters_.max_waiting = std::max(counters_.max_waiting, waiting());
}

void BatchScheduler::enqueue_waiting(Slot s) {
  if (rules_.scheduling_policy == SchedulingPolicy::kPriority) {
    const auto before = [this](Slot a, Slot b) {
      const EngineRequest& x = seq(a).request;
      const EngineRequest& y = seq(b).request;
      return std::pair(x.priority, x.arrival_order) < std::pair(y.priority, y.arrival_order);
    };
    waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), s, before), s);
    retry_admission_ = true;
  } else {
    if (waiting_.empty()) retry_admission_ = true;
    waiting_.push_back(s);
  }
}

// Held blocks come last: while their release is under way the handle may have a new owner.
BatchScheduler::Slot BatchScheduler::find(std::uint32_t handle) const {
  const auto matches = [&](Slot s) { return seq(s).request.handle == handle; };
  for (const std::vector<Slot>* list : {&skipped_, &running_}) {
    const auto it = std::find_if(list->begin(), list->end(), matches);
    if (it != list->end()) return *it;
  }
  const auto it = std::find_if(waiting_.begin(), waiting_.end(), matches);
  if (it != waiting_.end()) return *it;
  const SequenceRef held = newest_in(held_, handle);
  return current(held) ? held.slot : ~Slot{0};
}

bool BatchScheduler::abort(std::uint32_t handle, StepPlan* in_flight) {
  const Slot s = find(handle);
  if (s == ~Slot{0}) return false;
  Sequence& q = seq(s);
  switch (q.state) {
    case State::kWaiting:
      waiting_.erase(std::find(waiting_.begin(), waiting_.end(), s));
      break;
    case State::kRemote:
      skipped_.erase(std::find(skipped_.begin(), skipped_.end(), s));
      break;
    case State::kHeld:
      held_.erase(std::find(held_.begin(), held_.end(), s));
      break;
    default: {
      // The running step must not count a token nobody will get; full blocks stay findable.
      const bool awaits = awaits_token(q, in_flight);
      if (awaits && q.streak_pass < in_flight->pass) --in_flight->steady;
      if (q.state == State::kDecode && q.wastes_slot && q.sampled == q.request.output_tokens)
        --wasted_slots_;
      if (q.state == State::kDecode) leave_decode(s);
      register_up_to(s, q.computed - (awaits ? 1 : 0));
      if (q.state == State::kPrefill) erase_prefilling(s);
      erase_running(s);
    }
  }
  free_blocks(s);
  recycle(s);
  retry_admission_ = true;
  return true;
}

SequenceRef BatchScheduler::newest_in(const std::vector<Slot>& list, std::uint32_t handle) const {
  for (std::size_t i = list.size(); i-- > 0;)
    if (seq(list[i]).request.handle == handle) return ref(list[i]);
  return {.slot = 0, .stamp = ~std::uint32_t{0}};
}

void BatchScheduler::transfer_done(SequenceRef sequence) {
  if (current(sequence)) seq(sequence.slot).remote_ready = true;
}

void BatchScheduler::transfer_failed(std::uint32_t handle) {
  const auto it = std::find_if(skipped_.begin(), skipped_.end(),
                               [&](Slot s) { return seq(s).request.handle == handle; });
  if (it == skipped_.end()) return;
  const Slot s = *it;
  skipped_.erase(it);
  free_blocks(s);
  seq(s).state = State::kWaiting;
  seq(s).remote_done = true;
  enqueue_waiting(s);
}

void BatchScheduler::release_held(SequenceRef sequence) {
  if (!current(sequence)) return;
  held_.erase(std::find(held_.begin(), held_.end(), sequence.slot));
  free_blocks(sequence.slot);
  recycle(sequence.slot);
}

bool BatchScheduler::any_promotable() const {
  for (const Slot s : skipped_)
    if (seq(s).remote_ready) return true;
  return false;
}

void BatchScheduler::process(StepPlan& plan, SimTime now, std::vector<EngineOutput>& out) {
  for (const SequenceRef r : plan.sampled) {
    if (!current(r)) continue;
    Sequence& q = seq(r.slot);
    EngineOutput o{.kind = EngineOutputKind::kFirstToken, .handle = q.request.handle, .at = now};
    if (q.started) {
      o.kind = EngineOutputKind::kResumedToken;
      o.value = (now - q.last_token).ns();
    }
    q.started = true;
    out.push_back(o);
  }
  for (const SequenceRef r : plan.finishing)
    if (current(r)) finish(r.slot, now, out);
  for (const SequenceRef r : plan.pausing)
    if (current(r)) seq(r.slot).last_token = now;
}

void BatchScheduler::finish(Slot s, SimTime now, std::vector<EngineOutput>& out) {
  if (seq(s).state == State::kDecode) leave_decode(s);
  Sequence& q = seq(s);
  out.push_back({.kind = EngineOutputKind::kFinished,
                 .handle = q.request.handle,
                 .value = q.preemptions,
                 .cached_tokens = std::max<std::int64_t>(q.cached, 0),
                 .at = now});
  if (q.state == State::kWaiting) {
    // Preempted while this token was being computed.
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), s));
  } else {
    register_up_to(s, q.request.prompt_tokens + q.request.output_tokens - 1);
    erase_running(s);
  }
  if (q.request.hold_blocks) {
    q.state = State::kHeld;
    ++q.stamp;
    held_.push_back(s);
    retry_admission_ = true;  // its place among the running is free, if not its blocks
    return;
  }
  free_blocks(s);
  recycle(s);
}

void BatchScheduler::free_blocks(Slot s) {
  kv_.release(seq(s).holding);
  free_windows(seq(s));
  seq(s).registered = 0;
  retry_admission_ = true;
}

void BatchScheduler::erase_running(Slot s) {
  // running_ is sorted by order.
  const std::uint64_t order = seq(s).order;
  const auto it = std::lower_bound(running_.begin(), running_.end(), order,
                                   [this](Slot a, std::uint64_t o) { return seq(a).order < o; });
  ROUTESIM_DCHECK(it != running_.end() && *it == s, "sequence is not running");
  running_.erase(it);
}

void BatchScheduler::erase_prefilling(Slot s) {
  prefilling_.erase(std::find(prefilling_.begin(), prefilling_.end(), s));
}

BlockKey BatchScheduler::block_key(const Sequence& q, std::int64_t block, BlockKey previous) const {
  const PromptKeys& keys = *q.request.keys;
  const auto prompt_blocks = static_cast<std::int64_t>(keys.engine.size());
  if (block < prompt_blocks) return keys.engine[static_cast<std::size_t>(block)];
  if (answer_keys_ != nullptr) return answer_keys_->answer_key(q.request.handle, block);
  return block == prompt_blocks
             ? fold_piece(keys.tail_state, q.request.output_content, 0,
                          rules_.block_size - keys.tail_tokens)
             : fold_piece(previous, q.request.output_content,
                          block * rules_.block_size - q.request.prompt_tokens, rules_.block_size);
}

void BatchScheduler::register_up_to(Slot s, std::int64_t tokens) {
  Sequence& q = seq(s);
  const std::int64_t full = block_.quotient(tokens);
  if (!rules_.enable_prefix_caching || full <= q.registered) return;
  const std::span<const BlockKey> prompt = q.request.keys->engine;
  const std::int64_t known = q.request.private_answer ? std::min(full, std::ssize(prompt)) : full;
  if (q.registered < known) {
    std::span<const BlockKey> keys = prompt;
    if (known > std::ssize(prompt)) {
      keys_.assign(prompt.begin() + std::min(q.registered, std::ssize(prompt)), prompt.end());
      BlockKey previous = q.registered > 0 ? kv_.last_key(q.holding) : 0;
      for (std::int64_t b = q.registered + std::ssize(keys_); b < known; ++b)
        keys_.push_back(previous = block_key(q, b, previous));
      keys = keys_;
    } else {
      keys = prompt.subspan(static_cast<std::size_t>(q.registered),
                            static_cast<std::size_t>(known - q.registered));
    }
    register_windows(q, keys);
    kv_.register_keys(q.holding, keys);
    if (sink_ != nullptr) sink_->stored(q.request.handle, q.registered, keys);
    q.registered = known;
  }
  if (q.registered == full) return;
  const RunRef run = kv_.register_private(q.holding, full - q.registered);
  q.former.push_back({.position = q.registered, .run = run});
  q.registered = full;
}

void BatchScheduler::verify() const {
  kv_.verify();
  std::int64_t members = 0, context = 0, unassigned = 0;
  std::vector<const BlockHolding*> holdings;
  for (const Sequence& q : sequences_) {
    holdings.push_back(&q.holding);
    for (const BlockHolding& w : q.windows) holdings.push_back(&w);
    if (q.state != State::kDecode) continue;
    ++members;
    const std::int64_t computed = computed_after(q, pass_);
    context += computed;
    const std::int64_t owed = blocks_for(computed) - q.holding.blocks;
    ROUTESIM_CHECK(owed == 0 || (owed > 0 && q.request.private_answer),
                   "a decoding sequence holds the wrong number of blocks");
    unassigned += owed;
  }
  ROUTESIM_CHECK(members == decodes_, "decode set size drifted");
  ROUTESIM_CHECK(context == decode_context_, "sum of decode contexts drifted");
  kv_.verify_holdings(holdings, unassigned);
  ROUTESIM_CHECK(static_cast<std::int64_t>(running_.size()) <= rules_.max_num_seqs,
                 "more sequences run than max_num_seqs");
}

std::string BatchScheduler::describe_queues() const {
  std::string text = "running " + std::to_string(running_.size()) + ", waiting " +
                     std::to_string(waiting_.size()) + ", waiting for remote KV " +
                     std::to_string(skipped_.size()) + ", held for transfer " +
                     std::to_string(held_.size()) + ", free blocks " +
                     std::to_string(kv_.free_blocks()) + " of " +
                     std::to_string(kv_.usable_blocks());
  if (!waiting_.empty()) {
    const Sequence& head = seq(waiting_.front());
    text += "; head of the queue needs " + std::to_string(blocks_for(head.target)) + " blocks";
  }
  return text;
}

}  // namespace routesim::sim
