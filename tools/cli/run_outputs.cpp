#include "tools/cli/run_outputs.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/printable.h"
#include "tools/render/html_page.h"
#include "tools/render/report_files.h"

namespace routesim::tools {

namespace {

struct FormatName {
  std::string_view name;
  OutputFormat format;
};
constexpr std::array<FormatName, 13> kFormats = {
    {{"table", OutputFormat::kTable},
     {"json", OutputFormat::kJson},
     {"csv", OutputFormat::kCsv},
     {"series", OutputFormat::kSeries},
     {"trace", OutputFormat::kTrace},
     {"markdown", OutputFormat::kMarkdown},
     {"junit", OutputFormat::kJunit},
     {"github", OutputFormat::kGithub},
     {"html", OutputFormat::kHtml},
     {"inference-perf", OutputFormat::kInferencePerf},
     {"benchmark-report", OutputFormat::kBenchmarkReport},
     {"benchmark-report-v0.1", OutputFormat::kBenchmarkReportV01},
     {"vllm-bench", OutputFormat::kVllmBench}}};

/// The formats that are files in a folder, one per load stage.
std::optional<FileFormat> file_format(OutputFormat format) {
  switch (format) {
    case OutputFormat::kInferencePerf:
      return FileFormat::kInferencePerf;
    case OutputFormat::kBenchmarkReport:
      return FileFormat::kBenchmarkReport;
    case OutputFormat::kBenchmarkReportV01:
      return FileFormat::kBenchmarkReportV01;
    case OutputFormat::kVllmBench:
      return FileFormat::kVllmBench;
    default:
      return std::nullopt;
  }
}

/// `FORMAT` or `FORMAT=PATH`; on error sets `error`.
std::optional<OutputTarget> parse_output(const std::string& text, std::string& error) {
  std::array<std::string_view, kFormats.size()> names;
  std::transform(kFormats.begin(), kFormats.end(), names.begin(),
                 [](const FormatName& f) { return f.name; });
  const std::optional<NamedOutput> named = parse_named_output(text, names, error);
  if (!named) return std::nullopt;
  const auto at = std::find(names.begin(), names.end(), named->format) - names.begin();
  const OutputTarget target{.format = kFormats[static_cast<std::size_t>(at)].format,
                            .path = named->path};
  if (!file_format(target.format) || !target.path.empty()) return target;
  error = "--output: " + named->format + " is several files, write " + named->format + "=FOLDER";
  return std::nullopt;
}

std::string render(const Report& report, const TraceRecorder& trace, OutputFormat format) {
  switch (format) {
    case OutputFormat::kJson:
      return render_json(report);
    case OutputFormat::kCsv:
      return render_csv(report);
    case OutputFormat::kSeries:
      return render_series_csv(report);
    case OutputFormat::kTrace:
      return trace.json(report.interrupted);
    case OutputFormat::kMarkdown:
      return render_markdown(report);
    case OutputFormat::kJunit:
      return render_junit(report.scenario, judgements_of(report));
    case OutputFormat::kGithub:
      return render_github(report.scenario, judgements_of(report));
    case OutputFormat::kHtml:
      return render_html(report);
    default:
      break;
  }
  return render_text(report);
}

/// PATH.partial of a folder, however it is spelled.
std::string partial_folder(const std::string& folder) {
  std::error_code code;
  const std::filesystem::path path = std::filesystem::weakly_canonical(folder, code);
  return (code ? folder : path.string()) + ".partial";
}

/// Writes the files of one folder format; false after one could not be written.
bool write_folder(const Report& report, FileFormat format, const std::string& folder,
                  Console& console) {
  for (const ReportFile& file : report_files(report, format)) {
    const std::filesystem::path path = std::filesystem::path(folder) / file.name;
    std::error_code code;
    std::filesystem::create_directories(path.parent_path(), code);
    const std::string error = code ? code.message() : write_file(path.string(), file.text);
    if (!finish_file(path.string(), error, console)) return false;
  }
  return true;
}

}  // namespace

bool parse_outputs(const std::vector<std::string>& texts, std::vector<OutputTarget>& outputs,
                   std::string& error) {
  std::vector<std::string> paths;
  for (const std::string& text : texts) {
    const std::optional<OutputTarget> target = parse_output(text, error);
    if (!target) return false;
    paths.push_back(target->path);
    outputs.push_back(*target);
  }
  if (texts.empty()) outputs.push_back({});
  error = shared_place(paths);
  return error.empty();
}

namespace {

namespace fs = std::filesystem;

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
  std::error_code code;
  fs::create_directories(folder, code);
  const std::string probe = (fs::path(folder) / "report").string();
  return finish_file(folder, code ? code.message() : why_not_writable(probe), console);
}

}  // namespace

bool check_run_outputs(const std::vector<OutputTarget>& outputs, const std::string& records,
                       std::span<const std::string> inputs, Console& console) {
  std::vector<std::string> files = {records};
  bool ok = true;
  for (const OutputTarget& target : outputs) {
    if (file_format(target.format)) {
      ok = check_folder(target.path, inputs, console) && ok;
    } else {
      files.push_back(target.path);
    }
  }
  return check_outputs(files, inputs, console) && ok;
}

bool write_outputs(const Report& report, const TraceRecorder& trace,
                   const std::vector<OutputTarget>& outputs, OutputFile* records,
                   Console& console) {
  OutputBatch batch;
  const bool partial = report.interrupted;
  if (records != nullptr && partial) records->mark_partial();
  if (records != nullptr) batch.add(*records);
  for (const OutputTarget& target : outputs) {
    if (file_format(target.format)) continue;
    const std::string text = render(report, trace, target.format);
    if (target.path.empty()) {
      console.print(text);
    } else {
      batch.add(partial ? partial_path(target.path) : target.path, text);
    }
  }
  bool ok = batch.close(console);
  for (const OutputTarget& target : outputs)
    if (const auto format = file_format(target.format); ok && format)
      ok = write_folder(report, *format, partial ? partial_folder(target.path) : target.path,
                        console);
  ok = ok && batch.finish(console);
  if (trace.dropped() > 0)
    console.complain("routesim: the trace is capped: " + std::to_string(trace.dropped()) +
                     " events are left out\n");
  return ok;
}

}  // namespace routesim::tools
