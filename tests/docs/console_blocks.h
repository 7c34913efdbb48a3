// Markdown pages as tests see them: commands in `console` blocks, links, words.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace routesim::docs {

namespace fs = std::filesystem;

inline std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

inline void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// One `$ command` of a ```console block. It may go on over lines that end in a backslash, and end
/// in a comment `# exit N` that says with which code.
struct ConsoleCommand {
  std::string text;
  std::string output;  ///< What the page shows below it.
  int line = 0;        ///< Of the page, from 1.
  int expected_code = 0;
};

inline std::vector<ConsoleCommand> console_commands(const std::string& page) {
  std::vector<ConsoleCommand> commands;
  bool inside = false;
  bool continued = false;
  int number = 0;
  for (const std::string& line : lines_of(page)) {
    ++number;
    if (line.starts_with("```")) {
      inside = !inside && line == "```console";
    } else if (inside && continued) {
      commands.back().text += "\n" + line;
    } else if (inside && line.starts_with("$ ")) {
      commands.push_back({.text = line.substr(2), .output = {}, .line = number});
    } else if (inside && !commands.empty()) {
      commands.back().output += line + "\n";
      continue;
    }
    continued = inside && line.ends_with('\\');
  }
  for (ConsoleCommand& command : commands) {
    const std::size_t mark = command.text.find("# exit ");
    if (mark != std::string::npos) command.expected_code = std::stoi(command.text.substr(mark + 7));
  }
  return commands;
}

struct CommandResult {
  int code = -1;
  std::string out;
  std::string err;
};

/// Runs `command` with bash in `where`; `./tools/run` becomes `routesim run` of this build, found
/// in `programs` like `routesim` itself.
inline CommandResult run_command(std::string command, const fs::path& where,
                                 const fs::path& programs, const fs::path& scratch) {
  const std::string script = "./tools/run";
  for (std::size_t at = command.find(script); at != std::string::npos; at = command.find(script))
    command.replace(at, script.size(), "routesim run");
  write(scratch / "command", "cd '" + where.string() + "' && export PATH='" + programs.string() +
                                 "':\"$PATH\"\n" + command + "\n");
  const std::string base = "'" + scratch.string() + "/";
  const std::string line =
      "bash " + base + "command' >" + base + "out' 2>" + base + "err' </dev/null";
  CommandResult result;
  result.code = WEXITSTATUS(std::system(line.c_str()));
  result.out = read(scratch / "out");
  result.err = read(scratch / "err");
  return result;
}

/// The words of a line: every number, with its sign and separators, becomes `#`; a lone `-` stands
/// where a number is missing.
inline std::string words_of(const std::string& line) {
  std::string out;
  for (std::size_t i = 0; i < line.size();) {
    const auto is_digit = [&](std::size_t k) {
      return k < line.size() && std::isdigit(static_cast<unsigned char>(line[k])) != 0;
    };
    const bool sign = (line[i] == '+' || line[i] == '-') && is_digit(i + 1);
    if (is_digit(i) || sign) {
      i += sign ? 1 : 0;
      while (is_digit(i) || ((line[i] == '.' || line[i] == ',') && is_digit(i + 1))) ++i;
      out += "#";
    } else if (line[i] == ' ' || (line[i] == '-' && !out.empty() && out.back() == '-')) {
      if (line[i] == ' ' && !out.empty() && out.back() != ' ') out += ' ';
      ++i;
    } else {
      out += line[i++];
    }
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

/// Whether `actual` says what `page` says: the same lines but for their numbers and blanks, where a
/// line `…` of the page stands for any number of lines.
inline bool same_words(const std::string& page, const std::string& actual) {
  const std::vector<std::string> expected = lines_of(page);
  const std::vector<std::string> lines = lines_of(actual);
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t i = 0, j = 0, elision = kNone, resume = 0;
  while (j < lines.size()) {
    if (i < expected.size() && expected[i] == "…") {
      elision = i++;
      resume = j;
    } else if (i < expected.size() && words_of(expected[i]) == words_of(lines[j])) {
      ++i;
      ++j;
    } else if (elision != kNone) {  // Let the last elision swallow one line more.
      i = elision + 1;
      j = ++resume;
    } else {
      return false;
    }
  }
  while (i < expected.size() && expected[i] == "…") ++i;
  return i == expected.size();
}

/// The page with the output of one command replaced by `actual`. A page that leaves lines out keeps
/// leaving them out: each line that stands between is replaced by the next one that begins alike.
inline std::string with_output(const std::string& page, const ConsoleCommand& command,
                               const std::string& actual) {
  std::string fresh;
  if (command.output.find("…\n") == std::string::npos) {
    fresh = actual;
    if (!fresh.empty() && fresh.back() != '\n') fresh += '\n';
  } else {
    const std::vector<std::string> lines = lines_of(actual);
    std::size_t at = 0;
    for (const std::string& line : lines_of(command.output)) {
      if (line == "…") {
        fresh += line + "\n";
        continue;
      }
      std::size_t next = at;
      while (next < lines.size() && words_of(lines[next]) != words_of(line)) ++next;
      const auto alike = [&](const std::string& candidate) {
        return candidate.substr(0, 14) == line.substr(0, 14);
      };
      if (const auto same =
              std::find_if(lines.begin() + static_cast<std::ptrdiff_t>(at), lines.end(), alike);
          same != lines.end())
        next = static_cast<std::size_t>(same - lines.begin());
      if (next < lines.size()) at = next + 1;
      fresh += (next < lines.size() ? lines[next] : line) + "\n";
    }
  }
  const std::string head = "$ " + command.text + "\n";
  const std::size_t at = page.find(head + command.output);
  if (at == std::string::npos) return page;
  return page.substr(0, at) + head + fresh + page.substr(at + head.size() + command.output.size());
}

/// Every Markdown page of the repository but build folders and data.
inline std::vector<fs::path> markdown_pages(const fs::path& root) {
  std::vector<fs::path> pages;
  for (auto it = fs::recursive_directory_iterator(root); it != fs::end(it); ++it) {
    const std::string name = it->path().filename().string();
    if (it->is_directory() && (name == "build" || name == ".git" || name == ".cache"))
      it.disable_recursion_pending();
    if (it->is_regular_file() && it->path().extension() == ".md") pages.push_back(it->path());
  }
  std::sort(pages.begin(), pages.end());
  return pages;
}

/// The targets of `[text](target)`.
inline std::vector<std::string> links_of(const std::string& page) {
  std::vector<std::string> targets;
  bool code = false;
  for (const std::string& line : lines_of(page)) {
    if (line.starts_with("```")) code = !code;
    if (code) continue;
    for (std::size_t at = line.find("]("); at != std::string::npos; at = line.find("](", at + 2)) {
      const std::size_t end = line.find(')', at);
      if (end != std::string::npos) targets.push_back(line.substr(at + 2, end - at - 2));
    }
  }
  return targets;
}

/// The different values of a column of plain CSV, sorted.
inline std::vector<std::string> csv_column(const std::string& csv, const std::string& name) {
  const auto split = [](const std::string& line) {
    std::vector<std::string> fields;
    std::istringstream in(line);
    for (std::string field; std::getline(in, field, ',');) fields.push_back(field);
    return fields;
  };
  const std::vector<std::string> lines = lines_of(csv);
  if (lines.empty()) return {};
  const std::vector<std::string> header = split(lines.front());
  const auto column =
      static_cast<std::size_t>(std::find(header.begin(), header.end(), name) - header.begin());
  std::vector<std::string> values;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> fields = split(lines[i]);
    if (column < fields.size()) values.push_back(fields[column]);
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

}  // namespace routesim::docs
