// The built-in accelerators. Peaks are dense data-sheet values; memory is what the driver reports.
// Efficiencies of H100, H200, A100 and B200 follow the measured matrix products of aiconfigurator
// (vLLM 0.14 to 0.19, commit 095f58a51; five shapes from 4096x4096 to 16384x8192): MFU is the mean
// rate at 2048 to 8192 rows, less 6 % for the elementwise kernels between the products; weight_mbu
// and kernel_us are slope and intercept of the time at one row over the bytes of the matrix.
// The others carry the general defaults of AcceleratorSpec (MFU 0.6, fp8 0.5; 0.8 of the bandwidth
// and 3 us per operation, aiconfigurator's own corrections).
#include "models/accelerators.h"

#include <algorithm>
#include <array>

#include "models/catalogue.h"

namespace routesim::models {

AcceleratorSpec h100_sxm() {
  return {.name = "H100-SXM",
          .source = "NVIDIA H100 data sheet; aiconfigurator h100_sxm operator tables",
          .aliases = {"H100", "H100 SXM5", "H100-80GB", "H100-SXM-80GB", "NVIDIA H100 80GB HBM3"},
          .bf16_tflops = 989,
          .fp8_tflops = 1979,
          .memory_bytes = 85.5e9,
          .memory_tb_per_s = 3.35,
          .link_gb_per_s = 450,
          .nic_gb_per_s = 50,
          .overhead_bytes = 1.2e9,
          .prefill_mfu = 0.75,
          .prefill_mfu_fp8 = 0.50,
          .attention_mfu = 0.65,
          .weight_mbu = 0.88,
          .mxfp4_mbu = 0.75,
          .kv_mbu = 0.85,
          .kv_mbu_fp8 = 0.43,
          .shared_context_weight = 0.5,
          .fp8_product_us = 3.5,
          .chunk_layer_us = 90,
          .host_sequence_ms = 0.05,
          .collective_us = 4.5,
          .collective_efficiency = 0.7,
          .switched_link = true};
}

static AcceleratorSpec h200() {
  return {.name = "H200",
          .source = "NVIDIA H200 data sheet; aiconfigurator h200_sxm operator tables",
          .aliases = {"H200-SXM", "H200 141GB", "NVIDIA H200"},
          .bf16_tflops = 989,
          .fp8_tflops = 1979,
          .memory_bytes = 150.7e9,
          .memory_tb_per_s = 4.8,
          .link_gb_per_s = 450,
          .nic_gb_per_s = 50,
          .overhead_bytes = 1.2e9,
          .prefill_mfu = 0.72,
          .prefill_mfu_fp8 = 0.50,
          .attention_mfu = 0.65,
          .weight_mbu = 0.89,
          .mxfp4_mbu = 0.65,
          .kv_mbu_fp8 = 0.43,
          .shared_context_weight = 0.5,
          .kernel_us = 4.0,
          .fp8_product_us = 3.5,
          .chunk_layer_us = 90,
          .host_sequence_ms = 0.05,
          .collective_us = 4.5,
          .collective_efficiency = 0.7,
          .switched_link = true};
}

AcceleratorSpec a100_80() {
  return {.name = "A100-80",
          .source = "NVIDIA A100 data sheet (SXM, 80 GB); aiconfigurator a100_sxm operator tables",
          .aliases = {"A100", "A100-SXM-80GB", "A100-80GB", "NVIDIA A100-SXM4-80GB"},
          .bf16_tflops = 312,
          .fp8_tflops = 0,
          .memory_bytes = 85.9e9,
          .memory_tb_per_s = 2.039,
          .link_gb_per_s = 300,
          .nic_gb_per_s = 25,
          .overhead_bytes = 1.2e9,
          .prefill_mfu = 0.82,
          .weight_mbu = 0.68,
          .shared_context_weight = 0.7,
          .kernel_us = 2.0,
          .expert_layer_us = 45,
          .chunk_layer_us = 90,
          .switched_link = true};
}

static AcceleratorSpec a10g() {
  return {.name = "A10G",
          .source = "NVIDIA A10G / AWS g5.xlarge (4 vCPU, hence the host cost per sequence)",
          .aliases = {"A10G-24GB", "NVIDIA A10G"},
          .bf16_tflops = 70,
          .fp8_tflops = 0,
          .memory_bytes = 24.15e9,
          .memory_tb_per_s = 0.600,
          .link_gb_per_s = 32,
          .nic_gb_per_s = 1.25,
          .overhead_bytes = 0.9e9,
          .host_sequence_ms = 0.4,
          .collective_us = 25};
}

static AcceleratorSpec l4() {
  return {.name = "L4",
          .source = "NVIDIA L4 data sheet; PCIe Gen4, small cloud node",
          .aliases = {"L4-24GB", "NVIDIA L4"},
          .bf16_tflops = 121,
          .fp8_tflops = 242,
          .memory_bytes = 24.15e9,
          .memory_tb_per_s = 0.300,
          .link_gb_per_s = 32,
          .nic_gb_per_s = 2,
          .overhead_bytes = 0.9e9,
          .shared_context_weight = 0.7,
          .host_sequence_ms = 0.1,
          .collective_us = 25};
}

static AcceleratorSpec l40s() {
  return {.name = "L40S",
          .source = "NVIDIA L40S data sheet (dense fp8 733, not the sparse 1466)",
          .aliases = {"L40S-48GB", "NVIDIA L40S"},
          .bf16_tflops = 362,
          .fp8_tflops = 733,
          .memory_bytes = 48.3e9,
          .memory_tb_per_s = 0.864,
          .link_gb_per_s = 32,
          .nic_gb_per_s = 12.5,
          .overhead_bytes = 1.0e9,
          .shared_context_weight = 0.7,
          .collective_us = 25};
}

AcceleratorSpec b200() {
  return {.name = "B200",
          .source = "NVIDIA HGX B200 data sheet; aiconfigurator b200_sxm operator tables",
          .aliases = {"B200-SXM", "B200-180GB", "NVIDIA B200"},
          .bf16_tflops = 2250,
          .fp8_tflops = 4500,
          .fp4_tflops = 9000,
          .memory_bytes = 192e9,
          .memory_tb_per_s = 7.7,
          .link_gb_per_s = 900,
          .nic_gb_per_s = 50,
          .overhead_bytes = 1.5e9,
          .prefill_mfu = 0.67,
          .prefill_mfu_fp8 = 0.31,
          .weight_mbu = 0.72,
          .mxfp4_mbu = 0.88,  // Multiplies fp4 natively.
          .shared_context_weight = 0.5,
          .kernel_us = 4.0,
          .expert_layer_us = 5,
          .scaled_product_us = 8,
          .fp8_product_us = 3.5,
          .chunk_layer_us = 45,
          .gpu_step_ms = 0.4,
          .host_sequence_ms = 0.05,
          .collective_efficiency = 0.7,
          .switched_link = true};
}

AcceleratorSpec mi300x() {
  return {.name = "MI300X",
          .source =
              "AMD MI300X data sheet; link is 7 x 64 GB/s Infinity Fabric in aggregate; matrix "
              "products: arXiv 2510.27583 and Azure ND MI300X v5 results",
          .aliases = {"MI300X-192GB", "AMD Instinct MI300X", "AMD Instinct MI300X OAM"},
          .bf16_tflops = 1307,
          .fp8_tflops = 2615,
          .memory_bytes = 206e9,
          .memory_tb_per_s = 5.3,
          .link_gb_per_s = 448,
          .nic_gb_per_s = 50,
          .overhead_bytes = 2.0e9,
          .prefill_mfu = 0.42,
          .prefill_mfu_fp8 = 0.42,
          .weight_mbu = 0.7,
          .shared_context_weight = 0.5,
          .layer_us = 40,
          .gpu_step_ms = 0.5,
          .host_step_ms = 0.5,
          .collective_us = 10};
}

std::vector<AcceleratorSpec> builtin_accelerators() {
  std::vector<AcceleratorSpec> all = {mi300x(), h100_sxm(), h200(), a100_80(),
                                      a10g(),   l4(),       l40s(), b200()};
  for (AcceleratorSpec& a : data_sheet_accelerators()) all.push_back(std::move(a));
  return all;
}

bool has_measured_efficiencies(std::string_view name) {
  constexpr std::array<std::string_view, 5> kMeasured = {"H100-SXM", "H200", "A100-80", "B200",
                                                         "MI300X"};
  return std::ranges::find(kMeasured, name) != kMeasured.end();
}

}  // namespace routesim::models
