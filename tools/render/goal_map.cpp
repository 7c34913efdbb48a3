#include "tools/render/goal_map.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/scalar_parse.h"
#include "tools/render/svg_chart.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

constexpr double kMapWidth = 440;
constexpr double kMapTop = 26;

/// From pale to strong, both light enough for dark letters in either theme.
std::string shade(double share) {
  constexpr std::array<double, 3> kPale = {244, 248, 252};
  constexpr std::array<double, 3> kStrong = {108, 167, 210};
  std::string out = "rgb(";
  for (std::size_t i = 0; i < 3; ++i)
    out += fixed_text(kPale[i] + (kStrong[i] - kPale[i]) * share, 0) + (i < 2 ? "," : ")");
  return out;
}

class GoalDrawing {
 public:
  explicit GoalDrawing(const GoalMap& map) : map_(map) {
    std::size_t longest = 4;
    for (const std::string& row : map.rows) longest = std::max(longest, display_width(row));
    left_ = std::min(150.0, 14 + kLetter * static_cast<double>(longest));
    width_ = (kMapWidth - left_ - 8) / static_cast<double>(map.columns.size());
    height_ = std::clamp(width_ * 0.62, 22.0, 40.0);
    for (const auto& row : map.cells)
      for (const auto& cell : row)
        if (cell && cell->value && std::isfinite(*cell->value)) add(scaled(*cell->value));
    words_ = fitting_words();
  }

  bool empty() const { return !any_; }

  std::string str() {
    const double bottom = y_of(map_.rows.size());
    out_ = svg_open(kMapWidth, bottom + 38, map_.title);
    out_.insert(4, " class=\"rows\" data-columns=\"" +
                       html(map_.y_title + "\t" + map_.x_title + "\tgoals\tvalue") + "\"");
    out_ += svg_text(8, 14, "start", map_.y_title, "unit");
    for (std::size_t r = 0; r < map_.rows.size(); ++r) {
      out_ += svg_label(left_ - 6, y_of(r) + height_ / 2 + 4, map_.rows[r], left_ - 8);
      for (std::size_t c = 0; c < map_.columns.size(); ++c) cell(r, c);
    }
    contour();
    columns(bottom);
    return out_ + svg_text((left_ + kMapWidth) / 2, bottom + 33, "middle", map_.x_title, "unit") +
           "</svg>";
  }

 private:
  double scaled(double v) const { return map_.log ? std::log10(std::max(v, 1e-300)) : v; }
  void add(double v) {
    low_ = any_ ? std::min(low_, v) : v;
    high_ = any_ ? std::max(high_, v) : v;
    any_ = true;
  }
  double x_of(std::size_t column) const { return left_ + width_ * static_cast<double>(column); }
  double y_of(std::size_t row) const { return kMapTop + height_ * static_cast<double>(row); }

  /// 0 the best, 1 the worst.
  double badness(double value) const {
    const double share = high_ > low_ ? (scaled(value) - low_) / (high_ - low_) : 0.5;
    return map_.less_is_better ? share : 1 - share;
  }

  void cell(std::size_t r, std::size_t c) {
    const std::optional<GoalMap::Cell>& cell = map_.cells[r][c];
    const double x = x_of(c);
    const double y = y_of(r);
    const bool known = cell && cell->value;
    const std::string value = known ? human(*cell->value, map_.unit, false) : "no result";
    const std::string box = "x=\"" + fixed_text(x, 1) + "\" y=\"" + fixed_text(y, 1) +
                            "\" width=\"" + fixed_text(width_ - 1, 1) + "\" height=\"" +
                            fixed_text(height_ - 1, 1) + "\"";
    out_ += "<rect class=\"goal-cell\" data-row=\"" +
            html(map_.rows[r] + "\t" + map_.columns[c] + "\t" +
                 std::string(cell ? goal_word(cell->state) : "not run") + "\t" +
                 (known ? number_text(*cell->value) : "")) +
            "\" " + box + " style=\"fill:" + (known ? shade(badness(*cell->value)) : "none") +
            "\"><title>" +
            html(map_.rows[r] + ", " + map_.columns[c] + ": " + value +
                 (cell ? ", " + std::string(goal_word(cell->state)) : "")) +
            "</title></rect>";
    if (!cell) return;
    if (cell->state == GoalState::kOverloaded) {
      out_ += svg_line(x, y, x + width_ - 1, y + height_ - 1, "crossed");
      out_ += svg_line(x + width_ - 1, y, x, y + height_ - 1, "crossed");
    }
    const std::string mark(goal_mark(cell->state));
    const std::string text = words_ == Words::kMark    ? mark
                             : words_ == Words::kValue ? value
                                                       : mark + "\u00a0" + value;
    out_ += svg_text(x + width_ / 2, y + height_ / 2 + 4, "middle", text,
                     words_ == Words::kBoth ? "on-bright" : "on-bright tight");
  }

  /// What fits into every cell.
  enum class Words { kBoth, kBothTight, kValue, kMark };
  Words fitting_words() const {
    constexpr double kTightLetter = 5.7;
    std::size_t longest = 1;
    for (const auto& row : map_.cells)
      for (const auto& cell : row)
        if (cell && cell->value)
          longest = std::max(longest, display_width(human(*cell->value, map_.unit, false)));
    const auto value = static_cast<double>(longest);
    if ((value + 2) * kLetter < width_ - 4) return Words::kBoth;
    if ((value + 2) * kTightLetter < width_ - 4) return Words::kBothTight;
    return value * kTightLetter < width_ - 2 ? Words::kValue : Words::kMark;
  }

  bool is_met(std::size_t r, std::size_t c) const {
    return map_.cells[r][c] && map_.cells[r][c]->state == GoalState::kMet;
  }

  void contour() {
    for (std::size_t r = 0; r < map_.rows.size(); ++r)
      for (std::size_t c = 0; c < map_.columns.size(); ++c) {
        if (c > 0 && is_met(r, c) != is_met(r, c - 1)) edge(x_of(c), y_of(r), 0, height_);
        if (r > 0 && is_met(r, c) != is_met(r - 1, c)) edge(x_of(c), y_of(r), width_, 0);
      }
  }
  void edge(double x, double y, double dx, double dy) {
    out_ += svg_line(x - 0.5, y - 0.5, x + dx - 0.5, y + dy - 0.5, "goal-line");
  }

  void columns(double bottom) {
    std::size_t longest = 1;
    for (const std::string& column : map_.columns)
      longest = std::max(longest, display_width(column));
    const double wide = kLetter * static_cast<double>(longest) + 6;
    const auto every = static_cast<std::size_t>(std::ceil(wide / width_));
    for (std::size_t c = 0; c < map_.columns.size(); c += every)
      out_ += svg_text(x_of(c) + width_ / 2, bottom + 15, "middle", map_.columns[c]);
  }

  const GoalMap& map_;
  double left_ = 0, width_ = 0, height_ = 0;
  double low_ = 0, high_ = 0;
  bool any_ = false;
  Words words_ = Words::kMark;
  std::string out_;
};

}  // namespace

std::string_view goal_mark(GoalState state) {
  constexpr std::array<std::string_view, 4> kMarks = {"✓", "✗", "?", "×"};
  return kMarks[static_cast<std::size_t>(state)];
}

std::string_view goal_word(GoalState state) {
  constexpr std::array<std::string_view, 4> kWords = {"met", "missed", "undecided", "overloaded"};
  return kWords[static_cast<std::size_t>(state)];
}

std::string draw(const GoalMap& map) {
  GoalDrawing drawing(map);
  if (drawing.empty()) return {};
  return svg_figure(map.title, map.subtitle) + drawing.str() + "</figure>";
}

}  // namespace routesim::tools
