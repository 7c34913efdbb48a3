// Random small scenarios through the whole simulator.
#include "base/check.h"
#include "sim/simulation.h"
#include "tests/fuzz/targets.h"
#include "tests/sim/swarm.h"

namespace routesim::fuzz {

namespace {

sim::RunResult run(const sim::RunPlan& plan, std::uint64_t seed, bool reference) {
  Diagnostics diagnostics;
  sim::RunOptions options;
  options.seed = seed;
  options.reference = reference;
  options.check = true;
  sim::Simulation simulation(plan, options, diagnostics);
  ROUTESIM_CHECK(!diagnostics.has_errors(), "a swarm scenario is not legal");
  return simulation.run();
}

}  // namespace

void engine(Bytes input) {
  const sim::RunPlan plan = sim::testing::swarm_plan(input);
  const std::uint64_t seed = input.empty() ? 1 : input.back();
  const sim::RunResult fast = run(plan, seed, false);
  const sim::RunResult slow = run(plan, seed, true);
  ROUTESIM_CHECK(fast.fingerprint == slow.fingerprint, "leaping and walking differ");
  ROUTESIM_CHECK(fast.end == slow.end, "leaping and walking end at different times");
}

}  // namespace routesim::fuzz
