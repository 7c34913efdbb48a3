// A scheduler that tests step by hand.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/sim/sim_fixture.h"

namespace routesim::sim::testing {

/// A scheduler stepped by hand, without a clock.
class SchedulerBench {
 public:
  explicit SchedulerBench(const EngineRules& rules, bool reference = false)
      : shelf_(rules.block_size), scheduler(rules, reference) {}

  std::uint32_t send(const TestRequest& t) {
    const EngineRequest r = shelf_.add(t);
    scheduler.enqueue(r, SimTime::zero(), out);
    return r.handle;
  }
  /// One synchronous step; returns what was scheduled.
  models::BatchShape step() {
    StepPlan plan;
    scheduler.schedule(plan, nullptr, SimTime::zero(), out);
    const models::BatchShape shape = plan.shape;
    scheduler.verify();
    scheduler.process(plan, SimTime::zero(), out);
    scheduler.verify();
    return shape;
  }
  /// The end of a request; null while it goes on.
  const EngineOutput* finished(std::uint32_t handle) const {
    for (const EngineOutput& o : out)
      if (o.kind == EngineOutputKind::kFinished && o.handle == handle) return &o;
    return nullptr;
  }
  std::int64_t cached_of(std::uint32_t handle) const {
    const EngineOutput* const end = finished(handle);
    return end != nullptr ? end->cached_tokens : -1;
  }
  std::int64_t preemptions_of(std::uint32_t handle) const {
    const EngineOutput* const end = finished(handle);
    return end != nullptr ? end->value : -1;
  }
  std::vector<std::uint32_t> finish_order() const {
    std::vector<std::uint32_t> order;
    for (const EngineOutput& o : out)
      if (o.kind == EngineOutputKind::kFinished) order.push_back(o.handle);
    return order;
  }

 private:
  RequestShelf shelf_;

 public:
  BatchScheduler scheduler;
  std::vector<EngineOutput> out;
};

}  // namespace routesim::sim::testing
