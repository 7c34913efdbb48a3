#include "sim/engine/pipeline.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace routesim::sim {

Pipeline::Pipeline(std::int64_t stages) : free_at_(static_cast<std::size_t>(stages)) {
  if (!in_use()) return;
  batches_.resize(free_at_.size());
  for (Batch& b : batches_) b.stays.resize(free_at_.size());
  awaited_.resize(free_at_.size());
}

void Pipeline::add(StepPlan& plan, std::int64_t now, std::int64_t step, std::int64_t last_stage) {
  Batch& b = batches_[(first_ + count_) % batches_.size()];
  ++count_;
  std::swap(b.plan, plan);
  if (b.plan.empty()) return;
  ++computing_;
  const std::int64_t even = step - std::min(last_stage, step);
  std::int64_t at = now;
  for (std::int64_t s = 0; s < stages(); ++s) {
    std::int64_t share = even * (s + 1) / stages() - even * s / stages();
    if (s + 1 == stages()) share += step - even;
    std::int64_t& free_at = free_at_[static_cast<std::size_t>(s)];
    const std::int64_t enters = std::max(at, free_at);
    at = free_at = enters + share;
    b.stays[static_cast<std::size_t>(s)] = {.enters = enters, .leaves = at};
  }
}

void Pipeline::drop_oldest() {
  ROUTESIM_DCHECK(!is_empty() && !oldest_computes(), "only empty batches are dropped");
  first_ = (first_ + 1) % batches_.size();
  --count_;
}

void Pipeline::take_oldest(StepPlan& plan) {
  ROUTESIM_DCHECK(!is_empty() && oldest_computes(), "nobody waits for an empty batch");
  Batch& b = batches_[first_];
  std::swap(b.plan, plan);
  std::swap(b.stays, awaited_);
  b.plan.clear();
  first_ = (first_ + 1) % batches_.size();
  --count_;
  --computing_;
}

void Pipeline::clear() {
  for (Batch& b : batches_) b.plan.clear();
  std::fill(free_at_.begin(), free_at_.end(), 0);
  first_ = count_ = computing_ = 0;
}

int Pipeline::begun(SimTime now) const {
  int n = 1;
  for (std::size_t i = 0; i < count_; ++i)
    n += !at(i).plan.empty() && at(i).stays.front().enters / models::kTicksPerNanosecond <= now.ns()
             ? 1
             : 0;
  return n;
}

void Pipeline::verify(const StepPlan& awaited) const {
  std::vector<std::pair<SequenceSlot, std::uint32_t>> sampling;
  const auto add_all = [&](const StepPlan& plan) {
    for (const StepPlan::Verified& v : plan.verified)
      sampling.emplace_back(v.sequence.slot, v.sequence.stamp);
  };
  add_all(awaited);
  for (std::size_t i = 0; i < count_; ++i) add_all(at(i).plan);
  std::sort(sampling.begin(), sampling.end());
  ROUTESIM_CHECK(std::adjacent_find(sampling.begin(), sampling.end()) == sampling.end(),
                 "a sequence samples in two batches of a pipeline");
}

}  // namespace routesim::sim
