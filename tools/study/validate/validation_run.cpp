#include "tools/study/validate/validation_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <mutex>

#include "base/config_node.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/ingest/catalogue_file.h"
#include "tools/ingest/config_file.h"
#include "tools/ingest/measured_file.h"
#include "tools/ingest/prepare.h"
#include "tools/study/parallel.h"
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
  struct Job {
    std::size_t input;
    std::size_t variant;
    std::size_t seed;  ///< Added to the scenario's seed.
    Diagnostics found{};
  };
  std::vector<ValidationBook> books;
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    books.emplace_back(inputs[i], effort.seeds);
    for (std::size_t v = 0; v < inputs[i].variants.size(); ++v)
      for (std::size_t s = 0; s < effort.seeds; ++s) jobs.push_back({i, v, s});
  }
  std::mutex report_mutex;
  sim::for_each_index(jobs.size(), effort.jobs, [&](std::size_t i) {
    if (progress.stop) return;
    Job& job = jobs[i];
    const sim::RunPlan& plan = inputs[job.input].variants[job.variant].plan;
    const std::uint64_t seed = plan.scenario.seed + job.seed;
    const auto start = std::chrono::steady_clock::now();
    sim::Simulation simulation(plan, {.seed = seed, .progress = &progress, .observers = {}},
                               job.found);
    if (job.found.has_errors()) return;
    const sim::RunResult result = simulation.run();
    if (progress.stop) return;
    books[job.input].add(job.variant, job.seed, result);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    const std::lock_guard lock(report_mutex);
    report(fmt::format("{}, {}, seed {}: {:.2f} s\n", printable(plan.scenario.name),
                       printable(plan.scenario.variant), seed, elapsed.count()));
  });
  for (const Job& job : jobs) append(diagnostics, job.found);
  std::vector<ScenarioValidation> all;
  if (progress.stop || diagnostics.has_errors()) return all;
  for (const ValidationBook& book : books) all.push_back(book.finish());
  return all;
}

}  // namespace routesim::tools
