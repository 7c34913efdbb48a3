#include "tools/study/validate/validation_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "base/config_node.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "models/catalogue.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/scenario/run_checks.h"
#include "tools/ingest/servers/catalogue_file.h"
#include "tools/ingest/traces/measured_file.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/study/experiment/experiment.h"

namespace routesim::tools {

namespace {

constexpr std::size_t kSample = 256;     ///< Requests whose lengths are averaged.
constexpr double kRateTolerance = 0.01;  ///< Result files round rates.
constexpr double kLengthTolerance = 0.2;
constexpr double kLengthSlack = 64;

/// The same stage of load, as the plan has it. Absent where the load has no such number.
struct PlannedLoad {
  std::optional<double> request_rate, requests, max_concurrency;
  double input_tokens = 0, output_tokens = 0;  ///< Means; 0 when nothing is sent by itself.
};

PlannedLoad planned_load(const sim::RunPlan& plan) {
  PlannedLoad out;
  Diagnostics ignored;  // The plan's load was made before.
  const auto load = plan.make_load(plan.scenario.seed, ignored);
  if (load == nullptr) return out;
  std::vector<workloads::StageInfo> stages;
  for (const workloads::StageInfo& stage : load->stages())
    if (stage.reported) stages.push_back(stage);
  if (stages.size() != 1) return out;
  const workloads::StageInfo& stage = stages.front();
  const bool open = stage.requested_rate > 0 && std::isfinite(stage.requested_rate);
  out.request_rate = open ? stage.requested_rate : std::numeric_limits<double>::infinity();
  if (stage.requests > 0) out.requests = static_cast<double>(stage.requests);
  const std::int64_t most = std::max(stage.concurrency, stage.in_flight_cap);
  if (most > 0) out.max_concurrency = static_cast<double>(most);
  const std::vector<workloads::Request> sample = first_requests(plan, kSample);
  for (const workloads::Request& request : sample) {
    const auto n = static_cast<double>(sample.size());
    out.input_tokens += static_cast<double>(request.prompt->tokens) / n;
    out.output_tokens += static_cast<double>(request.output_tokens) / n;
  }
  return out;
}

std::string shown(double value) { return std::isinf(value) ? "inf" : number_text(value); }

/// Says what differs between one result and the plan.
class Comparison {
 public:
  Comparison(const PlannedLoad& planned, bool force, Diagnostics& diagnostics)
      : planned_(planned), force_(force), diagnostics_(diagnostics) {}

  void compare(const StatedLoad& stated) {
    using Stated = std::optional<StatedLoad::At<double>>;
    const auto exact = [&](const char* key, const Stated& theirs, const std::optional<double>& ours,
                           double tolerance) {
      if (!theirs || !ours || same(theirs->value, *ours, tolerance)) return;
      differ(theirs->where, key, shown(theirs->value), shown(*ours));
    };
    exact("request_rate", stated.request_rate, planned_.request_rate, kRateTolerance);
    exact("num_prompts", stated.requests, planned_.requests, 0);
    exact("max_concurrency", stated.max_concurrency, planned_.max_concurrency, 0);
    const auto about = [&](const char* key, const Stated& theirs, double ours) {
      if (!theirs || ours <= 0) return;
      if (std::abs(theirs->value - ours) <= kLengthSlack) return;
      if (same(theirs->value, ours, kLengthTolerance)) return;
      differ(theirs->where, key, number_text(std::round(theirs->value)) + " per request",
             number_text(std::round(ours)));
    };
    about("total_input_tokens", stated.input_tokens, planned_.input_tokens);
    about("total_output_tokens", stated.output_tokens, planned_.output_tokens);
  }

  void differ(const SourceLocation& where, const std::string& key, const std::string& theirs,
              const std::string& ours) {
    const std::string what = "is of another load than the scenario's (got " + theirs +
                             ", the scenario has " + ours + ")";
    if (force_)
      diagnostics_.warning(where, key, what);
    else
      diagnostics_.error(where, key, what,
                         "name the result of this scenario's load, or compare anyway by --force");
  }

 private:
  static bool same(double a, double b, double tolerance) {
    return a == b || std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
  }

  const PlannedLoad& planned_;
  bool force_;
  Diagnostics& diagnostics_;
};

/// A model that the catalogue does not know can be told by its name only.
bool same_model(const std::string& a, const std::string& b, const models::Catalogue& catalogue) {
  const models::ModelSpec* const first = catalogue.find_model(a);
  const models::ModelSpec* const second = catalogue.find_model(b);
  if (first == nullptr || second == nullptr) return true;  // A folder, or a name of one's own.
  return first == second;
}

/// Compares what the results of a load tool state about their run with the plan: model, request
/// rate, requests, concurrency, and the mean lengths of prompts and answers (within a fifth, or 64
/// tokens: samples differ, and the chat template counts here only). Every difference is an error at
/// the value in the result, or a warning when `force` is set. A scenario of several stages is
/// compared by its model alone, since no stage says which result is of it.
void compare_stated_load(const sim::RunPlan& plan, const models::Catalogue& catalogue,
                         const MeasuredTable& table, bool force, Diagnostics& diagnostics) {
  if (table.loads.empty()) return;
  const PlannedLoad planned = planned_load(plan);
  Comparison comparison(planned, force, diagnostics);
  for (const StatedLoad& stated : table.loads) {
    const bool known = std::ranges::any_of(plan.pools, [&](const auto& pool) {
      return !stated.model || same_model(stated.model->value, pool.config.model, catalogue);
    });
    if (!known && !plan.pools.empty())
      comparison.differ(stated.model->where, "model_id", printable(stated.model->value),
                        printable(plan.pools.front().config.model));
    comparison.compare(stated);
  }
}

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

/// The published experiments that had a part in efficiencies, acceptances and other numbers that
/// are no curve's.
constexpr std::array<std::string_view, 3> kFittedBeside = {
    "llmd_pd_multitier_gptoss120b_h200", "p2p_docqa_8xh200", "specdec_qwen3_32b_eagle3_2xh200"};

/// Whether no fit of ours saw these numbers, and no catalogue of the user's may have.
bool is_unseen(const MeasuredTable& table, const LoadedVariant& variant) {
  if (!variant.scenario.catalogue.empty()) return false;
  std::set<std::string> seen(kFittedBeside.begin(), kFittedBeside.end());
  for (const models::FittedCurve& curve : builtin_catalogue().curves())
    seen.insert(curve.fitted_to.begin(), curve.fitted_to.end());
  return std::ranges::none_of(
      table.rows, [&](const MeasuredRow& row) { return seen.contains(row.experiment); });
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
  input.held_out = std::filesystem::path(path).parent_path().filename() == "holdout";
  Diagnostics found;
  const LoadedScenario scenario =
      load_checked({.path = path, .sets = sets, .variants = variants}, found);
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
      sim::Scenario resolved = variant.scenario;
      Diagnostics said;  // prepare() read the same files.
      compare_stated_load(*plan, scenario_catalogue(variant, resolved, said), table, force, found);
      if (std::ranges::find(files, table.file) == files.end()) {
        files.push_back(table.file);
        add_unscored(table.file, input, found);
      }
      input.own =
          !input.held_out && is_unseen(table, variant) && (input.own || input.variants.empty());
      input.variants.push_back({std::move(*plan), std::move(table)});
    }
  if (!found.has_errors() && input.variants.empty())
    found.error({.file = path}, "measured",
                "no variant names published numbers, there is nothing to compare with",
                "give measured.csv, and measured.policy in each variant");
  append(diagnostics, found);
  return input;
}

namespace {

/// The variants of `input` as `again` plans them; those without a plan of their own are left out.
ValidationInput planned_again(
    const ValidationInput& input, const std::string& path, const std::vector<std::string>& sets,
    const std::function<std::optional<sim::RunPlan>(LoadedVariant&, const sim::RunPlan&)>& again) {
  ValidationInput out = input;
  out.variants.clear();
  Diagnostics said;
  const LoadedScenario scenario = load_scenario({.path = path, .sets = sets}, said);
  for (const ValidationVariant& before : input.variants)
    for (LoadedVariant variant : scenario.variants)
      if (variant.scenario.variant == before.plan.scenario.variant)
        if (std::optional<sim::RunPlan> plan = again(variant, before.plan))
          out.variants.push_back({std::move(*plan), before.table});
  return out;
}

}  // namespace

ValidationInput without_fit(const ValidationInput& input, const std::string& path,
                            const std::vector<std::string>& sets,
                            const std::string& latency_model) {
  const auto is_fitted = [](const sim::ResolvedPool& pool) {
    return pool.latency->trust({}) == models::Trust::kFitted;
  };
  return planned_again(
      input, path, sets,
      [&](LoadedVariant& variant, const sim::RunPlan& before) -> std::optional<sim::RunPlan> {
        if (std::ranges::none_of(before.pools, is_fitted)) return std::nullopt;
        for (sim::PoolConfig& pool : variant.scenario.cluster.pools)
          pool.latency_model = latency_model;
        Diagnostics said;
        return prepare(variant, said);
      });
}

ValidationInput leave_out(const ValidationInput& input, const std::string& path,
                          const std::vector<std::string>& sets, BlindTo what) {
  return planned_again(
      input, path, sets,
      [&](LoadedVariant& variant, const sim::RunPlan& before) -> std::optional<sim::RunPlan> {
        const std::string& experiment = variant.scenario.measured.experiment;
        const auto forget = [&](models::Catalogue& catalogue) {
          catalogue.forget_curves([&](const models::FittedCurve& curve) {
            if (what == BlindTo::kExperiment)
              return std::ranges::find(curve.fitted_to, experiment) != curve.fitted_to.end();
            return std::ranges::any_of(before.pools, [&](const sim::ResolvedPool& pool) {
              return what == BlindTo::kModel
                         ? catalogue.find_model(curve.model) ==
                               catalogue.find_model(pool.config.model)
                         : catalogue.find_accelerator(curve.accelerator) ==
                               catalogue.find_accelerator(pool.config.accelerator);
            });
          });
        };
        Diagnostics said;
        std::optional<sim::RunPlan> plan = prepare(variant, said, forget);
        for (std::size_t i = 0; plan && i < plan->pools.size(); ++i)
          if (plan->pools[i].latency->provenance() != before.pools[i].latency->provenance())
            return plan;
        return std::nullopt;
      });
}

std::vector<ScenarioValidation> run_validation(
    const std::vector<ValidationInput>& inputs, std::size_t seeds,
    const std::function<void(const std::string&)>& report, Experiment& experiment) {
  struct Job {
    std::size_t input;
    std::size_t variant;
    std::size_t seed;  ///< Added to the scenario's seed.
    Diagnostics found{};
  };
  std::vector<ValidationBook> books;
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    books.emplace_back(inputs[i], seeds);
    for (std::size_t v = 0; v < inputs[i].variants.size(); ++v)
      for (std::size_t s = 0; s < seeds; ++s) jobs.push_back({i, v, s});
  }
  std::mutex report_mutex;
  // Every scenario says what is wrong with it, so no run waits for the errors of another.
  experiment.each(jobs.size(), [&](std::size_t i, Diagnostics&) {
    Job& job = jobs[i];
    const sim::RunPlan& plan = inputs[job.input].variants[job.variant].plan;
    const std::uint64_t seed = plan.scenario.seed + job.seed;
    const auto start = std::chrono::steady_clock::now();
    const auto result = experiment.run({.plan = plan, .seed = seed}, job.found);
    if (!result) return;
    books[job.input].add(job.variant, job.seed, *result);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    const std::lock_guard lock(report_mutex);
    report(fmt::format("{}, {}, seed {}: {:.2f} s\n", printable(plan.scenario.name),
                       printable(plan.scenario.variant), seed, elapsed.count()));
  });
  for (const Job& job : jobs) append(experiment.diagnostics(), job.found);
  experiment.throw_if_stopped();
  std::vector<ScenarioValidation> all;
  for (const ValidationBook& book : books) all.push_back(book.finish());
  return all;
}

}  // namespace routesim::tools
