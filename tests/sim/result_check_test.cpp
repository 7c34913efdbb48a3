// Results with one wrong number each: the check names what is wrong.
#include "sim/observe/result_check.h"

#include <functional>
#include <limits>

#include "sim/observe/invariant_checker.h"
#include "tests/sim/result_fixture.h"

namespace routesim::sim::testing {
namespace {

std::string broken_by(const std::function<void()>& act) {
  try {
    act();
  } catch (const InvariantError& e) {
    return e.what();
  }
  return "nothing";
}

std::string doctored(const std::function<void(RunResult&)>& doctor, bool complete = true) {
  RunResult r = one_request_result();
  doctor(r);
  return broken_by([&] { check_result(r, complete); });
}

/// Both the stage and the summary, which pools only it.
std::string in_stage(const std::function<void(StageResult&)>& doctor, bool complete = true) {
  return doctored(
      [&](RunResult& r) {
        doctor(r.stages[0]);
        doctor(r.summary);
      },
      complete);
}

TEST(ResultCheck, FindsNothingInARightResult) {
  EXPECT_EQ(doctored([](RunResult&) {}), "nothing");
  EXPECT_EQ(doctored([](RunResult&) {}, false), "nothing");
}

TEST(ResultCheck, LeavesOutUnreportedStages) {
  EXPECT_EQ(doctored([](RunResult& r) {
              r.stages.push_back(r.stages[0]);
              r.stages[1].info.reported = false;
              r.routing = {.decisions = 2, .prompt_tokens = 80, .hit_tokens = 64};
              r.replicas[0] = r.replicas[1];
            }),
            "nothing");
}

TEST(ResultCheck, HoldsEveryDistributionInOrder) {
  const auto order = [](const Distribution& d) {
    return broken_by([&] { check_order(d, "stage 0, itl"); });
  };
  const Distribution right = {
      .count = 3, .sum = 6, .min = 1, .mean = 2, .max = 3, .percentiles = {1, 1.5, 2, 2.9}};
  EXPECT_EQ(order(right), "nothing");
  EXPECT_EQ(order({}), "nothing") << "no samples, no order";
  Distribution d = right;
  d.percentiles = {1, 2, 1.5, 2.9};
  EXPECT_EQ(order(d),
            "invariant 15: stage 0, itl: percentiles do not rise (2.000000 against 1.500000)");
  d = right;
  d.percentiles = {0.9, 1.5, 2, 2.9};
  EXPECT_EQ(order(d),
            "invariant 15: stage 0, itl: percentiles do not rise (1.000000 against 0.900000)");
  d = right;
  d.percentiles = {1, 1.5, 2, 3.1};
  EXPECT_EQ(order(d),
            "invariant 15: stage 0, itl: a percentile is over the maximum (3.100000 "
            "against 3.000000)");
  d = right;
  d.mean = 3.1;
  EXPECT_EQ(order(d),
            "invariant 15: stage 0, itl: the mean 3.100000 is outside 1.000000 to 3.000000");
  d.mean = 0.9;
  EXPECT_EQ(order(d),
            "invariant 15: stage 0, itl: the mean 0.900000 is outside 1.000000 to 3.000000");
  d.mean = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(order(d), "nothing");
}

TEST(ResultCheck, LooksAtThePercentilesOfReports) {
  Samples samples;
  for (int i = 0; i <= 1000; ++i) samples.add(i);
  const Distribution d = distribution_of(samples);
  const std::vector<double> expected = {1,   10,  50,  100, 250, 500, 750,
                                        900, 950, 975, 990, 995, 999};
  ASSERT_EQ(d.percentiles.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_DOUBLE_EQ(d.percentiles[i], expected[i]);
  EXPECT_EQ(d.count, 1001);
  EXPECT_EQ(d.min, 0);
  EXPECT_DOUBLE_EQ(d.mean, 500);
  EXPECT_DOUBLE_EQ(d.max, 1000);
  EXPECT_DOUBLE_EQ(d.sum, 500'500);
}

// 4,000 requests that wait for days and get their second token after 1 ms: in doubles the gaps are
// below the last digit of the latencies' sum.
TEST(ResultCheck, AddsUpLongWaitsExactly) {
  RunResult r = one_request_result();
  StageResult& s = r.stages[0];
  for (int i = 1; i < 4'000; ++i) {
    const std::int64_t ttft_ns = 700'000'000'000'001 + 3 * i;
    s.schedule_delay.add(0);
    s.time_to_first_token.add_nano(ttft_ns);
    s.request_latency.add_nano(ttft_ns + 1'000'000);
    s.time_per_output_token.add(0.001);
    s.normalized_time_per_output_token.add(0.001);
    s.inter_token_latency.add_nano(1'000'000, 1);
    s.prompt_tokens.add(40);
    s.output_tokens.add(2);
  }
  s.requests = s.successes = 4'000;
  s.prompt_tokens_total = 160'000;
  s.output_tokens_total = 10 + 2 * 3'999;
  s.last_end = at_ms(800'000'000);
  r.summary = s;
  r.summary.info.name = "summary";
  r.routing = {.decisions = 4'000, .prompt_tokens = 160'000, .hit_tokens = 32};
  r.replicas[1].requests = 4'000;
  r.replicas[1].prefix_query_tokens = 160'000;
  r.end = s.last_end;
  EXPECT_NO_THROW(check_result(r, true));
}

struct WrongResult {
  const char* what;
  std::function<void(StageResult&)> doctor;
};

TEST(ResultCheck, HoldsThePartsOfAStage) {
  const std::vector<WrongResult> cases = {
      {"successes and failures are not the requests sent",
       [](StageResult& s) { ++s.failures_by_label["TimeoutError"], ++s.failures; }},
      {"failures by label do not add up",
       [](StageResult& s) { ++s.failures_by_label["TimeoutError"]; }},
      {"preemptions are fewer than none", [](StageResult& s) { s.preemptions = -1; }},
      {"schedule_delay has another count than requests sent",
       [](StageResult& s) { s.schedule_delay.add(0); }},
      {"a metric of requests has another count than successes",
       [](StageResult& s) { s.request_latency.add(0.028); }},
      {"a metric of requests has another count than successes",
       [](StageResult& s) { s.time_to_first_token = Samples(); }},
      {"a metric of requests has another count than successes",
       [](StageResult& s) { s.normalized_time_per_output_token = Samples(); }},
      {"a metric of requests has another count than successes",
       [](StageResult& s) { s.prompt_tokens.add(0); }},
      {"a metric of requests has another count than successes",
       [](StageResult& s) { s.output_tokens.add(0); }},
      {"time_per_output_token counts more than the successes",
       [](StageResult& s) { s.time_per_output_token.add(0); }},
      {"prompt tokens do not add up (40.000000 against 41.000000)",
       [](StageResult& s) { ++s.prompt_tokens_total; }},
      {"output tokens do not add up (10.000000 against 9.000000)",
       [](StageResult& s) { --s.output_tokens_total; }},
      {"more prompt tokens hit than were sent", [](StageResult& s) { s.cached_tokens_total = 41; }},
      {"the least TTFT is over the least latency",
       [](StageResult& s) { (s.time_to_first_token = Samples()).add(0.029); }},
      {"TPOT is longer than all that follows the first token",
       [](StageResult& s) { (s.time_per_output_token = Samples()).add(0.011); }},
      {"latency per token is longer than the latency",
       [](StageResult& s) { (s.normalized_time_per_output_token = Samples()).add(0.029); }},
      {"TTFT and inter_token_latency do not add up to the latency (0.011000 against 0.010000)",
       [](StageResult& s) { s.inter_token_latency.add_nano(1'000'000, 1); }},
      {"the last send is before the first", [](StageResult& s) { s.last_send = at_ms(1); }},
      {"a request took longer than the stage", [](StageResult& s) { s.last_end = at_ms(29); }},
      {"sending took longer than the stage", [](StageResult& s) { s.last_send = at_ms(31); }},
      {"the queue grew by more than the longest TTFT",
       [](StageResult& s) {
         s.last_send = at_ms(5);
         s.queue_growth = 19;
       }},
      {"kv_cache_usage.max is 1.125000, not in 0..1",
       [](StageResult& s) { s.kv_cache_usage_max = 1.125; }},
      {"kv_cache_usage.mean is -0.250000, not in 0..1",
       [](StageResult& s) { s.kv_cache_usage_mean = -0.25; }},
      {"kv_cache_usage has a mean over its max",
       [](StageResult& s) { s.kv_cache_usage_mean = 0.625; }},
  };
  for (const WrongResult& c : cases)
    EXPECT_EQ(in_stage(c.doctor).rfind(std::string("invariant 16: stage 0: ") + c.what, 0), 0U)
        << c.what << ", but found " << in_stage(c.doctor);
}

TEST(ResultCheck, HoldsTheSummaryToItsStages) {
  const std::vector<WrongResult> cases = {
      {"preemptions are not those of the stages", [](StageResult& s) { s.preemptions = 1; }},
      {"cached tokens are not those of the stages",
       [](StageResult& s) { s.cached_tokens_total = 31; }},
      {"schedule_delay does not pool its stages (0.002000 against 0.001000)",
       [](StageResult& s) { (s.schedule_delay = Samples()).add(0.002); }},
      {"time_per_output_token does not pool its stages",
       [](StageResult& s) { s.time_per_output_token = Samples(); }},
      {"its time is not from the first send of a stage to the last end",
       [](StageResult& s) { s.last_end = at_ms(31); }},
      {"queue growth is not the worst stage's", [](StageResult& s) { s.queue_growth = 0.01; }},
      {"kv_cache_usage.max is not the highest of the stages",
       [](StageResult& s) { s.kv_cache_usage_max = 0.75; }},
      {"kv_cache_usage.mean is none between those of the stages",
       [](StageResult& s) { s.kv_cache_usage_mean = 0.125; }},
  };
  for (const WrongResult& c : cases)
    EXPECT_EQ(doctored([&](RunResult& r) { c.doctor(r.summary); }),
              std::string("invariant 16: summary: ") + c.what);
}

TEST(ResultCheck, HoldsServersAndRouterToTheRequests) {
  struct Doctored {
    const char* what;
    std::function<void(RunResult&)> doctor;
  };
  const std::vector<Doctored> cases = {
      {"pool-0: it was busy without a step", [](RunResult& r) { r.replicas[0].busy_s = 0.001; }},
      {"pool-1: it was busy for longer than the run (0.031000 against 0.030000)",
       [](RunResult& r) { r.replicas[1].busy_s = 0.031; }},
      {"pool-1: it hit more prompt tokens than it looked up",
       [](RunResult& r) { r.replicas[1].prefix_hit_tokens = 41; }},
      {"pool-1: kv_cache_usage.max is 1.500000, not in 0..1",
       [](RunResult& r) { r.replicas[1].kv_cache_usage_max = 1.5; }},
      {"pool-1: kv_cache_usage has a mean over its max (0.750000 against 0.500000)",
       [](RunResult& r) { r.replicas[1].kv_cache_usage_mean = 0.75; }},
      {"pool-1: more requests ran at once than came",
       [](RunResult& r) { r.replicas[1].max_running = 2; }},
      {"routing: more decisions were disaggregated than made",
       [](RunResult& r) { r.routing.disaggregated = 2; }},
      {"routing: more requests were rejected than failed",
       [](RunResult& r) { r.routing.rejected = 1; }},
      {"routing: more prompt tokens hit than were sent",
       [](RunResult& r) { r.routing.hit_tokens = 41; }},
      {"routing: servers got more than was decided", [](RunResult& r) { r.routing.decisions = 0; }},
      {"routing: more requests succeeded than came to servers",
       [](RunResult& r) { r.replicas[1].requests = r.replicas[1].max_running = 0; }},
      {"routing: it has fewer prompt tokens than the stages",
       [](RunResult& r) { r.routing.prompt_tokens = 39; }},
      {"routing: its prompt tokens are not those of the stages",
       [](RunResult& r) { r.routing.hit_tokens = 33; }},
      {"routing: servers got other requests than were decided",
       [](RunResult& r) { r.routing.decisions = 2; }},
      {"replicas: stages have more preemptions",
       [](RunResult& r) { r.stages[0].preemptions = r.summary.preemptions = 1; }},
      {"replicas: stages have other preemptions",
       [](RunResult& r) { r.replicas[1].preemptions = 1; }},
      {"replicas: the prompt tokens that they looked up and hit are not those of the stages",
       [](RunResult& r) { r.replicas[1].prefix_query_tokens = 48; }},
      {"pool-1: its tiers hit more prompt tokens than they looked up",
       [](RunResult& r) {
         TierResult& tiers = r.replicas[1].tiers.emplace();
         tiers.did.hit_tokens = 16;
       }},
  };
  for (const Doctored& c : cases)
    EXPECT_EQ(doctored(c.doctor), std::string("invariant 16: ") + c.what);
}

TEST(ResultCheck, AllowsWhatAStoppedRunLeavesOpen) {
  const auto leave = [](StageResult& s) {
    ++s.requests;
    s.schedule_delay.add(0);
    s.kv_cache_usage_mean = s.kv_cache_usage_max = std::numeric_limits<double>::quiet_NaN();
  };
  EXPECT_EQ(in_stage(leave, false), "nothing");
  EXPECT_NE(in_stage(leave, true), "nothing");
}

}  // namespace
}  // namespace routesim::sim::testing
