// The law every latency model keeps: a decode run is affine to the last tick. Random models and
// shapes; the seed is printed on failure.
#include <gtest/gtest.h>

#include <random>

#include "models/catalogue.h"
#include "models/cost_curve.h"
#include "models/kernels/kernel_latency.h"
#include "models/measured.h"
#include "models/roofline.h"
#include "tools/ingest/servers/catalogue_file.h"

namespace routesim::models {
namespace {

constexpr std::uint64_t kSeed = 20'261'121;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  std::int64_t integer(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  double real(double high) { return high * static_cast<double>(engine_() >> 11) * 0x1p-53; }
  bool coin() { return (engine_() & 1) != 0; }

 private:
  std::mt19937_64 engine_;
};

BatchShape random_decode(Draw& draw) {
  BatchShape s;
  s.decode_requests = draw.integer(1, draw.coin() ? 8 : 600);
  s.decode_context = s.decode_requests * draw.integer(1, draw.coin() ? 300 : 30'000) +
                     draw.integer(0, s.decode_requests);
  s.shared_context = draw.coin() ? draw.integer(0, s.decode_context) : 0;
  if (draw.coin()) {
    s.group_tokens = draw.integer(s.decode_requests, 2 * s.decode_requests);
    s.group_total_tokens = draw.integer(s.group_tokens, 8 * s.group_tokens);
  }
  return s;
}

/// Checks the law at the start of the run, around random points of it, and at its last step.
/// Answers whether the run ended at a knee.
bool check_law(const LatencyModel& model, const BatchShape& start, Draw& draw) {
  const DecodeRun run = model.decode_run(start);
  EXPECT_GE(run.steps, 1);
  EXPECT_GE(run.first, 1);
  const std::int64_t last = std::min<std::int64_t>(run.steps - 1, 2'000'000);
  std::vector<std::int64_t> at = {0, std::min<std::int64_t>(1, last), last};
  for (int k = 0; k < 5; ++k) at.push_back(draw.integer(0, last));
  for (const std::int64_t i : at) {
    BatchShape s = start;
    s.decode_context += i * start.decode_requests;
    if (model.step_ticks(s) != run.first + i * run.increment) {
      ADD_FAILURE() << "seed " << kSeed << " step " << i << " of " << run.steps << ": "
                    << model.step_ticks(s) << " is not " << run.first << " + " << i << " * "
                    << run.increment << "; B " << start.decode_requests << " T "
                    << start.decode_context << " shared " << start.shared_context << " ("
                    << model.provenance() << ")";
      return false;
    }
  }
  return run.steps - 1 <= 2'000'000;
}

CostCurveParameters random_curve(Draw& draw) {
  CostCurveParameters p;
  p.step_ms = draw.real(50);
  p.sequence_ms = draw.real(1);
  p.context_us_per_ktok = draw.coin() ? draw.real(500) : 0;
  p.shared_context_weight = draw.real(1);
  p.token_us = draw.real(10);
  p.cpu_step_ms = draw.real(60);
  p.cpu_sequence_ms = draw.real(1);
  p.async_scheduling = draw.coin();
  p.group_round_ms = draw.real(5);
  p.group_padding_us = draw.real(100);
  p.group_token_us = draw.real(100);
  return p;
}

TEST(DecodeRunLaw, CostCurve) {
  Draw draw(kSeed);
  int knees = 0;
  for (int n = 0; n < 20'000; ++n) {
    const CostCurve curve(random_curve(draw), {}, "random");
    if (check_law(curve, random_decode(draw), draw)) ++knees;
  }
  EXPECT_GT(knees, 1'000) << "the CPU knee must have been exercised";
}

TEST(DecodeRunLaw, RooflineOfEveryModelOnEveryAccelerator) {
  Draw draw(kSeed);
  const Catalogue c = tools::builtin_catalogue();
  int knees = 0;
  for (int n = 0; n < 6'000; ++n) {
    const auto& a = c.accelerators()[static_cast<std::size_t>(draw.integer(0, 7))];
    const auto& m = c.models()[static_cast<std::size_t>(n) % c.models().size()];
    Parallelism p{.tp = std::int64_t{1} << draw.integer(0, 2)};
    if (m.is_moe() && draw.coin()) p = {.tp = 1, .pp = 1, .dp = 8, .ep = 8};
    RooflineOptions options{.kv_dtype = draw.coin() ? KvDtype::kFp8 : KvDtype::kBf16};
    options.cuda_graphs = draw.coin();
    options.async_scheduling = draw.coin();
    if (check_law(Roofline(a, m, p, options), random_decode(draw), draw)) ++knees;
  }
  EXPECT_GT(knees, 50) << "window and CPU knees must have been exercised";
}

TEST(DecodeRunLaw, KernelsOfEveryModelTheyCover) {
  Draw draw(kSeed);
  const Catalogue c = tools::builtin_catalogue();
  int covered = 0;
  for (const AcceleratorSpec& a : c.accelerators())
    for (const ModelSpec& m : c.models()) {
      const Parallelism p{.tp = std::int64_t{1} << draw.integer(0, 3)};
      RooflineOptions options{.kv_dtype = draw.coin() ? KvDtype::kFp8 : KvDtype::kBf16};
      options.async_scheduling = draw.coin();
      options.older_fp8_cache = draw.coin();
      Diagnostics none;
      if (!check_parallelism(m, p, none)) continue;
      const auto model = KernelLatency::make(a, m, p, options);
      if (!model) continue;
      ++covered;
      for (int k = 0; k < 20; ++k) check_law(*model, random_decode(draw), draw);
    }
  EXPECT_GT(covered, 150);
}

TEST(DecodeRunLaw, MeasuredTable) {
  Draw draw(kSeed);
  for (int n = 0; n < 300; ++n) {
    MeasuredTable t;
    for (std::int64_t x = 1; x <= 600; x = 2 * x + draw.integer(1, 40))
      for (const std::int64_t y : {10, 200, 1'500, 9'000})
        t.decode.push_back({x, y, 0.1 + draw.real(50)});  // Noise of any kind is a valid table.
    t.prefill = {{1, 0, 1}, {2, 0, 2}};
    Diagnostics d;
    const auto model = MeasuredLatency::make(t, d);
    ASSERT_TRUE(model);
    for (int k = 0; k < 40; ++k) check_law(*model, random_decode(draw), draw);
  }
}

TEST(DecodeRunLaw, BuiltInCurves) {
  Draw draw(kSeed);
  for (const FittedCurve& f : tools::builtin_catalogue().curves()) {
    const CostCurve curve(f.parameters, f.range, f.provenance);
    for (int n = 0; n < 500; ++n) check_law(curve, random_decode(draw), draw);
  }
}

}  // namespace
}  // namespace routesim::models
