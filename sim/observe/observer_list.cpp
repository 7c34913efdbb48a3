#include "sim/observe/observer_list.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "sim/observe/invariant_checker.h"

namespace routesim::sim {

/// Passes the servers' steps on to the observers that want them.
class ObserverList::StepRelay final : public StepListener {
 public:
  StepRelay(const std::vector<std::unique_ptr<Replica>>& replicas,
            const std::vector<Observer*>& observers) {
    for (std::uint32_t i = 0; i < replicas.size(); ++i) number_.emplace(replicas[i].get(), i);
    for (Observer* o : observers)
      if (o->wants_steps()) observers_.push_back(o);
  }
  bool needed() const { return !observers_.empty(); }
  void on_step(const Replica& replica, StepPlace place, const models::BatchShape& shape,
               SimTime begin, SimTime end) override {
    const StepSpan span{.replica = number_.at(&replica),
                        .rank = place.rank,
                        .stage = place.stage,
                        .begin = begin,
                        .end = end,
                        .steps = 1,
                        .shape = shape};
    for (Observer* o : observers_) o->on_step(span);
  }

 private:
  std::unordered_map<const Replica*, std::uint32_t> number_;
  std::vector<Observer*> observers_;
};

ObserverList::ObserverList(std::vector<Observer*> observers, bool check)
    : observers_(std::move(observers)) {
  if (!check) return;
  checker_ = std::make_unique<InvariantChecker>();
  observers_.push_back(checker_.get());
}

ObserverList::~ObserverList() = default;

void ObserverList::start(const RunView& view) {
  for (Observer* o : observers_) o->on_start(view);
  step_relay_ = std::make_unique<StepRelay>(view.replicas, observers_);
  if (step_relay_->needed())
    for (const std::unique_ptr<Replica>& replica : view.replicas)
      replica->report_steps_to(step_relay_.get());
  find_next_tick();
}

void ObserverList::find_next_tick() {
  next_tick_ = SimTime::max();
  for (const Observer* o : observers_) next_tick_ = std::min(next_tick_, o->next_tick());
}

void ObserverList::tick(SimTime until, const std::vector<std::unique_ptr<Replica>>& replicas) {
  while (next_tick_ <= until) {
    const SimTime now = next_tick_;
    for (const std::unique_ptr<Replica>& replica : replicas) replica->advance_to(now);
    for (Observer* o : observers_)
      if (o->next_tick() == now) o->on_tick(now);
    find_next_tick();
    ROUTESIM_CHECK(next_tick_ > now, "an observer's ticks must grow");
  }
}

}  // namespace routesim::sim
