// Where the results of `routesim run` go, and as what.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/cli/output_target.h"
#include "tools/render/report.h"
#include "tools/render/trace.h"

namespace routesim::tools {

/// Everything a run's results can be written as.
enum class OutputFormat {
  kTable,
  kJson,
  kCsv,
  kSeries,
  kTrace,
  kMarkdown,
  kJunit,
  kGithub,
  kHtml,
  kInferencePerf,
  kBenchmarkReport,
  kBenchmarkReportV01,
  kVllmBench
};

struct OutputTarget {
  OutputFormat format = OutputFormat::kTable;
  std::string path;  ///< Empty = standard output; a folder for formats of several files.
};

/// Reads `FORMAT` or `FORMAT=PATH` of every --output; none means a table on standard output. Only
/// one may go there. False with `error` set when something is wrong.
bool parse_outputs(const std::vector<std::string>& texts, std::vector<OutputTarget>& outputs,
                   std::string& error);

/// The same check as of other outputs; of a folder, that its own files can be made in it.
bool check_run_outputs(const std::vector<OutputTarget>& outputs, const std::string& records,
                       std::span<const std::string> inputs, Console& console);

/// Writes every output, and lets `records`, if any, appear with them; after one that could not be
/// written no file is replaced, and the answer is false. Files of an interrupted run get `.partial`
/// behind their names, and so do folders: what was complete stays.
bool write_outputs(const Report& report, const TraceRecorder& trace,
                   const std::vector<OutputTarget>& outputs, OutputFile* records, Console& console);

}  // namespace routesim::tools
