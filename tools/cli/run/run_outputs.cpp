#include "tools/cli/run/run_outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "tools/render/document.h"
#include "tools/render/page/html_page.h"
#include "tools/render/reports/report_files.h"
#include "tools/results/output_file.h"
#include "tools/results/text_table.h"
#include "tools/study/report/read_results.h"
#include "tools/study/run/render_run.h"

namespace routesim::tools {

namespace {

namespace fs = std::filesystem;

struct RunFormat {
  std::string_view name;
  std::string_view note;  ///< Stands in parentheses behind the name in help texts.
  std::string (*render)(const Report& report, const TraceRecorder& trace);  ///< Null for text.
  std::optional<FileFormat> files = {};  ///< The format is these files in a folder; no `render`.
  RunNeeds needs = RunNeeds::kReport;
  bool shows_kv_band = false;
};

/// A new format needs a row here; the option, its help and shell completion follow.
const std::vector<RunFormat>& formats() {
  using R = const Report&;
  using T = const TraceRecorder&;
  static const std::vector<RunFormat> kFormats = {
      {"table", "default", nullptr, {}, RunNeeds::kReport, true},
      {"json", "", [](R r, T) { return render_json(r); }, {}, RunNeeds::kReport, true},
      {"csv", "", [](R r, T) { return render_csv(r); }},
      {"series",
       "CSV over time",
       [](R r, T) { return render_series_csv(r); },
       {},
       RunNeeds::kSeries},
      {"trace",
       "for Perfetto",
       [](R r, T trace) { return trace.json(r.interrupted); },
       {},
       RunNeeds::kTrace},
      {"markdown", "", [](R r, T) { return render_markdown(r); }, {}, RunNeeds::kReport, true},
      {"junit", "", [](R r, T) { return render_junit(r.scenario, judgements_of(r)); }},
      {"github", "annotations", [](R r, T) { return render_github(r.scenario, judgements_of(r)); }},
      {"html", "one page", [](R r, T) { return render_html(r); }, {}, RunNeeds::kSeries, true},
      {"inference-perf", "", nullptr, FileFormat::kInferencePerf},
      {"benchmark-report", "v0.2", nullptr, FileFormat::kBenchmarkReport},
      {"benchmark-report-v0.1", "", nullptr, FileFormat::kBenchmarkReportV01},
      {"vllm-bench", "", nullptr, FileFormat::kVllmBench}};
  return kFormats;
}

const RunFormat& format_of(const std::string& name) {
  return *std::ranges::find(formats(), name, &RunFormat::name);
}

/// `a, b (note) or c`: the formats that are, or are not, files in a folder.
std::string listed_formats(bool folders, std::string_view last_word) {
  std::vector<std::string> names;
  for (const RunFormat& f : formats())
    if (f.files.has_value() == folders)
      names.push_back(f.note.empty() ? std::string(f.name)
                                     : fmt::format("{} ({})", f.name, f.note));
  return joined(names, last_word);
}

/// PATH.partial of a folder, however it is spelled.
std::string partial_folder(const std::string& folder) {
  std::error_code code;
  const fs::path path = fs::weakly_canonical(folder, code);
  return (code ? folder : path.string()) + ".partial";
}

/// Whether a file that write_folder() makes may be this input, or stand in it: folder/VARIANT/FILE.
bool may_replace(const std::string& folder, const std::string& input) {
  std::error_code code;
  const fs::path root = fs::weakly_canonical(fs::absolute(folder, code), code);
  const fs::path read = fs::weakly_canonical(fs::absolute(input, code), code);
  if (fs::is_directory(read, code)) return read.parent_path() == root;
  const std::string name = read.filename().string();
  return read.parent_path().parent_path() == root &&
         (name.starts_with("stage_") || name.starts_with("summary_") ||
          name.starts_with("benchmark_report"));
}

bool check_folder(const std::string& folder, std::span<const std::string> inputs,
                  Console& console) {
  for (const std::string& input : inputs) {
    if (!may_replace(folder, input)) continue;
    console.complain("routesim: " + printable(folder, 200) + " may replace the input " +
                     printable(input, 200) + "\n");
    return false;
  }
  return finish_file(folder, why_no_folder(folder), console);
}

}  // namespace

std::vector<std::string> run_formats() {
  std::vector<std::string> names;
  for (const RunFormat& format : formats()) names.emplace_back(format.name);
  return names;
}

std::string run_formats_help() {
  return fmt::format(
      "{}; to standard output or PATH. {} write that tool's files into a folder PATH.",
      listed_formats(false, "or"), listed_formats(true, "and"));
}

OptionSpec color_option() {
  return {.name = "color",
          .value_name = "WHEN",
          .help = "Colours in the table: auto (default), always or never.",
          .choices = {"auto", "always", "never"}};
}

bool wants_colour(Options& options, const Console& console) {
  const std::string when = options.choice("color");
  if (when != "auto") return when == "always";
  const char* const refused = std::getenv("NO_COLOR");
  return (refused == nullptr || *refused == '\0') && console.output_is_terminal();
}

RunNeeds needs_of(const std::string& format) { return format_of(format).needs; }

bool shows_kv_band(const std::string& format) { return format_of(format).shows_kv_band; }

bool is_folder_format(const std::string& format) { return format_of(format).files.has_value(); }

bool check_run_outputs(const std::vector<Output>& outputs, const std::string& records,
                       std::span<const std::string> inputs, Console& console) {
  std::vector<std::string> files = {records};
  bool ok = true;
  for (const Output& output : outputs) {
    if (is_folder_format(output.format))
      ok = check_folder(output.path, inputs, console) && ok;
    else
      files.push_back(output.path);
  }
  return check_outputs(files, inputs, console) && ok;
}

bool write_run_outputs(const Report& report, const TraceRecorder& trace,
                       const std::vector<Output>& outputs, OutputFile* records,
                       const TextParts& parts, Console& console) {
  OutputBatch batch;
  const bool partial = report.interrupted;
  if (records != nullptr && partial) records->mark_partial();
  if (records != nullptr) batch.add(*records);
  for (const Output& output : outputs) {
    const RunFormat& format = format_of(output.format);
    if (format.files) continue;
    TextParts own = parts;
    own.colour = own.colour && output.path.empty();
    if (output.path.empty()) own.width = console.output_width();
    const std::string text =
        format.render == nullptr ? render_text(report, own) : format.render(report, trace);
    if (output.path.empty())
      console.print(text);
    else
      batch.add(partial ? partial_path(output.path) : output.path, text);
  }
  bool ok = batch.close(console);
  for (const Output& output : outputs)
    if (const auto files = format_of(output.format).files; ok && files) {
      const std::string folder = partial ? partial_folder(output.path) : output.path;
      ok = finish_file(folder, write_folder(folder, report_files(report, *files)), console);
    }
  ok = ok && batch.finish(console);
  if (trace.dropped() > 0)
    console.complain("routesim: the trace is capped: " + std::to_string(trace.dropped()) +
                     " events are left out\n");
  return ok;
}

}  // namespace routesim::tools
