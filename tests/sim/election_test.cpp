// When another endpoint picker gets the lease of its leader: ranges and means by hand.
#include "sim/fleet/election.h"

#include <gtest/gtest.h>

namespace routesim::sim {
namespace {

SimTime second(double s) { return SimTime::zero() + Duration::from_seconds(s); }
double seconds(SimTime at) { return static_cast<double>(at.ns()) * 1e-9; }

// Tries come every 2 to 4.4 s. A crash comes up to 2 s after the leader renewed its lease (-1 s in
// the mean), the other process sees that with its next try (1.6 s), tries in vain for 15 s, is the
// leader with the next try (1.7 s), and is ready when its probe says so (1 s).
TEST(Election, ACrashedLeaderIsReplacedWhenItsLeaseHasRunOut) {
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= 1'000; ++seed) {
    Election e(2, false, seed);
    e.end(0, false, second(0));
    ASSERT_TRUE(e.term());
    EXPECT_EQ(e.term()->leader, 1u);
    const double ready = seconds(e.term()->ready);
    EXPECT_GE(ready, 13);
    EXPECT_LE(ready, 15 + 4.4 + 4.4 + 2);
    sum += ready;
  }
  EXPECT_NEAR(sum / 1'000, 18.3, 0.2);
}

// The lease of a leader that was asked to end is free at the next try.
TEST(Election, AnotherProcessTakesALeaseThatIsGivenUp) {
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= 1'000; ++seed) {
    Election e(2, false, seed);
    e.end(0, true, second(0));
    const double ready = seconds(e.term()->ready);
    EXPECT_LE(ready, 4.4 + 2);
    sum += ready;
  }
  EXPECT_NEAR(sum / 1'000, 2.6, 0.2);
}

// A process that comes back to a lease that nobody renews waits for its end, its own included.
TEST(Election, AProcessThatComesBackWaitsToo) {
  for (const bool given_up : {false, true}) {
    Election e(2, false, 1);
    e.end(1, false, second(0));
    EXPECT_EQ(e.term()->leader, 0u) << "it did not lead";
    e.end(0, given_up, second(1));
    EXPECT_FALSE(e.term());
    e.begin(0, second(5));
    ASSERT_TRUE(e.term());
    EXPECT_EQ(e.term()->leader, 0u);
    EXPECT_GE(seconds(e.term()->ready), given_up ? 5 : 20);
    EXPECT_LE(seconds(e.term()->ready), given_up ? 7 : 26.4);
  }
}

// Whoever would have had the lease next dies before: the third one has it, a little later.
TEST(Election, TheNextInLineMayEnd) {
  Election e(3, false, 1);
  e.end(0, false, second(0));
  const Election::Term next = *e.term();
  const std::int64_t number = e.number();
  e.end(next.leader, false, second(1));
  ASSERT_TRUE(e.term());
  EXPECT_EQ(e.term()->leader, 3 - next.leader);
  EXPECT_GT(e.number(), number);
  EXPECT_LE(seconds(e.term()->ready), 25.8);
}

TEST(Election, ADrainEndsOnce) {
  Election e(2, true, 1);
  EXPECT_TRUE(e.begin_drain(0));
  EXPECT_FALSE(e.begin_drain(0));
  EXPECT_TRUE(e.end_drain(0));
  EXPECT_FALSE(e.end_drain(0));
}

}  // namespace
}  // namespace routesim::sim
