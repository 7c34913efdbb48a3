// What llm-d's router got in the summer of 2026.
#include <gtest/gtest.h>

#include "policies/flow/flow_control.h"
#include "policies/flow/reclamation.h"
#include "policies/plugins/burst_prefix.h"
#include "policies/plugins/latency_observation.h"
#include "policies/plugins/ttft_observer.h"
#include "tests/policies/scheduler_fixture.h"
#include "tests/policies/vector_file.h"

namespace routesim::policies {
namespace {

// Plugins and keys that llm-d's router got in the summer of 2026, through its own documents.

SimTime after_ms(std::int64_t ms) { return SimTime::zero() + Duration::milliseconds(ms); }

/// Keys below `path` that the document gives and nothing reads.
std::vector<std::string> idle_keys(const Loaded& loaded, const std::string& path) {
  std::vector<std::string> idle;
  for (const KeyUse& use : loaded.diagnostics.keys())
    if (use.path.starts_with(path) && use.fate != Fate::kUsed) idle.push_back(use.path);
  return idle;
}

using Strings = std::vector<std::string>;

// llm-d-router deploy/config/epp-burst-prefix-cache-config.yaml at ebab6879.
std::string burst_document(const std::string& more = "") {
  return document(
      "- type: token-producer\n  parameters:\n    modelName: hf-repo/model-name\n    vllm:\n"
      "      url: http://vllm.default.svc.cluster.local:8000\n"
      "- type: single-profile-handler\n- type: decode-filter\n"
      "- type: burst-prefix-cache-producer\n  parameters:\n    windowDurationMs: 100\n"
      "    maxPerReplica: -1\n    minColocateBlocks: 0\n" +
          more +
          "- type: prefix-cache-scorer\n  parameters:\n"
          "    prefixMatchInfoProducerName: burst-prefix-cache-producer\n"
          "- type: load-aware-scorer\n- type: max-score-picker\n",
      "  - pluginRef: decode-filter\n  - pluginRef: prefix-cache-scorer\n    weight: 2.0\n"
      "  - pluginRef: load-aware-scorer\n    weight: 1.0\n  - pluginRef: max-score-picker\n");
}

class Burst : public testing::Test {
 protected:
  explicit Burst(const std::string& more = "") : loaded(burst_document(more)) {}
  Scheduler& scheduler() { return *loaded.scheduler; }
  RequestView request(std::uint64_t id, const std::vector<std::uint64_t>& hashes) const {
    return {.id = id, .prompt_tokens = 64, .approx_hashes = hashes};
  }
  /// When the request may be decided, asked `ms` after the start.
  SimTime ready(const RequestView& request, std::int64_t ms) {
    scheduler().advance(after_ms(ms));
    return scheduler().ready_at(request, table, after_ms(ms));
  }
  Decision decide(const RequestView& request, std::int64_t ms) {
    EXPECT_EQ(ready(request, ms), after_ms(ms));
    return scheduler().schedule(request, table, after_ms(ms));
  }
  Loaded loaded;
  EndpointTable table = make_endpoints(4);
  const std::vector<std::uint64_t> a = {1, 2, 3}, b = {7, 8}, alone = {9};
};

TEST_F(Burst, TheGuidesFileLoadsWholly) {
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  EXPECT_EQ(loaded.text(), "");
  EXPECT_EQ(idle_keys(loaded, "plugins[3]"), Strings());
  EXPECT_EQ(idle_keys(loaded, "plugins[4]"), Strings());
  EXPECT_TRUE(scheduler().gathers());
  EXPECT_TRUE(scheduler().needs().approx_hashes);
  EXPECT_EQ(scheduler().approx_scheme(table).block_size, 64);
}

TEST_F(Burst, EqualPromptsOfOneWindowShareAServer) {
  table.set_metrics(EndpointId(0), 0, 3, 0, SimTime::zero());  // Running: not the first choice.
  EXPECT_EQ(ready(request(1, a), 0), after_ms(100));
  EXPECT_EQ(ready(request(2, alone), 30), after_ms(100));
  EXPECT_EQ(ready(request(3, a), 60), after_ms(100)) << "the window of the first";
  EXPECT_EQ(ready(request(3, a), 70), after_ms(100)) << "asked again";
  EXPECT_EQ(ready(request(4, b), 99), after_ms(100));
  EXPECT_EQ(ready(request(5, b), 99), after_ms(100));
  EXPECT_EQ(decide(request(1, a), 100).primary, EndpointId(1));
  EXPECT_EQ(decide(request(3, a), 100).primary, EndpointId(1));
  EXPECT_EQ(decide(request(4, b), 100).primary, EndpointId(2));
  EXPECT_EQ(decide(request(5, b), 100).primary, EndpointId(2));
  Explanation why;
  scheduler().explain(request(2, alone), table, after_ms(100), why);
  for (const double score : why.profiles.at(0).scorers.at(0).scores) EXPECT_EQ(score, 0.0);
  EXPECT_EQ(ready(request(6, a), 100), after_ms(200)) << "the next window";
}

class SmallBurst : public Burst {
 protected:
  SmallBurst() : Burst("    maxBatchSize: 2\n    blockSizeTokens: 16\n") {}
};

TEST_F(SmallBurst, ARequestAboveTheBatchGoesAtOnceWithoutAffinity) {
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  EXPECT_EQ(scheduler().approx_scheme(table).block_size, 16) << "smaller than an index has";
  EXPECT_EQ(ready(request(1, a), 0), after_ms(100));
  EXPECT_EQ(ready(request(2, a), 0), after_ms(100));
  EXPECT_EQ(ready(request(3, a), 0), after_ms(0));
  table.set_metrics(EndpointId(0), 9, 0, 0, SimTime::zero());
  EXPECT_NE(decide(request(3, a), 0).primary, EndpointId(0)) << "by load alone";
}

TEST(BurstParameters, AreCheckedAsUpstream) {
  for (const char* wrong :
       {"    windowDurationMs: 0\n", "    windowDurationMs: 10001\n", "    maxPerReplica: 0\n",
        "    blockSizeTokens: 0\n", "    maxPrefixTokensToMatch: 63\n", "    maxBatchSize: 0\n",
        "    minColocateBlocks: -1\n", "    balanceBy: bytes\n"}) {
    std::string text = burst_document();
    const std::string key = std::string(wrong).substr(0, std::string(wrong).find(':'));
    const std::size_t given = text.find(key + ":");
    if (given != std::string::npos) text.erase(given, text.find('\n', given) - given + 1);
    text.insert(text.find("- type: prefix-cache-scorer"), wrong);
    EXPECT_FALSE(Loaded(text).ok()) << wrong;
  }
}

// The README of the observer in llm-d-router pull request 2371.
std::string observing(const std::string& suffix, bool is_source) {
  return document("- type: latency-observer-producer" + suffix +
                      "\n  name: ttft-observer\n  parameters:\n"
                      "    intervalDuration: 1s\n    minRequests: 2\n    bucketDuration: 1m\n"
                      "    bucketHistorySize: 1000\n"
                      "- type: latency-observation-scorer" +
                      suffix +
                      "\n  name: ttft\n  parameters:\n    explorationRate: 0\n"
                      "    ttftPercentilesProducerName: ttft-observer\n",
                  "  - pluginRef: ttft\n") +
         (is_source ? "dataLayer:\n  sources:\n  - pluginRef: ttft-observer\n" : "");
}

/// Scores of two endpoints `ms` after the start.
std::vector<double> scores_at(Scheduler& scheduler, const EndpointTable& table, std::int64_t ms) {
  Explanation why;
  scheduler.advance(after_ms(ms));
  scheduler.explain({.id = 99}, table, after_ms(ms), why);
  return why.profiles.at(0).scorers.at(0).scores;
}

/// Sends a request to `row` and answers it after `ttft_ms`.
void answer(Scheduler& scheduler, const EndpointTable& table, EndpointRow row, std::int64_t ttft_ms,
            bool streaming = true) {
  static std::uint64_t id = 1000;
  Decision d;
  d.outcome = Outcome::kRouted;
  d.primary = EndpointId(row);
  d.profiles.resize(1);
  d.profiles[0] = {.state = ProfileState::kOk, .targets = {row}};
  scheduler.on_routed({.id = ++id, .streaming = streaming}, d, table, SimTime::zero());
  scheduler.on_first_token(id, after_ms(ttft_ms));
  scheduler.on_completed(id, after_ms(ttft_ms));
}

using Scores = std::vector<double>;

TEST(LatencyObserver, PublishesAtTheTicksOfItsInterval) {
  for (const char* suffix : {"", "-hub"}) {
    SCOPED_TRACE(suffix);
    const Loaded loaded(observing(suffix, true));
    ASSERT_TRUE(loaded.ok()) << loaded.text();
    EXPECT_EQ(idle_keys(loaded, "plugins"), Strings());
    Scheduler& s = *loaded.scheduler;
    const EndpointTable table = make_endpoints(2);
    answer(s, table, 0, 400);
    answer(s, table, 0, 400);
    answer(s, table, 1, 100);
    EXPECT_EQ(scores_at(s, table, 999), (Scores{1, 1})) << "nothing is published";
    EXPECT_EQ(scores_at(s, table, 1000), (Scores{1, 1})) << "one is cold and seeded at the best";
    answer(s, table, 1, 100);
    EXPECT_EQ(scores_at(s, table, 1999), (Scores{1, 1}));
    EXPECT_EQ(scores_at(s, table, 2000), (Scores{0, 1}));
    s.on_endpoint_removed(0, table, after_ms(2000));
    EXPECT_EQ(scores_at(s, table, 3000), (Scores{1, 1})) << "its successor is cold";
  }
}

TEST(LatencyObserver, LearnsNothingWithoutTicksOrStreams) {
  for (const bool is_source : {false, true}) {
    const Loaded loaded(observing("-hub", is_source));
    ASSERT_TRUE(loaded.ok()) << loaded.text();
    const EndpointTable table = make_endpoints(2);
    for (int i = 0; i < 4; ++i) {
      answer(*loaded.scheduler, table, 0, 400, !is_source);
      answer(*loaded.scheduler, table, 1, 100, !is_source);
    }
    EXPECT_EQ(scores_at(*loaded.scheduler, table, 5000), (Scores{1, 1}));
  }
}

TEST(LatencyObserver, ItsIntervalIsInStepsOf50Ms) {
  std::string text = observing("-hub", true);
  text.replace(text.find("intervalDuration: 1s"), 20, "intervalDuration: 120ms");
  const Loaded loaded(text);
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  const EndpointTable table = make_endpoints(2);
  for (const EndpointRow row : {0U, 0U, 1U, 1U})
    answer(*loaded.scheduler, table, row, 10 + 10 * row);
  EXPECT_EQ(scores_at(*loaded.scheduler, table, 99), (Scores{1, 1}));
  EXPECT_EQ(scores_at(*loaded.scheduler, table, 100), (Scores{1, 0}));
}

// The example in llm-d-router pkg/epp/framework/plugins/README.md, with profiles.
std::string hub(bool extracts) {
  return std::string(
             "apiVersion: llm-d.ai/v1\nkind: EndpointPickerConfig\nplugins:\n"
             "- type: multicluster-file-discovery\n  name: discovery\n  parameters:\n"
             "    path: /etc/epp/clusters.yaml\n"
             "- type: multicluster-metrics-data-source\n  name: metrics-source\n  parameters:\n"
             "    scheme: https\n    caCertPath: /etc/epp/tls/ca.crt\n") +
         (extracts ? "- type: multicluster-metrics-extractor\n  name: metrics-extractor\n" : "") +
         "- type: multicluster-session-affinity-filter\n  name: session-affinity\n"
         "- type: multicluster-kv-cache-utilization-scorer\n  name: kv-cache\n"
         "- type: multicluster-queue-scorer\n  name: queue\n"
         "- type: multicluster-approx-prefix-cache-producer\n  name: history\n"
         "- type: multicluster-prefix-cache-scorer\n  name: prefix\n  parameters:\n"
         "    prefixMatchInfoProducerName: history\n"
         "- type: max-score-picker\n- type: single-profile-handler\n"
         "schedulingProfiles:\n- name: default\n  plugins:\n  - pluginRef: session-affinity\n"
         "  - pluginRef: kv-cache\n  - pluginRef: queue\n  - pluginRef: prefix\n"
         "  - pluginRef: max-score-picker\n"
         "dataLayer:\n  discovery:\n    endpoints:\n      pluginRef: discovery\n  sources:\n"
         "  - pluginRef: metrics-source\n" +
         (extracts ? "    extractors:\n    - pluginRef: metrics-extractor\n" : "");
}

TEST(Multicluster, TheDocumentedHubLoadsAndDecidesByTheMeansOfPools) {
  const Loaded loaded(hub(true));
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  EXPECT_EQ(loaded.text(), "");
  EXPECT_TRUE(loaded.scheduler->needs().pool_metrics);
  EndpointTable table = make_endpoints(3);
  for (std::uint32_t cluster = 0; cluster < 3; ++cluster) {
    table.set_attribute(std::string(kPoolQueueAttribute), EndpointId(cluster), 4.0 * (3 - cluster));
    table.set_attribute(std::string(kPoolKvAttribute), EndpointId(cluster), 0.5);
  }
  const RequestView first{.id = 1, .model = "m"};
  EXPECT_EQ(loaded.scheduler->schedule(first, table, SimTime::zero()).primary, EndpointId(2));
  // A prompt that a cluster has seen is worth as much as the shortest queue: 0.5 + 0 + 1 at 0.
  const std::vector<std::uint64_t> hashes = {1, 2, 3, 4};
  RequestView known{.id = 2, .model = "m", .prompt_tokens = 256, .approx_hashes = hashes};
  Decision sent;
  sent.outcome = Outcome::kRouted;
  sent.primary = EndpointId(1);
  loaded.scheduler->on_routed(known, sent, table, SimTime::zero());
  Explanation why;
  loaded.scheduler->explain(known, table, SimTime::zero(), why);
  ASSERT_EQ(why.profiles.at(0).scorers.size(), 3u);
  EXPECT_EQ(why.profiles.at(0).scorers.at(0).scores, (Scores{0.5, 0.5, 0.5}));
  EXPECT_EQ(why.profiles.at(0).scorers.at(1).scores, (Scores{0, 0.5, 1}));
  EXPECT_EQ(why.profiles.at(0).scorers.at(2).scores, (Scores{0, 1, 0}));
}

TEST(Multicluster, ScorersWithoutAnExtractorDoNotLoad) {
  const Loaded loaded(hub(false));
  EXPECT_FALSE(loaded.ok());
  EXPECT_TRUE(loaded.mentions("needs a multicluster-metrics-extractor")) << loaded.text();
}

TEST(Eviction, TheGuidesValuesLoadWholly) {
  const Loaded loaded(
      read_repository_file("tests/policies/data/llm-d-flow-control-evictable.values.yaml"));
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  EXPECT_EQ(loaded.text(), "");
  EXPECT_TRUE(loaded.config->flow_control.evicts);
  EXPECT_EQ(idle_keys(loaded, "flowControl"), Strings());
}

/// One endpoint with room for two requests, both of priority -1 and running.
struct Evicting {
  explicit Evicting(const std::string& detector) {
    scheduler = make_scheduler(
        document("- type: queue-scorer\n" + detector, "  - pluginRef: queue-scorer\n") +
        "featureGates: [flowControl]\nflowControl:\n  enableEviction: true\n"
        "  saturationDetector:\n    pluginRef: d\n");
    control.emplace(*scheduler);
    for (const std::uint64_t id : {1U, 2U}) {
      Decision d;
      d.outcome = Outcome::kRouted;
      d.primary = EndpointId(0);
      d.profiles.resize(1);
      d.profiles[0] = {.state = ProfileState::kOk, .targets = {0}};
      scheduler->on_routed({.id = id}, d, table, SimTime::zero());
      control->track(id, -1);
    }
  }
  void end(std::uint64_t id, std::int64_t ms) {
    scheduler->on_completed(id, after_ms(ms));
    control->end(id, after_ms(ms));
  }
  void put(std::uint64_t id, std::int32_t priority) {
    QueuedRequest r;
    r.id = id;
    r.priority = priority;
    ASSERT_EQ(control->enqueue(r, table, SimTime::zero()), 0);
  }
  std::vector<std::uint64_t> victims(std::int64_t ms) {
    EXPECT_FALSE(control->dispatch(table, after_ms(ms)));
    return control->take_victims();
  }
  std::unique_ptr<Scheduler> scheduler;
  std::optional<FlowControl> control;
  EndpointTable table = make_endpoints(1);
};

using Ids = std::vector<std::uint64_t>;

TEST(Eviction, TheNewestGivesWayToAWaitingRequestAboveIt) {
  Evicting e("- name: d\n  type: concurrency-detector\n  parameters: {maxConcurrency: 2}\n");
  EXPECT_EQ(e.victims(0), Ids()) << "nobody waits";
  e.put(10, -1);
  EXPECT_EQ(e.victims(0), Ids()) << "who waits is no better";
  e.put(11, 0);
  EXPECT_EQ(e.victims(0), Ids{2});
  EXPECT_EQ(e.victims(0), Ids()) << "it has not ended";
  e.end(2, 5);
  EXPECT_EQ(e.control->dispatch(e.table, after_ms(5)), 11U);
}

TEST(Eviction, WaitsForTheSensorToShowTheRoom) {
  Evicting counted("- name: d\n  type: concurrency-detector\n  parameters: {maxConcurrency: 1}\n");
  counted.put(10, 0);
  EXPECT_EQ(counted.victims(0), Ids{2}) << "2 of 1: one too many";
  counted.end(2, 0);
  EXPECT_EQ(counted.victims(9), Ids());
  EXPECT_EQ(counted.victims(10), Ids{1}) << "10 ms later, 1 of 1 is full";
  Evicting scraped("- name: d\n  type: utilization-detector\n");
  scraped.table.set_metrics(EndpointId(0), 5, 0, 0, SimTime::zero());
  scraped.put(10, 0);
  EXPECT_EQ(scraped.victims(0), Ids{2}) << "at the boundary one goes";
  scraped.end(2, 0);
  scraped.table.set_metrics(EndpointId(0), 5, 0, 0, after_ms(2299));
  EXPECT_EQ(scraped.victims(2299), Ids()) << "50 ms + 2 s + 250 ms of grace";
  scraped.table.set_metrics(EndpointId(0), 5, 0, 0, after_ms(2300));
  EXPECT_EQ(scraped.victims(2300), Ids{1});
}

// Vectors of what llm-d's router got in the summer of 2026: observed latencies, bursts, and
// eviction of requests in flight.

using test::Json;
using test::name_of;
using test::vector_cases;

constexpr double kTolerance = 1e-9;

TtftSnapshot snapshot_of(const Json& j) {
  return {.floor = j["floor"],
          .window_floor = j["window_floor"],
          .low = j["low"],
          .typical = j["typical"],
          .in_flight_at_low = j["in_flight_at_low"],
          .in_flight_at_typical = j["in_flight_at_typical"],
          .recent = j["recent"],
          .observations = j["observations"],
          .threshold = j["threshold"]};
}

void expect_prediction(const Json& c) {
  const ExpectedTtft got = expected_ttft(snapshot_of(c["snapshot"]), c["in_flight"], 2);
  const Json& expected = c["expected"];
  EXPECT_EQ(got.has_floor, expected["has_floor"].get<bool>());
  EXPECT_EQ(got.has_points, expected["has_points"].get<bool>());
  EXPECT_NEAR(got.seconds, expected["seconds"].get<double>(), kTolerance);
}

void expect_observation_scores(const Json& c) {
  const Json& params = c["params"];
  LatencyObservationParameters p;
  p.exploration_rate = params["explorationRate"];
  p.min_in_flight_gap = params["minInflightGap"];
  p.round_step_s = params["roundTTFTStep"];
  std::vector<ExpectedTtft> expected;
  for (const Json& e : c["endpoints"])
    expected.push_back(
        expected_ttft(snapshot_of(e["snapshot"]), e["in_flight"], p.min_in_flight_gap));
  std::size_t drawn = 0;
  std::vector<double> scores(expected.size());
  latency_observation_scores(
      expected, p, [&] { return c["draws"].at(drawn++).get<double>(); }, scores);
  for (std::size_t i = 0; i < scores.size(); ++i)
    EXPECT_NEAR(scores[i], c["expected_scores"][i].get<double>(), kTolerance) << "endpoint " << i;
}

TEST(LatencyObservationVectors, AllCases) {
  for (const Json& c : vector_cases("latency_observation_scorer")) {
    SCOPED_TRACE(name_of(c));
    if (c["kind"] == "predict")
      expect_prediction(c);
    else
      expect_observation_scores(c);
  }
}

TtftObserverParameters observer_parameters(const Json& j) {
  TtftObserverParameters p;
  p.window_size = j["windowSize"];
  p.max_age = Duration::seconds(j["maxObservationAge_s"].get<std::int64_t>());
  p.max_requests = j["maxRequests"];
  p.min_requests = j["minRequests"];
  p.low_percentile = j["lowPercentile"];
  p.typical_percentile = j["typicalPercentile"];
  p.bucket = Duration::seconds(j["bucketDuration_s"].get<std::int64_t>());
  p.bucket_history = j["bucketHistorySize"];
  return p;
}

SimTime at_ms(const Json& ms) {
  return SimTime::zero() + Duration::milliseconds(ms.get<std::int64_t>());
}

void expect_snapshot(const TtftSnapshot& got, const Json& expected) {
  const TtftSnapshot want = snapshot_of(expected);
  EXPECT_NEAR(got.floor, want.floor, kTolerance);
  EXPECT_NEAR(got.window_floor, want.window_floor, kTolerance);
  EXPECT_NEAR(got.low, want.low, kTolerance);
  EXPECT_NEAR(got.typical, want.typical, kTolerance);
  EXPECT_NEAR(got.in_flight_at_low, want.in_flight_at_low, kTolerance);
  EXPECT_NEAR(got.in_flight_at_typical, want.in_flight_at_typical, kTolerance);
  EXPECT_EQ(got.recent, want.recent);
  EXPECT_EQ(got.observations, want.observations);
}

TEST(TtftHistoryVectors, AllCases) {
  for (const Json& c : vector_cases("latency_observer_producer")) {
    SCOPED_TRACE(name_of(c));
    const TtftObserverParameters p = observer_parameters(c["params"]);
    TtftHistory history;
    std::size_t flushes = 0;
    for (const Json& e : c["events"]) {
      if (e.contains("seen")) {
        const Json& seen = e["seen"];
        history.add({seen["ttft_s"], seen["in_flight"], at_ms(seen["at_ms"])}, p.window_size);
        continue;
      }
      const SimTime now = at_ms(e["flush_ms"]);
      history.roll(now, p);
      SCOPED_TRACE("flush " + std::to_string(flushes));
      expect_snapshot(history.snapshot(now, p), c["expected"].at(flushes++));
    }
    EXPECT_EQ(flushes, c["expected"].size());
  }
}

TEST(BurstVectors, AllCases) {
  for (const Json& c : vector_cases("burst_prefix_cache_producer")) {
    SCOPED_TRACE(name_of(c));
    std::vector<std::vector<std::uint64_t>> prompts;
    for (const Json& p : c["prompts"]) prompts.push_back(p.get<std::vector<std::uint64_t>>());
    std::vector<BurstReplica> replicas;
    for (const Json& r : c["replicas"])
      replicas.push_back({.name = r["name"], .running = r["running"]});
    const Json& params = c["params"];
    const auto placed = place_burst(prompts, replicas,
                                    {.max_per_replica = params["maxPerReplica"],
                                     .min_colocate_blocks = params["minColocateBlocks"],
                                     .balance_tokens = params["balanceBy"] == "tokens"});
    const Json& expected = c["expected"];
    ASSERT_EQ(placed.size(), expected.size());
    for (std::size_t i = 0; i < placed.size(); ++i)
      EXPECT_EQ(placed[i] ? Json(replicas[*placed[i]].name) : Json(), expected[i])
          << "request " << i;
  }
}

TEST(ReclamationVectors, AllCases) {
  for (const Json& c : vector_cases("eviction_in_flight")) {
    SCOPED_TRACE(name_of(c));
    Reclamation reclamation(Duration::milliseconds(100));
    for (std::size_t i = 0; i < c["in_flight"].size(); ++i)
      reclamation.track(i, c["in_flight"][i].get<std::int32_t>());
    std::vector<BlockedBand> bands;
    for (const Json& b : c["bands"])
      bands.push_back(
          {.priority = b["priority"], .ceiling = b["ceiling"], .waits = b["waits"].get<bool>()});
    EXPECT_EQ(reclamation.decide(c["saturation"], bands, SimTime::zero()),
              c["expected"].get<std::vector<std::uint64_t>>());
  }
}

// TestReclamationController_GateLifecycle and _ConfirmationTimeout_ReopensGate.
class Gate : public testing::Test {
 protected:
  Gate() {
    for (std::uint64_t id = 0; id < 8; ++id) control.track(id, -1);
  }
  std::size_t victims(std::int64_t ms) {
    const BlockedBand band{.priority = 0, .ceiling = 1, .waits = true};
    return control.decide(2, {&band, 1}, at(ms)).size();
  }
  static SimTime at(std::int64_t ms) { return SimTime::zero() + Duration::milliseconds(ms); }
  Reclamation control{Duration::milliseconds(100)};
};

TEST_F(Gate, OpensWhenAllVictimsHaveEndedAndTheGraceIsOver) {
  EXPECT_EQ(victims(0), 2u);
  EXPECT_EQ(control.tracked(), 6u);
  EXPECT_EQ(victims(1), 0u) << "two are outstanding";
  control.end(7, at(10));
  EXPECT_EQ(victims(200), 0u) << "one is outstanding";
  control.end(6, at(200));
  EXPECT_EQ(victims(299), 0u) << "the grace";
  EXPECT_EQ(victims(300), 2u);
}

TEST_F(Gate, AVictimThatNeverEndsCountsAsEndedAfterTenSeconds) {
  EXPECT_EQ(victims(0), 2u);
  EXPECT_EQ(victims(10'000), 0u) << "the grace begins now";
  control.end(7, at(10'050));
  EXPECT_EQ(victims(10'100), 2u) << "a late end changes nothing";
}

TEST_F(Gate, TheEndOfAnotherRequestChangesNothing) {
  control.end(99, at(0));
  control.end(0, at(0));
  EXPECT_EQ(control.tracked(), 7u);
  EXPECT_EQ(victims(0), 2u);
}

}  // namespace
}  // namespace routesim::policies
