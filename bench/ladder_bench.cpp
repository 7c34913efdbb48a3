// The main job: the whole H100 ladder, routed by the real policies code, on one core.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "sim/simulation.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/scenario/scenario_yaml.h"

namespace routesim {
namespace {

std::optional<sim::RunPlan> ladder(const std::string& variant) {
  Diagnostics diagnostics;
  const tools::LoadedScenario loaded = tools::load_scenario(
      {.path = std::string(ROUTESIM_SOURCE_DIR) + "/scenarios/llm-d-qwen3-32b-16xh100.yaml",
       .sets = {},
       .variants = {variant},
       .seed = std::nullopt},
      diagnostics);
  if (diagnostics.has_errors() || loaded.variants.empty()) return std::nullopt;
  return tools::prepare(loaded.variants.front(), diagnostics);
}

void run_ladder(benchmark::State& state, const std::string& variant, bool reference) {
  const std::optional<sim::RunPlan> plan = ladder(variant);
  if (!plan) {
    state.SkipWithError("the ladder scenario cannot be prepared");
    return;
  }
  std::int64_t requests = 0;
  std::uint64_t fingerprint = 0;
  for (auto _ : state) {
    Diagnostics diagnostics;
    sim::RunOptions options;
    options.reference = reference;
    sim::Simulation simulation(*plan, options, diagnostics);
    const sim::RunResult result = simulation.run();
    if (result.summary.failures != 0 || result.summary.successes != 16'334)
      state.SkipWithError("the ladder has 16,334 reported requests and none fails");
    if (fingerprint != 0 && fingerprint != result.fingerprint)
      state.SkipWithError("two runs of one seed differ");
    fingerprint = result.fingerprint;
    for (const sim::StageResult& stage : result.stages) requests += stage.requests;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["requests/s"] =
      benchmark::Counter(static_cast<double>(requests), benchmark::Counter::kIsRate);
  state.counters["peak_MB"] = static_cast<double>(usage.ru_maxrss) / 1024;
}

void precise(benchmark::State& state) { run_ladder(state, "llm-d-precise", false); }
void service(benchmark::State& state) { run_ladder(state, "k8s-service", false); }
void precise_step_by_step(benchmark::State& state) { run_ladder(state, "llm-d-precise", true); }
BENCHMARK(precise)->Unit(benchmark::kMillisecond);
BENCHMARK(service)->Unit(benchmark::kMillisecond);
BENCHMARK(precise_step_by_step)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace routesim
