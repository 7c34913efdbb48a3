// Charts as values. Each is drawn as inline SVG: no script, no image, no font to load. Colours are
// classes (c0, c1, ...) that the page's style sheet gives a value for light and for dark; every
// series also has a marker shape and a dash of its own, so that no meaning hangs on colour alone.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tools/render/chart/numbers.h"

namespace routesim::tools {

struct ChartPoint {
  double x = 0;
  double y = 0;
  std::optional<double> low = {}, high = {};  ///< An interval around y, drawn as a bar.
  bool overloaded = false;                    ///< Marked with a cross above it.
};

/// A value of x that is marked across the drawing, with its interval.
struct ChartBand {
  double at = 0;
  std::optional<double> low = {}, high = {};
  std::string text;  ///< In its tooltip: `a sustains 20 req/s`.
};

/// One line, or one cloud of measured points.
struct ChartSeries {
  std::string name;
  std::size_t colour = 0;  ///< Which of the page's colours, and which marker.
  bool measured = false;   ///< Hollow diamonds without a line.
  bool markers = true;     ///< Off for dense lines (distributions, time series).
  bool steps = false;      ///< The value holds until the next point.
  std::optional<ChartBand> band = {};
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
  bool thin = false;                   ///< Thin lines, for many that cross.
  std::string band_text = {};          ///< In the legend: what the bands of the series are.
  std::vector<ChartBand> events = {};  ///< Thin lines across the drawing, of no series.
  std::optional<double> goal;          ///< A line across the drawing.
  std::string goal_text;               ///< In the legend: `time to first token ≤ 1 s`.
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
    std::optional<double> low = {}, high = {};  ///< An interval around the value.
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
    std::string note = {};  ///< To the right, at most ten letters.
    std::size_t colour = 0;
    std::vector<std::pair<std::string, double>> points = {};
  };
  std::string title;
  std::string subtitle;
  std::string x_title;
  Unit unit = Unit::kNone;
  std::vector<Group> groups;
};

/// Changes or errors in percent as points around zero, one line each, with their intervals. Values
/// beyond 100 end at the frame; their number stands beside them.
struct DotPlot {
  enum class Style { kGood, kBad, kUnsure };
  struct Row {
    std::string name;
    std::string text;  ///< To the right: the number as people write it.
    Style style = Style::kUnsure;
    double percent = 0;
    std::optional<double> low = {}, high = {};
  };
  std::string title = {};
  std::string subtitle = {};
  std::vector<Row> rows = {};
};

/// Points in two numbers, of which some are the best trade: a Pareto front, drawn as steps.
struct Scatter {
  struct Point {
    double x = 0;
    double y = 0;
    std::size_t group = 0;  ///< Into `groups`: colour and shape.
    bool hollow = false;
    bool may_lead = true;  ///< Whether the front may go through it.
    std::string tip = {};
    std::vector<double> values = {};  ///< By choice; NaN where it has none.
  };
  /// A number that a reader may put on either axis.
  struct Choice {
    std::string title;
    Unit unit = Unit::kNone;
    bool less_is_better = true;
  };
  std::string title;
  std::string subtitle;
  ChartAxis x, y;
  bool less_x = true, less_y = true;  ///< Whether smaller is better.
  std::vector<std::string> groups;
  std::string filled, empty;   ///< What filled and hollow points are; empty = no such key.
  std::optional<double> goal;  ///< On y.
  std::string goal_text;
  std::vector<Point> points;
  std::vector<Choice> choices = {};        ///< With fewer than three there is nothing to choose.
  std::size_t chosen_x = 0, chosen_y = 1;  ///< Of them.
};

/// How a cell of a sweep stands to the goals.
enum class CellState {
  kMet,        ///< Every goal; with replications the whole interval of each.
  kNoGoals,    ///< There is no goal, and the cell is not overloaded.
  kMissed,     ///< One at least is missed.
  kOpen,       ///< The interval of one at least does not decide, and none is missed.
  kOverloaded  ///< The queue of some reported stage grew until it ended: no latency is its own.
};

inline bool holds(CellState state) {
  return state == CellState::kMet || state == CellState::kNoGoals;
}

/// `✓`, nothing, `✗`, `?` or `×`.
std::string_view goal_mark(CellState state);
/// `met`, `not overloaded`, `missed`, `undecided` or `overloaded`.
std::string_view goal_word(CellState state);

/// A grid of values. Paler is better; a thick line parts cells that meet the goals from the others;
/// overloaded cells are crossed out.
struct GoalMap {
  struct Cell {
    std::optional<double> value = {};
    CellState state = CellState::kMissed;
  };
  std::string title;
  std::string subtitle;
  std::string x_title, y_title;
  std::vector<std::string> columns, rows;
  Unit unit = Unit::kNone;
  bool less_is_better = false;
  bool log = false;                                     ///< Shades go with the logarithm.
  std::vector<std::vector<std::optional<Cell>>> cells;  ///< [row][column]; nothing = not run.
};

/// Whether values spread so far that a linear axis hides the small ones.
bool spreads_wide(const LineChart& chart);

using Chart = std::variant<LineChart, DotPlot, HeatMap, BarChart, StripChart, Scatter, GoalMap>;

/// A <figure> with caption, legend and drawing; empty when there is nothing to draw.
std::string draw(const LineChart& chart);
std::string draw(const DotPlot& plot);
std::string draw(const HeatMap& map);
std::string draw(const BarChart& chart);
std::string draw(const StripChart& chart);
std::string draw(const Scatter& scatter);
std::string draw(const GoalMap& map);

/// The drawing alone, without caption and legend; empty when there is nothing to draw.
struct Drawing {
  std::string svg;
  double width = 0;  ///< Of its view box, like the height.
  double height = 0;
};
Drawing draw_lines(const LineChart& chart);

/// Indices of the points that may lead and that no other of these beats in both numbers, the best x
/// first.
std::vector<std::size_t> pareto_front(const Scatter& scatter);

/// Colours, marker shapes and dashes the page defines; series beyond them start again.
inline constexpr std::size_t kColours = 8;
/// The sample of a series in a legend.
std::string svg_key(std::size_t colour, bool measured, bool marker);

}  // namespace routesim::tools
