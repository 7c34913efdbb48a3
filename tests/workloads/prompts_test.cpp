// The parts of prompts: contents, and the distributions of their lengths.
#include "workloads/prompts.h"

#include <cmath>
#include <set>

#include "workloads/distributions.h"

namespace routesim::workloads {
namespace {

TEST(TokenAt, IsStableAcrossPlatforms) {
  // Pinned: block keys, and so results, follow from these numbers.
  const std::uint64_t pair = mix64(42 + 3 * 0x9e3779b97f4a7c15ULL);
  EXPECT_EQ(token_at(42, 6), ((pair >> 32) * 128000) >> 32);
  EXPECT_EQ(token_at(42, 7), ((pair & 0xffffffff) * 128000) >> 32);
}

TEST(TokenAt, CoversTheVocabularyUniformly) {
  constexpr std::uint32_t kVocabulary = 16;
  std::vector<int> seen(kVocabulary);
  for (std::int64_t i = 0; i < 16'000; ++i) ++seen.at(token_at(99, i, kVocabulary));
  // Chi-square with 15 degrees of freedom: 99.9 % quantile 37.7.
  double chi2 = 0;
  for (const int n : seen) chi2 += (n - 1000.0) * (n - 1000.0) / 1000.0;
  EXPECT_LT(chi2, 37.7);
}

TEST(TokenAt, DifferentContentsDiffer) {
  int equal = 0;
  for (std::int64_t i = 0; i < 1000; ++i) equal += token_at(1, i) == token_at(2, i);
  EXPECT_LE(equal, 2);
}

TEST(ContentId, KindsAndNumbersDoNotCollide) {
  std::set<std::uint64_t> ids;
  for (const ContentKind kind : {ContentKind::kSystemPrompt, ContentKind::kQuestion})
    for (std::uint64_t a = 0; a < 50; ++a)
      for (std::uint64_t b = 0; b < 50; ++b) ids.insert(content_id(3, kind, a, b));
  EXPECT_EQ(ids.size(), 5000U);
}

TEST(PromptBuilder, MergesSegmentsThatContinueEachOther) {
  PromptBuilder b;
  b.append(Segment{5, 0, 10}).append(Segment{5, 10, 6}).append(Segment{5, 20, 1});
  b.append(Segment{6, 21, 0}).append(Segment{5, 21, 2});
  const auto prompt = std::move(b).build(3, true);
  EXPECT_EQ(prompt->segments, (std::vector<Segment>{{5, 0, 16}, {5, 20, 3}}));
  EXPECT_EQ(prompt->tokens, 19);
  EXPECT_EQ(prompt->id, 3U);
  EXPECT_TRUE(prompt->reusable);
}

TEST(PromptBuilder, AnEmptyPromptHasOneToken) {
  const auto prompt = PromptBuilder().build(0);
  EXPECT_EQ(prompt->tokens, 1);
  EXPECT_EQ(prompt->segments.size(), 1U);
}

TEST(AnswerLength, IsFromOneTokenToTheMaximum) {
  EXPECT_EQ(AnswerLength(Distribution::fixed(0), false, 1)(10, 7), 1);
  EXPECT_EQ(AnswerLength(Distribution::fixed(6), false, 1)(10, 7), 6);
  EXPECT_EQ(AnswerLength(Distribution::fixed(60), false, 1)(10, 7), 10);
  EXPECT_EQ(AnswerLength(Distribution::fixed(6), /*ignore_eos=*/true, 1)(10, 7), 10);
}

struct Moments {
  double mean = 0, deviation = 0, third = 0;
  std::int64_t min = 0, max = 0;
};

Moments moments(const Distribution& d, SamplerKind kind, std::uint64_t seed = 7) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  const LengthSampler sampler(d, kind);
  RandomStream random(seed, Stream::kTest);
  constexpr int kDraws = 200'000;
  std::vector<double> x;
  Moments m;
  m.min = 1LL << 60;
  for (int i = 0; i < kDraws; ++i) {
    const std::int64_t v = sampler.sample(random);
    m.min = std::min(m.min, v);
    m.max = std::max(m.max, v);
    x.push_back(static_cast<double>(v));
    m.mean += x.back() / kDraws;
  }
  for (const double v : x) {
    m.deviation += (v - m.mean) * (v - m.mean) / kDraws;
    m.third += std::pow(v - m.mean, 3) / kDraws;
  }
  m.deviation = std::sqrt(m.deviation);
  m.third /= std::pow(m.deviation, 3);
  return m;
}

Distribution wide(DistributionType type, double mean, double std_dev) {
  Distribution d;
  d.type = type;
  d.min = 0;
  d.max = 1'000'000;
  d.mean = mean;
  d.std_dev = std_dev;
  return d;
}

TEST(Distribution, FixedIsExact) {
  const LengthSampler sampler(Distribution::fixed(6000));
  RandomStream random(1, Stream::kTest);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(sampler.sample(random), 6000);
}

TEST(Distribution, NormalHasItsMomentsAndIsClipped) {
  const Moments m = moments(wide(DistributionType::kNormal, 5000, 300), SamplerKind::kGeneral);
  EXPECT_NEAR(m.mean, 5000, 3);
  EXPECT_NEAR(m.deviation, 300, 2);
  Distribution tight;  // The defaults: mean 512, sd 200, [10, 1024].
  const Moments t = moments(tight, SamplerKind::kGeneral);
  EXPECT_EQ(t.min, 10);
  EXPECT_EQ(t.max, 1024);
}

TEST(Distribution, VarianceWinsOverDeviation) {
  Distribution d = wide(DistributionType::kNormal, 5000, 1);
  d.variance = 90'000;
  EXPECT_NEAR(moments(d, SamplerKind::kGeneral).deviation, 300, 2);
}

TEST(Distribution, LognormalMatchesMomentsWithAndWithoutTheShift) {
  Distribution d = wide(DistributionType::kLognormal, 1000, 500);
  Moments m = moments(d, SamplerKind::kGeneral);
  EXPECT_NEAR(m.mean, 1000, 5);
  EXPECT_NEAR(m.deviation, 500, 8);
  EXPECT_GT(m.third, 1.2) << "skewed to the right";
  d.min = 400;  // random data: min + lognormal with mean 600.
  m = moments(d, SamplerKind::kRandomData);
  EXPECT_NEAR(m.mean, 1000, 5);
  EXPECT_NEAR(m.deviation, 500, 10);
  EXPECT_GE(m.min, 400);
  // The general sampler clips and does not shift: the median stays 1000 / sqrt(1 + 0.5^2).
  const LengthSampler general(d, SamplerKind::kGeneral);
  RandomStream random(7, Stream::kTest);
  int below = 0;
  for (int i = 0; i < 100'000; ++i) below += general.sample_real(random) < 1000 / std::sqrt(1.25);
  EXPECT_NEAR(below, 50'000, 4 * 158) << "a binomial's deviation is sqrt(100,000) / 2";
}

TEST(Distribution, UniformIncludesItsMaximumOnlyInTheGeneralSampler) {
  Distribution d = wide(DistributionType::kUniform, 0, 0);
  d.min = 10;
  d.max = 20;
  const Moments m = moments(d, SamplerKind::kGeneral);
  EXPECT_EQ(m.min, 10);
  EXPECT_EQ(m.max, 20);
  // U(10, 21) clipped at 20 and rounded: (10.5 - 10 + ... ) / 11, mean 15 + 5 * (1 / 22 + ...).
  EXPECT_NEAR(m.mean, (10 * 0.5 + (11 + 12 + 13 + 14 + 15 + 16 + 17 + 18 + 19) + 20 * 1.5) / 11,
              0.03);
  EXPECT_NEAR(moments(d, SamplerKind::kRandomData).mean, 15, 0.03);
}

TEST(Distribution, PoissonHasItsMean) {
  const Moments m = moments(wide(DistributionType::kPoisson, 80, 0), SamplerKind::kGeneral);
  EXPECT_NEAR(m.mean, 80, 0.15);
  EXPECT_NEAR(m.deviation, std::sqrt(80.0), 0.1);
}

TEST(Distribution, MeanAndDeviationOfASkewNormalAreItsLocationAndScale) {
  Distribution d = wide(DistributionType::kSkewNormal, 5000, 500);
  d.skew = 4;
  const Moments m = moments(d, SamplerKind::kGeneral);
  // Azzalini: with b = delta sqrt(2 / pi) and delta = 4 / sqrt(17), the mean is b scales beyond the
  // location, the variance 1 - b^2, the skewness (4 - pi) / 2 b^3 / (1 - b^2)^1.5.
  const double b = 4 / std::sqrt(17.0) * std::sqrt(2 / M_PI);
  EXPECT_NEAR(m.mean, 5000 + 500 * b, 5);
  EXPECT_NEAR(m.deviation, 500 * std::sqrt(1 - b * b), 4);
  EXPECT_NEAR(m.third, (4 - M_PI) / 2 * std::pow(b, 3) / std::pow(1 - b * b, 1.5), 0.03);
}

TEST(Distribution, HalvesRoundToEven) {
  // Normal with deviation 0 is its mean, rounded half to even like numpy.
  RandomStream random(1, Stream::kTest);
  for (const auto& [mean, want] : {std::pair{10.5, 10}, {11.5, 12}, {12.4, 12}, {12.6, 13}})
    EXPECT_EQ(LengthSampler(wide(DistributionType::kNormal, mean, 0)).sample(random), want);
}

TEST(Distribution, RealsKeepTheirBounds) {
  Distribution d;
  d.min = 2;
  d.max = 5;
  d.mean = 3;
  d.std_dev = 100;
  RandomStream random(1, Stream::kLengths);
  int at_bounds = 0;
  for (int i = 0; i < 200; ++i) {
    const double x = LengthSampler(d).sample_real(random);
    EXPECT_GE(x, 2);
    EXPECT_LE(x, 5);
    at_bounds += x == 2 || x == 5 ? 1 : 0;
  }
  EXPECT_GT(at_bounds, 180) << "within 2 of 100 deviations are 1.2 %";
}

TEST(Distribution, ChecksNameTheKey) {
  Diagnostics found;
  Distribution d;
  d.min = 100;
  d.max = 50;
  check_distribution(d, SamplerKind::kGeneral, "data.input_distribution", found);
  ASSERT_EQ(found.items().size(), 1U);
  EXPECT_EQ(found.items()[0].path, "data.input_distribution.min");
  Diagnostics more;
  check_distribution(wide(DistributionType::kPoisson, 5, 0), SamplerKind::kRandomData, "x", more);
  check_distribution(wide(DistributionType::kLognormal, 0, 5), SamplerKind::kGeneral, "x", more);
  EXPECT_EQ(more.items().size(), 2U);
}

TEST(Zipf, FrequenciesFollowTheLaw) {
  const ZipfSampler zipf(100, 1.1);
  RandomStream random(11, Stream::kTest);
  std::vector<double> seen(100);
  constexpr int kDraws = 400'000;
  for (int i = 0; i < kDraws; ++i) seen.at(zipf.sample(random)) += 1;
  double total = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const double p = zipf.probability(i);
    total += p;
    EXPECT_NEAR(seen[i] / kDraws, p, 5 * std::sqrt(p / kDraws)) << "item " << i;
  }
  EXPECT_NEAR(total, 1, 1e-12);
}

TEST(Zipf, ExponentZeroIsUniform) {
  const ZipfSampler uniform(8, 0);
  RandomStream random(12, Stream::kTest);
  std::vector<int> seen(8);
  for (int i = 0; i < 80'000; ++i) ++seen.at(uniform.sample(random));
  for (const int n : seen) EXPECT_NEAR(n, 10'000, 500);
}

}  // namespace
}  // namespace routesim::workloads
