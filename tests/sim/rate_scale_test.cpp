// `workload.rate_scale`, by what it makes of each kind of load.
#include "sim/plan/rate_scale.h"

#include <gtest/gtest.h>

#include <limits>

namespace routesim::sim {
namespace {

/// The workload at twice its rate.
WorkloadConfig twice(WorkloadConfig w) {
  w.rate_scale = 2;
  Diagnostics d;
  WorkloadConfig out = at_scaled_rate(w, d);
  EXPECT_TRUE(d.items().empty()) << to_string(d.items().front());
  return out;
}

std::string refusal(WorkloadConfig w) {
  w.rate_scale = 2;
  Diagnostics d;
  at_scaled_rate(w, d);
  if (d.items().size() != 1) return "not one error";
  EXPECT_EQ(d.items()[0].path, "workload.rate_scale");
  return d.items()[0].message;
}

TEST(RateScale, MultipliesTheRatesOfEveryKindOfLoad) {
  WorkloadConfig groups;
  groups.groups.emplace().rate = 5;
  EXPECT_EQ(twice(groups).groups->rate, 10);

  WorkloadConfig perf;
  auto& stages = perf.inference_perf_config.emplace().load.stages;
  stages.resize(2);
  stages[0].rate = 3;
  stages[0].duration = 20;
  stages[1].session_rate = 0.5;
  const auto scaled = twice(perf).inference_perf_config->load.stages;
  EXPECT_EQ(scaled[0].rate, 6);
  EXPECT_EQ(scaled[0].duration, 20) << "twice the requests";
  EXPECT_EQ(scaled[1].session_rate, 1);

  WorkloadConfig bench;
  bench.vllm_bench.emplace().request_rate = 4;
  bench.vllm_bench->ramp_up_start_rps = 1;
  bench.vllm_bench->runs.resize(1);
  bench.vllm_bench->runs[0].request_rate = 7;
  const auto benched = *twice(bench).vllm_bench;
  EXPECT_EQ(benched.request_rate, 8);
  EXPECT_EQ(benched.ramp_up_start_rps, 2);
  EXPECT_EQ(benched.runs[0].request_rate, 14);

  WorkloadConfig timed;
  timed.vllm_bench.emplace().dataset_name = workloads::vllm_bench::Dataset::kTimedTrace;
  EXPECT_EQ(twice(timed).vllm_bench->timed_trace.sec_multiplier, 0.0005);

  WorkloadConfig trace;
  trace.trace.emplace().replay.time_scale = 3;
  EXPECT_EQ(twice(trace).trace->replay.time_scale, 1.5);
}

TEST(RateScale, IsRefusedWhereTheLoadHasNoRate) {
  WorkloadConfig conversations;
  conversations.conversations.emplace();
  EXPECT_NE(refusal(conversations).find("closed loop"), std::string::npos);
  WorkloadConfig at_once;
  at_once.vllm_bench.emplace();
  EXPECT_NE(refusal(at_once).find("request_rate is inf"), std::string::npos);
  at_once = {};
  at_once.groups.emplace().rate = std::numeric_limits<double>::infinity();
  EXPECT_NE(refusal(at_once).find("groups.rate is infinite"), std::string::npos);
  WorkloadConfig perf;
  auto& load = perf.inference_perf_config.emplace().load;
  load.stages.emplace_back().concurrency_level = 8;
  EXPECT_NE(refusal(perf).find("have a concurrency"), std::string::npos);
  load.sweep.emplace();
  EXPECT_NE(refusal(perf).find("finds its rates itself"), std::string::npos);
  load.sweep.reset();
  load.type = workloads::inference_perf::LoadType::kTraceReplay;
  EXPECT_NE(refusal(perf).find("the times of its file"), std::string::npos);
}

TEST(RateScale, OfOneChangesNothing) {
  WorkloadConfig conversations;
  conversations.conversations.emplace();
  Diagnostics d;
  at_scaled_rate(conversations, d);
  EXPECT_TRUE(d.items().empty());
}

}  // namespace
}  // namespace routesim::sim
