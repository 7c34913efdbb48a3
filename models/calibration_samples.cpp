// The forward models of calibration: what a benchmark row says about the coefficients. All linear.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "models/calibration.h"
#include "models/specs.h"

namespace routesim::models {
namespace {

double& at(CurveSample& s, Coefficient c) { return s.features[static_cast<std::size_t>(c)]; }

}  // namespace

std::string_view coefficient_name(Coefficient c) {
  switch (c) {
    case Coefficient::kStep:
      return "step_ms";
    case Coefficient::kSequence:
      return "sequence_ms";
    case Coefficient::kContext:
      return "context_us_per_ktok";
    case Coefficient::kSharedContext:
      return "shared context_us_per_ktok";
    case Coefficient::kPrefillToken:
      return "prefill_us_per_token";
    case Coefficient::kPrefillPair:
      return "prefill_pair_ns";
    case Coefficient::kPrefillChunk:
      return "prefill_chunk_ms";
    case Coefficient::kGroupToken:
      return "group_token_us";
  }
  return "";
}

std::string_view identified_name(Identified i) {
  switch (i) {
    case Identified::kByData:
      return "by data";
    case Identified::kWeakly:
      return "weakly";
    case Identified::kByPrior:
      return "by prior";
    case Identified::kAtZero:
      return "at zero";
    case Identified::kNotInData:
      return "not in data";
  }
  return "";
}

CurveSample step_sample(const BatchShape& shape, double ms) {
  CurveSample s;
  s.ms = ms;
  at(s, Coefficient::kStep) = 1;
  at(s, Coefficient::kSequence) = as_real(shape.decode_requests);
  const std::int64_t shared = widely_shared(shape);
  at(s, Coefficient::kContext) = as_real(shape.decode_context - shared) * 1e-6;
  at(s, Coefficient::kSharedContext) = as_real(shared) * 1e-6;
  at(s, Coefficient::kPrefillToken) = as_real(shape.prefill_tokens) * 1e-3;
  at(s, Coefficient::kPrefillPair) = as_real(shape.prefill_pairs) * 1e-6;
  at(s, Coefficient::kPrefillChunk) = as_real(shape.prefill_requests);
  at(s, Coefficient::kGroupToken) = as_real(shape.group_total_tokens) * 1e-3;
  return s;
}

CurveSample tpot_sample(const StaticBatchRow& row) {
  ROUTESIM_CHECK(row.isl >= 1 && row.osl >= 1 && row.concurrency >= 1, "static batch row");
  CurveSample s;
  s.ms = row.tpot_ms;
  s.label = row.label;
  const double b = as_real(row.concurrency);
  const double prompts = (b - 1) / as_real(row.osl);
  at(s, Coefficient::kStep) = 1;
  at(s, Coefficient::kSequence) = b;
  at(s, Coefficient::kContext) = b * (as_real(row.isl) + as_real(row.osl) / 2) * 1e-6;
  at(s, Coefficient::kPrefillToken) = prompts * as_real(row.isl) * 1e-3;
  at(s, Coefficient::kPrefillPair) = prompts * as_real(row.isl) * as_real(row.isl) * 1e-6;
  at(s, Coefficient::kPrefillChunk) = prompts;
  return s;
}

double predict_ms(const CostCurveParameters& p, const CurveSample& s) {
  const std::array<double, kCoefficients> x = {p.step_ms,
                                               p.sequence_ms,
                                               p.context_us_per_ktok,
                                               p.context_us_per_ktok * p.shared_context_weight,
                                               p.prefill_us_per_token,
                                               p.prefill_pair_ns,
                                               p.prefill_chunk_ms,
                                               p.group_token_us};
  double ms = 0;
  for (std::size_t i = 0; i < kCoefficients; ++i) ms += x[i] * s.features[i];
  return ms;
}

ResidualSummary summarise_residuals(const std::vector<double>& relative) {
  ResidualSummary r;
  r.samples = relative.size();
  if (relative.empty()) return r;
  std::vector<double> sizes;
  for (const double e : relative) {
    sizes.push_back(100 * std::abs(e));
    r.bias += 100 * e;
    r.mean_absolute += 100 * std::abs(e);
  }
  const double n = static_cast<double>(relative.size());
  r.bias /= n;
  r.mean_absolute /= n;
  std::sort(sizes.begin(), sizes.end());
  const auto percentile = [&](double q) {  // Nearest rank.
    const auto rank = static_cast<std::size_t>(std::ceil(q * n));
    return sizes[std::max<std::size_t>(rank, 1) - 1];
  };
  r.p50 = percentile(0.50);
  r.p90 = percentile(0.90);
  r.p99 = percentile(0.99);
  r.max = sizes.back();
  return r;
}

}  // namespace routesim::models
