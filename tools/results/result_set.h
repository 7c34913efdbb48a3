// The numbers of one or more runs of each variant, ready to be compared: what intervals, verdicts,
// expectations and gates are made from, whether they come from a run or from a result file. How two
// series of one metric differ, as people read it, and whether what was expected of them holds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "sim/observe/run_result.h"
#include "tools/results/metric_name.h"
#include "tools/results/statistics.h"

namespace routesim::tools {

/// One load stage of a variant, or its whole run.
struct StageValues {
  std::string stage;  ///< Empty: the whole run.
  /// Requests/s asked for; 0 for closed loops, the whole run, and where the runs differ.
  double rate = 0;
  std::int64_t concurrency = 0;
  bool reported = true;  ///< False for warm-up stages.
  /// By metric of the set, then by replication; NaN where a run has no such number.
  std::vector<std::vector<double>> values = {};
  /// Its queue grew until it ended (the mean over the runs); of the whole run: that of any reported
  /// stage did.
  bool overloaded = false;
};

struct VariantValues {
  std::string name;
  std::vector<StageValues> stages = {};  ///< In their order; the whole run is the last.
  /// The seeds of its own runs; empty in files of early builds, which have those of the set.
  std::vector<std::uint64_t> seeds = {};
  std::string trust = {};  ///< What it rests on, as its file says it; empty in older files.
  /// Why its runs are no pairs with those of the first variant; empty when they are.
  std::string unpaired = {};
};

/// How a stopping rule ended.
struct UntilOutcome {
  std::string rule;  ///< As given: `ttft_ms.mean±2%`.
  bool reached = false;
  std::string reason = {};  ///< Why not; empty when reached.
};

struct ResultSet {
  std::string scenario = {};
  std::string version = {};
  std::vector<std::uint64_t> seeds = {};  ///< Of the first variant's replications.
  std::vector<MetricName> metrics = {};
  std::vector<VariantValues> variants = {};
  std::optional<UntilOutcome> until = {};

  /// Whether every variant faces the requests that the first one does.
  bool all_paired() const;
  const VariantValues* find_variant(std::string_view name) const;
  /// Whether the set knows the metric, in whatever unit it lists it.
  bool can_tell(const MetricName& m) const;
  /// The values of a metric, one per seed; nothing when the metric is not in the set, or some run
  /// has no such number.
  std::optional<std::vector<double>> values(const StageValues& stage, const MetricName& m) const;
  /// Why `values` gave nothing: the metric is not there, or no request counted towards it in so
  /// many runs, as when all of a stage failed.
  std::string no_values(const StageValues& stage, const MetricName& m) const;
};

/// Why the whole run of `variant` can have no verdict: it pools stages whose queue grew until they
/// ended with others, so how long each of them lasted decides. Empty when it does not, and where
/// `stage` names one stage.
std::string pooled_overload(const VariantValues& variant, std::string_view stage);

/// These words stand in place of a verdict there.
inline constexpr std::string_view kNotJudged = "not judged";

/// The stage with this name (empty = the whole run), or null.
const StageValues* find_stage(const VariantValues& variant, std::string_view stage);

/// standard_metrics() and those of `more` that are not among them.
std::vector<MetricName> metrics_with(std::span<const MetricName> more);

/// Collects runs as they end, from any thread.
class ResultSetBuilder {
 public:
  ResultSetBuilder(std::vector<std::string> variants, std::vector<MetricName> metrics)
      : variants_(std::move(variants)), metrics_(std::move(metrics)) {}

  void add(std::size_t variant, std::size_t replication, const sim::RunResult& result);
  /// Replications from 0 on that every variant has.
  std::size_t complete() const;
  /// The first `replications` of them; at most complete().
  ResultSet take(std::size_t replications) const;

 private:
  struct OneRun {
    std::uint64_t seed = 0;
    std::vector<StageValues> stages = {};  ///< With one value per metric.
    std::vector<double> unanswered = {};   ///< By stage: StageResult::unanswered().
  };
  static StageValues read(const sim::StageResult& stage, std::span<const MetricName> metrics);

  std::vector<std::string> variants_;
  std::vector<MetricName> metrics_;
  mutable std::mutex mutex_;
  std::map<std::pair<std::size_t, std::size_t>, OneRun> runs_;  ///< By replication, then variant.
};

/// How one series differs from another.
struct Difference {
  sim::Estimate base;
  sim::Estimate changed;
  sim::Estimate difference;  ///< changed - base.
  bool paired = true;        ///< The same seeds on both sides.
  /// 100 (changed/base - 1); nothing when the base is 0.
  std::optional<double> percent = {};
  /// The interval of `percent`; nothing without replications or pairing.
  std::optional<sim::Interval> percent_interval = {};
  sim::Verdict verdict = sim::Verdict::kNotDistinguishable;
};

/// `paired` says that both have one value per seed, of the same seeds in the same order.
Difference difference_of(std::span<const double> base, std::span<const double> changed,
                         const MetricName& metric, bool paired);

/// "better", "worse", "not distinguishable"; "larger" or "smaller" where no direction is better;
/// "no interval" for single runs that differ, "equal" for those that do not.
std::string verdict_text(const Difference& d, const MetricName& metric);

/// `123.4 ± 1.2`: the interval with two digits that count, the mean with as many decimals; the mean
/// alone where there is no interval.
std::string estimate_text(const sim::Estimate& e);

/// A number with four digits that count.
std::string short_number(double v);

/// `-12.3 [-14.0, -10.6]`, `-12.3`, or `-`.
std::string percent_text(const Difference& d);

/// Whether something holds in the results.
enum class Decision { kHolds, kFails, kUndecided };

/// Whether `excess` is below zero (`or_equal`: or zero). With one run the number itself decides;
/// with several, the interval does, and one that holds zero decides nothing.
Decision decide_below_zero(const sim::Estimate& excess, bool or_equal);

/// "holds", "fails" or "undecided".
std::string decision_text(Decision d);

/// One expectation or gate, judged.
struct Judgement {
  std::string what;           ///< `ttft_ms.p99 < 500`.
  std::string scope;          ///< `llm-d-precise`, `llm-d-precise, stage 4`.
  SourceLocation where = {};  ///< Where it is written; no file for what stands on the command line.
  Decision decision = Decision::kHolds;
  std::string detail;  ///< What was found: `612.4 ± 20.1`.
};

/// The worst of all: a failure counts more than what the intervals leave open. kHolds for none.
Decision overall(const std::vector<Judgement>& judgements);

}  // namespace routesim::tools

template <>
struct routesim::EnumNames<routesim::tools::Decision> {
  static constexpr std::array<std::string_view, 3> value = {"holds", "fails", "undecided"};
};
