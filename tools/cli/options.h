// Command-line options of one command, parsed strictly.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/describe.h"

namespace routesim::tools {

/// One option. All values are text; the command types them, so that messages are ours.
struct OptionSpec {
  std::string name;        ///< Long name, with a short one after a comma: "output,o".
  std::string value_name;  ///< Shown in help; empty for a switch.
  std::string help;
  bool repeatable = false;
  /// Not empty: the value may be left out and is this; when given it follows `=`.
  std::string implicit_value = {};
  /// What shell completion offers as values, when they are few.
  std::vector<std::string> choices = {};
};

/// The positional arguments of a command.
struct PositionalSpec {
  std::string name;  ///< Shown in help, such as SCENARIO.
  std::size_t min = 0;
  std::size_t max = 0;
};

/// What was given.
struct OptionValues {
  std::map<std::string, std::vector<std::string>> values;  ///< By long name.
  std::vector<std::string> positionals;

  bool has(const std::string& name) const { return values.contains(name); }
  /// The only value of a non-repeatable option, or `fallback`.
  std::string get(const std::string& name, const std::string& fallback = {}) const;
  const std::vector<std::string>& all(const std::string& name) const;
};

/// Parses `arguments` (without program and command name). On a usage error returns nothing and
/// sets `error` to one sentence, with a suggestion where there is one.
std::optional<OptionValues> parse_options(const std::vector<OptionSpec>& options,
                                          const PositionalSpec& positional,
                                          const std::vector<std::string>& arguments,
                                          std::string& error);

/// The whole number given for an option; nothing when it was not given, or, with `error` set, when
/// it is none or outside `range`.
std::optional<std::int64_t> whole_number(const OptionValues& options, const std::string& name,
                                         IntRange range, std::string& error);

/// The options as an indented list for --help.
std::string options_help(const std::vector<OptionSpec>& options);

}  // namespace routesim::tools
