// The sequences that decode: in which order they end, what of their answers is kept, and how long
// they run outside the fitted range.
#include "sim/engine/decode_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "base/rng.h"
#include "models/catalogue.h"
#include "models/cost_curve.h"
#include "models/roofline.h"
#include "sim/engine/range_watch.h"
#include "tests/sim/sim_fixture.h"
#include "tools/ingest/servers/catalogue_file.h"

namespace routesim::sim::testing {
namespace {

// The order in which members of a decode set end, against a sorted map.

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

// Answers that a later prompt may contain beside answers that none does: the decode set announces
// the blocks of the former as they fill up and settles those of the latter when they leave.

struct Timed {
  TestRequest request;
  SimTime at;
};

// Prompts with heads in common; some go on from an earlier public answer.
std::vector<Timed> mixed_load(std::uint64_t seed) {
  RandomStream random(seed, Stream::kTest);
  std::vector<Timed> load;
  SimTime now = at_ms(0);
  for (int i = 0; i < 120; ++i) {
    now = now + Duration::milliseconds(static_cast<std::int64_t>(random.below(90)));
    TestRequest r;
    r.parts.emplace_back(1 + random.below(3), 40);
    const std::size_t earlier = load.empty() ? 0 : random.below(load.size());
    if (!load.empty() && !load[earlier].request.private_answer && random.below(2) == 0) {
      r.parts = {load[earlier].request.parts.front()};
      r.parts.emplace_back(1'000'000 + earlier, load[earlier].request.output - 1);
    }
    r.parts.emplace_back(100 + static_cast<std::uint64_t>(i), 1 + random.below(20));
    r.output = 2 + static_cast<std::int64_t>(random.below(70));
    r.private_answer = random.below(2) == 0;
    // Only a prompt of one part is continued: its answer starts right behind the head.
    if (!r.private_answer) r.parts.resize(1);
    load.push_back({r, now});
  }
  return load;
}

// The reference looks every block up by its key, as if all answers were public.
TEST(MixedAnswers, PrivateOnesBesidePublicOnesEqualTheReference) {
  std::int64_t preemptions = 0;
  std::int64_t answers_hit = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::vector<Timed> load = mixed_load(seed);
    const auto latency = std::make_shared<FixedLatency>(10);
    Server fast(plain_rules(41), latency);
    Server reference(plain_rules(41), latency, /*reference=*/true);
    for (const Timed& t : load) {
      fast.send(t.request, t.at);
      reference.send(t.request, t.at);
      fast.scheduler().verify();
    }
    fast.run();
    reference.run();
    for (std::size_t i = 0; i < load.size(); ++i) {
      ASSERT_TRUE(fast.fates[i].finished);
      ASSERT_TRUE(fast.fates[i] == reference.fates[i]) << "request " << i;
      preemptions += fast.fates[i].preemptions;
      answers_hit += fast.fates[i].cached > 40 ? 1 : 0;
    }
  }
  EXPECT_GT(preemptions, 20) << "otherwise no private block is looked for again";
  EXPECT_GT(answers_hit, 20) << "otherwise no announced block is found";
}

}  // namespace
}  // namespace routesim::sim::testing

namespace routesim::sim {
namespace {

// Time in batches outside the fitted range, step by step and in stretches.

using models::BatchShape;
using models::CostCurve;

CostCurve curve(const models::FittedRange& range) {
  return CostCurve({.step_ms = 1, .sequence_ms = 0.5, .context_us_per_ktok = 10}, range, "a test");
}

TEST(RangeWatch, AddsUpTheStepsOutside) {
  const CostCurve latency = curve({.max_decode_requests = 4});
  RangeWatch watch(latency);
  watch.add_step({.decode_requests = 4, .decode_context = 4000}, 1000);
  EXPECT_EQ(watch.ticks(), 0);
  watch.add_step({.decode_requests = 5, .decode_context = 4000}, 1000);
  watch.add_outside(7);
  EXPECT_EQ(watch.ticks(), 1007);
}

// Three sequences grow from 900 tokens to the limit of 1000: steps 0 to 33 have 900 to 999, so
// that the 34th (1002) is the first one outside.
TEST(RangeWatch, AStretchIsTheSumOfItsSteps) {
  const CostCurve latency = curve({.max_decode_context = 1000});
  const BatchShape shape{.decode_requests = 3, .decode_context = 900};
  const models::DecodeRun run = latency.decode_run(shape);
  for (const auto& [from, to] : {std::pair{0, 34}, {0, 35}, {20, 40}, {34, 34}, {36, 50}}) {
    RangeWatch together(latency), singly(latency);
    together.begin_stretch(shape, 50);
    together.add_stretch(run, from, to);
    for (std::int64_t step = from; step < to; ++step) {
      BatchShape grown = shape;
      grown.decode_context += step * shape.decode_requests;
      singly.add_step(grown, latency.step_ticks(grown));
    }
    EXPECT_EQ(together.ticks(), singly.ticks()) << from << " to " << to;
    EXPECT_EQ(together.ticks() > 0, to > 34) << from << " to " << to;
  }
}

TEST(RangeWatch, WhatWasNeverFittedHasNoRange) {
  const models::Roofline latency(*tools::builtin_catalogue().find_accelerator("H100-SXM"),
                                 *tools::builtin_catalogue().find_model("Qwen3-32B"), {});
  RangeWatch watch(latency);
  watch.add_step({.decode_requests = 100'000, .decode_context = 1}, 1000);
  EXPECT_EQ(watch.ticks(), 0);
}

}  // namespace
}  // namespace routesim::sim
