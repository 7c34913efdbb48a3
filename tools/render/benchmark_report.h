// llm-d-benchmark's Benchmark Report, versions 0.1 and 0.2: one report per load stage.
#pragma once

#include <cstdint>
#include <string>

#include "tools/results/report.h"

namespace routesim::tools {

/// Version 0.1 of a stage of the variant, the `number`-th of its load. Latencies in s and s/token,
/// duration is the send duration, as the importer of inference-perf results has it.
std::string benchmark_report_v01(const VariantReport& variant, const sim::StageResult& stage,
                                 std::int64_t number);

/// Version 0.2: one stack component per pool and one for the router. Throughputs have only a mean.
std::string benchmark_report_v02(const VariantReport& variant, const sim::StageResult& stage,
                                 std::int64_t number);

}  // namespace routesim::tools
