// routesim init: a scenario from the files that a user has.
#include <fmt/format.h>

#include <filesystem>

#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/cli/check_file.h"
#include "tools/cli/cli.h"
#include "tools/results/output_file.h"
#include "tools/results/report.h"
#include "tools/study/init/init.h"

namespace routesim::tools {

namespace {

std::string summary_of(const InitScenario& made, const std::string& path, bool is_stdout) {
  std::string text;
  for (const std::string& input : made.inputs) text += "  " + input + "\n";
  for (const std::string& assumed : made.assumed) text += "  " + assumed + "\n";
  for (const std::string& unused : made.unused) text += "  not used: " + unused + "\n";
  return is_stdout ? text
                   : path + ": written\n" + text + "next: routesim run " + shell_word(path) + "\n";
}

struct Attempt {
  InitScenario made;
  Diagnostics found;
};

/// Makes the scenario and checks it before it is written: it must run as it is.
Attempt attempt(const InitRequest& request) {
  Attempt one;
  one.made = make_scenario(request, one.found);
  if (!one.found.has_errors())
    append(one.found, check_file({.path = request.output, .text = one.made.text}).diagnostics);
  return one;
}

/// The first accelerator that may be assumed and works; the first of all when none does.
Attempt best_attempt(InitRequest request) {
  Attempt first = attempt(request);
  for (const std::string_view accelerator : kAssumedAccelerators) {
    if (!first.found.has_errors() || !first.made.assumes_accelerator) break;
    request.accelerator = accelerator;
    if (Attempt other = attempt(request); !other.found.has_errors()) return other;
  }
  return first;
}

ExitCode run_init(Options& options, Console& console) {
  const std::string written = options.get("output", "scenario.yaml");
  const bool is_stdout = written == "-";
  const std::string path = is_stdout ? "scenario.yaml" : written;
  std::error_code unreadable;
  if (!is_stdout && !options.has("force") && std::filesystem::exists(path, unreadable))
    options.fail(printable(path, 200) + " exists already; --force replaces it, -o names another");
  if (const std::string why = is_stdout ? std::string() : why_not_writable(path); !why.empty())
    options.fail("cannot write " + printable(path, 200) + ": " + why);
  if (!options.ok()) return refuse(options, console);
  InitRequest request{.paths = options.positionals(), .output = path, .name = options.get("name")};
  if (request.paths.empty()) request.paths = {"."};
  const auto [made, found] = best_attempt(request);
  for (const std::string& input : made.reads)
    if (!is_stdout && std::filesystem::equivalent(input, path, unreadable))
      options.fail("cannot write " + printable(path, 200) + ": it would replace " +
                   printable(input, 200) + ", which the scenario reads");
  if (!options.ok()) return refuse(options, console);
  console.complain(tidy(found));
  if (found.has_errors()) return ExitCode::kInvalid;
  if (is_stdout)
    console.print(made.text);
  else if (const std::string error = write_file(path, made.text); !error.empty())
    options.fail("cannot write " + printable(path, 200) + ": " + error);
  if (!options.ok()) return refuse(options, console);
  console.complain(summary_of(made, path, is_stdout));
  return ExitCode::kSuccess;
}

}  // namespace

Command init_command() {
  return {.name = "init",
          .summary = "Write a scenario from a manifest or Helm values, a router's file and a load.",
          .positional = {.name = "FILE", .min = 0, .max = 10'000},
          .options = {{.name = "output,o",
                       .value_name = "PATH",
                       .help = "The scenario (default: scenario.yaml here); - is standard output."},
                      {"name", "NAME", "Its name (default: that of the servers)."},
                      {.name = "force", .help = "Replace the scenario where it exists."}},
          .examples = {{"routesim init", "From the files of this folder to scenario.yaml."},
                       {"routesim init deployment.yaml epp.yaml inference-perf.yaml -o -",
                        "Prints the scenario; each guess is marked `# assumed`."}},
          .run = &run_init};
}

}  // namespace routesim::tools
