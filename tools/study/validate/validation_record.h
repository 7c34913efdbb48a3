// The content of a result file of `routesim validate`, described once, and the document it makes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "tools/render/document.h"
#include "tools/results/trust_errors.h"
#include "tools/study/validate/validation.h"

namespace routesim::tools {

// Limits on the error tables of `validate`, for a build server: `--fail-if` for some rows, and a
// file with one limit for every row.

/// `ttft.mean>8%`: the mean absolute error of no such row may be larger.
struct ErrorGate {
  std::string text;   ///< As written.
  std::string scope;  ///< An experiment or a policy; empty: any.
  std::string metric;
  std::string statistic;  ///< Empty: any.
  double percent = 0;
};

/// `[SCOPE:]METRIC[.STATISTIC]>PERCENT%`; nothing, with an error, when it is not.
std::optional<ErrorGate> parse_error_gate(const std::string& text, Diagnostics& diagnostics);

/// The limit of one row of an error table.
struct RowLimit : ErrorRow {
  SourceLocation where = {};
  std::size_t cells = 0;             ///< Exactly so many: a lost cell could make a mean smaller.
  double error = 0;                  ///< Limit of the mean error, in % or in points.
  double worst = 0;                  ///< Limit of the worst error's size, in the same unit.
  std::optional<double> ratio = {};  ///< Limit of the mean ratio error, %, with `against`.
  std::optional<std::size_t> signs = {};  ///< At least so many signs agree, with `against`.
};

/// Parses CSV with exactly the header
/// `experiment,policy,against,metric,statistic,cells,error,worst, ratio,signs` (one line).
/// Malformed and repeated rows are errors at their line.
std::vector<RowLimit> parse_limits_csv(const std::string& text, const std::string& file,
                                       Diagnostics& diagnostics);

/// The file that holds the tables to what they say now: each limit is the present value and a tenth
/// of it, at least one point, rounded up to a tenth of a point; as many signs agree as now.
std::string render_limits_csv(const std::vector<ScenarioValidation>& all);

/// The findings of limits in the tables.
struct LimitFindings {
  Diagnostics exceeded;   ///< An error per number beyond its limit.
  Diagnostics unmatched;  ///< An error per limit without a row, and per row without a limit.
};

/// A gate that names no row of the error tables is unmatched.
void check_gate(const ErrorGate& gate, const std::vector<ScenarioValidation>& all,
                LimitFindings& findings);

/// Every row of both error tables must have a limit in `file`, and every limit a row.
void check_limits(const std::vector<RowLimit>& limits, const std::string& file,
                  const std::vector<ScenarioValidation>& all, LimitFindings& findings);

// The errors of validation by what the step times rest on.

/// Scored cells of single policies and single stages, pooled by class and quantity: output
/// tokens/s, mean TTFT, TTFT tails (p90 and above), mean time per output token (TPOT, ITL, or
/// latency over tokens). By class, the best known first; quantities without a cell are left out.
std::vector<TrustError> trust_table(const std::vector<ScenarioValidation>& all);

/// kTrustHeader and a line per row.
std::string render_trust_csv(const std::vector<TrustError>& errors);
/// A table for people; `markdown` writes a page.
std::string render_trust_text(const std::vector<TrustError>& errors, bool markdown);

struct ValidationRecord {
  struct ClassError {
    bool held_out = false;
    TrustError error;
  };
  std::string version;
  std::vector<ClassError> by_class = {};  ///< What was fitted first, then what was held out.
  std::vector<ScenarioValidation> scenarios;
};

void describe(Describer& d, ValidationRecord& r);

/// Each row of the error tables takes its limit among `limits`.
ValidationRecord validation_record(const std::vector<ScenarioValidation>& all,
                                   const std::vector<RowLimit>& limits, const std::string& version);

/// Tidy CSV, one published number per row.
std::string validation_csv(const std::vector<ScenarioValidation>& all);

/// The answer of the validation. `path` is where the record stands in the data block of a page;
/// without `cells`, plain outputs leave the single numbers out.
StudyDocument validation_document(const ValidationRecord& record, bool cells = true,
                                  const std::string& path = {});

}  // namespace routesim::tools
