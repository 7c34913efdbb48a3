#include "tools/study/sweep/sweep_goals.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

#include "base/scalar_parse.h"
#include "tools/results/described_json.h"

namespace routesim::tools {

namespace {

template <class T>
void add_once(std::vector<T>& list, const T& value) {
  if (std::ranges::find(list, value) == list.end()) list.push_back(value);
}

PageAxis dimension_of(const SweepCells& cells, std::size_t axis) {
  PageAxis d{.axis = axis};
  for (const SweepCells::Row& row : cells.rows) add_once(d.values, row.cell[axis]);
  for (const std::string& value : d.values) {
    const std::optional<double> number = number_from(value);
    if (!number) {
      d.numbers.clear();
      return d;
    }
    d.numbers.push_back(*number);
  }
  std::ranges::sort(d.numbers);
  std::ranges::stable_sort(d.values, [](const auto& a, const auto& b) {
    return number_from(a).value_or(0) < number_from(b).value_or(0);
  });
  return d;
}

/// Whether every value of `a` goes with one value of `b`: axes that move together.
bool move_together(const SweepCells& cells, std::size_t a, std::size_t b) {
  std::map<std::string, std::string> seen;
  for (const SweepCells::Row& row : cells.rows)
    if (seen.try_emplace(row.cell[a], row.cell[b]).first->second != row.cell[b]) return false;
  return true;
}

}  // namespace

std::string axis_value(const Document& value) {
  std::string text = value.path;
  if (value.root != nullptr && value.root->is_scalar()) {
    text = value.root->text();
  } else if (value.root != nullptr) {
    JsonWriter json(0);
    write_tree(json, *value.root);
    text = value.root->is_null() ? "" : json.str();
  } else if (const ConfigNode::Ptr tree = json_tree(text, {}); tree != nullptr) {
    return axis_value({.path = {}, .root = tree});
  }
  constexpr std::size_t kMost = 40;
  if (text.size() > kMost) text.replace(kMost - 3, std::string::npos, "...");
  return text;
}

namespace {

/// The axis that stages make.
constexpr char kStageRate[] = "stage rate";

/// A row, or one of its stages, whose numbers stand at `path`.
SweepCells::Row cells_row(const SweepRowRecord& row, const SweepRowRecord::Numbers& numbers,
                          const std::vector<std::string>& axes, const std::string& path) {
  SweepCells::Row out;
  out.variant = row.variant;
  out.overloaded = numbers.overloaded;
  for (const std::string& axis : axes) {
    const auto at =
        std::ranges::find(row.cell.items, axis, &std::pair<std::string, Document>::first);
    out.cell.push_back(at == row.cell.items.end() ? "" : axis_value(at->second));
  }
  for (const auto& [metric, m] : numbers.metrics.items) {
    if (!std::isfinite(m.mean)) continue;
    Datum mean{.value = m.mean, .path = path + "/metrics/" + metric + "/mean"};
    if (std::isfinite(m.half_width)) {
      mean.low = m.mean - m.half_width;
      mean.high = m.mean + m.half_width;
    }
    out.values.emplace(metric, std::move(mean));
  }
  return out;
}

/// Indices of the reported stages of a row when they differ in their rates; else nothing.
std::vector<std::size_t> stages_by_rate(const SweepRowRecord& row) {
  std::vector<std::size_t> stages;
  std::set<double> rates;
  for (std::size_t s = 0; s < row.stages.size(); ++s) {
    if (!row.stages[s].reported) continue;
    const double rate = row.stages[s].requested_rate;
    if (!(rate > 0) || !rates.insert(rate).second) return {};
    stages.push_back(s);
  }
  return stages.size() < 2 ? std::vector<std::size_t>{} : stages;
}

}  // namespace

SweepCells cells_of(const SweepRecord& record, const std::string& path) {
  SweepCells cells;
  const std::vector<SweepRowRecord>& rows = record.sweep_rows;
  if (rows.empty()) return cells;
  for (const auto& [axis, value] : rows.front().cell.items) cells.axes.push_back(axis);
  for (const auto& [metric, m] : rows.front().summary.metrics.items)
    cells.metrics.push_back(metric);
  cells.goals = record.goals.empty() ? rows.front().goals : record.goals;
  const bool has_rate = std::ranges::any_of(
      cells.axes, [](const std::string& axis) { return has_word(axis, "rate qps"); });
  const bool by_stage = !has_rate && std::ranges::all_of(rows, [](const SweepRowRecord& row) {
    return !stages_by_rate(row).empty();
  });
  const std::vector<std::string> axes = cells.axes;
  if (by_stage) cells.axes.emplace_back(kStageRate);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string here = path + "/sweep_rows/" + std::to_string(i);
    if (!by_stage)
      cells.rows.push_back(cells_row(rows[i], rows[i].summary, axes, here + "/summary"));
    if (by_stage)
      for (const std::size_t s : stages_by_rate(rows[i])) {
        const SweepRowRecord::Stage& stage = rows[i].stages[s];
        cells.rows.push_back(
            cells_row(rows[i], stage, axes, here + "/stages/" + std::to_string(s)));
        cells.rows.back().cell.push_back(number_text(stage.requested_rate));
      }
  }
  return cells;
}

bool has_word(const std::string& path, std::string_view words) {
  const std::size_t dot = path.find_last_of('.');
  const std::string name = dot == std::string::npos ? path : path.substr(dot + 1);
  const auto is_word = [&](std::string_view word) {
    const auto is_edge = [&](std::size_t i) {
      return i >= name.size() || std::isalnum(static_cast<unsigned char>(name[i])) == 0;
    };
    for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
      const std::size_t end = at + word.size();
      const bool is_plural = end < name.size() && name[end] == 's';
      if ((at == 0 || is_edge(at - 1)) && (is_edge(end) || (is_plural && is_edge(end + 1))))
        return true;
    }
    return false;
  };
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (is_word(words.substr(0, end))) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

SweepGoals::SweepGoals(const SweepCells& cells) : cells_(cells) {
  for (const std::string& text : cells.goals)
    if (const Parsed<MetricGoal> goal = parse_metric_goal(text); goal.value)
      goals_.push_back(*goal.value);
  for (const SweepCells::Row& row : cells.rows) add_once(variants_, row.variant);
  std::vector<PageAxis> all;
  for (std::size_t a = 0; a < cells.axes.size(); ++a) {
    const PageAxis d = dimension_of(cells, a);
    const bool tied = std::ranges::any_of(
        all, [&](const PageAxis& other) { return move_together(cells, other.axis, a); });
    if (d.values.size() > 1 && !tied) all.push_back(d);
  }
  choose_axes(all);
  make_panels(all);
}

const PageAxis* SweepGoals::find(std::string_view words) const {
  for (const PageAxis& d : drawn_)
    if (d.is_numeric() && has_word(cells_.axes[d.axis], words)) return &d;
  return nullptr;
}

void SweepGoals::choose_axes(std::vector<PageAxis> all) {
  const auto rank = [&](const PageAxis& d) {
    const std::string& name = cells_.axes[d.axis];
    const bool known =
        d.is_numeric() && (has_word(name, kRateWords) || has_word(name, kFleetWords));
    return std::pair(known ? 1 : 0, d.values.size());
  };
  std::ranges::stable_sort(all,
                           [&](const PageAxis& a, const PageAxis& b) { return rank(a) > rank(b); });
  if (all.size() > 2) all.resize(2);
  // The rate runs to the right.
  if (all.size() == 2 && has_word(cells_.axes[all[1].axis], kRateWords) &&
      !has_word(cells_.axes[all[0].axis], kRateWords))
    std::swap(all[0], all[1]);
  drawn_ = std::move(all);
}

void SweepGoals::make_panels(const std::vector<PageAxis>& all) {
  std::vector<std::vector<std::string>> keys;
  for (const SweepCells::Row& row : cells_.rows) {
    std::vector<std::string> key;
    std::string title;
    for (const PageAxis& d : all) {
      const auto is_it = [&](const PageAxis& other) { return other.axis == d.axis; };
      if (std::ranges::any_of(drawn_, is_it)) continue;
      key.push_back(row.cell[d.axis]);
      title += (title.empty() ? "" : ", ") + cells_.axes[d.axis] + " " + row.cell[d.axis];
    }
    const auto at = std::ranges::find(keys, key);
    const auto index = static_cast<std::size_t>(at - keys.begin());
    if (at == keys.end()) {
      keys.push_back(key);
      panels_.push_back({.title = title});
    }
    panels_[index].rows.push_back(&row);
  }
}

CellState SweepGoals::state_of(const SweepCells::Row& row) const {
  if (row.overloaded) return CellState::kOverloaded;
  CellState state = goals_.empty() ? CellState::kNoGoals : CellState::kMet;
  for (const MetricGoal& goal : goals_) {
    const auto found = row.values.find(goal.metric.text);
    if (found == row.values.end()) return CellState::kMissed;
    const Datum& d = found->second;
    const bool low = goal.holds(d.low.value_or(d.value));
    const bool high = goal.holds(d.high.value_or(d.value));
    if (!low && !high) return CellState::kMissed;
    if (low != high) state = CellState::kOpen;
  }
  return state;
}

const SweepCells::Row* SweepGoals::row_at(const SweepPanel& panel, const std::string& variant,
                                          const std::vector<std::string>& values) const {
  for (const SweepCells::Row* row : panel.rows) {
    bool same = row->variant == variant;
    for (std::size_t d = 0; d < drawn_.size(); ++d)
      same = same && row->cell[drawn_[d].axis] == values[d];
    if (same) return row;
  }
  return nullptr;
}

/// The row at a value of one drawn axis and at `other` of the other one.
const SweepCells::Row* SweepGoals::row_beside(const SweepPanel& panel, const std::string& variant,
                                              const PageAxis& d, std::size_t at,
                                              const std::string& other) const {
  std::vector<std::string> values = {d.values[at]};
  if (drawn_.size() == 2) values.insert(&d == &drawn_[0] ? values.end() : values.begin(), other);
  return row_at(panel, variant, values);
}

std::vector<std::size_t> SweepGoals::tried(const SweepPanel& panel, const std::string& variant,
                                           const PageAxis& d, const std::string& other) const {
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < d.values.size(); ++i)
    if (row_beside(panel, variant, d, i, other) != nullptr) at.push_back(i);
  return at;
}

std::optional<std::size_t> SweepGoals::smallest_fleet(const SweepPanel& panel,
                                                      const std::string& variant,
                                                      const std::string& other) const {
  for (const std::size_t n : tried(panel, variant, *fleet(), other))
    if (holds(state_of(*row_beside(panel, variant, *fleet(), n, other)))) return n;
  return std::nullopt;
}

std::optional<std::size_t> SweepGoals::highest_rate(const SweepPanel& panel,
                                                    const std::string& variant,
                                                    const std::string& other) const {
  std::optional<std::size_t> last;
  for (const std::size_t i : tried(panel, variant, *rate(), other)) {
    if (!holds(state_of(*row_beside(panel, variant, *rate(), i, other)))) break;
    last = i;
  }
  return last;
}

}  // namespace routesim::tools
