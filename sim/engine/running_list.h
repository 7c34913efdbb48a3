// The running sequences of one engine core.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"
#include "sim/kv/sequence.h"
#include "sim/rules/engine_config.h"

namespace routesim::sim {

/// Owns vLLM's running list, in order of admission, and the part of it that still computes prompts.
class RunningList {
 public:
  explicit RunningList(SequenceTable& sequences) : sequences_(sequences) {}
  RunningList(const RunningList&) = delete;
  RunningList& operator=(const RunningList&) = delete;

  const std::vector<SequenceSlot>& all() const { return running_; }
  const std::vector<SequenceSlot>& prefilling() const { return prefilling_; }
  bool empty() const { return running_.empty(); }
  std::int64_t size() const { return static_cast<std::int64_t>(running_.size()); }

  /// Adds an admitted sequence, which computes its prompt first.
  void add(SequenceSlot s) {
    sequences_[s].order = ++last_order_;
    running_.push_back(s);
    prefilling_.push_back(s);
  }
  /// Takes a sequence out of the list, which is sorted by order. O(log n) plus a move.
  void remove(SequenceSlot s) {
    const auto it = std::lower_bound(
        running_.begin(), running_.end(), sequences_[s].order,
        [this](SequenceSlot a, std::uint64_t order) { return sequences_[a].order < order; });
    ROUTESIM_DCHECK(it != running_.end() && *it == s, "sequence is not running");
    running_.erase(it);
  }
  void remove_at(std::size_t position) {
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(position));
  }
  void end_prefill(SequenceSlot s) {
    prefilling_.erase(std::find(prefilling_.begin(), prefilling_.end(), s));
  }

  /// The position of the sequence that vLLM preempts next.
  std::size_t victim(SchedulingPolicy policy) const {
    if (policy == SchedulingPolicy::kFcfs) return running_.size() - 1;
    std::size_t worst = 0;
    for (std::size_t i = 1; i < running_.size(); ++i) {
      const EngineRequest& a = sequences_[running_[worst]].request;
      const EngineRequest& b = sequences_[running_[i]].request;
      if (std::pair(a.priority, a.arrival_order) < std::pair(b.priority, b.arrival_order))
        worst = i;
    }
    return worst;
  }

  /// Some sequence became kPaused.
  void note_paused() { may_have_paused_ = true; }
  bool any_paused() {
    if (may_have_paused_) {
      may_have_paused_ = std::any_of(running_.begin(), running_.end(), [this](SequenceSlot s) {
        return sequences_[s].state == SequenceState::kPaused;
      });
    }
    return may_have_paused_;
  }

 private:
  std::vector<SequenceSlot> running_;
  std::vector<SequenceSlot> prefilling_;  ///< The kPrefill ones, in running order.
  std::uint64_t last_order_ = 0;
  bool may_have_paused_ = false;  ///< Some may be kPaused: the next question looks.
  SequenceTable& sequences_;
};

}  // namespace routesim::sim
