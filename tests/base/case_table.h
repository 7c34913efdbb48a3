// Tables of test cases: many small inputs, with what is expected of them, in one text file.
//
//     == NAME
//     -- BLOCK
//     ...the block's lines...
//     -- BLOCK escaped
//     ...lines in which \xHH is a byte and \\ a backslash; the last line ends without a newline...
//
// Lines before the first case are comments.
#pragma once

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace routesim::case_table {

struct TableCase {
  std::string name;
  /// In the order of the file; the name of an extra file is its path in the case's folder.
  std::vector<std::pair<std::string, std::string>> blocks;

  /// The block's text; empty when the case has no such block.
  std::string block(std::string_view which) const {
    for (const auto& [name_of_block, text] : blocks)
      if (name_of_block == which) return text;
    return "";
  }
};

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot open " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

namespace internal {

inline std::string unescaped(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
    } else if (text.substr(i, 2) == "\\x") {
      out += static_cast<char>(std::stoi(std::string(text.substr(i + 2, 2)), nullptr, 16));
      i += 3;
    } else {
      out += '\\';
      ++i;
    }
  }
  return out;
}

inline std::string escaped(std::string_view text) {
  std::string out;
  char previous = '\n';
  for (const char c : text) {
    const bool plain = c == '\n' || (c >= ' ' && c <= '~');
    if (c == '\\') {
      out += "\\\\";
    } else if (!plain || (previous == '\n' && (c == '=' || c == '-'))) {
      char byte[5];
      std::snprintf(byte, sizeof byte, "\\x%02x", static_cast<unsigned>(c) & 0xffU);
      out += byte;
    } else {
      out += c;
    }
    previous = c;
  }
  return out + "\n";
}

/// Whether the text must be written with escapes to be read again unchanged.
inline bool needs_escapes(std::string_view text) {
  if (!text.empty() && !text.ends_with('\n')) return true;
  const std::string lines = "\n" + std::string(text);
  return lines.find("\n== ") != std::string::npos || lines.find("\n-- ") != std::string::npos ||
         std::any_of(text.begin(), text.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return (byte < ' ' && c != '\n' && c != '\t') || byte > 0xf7;  // Never in UTF-8.
         });
}

}  // namespace internal

inline std::vector<TableCase> read_table(const std::filesystem::path& path) {
  constexpr std::string_view kEscaped = " escaped";
  const std::string text = read_bytes(path);
  std::vector<TableCase> cases;
  bool is_escaped = false;
  const auto finish_block = [&] {
    if (!is_escaped) return;
    std::string& block = cases.back().blocks.back().second;
    block = internal::unescaped(block);
    is_escaped = false;
  };
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string line = text.substr(begin, end - begin);
    begin = end;
    if (line.starts_with("== ")) {
      finish_block();
      cases.push_back({.name = line.substr(3, line.size() - 4), .blocks = {}});
    } else if (cases.empty()) {
      continue;
    } else if (line.starts_with("-- ")) {
      finish_block();
      std::string name = line.substr(3, line.size() - 4);
      is_escaped = name.ends_with(kEscaped);
      if (is_escaped) name.resize(name.size() - kEscaped.size());
      cases.back().blocks.emplace_back(name, "");
    } else if (cases.back().blocks.empty()) {
      throw std::runtime_error(path.string() + ": text before the first block of a case");
    } else {
      cases.back().blocks.back().second += line;
    }
  }
  finish_block();
  return cases;
}

inline void write_table(const std::filesystem::path& path, const std::vector<TableCase>& cases) {
  const std::string old = read_bytes(path);
  std::string out = old.substr(0, old.starts_with("== ") ? 0 : old.find("\n== ") + 1);
  for (const TableCase& one : cases) {
    out += "== " + one.name + "\n";
    for (const auto& [name, text] : one.blocks)
      out += internal::needs_escapes(text) ? "-- " + name + " escaped\n" + internal::escaped(text)
                                           : "-- " + name + "\n" + text;
  }
  std::ofstream(path, std::ios::binary) << out;
}

/// The table and its case, for a test parameter that gtest prints by its name.
struct CaseOfTable {
  std::filesystem::path table;
  TableCase one;
  friend std::ostream& operator<<(std::ostream& out, const CaseOfTable& c) {
    return out << c.table.filename().string() << ": " << c.one.name;
  }
};

/// Every case of every table in a folder.
inline std::vector<CaseOfTable> cases_in(const std::filesystem::path& folder) {
  std::vector<CaseOfTable> all;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".table")
      for (TableCase& one : read_table(entry.path())) all.push_back({entry.path(), std::move(one)});
  return all;
}

/// Replaces one block of one case in its table.
inline void replace_block(const CaseOfTable& which, std::string_view block,
                          const std::string& text) {
  std::vector<TableCase> cases = read_table(which.table);
  for (TableCase& one : cases) {
    if (one.name != which.one.name) continue;
    bool found = false;
    for (auto& [name, old] : one.blocks)
      if (name == block) {
        old = text;
        found = true;
      }
    if (!found) one.blocks.emplace_back(block, text);
  }
  write_table(which.table, cases);
}

}  // namespace routesim::case_table
