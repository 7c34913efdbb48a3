// The life of servers: which ReplicaSets want what, when a server serves, when the router knows,
// and what becomes of the requests.
#include "sim/fleet/fleet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/plan_fixture.h"

namespace routesim::sim::fleet_alone {
namespace {

using testing::at_ms;

Duration ms(std::int64_t n) { return Duration::milliseconds(n); }

// ---- The rolling update, by the formulas of rolling.go. -----------------------------------------

using Sizes = std::vector<std::int64_t>;

Sizes sizes_of(const RollOutState& d) {
  Sizes sizes;
  for (const RollOutSet& set : d.sets) sizes.push_back(set.spec);
  return sizes;
}

/// After one step; sets are {spec, available}, the newest last.
Sizes stepped(RollOutState d) {
  const Sizes before = sizes_of(d);
  const bool changes = roll_out_step(d);
  EXPECT_EQ(changes, sizes_of(d) != before);
  return sizes_of(d);
}

TEST(RollOut, GrowsByTheSurgeFirst) {
  EXPECT_EQ(stepped({.replicas = 4, .max_surge = 1, .sets = {{4, 4}, {0, 0}}}), (Sizes{4, 1}));
}

TEST(RollOut, WaitsForTheNewServerWhereNoneMayBeMissing) {
  EXPECT_EQ(stepped({.replicas = 4, .max_surge = 1, .sets = {{4, 4}, {1, 0}}}), (Sizes{4, 1}));
  EXPECT_EQ(stepped({.replicas = 4, .max_surge = 1, .sets = {{4, 4}, {1, 1}}}), (Sizes{3, 1}));
}

// 8 servers, 25% and 25%: two more at once, and of the old ones two may go.
TEST(RollOut, TakesAQuarterEachWayByDefault) {
  RollOutState d{.replicas = 8,
                 .max_surge = *servers_of("25%", 8, true),
                 .max_unavailable = *servers_of("25%", 8, false),
                 .sets = {{8, 8}, {0, 0}}};
  EXPECT_EQ(stepped(d), (Sizes{8, 2}));
  d.sets.back().spec = 2;
  EXPECT_EQ(stepped(d), (Sizes{6, 2}));
}

// An old server that is not ready is missed by nobody: it goes although only one may be missing.
TEST(RollOut, TakesOldServersThatAreNotReadyFirst) {
  EXPECT_EQ(
      stepped({.replicas = 3, .max_surge = 1, .max_unavailable = 1, .sets = {{3, 2}, {1, 0}}}),
      (Sizes{2, 1}));
}

// A roll-out that follows another one: the servers that the first had begun to start go, and not
// those of the oldest set, which serve.
TEST(RollOut, TakesUnreadyServersFromTheSetThatHasThem) {
  EXPECT_EQ(stepped({.replicas = 4, .max_surge = 1, .sets = {{4, 4}, {1, 0}, {0, 0}}}),
            (Sizes{4, 0, 0}));
  // Two that are not ready, and one ready server more than is needed: of the oldest set.
  EXPECT_EQ(stepped({.replicas = 4, .max_surge = 3, .sets = {{4, 4}, {2, 0}, {1, 1}}}),
            (Sizes{3, 0, 1}));
}

// With both bounds 0 Kubernetes lets one be missing.
TEST(RollOut, LetsOneBeMissingWhereBothBoundsAreZero) {
  EXPECT_EQ(stepped({.replicas = 2, .max_surge = 0, .sets = {{2, 2}, {0, 0}}}), (Sizes{1, 0}));
}

// sync.go: 4 old servers and a new one, of 4 and a surge of 1, become 7 and 2 of 8: 4 * 9/5 = 7.2,
// and what is left of four more. Of 2 there are 4 * 3/5 = 2.4 old ones, and the new one stays.
TEST(RollOut, SharesOutWhatIsScaledMeanwhile) {
  const auto shared = [](std::int64_t replicas, std::vector<RollOutSet> sets, bool recreates) {
    RollOutState d{.replicas = replicas, .max_surge = 1, .sets = std::move(sets)};
    share_out(d, recreates);
    return sizes_of(d);
  };
  EXPECT_EQ(shared(8, {{4, 4, 5}, {1, 0, 5}}, false), (Sizes{7, 2}));
  EXPECT_EQ(shared(2, {{4, 4, 5}, {1, 0, 5}}, false), (Sizes{2, 1}));
  EXPECT_EQ(shared(0, {{4, 4, 5}, {1, 0, 5}}, false), (Sizes{0, 0}));
  // Equal sets: 3 * 9/7 = 3.9 for each, and what is left for the newer one.
  EXPECT_EQ(shared(8, {{3, 3, 7}, {3, 3, 7}}, false), (Sizes{4, 5}));
  EXPECT_EQ(shared(8, {{4, 4, 5}, {0, 0, 5}}, false), (Sizes{8, 0}));
  EXPECT_EQ(shared(8, {{4, 4, 5}, {1, 1, 5}}, true), (Sizes{4, 1}));
}

// Strategy Recreate: nothing new before the last old server is gone.
TEST(RollOut, RecreatesWhenNoOldServerIsLeft) {
  RollOutState d{.replicas = 3, .max_surge = 0, .sets = {{3, 3}, {0, 0}}};
  EXPECT_TRUE(recreate_step(d, true));
  EXPECT_EQ(sizes_of(d), (Sizes{0, 0}));
  EXPECT_FALSE(recreate_step(d, true));
  EXPECT_TRUE(recreate_step(d, false));
  EXPECT_EQ(sizes_of(d), (Sizes{0, 3}));
  EXPECT_FALSE(recreate_step(d, false));
}

TEST(RollOut, ReadsNumbersAndPercentages) {
  EXPECT_EQ(servers_of("3", 10, true), 3);
  EXPECT_EQ(servers_of("25%", 10, true), 3);   // 2.5, surge: up
  EXPECT_EQ(servers_of("25%", 10, false), 2);  // unavailable: down
  EXPECT_EQ(servers_of("0%", 10, true), 0);
  for (const char* const bad : {"", "%", "-1", "2.5", "a", "3 %", "99999"})
    EXPECT_EQ(servers_of(bad, 10, true), std::nullopt) << bad;
}

// ---- The fleet alone. ---------------------------------------------------------------------------

/// Writes down what the fleet does.
class Scribe final : public FleetActions {
 public:
  void start(std::uint32_t s, SimTime now) override { say("start", s, now); }
  void stop(std::uint32_t s, ServerEnd how, SimTime now) override {
    say(how == ServerEnd::kVanished ? "vanish" : "stop", s, now);
  }
  void lose_machine(std::uint32_t, SimTime) override { ++machines_lost; }
  void join(std::uint32_t s, std::int64_t pod, SimTime now) override {
    say("join pod " + std::to_string(pod) + " at", s, now);
  }
  void leave(std::uint32_t s, SimTime now) override { say("leave", s, now); }
  void set_pace(std::uint32_t s, double factor, SimTime now) override {
    const std::string pace = std::to_string(static_cast<int>(factor));
    if (factor != 1 || slow) say("pace " + pace + " of", s, now);
    slow = factor != 1;
  }
  void set_events_lost(std::uint32_t s, bool lost, SimTime now) override {
    if (lost || deaf) say(lost ? "deaf" : "heard", s, now);
    deaf = lost;
  }
  void set_scrapes_lost(std::uint32_t s, bool lost, SimTime now) override {
    if (lost || unread) say(lost ? "unread" : "read", s, now);
    unread = lost;
  }
  void set_link(std::uint32_t s, bool works, SimTime now) override {
    if (!works || cut) say(works ? "linked" : "cut", s, now);
    cut = !works;
  }
  void stop_router(std::uint32_t p, SimTime now) override { say("stop router", p, now); }
  void start_router(std::uint32_t p, SimTime now) override { say("start router", p, now); }
  void lead_router(std::uint32_t p, SimTime now) override { say("lead router", p, now); }
  std::int64_t requests_in(std::uint32_t) const override { return requests; }
  const FleetMetrics& metrics(std::uint32_t, SimTime) override { throw InternalError("none"); }

  std::vector<std::string> said;
  std::int64_t requests = 0, machines_lost = 0;
  bool slow = false, deaf = false, unread = false, cut = false;

 private:
  void say(const std::string& what, std::uint32_t subject, SimTime now) {
    said.push_back(what + " " + std::to_string(subject) + " " +
                   std::to_string(now.ns() / 1'000'000));
  }
};

/// A pool whose servers are ready 100 ms after they were created, 60 ms after a crash.
FleetPool pool_of(std::int64_t replicas, std::int64_t places) {
  FleetPool p{
      .name = "p", .replicas = replicas, .places = places, .start_up = {}, .termination = {}};
  p.start_up.image_pull = ms(40);
  p.start_up.load = ms(60);
  return p;
}

/// Runs a fleet until nothing is due; the router hears of joins after 1 ms, of leaves after 2.
std::vector<std::string> told(std::vector<FleetPool> pools, std::vector<FleetEventConfig> events,
                              Scribe scribe = {}, FleetResult* result = nullptr,
                              std::int64_t until_ms = 1'000'000) {
  SimTime next = SimTime::max();
  Fleet fleet(std::move(pools), std::move(events),
              {.join = ms(1), .leave = ms(2), .leave_unseen = ms(2), .leave_vanished = ms(50'002)},
              1, scribe, [&next](SimTime at) { next = std::min(next, at); });
  fleet.begin();
  while (next < at_ms(until_ms)) {
    const SimTime now = next;
    next = SimTime::max();
    fleet.tick(now);
  }
  if (result != nullptr) *result = fleet.take_result(at_ms(until_ms));
  return scribe.said;
}

using Lines = std::vector<std::string>;

FleetEventConfig event(FleetEventKind kind, std::int64_t at,
                       std::vector<std::int64_t> servers = {}) {
  FleetEventConfig e;
  e.kind = kind;
  e.at = ms(at);
  e.servers = std::move(servers);
  return e;
}

TEST(Fleet, StartsACrashedContainerAgainInItsPod) {
  EXPECT_EQ(told({pool_of(2, 2)}, {event(FleetEventKind::kCrash, 10, {1})}),
            (Lines{"stop 1 10", "leave 1 12", "start 1 70", "join pod 0 at 1 71"}));
}

// The second crash waits 10 s, the third 20 s.
TEST(Fleet, BacksOffAsTheKubeletDoes) {
  const Lines lines = told({pool_of(1, 1)}, {event(FleetEventKind::kCrash, 10, {0}),
                                             event(FleetEventKind::kCrash, 100, {0}),
                                             event(FleetEventKind::kCrash, 20'000, {0})});
  EXPECT_EQ(lines,
            (Lines{"stop 0 10", "leave 0 12", "start 0 70", "join pod 0 at 0 71", "stop 0 100",
                   "leave 0 102", "start 0 10160", "join pod 0 at 0 10161", "stop 0 20000",
                   "leave 0 20002", "start 0 40060", "join pod 0 at 0 40061"}));
}

TEST(Fleet, ForgetsCrashesOfAPodThatServedForTenMinutes) {
  const Lines lines = told({pool_of(1, 1)}, {event(FleetEventKind::kCrash, 10, {0}),
                                             event(FleetEventKind::kCrash, 700'000, {0})});
  EXPECT_EQ(lines.at(6), "start 0 700060");
}

TEST(Fleet, ReplacesAnEvictedPodInAnotherPlace) {
  FleetPool pool = pool_of(2, 3);
  pool.termination.pre_stop = ms(30);
  EXPECT_EQ(told({pool}, {event(FleetEventKind::kDrain, 10, {0})}),
            (Lines{"leave 2 0", "leave 0 12", "stop 0 40", "start 2 110", "join pod 1 at 2 111"}));
}

// A pod that was asked to end is not counted, so that nobody takes its place twice.
TEST(Fleet, LosesTheMachineOfAPodThatEnds) {
  FleetPool pool = pool_of(2, 3);
  pool.termination.pre_stop = ms(50);
  FleetResult result;
  EXPECT_EQ(told({pool},
                 {event(FleetEventKind::kDrain, 0, {0}), event(FleetEventKind::kNodeLoss, 10, {0})},
                 {}, &result),
            (Lines{"leave 2 0", "leave 0 2", "vanish 0 10", "start 2 100", "join pod 1 at 2 101"}));
  EXPECT_EQ(result.pools[0].ends, 1);
}

// One of two may be missing. The second eviction is tried every 5 s until the first pod's
// replacement is ready.
TEST(Fleet, KeepsTheDisruptionBudget) {
  FleetPool pool = pool_of(2, 4);
  pool.start_up.load = ms(6'960);  // ready after 7 s
  pool.most_evicted = "1";
  const Lines lines = told({pool}, {event(FleetEventKind::kDrain, 10, {0, 1})});
  EXPECT_EQ(lines, (Lines{"leave 2 0", "leave 3 0", "stop 0 10", "leave 0 12", "start 2 7010",
                          "join pod 1 at 2 7011", "stop 1 10010", "leave 1 10012", "start 0 17010",
                          "join pod 1 at 0 17011"}));
}

TEST(Fleet, DrainsUntilItIsEmptyOrItsTimeIsOver) {
  FleetPool pool = pool_of(1, 2);
  pool.termination.pre_stop = ms(50);
  pool.termination.shutdown_timeout = ms(250);
  Scribe busy;
  busy.requests = 1;
  EXPECT_EQ(told({pool}, {event(FleetEventKind::kDrain, 0, {0})}, busy),
            (Lines{"leave 1 0", "leave 0 2", "start 1 100", "join pod 1 at 1 101", "stop 0 300"}));
  Scribe idle;
  EXPECT_EQ(told({pool}, {event(FleetEventKind::kDrain, 0, {0})}, idle).at(2), "stop 0 50");
}

TEST(Fleet, KillsWhatDoesNotEndWithinItsGracePeriod) {
  FleetPool pool = pool_of(1, 2);
  pool.termination.pre_stop = ms(50'000);
  EXPECT_EQ(told({pool}, {event(FleetEventKind::kDrain, 0, {0})}).back(), "stop 0 30000");
}

// Kubernetes waits 50 s for heartbeats and 300 s more before it gives the pod up.
TEST(Fleet, GivesUpALostMachine) {
  EXPECT_EQ(told({pool_of(2, 3)}, {event(FleetEventKind::kNodeLoss, 10, {0})}),
            (Lines{"leave 2 0", "vanish 0 10", "leave 0 50012", "start 0 350110",
                   "join pod 1 at 0 350111"}));
}

TEST(Fleet, ScalesUpAndDown) {
  FleetEventConfig up = event(FleetEventKind::kScale, 10);
  up.replicas = 3;
  FleetEventConfig down = event(FleetEventKind::kScale, 500);
  down.replicas = 1;
  FleetResult result;
  EXPECT_EQ(
      told({pool_of(2, 6)}, {up, down}, {}, &result, 1000),
      (Lines{"leave 2 0", "leave 3 0", "leave 4 0", "leave 5 0", "start 2 110",
             "join pod 1 at 2 111", "stop 2 500", "stop 1 500", "leave 2 502", "leave 1 502"}));
  // 2 until 10 ms, 3 until 500, 1 until 1000; ready 2 until 110, 3 until 500, 1.
  EXPECT_NEAR(result.pools[0].mean_servers, (2 * 10 + 3 * 490 + 1 * 500) / 1000.0, 1e-9);
  EXPECT_NEAR(result.pools[0].mean_ready, (2 * 110 + 3 * 390 + 1 * 500) / 1000.0, 1e-9);
  EXPECT_EQ(result.pools[0].most_servers, 3);
  EXPECT_EQ(result.pools[0].least_ready, 1);
  EXPECT_EQ(result.pools[0].starts, 1);
  EXPECT_EQ(result.pools[0].ends, 2);
}

// A pod that still starts goes before one that serves.
TEST(Fleet, TakesServersThatStartFirst) {
  FleetEventConfig up = event(FleetEventKind::kScale, 10);
  up.replicas = 2;
  FleetEventConfig down = event(FleetEventKind::kScale, 50);
  down.replicas = 1;
  EXPECT_EQ(told({pool_of(1, 4)}, {up, down}), (Lines{"leave 1 0", "leave 2 0", "leave 3 0"}));
}

TEST(Fleet, RollsOutOneByOneWithASurgeOfOne) {
  FleetEventConfig roll = event(FleetEventKind::kRollOut, 0);
  roll.max_surge = "1";
  roll.max_unavailable = "0";
  FleetResult result;
  const Lines lines = told({pool_of(2, 6)}, {roll}, {}, &result);
  EXPECT_EQ(Lines(lines.begin() + 4, lines.end()),
            (Lines{"start 2 100", "stop 1 100", "join pod 1 at 2 101", "leave 1 102", "start 3 200",
                   "stop 0 200", "join pod 1 at 3 201", "leave 0 202"}));
  EXPECT_EQ(result.marks.at(result.marks.size() - 2).what, "roll-out is over");
  EXPECT_EQ(result.pools[0].least_ready, 2);
}

TEST(Fleet, RollsOutToAnotherPool) {
  FleetEventConfig roll = event(FleetEventKind::kRollOut, 0);
  roll.pool = "p";
  roll.to = "q";
  roll.max_surge = "1";
  roll.max_unavailable = "0";
  FleetPool next = pool_of(0, 4);
  next.name = "q";
  FleetResult result;
  const Lines lines = told({pool_of(1, 1), next}, {roll}, {}, &result);
  EXPECT_EQ(Lines(lines.begin() + 4, lines.end()),
            (Lines{"start 1 100", "stop 0 100", "join pod 1 at 1 101", "leave 0 102"}));
}

FleetEventConfig roll_out(std::int64_t at, const std::string& from, const std::string& to) {
  FleetEventConfig roll = event(FleetEventKind::kRollOut, at);
  roll.pool = from;
  roll.to = to;
  roll.max_surge = "1";
  roll.max_unavailable = "0";
  return roll;
}

FleetPool named(FleetPool pool, const std::string& name) {
  pool.name = name;
  return pool;
}

std::vector<std::string> marks_of(const FleetResult& result) {
  std::vector<std::string> marks;
  for (const FleetMark& m : result.marks) marks.push_back(m.subject + " " + m.what);
  return marks;
}

// Each step waits for a second after the new server is ready; the old ones have served for long.
TEST(Fleet, RollsOutAsSoonAsServersAreAvailable) {
  FleetEventConfig roll = event(FleetEventKind::kRollOut, 0);
  roll.max_surge = "1";
  roll.max_unavailable = "0";
  roll.min_ready_seconds = ms(1'000);
  FleetResult result;
  const Lines lines = told({pool_of(2, 6)}, {roll}, {}, &result);
  EXPECT_EQ(Lines(lines.begin() + 4, lines.end()),
            (Lines{"start 2 100", "join pod 1 at 2 101", "stop 1 1100", "leave 1 1102",
                   "start 3 1200", "join pod 1 at 3 1201", "stop 0 2200", "leave 0 2202"}));
  EXPECT_EQ(result.marks.at(result.marks.size() - 2).what, "roll-out is over");
  EXPECT_DOUBLE_EQ(result.marks.at(result.marks.size() - 2).at_s, 2.2);
  // A second one begins while the server of the first is not available yet, so that it goes first.
  FleetEventConfig again = roll;
  again.at = ms(500);
  const Lines both = told({pool_of(1, 4)}, {roll, again});
  EXPECT_EQ(Lines(both.begin() + 3, both.end()),
            (Lines{"start 1 100", "join pod 1 at 1 101", "stop 1 500", "leave 1 502", "start 2 600",
                   "join pod 1 at 2 601", "stop 0 1600", "leave 0 1602"}));
}

// The servers in q belong to the Deployment that began in p, so that a roll-out of q is its own.
TEST(Fleet, RollsBack) {
  FleetResult result;
  const Lines lines = told({pool_of(1, 2), named(pool_of(0, 2), "q")},
                           {roll_out(0, "p", "q"), roll_out(1'000, "q", "p")}, {}, &result);
  EXPECT_EQ(Lines(lines.begin() + 3, lines.end()),
            (Lines{"start 2 100", "stop 0 100", "join pod 1 at 2 101", "leave 0 102",
                   "start 0 1100", "stop 2 1100", "join pod 1 at 0 1101", "leave 2 1102"}));
  const std::vector<std::string> marks = marks_of(result);
  EXPECT_EQ(marks.front(), "p roll-out begins, to q");
  EXPECT_EQ(std::ranges::count(marks, "p roll-out is over"), 2);
}

// While a roll-out is under way its old ReplicaSet is taken up again: server 0 has never ended.
TEST(Fleet, TakesARollOutBack) {
  FleetResult result;
  const Lines lines = told({pool_of(1, 2), named(pool_of(0, 2), "q")},
                           {roll_out(0, "p", "q"), roll_out(50, "q", "p")}, {}, &result);
  EXPECT_EQ(Lines(lines.begin() + 3, lines.end()), Lines{});
  EXPECT_EQ(marks_of(result).back(), "p roll-out is over");
}

TEST(Fleet, RollsOutNothingTwice) {
  FleetResult result;
  (void)told({pool_of(1, 2), named(pool_of(0, 2), "q")},
             {roll_out(0, "p", "q"), roll_out(1'000, "p", "q")}, {}, &result);
  EXPECT_EQ(marks_of(result).back(), "p has the configuration of q already");
}

// Another number of servers is of the Deployment, wherever its servers are by then.
TEST(Fleet, ScalesWhatWasRolledOut) {
  for (const char* const name : {"p", "q"}) {
    FleetEventConfig up = event(FleetEventKind::kScale, 1'000);
    up.pool = name;
    up.replicas = 2;
    FleetResult result;
    (void)told({pool_of(1, 2), named(pool_of(0, 3), "q")}, {roll_out(0, "p", "q"), up}, {},
               &result);
    EXPECT_EQ(result.pools[1].points.back().ready, 2) << name;
    EXPECT_EQ(result.pools[0].points.back().wanted, 2) << name;
  }
}

// The second one begins while the first server of the first one starts: that one goes, and never
// fewer than 4 serve.
TEST(Fleet, RollsOutTwiceInARow) {
  FleetEventConfig first = roll_out(0, "p", ""), second = roll_out(50, "p", "");
  FleetResult result;
  const Lines lines = told({pool_of(4, 12)}, {first, second}, {}, &result);
  EXPECT_EQ(result.pools[0].least_ready, 4);
  EXPECT_EQ(lines.at(8), "start 4 150");
  EXPECT_EQ(std::ranges::count(marks_of(result), "p roll-out is over"), 1);
}

// Each ReplicaSet gets its share: 7 of the old one and 2 of the new one, instead of 4 and 5.
TEST(Fleet, ScalesInProportionDuringARollOut) {
  FleetEventConfig up = event(FleetEventKind::kScale, 10);
  up.replicas = 8;
  FleetPool pool = pool_of(4, 16);
  pool.start_up.load = ms(960);
  FleetResult result;
  const Lines lines = told({pool}, {roll_out(0, "p", ""), up}, {}, &result, 1'500);
  // The first new server at 1,000 ms, one more of it and three of the old ones at 1,010.
  const auto starts = std::ranges::count_if(
      lines, [](const std::string& line) { return line.starts_with("start"); });
  EXPECT_EQ(starts, 5);
  const auto started = [&](const std::string& name) {
    return std::ranges::count_if(lines, [&](const std::string& l) { return l == name; });
  };
  EXPECT_EQ(started("start 8 1010"), 1);
  // 9 are ready and 8 are wanted: one old server goes, and only then one more new one starts.
  EXPECT_EQ(
      std::ranges::count_if(lines, [](const std::string& l) { return l.starts_with("stop"); }), 1);
}

TEST(Fleet, RecreatesWhereTheStrategyIsSo) {
  FleetPool pool = pool_of(2, 4);
  pool.termination.pre_stop = ms(30);
  FleetEventConfig roll = event(FleetEventKind::kRollOut, 0);
  roll.recreate = true;
  FleetResult result;
  const Lines lines = told({pool}, {roll}, {}, &result);
  EXPECT_EQ(
      Lines(lines.begin() + 2, lines.begin() + 8),
      (Lines{"leave 1 2", "leave 0 2", "stop 1 30", "stop 0 30", "start 0 130", "start 1 130"}));
  EXPECT_EQ(result.pools[0].least_ready, 0);
  EXPECT_EQ(marks_of(result).back(), "p roll-out is over");
}

/// The pods of the Deployment that began in the first pool.
std::vector<FleetPod> pods_at(std::vector<FleetPool> pools, std::vector<FleetEventConfig> events,
                              std::int64_t until_ms) {
  SimTime next = SimTime::max();
  Scribe scribe;
  Fleet fleet(std::move(pools), std::move(events),
              {.join = ms(1), .leave = ms(2), .leave_unseen = ms(2), .leave_vanished = ms(2)}, 1,
              scribe, [&next](SimTime at) { next = std::min(next, at); });
  fleet.begin();
  while (next <= at_ms(until_ms)) fleet.tick(std::exchange(next, SimTime::max()));
  std::vector<FleetPod> pods;
  fleet.list_pods(0, at_ms(until_ms), pods);
  return pods;
}

// An autoscaler's selector fits the pods of both configurations, and those that end are ready until
// their hook is over (getReadyPodsCount asks for nothing else).
TEST(Fleet, ListsThePodsOfItsDeployment) {
  FleetPool pool = pool_of(1, 2);
  pool.termination.pre_stop = ms(50);
  pool.termination.shutdown_timeout = ms(0);
  const auto at = [&](std::int64_t t) {
    std::string states;
    for (const FleetPod& pod :
         pods_at({pool, named(pool_of(0, 2), "q")}, {roll_out(0, "p", "q")}, t))
      states += std::to_string(Fleet::server_of_pod(pod.id)) +
                (pod.state.phase == HpaPodPhase::kPending ? " pending" : "") +
                (pod.state.ready ? " ready" : "") + (pod.state.terminating ? " ends" : "") + ", ";
    return states;
  };
  EXPECT_EQ(at(20), "0 ready, 2 pending, ");
  EXPECT_EQ(at(60), "0 ready, 2, ");
  EXPECT_EQ(at(120), "0 ready ends, 2 ready, ");
  EXPECT_EQ(at(160), "2 ready, ");
}

// Four of five must serve, of five and of two.
TEST(Fleet, TakesABudgetOfWhatIsWantedNow) {
  for (const bool shrinks : {false, true}) {
    FleetPool pool = pool_of(5, 12);
    pool.min_available = "4";
    FleetEventConfig down = event(FleetEventKind::kScale, 5);
    down.replicas = 4;
    std::vector<FleetEventConfig> events = {event(FleetEventKind::kDrain, 10, {0})};
    if (shrinks) events.push_back(down);
    FleetResult result;
    (void)told({pool}, events, {}, &result);
    const std::vector<std::string> marks = marks_of(result);
    EXPECT_EQ(std::ranges::count(marks, "p-0 is evicted"), shrinks ? 0 : 1);
    EXPECT_EQ(std::ranges::count(marks, "p-0 waits for its disruption budget"), shrinks ? 1 : 0);
  }
  FleetPool half = pool_of(4, 12);
  half.min_available = "50%";
  EXPECT_EQ(told({half}, {event(FleetEventKind::kDrain, 10, {0, 1})}).at(11), "leave 1 12");
}

// Kubernetes takes a server for ready until it misses the machine, 50 s later: until then one of
// two may be evicted, and an autoscaler counts both.
TEST(Fleet, TakesALostServerForReadyForAWhile) {
  const FleetEventConfig loss = event(FleetEventKind::kNodeLoss, 10, {0});
  FleetPool pool = pool_of(2, 6);
  pool.most_evicted = "1";
  const auto evicted_at = [&](std::int64_t at) {
    FleetResult result;
    (void)told({pool}, {loss, event(FleetEventKind::kDrain, at, {1})}, {}, &result, 100'000);
    const std::vector<std::string> marks = marks_of(result);
    return std::ranges::count(marks, "p-1 is evicted");
  };
  EXPECT_EQ(evicted_at(50'009), 1);
  EXPECT_EQ(evicted_at(50'011), 0);
  EXPECT_TRUE(pods_at({pool_of(2, 6)}, {loss}, 50'009).at(0).state.ready);
  EXPECT_FALSE(pods_at({pool_of(2, 6)}, {loss}, 50'011).at(0).state.ready);
}

// A container that starts has its preStop hook, too, before it ends; a pod that waits for its image
// has none. Neither is asked for a budget where there is none.
TEST(Fleet, EndsContainersThatStartBehindTheirHook) {
  FleetPool pool = pool_of(1, 4);
  pool.termination.pre_stop = ms(30);
  FleetEventConfig up = event(FleetEventKind::kScale, 10);
  up.replicas = 2;
  const auto gone_at = [&](std::int64_t at) {
    FleetEventConfig down = event(FleetEventKind::kScale, at);
    down.replicas = 1;
    FleetResult result;
    (void)told({pool}, {up, down}, {}, &result, 1'000);
    EXPECT_EQ(marks_of(result).back(), "p-1 is gone");
    return result.marks.back().at_s;
  };
  EXPECT_DOUBLE_EQ(gone_at(40), 0.04);  // The image is there at 50.
  EXPECT_DOUBLE_EQ(gone_at(60), 0.09);
  FleetResult result;
  (void)told({pool_of(2, 6)}, {event(FleetEventKind::kDrain, 10, {0, 1})}, {}, &result, 1'000);
  EXPECT_EQ(result.pools[0].least_ready, 0) << "without a budget all may go at once";
}

// The pod of a lost machine becomes available while Kubernetes takes it for ready: ready at 100 ms,
// lost at 500, available at 1,100.
TEST(Fleet, RollsOnWithAMachineThatNobodyMissesYet) {
  FleetEventConfig roll = event(FleetEventKind::kRollOut, 0);
  roll.max_surge = "1";
  roll.max_unavailable = "0";
  roll.min_ready_seconds = ms(1'000);
  const Lines lines =
      told({pool_of(1, 3)}, {roll, event(FleetEventKind::kNodeLoss, 500, {1})}, {}, nullptr, 2'000);
  EXPECT_EQ(
      Lines(lines.begin() + 2, lines.end()),
      (Lines{"start 1 100", "join pod 1 at 1 101", "vanish 1 500", "stop 0 1100", "leave 0 1102"}));
}

// kubectl drain asks again, whatever happens to the container meanwhile.
TEST(Fleet, DrainsAServerThatCrashesWhileItWaits) {
  FleetPool pool = pool_of(2, 4);
  pool.most_evicted = "1";
  pool.start_up.load = ms(6'960);
  FleetResult result;
  (void)told({pool},
             {event(FleetEventKind::kDrain, 10, {0, 1}), event(FleetEventKind::kCrash, 20, {1})},
             {}, &result);
  const std::vector<std::string> marks = marks_of(result);
  EXPECT_EQ(std::ranges::count(marks, "p-1 is evicted"), 1);
}

// IfHealthyBudget: a server that is not ready goes only while enough are healthy without it. One
// whose image is not there yet always may.
TEST(Fleet, EvictsUnreadyServersAsTheDefaultPolicyDoes) {
  const auto evicted = [](const std::string& most, std::vector<FleetEventConfig> events) {
    FleetPool pool = pool_of(2, 6);
    pool.most_evicted = most;
    FleetResult result;
    (void)told({pool}, std::move(events), {}, &result, 65);
    const std::vector<std::string> marks = marks_of(result);
    return std::ranges::any_of(marks, [](const auto& m) { return m.ends_with("is evicted"); });
  };
  const FleetEventConfig crash = event(FleetEventKind::kCrash, 10, {1});
  const FleetEventConfig drain = event(FleetEventKind::kDrain, 60, {1});
  EXPECT_FALSE(evicted("0", {crash, drain}));
  EXPECT_TRUE(evicted("1", {crash, drain}));
  FleetEventConfig up = event(FleetEventKind::kScale, 15);
  up.replicas = 3;
  EXPECT_FALSE(evicted("0", {up, event(FleetEventKind::kDrain, 60, {2})}));
  EXPECT_TRUE(evicted("0", {up, event(FleetEventKind::kDrain, 50, {2})}));
}

// A pod has no process before its image is there, nor while its container waits to be started
// again.
TEST(Fleet, CrashesOnlyProcesses) {
  FleetEventConfig up = event(FleetEventKind::kScale, 10);
  up.replicas = 2;
  FleetResult result;
  Lines lines = told({pool_of(1, 2)}, {up, event(FleetEventKind::kCrash, 20, {1})}, {}, &result);
  EXPECT_EQ(lines.at(1), "start 1 110");
  EXPECT_EQ(marks_of(result).at(2), "p-1 has no process when it should crash");
  EXPECT_EQ(result.pools[0].ends, 0);
  lines = told({pool_of(1, 1)},
               {event(FleetEventKind::kCrash, 10, {0}), event(FleetEventKind::kCrash, 10, {0})}, {},
               &result);
  EXPECT_EQ(lines.at(2), "start 0 70");
  EXPECT_EQ(result.pools[0].ends, 1);
  // The second crash waits 10 s from 40 ms on, in which there is nothing to crash.
  lines = told({pool_of(1, 1)},
               {event(FleetEventKind::kCrash, 10, {0}), event(FleetEventKind::kCrash, 40, {0}),
                event(FleetEventKind::kCrash, 5'000, {0})},
               {}, &result);
  EXPECT_EQ(lines.at(2), "start 0 10100");
  EXPECT_EQ(result.pools[0].ends, 2);
}

// Spells of 100 ms that begin 1,000 ms after the last one: 909 in 1,000 s, however often the server
// crashes meanwhile. Three standard errors are below 90.
TEST(Fleet, KeepsOneChainOfSpellsOverCrashes) {
  FleetEventConfig slow;
  slow.kind = FleetEventKind::kSlow;
  slow.mean_time_between = ms(1'000);
  slow.lasts = ms(100);
  FleetEventConfig crash;
  crash.kind = FleetEventKind::kCrash;
  crash.mean_time_between = ms(500);
  crash.lasts = ms(1);
  const Lines lines = told({pool_of(1, 1)}, {slow, crash});
  EXPECT_NEAR(static_cast<double>(std::ranges::count_if(
                  lines, [](const std::string& l) { return l.starts_with("pace 2 of"); })),
              909, 90);
}

// Places of servers that end are free when these are gone, and one note says that they were missed.
TEST(Fleet, WaitsForAPlace) {
  FleetPool pool = pool_of(2, 2);
  pool.termination.pre_stop = ms(500);
  FleetEventConfig none = event(FleetEventKind::kScale, 10),
                   both = event(FleetEventKind::kScale, 20);
  none.replicas = 0;
  both.replicas = 2;
  FleetResult result;
  EXPECT_EQ(told({pool}, {none, both}, {}, &result),
            (Lines{"leave 1 12", "leave 0 12", "stop 1 510", "stop 0 510", "start 1 610",
                   "start 0 610", "join pod 1 at 1 611", "join pod 1 at 0 611"}));
  EXPECT_EQ(std::ranges::count(marks_of(result), "p finds no place for another server"), 1);
  // The machines of those that end are lost.
  EXPECT_EQ(
      told({pool}, {none, both, event(FleetEventKind::kNodeLoss, 100, {0, 1})}, {}, &result).at(4),
      "start 0 200");
}

TEST(Fleet, RestartsRouters) {
  FleetEventConfig e = event(FleetEventKind::kRouterRestart, 7);
  e.lasts = ms(30);
  EXPECT_EQ(told({pool_of(1, 1)}, {e}), (Lines{"stop router 0 7", "start router 0 37"}));
}

// What begins while the same still lasts: 7 to 37 and 20 to 60 is one absence from 7 to 60.
TEST(Fleet, LetsAbsencesOfARouterOverlap) {
  FleetEventConfig first = event(FleetEventKind::kRouterRestart, 7);
  FleetEventConfig second = event(FleetEventKind::kRouterRestart, 20);
  first.lasts = ms(30);
  second.lasts = ms(40);
  const Lines lines = {"stop router 0 7", "start router 0 60"};
  EXPECT_EQ(told({pool_of(1, 1)}, {first, second}), lines);
  EXPECT_EQ(told({pool_of(1, 1)}, {second, first}), lines);
}

TEST(Fleet, LetsSlowSpellsOverlap) {
  FleetEventConfig first = event(FleetEventKind::kSlow, 10, {0});
  FleetEventConfig second = event(FleetEventKind::kSlow, 20, {0});
  first.factor = 3;
  second.factor = 5;
  first.lasts = ms(50);
  second.lasts = ms(10);
  EXPECT_EQ(told({pool_of(1, 1)}, {first, second}),
            (Lines{"pace 3 of 0 10", "pace 5 of 0 20", "pace 3 of 0 30", "pace 1 of 0 60"}));
  second.lasts = ms(90);
  EXPECT_EQ(told({pool_of(1, 1)}, {first, second}),
            (Lines{"pace 3 of 0 10", "pace 5 of 0 20", "pace 5 of 0 60", "pace 1 of 0 110"}));
}

TEST(Fleet, LetsLossesOfEventsOverlap) {
  FleetEventConfig first = event(FleetEventKind::kKvEventsLost, 10, {0});
  FleetEventConfig second = event(FleetEventKind::kKvEventsLost, 20, {0});
  first.lasts = ms(50);
  second.lasts = ms(10);
  EXPECT_EQ(told({pool_of(1, 1)}, {first, second}),
            (Lines{"deaf 0 10", "deaf 0 20", "heard 0 60"}));
}

TEST(Fleet, LetsLossesOfLinksOverlapAndEndWithThePod) {
  FleetEventConfig first = event(FleetEventKind::kLinkLost, 10, {0});
  FleetEventConfig second = event(FleetEventKind::kLinkLost, 20, {0});
  first.lasts = ms(50);
  second.lasts = ms(10);
  EXPECT_EQ(told({pool_of(1, 1)}, {first, second}), (Lines{"cut 0 10", "cut 0 20", "linked 0 60"}));
  // The pod in its place has a link that works.
  first.lasts = ms(5'000);
  const Lines lines = told({pool_of(1, 1)}, {first, event(FleetEventKind::kDrain, 20, {0})});
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "linked 0 5010"), 0);
  EXPECT_GT(std::count_if(lines.begin(), lines.end(),
                          [](const std::string& l) { return l.starts_with("linked 0"); }),
            0);
}

// Failures at a rate: the mean time between them, and the mean repair, of many draws.
TEST(Fleet, FailsAtItsRate) {
  FleetEventConfig e;
  e.kind = FleetEventKind::kCrash;
  e.mean_time_between = ms(1'000);
  e.lasts = ms(250);
  FleetResult result;
  (void)told({pool_of(1, 1)}, {e}, {}, &result, 4'000'000);
  // Availability 1000 / 1250; 3,200 failures, so 3 standard errors are below 0.02.
  EXPECT_NEAR(result.pools[0].mean_ready, 0.8, 0.02);
  EXPECT_NEAR(static_cast<double>(result.pools[0].ends), 3'200, 170);
  EXPECT_GT(result.unmarked, 0);
}

TEST(Fleet, DrawsTheSameFailuresForTheSameSeed) {
  FleetEventConfig e;
  e.kind = FleetEventKind::kCrash;
  e.mean_time_between = ms(1'000);
  EXPECT_EQ(told({pool_of(3, 3)}, {e}, {}, nullptr, 10'000),
            told({pool_of(3, 3)}, {e}, {}, nullptr, 10'000));
}

TEST(Fleet, DoesNothingToServersThatAreNotThere) {
  FleetResult result;
  (void)told({pool_of(1, 2)}, {event(FleetEventKind::kCrash, 5, {1})}, {}, &result);
  ASSERT_EQ(result.marks.size(), 1U);
  EXPECT_EQ(result.marks[0].subject, "p-1");
  EXPECT_EQ(result.marks[0].what, "is not there when it should crash");
}

}  // namespace
}  // namespace routesim::sim::fleet_alone
