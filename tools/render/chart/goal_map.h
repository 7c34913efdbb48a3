// A grid of values with a line around the cells that meet the goals.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/render/chart/numbers.h"

namespace routesim::tools {

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

/// A <figure>; empty when no cell has a value. Paler is better; a thick line parts cells that meet
/// the goals from the others; overloaded cells are crossed out.
std::string draw(const GoalMap& map);

}  // namespace routesim::tools
