// Searches against brute force, and plans with a resource doubled.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tools/study/plan/plan_search.h"
#include "tools/study/what_if.h"

namespace routesim::sim {
namespace {

TEST(Bisection, FindsEveryThresholdAndSeesThatItIsOne) {
  for (std::int64_t low = 1; low <= 3; ++low)
    for (std::int64_t high = low; high <= 70; ++high)
      for (std::int64_t threshold = low; threshold <= high + 1; ++threshold) {
        Bisection search(low, high);
        std::set<std::int64_t> probed;
        while (const auto n = search.next()) {
          EXPECT_TRUE(low <= *n && *n <= high);
          EXPECT_FALSE(search.answer());
          EXPECT_TRUE(probed.insert(*n).second) << "probed twice";
          search.tell(*n >= threshold);
        }
        if (threshold > high) {
          EXPECT_FALSE(search.answer());
          EXPECT_EQ(probed.size(), 1U);
          continue;
        }
        ASSERT_EQ(search.answer(), threshold);
        EXPECT_TRUE(probed.contains(threshold));
        if (threshold > low) {
          EXPECT_TRUE(probed.contains(threshold - 1));
        }
        const auto most = 1 + std::ceil(std::log2(static_cast<double>(high - low + 1)));
        EXPECT_LE(static_cast<double>(probed.size()), most);
      }
}

TEST(UpwardSearch, FindsEveryThresholdWhateverTheLimit) {
  for (std::int64_t low = 1; low <= 3; ++low)
    for (std::int64_t high = low; high <= 70; ++high)
      for (std::int64_t threshold = low; threshold <= high + 1; ++threshold) {
        UpwardSearch search(low, high);
        std::set<std::int64_t> probed;
        while (const auto n = search.next()) {
          EXPECT_TRUE(low <= *n && *n <= high);
          EXPECT_FALSE(search.answer());
          EXPECT_TRUE(probed.insert(*n).second) << "probed twice";
          search.tell(*n >= threshold, 1.0 / static_cast<double>(*n));
        }
        EXPECT_FALSE(search.tried_singly());
        if (threshold > high) {
          EXPECT_FALSE(search.answer());
          EXPECT_LE(static_cast<double>(probed.size()),
                    2 + std::ceil(std::log2(static_cast<double>(high))));
          continue;
        }
        ASSERT_EQ(search.answer(), threshold);
        if (threshold > low) {
          EXPECT_TRUE(probed.contains(threshold - 1));
        }
        const auto most = 3 + 2 * std::log2(static_cast<double>(threshold));
        EXPECT_LE(static_cast<double>(probed.size()), most);
      }
}

TEST(UpwardSearch, FindsWhatHoldsOnlyBelowTheLimit) {
  for (std::int64_t high = 1; high <= 40; ++high)
    for (std::int64_t first = 1; first <= high; ++first)
      for (std::int64_t last = first; last <= high; ++last) {
        // Too few are too slow, and too many share too little.
        const double middle = 0.5 * static_cast<double>(first + last);
        UpwardSearch search(1, high);
        std::set<std::int64_t> probed;
        while (const auto n = search.next()) {
          EXPECT_TRUE(probed.insert(*n).second) << "probed twice";
          search.tell(first <= *n && *n <= last, std::abs(static_cast<double>(*n) - middle));
        }
        if (!search.answer()) {  // More helped up to the end, as far as the doubling saw.
          EXPECT_FALSE(search.tried_singly());
          EXPECT_LT(static_cast<double>(high) - middle, middle);
          continue;
        }
        ASSERT_EQ(search.answer(), first) << high << ' ' << first << ' ' << last;
      }
}

TEST(RateSearch, BracketsTheKnee) {
  for (const double knee : {10.0, 10.1, 14.9, 15.0, 40.0, 79.0}) {
    RateSearch search(10, 80, 0.03);
    int probes = 0;
    while (const auto rate = search.next()) {
      ++probes;
      search.tell(*rate <= knee);
    }
    EXPECT_LE(search.holds(), knee);
    ASSERT_TRUE(search.fails());
    EXPECT_GT(*search.fails(), knee);
    EXPECT_LE(*search.fails() / search.holds(), 1.03);
    EXPECT_LE(probes, 12);
  }
}

TEST(RateSearch, StopsAtTheLimit) {
  RateSearch search(10, 80, 0.03);
  while (search.next()) search.tell(true);
  EXPECT_EQ(search.holds(), 80);
  EXPECT_FALSE(search.fails());
}

/// 1000 ticks, 7 per prompt token, 20 per decoding sequence and 1 per token of its context.
class Simple final : public models::LatencyModel {
 public:
  std::int64_t step_ticks(const models::BatchShape& s) const override {
    return 1000 + 7 * s.prefill_tokens + 20 * s.decode_requests + s.decode_context;
  }
  models::Trust trust(const models::BatchShape&) const override { return models::Trust::kFitted; }
  std::string provenance() const override { return "simple"; }
};

RunPlan plan_of(PoolRole role) {
  RunPlan plan;
  ResolvedPool& pool = plan.pools.emplace_back();
  pool.config.role = role;
  pool.rules.num_gpu_blocks = 100;
  pool.latency = std::make_shared<const Simple>();
  plan.scenario.cluster.transfer.bandwidth_gbps = 200;
  return plan;
}

models::BatchShape shape(std::int64_t prefill, std::int64_t decode) {
  models::BatchShape s;
  s.prefill_requests = prefill > 0 ? 1 : 0;
  s.prefill_tokens = prefill;
  s.decode_requests = decode;
  s.decode_context = 100 * decode;
  return s;
}

TEST(WhatIf, HalvesThePartOfTheStepThatIsDueToTheWork) {
  const RunPlan base = plan_of(PoolRole::kBoth);
  const auto ticks = [&](Resource r, const models::BatchShape& s) {
    return with_doubled(base, r).pools[0].latency->step_ticks(s);
  };
  // 512 prompt tokens beside 10 sequences: 1000 + 3584 + 200 + 1000 = 5784.
  EXPECT_EQ(base.pools[0].latency->step_ticks(shape(512, 10)), 5784);
  EXPECT_EQ(ticks(Resource::kPrefillCompute, shape(512, 10)), 5784 - 3584 / 2);
  EXPECT_EQ(ticks(Resource::kDecodeBandwidth, shape(512, 10)), 5784 - 1200 / 2);
  // Alone, the whole step is due to the work, its fixed part included.
  EXPECT_EQ(ticks(Resource::kPrefillCompute, shape(512, 0)), 4584 / 2);
  EXPECT_EQ(ticks(Resource::kDecodeBandwidth, shape(0, 10)), 2200 / 2);
  // And nothing of it is due to the other.
  EXPECT_EQ(ticks(Resource::kPrefillCompute, shape(0, 10)), 2200);
  EXPECT_EQ(ticks(Resource::kDecodeBandwidth, shape(512, 0)), 4584);
}

TEST(WhatIf, ServersOfOneKindAreFasterAsAWhole) {
  const RunPlan prefill = plan_of(PoolRole::kPrefill);
  const auto ticks = [](const RunPlan& plan) {
    return plan.pools[0].latency->step_ticks(shape(512, 10));
  };
  EXPECT_EQ(ticks(with_doubled(prefill, Resource::kPrefillCompute)), 5784 / 2);
  EXPECT_EQ(ticks(with_doubled(prefill, Resource::kDecodeBandwidth)), 5784);
  EXPECT_TRUE(has_resource(prefill, Resource::kTransfer));
  EXPECT_FALSE(has_resource(plan_of(PoolRole::kBoth), Resource::kTransfer));
}

TEST(WhatIf, DoublesBlocksAndLinksAndLeavesTheOriginal) {
  const RunPlan base = plan_of(PoolRole::kPrefill);
  EXPECT_EQ(with_doubled(base, Resource::kKvBlocks).pools[0].rules.num_gpu_blocks, 200);
  EXPECT_EQ(with_doubled(base, Resource::kTransfer).scenario.cluster.transfer.bandwidth_gbps, 400);
  EXPECT_EQ(base.pools[0].rules.num_gpu_blocks, 100);
  EXPECT_EQ(base.scenario.cluster.transfer.bandwidth_gbps, 200);
  for (const Resource r : kResources)
    EXPECT_EQ(with_doubled(base, r).pools[0].latency == base.pools[0].latency,
              r != Resource::kPrefillCompute);
}

}  // namespace
}  // namespace routesim::sim
