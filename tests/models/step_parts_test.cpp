// The parts of a step that models add: adapters and drafters.
#include <gtest/gtest.h>

#include <memory>

#include "models/kernels/make_latency_model.h"
#include "models/launches.h"
#include "models/lora.h"
#include "models/roofline.h"
#include "models/roofline_parts.h"
#include "models/speculation.h"
#include "models/ticks.h"
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

// Drafters: what they weigh, and what a step with drafts costs.

const ModelSpec& named(const char* name) { return *catalogue().find_model(name); }

TEST(Drafter, AnEagle3HeadIsOneLayerWithAnOutputOfItsOwn) {
  const Parallelism p{.tp = 2};
  const Drafter d = make_drafter(DraftMethod::kEagle3, 3, named("Qwen3-32B"), nullptr, p);
  EXPECT_EQ(d.model.layers, 1);
  EXPECT_EQ(d.model.vocab, 32'000);
  EXPECT_DOUBLE_EQ(d.first_parameters, 3.0 * 5120 * 5120);
  EXPECT_DOUBLE_EQ(d.pass_parameters, 5120.0 * (64 + 2 * 8) * 128 / 2);
  // Attention 94.4 M, MLP 393.2 M and output 163.8 M on two GPUs; the joint of three hidden states,
  // 78.6 M, on each; the wider query, key and value, 52.4 M, on two. bf16.
  const double layer = 5120.0 * (64 + 16) * 128 + 64.0 * 128 * 5120 + 3.0 * 5120 * 25'600;
  EXPECT_NEAR(drafter_bytes_per_gpu(d, p),
              layer + 32'000.0 * 5120 + 2 * (3.0 * 5120 * 5120 + 5120.0 * 80 * 64), 1e5);
  // Keys and values of 4 heads of 128 in 16 slots.
  EXPECT_EQ(drafter_block_bytes(d, KvDtype::kBf16, p, 16), 16 * 2 * 4 * 128 * 2);
}

TEST(Drafter, FollowsTheMethod) {
  const ModelSpec& moe = named("gpt-oss-120b");
  const Drafter eagle = make_drafter(DraftMethod::kEagle, 2, moe, nullptr, {});
  EXPECT_FALSE(eagle.model.is_moe());
  EXPECT_EQ(eagle.model.ffn, moe.expert_ffn * moe.experts_per_token);
  EXPECT_EQ(eagle.model.vocab, moe.vocab) << "the target's output projection";
  EXPECT_EQ(eagle.model.weights, WeightDtype::kBf16);
  EXPECT_EQ(eagle.model.sliding_layers, 0);
  const ModelSpec& deepseek = named("DeepSeek-V3");
  const Drafter mtp = make_drafter(DraftMethod::kMtp, 1, deepseek, nullptr, {.tp = 8});
  EXPECT_EQ(mtp.model.moe_layers(), 1);
  EXPECT_EQ(mtp.model.weights, deepseek.weights);
  EXPECT_DOUBLE_EQ(mtp.pass_parameters, 2.0 * 7168 * 7168);
  EXPECT_EQ(drafter_block_bytes(mtp, KvDtype::kBf16, {.tp = 8}, 64), 64 * (512 + 64) * 2);
  const ModelSpec& small = named("Qwen3-0.6B");
  const Drafter draft =
      make_drafter(DraftMethod::kDraftModel, 4, named("Qwen3-32B"), &small, {.tp = 2});
  EXPECT_NEAR(drafter_bytes_per_gpu(draft, {.tp = 2}), weight_bytes_per_gpu(small, {.tp = 2}), 1);
  const Drafter ngram = make_drafter(DraftMethod::kNgram, 4, named("Qwen3-32B"), nullptr, {});
  EXPECT_EQ(drafter_bytes_per_gpu(ngram, {}), 0);
  EXPECT_EQ(drafter_block_bytes(ngram, KvDtype::kBf16, {}, 16), 0);
}

/// Ticks: 1000 a step, 1 a token, and 10 a row of logits.
class Counting final : public LatencyModel {
 public:
  std::int64_t step_ticks(const BatchShape& s) const override {
    return 1000 + s.tokens() + 10 * s.sampled() + 100 * s.decode_context;
  }
  Trust trust(const BatchShape&) const override { return Trust::kKernels; }
  std::string provenance() const override { return "counting"; }
};

TEST(SpeculativeLatency, DraftsInOnePassOverTheStepAndOneForEachFurtherToken) {
  Drafter d{.method = DraftMethod::kEagle, .tokens = 3, .model = {}};
  AcceleratorSpec gpu;
  gpu.memory_tb_per_s = 1;
  gpu.bf16_tflops = 1;
  const auto counting = std::make_shared<Counting>();
  // Two sequences with 3 drafts each, and a prompt of 5: 13 tokens, 9 rows. Then 3 sequences.
  const BatchShape s{.decode_requests = 2,
                     .draft_tokens = 6,
                     .decode_context = 4,
                     .prefill_requests = 1,
                     .prefill_tokens = 5,
                     .prefill_context = 5};
  const SpeculativeLatency plain(counting, nullptr, d, gpu);
  EXPECT_EQ(plain.step_ticks(s), 1000 + 13 + 90 + 400) << "drafts from the text cost nothing";
  const SpeculativeLatency head(counting, counting, d, gpu);
  EXPECT_EQ(head.draft_ticks(s), 1503 + 2 * (1000 + 3 + 30 + 900));
  EXPECT_EQ(head.step_ticks(s), 1503 + head.draft_ticks(s));
  // A projection: 3 us, and at 0.8 TB/s 2 bytes of 4,000,000 weights take 10 us; 13 rows at 0.6
  // TFLOP/s take 173 us.
  d.pass_parameters = 4e6;
  d.tokens = 1;
  const SpeculativeLatency wide(counting, counting, d, gpu);
  EXPECT_EQ(wide.draft_ticks(s), 1503 + ns_to_ticks(3'000 + 2 * 4e6 * 13 / 600));
  EXPECT_EQ(head.trust({}), Trust::kKernels);
  EXPECT_NE(head.provenance().find("eagle, 3 tokens"), std::string::npos);
}

TEST(SpeculativeLatency, DraftsRunAsOneGraphWhereAllHaveAsMany) {
  const auto one = [](const BatchShape& s) { return runs_as_one_graph(s); };
  EXPECT_TRUE(one({.decode_requests = 600})) << "as before, without drafts";
  EXPECT_TRUE(one({.decode_requests = 128, .draft_tokens = 384}));
  EXPECT_FALSE(one({.decode_requests = 129, .draft_tokens = 387})) << "516 tokens";
  EXPECT_FALSE(one({.decode_requests = 2, .draft_tokens = 3}));
  EXPECT_FALSE(
      one({.decode_requests = 2, .draft_tokens = 6, .prefill_requests = 1, .prefill_tokens = 1}));
  EXPECT_TRUE(one({.decode_requests = 2, .prefill_requests = 1, .prefill_tokens = 1}));
}

TEST(SpeculativeLatency, VerifyingIsCheapWhereMemoryBoundsAndDearWhereComputeDoes) {
  const AcceleratorSpec& gpu = *catalogue().find_accelerator("H200");
  const Parallelism p{.tp = 2};
  for (const char* name : {"kernels", "roofline"}) {
    std::string why;
    const auto target = latency_model_named(name, catalogue(), gpu, named("Qwen3-32B"), p,
                                            "2026-H2", {.async_scheduling = true}, why);
    ASSERT_NE(target, nullptr) << why;
    const auto verify = [&](std::int64_t b) {
      const auto at = [&](std::int64_t drafts) {
        return ms(target->step_ticks(
            {.decode_requests = b, .draft_tokens = drafts * b, .decode_context = 2'000 * b}));
      };
      return at(3) / at(0);
    };
    EXPECT_LT(verify(1), 1.06) << name;
    EXPECT_GT(verify(256), 1.5) << name;
    // Three passes of a layer of 64, and three outputs to a fifth of the tokens.
    const Drafter d = make_drafter(DraftMethod::kEagle3, 3, named("Qwen3-32B"), nullptr, p);
    const auto whole = make_speculative_latency(target, d, gpu, p, {}, name[0] == 'k');
    const BatchShape one{.decode_requests = 1, .draft_tokens = 3, .decode_context = 2'000};
    const double drafting = ms(whole->step_ticks(one)) - ms(target->step_ticks(one));
    EXPECT_GT(drafting, 0.03 * ms(target->step_ticks(one))) << name;
    EXPECT_LT(drafting, 0.20 * ms(target->step_ticks(one))) << name;
  }
}

}  // namespace
}  // namespace routesim::models
