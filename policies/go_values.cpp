#include "policies/go_values.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace routesim::policies {
namespace {

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

std::string lowered(std::string_view s) {
  std::string out(s);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

// Consumes digits with an optional fraction; false when there is no digit.
bool take_number(std::string_view& s, double& value) {
  std::size_t n = 0;
  bool digit = false;
  while (n < s.size() && ((s[n] >= '0' && s[n] <= '9') || s[n] == '.')) {
    digit = digit || s[n] != '.';
    ++n;
  }
  if (!digit) return false;
  const auto [end, error] = std::from_chars(s.data(), s.data() + n, value);
  if (error != std::errc() || end != s.data() + n) return false;
  s.remove_prefix(n);
  return true;
}

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::optional<Duration> parse_go_duration(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (text == "0") return Duration::zero();
  if (text.empty()) return std::nullopt;
  // Longer names first, so that "ms" is not read as "m".
  constexpr std::array<std::pair<std::string_view, double>, 8> kUnits = {{{"ns", 1},
                                                                          {"us", 1e3},
                                                                          {"µs", 1e3},
                                                                          {"μs", 1e3},
                                                                          {"ms", 1e6},
                                                                          {"s", 1e9},
                                                                          {"m", 6e10},
                                                                          {"h", 3.6e12}}};
  double total = 0;
  while (!text.empty()) {
    double value = 0;
    if (!take_number(text, value)) return std::nullopt;
    double unit = 0;
    for (const auto& [suffix, ns] : kUnits) {
      if (text.substr(0, suffix.size()) == suffix) {
        unit = ns;
        text.remove_prefix(suffix.size());
        break;
      }
    }
    if (unit == 0) return std::nullopt;
    total += value * unit;
  }
  if (total >= 9.2e18) return std::nullopt;
  const auto ns = static_cast<std::int64_t>(std::llround(total));
  return Duration::nanoseconds(negative ? -ns : ns);
}

std::optional<bool> parse_go_bool(std::string_view text) {
  const std::string t = lowered(trim(text));
  if (t == "1" || t == "t" || t == "true") return true;
  if (t == "0" || t == "f" || t == "false") return false;
  return std::nullopt;
}

std::optional<std::int64_t> parse_quantity(std::string_view text) {
  text = trim(text);
  double value = 0;
  if (!take_number(text, value)) return std::nullopt;
  if (text.size() > 1 && (text[0] == 'e' || text[0] == 'E') && text[1] >= '0' && text[1] <= '9') {
    int exponent = 0;
    const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), exponent);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    value *= std::pow(10.0, exponent);
    text = {};
  }
  constexpr std::array<std::pair<std::string_view, double>, 13> kUnits = {{{"", 1},
                                                                           {"k", 1e3},
                                                                           {"M", 1e6},
                                                                           {"G", 1e9},
                                                                           {"T", 1e12},
                                                                           {"P", 1e15},
                                                                           {"E", 1e18},
                                                                           {"Ki", 0x1p10},
                                                                           {"Mi", 0x1p20},
                                                                           {"Gi", 0x1p30},
                                                                           {"Ti", 0x1p40},
                                                                           {"Pi", 0x1p50},
                                                                           {"Ei", 0x1p60}}};
  for (const auto& [suffix, unit] : kUnits) {
    if (text != suffix) continue;
    const double total = std::ceil(value * unit);  // Quantities round up to whole numbers.
    if (!(total < 9.2e18)) return std::nullopt;
    return static_cast<std::int64_t>(total);
  }
  return std::nullopt;
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

}  // namespace routesim::policies
