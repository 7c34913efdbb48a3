// Names in parentheses are SGLang's, python/sglang/srt of 0.5.9.
#include "sim/engine/sglang_pass.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "sim/engine/batch_scheduler.h"

namespace routesim::sim {

namespace {

/// Admission expects no more of an answer (SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION).
constexpr std::int64_t kMostExpected = 4096;
/// Decode steps that a retraction makes room for (SGLANG_RETRACT_DECODE_STEPS).
constexpr std::int64_t kRetractSteps = 20;
/// Policy lpm looks at queues of at most so many requests (_determine_active_policy).
constexpr std::size_t kLongestSorted = 128;
/// Of waiting requests that share so many tokens which the cache lacks, lpm lets one go first
/// (IN_BATCH_PREFIX_CACHING_CHECK_THRESHOLD and ..._DEPRIORITIZE_THRESHOLD).
constexpr std::int64_t kSharedInQueue = 32;
/// More than any number of tokens.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;

/// Puts the pages of the first `tokens` tokens into the radix cache. Those that it has got from
/// another request meanwhile take the place of the request's own, which are free again.
void cache_tokens(SequenceBlocks& blocks, Sequence& q, std::int64_t tokens) {
  const std::int64_t whole = blocks.whole_count(tokens);
  if (whole <= q.registered) return;
  const std::span<const BlockKey> keys = blocks.keys_of(q, whole);
  KvCache& kv = blocks.kv();
  CachedPrefix known;
  kv.lookup(keys.first(std::min(keys.size(), static_cast<std::size_t>(whole))), known);
  if (known.blocks > q.registered) {
    const std::int64_t all = q.holding.blocks, shared = known.blocks;
    BlockHolding pages;
    kv.take_hits(known, pages);
    kv.release(q.holding);  // Pages without a key are the next to be taken.
    std::swap(q.holding, pages);
    kv.allocate(all - shared, q.holding);
    q.registered = shared;
  }
  blocks.register_up_to(q, tokens);
}

bool same(SequenceRef a, SequenceRef b) { return a.slot == b.slot && a.stamp == b.stamp; }

}  // namespace

// max_req_len, of tp_worker.py.
std::int64_t SglangPass::longest_request() const {
  const EngineRules& r = core_.rules();
  return std::min(r.max_model_len, core_.kv().usable_blocks() * r.block_size) - 1;
}

std::int64_t SglangPass::in_pages(std::int64_t tokens) const {
  return core_.blocks_.blocks_for(tokens) * core_.rules_.block_size;
}

std::int64_t SglangPass::free_tokens() const {
  return core_.kv().free_blocks() * core_.rules_.block_size;
}

// sampling_params.max_new_tokens, as init_req_max_new_tokens cuts it.
std::int64_t SglangPass::most_outputs(const Sequence& q) const {
  return std::min(q.request.max_tokens, longest_request() - q.request.prompt_tokens - 1);
}

// Tokens of the answer that the scheduler knows: without the one that the running step makes.
std::int64_t SglangPass::outputs(const Sequence& q, const StepPlan* in_flight) const {
  std::int64_t sampled = q.sampled;
  if (q.state == SequenceState::kDecode) {
    const std::int64_t left = q.finish_pass - (core_.decodes_.pass() - 1);
    sampled = q.request.output_tokens - std::max<std::int64_t>(0, left);
  }
  return sampled - (core_.awaits_token(q, in_flight) ? 1 : 0);
}

// It falls with every batch of decodes. In closed form, so that runs of such batches cost nothing.
double SglangPass::new_token_ratio() const {
  const double first = base_ratio_ < 0 ? rules_.first_ratio : base_ratio_;
  const std::int64_t batches = core_.decodes_.pass() - other_passes_ - ratio_pass_;
  if (batches == 0) return first;
  const double step = (rules_.first_ratio - rules_.least_ratio) / kSglangRatioSteps;
  return std::max(first - step * static_cast<double>(batches), rules_.least_ratio);
}

void SglangPass::set_ratio(double ratio) {
  base_ratio_ = ratio;
  ratio_pass_ = core_.decodes_.pass() - other_passes_;
}

// The offset of rem_total_tokens that running requests make.
double SglangPass::reserved(const StepPlan* in_flight) const {
  std::int64_t expected = 0;
  for (const SequenceSlot s : core_.running_.all()) {
    if (s == chunk_) continue;
    const Sequence& q = core_.sequences_[s];
    expected += std::min(most_outputs(q) - outputs(q, in_flight), kMostExpected);
  }
  return static_cast<double>(expected) * new_token_ratio();
}

void SglangPass::note_departure(SequenceSlot s) {
  if (s == chunk_) {
    chunk_ = kNone;
    return;  // It was not among the running ones yet.
  }
  ++departed_;
}

void SglangPass::cache_prompts(const StepPlan& plan) {
  for (const SequenceRef r : plan.sampled)
    if (core_.sequences_.current(r))
      cache_tokens(core_.blocks_, core_.sequences_[r.slot], core_.sequences_[r.slot].target);
}

void SglangPass::run(StepPlan& plan, StepPlan* in_flight, SimTime now) {
  plan.clear();
  DecodeSet& decodes = core_.decodes_;
  if (decodes.has_leavers()) decodes.retire_leavers();
  decodes.begin_pass();
  ++other_passes_;  // Unless it turns out to decode.
  ++core_.counters_.passes;
  plan.pass = decodes.pass();
  goes_round_ = false;
  // The part that was computed can be found before it is (stash_chunked_request).
  if (has_chunk()) {
    Sequence& q = core_.sequences_[chunk_];
    cache_tokens(core_.blocks_, q, q.computed);
  }
  take_note_of_last_batch();
  if (!prefill(plan, in_flight, now)) decode(plan, in_flight, now);
  departed_before_ = departed_;
  // An engine without requests starts from the first ratio again (self_check_during_idle).
  if (in_flight == nullptr && core_.running_.empty() && core_.waiting_.empty()) set_ratio(-1);
}

// The start of get_next_batch_to_run: the last batch of prompts joins the running one.
void SglangPass::take_note_of_last_batch() {
  if (!after_prompts_) return;
  // Without overlap, those that ended with their first token are left out of it, too.
  const bool some_ended = !core_.rules_.async_scheduling && departed_ > departed_before_;
  if (chunk_in_last_ || some_ended || nobody_before_) full_ = false;
  if (some_ended) departed_ = departed_before_;
  after_prompts_ = false;
}

// get_new_batch_prefill. False where there is nothing to compute of prompts.
bool SglangPass::prefill(StepPlan& plan, StepPlan* in_flight, SimTime now) {
  const std::deque<SequenceSlot>& queue = core_.waiting_.queue();
  if ((full_ || queue.empty()) && !has_chunk()) return false;
  const std::int64_t running = core_.running() - (has_chunk() ? 1 : 0) + departed_;
  if (has_chunk() && running >= core_.rules_.max_num_seqs) {
    full_ = true;
    return false;
  }
  order_queue();
  Budget b{.input = rules_.max_prefill_tokens,
           .chunk = rules_.chunk_tokens > 0 ? rules_.chunk_tokens : kNoLimit,
           .reserved = reserved(in_flight)};
  if (has_chunk() && !continue_chunk(b, plan, in_flight, now)) return false;
  while (!queue.empty()) {
    if (b.prompts + running >= core_.rules_.max_num_seqs) full_ = true;
    if (full_) break;
    const Added result = add(queue.front(), b, plan, in_flight, now);
    if (result == Added::kNoToken) full_ = true;
    if (result != Added::kMore) break;
  }
  if (b.prompts == 0) return false;
  after_prompts_ = true;
  chunk_in_last_ = has_chunk();
  nobody_before_ = running == 0;
  return true;
}

// calc_priority of policy lpm. The queue stays in this order.
void SglangPass::order_queue() {
  const std::deque<SequenceSlot>& queue = core_.waiting_.queue();
  if (rules_.policy != SglangPolicy::kLpm || !core_.rules_.enable_prefix_caching ||
      queue.size() > kLongestSorted)
    return;
  const std::int64_t page = core_.rules_.block_size;
  const auto shared = static_cast<std::size_t>((kSharedInQueue + page - 1) / page);
  std::set<BlockKey> in_queue;
  std::vector<std::pair<std::int64_t, SequenceSlot>> order;
  for (const SequenceSlot s : queue) {
    Sequence& q = core_.sequences_[s];
    const std::int64_t hit = core_.blocks_.find_prefix(q, core_.sequences_.ref(s)) * page;
    const std::span<const BlockKey> keys =
        core_.blocks_.keys_of(q, static_cast<std::int64_t>(shared));
    bool later = false;
    if (hit <= kSharedInQueue && keys.size() >= shared)
      later = !in_queue.insert(keys[shared - 1]).second;
    order.emplace_back(later ? kNoLimit : -hit, s);
  }
  core_.blocks_.forget_prefix();
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < order.size(); ++i) core_.waiting_.set_at(i, order[i].second);
}

// budget_state.
SglangPass::Added SglangPass::state_of(const Budget& b) const {
  const auto free = static_cast<double>(free_tokens());
  if (free - b.reserved <= 0 || free <= 0) return Added::kNoToken;
  return b.input <= 0 || b.chunk <= 0 ? Added::kStop : Added::kMore;
}

// add_chunked_req. False where not a single page is free, where SGLang would stop with an error.
bool SglangPass::continue_chunk(Budget& b, StepPlan& plan, StepPlan* in_flight, SimTime now) {
  const SequenceSlot s = chunk_;
  Sequence& q = core_.sequences_[s];
  const std::int64_t page = core_.rules_.block_size;
  const auto left = static_cast<std::int64_t>(static_cast<double>(free_tokens()) - b.reserved);
  const std::int64_t most = left > 0 ? std::min(b.chunk, left) : b.chunk;
  const std::int64_t room = free_tokens() + q.holding.blocks * page - q.computed;
  const std::int64_t n = std::min({q.target - q.computed, most, room});
  if (n <= 0) return false;
  interrupt_decodes(plan, in_flight, now);
  core_.kv().allocate(core_.blocks_.blocks_for(q.computed + n) - q.holding.blocks, q.holding);
  if (q.computed + n == q.target) chunk_ = kNone;
  give(s, n, b, plan);
  return true;
}

// add_one_req.
SglangPass::Added SglangPass::add(SequenceSlot s, Budget& b, StepPlan& plan, StepPlan* in_flight,
                                  SimTime now) {
  Sequence& q = core_.sequences_[s];
  const std::int64_t page = core_.rules_.block_size;
  const std::int64_t hit = core_.blocks_.find_prefix(q, core_.sequences_.ref(s));
  const std::int64_t rest = q.target - hit * page;
  const auto total = static_cast<double>(
      rest + std::min(std::max<std::int64_t>(0, most_outputs(q) - q.sampled), kMostExpected));
  const double free = static_cast<double>(free_tokens()) - b.reserved;
  if (total >= free) return Added::kNoToken;
  if (in_pages(rest) >= b.input && b.prompts > 0) return Added::kStop;
  // Its own prefix cannot be evicted for it.
  if (total >= free - static_cast<double>(core_.blocks_.unreferenced_hits() * page))
    return Added::kNoToken;
  std::int64_t n = rest;
  if (in_pages(rest) > b.chunk) n = b.chunk / page * page;
  if (n <= 0) return Added::kStop;
  interrupt_decodes(plan, in_flight, now);
  if (q.cached < 0) core_.count_hits(q, hit);
  core_.blocks_.take(q, hit, core_.blocks_.blocks_for(hit * page + n) - hit);
  q.computed = hit * page;
  q.state = SequenceState::kPrefill;
  q.remote = RemoteKv::kSettled;
  core_.waiting_.remove_at(0);
  core_.running_.add(s);
  if (n < rest) chunk_ = s;
  give(s, n, b, plan);
  return state_of(b);
}

// Gives `n` tokens of its prompt to a sequence that has the pages for them
// (_update_prefill_budget).
void SglangPass::give(SequenceSlot s, std::int64_t n, Budget& b, StepPlan& plan) {
  Sequence& q = core_.sequences_[s];
  const std::int64_t before = q.computed;
  q.computed += n;
  ++plan.shape.prefill_requests;
  plan.shape.prefill_tokens += n;
  plan.shape.prefill_context += q.computed;
  plan.shape.prefill_pairs += q.computed * q.computed - before * before;
  b.input -= in_pages(n);
  b.chunk -= in_pages(n);
  ++b.prompts;
  if (q.computed < q.target) return;
  b.reserved += static_cast<double>(std::min(most_outputs(q), kMostExpected));
  core_.running_.end_prefill(s);
  core_.decodes_.enter(s, plan, false);
}

// Running requests wait while prompts are computed.
void SglangPass::interrupt_decodes(StepPlan& plan, StepPlan* in_flight, SimTime now) {
  if (plan.shape.prefill_requests > 0 || core_.decodes_.size() == 0) return;
  core_.decodes_.dissolve(core_.running_.all());
  for (const SequenceSlot s : core_.running_.all())
    if (core_.sequences_[s].state == SequenceState::kDecode)
      core_.settle_decode(s, plan, in_flight, now);
}

// update_running_batch: who has left is filtered out, and the others take a token each.
void SglangPass::decode(StepPlan& plan, StepPlan* in_flight, SimTime now) {
  const bool some_left = departed_ > 0;
  if (some_left) full_ = false;
  departed_ = 0;
  const bool any =
      std::any_of(core_.running_.all().begin(), core_.running_.all().end(), [this](SequenceSlot s) {
        const SequenceState state = core_.sequences_[s].state;
        return state == SequenceState::kDecode || state == SequenceState::kPaused;
      });
  if (!any) {
    goes_round_ = some_left && !core_.waiting_.empty();
    return;
  }
  --other_passes_;
  DecodeSet& decodes = core_.decodes_;
  const bool walks = core_.mode_ == BatchScheduler::PassMode::kWalkAll ||
                     core_.running_.any_paused() || decodes.crossings() > core_.kv().free_blocks();
  if (walks) return decode_one_by_one(plan, in_flight, now);
  core_.cross_blocks();
  decodes.decode_all(plan);
}

void SglangPass::decode_one_by_one(StepPlan& plan, StepPlan* in_flight, SimTime now) {
  ++core_.counters_.walks;
  core_.decodes_.dissolve(core_.running_.all());
  std::vector<SequenceSlot> batch;
  for (const SequenceSlot s : core_.running_.all()) {
    const SequenceState state = core_.sequences_[s].state;
    if (state == SequenceState::kDecode || state == SequenceState::kPaused) batch.push_back(s);
  }
  retract(batch, in_flight, now);
  for (const SequenceSlot s : batch) {
    Sequence& q = core_.sequences_[s];
    core_.kv().allocate(core_.blocks_.blocks_for(q.computed + 1) - q.holding.blocks, q.holding);
    q.scheduled = 1;
    core_.settle_decode(s, plan, in_flight, now);
    q.scheduled = 0;
  }
}

// check_decode_mem and retract_decode: where pages run out, the requests with the fewest tokens of
// answer go back to the end of the queue, of equals those with the longest prompts.
void SglangPass::retract(std::vector<SequenceSlot>& batch, StepPlan* in_flight, SimTime now) {
  const auto missing = [&] {
    std::int64_t need = 0;
    for (const SequenceSlot s : batch) {
      const Sequence& q = core_.sequences_[s];
      need += core_.blocks_.blocks_for(q.computed + 1) - q.holding.blocks;
    }
    return need > core_.kv().free_blocks();
  };
  if (!missing()) return;
  while (batch.size() > 1 && missing()) {
    const auto less = [&](SequenceSlot x, SequenceSlot y) {
      const Sequence &a = core_.sequences_[x], &b = core_.sequences_[y];
      const std::int64_t in_a = outputs(a, in_flight), in_b = outputs(b, in_flight);
      if (in_a != in_b) return in_a < in_b;
      if (a.request.prompt_tokens != b.request.prompt_tokens)
        return a.request.prompt_tokens > b.request.prompt_tokens;
      return a.order > b.order;
    };
    const auto victim = std::min_element(batch.begin(), batch.end(), less);
    const SequenceSlot s = *victim;
    batch.erase(victim);
    retract_one(s, in_flight, now);
  }
  // A part of a prompt may hold what is missing: SGLang would stop with an error.
  if (missing() && has_chunk()) {
    core_.running_.end_prefill(chunk_);
    retract_one(std::exchange(chunk_, kNone), in_flight, now);
  }
  std::int64_t made = 0, most = 0;
  for (const SequenceSlot s : batch) {
    made += outputs(core_.sequences_[s], in_flight) + kRetractSteps;
    most += most_outputs(core_.sequences_[s]);
  }
  set_ratio(std::min(1.0, static_cast<double>(made) / static_cast<double>(most + 1)));
  full_ = false;
}

// release_req and reset_for_retract. What it computed is not kept, but for the prompt that the
// radix cache has; the token that the running step makes for it is lost.
void SglangPass::retract_one(SequenceSlot s, StepPlan* in_flight, SimTime now) {
  Sequence& q = core_.sequences_[s];
  const bool awaits = core_.awaits_token(q, in_flight);
  if (!awaits || q.streak_pass < in_flight->pass) {
    if (q.state == SequenceState::kDecode) q.last_token = now;
    if (awaits) --in_flight->steady;
  }
  if (awaits) {
    const auto drop = [&](std::vector<SequenceRef>& list) {
      const SequenceRef own = core_.sequences_.ref(s);
      std::erase_if(list, [&](SequenceRef r) { return same(r, own); });
    };
    drop(in_flight->sampled);
    drop(in_flight->finishing);
    drop(in_flight->pausing);
    --q.sampled;
  }
  ++q.preemptions;
  ++core_.counters_.preemptions;
  core_.running_.remove(s);
  core_.free_blocks(s);
  core_.blocks_.forget_prefix();
  q.state = SequenceState::kWaiting;
  q.target = q.request.prompt_tokens + q.sampled;
  q.finish_pass = q.sample_pass = -1;
  q.computed = 0;
  q.scheduled = 0;
  core_.waiting_.add(s);
}

}  // namespace routesim::sim
