#include "tools/results/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace routesim::tools {

namespace {

constexpr std::size_t kGap = 2;

void trim_right(std::string& line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
}

}  // namespace

std::string plain_spaces(const std::string& text) {
  constexpr std::string_view kNoBreak = "\u00a0";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool no_break = text.compare(i, kNoBreak.size(), kNoBreak) == 0;
    out += no_break ? ' ' : text[i];
    if (no_break) i += kNoBreak.size() - 1;
  }
  return out;
}

std::string wrapped(const std::string& text, std::size_t indent, const std::string& first,
                    std::size_t width) {
  const std::size_t most = width == 0 ? kTextWidth : width;
  std::string out = first;
  std::size_t column = display_width(first);
  bool begins = true;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = plain_spaces(text.substr(begin, end - begin));
    begin = end + 1;
    if (word.empty()) continue;
    if (!begins && column + 1 + display_width(word) > most && word.front() != '%') {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!begins) {
      out += " ";
      ++column;
    }
    out += word;
    column += display_width(word);
    begins = false;
  }
  return out;
}

std::size_t display_width(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string fixed_text(double value, int decimals) {
  if (!std::isfinite(value)) return "-";
  return fmt::format("{:.{}f}", value, decimals);
}

std::string signed_percent(double value) {
  if (!std::isfinite(value)) return "-";
  const std::string text = fmt::format("{:+.1f}", value);
  return text == "-0.0" ? "+0.0" : text;
}

std::string percent_text(double percent, std::optional<double> low, std::optional<double> high,
                         std::string_view unit) {
  std::string text = signed_percent(percent).append(unit);
  if (low && high) text += " [" + signed_percent(*low) + ", " + signed_percent(*high) + "]";
  return text;
}

std::string counted(std::size_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

std::string joined(const std::vector<std::string>& texts, std::string_view last_word) {
  std::string text;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i > 0 && i + 1 == texts.size())
      text.append(" ").append(last_word).append(" ");
    else if (i > 0)
      text.append(", ");
    text.append(texts[i]);
  }
  return text;
}

std::vector<std::size_t> TextTable::widths() const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], display_width(row[i]));
  }
  // A heading wider than its columns widens the last of them.
  for (const Heading& heading : headings_) {
    std::size_t total = kGap * (heading.span - 1);
    for (std::size_t i = 0; i < heading.span; ++i) total += widths[heading.first + i];
    const std::size_t wanted = display_width(heading.text) + 2;
    if (wanted > total) widths[heading.first + heading.span - 1] += wanted - total;
  }
  return widths;
}

std::vector<std::pair<std::size_t, std::size_t>> TextTable::parts(
    const std::vector<std::size_t>& widths, std::size_t width) const {
  const std::size_t left = std::min(left_columns_, widths.size());
  std::size_t before = 0;
  for (std::size_t i = 0; i < left; ++i) before += widths[i] + kGap;
  std::vector<std::pair<std::size_t, std::size_t>> out;
  std::size_t used = before;
  for (std::size_t i = left; i < widths.size();) {
    const auto heading = std::ranges::find(headings_, i, &Heading::first);
    const std::size_t span = heading == headings_.end() ? 1 : heading->span;
    std::size_t wide = 0;
    for (std::size_t c = i; c < i + span; ++c) wide += widths[c] + kGap;
    if (out.empty() || used + wide - kGap > width) {
      out.emplace_back(i, i);
      used = before;
    }
    used += wide;
    out.back().second = i += span;
  }
  if (out.empty()) out.emplace_back(left, left);
  return out;
}

std::string TextTable::heading_line(const std::vector<std::size_t>& widths, std::size_t first,
                                    std::size_t last) const {
  std::string line;
  for (const Heading& heading : headings_) {
    if (heading.first < first || heading.first >= last) continue;
    std::size_t start = 0;
    for (std::size_t i = 0; i < heading.first; ++i)
      if (i < left_columns_ || i >= first) start += widths[i] + kGap;
    std::size_t total = kGap * (heading.span - 1);
    for (std::size_t i = 0; i < heading.span; ++i) total += widths[heading.first + i];
    const std::size_t dashes = total - display_width(heading.text) - 2;
    line.append(start - std::min(start, display_width(line)), ' ');
    line.append(dashes / 2, '-').append(" ").append(heading.text).append(" ");
    line.append(dashes - dashes / 2, '-');
  }
  trim_right(line);
  return line;
}

std::string TextTable::part(const std::vector<std::size_t>& widths, std::size_t first,
                            std::size_t last) const {
  std::string out;
  if (!headings_.empty()) out += heading_line(widths, first, last) + "\n";
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < std::min(row.size(), last); ++i) {
      if (i >= left_columns_ && i < first) continue;
      if (i > 0) line.append(kGap, ' ');
      const std::string pad(widths[i] - display_width(row[i]), ' ');
      line += i < left_columns_ ? row[i] + pad : pad + row[i];
    }
    trim_right(line);
    out += line + "\n";
  }
  return out;
}

std::string TextTable::str(std::size_t width) const {
  const std::vector<std::size_t> columns = widths();
  std::string out;
  for (const auto& [first, last] : parts(columns, width == 0 ? std::string::npos : width))
    out += (out.empty() ? "" : "\n") + part(columns, first, last);
  return out;
}

std::string TextTable::markdown() const {
  std::string out;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (const std::string& cell : rows_[r]) {
      out += "| ";
      for (const char c : cell) out.append(c == '|' ? "\\" : "").push_back(c);
      out += " ";
    }
    out += "|\n";
    if (r > 0) continue;
    for (std::size_t c = 0; c < rows_[r].size(); ++c) out += c < left_columns_ ? "|---" : "|---:";
    out += "|\n";
  }
  return out;
}

}  // namespace routesim::tools
