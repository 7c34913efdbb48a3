// Events of one instant happen in the order of their priorities, whatever order they were booked
// in.
#include "sim/event_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "sim/base/rng.h"

namespace routesim::sim {
namespace {

SimTime at(std::int64_t ns) { return SimTime::from_ns(ns); }

/// Books the later kind first; it must still come second.
void expect_before(EventKind first, EventKind second) {
  EXPECT_LT(priority_of(first), priority_of(second));
  EventQueue queue;
  queue.push(at(5), second);
  queue.push(at(5), first);
  EXPECT_EQ(queue.pop().kind, first);
  EXPECT_EQ(queue.pop().kind, second);
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
  EXPECT_EQ(queue.pop().kind, EventKind::kTimeout);
  EXPECT_EQ(queue.now(), at(1));
}

TEST(EventOrder, ServersWakeInTheOrderOfTheirNumbers) {
  EventQueue queue;
  for (const std::uint32_t replica : {7U, 1U, 4U})
    queue.push(at(3), EventKind::kReplicaWake, replica);
  EXPECT_EQ(queue.pop().subject, 1U);
  EXPECT_EQ(queue.pop().subject, 4U);
  EXPECT_EQ(queue.pop().subject, 7U);
}

TEST(EventQueue, EqualsAMultimap) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(seed, Stream::kTest);
    EventQueue queue;
    std::multimap<std::tuple<std::int64_t, int, std::uint64_t>, std::uint32_t> model;
    std::uint64_t sequence = 0;
    std::uint32_t subject = 0;
    for (int i = 0; i < 3000; ++i) {
      if (model.empty() || random.below(5) < 3) {
        const auto time = queue.now().ns() + static_cast<std::int64_t>(random.below(20));
        const auto kind = static_cast<EventKind>(random.below(7));
        queue.push(at(time), kind, ++subject);
        const std::uint64_t order = kind == EventKind::kReplicaWake ? subject : sequence++;
        model.emplace(std::tuple(time, static_cast<int>(priority_of(kind)), order), subject);
      } else {
        const Event e = queue.pop();
        ASSERT_EQ(e.subject, model.begin()->second);
        ASSERT_EQ(e.time.ns(), std::get<0>(model.begin()->first));
        model.erase(model.begin());
      }
      ASSERT_EQ(queue.size(), model.size());
    }
  }
}

}  // namespace
}  // namespace routesim::sim
