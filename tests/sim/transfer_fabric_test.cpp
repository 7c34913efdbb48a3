// Max-min fair shares by hand: ports of 1 GB/s, that is one byte per nanosecond.
#include "sim/network/transfer_fabric.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace routesim::sim {
namespace {

SimTime at(std::int64_t ns) { return SimTime::from_ns(ns); }

std::vector<std::uint64_t> advance(TransferFabric& f, std::int64_t ns) {
  std::vector<std::uint64_t> done;
  f.advance(at(ns), done);
  return done;
}
using Ids = std::vector<std::uint64_t>;

TEST(TransferFabric, OneFlowHasThePortToItself) {
  TransferFabric f(2, 1e9);
  f.start(1, 0, 1, 1000, at(50));
  EXPECT_EQ(f.next_end(), at(1050));
  EXPECT_EQ(advance(f, 1049), Ids{});
  EXPECT_EQ(advance(f, 1050), Ids{1});
  EXPECT_EQ(f.next_end(), SimTime::max());
}

TEST(TransferFabric, TwoFlowsIntoOneNodeHalveItsPort) {
  TransferFabric f(3, 1e9);
  f.start(1, 0, 2, 1000, at(0));
  f.start(2, 1, 2, 400, at(0));
  EXPECT_EQ(f.next_end(), at(800));
  EXPECT_EQ(advance(f, 800), Ids{2});
  // The first has 600 left and the whole port.
  EXPECT_EQ(f.next_end(), at(1400));
}

TEST(TransferFabric, ALateFlowSlowsARunningOne) {
  TransferFabric f(3, 1e9);
  f.start(1, 0, 1, 1000, at(0));
  f.start(2, 0, 2, 1000, at(600));
  EXPECT_EQ(f.next_end(), at(600 + 800));
  EXPECT_EQ(advance(f, 1400), Ids{1});
  EXPECT_EQ(f.next_end(), at(1400 + 600));
}

TEST(TransferFabric, WhatAFlowCannotUseGoesToOthers) {
  // Flows 1, 2, 3 leave node 0: a third each. Flow 4 shares only node 3's ingress with flow 3, so
  // it gets what flow 3 leaves: two thirds.
  TransferFabric f(5, 1e9);
  f.start(1, 0, 1, 300, at(0));
  f.start(2, 0, 2, 300, at(0));
  f.start(3, 0, 3, 300, at(0));
  f.start(4, 4, 3, 500, at(0));
  EXPECT_EQ(f.next_end(), at(750));  // flow 4: 500 at 2/3
  EXPECT_EQ(advance(f, 750), Ids{4});
  EXPECT_EQ(f.next_end(), at(900));
  EXPECT_EQ(advance(f, 900), (Ids{1, 2, 3}));
}

TEST(TransferFabric, BothDirectionsOfANodeAreIndependent) {
  TransferFabric f(2, 1e9);
  f.start(1, 0, 1, 1000, at(0));
  f.start(2, 1, 0, 1000, at(0));
  EXPECT_EQ(f.next_end(), at(1000));
}

TEST(TransferFabric, ACancelledFlowGivesItsShareBack) {
  TransferFabric f(3, 1e9);
  f.start(1, 0, 1, 1000, at(0));
  f.start(2, 0, 2, 1000, at(0));
  f.cancel(2, at(400));
  EXPECT_EQ(f.next_end(), at(400 + 800));
  f.cancel(99, at(500));
  EXPECT_EQ(f.active(), 1U);
}

TEST(TransferFabric, AFlowThatOutlastsTheClockEndsWithIt) {
  TransferFabric f(2, 1e-12);
  f.start(1, 0, 1, 1e18, at(50));
  EXPECT_EQ(f.next_end(), kEndOfTime);
  EXPECT_EQ(advance(f, 1'000'000), Ids{});
  EXPECT_EQ(f.next_end(), kEndOfTime);
}

}  // namespace
}  // namespace routesim::sim
