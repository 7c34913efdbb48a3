// Replays answers of Prometheus' own engine. prometheus_vectors.jsonl holds one store a line: what
// promql.Engine of prometheus/prometheus v0.305.0 (Prometheus 3.5) answered over random scrapes;
// these 45 stores of 1,500 show all kinds of queries. All 19,150 answers agreed.
//
//   scrapes: t in milliseconds; for each server vllm:num_requests_waiting, kv_cache_usage_perc,
//            prompt_tokens_total, and counts and sum of time_to_first_token_seconds; for the pool
//            llm_d_epp_flow_control_queue_size and llm_d_epp_request_total
//   answers: query, milliseconds, and for each element the server (null: none) and the value
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/scaling/prometheus_query.h"
#include "sim/scaling/prometheus_store.h"
#include "tests/fleet/fake_fleet.h"

namespace routesim::sim {
namespace {

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
