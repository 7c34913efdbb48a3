#include "workloads/prompts.h"

#include <set>

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

}  // namespace
}  // namespace routesim::workloads
