#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/study/experiment/experiment.h"

namespace routesim::tools {
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

TEST(ForEachIndex, RunsWhatIsBelowAFailure) {
  for (const std::size_t jobs : {1U, 2U, 4U}) {
    for (int repeat = 0; repeat < 50; ++repeat) {
      std::vector<std::atomic<int>> calls(20);
      EXPECT_THROW(for_each_index(calls.size(), jobs,
                                  [&](std::size_t i) {
                                    ++calls[i];
                                    if (i == 5) throw std::runtime_error("5");
                                  }),
                   std::runtime_error);
      for (std::size_t i = 0; i <= 5; ++i) EXPECT_EQ(calls[i].load(), 1);
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
}  // namespace routesim::tools
