// `workload.rate_scale`, by what it makes of each kind of load.
#include <gtest/gtest.h>

#include <limits>

#include "sim/plan/resolve.h"

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
  groups.load.emplace<workloads::GroupLoadConfig>().rate = 5;
  EXPECT_EQ(twice(groups).load.get<workloads::GroupLoadConfig>()->rate, 10);

  WorkloadConfig perf;
  auto& stages =
      perf.load.emplace<workloads::inference_perf::Workload>().config.emplace().load.stages;
  stages.resize(2);
  stages[0].rate = 3;
  stages[0].duration = 20;
  stages[1].session_rate = 0.5;
  const auto scaled =
      twice(perf).load.get<workloads::inference_perf::Workload>()->config->load.stages;
  EXPECT_EQ(scaled[0].rate, 6);
  EXPECT_EQ(scaled[0].duration, 20) << "twice the requests";
  EXPECT_EQ(scaled[1].session_rate, 1);

  WorkloadConfig bench;
  bench.load.emplace<workloads::vllm_bench::Config>().request_rate = 4;
  bench.load.get<workloads::vllm_bench::Config>()->ramp_up_start_rps = 1;
  bench.load.get<workloads::vllm_bench::Config>()->runs.resize(1);
  bench.load.get<workloads::vllm_bench::Config>()->runs[0].request_rate = 7;
  const auto benched = *twice(bench).load.get<workloads::vllm_bench::Config>();
  EXPECT_EQ(benched.request_rate, 8);
  EXPECT_EQ(benched.ramp_up_start_rps, 2);
  EXPECT_EQ(benched.runs[0].request_rate, 14);

  WorkloadConfig timed;
  timed.load.emplace<workloads::vllm_bench::Config>().dataset_name =
      workloads::vllm_bench::Dataset::kTimedTrace;
  EXPECT_EQ(twice(timed).load.get<workloads::vllm_bench::Config>()->timed_trace.sec_multiplier,
            0.0005);

  WorkloadConfig trace;
  trace.load.emplace<workloads::TraceWorkload>().replay.time_scale = 3;
  EXPECT_EQ(twice(trace).load.get<workloads::TraceWorkload>()->replay.time_scale, 1.5);
}

TEST(RateScale, MultipliesADemand) {
  WorkloadConfig w;
  w.load.emplace<workloads::GroupLoadConfig>().rate = std::numeric_limits<double>::infinity();
  w.demand.emplace().scale = 3;
  EXPECT_EQ(twice(w).demand->scale, 6) << "the load's own rate has no say";
}

TEST(RateScale, MultipliesAHeldRate) {
  WorkloadConfig w;
  w.load.emplace<workloads::GroupLoadConfig>().rate = 5;
  w.hold = HeldRate{.rate = 3, .duration = Duration::seconds(60), .warm_up = {}};
  EXPECT_EQ(twice(w).hold->rate, 6);
  EXPECT_EQ(twice(w).load.get<workloads::GroupLoadConfig>()->rate, 5) << "it has no say";
}

/// The load as one stage of 4 requests/s for 50 s.
workloads::Load held(workloads::Load load) {
  EXPECT_EQ(hold_rate(load, 4, 50), "");
  return load;
}

TEST(HeldRate, IsOneStageOfEveryKindOfLoad) {
  workloads::Load groups;
  groups.emplace<workloads::GroupLoadConfig>();
  const auto held_groups = *held(groups).get<workloads::GroupLoadConfig>();
  EXPECT_EQ(held_groups.rate, 4);
  EXPECT_EQ(held_groups.requests, 200);

  workloads::Load perf;
  auto& load = perf.emplace<workloads::inference_perf::Workload>().config.emplace().load;
  load.stages.resize(3);
  load.sweep.emplace();
  const auto held_perf = held(perf).get<workloads::inference_perf::Workload>()->config->load;
  ASSERT_EQ(held_perf.stages.size(), 1U);
  EXPECT_EQ(held_perf.stages[0].rate, 4);
  EXPECT_EQ(held_perf.stages[0].duration, 50);
  EXPECT_FALSE(held_perf.sweep);

  workloads::Load bench;
  auto& flags = bench.emplace<workloads::vllm_bench::Config>();
  flags.ramp_up_strategy = workloads::RampUp::kLinear;
  flags.ramp_up_start_rps = flags.ramp_up_end_rps = 3;
  flags.runs = {{.request_rate = 9, .max_concurrency = 64}, {}};
  const auto held_bench = *held(bench).get<workloads::vllm_bench::Config>();
  EXPECT_EQ(held_bench.request_rate, 4);
  EXPECT_EQ(held_bench.num_prompts, 200);
  EXPECT_EQ(held_bench.ramp_up_strategy, workloads::RampUp::kNone);
  EXPECT_EQ(held_bench.max_concurrency, 64) << "of the open run: the other sends all at once";
  EXPECT_TRUE(held_bench.runs.empty());

  workloads::Load guide;
  guide.emplace<workloads::guidellm::Config>().max_requests = {10};
  const auto held_guide = *held(guide).get<workloads::guidellm::Config>();
  EXPECT_EQ(held_guide.profile.kind, workloads::guidellm::ProfileKind::kConstant);
  EXPECT_EQ(held_guide.profile.rate, std::vector<double>{4});
  EXPECT_EQ(held_guide.profile.max_concurrency, 512) << "as in the sweep";
  EXPECT_EQ(held_guide.max_seconds, std::vector<double>{50});
  EXPECT_TRUE(held_guide.max_requests.empty());

  workloads::Load rounds;
  rounds.emplace<workloads::MultiRoundQaConfig>().runs = {{.num_users = 3}, {.num_users = 7}};
  const auto held_rounds = *held(rounds).get<workloads::MultiRoundQaConfig>();
  EXPECT_EQ(held_rounds.qps, 4);
  EXPECT_EQ(held_rounds.time, 50);
  EXPECT_EQ(held_rounds.num_users, 7) << "of the last run";
  EXPECT_TRUE(held_rounds.runs.empty());
}

TEST(HeldRate, IsRefusedWhereTheLoadHasNone) {
  const auto refused = [](auto tool) {
    workloads::Load load;
    load.emplace<decltype(tool)>() = std::move(tool);
    return hold_rate(load, 4, 50);
  };
  EXPECT_NE(refused(workloads::ConversationsConfig()).find("closed loop"), std::string::npos);
  EXPECT_NE(refused(workloads::TraceWorkload()).find("times of its records"), std::string::npos);
  EXPECT_NE(refused(workloads::vllm_bench::Config()).find("request_rate is inf"),
            std::string::npos);
  workloads::guidellm::Config guide;
  guide.profile.kind = workloads::guidellm::ProfileKind::kConcurrent;
  EXPECT_NE(refused(guide).find("closed loop"), std::string::npos);
  workloads::inference_perf::Workload perf;
  perf.config.emplace().load.type = workloads::inference_perf::LoadType::kConcurrent;
  EXPECT_NE(refused(perf).find("closed loop"), std::string::npos);
}

TEST(RateScale, IsRefusedWhereTheLoadHasNoRate) {
  WorkloadConfig conversations;
  conversations.load.emplace<workloads::ConversationsConfig>();
  EXPECT_NE(refusal(conversations).find("closed loop"), std::string::npos);
  WorkloadConfig at_once;
  at_once.load.emplace<workloads::vllm_bench::Config>();
  EXPECT_NE(refusal(at_once).find("request_rate is inf"), std::string::npos);
  at_once = {};
  at_once.load.emplace<workloads::GroupLoadConfig>().rate = std::numeric_limits<double>::infinity();
  EXPECT_NE(refusal(at_once).find("groups.rate is infinite"), std::string::npos);
  WorkloadConfig perf;
  auto& load = perf.load.emplace<workloads::inference_perf::Workload>().config.emplace().load;
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
  conversations.load.emplace<workloads::ConversationsConfig>();
  Diagnostics d;
  at_scaled_rate(conversations, d);
  EXPECT_TRUE(d.items().empty());
}

}  // namespace
}  // namespace routesim::sim
