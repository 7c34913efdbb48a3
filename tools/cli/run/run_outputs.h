// The output formats of `routesim run`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/cli/output_target.h"
#include "tools/render/observe/trace.h"
#include "tools/results/output_file.h"
#include "tools/results/report.h"
#include "tools/study/run/render_run.h"

namespace routesim::tools {

/// Every format that a run's results can be written as; the first is the default.
std::vector<std::string> run_formats();

/// The same with notes, as a sentence for `run --help`.
std::string run_formats_help();

/// `--color auto|always|never`. By itself only a terminal that knows colours gets them, and none
/// where the environment has NO_COLOR (https://no-color.org).
OptionSpec color_option();
bool wants_colour(Options& options, const Console& console);

/// The data that a format shows beside the report; it costs time to collect.
enum class RunNeeds { kReport, kSeries, kTrace };
RunNeeds needs_of(const std::string& format);

/// Whether the format shows VariantReport::capacity_band, which costs two runs of a variant.
bool shows_kv_band(const std::string& format);

/// Whether the format is files in a folder, one per load stage; then an Output names the folder.
bool is_folder_format(const std::string& format);

/// The same check as for other outputs; for a folder, that its own files can be made in it.
bool check_run_outputs(const std::vector<Output>& outputs, const std::string& records,
                       std::span<const std::string> inputs, Console& console);

/// Writes every output, and lets `records`, if any, appear with them; after one that could not be
/// written no file is replaced, and the answer is false. Files of an interrupted run get `.partial`
/// behind their names, and so do folders: complete results stay. Only on standard output the text
/// has colours.
bool write_run_outputs(const Report& report, const TraceRecorder& trace,
                       const std::vector<Output>& outputs, OutputFile* records,
                       const TextParts& parts, Console& console);

}  // namespace routesim::tools
