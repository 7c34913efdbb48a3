// The errors of validation by what the step times rest on.
#pragma once

#include <string>
#include <vector>

#include "tools/results/trust_errors.h"
#include "tools/study/validate/validation.h"

namespace routesim::tools {

/// Scored cells of single policies and single stages, pooled by class and quantity: output
/// tokens/s, mean TTFT, TTFT tails (p90 and above), mean time per output token (TPOT, ITL, or
/// latency over tokens). By class, the best known first; quantities without a cell are left out.
std::vector<TrustError> trust_table(const std::vector<ScenarioValidation>& all);

/// kTrustHeader and a line per row.
std::string render_trust_csv(const std::vector<TrustError>& errors);
/// A table for people; `markdown` writes a page.
std::string render_trust_text(const std::vector<TrustError>& errors, bool markdown);

}  // namespace routesim::tools
