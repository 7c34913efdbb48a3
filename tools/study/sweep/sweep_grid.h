// A sweep file, and the cells that it makes: every combination of its dimensions' values, in grid
// order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/describe.h"
#include "base/tree_reader.h"
#include "tools/ingest/tree/config_merge.h"

namespace routesim::tools {

/// Numbers at equal distances, both ends included when the step meets them.
struct SweepRange {
  double from = 0;
  double to = 0;
  double step = 1;   ///< Above 0; the range may also fall, from high to low.
  std::string unit;  ///< Written behind each number: `ms` makes durations.
};
void describe(Describer& d, SweepRange& r);

/// Numbers at equal ratios, both ends included.
struct SweepLogRange {
  double from = 1;
  double to = 1;
  std::int64_t points = 2;
  bool integer = false;  ///< Round to whole numbers; numbers that become equal are kept once.
  std::string unit;      ///< Written behind each number.
};
void describe(Describer& d, SweepLogRange& r);

/// One key of the scenario and the values it takes. Exactly one of the three forms is given.
struct SweepAxis {
  std::string path;                 ///< Key path as in `--set`.
  std::string name;                 ///< Name in rows; empty = the path.
  Document values;                  ///< A list of anything the key may hold.
  std::vector<std::string> labels;  ///< Names of the values in rows, one each; may be empty.
  std::optional<SweepRange> range;
  std::optional<SweepLogRange> log_range;
};
void describe(Describer& d, SweepAxis& a);

/// One dimension of the grid: an axis, or several that move together.
struct SweepDimension : SweepAxis {
  std::vector<SweepAxis> zip;  ///< Axes of equal length; nothing else is given then.
};
void describe(Describer& d, SweepDimension& a);

/// A sweep file.
struct SweepConfig {
  std::string name;
  std::string question;
  std::string scenario;               ///< Path of the base scenario, relative to this file.
  std::vector<std::string> set;       ///< Assignments made in every cell before its own values.
  std::vector<std::string> variants;  ///< Names in the scenario; empty = all.
  std::optional<std::int64_t> seed;   ///< Seed of the first replication; absent = the scenario's.
  std::int64_t replications = 1;      ///< Runs per row, with consecutive seeds.
  std::vector<std::string> metrics;   ///< `ttft_ms.p99`, ...; empty = the usual ones.
  std::vector<std::string> goals;     ///< `ttft_ms.p90 < 500`, for the page.
  std::vector<SweepDimension> axes;
  std::vector<Document>
      exclude;  ///< Maps from axis names to a value, a list of values, or a bound.
};
void describe(Describer& d, SweepConfig& c);

/// One value of an axis.
struct AxisValue {
  ConfigNode::Ptr node;  ///< The value that the key gets.
  std::string json;      ///< The same in rows, or its label: JSON on one line.
};

/// One key and its values.
struct Axis {
  std::string name;
  std::string path;
  std::vector<PathStep> steps = {};
  std::vector<AxisValue> values = {};
  SourceLocation where;
};

/// Axes that move together; all have the same number of values.
struct Dimension {
  std::vector<Axis> axes;
  std::size_t size() const { return axes.empty() ? 0 : axes.front().values.size(); }
};

/// An index per dimension.
using GridCell = std::vector<std::size_t>;

/// The grid: its dimensions, and the cells that are not excluded. The last dimension varies
/// fastest.
struct SweepGrid {
  std::vector<Dimension> dimensions;
  std::vector<GridCell> cells;

  /// Name and JSON value of each axis in this cell.
  std::vector<std::pair<std::string, std::string>> coordinates(const GridCell& cell) const;
  /// The same for people: `rate=3, replicas=8`; `the only cell` when there are no axes.
  std::string label(const GridCell& cell) const;
  /// The assignments that make the base scenario this cell.
  std::vector<Assignment> assignments(const GridCell& cell) const;
};

/// The most cells a grid may have, before exclusions.
inline constexpr std::size_t kMostCells = 1'000'000;

/// Expands `config`, which was read with `provenance`. An axis without values or of two forms,
/// zipped axes of unequal length, two axes of one name or path, an exclusion of an unknown axis and
/// a grid without cells are errors; an exclusion that matches nothing is a warning. The grid may
/// be used only without errors.
SweepGrid expand_grid(const SweepConfig& config, const Provenance& provenance,
                      Diagnostics& diagnostics);

/// A tree as JSON on one line; plain scalars become numbers and booleans where they are.
std::string node_json(const ConfigNode& node);

}  // namespace routesim::tools
