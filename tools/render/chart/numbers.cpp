#include "tools/render/chart/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "tools/render/chart/svg.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

/// Three significant digits, as few decimals as that needs.
std::string significant(double value) {
  const double size = std::abs(value);
  if (size >= 99.95 || size == 0) return fixed_text(value, 0);
  if (size >= 9.995) return fixed_text(value, 1);
  if (size >= 0.9995) return fixed_text(value, 2);
  const int decimals = std::min(9, 2 - static_cast<int>(std::floor(std::log10(size))));
  return fixed_text(value, decimals);
}

/// Without zeros (and a point) at the end of the decimals.
std::string without_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

struct Scale {
  double from;
  double factor;
  std::string_view suffix;
};

std::string scaled(double value, const Scale* begin, const Scale* end) {
  const Scale* scale = begin;
  // 999.6 of one unit would round to 1000: it is written in the next.
  for (const Scale* s = begin; s != end; ++s)
    if (std::abs(value) >= s->from * 0.9995) scale = s;
  return without_zeros(significant(value / scale->factor)) + std::string(scale->suffix);
}

std::string seconds_text(double value) {
  constexpr std::array<Scale, 5> kScales = {{{0, 1e-6, "\u00a0µs"},
                                             {1e-3, 1e-3, "\u00a0ms"},
                                             {1, 1, "\u00a0s"},
                                             {600, 60, "\u00a0min"},
                                             {36'000, 3'600, "\u00a0h"}}};
  if (value == 0) return "0\u00a0s";
  return scaled(value, kScales.data(), kScales.data() + kScales.size());
}

std::string plain_text(double value) {
  constexpr std::array<Scale, 4> kScales = {
      {{0, 1, ""}, {10'000, 1e3, "\u00a0k"}, {1e6, 1e6, "\u00a0M"}, {1e9, 1e9, "\u00a0G"}}};
  if (std::abs(value) >= 999.5 && std::abs(value) < 9'995) return fixed_text(value, 0);
  return scaled(value, kScales.data(), kScales.data() + kScales.size());
}

}  // namespace

std::string human(double value, Unit unit, bool with_unit) {
  if (!std::isfinite(value)) return value > 0 ? "∞" : "–";
  switch (unit) {
    case Unit::kSeconds:
      return seconds_text(value);
    case Unit::kRatio:
      return without_zeros(significant(100 * value)) + "\u00a0%";
    case Unit::kPercent:
      return without_zeros(significant(value)) + "\u00a0%";
    case Unit::kTokensPerSecond:
      return plain_text(value) + (with_unit ? "\u00a0tok/s" : "");
    case Unit::kRequestsPerSecond:
      return plain_text(value) + (with_unit ? "\u00a0req/s" : "");
    case Unit::kDollars:
      return std::string("$").append(plain_text(value));
    case Unit::kNone:
    case Unit::kCount:
      break;
  }
  return plain_text(value);
}

std::string clock_text(double seconds, bool by_clock) {
  const auto whole = static_cast<std::int64_t>(seconds);
  const std::int64_t h = whole / 3'600, min = whole / 60, s = whole % 60;
  if (by_clock)
    return fmt::format("{:02}:{:02}", h, min % 60) + (s > 0 ? fmt::format(":{:02}", s) : "");
  if (seconds < 120) return fmt::format("{:.4g} s", seconds);
  if (whole < 7'200) return fmt::format("{} min", min) + (s > 0 ? fmt::format(" {:02} s", s) : "");
  return fmt::format("{} h", h) + (min % 60 > 0 ? fmt::format(" {:02} min", min % 60) : "");
}

std::string times(double a, double b) {
  if (b == 0) return "infinitely";
  const double ratio = a / b;
  return (ratio >= 9.95 ? fixed_text(ratio, 0) : without_zeros(fixed_text(ratio, 1))) + " times";
}

std::string change_text(double from, double to, Unit unit) {
  if (unit == Unit::kRatio) return signed_percent(100 * (to - from)) + " points";
  return from == 0 ? "–" : signed_percent(100 * (to - from) / from) + " %";
}

std::string_view axis_unit(Unit unit) {
  switch (unit) {
    case Unit::kTokensPerSecond:
      return "tokens/s";
    case Unit::kRequestsPerSecond:
      return "requests/s";
    default:
      return "";
  }
}

std::string_view unit_code(Unit unit) {
  switch (unit) {
    case Unit::kSeconds:
      return "s";
    case Unit::kTokensPerSecond:
      return "tok/s";
    case Unit::kRequestsPerSecond:
      return "req/s";
    case Unit::kRatio:
      return "ratio";
    case Unit::kPercent:
      return "%";
    case Unit::kDollars:
      return "$";
    case Unit::kNone:
    case Unit::kCount:
      break;
  }
  return "-";
}

std::string html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (const auto entity = markup_entity(c); !entity.empty()) {
      out += entity;
    } else if (c == '\'') {
      out += "&#39;";
    } else if (byte >= 0x20 || c == '\n' || c == '\t') {
      out += c;
    }
  }
  return out;
}

}  // namespace routesim::tools
