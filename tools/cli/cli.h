// The command line: which command, its options, its exit code.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/console.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"

namespace routesim::tools {

/// One command. `run` gets options that were parsed without a problem.
struct Command {
  std::string name;
  std::string summary;  ///< One line for the list of commands.
  PositionalSpec positional = {};
  std::vector<OptionSpec> options = {};  ///< Its own; all_options() adds `--help`.
  ExitCode (*run)(Options& options, Console& console);

  std::vector<OptionSpec> all_options() const;
  /// `routesim run SCENARIO`, without the options.
  std::string usage() const;
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
Command validate_command();
Command calibrate_command();
Command sweep_command();
Command plan_command();
Command compare_command();
Command completion_command();
Command manual_command();
Command report_command();

}  // namespace routesim::tools
