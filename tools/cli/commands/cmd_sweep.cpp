// routesim sweep: a scenario over a grid of values, in parallel, resumable and shardable.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "base/text.h"
#include "tools/cli/cli.h"
#include "tools/cli/output_target.h"
#include "tools/cli/progress.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/render/page/html_page.h"
#include "tools/results/output_file.h"
#include "tools/study/experiment/journal.h"
#include "tools/study/sweep/sweep_run.h"

namespace routesim::tools {

namespace {

constexpr std::int64_t kMost = 1'000'000'000;  ///< Largest seed, and number of replications.

struct SweepSettings {
  SweepRequest request;
  SweepShard shard = {};
  std::vector<Output> outputs;
  std::string watch = {};
  std::string rows_path = {};  ///< The file of the rows, which can be resumed; empty = none.
  ProgressMode progress = ProgressMode::kAuto;
  bool resume = false;
  bool quiet = false;
};

std::optional<std::string> environment_variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

/// The file that rows are written to; there may be one at most.
std::string rows_file(const std::vector<Output>& outputs, Options& options) {
  std::string path;
  for (const Output& output : outputs) {
    if (output.format != "jsonl" || output.path.empty()) continue;
    if (!path.empty()) options.fail("--output jsonl is given twice");
    path = output.path;
  }
  return path;
}

SweepSettings read_sweep_settings(Options& options) {
  SweepSettings settings{
      .request = {.path = options.positionals().front(),
                  .sets = options.all("set"),
                  .seed = options.whole("seed", IntRange{0, kMost}),
                  .replications = options.whole("replications", IntRange{1, kMost}),
                  .jobs = options.jobs()},
      .outputs = options.outputs(),
      .watch = options.get("watch"),
      .progress = progress_mode(options),
      .resume = options.has("resume"),
      .quiet = options.has("quiet")};
  settings.rows_path = rows_file(settings.outputs, options);
  if (settings.resume && settings.rows_path.empty())
    options.fail("--resume needs the file to continue: --output jsonl=PATH");
  std::optional<std::string> shard;
  if (options.has("shard")) shard = options.get("shard");
  std::string error;
  if (const auto chosen = choose_shard(shard, &environment_variable, error))
    settings.shard = *chosen;
  else
    options.fail(error);
  if (options.positionals().size() > 1)
    options.fail(fmt::format("one SWEEP file at a time (got {}); --merge takes several",
                             options.positionals().size()));
  return settings;
}

/// `sweep 12 of 32 rows [=====>    ] 45 %, 1.2 s, 1.5 s left`.
std::string sweep_line(const ExperimentProgress& progress, double elapsed_s) {
  constexpr std::size_t kWidth = 24;
  const double cost = progress.cost;
  const double share = cost > 0 ? progress.cost_done.load() / cost : 0;
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(kWidth));
  std::string text =
      fmt::format("{} of {} rows [{:<{}}] {:.0f} %, {:.1f} s", progress.answered.load(),
                  progress.questions.load(), std::string(std::min(filled, kWidth), '='), kWidth,
                  100 * share, elapsed_s);
  if (share > 0) text += fmt::format(", {:.1f} s left", elapsed_s * (1 - share) / share);
  return text;
}

/// One sweep from its plan to its outputs.
class SweepCommand {
 public:
  SweepCommand(const SweepPlan& plan, const SweepSettings& settings, Console& console)
      : plan_(plan),
        settings_(settings),
        console_(console),
        journal_(settings.rows_path, settings.shard.text()) {}

  ExitCode run() {
    Diagnostics diagnostics;
    if (journaled() && !journal_.open(settings_.resume, keys(), diagnostics)) {
      console_.complain(diagnostics);
      return ExitCode::kInvalid;
    }
    const std::vector<std::size_t> todo = missing_rows();
    say_start(todo.size());
    const StudyRun how{
        .jobs = settings_.request.jobs,
        .progress = settings_.progress,
        .line = &sweep_line,
        .interrupted = [this](const ExperimentProgress& p) { return interrupted_text(p); },
        .watch = settings_.watch,
        .so_far = [this] { return page_of(rows_so_far()); }};
    const RowSink sink = [this](std::size_t row, SweepRowRecord record) {
      return store(row, std::move(record));
    };
    if (const auto code = conduct(how, console_, [&](Experiment& experiment) {
          run_rows(plan_, todo, sink, experiment);
        }))
      return *code;
    return write_outputs();
  }

 private:
  bool journaled() const { return !settings_.rows_path.empty(); }

  std::set<std::string> keys() const {
    std::set<std::string> keys;
    for (std::size_t i = 0; i < plan_.rows.size(); ++i)
      if (settings_.shard.holds(i)) keys.insert(plan_.rows[i].key);
    return keys;
  }

  std::vector<std::size_t> missing_rows() const {
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < plan_.rows.size(); ++i)
      if (settings_.shard.holds(i) && journal_.find(plan_.rows[i].key) == nullptr)
        rows.push_back(i);
    return rows;
  }

  void say_start(std::size_t todo) {
    if (settings_.quiet) return;
    const SweepShard& shard = settings_.shard;
    std::string text;
    if (shard.count > 1) text = fmt::format("shard {} (from {}), ", shard.text(), shard.origin);
    text += fmt::format("{} rows to compute", todo);
    if (settings_.resume) text += fmt::format(", {} taken up", journal_.size());
    console_.complain(text + "\n");
  }

  std::string store(std::size_t row, SweepRowRecord record) {
    std::string error;
    if (journaled())
      error = journal_.append(plan_.rows[row].key, row_head(plan_, row), row_tail(record));
    if (!journaled() || wants_document()) records_[row] = std::move(record);
    return error.empty() ? error : "cannot write " + journal_.partial_path() + ": " + error;
  }

  /// Whether some output is made of values, not of the stored lines.
  bool wants_document() const {
    return std::ranges::any_of(settings_.outputs,
                               [](const Output& output) { return output.format != "jsonl"; });
  }

  std::string interrupted_text(const ExperimentProgress& progress) const {
    std::string text =
        fmt::format(" after {} of {} rows", progress.answered.load(), progress.questions.load());
    if (journaled() && journal_.size() > 0)
      text +=
          "; they are in " + printable(journal_.partial_path(), 200) + ", continue with --resume";
    return text;
  }

  /// The rows that are finished, in grid order.
  struct Rows {
    std::string lines;
    SweepRecord record;  ///< The same where some output is made of values.
  };

  Rows rows_so_far() {
    Rows rows;
    for (std::size_t i = 0; i < plan_.rows.size(); ++i) {
      if (!settings_.shard.holds(i)) continue;
      const auto own = records_.find(i);
      const std::string* stored = journaled() ? journal_.find(plan_.rows[i].key) : nullptr;
      if (stored == nullptr && own == records_.end()) continue;
      const std::string tail = stored != nullptr ? *stored : row_tail(own->second);
      rows.lines += sealed_row(row_head(plan_, i), tail, settings_.shard.text());
      if (wants_document())
        rows.record.sweep_rows.push_back(own != records_.end() ? own->second
                                                               : stored_record(plan_, i, tail));
    }
    return rows;
  }

  StudyPage page_of(const Rows& rows) const {
    StudyPage page{sweep_document(rows.record, plan_.config.question), block_of(rows.lines)};
    if (page.document.title.empty()) page.document.title = plan_.config.name;
    return page;
  }

  ExitCode write_outputs() {
    const Rows rows = rows_so_far();
    const std::string& content = rows.lines;
    const StudyPage page = page_of(rows);
    const StudyDocument& document = page.document;
    bool ok = true;
    for (const Output& output : settings_.outputs) {
      if (output.format == "jsonl" && !output.path.empty()) {
        ok = finish_file(output.path, journal_.finish(content), console_) && ok;
        continue;
      }
      const std::string text = output.format == "jsonl" ? content
                               : output.format == "html"
                                   ? document_page(document, page.json)
                                   : draw(document, output.format, width_of(output, console_));
      ok = write_text(output.path, text, console_) && ok;
    }
    return ok ? ExitCode::kSuccess : ExitCode::kInvalid;
  }

  /// The rows as one value, the data of a page.
  static std::string block_of(std::string lines) {
    if (!lines.empty()) lines.pop_back();
    std::ranges::replace(lines, '\n', ',');
    return "{\"sweep_rows\":[" + lines + "]}";
  }

  const SweepPlan& plan_;
  const SweepSettings& settings_;
  Console& console_;
  Journal journal_;
  /// By row: those of a sweep without a file, and those that a document is made of.
  std::map<std::size_t, SweepRowRecord> records_;
};

ExitCode run_merge(Options& options, Console& console) {
  std::vector<Output> outputs = options.outputs();
  if (!options.has("output")) outputs = {{.format = "jsonl", .path = {}}};
  for (const Output& output : outputs)
    if (output.format != "jsonl") options.fail("--merge writes rows: --output jsonl[=PATH]");
  if (!options.ok()) return refuse(options, console);
  constexpr std::size_t kMostBytesOfShard = std::size_t{1} << 40U;
  Diagnostics diagnostics;
  std::vector<RowFile> files;
  for (const std::string& path : options.positionals()) {
    RowFile& file = files.emplace_back(RowFile{.path = path, .text = {}});
    (void)read_text_file(path, {.file = path}, "", kMostBytesOfShard, file.text, diagnostics);
  }
  if (!check_outputs(outputs, options.positionals(), console)) return ExitCode::kInvalid;
  std::string text;
  if (!diagnostics.has_errors()) text = merge_rows(files, diagnostics);
  if (!options.has("quiet") || diagnostics.has_errors()) console.complain(diagnostics);
  if (diagnostics.has_errors()) return ExitCode::kInvalid;
  const bool written = tools::write_outputs(
      outputs, [&text](const std::string&, std::size_t) { return text; }, console);
  return written ? ExitCode::kSuccess : ExitCode::kInvalid;
}

/// The files that the sweep reads: its own, the scenario, and those that these and the axes name.
std::vector<std::string> sweep_inputs(const SweepPlan& plan) {
  Diagnostics known;  // Reported when the sweep was read.
  std::vector<std::string> files = files_read(
      load_scenario({.path = plan.scenario_path, .assignments = plan.assignments}, known));
  files.push_back(plan.path);
  for (const Dimension& dimension : plan.grid.dimensions)
    for (const Axis& axis : dimension.axes)
      for (const AxisValue& value : axis.values)
        for (std::string& file : files_named({{.path = axis.path,
                                 .steps = axis.steps,
                                 .value = value.node,
                                 .where = axis.where}}))
          files.push_back(std::move(file));
  return files;
}

ExitCode run_sweep(Options& options, Console& console) {
  if (options.has("merge")) return run_merge(options, console);
  const SweepSettings settings = read_sweep_settings(options);
  if (!options.ok()) return refuse(options, console);
  Diagnostics diagnostics;
  const SweepPlan plan = load_sweep(settings.request, diagnostics);
  const bool valid = !diagnostics.has_errors();
  if (!valid || !settings.quiet) console.complain(diagnostics);
  if (!valid || !check_outputs(settings.outputs, sweep_inputs(plan), console))
    return ExitCode::kInvalid;
  return SweepCommand(plan, settings, console).run();
}

}  // namespace

Command sweep_command() {
  return {.name = "sweep",
          .summary = "Run a scenario over a grid of values, in parallel; one row of JSON per cell.",
          .positional = {.name = "SWEEP", .min = 1, .max = 100'000, .ships = true},
          .options = {{.name = "output,o",
                       .value_name = "FORMAT[=PATH]",
                       .help = "table (default), markdown, jsonl or html (a page); to standard "
                               "output or PATH.",
                       .repeatable = true,
                       .choices = {"table", "markdown", "jsonl", "html"}},
                      {"resume", "", "Take up the rows that jsonl=PATH and PATH.partial hold."},
                      {"shard", "I/N",
                       "Compute every N-th row. I counts from 1: 1/8 is the first of 8 shards, 8/8 "
                       "the last; none is all rows. Default: the share of the Slurm array or the "
                       "Kubernetes Indexed Job, whose own index counts from 0."},
                      {"merge", "", "Join the rows of shards: sweep --merge A.jsonl B.jsonl."},
                      jobs_option("the rows"),
                      set_option("Override a value in every cell, as in `run`."),
                      allow_library_option(),
                      seed_option(),
                      {"replications", "N", "Runs per row, with consecutive seeds."},
                      progress_option(),
                      watch_option(),
                      quiet_option()},
          .examples = {{"routesim sweep sweep.yaml", "Every cell of a grid, as a table."},
                       {"routesim sweep sweep.yaml -o jsonl=rows.jsonl --resume",
                        "A row of JSON per cell; goes on after a stop."}},
          .run = &run_sweep};
}

}  // namespace routesim::tools
