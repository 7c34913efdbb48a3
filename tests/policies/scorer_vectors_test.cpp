// Every case of the scorers' vector files, through documents and schedulers.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "policies/plugins/active_request.h"
#include "policies/plugins/context_length.h"
#include "policies/plugins/endpoint_attribute.h"
#include "policies/plugins/latency.h"
#include "policies/plugins/lmetric.h"
#include "policies/plugins/topology_affinity.h"
#include "tests/policies/plugin_bench.h"

namespace routesim::policies {
namespace {

using test::member;
using test::name_of;
using test::vector_cases;

void expect_scores(const std::vector<double>& got, const Json& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (expected[i].is_null())
      EXPECT_EQ(got[i], kUnscored) << "endpoint " << i << " must be left out";
    else
      EXPECT_NEAR(got[i], expected[i].get<double>(), tolerance) << "endpoint " << i;
  }
}

void expect_config(const Json& c, const std::string& type, const Json& parameters) {
  PluginBench bench(type, parameters, 1);
  EXPECT_EQ(bench.built(), !c.at("expected_error").get<bool>()) << bench.errors();
}

// Metrics of every endpoint from a list of {key: value}.
void set_metrics(PluginBench& bench, const Json& endpoints) {
  for (std::size_t i = 0; i < endpoints.size(); ++i)
    bench.table().set_metrics(EndpointId(i), endpoints[i].value("waiting_queue_size", 0.0),
                              endpoints[i].value("running_requests_size", 0.0),
                              endpoints[i].value("kv_cache_usage", 0.0), SimTime::zero());
}

TEST(ScorerVectors, QueueRunningAndKvUsage) {
  const std::map<std::string, std::string> files = {
      {"queue_scorer", "queue-scorer"},
      {"running_requests_scorer", "running-requests-size-scorer"},
      {"kv_cache_utilization_scorer", "kv-cache-utilization-scorer"}};
  for (const auto& [file, type] : files) {
    for (const Json& c : vector_cases(file)) {
      SCOPED_TRACE(file + ": " + name_of(c));
      PluginBench bench(type, {}, c["endpoints"].size());
      ASSERT_TRUE(bench.built()) << bench.errors();
      set_metrics(bench, c["endpoints"]);
      expect_scores(bench.scores(), c["expected_scores"], 1e-12);
    }
  }
}

TEST(ScorerVectors, LoadAware) {
  for (const Json& c : vector_cases("load_aware_scorer")) {
    SCOPED_TRACE(name_of(c));
    const Json parameters = c["threshold"].is_null() ? Json() : Json{{"threshold", c["threshold"]}};
    const Json& queue = c["waiting_queue_size"];
    PluginBench bench("load-aware-scorer", parameters, queue.size());
    ASSERT_TRUE(bench.built()) << bench.errors();
    for (std::size_t i = 0; i < queue.size(); ++i)
      bench.table().set_metrics(EndpointId(i), queue[i].get<double>(), 0, 0, SimTime::zero());
    expect_scores(bench.scores(), c["expected_scores"], 1e-12);
  }
}

TEST(ScorerVectors, MulticlusterQueue) {
  for (const Json& c : vector_cases("multicluster_queue_scorer")) {
    SCOPED_TRACE(name_of(c));
    const Json& queue = c["pool_queue_size"];
    PluginBench bench("multicluster-queue-scorer", {}, queue.size(), {}, {"default"},
                      Json::array({{{"type", "multicluster-metrics-extractor"}}}));
    ASSERT_TRUE(bench.built()) << bench.errors();
    for (std::size_t i = 0; i < queue.size(); ++i)
      if (!queue[i].is_null())
        bench.table().set_attribute(std::string(kPoolQueueAttribute), EndpointId(i),
                                    queue[i].get<double>());
    expect_scores(bench.scores(), c["expected_scores"], 1e-12);
  }
}

TEST(ScorerVectors, ActiveRequest) {
  for (const Json& c : vector_cases("active_request_scorer")) {
    SCOPED_TRACE(name_of(c));
    const Json& counts = c["in_flight"];
    PluginBench bench("active-request-scorer", member(c, "params"), counts.size());
    ASSERT_TRUE(bench.built()) << bench.errors();
    for (std::size_t i = 0; i < counts.size(); ++i)
      if (!counts[i].is_null())
        bench.load(static_cast<EndpointRow>(i), counts[i].get<std::int64_t>(), 0);
    expect_scores(bench.scores(), c["expected_scores"], c.value("tolerance", 1e-12));
  }
}

// The scorer of older eras counts by itself; endpoints that are no candidates are made not ready.
class LegacyActiveRequest {
 public:
  explicit LegacyActiveRequest(const Json& parameters)
      : bench("active-request-scorer", parameters, 4,
              {.era = Era::kV0_5_0, .distribution = {}, .registry = nullptr}) {}
  EndpointRow row(const std::string& pod) {
    return rows.try_emplace(pod, static_cast<EndpointRow>(rows.size())).first->second;
  }
  void send(std::uint64_t id, EndpointRow r, SimTime now) {
    RequestView request;
    request.id = id;
    Decision decision;
    decision.outcome = Outcome::kRouted;
    decision.primary = EndpointId(r);
    decision.profiles.resize(1);
    decision.profiles[0].state = ProfileState::kOk;
    decision.profiles[0].targets = {r};
    bench.scheduler().on_routed(request, decision, bench.table(), now);
  }
  PluginBench bench;
  std::map<std::string, EndpointRow> rows;
};

TEST(ScorerVectors, ActiveRequestWithOwnCounters) {
  for (const Json& c : vector_cases("active_request_scorer_legacy")) {
    SCOPED_TRACE(name_of(c));
    LegacyActiveRequest legacy(member(c, "params"));
    ASSERT_TRUE(legacy.bench.built()) << legacy.bench.errors();
    if (c.contains("expected_error")) {
      EXPECT_FALSE(c["expected_error"].get<bool>());
      // Falling back to the two-minute default shows in when a request stops counting.
      legacy.send(1, 0, SimTime::zero());
      legacy.bench.scheduler().advance(SimTime::zero() + Duration::seconds(119));
      EXPECT_EQ(legacy.bench.scores()[0], 0.0);
      legacy.bench.scheduler().advance(SimTime::zero() + Duration::seconds(120));
      EXPECT_EQ(legacy.bench.scores()[0], 1.0);
      continue;
    }
    if (c.contains("operations")) {
      SimTime now;
      for (const Json& op : c["operations"]) {
        const std::string kind = op["op"];
        if (kind == "pre_request")
          for (const auto& [profile, pod] : op["targets"].items())
            legacy.send(1, legacy.row(pod.get<std::string>()), now);
        else if (kind == "complete")
          legacy.bench.scheduler().on_completed(1, now);
        else if (kind == "advance")
          now += Duration::seconds(op["seconds"].get<std::int64_t>());
        else if (kind == "expire")
          legacy.bench.scheduler().advance(now);
        else
          FAIL() << "unknown operation " << kind;
      }
      ASSERT_TRUE(c["expected_counters"].empty());
      for (const double s : legacy.bench.scores()) EXPECT_EQ(s, 1.0);
      continue;
    }
    std::uint64_t id = 1;
    for (const Json& pod : c["candidates"]) legacy.row(pod.get<std::string>());
    const std::size_t candidates = legacy.rows.size();
    for (const auto& [pod, count] : c["counters"].items())
      for (int i = 0; i < count.get<int>(); ++i)
        legacy.send(id++, legacy.row(pod), SimTime::zero());
    for (std::size_t r = candidates; r < 4; ++r)
      legacy.bench.table().set_ready(EndpointId(r), false);
    expect_scores(legacy.bench.scores(), c["expected_scores"], 1e-12);
  }
}

TEST(ScorerVectors, TokenLoad) {
  for (const Json& c : vector_cases("token_load_scorer")) {
    SCOPED_TRACE(name_of(c));
    const Json& tokens = c["in_flight_tokens"];
    const Json& uncached = c["uncached_request_tokens"];
    const Json parameters =
        c["threshold"].is_null() ? Json() : Json{{"queueThresholdTokens", c["threshold"]}};
    PluginBench bench("token-load-scorer", parameters, tokens.size(), {}, {"default"},
                      Json::array({{{"type", "inflight-load-producer"}}}));
    ASSERT_TRUE(bench.built()) << bench.errors();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      ASSERT_EQ(uncached[i], uncached[0]) << "one request has one uncached length here";
      bench.load(static_cast<EndpointRow>(i), 1, tokens[i].get<std::int64_t>());
    }
    RequestView request;
    request.prompt_tokens = uncached[0].get<std::int64_t>();
    expect_scores(bench.scores(request), c["expected_scores"], 1e-12);
  }
}

TEST(ScorerVectors, PrefixCache) {
  for (const Json& c : vector_cases("prefix_cache_scorer")) {
    SCOPED_TRACE(name_of(c));
    if (c.contains("expected_error")) {
      expect_config(c, "prefix-cache-scorer", c["params"]);
      continue;
    }
    const Json& info = c["match_info"];
    PluginBench bench("prefix-cache-scorer", c["params"], info.size());
    ASSERT_TRUE(bench.built()) << bench.errors();
    for (const Json& m : info)
      bench.stub().matches.push_back(m.is_null() ? std::optional<StubData::Match>()
                                                 : StubData::Match{m[0].get<std::int64_t>(),
                                                                   m[1].get<std::int64_t>(),
                                                                   m[2].get<std::int64_t>(),
                                                                   {}});
    expect_scores(bench.scores(), c["expected_scores"], 1e-12);
  }
}

TEST(ScorerVectors, LMetric) {
  for (const Json& c : vector_cases("lmetric_scorer")) {
    SCOPED_TRACE(name_of(c));
    // An endpoint without info cannot be told apart in one shared total, so those cases go through
    // the formula; the others through the plugin.
    const Json& endpoints = c["endpoints"];
    const bool all_known =
        std::none_of(endpoints.begin(), endpoints.end(), [](const Json& e) { return e.is_null(); });
    std::vector<double> costs;
    for (const Json& e : endpoints)
      costs.push_back(e.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                  : lmetric_cost(e["match"], e["total"], e["bs"], e["requests"]));
    std::vector<double> scores(costs.size());
    attribute_scores(costs, true, std::nullopt, 0, scores);
    expect_scores(scores, c["expected_scores"], 1e-9);
    if (!all_known) continue;
    PluginBench bench("lmetric-scorer", {}, endpoints.size());
    ASSERT_TRUE(bench.built()) << bench.errors();
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
      const Json& e = endpoints[i];
      bench.stub().matches.push_back(StubData::Match{e["match"], e["total"], e["bs"], {}});
      bench.load(static_cast<EndpointRow>(i), e["requests"].get<std::int64_t>(), 0);
    }
    expect_scores(bench.scores(), c["expected_scores"], 1e-9);
  }
}

TEST(ScorerVectors, LoraAffinity) {
  for (const Json& c : vector_cases("lora_affinity")) {
    SCOPED_TRACE(name_of(c));
    const Json& endpoints = c["endpoints"];
    PluginBench bench("lora-affinity-scorer", {}, endpoints.size());
    ASSERT_TRUE(bench.built()) << bench.errors();
    for (std::size_t i = 0; i < endpoints.size(); ++i)
      bench.table().set_lora(EndpointId(i),
                             {endpoints[i]["active"].get<std::vector<std::string>>(),
                              endpoints[i]["waiting"].get<std::vector<std::string>>(),
                              endpoints[i]["max_active"].get<std::int64_t>()});
    const std::string model = c["target_model"];
    RequestView request;
    request.model = model;
    expect_scores(bench.scores(request), c["expected_scores"], 0);
  }
}

TEST(ScorerVectors, ContextLength) {
  for (const Json& c : vector_cases("context_length_aware")) {
    SCOPED_TRACE(name_of(c));
    const std::string fn = c.value("fn", "score");
    if (fn == "config") {
      expect_config(c, "context-length-aware", c["params"]);
      continue;
    }
    if (fn == "parse") {
      const auto range = parse_context_range(c["label"].get<std::string>());
      ASSERT_EQ(!range.has_value(), c["expected_error"].get<bool>());
      if (!range) continue;
      EXPECT_EQ(range->min, c["expected"][0].get<std::int64_t>());
      EXPECT_EQ(range->max, c["expected"][1].get<std::int64_t>());
      continue;
    }
    const Json& labels = c["labels"];
    PluginBench bench("context-length-aware", {{"enableFiltering", fn == "filter"}}, labels.size());
    ASSERT_TRUE(bench.built()) << bench.errors();
    for (std::size_t i = 0; i < labels.size(); ++i)
      if (!labels[i].is_null())
        bench.table().mutable_info(EndpointId(i)).labels["llm-d.ai/context-length-range"] =
            labels[i].get<std::string>();
    RequestView request;
    if (!c["context_length"].is_null()) request.prompt_tokens = c["context_length"];
    if (fn == "filter") {
      std::vector<bool> kept(labels.size(), false);
      for (const EndpointRow r : bench.kept(request)) kept[r] = true;
      EXPECT_EQ(kept, c["expected_kept"].get<std::vector<bool>>());
      continue;
    }
    ASSERT_EQ(fn, "score");
    expect_scores(bench.scores(request), c["expected_scores"], 1e-9);
  }
}

// llm-d-router's contextlengthaware: outside a range 0.3 / (1 + distance / 1,000); inside
// 0.3 + 0.7 x (narrowness + room), narrowness = 0.7 / (1 + width / 10,000) and
// room = 0.3 x (max - tokens) / width.
TEST(ScorerVectors, EachTermOfContextLengthByHand) {
  // Width 10,000: narrowness 0.35; a quarter used: room 0.3 x 0.75 = 0.225.
  EXPECT_NEAR(context_range_score({0, 10'000}, 2'500), 0.3 + 0.7 * 0.575, 1e-12);
  // Full: no room. At the upper end the range still holds.
  EXPECT_NEAR(context_range_score({0, 10'000}, 10'000), 0.3 + 0.7 * 0.35, 1e-12);
  // Width 30,000: narrowness 0.7 / 4 = 0.175; empty: room 0.3. The lower end holds, too.
  EXPECT_NEAR(context_range_score({1'000, 31'000}, 1'000), 0.3 + 0.7 * 0.475, 1e-12);
  EXPECT_EQ(context_range_score({7, 7}, 7), 1.0) << "a range of one length";
  EXPECT_NEAR(context_range_score({2'000, 4'000}, 1'000), 0.3 / 2, 1e-12) << "1,000 below";
  EXPECT_NEAR(context_range_score({2'000, 4'000}, 4'500), 0.3 / 1.5, 1e-12) << "500 above";
  PluginBench bench("context-length-aware", Json::object(), 2);
  ASSERT_TRUE(bench.built()) << bench.errors();
  bench.table().mutable_info(EndpointId(1)).labels["llm-d.ai/context-length-range"] = "0-10000";
  RequestView request;
  request.prompt_tokens = 2'500;
  EXPECT_EQ(bench.scores(request)[0], 0.5) << "an endpoint without the label";
  EXPECT_NEAR(bench.scores(request)[1], 0.7025, 1e-12);
}

TEST(ScorerVectors, Latency) {
  for (const Json& c : vector_cases("latency_scorer")) {
    SCOPED_TRACE(name_of(c));
    const Json& endpoints = c["endpoints"];
    Json parameters;
    if (c.contains("params"))
      parameters = {{"headroomSelectionStrategy", c["params"].at("strategy")}};
    PluginBench bench("latency-scorer", parameters, endpoints.size());
    ASSERT_TRUE(bench.built()) << bench.errors();
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
      const Json& e = endpoints[i];
      bench.table().set_metrics(EndpointId(i), e["queue"].get<double>(), 0, e["kv"].get<double>(),
                                SimTime::zero());
      constexpr std::int64_t kTotal = 1000;
      const double prefix = e.value("prefix", 0.0);
      bench.stub().matches.push_back(
          StubData::Match{std::llround(prefix * static_cast<double>(kTotal)), kTotal, 1, {}});
      bench.stub().latency.emplace_back();
      if (!e.contains("pred")) continue;
      LatencyEstimate estimate;
      estimate.present = true;
      estimate.ttft_headroom_ms = e["pred"]["ttft_headroom"];
      estimate.tpot_headroom_ms = e["pred"]["tpot_headroom"];
      estimate.dispatched = e["pred"]["dispatched"];
      bench.stub().latency.back() = estimate;
    }
    expect_scores(bench.scores(), c["expected_scores"], 1e-9);
  }
}

TEST(ScorerVectors, Misc) {
  for (const Json& c : vector_cases("misc_scorers")) {
    SCOPED_TRACE(name_of(c));
    const std::string type = c["component"];
    if (type == "mm-embeddings-cache-scorer") {
      ASSERT_TRUE(c["request_items"].empty());
      PluginBench bench(type, {}, c["matched"].size());
      ASSERT_TRUE(bench.built()) << bench.errors();
      std::vector<double> cached;
      for (const Json& m : c["matched"]) {
        cached.push_back(0);
        for (const Json& item : m) cached.back() += item[1].get<double>();
      }
      RequestView request;
      request.cached_item_size = cached;
      expect_scores(bench.scores(request), c["expected_scores"], 0);
    } else if (type == "endpoint-attribute-scorer") {
      const Json parameters = {
          {"attributeKey", "load"},
          {"algorithm",
           {{"type", c["algorithm"]},
            {"normalization", {{c["normalization"].get<std::string>(), Json::object()}}}}}};
      PluginBench bench(type, parameters, c["values"].size());
      ASSERT_TRUE(bench.built()) << bench.errors();
      for (std::size_t i = 0; i < c["values"].size(); ++i)
        if (!c["values"][i].is_null())
          bench.table().set_attribute("core-metrics-extractor/load", EndpointId(i),
                                      c["values"][i].get<double>());
      expect_scores(bench.scores(), c["expected_scores"], 1e-12);
    } else if (type == "topology-affinity-scorer") {
      const auto place = [](const Json& j) { return Topology{j[0], j[1], j[2], j[3]}; };
      const TopologyLevel level = shared_level(place(c["peer_host_rack_zone_region"]),
                                               place(c["candidate_host_rack_zone_region"]));
      EXPECT_EQ(kTopologyLevelNames[static_cast<std::size_t>(level)],
                c["expected_level"].get<std::string>());
      EXPECT_EQ(topology_score(level), c["expected_score"].get<double>());
    } else {
      FAIL() << "unknown component " << type;
    }
  }
}

}  // namespace
}  // namespace routesim::policies
