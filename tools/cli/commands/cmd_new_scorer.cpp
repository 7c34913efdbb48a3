// routesim new-scorer: the edits of "Adding a scorer" (policies/README.md), made in a checkout.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/text.h"
#include "tools/cli/cli.h"
#include "tools/cli/commands/scorer_template.h"
#include "tools/results/output_file.h"

namespace routesim::tools {

namespace {

namespace fs = std::filesystem;

constexpr const char* kRegistry = "policies/config/scorers.cpp";
constexpr std::string_view kPluginInclude = "#include \"policies/plugins/";
constexpr std::size_t kColumns = 100;
constexpr std::string_view kFirstRow = "constexpr PluginRow kScorers[] = {";

/// One scorer's names: in configurations, of its files and functions, and of its classes.
struct ScorerNames {
  std::string type, snake, camel;
};

/// A file before and after; `before` is empty for a new one.
struct FileEdit {
  std::string path;  ///< Below the checkout.
  std::vector<std::string> before = {}, after = {};
};

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    lines.emplace_back(text.substr(0, end + (text[end] == '\n' ? 0 : 1)));
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string whole_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// `head` and `arguments`, as clang-format breaks them: aligned behind the bracket, or below it
/// where that leaves too little room.
std::string wrapped_call(const std::string& head, const std::vector<std::string>& arguments,
                         const std::string& tail, std::size_t below) {
  std::size_t indent = head.size();
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (head.size() + arguments[i].size() + (i + 1 < arguments.size() ? 1 : tail.size()) > kColumns)
      indent = below;
  std::string text = head, line(indent, ' ');
  if (indent == below) text += "\n" + line;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string piece = arguments[i] + (i + 1 < arguments.size() ? "," : tail);
    const bool first = line.size() == indent;
    if (!first && line.size() + 1 + piece.size() > kColumns) {
      text += "\n" + std::string(indent, ' ');
      line.assign(indent, ' ');
    } else if (!first) {
      text += ' ', line += ' ';
    }
    text += piece, line += piece;
  }
  return text;
}

std::string filled_in(std::string_view text, const ScorerNames& names) {
  const std::string& camel = names.camel;
  std::string constructor = wrapped_call(
      "  " + camel + "Scorer(",
      {"const " + camel + "Parameters& p", "const PluginSpec&", "BuildContext& context"}, ")", 6);
  constexpr std::string_view kRest = " : half_(p.half) {";
  const bool fits =
      constructor.find('\n') == std::string::npos && constructor.size() + kRest.size() <= kColumns;
  constructor += (fits ? "" : "\n     ") + std::string(kRest);
  const std::pair<std::string, std::string> words[] = {{"@constructor@", constructor},
                                                       {"@Name@", camel},
                                                       {"@name@", names.snake},
                                                       {"@type@", names.type}};
  std::string out(text);
  for (const auto& [word, value] : words)
    for (std::size_t at = 0; (at = out.find(word, at)) != std::string::npos; at += value.size())
      out.replace(at, word.size(), value);
  return out;
}

/// The names of `fresh-kv` or `fresh-kv-scorer`; a usage error where it is no name.
ScorerNames scorer_names(std::string name, Options& options) {
  const auto is_good = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  constexpr std::string_view kEnd = "-scorer";
  if (name.ends_with(kEnd)) name.resize(name.size() - kEnd.size());
  bool good = !name.empty() && name.size() <= 30 && is_good(name.back()) && !std::isdigit(name[0]);
  char last = '-';
  ScorerNames names{.type = name + std::string(kEnd), .snake = {}, .camel = {}};
  for (const char c : name) {
    good = good && (is_good(c) || (c == '-' && last != '-'));
    names.snake += c == '-' ? '_' : c;
    if (c != '-')
      names.camel += last == '-' && c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    last = c;
  }
  if (!good)
    options.fail(
        "NAME must be up to 30 lower-case letters, digits and single hyphens, such as "
        "fresh-kv (got " +
        printable(options.positionals().front()) + ")");
  return names;
}

/// Complains where the type, a file or an identifier exists already.
void check_taken(const fs::path& root, const ScorerNames& names, Diagnostics& out) {
  const std::string words[] = {"\"" + names.type + "\"", "class " + names.camel + "Scorer ",
                               "struct " + names.camel + "Parameters ",
                               " " + names.snake + "_score("};
  for (const char* folder : {"policies", "policies/plugins", "policies/config"}) {
    std::vector<fs::path> files;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(root / folder, none)) files.push_back(entry);
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      if (file.extension() != ".h" && file.extension() != ".cpp") continue;
      const std::string text = whole_file(file);
      for (const std::string& word : words)
        if (text.find(word) != std::string::npos)
          out.error({.file = file.string()}, "",
                    "has " + in_quotes(trimmed(word, " (")) + " already", "choose another name");
    }
  }
}

/// The registry with an include and a row more; an error where it has no place for them.
FileEdit register_scorer(const fs::path& root, const ScorerNames& names, Diagnostics& out) {
  FileEdit edit{.path = kRegistry, .before = lines_of(whole_file(root / kRegistry))};
  std::vector<std::string>& lines = edit.after = edit.before;
  const std::string include = std::string(kPluginInclude) + names.snake + ".h\"";
  auto place = lines.end();
  for (auto line = lines.begin(); line != lines.end(); ++line)
    if (line->starts_with(kPluginInclude) && (*line < include || place == lines.end()))
      place = *line < include ? line + 1 : line;
  const auto rows = std::find(lines.begin(), lines.end(), kFirstRow);
  const auto end = std::find(rows, lines.end(), "};");
  if (place == lines.end() || end == lines.end() || place > rows) {
    out.error({.file = (root / kRegistry).string()}, "",
              "has no includes of plugins, or no rows after " + in_quotes(kFirstRow),
              "--root names a checkout of this version of routesim");
    return edit;
  }
  const std::string row =
      wrapped_call("    implemented<" + names.camel + "Scorer, " + names.camel + "Parameters>(",
                   {"\"" + names.type + "\"", "\"half / (half + waiting requests).\""}, "),", 8);
  const std::vector<std::string> row_lines = lines_of(row);
  const auto at = place - lines.begin();
  lines.insert(end, row_lines.begin(), row_lines.end());
  lines.insert(lines.begin() + at, include);
  return edit;
}

std::vector<FileEdit> edits_for(const fs::path& root, const ScorerNames& names, Diagnostics& out) {
  std::vector<FileEdit> edits = {{.path = "policies/plugins/" + names.snake + ".h",
                                  .after = lines_of(filled_in(kScorerHeader, names))},
                                 {.path = "tests/policies/" + names.snake + "_scorer_test.cpp",
                                  .after = lines_of(filled_in(kScorerTest, names))},
                                 register_scorer(root, names, out)};
  for (const FileEdit& edit : edits) {
    const std::string path = (root / edit.path).string();
    if (edit.before.empty() && fs::exists(path))
      out.error({.file = path}, "", "exists already", "choose another name");
    else if (const std::string why = why_not_writable(path); !why.empty())
      out.error({.file = path}, "", why);
  }
  return edits;
}

std::string lines_text(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// A unified diff. Lines were only added, so the old ones come in their order in the new ones.
std::string diff_of(const FileEdit& edit) {
  constexpr std::size_t kContext = 3;
  std::vector<bool> added;
  std::size_t old = 0;
  for (const std::string& line : edit.after) {
    added.push_back(old == edit.before.size() || line != edit.before[old]);
    if (!added.back()) ++old;
  }
  std::string text = edit.before.empty() ? "--- /dev/null\n" : "--- a/" + edit.path + "\n";
  text += "+++ b/" + edit.path + "\n";
  std::size_t added_before = 0;  // Lines added by earlier hunks.
  const auto next_added = [&](std::size_t from) {
    return static_cast<std::size_t>(
        std::find(added.begin() + static_cast<std::ptrdiff_t>(from), added.end(), true) -
        added.begin());
  };
  for (std::size_t at = next_added(0); at < added.size();) {
    const std::size_t begin = at - std::min(at, kContext);
    std::size_t end = at, last = at;
    for (; at < added.size() && at <= last + 2 * kContext; at = next_added(at + 1)) last = at;
    end = std::min(last + kContext + 1, added.size());
    std::string body;
    std::size_t news = 0;
    for (std::size_t i = begin; i < end; ++i) {
      news += added[i] ? 1 : 0;
      body += (added[i] ? "+" : " ") + edit.after[i] + "\n";
    }
    const std::size_t olds = end - begin - news;
    text += fmt::format("@@ -{},{} +{},{} @@\n{}", begin - added_before + (olds > 0 ? 1 : 0), olds,
                        begin + 1, end - begin, body);
    added_before += news;
  }
  return text;
}

ExitCode run_new_scorer(Options& options, Console& console) {
  const ScorerNames names = scorer_names(options.positionals().front(), options);
  if (!options.ok()) return refuse(options, console);
  const fs::path root = options.get("root", ".");
  Diagnostics diagnostics;
  std::error_code none;
  if (fs::exists(root / kRegistry, none))
    check_taken(root, names, diagnostics);
  else
    diagnostics.error({.file = (root / kRegistry).string()}, "", "is not there",
                      "run this in a checkout of routesim, or name one with --root");
  std::vector<FileEdit> edits;
  if (!diagnostics.has_errors()) edits = edits_for(root, names, diagnostics);
  if (!diagnostics.has_errors() && !options.has("dry-run")) {
    std::vector<FolderFile> files;
    for (const FileEdit& edit : edits) files.push_back({edit.path, lines_text(edit.after)});
    if (const std::string error = write_folder(root.string(), files); !error.empty())
      diagnostics.error({.file = root.string()}, "", "cannot be written: " + error);
  }
  console.complain(diagnostics);
  if (diagnostics.has_errors()) return ExitCode::kInvalid;
  for (const FileEdit& edit : edits)
    console.print(options.has("dry-run")
                      ? diff_of(edit)
                      : (edit.before.empty() ? "new      " : "changed  ") + edit.path + "\n");
  if (!options.has("dry-run"))
    console.print(
        fmt::format("\nBuild, and run the new test:\n"
                    "  cmake --build build/release --target policies_tests routesim\n"
                    "  build/release/tests/policies_tests --gtest_filter='{0}Scorer.*'\n"
                    "Write the list of keys again:\n"
                    "  build/release/routesim schema keys -o markdown > docs/reference/keys.md\n"
                    "Then change the formula, its comment and the numbers of the test. In an "
                    "EndpointPickerConfig:\n  - type: {1}\n",
                    names.camel, names.type));
  return ExitCode::kSuccess;
}

}  // namespace

Command new_scorer_command() {
  return {.name = "new-scorer",
          .summary = "Write the files of a new C++ scorer into a checkout of routesim.",
          .positional = {.name = "NAME", .min = 1, .max = 1},
          .options = {{"root", "FOLDER", "The checkout (default: the current folder)."},
                      {.name = "dry-run", .help = "Print the edits as a diff; write nothing."}},
          .examples = {{"routesim new-scorer queue-age",
                        "A scorer with its test and its registration, in this checkout."},
                       {"routesim new-scorer queue-age --dry-run", "The edits as a diff."}},
          .run = &run_new_scorer};
}

}  // namespace routesim::tools
