// The cells of a sweep: every combination of its dimensions' values, in grid order.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/tree_reader.h"
#include "tools/ingest/config_merge.h"
#include "tools/study/sweep/sweep_config.h"

namespace routesim::tools {

/// One value of an axis.
struct AxisValue {
  ConfigNode::Ptr node;  ///< What the key is set to.
  std::string json;      ///< The same in rows, or its label: JSON on one line.
};

/// One key and its values.
struct Axis {
  std::string name;
  std::string path;
  std::vector<PathStep> steps;
  std::vector<AxisValue> values;
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
