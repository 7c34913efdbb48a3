// Every simulation of one `routesim run`: the variants, their other seeds, and the runs beside a
// knee, as one pool of independent jobs.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/plan/resolve.h"
#include "tools/cli/progress.h"
#include "tools/ingest/traces/measured_file.h"
#include "tools/render/observe/trace.h"
#include "tools/results/goodput.h"
#include "tools/results/report.h"
#include "tools/study/compare/expectation.h"

namespace routesim::tools {

struct PlannedVariant {
  sim::RunPlan plan;
  std::string scan_of;     ///< The variant whose rate a scan changes; else empty.
  std::string fleet_of;    ///< The same of its servers.
  std::string steady_key;  ///< Equal where all but events and names is.
  Document resolved;       ///< The resolved scenario: its JSON text and its tree.
  MeasuredTable measured;
  GoodputGoals goals;
  std::vector<Expectation> expectations;
};

struct ExperimentOptions {
  std::size_t replications = 1;         ///< With a rule: the most it may use.
  std::size_t jobs = 1;                 ///< Threads; no effect on results.
  std::optional<UntilRule> until = {};  ///< `--until`.
  std::optional<Duration> series;       ///< The grid of the time series, when one is wanted.
  bool trace = false;
  RecordWriter* records = nullptr;
  bool check = false;
  /// Run a variant near its knee with fewer and more KV blocks, too: two more runs.
  bool kv_band = true;
  bool capacity = true;  ///< Find the highest rate that each variant sustains.
  bool quiet = false;    ///< No line per variant.
  ProgressMode progress = ProgressMode::kAuto;

  bool replicates() const { return replications > 1 || until.has_value(); }
};

/// The outcome of running all variants.
struct Outcome {
  Report report;
  TraceRecorder trace;
  bool interrupted = false;
};

/// Runs everything that was asked for, until it is done, stopped by Ctrl-C, or wrong. An
/// interrupted experiment has the variants up to the first that was cut short and, when none was,
/// the replications that every variant finished. A trace and records are written by one variant
/// after the other.
void run_variants(std::span<const PlannedVariant> planned, const ExperimentOptions& options,
                  Console& console, Diagnostics& diagnostics, Outcome& outcome);

}  // namespace routesim::tools
