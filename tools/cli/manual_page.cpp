// routesim(1), in roff's man macros.
#include "tools/cli/shell_support.h"
#include "tools/render/version.h"

namespace routesim::tools {

namespace {

/// Text as roff prints it: a backslash and a hyphen are themselves, and no line is a request.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      out += "\\&";
      out += c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

std::string option_entry(const OptionSpec& option) {
  const std::size_t comma = option.name.find(',');
  std::string out = ".TP\n";
  if (comma != std::string::npos)
    out.append(bold(std::string("-").append(option.name, comma + 1))).append(", ");
  out += bold("--" + option.name.substr(0, comma));
  if (!option.implicit_value.empty()) {
    out += "[=" + italic(option.value_name) + "]";
  } else if (!option.value_name.empty()) {
    out.append(" ").append(italic(option.value_name));
  }
  out.append("\n").append(roff(option.help));
  if (option.repeatable && !option.value_name.empty()) out += " May be given more than once.";
  return out + "\n";
}

std::string command_section(const Command& command) {
  std::string out = ".SS " + roff(command.name) + "\n" + roff(command.summary) + "\n.PP\n" +
                    bold("routesim " + command.name);
  if (command.positional.max > 0) {
    const std::string name =
        italic(command.positional.name) + (command.positional.max > 1 ? "..." : "");
    out += " " + (command.positional.min == 0 ? "[" + name + "]" : name);
  }
  if (!command.options.empty()) out += " [" + italic("options") + "]";
  out += "\n";
  for (const OptionSpec& option : command.options) out += option_entry(option);
  return out;
}

}  // namespace

std::string manual_page(const std::vector<Command>& commands) {
  std::string out = ".TH ROUTESIM 1 \"\" \"routesim " + roff(version()) +
                    "\" \"User Commands\"\n"
                    ".SH NAME\n"
                    "routesim \\- simulate LLM serving clusters under routing policies\n"
                    ".SH SYNOPSIS\n" +
                    bold("routesim") + " " + italic("COMMAND") + " [" + italic("arguments") +
                    "]\n.br\n" + bold("routesim --help") + "\n.br\n" + bold("routesim --version") +
                    "\n"
                    ".SH DESCRIPTION\n"
                    "Which routing policy, and how many servers, for this traffic and these "
                    "latency goals?\n"
                    "A scenario, a YAML file, describes the load, the servers and the policies; "
                    "routesim simulates\n"
                    "them request by request and prints what they achieve. The same scenario and "
                    "seed always print\n"
                    "the same bytes. Results go to standard output, everything else to standard "
                    "error.\n"
                    ".PP\n"
                    "Every command also understands " +
                    bold("--help") + ".\n.SH COMMANDS\n";
  for (const Command& command : commands) out += command_section(command);
  out += ".SH EXIT STATUS\n";
  for (const ExitMeaning& exit : kExitMeanings)
    out += ".TP\n" + bold(std::to_string(static_cast<int>(exit.code))) + "\n" + roff(exit.meaning) +
           "\n";
  out += ".SH EXAMPLES\n.TP\n" + bold("routesim check my-scenario.yaml") +
         "\nEverything that is wrong with it, without running it.\n.TP\n" +
         bold("routesim run my-scenario.yaml --set cluster.pools[0].replicas=4") +
         "\nOne value changed.\n.TP\n" + bold("routesim run my-scenario.yaml -o json=result.json") +
         "\nAll numbers, in a file.\n";
  return out;
}

}  // namespace routesim::tools
