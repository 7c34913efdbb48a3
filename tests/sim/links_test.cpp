// Max-min fair shares by hand: links of 1 GB/s, that is one byte per nanosecond; and what must hold
// for every load.
#include "sim/network/links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/clock.h"
#include "base/rng.h"

namespace routesim::sim {
namespace {

SimTime at(std::int64_t ns) { return SimTime::from_ns(ns); }

std::vector<std::uint64_t> advance(Links& links, std::int64_t ns) {
  std::vector<std::uint64_t> done;
  links.advance(at(ns), done);
  return done;
}
using Ids = std::vector<std::uint64_t>;

/// Nodes with a port per direction.
struct Ports {
  explicit Ports(std::uint32_t nodes, double rate = 1e9) {
    for (std::uint32_t i = 0; i < 2 * nodes; ++i) links.add(rate);
  }
  void start(std::uint64_t id, std::uint32_t from, std::uint32_t to, double bytes, SimTime now) {
    links.start(id, {2 * from, 2 * to + 1}, bytes, now);
  }
  Links links;
};

TEST(Links, OneFlowHasItsPathToItself) {
  Ports p(2);
  p.start(1, 0, 1, 1000, at(50));
  EXPECT_EQ(p.links.next_end(), at(1050));
  EXPECT_EQ(advance(p.links, 1049), Ids{});
  EXPECT_EQ(advance(p.links, 1050), Ids{1});
  EXPECT_EQ(p.links.next_end(), SimTime::max());
}

// 300 of 1,000 bytes have moved when the port stops at 300 ns; it goes on at 500, at half its rate
// from 600 on. Flows between other nodes do not notice.
TEST(Links, AFlowWaitsForItsLink) {
  Ports p(4);
  p.start(1, 0, 1, 1000, at(0));
  p.start(2, 2, 3, 400, at(0));
  p.links.set_rate(0, 0, at(300));
  EXPECT_EQ(advance(p.links, 400), Ids{2});
  EXPECT_EQ(p.links.next_end(), SimTime::max());
  p.start(3, 0, 3, 200, at(450));
  EXPECT_EQ(p.links.next_end(), SimTime::max());
  p.links.set_rate(0, 1e9, at(500));
  // They share the port: 50 bytes each by 600, then a quarter of the port each.
  p.links.set_rate(0, 0.5e9, at(600));
  EXPECT_EQ(p.links.next_end(), at(600 + 150 * 4));
  EXPECT_EQ(advance(p.links, 1200), Ids{3});
  // 700 - 50 - 150 are left.
  EXPECT_EQ(p.links.next_end(), at(1200 + 500 * 2));
}

TEST(Links, TwoFlowsIntoOneNodeHalveItsPort) {
  Ports p(3);
  p.start(1, 0, 2, 1000, at(0));
  p.start(2, 1, 2, 400, at(0));
  EXPECT_EQ(p.links.next_end(), at(800));
  EXPECT_EQ(advance(p.links, 800), Ids{2});
  // The first has 600 left and the whole port.
  EXPECT_EQ(p.links.next_end(), at(1400));
}

TEST(Links, ALateFlowSlowsARunningOne) {
  Ports p(3);
  p.start(1, 0, 1, 1000, at(0));
  p.start(2, 0, 2, 1000, at(600));
  EXPECT_EQ(p.links.next_end(), at(600 + 800));
  EXPECT_EQ(advance(p.links, 1400), Ids{1});
  EXPECT_EQ(p.links.next_end(), at(1400 + 600));
}

TEST(Links, WhatAFlowCannotUseGoesToOthers) {
  // Flows 1, 2, 3 leave node 0: a third each. Flow 4 shares only node 3's ingress with flow 3, so
  // it gets what flow 3 leaves: two thirds.
  Ports p(5);
  p.start(1, 0, 1, 300, at(0));
  p.start(2, 0, 2, 300, at(0));
  p.start(3, 0, 3, 300, at(0));
  p.start(4, 4, 3, 500, at(0));
  EXPECT_EQ(p.links.next_end(), at(750));  // flow 4: 500 at 2/3
  EXPECT_EQ(advance(p.links, 750), Ids{4});
  EXPECT_EQ(p.links.next_end(), at(900));
  EXPECT_EQ(advance(p.links, 900), (Ids{1, 2, 3}));
}

TEST(Links, BothDirectionsOfANodeAreIndependent) {
  Ports p(2);
  p.start(1, 0, 1, 1000, at(0));
  p.start(2, 1, 0, 1000, at(0));
  EXPECT_EQ(p.links.next_end(), at(1000));
}

TEST(Links, ACancelledFlowGivesItsShareBack) {
  Ports p(3);
  p.start(1, 0, 1, 1000, at(0));
  p.start(2, 0, 2, 1000, at(0));
  p.links.cancel(2, at(400));
  EXPECT_EQ(p.links.next_end(), at(400 + 800));
  p.links.cancel(99, at(500));
  EXPECT_EQ(p.links.active(), 1U);
}

TEST(Links, UseIsWhatMovedOverWhatCouldHave) {
  Ports p(2);
  p.start(1, 0, 1, 1000, at(50));
  EXPECT_DOUBLE_EQ(p.links.mean_use(0, at(550)), 500.0 / 550) << "of a flow under way";
  EXPECT_EQ(advance(p.links, 1050), Ids{1});
  EXPECT_DOUBLE_EQ(p.links.mean_use(3, at(2000)), 0.5);
  EXPECT_EQ(p.links.mean_use(1, at(2000)), 0) << "the other direction";
  p.start(2, 0, 1, 1000, at(2000));
  p.links.cancel(2, at(2400));
  EXPECT_DOUBLE_EQ(p.links.mean_use(0, at(2800)), 0.5) << "what moved before the flow was dropped";
}

TEST(Links, AFlowThatOutlastsTheClockEndsWithIt) {
  Ports p(2, 1e-12);
  p.start(1, 0, 1, 1e18, at(50));
  EXPECT_EQ(p.links.next_end(), kEndOfTime);
  EXPECT_EQ(advance(p.links, 1'000'000), Ids{});
  EXPECT_EQ(p.links.next_end(), kEndOfTime);
}

TEST(Links, APathOfThreeLinksGoesAsFastAsItsTightestOne) {
  // Two buses of 4 and 6 bytes/ns, a memory of 8 behind both, a port of 1 behind one of them.
  Links links;
  const LinkId bus_a = links.add(4e9), bus_b = links.add(6e9), memory = links.add(8e9),
               port = links.add(1e9);
  links.start(1, {bus_a, memory}, 4000, at(0));
  EXPECT_DOUBLE_EQ(links.load(memory), 4e9);
  // 4 and 6 are more than 8: 4 each.
  links.start(2, {bus_b, memory}, 8000, at(0));
  EXPECT_DOUBLE_EQ(links.load(bus_a), 4e9);
  EXPECT_DOUBLE_EQ(links.load(bus_b), 4e9);
  // The third is held at 1 by its port and shares bus b and the memory: the others have 7, and the
  // first of them takes no more than 3.5.
  links.start(3, {bus_b, memory, port}, 1000, at(0));
  EXPECT_DOUBLE_EQ(links.load(port), 1e9);
  EXPECT_DOUBLE_EQ(links.load(bus_a), 3.5e9);
  EXPECT_DOUBLE_EQ(links.load(bus_b), 4.5e9);
  EXPECT_DOUBLE_EQ(links.load(memory), 8e9);
  EXPECT_EQ(links.next_end(), at(1000));
  EXPECT_EQ(advance(links, 1000), Ids{3});
  // 500 bytes are left of the first, 4500 of the second; they have 4 again.
  EXPECT_EQ(links.next_end(), at(1125));
  EXPECT_EQ(advance(links, 1125), Ids{1});
  EXPECT_DOUBLE_EQ(links.load(bus_b), 6e9);
  EXPECT_EQ(links.next_end(), at(1125 + 667));  // 4000 at 6, rounded up
}

/// Some flows over some links, and the shares that filling them bit by bit gives.
class SlowLinks {
 public:
  std::vector<double> rates;
  struct Flow {
    std::vector<LinkId> links;
    std::uint64_t id;
  };
  std::vector<Flow> flows;

  std::vector<double> shares() const {
    std::vector<double> share(flows.size(), -1), left = rates;
    for (std::size_t open = flows.size(); open > 0;) {
      double least = std::numeric_limits<double>::infinity();
      LinkId tightest = 0;
      for (LinkId l = 0; l < rates.size(); ++l) {
        double users = 0;
        for (std::size_t f = 0; f < flows.size(); ++f) users += share[f] < 0 && uses(f, l) ? 1 : 0;
        if (users == 0 || left[l] / users >= least) continue;
        least = left[l] / users;
        tightest = l;
      }
      for (std::size_t f = 0; f < flows.size(); ++f) {
        if (share[f] >= 0 || !uses(f, tightest)) continue;
        share[f] = least;
        --open;
        for (const LinkId l : flows[f].links) left[l] -= least;
      }
    }
    return share;
  }

 private:
  bool uses(std::size_t f, LinkId l) const {
    return std::find(flows[f].links.begin(), flows[f].links.end(), l) != flows[f].links.end();
  }
};

void expect_progressive_filling(const Links& links, const SlowLinks& slow, std::uint64_t seed) {
  const std::vector<double> shares = slow.shares();
  std::vector<double> load(slow.rates.size());
  for (std::size_t f = 0; f < shares.size(); ++f)
    for (const LinkId l : slow.flows[f].links) load[l] += shares[f];
  for (LinkId l = 0; l < load.size(); ++l) {
    ASSERT_NEAR(links.load(l), load[l], 1e-6 * slow.rates[l]) << "seed " << seed;
    ASSERT_LE(links.load(l), slow.rates[l] * (1 + 1e-9)) << "seed " << seed;
  }
  for (const SlowLinks::Flow& f : slow.flows) {
    const bool full = std::any_of(f.links.begin(), f.links.end(), [&](LinkId l) {
      return links.load(l) > slow.rates[l] * (1 - 1e-6);
    });
    ASSERT_TRUE(full) << "seed " << seed << ": flow " << f.id << " could go faster";
  }
}

// At all times: no link carries more than it can, every flow has a full link, and the shares are
// those of progressive filling, although most starts and ends recompute nothing.
TEST(Links, BandwidthIsConservedAndShared) {
  std::int64_t checked = 0, contended = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    RandomStream random(seed, Stream::kTest, 5);
    Links links;
    SlowLinks slow;
    const std::uint64_t n = 2 + random.below(8);
    for (std::uint64_t l = 0; l < n; ++l) {
      slow.rates.push_back(static_cast<double>(1 + random.below(20)) * 1e9);
      links.add(slow.rates.back());
    }
    std::uint64_t next_id = 0;
    SimTime now;
    const auto drop = [&slow](std::uint64_t id) {
      std::erase_if(slow.flows, [id](const SlowLinks::Flow& f) { return f.id == id; });
    };
    for (int event = 0; event < 60; ++event) {
      const std::uint64_t kind = random.below(5);
      if (kind < 2 || slow.flows.empty()) {
        LinkPath path;
        SlowLinks::Flow flow{.links = {}, .id = next_id++};
        const std::uint64_t length = 1 + random.below(std::min<std::uint64_t>(n, 4));
        while (path.links().size() < length) {
          const auto l = static_cast<LinkId>(random.below(n));
          if (path.uses(l)) continue;
          path.add(l);
          flow.links.push_back(l);
        }
        links.start(flow.id, path, static_cast<double>(1 + random.below(1'000'000)), now);
        slow.flows.push_back(flow);
      } else if (kind == 2) {
        const std::uint64_t id = slow.flows[random.below(slow.flows.size())].id;
        links.cancel(id, now);
        drop(id);
      } else {
        now = links.next_end();
        std::vector<std::uint64_t> done;
        links.advance(now, done);
        ASSERT_FALSE(done.empty()) << "seed " << seed;
        for (const std::uint64_t id : done) drop(id);
      }
      expect_progressive_filling(links, slow, seed);
      if (::testing::Test::HasFatalFailure()) return;
      ++checked;
      contended += slow.flows.size() > 1 ? 1 : 0;
    }
  }
  EXPECT_EQ(checked, 400 * 60);
  EXPECT_GT(contended, 5'000);
}

}  // namespace
}  // namespace routesim::sim
