// Columns of text, aligned: the first ones to the left, the others to the right.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace routesim::tools {

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
  std::string str() const;
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
  std::string heading_line(const std::vector<std::size_t>& widths) const;

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

}  // namespace routesim::tools
