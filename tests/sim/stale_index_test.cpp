// The precise index of an endpoint picker after a server was started again.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "sim/plan/fleet_plan.h"
#include "sim/telemetry/kv_replays.h"
#include "tests/sim/plan_fixture.h"

namespace routesim::sim {
namespace {

using testing::Sent;

/// The same prompt of 64 tokens at these times, to one server behind a precise index.
RunResult asked_again(policies::Era era, const std::vector<std::int64_t>& at_ms,
                      std::vector<FleetEventConfig> fleet_events) {
  std::vector<Sent> script;
  for (const std::int64_t at : at_ms) script.push_back({.at_ms = at, .parts = {{1, 64}}});
  RunPlan plan = testing::hand_made_plan(script, 1);
  plan.scenario.routing.balancer = BalancerKind::kEndpointPicker;
  plan.endpoint_picker = testing::precise_config(16);
  plan.endpoint_picker->era = era;
  plan.scenario.routing.discovery = DiscoveryConfig{.join = Duration::milliseconds(1),
                                                    .leave = Duration::milliseconds(1),
                                                    .leave_unseen = Duration::milliseconds(1)};
  plan.scenario.events = std::move(fleet_events);
  plan.scenario.cluster.pools = {plan.pools.front().config};
  plan.pools.front().extra_places = places_of(plan.scenario, 0) - 1;
  plan.pools.front().start_up.load = Duration::milliseconds(100);
  return testing::run_by_hand(plan);
}

FleetEventConfig at(FleetEventKind kind, std::int64_t ms, std::int64_t server) {
  FleetEventConfig e;
  e.kind = kind;
  e.at = Duration::milliseconds(ms);
  e.servers = {server};
  return e;
}

// The container of the pod is started again, at its address. llm-d-router forgets what it held
// since pull request 1738; from v0.7.0 to v0.9.0 it goes on believing in it.
TEST(StaleIndex, SurvivesARestartOfTheContainerUpToV090) {
  for (const policies::Era era : {policies::Era::kV0_6_0, policies::Era::kV0_7_0,
                                  policies::Era::kV0_9_0, policies::Era::kJul2026}) {
    const bool believes = era == policies::Era::kV0_7_0 || era == policies::Era::kV0_9_0;
    const RunResult r = asked_again(era, {0, 50, 300, 400}, {at(FleetEventKind::kCrash, 100, 0)});
    ASSERT_EQ(r.requests.size(), 4U);
    EXPECT_EQ(r.requests[1].predicted_hit_tokens, 64);
    EXPECT_EQ(r.requests[2].predicted_hit_tokens, believes ? 64 : 0) << policies::name(era);
    EXPECT_EQ(r.requests[2].cached_tokens, 0);
    EXPECT_EQ(r.requests[3].predicted_hit_tokens, 64);
  }
}

// A pod that takes the place of another has an address of its own, although it gets the row.
TEST(StaleIndex, IsNotLeftToAnotherPod) {
  const RunResult r =
      asked_again(policies::Era::kV0_9_0, {0, 50, 700},
                  {at(FleetEventKind::kDrain, 100, 0), at(FleetEventKind::kDrain, 400, 1)});
  ASSERT_EQ(r.requests.size(), 3U);
  EXPECT_EQ(r.requests[2].outcome, workloads::Outcome::kSuccess);
  EXPECT_EQ(r.requests[2].endpoint, r.requests[0].endpoint) << "the row";
  EXPECT_EQ(r.requests[2].predicted_hit_tokens, 0);
}

// ---- Replays. -----------------------------------------------------------------------------------

/// Prompts of 64 tokens, {time, content}, to one server whose events travel for 5 ms.
RunResult heard(policies::EndpointPickerConfig picker,
                const std::vector<std::pair<std::int64_t, std::uint64_t>>& sent,
                std::vector<FleetEventConfig> fleet_events,
                EnginePreset preset = EnginePreset::k2026H2) {
  std::vector<Sent> script;
  for (const auto& [at, content] : sent) script.push_back({.at_ms = at, .parts = {{content, 64}}});
  RunPlan plan = testing::hand_made_plan(script, 1);
  plan.endpoint_picker = std::move(picker);
  plan.pools.front().config.engine.preset = preset;
  plan.pools.front().start_up.load = Duration::milliseconds(100);
  plan.scenario.routing.kv_event_delay = Duration::milliseconds(5);
  plan.scenario.events = std::move(fleet_events);
  plan.scenario.cluster.pools = {plan.pools.front().config};
  return testing::run_by_hand(plan);
}

FleetEventConfig restart_of_router(std::int64_t ms, std::int64_t lasts_ms) {
  FleetEventConfig e = at(FleetEventKind::kRouterRestart, ms, 0);
  e.servers.clear();
  e.lasts = Duration::milliseconds(lasts_ms);
  return e;
}

// The router is back at 110 ms and asks; the answer is there at 120 ms. Without the port it never
// learns of blocks that the server has already. An engine whose answer it cannot read costs it the
// events that come later, too.
TEST(Replays, ARestartedRouterLearnsWhatTheEngineStillHas) {
  const std::vector<std::pair<std::int64_t, std::uint64_t>> sent = {{0, 1},   {50, 1},  {115, 1},
                                                                    {121, 1}, {200, 2}, {300, 2}};
  const auto hits = [&](bool port, EnginePreset preset) {
    const RunResult r =
        heard(testing::replaying_config(16, port), sent, {restart_of_router(100, 10)}, preset);
    std::vector<std::int64_t> found;
    for (const RequestRecord& q : r.requests) found.push_back(q.predicted_hit_tokens);
    return found;
  };
  using Hits = std::vector<std::int64_t>;
  EXPECT_EQ(hits(true, EnginePreset::k2026H2), (Hits{0, 64, 0, 64, 0, 64}));
  EXPECT_EQ(hits(false, EnginePreset::k2026H2), (Hits{0, 64, 0, 0, 0, 64}));
  EXPECT_EQ(hits(true, EnginePreset::k2026H1), (Hits{0, 64, 0, 0, 0, 0}));
}

// The first prompt's event is lost. That of the second, of 30 to 40 ms, shows the gap at 45 ms, and
// the replay is there at 55 ms.
TEST(Replays, AGapIsFilled) {
  FleetEventConfig lost = at(FleetEventKind::kKvEventsLost, 0, 0);
  lost.lasts = Duration::milliseconds(20);
  for (const bool port : {false, true}) {
    const RunResult r =
        heard(testing::replaying_config(16, port), {{0, 1}, {30, 2}, {54, 1}, {56, 1}}, {lost});
    EXPECT_EQ(r.requests[2].predicted_hit_tokens, 0);
    EXPECT_EQ(r.requests[3].predicted_hit_tokens, port ? 64 : 0);
  }
}

// The engine starts again in its pod before anyone has noticed: its first event, number 0, tells a
// router that counts. Others believe in what the engine no longer has.
TEST(Replays, ANumberThatGoesBackClearsTheIndex) {
  FleetEventConfig crash = at(FleetEventKind::kCrash, 100, 0);
  crash.lasts = Duration::milliseconds(20);
  for (const bool port : {false, true}) {
    const RunResult r = heard(testing::replaying_config(16, port),
                              {{0, 1}, {50, 2}, {130, 3}, {200, 1}, {250, 3}}, {crash});
    EXPECT_EQ(r.requests[3].predicted_hit_tokens, port ? 0 : 64);
    EXPECT_EQ(r.requests[3].cached_tokens, 0);
    EXPECT_EQ(r.requests[4].predicted_hit_tokens, 64);
  }
}

/// Counts what a subscription gets.
class Counter final : public KvReplays::Index {
 public:
  void clear() override { got = -1; }
  void on_stored(std::span<const BlockKey> keys, std::span<const std::uint64_t>) override {
    got += std::ssize(keys);
  }
  void on_removed(std::span<const BlockKey>) override {}
  void on_stored_in_tier(std::span<const BlockKey>) override {}
  void on_removed_from_tier(std::span<const BlockKey>) override {}
  std::int64_t got = 0;
};

// An engine keeps 10,000 batches, and a router that wants all of them takes no fewer. What comes
// then is dropped.
TEST(Replays, WhatTheEngineHasForgottenIsNotAnswered) {
  for (const std::int64_t batches : {10'000, 10'001}) {
    KvEventLog log(nullptr, 16);
    KvReplays replays(Duration::milliseconds(2), {true}, 1);
    replays.unsubscribe(0, 0);
    const auto publish = [&](std::int64_t ms) {
      const std::vector<BlockKey> key = {1};
      log.stored(0, 0, key);
      log.flush(testing::at_ms(ms), false);
      log.read_batches(testing::at_ms(ms), [&](const auto& b, auto w) { replays.add(0, b, w); });
    };
    for (std::int64_t i = 0; i < batches; ++i) publish(i);
    replays.subscribe(0, 0, testing::at_ms(20'000));
    publish(20'100);
    Counter counter;
    replays.read(0, 0, testing::at_ms(20'001), counter);
    EXPECT_EQ(counter.got, 0) << "the answer is under way";
    replays.read(0, 0, testing::at_ms(20'200), counter);
    EXPECT_EQ(counter.got, batches == 10'000 ? 10'001 : -1);
  }
}

}  // namespace
}  // namespace routesim::sim
