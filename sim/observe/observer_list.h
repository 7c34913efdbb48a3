// The observers of a run.
#pragma once

#include <memory>
#include <vector>

#include "base/units.h"
#include "sim/engine/replica.h"
#include "sim/observe/observer.h"

namespace routesim::sim {

class InvariantChecker;

/// Passes on the servers' steps to the observers that want them, and calls the observers at their
/// ticks. Ticks are no events: they neither keep a run alive nor change the order of anything.
class ObserverList {
 public:
  /// `check`: adds an InvariantChecker. The observers outlive the list.
  ObserverList(std::vector<Observer*> observers, bool check);
  ~ObserverList();

  auto begin() const { return observers_.begin(); }
  auto end() const { return observers_.end(); }
  /// Before the first event.
  void start(const RunView& view);
  /// The earliest tick.
  SimTime next_tick() const { return next_tick_; }
  /// Calls every tick up to `until`, with the servers advanced to it.
  void tick(SimTime until, const std::vector<std::unique_ptr<Replica>>& replicas);

 private:
  class StepRelay;
  void find_next_tick();

  std::unique_ptr<InvariantChecker> checker_;
  std::vector<Observer*> observers_;
  std::unique_ptr<StepRelay> step_relay_;
  SimTime next_tick_ = SimTime::max();
};

}  // namespace routesim::sim
