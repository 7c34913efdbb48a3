// How far simulations were off published numbers, by what their step times rest on. The table is
// made by `validate --trust` and read from the program itself, so every result can carry it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/latency_model.h"
#include "sim/observe/run_result.h"

namespace routesim::tools {

/// The error of one quantity over all published numbers that were compared within one class.
struct TrustError {
  models::Trust trust = models::Trust::kFitted;
  std::string quantity;   ///< `output tokens/s`, `TTFT mean`, ...
  std::size_t cells = 0;  ///< Published numbers.
  double mean = 0;        ///< Mean |error|, %.
  double worst = 0;       ///< The error of largest size, %.
};

/// The classes of step times, from the best known to the least.
std::span<const models::Trust> trust_classes();

/// First line of the table as CSV.
inline constexpr std::string_view kTrustHeader =
    "step_times,quantity,published_numbers,mean_absolute_error_percent,worst_error_percent";

/// Rows as `validate --trust -o csv` writes them. Malformed text is a bug.
std::vector<TrustError> parse_trust_errors(std::string_view csv);

/// The errors of this program. Thread-safe.
const std::vector<TrustError>& trust_errors();

/// A clause: `step times that were fitted to measurements`, ...
std::string_view trust_clause(models::Trust trust);

/// `output tokens/s`, `TTFT mean`, `TTFT p90 and above` or `time per output token`, which a metric
/// by its canonical name counts towards; empty for none.
std::string_view trust_quantity(std::string_view metric, std::string_view statistic);

/// `output tokens/s 2.1 % (51, worst -9.6 %), ...`: each with its number of values.
std::string errors_text(std::span<const TrustError> errors);

/// The results of validation for a class: `mean error against published numbers: output tokens/s
/// 2.1 % (of 51, worst -9.6 %), ...`, or that there was nothing to compare with.
std::string trust_errors_text(models::Trust trust);
/// The same of these errors, which belong to the class.
std::string trust_errors_text(models::Trust trust, std::span<const TrustError> errors);

/// How much longer or shorter steps may be, as a fraction: the larger of the class's mean errors of
/// output tokens/s and of the time per output token, at most 0.9. Of a class that nothing was
/// compared with, that of the next better known one.
double step_time_band(models::Trust trust);

/// A whole run in one sentence: its class, how much lay outside the fitted range, and the errors.
std::string trust_text(const sim::RunResult& result);

}  // namespace routesim::tools
