// The split of a load into a warm-up and the rest.
#include "workloads/warmed_load.h"

#include <gtest/gtest.h>

#include "workloads/groups/group_load.h"

namespace routesim::workloads {
namespace {

std::unique_ptr<LoadGenerator> grouped() {
  Diagnostics found;
  return make_load_generator(GroupLoadConfig{.requests = 1000, .rate = 10}, {}, {}, found);
}

struct DueRequest {
  SimTime due;
  std::uint32_t stage = 0;
};

/// All requests, each answered at once.
std::vector<DueRequest> answer_all(LoadGenerator& load) {
  std::vector<DueRequest> sent;
  std::vector<Request> due;
  while (!load.finished()) {
    const SimTime now = load.next_action();
    due.clear();
    load.advance(now, due);
    for (const Request& r : due) {
      sent.push_back({r.due, r.stage.value()});
      load.on_completed(r, Outcome::kSuccess, now);
    }
  }
  return sent;
}

TEST(WarmedLoad, SplitsItsLastStageByWhenRequestsAreDue) {
  const std::unique_ptr<LoadGenerator> plain = grouped();
  const std::unique_ptr<LoadGenerator> warmed = with_warm_up(grouped(), Duration::seconds(30));
  const std::vector<StageInfo>& stages = warmed->stages();
  ASSERT_EQ(stages.size(), 2U);
  EXPECT_EQ(stages[0].name, "warm-up");
  EXPECT_FALSE(stages[0].reported);
  EXPECT_DOUBLE_EQ(stages[0].duration_s, 30);
  EXPECT_EQ(stages[1].name, plain->stages()[0].name);
  EXPECT_TRUE(stages[1].reported);
  EXPECT_DOUBLE_EQ(stages[1].duration_s, 70);
  EXPECT_EQ(stages[1].requested_rate, 10);

  const std::vector<DueRequest> same = answer_all(*plain), split = answer_all(*warmed);
  ASSERT_EQ(split.size(), same.size());
  std::size_t warm = 0;
  for (std::size_t i = 0; i < split.size(); ++i) {
    EXPECT_EQ(split[i].due, same[i].due) << "times stay";
    const bool is_warm = split[i].due < SimTime::zero() + Duration::seconds(30);
    EXPECT_EQ(split[i].stage, is_warm ? 0U : 1U);
    warm += is_warm ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(warm), 300, 60);
}

}  // namespace
}  // namespace routesim::workloads
