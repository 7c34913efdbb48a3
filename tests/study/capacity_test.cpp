// The rate that servers sustain, beside closed forms and beside runs ten times as long.
#include "tools/study/capacity/capacity.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "base/rng.h"
#include "tests/closed_form/queue_model.h"
#include "tests/tools/scenario_fixture.h"
#include "tools/study/experiment/experiment.h"

namespace routesim::tools {
namespace {

using sim::testing::plan_with;

TEST(WarmUpEnd, IsWhereTheRestVariesLeast) {
  std::vector<double> series(100, 5.0);
  for (std::size_t i = 0; i < 20; ++i) series[i] = 0;
  EXPECT_EQ(warm_up_end(series), 20U);
  EXPECT_EQ(warm_up_end(std::vector<double>(40, 1.0)), 0U) << "nothing to leave out";
  // A ramp to the end has its end in no first half.
  for (std::size_t i = 0; i < 100; ++i) series[i] = static_cast<double>(i);
  EXPECT_EQ(warm_up_end(series), 50U);
}

TEST(SteadyWindow, CountsWhatEachBinHolds) {
  // 40 bins of half a second: 10 requests sent and 9 answered in each, half of their tokens cached.
  std::vector<LoadBin> bins(40);
  for (std::size_t i = 0; i < bins.size(); ++i)
    bins[i] = {.sent = 10,
               .answered = 9,
               .in_flight = static_cast<std::int64_t>(i + 1),
               .queued = static_cast<std::int64_t>(i + 1),
               .prompt_tokens = 200,
               .cached_tokens = 100};
  const SteadyWindow w = steady_window(bins, 0.5);
  EXPECT_EQ(w.first, 0U);
  EXPECT_TRUE(w.is_settled);
  EXPECT_DOUBLE_EQ(w.sent_per_s, 20);
  EXPECT_DOUBLE_EQ(w.answered_per_s, 18);
  EXPECT_DOUBLE_EQ(w.answered_error, 0);
  EXPECT_DOUBLE_EQ(w.growth, 0.1) << "one request in ten stays";
  EXPECT_NEAR(w.growth_error, 0, 1e-12) << "evenly";
  EXPECT_DOUBLE_EQ(w.queue_growth, 0.1) << "and waits";
  EXPECT_NEAR(w.queue_growth_error, 0, 1e-12);
  EXPECT_DOUBLE_EQ(w.hit_drift, 0);
  bins[39].turned_away = 4;
  EXPECT_DOUBLE_EQ(steady_window(bins, 0.5).turned_away, 0.01);
  for (LoadBin& bin : bins) bin.queued = 0;
  EXPECT_EQ(steady_window(bins, 0.5).first, 20U) << "servers fill; the latest half tells most";
}

class CapacityTest : public testing::ScenarioTest {
 protected:
  sim::RunPlan prepared(const std::string& text) const {
    Diagnostics found;
    const auto plan = prepare_candidate(
        {.path = write("s.yaml", text), .sets = {}, .variants = {}, .seed = {}}, found);
    EXPECT_FALSE(found.has_errors()) << (found.items().empty() ? "" : to_string(found.items()[0]));
    return plan.value();
  }

  /// Servers of known step times under Poisson arrivals of short prompts.
  sim::RunPlan queue(std::int64_t seqs, std::int64_t step_us, std::int64_t replicas,
                     const std::string& output_len) const {
    sim::RunPlan plan = plan_with(seqs, step_us, replicas);
    plan.make_load = prepared(
                         "name: s\nworkload: {groups: {prefix_len: 4, suffix_len: 4, "
                         "output_len: " +
                         output_len +
                         "}}\ncluster:\n  pools:\n  - {name: a, accelerator: H100-SXM, model: "
                         "Qwen3-32B, tensor_parallel: 2}\n")
                         .make_load;
    return plan;
  }

  static Capacity capacity(const sim::RunPlan& plan, double guess) {
    ExperimentProgress progress;
    Diagnostics found;
    Experiment experiment(1, progress, found);
    Capacity out = find_capacity(plan, {.guess = guess}, experiment, found);
    EXPECT_FALSE(found.has_errors());
    EXPECT_EQ(out.why_not, "");
    std::cout << "rate " << out.rate.value_or(0) << " [" << out.low.value_or(0) << ", "
              << out.high.value_or(INFINITY) << "] by " << out.limit << ", " << out.requests
              << " requests\n";
    return out;
  }
};

// One step of 10 ms answers one request: 100 requests/s, whatever the guess.
TEST_F(CapacityTest, OfOneSeatIsOneOverItsService) {
  for (const double guess : {100.0, 3.0, 900.0}) {
    const Capacity found = capacity(queue(1, 10'000, 1, "1"), guess);
    EXPECT_NEAR(found.rate.value_or(0), 97.5, 2.5) << "one that holds, at most 5 % below";
    EXPECT_LE(found.low.value_or(INFINITY), 100);
    EXPECT_GE(found.high.value_or(0), 99.99);
    EXPECT_EQ(found.limit, "max_num_seqs");
  }
}

// A batch of 4 seats takes 8 steps of 10 ms for a request: 4 / 0.08 s on each of 3 servers.
TEST_F(CapacityTest, OfSeatsIsSeatsOverTheirService) {
  const Capacity found = capacity(queue(4, 10'000, 3, "8"), 100);
  EXPECT_NEAR(found.rate.value_or(0), 150 * 0.975, 150 * 0.03);
}

// Answers of 1 to 15 steps. A draw is 1 + 15 u, rounded and cut at 15, so that 1 has half a share,
// 15 one and a half, and the mean is 127 / 15 steps.
TEST_F(CapacityTest, OfRandomAnswersIsThatOfTheirMean) {
  const Capacity found = capacity(queue(4, 10'000, 3, "{type: uniform, min: 1, max: 15}"), 40);
  EXPECT_NEAR(found.rate.value_or(0), 0.975 * 12 / (0.010 * 127 / 15), 0.03 * 142);
}

// The same servers, short of one thing each.
TEST_F(CapacityTest, SaysWhatLimitsIt) {
  const auto limit = [&](const std::string& load, const std::string& engine,
                         const std::string& routing) {
    const sim::RunPlan plan = prepared(
        "name: s\nworkload: {" + load + "}\ncluster:\n  pools:\n  - {name: a, replicas: 2, " +
        "accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2, engine: {" + engine +
        "}}\nrouting: {balancer: round-robin" + routing + "}\n");
    return capacity(plan, 4).limit;
  };
  const std::string chat = "groups: {prefix_len: 64, suffix_len: 64, output_len: 200}";
  EXPECT_EQ(limit("groups: {prefix_len: 0, suffix_len: 8000, output_len: 1}", "", ""),
            "prefill compute");
  EXPECT_EQ(limit(chat, "max_num_seqs: 4", ""), "max_num_seqs");
  EXPECT_EQ(limit(chat, "num_gpu_blocks: 200", ""), "KV blocks");
  EXPECT_EQ(limit(chat, "", ", service_time: 500ms"), "router");
  EXPECT_EQ(limit(chat, "", ", service_time: 50ms"), "router") << "most requests are in servers";
  // Servers with eight requests at most have no queue of their own.
  EXPECT_EQ(limit(chat, "",
                  "}\nvariants:\n- name: held\n  routing: {balancer: endpoint-picker, "
                  "endpoint_picker: {apiVersion: llm-d.ai/v1alpha1, kind: EndpointPickerConfig, "
                  "featureGates: [flowControl], flowControl: {saturationDetector: {pluginRef: "
                  "concurrency-detector}}, plugins: [{type: queue-scorer}, {type: "
                  "max-score-picker}, {type: concurrency-detector, parameters: {maxConcurrency: "
                  "8}}], schedulingProfiles: [{name: default, plugins: [{pluginRef: "
                  "queue-scorer}, {pluginRef: max-score-picker}]}]}"),
            "flow control");
  EXPECT_EQ(limit(chat, "",
                  "}\nvariants:\n- name: ray\n  routing: {balancer: ray-power-of-two, "
                  "ray: {max_ongoing_requests: 8}"),
            "requests that its balancer holds back");
  EXPECT_EQ(limit(chat, "",
                  ", gateway: {protocol: http1, max_connections: 8, max_pending_requests: 100000}"),
            "gateway");
  EXPECT_EQ(limit("vllm_bench: {dataset_name: random, request_rate: 5, max_concurrency: 2, "
                  "random: {input_len: 64, output_len: 200}}",
                  "", ""),
            "client");
}

TEST_F(CapacityTest, OfAClosedLoopIsNone) {
  const sim::RunPlan plan = prepared(
      "name: s\nworkload: {conversations: {threads: 5, virtual_users: 2}}\ncluster:\n  pools:\n"
      "  - {name: a, accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2}\n");
  ExperimentProgress progress;
  Diagnostics found;
  Experiment experiment(1, progress, found);
  const Capacity none = find_capacity(plan, {}, experiment, found);
  EXPECT_FALSE(none.rate);
  EXPECT_NE(none.why_not.find("closed loop"), std::string::npos);
}

/// A random small fleet and load, as a scenario.
std::string random_scenario(RandomStream& random) {
  const auto one_of = [&](std::initializer_list<const char*> list) {
    return std::string(list.begin()[random.below(list.size())]);
  };
  const auto number = [&](std::int64_t low, std::int64_t high) {
    return std::to_string(
        low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low + 1))));
  };
  const std::string pool =
      one_of({"accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2",
              "accelerator: A10G, model: Qwen2.5-7B", "accelerator: L4, model: Llama-3.1-8B"});
  return "name: s\nworkload: {groups: {groups: " + number(1, 200) +
         ", zipf_exponent: " + one_of({"0", "0.8", "1.2"}) + ", prefix_len: " + number(0, 3000) +
         ", suffix_len: " + number(16, 1500) +
         ", output_len: {type: uniform, min: 1, max: " + number(2, 400) +
         "}}}\ncluster:\n  pools:\n  - {name: a, replicas: " + number(1, 4) + ", " + pool +
         ", engine: {max_num_seqs: " + one_of({"8", "32", "128", "256"}) +
         ", max_num_batched_tokens: " + one_of({"2048", "8192"}) +
         "}}\nrouting: {balancer: " + one_of({"random", "round-robin", "least-load"}) + "}\n";
}

/// Requests in flight that a run at `rate` gains over its second half, as a share of what it sends.
double gained(sim::RunPlan plan, double rate, double sends) {
  /// Counts what is in flight after each half of the time, and ends the run.
  struct Halves final : sim::Observer {
    Halves(Duration half_, std::atomic<bool>& stop_)
        : half(half_), next(SimTime::zero() + half_), stop(stop_) {}
    SimTime next_tick() const override { return next; }
    void on_sent(const workloads::Request&, SimTime) override { ++in_flight; }
    void on_done(const sim::RequestRecord&) override { --in_flight; }
    void on_tick(SimTime now) override {
      at.push_back(in_flight);
      next = now + half;
      stop = at.size() == 2;
    }
    Duration half;
    SimTime next;
    std::atomic<bool>& stop;
    std::int64_t in_flight = 0;
    std::vector<std::int64_t> at;
  };
  const double seconds = sends / rate;
  EXPECT_EQ(sim::hold_rate(plan, {rate, Duration::from_seconds(1.5 * seconds), {}}), "");
  ExperimentProgress progress;
  Diagnostics found;
  Experiment experiment(1, progress, found);
  sim::Progress own;
  Halves halves(Duration::from_seconds(seconds / 2), own.stop);
  experiment.probe(plan, 77, halves, own, found);
  return static_cast<double>(halves.at.at(1) - halves.at.at(0)) / (sends / 2);
}

// ROUTESIM_SWARM=200 for the long run.
TEST_F(CapacityTest, OfRandomFleetsIsWhatLongerRunsShow) {
  const char* const many = std::getenv("ROUTESIM_SWARM");
  const int cases = many != nullptr ? std::atoi(many) : 6;
  const char* const chosen = std::getenv("ROUTESIM_SWARM_SEED");
  const std::uint64_t first = chosen != nullptr ? std::strtoull(chosen, nullptr, 10) : 41;
  std::vector<std::string> wrong(static_cast<std::size_t>(cases));
  for (int i = 0; i < cases; ++i) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(i);
    RandomStream random(seed, Stream::kArrivals);
    const std::string text = random_scenario(random);
    const sim::RunPlan plan = prepared(text);
    const Capacity found = capacity(plan, std::exp(3 * random.uniform_open()));
    ASSERT_TRUE(found.rate && found.low && found.high) << seed << "\n" << text;
    constexpr double kSends = 60'000;
    const double below = gained(plan, 0.95 * *found.rate, kSends);
    const double above = gained(plan, 1.05 * *found.high, kSends);
    std::cout << "seed " << seed << ": gains " << below << " below, " << above << " above\n";
    EXPECT_LT(below, 0.01) << "seed " << seed << " does not sustain 0.95 of its rate\n" << text;
    EXPECT_GT(above, 0.01) << "seed " << seed << " sustains 1.05 of what it should not\n" << text;
  }
}

}  // namespace
}  // namespace routesim::tools
