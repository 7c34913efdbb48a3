#include "models/measured.h"

#include <gtest/gtest.h>

#include "tests/models/model_fixture.h"

namespace routesim::models {
namespace {

MeasuredTable table() {
  return {.decode = {{1, 1000, 10}, {1, 3000, 12}, {11, 1000, 20}, {11, 3000, 42}},
          .prefill = {{100, 50, 20}, {1100, 50, 70}, {100, 1000, 30}, {1100, 1000, 120}},
          .shared_ms = 9,
          .provenance = "made up"};
}

TEST(Measured, InterpolatesBothAxes) {
  Diagnostics d;
  const auto m = MeasuredLatency::make(table(), d);
  ASSERT_TRUE(m);
  // Half way in sequences (6) and context (2000): mean of 10, 12, 20 and 42 is 21 ms.
  EXPECT_NEAR(ms(m->step_ticks({.decode_requests = 6, .decode_context = 12'000})), 21, 1e-3);
  const BatchShape prefill{.prefill_requests = 1, .prefill_tokens = 600, .prefill_pairs = 60'000};
  EXPECT_NEAR(ms(m->step_ticks(prefill)), 45, 1e-3);
  BatchShape mixed = prefill;
  mixed.decode_requests = 6;
  mixed.decode_context = 12'000;
  EXPECT_NEAR(ms(m->step_ticks(mixed)), 45 + 21 - 9, 2e-3);
  EXPECT_EQ(m->trust(mixed), Trust::kFitted);
  mixed.decode_requests = 12;
  EXPECT_EQ(m->trust(mixed), Trust::kExtrapolated);
}

TEST(Measured, DecodeRunStopsAtTheKnot) {
  MeasuredTable t = table();
  t.decode.push_back({1, 5000, 100});
  t.decode.push_back({11, 5000, 100});
  Diagnostics d;
  const auto m = MeasuredLatency::make(t, d);
  ASSERT_TRUE(m);
  for (const std::int64_t start : {1, 500, 1000, 2999, 3000, 4999, 9000}) {
    const BatchShape s{.decode_requests = 4, .decode_context = 4 * start + 3};
    const DecodeRun run = m->decode_run(s);
    for (const std::int64_t i :
         {std::int64_t{0}, run.steps / 2, std::min<std::int64_t>(run.steps - 1, 5000)}) {
      BatchShape at = s;
      at.decode_context += i * 4;
      EXPECT_EQ(m->step_ticks(at), run.first + i * run.increment) << start << " step " << i;
    }
  }
  EXPECT_EQ(m->decode_run({.decode_requests = 4, .decode_context = 4 * 2999}).steps, 1);
}

TEST(Measured, RefusesWhatIsNoGrid) {
  Diagnostics d;
  MeasuredTable hole = table();
  hole.decode.pop_back();
  EXPECT_FALSE(MeasuredLatency::make(hole, d));
  MeasuredTable twice = table();
  twice.prefill[1] = twice.prefill[0];
  EXPECT_FALSE(MeasuredLatency::make(twice, d));
  MeasuredTable negative = table();
  negative.decode[0].ms = -1;
  EXPECT_FALSE(MeasuredLatency::make(negative, d));
  EXPECT_FALSE(MeasuredLatency::make({}, d));
  EXPECT_EQ(d.items().size(), 5u);
}

}  // namespace
}  // namespace routesim::models
