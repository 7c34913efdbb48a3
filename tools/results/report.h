// Everything a run found, as values: the renderers and the studies share them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/observe/run_result.h"
#include "sim/observe/time_series.h"
#include "sim/plan/scenario.h"
#include "tools/results/goodput.h"
#include "tools/results/metrics.h"
#include "tools/results/result_set.h"

namespace routesim::tools {

/// KV capacities are rarely known better than to this share.
inline constexpr double kCapacityBand = 0.03;

/// The values of one stage that a few per cent of the KV blocks may change.
struct StageSide {
  double ttft_mean_s = 0;  ///< NaN without a success.
  bool overloaded = false;
};

/// A reported stage as it is, and with 1 - kCapacityBand and 1 + kCapacityBand times the KV blocks.
struct StageBand {
  std::string stage;
  StageSide as_is, fewer, more;
};

/// The highest rate of its load that a variant sustains without end, requests/s. The interval has
/// the highest rate that was simulated and sustained at its low end and, at its high end, the
/// lowest one at which the queue grew, or what was answered then, with two standard errors, if that
/// is less. An end that was not found is absent.
struct Capacity {
  std::optional<double> rate = {}, low = {}, high = {};  ///< The best estimate, and its interval.
  std::string limit{};        ///< What binds there; empty where nothing was seen.
  std::string why_not{};      ///< Why there is no rate; empty where there is one.
  std::int64_t requests = 0;  ///< Simulated to find it.
};

/// One variant's result, beside the published numbers it is compared with.
struct VariantReport {
  std::string name;
  std::string scan_of{};  ///< The variant that a scan of rates runs at this one's rate; else empty.
  std::string fleet_of{};  ///< The same of a scan of replicas.
  sim::RunResult result;
  MeasuredTable measured;    ///< Rows of this variant's policy; empty when there are none.
  sim::Scenario scenario{};  ///< What was run.
  std::optional<sim::TimeSeries> series{};  ///< Every server over time, when asked for.
  Document resolved{};  ///< The resolved scenario: its JSON text and its tree; empty = left out.
  std::optional<GoodputResult> goodput{};  ///< Against the goals, when there are any.
  std::vector<StageBand> capacity_band{};  ///< Near a knee; else empty.
  std::optional<Capacity> capacity{};      ///< Where it was looked for.
};

/// The parts of the command line that decide what is run, as a shell reads them. Each but `input`
/// is empty or begins with a space.
struct RunCommand {
  std::string input;     ///< `FILE --set KEY=VALUE`.
  std::string variants;  ///< ` --variant NAME`.
  std::string options;   ///< ` --seed N --goodput ttft:1s`.
  std::string scan;      ///< ` --rate 1x,2x --replicas 4,6`.
};

struct Report {
  std::string scenario;
  std::string question;
  std::uint64_t seed = 0;
  std::string version;
  std::string commit;         ///< Of the build; empty = left out.
  std::string scenario_hash;  ///< Of everything resolved; empty = left out.
  RunCommand command = {};
  bool interrupted = false;             ///< The last variant is partial, and others may be missing.
  std::vector<VariantReport> variants;  ///< Of the first seed.
  /// The numbers of all seeds, when there are several.
  std::optional<ResultSet> replications{};
  std::vector<Judgement> expectations{};
};

/// The expectations and, of an interrupted run, one that fails: a build server must not take the
/// part that was run for the whole.
std::vector<Judgement> judgements_of(const Report& report);

/// The published value of a stage in the metric's base unit. A row belongs to the stage whose name
/// it carries, or else to the only reported stage with its rate.
std::optional<double> measured_value(const VariantReport& variant, const sim::StageResult& stage,
                                     std::string_view metric, std::string_view statistic);

/// The value of one published row in its metric's base unit, if the row belongs to this stage.
std::optional<double> measured_row_value(const VariantReport& variant, const MeasuredRow& row,
                                         const sim::StageResult& stage);

/// `text` as one word of a shell, in quotes where it needs them.
std::string shell_word(const std::string& text);

/// 100 (simulated - measured) / measured.
double error_percent(double simulated, double measured);

/// Percentages at which every result lists quantiles of its latencies, enough to draw a
/// distribution: JSON `quantile_levels`, and per stage `quantiles`.
std::span<const double> quantile_levels();

/// The basis of the variants and how far such results were off published numbers: a line for all
/// variants of which the same is true.
std::vector<std::string> trust_lines(const Report& report);

/// How far kCapacityBand of the KV blocks moves the variant: a sentence, empty away from a knee.
std::string capacity_text(const VariantReport& variant);

}  // namespace routesim::tools
