// The prefixes and answers that an engine core stores in its tiers.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/step_plan.h"
#include "sim/kv/sequence_blocks.h"
#include "sim/tiers/kv_tiers.h"

namespace routesim::sim {

/// Decides when what an engine core has computed goes to its tiers: prompts in the pass that
/// computes them, answers when they end. Knows the finished requests whose blocks are kept until
/// they are copied. Costs nothing in passes that only decode.
class TierStores {
 public:
  /// All but the rules outlive this. `tiers` is null where there are none.
  TierStores(const TierRules& rules, SequenceTable& sequences, SequenceBlocks& blocks,
             KvTiers* tiers)
      : rules_(rules), sequences_(sequences), blocks_(blocks), tiers_(tiers) {}

  /// A sequence has `tokens` tokens computed with this pass.
  void note_computed(SequenceSlot s, std::int64_t tokens);
  /// The same for the decode set: prompts that found no room try again in every pass.
  void note_behind();
  /// Some found no room.
  bool any_behind() const { return !behind_.empty(); }
  /// Stores what this pass computes, in the order of the running list.
  void store_computed(StepPlan& plan);
  /// A sequence leaves the running list with `tokens` tokens computed.
  void store_answer(SequenceSlot s, std::int64_t tokens);

  /// The request is over. True if its blocks are kept until they are copied, which `may_keep`
  /// allows.
  bool end_request(SequenceSlot s, bool may_keep);
  /// Such requests since the last call; the caller clears it.
  std::vector<SequenceRef>& ended() { return ended_; }
  /// The workers know that one of them is over. True if nothing is left to copy.
  bool heard_of(SequenceRef ended);
  /// A copy of the tiers is done. Returns the requests whose blocks need not be kept any more:
  /// those that are over, and those of which nothing was loaded.
  const std::vector<SequenceSlot>& copy_done(std::uint32_t copy, SimTime now,
                                             std::vector<EngineOutput>& out);
  /// Finished requests whose blocks are kept.
  std::int64_t kept() const { return kept_; }
  void give_up_one() { --kept_; }

 private:
  struct Computed {
    SequenceSlot slot;
    std::int64_t tokens;
  };

  TierRules rules_;
  SequenceTable& sequences_;
  SequenceBlocks& blocks_;
  KvTiers* tiers_;                   ///< Null without.
  std::vector<Computed> computed_;   ///< Prefixes that this pass may store.
  std::vector<SequenceRef> behind_;  ///< Sequences whose last store found no room.
  std::vector<SequenceRef> ended_;
  std::int64_t kept_ = 0;
  std::vector<SequenceSlot> ready_;  ///< Scratch of copy_done().
};

}  // namespace routesim::sim
