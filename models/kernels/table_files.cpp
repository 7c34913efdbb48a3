#include "models/kernels/table_files.h"

#include <array>
#include <cstddef>
#include <utility>

// The assembler takes the files in as they are: a table of 400 KB as a C++ array takes a compiler
// seconds. ROUTESIM_KERNEL_TABLES is their folder.
#define ROUTESIM_TABLE_FILE(name, file)                                            \
  asm(".pushsection .rodata\n.hidden " #name "\n.globl " #name "\n" #name          \
      ":\n.incbin \"" ROUTESIM_KERNEL_TABLES "/" file ".kernels\"\n.hidden " #name \
      "_end\n.globl " #name "_end\n" #name "_end:\n.byte 0\n.popsection");         \
  extern "C" const char name[], name##_end[]

ROUTESIM_TABLE_FILE(routesim_kernels_a100, "a100.vllm");
ROUTESIM_TABLE_FILE(routesim_kernels_a100_sglang, "a100.sglang");
ROUTESIM_TABLE_FILE(routesim_kernels_b200, "b200.vllm");
ROUTESIM_TABLE_FILE(routesim_kernels_b200_sglang, "b200.sglang");
ROUTESIM_TABLE_FILE(routesim_kernels_b300, "b300.vllm");
ROUTESIM_TABLE_FILE(routesim_kernels_gb200, "gb200.vllm");
ROUTESIM_TABLE_FILE(routesim_kernels_h100, "h100.vllm");
ROUTESIM_TABLE_FILE(routesim_kernels_h100_sglang, "h100.sglang");
ROUTESIM_TABLE_FILE(routesim_kernels_h200, "h200.vllm");
ROUTESIM_TABLE_FILE(routesim_kernels_h200_sglang, "h200.sglang");
ROUTESIM_TABLE_FILE(routesim_kernels_l40s, "l40s.vllm");
ROUTESIM_TABLE_FILE(routesim_kernels_rtx_pro_6000, "rtx_pro_6000.vllm");

namespace routesim::models::kernels {
namespace {

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

std::string_view table_file(std::string_view name) {
  const std::array<std::pair<std::string_view, std::string_view>, 12> files = {{
      {"a100.vllm", between(routesim_kernels_a100, routesim_kernels_a100_end)},
      {"a100.sglang", between(routesim_kernels_a100_sglang, routesim_kernels_a100_sglang_end)},
      {"b200.vllm", between(routesim_kernels_b200, routesim_kernels_b200_end)},
      {"b200.sglang", between(routesim_kernels_b200_sglang, routesim_kernels_b200_sglang_end)},
      {"b300.vllm", between(routesim_kernels_b300, routesim_kernels_b300_end)},
      {"gb200.vllm", between(routesim_kernels_gb200, routesim_kernels_gb200_end)},
      {"h100.vllm", between(routesim_kernels_h100, routesim_kernels_h100_end)},
      {"h100.sglang", between(routesim_kernels_h100_sglang, routesim_kernels_h100_sglang_end)},
      {"h200.vllm", between(routesim_kernels_h200, routesim_kernels_h200_end)},
      {"h200.sglang", between(routesim_kernels_h200_sglang, routesim_kernels_h200_sglang_end)},
      {"l40s.vllm", between(routesim_kernels_l40s, routesim_kernels_l40s_end)},
      {"rtx_pro_6000.vllm",
       between(routesim_kernels_rtx_pro_6000, routesim_kernels_rtx_pro_6000_end)},
  }};
  for (const auto& [known, bytes] : files)
    if (known == name) return bytes;
  return {};
}

}  // namespace routesim::models::kernels
