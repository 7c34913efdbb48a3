// Accelerators known from their data sheets only. Those with the chip of one that was measured
// carry its efficiencies; the others the general defaults of AcceleratorSpec.
#include "models/accelerators.h"

namespace routesim::models {
namespace {

/// `chip` with other memory and links.
struct Board {
  std::string name;
  std::string source;
  std::vector<std::string> aliases = {};
  double memory_bytes = 0;
  double memory_tb_per_s = 0;
  double link_gb_per_s = 0;
};

AcceleratorSpec on_board(AcceleratorSpec chip, const Board& board) {
  chip.name = board.name;
  chip.source = board.source + "; efficiencies of " + chip.source;
  chip.aliases = board.aliases;
  chip.memory_bytes = board.memory_bytes;
  chip.memory_tb_per_s = board.memory_tb_per_s;
  chip.link_gb_per_s = board.link_gb_per_s;
  return chip;
}

/// A chip with other peaks.
AcceleratorSpec with_peaks(AcceleratorSpec a, double bf16, double fp8) {
  a.bf16_tflops = bf16;
  a.fp8_tflops = fp8;
  return a;
}

/// A chip that multiplies fp4, at this peak.
AcceleratorSpec with_fp4(AcceleratorSpec a, double fp4) {
  a.fp4_tflops = fp4;
  return a;
}

/// Collectives of cards without a switch between them go through the host's PCIe.
AcceleratorSpec on_pcie(AcceleratorSpec a) {
  a.collective_us = 25;
  a.switched_link = false;
  return a;
}

std::vector<AcceleratorSpec> hopper() {
  const AcceleratorSpec h100 = h100_sxm();
  return {on_pcie(on_board(with_peaks(h100, 756, 1513),
                           {.name = "H100-PCIe",
                            .source = "NVIDIA H100 PCIe data sheet",
                            .aliases = {"H100-PCIe-80GB", "NVIDIA H100 PCIe"},
                            .memory_bytes = 85.5e9,
                            .memory_tb_per_s = 2.0,
                            .link_gb_per_s = 64})),
          on_board(with_peaks(h100, 835, 1671),
                   {.name = "H100-NVL",
                    .source = "NVIDIA H100 NVL data sheet; link is the bridge of a pair",
                    .aliases = {"H100-NVL-94GB", "NVIDIA H100 NVL"},
                    .memory_bytes = 100.5e9,
                    .memory_tb_per_s = 3.9,
                    .link_gb_per_s = 300}),
          on_board(with_peaks(h100, 148, 296), {.name = "H20",
                                                .source = "NVIDIA H20 data sheet",
                                                .aliases = {"H20-96GB", "NVIDIA H20"},
                                                .memory_bytes = 102.6e9,
                                                .memory_tb_per_s = 4.0,
                                                .link_gb_per_s = 450}),
          on_board(h100, {.name = "GH200",
                          .source = "NVIDIA GH200 data sheet, 96 GB of HBM3",
                          .aliases = {"GH200-96GB", "NVIDIA GH200 480GB"},
                          .memory_bytes = 102.6e9,
                          .memory_tb_per_s = 4.0,
                          .link_gb_per_s = 450})};
}

std::vector<AcceleratorSpec> ampere() {
  return {on_board(a100_80(), {.name = "A100-40",
                               .source = "NVIDIA A100 data sheet (SXM, 40 GB)",
                               .aliases = {"A100-40GB", "A100-SXM-40GB", "NVIDIA A100-SXM4-40GB"},
                               .memory_bytes = 42.9e9,
                               .memory_tb_per_s = 1.555,
                               .link_gb_per_s = 300}),
          on_pcie(on_board(a100_80(), {.name = "A100-PCIe",
                                       .source = "NVIDIA A100 data sheet (PCIe, 80 GB)",
                                       .aliases = {"A100-PCIe-80GB", "NVIDIA A100 80GB PCIe"},
                                       .memory_bytes = 85.9e9,
                                       .memory_tb_per_s = 1.935,
                                       .link_gb_per_s = 32}))};
}

std::vector<AcceleratorSpec> blackwell() {
  return {on_board(with_fp4(with_peaks(b200(), 2500, 5000), 10'000),
                   {.name = "GB200",
                    .source = "NVIDIA GB200 NVL72 data sheet",
                    .aliases = {"NVIDIA GB200"},
                    .memory_bytes = 198.7e9,
                    .memory_tb_per_s = 8.0,
                    .link_gb_per_s = 900}),
          on_board(with_fp4(b200(), 13'500), {.name = "B300",
                                              .source = "NVIDIA HGX B300 data sheet",
                                              .aliases = {"B300-SXM", "NVIDIA B300 SXM6 AC"},
                                              .memory_bytes = 288.4e9,
                                              .memory_tb_per_s = 8.0,
                                              .link_gb_per_s = 900})};
}

std::vector<AcceleratorSpec> instinct() {
  return {on_board(mi300x(), {.name = "MI325X",
                              .source = "AMD MI325X data sheet",
                              .aliases = {"MI325X-256GB", "AMD Instinct MI325X"},
                              .memory_bytes = 274.9e9,
                              .memory_tb_per_s = 6.0,
                              .link_gb_per_s = 448}),
          on_board(with_peaks(mi300x(), 2300, 4600),
                   {.name = "MI350X",
                    .source = "AMD MI350X data sheet; assumes what its predecessor reaches",
                    .aliases = {"MI350X-288GB", "AMD Instinct MI350X"},
                    .memory_bytes = 309.2e9,
                    .memory_tb_per_s = 8.0,
                    .link_gb_per_s = 538}),
          on_board(with_peaks(mi300x(), 2500, 5000),
                   {.name = "MI355X",
                    .source = "AMD MI355X data sheet; assumes what its predecessor reaches",
                    .aliases = {"MI355X-288GB", "AMD Instinct MI355X"},
                    .memory_bytes = 309.2e9,
                    .memory_tb_per_s = 8.0,
                    .link_gb_per_s = 538})};
}

/// A card in a PCIe slot, with the general defaults.
AcceleratorSpec card(std::string name, std::string source, std::vector<std::string> aliases,
                     double bf16_tflops, double fp8_tflops, double memory_mib,
                     double memory_tb_per_s, double link_gb_per_s) {
  return {.name = std::move(name),
          .source = std::move(source),
          .aliases = std::move(aliases),
          .bf16_tflops = bf16_tflops,
          .fp8_tflops = fp8_tflops,
          .memory_bytes = memory_mib * 1024 * 1024,
          .memory_tb_per_s = memory_tb_per_s,
          .link_gb_per_s = link_gb_per_s,
          .nic_gb_per_s = 2.5,
          .overhead_bytes = 0.9e9,
          .shared_context_weight = 0.7,
          .collective_us = 25};
}

std::vector<AcceleratorSpec> cards() {
  return {
      card("L40", "NVIDIA L40 data sheet", {"L40-48GB", "NVIDIA L40"}, 181, 362, 46068, 0.864, 32),
      card("A10", "NVIDIA A10 data sheet", {"A10-24GB", "NVIDIA A10"}, 125, 0, 23028, 0.6, 32),
      card("A40", "NVIDIA A40 data sheet", {"A40-48GB", "NVIDIA A40"}, 149.7, 0, 46068, 0.696, 32),
      card("RTX-A6000", "NVIDIA RTX A6000 data sheet", {"A6000", "NVIDIA RTX A6000"}, 154.8, 0,
           49140, 0.768, 32),
      card("RTX-6000-Ada", "NVIDIA RTX 6000 Ada data sheet",
           {"RTX6000Ada", "NVIDIA RTX 6000 Ada Generation"}, 364, 728, 49140, 0.96, 32),
      with_fp4(
          card("RTX-PRO-6000",
               "NVIDIA RTX PRO 6000 Blackwell data sheet (4 PFLOP/s of sparse fp4, hence 0.5 bf16)",
               {"NVIDIA RTX PRO 6000 Blackwell Server Edition",
                "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"},
               500, 1000, 97887, 1.6, 64),
          2000),
      card("RTX-3090", "NVIDIA Ampere GA102 white paper (fp32 accumulation)",
           {"NVIDIA GeForce RTX 3090"}, 71, 0, 24576, 0.936, 32),
      card("RTX-4090", "NVIDIA Ada white paper (fp32 accumulation)", {"NVIDIA GeForce RTX 4090"},
           165, 330, 24564, 1.008, 32),
      with_fp4(card("RTX-5090", "NVIDIA RTX Blackwell white paper (fp32 accumulation)",
                    {"NVIDIA GeForce RTX 5090"}, 209, 419, 32607, 1.792, 64),
               1676),
      card("T4", "NVIDIA T4 data sheet (fp16: it has no bf16)", {"T4-16GB", "Tesla T4"}, 65, 0,
           15360, 0.32, 16),
      card("V100-32", "NVIDIA V100 data sheet (PCIe, 32 GB; fp16: it has no bf16)",
           {"V100", "V100-32GB", "Tesla V100-PCIE-32GB"}, 112, 0, 32768, 0.9, 16)};
}

}  // namespace

std::vector<AcceleratorSpec> data_sheet_accelerators() {
  std::vector<AcceleratorSpec> all;
  for (const auto& family : {hopper(), ampere(), blackwell(), instinct(), cards()})
    all.insert(all.end(), family.begin(), family.end());
  return all;
}

}  // namespace routesim::models
