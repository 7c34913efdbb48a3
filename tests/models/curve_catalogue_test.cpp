// Every published curve, by value: the step time at a few batches, from the coefficients as they
// were published, with the arithmetic in the comments. The coefficients' sources are the commands
// in scenarios/README.md ("The commands behind the curves"). A curve that is fitted again changes
// its row here.
#include <gtest/gtest.h>

#include <string>

#include "models/kernels/make_latency_model.h"
#include "tests/models/model_fixture.h"

namespace routesim::models {
namespace {

std::string name_of(const FittedCurve& c) {
  return c.accelerator + " " + c.model + " tp" + std::to_string(c.parallelism.tp) + " dp" +
         std::to_string(c.parallelism.dp) + " " + c.preset;
}

struct Published {
  const char* accelerator;
  const char* model;
  Parallelism parallelism;
  const char* preset;
  /// Step times in ms.
  double one;     ///< 1 sequence with 1,000 tokens of context.
  double forty;   ///< 40 sequences with 40,000 tokens of context together.
  double shared;  ///< The same with 20,000 of the tokens in blocks that others read too.
  double prompt;  ///< A prompt of 2,000 tokens alone, 4 million pairs.
  double mixed;   ///< The same prompt beside 10 sequences with 10,000 tokens of context.
};

// ms for a step + a sequence + 1,000 tokens of context; ms for a step + a prompt token + a million
// pairs + a chunk.
const Published kPublished[] = {{"H100-SXM",
                                 "Qwen3-32B",
                                 {.tp = 2},
                                 "2025-H2",
                                 // 14.297 + 1 x 0.06781 + 1 x 0.04402
                                 14.40883,
                                 // 14.297 + 40 x 0.06781 + 40 x 0.04402
                                 18.7702,
                                 // 20 of the 40 thousand tokens cost 0.35 of the rest
                                 18.19794,
                                 // 14.297 + 2,000 x 0.04778 + 4 x 1.033 + 12
                                 125.989,
                                 // and 10 x 0.06781 + 10 x 0.04402 more
                                 127.1073},
                                {"H100-SXM",
                                 "Qwen3-32B",
                                 {.tp = 4},
                                 "2025-H2",
                                 // 9.417 + 1 x 0.06216 + 1 x 0.02334
                                 9.5025,
                                 // 9.417 + 40 x 0.06216 + 40 x 0.02334
                                 12.837,
                                 // 20 of the 40 thousand tokens cost 0.35 of the rest
                                 12.53358,
                                 // 9.417 + 2,000 x 0.0283 + 4 x 0.4341 + 0
                                 67.7534,
                                 // and 10 x 0.06216 + 10 x 0.02334 more
                                 68.6084},
                                {"H100-SXM",
                                 "Qwen3-32B",
                                 {.tp = 8},
                                 "2025-H2",
                                 // 7.127 + 1 x 0.06367 + 1 x 0.01049
                                 7.20116,
                                 // 7.127 + 40 x 0.06367 + 40 x 0.01049
                                 10.0934,
                                 // 20 of the 40 thousand tokens cost 0.35 of the rest
                                 9.95703,
                                 // 7.127 + 2,000 x 0.01856 + 4 x 0 + 0
                                 44.247,
                                 // and 10 x 0.06367 + 10 x 0.01049 more
                                 44.9886},
                                {"H100-SXM",
                                 "Qwen3-32B",
                                 {.tp = 2},
                                 "2026-H1",
                                 // 12.08 + 1 x 0.068 + 1 x 0.0439
                                 12.1919,
                                 // 12.08 + 40 x 0.068 + 40 x 0.0439
                                 16.556,
                                 // 20 of the 40 thousand tokens cost 0.35 of the rest
                                 15.9853,
                                 // 12.08 + 2,000 x 0.045 + 4 x 1.4 + 11.26
                                 118.94,
                                 // and 10 x 0.068 + 10 x 0.0439 more
                                 120.059},
                                {"A10G",
                                 "Qwen2.5-7B",
                                 {},
                                 "2026-H1",
                                 // 28.71 + 1 x 0.2372 + 1 x 0.1038
                                 29.051,
                                 // 28.71 + 40 x 0.2372 + 40 x 0.1038
                                 42.35,
                                 // 20 of the 40 thousand tokens cost 0.8006 of the rest
                                 41.936,
                                 // 28.71 + 2,000 x 0.2055 + 4 x 0.4409 + 5.428
                                 446.9016,
                                 // and 10 x 0.2372 + 10 x 0.4019 more, beside a prompt
                                 453.2926},
                                {"L4",
                                 "Llama-3.1-8B-FP8",
                                 {},
                                 "",
                                 // 57.8 + 1 x 0.39 + 1 x 0.514
                                 58.704,
                                 // 57.8 + 40 x 0.39 + 40 x 0.514
                                 93.96,
                                 // 20 of the 40 thousand tokens cost 0.7 of the rest
                                 90.876,
                                 // 57.8 + 2,000 x 0.223 + 4 x 4.9 + 0
                                 523.4,
                                 // and 10 x 0.39 + 10 x 0.514 more
                                 532.44},
                                {"H100-SXM",
                                 "Llama-3.1-70B-FP8",
                                 {},
                                 "",
                                 // 26 + 1 x 0.3 + 1 x 0.0575
                                 26.3575,
                                 // 26 + 40 x 0.3 + 40 x 0.0575
                                 40.3,
                                 // 20 of the 40 thousand tokens cost 0.5 of the rest
                                 39.725,
                                 // 26 + 2,000 x 0.163 + 4 x 2.4 + 0
                                 361.6,
                                 // and 10 x 0.3 + 10 x 0.0575 more
                                 365.175},
                                {"MI300X",
                                 "DeepSeek-R1",
                                 {.dp = 8, .ep = 8},
                                 "",
                                 // 12.94 + 1 x 0.1788 + 1 x 0.0466
                                 13.1654,
                                 // 12.94 + 40 x 0.1788 + 40 x 0.0466
                                 21.956,
                                 // 20 of the 40 thousand tokens cost 1 of the rest
                                 21.956,
                                 // 12.94 + 2,000 x 0.1067 + 4 x 4 + 0
                                 242.34,
                                 // and 10 x 0.1788 + 10 x 0.0466 more
                                 244.594}};

TEST(PublishedCurves, StepTimesByHand) {
  std::size_t covered = 0;
  for (const Published& row : kPublished) {
    const FittedCurve* curve =
        catalogue().find_cost_curve(row.accelerator, row.model, row.parallelism, row.preset);
    ASSERT_NE(curve, nullptr) << row.accelerator << " " << row.model;
    SCOPED_TRACE(name_of(*curve));
    EXPECT_EQ(curve->preset, row.preset);
    EXPECT_FALSE(curve->parameters.async_scheduling);
    const auto model =
        make_latency_model(catalogue(), *catalogue().find_accelerator(row.accelerator),
                           *catalogue().find_model(row.model), row.parallelism, row.preset,
                           {.kv_dtype = curve->kv_cache_dtype.value_or(KvDtype::kBf16)});
    const auto expect = [&](double expected, const BatchShape& shape) {
      // A coefficient is a whole number of ticks: 2e-5 of the smallest, 10 ns a token.
      EXPECT_NEAR(ms(model->step_ticks(shape)) / expected, 1, 2e-5) << expected;
    };
    BatchShape prompt{.prefill_requests = 1,
                      .prefill_tokens = 2'000,
                      .prefill_context = 2'000,
                      .prefill_pairs = 4'000'000};
    expect(row.one, {.decode_requests = 1, .decode_context = 1'000});
    expect(row.forty, {.decode_requests = 40, .decode_context = 40'000});
    expect(row.shared, {.decode_requests = 40, .decode_context = 40'000, .shared_context = 20'000});
    expect(row.prompt, prompt);
    prompt.decode_requests = 10;
    prompt.decode_context = 10'000;
    expect(row.mixed, prompt);
    ++covered;
  }
  EXPECT_EQ(covered, catalogue().curves().size()) << "a new curve needs a row";
}

TEST(PublishedCurves, RankOfDeepSeekInLockStepByHand) {
  const auto model = make_latency_model(catalogue(), *catalogue().find_accelerator("MI300X"),
                                        *catalogue().find_model("DeepSeek-R1"), {.dp = 8, .ep = 8},
                                        "", {.kv_dtype = KvDtype::kFp8});
  // One sequence while the largest rank has 1,024 tokens, two rounds of 512:
  // 12.94 + 0.1788 + 0.0466 + 2 x 35.77 + 1,023 x 0.09996.
  EXPECT_NEAR(ms(model->step_ticks({.decode_requests = 1,
                                    .decode_context = 1'000,
                                    .group_tokens = 1'024,
                                    .group_total_tokens = 8'192,
                                    .group_rounds = 2})),
              186.96448, 1e-3);
  // An idle rank takes part: 12.94 + 35.77 + 512 x 0.09996.
  EXPECT_NEAR(ms(model->step_ticks({.group_tokens = 512, .group_total_tokens = 8 * 512})), 99.88952,
              1e-3);
}

// What each curve was fitted on. One more of anything is outside.
TEST(PublishedCurves, FittedRanges) {
  struct Range {
    const char* accelerator;
    const char* model;
    Parallelism parallelism;
    const char* preset;
    std::int64_t requests, context, prompt, longest;
  };
  for (const Range& row :
       {Range{"H100", "Qwen3-32B", {.tp = 2}, "2025-H2", 128, 276'480, 8'192, 4'096},
        {"H100", "Qwen3-32B", {.tp = 4}, "2025-H2", 128, 655'360, 8'192, 4'096},
        {"H100", "Qwen3-32B", {.tp = 8}, "2025-H2", 128, 655'360, 8'192, 4'096},
        {"H100", "Qwen3-32B", {.tp = 2}, "2026-H1", 200, 1'000'000, 8'192, 17'408},
        {"A10G", "Qwen2.5-7B", {}, "2026-H1", 128, 180'000, 2'048, 2'304},
        {"L4", "Llama-3.1-8B-FP8", {}, "", 50, 25'000, 16'384, 4'096},
        {"H100", "Llama-3.1-70B-FP8", {}, "", 50, 30'000, 16'384, 4'096},
        {"MI300X", "DeepSeek-R1", {.dp = 8, .ep = 8}, "", 450, 1'300'000, 65'536, 5'300}}) {
    const FittedCurve* found =
        catalogue().find_cost_curve(row.accelerator, row.model, row.parallelism, row.preset);
    ASSERT_NE(found, nullptr) << row.accelerator << " " << row.model;
    SCOPED_TRACE(name_of(*found));
    const CostCurve curve(found->parameters, found->range, found->provenance);
    const auto trust = [&](std::int64_t more_requests, std::int64_t more_context,
                           std::int64_t more_prompt, std::int64_t longer) {
      const std::int64_t chunks = (row.prompt + row.longest - 1) / row.longest;
      return curve.trust({.decode_requests = row.requests + more_requests,
                          .decode_context = row.context + more_context,
                          .prefill_requests = chunks,
                          .prefill_tokens = row.prompt + more_prompt,
                          .prefill_context = chunks * (row.longest + longer)});
    };
    EXPECT_EQ(trust(0, 0, 0, 0), Trust::kFitted);
    EXPECT_EQ(trust(1, 0, 0, 0), Trust::kExtrapolated);
    EXPECT_EQ(trust(0, 1, 0, 0), Trust::kExtrapolated);
    EXPECT_EQ(trust(0, 0, 1, 0), Trust::kExtrapolated);
    EXPECT_EQ(trust(0, 0, 0, 1), Trust::kExtrapolated);
  }
}

}  // namespace
}  // namespace routesim::models
