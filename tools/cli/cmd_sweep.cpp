// routesim sweep: a scenario over a grid of values, in parallel, resumable and shardable.
#include <array>
#include <cstdlib>
#include <set>

#include "base/printable.h"
#include "base/scalar_parse.h"
#include "tools/cli/cli.h"
#include "tools/cli/output_target.h"
#include "tools/cli/progress.h"
#include "tools/ingest/config_file.h"
#include "tools/ingest/prepare.h"
#include "tools/render/text_table.h"
#include "tools/render/version.h"
#include "tools/study/parallel.h"
#include "tools/study/sweep/sweep_journal.h"
#include "tools/study/sweep/sweep_merge.h"
#include "tools/study/sweep/sweep_row.h"
#include "tools/study/sweep/sweep_run.h"
#include "tools/study/sweep/sweep_shard.h"
#include "tools/study/sweep/sweep_table.h"

namespace routesim::tools {

namespace {

struct SweepSettings {
  SweepRequest request;
  SweepShard shard;
  bool table = false;     ///< The table goes to standard output.
  bool rows = false;      ///< The rows go to standard output.
  std::string rows_path;  ///< The rows go to this file; empty = to no file.
  std::string table_path;
  ProgressMode progress = ProgressMode::kAuto;
  bool resume = false;
  bool quiet = false;
};

/// `table` and `jsonl`, each `[=PATH]`; empty after success.
std::string parse_outputs(const std::vector<std::string>& texts, SweepSettings& settings) {
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    std::string path = equals == std::string::npos ? "" : text.substr(equals + 1);
    if (path == "-") path.clear();
    if (name != "table" && name != "jsonl")
      return "--output: unknown format " + printable(name) + ", one of table, jsonl";
    bool& on_stdout = name == "table" ? settings.table : settings.rows;
    std::string& target = name == "table" ? settings.table_path : settings.rows_path;
    if (path.empty() ? on_stdout : !target.empty()) return "--output " + name + " is given twice";
    if (path.empty()) on_stdout = true;
    target = path.empty() ? target : path;
  }
  if (texts.empty()) settings.table = true;
  if (settings.table && settings.rows)
    return "--output: only one format can go to standard output, add =PATH";
  return {};
}

std::optional<std::string> environment_variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

bool parse_settings(const OptionValues& options, SweepSettings& settings, std::string& error) {
  settings.request.path = options.positionals.front();
  settings.request.sets = options.all("set");
  constexpr std::int64_t kMost = 1'000'000'000;
  const auto jobs = whole_number(options, "jobs", IntRange{1, kMost}, error);
  if (error.empty())
    settings.request.seed = whole_number(options, "seed", IntRange{0, kMost}, error);
  if (error.empty())
    settings.request.replications =
        whole_number(options, "replications", IntRange{1, kMost}, error);
  if (!error.empty()) return false;
  settings.request.jobs = jobs ? static_cast<std::size_t>(*jobs) : sim::default_jobs();
  settings.resume = options.has("resume");
  settings.quiet = options.has("quiet");
  if (!parse_progress(options, settings.progress, error)) return false;
  error = parse_outputs(options.all("output"), settings);
  if (error.empty() && settings.resume && settings.rows_path.empty())
    error = "--resume needs the file to continue: --output jsonl=PATH";
  if (!error.empty()) return false;
  std::optional<std::string> shard;
  if (options.has("shard")) shard = options.get("shard");
  const auto chosen = choose_shard(shard, &environment_variable, error);
  if (chosen) settings.shard = *chosen;
  return chosen.has_value();
}

/// `sweep 12 of 32 rows [=====>    ] 45 %, 1.2 s, 1.5 s left`.
std::string progress_line(const SweepProgress& progress, double elapsed_s) {
  constexpr std::size_t kWidth = 24;
  const double share = progress.cost > 0 ? progress.cost_done.load() / progress.cost : 0;
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(kWidth));
  std::string bar(std::min(filled, kWidth), '=');
  bar.resize(kWidth, ' ');
  std::string text = std::to_string(progress.rows_done.load()) + " of " +
                     std::to_string(progress.rows) + " rows [" + bar + "] " +
                     fixed_text(100 * share, 0) + " %, " + fixed_text(elapsed_s, 1) + " s";
  if (share > 0) text += ", " + fixed_text(elapsed_s * (1 - share) / share, 1) + " s left";
  return text;
}

ExitCode write_failure(Console& console, const std::string& path, const std::string& error) {
  finish_file(path, error, console);
  return ExitCode::kInvalid;
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
    SweepProgress progress;
    const bool interrupted = compute(todo, progress, diagnostics);
    if (diagnostics.has_errors()) {
      console_.complain(tidy(diagnostics));
      return ExitCode::kInvalid;
    }
    return interrupted ? say_interrupted(progress) : write_outputs();
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
      if (settings_.shard.holds(i) && tail_of(i) == nullptr) rows.push_back(i);
    return rows;
  }

  const std::string* tail_of(std::size_t row) const {
    const std::string& key = plan_.rows[row].key;
    if (journaled()) return journal_.find(key);
    const auto it = tails_.find(key);
    return it == tails_.end() ? nullptr : &it->second;
  }

  void say_start(std::size_t todo) {
    if (settings_.quiet) return;
    const SweepShard& shard = settings_.shard;
    std::string text;
    if (shard.count > 1) text = "shard " + shard.text() + " (from " + shard.origin + "), ";
    text += std::to_string(todo) + " rows to compute";
    if (settings_.resume) text += ", " + std::to_string(journal_.size()) + " taken up";
    console_.complain(text + "\n");
  }

  /// True when it was interrupted.
  bool compute(const std::vector<std::size_t>& todo, SweepProgress& progress,
               Diagnostics& diagnostics) {
    const InterruptGuard guard(progress.run.stop);
    const ProgressDisplay display([&progress](double s) { return progress_line(progress, s); },
                                  settings_.progress, console_);
    run_rows(
        plan_, todo, settings_.request.jobs,
        [this](std::size_t row, std::string tail) { return store(row, std::move(tail)); }, progress,
        diagnostics);
    return progress.run.stop;
  }

  std::string store(std::size_t row, std::string tail) {
    if (journaled()) {
      const std::string error = journal_.append(plan_.rows[row].key, row_head(plan_, row), tail);
      return error.empty() ? error : "cannot write " + journal_.partial_path() + ": " + error;
    }
    tails_[plan_.rows[row].key] = std::move(tail);
    return {};
  }

  ExitCode say_interrupted(const SweepProgress& progress) {
    std::string text = "routesim: interrupted after " + std::to_string(progress.rows_done.load()) +
                       " of " + std::to_string(progress.rows) + " rows";
    if (journaled() && journal_.size() + progress.rows_done.load() > 0)
      text +=
          "; they are in " + printable(journal_.partial_path(), 200) + ", continue with --resume";
    console_.complain(text + "\n");
    return ExitCode::kInterrupted;
  }

  ExitCode write_outputs() {
    std::string content;
    std::vector<RowLine> lines;
    const bool wants_table = settings_.table || !settings_.table_path.empty();
    for (std::size_t i = 0; i < plan_.rows.size(); ++i) {
      if (!settings_.shard.holds(i)) continue;
      std::string line = sealed_row(row_head(plan_, i), *tail_of(i), settings_.shard.text());
      content += line;
      line.pop_back();
      if (wants_table) lines.push_back(std::move(line));
    }
    if (journaled())
      if (const std::string error = journal_.finish(content); !error.empty())
        return write_failure(console_, settings_.rows_path, error);
    if (settings_.rows) console_.print(content);
    if (!wants_table) return ExitCode::kSuccess;
    const std::string table = plan_.config.name + "\n" +
                              (plan_.config.question.empty() ? "" : plan_.config.question + "\n") +
                              "\n" + sweep_table(plan_, lines);
    if (settings_.table) console_.print(table);
    if (settings_.table_path.empty()) return ExitCode::kSuccess;
    const std::string error = write_file(settings_.table_path, table);
    return error.empty() ? ExitCode::kSuccess
                         : write_failure(console_, settings_.table_path, error);
  }

  const SweepPlan& plan_;
  const SweepSettings& settings_;
  Console& console_;
  SweepJournal journal_;
  std::map<std::string, std::string> tails_;  ///< Of a sweep without a file, by key.
};

ExitCode run_merge(const OptionValues& options, Console& console) {
  SweepSettings settings;
  settings.rows = options.all("output").empty();
  if (!settings.rows) {
    const std::string error = parse_outputs(options.all("output"), settings);
    if (!error.empty()) return usage_error(console, "sweep", error);
  }
  if (settings.table || !settings.table_path.empty())
    return usage_error(console, "sweep", "--merge writes rows: --output jsonl[=PATH]");
  constexpr std::size_t kMostBytes = std::size_t{1} << 40U;
  Diagnostics diagnostics;
  std::vector<RowFile> files;
  for (const std::string& path : options.positionals) {
    RowFile& file = files.emplace_back(RowFile{.path = path, .text = {}});
    (void)read_text_file(path, {.file = path}, "", kMostBytes, file.text, diagnostics);
  }
  std::string text;
  if (!check_outputs(std::span(&settings.rows_path, 1), options.positionals, console))
    return ExitCode::kInvalid;
  if (!diagnostics.has_errors()) text = merge_rows(files, diagnostics);
  if (!options.has("quiet") || diagnostics.has_errors()) console.complain(diagnostics);
  if (diagnostics.has_errors()) return ExitCode::kInvalid;
  if (settings.rows) console.print(text);
  if (settings.rows_path.empty()) return ExitCode::kSuccess;
  const std::string error = write_file(settings.rows_path, text);
  return error.empty() ? ExitCode::kSuccess : write_failure(console, settings.rows_path, error);
}

/// What the sweep reads: its own file, the scenario, and what these and the axes name.
std::vector<std::string> input_files(const SweepPlan& plan) {
  Diagnostics known;  // Said when the sweep was read.
  std::vector<std::string> files = files_read(load_scenario({.path = plan.scenario_path,
                                                             .sets = {},
                                                             .variants = {},
                                                             .seed = {},
                                                             .assignments = plan.assignments},
                                                            known));
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

ExitCode run_sweep(const OptionValues& options, Console& console) {
  if (options.has("merge")) return run_merge(options, console);
  if (options.positionals.size() > 1)
    return usage_error(console, "sweep",
                       "one SWEEP file at a time (got " +
                           std::to_string(options.positionals.size()) + "); --merge takes several");
  SweepSettings settings;
  std::string error;
  if (!parse_settings(options, settings, error)) return usage_error(console, "sweep", error);
  Diagnostics diagnostics;
  const SweepPlan plan = load_sweep(settings.request, diagnostics);
  const bool valid = !diagnostics.has_errors();
  if (!valid || !settings.quiet) console.complain(diagnostics);
  if (!valid) return ExitCode::kInvalid;
  const std::array<std::string, 2> outputs = {settings.rows_path, settings.table_path};
  if (!check_outputs(outputs, input_files(plan), console)) return ExitCode::kInvalid;
  return SweepCommand(plan, settings, console).run();
}

}  // namespace

Command sweep_command() {
  return {
      .name = "sweep",
      .summary = "Run a scenario over a grid of values, in parallel; one row of JSON per cell.",
      .positional = {.name = "SWEEP", .min = 1, .max = 100'000},
      .options = {{"output,o",
                   "FORMAT[=PATH]",
                   "table (default) or jsonl; to standard output or PATH.",
                   true,
                   {},
                   {"table", "jsonl"}},
                  {"resume", "", "Take up the rows that jsonl=PATH and PATH.partial hold.", false},
                  {"shard", "I/N",
                   "Compute every N-th row; default: the Slurm or Kubernetes array's.", false},
                  {"merge", "", "Join the rows of shards: sweep --merge A.jsonl B.jsonl.", false},
                  {"jobs,j", "N", "Threads (default: one per core); no effect on the rows.", false},
                  {"set", "KEY=VALUE", "Override a value in every cell, as in `run`.", true},
                  {"seed", "N", "Seed of the first replication.", false},
                  {"replications", "N", "Runs per row, with consecutive seeds.", false},
                  progress_option(),
                  {"quiet,q", "", "No progress or warnings on standard error.", false}},
      .run = &run_sweep};
}

}  // namespace routesim::tools
