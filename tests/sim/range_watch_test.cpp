// Time in batches outside the fitted range, step by step and in stretches.
#include "sim/engine/range_watch.h"

#include <gtest/gtest.h>

#include "models/catalogue.h"
#include "models/cost_curve.h"
#include "models/roofline.h"
#include "tools/ingest/servers/catalogue_file.h"

namespace routesim::sim {
namespace {

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
