// Strict typing of one configuration value. The rules are YAML 1.2's core schema minus its traps:
// `010`, `0o10`, `0x1F`, `1_000`, `yes`, `.nan` and quoted numbers are refused, each with a hint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/config_node.h"
#include "base/describe.h"

namespace routesim {

/// A value, or what is wrong with it.
template <class T>
struct Parsed {
  std::optional<T> value;
  std::string message;  ///< `must be ... (got ...)`, empty on success.
  std::string hint;
};

Parsed<bool> parse_bool(const ConfigNode& node);
Parsed<std::int64_t> parse_integer(const ConfigNode& node, const IntRange& range);
Parsed<double> parse_real(const ConfigNode& node, const RealRange& range);
/// The same for text from a command line or a table cell, which carries no type.
Parsed<double> parse_real(std::string_view text, const RealRange& range);
/// `250ms`, `1.5s`, `2m`, `1h`, `300us`, `10ns`, or a bare number of seconds.
Parsed<Duration> parse_duration(const ConfigNode& node, const DurationRange& range);
/// A duration as Go writes it, see go_duration: text, never a bare number.
Parsed<Duration> parse_go_duration(const ConfigNode& node, const DurationRange& range);
/// Go's time.ParseDuration: "300ms", "1.5s", "2m", "1h30m", "-1s", "0". Nothing when malformed or
/// out of the range of a Duration.
std::optional<Duration> go_duration(std::string_view text);
/// Quoted text, or plain text that is not a number, a boolean or null.
Parsed<std::string> parse_text(const ConfigNode& node);
/// An index into `names`.
Parsed<std::size_t> parse_choice(const ConfigNode& node, std::span<const std::string_view> names);

/// The type of a plain scalar in YAML 1.2's core schema.
enum class PlainType { kBool, kInteger, kReal, kNotFinite, kText };
PlainType plain_type(std::string_view text);

/// `got 5`, `got text "5"`, `got a list`, `got a map`, `got nothing`: the end of a message.
std::string got(const ConfigNode& node);

/// In the largest unit that keeps it whole: `2s`, `1500ms`.
std::string duration_text(Duration d);
/// Shortest decimal that reads back as the same number; the same bytes from every compiler.
std::string number_text(double v);
/// The number that is the whole of `text`, as std::from_chars reads it; nothing for other text.
std::optional<double> number_from(std::string_view text);
/// `v` with so many significant digits.
double with_digits(double v, int digits);

/// Text of the bounds for documentation: `1 to 64`, `at least 0`, `above 0`; empty when unbounded.
std::string range_text(const IntRange& range);
std::string range_text(const RealRange& range);
std::string range_text(const DurationRange& range);

}  // namespace routesim
