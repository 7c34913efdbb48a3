// The command line: which command, its options, its exit code.
#pragma once

#include <string>
#include <vector>

#include "tools/cli/console.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/options.h"

namespace routesim::tools {

/// One command. `run` gets the parsed options; usage errors never reach it.
struct Command {
  std::string name;
  std::string summary;  ///< One line for the list of commands.
  PositionalSpec positional;
  std::vector<OptionSpec> options;
  ExitCode (*run)(const OptionValues& options, Console& console);
};

/// Every command, in the order of the help text.
const std::vector<Command>& commands();

/// `--help`, which every command has besides its own options.
OptionSpec help_option();

/// Runs one command line (without the program's name). Never throws: a broken invariant becomes
/// kInternalError with its message on standard error.
ExitCode run_command_line(const std::vector<std::string>& arguments, Console& console);

/// Complains in the form every usage error has, and returns kInvalid.
ExitCode usage_error(Console& console, const std::string& command, const std::string& what);

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
