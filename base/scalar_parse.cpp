#include "base/scalar_parse.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace routesim {

namespace {

template <class T>
Parsed<T> wrong(std::string message, std::string hint = {}) {
  return {.value = std::nullopt, .message = std::move(message), .hint = std::move(hint)};
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view without_sign(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return text;
}

bool all_digits(std::string_view text) {
  for (const char c : text)
    if (!is_digit(c)) return false;
  return !text.empty();
}

/// Decimal digits with a leading zero, which YAML 1.1 reads as octal and YAML 1.2 as decimal.
bool has_leading_zero(std::string_view text) {
  text = without_sign(text);
  return text.size() > 1 && text[0] == '0' && is_digit(text[1]);
}

/// [-+]? (digits [. digits?] | . digits) ([eE] [-+]? digits)?
bool is_decimal_number(std::string_view text) {
  text = without_sign(text);
  std::size_t i = 0;
  std::size_t digits = 0;
  while (i < text.size() && is_digit(text[i])) ++i, ++digits;
  if (i < text.size() && text[i] == '.') {
    ++i;
    while (i < text.size() && is_digit(text[i])) ++i, ++digits;
  }
  if (digits == 0) return false;
  if (i == text.size()) return true;
  if (text[i] != 'e' && text[i] != 'E') return false;
  return all_digits(without_sign(text.substr(i + 1)));
}

bool is_any(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words)
    if (text == word) return true;
  return false;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

/// Why a word that looks like a number to a person is not accepted as one; "" when it does not.
std::string number_hint(std::string_view text) {
  const std::string low = lower(without_sign(text));
  if (low == "inf" || low == "infinity") return "write .inf, where infinity is allowed";
  if (has_leading_zero(text))
    return "a leading zero means octal to some YAML readers: write the number without it";
  if (low.starts_with("0x") || low.starts_with("0o") || low.starts_with("0b"))
    return "write the number in decimal";
  if (low.find('_') != std::string::npos && is_digit(low[0])) return "write it without underscores";
  if (low.find(',') != std::string::npos && is_digit(low[0]))
    return "write it without thousands separators, with a point for decimals";
  return {};
}

/// A node that must be a scalar holding a bare number. Empty message when it may be one.
std::string expect_bare(const ConfigNode& node, const std::string& what, std::string& hint) {
  const bool bare = node.is_scalar() && (node.style() == ConfigNode::Style::kPlain ||
                                         node.style() == ConfigNode::Style::kUntyped);
  if (bare) return {};
  if (node.is_scalar() && is_decimal_number(node.text())) hint = "remove the quotes";
  return "must be " + what + " (" + got(node) + ")";
}

template <class T>
std::string below_or_above(T value, T min, T max, bool min_open, bool max_open,
                           const std::string& value_text, const std::string& min_text,
                           const std::string& max_text) {
  if (value < min || (min_open && value == min))
    return std::string("must be ") + (min_open ? "greater than " : "at least ") + min_text +
           " (got " + value_text + ")";
  if (value > max || (max_open && value == max))
    return std::string("must be ") + (max_open ? "less than " : "at most ") + max_text + " (got " +
           value_text + ")";
  return {};
}

/// Parses decimal text already checked by is_decimal_number; null when it does not fit a double.
std::optional<double> to_double(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Unit {
  std::string_view suffix;
  double seconds;
};
constexpr std::array<Unit, 6> kUnits = {
    {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}, {"m", 60.0}, {"h", 3600.0}}};

}  // namespace

std::string got(const ConfigNode& node) {
  switch (node.kind()) {
    case ConfigNode::Kind::kNull:
      return "got nothing";
    case ConfigNode::Kind::kSequence:
      return node.items().empty() ? "got an empty list" : "got a list";
    case ConfigNode::Kind::kMap:
      return node.members().empty() ? "got an empty map" : "got a map";
    case ConfigNode::Kind::kScalar:
      break;
  }
  if (node.style() == ConfigNode::Style::kQuoted || node.style() == ConfigNode::Style::kBlock)
    return "got text \"" + printable(node.text()) + "\"";
  return "got " + printable(node.text());
}

PlainType plain_type(std::string_view text) {
  if (is_any(text, {"true", "True", "TRUE", "false", "False", "FALSE"})) return PlainType::kBool;
  if (all_digits(without_sign(text))) return PlainType::kInteger;
  if (is_decimal_number(text)) return PlainType::kReal;
  const std::string_view bare = without_sign(text);
  if (is_any(bare, {".inf", ".Inf", ".INF"}) || is_any(text, {".nan", ".NaN", ".NAN"}))
    return PlainType::kNotFinite;
  return PlainType::kText;
}

Parsed<bool> parse_bool(const ConfigNode& node) {
  std::string hint;
  std::string message = expect_bare(node, "true or false", hint);
  if (!message.empty()) {
    if (node.is_scalar() && plain_type(node.text()) == PlainType::kBool) hint = "remove the quotes";
    return wrong<bool>(std::move(message), hint);
  }
  if (plain_type(node.text()) == PlainType::kBool)
    return {.value = node.text()[0] == 't' || node.text()[0] == 'T', .message = {}, .hint = {}};
  const std::string low = lower(node.text());
  if (is_any(low, {"yes", "on", "y"})) hint = "write true";
  if (is_any(low, {"no", "off", "n"})) hint = "write false";
  return wrong<bool>("must be true or false (" + got(node) + ")", hint);
}

Parsed<std::int64_t> parse_integer(const ConfigNode& node, const IntRange& range) {
  using R = std::int64_t;
  std::string hint;
  std::string message = expect_bare(node, "a whole number", hint);
  if (!message.empty()) return wrong<R>(std::move(message), hint);
  const std::string& text = node.text();
  if (plain_type(text) != PlainType::kInteger || has_leading_zero(text)) {
    hint = number_hint(text);
    const std::optional<double> real = is_decimal_number(text) ? to_double(text) : std::nullopt;
    if (hint.empty() && real && std::abs(*real) < 1e15 && std::trunc(*real) == *real)
      hint = "write " + std::to_string(static_cast<R>(*real));
    return wrong<R>("must be a whole number (" + got(node) + ")", hint);
  }
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  R value = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc{}) {
    const bool negative = digits.starts_with('-');
    value = negative ? std::numeric_limits<R>::min() : std::numeric_limits<R>::max();
    if (negative ? range.min == value : range.max == value)
      return wrong<R>((negative ? "must be at least " : "must be at most ") +
                      std::to_string(value) + " (" + got(node) + ")");
  }
  message = below_or_above(value, range.min, range.max, false, false, printable(text),
                           std::to_string(range.min), std::to_string(range.max));
  if (!message.empty()) return wrong<R>(std::move(message));
  return {.value = value, .message = {}, .hint = {}};
}

Parsed<double> parse_real(const ConfigNode& node, const RealRange& range) {
  std::string hint;
  std::string message = expect_bare(node, "a number", hint);
  if (!message.empty()) return wrong<double>(std::move(message), hint);
  const std::string& text = node.text();
  double value = 0;
  const bool infinite = lower(without_sign(text)) == ".inf";
  if (infinite && range.allow_infinity) {
    value = text[0] == '-' ? -std::numeric_limits<double>::infinity()
                           : std::numeric_limits<double>::infinity();
  } else if (infinite) {
    return wrong<double>("must be finite (" + got(node) + ")");
  } else if (!is_decimal_number(text) || has_leading_zero(text)) {
    return wrong<double>("must be a number (" + got(node) + ")", number_hint(text));
  } else {
    const std::optional<double> parsed = to_double(text);
    if (!parsed || !std::isfinite(*parsed))
      return wrong<double>("must fit a double-precision number (" + got(node) + ")");
    value = *parsed;
  }
  message = below_or_above(value, range.min, range.max, range.min_open, range.max_open,
                           printable(text), number_text(range.min), number_text(range.max));
  if (!message.empty()) return wrong<double>(std::move(message));
  return {.value = value, .message = {}, .hint = {}};
}

Parsed<double> parse_real(std::string_view text, const RealRange& range) {
  return parse_real(*ConfigNode::make_scalar(std::string(text), ConfigNode::Style::kUntyped, {}),
                    range);
}

Parsed<Duration> parse_duration(const ConfigNode& node, const DurationRange& range) {
  constexpr std::string_view kHint = "write 250ms, 1.5s, 2m, 1h, or a bare number of seconds";
  const std::string message = "must be a duration (" + got(node) + ")";
  if (!node.is_scalar() || node.style() == ConfigNode::Style::kBlock)
    return wrong<Duration>(message, std::string(kHint));
  std::string_view number = node.text();
  double scale = 1.0;
  if (node.style() == ConfigNode::Style::kQuoted && is_decimal_number(number))
    return wrong<Duration>(message, "remove the quotes, or add a unit");
  std::size_t unit_start = number.size();
  while (unit_start > 0 && number[unit_start - 1] >= 'a' && number[unit_start - 1] <= 'z')
    --unit_start;
  const std::string_view suffix = number.substr(unit_start);
  if (!suffix.empty()) {
    scale = 0;
    for (const Unit& unit : kUnits)
      if (unit.suffix == suffix) scale = unit.seconds;
    number = number.substr(0, unit_start);
  }
  if (scale == 0 || !is_decimal_number(number) || has_leading_zero(number))
    return wrong<Duration>(message, std::string(kHint));
  const std::optional<double> value = to_double(number);
  if (!value || std::abs(*value * scale) > 9.2e9)
    return wrong<Duration>("must be shorter than 292 years (" + got(node) + ")");
  // Dividing by the exact 1e3, 1e6 or 1e9 rounds better than multiplying by its inverse.
  const double seconds = scale < 1 ? *value / std::round(1 / scale) : *value * scale;
  const Duration duration = Duration::from_seconds(seconds);
  std::string bounds =
      below_or_above(duration, range.min, range.max, false, false, printable(node.text()),
                     duration_text(range.min), duration_text(range.max));
  if (!bounds.empty()) return wrong<Duration>(std::move(bounds));
  return {.value = duration, .message = {}, .hint = {}};
}

std::optional<Duration> go_duration(std::string_view text) {
  const bool negative = text.starts_with('-');
  text = without_sign(text);
  if (text == "0") return Duration::zero();
  if (text.empty()) return std::nullopt;
  // Longer names first, so that "ms" is not read as "m".
  constexpr std::array<std::pair<std::string_view, double>, 8> kGoUnits = {{{"ns", 1},
                                                                            {"us", 1e3},
                                                                            {"µs", 1e3},
                                                                            {"μs", 1e3},
                                                                            {"ms", 1e6},
                                                                            {"s", 1e9},
                                                                            {"m", 6e10},
                                                                            {"h", 3.6e12}}};
  double total = 0;
  while (!text.empty()) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
    const std::optional<double> value = number_from(text.substr(0, digits));
    if (!value) return std::nullopt;
    text.remove_prefix(digits);
    const auto unit = std::find_if(kGoUnits.begin(), kGoUnits.end(),
                                   [&](const auto& u) { return text.starts_with(u.first); });
    if (unit == kGoUnits.end()) return std::nullopt;
    text.remove_prefix(unit->first.size());
    total += *value * unit->second;
  }
  if (total >= 9.2e18) return std::nullopt;
  const auto ns = static_cast<std::int64_t>(std::llround(total));
  return Duration::nanoseconds(negative ? -ns : ns);
}

Parsed<Duration> parse_go_duration(const ConfigNode& node, const DurationRange& range) {
  const std::optional<Duration> value = node.is_text() ? go_duration(node.text()) : std::nullopt;
  if (!value) return wrong<Duration>("must be a duration such as 500ms or 2m (" + got(node) + ")");
  std::string bounds =
      below_or_above(*value, range.min, range.max, false, false, printable(node.text()),
                     duration_text(range.min), duration_text(range.max));
  if (!bounds.empty()) return wrong<Duration>(std::move(bounds));
  return {.value = value, .message = {}, .hint = {}};
}

Parsed<std::string> parse_text(const ConfigNode& node) {
  if (!node.is_scalar()) return wrong<std::string>("must be text (" + got(node) + ")");
  if (node.style() == ConfigNode::Style::kPlain && plain_type(node.text()) != PlainType::kText)
    return wrong<std::string>("must be text (" + got(node) + ")", "put quotes around it");
  return {.value = node.text(), .message = {}, .hint = {}};
}

Parsed<std::size_t> parse_choice(const ConfigNode& node, std::span<const std::string_view> names) {
  std::string list;
  std::vector<std::string> candidates;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (node.is_scalar() && node.text() == names[i]) return {.value = i, .message = {}, .hint = {}};
    list += (i == 0 ? "" : ", ") + std::string(names[i]);
    candidates.emplace_back(names[i]);
  }
  std::string hint;
  const std::string close = node.is_scalar() ? nearest(lower(node.text()), candidates) : "";
  if (!close.empty()) hint = "did you mean " + close + "?";
  // A long list hides the hint.
  constexpr std::size_t kMostListed = 20;
  if (names.size() > kMostListed && !close.empty())
    return wrong<std::size_t>("is none of the known names (" + got(node) + ")", hint);
  return wrong<std::size_t>("must be one of " + list + " (" + got(node) + ")", hint);
}

}  // namespace routesim
