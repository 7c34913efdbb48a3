// Charts as inline SVG: no script, no image, no font to load. Colours are classes (c0, c1, ...)
// that the page's style sheet gives a value for light and for dark; every series also has a marker
// shape and a dash of its own, so that no meaning hangs on colour alone.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/render/chart/numbers.h"

namespace routesim::tools {

struct ChartPoint {
  double x = 0;
  double y = 0;
  std::optional<double> low = {}, high = {};  ///< An interval around y, drawn as a bar.
  bool overloaded = false;                    ///< Marked with a cross above it.
};

/// One line, or one cloud of measured points.
struct ChartSeries {
  std::string name;
  std::size_t colour = 0;  ///< Which of the page's colours, and which marker.
  bool measured = false;   ///< Hollow diamonds without a line.
  bool markers = true;     ///< Off for dense lines (distributions, time series).
  bool steps = false;      ///< The value holds until the next point.
  std::vector<ChartPoint> points = {};
};

struct ChartAxis {
  std::string title;
  Unit unit = Unit::kNone;
  bool log = false;
  bool from_zero = false;  ///< Linear axes: include zero.
  std::optional<double> min = {}, max = {};
};

struct LineChart {
  std::string title;     ///< The answer the chart gives, in one sentence.
  std::string subtitle;  ///< What is drawn.
  ChartAxis x, y;
  bool thin = false;           ///< Thin lines, for many that cross.
  std::optional<double> goal;  ///< A line across the drawing.
  std::string goal_text;       ///< In the legend: `time to first token ≤ 1 s`.
  std::vector<ChartSeries> series;
};

/// A grid of values; missing ones stay empty. With few columns cells show their numbers; with many
/// (a value over time) runs of one shade are drawn as bands.
struct HeatMap {
  std::string title;
  std::string subtitle;
  std::string x_title, y_title;
  std::vector<std::string> columns, rows;
  Unit unit = Unit::kNone;
  bool low_is_good = false;           ///< Small values get the bright end of the scale.
  bool log = false;                   ///< Colours go with the logarithm.
  std::optional<double> least, most;  ///< Ends of a scale that several maps share.
  std::vector<std::pair<double, std::string>>
      ticks;  ///< In place of column names: where, in columns.
  std::vector<std::vector<std::optional<double>>> cells;  ///< [row][column]
};

/// One bar per entry, longest first as given.
struct BarChart {
  struct Bar {
    std::string name;
    double value = 0;
    std::size_t colour = 0;
  };
  std::string title;
  std::string subtitle;
  Unit unit = Unit::kNone;
  std::vector<Bar> bars;
};

/// A row of points for each group, with a tick at their mean: how evenly something is spread.
struct StripChart {
  struct Group {
    std::string name;
    std::string note;  ///< To the right, at most ten letters.
    std::size_t colour = 0;
    std::vector<std::pair<std::string, double>> points;
  };
  std::string title;
  std::string subtitle;
  std::string x_title;
  Unit unit = Unit::kNone;
  std::vector<Group> groups;
};

/// The drawing alone, without caption and legend; empty when there is nothing to draw.
struct Drawing {
  std::string svg;
  double width = 0;  ///< Of its view box, like the height.
  double height = 0;
};
Drawing draw_lines(const LineChart& chart);

/// A <figure> with caption, legend and drawing; empty when there is nothing to draw.
std::string draw(const LineChart& chart);
std::string draw(const HeatMap& map);
std::string draw(const BarChart& chart);
std::string draw(const StripChart& chart);

/// Round numbers that cover [low, high] in at most `most` steps.
std::vector<double> linear_ticks(double low, double high, int most);
/// The same for seconds: steps of 1, 2, 5, 10, 15, 30 s, min or h once the span is above 100 s.
std::vector<double> time_ticks(double low, double high, int most);
/// Powers of ten in [low, high], with 2 and 5 between them while that stays readable.
std::vector<double> log_ticks(double low, double high);

/// Colours, marker shapes and dashes the page defines; series beyond them start again.
inline constexpr std::size_t kColours = 8;

/// Shape number of measured points: a hollow diamond, larger than the others.
inline constexpr std::size_t kMeasuredShape = 100;

/// Width of every drawing, in the units of its view box.
inline constexpr double kDrawingWidth = 440;
/// Width of a letter of a drawing, an upper estimate of the mean.
inline constexpr double kLetter = 6.8;

/// `<figure>` with its caption; whoever opens it closes it.
std::string svg_figure(const std::string& title, const std::string& subtitle);
/// `<svg ...>` that scales with its container; `label` is what a screen reader says.
std::string svg_open(double width, double height, const std::string& label);
std::string svg_line(double x1, double y1, double x2, double y2, const std::string& style);
/// `anchor`: start, middle or end; `shift` moves the text horizontally.
std::string svg_text(double x, double y, const std::string& anchor, const std::string& text,
                     const std::string& style = {}, double shift = 0);
/// A name that ends at `x`, shortened to `width`.
std::string svg_label(double x, double y, const std::string& text, double width);
/// A marker of the shape that belongs to a series, with a tooltip; `style` adds classes.
std::string svg_marker(std::size_t shape, double x, double y, const std::string& tip,
                       const std::string& style = {});
/// The sample of a series in a legend.
std::string svg_key(std::size_t colour, bool measured, bool marker);

}  // namespace routesim::tools
