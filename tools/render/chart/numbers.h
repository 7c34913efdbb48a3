// Numbers as people read them: three significant digits, the fitting unit.
#pragma once

#include <string>
#include <string_view>

namespace routesim::tools {

/// The thing that a number counts; it decides how a number is written and what an axis says.
enum class Unit {
  kNone,
  kSeconds,          ///< Written as µs, ms, s, min or h.
  kTokensPerSecond,  ///< Thousands as k.
  kRequestsPerSecond,
  kRatio,    ///< 0..1, written in percent.
  kPercent,  ///< Written as it is, with its sign.
  kCount,
  kDollars
};

/// `213 ms`, `12.5 k`, `97.3 %`; `with_unit` false leaves the unit name out where a heading says it
/// (never the ms of a time nor the %). A number and its unit are joined by a no-break space.
std::string human(double value, Unit unit, bool with_unit = true);

/// A time since the start: `90 s`, `12 min 30 s`, `3 h 05 min`, parts that are 0 left out.
/// `by_clock`: the time of a day that begins at the start, `13:05` or `13:05:30`.
std::string clock_text(double seconds, bool by_clock = false);

/// How many times larger `a` is than `b` in words: `2.1 times`, `260 times`.
std::string times(double a, double b);

/// `+12.3 %`; of ratios `+4.0 points`; `–` where there is nothing to divide by.
std::string change_text(double from, double to, Unit unit);

/// The label of an axis with this unit after the name, in parentheses; may be empty.
std::string_view axis_unit(Unit unit);

/// The unit as the page's script knows it: `s`, `tok/s`, `req/s`, `ratio`, `%`, `$` or `-`.
std::string_view unit_code(Unit unit);

/// `text` with &, <, >, " and ' as entities, control characters dropped: safe in HTML text and
/// attributes.
std::string html(std::string_view text);

}  // namespace routesim::tools
