// Vectors of what llm-d's router got in the summer of 2026: observed latencies, bursts, and
// eviction of requests in flight.
#include <gtest/gtest.h>

#include "policies/flow/reclamation.h"
#include "policies/plugins/burst_prefix.h"
#include "policies/plugins/latency_observation.h"
#include "tests/policies/vector_file.h"

namespace routesim::policies {
namespace {

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
