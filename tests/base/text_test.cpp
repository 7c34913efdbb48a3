#include "base/text.h"

#include <gtest/gtest.h>

#include <array>

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
