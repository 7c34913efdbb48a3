// Bars, points by group, and changes around zero: rows of marks along one axis.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/render/chart/svg.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

struct RowMark {
  double at = 0;
  std::optional<double> low = {}, high = {};
  std::string tip;
  std::string data;  ///< Its cells in the table that the page's script downloads.
};

struct ChartRow {
  std::string name = {};
  std::string note = {};   ///< To the right.
  std::string style = {};  ///< Classes.
  std::size_t shape = 0;
  std::vector<RowMark> marks = {};
  bool bar = false;  ///< The mark is a bar from zero.
  std::optional<double> mean = {};
};

struct RowChart {
  std::string title, subtitle, x_title = {};
  std::string columns = {};  ///< Of the table to download.
  Unit unit = Unit::kNone;
  double low = 0, high = 0;
  bool names_above = false;  ///< Names are sentences: they stand above their marks.
  std::vector<ChartRow> rows = {};
};

/// Draws the rows below each other; marks beyond the axis stand at its end.
class RowDrawing {
 public:
  explicit RowDrawing(const RowChart& chart)
      : chart_(chart),
        ticks_(linear_ticks(chart.low, chart.high, 4)),
        most_(chart.names_above ? chart.high : std::max(chart.high, ticks_.back())) {
    std::size_t name = 0, note = 0;
    for (const ChartRow& row : chart.rows) {
      name = std::max(name, display_width(row.name));
      note = std::max(note, display_width(row.note));
    }
    if (chart.names_above) return;
    left_ = std::min(230.0, 16 + kLetter * static_cast<double>(name));
    right_ = kDrawingWidth - 14 - 1.2 * kLetter * static_cast<double>(note);  // Phones: larger.
  }

  std::string str() {
    const double line = chart_.names_above ? 36 : 24;
    const double bottom = kTop + line * static_cast<double>(chart_.rows.size());
    out_ = svg_open(kDrawingWidth, bottom + (chart_.x_title.empty() ? 26 : 38), chart_.title);
    out_.insert(4, " class=\"rows\" data-columns=\"" + html(chart_.columns) + "\"");
    for (const double tick : ticks_) {
      out_ += svg_line(x(tick), kTop - 4, x(tick), bottom, tick == 0 ? "axis" : "grid");
      const std::string text = human(tick, chart_.unit, false);
      const double half = 0.62 * kLetter * static_cast<double>(display_width(text));
      out_ +=
          svg_text(std::clamp(x(tick), half, kDrawingWidth - half), bottom + 16, "middle", text);
    }
    if (!chart_.x_title.empty())
      out_ += svg_text((left_ + right_) / 2, bottom + 33, "middle", chart_.x_title, "unit");
    double y = kTop;
    for (const ChartRow& row : chart_.rows) {
      draw_row(row, y, y + line * (chart_.names_above ? 0.64 : 0.5));
      y += line;
    }
    return svg_figure(chart_.title, chart_.subtitle) + out_ + "</svg></figure>";
  }

 private:
  double x(double value) const {
    const double share = (value - chart_.low) / (most_ - chart_.low);
    return left_ + std::clamp(share, 0.0, 1.0) * (right_ - left_);
  }

  void draw_row(const ChartRow& row, double top, double middle) {
    const double note = kLetter * static_cast<double>(display_width(row.note));
    if (chart_.names_above)
      out_ += svg_label(4, top + 12, row.name, kDrawingWidth - 24 - note, "start", "over") +
              svg_text(kDrawingWidth - 4, top + 12, "end", row.note, "over");
    else
      out_ += svg_label(left_ - 8, middle + 4, row.name, left_ - 10) +
              svg_text(right_ + 10, middle + 4, "start", row.note);
    out_ += "<g class=\"" + row.style + "\">";
    for (const RowMark& mark : row.marks) {
      const std::string data = " data-row=\"" + html(mark.data) + "\"";
      const std::string interval =
          mark.low && mark.high ? svg_line(x(*mark.low), middle, x(*mark.high), middle, "interval")
                                : "";
      if (!row.bar) out_ += interval;
      if (row.bar)
        out_ += "<rect class=\"bar\"" + data + " x=\"" + fixed_text(left_, 1) + "\" y=\"" +
                fixed_text(middle - 7, 1) + "\" width=\"" +
                fixed_text(std::max(x(mark.at) - left_, 0.5), 1) +
                "\" height=\"14\" rx=\"2\"><title>" + html(mark.tip) + "</title></rect>" + interval;
      else
        out_ += svg_marker(row.shape, x(mark.at), middle, mark.tip).insert(5, data);
    }
    if (row.mean) out_ += svg_line(x(*row.mean), middle - 9, x(*row.mean), middle + 9, "mean");
    out_ += "</g>";
  }

  static constexpr double kTop = 10;
  const RowChart& chart_;
  std::vector<double> ticks_;
  double most_;
  double left_ = 14, right_ = kDrawingWidth - 14;
  std::string out_;
};

std::string colour_class(std::size_t colour) { return "c" + std::to_string(colour % kColours); }

}  // namespace

std::string draw(const BarChart& chart) {
  if (chart.bars.empty()) return {};
  RowChart rows{.title = chart.title,
                .subtitle = chart.subtitle,
                .x_title = std::string(axis_unit(chart.unit)),
                .columns = "name\tvalue",
                .unit = chart.unit};
  for (const BarChart::Bar& bar : chart.bars) {
    rows.high = std::max({rows.high, bar.value, bar.high.value_or(0)});
    rows.rows.push_back({.name = bar.name,
                         .note = human(bar.value, chart.unit, false),
                         .style = colour_class(bar.colour),
                         .marks = {{.at = bar.value,
                                    .low = bar.low,
                                    .high = bar.high,
                                    .tip = bar.name + ": " + human(bar.value, chart.unit),
                                    .data = bar.name + "\t" + number_text(bar.value)}},
                         .bar = true});
  }
  if (rows.high <= 0) rows.high = 1;
  return RowDrawing(rows).str();
}

std::string draw(const StripChart& chart) {
  RowChart rows{.title = chart.title,
                .subtitle = chart.subtitle,
                .x_title = chart.x_title,
                .columns = "group\tname\tvalue",
                .unit = chart.unit};
  for (const StripChart::Group& group : chart.groups) {
    ChartRow& row = rows.rows.emplace_back();
    row.name = group.name;
    row.note = group.note;
    row.style = "strip " + colour_class(group.colour);
    row.shape = group.colour;
    double sum = 0;
    for (const auto& [name, value] : group.points) {
      sum += value;
      rows.high = std::max(rows.high, value);
      row.marks.push_back({.at = value,
                           .tip = group.name + ", " + name + ": " + human(value, chart.unit),
                           .data = group.name + "\t" + name + "\t" + number_text(value)});
    }
    row.mean = sum / static_cast<double>(std::max<std::size_t>(1, group.points.size()));
  }
  return rows.high > 0 ? RowDrawing(rows).str() : "";
}

std::string draw(const DotPlot& plot) {
  constexpr double kMostPercent = 100;  // Values beyond this end at the frame.
  if (plot.rows.empty()) return {};
  RowChart rows{.title = plot.title,
                .subtitle = plot.subtitle,
                .columns = "name\tlow\thigh\tpercent",
                .unit = Unit::kPercent,
                .high = 1,
                .names_above = true};
  const auto number = [](const std::optional<double>& v) { return v ? number_text(*v) : ""; };
  for (const DotPlot::Row& row : plot.rows) {
    for (const std::optional<double>& v : {std::optional(row.percent), row.low, row.high})
      if (v) rows.high = std::max(rows.high, std::min(kMostPercent, std::abs(*v)));
    const bool good = row.style == DotPlot::Style::kGood, bad = row.style == DotPlot::Style::kBad;
    rows.rows.push_back({.name = row.name,
                         .note = row.text,
                         .style = good  ? "dot good"
                                  : bad ? "dot bad"
                                        : "dot unsure",
                         .shape = good  ? 0U
                                  : bad ? 2U
                                        : 1U,
                         .marks = {{.at = row.percent,
                                    .low = row.low,
                                    .high = row.high,
                                    .tip = row.name + ": " + row.text,
                                    .data = row.name + "\t" + number(row.low) + "\t" +
                                            number(row.high) + "\t" + number_text(row.percent)}}});
  }
  rows.low = -rows.high;
  return RowDrawing(rows).str();
}

// Heat maps, few cells with their numbers or many as bands over time, and maps of goals.

namespace {

/// More columns than this have no room for numbers; runs of cells of one shade are drawn as one.
constexpr std::size_t kMostCells = 24;
constexpr std::size_t kShades = 16;

/// The place of a value between the smallest and the largest one, 0..1.
class MapScale {
 public:
  /// `flip`: the largest value is at 0.
  MapScale(bool log, bool flip) : log_(log), flip_(flip) {}

  void add(const std::optional<double>& value) {
    if (!value || !std::isfinite(*value) || (log_ && *value <= 0)) return;
    const double v = scaled(*value);
    low_ = any_ ? std::min(low_, v) : v;
    high_ = any_ ? std::max(high_, v) : v;
    any_ = true;
  }
  bool empty() const { return !any_; }
  double of(double value) const {
    const double span = high_ - low_;
    const double share = span > 0 ? std::clamp((scaled(value) - low_) / span, 0.0, 1.0) : 0.5;
    return flip_ ? 1 - share : share;
  }
  double low() const { return log_ ? std::pow(10, low_) : low_; }
  double high() const { return log_ ? std::pow(10, high_) : high_; }

 private:
  double scaled(double v) const { return log_ ? std::log10(std::max(v, 1e-300)) : v; }

  bool log_, flip_, any_ = false;
  double low_ = 0, high_ = 0;
};

/// The places of cells, and the names beside and below them.
class MapGrid {
 public:
  /// `row_height` 0 follows the width of the columns.
  template <class Map>
  MapGrid(const Map& map, double row_height)
      : left(std::min(150.0, 14 + widest_of(map.rows, 4))),
        top(map.y_title.empty() ? 6 : 26),
        cell((kDrawingWidth - left - 14) / static_cast<double>(map.columns.size())),
        line(row_height > 0 ? row_height : std::clamp(cell * 0.62, 22.0, 40.0)),
        bottom(top + line * static_cast<double>(map.rows.size())) {}

  double x(std::size_t column) const { return left + cell * static_cast<double>(column); }
  double y(std::size_t row) const { return top + line * static_cast<double>(row); }

  /// Opens the drawing; `data` is an attribute for the page's script.
  template <class Map>
  std::string open(const Map& map, const std::string& data) const {
    std::string out = svg_open(kDrawingWidth, bottom + 38, map.title).insert(4, data);
    return map.y_title.empty() ? out : out + svg_text(8, 14, "start", map.y_title, "unit");
  }

  std::string box(std::size_t row, std::size_t column) const {
    return "x=\"" + fixed_text(x(column), 1) + "\" y=\"" + fixed_text(y(row), 1) + "\" width=\"" +
           fixed_text(cell - 1, 1) + "\" height=\"" + fixed_text(line - 1, 1) + "\"";
  }

  /// Names that are too close to the one before are left out.
  template <class Map>
  std::string names(const Map& map, bool has_column_names) const {
    std::string out;
    for (std::size_t r = 0; r < map.rows.size(); r += step(13 / line))
      out += svg_label(left - 6, y(r) + line / 2 + 4, map.rows[r], left - 8);
    const double widest = widest_of(map.columns, 1) + 8;
    for (std::size_t c = 0; has_column_names && c < map.columns.size(); c += step(widest / cell))
      out += svg_text(std::min(x(c) + cell / 2, kDrawingWidth - widest / 2 + 4), bottom + 15,
                      "middle", map.columns[c]);
    return out + svg_text((left + kDrawingWidth) / 2, bottom + 33, "middle", map.x_title, "unit");
  }

  const double left, top, cell, line, bottom;

 private:
  static std::size_t step(double names) { return static_cast<std::size_t>(std::ceil(names)); }
  static double widest_of(const std::vector<std::string>& names, std::size_t least) {
    for (const std::string& name : names) least = std::max(least, display_width(name));
    return kLetter * static_cast<double>(least);
  }
};

/// The colour between the two stops around `share`, 0..1.
std::string colour_at(std::span<const std::array<double, 3>> stops, double share) {
  const double at = share * static_cast<double>(stops.size() - 1);
  const auto low = std::min(static_cast<std::size_t>(at), stops.size() - 2);
  std::string out = "rgb(";
  for (std::size_t i = 0; i < 3; ++i)
    out += fixed_text(stops[low][i] +
                          (stops[low + 1][i] - stops[low][i]) * (at - static_cast<double>(low)),
                      0) +
           (i < 2 ? "," : ")");
  return out;
}

/// Places the cells of a map between its smallest and largest value, or the ends it shares.
MapScale scale_of(const HeatMap& map) {
  MapScale scale(map.log, map.low_is_good);
  for (const auto& row : map.cells)
    for (const std::optional<double>& v : row) scale.add(v);
  if (scale.empty()) return scale;
  scale.add(map.least);
  scale.add(map.most);
  return scale;
}

/// From blue through grey to yellow, as Cividis, so readable with every kind of colour vision and
/// in grey; its dark end is lifted until it stands out from a dark page by 2:1.
std::string shade_of(double share) {
  constexpr std::array<std::array<double, 3>, 7> kMap = {{{40, 88, 156},
                                                          {82, 104, 146},
                                                          {116, 125, 138},
                                                          {150, 147, 128},
                                                          {186, 172, 112},
                                                          {221, 201, 88},
                                                          {254, 234, 84}}};
  return colour_at(kMap, share);
}

/// The colours from the smallest value to the largest.
std::string scale_legend(const HeatMap& map, const MapScale& shades) {
  std::string out = "<ul class=\"legend\"><li class=\"note\">" +
                    html(human(shades.low(), map.unit, true)) +
                    "<svg class=\"ramp\" viewBox=\"0 0 96 10\" aria-hidden=\"true\">";
  for (int i = 0; i < 12; ++i) {
    const double share = (i + 0.5) / 12;
    out += "<rect x=\"" + std::to_string(8 * i) + "\" width=\"8.2\" height=\"10\" fill=\"" +
           shade_of(map.low_is_good ? 1 - share : share) + "\"/>";
  }
  return out + "</svg>" + html(human(shades.high(), map.unit, true)) + "</li></ul>";
}

/// A heat map being drawn.
class HeatDrawing {
 public:
  HeatDrawing(const HeatMap& map, const MapScale& shades)
      : map_(map),
        shades_(shades),
        dense_(map.columns.size() > kMostCells),
        grid_(map, dense_ ? std::clamp(240 / static_cast<double>(map.rows.size()), 6.0, 22.0) : 0) {
  }

  std::string str() {
    out_ = grid_.open(map_, " class=\"map\" data-grid=\"" + html(grid_text()) + "\"");
    if (dense_)
      bands();
    else
      cells();
    return out_ + ticks() + grid_.names(map_, map_.ticks.empty()) + "</svg>";
  }

 private:
  /// The data of the page's script: the place of the cells, unit and titles; then names of rows and
  /// of columns; then the values, row by row.
  std::string grid_text() const {
    std::string out;
    for (const double v : {grid_.left, grid_.top, grid_.cell, grid_.line})
      out += number_text(v) + " ";
    out += std::string(unit_code(map_.unit)) + "\n" + map_.y_title + "\t" + map_.x_title + "\n";
    const auto names = [&](const std::vector<std::string>& list) {
      for (std::size_t i = 0; i < list.size(); ++i) out += (i > 0 ? "\t" : "") + list[i];
      out += "\n";
    };
    names(map_.rows);
    names(map_.columns);
    for (const auto& row : map_.cells) {
      for (const std::optional<double>& v : row) out += (v ? number_text(*v) : "") + " ";
      out.back() = ';';
    }
    out.pop_back();
    return out;
  }

  void cells() {
    for (std::size_t r = 0; r < map_.rows.size(); ++r)
      for (std::size_t c = 0; c < map_.columns.size(); ++c) {
        const std::optional<double>& value = map_.cells[r][c];
        const std::string text = value ? human(*value, map_.unit, false) : std::string("no result");
        const double share = value ? shades_.of(*value) : 0;
        out_ += "<rect class=\"cell\" " + grid_.box(r, c) + " fill=\"" +
                (value ? shade_of(share) : "none") + "\"><title>" +
                html(map_.rows[r] + ", " + map_.columns[c] + ": " + text) + "</title></rect>";
        if (value && grid_.cell >= 38)
          out_ += svg_text(grid_.x(c) + grid_.cell / 2 - 0.5, grid_.y(r) + grid_.line / 2 + 4,
                           "middle", text,
                           std::string(share > 0.55 ? "on-bright" : "on-dark") +
                               (grid_.cell < 50 ? " tight" : ""));
      }
  }

  /// One path per shade: a box for each run of cells that have it.
  void bands() {
    std::array<std::string, kShades> paths;
    const auto shade = [&](std::size_t r, std::size_t c) {
      const std::optional<double>& value = map_.cells[r][c];
      if (!value) return kShades;
      return std::min(static_cast<std::size_t>(shades_.of(*value) * kShades), kShades - 1);
    };
    const double height = grid_.line >= 8 ? grid_.line - 1 : grid_.line - 0.5;
    for (std::size_t r = 0; r < map_.rows.size(); ++r)
      for (std::size_t c = 0, end = 0; c < map_.columns.size(); c = end) {
        const std::size_t s = shade(r, c);
        while (end < map_.columns.size() && shade(r, end) == s) ++end;
        if (s == kShades) continue;
        const double width = grid_.cell * static_cast<double>(end - c);
        const std::string across = fixed_text(width + 0.1, 1);
        paths[s] += fmt::format("M{} {}h{}v{}h-{}Z", fixed_text(grid_.x(c), 1),
                                fixed_text(grid_.y(r), 1), across, fixed_text(height, 1), across);
      }
    for (std::size_t s = 0; s < kShades; ++s)
      if (!paths[s].empty())
        out_ += "<path fill=\"" + shade_of((static_cast<double>(s) + 0.5) / kShades) + "\" d=\"" +
                paths[s] + "\"/>";
  }

  std::string ticks() const {
    std::string out;
    for (const auto& [place, text] : map_.ticks)
      if (const double at = grid_.left + grid_.cell * place; at < kDrawingWidth - 8)
        out +=
            svg_text(std::min(at, kDrawingWidth - kLetter * 3), grid_.bottom + 15, "middle", text);
    return out;
  }

  const HeatMap& map_;
  const MapScale& shades_;
  bool dense_;
  MapGrid grid_;
  std::string out_;
};

/// From pale to strong, both light enough for dark letters in either theme.
constexpr std::array<std::array<double, 3>, 2> kGoalShades = {{{244, 248, 252}, {108, 167, 210}}};

class GoalDrawing {
 public:
  explicit GoalDrawing(const GoalMap& map)
      : map_(map), badness_(map.log, !map.less_is_better), grid_(map, 0), words_(fitting_words()) {
    for (const auto& row : map.cells)
      for (const auto& cell : row)
        if (cell) badness_.add(cell->value);
  }

  bool empty() const { return badness_.empty(); }

  std::string str() {
    out_ = grid_.open(map_, " class=\"rows\" data-columns=\"" +
                                html(map_.y_title + "\t" + map_.x_title + "\tstate\tvalue") + "\"");
    for (std::size_t r = 0; r < map_.rows.size(); ++r)
      for (std::size_t c = 0; c < map_.columns.size(); ++c) cell(r, c);
    contour();
    return out_ + grid_.names(map_, true) + "</svg>";
  }

 private:
  void cell(std::size_t r, std::size_t c) {
    const std::optional<GoalMap::Cell>& cell = map_.cells[r][c];
    const double x = grid_.x(c);
    const double y = grid_.y(r);
    const bool known = cell && cell->value;
    const std::string value = known ? human(*cell->value, map_.unit, false) : "no result";
    out_ += "<rect class=\"goal-cell\" data-row=\"" +
            html(map_.rows[r] + "\t" + map_.columns[c] + "\t" +
                 std::string(cell ? goal_word(cell->state) : "not run") + "\t" +
                 (known ? number_text(*cell->value) : "")) +
            "\" " + grid_.box(r, c) + " style=\"fill:" +
            (known ? colour_at(kGoalShades, badness_.of(*cell->value)) : "none") + "\"><title>" +
            html(map_.rows[r] + ", " + map_.columns[c] + ": " + value +
                 (cell ? ", " + std::string(goal_word(cell->state)) : "")) +
            "</title></rect>";
    if (!cell) return;
    // Where the × stands beside the number, lines through both would only hide them.
    if (cell->state == CellState::kOverloaded && words_ == Words::kValue) {
      out_ += svg_line(x, y, x + grid_.cell - 1, y + grid_.line - 1, "crossed");
      out_ += svg_line(x + grid_.cell - 1, y, x, y + grid_.line - 1, "crossed");
    }
    const std::string mark(goal_mark(cell->state));
    const std::string text = words_ == Words::kMark                    ? mark
                             : words_ == Words::kValue || mark.empty() ? value
                                                                       : mark + "\u00a0" + value;
    out_ += svg_text(x + grid_.cell / 2, y + grid_.line / 2 + 4, "middle", text,
                     words_ == Words::kBoth ? "on-bright" : "on-bright tight");
  }

  /// The longest words that fit into every cell.
  enum class Words { kBoth, kBothTight, kValue, kMark };
  Words fitting_words() const {
    constexpr double kTightLetter = 6.2;  // At 10.8 px.
    std::size_t longest = 1;
    for (const auto& row : map_.cells)
      for (const auto& cell : row)
        if (cell && cell->value)
          longest = std::max(longest, display_width(human(*cell->value, map_.unit, false)));
    const auto value = static_cast<double>(longest);
    if ((value + 2) * kLetter < grid_.cell - 4) return Words::kBoth;
    if ((value + 2) * kTightLetter < grid_.cell - 4) return Words::kBothTight;
    return value * kTightLetter < grid_.cell - 2 ? Words::kValue : Words::kMark;
  }

  bool is_met(std::size_t r, std::size_t c) const {
    return map_.cells[r][c] && holds(map_.cells[r][c]->state);
  }

  void contour() {
    for (std::size_t r = 0; r < map_.rows.size(); ++r)
      for (std::size_t c = 0; c < map_.columns.size(); ++c) {
        if (c > 0 && is_met(r, c) != is_met(r, c - 1)) edge(grid_.x(c), grid_.y(r), 0, grid_.line);
        if (r > 0 && is_met(r, c) != is_met(r - 1, c)) edge(grid_.x(c), grid_.y(r), grid_.cell, 0);
      }
  }
  void edge(double x, double y, double dx, double dy) {
    out_ += svg_line(x - 0.5, y - 0.5, x + dx - 0.5, y + dy - 0.5, "goal-line");
  }

  const GoalMap& map_;
  MapScale badness_;  ///< 0 the best, 1 the worst.
  MapGrid grid_;
  Words words_;
  std::string out_;
};

}  // namespace

std::string draw(const HeatMap& map) {
  const MapScale shades = scale_of(map);
  if (shades.empty()) return {};
  return svg_figure(map.title, map.subtitle) + scale_legend(map, shades) +
         HeatDrawing(map, shades).str() + "</figure>";
}

std::string_view goal_mark(CellState state) {
  constexpr std::array<std::string_view, 5> kMarks = {"✓", "", "✗", "?", "×"};
  return kMarks[static_cast<std::size_t>(state)];
}

std::string_view goal_word(CellState state) {
  constexpr std::array<std::string_view, 5> kWords = {"met", "not overloaded", "missed",
                                                      "undecided", "overloaded"};
  return kWords[static_cast<std::size_t>(state)];
}

std::string draw(const GoalMap& map) {
  GoalDrawing drawing(map);
  if (drawing.empty()) return {};
  return svg_figure(map.title, map.subtitle) + drawing.str() + "</figure>";
}

}  // namespace routesim::tools
