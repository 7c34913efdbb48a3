#include "tools/study/tune/tune_runner.h"

#include <limits>

#include "base/tree_reader.h"
#include "tools/results/goodput.h"
#include "tools/study/parallel.h"

namespace routesim::tools {

void TuneRunner::run(std::span<TuneRun> runs) {
  sim::for_each_index(runs.size(), jobs_, [&](std::size_t i) {
    if (!progress_.run.stop) run_one(runs[i]);
  });
  if (progress_.run.stop || diagnostics_.has_errors()) throw TuneStopped{};
}

void TuneRunner::run_one(TuneRun& run) {
  const sim::Scenario& scenario = run.plan->scenario;
  GoodputObserver goodput(goals_of(scenario), scenario.workload.output_token_scale,
                          sim::client_sees_tokens(scenario.workload));
  run.values.assign(space_.metrics.size(), std::numeric_limits<double>::quiet_NaN());
  Diagnostics late;
  sim::Simulation simulation(
      *run.plan, {.seed = run.seed, .progress = &progress_.run, .observers = {&goodput}}, late);
  if (late.has_errors()) {
    const std::lock_guard lock(mutex_);
    if (!diagnostics_.has_errors()) append(diagnostics_, late);
    progress_.run.stop = true;
    return;
  }
  try {
    sim::RunResult result = simulation.run();
    if (progress_.run.stop) return;
    if (!goals_of(scenario).empty()) goodput.complete(result);
    for (const sim::ReplicaResult& replica : result.replicas)
      run.work += static_cast<double>(replica.prefix_query_tokens + 1000 * replica.requests);
    for (std::size_t m = 0; m < space_.metrics.size(); ++m)
      if (const auto value = metric_value(result.summary, space_.metrics[m]))
        run.values[m] = *value;
  } catch (const sim::StuckError&) {
    // Its values stay absent, so the candidate leaves the race.
  }
  ++progress_.runs;
}

}  // namespace routesim::tools
