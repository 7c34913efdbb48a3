#include "tools/study/validate/validation_run.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/config_node.h"
#include "base/printable.h"
#include "tools/ingest/catalogue_file.h"
#include "tools/ingest/config_file.h"
#include "tools/ingest/config_reader.h"
#include "tools/ingest/measured_file.h"
#include "tools/ingest/prepare.h"
#include "tools/render/text_table.h"
#include "tools/study/validate/stated_load.h"

namespace routesim::tools {

namespace {

/// All rows of the variant's experiment, of every policy.
MeasuredTable experiment_table(const LoadedVariant& variant, Diagnostics& diagnostics) {
  const sim::MeasuredConfig& measured = variant.scenario.measured;
  const SourceLocation where = variant.provenance.nearest("measured.csv");
  const std::string path = resolve_path(measured.csv, where);
  MeasuredTable table = read_measured(path, measured.policy, where, "measured.csv", diagnostics);
  std::erase_if(table.rows, [&](const MeasuredRow& row) {
    return !measured.experiment.empty() && row.experiment != measured.experiment;
  });
  return table;
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

/// Runs every variant of every scenario with every seed, in any number of threads.
class ValidationRunner {
 public:
  ValidationRunner(const std::vector<ValidationInput>& inputs, const ValidationEffort& effort,
                   const std::function<void(const std::string&)>& report, sim::Progress& progress)
      : inputs_(inputs), effort_(effort), report_(report), progress_(progress) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      books_.emplace_back(inputs[i], effort.seeds);
      for (std::size_t v = 0; v < inputs[i].variants.size(); ++v)
        for (std::size_t s = 0; s < effort.seeds; ++s) jobs_.push_back({i, v, s, {}, {}});
    }
  }

  /// Diagnostics and internal errors are those of the first run, in the
  /// order of the files, that had any.
  void run(Diagnostics& diagnostics) {
    std::vector<std::thread> threads;
    const std::size_t count = std::min(effort_.jobs, jobs_.size());
    for (std::size_t t = 1; t < count; ++t) threads.emplace_back([this] { work(); });
    work();
    for (std::thread& thread : threads) thread.join();
    for (const Job& job : jobs_) {
      append(diagnostics, job.diagnostics);
      if (job.failure) std::rethrow_exception(job.failure);
    }
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
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    const std::lock_guard lock(report_mutex_);
    report_(printable(plan.scenario.name) + ", " + printable(plan.scenario.variant) + ", seed " +
            std::to_string(seed) + ": " + fixed_text(elapsed.count(), 2) + " s\n");
  }

  const std::vector<ValidationInput>& inputs_;
  const ValidationEffort& effort_;
  const std::function<void(const std::string&)>& report_;
  sim::Progress& progress_;
  std::vector<ValidationBook> books_;
  std::vector<Job> jobs_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex report_mutex_;
};

}  // namespace

ValidationInput load_validation_input(const std::string& path, const std::vector<std::string>& sets,
                                      const std::vector<std::string>& variants, bool force,
                                      Diagnostics& diagnostics) {
  ValidationInput input;
  Diagnostics found;
  const LoadedScenario scenario =
      load_scenario({.path = path, .sets = sets, .variants = variants, .seed = {}}, found);
  std::vector<std::string> files;
  if (found.has_errors())
    for (const LoadedVariant& variant : scenario.variants) check_variant(variant, found);
  else
    for (const LoadedVariant& variant : scenario.variants) {
      input.scenario = variant.scenario.name;
      if (variant.scenario.measured.csv.empty() || variant.scenario.measured.policy.empty())
        continue;
      (void)load_measured(variant, found);  // Its complaints: an unknown policy or experiment.
      std::optional<sim::RunPlan> plan = prepare(variant, found);
      MeasuredTable table = experiment_table(variant, found);
      if (!plan) continue;
      sim::Scenario resolved = variant.scenario;
      Diagnostics said;  // prepare() read the same files.
      compare_stated_load(*plan, scenario_catalogue(variant, resolved, said), table, force, found);
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

ValidationInput on_roofline(const ValidationInput& input, const std::string& path,
                            const std::vector<std::string>& sets) {
  ValidationInput unfitted{.scenario = input.scenario, .variants = {}, .unscored = input.unscored};
  Diagnostics said;
  const LoadedScenario scenario =
      load_scenario({.path = path, .sets = sets, .variants = {}, .seed = {}}, said);
  for (const ValidationVariant& fitted : input.variants) {
    const auto is_fitted = [](const sim::ResolvedPool& pool) {
      return pool.latency->trust({}) == models::Trust::kFitted;
    };
    if (std::ranges::none_of(fitted.plan.pools, is_fitted)) continue;
    for (LoadedVariant variant : scenario.variants) {
      if (variant.scenario.variant != fitted.plan.scenario.variant) continue;
      for (sim::PoolConfig& pool : variant.scenario.cluster.pools) pool.latency_model = "roofline";
      std::optional<sim::RunPlan> plan = prepare(variant, said);
      if (plan) unfitted.variants.push_back({std::move(*plan), fitted.table});
    }
  }
  return unfitted;
}

std::vector<ScenarioValidation> run_validation(
    const std::vector<ValidationInput>& inputs, const ValidationEffort& effort,
    const std::function<void(const std::string&)>& report, sim::Progress& progress,
    Diagnostics& diagnostics) {
  ValidationRunner runner(inputs, effort, report, progress);
  runner.run(diagnostics);
  if (progress.stop || diagnostics.has_errors()) return {};
  return runner.finish();
}

}  // namespace routesim::tools
