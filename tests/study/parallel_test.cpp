#include "tools/study/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace routesim::sim {
namespace {

TEST(ForEachIndex, CallsEveryIndexOnce) {
  for (const std::size_t jobs : {0U, 1U, 2U, 7U}) {
    std::vector<std::atomic<int>> calls(100);
    for_each_index(calls.size(), jobs, [&](std::size_t i) { ++calls[i]; });
    for (const std::atomic<int>& c : calls) EXPECT_EQ(c.load(), 1);
  }
  for_each_index(0, 4, [](std::size_t) { FAIL(); });
}

TEST(ForEachIndex, RethrowsTheLowestFailureForAnyNumberOfThreads) {
  for (const std::size_t jobs : {1U, 2U, 8U}) {
    for (int repeat = 0; repeat < 50; ++repeat) {
      std::string what;
      try {
        for_each_index(64, jobs, [](std::size_t i) {
          if (i >= 9) throw std::runtime_error(std::to_string(i));
        });
      } catch (const std::runtime_error& e) {
        what = e.what();
      }
      EXPECT_EQ(what, "9") << jobs << " jobs";
    }
  }
}

TEST(ForEachIndex, AJobBeginsAfterTheOneItNeeds) {
  // 0 <- 2 <- 3 and 1 <- 4; 5 needs none.
  const std::vector<std::size_t> after = {kNoJob, kNoJob, 0, 2, 1, kNoJob};
  for (const std::size_t jobs : {1U, 2U, 6U}) {
    for (int repeat = 0; repeat < 50; ++repeat) {
      std::vector<std::atomic<bool>> done(after.size());
      for_each_index(
          after.size(), jobs,
          [&](std::size_t i) {
            if (after[i] != kNoJob) {
              EXPECT_TRUE(done[after[i]]);
            }
            done[i] = true;
          },
          after);
      for (const std::atomic<bool>& d : done) EXPECT_TRUE(d);
    }
  }
}

TEST(ForEachIndex, RunsWhatIsBelowAFailureEvenWhenItHadToWait) {
  const std::vector<std::size_t> after = {kNoJob, 0, kNoJob, kNoJob};
  for (const std::size_t jobs : {1U, 2U, 4U}) {
    for (int repeat = 0; repeat < 50; ++repeat) {
      std::string what;
      try {
        for_each_index(
            after.size(), jobs,
            [](std::size_t i) {
              if (i > 0) throw std::runtime_error(std::to_string(i));
            },
            after);
      } catch (const std::runtime_error& e) {
        what = e.what();
      }
      EXPECT_EQ(what, "1") << jobs << " jobs";
    }
  }
}

TEST(ForEachIndex, OneThreadKeepsTheOrder) {
  std::vector<std::size_t> order;
  for_each_index(5, 1, [&](std::size_t i) { order.push_back(i); });
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
}

TEST(DefaultJobs, IsAtLeastOne) { EXPECT_GE(default_jobs(), 1U); }

}  // namespace
}  // namespace routesim::sim
