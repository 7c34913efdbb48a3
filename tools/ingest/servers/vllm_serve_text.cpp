// Server starts in command lines, scripts and lists of words.
#include <fmt/format.h>

#include <algorithm>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "tools/ingest/servers/vllm_serve_files.h"
#include "tools/ingest/tree/data_table.h"
#include "tools/ingest/tree/nodes.h"

namespace routesim::tools {

namespace {

/// A program that serves a model, by the last parts of its words.
struct ServerProgram {
  std::string_view words;
  std::string_view engine;  ///< kVllmEngine where it takes vLLM's flags.
  std::string_view image;   ///< The begin of the name of an image that starts it.
};

const std::vector<ServerProgram>& server_programs() {
  static const DataTable kRows = data_table("tools/ingest/servers/server_programs.csv");
  static const std::vector<ServerProgram> kPrograms = [] {
    std::vector<ServerProgram> programs;
    for (const std::vector<std::string>& row : kRows)
      programs.push_back({row.at(0), row.at(1), row.at(2)});
    return programs;
  }();
  return kPrograms;
}

/// Number of words at `begin` that are those of `program`; 0 when they are others.
std::size_t length_of(const ServerProgram& program, const std::vector<ShellWord>& words,
                      std::size_t begin) {
  std::string_view rest = program.words;
  std::size_t i = begin;
  for (; !rest.empty(); ++i) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (i == words.size() || last_part(words[i].text) != rest.substr(0, end)) return 0;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return i - begin;
}

/// Where the flags of a server begin, and whose they are.
struct ServeWords {
  std::size_t first = 0;  ///< 0 when nothing is started.
  sim::EngineKind engine = sim::EngineKind::kVllm;
};

/// The first word after the ones that start a simulated engine.
ServeWords after_serve(const std::vector<ShellWord>& words) {
  if (!words.empty() && words.front().text == "echo") return {};
  for (std::size_t i = 0; i < words.size(); ++i)
    for (const ServerProgram& program : server_programs())
      if (const std::size_t n = length_of(program, words, i))
        if (const auto engine = simulated_engine(program.engine))
          return {.first = i + n, .engine = *engine};
  return {};
}

ServerStart start_of(const std::vector<ShellWord>& words, const ServeWords& serve,
                     const ShellVariables& variables) {
  const auto begin = words.begin() + static_cast<std::ptrdiff_t>(serve.first);
  ServerStart start{.where = words.front().where,
                    .words = {begin, words.end()},
                    .environment = variables,
                    .engine = serve.engine};
  for (auto word = words.begin(); word != begin; ++word)  // NAME=VALUE before the command.
    if (const std::size_t n = assigned_name(word->text); n > 0)
      start.environment[word->text.substr(0, n)] = {
          .text = word->text.substr(n + 1), .where = word->where, .unknown = word->unknown};
  return start;
}

bool is_option(const ShellWord& word) { return word.text.starts_with("-"); }

/// Puts the arguments of a script where it says `"$@"`.
void set_arguments(const std::vector<ShellWord>& arguments, ServerStart& start) {
  std::vector<ShellWord> words;
  for (const ShellWord& word : start.words) {
    if (word.text == "$@")
      words.insert(words.end(), arguments.begin(), arguments.end());
    else
      words.push_back(word);
  }
  start.words = std::move(words);
}

/// A model and flags: the `args` of a container whose image starts the server.
bool is_model_and_flags(const std::vector<ShellWord>& words) {
  return is_option(words.front()) || (words.front().text.find('/') != std::string::npos &&
                                      (words.size() == 1 || is_option(words[1])));
}

}  // namespace

std::string not_simulated(std::string_view engine) {
  return "starts " + std::string(engine) + ", which is not simulated";
}

std::optional<sim::EngineKind> simulated_engine(std::string_view name) {
  if (name == kVllmEngine) return sim::EngineKind::kVllm;
  if (name == "SGLang") return sim::EngineKind::kSglang;
  return std::nullopt;
}

std::string_view engine_in(const std::string& text, const std::string& image) {
  for (const ServerProgram& program : server_programs())
    if (text.find(program.words) != std::string::npos) return program.engine;
  for (const ServerProgram& program : server_programs())
    if (!program.image.empty() && last_part(image).starts_with(program.image))
      return program.engine;
  return {};
}

ServerStart unread_start(const std::string& unread, std::string text, const SourceLocation& where) {
  ServerStart start{.where = where, .unread = unread};
  constexpr std::string_view kModel = "--model-path --model --model-id --model-tag trtllm-serve";
  constexpr std::string_view kTensor = "--tp --tp-size --tensor-parallel-size --tensor-parallel";
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return std::string_view("=;\\\"'").find(c) != std::string_view::npos; }, ' ');
  std::string flag;
  for (const std::string_view w : words_of(text)) {
    const std::string word(w);
    const bool is_model = has_word(kModel, flag);
    if (word == "serve") continue;
    if ((is_model || has_word(kTensor, flag)) && !word.starts_with("-") &&
        word.find('$') == std::string::npos)
      add_member(start.flags, is_model ? "model" : "tp", plain(word, where));
    flag = with_hyphens(word);
  }
  return start;
}

std::string pool_by_hand(const ServerStart& start) {
  std::string keys = "name: " + (start.name.empty() ? "vllm" : printable(start.name));
  if (start.replicas != nullptr) keys += ", replicas: " + printable(start.replicas->text());
  for (const auto& flag : start.flags)
    keys +=
        (flag.key == "model" ? ", model: " : ", tensor_parallel: ") + printable(flag.value->text());
  return "write the pool by hand, to begin with: {" + keys + "}";
}

std::optional<ServerStart> start_in_text(const std::string& text, const ShellPlaces& places,
                                         const SourceLocation& where, const ShellVariables& known,
                                         const std::string& key_path, Diagnostics& diagnostics) {
  const std::string_view engine = engine_in(text);
  if (!engine.empty() && !simulated_engine(engine))
    return unread_start(not_simulated(engine), text, where);
  ShellVariables variables = known;
  Diagnostics found;
  std::vector<ShellCommand> commands = split_shell(text, places, variables, key_path, found);
  append(diagnostics, found);
  if (found.has_errors()) return std::nullopt;
  for (std::size_t i = 0; i < commands.size(); ++i)
    if (const std::size_t script = script_index(commands[i]); script > 0) {
      const ShellWord& word = commands[i][script];
      const auto at = [&](int, int) { return word.where; };
      const std::vector<ShellCommand> inner =
          split_shell(word.text, at, variables, key_path, diagnostics);
      commands.insert(commands.begin() + static_cast<std::ptrdiff_t>(i) + 1, inner.begin(),
                      inner.end());
    }
  if (join_flags(commands, "-")) return start_of(commands[0], {}, variables);
  std::vector<ServerStart> starts;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const ServeWords serve = after_serve(commands[i]);
    if (serve.first == 0) continue;
    starts.push_back(start_of(commands[i], serve, variables));
    const ShellCommand* next = i + 1 < commands.size() ? &commands[i + 1] : nullptr;
    if (next != nullptr && next->front().text.starts_with("--"))
      diagnostics.error(
          next->front().where, key_path,
          "is no part of the command before it (got " + in_quotes(next->front().text) + ")",
          "end the line before with a backslash, and nothing after it");
  }
  if (starts.empty() && commands.size() == 1 && is_model_and_flags(commands.front()))
    return start_of(commands.front(), {}, variables);
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
  std::vector<ShellWord> words;
  std::string line;
  for (const ConfigNode::Ptr& item : list.items()) {
    if (!item->is_scalar()) {
      diagnostics.error(item->where(), key_path, "must be a list of words (" + got(*item) + ")");
      return std::nullopt;
    }
    words.push_back(kubernetes_word(*item, known));
    line += item->text() + ' ';
  }
  if (const std::string_view engine = engine_in(line); !engine.empty() && !simulated_engine(engine))
    return unread_start(not_simulated(engine), line, list.where());
  // [bash, -c, SCRIPT, NAME, ARGUMENT...]
  if (const std::size_t script = script_index(words); script > 0) {
    std::optional<ServerStart> start =
        start_in_scalar(*list.items()[script], known, key_path, diagnostics);
    const auto arguments = words.begin() + static_cast<std::ptrdiff_t>(script) + 2;
    if (start && words.size() > script + 2) set_arguments({arguments, words.end()}, *start);
    return start;
  }
  if (const ServeWords serve = after_serve(words); serve.first > 0)
    return start_of(words, serve, known);
  const bool is_subcommand = !words.empty() && words.front().text == "serve";
  if (is_subcommand || (!words.empty() && is_model_and_flags(words)))
    return start_of(words, {.first = is_subcommand ? 1U : 0U}, known);
  diagnostics.error(list.where(), key_path, "starts no vLLM server (" + got(list) + ")",
                    "write the words of vllm serve MODEL --flags, or the flags alone");
  return std::nullopt;
}

}  // namespace routesim::tools
