// Phase B of a scheduling pass: waiting sequences are admitted, first come first served, onto the
// blocks that the prefix cache has of them and new ones for the rest.
#include <algorithm>

#include "base/check.h"
#include "sim/engine/batch_scheduler.h"

namespace routesim::sim {

void BatchScheduler::admit(StepPlan& plan, SimTime now, std::vector<EngineOutput>& out) {
  for (std::size_t i = 0; i < skipped_.size() && budget_ > 0;) {
    const Slot s = skipped_[i];
    if (!seq(s).remote_ready || !has_adapter_slot(s)) {
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
    if (!has_adapter_slot(s)) {
      ++position;
      continue;
    }
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
      // It may fit although nobody leaves: once a free block it hits gives way to its twin in use.
      retry_admission_ = kv_.has_free_twin(hits_);
      return;
    }
    if (position == 0)
      waiting_.pop_front();
    else
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(position));
  }
  retry_admission_ = true;
}

// Fills hits_ with the longest cached prefix of a waiting sequence and returns its length. The head
// of the queue asks again and again while it does not fit, mostly with the same result.
std::int64_t BatchScheduler::lookup_prefix(Slot s) {
  Sequence& q = seq(s);
  if (!rules_.enable_prefix_caching || q.request.keys == nullptr) {
    hits_.clear();
    return 0;
  }
  if (hits_version_ == kv_.version() && hits_of_.slot == s && hits_of_.stamp == q.stamp)
    return hits_.blocks;
  hits_version_ = 0;
  // At least one token must be computed to sample from, so never the whole prompt.
  const std::int64_t limit = block_.quotient(q.target - 1);
  const std::span<const BlockKey> prompt = q.request.keys->engine;
  const std::int64_t prompt_blocks = std::ssize(prompt);
  if (limit <= prompt_blocks || q.request.private_answer) {
    const std::int64_t known = std::min(limit, prompt_blocks);
    kv_.lookup(prompt.first(static_cast<std::size_t>(known)), hits_);
    if (rules_.window_groups > 0) return lookup_windows(prompt, hits_.blocks);
    if (limit <= prompt_blocks) {
      hits_of_ = ref(s);
      hits_version_ = kv_.version();
    } else {
      append_former_blocks(q, prompt_blocks, limit);
    }
    return hits_.blocks;
  }
  keys_.assign(prompt.begin(), prompt.end());
  for (auto b = static_cast<std::int64_t>(prompt.size()); b < limit; ++b)
    keys_.push_back(block_key(q, b, keys_.empty() ? 0 : keys_.back()));
  kv_.lookup(keys_, hits_);
  return rules_.window_groups > 0 ? lookup_windows(keys_, hits_.blocks) : hits_.blocks;
}

// A private block is in no table: the sequence remembers the runs that were its own, and vLLM would
// find what is left of them. That is always one stretch that starts behind the prompt, because
// - nobody else ever holds these blocks, so a preemption puts all of them into the free queue at
//   once, last block first and the prompt's behind them: whatever evicts, evicts from the end of
//   the answer backwards, and the prompt after it;
// - hits_ therefore holds all that is left, and what is computed anew continues it: the next run
//   starts where the hits ended.
void BatchScheduler::append_former_blocks(Sequence& q, std::int64_t prompt_blocks,
                                          std::int64_t limit) {
  std::erase_if(q.former, [this](const FormerRun& f) { return kv_.blocks_of(f.run) == 0; });
  ROUTESIM_CHECK(q.former.empty() || hits_.blocks == prompt_blocks,
                 "an answer's blocks outlived the prompt's");
  for (const FormerRun& f : q.former) {
    ROUTESIM_CHECK(f.position == hits_.blocks, "an answer's blocks were evicted out of order");
    const std::int64_t n = kv_.blocks_of(f.run);
    hits_.pieces.push_back({.run = f.run.run, .blocks = static_cast<std::int32_t>(n)});
    hits_.blocks += n;
  }
  ROUTESIM_CHECK(hits_.blocks <= limit, "more of a sequence was cached than it has tokens");
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

  const auto held = q.holding.blocks;
  const std::int64_t need = blocks_for(computed + n) - held - hit;
  const std::int64_t wanted =
      rules_.reserve_full_isl ? std::max(need, blocks_for(q.target) - held - hit) : need;
  const std::int64_t reserve = running_.empty() ? 0 : rules_.watermark_blocks;
  const std::int64_t windows =
      std::max(rules_.window_groups * need, most_window_blocks(wanted) - window_hit_blocks(hit));
  const std::int64_t free = kv_.free_blocks() - reserve - wanted - windows;
  if (free < 0 || count_unreferenced_hits() > free) return Admission::kBlocked;

  if (q.cached < 0) {
    q.cached = std::min(hit * rules_.block_size, q.request.prompt_tokens);
    counters_.prefix_query_tokens += q.request.prompt_tokens;
    counters_.prefix_hit_tokens += q.cached;
  }
  if (hit > 0) {
    q.registered = hit;
    kv_.take_hits(hits_, q.holding);
    take_window_hits(q, hit);
  }
  kv_.allocate(need, q.holding);
  allocate_windows(q, need);
  q.computed = computed;
  q.state = State::kPrefill;
  q.order = ++next_order_;
  q.remote_done = true;
  running_.push_back(s);
  prefilling_.push_back(s);
  budget_ -= n;
  count_adapter(q, n, plan);
  give_prefill(s, n, plan);
  return Admission::kAdmitted;
}

std::int64_t BatchScheduler::blocks_owed_to_prefills() const {
  std::int64_t owed = 0;
  for (const std::vector<Slot>* list : {&prefilling_, &skipped_})
    for (const Slot s : *list) {
      const Sequence& q = seq(s);
      owed +=
          blocks_for(q.target) - q.holding.blocks + rules_.window_groups * window_need(q, q.target);
    }
  return owed;
}

// PD decode leg: all blocks of the prompt at once, so that the pull has somewhere to land. Returns
// kAdmitted when nothing is left to pull and the request can go on like any other.
BatchScheduler::Admission BatchScheduler::start_remote_load(Slot s, std::int64_t hit, SimTime now,
                                                            std::vector<EngineOutput>& out) {
  Sequence& q = seq(s);
  std::int64_t covered = std::min(q.request.remote_tokens, q.request.prompt_tokens);
  if (!rules_.remote_partial_block) covered -= block_.remainder(covered);
  const std::int64_t missing = covered - hit * rules_.block_size;
  if (missing <= 0) {
    q.remote_done = true;
    out.push_back(
        {.kind = EngineOutputKind::kNothingToPull, .handle = q.request.handle, .at = now});
    return Admission::kAdmitted;
  }
  const std::int64_t need = blocks_for(covered) - hit;
  const std::int64_t reserve = running_.empty() ? 0 : rules_.watermark_blocks;
  const std::int64_t free = kv_.free_blocks() - blocks_owed_to_prefills();
  const std::int64_t wanted = need * (1 + rules_.window_groups) + count_unreferenced_hits();
  if (wanted + reserve > free) return Admission::kBlocked;
  q.cached = std::min(hit * rules_.block_size, q.request.prompt_tokens);
  counters_.prefix_query_tokens += q.request.prompt_tokens;
  counters_.prefix_hit_tokens += q.cached;
  if (hit > 0) {
    q.registered = hit;
    kv_.take_hits(hits_, q.holding);
    take_window_hits(q, hit);
  }
  kv_.allocate(need, q.holding);
  allocate_windows(q, need);
  q.state = State::kRemote;
  skipped_.push_back(s);
  out.push_back({.kind = EngineOutputKind::kTransferNeeded,
                 .handle = q.request.handle,
                 .value = need + window_pull_blocks(need),
                 .at = now});
  return Admission::kLoading;
}

void BatchScheduler::accept_loaded(Slot s) {
  Sequence& q = seq(s);
  std::int64_t covered = std::min(q.request.remote_tokens, q.request.prompt_tokens);
  if (!rules_.remote_partial_block) covered -= block_.remainder(covered);
  register_up_to(s, covered);
  retry_admission_ = true;  // a waiting prompt may hit what has just arrived
  q.computed = covered == q.target ? covered - 1 : covered;
  q.remote_done = true;
}

}  // namespace routesim::sim
