// routesim report: results made a page, or tables.
#include "base/config_node.h"
#include "base/text.h"
#include "tools/cli/cli.h"
#include "tools/cli/output_target.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/render/page/html_page.h"
#include "tools/results/described_json.h"
#include "tools/results/output_file.h"
#include "tools/study/compare/comparison_record.h"
#include "tools/study/report/read_results.h"
#include "tools/study/sweep/sweep_run.h"

namespace routesim::tools {

namespace {

/// Far above any honest result: a page of 1,000 stages with time series has a few megabytes.
constexpr std::size_t kMostBytes = std::size_t{512} << 20U;

/// Every table and curve of the page as files in `folder`, which is made if need be.
bool write_export(const PageData& data, const std::string& folder, Console& console) {
  std::vector<FolderFile> files = export_tables(data);
  for (FolderFile& chart : export_charts(data)) files.push_back(std::move(chart));
  return finish_file(folder, write_folder(folder, files), console);
}

/// The changes from the first of two results of `run` to the second, as JSON; nothing when they
/// have no variant in common.
std::optional<std::string> before_and_after(const std::vector<std::string>& paths) {
  Diagnostics said;  // Two results that cannot be compared are still two results.
  const auto base = read_result_file(paths.front(), {}, said);
  const auto changed = read_result_file(paths.back(), {}, said);
  if (!base || !changed) return std::nullopt;
  const Comparison comparison = compare_results(*base, *changed, {}, said);
  if (said.has_errors()) return std::nullopt;
  ComparisonRecord record = comparison_record(comparison);
  return json_text(record);
}

ExitCode run_report(Options& options, Console& console) {
  const std::vector<std::string>& paths = options.positionals();
  const std::string folder = options.get("export");
  std::string output = options.get("output");
  const bool wants_page = !output.empty();
  if (output == "-") output.clear();
  if (!wants_page && folder.empty())
    options.fail("give --output PATH for a page (- is standard output), or --export FOLDER");
  // A page may be made again out of itself.
  for (const std::string& path : paths)
    if (!output.empty() && !path.ends_with(".html") && written_file(path) == written_file(output))
      options.fail("--output would replace the result " + printable(path, 200));
  if (!options.ok()) return refuse(options, console);
  Diagnostics diagnostics;
  std::vector<ResultText> results;
  for (const std::string& path : paths) {
    ResultText result{.file = path, .text = {}};
    const SourceLocation where{.file = path, .line = 1, .column = 1};
    if (read_text_file(path, where, "", kMostBytes, result.text, diagnostics))
      results.push_back(std::move(result));
  }
  for (const ResultText& result : results)
    if (!data_block(result.text)) check_rows(result.file, result.text, diagnostics);
  PageData data;
  const std::vector<std::string> goals = options.all("goal");
  if (!diagnostics.has_errors()) data = read_results(results, diagnostics, goals);
  if (!diagnostics.has_errors() && !goals.empty() && !data.has_sweep)
    diagnostics.error({.file = "--goal"}, "", "is about the rows of a sweep, and none was given");
  if (paths.size() == 2 && data.runs.size() == 2 && data.bodies.size() == 2)
    if (const auto comparison = before_and_after(paths)) {
      results.insert(results.begin(), {.file = "comparison", .text = *comparison});
      data = read_results(results, diagnostics);
    }
  console.complain(diagnostics);
  if (diagnostics.has_errors()) return ExitCode::kInvalid;
  if (!folder.empty() && !write_export(data, folder, console)) return ExitCode::kInvalid;
  if (wants_page && !write_text(output, render_page(data), console)) return ExitCode::kInvalid;
  return ExitCode::kSuccess;
}

}  // namespace

Command report_command() {
  return {
      .name = "report",
      .summary = "Make one self-contained HTML page of results; of two runs, before and after.",
      .positional = {.name = "RESULT", .min = 1, .max = 64},
      .options =
          {{"output,o", "PATH", "Where the page goes; - is standard output."},
           {"goal", "GOAL",
            "What the cells of a sweep are held to, as 'ttft_ms.p90<500'; replaces the sweep's "
            "own.",
            true},
           {"export", "FOLDER",
            "Write what the page shows as CSV and JSON lines into FOLDER, and its curves as SVG."}},
      .examples = {{"routesim report result.json -o page.html",
                    "One page with charts and tables that needs no network."},
                   {"routesim report before.json after.json -o page.html",
                    "Two results on one page."},
                   {"routesim report result.json --export curves",
                    "Each curve as SVG and each table as CSV."}},
      .run = &run_report};
}

}  // namespace routesim::tools
