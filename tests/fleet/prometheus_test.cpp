// Prometheus: what a store is asked by hand, and answers of its own engine.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/scaling/prometheus_query.h"
#include "sim/scaling/prometheus_store.h"
#include "tests/fleet/fake_fleet.h"

namespace routesim::sim {
namespace {

SimTime sec(double s) { return SimTime::zero() + Duration::from_seconds(s); }

PromQuery parsed(const std::string& text, const std::vector<std::string>& rules = {}) {
  auto query = parse_promql(text, rules);
  if (const PromFault* fault = std::get_if<PromFault>(&query)) {
    ADD_FAILURE() << text << ": " << fault->position << ": " << fault->message;
    return {};
  }
  return std::get<PromQuery>(query);
}

std::string fault_of(const std::string& text) {
  const auto query = parse_promql(text);
  if (!std::holds_alternative<PromFault>(query)) return "none";
  const PromFault& fault = std::get<PromFault>(query);
  return std::to_string(fault.position) + ": " + fault.message +
         (fault.hint.empty() ? "" : " | " + fault.hint);
}

/// Scrapes a fleet every 15 s, and asks.
class Prometheus : public ::testing::Test {
 protected:
  /// The result, which has one sample; NaN where there are more or none.
  double ask(const std::string& text, double now) {
    const PromVector result = all(text, now);
    return result.size() == 1 ? result[0].value : std::nan("");
  }
  PromVector all(const std::string& text, double now) {
    return evaluate(*parsed(text).root, store, sec(now));
  }
  static std::vector<SeriesId> everything() {
    std::vector<SeriesId> ids;
    for (SeriesId id = 0; id < kFirstRule; ++id) ids.push_back(id);
    return ids;
  }
  void scrape(double now) { store.scrape(sec(now), fleet); }

  FakeFleet fleet;
  PrometheusStore store{everything(), Duration::seconds(600)};
};

TEST_F(Prometheus, AggregatesTheServersOfAPool) {
  fleet.spec = 3;
  fleet.follow();
  fleet.values = {{{FleetMetric::kWaiting, 0}, 3},
                  {{FleetMetric::kWaiting, 1}, 5},  // The third does not answer yet.
                  {{FleetMetric::kFlowQueue, kPool}, 7}};
  scrape(0);
  EXPECT_EQ(ask("sum(vllm:num_requests_waiting{namespace=\"a\"})", 1), 8);
  EXPECT_EQ(ask("avg by (model_name) (vllm:num_requests_waiting)", 1), 4);
  EXPECT_EQ(ask("max(sglang:num_queue_reqs) without (pod)", 1), 5);
  EXPECT_EQ(ask("min(vllm:num_requests_waiting)", 1), 3);
  EXPECT_EQ(ask("count(vllm:num_requests_waiting)", 1), 2);
  EXPECT_EQ(ask("sum(vllm:num_requests_waiting) / count(vllm:num_requests_waiting)", 1), 4);
  EXPECT_EQ(ask("sum(llm_d_epp_flow_control_queue_size) + 2 * 3 ^ 2 - 1", 1), 24);
  EXPECT_EQ(ask("-2 ^ 2", 1), -4);
  EXPECT_EQ(all("sum by (pod) (vllm:num_requests_waiting)", 1).size(), 2U);
  EXPECT_EQ(ask("inference_extension_flow_control_queue_size", 1), 7);
  // Labels do not match, so nothing comes out.
  EXPECT_TRUE(all("vllm:num_requests_waiting * llm_d_epp_flow_control_queue_size", 1).empty());
  EXPECT_EQ(ask("clamp_max(llm_d_epp_flow_control_queue_size, 5)", 1), 5);
  EXPECT_EQ(ask("clamp(llm_d_epp_flow_control_queue_size, 8, 9)", 1), 8);
  EXPECT_EQ(ask("ceil(llm_d_epp_flow_control_queue_size / 2)", 1), 4);
  EXPECT_EQ(ask("scalar(llm_d_epp_flow_control_queue_size) % 4", 1), 3);
}

TEST_F(Prometheus, FiltersAndFallsBack) {
  fleet.spec = 1;
  fleet.follow();
  EXPECT_EQ(ask("sum(vllm:num_requests_waiting) or vector(0)", 1), 0);
  fleet.values[{FleetMetric::kWaiting, 0}] = 6;
  scrape(0);
  EXPECT_EQ(ask("sum(vllm:num_requests_waiting) or vector(0)", 1), 6);
  EXPECT_EQ(ask("sum(vllm:num_requests_waiting) > 5", 1), 6);
  EXPECT_TRUE(all("sum(vllm:num_requests_waiting) > 6", 1).empty());
  EXPECT_EQ(ask("5 < sum(vllm:num_requests_waiting)", 1), 6);
  EXPECT_EQ(ask("sum(vllm:num_requests_waiting > bool 6)", 1), 0);
  EXPECT_TRUE(all("vector(1) unless vector(2)", 1).empty());
  EXPECT_EQ(ask("vector(1) and vector(2)", 1), 1);
  // NaN fails every comparison: how the guides guard a quantile without traffic.
  EXPECT_EQ(ask("(vector(NaN) >= 0) or vector(4)", 1), 4);
}

TEST_F(Prometheus, RatesAreStretchedToTheRange) {
  // Thirty more each 15 s, from zero on.
  for (int i = 0; i <= 4; ++i) {
    fleet.values[{FleetMetric::kRouterRequests, kPool}] = 30 * i;
    scrape(15 * i);
  }
  const std::string counter = "llm_d_epp_request_total";
  // The range is open at its old end: 30 at 15 s to 120 at 60 s, 90 in 45 s.
  EXPECT_DOUBLE_EQ(ask("rate(" + counter + "[1m])", 60), 2);
  EXPECT_DOUBLE_EQ(ask("increase(" + counter + "[1m])", 60), 120);
  EXPECT_DOUBLE_EQ(ask("irate(" + counter + "[1m])", 60), 2);
  EXPECT_DOUBLE_EQ(ask("rate(" + counter + "[1m])", 67), 2);
  // No sample from 60 s on: half an interval is added there, 7.5 s, and 10 s before.
  EXPECT_DOUBLE_EQ(ask("increase(" + counter + "[1m])", 80), 60 * (30 + 10 + 7.5) / 30);
  // 120 falls to 10: the process began anew.
  fleet.values[{FleetMetric::kRouterRequests, kPool}] = 10;
  scrape(75);
  EXPECT_DOUBLE_EQ(ask("increase(" + counter + "[30s])", 75), 10 * (15 + 15) / 15);
  EXPECT_DOUBLE_EQ(ask("max_over_time(" + counter + "[5m])", 75), 120);
  EXPECT_DOUBLE_EQ(ask("avg_over_time(" + counter + "[45s])", 75), (90 + 120 + 10) / 3.0);
  EXPECT_DOUBLE_EQ(ask("count_over_time(" + counter + "[45s])", 75), 3);
  EXPECT_TRUE(all("rate(" + counter + "[15s])", 75).empty());
}

TEST_F(Prometheus, QuantilesInterpolateInBuckets) {
  fleet.spec = 2;
  fleet.follow();
  // Ten in (0.25, 0.5] on one server, ten in (0.75, 1] on the other.
  for (int i = 0; i < 10; ++i) {
    fleet.histogram_of(FleetMetric::kServerTtft, 0).add(0.3);
    fleet.histogram_of(FleetMetric::kServerTtft, 1).add(0.9);
  }
  scrape(0);
  const std::string buckets = "(sum by (le) (vllm:time_to_first_token_seconds_bucket))";
  const auto quantile = [&](const std::string& q) {
    return ask("histogram_quantile(" + q + ", " + buckets + ")", 1);
  };
  EXPECT_DOUBLE_EQ(quantile("0.5"), 0.5);
  EXPECT_DOUBLE_EQ(quantile("0.9"), 0.95);
  EXPECT_DOUBLE_EQ(quantile("0.25"), 0.375);
  EXPECT_EQ(quantile("1.5"), std::numeric_limits<double>::infinity());
  fleet.histogram_of(FleetMetric::kServerTtft, 1).add(1e6);
  scrape(15);
  // What is above all bounds counts as the highest.
  EXPECT_DOUBLE_EQ(quantile("1"), 2560);
  EXPECT_DOUBLE_EQ(ask("sum(vllm:time_to_first_token_seconds_bucket{le=\"0.5\"})", 16), 10);
  EXPECT_DOUBLE_EQ(ask("sum(vllm:time_to_first_token_seconds_count)", 16), 21);
  EXPECT_DOUBLE_EQ(ask("sum(vllm:time_to_first_token_seconds_sum)", 16), 3 + 9 + 1e6);
}

TEST_F(Prometheus, ForgetsWhatIsGone) {
  fleet.spec = 2;
  fleet.follow();
  fleet.values = {{{FleetMetric::kWaiting, 0}, 1}, {{FleetMetric::kWaiting, 1}, 2}};
  scrape(0);
  fleet.spec = 1;
  fleet.follow();
  EXPECT_EQ(ask("sum(vllm:num_requests_waiting)", 14), 3);
  scrape(15);
  EXPECT_EQ(ask("sum(vllm:num_requests_waiting)", 15), 1);
  // Ranges still hold it.
  EXPECT_EQ(ask("sum(max_over_time(vllm:num_requests_waiting[1m]))", 15), 3);
  EXPECT_EQ(ask("sum(vllm:num_requests_waiting)", 314), 1);
  EXPECT_TRUE(all("sum(vllm:num_requests_waiting)", 315).empty());
}

TEST_F(Prometheus, RecordsRules) {
  const std::vector<std::string> rules = {"epp:ttft", "epp:saturation:raw", "epp:smoothed"};
  // The signal of llm-d's guide: the prediction's quantile over the goal, else the measurement's.
  const PromQuery raw = parsed(
      "clamp_max(((histogram_quantile(0.9, sum(rate("
      "llm_d_epp_request_predicted_ttft_seconds_bucket[1m])) by (le)) >= 0)\n or "
      "(histogram_quantile(0.9, sum(rate(llm_d_epp_request_ttft_seconds_bucket[1m])) by (le)) >= "
      "0)) or vector(0), 2.0) / 3.0",
      rules);
  const PromQuery smoothed = parsed("avg_over_time(epp:saturation:raw[45s])", rules);
  ASSERT_EQ(smoothed.series, std::vector<SeriesId>{kFirstRule + 1});
  for (int i = 0; i <= 4; ++i) {
    // Without traffic it is 0. Then ten requests in each interval take between 1.5 and 2 s, so the
    // quantile is 1.95 s.
    if (i >= 3)
      for (int k = 0; k < 10; ++k) fleet.histogram_of(FleetMetric::kRouterTtft).add(1.8);
    else
      fleet.histogram_of(FleetMetric::kRouterTtft);
    scrape(15 * i);
    store.record(sec(15 * i), kFirstRule + 1, evaluate(*raw.root, store, sec(15 * i)));
  }
  const PromVector result = evaluate(*smoothed.root, store, sec(60));
  ASSERT_EQ(result.size(), 1U);
  EXPECT_NEAR(result[0].value, (0 + 0.65 + 0.65) / 3, 1e-12);
}

TEST(PrometheusQuery, ReadsTheQueriesOfTheGuides) {
  // llm-d guides/workload-autoscaling, Gateway API inference extension, vLLM production stack,
  // AIBrix and AWS' guide, with their labels.
  for (const char* text :
       {"sum(llm_d_epp_flow_control_queue_size{namespace=\"${NAMESPACE}\",service=\"epp\"})",
        "max(llm_d_epp_flow_control_pool_saturation{inference_pool=\"a\",namespace=\"b\"})",
        "(\n  sum(llm_d_epp_inflight_tokens{namespace=\"n\",\n  endpoint_name=~\".*prefill.*\"}) / "
        "33821\n) or vector(0)\n",
        "sum(vllm:kv_cache_usage_perc{pod=~\".*decode.*\"}) or vector(0)",
        "max(kube_deployment_status_replicas_unavailable{deployment=\"d\"})",
        "max(inference_pool_average_queue_size{name=\"pool\",namespace=\"n\"})",
        "inference_pool_average_kv_cache_utilization{name='pool'}", "vllm:num_requests_waiting",
        "sum(rate(vllm:num_incoming_requests_total[1m]) > bool 0)",
        "avg(avg_over_time(vllm:gpu_cache_usage_perc{model=\"a\"}[5m])) * 100",
        "histogram_quantile(0.95, sum(rate(vllm:e2e_request_latency_seconds_bucket[2m])) by (le)) "
        "* 1000 # milliseconds",
        "sum by (model_name) (rate(vllm:generation_tokens_total{namespace=\"n\"}[1m30s]))"})
    EXPECT_NE(parsed(text).root, nullptr) << text;
  const PromQuery query = parsed("sum(rate(vllm:prompt_tokens_total{a=\"1\", pod=~'x|y'}[5m]))");
  EXPECT_EQ(query.matchers, (std::vector<std::string>{"a=\"1\"", "pod=~'x|y'"}));
  EXPECT_EQ(query.longest_range, Duration::seconds(300));
}

TEST(PrometheusQuery, NamesFaults) {
  EXPECT_EQ(fault_of("sum(vllm:num_request_waiting)"),
            "4: metric `vllm:num_request_waiting` is not simulated | did you mean "
            "vllm:num_requests_waiting?");
  EXPECT_EQ(fault_of("vllm:time_to_first_token_seconds"),
            "0: metric `vllm:time_to_first_token_seconds` is not simulated | add _bucket, _sum or "
            "_count");
  EXPECT_EQ(fault_of("topk(1, vllm:num_requests_waiting)"),
            "0: function `topk` is not simulated | take sum, avg, max, rate or quantiles");
  EXPECT_EQ(fault_of("rate(vllm:prompt_tokens_total)"),
            "5: rate() takes a range vector (got an instant vector) | add a range such as [1m]");
  EXPECT_EQ(fault_of("vllm:prompt_tokens_total[1m]"),
            "0: a range vector is no result | take rate(), max_over_time() or another function");
  EXPECT_EQ(fault_of("max_over_time(sum(vllm:num_requests_waiting)[5m:])"),
            "44: subqueries are not simulated | record the inner query as a rule");
  EXPECT_EQ(fault_of("vllm:num_requests_waiting offset 5m"),
            "32: `offset` and `@` are not simulated | ask for the present");
  EXPECT_EQ(fault_of("vector(1) + on(pod) vector(2)"),
            "10: `on` is not simulated | series of a pool differ in pod and le alone; sum() both "
            "sides");
  EXPECT_EQ(fault_of("sum(vllm:num_requests_waiting) or 0"),
            "31: `and`, `or` and `unless` take no numbers | write vector(0) for the number 0");
  EXPECT_EQ(fault_of("1 > 2"), "2: a comparison of two numbers needs `bool`");
  EXPECT_EQ(fault_of("rate(vllm:prompt_tokens_total[$__rate_interval])"),
            "30: the query has a variable of Grafana | write the duration, such as [1m]");
  EXPECT_EQ(fault_of("sum(vector(1)"), "13: `)` is missing");
  EXPECT_EQ(fault_of(std::string(100, '(')), "60: the query is nested too deeply");
  EXPECT_EQ(fault_of(std::string(100, '-') + "1"), "60: the query is nested too deeply");
  EXPECT_EQ(fault_of(""), "0: the query ends too early");
  EXPECT_EQ(fault_of("é"), "0: unexpected `é`");
  EXPECT_EQ(fault_of("vector(1) 漢"), "10: unexpected `漢`");
}

// Replays answers of Prometheus' own engine. prometheus_vectors.jsonl holds one store a line: what
// promql.Engine of prometheus/prometheus v0.305.0 (Prometheus 3.5) answered over random scrapes;
// these 45 stores of 1,500 show all kinds of queries. All 19,150 answers agreed.
//
//   scrapes: t in milliseconds; for each server vllm:num_requests_waiting, kv_cache_usage_perc,
//            prompt_tokens_total, and counts and sum of time_to_first_token_seconds; for the pool
//            llm_d_epp_flow_control_queue_size and llm_d_epp_request_total
//   answers: query, milliseconds, and for each element the server (null: none) and the value

using Json = nlohmann::json;

SimTime instant_of(const Json& ms) {
  return SimTime::zero() + Duration::milliseconds(ms.get<std::int64_t>());
}

void set_fleet(const Json& scrape, FakeFleet& fleet) {
  fleet.values.clear();
  fleet.histograms.clear();
  fleet.spec = static_cast<std::int32_t>(scrape["pods"].size());
  fleet.follow();
  for (std::int64_t pod = 0; pod < fleet.spec; ++pod) {
    const Json& p = scrape["pods"][static_cast<std::size_t>(pod)];
    fleet.values[{FleetMetric::kWaiting, pod}] = p[0];
    fleet.values[{FleetMetric::kKvUsage, pod}] = p[1];
    fleet.values[{FleetMetric::kPromptTokens, pod}] = p[2];
    BucketCounts& counts = fleet.histogram_of(FleetMetric::kServerTtft, pod);
    counts.set(p[3].get<std::vector<std::int64_t>>(), p[4]);
  }
  fleet.values[{FleetMetric::kFlowQueue, kPool}] = scrape["pool"][0];
  fleet.values[{FleetMetric::kRouterRequests, kPool}] = scrape["pool"][1];
}

double number_in(const Json& json) {
  if (json.is_number()) return json;
  return json == "NaN"    ? std::nan("")
         : json == "+Inf" ? std::numeric_limits<double>::infinity()
                          : -std::numeric_limits<double>::infinity();
}

void expect_same(const PromVector& got, const Json& want) {
  ASSERT_EQ(got.size(), want.size());
  std::map<std::int64_t, double> values;
  for (const PromSample& s : got) values[s.pod] = s.value;
  for (const Json& element : want) {
    const std::int64_t pod = element[0].is_null() ? kPool : element[0].get<std::int64_t>();
    ASSERT_TRUE(values.contains(pod));
    const double a = values[pod], b = number_in(element[1]);
    if (std::isnan(b)) {
      ASSERT_TRUE(std::isnan(a)) << a;
    } else if (std::isinf(b)) {
      ASSERT_EQ(a, b);
    } else {
      ASSERT_NEAR(a, b, 1e-9 * std::max(1.0, std::abs(b)));
    }
  }
}

TEST(PrometheusVectors, AnswersAsTheEngine) {
  const char* other = std::getenv("ROUTESIM_PROMETHEUS_VECTORS");
  std::ifstream file(
      other != nullptr ? other : ROUTESIM_SOURCE_DIR "/tests/fleet/prometheus_vectors.jsonl");
  ASSERT_TRUE(file);
  std::size_t answers = 0;
  for (std::string line; std::getline(file, line);) {
    const Json json = Json::parse(line);
    // The engine answers about the past as if what came later were unknown.
    for (const Json& answer : json["answers"]) {
      const auto query = parse_promql(answer[0].get<std::string>());
      SCOPED_TRACE(answer.dump());
      ASSERT_TRUE(std::holds_alternative<PromQuery>(query)) << std::get<PromFault>(query).message;
      PrometheusStore store(std::get<PromQuery>(query).series, Duration::seconds(100'000));
      FakeFleet fleet;
      for (const Json& scrape : json["scrapes"]) {
        if (instant_of(scrape["t"]) > instant_of(answer[1])) break;
        set_fleet(scrape, fleet);
        store.scrape(instant_of(scrape["t"]), fleet);
      }
      expect_same(evaluate(*std::get<PromQuery>(query).root, store, instant_of(answer[1])),
                  answer[2]);
      if (HasFatalFailure()) return;
      ++answers;
    }
  }
  EXPECT_GE(answers, 400U);
}

}  // namespace
}  // namespace routesim::sim
