#include "models/lora.h"

#include <gtest/gtest.h>

#include "models/roofline.h"
#include "tests/models/model_fixture.h"

namespace routesim::models {
namespace {

TEST(Lora, AnAdapterHasTheParametersThatPeftCounts) {
  // Rank 16 on all linear layers of Llama-3.1-8B: 41,943,040 parameters.
  const ModelSpec& llama = *catalogue().find_model("Llama-3.1-8B");
  EXPECT_DOUBLE_EQ(lora_bytes_per_gpu(llama, {}, 16), 2.0 * 41'943'040);
  EXPECT_DOUBLE_EQ(lora_bytes_per_gpu(llama, {}, 8), 41'943'040);
  // Split over two GPUs only one of the two factors becomes smaller.
  const double half = lora_bytes_per_gpu(llama, {.tp = 2}, 16);
  EXPECT_GT(half, 41'943'040);
  EXPECT_LT(half, 2.0 * 41'943'040);
}

TEST(Lora, OfMixturesOfExpertsOnlyWhatEveryTokenVisits) {
  const ModelSpec& dense = *catalogue().find_model("Qwen3-8B");
  const ModelSpec& moe = *catalogue().find_model("Qwen3-30B-A3B");
  EXPECT_LT(lora_bytes_per_gpu(moe, {}, 16), lora_bytes_per_gpu(dense, {}, 16));
  EXPECT_GT(lora_bytes_per_gpu(*catalogue().find_model("DeepSeek-R1"), {.tp = 8}, 16), 0);
}

TEST(Lora, SlotsHaveRoomForEveryExpert) {
  // 48 layers, 128 experts, hidden 2048, 768 wide: 128 * 3 * 2816 rows of rank 16 in bf16.
  const ModelSpec& moe = *catalogue().find_model("Qwen3-30B-A3B");
  EXPECT_DOUBLE_EQ(lora_expert_slot_bytes(moe, {}, 16), 2.0 * 16 * 48 * 128 * 3 * (2048 + 768));
  EXPECT_DOUBLE_EQ(lora_expert_slot_bytes(moe, {.tp = 1, .dp = 4, .ep = 4}, 16),
                   lora_expert_slot_bytes(moe, {}, 16) / 4);
  EXPECT_EQ(lora_expert_slot_bytes(*catalogue().find_model("Qwen3-8B"), {}, 16), 0);
}

TEST(Lora, StepsOfAnEightBillionModelAreSlowerByWhatOthersMeasured) {
  const AcceleratorSpec& h100 = *catalogue().find_accelerator("H100-SXM");
  const ModelSpec& llama = *catalogue().find_model("Llama-3.1-8B");
  const auto base = std::make_shared<Roofline>(h100, llama, Parallelism{});
  const LoraLatency with(base, lora_costs(h100, llama, {}, 16));
  BatchShape shape{.decode_requests = 64, .decode_context = 64 * 1024};
  EXPECT_EQ(with.step_ticks(shape), base->step_ticks(shape)) << "nobody asked for an adapter";
  shape.adapter_tokens = 64;
  const double slower =
      static_cast<double>(with.step_ticks(shape)) / static_cast<double>(base->step_ticks(shape));
  EXPECT_GT(slower, 1.08);
  EXPECT_LT(slower, 1.24);
}

TEST(Lora, RunsOfDecodeStepsKeepTheirLaw) {
  const AcceleratorSpec& h100 = *catalogue().find_accelerator("H100-SXM");
  const ModelSpec& llama = *catalogue().find_model("Llama-3.1-8B");
  const LoraLatency latency(std::make_shared<Roofline>(h100, llama, Parallelism{}),
                            lora_costs(h100, llama, {}, 16));
  BatchShape shape{.decode_requests = 9, .decode_context = 9'000, .adapter_tokens = 4};
  const DecodeRun run = latency.decode_run(shape);
  for (std::int64_t i = 0; i < std::min<std::int64_t>(run.steps, 20); ++i) {
    EXPECT_EQ(latency.step_ticks(shape), run.first + i * run.increment);
    shape.decode_context += shape.decode_requests;
  }
  EXPECT_NE(latency.provenance().find("LoRA adapters: estimated, unfitted"), std::string::npos);
}

}  // namespace
}  // namespace routesim::models
