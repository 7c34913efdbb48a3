// routesim completion, routesim manual: what shells and `man` are told.
#include "base/printable.h"
#include "tools/cli/shell_support.h"

namespace routesim::tools {

namespace {

ExitCode run_completion(const OptionValues& options, Console& console) {
  const std::string& shell = options.positionals.front();
  const std::optional<std::string> script = completion_script(shell, commands());
  if (!script)
    return usage_error(console, "completion",
                       "no completion for " + printable(shell) + ", one of bash, zsh, fish");
  console.print(*script);
  return ExitCode::kSuccess;
}

ExitCode run_manual(const OptionValues& /*options*/, Console& console) {
  console.print(manual_page(commands()));
  return ExitCode::kSuccess;
}

}  // namespace

Command completion_command() {
  return {.name = "completion",
          .summary = "Print a shell's completion script: source <(routesim completion bash).",
          .positional = {.name = "bash|zsh|fish", .min = 1, .max = 1},
          .options = {},
          .run = &run_completion};
}

Command manual_command() {
  return {.name = "manual",
          .summary = "Print the manual page in roff: routesim manual | man -l -",
          .positional = {},
          .options = {},
          .run = &run_manual};
}

}  // namespace routesim::tools
