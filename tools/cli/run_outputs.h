// Where the results of `routesim run` go, and as what.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/output_target.h"
#include "tools/output/report.h"
#include "tools/output/trace.h"

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

/// Writes every output; false after a file could not be written.
bool write_outputs(const Report& report, const TraceRecorder& trace,
                   const std::vector<OutputTarget>& outputs, Console& console);

}  // namespace routesim::tools
