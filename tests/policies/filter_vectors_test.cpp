// Every case of the filters', detectors', pickers' and in-flight vector files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "policies/plugins/detectors.h"
#include "policies/plugins/inflight_load.h"
#include "policies/plugins/pickers.h"
#include "tests/policies/plugin_bench.h"

namespace routesim::policies {
namespace {

using test::member;
using test::name_of;
using test::vector_cases;

std::vector<std::string> kept_pods(PluginBench& bench) {
  std::vector<std::string> names;
  for (const EndpointRow r : bench.kept()) names.push_back(bench.table().info(r).pod_name);
  return names;
}

TEST(FilterVectors, RolesAndLabels) {
  for (const Json& c : vector_cases("role_filters")) {
    SCOPED_TRACE(name_of(c));
    std::string type = c["filter"];
    LoadOptions load;
    if (type == "decode-filter-legacy") {
      type = "decode-filter";
      load.era = Era::kV0_5_0;
    }
    PluginBench bench(type, member(c, "params"), 0, load);
    if (c.value("fn", "") == "config") {
      EXPECT_EQ(bench.built(), !c["expected_error"].get<bool>());
      continue;
    }
    ASSERT_TRUE(bench.built()) << bench.errors();
    for (const auto& [pod, role] : member(c, "endpoint_roles").items()) {
      EndpointInfo info;
      info.pod_name = pod;
      if (!role.is_null()) info.labels[c["label_key"].get<std::string>()] = role;
      bench.table().add(std::move(info));
    }
    for (const auto& [pod, labels] : member(c, "endpoints").items()) {
      EndpointInfo info;
      info.pod_name = pod;
      info.labels = labels.get<std::map<std::string, std::string>>();
      bench.table().add(std::move(info));
    }
    auto kept = kept_pods(bench);
    auto expected = c["expected_kept"].get<std::vector<std::string>>();
    std::sort(kept.begin(), kept.end());  // The vectors name sets.
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(kept, expected);
  }
}

// Endpoints of load_filters.json: match_of_100, predicted_ttft_ms, in_flight_tokens, active, …
void set_endpoints(PluginBench& bench, const Json& endpoints) {
  for (std::size_t i = 0; i < endpoints.size(); ++i) {
    const Json& e = endpoints[i];
    bench.table().set_metrics(EndpointId(i), 0, e.value("running", 0.0), e.value("kv", 0.0),
                              SimTime::zero());
    const auto row = static_cast<EndpointRow>(i);
    if (e.contains("active")) bench.load(row, e["active"], 0);
    if (e.contains("in_flight_tokens")) bench.load(row, 1, e["in_flight_tokens"]);
    if (!e.contains("match_of_100")) continue;
    bench.stub().matches.push_back(StubData::Match{e["match_of_100"], 100, 1, {}});
    LatencyEstimate estimate;
    estimate.present = true;
    estimate.ttft_ms = e["predicted_ttft_ms"];
    bench.stub().latency.push_back(estimate);
  }
}

TEST(FilterVectors, LoadAndPrefix) {
  for (const Json& c : vector_cases("load_filters")) {
    SCOPED_TRACE(name_of(c));
    const std::string type = c["filter"];
    Json parameters = member(c, "params");
    if (type == "utilization-filter") {
      parameters = {{"conditions", Json::array()}, {"fallbackOnEmpty", c["fallback_on_empty"]}};
      for (const Json& condition : c["conditions"])
        parameters["conditions"].push_back({{"metric", condition[0]}, {"maxValue", condition[1]}});
    }
    const Json& headrooms = member(c, "headroom_ttft_tpot");
    const std::size_t n = headrooms.is_null() ? c["endpoints"].size() : headrooms.size();
    PluginBench bench(type, parameters, n);
    ASSERT_TRUE(bench.built()) << bench.errors();
    if (!headrooms.is_null()) {
      for (const Json& h : headrooms) {
        bench.stub().latency.emplace_back();
        if (h.is_null()) continue;
        bench.stub().latency.back() = LatencyEstimate{};
        bench.stub().latency.back()->present = true;
        bench.stub().latency.back()->ttft_headroom_ms = h[0];
        bench.stub().latency.back()->tpot_headroom_ms = h[1];
      }
    } else {
      set_endpoints(bench, c["endpoints"]);
    }
    EXPECT_EQ(bench.kept(), c["expected_kept"].get<std::vector<EndpointRow>>());
  }
}

constexpr std::int64_t kNowMs = 10'000;

void set_queue_kv_age(PluginBench& bench, const Json& endpoints) {
  for (const Json& e : endpoints) {
    EndpointInfo info;
    const EndpointId id = bench.table().add(std::move(info));
    if (e.is_null()) continue;
    const auto age = Duration::from_seconds(e[2].get<double>());
    bench.table().set_metrics(id, e[0], 0, e[1],
                              SimTime::zero() + Duration::milliseconds(kNowMs) - age);
  }
}

void set_in_flight(PluginBench& bench, const Json& c) {
  const Json& requests = member(c, "in_flight_requests");
  const Json& tokens = member(c, "in_flight_tokens");
  const Json& both = member(c, "in_flight_requests_tokens");
  const std::size_t n = std::max({requests.size(), tokens.size(), both.size()});
  for (std::size_t i = 0; i < n; ++i) {
    const EndpointRow row = bench.table().add({}).value();
    if (!requests.is_null() && !requests[i].is_null()) bench.load(row, requests[i], 0);
    if (!tokens.is_null()) bench.load(row, 1, tokens[i]);
    if (!both.is_null()) bench.load(row, both[i][0], both[i][1]);
  }
}

Json detector_parameters(const Json& c) {
  Json parameters = c["params"];
  if (parameters.contains("metricsStalenessThreshold_s")) {
    const double ms = parameters["metricsStalenessThreshold_s"].get<double>() * 1000;
    parameters["metricsStalenessThreshold"] = std::to_string(std::llround(ms)) + "ms";
    parameters.erase("metricsStalenessThreshold_s");
  }
  return parameters;
}

TEST(DetectorVectors, AllCases) {
  const SimTime now = SimTime::zero() + Duration::milliseconds(kNowMs);
  for (const Json& c : vector_cases("saturation_detectors")) {
    SCOPED_TRACE(name_of(c));
    if (c.contains("policy")) {
      PluginBench bench(c["policy"], c["params"], 0);
      ASSERT_TRUE(bench.built()) << bench.errors();
      const auto priorities = c["priorities_desc"].get<std::vector<std::int32_t>>();
      std::vector<double> ceilings(priorities.size());
      bench.subject<UsageLimitPolicy>().ceilings(priorities, 0, ceilings);
      for (std::size_t i = 0; i < ceilings.size(); ++i)
        EXPECT_NEAR(ceilings[i], c["expected_ceilings"][i].get<double>(), 1e-12);
      continue;
    }
    PluginBench bench(c["detector"], detector_parameters(c), 0);
    if (c.contains("expected_error")) {
      EXPECT_EQ(bench.built(), !c["expected_error"].get<bool>()) << bench.errors();
      continue;
    }
    ASSERT_TRUE(bench.built()) << bench.errors();
    if (c.contains("endpoints_queue_kv_age"))
      set_queue_kv_age(bench, c["endpoints_queue_kv_age"]);
    else
      set_in_flight(bench, c);
    if (c.contains("expected_reject_probability")) {
      auto& admitter = bench.subject<ProbabilisticAdmitter>();
      const double sat = admitter.saturation(bench.table(), bench.table().candidates());
      EXPECT_NEAR(sat, c["expected_saturation"].get<double>(), 1e-12);
      EXPECT_NEAR(refusal_probability(sat, 5, 300), c["expected_reject_probability"].get<double>(),
                  1e-12);
    } else if (c.contains("expected_saturation")) {
      EXPECT_NEAR(bench.scheduler().saturation(bench.table(), now),
                  c["expected_saturation"].get<double>(), 1e-12);
    } else {
      Cycle cycle;
      Decision decision;
      bench.begin(cycle, {}, decision, now);
      std::vector<EndpointRow> rows(bench.table().candidates().begin(),
                                    bench.table().candidates().end());
      bench.subject<Filter>().filter(cycle, rows);
      EXPECT_EQ(rows.size(), c.at("expected_kept_count").get<std::size_t>());
    }
  }
}

void check_tracked_tokens(const Json& c, Json parameters) {
  parameters["prefixMatchInfoProducerName"] = "approx-prefix-cache-producer";
  PluginBench bench("inflight-load-producer", parameters, 1, {}, {"default"},
                    Json::array({{{"type", "approx-prefix-cache-producer"}}}));
  ASSERT_TRUE(bench.built()) << bench.errors();
  bench.stub().matches = {
      StubData::Match{c["match_blocks"], c["total_blocks"], c["block_size"], {}}};
  RequestView request;
  request.id = 1;
  request.prompt_tokens = c["input_tokens"];
  const Decision d = bench.scheduler().schedule(request, bench.table(), SimTime::zero());
  bench.scheduler().on_routed(request, d, bench.table(), SimTime::zero());
  EXPECT_EQ(bench.scheduler().in_flight()->tokens(0), c["expected"].get<std::int64_t>());
}

/// One request, decided by `profiles` for the endpoints of `rows`, through the case's steps.
void check_lifecycle(const Json& c, const Json& parameters) {
  std::vector<std::string> profiles;
  std::map<std::string, EndpointRow> rows;
  for (const auto& [profile, endpoint] : c["profiles"].items()) {
    profiles.push_back(profile);
    rows.try_emplace(endpoint.get<std::string>(), static_cast<EndpointRow>(rows.size()));
  }
  PluginBench bench("inflight-load-producer", parameters, rows.size(), {}, profiles);
  ASSERT_TRUE(bench.built()) << bench.errors();
  RequestView request;
  request.id = 9;
  request.prompt_tokens = c["input_tokens"];
  Decision decision;
  Cycle cycle;
  bench.begin(cycle, request, decision);
  decision.outcome = Outcome::kRouted;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    decision.profiles[i].state = ProfileState::kOk;
    decision.profiles[i].targets = {rows.at(c["profiles"][profiles[i]].get<std::string>())};
  }
  bench.subject<InFlightLoad>().on_decided(cycle, decision);
  for (const Json& step : c["steps"]) {
    const std::string op = step["op"];
    if (op == "pre_request")
      bench.scheduler().on_routed(request, decision, bench.table(), SimTime::zero());
    else if (op == "first_chunk")
      bench.scheduler().on_first_token(9, SimTime::zero());
    else if (op == "end_of_stream")
      bench.scheduler().on_completed(9, SimTime::zero());
    else
      FAIL() << "unknown step " << op;
    for (const auto& [endpoint, expected] : step["expected"].items()) {
      const InFlightCounts& load = *bench.scheduler().in_flight();
      EXPECT_EQ(load.requests(rows.at(endpoint)), expected["requests"].get<std::int64_t>()) << op;
      EXPECT_EQ(load.tokens(rows.at(endpoint)), expected["tokens"].get<std::int64_t>()) << op;
    }
  }
  EXPECT_EQ(bench.scheduler().in_flight()->tracked_requests(), 0U);
}

TEST(InFlightVectors, AllCases) {
  for (const Json& c : vector_cases("inflight_load_producer")) {
    SCOPED_TRACE(name_of(c));
    const std::string fn = c["fn"];
    const auto optional = [&c](const char* key) {
      const Json& v = member(c, key);
      return v.is_null() ? std::optional<std::int64_t>() : v.get<std::int64_t>();
    };
    if (fn == "estimate_output") {
      EXPECT_EQ(estimate_output_tokens(c["input_tokens"], c["ratio"], optional("client_cap"),
                                       optional("operator_cap")),
                c["expected"].get<std::int64_t>());
      continue;
    }
    if (fn == "uncached_input") {
      EXPECT_EQ(
          uncached_tokens(c["input_tokens"], c["match_blocks"], c["total_blocks"], c["block_size"]),
          c["expected"].get<std::int64_t>());
      continue;
    }
    Json parameters = {{"addEstimatedOutputTokens", c["add_output"]}};
    if (c.contains("ratio")) parameters["outputRatio"] = c["ratio"];
    if (fn == "tracked_tokens") {
      check_tracked_tokens(c, parameters);
    } else {
      ASSERT_EQ(fn, "lifecycle");
      check_lifecycle(c, parameters);
    }
  }
}

// Picks `n` times; counts how often each index is included.
std::vector<int> inclusion(PluginBench& bench, const std::vector<double>& totals, int n,
                           std::size_t expected_count) {
  std::vector<int> counts(totals.size(), 0);
  Cycle cycle;
  Decision decision;
  for (int i = 0; i < n; ++i) {
    RequestView request;
    request.id = static_cast<std::uint64_t>(i);
    bench.begin(cycle, request, decision);
    std::vector<EndpointRow> picked;
    bench.subject<Picker>().pick(cycle, bench.table().candidates(), totals, picked);
    EXPECT_EQ(picked.size(), expected_count);
    for (const EndpointRow r : picked) ++counts[r];
  }
  return counts;
}

TEST(PickerVectors, AllCases) {
  for (const Json& c : vector_cases("pickers")) {
    SCOPED_TRACE(name_of(c));
    if (c.value("fn", "") == "key") {
      EXPECT_DOUBLE_EQ(weighted_random_key(c["u"], c["score"]), c["expected_key"].get<double>());
      continue;
    }
    const auto totals = c["scores"].get<std::vector<double>>();
    PluginBench bench(c["picker"], {{"maxNumOfEndpoints", c["max_num_of_endpoints"]}},
                      totals.size());
    ASSERT_TRUE(bench.built()) << bench.errors();
    if (c.contains("expected_indices_ordered")) {
      for (std::uint64_t id = 0; id < 50; ++id) {
        const std::vector<EndpointRow> picked = bench.picked(totals, id);
        ASSERT_EQ(picked.size(), c["expected_indices_ordered"].size());
        for (std::size_t i = 0; i < picked.size(); ++i) {
          const auto allowed = c["expected_indices_ordered"][i].get<std::vector<EndpointRow>>();
          EXPECT_NE(std::find(allowed.begin(), allowed.end(), picked[i]), allowed.end());
        }
      }
      continue;
    }
    const int n = c.value("iterations", 10000);
    const auto counts = inclusion(bench, totals, n, c["expected_count"]);
    const auto expected = c["expected_inclusion_probability"].get<std::vector<double>>();
    for (std::size_t i = 0; i < totals.size(); ++i) {
      // Five standard errors: far tighter than the file's tolerance, and seeded.
      const double error = 5 * std::sqrt(expected[i] * (1 - expected[i]) / n);
      EXPECT_NEAR(static_cast<double>(counts[i]) / n, expected[i], error) << "index " << i;
    }
  }
}

}  // namespace
}  // namespace routesim::policies
