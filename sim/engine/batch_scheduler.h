// The scheduler of one vLLM engine core (one DP rank): waiting and running queues, chunked prefill,
// token budget, admission, preemption. One call of schedule() is one scheduling pass.
//
// Pure decode is the common case and must not cost a visit per sequence per step. Sequences that
// decode are therefore kept as a set with three summaries - how many, the sum of their contexts,
// and in which pass (modulo the block size) each needs its next block - and only passes in which
// something else happens (`walk`) look at them one by one. With `reference` set every pass walks;
// a property test proves that both give the same bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "models/latency_model.h"
#include "sim/engine/adapter_slots.h"
#include "sim/engine/divisor.h"
#include "sim/engine/engine_config.h"
#include "sim/engine/kv_cache.h"
#include "sim/engine/prompt_keys.h"

namespace routesim::sim {

/// A request as the engine's front end hands it over.
struct EngineRequest {
  std::uint32_t handle = 0;          ///< The simulation's live-request slot.
  const PromptKeys* keys = nullptr;  ///< Outlives the request; nullptr without prefix caching.
  std::int64_t prompt_tokens = 0;
  std::int64_t output_tokens = 1;    ///< What it will generate (>= 1).
  std::int64_t max_tokens = 1;       ///< What it may generate.
  std::uint64_t output_content = 0;  ///< Content id of the answer.
  bool private_answer = false;       ///< No later prompt can contain the answer: nobody is told.
  std::uint64_t arrival_order = 0;   ///< Total order of arrivals at all engines.
  std::int32_t priority = 0;         ///< Smaller first, policy `priority` only.
  std::uint32_t adapter = 0;         ///< LoRA adapter; 0 = the base model.
  bool hold_blocks = false;          ///< PD prefill leg: keep the blocks until released.
  std::int64_t remote_tokens = 0;    ///< PD decode leg: prompt tokens whose KV can be pulled.
};

/// What a step, or the drain before it, tells the outside.
enum class EngineOutputKind {
  kFirstToken,      ///< The first token of the request.
  kResumedToken,    ///< A token after a gap longer than one step: preemption or an empty budget.
  kFinished,        ///< The last token.
  kTransferNeeded,  ///< PD decode leg: blocks are allocated, pull `value` blocks.
  kNothingToPull,   ///< PD decode leg: every block was found locally.
  kAborted,         ///< The abort was carried out; the engine holds nothing of it any more.
  kUnservable       ///< Can never fit; removed. `value` is 1 when longer than max_model_len.
};
struct EngineOutput {
  EngineOutputKind kind;
  std::uint32_t handle;
  std::int64_t value = 0;          ///< kResumedToken: the gap in ns; kFinished: preemptions.
  std::int64_t cached_tokens = 0;  ///< kFinished: prompt tokens hit at first admission.
  SimTime at;
};

/// Hears which full blocks became findable; `first_block` counts from the start of the sequence.
class BlockEventSink : public KvEventSink {
 public:
  virtual void stored(std::uint32_t handle, std::int64_t first_block,
                      std::span<const BlockKey> keys) = 0;
};

/// A reference to a sequence slot that goes stale when the slot is reused.
struct SequenceRef {
  std::uint32_t slot = 0;
  std::uint32_t stamp = 0;
};

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

/// The work of one step, fixed when it is scheduled, consumed when it is processed.
struct StepPlan {
  models::BatchShape shape;
  std::int64_t pass = 0;
  std::int64_t steady = 0;             ///< Decodes that also sampled in the pass before.
  std::vector<SequenceRef> sampled;    ///< Others that sample: first tokens and resumptions.
  std::vector<SequenceRef> finishing;  ///< Whose last token is sampled here.
  std::vector<SequenceRef> pausing;    ///< Sampled here but not scheduled in the next pass.
  bool empty() const { return shape.tokens() == 0; }
  bool calm() const { return sampled.empty() && finishing.empty() && pausing.empty(); }
  void clear() {
    shape = {};
    steady = 0;
    sampled.clear();
    finishing.clear();
    pausing.clear();
  }
};

/// Counters of one engine core.
struct EngineCounters {
  std::int64_t passes = 0;
  std::int64_t walks = 0;  ///< Passes that visited every running sequence.
  std::int64_t preemptions = 0;
  std::int64_t prefix_query_tokens = 0;
  std::int64_t prefix_hit_tokens = 0;
  std::int64_t max_running = 0;
  std::int64_t max_waiting = 0;
};

class BatchScheduler {
 public:
  BatchScheduler(const EngineRules& rules, bool reference);

  /// False for requests that can never fit, however empty the server.
  bool can_serve(const EngineRequest& request) const {
    // The last token's KV is never computed, hence the - 1.
    const std::int64_t blocks = blocks_for(request.prompt_tokens + request.output_tokens - 1);
    // What is pulled has its place all at once, in layers with a window, too.
    const std::int64_t windows =
        request.remote_tokens > 0 ? rules_.window_groups * blocks : most_window_blocks(blocks);
    return !too_long(request) && blocks + windows <= kv_.usable_blocks();
  }
  /// Adds a request to the waiting queue. Those it cannot serve come back at once.
  void enqueue(const EngineRequest& request, SimTime now, std::vector<EngineOutput>& out);
  /// Removes a request wherever it is and frees its blocks. False if it is not here.
  bool abort(std::uint32_t handle, StepPlan* in_flight);
  /// The sequence of a request that waits for remote KV, or of one whose blocks are held; a stale
  /// reference if there is none. A handle may have a new owner while the release of what the last
  /// one held is under way: the newest is found.
  SequenceRef find_pulling(std::uint32_t handle) const { return newest_in(skipped_, handle); }
  SequenceRef find_held(std::uint32_t handle) const { return newest_in(held_, handle); }
  /// PD decode leg: the pull has completed; the request can be promoted in the next pass. Nothing
  /// happens if it has left since.
  void transfer_done(SequenceRef sequence);
  /// PD decode leg: the KV is gone. Gives the blocks back and computes the prompt itself.
  void transfer_failed(std::uint32_t handle);
  /// PD prefill leg: the held blocks may be freed now, if they still are.
  void release_held(SequenceRef sequence);

  /// One scheduling pass. `in_flight` is the plan scheduled before and not yet processed (async
  /// scheduling), else nullptr.
  void schedule(StepPlan& plan, StepPlan* in_flight, SimTime now, std::vector<EngineOutput>& out);
  /// Processes the result of a step that ended at `now`: tokens, finishes, frees.
  void process(StepPlan& plan, SimTime now, std::vector<EngineOutput>& out);

  /// What is certain about the passes to come.
  struct Foresight {
    std::int64_t calm = 0;       ///< So many are pure decode of today's decode set, with nothing to
                                 ///< admit, finish or preempt. 0: the next one needs a real look.
    bool then_finishes = false;  ///< The one after them is the same, but sequences end with it.
  };
  /// Looks at most `limit` passes ahead.
  Foresight foresee(std::int64_t limit) const;
  /// Some request came whose KV is pulled from elsewhere: then any pass can have outputs.
  bool pulls() const { return pulls_; }
  /// So many of the next `limit` calm passes certainly have nothing to announce: no key enters or
  /// leaves the cache in them.
  std::int64_t silent_passes(std::int64_t limit) const;
  /// One such pass: the same effect as schedule(), at the cost of its block crossings.
  void calm_pass();
  /// Blocks have no key while their sequences run: nobody can see who takes which, nor, in silent
  /// passes, when.
  bool takes_blank_blocks() const { return !public_answers_; }
  /// Blocks that sequences take in the `i`-th calm pass from now, 1 = the next.
  std::int64_t crossings_in(std::int64_t i) const { return crossings_[phase_after(i)]; }
  /// Fetches what crossings_in() reads into the processor's caches.
  void prefetch_crossings() const { __builtin_prefetch(&crossings_[phase_]); }
  /// So many calm passes at once, which take `blocks` in all.
  void calm_passes(std::int64_t passes, std::int64_t blocks);
  std::int64_t decode_context() const { return decode_context_; }

  /// True when no sequence waits or runs and no step result is outstanding.
  bool idle() const { return running_.empty() && waiting_.empty() && skipped_.empty(); }
  bool has_runnable() const { return !running_.empty() || !waiting_.empty() || any_promotable(); }
  std::int64_t running() const { return static_cast<std::int64_t>(running_.size()); }
  std::int64_t waiting() const {
    return static_cast<std::int64_t>(waiting_.size() + skipped_.size());
  }
  /// Waiting for remote KV.
  std::int64_t loading() const { return static_cast<std::int64_t>(skipped_.size()); }
  /// Finished prefills whose blocks are kept for their decode leg.
  std::int64_t held() const { return static_cast<std::int64_t>(held_.size()); }
  std::int64_t decoding() const { return decodes_; }
  AdapterGauges adapters() const {
    if (rules_.max_loras == 0) return {};
    return {.running = adapters_of(running_),
            .waiting = adapters_of(waiting_) | adapters_of(skipped_),
            .slots = rules_.max_loras};
  }
  const KvCache& kv() const { return kv_; }
  KvCache& kv() { return kv_; }
  const EngineCounters& counters() const { return counters_; }
  const EngineRules& rules() const { return rules_; }
  void set_sink(BlockEventSink* sink) {
    sink_ = sink;
    kv_.set_sink(sink);
  }
  /// Who knows the keys of answers where one key serves engine and router; null elsewhere.
  void set_answer_keys(SequenceKeySource* keys) { answer_keys_ = keys; }
  /// Token and block conservation over every sequence; throws InternalError.
  void verify() const;
  /// One line per waiting or running sequence, for the watchdog.
  std::string describe_queues() const;

 private:
  enum class State : std::uint8_t {
    kFree,      ///< Slot unused.
    kWaiting,   ///< In waiting_, new or preempted.
    kRemote,    ///< In skipped_, waiting for remote KV.
    kPrefill,   ///< Running, prompt (or recomputation) not yet complete.
    kDecode,    ///< Running, in the decode set.
    kPaused,    ///< Running, decodes, but not in the set (no budget last time).
    kDraining,  ///< Running, last token scheduled but not processed.
    kHeld       ///< PD prefill leg, finished, blocks held.
  };
  /// Blocks of a private answer that a preempted sequence gave up, while some of them are left.
  struct FormerRun {
    std::int64_t position;  ///< Of its first block in the sequence.
    RunRef run;
  };
  struct Sequence {
    EngineRequest request;
    State state = State::kFree;
    bool remote_ready = false;  ///< PD decode leg: the pull has completed.
    bool remote_done = false;   ///< The remote KV was used or is gone; prefill locally.
    bool started = false;       ///< The client has its first token.
    bool wastes_slot = false;   ///< Ends by EOS under async scheduling: one slot in vain.
    std::uint32_t stamp = 0;
    std::int32_t preemptions = 0;
    std::int64_t target = 0;       ///< Prompt plus known output: what prefill must compute.
    std::int64_t computed = 0;     ///< As of entry_pass for members of the decode set.
    std::int64_t sampled = 0;      ///< Output tokens sampled, likewise.
    std::int64_t sample_pass = 0;  ///< Pass that sampled the last of them.
    std::int64_t entry_pass = 0;   ///< Pass in which it (re-)entered the decode set.
    std::int64_t streak_pass = 0;  ///< Pass since which it has sampled in every pass.
    std::int64_t finish_pass = 0;  ///< Pass that samples the last token.
    std::int64_t registered = 0;   ///< Leading blocks findable under their key.
    std::int64_t cached = -1;      ///< Prompt tokens hit at first admission.
    std::uint64_t order = 0;       ///< Position in running_: larger is later.
    std::uint32_t bucket_position = 0;
    std::int64_t scheduled = 0;  ///< Tokens given in the current walk.
    SimTime last_token;          ///< Of a sequence that paused or was preempted.
    BlockHolding holding;        ///< While a private answer decodes, as of its entry into the set.
    std::vector<FormerRun> former;      ///< Private blocks from before preemptions, oldest first.
    std::vector<BlockHolding> windows;  ///< Per group of windowed layers, from window_first on.
    std::int64_t window_first = 0;
  };
  using Slot = std::uint32_t;

  Sequence& seq(Slot s) { return sequences_[s]; }
  const Sequence& seq(Slot s) const { return sequences_[s]; }
  SequenceRef ref(Slot s) const { return {s, seq(s).stamp}; }
  bool current(SequenceRef r) const {
    return r.slot < sequences_.size() && seq(r.slot).stamp == r.stamp;
  }
  bool any_promotable() const;
  template <class List>
  AdapterSet adapters_of(const List& list) const {
    AdapterSet set = 0;
    for (const Slot s : list) set |= adapter_bit(seq(s).request.adapter);
    return set;
  }

  // LoRA (adapter_batch.cpp).
  bool has_adapter_slot(Slot s) const;
  void count_adapters(StepPlan& plan);
  void count_adapter(const Sequence& q, std::int64_t tokens, StepPlan& plan);
  void place_adapters(StepPlan& plan);

  SequenceRef newest_in(const std::vector<Slot>& list, std::uint32_t handle) const;
  void enqueue_waiting(Slot s);
  Slot acquire();
  void recycle(Slot s);
  Slot find(std::uint32_t handle) const;
  std::int64_t blocks_for(std::int64_t tokens) const {
    return block_.quotient(tokens + rules_.block_size - 1);
  }

  // The decode set (decode_set.cpp).
  void enter_decode(Slot s, StepPlan& plan, bool steady);
  void leave_decode(Slot s);
  void add_to_bucket(Slot s);
  void remove_from_bucket(Slot s);
  std::size_t bucket_of(const Sequence& q) const;
  std::int64_t computed_after(const Sequence& q, std::int64_t pass) const;
  void settle_counts(Sequence& q);
  void leave_for_preemption(Slot s);
  void retire_leavers();
  void note_finishing(StepPlan& plan);
  void next_pass() {
    ++pass_;
    phase_ = phase_ + 1 == buckets_.size() ? 0 : phase_ + 1;
  }
  std::size_t phase_after(std::int64_t passes) const {
    return static_cast<std::size_t>(block_.remainder(static_cast<std::int64_t>(phase_) + passes));
  }
  void cross_blocks();
  void assign_blocks(Sequence& q, std::int64_t computed);
  std::int64_t crossings_until(std::int64_t passes) const;
  bool decodes_only() const;
  bool too_long(const EngineRequest& request) const;

  void run_pass(StepPlan& plan, StepPlan* in_flight, SimTime now, std::vector<EngineOutput>& out);

  // Phase A of a pass: running sequences (scheduling_pass.cpp).
  bool schedule_running_fast(StepPlan& plan, StepPlan* in_flight, SimTime now);
  bool any_paused();
  void schedule_decodes(StepPlan& plan);
  void schedule_prefills(StepPlan& plan);
  void allocate_in_order(StepPlan* in_flight, SimTime now);
  void walk_running(StepPlan& plan, StepPlan* in_flight, SimTime now);
  bool walk_one(std::size_t& i, StepPlan* in_flight, SimTime now);
  void settle_walk(StepPlan& plan, StepPlan* in_flight, SimTime now);
  std::size_t choose_victim() const;
  void preempt(Slot s, StepPlan* in_flight, SimTime now);
  /// The sequence samples a token in the step that is still running.
  bool awaits_token(const Sequence& q, const StepPlan* in_flight) const;
  void dissolve_decode_set();

  // Phase B: admission.
  enum class Admission { kAdmitted, kLoading, kBlocked, kNoBudget };
  void admit(StepPlan& plan, SimTime now, std::vector<EngineOutput>& out);
  Admission try_admit(Slot s, StepPlan& plan, SimTime now, std::vector<EngineOutput>& out);
  Admission start_remote_load(Slot s, std::int64_t hit, SimTime now,
                              std::vector<EngineOutput>& out);
  std::int64_t lookup_prefix(Slot s);
  void append_former_blocks(Sequence& q, std::int64_t prompt_blocks, std::int64_t limit);
  void accept_loaded(Slot s);
  std::int64_t blocks_owed_to_prefills() const;

  // Groups of windowed layers (window_blocks.cpp).
  std::int64_t most_window_blocks(std::int64_t blocks) const;
  std::int64_t window_need(const Sequence& q, std::int64_t tokens) const;
  std::int64_t lookup_windows(std::span<const BlockKey> keys, std::int64_t hit);
  std::int64_t shorten_to_window(std::size_t group, std::span<const BlockKey> keys,
                                 std::int64_t hit) const;
  std::int64_t window_hit_blocks(std::int64_t hit) const;
  std::int64_t window_pull_blocks(std::int64_t blocks) const;
  std::int64_t count_unreferenced_hits() const;
  void take_window_hits(Sequence& q, std::int64_t hit);
  void leave_windows(Sequence& q);
  void allocate_windows(Sequence& q, std::int64_t blocks);
  void register_windows(Sequence& q, std::span<const BlockKey> keys);
  void free_windows(Sequence& q);

  void give_prefill(Slot s, std::int64_t n, StepPlan& plan);
  /// Makes the full blocks among the first `tokens` findable. Those of a private answer can wait
  /// until the sequence gives them up: nobody looks for them before.
  void register_up_to(Slot s, std::int64_t tokens);
  BlockKey block_key(const Sequence& q, std::int64_t block, BlockKey previous) const;
  void free_blocks(Slot s);
  void erase_running(Slot s);
  void erase_prefilling(Slot s);
  void finish(Slot s, SimTime now, std::vector<EngineOutput>& out);

  // What calm passes need, side by side.
  Divisor block_;                         ///< By the block size.
  std::size_t phase_ = 0;                 ///< pass_ modulo block size.
  std::vector<std::uint32_t> crossings_;  ///< Sizes of buckets_.
  std::int64_t pass_ = 0;
  std::int64_t decodes_ = 0;         ///< Size of the decode set.
  std::int64_t decode_context_ = 0;  ///< Sum of contexts as of the last pass.

  EngineRules rules_;
  /// Every pass walks: asked for, or windows' blocks or adapters are looked at one by one.
  bool reference_;
  KvCache kv_;
  BlockEventSink* sink_ = nullptr;
  SequenceKeySource* answer_keys_ = nullptr;
  std::vector<Sequence> sequences_;
  std::vector<Slot> free_slots_;
  std::deque<Slot> waiting_;
  std::vector<Slot> skipped_;  ///< Waiting for remote KV, oldest first.
  std::vector<Slot> held_;
  std::vector<Slot> running_;     ///< In admission order.
  std::vector<Slot> prefilling_;  ///< The kPrefill ones, in running order.
  std::uint64_t next_order_ = 0;

  std::vector<std::vector<Slot>> buckets_;  ///< By pass modulo block size of the next crossing.
  FinishList finishes_;
  std::vector<SequenceRef> leavers_;  ///< Sampled their last token in the last pass.
  std::int64_t wasted_slots_ = 0;     ///< Members whose next slot is in vain (EOS, async).
  std::uint64_t last_decode_order_ = 0;

  std::int64_t budget_ = 0;
  bool preempted_ = false;
  bool retry_admission_ = true;  ///< Something changed since the head last failed to fit.
  bool deferred_ = false;        ///< This pass must not run prefill work (prefill interval).
  bool saturated_ = false;       ///< The last release pass left requests waiting.
  bool paused_ = false;          ///< Some running sequence may be kPaused.
  bool public_answers_ = false;  ///< Some request came whose answer is announced.
  bool pulls_ = false;
  CachedPrefix hits_;
  AdapterSlots adapter_slots_;
  AdapterSet batch_adapters_ = 0;          ///< Of the pass.
  std::vector<CachedPrefix> window_hits_;  ///< Per group, those of hits_.
  SequenceRef hits_of_;  ///< Whose prefix `hits_` is, while hits_version_ is the cache's.
  std::uint64_t hits_version_ = 0;  ///< 0 = nobody's.
  std::vector<BlockKey> keys_;      ///< Scratch for lookups and registrations.
  std::vector<Slot> needy_;         ///< Scratch: who needs blocks in this pass.
  EngineCounters counters_;
};

}  // namespace routesim::sim
