#include "tools/study/experiment/experiment.h"

#include <mutex>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/study/experiment/over_time.h"
#include "tools/study/experiment/threads.h"

namespace routesim::tools {

std::optional<sim::RunResult> simulate(const sim::RunPlan& plan, const sim::RunOptions& options,
                                       Diagnostics& found) {
  sim::Simulation simulation(plan, options, found);
  if (found.has_errors()) return std::nullopt;
  const auto named = [&](const InternalError& e) {
    return std::string(e.what()) + "\n  in variant " + printable(plan.scenario.variant) +
           " with seed " + std::to_string(options.seed);
  };
  try {
    return simulation.run();
  } catch (const sim::StuckError& e) {
    throw sim::StuckError(named(e));
  } catch (const InternalError& e) {
    throw InternalError(named(e));
  }
}

void check_setup(const sim::RunPlan& plan, Diagnostics& found) {
  const sim::Simulation set_up(plan, {.seed = plan.scenario.seed, .observers = {}}, found);
}

void Experiment::tell(const std::function<void()>& collect) {
  if (!progress_.awaited.exchange(false)) return;
  if (collect) collect();
  progress_.look();
}

void Experiment::throw_if_stopped() const {
  if (stopped() || diagnostics_.has_errors()) throw Stopped{};
}

void Experiment::each(std::size_t count,
                      const std::function<void(std::size_t, Diagnostics&)>& work) {
  std::atomic<std::size_t> first_bad{count};
  std::mutex mutex;
  Diagnostics lowest;  // Of `first_bad`.
  for_each_index(count, jobs_, [&](std::size_t i) {
    if (stopped() || i > first_bad) return;
    Diagnostics found;
    work(i, found);
    if (!found.has_errors()) return;
    const std::lock_guard lock(mutex);
    if (i > first_bad) return;
    first_bad = i;
    lowest = std::move(found);
  });
  append(diagnostics_, lowest);
  throw_if_stopped();
}

std::optional<sim::RunResult> Experiment::run(const RunRequest& request, Diagnostics& found) {
  const sim::WorkloadConfig& workload = request.plan.scenario.workload;
  GoodputObserver goodput(request.goals, workload.output_token_scale,
                          sim::client_sees_tokens(workload));
  std::vector<sim::Observer*> observers = request.observers;
  if (!request.goals.empty() || GoodputObserver::keeps_time(request.plan.scenario))
    observers.push_back(&goodput);
  std::optional<sim::RunResult> result = simulate(request.plan,
                                                  {.seed = request.seed,
                                                   .check = request.check,
                                                   .progress = &progress_.run,
                                                   .observers = std::move(observers)},
                                                  found);
  if (!result) return std::nullopt;
  ++progress_.runs;
  if (stopped() && !request.partial) return std::nullopt;
  if (goodput.over_time())
    complete_timeline(*goodput.over_time(), goodput.loads_over_time(), request.plan.scenario,
                      !request.goals.empty(), *result);
  if (request.goals.empty()) return result;
  goodput.complete(*result);
  if (request.good != nullptr) *request.good = goodput.result(*result);
  return result;
}

void Experiment::probe(const sim::RunPlan& plan, std::uint64_t seed, sim::Observer& observer,
                       sim::Progress& own, Diagnostics& found) {
  /// Passes a stop on at the observer's ticks.
  struct Stopper final : sim::Observer {
    Stopper(sim::Observer& watch, const std::atomic<bool>& from, std::atomic<bool>& to)
        : observer(watch), all(from), one(to) {}
    SimTime next_tick() const override { return observer.next_tick(); }
    void on_tick(SimTime) override {
      if (all.load(std::memory_order_relaxed)) one = true;
    }
    sim::Observer& observer;
    const std::atomic<bool>& all;
    std::atomic<bool>& one;
  };
  Stopper stopper(observer, progress_.run.stop, own.stop);
  simulate(plan, {.seed = seed, .progress = &own, .observers = {&stopper, &observer}}, found);
  ++progress_.runs;
  progress_.run.completed += own.completed;
}

}  // namespace routesim::tools
