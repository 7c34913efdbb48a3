#include "tools/cli/cli.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>

#include "base/clock.h"
#include "base/run_error.h"
#include "base/text.h"
#include "sim/custom/library.h"
#include "tools/results/text_table.h"
#include "tools/results/version.h"

namespace routesim::tools {

namespace {

std::string general_help() {
  std::string text =
      "Usage: routesim COMMAND [arguments]\n\n"
      "Which routing policy and how many servers, for this traffic and these goals?\n\n"
      "Commands:\n";
  for (const Command& command : commands())
    text += wrapped(command.summary, 14, fmt::format("  {:<12}", command.name), kHelpWidth) + "\n";
  text +=
      "\n`routesim COMMAND --help` lists a command's options; `routesim --version`\n"
      "identifies the build.\n\nExit codes:\n";
  for (const ExitMeaning& exit : kExitMeanings)
    text += fmt::format("  {:<12}{}\n", static_cast<int>(exit.code), exit.meaning);
  return text;
}

ExitCode unknown_command(const std::string& name, Console& console) {
  std::vector<std::string> names;
  for (const Command& c : commands()) names.push_back(c.name);
  const std::string close = did_you_mean(name, names);
  Options none({}, {}, {}, {});
  none.fail("unknown command " + printable(name) + (close.empty() ? "" : ", " + close));
  return refuse(none, console);
}

/// Code that a scenario names runs only where this command line says so.
void choose_foreign_code(const Command& command, Options& options, Console& console) {
  const auto is_it = [](const OptionSpec& spec) { return spec.name == "allow-library"; };
  const bool runs = std::ranges::any_of(command.options, is_it);
  if (!runs || !options.has("allow-library"))
    return sim::set_foreign_code(command.name == "check" ? sim::ForeignCode::kNotLoaded
                                                         : sim::ForeignCode::kRefused);
  console.complain(
      "routesim: --allow-library: shared objects that scenarios name run their code\n");
  console.divert_output();
  sim::set_foreign_code(sim::ForeignCode::kAllowed);
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
  for (const Command& command : commands()) {
    if (command.name != name) continue;
    Options options(name, command.all_options(), command.positional,
                    {arguments.begin() + 1, arguments.end()});
    if (!options.ok()) return refuse(options, console);
    if (options.has("help")) {
      console.print(command.help());
      return ExitCode::kSuccess;
    }
    choose_foreign_code(command, options, console);
    return command.run(options, console);
  }
  return unknown_command(name, console);
}

}  // namespace

std::vector<OptionSpec> Command::all_options() const {
  std::vector<OptionSpec> all = options;
  all.push_back({"help,h", "", "Print this help.", true});
  return all;
}

std::string Command::usage() const {
  if (positional.max == 0) return "routesim " + name;
  const std::string operand = positional.name + (positional.max > 1 ? "..." : "");
  return "routesim " + name + " " + (positional.min == 0 ? "[" + operand + "]" : operand);
}

std::string Command::help() const {
  std::string text = "Usage: " + usage() + " [options]\n\n" + wrapped(summary, 0, "", kHelpWidth) +
                     "\n\nOptions:\n" + options_help(all_options());
  if (!examples.empty()) text += "\nExamples:\n";
  for (const Example& example : examples)
    text += "  " + example.line + "\n" + wrapped(example.meaning, 6, "      ", kHelpWidth) + "\n";
  return text;
}

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands = {
      run_command(),        init_command(),    sweep_command(),    plan_command(),
      tune_command(),       compare_command(), report_command(),   check_command(),
      explain_command(),    trace_command(),   validate_command(), calibrate_command(),
      list_command(),       schema_command(),  score_command(),    new_scorer_command(),
      completion_command(), manual_command(),
  };
  return kCommands;
}

ExitCode refuse(const Options& options, Console& console) {
  console.complain(options.problems());
  return ExitCode::kInvalid;
}

ExitCode run_command_line(const std::vector<std::string>& arguments, Console& console) {
  try {
    const ExitCode code = dispatch(arguments, console);
    if (code == ExitCode::kInvalid) console.discard_output();
    return code;
  } catch (const RunError& e) {
    console.complain(to_string(e.diagnostic()) + "\n");
    console.discard_output();
    return ExitCode::kInvalid;
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
