// Command-line options: what a command takes, and the values that were given, strictly typed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"

namespace routesim::tools {

/// One option.
struct OptionSpec {
  std::string name;             ///< Long name, with a short one after a comma: "output,o".
  std::string value_name = {};  ///< Shown in help; empty for a switch.
  std::string help = {};
  bool repeatable = false;
  /// Not empty: the value may be left out and is this; when given it follows `=`.
  std::string implicit_value = {};
  /// The values, or the formats of `FORMAT[=PATH]`, when they are few. The first is the default.
  std::vector<std::string> choices = {};

  /// `output`.
  std::string long_name() const { return name.substr(0, name.find(',')); }
  /// `--output` and, when there is a short name, `-o`.
  std::vector<std::string> flags() const;
  bool value_is_optional() const { return !implicit_value.empty(); }
};

/// The positional arguments of a command.
struct PositionalSpec {
  std::string name = {};  ///< Shown in help, such as SCENARIO, or a choice: bash|zsh|fish.
  std::size_t min = 0;
  std::size_t max = 0;
  bool ships = false;  ///< A file, or the name of one that ships with the command.

  /// The words of a choice; empty for any other name.
  std::vector<std::string> choices() const;
};

/// `--output FORMAT[=PATH]`.
struct Output {
  std::string format;  ///< One of the option's choices.
  std::string path;    ///< Empty = standard output.
};

/// The values that one command line gives to a command. Every getter that types a value adds what
/// is wrong with it to problems() and returns its fallback, so that a command reads all of them
/// and then asks ok().
class Options {
 public:
  /// Parses `arguments`, which lack the names of the program and of the command.
  Options(std::string command, std::vector<OptionSpec> specs, const PositionalSpec& positional,
          const std::vector<std::string>& arguments);

  const std::string& command() const { return command_; }
  const std::vector<std::string>& positionals() const { return positionals_; }
  bool has(const std::string& name) const { return values_.contains(name); }
  /// The only value of an option, or `fallback`.
  std::string get(const std::string& name, const std::string& fallback = {}) const;
  const std::vector<std::string>& all(const std::string& name) const;

  std::optional<std::int64_t> whole(const std::string& name, const IntRange& range);
  std::int64_t whole(const std::string& name, const IntRange& range, std::int64_t fallback) {
    return whole(name, range).value_or(fallback);
  }
  double real(const std::string& name, const RealRange& range, double fallback);
  std::optional<Duration> duration(const std::string& name, const DurationRange& range);
  /// `--jobs`: the number of threads; as many as the process may use when it is not given.
  std::size_t jobs();
  /// One of the option's choices, the first when it is not given.
  std::string choice(const std::string& name);
  /// Every `--output`; its first choice to standard output when there is none. The page that
  /// `--watch` names is one more. An unknown format and two outputs in one place are problems.
  std::vector<Output> outputs();

  /// Adds a usage error: one sentence.
  void fail(const std::string& message);
  bool ok() const { return !problems_.has_errors(); }
  const Diagnostics& problems() const { return problems_; }

 private:
  void take_values(const std::vector<std::string>& arguments);
  const OptionSpec* find(const std::string& name) const;
  std::string unknown_option(const std::string& given) const;
  void check_positionals(const PositionalSpec& positional);
  std::optional<Output> read_output(const std::string& text, const OptionSpec& spec);

  std::string command_;
  std::vector<OptionSpec> specs_;
  std::map<std::string, std::vector<std::string>> values_;  ///< By long name.
  std::vector<std::string> positionals_;
  Diagnostics problems_;
};

/// Columns of --help, but for commands to copy.
inline constexpr std::size_t kHelpWidth = 80;

/// The options as an indented list for --help.
std::string options_help(const std::vector<OptionSpec>& options);

/// Options that several commands take. `what` ends the help text of `--set`.
OptionSpec set_option(const std::string& help = "Override a value, as in `run`.");
OptionSpec allow_library_option();
OptionSpec variant_option(const std::string& help = "Only this variant.");
OptionSpec jobs_option(const std::string& no_effect_on = "results");
OptionSpec seed_option(const std::string& help = "Seed of the first replication.");
OptionSpec quiet_option();

}  // namespace routesim::tools
