// Finds the `vllm bench serve` in command lines and scripts.
#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "tools/ingest/loads/vllm_bench_yaml.h"
#include "tools/ingest/tree/config_merge.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/ingest/tree/shell_words.h"

namespace routesim::tools {

namespace {

/// Index of the first word after the ones that start the tool; 0 when there are none.
std::size_t after_bench(const ShellCommand& words) {
  const auto text = [&](std::size_t i) {
    return i < words.size() ? std::string_view(words[i].text) : std::string_view();
  };
  if (text(0) == "echo" || text(0) == "printf") return 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (text(i) == "bench" && text(i + 1) == "serve") return i + 2;
    if (last_part(text(i)) == "benchmark_serving.py" ||
        text(i).ends_with("vllm/benchmarks/serve.py"))
      return i + 1;
  }
  return 0;
}

bool is_flag(const ShellWord& word) { return word.text.starts_with("--"); }

/// Flags and what stands after them, one by one.
class FlagReader {
 public:
  FlagReader(const ShellCommand& words, std::size_t next, const std::string& key_path,
             Diagnostics& diagnostics)
      : words_(words), next_(next), key_path_(key_path), diagnostics_(diagnostics) {}

  Members read() {
    while (next_ < words_.size()) {
      const ShellWord& word = words_[next_++];
      if (is_flag(word))
        flag(word);
      else
        diagnostics_.error(word.where, key_path_,
                           "stands without a flag (got " + in_quotes(word.text) + ")",
                           "a flag's name begins with two dashes");
    }
    return std::move(flags_);
  }

 private:
  void flag(const ShellWord& word) {
    const std::size_t equals = word.text.find('=');
    std::vector<ShellWord> values;
    if (equals != std::string::npos) {
      ShellWord value = word;
      value.text = word.text.substr(equals + 1);
      values.push_back(std::move(value));
    }
    const std::string name = word.text.substr(2, equals == std::string::npos ? equals : equals - 2);
    while (equals == std::string::npos && next_ < words_.size() && !is_flag(words_[next_]))
      values.push_back(words_[next_++]);
    if (name == "config") return add_file(word, values);
    const auto unknown = std::find_if(values.begin(), values.end(),
                                      [](const ShellWord& v) { return !v.unknown.empty(); });
    if (unknown != values.end() && !is_own_business_of_vllm_bench(name)) {
      diagnostics_.error(unknown->where, key_path_,
                         "the value of --" + printable(name) + " is not known here (got " +
                             in_quotes(unknown->unknown) + ")",
                         "write the value in its place");
      return;
    }
    set(flags_, {.key = name, .key_where = word.where, .value = node_of(values, word.where)});
  }

  static Ptr node_of(const std::vector<ShellWord>& values, const SourceLocation& where) {
    if (values.empty()) return ConfigNode::make_null(where);
    std::vector<Ptr> nodes;
    for (const ShellWord& value : values) nodes.push_back(untyped(value.text, value.where));
    return nodes.size() == 1 ? nodes.front()
                             : ConfigNode::make_sequence(std::move(nodes), values.front().where);
  }

  /// The last of two flags counts.
  static void set(Members& flags, ConfigNode::Member flag) {
    std::erase_if(flags, [&](const auto& other) {
      return with_underscores(other.key) == with_underscores(flag.key);
    });
    flags.push_back(std::move(flag));
  }

  /// The flags of the tool's `--config` file, which flags of the command line go before.
  void add_file(const ShellWord& word, const std::vector<ShellWord>& values) {
    if (values.size() != 1) {
      diagnostics_.error(word.where, key_path_, "--config takes one file");
      return;
    }
    const Ptr file = read_config_file(resolve_path(values[0].text, values[0].where), diagnostics_);
    if (file == nullptr || !file->is_map()) return;
    Members all = file->members();
    for (ConfigNode::Member& flag : flags_) set(all, std::move(flag));
    flags_ = std::move(all);
  }

  const ShellCommand& words_;
  std::size_t next_;
  const std::string& key_path_;
  Diagnostics& diagnostics_;
  Members flags_;
};

Ptr flags_in_text(const std::string& text, const ShellPlaces& places, const SourceLocation& where,
                  const std::string& key_path, Diagnostics& diagnostics) {
  ShellVariables variables;
  Diagnostics found;
  std::vector<ShellCommand> commands = split_shell(text, places, variables, key_path, found);
  append(diagnostics, found);
  const Ptr none = ConfigNode::make_map({}, where);
  if (found.has_errors()) return none;
  join_flags(commands, "--");
  const ShellCommand* run = nullptr;
  std::size_t first = 0;
  for (const ShellCommand& command : commands) {
    const std::size_t start = after_bench(command);
    if (start == 0 && !(commands.size() == 1 && is_flag(command.front()))) continue;
    if (run != nullptr) {
      diagnostics.error(
          command.front().where, key_path,
          "is a second run, after the one on line " + std::to_string(run->front().where.line),
          "give the command of one, and how others differ with --set "
          "workload.vllm_bench.runs=[...]");
      return none;
    }
    run = &command;
    first = start;
  }
  if (run == nullptr) {
    diagnostics.error(where, key_path, "runs no vllm bench serve",
                      "write vllm bench serve --flags, or the path of a file that does");
    return none;
  }
  return ConfigNode::make_map(FlagReader(*run, first, key_path, diagnostics).read(), where);
}

}  // namespace

bool is_vllm_bench_command(const ConfigNode& scalar) {
  const std::string& text = scalar.text();
  return scalar.style() == ConfigNode::Style::kBlock || text.starts_with("--") ||
         text.find_first_of(" \t\n") != std::string::npos;
}

Ptr vllm_bench_command(const ConfigNode& scalar, const std::string& key_path,
                       Diagnostics& diagnostics) {
  const bool may_be_path =
      scalar.style() != ConfigNode::Style::kBlock && !scalar.text().starts_with("--");
  const std::string path = may_be_path ? resolve_path(scalar.text(), scalar.where()) : "";
  std::error_code unreadable;
  const bool is_file = may_be_path && std::filesystem::is_regular_file(path, unreadable);
  if (!is_file && is_vllm_bench_command(scalar))
    return flags_in_text(shell_text(scalar), places_in(scalar), scalar.where(), key_path,
                         diagnostics);
  if (!is_file || is_config_name(path)) return nullptr;
  std::string text;
  if (!read_text_file(path, scalar.where(), key_path, ConfigLimits{}.max_bytes, text, diagnostics))
    return ConfigNode::make_map({}, scalar.where());
  return flags_in_text(text, places_in_file(path), scalar.where(), key_path, diagnostics);
}

}  // namespace routesim::tools
