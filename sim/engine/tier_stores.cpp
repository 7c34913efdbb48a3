#include "sim/engine/tier_stores.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace routesim::sim {

// Answers are stored when they end.
void TierStores::note_computed(SequenceSlot s, std::int64_t tokens) {
  if (tiers_ == nullptr) return;
  const std::int64_t prompt = sequences_[s].request.prompt_tokens;
  computed_.push_back({.slot = s, .tokens = std::min(tokens, prompt)});
}

void TierStores::note_behind() {
  for (const SequenceRef r : behind_) {
    const Sequence& q = sequences_[r.slot];
    if (sequences_.current(r) && q.state == SequenceState::kDecode)
      note_computed(r.slot, q.request.prompt_tokens);
  }
}

void TierStores::store_answer(SequenceSlot s, std::int64_t tokens) {
  if (tiers_ == nullptr) return;
  const std::int64_t blocks = blocks_.whole_count(tokens);
  tiers_->store_answer(s, blocks_.keys_of(sequences_[s], blocks), blocks);
}

void TierStores::store_computed(StepPlan& plan) {
  std::erase_if(behind_, [this](SequenceRef r) { return !sequences_.current(r); });
  if (computed_.empty()) return;
  std::sort(computed_.begin(), computed_.end(), [this](const Computed& a, const Computed& b) {
    return sequences_[a.slot].order < sequences_[b.slot].order;
  });
  SequenceSlot last = ~SequenceSlot{0};
  for (const Computed& c : computed_) {
    if (std::exchange(last, c.slot) == c.slot) continue;
    Sequence& q = sequences_[c.slot];
    const std::int64_t blocks = blocks_.whole_count(c.tokens);
    if (blocks / rules_.chunk_blocks <= q.tier.stored) continue;
    const std::int64_t known = std::max(blocks, blocks_.whole_count(q.target));
    const bool stored = tiers_->store(c.slot, blocks_.keys_of(q, known), blocks);
    std::erase_if(behind_, [&](SequenceRef r) { return r.slot == c.slot; });
    if (!stored) behind_.push_back(sequences_.ref(c.slot));
  }
  computed_.clear();
  plan.stores = tiers_->close_pass();
  plan.copying = tiers_->copy_time(plan.stores);
}

// Until v0.20 vLLM keeps the blocks of a request until all it has stored is copied, and looks at
// that only once the workers have heard that the request is over.
bool TierStores::end_request(SequenceSlot s, bool may_keep) {
  Sequence& q = sequences_[s];
  if (may_keep && rules_.keeps_blocks() && !q.tier.settles && q.tier.unfinished()) {
    q.state = SequenceState::kStoring;
    ++q.stamp;
    ++kept_;
    ended_.push_back(sequences_.ref(s));
    return true;
  }
  q.tier.settles = true;
  if (tiers_ != nullptr) tiers_->settle(q);
  return false;
}

bool TierStores::heard_of(SequenceRef ended) {
  Sequence& q = sequences_[ended.slot];
  ROUTESIM_CHECK(sequences_.current(ended) && q.state == SequenceState::kStoring,
                 "a request ended that keeps nothing for its copies");
  q.tier.settles = true;
  if (tiers_ != nullptr) tiers_->settle(q);
  return q.tier.storing == 0;
}

const std::vector<SequenceSlot>& TierStores::copy_done(std::uint32_t copy, SimTime now,
                                                       std::vector<EngineOutput>& out) {
  ready_.clear();
  tiers_->copy_done(copy, ready_);
  std::erase_if(ready_, [&](SequenceSlot s) {
    Sequence& q = sequences_[s];
    if (q.state != SequenceState::kLoading)
      return q.state != SequenceState::kStoring || !q.tier.settles || q.tier.storing > 0;
    const bool failed = q.tier.loading_tokens == 0;
    if (!failed) q.remote = RemoteKv::kArrived;
    const Duration wait = now - q.tier.load_begin;
    tiers_->counters().load_waits.add(wait);
    out.push_back({.kind = EngineOutputKind::kLoaded,
                   .handle = q.request.handle,
                   .value = wait.ns(),
                   .cached_tokens = std::exchange(q.tier.hit_tokens, 0),
                   .at = now});
    return !failed;
  });
  return ready_;
}

}  // namespace routesim::sim
