// Heat maps: few cells with their numbers, or many as bands over time.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/scalar_parse.h"
#include "tools/render/svg_chart.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

constexpr double kMapRight = 14;
/// More columns than this have no room for numbers; runs of cells of one shade are drawn as one.
constexpr std::size_t kMostCells = 24;
constexpr std::size_t kShades = 16;

/// Position of each cell between the smallest and the largest value, 0..1.
class Shades {
 public:
  explicit Shades(const HeatMap& map) : log_(map.log), flip_(map.low_is_good) {
    const auto add = [&](double value) {
      if (!std::isfinite(value) || (log_ && value <= 0)) return;
      const double v = log_ ? std::log10(value) : value;
      low_ = any_ ? std::min(low_, v) : v;
      high_ = any_ ? std::max(high_, v) : v;
      any_ = true;
    };
    for (const auto& row : map.cells)
      for (const std::optional<double>& v : row)
        if (v) add(*v);
    if (!any_) return;
    if (map.least) add(*map.least);
    if (map.most) add(*map.most);
  }
  bool empty() const { return !any_; }
  double of(double value) const {
    const double v = log_ ? std::log10(std::max(value, 1e-300)) : value;
    const double span = high_ - low_;
    const double share = span > 0 ? std::clamp((v - low_) / span, 0.0, 1.0) : 0.5;
    return flip_ ? 1 - share : share;
  }
  double low() const { return log_ ? std::pow(10, low_) : low_; }
  double high() const { return log_ ? std::pow(10, high_) : high_; }

 private:
  bool log_, flip_, any_ = false;
  double low_ = 0, high_ = 0;
};

/// Cividis, sampled: readable with every kind of colour vision, and in grey.
std::string cividis(double share) {
  constexpr std::array<std::array<double, 3>, 9> kMap = {{{0, 34, 78},
                                                          {26, 56, 111},
                                                          {64, 77, 108},
                                                          {93, 98, 111},
                                                          {122, 121, 119},
                                                          {153, 145, 117},
                                                          {186, 171, 107},
                                                          {221, 199, 86},
                                                          {254, 232, 56}}};
  const double at = share * (kMap.size() - 1);
  const auto low = std::min<std::size_t>(static_cast<std::size_t>(at), kMap.size() - 2);
  std::string out = "rgb(";
  for (std::size_t i = 0; i < 3; ++i) {
    const double v =
        kMap[low][i] + (kMap[low + 1][i] - kMap[low][i]) * (at - static_cast<double>(low));
    out += fixed_text(v, 0) + (i < 2 ? "," : ")");
  }
  return out;
}

/// The colours from the smallest value to the largest.
std::string scale_legend(const HeatMap& map, const Shades& shades) {
  std::string out = "<ul class=\"legend\"><li class=\"note\">" +
                    html(human(shades.low(), map.unit, true)) +
                    "<svg class=\"ramp\" viewBox=\"0 0 96 10\" aria-hidden=\"true\">";
  for (int i = 0; i < 12; ++i) {
    const double share = (i + 0.5) / 12;
    out += "<rect x=\"" + std::to_string(8 * i) + "\" width=\"8.2\" height=\"10\" fill=\"" +
           cividis(map.low_is_good ? 1 - share : share) + "\"/>";
  }
  return out + "</svg>" + html(human(shades.high(), map.unit, true)) + "</li></ul>";
}

/// A heat map being drawn.
class HeatDrawing {
 public:
  HeatDrawing(const HeatMap& map, const Shades& shades) : map_(map), shades_(shades) {
    std::size_t longest = 4;
    for (const std::string& row : map.rows) longest = std::max(longest, display_width(row));
    left_ = std::min(150.0, 14 + kLetter * static_cast<double>(longest));
    cell_ = (kDrawingWidth - left_ - kMapRight) / static_cast<double>(map.columns.size());
    dense_ = map.columns.size() > kMostCells;
    const auto rows = static_cast<double>(map.rows.size());
    line_ = dense_ ? std::clamp(240 / rows, 6.0, 22.0) : std::clamp(cell_ * 0.62, 22.0, 40.0);
    top_ = map.y_title.empty() ? 6 : 26;
    bottom_ = top_ + line_ * rows;
  }

  std::string str() {
    out_ = svg_open(kDrawingWidth, bottom_ + 38, map_.title);
    out_.insert(4, " class=\"map\" data-grid=\"" + html(grid_text()) + "\"");
    if (!map_.y_title.empty()) out_ += svg_text(8, 14, "start", map_.y_title, "unit");
    if (dense_)
      bands();
    else
      cells();
    labels();
    return out_ + "</svg>";
  }

 private:
  /// What the page's script needs: the place of the cells, unit and titles; then names of rows and
  /// of columns; then the values, row by row.
  std::string grid_text() const {
    std::string out;
    for (const double v : {left_, top_, cell_, line_}) out += number_text(v) + " ";
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

  double x(std::size_t column) const { return left_ + cell_ * static_cast<double>(column); }
  double y(std::size_t row) const { return top_ + line_ * static_cast<double>(row); }

  void cells() {
    for (std::size_t r = 0; r < map_.rows.size(); ++r)
      for (std::size_t c = 0; c < map_.columns.size(); ++c) {
        const std::optional<double>& value = map_.cells[r][c];
        const std::string text = value ? human(*value, map_.unit, false) : std::string("no result");
        const double share = value ? shades_.of(*value) : 0;
        out_ += "<rect class=\"cell\" x=\"" + fixed_text(x(c), 1) + "\" y=\"" +
                fixed_text(y(r), 1) + "\" width=\"" + fixed_text(cell_ - 1, 1) + "\" height=\"" +
                fixed_text(line_ - 1, 1) + "\" fill=\"" + (value ? cividis(share) : "none") +
                "\"><title>" + html(map_.rows[r] + ", " + map_.columns[c] + ": " + text) +
                "</title></rect>";
        if (value && cell_ >= 38)
          out_ += svg_text(
              x(c) + cell_ / 2 - 0.5, y(r) + line_ / 2 + 4, "middle", text,
              std::string(share > 0.55 ? "on-bright" : "on-dark") + (cell_ < 50 ? " tight" : ""));
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
    const double height = line_ >= 8 ? line_ - 1 : line_ - 0.5;
    for (std::size_t r = 0; r < map_.rows.size(); ++r)
      for (std::size_t c = 0, end = 0; c < map_.columns.size(); c = end) {
        const std::size_t s = shade(r, c);
        while (end < map_.columns.size() && shade(r, end) == s) ++end;
        if (s == kShades) continue;
        const double width = cell_ * static_cast<double>(end - c);
        paths[s] += "M" + fixed_text(x(c), 1) + " " + fixed_text(y(r), 1) + "h" +
                    fixed_text(width + 0.1, 1) + "v" + fixed_text(height, 1) + "h-" +
                    fixed_text(width + 0.1, 1) + "Z";
      }
    for (std::size_t s = 0; s < kShades; ++s)
      if (!paths[s].empty())
        out_ += "<path fill=\"" + cividis((static_cast<double>(s) + 0.5) / kShades) + "\" d=\"" +
                paths[s] + "\"/>";
  }

  void labels() {
    const auto row_step = static_cast<std::size_t>(std::ceil(13 / line_));
    for (std::size_t r = 0; r < map_.rows.size(); r += row_step)
      out_ += svg_label(left_ - 6, y(r) + line_ / 2 + 4, map_.rows[r], left_ - 8);
    out_ += svg_text((left_ + kDrawingWidth) / 2, bottom_ + 33, "middle", map_.x_title, "unit");
    for (const auto& [place, text] : map_.ticks)
      if (const double at = left_ + cell_ * place; at < kDrawingWidth - 8)
        out_ += svg_text(std::min(at, kDrawingWidth - kLetter * 3), bottom_ + 15, "middle", text);
    if (!map_.ticks.empty()) return;
    std::size_t longest = 1;
    for (const std::string& column : map_.columns)
      longest = std::max(longest, display_width(column));
    // Labels that are never closer than their own length.
    const double widest = kLetter * static_cast<double>(longest) + 8;
    const auto every = static_cast<std::size_t>(std::ceil(widest / cell_));
    for (std::size_t c = 0; c < map_.columns.size(); c += every)
      out_ += svg_text(std::min(x(c) + cell_ / 2, kDrawingWidth - widest / 2 + 4), bottom_ + 15,
                       "middle", map_.columns[c]);
  }

  const HeatMap& map_;
  const Shades& shades_;
  double left_ = 0, top_ = 0, cell_ = 0, line_ = 0, bottom_ = 0;
  bool dense_ = false;
  std::string out_;
};

}  // namespace

std::string draw(const HeatMap& map) {
  const Shades shades(map);
  if (shades.empty()) return {};
  return svg_figure(map.title, map.subtitle) + scale_legend(map, shades) +
         HeatDrawing(map, shades).str() + "</figure>";
}

}  // namespace routesim::tools
