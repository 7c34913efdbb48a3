// Names of metrics: every spelling users bring from their tools, and what is said about the others.
#include "tools/results/metric_name.h"

#include <gtest/gtest.h>

#include <array>

namespace routesim::tools {
namespace {

/// Two requests over ten seconds: TTFTs of 0.1 and 0.3 s, one failure beside them.
sim::StageResult small_stage() {
  sim::StageResult s;
  s.requests = 4;
  s.successes = 3;
  s.failures = 1;
  s.first_send = SimTime::zero();
  s.last_send = SimTime::zero() + Duration::seconds(5);
  s.last_end = SimTime::zero() + Duration::seconds(10);
  s.time_to_first_token.add(0.1);
  s.time_to_first_token.add(0.3);
  s.output_tokens_total = 500;
  s.prompt_tokens_total = 1000;
  s.cached_tokens_total = 250;
  s.preemptions = 7;
  s.kv_cache_usage_mean = 0.5;
  s.kv_cache_usage_max = 0.75;
  return s;
}

TEST(MetricName, EverySpellingMeansTheSame) {
  struct Row {
    std::string_view written;
    std::string_view text;
    double value;
  };
  constexpr std::array<Row, 18> kRows = {{
      {"ttft_ms.mean", "ttft_ms.mean", 200},
      {"ttft.mean", "ttft_s.mean", 0.2},
      {"ttft_us.max", "ttft_us.max", 300'000},
      {"mean_ttft_ms", "ttft_ms.mean", 200},
      {"p50_ttft_ms", "ttft_ms.median", 200},
      {"time_to_first_token.p75", "ttft_s.p75", 0.25},
      {"ttft_ms.p99.9", "ttft_ms.p99.9", 299.8},
      {"ttft_ms.p99p9", "ttft_ms.p99.9", 299.8},
      {"output_tokens_per_s", "output_tokens_per_s", 50},
      {"output_tokens_per_s.mean", "output_tokens_per_s", 50},
      {"output_throughput", "output_tokens_per_s", 50},
      {"requests_per_sec", "requests_per_s", 0.3},
      {"benchmark_duration_ms", "benchmark_duration_ms", 10'000},
      {"failed", "failed_requests", 1},
      {"failure_rate_percent", "failure_rate_percent", 25},
      {"prefix_hit_ratio", "prefix_cache_hit_rate", 0.25},
      {"preemptions", "preemptions", 7},
      {"kv_cache_usage_percent.max", "kv_cache_usage_percent.max", 75},
  }};
  for (const Row& row : kRows) {
    const Parsed<MetricName> name = parse_metric_name(row.written);
    ASSERT_TRUE(name.value.has_value()) << row.written << " " << name.message;
    EXPECT_EQ(name.value->text, row.text) << row.written;
    EXPECT_NEAR(metric_value(small_stage(), *name.value).value_or(-1), row.value, 1e-6)
        << row.written;
    EXPECT_EQ(parse_metric_name(name.value->text).value, name.value) << row.written;
  }
}

TEST(MetricName, SaysWhatIsWrong) {
  struct Row {
    std::string_view written;
    std::string_view message;
    std::string_view hint;
  };
  constexpr std::array<Row, 12> kRows = {{
      {"tttf_ms.p99", "is not a metric (got tttf_ms.p99)", "did you mean ttft_ms.p99?"},
      {"ttft_p99", "is not a metric (got ttft_p99)", "did you mean ttft_ms.p99?"},
      {"latency_s_p99", "is not a metric", "did you mean request_latency_s.p99?"},
      {"mean_itl.ms", "is not a metric", "did you mean itl_ms.mean?"},
      {"median.goodput", "is not a metric", "did you mean goodput?"},
      {"", "is not a metric", "metrics: ttft, tpot"},
      {"ttft_ms", "needs a statistic", "for example ttft_ms.p99"},
      {"ttft_ms.", "needs a statistic", "for example ttft_ms.p99"},
      {"ttft_ms.p101", "unknown statistic p101", ""},
      {"ttft_ms.q99", "unknown statistic q99", ""},
      {"requests_per_s.p99", "has one value per stage, so there is no p99", ""},
      {"requests_per_s.", "ends in a dot", ""},
  }};
  for (const Row& row : kRows) {
    const Parsed<MetricName> name = parse_metric_name(row.written);
    EXPECT_FALSE(name.value.has_value()) << row.written;
    EXPECT_NE(name.message.find(row.message), std::string::npos) << name.message;
    EXPECT_NE(name.hint.find(row.hint), std::string::npos) << name.hint;
  }
}

TEST(MetricName, KnowsWhichWayIsBetter) {
  EXPECT_EQ(parse_metric_name("ttft_ms.p99").value->direction, sim::Direction::kSmallerIsBetter);
  EXPECT_EQ(parse_metric_name("output_tokens_per_s").value->direction,
            sim::Direction::kLargerIsBetter);
  EXPECT_EQ(parse_metric_name("prefix_cache_hit_rate").value->direction,
            sim::Direction::kLargerIsBetter);
  EXPECT_TRUE(parse_metric_name("failure_rate").value->has_direction);
  EXPECT_FALSE(parse_metric_name("input_length.mean").value->has_direction);
  EXPECT_FALSE(parse_metric_name("ttft_ms.std").value->has_direction);
}

TEST(MetricName, EmptyStagesHaveNoValues) {
  const sim::StageResult empty;
  for (const MetricName& name : standard_metrics())
    EXPECT_FALSE(metric_value(empty, name).has_value()) << name.text;
}

}  // namespace
}  // namespace routesim::tools
