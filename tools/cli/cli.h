// The command line: which command, its options, its exit code.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cli/console.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"

namespace routesim::tools {

/// A command line and what it is for. Files stand in docs/examples, or another example makes them.
struct Example {
  std::string line;
  std::string meaning;
};

/// One command. `run` gets options that were parsed without a problem.
struct Command {
  std::string name;
  std::string summary;  ///< One line for the list of commands.
  PositionalSpec positional = {};
  std::vector<OptionSpec> options = {};  ///< Its own; all_options() adds `--help`.
  std::vector<Example> examples = {};
  ExitCode (*run)(Options& options, Console& console);

  std::vector<OptionSpec> all_options() const;
  /// `routesim run SCENARIO`, without the options.
  std::string usage() const;
  std::string help() const;
};

/// Every command, in the order of the help text.
const std::vector<Command>& commands();

/// Runs one command line (without the program's name). Never throws: a broken invariant becomes
/// kInternalError with its message on standard error.
ExitCode run_command_line(const std::vector<std::string>& arguments, Console& console);

/// Complains about the options and returns kInvalid.
ExitCode refuse(const Options& options, Console& console);

Command run_command();
Command check_command();
Command explain_command();
Command list_command();
Command schema_command();
Command score_command();
Command trace_command();
Command validate_command();
Command calibrate_command();
Command sweep_command();
Command plan_command();
Command tune_command();
Command compare_command();
Command completion_command();
Command manual_command();
Command report_command();
Command init_command();
Command new_scorer_command();

/// Markdown, made from the tables that the readers use.
std::string key_reference();

/// The shells there is completion for.
inline constexpr std::array<std::string_view, 3> kShells = {"bash", "zsh", "fish"};

/// The completion script of one of `kShells`; nothing for any other name.
std::optional<std::string> completion_script(std::string_view shell,
                                             const std::vector<Command>& commands);

/// The manual page routesim(1) in roff. Has no date, so that the same build makes the same bytes.
std::string manual_page(const std::vector<Command>& commands);

}  // namespace routesim::tools
