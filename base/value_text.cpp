// How values and bounds are written in messages, in the resolved echo and in the reference.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "base/scalar_parse.h"

namespace routesim {

std::string number_text(double v) {
  if (std::isnan(v)) return ".nan";
  if (std::isinf(v)) return v > 0 ? ".inf" : "-.inf";
  return fmt::format("{}", v);
}

std::optional<double> number_from(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  return result.ec == std::errc{} && result.ptr == end ? std::optional(value) : std::nullopt;
}

double with_digits(double v, int digits) {
  std::array<char, 40> text{};
  const auto written =
      std::to_chars(text.data(), text.data() + text.size(), v, std::chars_format::general, digits);
  return number_from({text.data(), written.ptr}).value_or(v);
}

std::string duration_text(Duration d) {
  struct Unit {
    std::string_view suffix;
    std::int64_t ns;
  };
  constexpr std::array<Unit, 4> kUnits = {
      {{"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1}}};
  if (d == Duration::zero()) return "0s";
  for (const Unit& unit : kUnits)
    if (d.ns() % unit.ns == 0) return std::to_string(d.ns() / unit.ns) + std::string(unit.suffix);
  return std::to_string(d.ns()) + "ns";
}

std::string range_text(const IntRange& range) {
  const bool low = range.min != std::numeric_limits<std::int64_t>::min();
  const bool high = range.max < std::numeric_limits<std::int32_t>::max();
  if (low && high) return std::to_string(range.min) + " to " + std::to_string(range.max);
  if (low) return "at least " + std::to_string(range.min);
  if (high) return "at most " + std::to_string(range.max);
  return {};
}

std::string range_text(const RealRange& range) {
  std::string text;
  if (std::isfinite(range.min))
    text = (range.min_open ? "above " : "at least ") + number_text(range.min);
  if (std::isfinite(range.max)) {
    if (!text.empty()) text += ", ";
    text += (range.max_open ? "below " : "at most ") + number_text(range.max);
  }
  return text;
}

std::string range_text(const DurationRange& range) {
  std::string text;
  if (range.min != Duration::nanoseconds(std::numeric_limits<std::int64_t>::min()))
    text = "at least " + duration_text(range.min);
  if (range.max != Duration::max())
    text += (text.empty() ? "at most " : ", at most ") + duration_text(range.max);
  return text;
}

}  // namespace routesim
