// Where queueing theory has the answer, the simulation must find it.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "tests/closed_form/queue_model.h"
#include "workloads/groups/group_load.h"

namespace routesim::sim::testing {
namespace {

RunResult run(const RunPlan& plan, std::uint64_t seed = 1) {
  Diagnostics found;
  RunOptions options;
  options.seed = seed;
  options.check = true;
  Simulation simulation(plan, options, found);
  for (const Diagnostic& d : found.items()) ADD_FAILURE() << to_string(d);
  return simulation.run();
}

TEST(ClosedForm, MD1) {
  for (const double rho : {0.3, 0.6, 0.8}) {
    const RunPlan plan = md1_plan(rho, 400'000);
    const double wait = run(plan).summary.time_to_first_token.mean() - 0.010;
    EXPECT_NEAR(wait / (md1_ttft_s(rho) - 0.010), 1, 0.02) << "rho " << rho;
  }
}

// The tokeniser of the API server is a queue of the same kind: prompts of 8 tokens at 1 ms each,
// and an engine that is never busy for long.
TEST(ClosedForm, MD1AtTheTokeniser) {
  for (const double rho : {0.3, 0.6, 0.8}) {
    RunPlan plan = plan_with(64, 100);
    plan.pools.front().api_server.prompt_token = Duration::milliseconds(1);
    plan.make_load = [rho](std::uint64_t seed, Diagnostics&) {
      return std::make_unique<PoissonLoad>(400'000, rho / 0.008, 1, false, seed);
    };
    const double wait = run(plan).summary.time_to_first_token.mean() - 100e-6 - 0.008;
    EXPECT_NEAR(wait / (rho * 0.008 / (2 * (1 - rho))), 1, 0.02) << "rho " << rho;
  }
}

double erlang_c(int k, double load) {
  double term = 1, sum = 1;
  for (int i = 1; i < k; ++i) sum += term *= load / i;
  term *= load / k * k / (k - load);
  return term / (sum + term);
}

TEST(ClosedForm, MMk) {
  // k places in one batch, geometric answers of 100 steps of 100 us in the mean: exponential but
  // for the grain of a step. A request waits for the running step to end, half a step in the mean.
  for (const int k : {1, 4}) {
    const double rho = 0.6, service = 0.010;
    const double rate = rho * k / service;
    RunPlan plan = plan_with(k, 100);
    plan.make_load = [rate](std::uint64_t seed, Diagnostics&) {
      return std::make_unique<PoissonLoad>(600'000, rate, 100, true, seed);
    };
    const RunResult result = run(plan);
    const double wait = result.summary.time_to_first_token.mean() - 100e-6 - 50e-6;
    const double expected = erlang_c(k, rho * k) * service / (k * (1 - rho));
    EXPECT_NEAR(wait / expected, 1, 0.02) << "k " << k;
  }
}

TEST(ClosedForm, NoReuseHitsNothing) {
  RunPlan plan = plan_with(64, 1000, 3);
  plan.make_load = [](std::uint64_t seed, Diagnostics&) {
    return std::make_unique<PoissonLoad>(5000, 300, 4, true, seed);
  };
  const RunResult r = run(plan);
  EXPECT_EQ(r.summary.cached_tokens_total, 0);
  EXPECT_EQ(r.routing.prefix_hit_ratio(), 0);
}

RunPlan reuse_plan(std::int64_t requests, std::int64_t prompts, std::int64_t replicas) {
  RunPlan plan = plan_with(64, 1000, replicas);
  plan.make_load = [=](std::uint64_t seed, Diagnostics& d) {
    workloads::GroupLoadConfig c;
    c.requests = requests;
    c.rate = 500;
    c.groups = prompts;
    c.prompts_per_group = 1;
    c.prefix_len = workloads::Distribution::fixed(100);
    c.suffix_len = workloads::Distribution::fixed(61);
    c.output_len = workloads::Distribution::fixed(2);
    workloads::WorkloadOptions options;
    options.seed = seed;
    return workloads::make_load_generator(c, options, {}, d);
  };
  return plan;
}

TEST(ClosedForm, PerfectReuseMissesOnce) {
  // 161 tokens: ten full blocks of 16 can be hit, always but the first time.
  const RunResult r = run(reuse_plan(1000, 1, 1));
  EXPECT_EQ(r.summary.successes, 1000);
  EXPECT_EQ(r.summary.cached_tokens_total, 160 * 999);
}

TEST(ClosedForm, RandomRoutingMissesOncePerPromptAndServer) {
  // m prompts on k servers: n draws of m k pairs touch m k (1 - (1 - 1/(m k))^n) of them.
  const double m = 400, k = 8, n = 8000;
  RunPlan plan = reuse_plan(8000, 400, 8);
  plan.scenario.routing.balancer = BalancerKind::kRandom;
  double misses = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const RunResult r = run(plan, seed);
    misses += (n - static_cast<double>(r.summary.cached_tokens_total) / 160) / 5;
  }
  const double pairs = m * k;
  EXPECT_NEAR(misses / (pairs * (1 - std::pow(1 - 1 / pairs, n))), 1, 0.01);
}

}  // namespace
}  // namespace routesim::sim::testing
