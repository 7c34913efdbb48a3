// Curves of step times: fitted ones, and those that engines measure.
#include "models/cost_curve.h"

#include <gtest/gtest.h>

#include "models/catalogue.h"
#include "models/measured.h"
#include "tests/models/model_fixture.h"

namespace routesim::models {
namespace {

CostCurveParameters reference() {
  return {.step_ms = 14.30,
          .sequence_ms = 0.068,
          .context_us_per_ktok = 43.9,
          .shared_context_weight = 0.5,
          .prefill_us_per_token = 47.7,
          .prefill_pair_ns = 1.05};
}

TEST(CostCurve, DecodeStepByHand) {
  const CostCurve curve(reference(), {}, "test");
  // 14.3 + 40 * 0.068 + 323,200 tokens * 43.9 ns = 14.3 + 2.72 + 14.18848 ms.
  EXPECT_NEAR(ms(curve.step_ticks({.decode_requests = 40, .decode_context = 323'200})), 31.20848,
              2e-4);  // A token costs a whole number of ticks: 1e-5 relative.
  // Half of it shared at theta 0.5: a quarter of the context time goes.
  EXPECT_NEAR(ms(curve.step_ticks(
                  {.decode_requests = 40, .decode_context = 323'200, .shared_context = 161'600})),
              14.3 + 2.72 + 0.75 * 14.18848, 1e-4);
}

TEST(CostCurve, SharedContextIsAsCheapAsItsReadersMakeIt) {
  const CostCurve curve(reference(), {.max_decode_context = 280'000}, "test");
  BatchShape s{.decode_requests = 40, .decode_context = 323'200, .shared_context = 161'600};
  const double full = 14.3 + 2.72 + 14.18848;
  struct Row {
    std::int64_t once;
    double saved;  // Of what many readers save.
  };
  for (const Row row : {Row{161'600, 0.6},        // Two readers a block.
                        Row{80'800, 0.675},       // Three.
                        Row{161'600 / 3, 0.75},   // Four.
                        Row{161'600 / 5, 0.875},  // Six.
                        Row{161'600 / 7, 1},      // Eight.
                        Row{100, 1}}) {
    s.shared_once = row.once;
    EXPECT_NEAR(ms(curve.step_ticks(s)), full - row.saved * 0.25 * 14.18848, 5e-4) << row.once;
    EXPECT_EQ(curve.decode_run(s).first, curve.step_ticks(s));
  }
  // 323,200 tokens less half of 0.6 of 161,600 are 274,720, and with fewer readers more than the
  // fit saw.
  s.shared_once = 161'600;
  EXPECT_EQ(curve.trust(s), Trust::kFitted);
  s.shared_once = 323'200;
  EXPECT_EQ(curve.trust(s), Trust::kExtrapolated);
}

TEST(CostCurve, PrefillAddsToDecode) {
  const CostCurve curve(reference(), {}, "test");
  const BatchShape prefill{.prefill_requests = 1,
                           .prefill_tokens = 4096,
                           .prefill_context = 4096,
                           .prefill_pairs = 4096 * 4096};
  // 4096 * 47.7 us + 4096^2 * 1.05 ns = 195.379 + 17.616 ms, on top of 14.3.
  EXPECT_NEAR(ms(curve.step_ticks(prefill)), 14.3 + 195.3792 + 17.6161, 1e-3);
  BatchShape mixed = prefill;
  mixed.decode_requests = 10;
  mixed.decode_context = 10'000;
  EXPECT_NEAR(ms(curve.step_ticks(mixed) - curve.step_ticks(prefill)), 0.68 + 0.439, 1e-4);
}

TEST(CostCurve, ContextBesideAPromptChunkCostsAtLeastATile) {
  CostCurveParameters p = reference();
  const BatchShape alone{.decode_requests = 10, .decode_context = 10'000, .shared_context = 8'000};
  BatchShape mixed = alone;
  mixed.prefill_requests = 1;
  mixed.prefill_tokens = 2;
  const double without = ms(CostCurve(p, {}, "").step_ticks(mixed));
  p.mixed_context_us_per_ktok = 500;  // 5 ms instead of 6,000 tokens at 43.9 us per 1,000.
  const CostCurve curve(p, {}, "");
  EXPECT_NEAR(ms(curve.step_ticks(mixed)) - without, 5 - 0.2634, 1e-4);
  EXPECT_EQ(curve.step_ticks(alone), CostCurve(reference(), {}, "").step_ticks(alone));
  mixed.prefill_tokens = 1;  // The last token of a prompt is like a decoded one.
  EXPECT_NEAR(ms(curve.step_ticks(mixed)), without - 0.0477, 1e-4);
  p.mixed_context_us_per_ktok = 1;  // Less than memory takes.
  mixed.prefill_tokens = 2;
  EXPECT_NEAR(ms(CostCurve(p, {}, "").step_ticks(mixed)), without, 1e-9);
}

TEST(CostCurve, CpuAddsWhenSynchronousAndHidesWhenAsynchronous) {
  CostCurveParameters p = reference();
  p.cpu_step_ms = 16;
  p.cpu_sequence_ms = 0.1;
  const BatchShape one{.decode_requests = 1, .decode_context = 0};
  EXPECT_NEAR(ms(CostCurve(p, {}, "").step_ticks(one)), 14.368 + 16.1, 1e-4);
  p.async_scheduling = true;
  const CostCurve async(p, {}, "");
  EXPECT_NEAR(ms(async.step_ticks(one)), 16.1, 1e-4);
  // The GPU overtakes after (16.1 - 14.368) ms / 43.9 ns = 39,453 tokens, one per step.
  const DecodeRun run = async.decode_run(one);
  EXPECT_EQ(run.increment, 0);
  EXPECT_NEAR(static_cast<double>(run.steps), 39'454, 2);
}

TEST(CostCurve, LockStepRankPaysForTheLargestAndForAll) {
  CostCurveParameters p;
  p.step_ms = 1;
  p.group_round_ms = 2;
  p.group_padding_us = 10;
  p.group_token_us = 1;
  const CostCurve curve(p, {}, "");
  const BatchShape dummy{.group_tokens = 100, .group_total_tokens = 400};
  EXPECT_NEAR(ms(curve.step_ticks(dummy)), 1 + 2 + 1.0 + 0.4, 1e-6);
  const BatchShape three{.group_tokens = 100, .group_total_tokens = 400, .group_rounds = 3};
  EXPECT_NEAR(ms(curve.step_ticks(three)), 1 + 3 * 2 + 1.0 + 0.4, 1e-6);
  const BatchShape alone{.decode_requests = 1, .decode_context = 10};
  EXPECT_NEAR(ms(curve.step_ticks(alone)), 1, 1e-6);
  EXPECT_EQ(curve.step_ticks({}), 0);
}

TEST(CostCurve, TrustBoxUsesEffectiveContext) {
  const CostCurve curve(reference(),
                        {.max_decode_requests = 128,
                         .max_decode_context = 270'000,
                         .max_prefill_tokens = 8'192,
                         .max_prefill_context = 4'096},
                        "");
  EXPECT_EQ(curve.trust({.decode_requests = 128, .decode_context = 270'000}), Trust::kFitted);
  EXPECT_EQ(curve.trust({.decode_requests = 129, .decode_context = 1}), Trust::kExtrapolated);
  EXPECT_EQ(curve.trust({.decode_requests = 9, .decode_context = 270'001}), Trust::kExtrapolated);
  EXPECT_EQ(
      curve.trust({.decode_requests = 9, .decode_context = 500'000, .shared_context = 480'000}),
      Trust::kFitted);
  EXPECT_EQ(curve.trust({.prefill_requests = 2, .prefill_tokens = 8'192, .prefill_context = 8'192}),
            Trust::kFitted);
  EXPECT_EQ(curve.trust({.prefill_requests = 1, .prefill_tokens = 500, .prefill_context = 8'192}),
            Trust::kExtrapolated);
}

TEST(CostCurve, PrefillSpeedOfTheStaticBatchFit) {
  // Prompts of 1k, 4k and 8k run at 20.5k, 19.2k and 17.8k tokens/s on 2xH100 without the constant
  // part of a step.
  const CostCurve curve(reference(), {}, "");
  for (const auto& [n, speed] : {std::pair<std::int64_t, double>{1024, 20.5e3},
                                 std::pair<std::int64_t, double>{4096, 19.2e3},
                                 std::pair<std::int64_t, double>{8192, 17.8e3}}) {
    const double t = ms(curve.step_ticks({.prefill_requests = 1,
                                          .prefill_tokens = n,
                                          .prefill_context = n,
                                          .prefill_pairs = n * n})) -
                     14.30;
    EXPECT_NEAR(static_cast<double>(n) / t * 1e3, speed, 0.01 * speed) << n;
  }
}

TEST(CostCurve, NoStepIsLongerThanTheLongest) {
  // Every coefficient as large as a catalogue may say, and more tokens than any engine has.
  CostCurveParameters p;
  for (double* coefficient :
       {&p.step_ms, &p.sequence_ms, &p.context_us_per_ktok, &p.prefill_us_per_token,
        &p.prefill_pair_ns, &p.prefill_chunk_ms, &p.token_us, &p.cpu_step_ms, &p.cpu_sequence_ms,
        &p.group_round_ms, &p.group_padding_us, &p.group_token_us})
    *coefficient = 1e6;
  const BatchShape huge{.decode_requests = 65'536,
                        .decode_context = 1'000'000'000'000,
                        .prefill_requests = 1000,
                        .prefill_tokens = 1'000'000,
                        .prefill_context = 1'000'000'000,
                        .prefill_pairs = std::int64_t{1} << 50,
                        .group_tokens = 1'000'000,
                        .group_total_tokens = 256'000'000};
  const CostCurve curve(p, {}, "test");
  EXPECT_EQ(curve.step_ticks(huge), kLongestStepTicks);
  // 1000 s, 1000 s for the sequence, ten tokens of context at 1 ms and 1 s for the token; then
  // 2000 s on the CPU.
  const BatchShape one{.decode_requests = 1, .decode_context = 10};
  EXPECT_EQ(curve.step_ticks(one), kTicksPerMillisecond * 4'001'010);
  // A run of steps ends before one would be longer: 12 h, in steps of 1 ms more.
  const DecodeRun run = curve.decode_run(one);
  EXPECT_EQ(run.first, kTicksPerMillisecond * 4'001'010);
  EXPECT_EQ(run.increment, kTicksPerMillisecond);
  EXPECT_EQ(run.steps, 43'200'000 - 4'001'010 + 1);
  const BatchShape last{.decode_requests = 1, .decode_context = 10 + run.steps - 1};
  EXPECT_EQ(curve.step_ticks(last), kLongestStepTicks);
}

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
