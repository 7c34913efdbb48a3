// routesim validate: every published number beside the simulated one.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <mutex>
#include <thread>

#include "sim/simulation.h"
#include "tools/cli.h"
#include "tools/config_node.h"
#include "tools/prepare.h"
#include "tools/printable.h"
#include "tools/scalar_parse.h"
#include "tools/text_table.h"
#include "tools/validation.h"
#include "tools/version.h"

namespace routesim::tools {

namespace {

struct ValidateSettings {
  std::vector<std::string> paths;
  std::vector<std::string> sets;
  std::vector<std::string> variants;
  std::size_t seeds = 5;
  std::size_t jobs = 1;
  std::string format = "table";
  std::string path;  ///< Of the output; empty = standard output.
  bool quiet = false;
};

std::optional<std::size_t> whole_number(const OptionValues& options, const std::string& name,
                                        std::size_t fallback, std::int64_t most,
                                        std::string& error) {
  if (!options.has(name)) return fallback;
  const auto node = ConfigNode::make_scalar(options.get(name), ConfigNode::Style::kUntyped, {});
  const Parsed<std::int64_t> value = parse_integer(*node, IntRange{1, most});
  if (value.value) return static_cast<std::size_t>(*value.value);
  error = "--" + name + " " + value.message;
  return std::nullopt;
}

bool parse_format(const std::string& text, ValidateSettings& settings, std::string& error) {
  const std::vector<std::string> formats = {"table", "json", "csv", "markdown"};
  const std::size_t equals = text.find('=');
  settings.format = text.substr(0, equals);
  if (equals != std::string::npos) settings.path = text.substr(equals + 1);
  if (settings.path == "-") settings.path.clear();
  if (std::find(formats.begin(), formats.end(), settings.format) != formats.end()) return true;
  const std::string close = nearest(settings.format, formats);
  error = "--output: unknown format " + printable(settings.format) +
          (close.empty() ? ", one of table, json, csv, markdown" : ", did you mean " + close + "?");
  return false;
}

bool parse_settings(const OptionValues& options, ValidateSettings& settings, std::string& error) {
  settings.paths = options.positionals;
  settings.sets = options.all("set");
  settings.variants = options.all("variant");
  settings.quiet = options.has("quiet");
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const auto seeds = whole_number(options, "seeds", settings.seeds, 1000, error);
  const auto jobs = whole_number(options, "jobs", cores, 1024, error);
  if (!seeds || !jobs) return false;
  settings.seeds = *seeds;
  settings.jobs = *jobs;
  return parse_format(options.get("output", "table"), settings, error);
}

/// The scenario files of a folder that are compared with something, by name.
std::vector<std::string> measured_scenarios(const std::string& folder, std::string& error) {
  std::vector<std::string> paths;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(folder, code)) {
    if (entry.path().extension() != ".yaml") continue;
    Diagnostics ignored;  // A file that cannot be read is reported when it is named.
    const ConfigNode::Ptr root = read_config_file(entry.path().string(), ignored);
    if (root == nullptr || !root->is_map() || root->find("workload") == nullptr) continue;
    if (root->find("measured") != nullptr) paths.push_back(entry.path().string());
  }
  if (code) error = "cannot list " + printable(folder, 200) + ": " + code.message();
  if (error.empty() && paths.empty())
    error = "no scenario in " + printable(folder, 200) + " has `measured:`";
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// All rows of the variant's experiment, of every policy.
MeasuredTable experiment_table(const LoadedVariant& variant, Diagnostics& diagnostics) {
  const sim::MeasuredConfig& measured = variant.scenario.measured;
  const SourceLocation where = variant.provenance.nearest("measured.csv");
  const std::string path = resolve_path(measured.csv, where);
  std::string text;
  if (!read_text_file(path, where, "measured.csv", ConfigLimits{}.max_bytes, text, diagnostics))
    return {};
  std::optional<MeasuredTable> table = parse_measured_csv(text, path, diagnostics);
  if (!table) return {};
  std::erase_if(table->rows, [&](const MeasuredRow& row) {
    return !measured.experiment.empty() && row.experiment != measured.experiment;
  });
  return *table;
}

/// The rules of the `unscored.csv` beside a measured CSV, when there is one.
void add_unscored(const std::string& csv, ValidationInput& input, Diagnostics& diagnostics) {
  const std::filesystem::path path = std::filesystem::path(csv).parent_path() / "unscored.csv";
  if (!std::filesystem::exists(path)) return;
  std::string text;
  if (!read_text_file(path.string(), {.file = path.string()}, "", ConfigLimits{}.max_bytes, text,
                      diagnostics))
    return;
  for (UnscoredRule& rule : parse_unscored_csv(text, path.string(), diagnostics))
    input.unscored.push_back(std::move(rule));
}

ValidationInput load_input(const std::string& path, const ValidateSettings& settings,
                           Diagnostics& diagnostics) {
  ValidationInput input;
  Diagnostics found;
  const LoadedScenario scenario = load_scenario(
      {.path = path, .sets = settings.sets, .variants = settings.variants, .seed = {}}, found);
  std::vector<std::string> files;
  if (!found.has_errors())
    for (const LoadedVariant& variant : scenario.variants) {
      input.scenario = variant.scenario.name;
      if (variant.scenario.measured.csv.empty() || variant.scenario.measured.policy.empty())
        continue;
      (void)load_measured(variant, found);  // Its complaints: an unknown policy or experiment.
      std::optional<sim::RunPlan> plan = prepare(variant, found);
      MeasuredTable table = experiment_table(variant, found);
      if (!plan) continue;
      if (std::find(files.begin(), files.end(), table.file) == files.end()) {
        files.push_back(table.file);
        add_unscored(table.file, input, found);
      }
      input.variants.push_back({std::move(*plan), std::move(table)});
    }
  if (!found.has_errors() && input.variants.empty())
    found.error({.file = path}, "measured",
                "no variant names published numbers, there is nothing to compare with",
                "give measured.csv, and measured.policy in each variant");
  append(diagnostics, found);
  return input;
}

/// Runs every variant of every scenario with every seed, in any number of threads.
class ValidationRunner {
 public:
  ValidationRunner(const std::vector<ValidationInput>& inputs, const ValidateSettings& settings,
                   Console& console)
      : inputs_(inputs), settings_(settings), console_(console) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      books_.emplace_back(inputs[i], settings.seeds);
      for (std::size_t v = 0; v < inputs[i].variants.size(); ++v)
        for (std::size_t s = 0; s < settings.seeds; ++s) jobs_.push_back({i, v, s, {}, {}});
    }
  }

  /// False when interrupted. Diagnostics and internal errors are those of the first run, in the
  /// order of the files, that had any.
  bool run(Diagnostics& diagnostics) {
    const InterruptGuard guard(progress_.stop);
    std::vector<std::thread> threads;
    const std::size_t count = std::min(settings_.jobs, jobs_.size());
    for (std::size_t t = 1; t < count; ++t) threads.emplace_back([this] { work(); });
    work();
    for (std::thread& thread : threads) thread.join();
    for (const Job& job : jobs_) {
      append(diagnostics, job.diagnostics);
      if (job.failure) std::rethrow_exception(job.failure);
    }
    return !progress_.stop;
  }

  std::vector<ScenarioValidation> finish() const {
    std::vector<ScenarioValidation> all;
    for (const ValidationBook& book : books_) all.push_back(book.finish());
    return all;
  }

 private:
  struct Job {
    std::size_t input;
    std::size_t variant;
    std::size_t seed;  ///< Added to the scenario's seed.
    Diagnostics diagnostics;
    std::exception_ptr failure;
  };

  void work() {
    for (std::size_t i = next_++; i < jobs_.size() && !progress_.stop && !failed_; i = next_++) {
      try {
        run(jobs_[i]);
      } catch (...) {
        jobs_[i].failure = std::current_exception();
        failed_ = true;
      }
    }
  }

  void run(Job& job) {
    const sim::RunPlan& plan = inputs_[job.input].variants[job.variant].plan;
    const std::uint64_t seed = plan.scenario.seed + job.seed;
    const auto start = std::chrono::steady_clock::now();
    sim::Simulation simulation(plan, {.seed = seed, .progress = &progress_, .observers = {}},
                               job.diagnostics);
    if (job.diagnostics.has_errors()) return;
    const sim::RunResult result = simulation.run();
    if (progress_.stop) return;
    books_[job.input].add(job.variant, job.seed, result);
    if (settings_.quiet) return;
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    const std::lock_guard lock(console_mutex_);
    console_.complain(printable(plan.scenario.name) + ", " + printable(plan.scenario.variant) +
                      ", seed " + std::to_string(seed) + ": " + fixed_text(elapsed.count(), 2) +
                      " s\n");
  }

  const std::vector<ValidationInput>& inputs_;
  const ValidateSettings& settings_;
  Console& console_;
  std::vector<ValidationBook> books_;
  std::vector<Job> jobs_;
  sim::Progress progress_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex console_mutex_;
};

std::string render(const std::vector<ScenarioValidation>& all, const std::string& format) {
  if (format == "json") return render_validation_json(all, version());
  if (format == "csv") return render_validation_csv(all);
  return render_validation_text(all, format == "markdown");
}

ExitCode run_validate(const OptionValues& options, Console& console) {
  ValidateSettings settings;
  std::string error;
  if (!parse_settings(options, settings, error)) return usage_error(console, "validate", error);
  if (settings.paths.empty())
    settings.paths = measured_scenarios(options.get("folder", "scenarios"), error);
  if (!error.empty()) return usage_error(console, "validate", error);

  Diagnostics diagnostics;
  std::vector<ValidationInput> inputs;
  for (const std::string& path : settings.paths)
    inputs.push_back(load_input(path, settings, diagnostics));
  const bool valid = !diagnostics.has_errors();
  if (!valid || !settings.quiet) console.complain(tidy(diagnostics));
  if (!valid) return ExitCode::kInvalid;

  ValidationRunner runner(inputs, settings, console);
  Diagnostics late;
  if (!runner.run(late)) {
    console.complain("routesim: interrupted, nothing is reported\n");
    return ExitCode::kInterrupted;
  }
  if (late.has_errors()) {
    console.complain(tidy(late));
    return ExitCode::kInvalid;
  }
  const std::string text = render(runner.finish(), settings.format);
  if (settings.path.empty()) {
    console.print(text);
    return ExitCode::kSuccess;
  }
  error = write_file(settings.path, text);
  if (error.empty()) return ExitCode::kSuccess;
  console.complain("routesim: cannot write " + printable(settings.path, 200) + ": " + error + "\n");
  return ExitCode::kInvalid;
}

}  // namespace

Command validate_command() {
  return {
      .name = "validate",
      .summary = "Compare scenarios with the numbers published for them, cell by cell.",
      .positional = {.name = "SCENARIO", .min = 0, .max = 10'000},
      .options = {{"seeds", "N", "Seeds per variant, from the scenario's on (default 5).", false},
                  {"jobs,j", "N", "Threads (default: one per core); no effect on results.", false},
                  {"output,o", "FORMAT[=PATH]", "table (default), json, csv or markdown.", false},
                  {"variant", "NAME", "Only this variant.", true},
                  {"set", "KEY=VALUE", "Override a value, as in `run`.", true},
                  {"folder", "PATH",
                   "Where scenarios are looked for when none is named (default scenarios).", false},
                  {"quiet,q", "", "No progress or warnings on standard error.", false}},
      .run = &run_validate};
}

}  // namespace routesim::tools
