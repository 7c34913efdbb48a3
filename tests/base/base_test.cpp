// The smallest parts: what becomes of keys, random numbers, text.
#include <gtest/gtest.h>

#include <array>

#include "base/diagnostic.h"
#include "base/key_fate.h"
#include "base/rng.h"
#include "base/text.h"

namespace routesim {
namespace {

constexpr std::array kRules = {
    KeyRule{"load.stages[].rate"},
    KeyRule{"load.*", Fate::kNoEffect, "one key, any name"},
    KeyRule{"load.**", Fate::kNotModelled, "anything below"},
    KeyRule{"load.type", Fate::kApproximated, "literal"},
    KeyRule{"matrix[][]", Fate::kUsed},
};
constexpr KeyTable kTable = {"test", "nowhere", kRules};

std::string_view reason(std::string_view path) {
  const KeyRule* rule = find_rule(kTable, path);
  return rule == nullptr ? "none" : rule->why;
}

TEST(KeyTable, PrefersTheMostSpecificRule) {
  EXPECT_EQ(reason("load.stages[12].rate"), "");
  EXPECT_EQ(reason("load.type"), "literal");
  EXPECT_EQ(reason("load.other"), "one key, any name");
  EXPECT_EQ(reason("load.other.deep"), "anything below");
  EXPECT_EQ(reason("load.stages[0].other"), "anything below");
  EXPECT_EQ(reason("matrix[1][2]"), "");
}

TEST(KeyTable, AnswersNothingForOtherPaths) {
  EXPECT_EQ(reason("load"), "none");
  EXPECT_EQ(reason("loader.type"), "none");
  EXPECT_EQ(reason("matrix[1]"), "none");
  EXPECT_EQ(reason("matrix.a"), "none");
  EXPECT_EQ(reason(""), "none");
}

TEST(KeyTable, TwoStarsInFrontStandForAnyKeysOrNone) {
  constexpr std::array kDeep = {
      KeyRule{"**", Fate::kNoEffect, "anything"},
      KeyRule{"**.image.tag", Fate::kApproximated, "a tag"},
      KeyRule{"spec.image.tag", Fate::kApproximated, "this tag"},
      KeyRule{"**.env[].*", Fate::kApproximated, "a variable"},
  };
  const KeyTable table = {"test", "nowhere", kDeep};
  const auto why = [&](std::string_view path) { return find_rule(table, path)->why; };
  EXPECT_EQ(why("image.tag"), "a tag");
  EXPECT_EQ(why("a.b[2].image.tag"), "a tag");
  EXPECT_EQ(why("spec.image.tag"), "this tag");
  EXPECT_EQ(why("image.tag.more"), "anything");
  EXPECT_EQ(why("pod.env[3].name"), "a variable");
}

TEST(RandomStream, IsAFunctionOfSeedStreamAndEntity) {
  RandomStream a(7, Stream::kTest, 3), b(7, Stream::kTest, 3);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.next(), b.next());
  EXPECT_NE(RandomStream(7, Stream::kTest, 3).next(), RandomStream(8, Stream::kTest, 3).next());
  EXPECT_NE(RandomStream(7, Stream::kTest, 3).next(), RandomStream(7, Stream::kTest, 4).next());
  EXPECT_NE(RandomStream(7, Stream::kTest, 3).next(), RandomStream(7, Stream::kPicker, 3).next());
}

TEST(RandomStream, MatchesThePublishedPhiloxVector) {
  // Known answer of Random123: philox4x32-10, counter 0, key 0, starts 6627e8d5 e169c58d.
  EXPECT_EQ(RandomStream(0, static_cast<Stream>(0), 0).next(), 0xe169c58d6627e8d5ULL);
}

struct Moments {
  double mean = 0, variance = 0;
};
template <class Draw>
Moments moments(Draw draw, int n = 200'000) {
  double sum = 0, squares = 0;
  for (int i = 0; i < n; ++i) {
    const double x = draw();
    sum += x;
    squares += x * x;
  }
  const double mean = sum / n;
  return {mean, squares / n - mean * mean};
}

TEST(RandomStream, DistributionsHaveTheirMoments) {
  RandomStream r(1, Stream::kTest);
  const Moments exponential = moments([&] { return r.exponential(2.0); });
  EXPECT_NEAR(exponential.mean, 2.0, 0.03);
  EXPECT_NEAR(exponential.variance, 4.0, 0.12);
  const Moments normal = moments([&] { return r.normal(); });
  EXPECT_NEAR(normal.mean, 0.0, 0.01);
  EXPECT_NEAR(normal.variance, 1.0, 0.02);
  for (const double mean : {0.5, 7.0, 60.0, 900.0}) {
    const Moments poisson = moments([&] { return static_cast<double>(r.poisson(mean)); });
    EXPECT_NEAR(poisson.mean, mean, 0.02 * mean + 0.01) << mean;
    EXPECT_NEAR(poisson.variance, mean, 0.03 * mean + 0.01) << mean;
  }
  for (const double shape : {0.3, 1.0, 5.0}) {
    const Moments gamma = moments([&] { return r.gamma(shape, 2.0); });
    EXPECT_NEAR(gamma.mean, shape * 2, 0.03 * shape * 2) << shape;
    EXPECT_NEAR(gamma.variance, shape * 4, 0.06 * shape * 4) << shape;
  }
}

TEST(RandomStream, BelowIsUniform) {
  RandomStream r(1, Stream::kTest, 9);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70'000; ++i) ++counts[r.below(7)];
  double chi2 = 0;
  for (const int c : counts) chi2 += (c - 10'000.0) * (c - 10'000.0) / 10'000.0;
  EXPECT_LT(chi2, 22.5);  // 99.9 % quantile of chi-square with 6 degrees of freedom
}

using namespace std::string_literals;

TEST(Text, ControlCharactersAreEscapedUnlessKept) {
  EXPECT_EQ(escaped("a\x1b[31m\0\n\t\x7f"s), R"(a\x1b[31m\x00\n\t\x7f)");
  EXPECT_EQ(escaped("a\n\tb", "\n"), "a\n\\tb");
  // Characters that turn or break a line: U+202E, U+2066, U+2028 and U+061C; U+20AC does not.
  EXPECT_EQ(escaped("\xE2\x80\xAE \xE2\x81\xA6 \xE2\x80\xA8 \xD8\x9C \xE2\x82\xAC"),
            "\\xe2\\x80\\xae \\xe2\\x81\\xa6 \\xe2\\x80\\xa8 \\xd8\\x9c \xE2\x82\xAC");
  // U+009B starts a control sequence in terminals that know eight-bit controls; U+00E9 is a letter.
  EXPECT_EQ(escaped("\xC2\x9B \xC3\xA9"), "\\xc2\\x9b \xC3\xA9");
}

TEST(Text, ALongTextKeepsItsBeginAndItsEnd) {
  EXPECT_EQ(shortened("short", 5), "short");
  const std::string cut = shortened("begin" + std::string(1000, 'x') + "end", 40);
  EXPECT_LE(cut.size(), 40U);
  EXPECT_TRUE(cut.starts_with("beginx") && cut.ends_with("xend")) << cut;
  EXPECT_NE(cut.find(" [...] "), std::string::npos) << cut;
  // Never inside a character of two bytes.
  for (std::size_t n = 20; n < 40; ++n) {
    std::string letters;
    for (int i = 0; i < 100; ++i) letters += "\xC3\xA9";
    const std::string half = shortened(letters, n);
    const std::size_t gap = half.find(" [...] ");
    EXPECT_EQ(gap % 2, 0U);
    EXPECT_EQ((half.size() - gap - 7) % 2, 0U);
  }
}

TEST(Text, HexadecimalDigits) {
  EXPECT_EQ(hex_digits(0x0123456789abcdef), "0123456789abcdef");
  EXPECT_EQ(hex_digits(0), "0000000000000000");
  EXPECT_EQ(hex_digits(0x1ff, 2), "ff");
  EXPECT_EQ(encode_hex({}), "");
  const std::array<std::uint8_t, 3> bytes = {0x00, 0x7f, 0xa5};
  EXPECT_EQ(encode_hex(bytes), "007fa5");
  EXPECT_EQ(decode_hex("007Fa5"), "\0\x7f\xa5"s);
  EXPECT_EQ(decode_hex("0"), std::nullopt);
  EXPECT_EQ(decode_hex("0g"), std::nullopt);
  for (const char c : "/:@G`g"s) EXPECT_EQ(hex_value(c), -1) << c;  // Neighbours of the digits.
}

TEST(Text, PercentEncoding) {
  EXPECT_EQ(percent_encoded("a/b \xC3\xA9", "ab"), "a%2Fb%20%C3%A9");
  EXPECT_EQ(percent_encoded("", "ab"), "");
}

TEST(Text, ADiagnosticIsSafeAndShort) {
  const Diagnostic d{.where = {.file = "a\x1b.yaml", .line = 1, .column = 2},
                     .path = "k\x07",
                     .message = "is wrong (got " + std::string(10'000'000, 'x') + ")",
                     .hint = "h\x1b"};
  const std::string text = to_string(d);
  EXPECT_TRUE(text.starts_with(R"(a\x1b.yaml:1:2: error: k\x07: is wrong (got xxx)")) << text;
  EXPECT_TRUE(text.ends_with(R"(xxx)
  hint: h\x1b)"))
      << text.substr(text.size() - 40);
  EXPECT_LT(text.size(), 3'000U);
  // Nor does it take the time of ten million times ten million steps.
  EXPECT_EQ(nearest(std::string(10'000'000, 'x'), {"replicas", "rate"}), "");
}

}  // namespace
}  // namespace routesim
