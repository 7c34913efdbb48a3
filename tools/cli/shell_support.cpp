// routesim completion, routesim manual. A completion script is a plain table of words, written out
// as the shell's own code.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/cli/cli.h"
#include "tools/results/version.h"

namespace routesim::tools {

namespace {

/// Whether a value of this name is a file: "PATH", "E.json", "SCENARIO".
bool takes_file(const std::string& value_name) {
  return value_name == "PATH" || value_name == "FILE" || value_name == "SCENARIO" ||
         value_name.find('.') != std::string::npos;
}

/// A shell word in single quotes; `escaped_quote` is how the shell writes one inside.
std::string quoted(const std::string& text, std::string_view escaped_quote) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'')
      out += escaped_quote;
    else
      out += c;
  }
  return out + "'";
}

constexpr char kBashScript[] =
    R"(# bash completion for routesim, made by `routesim completion bash`.
_routesim() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD - 1]}}"
  local words="" flags="" files=0
  # bash splits --option=value into three words.
  if [[ $current == "=" ]]; then
    current=""
  elif [[ $previous == "=" ]] && ((COMP_CWORD > 2)); then
    previous="${{COMP_WORDS[COMP_CWORD - 2]}}"
  fi
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "{} --help --version" -- "$current")
    return
  fi
  case "${{COMP_WORDS[1]}} $previous" in
{}    *)
      case "${{COMP_WORDS[1]}}" in
{}      esac
      if [[ $current == -* ]]; then words="$flags" files=0; fi
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  if ((files)); then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}}
complete -F _routesim routesim
)";

std::string bash_script(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  std::string values;
  std::string words;
  for (const Command& command : commands) {
    names.push_back(command.name);
    std::vector<std::string> all_flags;
    for (const OptionSpec& option : command.all_options()) {
      std::vector<std::string> patterns;
      for (const std::string& flag : option.flags()) {
        all_flags.push_back(flag);
        patterns.push_back(fmt::format("\"{} {}\"", command.name, flag));
      }
      if (option.value_name.empty() || option.value_is_optional()) continue;
      const bool files = option.choices.empty() && takes_file(option.value_name);
      values += fmt::format("    {}) words=\"{}\" files={:d} ;;\n", fmt::join(patterns, " | "),
                            fmt::join(option.choices, " "), files);
    }
    const std::vector<std::string> choices = command.positional.choices();
    const bool files = command.positional.max > 0 && choices.empty();
    words += fmt::format("        {}) flags=\"{}\" words=\"{}\" files={:d} ;;\n", command.name,
                         fmt::join(all_flags, " "), fmt::join(choices, " "), files);
  }
  return fmt::format(kBashScript, fmt::join(names, " "), values, words);
}

/// Text inside an _arguments specification: brackets and colons mean something there.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_action(const std::vector<std::string>& choices, bool files) {
  if (!choices.empty()) return fmt::format("({})", fmt::join(choices, " "));
  return files ? "_files" : " ";
}

std::string zsh_option(const OptionSpec& option, const std::string& flag) {
  std::string spec = (option.repeatable ? "*" : "") + flag;
  if (option.value_is_optional())
    spec += "=-";
  else if (!option.value_name.empty() && flag.starts_with("--"))
    spec += "=";
  spec += fmt::format("[{}]", zsh_text(option.help));
  if (option.value_name.empty()) return spec;
  return spec + (option.value_is_optional() ? "::" : ":") + zsh_text(option.value_name) + ":" +
         zsh_action(option.choices, takes_file(option.value_name));
}

constexpr char kZshScript[] = R"(#compdef routesim
# zsh completion for routesim, made by `routesim completion zsh`.
_routesim() {{
  local -a commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe -t commands 'routesim command' commands
    return
  fi
  shift words
  (( CURRENT-- ))
  case ${{words[1]}} in
{}  esac
}}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _routesim "$@"
else
  compdef _routesim routesim
fi
)";

std::string zsh_script(const std::vector<Command>& commands) {
  constexpr std::string_view kQuote = "'\\''";
  std::string names;
  std::string cases;
  for (const Command& command : commands) {
    names += "    " + quoted(command.name + ":" + zsh_text(command.summary), kQuote) + "\n";
    cases += "    " + command.name + ")\n      _arguments -s";
    for (const OptionSpec& option : command.all_options())
      for (const std::string& flag : option.flags())
        cases += " \\\n        " + quoted(zsh_option(option, flag), kQuote);
    const PositionalSpec& positional = command.positional;
    if (positional.max > 0)
      cases +=
          " \\\n        " + quoted((positional.max > 1 ? "*:" : "1:") + zsh_text(positional.name) +
                                       ":" + zsh_action(positional.choices(), true),
                                   kQuote);
    cases += "\n      ;;\n";
  }
  return fmt::format(kZshScript, names, cases);
}

std::string fish_option(const OptionSpec& option) {
  std::string out;
  for (const std::string& flag : option.flags())
    out += flag.starts_with("--") ? " -l " + flag.substr(2) : " -s " + flag.substr(1);
  if (option.value_name.empty() || option.value_is_optional()) return out;
  if (!option.choices.empty())
    return fmt::format("{} -x -a '{}'", out, fmt::join(option.choices, " "));
  return out + (takes_file(option.value_name) ? " -r -F" : " -x");
}

std::string fish_script(const std::vector<Command>& commands) {
  std::string out =
      "# fish completion for routesim, made by `routesim completion fish`.\n"
      "complete -c routesim -f\n"
      "complete -c routesim -n __fish_use_subcommand -l help -d 'Print the commands.'\n"
      "complete -c routesim -n __fish_use_subcommand -l version -d 'Identify the build.'\n";
  for (const Command& command : commands) {
    out += fmt::format("complete -c routesim -n __fish_use_subcommand -a {} -d {}\n", command.name,
                       quoted(command.summary, "\\'"));
    const std::string when =
        "complete -c routesim -n '__fish_seen_subcommand_from " + command.name + "'";
    const std::vector<std::string> choices = command.positional.choices();
    if (!choices.empty())
      out += fmt::format("{} -a '{}'\n", when, fmt::join(choices, " "));
    else if (command.positional.max > 0)
      out += when + " -F\n";
    for (const OptionSpec& option : command.all_options())
      out += when + fish_option(option) + " -d " + quoted(option.help, "\\'") + "\n";
  }
  return out;
}

/// Text as roff prints it: a backslash and a hyphen are themselves, and no line is a request.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool starts_line = out.empty() || out.back() == '\n';
    if ((c == '.' || c == '\'') && starts_line) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    if (c == '|') out += "\\:";  // A line may break behind an alternative.
  }
  return out;
}

std::string bold(std::string_view text) { return fmt::format("\\fB{}\\fR", roff(text)); }
std::string italic(std::string_view text) { return fmt::format("\\fI{}\\fR", roff(text)); }

std::string option_entry(const OptionSpec& option) {
  const std::vector<std::string> flags = option.flags();
  std::string value;
  if (option.value_is_optional())
    value = fmt::format("[={}]", italic(option.value_name));
  else if (!option.value_name.empty())
    value = fmt::format(" {}", italic(option.value_name));
  const bool repeats = option.repeatable && !option.value_name.empty();
  return fmt::format(
      ".TP\n{}{}{}\n{}{}\n", flags.size() > 1 ? fmt::format("{}, ", bold(flags[1])) : std::string(),
      bold(flags[0]), value, roff(option.help), repeats ? " May be given more than once." : "");
}

std::string command_section(const Command& command) {
  std::string out = fmt::format(".SS {}\n{}\n.PP\n{}", roff(command.name), roff(command.summary),
                                bold("routesim " + command.name));
  if (command.positional.max > 0) {
    const std::string name =
        italic(command.positional.name) + (command.positional.max > 1 ? "..." : "");
    out += command.positional.min == 0 ? " [" + name + "]" : " " + name;
  }
  if (!command.options.empty()) out += " [" + italic("options") + "]";
  out += "\n";
  for (const OptionSpec& option : command.options) out += option_entry(option);
  if (!command.examples.empty()) out += ".PP\nExamples:\n";
  for (const Example& example : command.examples)
    out += fmt::format(".TP\n{}\n{}\n", bold(example.line), roff(example.meaning));
  return out;
}

constexpr char kManualStart[] = R"(.TH ROUTESIM 1 "" "routesim {}" "User Commands"
.SH NAME
routesim \- simulate LLM serving clusters under routing policies
.SH SYNOPSIS
{} {} [{}]
.br
{}
.br
{}
.SH DESCRIPTION
Which routing policy, and how many servers, for this traffic and these latency goals?
A scenario, a YAML file, describes the load, the servers and the policies; routesim simulates
them request by request and prints what they achieve. The same scenario and seed always print
the same bytes. Results go to standard output, everything else to standard error.
.PP
Every command also understands {}.
.SH COMMANDS
)";

ExitCode run_completion(Options& options, Console& console) {
  console.print(completion_script(options.positionals().front(), commands()).value());
  return ExitCode::kSuccess;
}

ExitCode run_manual(Options& /*options*/, Console& console) {
  console.print(manual_page(commands()));
  return ExitCode::kSuccess;
}

}  // namespace

std::optional<std::string> completion_script(std::string_view shell,
                                             const std::vector<Command>& commands) {
  if (shell == "bash") return bash_script(commands);
  if (shell == "zsh") return zsh_script(commands);
  if (shell == "fish") return fish_script(commands);
  return std::nullopt;
}

std::string manual_page(const std::vector<Command>& commands) {
  std::string out = fmt::format(kManualStart, roff(version()), bold("routesim"), italic("COMMAND"),
                                italic("arguments"), bold("routesim --help"),
                                bold("routesim --version"), bold("--help"));
  for (const Command& command : commands) out += command_section(command);
  out += ".SH EXIT STATUS\n";
  for (const ExitMeaning& exit : kExitMeanings)
    out += fmt::format(".TP\n{}\n{}\n", bold(std::to_string(static_cast<int>(exit.code))),
                       roff(exit.meaning));
  return out;
}

Command completion_command() {
  return {.name = "completion",
          .summary = "Print a shell's completion script: source <(routesim completion bash).",
          .positional = {.name = "bash|zsh|fish", .min = 1, .max = 1},
          .examples = {{"routesim completion bash",
                        "Completion for bash: source <(routesim completion bash)."}},
          .run = &run_completion};
}

Command manual_command() {
  return {.name = "manual",
          .summary = "Print the manual page in roff: routesim manual | man -l -",
          .examples = {{"routesim manual", "The manual page: routesim manual | man -l -"}},
          .run = &run_manual};
}

}  // namespace routesim::tools
