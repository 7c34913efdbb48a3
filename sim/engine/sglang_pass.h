// The scheduling pass of SGLang.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/step_plan.h"
#include "sim/kv/sequence.h"
#include "sim/rules/sglang_config.h"

namespace routesim::sim {

class BatchScheduler;

/// Decides what a step computes as SGLang 0.5.9 does (get_next_batch_to_run in
/// managers/scheduler.py, PrefillAdder in managers/schedule_policy.py, retract_decode in
/// managers/schedule_batch.py): a batch of prompts where one can be made, else one token of every
/// running request. Keeps what only this scheduler knows; queues, blocks and decodes are those of
/// the engine core that owns it, which calls it in its own passes.
///
/// A pass costs O(1) plus its finishes while it only decodes. A batch of prompts visits the running
/// requests twice: when it interrupts them, and when they go on.
class SglangPass {
 public:
  /// Both outlive this.
  SglangPass(const SglangRules& rules, BatchScheduler& core) : rules_(rules), core_(core) {}
  SglangPass(const SglangPass&) = delete;
  SglangPass& operator=(const SglangPass&) = delete;

  /// One pass; as BatchScheduler::schedule().
  void run(StepPlan& plan, StepPlan* in_flight, SimTime now);
  /// The last pass only took note of who has left: SGLang's loop goes round at once.
  bool goes_round() const { return goes_round_; }
  /// The step of `plan` has ended: its prompts are in the radix cache (cache_unfinished_req).
  void cache_prompts(const StepPlan& plan);
  /// A running request has finished or was aborted.
  void note_departure(SequenceSlot s);
  /// The next pass is no more than the token of every running request.
  bool only_decodes() const { return departed_ == 0 && !after_prompts_; }
  /// No waiting request is looked at until somebody leaves (batch_is_full).
  bool is_full() const { return full_; }
  /// Tokens that one request may have: prompt, answer and one more (max_req_len).
  std::int64_t longest_request() const;

 private:
  enum class Added : std::uint8_t { kMore, kNoToken, kStop };
  /// What a batch of prompts may still take (PrefillAdder).
  struct Budget {
    std::int64_t input = 0;  ///< Tokens, by --max-prefill-tokens.
    std::int64_t chunk = 0;  ///< The same by --chunked-prefill-size.
    double reserved = 0;     ///< Tokens that running requests are expected to need.
    std::int64_t prompts = 0;
  };

  void take_note_of_last_batch();
  bool prefill(StepPlan& plan, StepPlan* in_flight, SimTime now);
  void order_queue();
  bool continue_chunk(Budget& b, StepPlan& plan, StepPlan* in_flight, SimTime now);
  Added add(SequenceSlot s, Budget& b, StepPlan& plan, StepPlan* in_flight, SimTime now);
  Added state_of(const Budget& b) const;
  void give(SequenceSlot s, std::int64_t n, Budget& b, StepPlan& plan);
  void interrupt_decodes(StepPlan& plan, StepPlan* in_flight, SimTime now);

  void decode(StepPlan& plan, StepPlan* in_flight, SimTime now);
  void decode_one_by_one(StepPlan& plan, StepPlan* in_flight, SimTime now);
  void retract(std::vector<SequenceSlot>& batch, StepPlan* in_flight, SimTime now);
  void retract_one(SequenceSlot s, StepPlan* in_flight, SimTime now);

  double new_token_ratio() const;
  void set_ratio(double ratio);
  double reserved(const StepPlan* in_flight) const;
  std::int64_t free_tokens() const;
  std::int64_t outputs(const Sequence& q, const StepPlan* in_flight) const;
  std::int64_t most_outputs(const Sequence& q) const;
  std::int64_t in_pages(std::int64_t tokens) const;
  bool has_chunk() const { return chunk_ != kNone; }

  static constexpr SequenceSlot kNone = ~SequenceSlot{0};

  const SglangRules& rules_;
  BatchScheduler& core_;
  SequenceSlot chunk_ = kNone;  ///< The prompt of which a part is computed.
  bool full_ = false;           ///< batch_is_full.
  bool after_prompts_ = false;  ///< The last batch was one of prompts,
  bool chunk_in_last_ = false;  ///< one of which was not through,
  bool nobody_before_ = false;  ///< and nobody decoded beside it.
  bool goes_round_ = false;
  std::int64_t departed_ = 0;  ///< Gone since the last batch of decodes, and counted until then.
  std::int64_t departed_before_ = 0;  ///< Of these, before the last batch was made.
  double base_ratio_ = -1;            ///< new_token_ratio at pass ratio_pass_; negative: the first.
  std::int64_t ratio_pass_ = 0;       ///< Counted in batches of decodes.
  std::int64_t other_passes_ = 0;     ///< Passes that were none.
};

}  // namespace routesim::sim
