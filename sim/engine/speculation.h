// Speculative decoding in one engine core: drafts of sequences, and what became of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "sim/engine/step_plan.h"
#include "sim/kv/sequence.h"
#include "sim/rules/engine_config.h"

namespace routesim::sim {

/// Keeps vLLM's counters of sequences that decode with drafts (v0.12 to v0.24,
/// v1/core/sched/scheduler.py and async_scheduler.py). A step verifies the drafts of the one
/// before: of its tokens one is certain, and a run of leading drafts is accepted. The scheduler
/// takes all of them for accepted until the result is there: with async scheduling the next step,
/// scheduled before, stands that far ahead. `Sequence::computed` counts like vLLM's
/// num_computed_tokens, `Sequence::sampled` the answer as far as the scheduler knows it. Used by
/// the walking pass only.
///
/// A pipeline whose stages overlap counts the same way without drafts: while a sequence is in a
/// batch under way, known(q) has not moved, and wanted() is 0.
///
/// How many drafts are accepted is drawn by request and place in its answer, so that it depends
/// neither on the order of events nor on the router.
class Speculation {
 public:
  Speculation(const EngineRules& rules, std::uint64_t seed)
      : rules_(rules.speculation),
        seed_(seed),
        longest_(rules.max_model_len),
        in_use_(rules.by_result()),
        async_(rules.async_scheduling) {}

  bool in_use() const { return in_use_; }
  /// There are drafts.
  bool speculates() const { return rules_.in_use(); }
  const SpeculationRules& rules() const { return rules_; }
  /// Tokens for which a request may come to need slots, at most, of `tokens`.
  std::int64_t most_slots(std::int64_t tokens) const {
    return speculates() ? std::min(tokens + 2 * rules_.tokens + rules_.lookahead + 1, longest_)
                        : tokens;
  }
  /// Tokens for which a sequence must have slots when it has `computed` after the step.
  std::int64_t slots(std::int64_t computed) const {
    return speculates() ? std::min(computed + rules_.lookahead, longest_) : computed;
  }

  /// A sequence enters the engine, or was preempted: it has no drafts.
  void reset(SequenceSlot s) {
    if (s >= drafts_.size()) drafts_.resize(s + std::size_t{1});
    drafts_[s] = {};
  }
  /// Tokens that a decoding sequence would take in this pass; 0: none. As in vLLM the last steps of
  /// a sequence are not shortened to what it may still generate.
  std::int64_t wanted(SequenceSlot s, const Sequence& q) const {
    const Drafts& d = drafts_[s];
    const std::int64_t end = q.request.prompt_tokens + q.request.max_tokens;
    if (d.placeholders > 0 && q.computed + 2 - d.placeholders >= end) return 0;
    return std::max<std::int64_t>(
        0, std::min(known(q) + d.pending + d.placeholders - q.computed, longest_ - 1 - q.computed));
  }
  /// Tokens of a decoding sequence that can be found under a key when it computes `n` more: never
  /// those of drafts.
  std::int64_t note_blocks(SequenceSlot s, const Sequence& q, std::int64_t n) {
    return drafts_[s].certain = std::min(q.computed + n, known(q));
  }
  /// The same as it was last said.
  std::int64_t certain(SequenceSlot s) const { return drafts_[s].certain; }

  /// The prompt is through: the step samples its first token and guesses the next ones.
  void begin(SequenceSlot s, const Sequence& q, SequenceRef ref, StepPlan& plan) {
    drafts_[s].certain = q.computed;
    await(s, 0, ref, plan);
  }
  /// The sequence takes q.scheduled tokens in this pass.
  void schedule(SequenceSlot s, Sequence& q, SequenceRef ref, StepPlan& plan) {
    Drafts& d = drafts_[s];
    const std::int64_t verified = std::clamp<std::int64_t>(
        q.computed + q.scheduled - known(q) - d.placeholders, 0, d.pending);
    q.computed += q.scheduled;
    ++plan.shape.decode_requests;
    plan.shape.draft_tokens += q.scheduled - 1;
    plan.shape.decode_context += q.computed;
    await(s, verified, ref, plan);
  }
  /// The pass left the sequence out: places for drafts that the step before it makes are void.
  void leave_out(SequenceSlot s) {
    if (async_) drafts_[s].pending = 0;
  }

  /// The result of a step: returns how many tokens the sequence got. `running`: it was not
  /// preempted meanwhile.
  std::int64_t verify(SequenceSlot s, Sequence& q, std::int64_t drafts, bool running) {
    const std::int64_t accepted = drafts > 0 ? draw(q, drafts) : 0;
    if (drafts > 0) count(drafts, accepted);
    const std::int64_t tokens = std::min(accepted + 1, q.request.output_tokens - q.sampled);
    q.sampled += tokens;
    if (!running) return tokens;
    Drafts& d = drafts_[s];
    q.computed -= drafts - accepted;
    if (async_) {
      d.placeholders -= drafts - accepted + tokens;
      d.certain = std::max(d.certain, q.computed - d.placeholders);
    } else {
      d.pending = rules_.tokens;
    }
    return tokens;
  }

  const SpeculationCounters& counters() const { return counters_; }

 private:
  struct Drafts {
    std::int64_t placeholders = 0;  ///< vLLM's num_output_placeholders: tokens under way.
    std::int64_t pending = 0;       ///< vLLM's spec_token_ids: drafts, or places for them.
    std::int64_t certain = 0;       ///< Leading tokens in blocks that can have a key.
  };

  static std::int64_t known(const Sequence& q) { return q.request.prompt_tokens + q.sampled; }
  void await(SequenceSlot s, std::int64_t verified, SequenceRef ref, StepPlan& plan) {
    Drafts& d = drafts_[s];
    plan.verified.push_back({ref, verified});
    d.pending = async_ ? rules_.tokens : 0;
    if (async_) d.placeholders += 1 + verified;
  }
  std::int64_t draw(const Sequence& q, std::int64_t drafts) const {
    const std::uint64_t place = mix64(q.request.draws, static_cast<std::uint64_t>(q.sampled));
    const double u = RandomStream(seed_, Stream::kSpeculation, place).uniform();
    std::int64_t accepted = 0;
    while (accepted < drafts && u < rules_.acceptance[static_cast<std::size_t>(accepted)])
      ++accepted;
    return accepted;
  }
  void count(std::int64_t drafts, std::int64_t accepted) {
    ++counters_.drafts;
    counters_.draft_tokens += drafts;
    counters_.accepted_tokens += accepted;
    counters_.accepted_per_position.resize(rules_.acceptance.size());
    for (std::int64_t i = 0; i < accepted; ++i)
      ++counters_.accepted_per_position[static_cast<std::size_t>(i)];
  }

  SpeculationRules rules_;
  std::uint64_t seed_;
  std::int64_t longest_;
  bool in_use_;
  bool async_;
  std::vector<Drafts> drafts_;  ///< By slot.
  SpeculationCounters counters_;
};

}  // namespace routesim::sim
