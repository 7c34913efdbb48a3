// Whole simulations by hand: requests at given instants, servers with round step times.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/simulation.h"
#include "tests/sim/endpoint_picker_fixture.h"
#include "tests/sim/sim_fixture.h"

namespace routesim::sim::testing {

/// One request of a script.
struct Sent {
  std::int64_t at_ms = 0;
  std::vector<std::pair<std::uint64_t, std::int64_t>> parts = {{1, 16}};  ///< Content and length.
  std::int64_t output = 1;
  std::int64_t timeout_ms = 0;  ///< 0 = none.
  std::uint64_t session = 0;
  std::uint32_t adapter = 0;
  std::uint32_t traffic_class = 0;
};

/// Sends a list of requests, in order, and ends when all have ended.
class ScriptedLoad final : public workloads::LoadGenerator {
 public:
  explicit ScriptedLoad(std::vector<Sent> script) : script_(std::move(script)) {}

  const std::vector<workloads::StageInfo>& stages() const override { return stages_; }
  SimTime next_action() const override {
    return next_ < script_.size() ? at_ms(script_[next_].at_ms) : SimTime::max();
  }
  void advance(SimTime now, std::vector<workloads::Request>& out) override {
    for (; next_ < script_.size() && at_ms(script_[next_].at_ms) <= now; ++next_) {
      const Sent& s = script_[next_];
      workloads::Request r;
      r.id = RequestId(next_);
      r.stage = StageId(0);
      r.due = now;
      r.prompt = make_prompt(next_, s.parts, s.adapter);
      r.output_tokens = r.max_tokens = s.output;
      r.output_content = 1'000'000 + next_;
      r.session = s.session;
      r.traffic_class = s.traffic_class;
      if (s.timeout_ms > 0) r.timeout = Duration::milliseconds(s.timeout_ms);
      out.push_back(r);
    }
  }
  void on_completed(const workloads::Request&, workloads::Outcome, SimTime) override { ++done_; }
  bool finished() const override { return done_ == script_.size(); }

 private:
  std::vector<workloads::StageInfo> stages_ = {{.name = "0"}};
  std::vector<Sent> script_;
  std::size_t next_ = 0, done_ = 0;
};

/// `servers` with steps of `step_ms`, no overheads; the router sees everything 1 ms old.
inline RunPlan hand_made_plan(std::vector<Sent> script, std::int64_t servers,
                              std::int64_t step_ms = 10) {
  RunPlan plan;
  plan.scenario.name = "by hand";
  plan.scenario.routing.balancer = BalancerKind::kEndpointPicker;
  plan.scenario.routing.scrape_interval = Duration::milliseconds(1);
  plan.scenario.routing.kv_event_delay = Duration::zero();
  ResolvedPool& pool = plan.pools.emplace_back();
  pool.config.name = "pool";
  pool.config.model = "test-model";
  pool.config.replicas = servers;
  pool.rules = plain_rules();
  pool.latency = std::make_shared<FixedLatency>(step_ms);
  pool.kv_bytes_per_token = 1000;
  plan.make_load = [script = std::move(script)](std::uint64_t, Diagnostics&) {
    return std::make_unique<ScriptedLoad>(script);
  };
  return plan;
}

/// A thousand chunks of host memory, each of a megabyte, 1 ms from the GPUs.
inline TierRules host_memory() {
  return {.cpu_chunks = 1000, .block_bytes = 1e6, .link_bytes_per_s = 1e9, .prompt_only = true};
}

/// Two servers and a router that sends requests to either and names the one that has more.
inline RunPlan two_hosts(std::vector<Sent> script) {
  RunPlan plan = hand_made_plan(std::move(script), 2);
  plan.scenario.cluster.transfer.bandwidth_gbps = 8;
  plan.scenario.cluster.host = HostConfig{};
  plan.endpoint_picker = pulling_config(16, 1);
  ResolvedPool& pool = plan.pools.front();
  pool.config.engine.preset = EnginePreset::k2026H2;
  pool.config.engine.kv_tiers = KvTierConfig{};
  pool.rules.tiers = host_memory();
  return plan;
}

/// Runs fast and slow, with every invariant watched; the records come in the order of sending.
inline RunResult run_by_hand(const RunPlan& plan, std::uint64_t seed = 1) {
  RunResult results[2];
  for (const bool reference : {true, false}) {
    Diagnostics found;
    Simulation simulation(plan,
                          {.seed = seed,
                           .reference = reference,
                           .keep_requests = true,
                           .check = true,
                           .observers = {}},
                          found);
    for (const Diagnostic& d : found.items()) ADD_FAILURE() << to_string(d);
    results[reference ? 1 : 0] = simulation.run();
  }
  EXPECT_EQ(results[0].fingerprint, results[1].fingerprint) << "fast and slow differ";
  auto& records = results[0].requests;
  std::sort(records.begin(), records.end(),
            [](const RequestRecord& a, const RequestRecord& b) { return a.id < b.id; });
  return std::move(results[0]);
}

}  // namespace routesim::sim::testing
