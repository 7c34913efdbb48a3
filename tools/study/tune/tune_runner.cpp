#include "tools/study/tune/tune_runner.h"

#include <algorithm>
#include <limits>

namespace routesim::tools {

namespace {

/// One run of one configuration.
struct SeedRun {
  const SeedRuns* of = nullptr;
  std::uint64_t seed = 0;
  std::vector<double> values = {};
  double work = 0;
};

void run_one(const TuneSpace& space, SeedRun& run, Experiment& experiment, Diagnostics& found) {
  const sim::RunPlan& plan = *run.of->plan;
  run.values.assign(space.metrics.size(), std::numeric_limits<double>::quiet_NaN());
  try {
    const auto result =
        experiment.run({.plan = plan, .seed = run.seed, .goals = goals_of(plan.scenario)}, found);
    if (!result) return;
    for (const sim::ReplicaResult& replica : result->replicas)
      run.work += static_cast<double>(replica.prefix_query_tokens + 1000 * replica.requests);
    for (std::size_t m = 0; m < space.metrics.size(); ++m)
      if (const auto value = metric_value(result->summary, space.metrics[m]))
        run.values[m] = *value;
  } catch (const sim::StuckError&) {
    // Its values stay absent, so the candidate leaves the race.
    ++experiment.progress().runs;
  } catch (const sim::NoServerError&) {
    ++experiment.progress().runs;
  }
}

}  // namespace

double run_candidates(const TuneSpace& space, std::span<const SeedRuns> candidates,
                      Experiment& experiment) {
  std::vector<SeedRun> runs;
  for (const SeedRuns& candidate : candidates)
    for (const std::uint64_t seed : candidate.seeds)
      runs.push_back({.of = &candidate, .seed = seed});
  experiment.each(runs.size(), [&](std::size_t i, Diagnostics& found) {
    run_one(space, runs[i], experiment, found);
  });
  double work = 0;
  for (const SeedRun& run : runs) {
    run.of->values->resize(space.metrics.size());
    for (std::size_t m = 0; m < space.metrics.size(); ++m)
      (*run.of->values)[m].push_back(run.values[m]);
    work += run.work;
  }
  return work;
}

std::string problem_of(const Diagnostics& found) {
  const auto is_error = [](const Diagnostic& d) { return d.severity == Severity::kError; };
  const auto first = std::ranges::find_if(found.items(), is_error);
  return first == found.items().end() ? std::string() : first->path + " " + first->message;
}

}  // namespace routesim::tools
