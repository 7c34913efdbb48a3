// Whether 95 % means 95 %: thousands of experiments on cases whose answer is known, through the
// code that real experiments use.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <mutex>
#include <vector>

#include "base/rng.h"
#include "tests/closed_form/queue_model.h"
#include "tools/results/statistics.h"
#include "tools/study/experiment/experiment.h"

namespace routesim::tools {
namespace {

using sim::Direction;
using sim::Estimate;
using sim::estimate;
using sim::independent_difference;
using sim::Interval;
using sim::kConfidence;
using sim::paired_difference;
using sim::paired_ratio;
using sim::quantile_ranks;
using sim::RankInterval;
using sim::RunPlan;
using sim::verdict;
using sim::Verdict;
using sim::testing::md1_plan;
using sim::testing::md1_ttft_s;

constexpr std::size_t kExperiments = 1000;

/// 93 to 97 % of 1,000 experiments: what the product promises, and three standard errors of a
/// coverage of 95 %.
void expect_coverage(std::size_t held, const std::string& what) {
  std::cout << what << ": the interval held the truth in " << held << " of " << kExperiments
            << " experiments\n";
  EXPECT_GE(held, 930U) << what;
  EXPECT_LE(held, 970U) << what;
}

/// Long enough, and at a utilisation low enough, for the empty start (a theory of the steady state
/// knows none) to be far smaller than an interval.
constexpr double kLoad = 0.3;
RunPlan queue(double rho = kLoad) { return md1_plan(rho, 600); }

/// The seeds of an experiment: no two experiments share one.
std::uint64_t first_seed(std::size_t experiment) { return 1'000'000 + experiment * 1000; }

/// Makes one run, and keeps its mean TTFT by its number.
WatchedWork ttft_into(std::vector<double>& values, const RunPlan& plan, std::uint64_t seed,
                      Experiment& experiment) {
  return [&, seed](const Replication& r, Diagnostics& found) {
    const auto result = experiment.run({.plan = plan, .seed = seed + r.number}, found);
    values[r.number] = result.value().summary.time_to_first_token.mean();
    return std::optional(values[r.number]);
  };
}

std::vector<double> ttfts(const RunPlan& plan, std::size_t replications, std::uint64_t seed) {
  std::vector<double> values(replications);
  ExperimentProgress progress;
  Diagnostics diagnostics;
  Experiment experiment(1, progress, diagnostics);
  replicate({}, {.first = 0, .count = replications}, ttft_into(values, plan, seed, experiment),
            experiment);
  return values;
}

/// How many experiments hold, each with a seed of its own.
template <class Holds>
std::size_t count_held(const Holds& holds) {
  std::vector<char> held(kExperiments);
  for_each_index(kExperiments, default_jobs(),
                 [&](std::size_t i) { held[i] = holds(first_seed(i)) ? 1 : 0; });
  return static_cast<std::size_t>(std::count(held.begin(), held.end(), 1));
}

TEST(Coverage, OfTheMeanOfAnMD1Queue) {
  const RunPlan plan = queue();
  for (const std::size_t replications : {5U, 10U}) {
    const std::size_t held = count_held([&](std::uint64_t seed) {
      return estimate(ttfts(plan, replications, seed)).holds(md1_ttft_s(kLoad));
    });
    expect_coverage(held, "M/D/1 mean, " + std::to_string(replications) + " replications");
  }
}

TEST(Coverage, OfAPairedDifferenceOfTwoQueues) {
  const RunPlan base = queue();
  const RunPlan changed = queue(0.4);
  const double truth = md1_ttft_s(0.4) - md1_ttft_s(kLoad);
  const double ratio = md1_ttft_s(0.4) / md1_ttft_s(kLoad);
  std::vector<char> ratio_held(kExperiments);
  const std::size_t held = count_held([&](std::uint64_t seed) {
    const std::vector<double> a = ttfts(base, 5, seed);
    const std::vector<double> b = ttfts(changed, 5, seed);
    const std::optional<Interval> interval = paired_ratio(a, b);
    const bool holds = interval && interval->low <= ratio && ratio <= interval->high;
    ratio_held[(seed - first_seed(0)) / 1000] = holds ? 1 : 0;
    return paired_difference(a, b).holds(truth);
  });
  expect_coverage(held, "paired difference, 5 replications");
  expect_coverage(static_cast<std::size_t>(std::count(ratio_held.begin(), ratio_held.end(), 1)),
                  "paired ratio, 5 replications");
}

/// Two servers that do the same work must not be told apart more often than promised.
TEST(Coverage, EqualVariantsAreNotDistinguishable) {
  const RunPlan plan = queue();
  const std::size_t held = count_held([&](std::uint64_t seed) {
    // Different seeds on either side: equal in law, not in numbers.
    const Estimate d = independent_difference(ttfts(plan, 5, seed), ttfts(plan, 5, seed + 500));
    return verdict(d, Direction::kSmallerIsBetter) == Verdict::kNotDistinguishable;
  });
  expect_coverage(held, "equal variants, 5 independent runs each");
}

TEST(Coverage, OfTheStoppingRule) {
  const RunPlan plan = queue();
  const StoppingRule rule{.relative_half_width = 0.008};
  std::vector<std::size_t> used(kExperiments);
  const std::size_t held = count_held([&](std::uint64_t seed) {
    std::vector<double> values(rule.limit);
    ExperimentProgress progress;
    Diagnostics diagnostics;
    Experiment experiment(1, progress, diagnostics);
    const StoppedAt end =
        replicate_until({}, rule, ttft_into(values, plan, seed, experiment), experiment);
    values.resize(end.replications);
    used[(seed - first_seed(0)) / 1000] = end.replications;
    return estimate(values).holds(md1_ttft_s(kLoad));
  });
  expect_coverage(held, "until +-0.8 %");
  std::sort(used.begin(), used.end());
  EXPECT_LT(used.front(), used.back()) << "the rule must have had something to decide";
  EXPECT_LT(used.back(), rule.limit);
  std::cout << "replications used: " << used.front() << " to " << used.back() << "\n";
}

/// Percentiles by rank, on draws whose quantiles are known: uniform on (0, 1). Ranks are whole
/// numbers, so the coverage is at least 95 %, and known.
TEST(Coverage, OfAQuantileByRank) {
  for (const double q : {0.5, 0.9, 0.99}) {
    constexpr std::size_t kDraws = 1000;
    const std::optional<RankInterval> ranks = quantile_ranks(kDraws, q);
    ASSERT_TRUE(ranks.has_value());
    const std::size_t held = count_held([&](std::uint64_t seed) {
      RandomStream stream(seed, Stream::kLengths);
      std::vector<double> draws(kDraws);
      for (double& d : draws) d = stream.uniform_open();
      std::sort(draws.begin(), draws.end());
      return draws[ranks->low] <= q && q <= draws[ranks->high];
    });
    EXPECT_GE(ranks->coverage, kConfidence);
    const double spread = std::sqrt(kExperiments * ranks->coverage * (1 - ranks->coverage));
    EXPECT_NEAR(static_cast<double>(held), kExperiments * ranks->coverage, 3 * spread) << q;
  }
}

}  // namespace
}  // namespace routesim::tools
