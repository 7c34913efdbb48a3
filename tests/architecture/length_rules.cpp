#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "tests/architecture/rules.h"

namespace routesim::architecture {
namespace {

/// Blanks preprocessor lines, whose braces need not balance.
void blank_directives(std::string& code) {
  bool continued = false;
  std::size_t start = 0;
  while (start < code.size()) {
    std::size_t end = code.find('\n', start);
    if (end == std::string::npos) end = code.size();
    const std::size_t first = code.find_first_not_of(" \t", start);
    const bool directive = continued || (first < end && code[first] == '#');
    continued = directive && end > start && code[end - 1] == '\\';
    if (directive)
      std::fill(code.begin() + static_cast<std::ptrdiff_t>(start),
                code.begin() + static_cast<std::ptrdiff_t>(end), ' ');
    start = end + 1;
  }
}

bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t p = text.find(word); p != std::string_view::npos; p = text.find(word, p + 1)) {
    const std::size_t end = p + word.size();
    if ((p == 0 || !is_word(text[p - 1])) && (end == text.size() || !is_word(text[end])))
      return true;
  }
  return false;
}

enum class Brace { kScope, kFunction, kData };

/// What a brace opens, from the text between the previous `;`, `{` or `}` and the brace. Scopes are
/// looked into for more functions; a function is not; data (tables, initialisers) has no limit.
Brace classify(std::string_view before) {
  constexpr std::array<std::string_view, 5> kScopes = {"namespace", "class", "struct", "union",
                                                       "extern"};
  if (has_word(before, "enum")) return Brace::kData;
  const std::size_t last = before.find_last_not_of(" \t\n");
  if (last == std::string_view::npos) return Brace::kData;
  if (before.find('(') != std::string_view::npos && before[last] != '=' && before[last] != ',')
    return Brace::kFunction;
  for (const std::string_view scope : kScopes)
    if (has_word(before, scope)) return Brace::kScope;
  return Brace::kData;
}

/// The last line of `before` that names the function, for the message.
std::string name_of(std::string_view before) {
  const std::size_t parenthesis = before.find('(');
  std::string_view head = before.substr(0, parenthesis);
  const std::size_t start = head.find_last_of(" \t\n&*");
  if (start != std::string_view::npos) head.remove_prefix(start + 1);
  return std::string(head);
}

}  // namespace

Violations check_function_length(const SourceFile& file) {
  Violations violations;
  if (!is_cpp(file)) return violations;
  std::string code = strip_comments_and_literals(file.text);
  blank_directives(code);
  std::size_t line = 1;
  std::size_t statement = 0;  // Where the text before the next brace starts.
  std::size_t depth = 0;      // Open braces inside the current function or table; 0 outside.
  std::size_t opened_at = 0;  // Line of the function's opening brace.
  std::string name;           // Empty while inside data.
  for (std::size_t i = 0; i < code.size(); ++i) {
    const char c = code[i];
    if (c == '\n') ++line;
    if (c == '{') {
      if (depth > 0) {
        ++depth;
        continue;
      }
      const std::string_view before = std::string_view(code).substr(statement, i - statement);
      const Brace brace = classify(before);
      if (brace != Brace::kScope) {
        depth = 1;
        opened_at = line;
        name = brace == Brace::kFunction ? name_of(before) : "";
      }
    } else if (c == '}' && depth > 0 && --depth == 0) {
      const std::size_t length = line - opened_at + 1;
      if (!name.empty() && length > kMaxFunctionLines)
        violations.push_back(at(file, opened_at,
                                name + " has " + std::to_string(length) + " lines; the limit is " +
                                    std::to_string(kMaxFunctionLines)));
    }
    if (depth == 0 && (c == '{' || c == '}' || c == ';')) statement = i + 1;
  }
  return violations;
}

}  // namespace routesim::architecture
