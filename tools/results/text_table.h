// Columns of text, aligned: the first ones to the left, the others to the right.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace routesim::tools {

/// Columns of lines that no terminal shows. A width of 0 stands for a file: its lines have so many
/// columns, and its tables are as wide as they are.
inline constexpr std::size_t kTextWidth = 100;

/// The text with spaces in place of no-break spaces.
std::string plain_spaces(const std::string& text);

/// `first` and the text behind it, broken at its spaces, further lines indented; never inside a
/// number with its unit. Words that are longer than `width` stay whole.
std::string wrapped(const std::string& text, std::size_t indent, const std::string& first,
                    std::size_t width = 0);

/// Collects rows, then prints them with two spaces between columns.
class TextTable {
 public:
  /// `left_columns` columns are aligned to the left.
  explicit TextTable(std::size_t left_columns = 1) : left_columns_(left_columns) {}

  void add_row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// A heading above `span` columns, centred, in a row of its own. Columns count from 0.
  void add_heading(std::size_t first_column, std::size_t span, std::string text) {
    headings_.push_back({first_column, span, std::move(text)});
  }
  /// At most `width` columns wide, if it can be and width is not 0: columns that do not fit,
  /// headings whole, follow in further tables with the same columns at their left.
  std::string str(std::size_t width = 0) const;
  /// The same as a Markdown table, whose first row is the header; without headings.
  std::string markdown() const;
  /// Whether there is no row besides the header.
  bool empty() const { return rows_.size() < 2; }

 private:
  struct Heading {
    std::size_t first;
    std::size_t span;
    std::string text;
  };
  std::vector<std::size_t> widths() const;
  /// Runs of columns behind the left ones that fit into `width`, as first and one behind the last.
  std::vector<std::pair<std::size_t, std::size_t>> parts(const std::vector<std::size_t>& widths,
                                                         std::size_t width) const;
  std::string part(const std::vector<std::size_t>& widths, std::size_t first,
                   std::size_t last) const;
  std::string heading_line(const std::vector<std::size_t>& widths, std::size_t first,
                           std::size_t last) const;

  std::size_t left_columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<Heading> headings_;
};

/// Columns a terminal needs for UTF-8 text without wide characters: its code points.
std::size_t display_width(const std::string& text);

/// `value` with this many decimals; `-` for nothing.
std::string fixed_text(double value, int decimals);
/// `+12.3`, `-4.0`, `+0.0`.
std::string signed_percent(double value);
/// `+4.2 % [+3.1, +5.3]`; without an interval only its first half. `unit` may be empty.
std::string percent_text(double percent, std::optional<double> low, std::optional<double> high,
                         std::string_view unit = " %");
/// `1 knob`, `2 knobs`.
std::string counted(std::size_t n, const std::string& what);
/// `a, b and c`; `last_word` stands before the last one.
std::string joined(const std::vector<std::string>& texts, std::string_view last_word = "and");

/// `a, b, c`, where `text` says what stands for each item.
template <class Range, class Text>
std::string comma_list(const Range& items, const Text& text) {
  std::string list;
  for (const auto& item : items)
    list.append(list.empty() ? "" : ", ").append(std::invoke(text, item));
  return list;
}

/// What a list has for `key`, which gets a place at its end where it has none: sentences, each once
/// with all that it is true of.
template <class Key, class Value>
Value& entry_of(std::vector<std::pair<Key, Value>>& list, const Key& key) {
  auto at = list.begin();
  while (at != list.end() && at->first != key) ++at;
  if (at == list.end()) at = list.insert(at, {key, {}});
  return at->second;
}
/// The names of those that each sentence is true of.
using SaidOf = std::vector<std::pair<std::string, std::vector<std::string>>>;

}  // namespace routesim::tools
