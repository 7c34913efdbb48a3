// Results in the file formats of the tools people already have: inference-perf's lifecycle reports,
// llm-d's Benchmark Report and the result file of `vllm bench serve`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/observe/run_result.h"
#include "sim/plan/scenario.h"
#include "tools/results/described_json.h"
#include "tools/results/goodput.h"
#include "tools/results/output_file.h"
#include "tools/results/report.h"

namespace routesim::tools {

enum class FileFormat {
  kInferencePerf,       ///< stage_<i>_lifecycle_metrics.json, summary_lifecycle_metrics.json.
  kBenchmarkReportV01,  ///< benchmark_report,_stage_<i>.yaml, version 0.1.
  kBenchmarkReport,     ///< benchmark_report_v0.2,_stage_<i>.yaml.
  kVllmBench            ///< stage_<i>.json, as `vllm bench serve --save-result` writes it.
};

/// The files of every variant, each as `<variant>/<file>`, safe as a relative path: one per load
/// stage, and for inference-perf the summary. Stages count from 0, warm-up included, as
/// inference-perf counts; what a tool sends before its run is no stage. Benchmark Reports are YAML
/// in JSON's syntax. What a simulation has no value for (host names, times of day, user) is left
/// out.
std::vector<FolderFile> report_files(const Report& report, FileFormat format);

/// A file name for each of `names`, in their order: different names never share a file, also on
/// file systems that ignore case. Letters, digits, `-`, `_` and `.` stay, other bytes become `%XX`,
/// and so do a leading dot and, where two names differ in case only, capital letters. A long name
/// is cut and ends in a hash of the whole. No result is longer than 150 bytes.
std::vector<std::string> file_names(const std::vector<std::string>& names);

}  // namespace routesim::tools
