// Published numbers beside simulated ones: which quantity of a run each row of a measured CSV
// means, how far the simulation is off, and how far the difference between two policies is off.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "sim/observe/run_result.h"
#include "sim/plan/resolve.h"
#include "tools/ingest/traces/measured_file.h"

namespace routesim::tools {

/// `mean(comparison table)` is a mean; so are a report's `value` and a dashboard's `approx`.
std::string plain_statistic(std::string_view statistic);
/// The name routesim has for a metric: `ntpot` for `time_per_token`.
std::string plain_metric(std::string_view metric);

/// How a published number is used.
enum class CellStatus {
  kScored,        ///< Compared, and part of the error summaries.
  kShown,         ///< Compared, but noise or not comparable: not part of any summary.
  kNotSimulated,  ///< No number of the simulation means the same; the reason says why.
};

/// A cell that is not scored, with the reason. Every field but the reason may be `*`.
struct UnscoredRule {
  std::string experiment;
  std::string policy;
  std::string stage;
  std::string metric;
  std::string statistic;
  std::string reason;
};

/// Parses CSV with exactly the header `experiment,policy,stage,metric,statistic,reason`. Fields are
/// not quoted, except that the reason is the rest of its line. Malformed lines are errors.
std::vector<UnscoredRule> parse_unscored_csv(const std::string& text, const std::string& file,
                                             Diagnostics& diagnostics);

/// The reason of the first rule that names this row; null when none does.
const std::string* unscored_reason(const std::vector<UnscoredRule>& rules, const MeasuredRow& row);

/// A measured row's number in a run, in the row's unit; nothing, with `why` set to half a sentence,
/// when the run has none. Beyond metric_value() it knows the words that publications use:
/// `main` is the only reported stage; `all` sums up the reported stages; `time_per_token` is
/// normalized_time_per_output_token; `..._per_node` divides by `nodes`; `stage_wall_time` is first
/// send to last end and `stage_start_offset` first send after the first stage's;
/// `gpu_kv_cache_usage` the time mean over the stage.
std::optional<double> simulated_value(const sim::RunResult& result, std::int64_t nodes,
                                      const MeasuredRow& row, std::string& why);

/// One published number and what N seeds say about it.
struct ValidationCell {
  MeasuredRow row;
  std::string variant;  ///< Empty for a row that compares two policies.
  CellStatus status = CellStatus::kNotSimulated;
  std::string reason;                ///< Why it is not scored, or not simulated.
  bool repeats = false;              ///< Not scored because an earlier row is the same measurement.
  std::vector<double> samples = {};  ///< Per seed, in the row's unit.
  models::Trust trust =
      models::Trust::kFitted;  ///< Class of the variant's run with the first seed.

  bool simulated() const { return !samples.empty(); }
  double mean() const;            ///< 0 without samples.
  double seed_deviation() const;  ///< Sample standard deviation; 0 for less than two seeds.
  /// 100 (mean - measured) / |measured|; nothing when not simulated or the measured value is 0.
  std::optional<double> error() const;
};

/// A row of an error table, by the names that tell it from others.
struct ErrorRow {
  std::string experiment = {}, policy = {};
  std::string against = {};  ///< The policy it is compared with; else empty.
  std::string metric = {}, statistic = {};

  const ErrorRow& names() const { return *this; }
  auto operator<=>(const ErrorRow&) const = default;
};

/// Error of one metric and statistic under one policy, over its scored cells.
struct ErrorSummary : ErrorRow {
  std::size_t cells = 0;
  double mape = 0;   ///< Mean |error|, %.
  double bias = 0;   ///< Mean error, %.
  double worst = 0;  ///< The error of largest size, %, and its stage.
  std::string worst_stage = {};
  double seed_deviation = 0;  ///< Mean over cells of the deviation between seeds, % of measured.
  std::optional<double> limit{};  ///< Of `mape`, where --limits has one.
};

/// The error that unscored numbers would have, per row and reason. Repeated numbers and numbers
/// without an error are not counted.
struct LeftOut {
  ErrorSummary would;  ///< The row of these cells alone.
  std::size_t cells_with = 0;
  double mape_with = 0;  ///< Mean error of the scored cells of the row and these, %.
  std::string reason;
};

/// The change that a policy makes against the scenario's first one, in one cell.
struct PolicyDifference : ErrorRow {
  std::string stage = {};
  double measured = 0;   ///< 100 (policy / base - 1), %.
  double simulated = 0;  ///< The same of the seed means.
  bool scored = false;   ///< Both cells are.

  double error_points() const { return simulated - measured; }
  /// Error of the ratio policy / base, %.
  double ratio_error() const;
  bool sign_agrees() const { return (measured > 0) == (simulated > 0); }
};

/// Error of the differences of one metric and statistic, over the scored ones.
struct DifferenceSummary : ErrorRow {
  std::size_t cells = 0;
  std::size_t signs_agree = 0;
  double mean_points = 0;   ///< Mean |error_points|.
  double worst_points = 0;  ///< Error of largest size, points, and its stage.
  std::string worst_stage = {};
  double mean_ratio_error = 0;  ///< Mean |ratio_error|, %.
};

/// One scenario's validation.
struct ScenarioValidation {
  std::string scenario;
  bool held_out = false;  ///< Nothing was fitted to it: its file is in a folder `holdout`.
  bool own = false;       ///< A load tool's own result, beside built-in curves that never saw it.
  std::size_t seeds = 0;
  std::vector<std::string> policies;  ///< By variant in file order; the first is the base.
  std::vector<ValidationCell> cells;  ///< In the order of the CSV.
  std::vector<ErrorSummary> errors;
  std::vector<LeftOut> left_out;
  std::vector<PolicyDifference> differences;
  std::vector<DifferenceSummary> difference_errors;
  std::vector<std::string> notes;  ///< Notes of the runs with the first seed.
};

struct RowLimit;

/// Fills the summaries of `v` from its cells.
void summarise(ScenarioValidation& v);

/// A variant ready to be compared.
struct ValidationVariant {
  sim::RunPlan plan;
  MeasuredTable table;  ///< All rows of its experiment, of every policy.
};

/// A scenario's variants in file order, and what must not be scored.
struct ValidationInput {
  std::string scenario;
  bool held_out = false;
  bool own = false;  ///< ScenarioValidation::own.
  std::vector<ValidationVariant> variants;
  std::vector<UnscoredRule> unscored;
};

/// Collects what the runs of one scenario say. Cells are fixed at construction; runs may be added
/// in any order, each (variant, seed) once.
class ValidationBook {
 public:
  /// Keeps references to `input`, which must outlive it.
  ValidationBook(const ValidationInput& input, std::size_t seeds);

  /// Reads every number the cells need out of a run. Touches only the slots of this variant and
  /// seed (0-based), so that calls for different ones may happen at the same time.
  void add(std::size_t variant, std::size_t seed, const sim::RunResult& result);

  /// Cells and summaries; every run must have been added.
  ScenarioValidation finish() const;

 private:
  /// A number wanted of each run of one variant.
  struct Probe {
    std::size_t variant = 0;
    MeasuredRow row;
    std::vector<std::optional<double>> values;  ///< Per seed.
    std::vector<std::string> why;               ///< Per seed: why there is none.
  };
  enum class Combine { kPlain, kTimesFaster, kTimesMore, kReduction };
  /// A cell to be made of one or two probes.
  struct Planned {
    MeasuredRow row;
    std::string variant = {};
    Combine combine = Combine::kPlain;
    std::size_t probe = 0;
    std::optional<std::size_t> base = {};  ///< The other policy's, unless kPlain.
    std::string reason = {};               ///< Set when there is nothing to compare with.
  };

  void plan_row(const MeasuredRow& row);
  bool plan_comparison(const MeasuredRow& row);
  std::size_t probe(std::size_t variant, MeasuredRow row);
  std::optional<std::size_t> variant_of(const std::string& experiment,
                                        const std::string& policy) const;
  ValidationCell cell(const Planned& planned) const;

  const ValidationInput& input_;
  std::size_t seeds_;
  std::vector<Probe> probes_;
  std::vector<Planned> planned_;
  std::vector<std::vector<std::string>> notes_;  ///< Per variant.
  std::vector<models::Trust> trust_;             ///< Per variant.
};

}  // namespace routesim::tools

template <>
struct routesim::EnumNames<routesim::tools::CellStatus> {
  static constexpr std::array<std::string_view, 3> value = {"scored", "not scored",
                                                            "not simulated"};
};
