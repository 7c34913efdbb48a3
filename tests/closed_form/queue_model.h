// Servers and loads that queueing theory knows: Poisson arrivals, steps of a fixed length.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "sim/simulation.h"
#include "tests/sim/sim_fixture.h"

namespace routesim::sim::testing {

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

inline RunPlan plan_with(std::int64_t seqs, std::int64_t step_us, std::int64_t replicas = 1) {
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

/// One sequence at a time, one step of 10 ms each, `requests` of them at utilisation `rho`.
inline RunPlan md1_plan(double rho, std::int64_t requests) {
  RunPlan plan = plan_with(1, 10'000);
  plan.pools.front().rules.num_gpu_blocks = 101;  // Enough for one, and quick to set up.
  plan.make_load = [=](std::uint64_t seed, Diagnostics&) {
    return std::make_unique<PoissonLoad>(requests, rho * 100, 1, false, seed);
  };
  return plan;
}

/// Mean TTFT of md1_plan() in seconds: W = rho S / (2 (1 - rho)), and the service itself.
inline double md1_ttft_s(double rho) { return rho * 0.010 / (2 * (1 - rho)) + 0.010; }

}  // namespace routesim::sim::testing
