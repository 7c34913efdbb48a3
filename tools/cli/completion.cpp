// Completion scripts. Each is a plain table of words written out as the shell's own code.
#include <algorithm>

#include "tools/cli/shell_support.h"

namespace routesim::tools {

namespace {

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (std::size_t end = 0; end != std::string::npos; start = end + 1) {
    end = text.find(at, start);
    parts.push_back(text.substr(start, end == std::string::npos ? end : end - start));
  }
  return parts;
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

/// Whether a value of this name is a file: "PATH", "E.json", "SCENARIO".
bool is_file(const std::string& value_name) {
  return value_name == "PATH" || value_name == "FILE" || value_name == "SCENARIO" ||
         value_name.find('.') != std::string::npos;
}

/// "models|accelerators" is a choice of words; anything else is not.
std::vector<std::string> choices_of(const PositionalSpec& positional) {
  return positional.name.find('|') == std::string::npos ? std::vector<std::string>{}
                                                        : split(positional.name, '|');
}

/// The options of a command as they are parsed, with the one that all commands have.
std::vector<OptionSpec> options_of(const Command& command) {
  std::vector<OptionSpec> options = command.options;
  options.push_back(help_option());
  return options;
}

/// "--output" and, if there is one, "-o".
std::vector<std::string> flags_of(const OptionSpec& option) {
  const std::size_t comma = option.name.find(',');
  std::vector<std::string> flags = {"--" + option.name.substr(0, comma)};
  if (comma != std::string::npos) flags.push_back(std::string("-").append(option.name, comma + 1));
  return flags;
}

/// A shell word in single quotes; `escaped_quote` is how the shell writes one inside.
std::string quoted(const std::string& text, const std::string& escaped_quote) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += escaped_quote;
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string bash_script(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  std::string values;
  std::string words;
  for (const Command& command : commands) {
    names.push_back(command.name);
    std::vector<std::string> flags;
    for (const OptionSpec& option : options_of(command)) {
      std::string patterns;
      for (const std::string& flag : flags_of(option)) {
        flags.push_back(flag);
        patterns.append(patterns.empty() ? "" : " | ");
        patterns.append("\"").append(command.name).append(" ").append(flag).append("\"");
      }
      if (option.value_name.empty() || !option.implicit_value.empty()) continue;
      values += "    " + patterns + ") words=\"" + join(option.choices) +
                "\" files=" + (option.choices.empty() && is_file(option.value_name) ? "1" : "0") +
                " ;;\n";
    }
    const std::vector<std::string> choices = choices_of(command.positional);
    const bool files = command.positional.max > 0 && choices.empty();
    words += "        " + command.name + ") flags=\"" + join(flags) + "\" words=\"" +
             join(choices) + "\" files=" + (files ? "1" : "0") + " ;;\n";
  }
  return "# bash completion for routesim, made by `routesim completion bash`.\n"
         "_routesim() {\n"
         "  local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD - "
         "1]}\"\n"
         "  local words=\"\" flags=\"\" files=0\n"
         "  # bash splits --option=value into three words.\n"
         "  if [[ $current == \"=\" ]]; then\n"
         "    current=\"\"\n"
         "  elif [[ $previous == \"=\" ]] && ((COMP_CWORD > 2)); then\n"
         "    previous=\"${COMP_WORDS[COMP_CWORD - 2]}\"\n"
         "  fi\n"
         "  COMPREPLY=()\n"
         "  if ((COMP_CWORD == 1)); then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"" +
         join(names) +
         " --help --version\" -- \"$current\")\n"
         "    return\n"
         "  fi\n"
         "  case \"${COMP_WORDS[1]} $previous\" in\n" +
         values +
         "    *)\n"
         "      case \"${COMP_WORDS[1]}\" in\n" +
         words +
         "      esac\n"
         "      if [[ $current == -* ]]; then words=\"$flags\" files=0; fi\n"
         "      ;;\n"
         "  esac\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
         "  if ((files)); then\n"
         "    compopt -o filenames 2>/dev/null\n"
         "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
         "  fi\n"
         "}\n"
         "complete -F _routesim routesim\n";
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

std::string zsh_action(const std::string& value_name, const std::vector<std::string>& choices) {
  if (!choices.empty()) return std::string("(").append(join(choices)).append(")");
  return is_file(value_name) ? "_files" : " ";
}

std::string zsh_script(const std::vector<Command>& commands) {
  std::string names;
  std::string cases;
  for (const Command& command : commands) {
    names += "    " + quoted(command.name + ":" + zsh_text(command.summary), "'\\''") + "\n";
    cases += "    " + command.name + ")\n      _arguments -s";
    for (const OptionSpec& option : options_of(command)) {
      for (const std::string& flag : flags_of(option)) {
        std::string spec = std::string(option.repeatable ? "*" : "") + flag;
        const bool optional = !option.implicit_value.empty();
        if (optional) spec += "=-";
        if (!optional && !option.value_name.empty() && flag.starts_with("--")) spec += "=";
        spec.append("[").append(zsh_text(option.help)).append("]");
        if (!option.value_name.empty())
          spec.append(optional ? "::" : ":")
              .append(zsh_text(option.value_name))
              .append(":")
              .append(zsh_action(option.value_name, option.choices));
        cases += " \\\n        " + quoted(spec, "'\\''");
      }
    }
    if (command.positional.max > 0) {
      const std::string& name = command.positional.name;
      const std::vector<std::string> choices = choices_of(command.positional);
      const std::string action = choices.empty() ? "_files" : "(" + join(choices) + ")";
      cases += " \\\n        " + quoted(std::string(command.positional.max > 1 ? "*" : "1") + ":" +
                                            zsh_text(name) + ":" + action,
                                        "'\\''");
    }
    cases += "\n      ;;\n";
  }
  return "#compdef routesim\n"
         "# zsh completion for routesim, made by `routesim completion zsh`.\n"
         "_routesim() {\n"
         "  local -a commands=(\n" +
         names +
         "  )\n"
         "  if (( CURRENT == 2 )); then\n"
         "    _describe -t commands 'routesim command' commands\n"
         "    return\n"
         "  fi\n"
         "  shift words\n"
         "  (( CURRENT-- ))\n"
         "  case ${words[1]} in\n" +
         cases +
         "  esac\n"
         "}\n"
         "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n"
         "  _routesim \"$@\"\n"
         "else\n"
         "  compdef _routesim routesim\n"
         "fi\n";
}

std::string fish_script(const std::vector<Command>& commands) {
  std::string out =
      "# fish completion for routesim, made by `routesim completion fish`.\n"
      "complete -c routesim -f\n"
      "complete -c routesim -n __fish_use_subcommand -l help -d 'Print the commands.'\n"
      "complete -c routesim -n __fish_use_subcommand -l version -d 'Identify the build.'\n";
  for (const Command& command : commands) {
    out += "complete -c routesim -n __fish_use_subcommand -a " + command.name + " -d " +
           quoted(command.summary, "\\'") + "\n";
    const std::string when =
        "complete -c routesim -n '__fish_seen_subcommand_from " + command.name + "'";
    const std::vector<std::string> choices = choices_of(command.positional);
    if (!choices.empty()) {
      out += when + " -a " + quoted(join(choices), "\\'") + "\n";
    } else if (command.positional.max > 0) {
      out += when + " -F\n";
    }
    for (const OptionSpec& option : options_of(command)) {
      for (const std::string& flag : flags_of(option)) {
        const bool is_long = flag.starts_with("--");
        out += is_long ? when + " -l " + flag.substr(2) : " -s " + flag.substr(1);
      }
      if (!option.value_name.empty() && option.implicit_value.empty()) {
        if (!option.choices.empty()) {
          out += " -x -a " + quoted(join(option.choices), "\\'");
        } else {
          out += is_file(option.value_name) ? " -r -F" : " -x";
        }
      }
      out += " -d " + quoted(option.help, "\\'") + "\n";
    }
  }
  return out;
}

}  // namespace

std::optional<std::string> completion_script(std::string_view shell,
                                             const std::vector<Command>& commands) {
  if (shell == "bash") return bash_script(commands);
  if (shell == "zsh") return zsh_script(commands);
  if (shell == "fish") return fish_script(commands);
  return std::nullopt;
}

}  // namespace routesim::tools
