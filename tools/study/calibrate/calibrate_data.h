// Benchmark results as samples of a cost-curve fit, and the catalogue entry a fit is written to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "models/calibration.h"
#include "models/catalogue.h"

namespace routesim::tools {

/// The deployment whose curve is fitted.
struct CalibrationTarget {
  models::AcceleratorSpec accelerator;
  models::ModelSpec model;
  models::Parallelism parallelism;
  /// Tokens the engine's KV cache holds. Benchmark rows that fill more than 95 % of it are left
  /// out: some of their requests waited, and the row does not say how long.
  double kv_tokens = 0;
};

/// The samples of the files.
struct CalibrationData {
  std::vector<models::CurveSample> samples;
  models::FittedRange range;       ///< The largest batch in the samples.
  std::vector<std::string> notes;  ///< Rows that were left out, and why. One sentence each.
};

/// Adds a CSV file's samples. The header decides what it is:
/// - step times: columns named as BatchShape's members (`decode_requests`, `decode_context`,
///   `shared_context`, `shared_once`, `prefill_requests`, `prefill_tokens`, `prefill_context`,
///   `prefill_pairs`, `group_tokens`, `group_total_tokens`, `group_rounds`; absent ones are
///   BatchShape's defaults), `ms`, and maybe `weight` and `label`;
/// - static batches: `isl`, `osl`, `concurrency` (or `concurrency_batch`) and `tpot_ms` (or
///   `tpot_ms_measured`), and maybe `model`, `system`, `precision`, `tp`, `id`, by which rows of
///   other deployments are left out. Other columns are ignored, with a note.
/// Malformed headers, rows and numbers are errors at their line.
void read_calibration_csv(const std::string& text, const std::string& file,
                          const CalibrationTarget& target, CalibrationData& data,
                          Diagnostics& diagnostics);

/// A curve as the text of a catalogue file, with its numbers rounded to six digits.
std::string catalogue_yaml(const models::FittedCurve& curve);

/// The fit for people: parameters with 95 % intervals, residuals, what the data cannot tell.
std::string calibration_text(const models::CurveFit& fit, const CalibrationData& data);

}  // namespace routesim::tools
