// Finds the `vllm serve` in command lines and scripts.
#include <algorithm>
#include <array>
#include <span>

#include "base/printable.h"
#include "base/scalar_parse.h"
#include "tools/ingest/vllm_serve_files.h"

namespace routesim::tools {

namespace {

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_server_module(std::string_view name) {
  return name == "vllm.entrypoints.openai.api_server" || name == "vllm.entrypoints.api_server";
}

/// Index of the first word after the one that starts the server; 0 when there is none.
std::size_t after_start(const std::vector<ShellWord>& words) {
  const auto text = [&](std::size_t i) {
    return i < words.size() ? std::string_view(words[i].text) : std::string_view();
  };
  if (text(0) == "echo" || text(0) == "printf") return 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (last_part(text(i)) == "vllm" && text(i + 1) == "serve") return i + 2;
    if (text(i) == "-m" && is_server_module(text(i + 1))) return i + 2;
    if (text(i) == "-m" && text(i + 1) == "vllm.entrypoints.cli.main" && text(i + 2) == "serve")
      return i + 3;
    if (text(i).ends_with("vllm/entrypoints/openai/api_server.py")) return i + 1;
  }
  constexpr std::array<std::string_view, 3> kRunners = {"docker", "podman", "nerdctl"};
  const std::size_t runner = text(0) == "sudo" ? 1 : 0;
  if (std::find(kRunners.begin(), kRunners.end(), text(runner)) == kRunners.end()) return 0;
  for (std::size_t i = runner + 1; i < words.size(); ++i)
    if (!text(i).starts_with("-") && last_part(text(i)).starts_with("vllm-") &&
        text(i).find('/') != std::string_view::npos)
      return i + 1;
  return 0;
}

/// The environment that stands before the command: `NAME=VALUE`, and docker's `-e NAME=VALUE`.
void note_environment(const std::vector<ShellWord>& before, ShellVariables& environment) {
  for (const ShellWord& word : before) {
    const std::size_t start = word.text.starts_with("-e=")      ? 3
                              : word.text.starts_with("--env=") ? 6
                                                                : 0;
    const std::string assignment = word.text.substr(start);
    if (const std::size_t n = assigned_name(assignment); n > 0)
      environment[assignment.substr(0, n)] = {
          .text = assignment.substr(n + 1), .where = word.where, .unknown = word.unknown};
  }
}

/// Looks like vLLM's image or llm-d's, which holds it.
bool is_image(std::string_view word) {
  const std::string_view name = last_part(word);
  return word.find('/') != std::string_view::npos &&
         (name.starts_with("vllm-") || name.starts_with("llm-d"));
}

ServerStart start_of(const std::vector<ShellWord>& words, std::size_t first,
                     const ShellVariables& variables) {
  const auto begin = words.begin() + static_cast<std::ptrdiff_t>(first);
  ServerStart start{
      .where = words.front().where, .words = {begin, words.end()}, .environment = variables};
  note_environment({words.begin(), begin}, start.environment);
  for (const ShellWord& word : std::span(words).first(first))
    if (is_image(word.text)) start.image = word;
  return start;
}

bool is_headless(const ServerStart& start) {
  return std::any_of(start.words.begin(), start.words.end(),
                     [](const ShellWord& word) { return word.text == "--headless"; });
}

/// Flags alone; each line may be a command of its own.
bool are_flags(const std::vector<ShellCommand>& commands) {
  return !commands.empty() && std::all_of(commands.begin(), commands.end(), [](const auto& c) {
    return c.front().text.starts_with("-");
  });
}

/// A model and flags: what a container's `args` are when its image starts the server.
bool is_model_and_flags(const ShellCommand& words) {
  return words.front().text.starts_with("-") ||
         (words.front().text.find('/') != std::string::npos &&
          (words.size() == 1 || words[1].text.starts_with("-")));
}

}  // namespace

std::optional<ServerStart> start_in_text(const std::string& text, const ShellPlaces& places,
                                         const SourceLocation& where, const ShellVariables& known,
                                         const std::string& key_path, Diagnostics& diagnostics) {
  ShellVariables variables = known;
  Diagnostics found;
  std::vector<ShellCommand> commands = split_shell(text, places, variables, key_path, found);
  for (const Diagnostic& d : found.items()) diagnostics.add(d);
  if (found.has_errors()) return std::nullopt;
  if (are_flags(commands)) {
    for (std::size_t i = 1; i < commands.size(); ++i)
      commands[0].insert(commands[0].end(), commands[i].begin(), commands[i].end());
    return start_of(commands[0], 0, variables);
  }
  std::vector<ServerStart> starts;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const std::size_t first = after_start(commands[i]);
    if (first == 0) continue;
    starts.push_back(start_of(commands[i], first, variables));
    const ShellCommand* next = i + 1 < commands.size() ? &commands[i + 1] : nullptr;
    if (next != nullptr && next->front().text.starts_with("--"))
      diagnostics.error(
          next->front().where, key_path,
          "is no part of the command before it (got " + in_quotes(next->front().text) + ")",
          "end the line before with a backslash, and nothing after it");
  }
  if (starts.size() > 1) std::erase_if(starts, is_headless);
  if (starts.empty() && commands.size() == 1 && is_model_and_flags(commands.front()))
    return start_of(commands.front(), 0, variables);
  if (starts.empty())
    diagnostics.error(where, key_path, "starts no vLLM server",
                      "write vllm serve MODEL --flags, or the path of a file that does");
  if (starts.size() > 1)
    diagnostics.error(
        starts[1].where, key_path,
        "starts a second server, after the one on line " + std::to_string(starts[0].where.line),
        "give the command of one");
  return starts.size() == 1 ? std::optional<ServerStart>(std::move(starts.front())) : std::nullopt;
}

std::optional<ServerStart> start_in_scalar(const ConfigNode& scalar, const ShellVariables& known,
                                           const std::string& key_path, Diagnostics& diagnostics) {
  return start_in_text(shell_text(scalar), places_in(scalar), scalar.where(), known, key_path,
                       diagnostics);
}

std::optional<ServerStart> start_in_list(const ConfigNode& list, const ShellVariables& known,
                                         const std::string& key_path, Diagnostics& diagnostics) {
  const auto is_end = [](const ConfigNode& item) {
    return item.is_scalar() && item.text() == "--";
  };
  constexpr std::array<std::string_view, 6> kShells = {"sh", "bash", "ash", "dash", "zsh", "ksh"};
  std::vector<ShellWord> words;
  const ConfigNode* script = nullptr;
  for (std::size_t i = 0; i < list.items().size(); ++i) {
    const ConfigNode& item = *list.items()[i];
    if (!item.is_scalar()) {
      diagnostics.error(item.where(), key_path, "must be a list of words (" + got(item) + ")");
      return std::nullopt;
    }
    words.push_back(kubernetes_word(item, known));
    const bool has_shell = std::any_of(words.begin(), words.end(), [&](const ShellWord& word) {
      return std::find(kShells.begin(), kShells.end(), last_part(word.text)) != kShells.end();
    });
    const bool is_option = item.text().size() <= 5 && item.text().starts_with("-") &&
                           !item.text().starts_with("--") && item.text().ends_with("c");
    // `--` ends the shell's own options.
    const std::size_t next =
        i + (i + 1 < list.items().size() && is_end(*list.items()[i + 1]) ? 2 : 1);
    if (script == nullptr && has_shell && is_option && next < list.items().size())
      script = list.items()[next].get();
  }
  if (script != nullptr) return start_in_scalar(*script, known, key_path, diagnostics);
  if (const std::size_t first = after_start(words); first > 0) return start_of(words, first, known);
  const bool is_subcommand = !words.empty() && words.front().text == "serve";
  if (is_subcommand || (!words.empty() && is_model_and_flags(words)))
    return start_of(words, is_subcommand ? 1 : 0, known);
  diagnostics.error(list.where(), key_path, "starts no vLLM server (" + got(list) + ")",
                    "write the words of vllm serve MODEL --flags, or the flags alone");
  return std::nullopt;
}

}  // namespace routesim::tools
