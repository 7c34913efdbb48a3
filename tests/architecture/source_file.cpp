#include "tests/architecture/source_file.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace routesim::architecture {
namespace {

namespace fs = std::filesystem;

constexpr std::array kFolders = {".ci",   ".github", "base",     "bench",     "cmake",
                                 "docs",  "models",  "policies", "scenarios", "sim",
                                 "tests", "tools",   "workloads"};

constexpr std::array kTextSuffixes = {".h",   ".cpp",  ".txt", ".cmake", ".md",  ".yaml",
                                      ".yml", ".json", ".sh",  ".in",    ".csv", ".py",
                                      ".cff", ".js",   ".css", ".html",  ""};

bool is_text(const fs::path& path) {
  const std::string suffix = path.extension().string();
  return std::find(kTextSuffixes.begin(), kTextSuffixes.end(), suffix) != kTextSuffixes.end();
}

SourceFile read_file(const fs::path& root, const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << stream.rdbuf();
  return {.path = path.lexically_relative(root).generic_string(), .text = bytes.str()};
}

/// Walks over C++ source and copies what is code; everything else becomes spaces.
class Stripper {
 public:
  explicit Stripper(std::string_view text) : text_(text) { code_.reserve(text.size()); }

  std::string strip() {
    while (position_ < text_.size()) step();
    return std::move(code_);
  }

 private:
  bool starts_with(std::string_view token) const {
    return text_.substr(position_, token.size()) == token;
  }

  void step() {
    if (starts_with("//")) {
      blank_until("\n", 0);
    } else if (starts_with("/*")) {
      blank_until("*/", 2);
    } else if (starts_with("R\"") && !(position_ > 0 && is_word(text_[position_ - 1]))) {
      const std::size_t open = text_.find('(', position_);
      const std::string delimiter(text_.substr(position_ + 2, open - position_ - 2));
      const std::string close = ")" + delimiter + "\"";
      blank_until(close, close.size());
    } else if (text_[position_] == '"') {
      blank_quoted('"');
    } else if (text_[position_] == '\'' && !in_number()) {
      blank_quoted('\'');
    } else {
      code_.push_back(text_[position_++]);
    }
  }

  /// A single quote inside 1'000'000 separates digits.
  bool in_number() const {
    std::size_t start = position_;
    while (start > 0 && (is_word(text_[start - 1]) || text_[start - 1] == '\'')) --start;
    return start < position_ && std::isdigit(static_cast<unsigned char>(text_[start])) != 0;
  }

  void blank() {
    code_.push_back(text_[position_] == '\n' ? '\n' : ' ');
    ++position_;
  }

  /// Blanks up to `end` and the `extra` characters that belong to it.
  void blank_until(std::string_view end, std::size_t extra) {
    const std::size_t found =
        text_.find(end, position_ + 2 <= text_.size() && extra > 0 ? position_ + 2 : position_);
    const std::size_t stop = found == std::string_view::npos ? text_.size() : found + extra;
    while (position_ < stop) blank();
  }

  void blank_quoted(char quote) {
    blank();
    while (position_ < text_.size() && text_[position_] != quote && text_[position_] != '\n') {
      if (text_[position_] == '\\' && position_ + 1 < text_.size()) blank();
      blank();
    }
    if (position_ < text_.size() && text_[position_] == quote) blank();
  }

  std::string_view text_;
  std::string code_;
  std::size_t position_ = 0;
};

}  // namespace

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::vector<SourceFile> read_repository(const std::string& root) {
  std::vector<SourceFile> files;
  const fs::path base(root);
  for (const fs::directory_entry& entry : fs::directory_iterator(base)) {
    // In a git worktree `.git` is a file that names the place of the clone.
    if (entry.is_regular_file() && is_text(entry.path()) && entry.path().filename() != ".git")
      files.push_back(read_file(base, entry.path()));
  }
  for (const char* folder : kFolders) {
    if (!fs::is_directory(base / folder)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(base / folder)) {
      if (entry.is_regular_file() && is_text(entry.path()))
        files.push_back(read_file(base, entry.path()));
    }
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

bool is_header(const SourceFile& file) { return file.path.ends_with(".h"); }

bool is_cpp(const SourceFile& file) { return is_header(file) || file.path.ends_with(".cpp"); }

bool under(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

std::string strip_comments_and_literals(std::string_view text) { return Stripper(text).strip(); }

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string at(const SourceFile& file, std::size_t line, const std::string& what) {
  return file.path + ":" + std::to_string(line) + ": " + what;
}

std::string join(const Violations& violations) {
  std::string text;
  for (const std::string& violation : violations) text += "\n  " + violation;
  return text;
}

}  // namespace routesim::architecture
