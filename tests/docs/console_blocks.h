// Markdown pages as tests see them: commands in `console` blocks, links, words.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace routesim::docs {

namespace fs = std::filesystem;

inline const fs::path kRoot = ROUTESIM_SOURCE_DIR;

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

/// Whether `actual` is what `page` says, to the digit: the same lines, where a line `…` of the page
/// stands for any number of lines. Blanks do not count.
inline bool same_lines(const std::string& page, const std::string& actual) {
  const auto plain = [](const std::string& line) {
    std::string out;
    for (const char c : line)
      if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
    while (!out.empty() && out.back() == ' ') out.pop_back();
    return out;
  };
  const std::vector<std::string> expected = lines_of(page);
  const std::vector<std::string> lines = lines_of(actual);
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t i = 0, j = 0, elision = kNone, resume = 0;
  while (j < lines.size()) {
    if (i < expected.size() && expected[i] == "…") {
      elision = i++;
      resume = j;
    } else if (i < expected.size() && plain(expected[i]) == plain(lines[j])) {
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

/// How unlike two words are, 0 to 100: by their ratio if both are numbers.
inline std::size_t unlikeness_of_words(const std::string& a, const std::string& b) {
  if (a == b) return 0;
  if (words_of(a) != "#" || words_of(b) != "#") return 100;
  const double x = std::strtod(a.c_str(), nullptr), y = std::strtod(b.c_str(), nullptr);
  const double size = std::max(std::abs(x), std::abs(y));
  return 1 + static_cast<std::size_t>(size > 0 ? 45 * std::abs(x - y) / size : 0);
}

/// How unlike two lines are: 0 for the same. Other words weigh more than other numbers, and the
/// first two words, which name a row, more than the rest.
inline std::size_t unlikeness(const std::string& a, const std::string& b) {
  const auto split = [](const std::string& line) {
    std::vector<std::string> out;
    std::istringstream in(line);
    for (std::string word; in >> word;) out.push_back(word);
    return out;
  };
  const std::vector<std::string> x = split(a), y = split(b);
  const std::size_t common = std::min(x.size(), y.size());
  std::size_t cost = 100 * (std::max(x.size(), y.size()) - common);
  if (words_of(a) != words_of(b)) cost += 10'000;
  for (std::size_t i = 0; i < common; ++i)
    cost += (i < 2 ? 10 : 1) * unlikeness_of_words(x[i], y[i]);
  return cost;
}

/// What a page that leaves lines out should say of `actual`: each of its lines becomes the most
/// like line of the output, in order; a line may be passed over only at a `…`.
inline std::string aligned(const std::string& page, const std::string& actual) {
  const std::vector<std::string> rows = lines_of(page), lines = lines_of(actual);
  constexpr std::size_t kDropped = 1'000'000, kPassedOver = 500'000;
  // best[i][j]: the cost of telling lines[j..] by rows[i..].
  std::vector<std::vector<std::size_t>> best(rows.size() + 1,
                                             std::vector<std::size_t>(lines.size() + 1, 0));
  const auto step = [&](std::size_t i, std::size_t j, char& move) {
    std::size_t least = static_cast<std::size_t>(-1);
    const auto offer = [&](std::size_t cost, char m) {
      if (cost >= least) return;
      least = cost;
      move = m;
    };
    const bool gap = i < rows.size() && rows[i] == "…";
    if (i < rows.size() && j < lines.size() && !gap)
      offer(best[i + 1][j + 1] + unlikeness(rows[i], lines[j]), 't');
    if (i < rows.size()) offer(best[i + 1][j] + (gap ? 0 : kDropped), 'd');
    if (j < lines.size()) offer(best[i][j + 1] + (gap ? 0 : kPassedOver), 'p');
    return least;
  };
  char move = 0;
  for (std::size_t i = rows.size() + 1; i-- > 0;)
    for (std::size_t j = lines.size() + 1; j-- > 0;)
      if (i < rows.size() || j < lines.size()) best[i][j] = step(i, j, move);
  std::string out;
  for (std::size_t i = 0, j = 0; i < rows.size() || j < lines.size();) {
    (void)step(i, j, move);
    if (move == 't') out += lines[j] + "\n";
    if (move == 'd' && rows[i] == "…") out += "…\n";
    if (move == 'p' && (i == rows.size() || rows[i] != "…")) out += lines[j] + "\n";
    i += move == 't' || move == 'd' ? 1 : 0;
    j += move == 't' || move == 'p' ? 1 : 0;
  }
  return out;
}

/// The page with the output of one command replaced by `actual`. A page that leaves lines out keeps
/// leaving them out.
inline std::string with_output(const std::string& page, const ConsoleCommand& command,
                               const std::string& actual) {
  const std::string head = "$ " + command.text + "\n";
  const std::size_t at = page.find(head + command.output);
  if (at == std::string::npos || same_lines(command.output, actual)) return page;
  return page.substr(0, at) + head + aligned(command.output, actual) +
         page.substr(at + head.size() + command.output.size());
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
