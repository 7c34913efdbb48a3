// Result files of every study made one page.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "tools/render/page/html_page.h"
#include "tools/results/output_file.h"
#include "tools/results/report.h"
#include "tools/study/verdict/run_view.h"

namespace routesim::tools {

/// Everything one page shows.
struct PageData {
  std::vector<PageRun> runs;
  std::vector<PageBody> bodies;  ///< Of every result, in the order of the files.
  std::string block;             ///< Their data block.
  bool has_sweep = false;        ///< Goals can be set for some result.
};

/// One result file's text.
struct ResultText {
  std::string file;
  std::string text;
};

/// Reads results: JSON of `run`, `plan`, `tune`, `compare` or `validate`, JSON lines of `sweep`, or
/// a page made from them. Anything else is an error at its file. `goals` replace those of the
/// sweeps among them; a goal that cannot be read, or on a metric that its sweep does not have, is
/// an error. The page is empty after an error.
PageData read_results(const std::vector<ResultText>& results, Diagnostics& diagnostics,
                      const std::vector<std::string>& goals = {});

inline std::string render_page(const PageData& data) {
  return render_page(data.bodies, data.block);
}

/// The page of one run.
std::string render_html(const Report& report);

/// Tables in base units (seconds, tokens, ratios), one number per row, as CSV (RFC 4180) and the
/// same rows as JSON lines: `summary`, `stages`, `quantiles`, `servers`, `series` of runs,
/// and those of other studies. Tables without rows are left out.
std::vector<FolderFile> export_tables(const PageData& data);

/// The curves over the load of each run as SVG files, `ttft.mean.svg`; of several runs with their
/// numbers, `2-ttft.mean.svg`.
std::vector<FolderFile> export_charts(const PageData& data);

}  // namespace routesim::tools
