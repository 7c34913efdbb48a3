#include "base/text.h"

namespace routesim {

namespace {

/// Whether a C1 control in UTF-8 begins at `i`.
bool is_c1(std::string_view text, std::size_t i) {
  return text[i] == '\xC2' && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
}

/// Bytes of the character at `i` that turns the direction of a line, or breaks it, though it is no
/// control of ASCII (U+061C, U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069); 0 for another.
std::size_t directing_length(std::string_view text, std::size_t i) {
  if (text.substr(i, 2) == "\xD8\x9C") return 2;
  const std::string_view start = text.substr(i, 2);
  if (i + 2 >= text.size() || (start != "\xE2\x80" && start != "\xE2\x81")) return 0;
  const auto last = static_cast<unsigned char>(text[i + 2]);
  const bool directs = start == "\xE2\x81"
                           ? last >= 0xA6 && last <= 0xA9
                           : last == 0x8E || last == 0x8F || (last >= 0xA8 && last <= 0xAE);
  return directs ? 3 : 0;
}

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

}  // namespace

std::string escaped(std::string_view text, std::string_view keep) {
  std::string out;
  out.reserve(text.size());
  std::size_t directed = 0;  // The end of the last character that directs the line.
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    if (const std::size_t length = directing_length(text, i); length > 0) directed = i + length;
    // C0 controls, DEL, and the C1 controls, which UTF-8 writes as C2 80 .. C2 9F.
    const bool c1 = is_c1(text, i) || (i > 0 && is_c1(text, i - 1));
    const bool control = byte < 0x20 || byte == 0x7F || c1 || i < directed;
    if (!control || keep.find(c) != std::string_view::npos) {
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      out += "\\x" + hex_digits(byte, 2);
    }
  }
  return out;
}

std::size_t utf8_length(std::string_view text, std::size_t i) {
  const auto lead = static_cast<unsigned char>(text[i]);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const std::size_t extra = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  if (i + extra >= text.size()) return 0;
  std::uint32_t code = lead & (0x3FU >> extra);
  for (std::size_t k = 1; k <= extra; ++k) {
    const auto byte = static_cast<unsigned char>(text[i + k]);
    if ((byte & 0xC0U) != 0x80U) return 0;
    code = (code << 6U) | (byte & 0x3FU);
  }
  const bool overlong = (extra == 2 && code < 0x800) || (extra == 3 && code < 0x10000);
  const bool is_surrogate = code >= 0xD800 && code < 0xE000;
  return overlong || is_surrogate || code > 0x10FFFF ? 0 : extra + 1;
}

std::size_t first_not_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = text[i] == '\0' ? 0 : utf8_length(text, i);
    if (length == 0) return i;
    i += length;
  }
  return std::string_view::npos;
}

std::string_view head_of(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  std::size_t end = max_bytes;
  while (end > 0 && is_continuation(text[end])) --end;
  return text.substr(0, end);
}

std::string shortened(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  constexpr std::string_view kGap = " [...] ";
  const std::size_t tail = max_bytes / 4;
  std::size_t begin = text.size() - tail;
  while (begin < text.size() && is_continuation(text[begin])) ++begin;
  std::string out(head_of(text, max_bytes - tail - kGap.size()));
  out += kGap;
  out += text.substr(begin);
  return out;
}

std::string_view trimmed(std::string_view text, std::string_view blanks) {
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string out;
  for (std::size_t i = 0; i < text.size(); i += 4) {
    std::uint32_t bits = 0;
    int padding = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      const char c = text[i + j];
      if (c == '=' && j >= 2 && i + 4 == text.size()) {
        ++padding;
        bits <<= 6;
        continue;
      }
      const std::size_t digit = kBase64.find(c);
      if (digit == std::string_view::npos || padding > 0) return std::nullopt;
      bits = bits << 6 | static_cast<std::uint32_t>(digit);
    }
    for (int b = 0; b < 3 - padding; ++b)
      out.push_back(static_cast<char>(bits >> (16 - 8 * b) & 0xff));
  }
  return out;
}

std::string encode_base64(std::string_view bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    const std::size_t n = bytes.size() - i < 3 ? bytes.size() - i : 3;
    for (std::size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (j < n ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    for (std::size_t j = 0; j < 4; ++j)
      out.push_back(j <= n ? kBase64[bits >> (18 - 6 * j) & 0x3f] : '=');
  }
  return out;
}

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

std::string hex_digits(std::uint64_t number, std::size_t count) {
  std::string out(count, '0');
  for (std::size_t i = count; i-- > 0; number >>= 4U) out[i] = "0123456789abcdef"[number & 0xFU];
  return out;
}

std::string encode_hex(std::span<const std::uint8_t> bytes) {
  std::string out;
  for (const std::uint8_t byte : bytes) out += hex_digits(byte, 2);
  return out;
}

std::string percent_encoded(std::string_view text, std::string_view keep) {
  std::string out;
  for (const char c : text) {
    if (keep.find(c) != std::string_view::npos) {
      out += c;
      continue;
    }
    out += '%';
    for (const char digit : hex_digits(static_cast<unsigned char>(c), 2))
      out += static_cast<char>(digit >= 'a' ? digit - 'a' + 'A' : digit);
  }
  return out;
}

std::optional<std::string> decode_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string out;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = hex_value(text[i]);
    const int low = hex_value(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out.push_back(static_cast<char>(high * 16 + low));
  }
  return out;
}

std::string printable(std::string_view text, std::size_t max_bytes) {
  const std::string_view head = head_of(text, max_bytes);
  return escaped(head) + (head.size() < text.size() ? "..." : "");
}

std::string in_quotes(std::string_view text) {
  std::string out(1, '\'');
  out.append(printable(text));
  out.push_back('\'');
  return out;
}

}  // namespace routesim
