// The scheduler of one engine core (one DP rank).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "sim/engine/adapter_batch.h"
#include "sim/engine/decode_set.h"
#include "sim/engine/running_list.h"
#include "sim/engine/sglang_pass.h"
#include "sim/engine/speculation.h"
#include "sim/engine/step_plan.h"
#include "sim/engine/tier_stores.h"
#include "sim/engine/waiting_queue.h"
#include "sim/kv/sequence.h"
#include "sim/kv/sequence_blocks.h"
#include "sim/rules/engine_config.h"
#include "sim/tiers/kv_tiers.h"

namespace routesim::sim {

/// Keeps the queues of an engine core and runs its scheduling passes: token budget, chunked
/// prefill, admission, preemption. One call of schedule() is one pass.
///
/// Pure decode is the common case and must not cost a visit per sequence per step, so decoding
/// sequences are kept as sums (DecodeSet), and only passes in which something else happens (`walk`)
/// look at them one by one. With `reference` set every pass walks; a property test proves that both
/// give the same bytes.
class BatchScheduler {
 public:
  /// `store` outlives this; needed where all servers share one (TierRules::shared_store). `seed` is
  /// that of the run.
  BatchScheduler(const EngineRules& rules, bool reference, ChunkPool* store = nullptr,
                 std::uint64_t seed = 0);

  /// False for requests that can never fit, however empty the server.
  bool can_serve(const EngineRequest& request) const {
    // The last token's KV is never computed, hence the - 1.
    const std::int64_t blocks = blocks_.blocks_for(
        speculation_.most_slots(request.prompt_tokens + request.output_tokens - 1));
    // KV that is pulled has its place all at once, in layers with a window, too.
    const std::int64_t windows = request.remote_tokens > 0 && !rules_.state_groups
                                     ? rules_.window_groups * blocks
                                     : blocks_.windows().most_blocks(blocks);
    return !too_long(request) && blocks + windows <= kv().usable_blocks();
  }
  /// Adds a request to the waiting queue. Requests it cannot serve come back at once.
  void enqueue(const EngineRequest& request, SimTime now, std::vector<EngineOutput>& out);
  /// Removes a request wherever it is and frees its blocks. False if it is not here.
  bool abort(std::uint32_t handle, StepPlan* in_flight);
  /// The sequence of a request that waits for remote KV, or of one whose blocks are held; a stale
  /// reference if there is none.
  SequenceRef find_pulling(std::uint32_t handle) const {
    return sequences_.newest_in(waiting_.loading(), handle);
  }
  SequenceRef find_held(std::uint32_t handle) const { return sequences_.newest_in(held_, handle); }
  /// PD decode leg: the pull has completed; the request can be promoted in the next pass. Nothing
  /// happens if it has left since.
  void transfer_done(SequenceRef sequence);
  /// PD decode leg: the KV is gone. Gives the blocks back and computes the prompt itself.
  void transfer_failed(std::uint32_t handle);
  /// PD prefill leg: the held blocks may be freed now, if they still are.
  void release_held(SequenceRef sequence);
  /// A copy of the tiers is done.
  void copy_done(std::uint32_t copy, SimTime now, std::vector<EngineOutput>& out);
  /// The workers know that a request of ended_requests() is over.
  void end_request(SequenceRef ended);
  /// Requests that finished since the last call and whose blocks are kept for their copies; the
  /// caller clears it.
  std::vector<SequenceRef>& ended_requests() { return stores_.ended(); }
  /// The step of `plan` has ended: what it stores can be copied.
  void submit_stores(const StepPlan& plan) {
    if (plan.stores >= 0) tiers_->end_step(plan.stores);
  }
  /// Its engine keeps KV outside GPU memory: there are tiers().
  bool has_tiers() const { return tiers_ != nullptr; }
  KvTiers& tiers() const { return *tiers_; }
  /// Leading blocks of a prompt that GPU memory, which has `in_gpu` of them, or tiers have.
  std::int64_t held_blocks(std::span<const BlockKey> keys, std::int64_t in_gpu) const {
    return has_tiers() ? tiers_->held_blocks(keys, in_gpu) : in_gpu;
  }

  /// One scheduling pass. `in_flight` is a plan scheduled before and not yet processed (async
  /// scheduling, pipelines), else nullptr.
  void schedule(StepPlan& plan, StepPlan* in_flight, SimTime now, std::vector<EngineOutput>& out);
  /// Processes the result of a step that ended at `now`: tokens, finishes, frees.
  void process(StepPlan& plan, SimTime now, std::vector<EngineOutput>& out);
  /// Steps that ended gave so many tokens to steady decodes; process() counts all others.
  void count_steady(std::int64_t tokens) { counters_.generation_tokens += tokens; }

  /// The certain facts about the passes to come.
  struct Forecast {
    std::int64_t pure_decode = 0;  ///< Passes of today's decode set, with nothing to admit, finish
                                   ///< or preempt. 0: the next one needs a real look.
    bool then_finishes = false;    ///< The one after them is the same, but sequences end with it.
  };
  /// Looks at most `limit` passes ahead.
  Forecast forecast(std::int64_t limit) const;
  /// KV may come from elsewhere, a server or a tier: then any pass can have outputs.
  bool pulls() const { return load_.pulls || has_tiers(); }
  /// So many of the next `limit` pure-decode passes certainly have nothing to announce: no key
  /// enters or leaves the cache in them.
  std::int64_t passes_without_events(std::int64_t limit) const;
  /// One pure-decode pass: the same effect as schedule(), at the cost of its block crossings.
  void run_decode_pass();
  /// Blocks have no key while their sequences run: nobody can see which sequence takes which, nor,
  /// in passes without events, when.
  bool takes_blank_blocks() const { return !load_.public_answers; }
  /// Blocks that sequences take in the `i`-th pure-decode pass from now, 1 = the next.
  std::int64_t crossings_in(std::int64_t i) const { return decodes_.crossings_in(i); }
  /// Fetches what crossings_in() reads into the processor's caches.
  void prefetch_crossings() const { decodes_.prefetch_crossings(); }
  /// So many pure-decode passes at once, which take `blocks` in all.
  void run_decode_passes(std::int64_t passes, std::int64_t blocks);
  /// The sum of their contexts. O(1) unless they speculate.
  std::int64_t decode_context() const {
    if (!speculation_.in_use()) return decodes_.context();
    std::int64_t tokens = 0;
    for (const Slot s : running_.all())
      if (sequences_[s].state == State::kPaused) tokens += sequences_[s].computed;
    return tokens;
  }
  /// Tokens computed of prompts that are not through, without those that the cache had.
  std::int64_t prefill_progress() const {
    std::int64_t tokens = 0;
    for (const Slot s : running_.prefilling())
      tokens += std::max<std::int64_t>(
          0, sequences_[s].computed - std::max<std::int64_t>(0, sequences_[s].cached));
    return tokens;
  }

  /// True when no sequence waits or runs and no step result is outstanding.
  bool idle() const { return running_.empty() && waiting_.empty(); }
  std::int64_t running() const { return running_.size(); }
  std::int64_t waiting() const { return waiting_.size(); }
  /// Waiting for remote KV.
  std::int64_t loading() const { return std::ssize(waiting_.loading()); }
  /// Finished prefills whose blocks are kept for their decode leg.
  std::int64_t held() const { return std::ssize(held_); }
  /// Finished requests whose blocks are kept until they are copied to the host.
  std::int64_t storing() const { return stores_.kept(); }
  /// Running sequences whose prompts are through, but those that end with the step under way.
  std::int64_t decoding() const {
    return speculation_.in_use() ? running() - std::ssize(running_.prefilling()) : decodes_.size();
  }
  AdapterGauges adapters() const {
    if (!adapters_.in_use()) return {};
    return {.running = adapters_of(running_.all()),
            .waiting = adapters_of(waiting_.queue()) | adapters_of(waiting_.loading()),
            .slots = adapters_.max_loras()};
  }
  const KvCache& kv() const { return blocks_.kv(); }
  KvCache& kv() { return blocks_.kv(); }
  const EngineCounters& counters() const { return counters_; }
  const Speculation& speculation() const { return speculation_; }
  const EngineRules& rules() const { return rules_; }
  void set_sink(BlockEventSink* blocks, TierEventSink* tiers) {
    blocks_.set_sink(blocks);
    if (has_tiers()) tiers_->set_sink(tiers);
  }
  /// The source of answers' keys where one key serves engine and router; null elsewhere.
  void set_answer_keys(SequenceKeySource* keys) { blocks_.set_answer_keys(keys); }
  /// Token and block conservation over every sequence; throws InternalError.
  void verify() const;
  /// The length of each queue, for the watchdog.
  std::string describe_queues() const;

 private:
  friend class SglangPass;  ///< Its passes are of these queues, blocks and decodes.
  using Slot = SequenceSlot;
  using State = SequenceState;
  enum class PassMode : std::uint8_t {
    kSums,    ///< Decodes are sums wherever nothing else happens.
    kWalkAll  ///< Every pass visits every sequence: asked for, or windows, adapters,
              ///< speculation or pipelines need it.
  };
  /// The things that the pass under way may still do.
  struct Pass {
    std::int64_t budget = 0;         ///< Tokens left.
    bool preempted = false;          ///< It preempted a sequence: it admits none.
    bool prefills_deferred = false;  ///< It must not run prefill work (prefill interval).
  };
  /// How the last pass that could admit requests ended (prefill interval).
  enum class LastRelease : std::uint8_t { kAdmittedAll, kLeftWaiting };
  /// The kinds of requests that have ever come: each kind makes more of a pass visible outside.
  struct LoadSeen {
    bool public_answers = false;  ///< Answers that are announced.
    bool pulls = false;           ///< KV that is pulled from elsewhere.
  };

  template <class List>
  AdapterSet adapters_of(const List& list) const {
    AdapterSet set = 0;
    for (const Slot s : list) set |= adapter_bit(sequences_[s].request.adapter);
    return set;
  }
  bool has_adapter_slot(Slot s) const;
  Slot find(std::uint32_t handle) const;
  bool too_long(const EngineRequest& request) const;
  bool decodes_only() const;
  void cross_blocks();
  void free_blocks(Slot s);
  void begin_answer(Sequence& q);
  void finish(Slot s, SimTime now, std::vector<EngineOutput>& out);

  void run_pass(StepPlan& plan, StepPlan* in_flight, SimTime now, std::vector<EngineOutput>& out);
  void finish_plan(StepPlan& plan);
  // Phase A of a pass: running sequences (scheduling_pass.cpp).
  bool schedule_running_fast(StepPlan& plan, StepPlan* in_flight, SimTime now);
  void schedule_decodes(StepPlan& plan);
  void schedule_prefills(StepPlan& plan);
  void allocate_in_order(StepPlan* in_flight, SimTime now);
  void walk_running(StepPlan& plan, StepPlan* in_flight, SimTime now);
  bool walk_one(std::size_t& i, StepPlan* in_flight, SimTime now);
  void settle_walk(StepPlan& plan, StepPlan* in_flight, SimTime now);
  void settle_speculative(Slot s, StepPlan& plan);
  void process_verified(const StepPlan::Verified& one, SimTime now, std::vector<EngineOutput>& out);
  void settle_decode(Slot s, StepPlan& plan, StepPlan* in_flight, SimTime now);
  void preempt(Slot s, StepPlan* in_flight, SimTime now);
  /// The sequence samples a token in the step that is still running.
  bool awaits_token(const Sequence& q, const StepPlan* in_flight) const;
  /// A batch of a pipeline that holds the sequence is under way.
  bool in_batch(const Sequence& q) const {
    return rules_.pipeline_stages > 1 && q.batch_pass > heard_pass_;
  }
  void share_context(StepPlan& plan) const;
  void give_prefill(Slot s, std::int64_t n, StepPlan& plan);

  // Phase B of a pass: admission (scheduling_pass.cpp).
  enum class Admission { kAdmitted, kLoading, kDeferred, kBlocked, kNoBudget };
  void admit(StepPlan& plan, SimTime now, std::vector<EngineOutput>& out);
  bool admit_loaded(StepPlan& plan, SimTime now, std::vector<EngineOutput>& out);
  Admission try_admit(Slot s, StepPlan& plan, SimTime now, std::vector<EngineOutput>& out);
  Admission start_remote_load(Slot s, std::int64_t hit, SimTime now,
                              std::vector<EngineOutput>& out);
  Admission start_tier_load(Slot s, std::int64_t hit, const TierFound& found, SimTime now);
  void count_hits(Sequence& q, std::int64_t hit);
  void count_tier_hits(Sequence& q, std::int64_t hit, std::int64_t tokens);
  void load_in_step(Slot s, std::int64_t hit, const TierFound& found, SimTime now,
                    std::vector<EngineOutput>& out);
  void accept_loaded(Slot s);
  std::int64_t remote_tokens(const Sequence& q) const;

  void end_storing(Slot s);
  std::int64_t blocks_owed_to_prefills() const;

  DecodeSet decodes_;
  SequenceBlocks blocks_;
  EngineRules rules_;
  PassMode mode_;
  LastRelease last_release_ = LastRelease::kAdmittedAll;
  LoadSeen load_;
  Pass pass_;
  SequenceTable sequences_;
  std::unique_ptr<KvTiers> tiers_;  ///< Null without.
  WaitingQueue waiting_;
  RunningList running_;
  std::vector<Slot> held_;  ///< Finished prefills whose blocks a decode leg may still read.
  AdapterBatch adapters_;
  Speculation speculation_;
  TierStores stores_;
  std::uint64_t requests_ = 0;   ///< Ever taken.
  std::int64_t heard_pass_ = 0;  ///< Pipelines: the last pass whose result is known.
  std::vector<Slot> needy_;      ///< Scratch: sequences that need blocks in this pass.
  EngineCounters counters_;
  std::unique_ptr<SglangPass> sglang_;  ///< Null: passes are vLLM's.
};

}  // namespace routesim::sim
