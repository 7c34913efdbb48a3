#include "base/text.h"

#include <gtest/gtest.h>

#include "base/diagnostic.h"

namespace routesim {
namespace {

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
