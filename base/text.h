// Text of other people, made safe and short for a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace routesim {

/// Bytes of a message or a hint, however much text it quotes.
inline constexpr std::size_t kLongestMessage = 2000;

/// Control characters as `\x1b` (line breaks as `\n`, tabs as `\t`), except those in `keep`: an
/// input must not be able to drive the terminal. C1 controls in UTF-8 count, too, and what turns
/// the direction of a line.
std::string escaped(std::string_view text, std::string_view keep = {});

/// At most `max_bytes` of the text's begin, cut behind a whole UTF-8 character.
std::string_view head_of(std::string_view text, std::size_t max_bytes);

/// The text, or where it is longer than `max_bytes` its begin, ` [...] ` and its end: what a
/// message says after a quoted text stays.
std::string shortened(std::string_view text, std::size_t max_bytes);

/// Bytes of the UTF-8 character at `i`; 0 when there is none (RFC 3629).
std::size_t utf8_length(std::string_view text, std::size_t i);
/// Offset of the first byte that is NUL or not UTF-8, or npos.
std::size_t first_not_utf8(std::string_view text);
/// The text without the characters of `blanks` at its two ends. O(length).
std::string_view trimmed(std::string_view text, std::string_view blanks = " ");

/// Base64 with padding (RFC 4648 section 4), strict: nothing for other text.
std::optional<std::string> decode_base64(std::string_view text);
std::string encode_base64(std::string_view bytes);
/// Bytes of hexadecimal digits; nothing for other text.
std::optional<std::string> decode_hex(std::string_view text);
/// Two lower-case digits for each byte.
std::string encode_hex(std::span<const std::uint8_t> bytes);
/// The last `count` hexadecimal digits of a number, in lower case.
std::string hex_digits(std::uint64_t number, std::size_t count = 16);
/// The value of a hexadecimal digit of either case, or -1.
int hex_value(char digit);
/// RFC 3986: bytes that `keep` lacks as `%2F`.
std::string percent_encoded(std::string_view text, std::string_view keep);

/// Control characters escaped (a config file must not be able to drive the terminal), line breaks
/// as `\n`, cut with `...` after `max_bytes`, never inside a UTF-8 character.
std::string printable(std::string_view text, std::size_t max_bytes = 60);

/// The same between single quotes.
std::string in_quotes(std::string_view text);

}  // namespace routesim
