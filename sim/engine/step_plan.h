// The work of one engine step, and what the step tells the outside.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "models/latency_model.h"
#include "sim/kv/sequence.h"

namespace routesim::sim {

/// The kinds of output that a step, or the drain before it, sends outside.
enum class EngineOutputKind {
  kFirstToken,      ///< The first token of the request.
  kResumedToken,    ///< A token after a gap longer than one step (preemption or an empty budget),
                    ///< or those of a step that verified drafts.
  kFinished,        ///< The last token.
  kTransferNeeded,  ///< PD decode leg: blocks are allocated, pull `value` blocks.
  kNothingToPull,   ///< PD decode leg: every block was found locally.
  kLoaded,          ///< The load from a tier is done; it took `value` ns.
  kPulled,          ///< Chunks of another engine are here after `value` ns.
  kAborted,         ///< The abort was carried out; the engine holds nothing of it any more.
  kUnservable       ///< Can never fit; removed. `value` is 1 when longer than max_model_len.
};
struct EngineOutput {
  EngineOutputKind kind;
  std::uint32_t handle;
  std::int64_t value = 0;     ///< kResumedToken: the gap in ns; kFinished: preemptions.
  std::int64_t together = 0;  ///< kResumedToken: more tokens that came with it.
  /// kFinished: prompt tokens hit at first admission; kLoaded: of these, loaded; kPulled: found.
  std::int64_t cached_tokens = 0;
  SimTime at;
};

/// The work of one step, fixed when it is scheduled, consumed when it is processed.
struct StepPlan {
  models::BatchShape shape;
  std::int64_t pass = 0;
  std::int64_t steady = 0;             ///< Decodes that also sampled in the pass before.
  std::int64_t stores = -1;            ///< KvTiers: the copy of what it stores; -1 = none.
  Duration copying;                    ///< How much longer copies of KV tiers make it.
  std::vector<SequenceRef> sampled;    ///< Others that sample: first tokens and resumptions.
  std::vector<SequenceRef> finishing;  ///< Sequences whose last token is sampled here.
  std::vector<SequenceRef> pausing;    ///< Sampled here but not scheduled in the next pass.
  /// With speculation all that sample here, and the drafts they verify.
  struct Verified {
    SequenceRef sequence;
    std::int64_t drafts = 0;
  };
  std::vector<Verified> verified;
  bool empty() const { return shape.tokens() == 0; }
  /// Its end has no output: every sampled token follows one of the pass before.
  bool has_no_output() const {
    return sampled.empty() && finishing.empty() && pausing.empty() && verified.empty();
  }
  void clear() {
    shape = {};
    steady = 0;
    stores = -1;
    copying = Duration::zero();
    sampled.clear();
    finishing.clear();
    pausing.clear();
    verified.clear();
  }
};

/// What became of drafts, by vLLM's own counters: vllm:spec_decode_num_drafts (verifications with
/// drafts), _num_draft_tokens, _num_accepted_tokens and _num_accepted_tokens_per_pos.
struct SpeculationCounters {
  std::int64_t drafts = 0;
  std::int64_t draft_tokens = 0;
  std::int64_t accepted_tokens = 0;
  std::vector<std::int64_t> accepted_per_position;

  /// Adds those of an earlier process.
  void add(const SpeculationCounters& o) {
    drafts += o.drafts;
    draft_tokens += o.draft_tokens;
    accepted_tokens += o.accepted_tokens;
    accepted_per_position.resize(
        std::max(accepted_per_position.size(), o.accepted_per_position.size()));
    for (std::size_t i = 0; i < o.accepted_per_position.size(); ++i)
      accepted_per_position[i] += o.accepted_per_position[i];
  }
};

/// Counters of one engine core.
struct EngineCounters {
  std::int64_t passes = 0;
  std::int64_t walks = 0;  ///< Passes that visited every running sequence.
  std::int64_t preemptions = 0;
  std::int64_t prefix_query_tokens = 0;
  std::int64_t prefix_hit_tokens = 0;
  /// vLLM's: a prompt counts as a whole with its first token, an answer with every step.
  std::int64_t prompt_tokens = 0, generation_tokens = 0;
  std::int64_t max_running = 0;
  std::int64_t max_waiting = 0;

  /// Adds those of an earlier process.
  void add(const EngineCounters& o) {
    passes += o.passes;
    walks += o.walks;
    preemptions += o.preemptions;
    prefix_query_tokens += o.prefix_query_tokens;
    prefix_hit_tokens += o.prefix_hit_tokens;
    prompt_tokens += o.prompt_tokens;
    generation_tokens += o.generation_tokens;
    max_running = std::max(max_running, o.max_running);
    max_waiting = std::max(max_waiting, o.max_waiting);
  }
};

/// Everything that one engine core counts.
struct EngineTotals {
  EngineCounters counters;
  SpeculationCounters speculation;
  std::int64_t evictions = 0;

  void add(const EngineTotals& o) {
    counters.add(o.counters);
    speculation.add(o.speculation);
    evictions += o.evictions;
  }
};

}  // namespace routesim::sim
