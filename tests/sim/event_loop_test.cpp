// The loop of events: their order, and a run that can go no further.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "base/rng.h"
#include "sim/event_queue.h"
#include "tests/sim/plan_fixture.h"

namespace routesim::sim {
namespace {

// Events of one instant happen in the order of their priorities, whatever order they were booked
// in.

SimTime at(std::int64_t ns) { return SimTime::from_ns(ns); }

/// Books the later kind first; it must still come second.
void expect_before(EventKind first, EventKind second) {
  EXPECT_LT(priority_of(first), priority_of(second));
  EventQueue queue;
  queue.push(at(5), second);
  queue.push(at(5), first);
  EXPECT_EQ(queue.pop()->kind, first);
  EXPECT_EQ(queue.pop()->kind, second);
}

TEST(EventOrder, StepsThatEndBeforeKvThatArrives) {
  expect_before(EventKind::kReplicaWake, EventKind::kTransferTick);
}
TEST(EventOrder, KvThatArrivesBeforeEndsTheClientSees) {
  expect_before(EventKind::kTransferTick, EventKind::kCompletion);
}
TEST(EventOrder, EndsTheClientSeesBeforeWhatItSends) {
  expect_before(EventKind::kCompletion, EventKind::kClientAction);
}
TEST(EventOrder, SendsBeforeDeliveries) {
  expect_before(EventKind::kClientAction, EventKind::kDelivery);
}
TEST(EventOrder, DeliveriesBeforeRouting) {
  expect_before(EventKind::kDelivery, EventKind::kRoute);
}
TEST(EventOrder, TimeoutsLast) { expect_before(EventKind::kRoute, EventKind::kTimeout); }

TEST(EventOrder, TimeGoesBeforePriority) {
  EventQueue queue;
  queue.push(at(2), EventKind::kReplicaWake);
  queue.push(at(1), EventKind::kTimeout);
  EXPECT_EQ(queue.pop()->kind, EventKind::kTimeout);
  EXPECT_EQ(queue.now(), at(1));
}

TEST(EventOrder, ServersWakeInTheOrderOfTheirNumbers) {
  EventQueue queue;
  for (const std::uint32_t replica : {7U, 1U, 4U})
    queue.push(at(3), EventKind::kReplicaWake, replica);
  EXPECT_EQ(queue.pop()->subject, 1U);
  EXPECT_EQ(queue.pop()->subject, 4U);
  EXPECT_EQ(queue.pop()->subject, 7U);
}

TEST(EventQueue, EqualsAMultimap) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, Stream::kTest);
    EventQueue queue;
    std::multimap<std::tuple<std::int64_t, int, std::uint64_t>, std::uint32_t> model;
    std::uint64_t sequence = 0;
    std::uint32_t subject = 1000;  // beyond the servers
    for (int i = 0; i < 3000; ++i) {
      if (model.empty() || random.below(5) < 3) {
        // Half of them in the order they are due, as most events of a run.
        const std::uint64_t delay = random.below(2) == 0 ? 20 : random.below(20);
        const auto time = queue.now().ns() + static_cast<std::int64_t>(delay);
        const auto kind = static_cast<EventKind>(random.below(11));
        if (kind == EventKind::kReplicaWake) {
          const auto server = static_cast<std::uint32_t>(random.below(100));
          std::erase_if(model, [&](const auto& e) { return e.second == server; });
          queue.push(at(time), kind, server);
          model.emplace(std::tuple(time, 0, server), server);
        } else {
          queue.push(at(time), kind, ++subject);
          model.emplace(std::tuple(time, static_cast<int>(priority_of(kind)), sequence++), subject);
        }
      } else {
        const Event e = *queue.pop();
        ASSERT_EQ(e.subject, model.begin()->second);
        ASSERT_EQ(e.time.ns(), std::get<0>(model.begin()->first));
        ASSERT_EQ(queue.now(), e.time);
        model.erase(model.begin());
      }
      ASSERT_EQ(queue.empty(), model.empty());
    }
  }
}

TEST(EventQueue, AServerHasOneWake) {
  EventQueue queue;
  queue.push(at(9), EventKind::kReplicaWake, 3);
  queue.push(at(5), EventKind::kReplicaWake, 3);
  queue.push(at(7), EventKind::kReplicaWake, 4);
  EXPECT_EQ(queue.wake(3), at(5));
  EXPECT_EQ(queue.pop()->subject, 3U);
  EXPECT_EQ(queue.wake(3), SimTime::max());
  queue.push(SimTime::max(), EventKind::kReplicaWake, 4);
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, TimeoutsOfRequestsThatAreOverAreDropped) {
  EventQueue queue;
  for (const std::uint32_t request : {1U, 2U, 3U, 4U})
    queue.push(at(10 * request), EventKind::kTimeout, request);
  queue.drop_timeouts([](const Event& e) { return e.subject != 3 && e.subject != 4; });
  EXPECT_EQ(queue.pop()->subject, 3U);
  EXPECT_EQ(queue.pop()->subject, 4U);
  EXPECT_TRUE(queue.empty());
}

TEST(Earliest, IsTheMinimumHoweverTimesChange) {
  for (const std::size_t n : {1, 8, 9, 64, 65, 600}) {
    SCOPED_TRACE(n);
    RandomStream random(n, Stream::kTest);
    Earliest earliest;
    std::vector<SimTime> model(n, SimTime::max());
    EXPECT_EQ(earliest.time(), SimTime::max());
    for (int i = 0; i < 4000; ++i) {
      const std::size_t who = random.below(n);
      const SimTime time =
          random.below(4) == 0 ? SimTime::max() : at(static_cast<std::int64_t>(random.below(50)));
      earliest.set(who, time);
      model[who] = time;
      const auto first = std::min_element(model.begin(), model.end());
      ASSERT_EQ(earliest.time(), *first);
      if (*first < SimTime::max()) {
        ASSERT_EQ(earliest.index(), static_cast<std::size_t>(first - model.begin()));
      }
      ASSERT_EQ(earliest[who], time);
    }
  }
}

}  // namespace
}  // namespace routesim::sim

namespace routesim::sim::testing {
namespace {

// A run that can go no further ends with an error that says who waits for what.

std::string stuck(const RunPlan& plan) {
  for (const bool reference : {true, false}) {
    try {
      Diagnostics found;
      Simulation simulation(plan, {.reference = reference, .check = true, .observers = {}}, found);
      for (const Diagnostic& d : found.items()) ADD_FAILURE() << to_string(d);
      simulation.run();
      ADD_FAILURE() << "the run ended";
    } catch (const StuckError& e) {
      if (!reference) return e.what();
    }
  }
  return {};
}

void expect_says(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
}

TEST(Watchdog, NamesALoadThatNeverEnds) {
  class Endless final : public workloads::LoadGenerator {
   public:
    const std::vector<workloads::StageInfo>& stages() const override { return stages_; }
    SimTime next_action() const override { return SimTime::max(); }
    void advance(SimTime, std::vector<workloads::Request>&) override {}
    void on_completed(const workloads::Request&, workloads::Outcome, SimTime) override {}
    bool finished() const override { return false; }

   private:
    std::vector<workloads::StageInfo> stages_ = {{.name = "0"}};
  };
  RunPlan plan = hand_made_plan({}, 1);
  plan.scenario.routing.balancer = BalancerKind::kRoundRobin;
  plan.make_load = [](std::uint64_t, Diagnostics&) { return std::make_unique<Endless>(); };
  expect_says(stuck(plan), {"0 requests are outstanding", "the load generator has not finished"});
}

TEST(Watchdog, NamesWhoWaitsForRoomThatNeverComes) {
  // Band -1 is let through below a saturation of 0, which no pool reaches; nothing expires.
  RunPlan plan = hand_made_plan({{.at_ms = 250, .parts = {{1, 16}}}}, 1);
  plan.scenario.workload.sheddable_fraction = 1;
  const auto band = [](std::int64_t priority) {
    return map({{"priority", tree::number(priority)}});
  };
  plan.endpoint_picker =
      DocumentBuilder()
          .plugin("single-profile-handler")
          .plugin("queue-scorer")
          .plugin("priority-holdback-policy", map({{"minCeiling", tree::number(0.0)}}))
          .plugin("max-score-picker")
          .profile("default", {{"queue-scorer", 1}, {"max-score-picker"}})
          .set("featureGates", list({text("flowControl")}))
          .set("flowControl", map({{"defaultRequestTTL", text("0s")},
                                   {"usageLimitPolicyPluginRef", text("priority-holdback-policy")},
                                   {"priorityBands", list({band(0), band(-1)})}}))
          .build();
  expect_says(stuck(plan), {"1 requests are outstanding",
                            "request 0, sent at 0.250000 s, waits for room in the pool",
                            "saturation is 0.0", "router: 1 requests are held back"});
}

}  // namespace
}  // namespace routesim::sim::testing
