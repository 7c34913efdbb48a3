// The built-in accelerators by value: peaks and bandwidths from the makers' data sheets, and the
// efficiencies that models/README.md derives from operator measurements.
#include <gtest/gtest.h>

#include "models/catalogue.h"
#include "tools/ingest/servers/catalogue_file.h"

namespace routesim::models {
namespace {

// Dense TFLOP/s without sparsity, TB/s of memory, GB/s of the link in one direction.
TEST(Accelerators, PeaksOfTheDataSheets) {
  struct Sheet {
    const char* name;
    double bf16, fp8, fp4, memory, link;
  };
  const Sheet sheets[] = {{"H100-SXM", 989, 1979, 0, 3.35, 450},
                          {"H200", 989, 1979, 0, 4.8, 450},
                          {"A100-80", 312, 0, 0, 2.039, 300},
                          {"A10G", 70, 0, 0, 0.600, 32},
                          {"L4", 121, 242, 0, 0.300, 32},
                          {"L40S", 362, 733, 0, 0.864, 32},
                          {"B200", 2250, 4500, 9000, 7.7, 900},
                          {"MI300X", 1307, 2615, 0, 5.3, 448},
                          {"H100-PCIe", 756, 1513, 0, 2.0, 64},
                          {"H100-NVL", 835, 1671, 0, 3.9, 300},
                          {"H20", 148, 296, 0, 4.0, 450},
                          {"GH200", 989, 1979, 0, 4.0, 450},
                          {"A100-40", 312, 0, 0, 1.555, 300},
                          {"A100-PCIe", 312, 0, 0, 1.935, 32},
                          {"GB200", 2500, 5000, 10'000, 8.0, 900},
                          {"B300", 2250, 4500, 13'500, 8.0, 900},
                          {"MI325X", 1307, 2615, 0, 6.0, 448},
                          {"MI350X", 2300, 4600, 0, 8.0, 538},
                          {"MI355X", 2500, 5000, 0, 8.0, 538},
                          {"L40", 181, 362, 0, 0.864, 32},
                          {"A10", 125, 0, 0, 0.6, 32},
                          {"A40", 149.7, 0, 0, 0.696, 32},
                          {"RTX-A6000", 154.8, 0, 0, 0.768, 32},
                          {"RTX-6000-Ada", 364, 728, 0, 0.96, 32},
                          {"RTX-PRO-6000", 500, 1000, 2000, 1.6, 64},
                          {"RTX-3090", 71, 0, 0, 0.936, 32},
                          {"RTX-4090", 165, 330, 0, 1.008, 32},
                          {"RTX-5090", 209, 419, 1676, 1.792, 64},
                          {"T4", 65, 0, 0, 0.32, 16},
                          {"V100-32", 112, 0, 0, 0.9, 16}};
  const Catalogue c = tools::builtin_catalogue();
  for (const Sheet& sheet : sheets) {
    const AcceleratorSpec* a = c.find_accelerator(sheet.name);
    ASSERT_NE(a, nullptr) << sheet.name;
    EXPECT_EQ(a->name, sheet.name);
    EXPECT_EQ(a->bf16_tflops, sheet.bf16) << sheet.name;
    EXPECT_EQ(a->fp8_tflops, sheet.fp8) << sheet.name;
    EXPECT_EQ(a->fp4_tflops, sheet.fp4) << sheet.name;
    EXPECT_EQ(a->memory_tb_per_s, sheet.memory) << sheet.name;
    EXPECT_EQ(a->link_gb_per_s, sheet.link) << sheet.name;
  }
  EXPECT_EQ(std::size(sheets), c.accelerators().size()) << "a new accelerator needs a row";
}

// Shares of the peaks that kernels were measured to reach.
TEST(Accelerators, EfficienciesOfTheMeasuredOnes) {
  struct Reached {
    const char* name;
    double bf16, fp8, attention, weights, mxfp4, kv, kv_fp8, shared, widening = 0;
  };
  const Catalogue c = tools::builtin_catalogue();
  for (const Reached& r : {Reached{"H100-SXM", 0.75, 0.50, 0.65, 0.88, 0.75, 0.85, 0.43, 0.53, 3.8},
                           {"H200", 0.72, 0.50, 0.65, 0.89, 0.65, 0.85, 0.43, 0.74, 3.8},
                           {"A100-80", 0.82, 0.5, 0.6, 0.68, 0.45, 0.85, 0.85, 0.7},
                           {"B200", 0.67, 0.31, 0.6, 0.72, 0.88, 0.85, 0.85, 0.74},
                           {"MI300X", 0.42, 0.42, 0.6, 0.7, 0.45, 0.85, 0.85, 0.5},
                           {"L4", 0.6, 0.5, 0.6, 0.8, 0.45, 0.85, 0.85, 0.7}}) {
    const AcceleratorSpec& a = *c.find_accelerator(r.name);
    EXPECT_EQ(a.prefill_mfu, r.bf16) << r.name;
    EXPECT_EQ(a.prefill_mfu_fp8, r.fp8) << r.name;
    EXPECT_EQ(a.prefill_mfu_fp4, 0.34) << r.name;
    EXPECT_EQ(a.attention_mfu, r.attention) << r.name;
    EXPECT_EQ(a.weight_mbu, r.weights) << r.name;
    EXPECT_EQ(a.mxfp4_mbu, r.mxfp4) << r.name;
    EXPECT_EQ(a.widening_tb_per_s, r.widening) << r.name;
    EXPECT_EQ(a.fp8_expert_mbu, 0.65) << r.name;
    EXPECT_EQ(a.kv_mbu, r.kv) << r.name;
    EXPECT_EQ(a.kv_mbu_fp8, r.kv_fp8) << r.name;
    EXPECT_EQ(a.shared_context_weight, r.shared) << r.name;
  }
}

// FlashAttention 2 runs where 3 and 4 do not; cards without peer access meet in the host's memory.
TEST(Accelerators, GenerationsDecideAttentionAndCollectives) {
  const Catalogue c = tools::builtin_catalogue();
  const auto rows = [&](const char* name) { return c.find_accelerator(name)->mixed_decode_rows; };
  const auto staged = [&](const char* name) {
    return c.find_accelerator(name)->collective_efficiency == 0.33;
  };
  for (const char* name : {"A10G", "L4", "L40S", "L40", "A10", "A40", "RTX-A6000", "RTX-6000-Ada",
                           "RTX-PRO-6000", "RTX-3090", "RTX-4090", "RTX-5090"}) {
    EXPECT_EQ(rows(name), 64) << name;
    EXPECT_TRUE(staged(name)) << name;
  }
  for (const char* name : {"A100-80", "A100-40", "A100-PCIe"}) {
    EXPECT_EQ(rows(name), 64) << name;
    EXPECT_FALSE(staged(name)) << name;
  }
  for (const char* name : {"H100-SXM", "H100-PCIe", "H200", "B200", "GB200", "MI300X"}) {
    EXPECT_EQ(rows(name), 0) << name;
    EXPECT_FALSE(staged(name)) << name;
  }
  for (const char* name : {"T4", "V100-32"}) EXPECT_EQ(rows(name), 0) << name;
}

// Fixed times that models/README.md states, us (a product, a layer, a layer of experts, a product
// with block scales, an fp8 product, a layer with a prompt) and ms (GPU and host of a step).
TEST(Accelerators, FixedTimesOfTheMeasuredOnes) {
  struct Times {
    const char* name;
    double kernel, layer, experts, scaled, fp8, chunk, gpu_step, host_step;
  };
  const Catalogue c = tools::builtin_catalogue();
  for (const Times& t : {Times{"H100-SXM", 3.0, 15, 20, 10, 3.5, 90, 0.8, 0.7},
                         {"H200", 4.0, 15, 20, 10, 3.5, 90, 0.8, 0.7},
                         {"A100-80", 2.0, 15, 45, 10, 0, 90, 0.8, 0.7},
                         {"B200", 4.0, 15, 5, 8, 3.5, 45, 0.4, 0.7},
                         {"MI300X", 3.0, 40, 20, 10, 0, 0, 0.5, 0.5}}) {
    const AcceleratorSpec& a = *c.find_accelerator(t.name);
    EXPECT_EQ(a.kernel_us, t.kernel) << t.name;
    EXPECT_EQ(a.layer_us, t.layer) << t.name;
    EXPECT_EQ(a.expert_layer_us, t.experts) << t.name;
    EXPECT_EQ(a.scaled_product_us, t.scaled) << t.name;
    EXPECT_EQ(a.fp8_product_us, t.fp8) << t.name;
    EXPECT_EQ(a.chunk_layer_us, t.chunk) << t.name;
    EXPECT_EQ(a.gpu_step_ms, t.gpu_step) << t.name;
    EXPECT_EQ(a.host_step_ms, t.host_step) << t.name;
  }
}

}  // namespace
}  // namespace routesim::models
