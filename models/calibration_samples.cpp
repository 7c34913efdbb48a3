// The forward models of calibration: what a benchmark row says about the coefficients. All linear.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "models/calibration.h"
#include "models/specs.h"

namespace routesim::models {
namespace {

double& at(CurveSample& s, Coefficient c) { return s.features[static_cast<std::size_t>(c)]; }

/// One step of the prefill burst: how often each coefficient enters it.
struct BurstStep {
  std::int64_t decoding = 0;
  std::int64_t context = 0;
  std::int64_t tokens = 0;
  double pairs = 0;
  std::int64_t chunks = 0;
  std::int64_t finished = 0;  ///< Prompts whose last chunk this is.
};

/// Fills the step's token budget with the prompts at the head of the queue.
BurstStep fill_step(std::int64_t isl, std::int64_t budget, std::int64_t& left,
                    std::int64_t& computed, std::int64_t decoding) {
  BurstStep step{.decoding = decoding, .context = decoding * isl};
  // Decodes run first, but can never take the whole budget of a step here.
  std::int64_t room = std::max<std::int64_t>(1, budget - decoding);
  while (left > 0 && room > 0) {
    const std::int64_t n = std::min(room, isl - computed);
    step.tokens += n;
    step.pairs +=
        as_real(computed + n) * as_real(computed + n) - as_real(computed) * as_real(computed);
    ++step.chunks;
    room -= n;
    computed += n;
    if (computed < isl) continue;
    computed = 0;
    --left;
    ++step.finished;
  }
  return step;
}

void add_step(CurveSample& s, const BurstStep& step, double times) {
  at(s, Coefficient::kStep) += times;
  at(s, Coefficient::kSequence) += times * as_real(step.decoding);
  at(s, Coefficient::kContext) += times * as_real(step.context) * 1e-6;
  at(s, Coefficient::kPrefillToken) += times * as_real(step.tokens) * 1e-3;
  at(s, Coefficient::kPrefillPair) += times * step.pairs * 1e-6;
  at(s, Coefficient::kPrefillChunk) += times * as_real(step.chunks);
}

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

CurveSample ttft_sample(const StaticBatchRow& row, std::int64_t token_budget, double rounds) {
  ROUTESIM_CHECK(row.isl >= 1 && row.concurrency >= 1 && token_budget >= 1 && rounds >= 1,
                 "static batch row");
  CurveSample s;
  s.ms = row.ttft_ms;
  s.label = row.label;
  std::int64_t left = row.concurrency;
  std::int64_t computed = 0;
  const double share = 1.0 / (as_real(row.concurrency) * rounds);
  while (left > 0) {
    // Every prompt that ends in this step or later waits for the whole step.
    const std::int64_t waiting = left;
    const BurstStep step =
        fill_step(row.isl, token_budget, left, computed, row.concurrency - waiting);
    add_step(s, step, share * as_real(waiting));
  }
  if (rounds <= 1) return s;
  const double steady = 1.0 - 1.0 / rounds;
  const CurveSample mean_step = tpot_sample(row);
  for (std::size_t i = 0; i < kCoefficients; ++i)
    s.features[i] += steady * 0.5 * mean_step.features[i];
  std::int64_t one = 1;
  while (one > 0)
    add_step(s, fill_step(row.isl, token_budget, one, computed, row.concurrency - 1), steady);
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
