#include "tools/cli/cli.h"

#include <exception>
#include <new>

#include "base/check.h"
#include "base/clock.h"
#include "base/printable.h"
#include "base/text.h"
#include "tools/render/version.h"

namespace routesim::tools {

namespace {

std::string synopsis(const Command& command) {
  std::string text = "routesim " + command.name;
  if (command.positional.max > 0) text += " " + command.positional.name;
  if (command.positional.max > 1) text += "...";
  return text + " [options]";
}

std::string command_help(const Command& command) {
  return "Usage: " + synopsis(command) + "\n\n" + command.summary + "\n\nOptions:\n" +
         options_help(command.options);
}

std::string general_help() {
  std::string text =
      "Usage: routesim COMMAND [arguments]\n\n"
      "Which routing policy and how many servers, for this traffic and these goals?\n\n"
      "Commands:\n";
  for (const Command& command : commands()) {
    std::string line = "  " + command.name;
    line.resize(14, ' ');
    text += line + command.summary + "\n";
  }
  text +=
      "\n`routesim COMMAND --help` lists a command's options; `routesim --version` identifies the "
      "build.\n\nExit codes:\n";
  for (const ExitMeaning& exit : kExitMeanings) {
    std::string line = "  " + std::to_string(static_cast<int>(exit.code));
    line.resize(14, ' ');
    text.append(line).append(exit.meaning).append("\n");
  }
  return text;
}

const Command* find_command(const std::string& name) {
  for (const Command& command : commands())
    if (command.name == name) return &command;
  return nullptr;
}

ExitCode dispatch(const std::vector<std::string>& arguments, Console& console) {
  if (arguments.empty()) {
    console.complain(general_help());
    return ExitCode::kInvalid;
  }
  const std::string& name = arguments.front();
  if (name == "--version" || name == "version") {
    console.print(version_text());
    return ExitCode::kSuccess;
  }
  if (name == "--help" || name == "-h" || name == "help") {
    console.print(general_help());
    return ExitCode::kSuccess;
  }
  const Command* command = find_command(name);
  if (command == nullptr) {
    std::vector<std::string> names;
    for (const Command& c : commands()) names.push_back(c.name);
    const std::string close = nearest(name, names);
    return usage_error(console, "",
                       "unknown command " + printable(name) +
                           (close.empty() ? std::string() : ", did you mean " + close + "?"));
  }
  std::vector<OptionSpec> options = command->options;
  options.push_back(help_option());
  std::string error;
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  const auto values = parse_options(options, command->positional, rest, error);
  if (!values) return usage_error(console, command->name, error);
  if (values->has("help")) {
    console.print(command_help({.name = command->name,
                                .summary = command->summary,
                                .positional = command->positional,
                                .options = options,
                                .run = command->run}));
    return ExitCode::kSuccess;
  }
  return command->run(*values, console);
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands = {
      run_command(),        sweep_command(),  plan_command(),    compare_command(),
      report_command(),     check_command(),  explain_command(), validate_command(),
      calibrate_command(),  list_command(),   schema_command(),  score_command(),
      completion_command(), manual_command(),
  };
  return kCommands;
}

OptionSpec help_option() {
  return {.name = "help,h", .value_name = {}, .help = "Print this help.", .repeatable = true};
}

ExitCode usage_error(Console& console, const std::string& command, const std::string& what) {
  console.complain("routesim: error: " + shortened(what, kLongestMessage) +
                   "\n  hint: see `routesim " + (command.empty() ? std::string() : command + " ") +
                   "--help`\n");
  return ExitCode::kInvalid;
}

ExitCode run_command_line(const std::vector<std::string>& arguments, Console& console) {
  try {
    const ExitCode code = dispatch(arguments, console);
    if (code == ExitCode::kInvalid) console.discard_output();
    return code;
  } catch (const sim::ClockError& e) {
    console.complain(to_string(e.diagnostic()) + "\n");
    console.discard_output();
    return ExitCode::kInvalid;
  } catch (const InternalError& e) {
    console.complain("routesim: internal error: " + std::string(e.what()) + "\n");
  } catch (const std::bad_alloc&) {
    console.complain(
        "routesim: error: out of memory\n  hint: simulate less at once (servers, groups, threads, "
        "requests), or use a machine with more memory\n");
    console.discard_output();
    return ExitCode::kInvalid;
  } catch (const std::exception& e) {
    console.complain("routesim: internal error: " + std::string(e.what()) + "\n");
  }
  console.complain("  this is a bug in " + version_text() +
                   "  please report it with the command line and the scenario\n");
  console.discard_output();
  return ExitCode::kInternalError;
}

}  // namespace routesim::tools
