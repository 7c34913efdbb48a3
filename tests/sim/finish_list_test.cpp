// The order in which members of a decode set end, against a sorted map.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "base/rng.h"
#include "sim/engine/decode_set.h"

namespace routesim::sim::testing {
namespace {

// Long enough for what has gone to be dropped from the front, and emptied now and then.
TEST(FinishList, GivesSequencesByPassAndThenInTheOrderTheyCame) {
  RandomStream random(11, Stream::kTest);
  FinishList list;
  std::multimap<std::int64_t, std::uint32_t> model;
  std::int64_t now = 0;
  std::uint32_t slot = 0;
  std::size_t most = 0;
  for (int step = 0; step < 20'000; ++step) {
    ASSERT_EQ(list.empty(), model.empty());
    // Fills up to some hundreds, then drains to nothing.
    const bool filling = step / 1000 % 2 == 0;
    if (model.empty() || random.below(10) < (filling ? 6U : 4U)) {
      // Mostly one after another; sometimes sooner than many that wait.
      const std::int64_t ahead = random.below(4) == 0 ? 1 + random.below(200) : 200;
      list.add(now + ahead, {.slot = slot, .stamp = slot + 7});
      model.emplace(now + ahead, slot++);
    } else {
      ASSERT_EQ(list.first_pass(), model.begin()->first);
      now = list.first_pass();
      const SequenceRef got = list.pop();
      ASSERT_EQ(got.slot, model.begin()->second);
      ASSERT_EQ(got.stamp, got.slot + 7);
      model.erase(model.begin());
    }
    most = std::max(most, model.size());
  }
  EXPECT_GT(most, 200U) << "otherwise nothing is dropped from the front";
  list.add(now + 1, {});
  list.clear();
  EXPECT_TRUE(list.empty());
}

}  // namespace
}  // namespace routesim::sim::testing
