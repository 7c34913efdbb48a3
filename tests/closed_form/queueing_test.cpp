// Where queueing theory has the answer, the simulation must find it.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "sim/base/rng.h"
#include "sim/simulation.h"
#include "tests/sim/sim_fixture.h"
#include "workloads/group_load.h"

namespace routesim::sim::testing {
namespace {

/// Poisson arrivals of one-block prompts; answers are fixed or geometric.
class PoissonLoad final : public workloads::LoadGenerator {
 public:
  PoissonLoad(std::int64_t requests, double rate, double mean_output, bool geometric,
              std::uint64_t seed)
      : left_(requests),
        rate_(rate),
        mean_output_(mean_output),
        geometric_(geometric),
        arrivals_(seed, Stream::kArrivals),
        lengths_(seed, Stream::kLengths) {
    infos_.push_back({.name = "0", .requests = requests});
    draw();
  }
  const std::vector<workloads::StageInfo>& stages() const override { return infos_; }
  SimTime next_action() const override { return left_ > 0 ? next_ : SimTime::max(); }
  void advance(SimTime now, std::vector<workloads::Request>& out) override {
    while (left_ > 0 && next_ <= now) {
      workloads::Request r;
      r.id = RequestId(id_);
      r.prompt = make_prompt(id_, {{1000 + id_, 8}});
      ++id_;
      r.output_tokens = static_cast<std::int64_t>(mean_output_);
      if (geometric_)
        r.output_tokens = 1 + static_cast<std::int64_t>(std::log(lengths_.uniform_open()) /
                                                        std::log(1 - 1 / mean_output_));
      r.max_tokens = r.output_tokens;
      r.due = next_;
      r.stage = StageId(0);
      ++open_;
      out.push_back(std::move(r));
      if (--left_ > 0) draw();
    }
  }
  void on_completed(const workloads::Request&, workloads::Outcome, SimTime) override { --open_; }
  bool finished() const override { return left_ == 0 && open_ == 0; }

 private:
  void draw() { next_ += Duration::from_seconds(arrivals_.exponential(1 / rate_)); }
  std::int64_t left_, open_ = 0;
  double rate_, mean_output_;
  bool geometric_;
  RandomStream arrivals_, lengths_;
  SimTime next_;
  std::uint32_t id_ = 0;
  std::vector<workloads::StageInfo> infos_;
};

class FixedMicroseconds final : public models::LatencyModel {
 public:
  explicit FixedMicroseconds(std::int64_t us) : ticks_(us * 1000 * models::kTicksPerNanosecond) {}
  std::int64_t step_ticks(const models::BatchShape&) const override { return ticks_; }
  models::DecodeRun decode_run(const models::BatchShape&) const override {
    return {ticks_, 0, 1 << 20};
  }
  models::Trust trust(const models::BatchShape&) const override { return models::Trust::kFitted; }
  std::string provenance() const override { return "fixed"; }

 private:
  std::int64_t ticks_;
};

RunPlan plan_with(std::int64_t seqs, std::int64_t step_us, std::int64_t replicas = 1) {
  RunPlan plan;
  ResolvedPool pool;
  pool.config.model = "m";
  pool.config.name = "pool";
  pool.config.replicas = replicas;
  pool.rules = plain_rules(200'001);
  pool.rules.max_num_seqs = seqs;
  pool.latency = std::make_shared<FixedMicroseconds>(step_us);
  plan.pools.push_back(pool);
  plan.scenario.routing.balancer = BalancerKind::kRoundRobin;
  return plan;
}

RunResult run(const RunPlan& plan, std::uint64_t seed = 1) {
  Diagnostics found;
  RunOptions options;
  options.seed = seed;
  Simulation simulation(plan, options, found);
  for (const Diagnostic& d : found.items()) ADD_FAILURE() << to_string(d);
  return simulation.run();
}

TEST(ClosedForm, MD1) {
  // One sequence at a time, one step of 10 ms each: W = rho S / (2 (1 - rho)).
  for (const double rho : {0.3, 0.6, 0.8}) {
    RunPlan plan = plan_with(1, 10'000);
    plan.make_load = [rho](std::uint64_t seed, Diagnostics&) {
      return std::make_unique<PoissonLoad>(400'000, rho * 100, 1, false, seed);
    };
    const double wait = run(plan).summary.time_to_first_token.mean() - 0.010;
    EXPECT_NEAR(wait / (rho * 0.010 / (2 * (1 - rho))), 1, 0.02) << "rho " << rho;
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
    return workloads::make_load_generator(c, options, d);
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
