#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "tests/architecture/rules.h"

namespace routesim::architecture {
namespace {

/// The position of `word` in `text` at or after `from` with no word character on either side.
std::size_t find_word(std::string_view text, std::string_view word, std::size_t from = 0) {
  for (std::size_t p = text.find(word, from); p != std::string_view::npos;
       p = text.find(word, p + 1)) {
    const bool starts = p == 0 || !is_word(text[p - 1]);
    const std::size_t end = p + word.size();
    if (starts && (end == text.size() || !is_word(text[end]))) return p;
  }
  return std::string_view::npos;
}

bool is_library(const SourceFile& file) {
  return under(file.path, "sim") || under(file.path, "policies") || under(file.path, "models") ||
         under(file.path, "workloads");
}

/// The rules about forbidden text are tested with forbidden text.
bool is_example_of_bad(const SourceFile& file) { return under(file.path, "tests/architecture"); }

/// Data is kept as its source published it, and bad inputs are bad on purpose.
bool is_written_by_hand(const SourceFile& file) {
  constexpr std::array<std::string_view, 3> kCopied = {".json", ".csv", ".yaml"};
  if (file.path == "LICENSE") return false;
  for (const std::string_view suffix : kCopied)
    if (file.path.ends_with(suffix)) return !under(file.path, "tests") && suffix == ".yaml";
  return true;
}

struct Forbidden {
  std::string_view word;
  std::string_view reason;
};

constexpr std::array kImpureHeaders = {
    Forbidden{"<iostream>", "a library never prints"},
    Forbidden{"<fstream>", "tools own every byte of I/O"},
    Forbidden{"<filesystem>", "tools own every byte of I/O"},
    Forbidden{"<chrono>", "a library has no clock of its own"},
    Forbidden{"<ctime>", "a library has no clock of its own"},
    Forbidden{"<regex>", "it is slow and differs between standard libraries"},
};

// The standard fixes what the engines of <random> draw, but not what these make of it.
constexpr std::string_view kDraws = "its draws differ between standard libraries";

constexpr std::array kImpureWords = {
    Forbidden{"uniform_int_distribution", kDraws},
    Forbidden{"uniform_real_distribution", kDraws},
    Forbidden{"bernoulli_distribution", kDraws},
    Forbidden{"normal_distribution", kDraws},
    Forbidden{"lognormal_distribution", kDraws},
    Forbidden{"exponential_distribution", kDraws},
    Forbidden{"gamma_distribution", kDraws},
    Forbidden{"poisson_distribution", kDraws},
    Forbidden{"geometric_distribution", kDraws},
    Forbidden{"discrete_distribution", kDraws},
    Forbidden{"generate_canonical", kDraws},
    Forbidden{"shuffle", kDraws},
    Forbidden{"default_random_engine", kDraws},
    Forbidden{"random_device", "a run must repeat itself"},
    Forbidden{"cout", "a library never prints"},
    Forbidden{"cerr", "a library never prints"},
    Forbidden{"clog", "a library never prints"},
    Forbidden{"printf", "a library never prints"},
    Forbidden{"fprintf", "a library never prints"},
    Forbidden{"puts", "a library never prints"},
    Forbidden{"putchar", "a library never prints"},
    Forbidden{"fwrite", "tools own every byte of I/O"},
    Forbidden{"fopen", "tools own every byte of I/O"},
    Forbidden{"exit", "a library never exits"},
    Forbidden{"_Exit", "a library never exits"},
    Forbidden{"quick_exit", "a library never exits"},
    Forbidden{"abort", "a library never exits; broken invariants are ROUTESIM_CHECK"},
    Forbidden{"getenv", "a library reads no environment"},
    Forbidden{"assert", "use ROUTESIM_CHECK, which release builds keep"},
};

/// Whether the word at [p, p + size) is a call of, or a stream from, the global or std namespace,
/// and not a member, a parameter, or the declaration of something else with the same name.
bool uses_global(std::string_view code, std::size_t p, std::size_t size) {
  const bool called = p + size < code.size() && code[p + size] == '(';
  std::string_view before = code.substr(0, p);
  if (before.ends_with("std::")) return true;
  if (before.ends_with("::")) {
    before.remove_suffix(2);
    return called && (before.empty() || !is_word(before.back()));
  }
  if (!called || before.ends_with('.') || before.ends_with("->")) return false;
  const std::size_t last = before.find_last_not_of(' ');
  if (last == std::string_view::npos) return true;
  before = before.substr(0, last + 1);
  const bool declares = is_word(before.back()) || before.back() == '&' || before.back() == '*';
  return !declares || find_word(before, "return") == before.size() - 6 ||
         find_word(before, "else") == before.size() - 4;
}

}  // namespace

Violations check_header_form(const SourceFile& file) {
  Violations violations;
  if (!is_header(file)) return violations;
  const std::vector<std::string> code = lines_of(strip_comments_and_literals(file.text));
  bool guarded = false;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const bool blank = code[i].find_first_not_of(" \t") == std::string::npos;
    if (!guarded && !blank) {
      if (code[i] != "#pragma once")
        violations.push_back(at(file, i + 1, "a header starts with #pragma once"));
      guarded = true;
    }
    if (code[i].find("using namespace") != std::string::npos)
      violations.push_back(at(file, i + 1, "no using namespace in a header"));
  }
  return violations;
}

Violations check_library_purity(const SourceFile& file) {
  Violations violations;
  if (!is_cpp(file) || !is_library(file) || file.path.find("/examples/") != std::string::npos)
    return violations;
  const std::vector<std::string> code = lines_of(strip_comments_and_literals(file.text));
  for (std::size_t i = 0; i < code.size(); ++i) {
    const auto report = [&](std::string_view word, std::string_view reason) {
      violations.push_back(at(file, i + 1, std::string(word) + ": " + std::string(reason)));
    };
    if (code[i].find("#include") != std::string::npos) {
      for (const Forbidden& header : kImpureHeaders)
        if (code[i].find(header.word) != std::string::npos) report(header.word, header.reason);
      continue;
    }
    for (const Forbidden& word : kImpureWords) {
      for (std::size_t p = find_word(code[i], word.word); p != std::string_view::npos;
           p = find_word(code[i], word.word, p + 1))
        if (uses_global(code[i], p, word.word.size())) report(word.word, word.reason);
    }
  }
  return violations;
}

Violations check_build_flags(const SourceFile& file) {
  Violations violations;
  const bool builds = file.path.ends_with("CMakeLists.txt") || file.path.ends_with(".cmake") ||
                      file.path == "CMakePresets.json";
  if (!builds) return violations;
  constexpr std::array kFlags = {"-ffast-math", "-Ofast", "-march=native", "-funsafe-math"};
  const std::vector<std::string> lines = lines_of(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string code = lines[i].substr(0, lines[i].find('#'));
    for (const char* flag : kFlags)
      if (code.find(flag) != std::string::npos)
        violations.push_back(at(file, i + 1, std::string(flag) + " changes results"));
  }
  return violations;
}

Violations check_early_readers(const SourceFile& file) {
  Violations violations;
  if (is_example_of_bad(file) || file.path.ends_with(".md") || is_cpp(file) ||
      file.text.find("o pipefail\n") == std::string::npos)
    return violations;
  const std::vector<std::string> lines = lines_of(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (std::size_t p = lines[i].find("| "); p != std::string::npos;
         p = lines[i].find("| ", p + 1)) {
      const std::string_view reader = std::string_view(lines[i]).substr(p + 2);
      const bool quiet_grep = reader.starts_with("grep -") &&
                              reader.substr(6, reader.find(' ', 6) - 6).find('q') != reader.npos;
      if (quiet_grep || reader.starts_with("head"))
        violations.push_back(at(file, i + 1, "a reader that stops early ends its writer"));
    }
  }
  return violations;
}

Violations check_notes(const SourceFile& file) {
  Violations violations;
  if (is_example_of_bad(file)) return violations;
  constexpr std::array<std::string_view, 4> kMarks = {"TODO", "FIXME", "XXX", "HACK"};
  const std::vector<std::string> lines = lines_of(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (const std::string_view mark : kMarks) {
      const std::size_t p = find_word(lines[i], mark);
      if (p == std::string::npos) continue;
      const std::string rest = lines[i].substr(p + mark.size());
      const bool tracked = rest.size() > 2 && rest.starts_with("(#") &&
                           std::isdigit(static_cast<unsigned char>(rest[2])) != 0;
      if (!tracked)
        violations.push_back(at(file, i + 1, std::string(mark) + " without an issue number"));
    }
  }
  return violations;
}

Violations check_machine_paths(const SourceFile& file) {
  Violations violations;
  if (is_example_of_bad(file)) return violations;
  constexpr std::array<std::string_view, 6> kPaths = {"/work/",  "/root/",     "/home/",
                                                      "/Users/", "/tmp/build", "/mnt/"};
  const std::vector<std::string> lines = lines_of(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (const std::string_view path : kPaths) {
      const std::size_t p = lines[i].find(path);
      // Inside a longer path or an address ("repo/work/x") it is not the root of a machine.
      const bool absolute = p != std::string::npos &&
                            (p == 0 || !(is_word(lines[i][p - 1]) || lines[i][p - 1] == '.' ||
                                         lines[i][p - 1] == '}' || lines[i][p - 1] == '-'));
      if (absolute)
        violations.push_back(at(file, i + 1, "a path of one machine: " + std::string(path)));
    }
  }
  return violations;
}

Violations check_whitespace(const SourceFile& file) {
  Violations violations;
  if (!is_written_by_hand(file) || file.text.empty()) return violations;
  if (file.text.back() != '\n')
    violations.push_back(at(file, 1, "the last line does not end in a line break"));
  const std::vector<std::string> lines = lines_of(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    if (line.find('\r') != std::string::npos)
      violations.push_back(at(file, i + 1, "a carriage return"));
    if (!line.empty() && (line.back() == ' ' || line.back() == '\t'))
      violations.push_back(at(file, i + 1, "white space at the end of the line"));
    if (!is_cpp(file)) continue;
    if (line.find('\t') != std::string::npos) violations.push_back(at(file, i + 1, "a tab"));
    // Columns are characters: continuation bytes of UTF-8 do not count.
    std::size_t columns = 0;
    for (const char c : line) columns += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
    if (columns > kMaxColumns)
      violations.push_back(at(file, i + 1, std::to_string(columns) + " columns"));
  }
  return violations;
}

}  // namespace routesim::architecture
