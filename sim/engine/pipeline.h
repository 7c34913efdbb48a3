// The batches of an engine core whose pipeline stages overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "sim/engine/step_plan.h"

namespace routesim::sim {

/// vLLM's queue of batches (v1/engine/core.py: step_with_batch_queue) and the stages they go
/// through. The queue has as many places as there are stages (max_concurrent_batches, v0.11 to
/// v0.24). The engine fills it while there are requests, then waits for the oldest batch. A pass
/// that finds nothing to schedule makes an empty batch: it is through when those before it are, but
/// takes a place until then.
///
/// A batch enters a stage when it has left the stage before and the batch before it has left this
/// one. What a stage has computed waits for the next one without being in the way. Instants and
/// lengths are ticks.
class Pipeline {
 public:
  /// Not in use with one stage.
  explicit Pipeline(std::int64_t stages);

  bool in_use() const { return stages() > 1; }
  std::int64_t stages() const { return std::ssize(free_at_); }

  /// Another batch may be put in.
  bool has_room() const { return count_ < batches_.size(); }
  bool is_empty() const { return count_ == 0; }
  /// Some batch in the queue computes something.
  bool computes() const { return computing_ > 0; }
  bool oldest_computes() const { return !batches_[first_].plan.empty(); }

  /// Puts the batch of `plan` behind the others and leaves another plan's memory in its place. Its
  /// step takes `step`, of which the last stage alone `last_stage` (at most `step`); the rest is
  /// spread evenly. At most kLongestStepTicks / stages().
  void add(StepPlan& plan, std::int64_t now, std::int64_t step, std::int64_t last_stage);
  /// The oldest batch is empty: takes it out.
  void drop_oldest();
  /// Takes the oldest batch out of the queue into `plan`: the engine waits for its end.
  void take_oldest(StepPlan& plan);
  /// Nothing is under way any more.
  void clear();

  /// The stay of a batch in one stage.
  struct Stay {
    std::int64_t enters = 0, leaves = 0;
  };
  /// The stays of the batch that the engine waits for.
  std::span<const Stay> awaited() const { return awaited_; }
  std::int64_t end() const { return awaited_.back().leaves; }
  /// Batches under way that have entered the first stage by `now`, the awaited one included.
  int begun(SimTime now) const;

  /// Throws InternalError where a sequence samples in two batches, one of them `awaited`.
  void verify(const StepPlan& awaited) const;

 private:
  struct Batch {
    StepPlan plan;
    std::vector<Stay> stays;
  };
  const Batch& at(std::size_t place) const { return batches_[(first_ + place) % batches_.size()]; }

  std::vector<std::int64_t> free_at_;  ///< Per stage: when its last batch leaves it.
  std::vector<Batch> batches_;         ///< A ring of `count_` from `first_` on, oldest first.
  std::size_t first_ = 0, count_ = 0, computing_ = 0;
  std::vector<Stay> awaited_;
};

}  // namespace routesim::sim
