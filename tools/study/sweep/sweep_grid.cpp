#include "tools/study/sweep/sweep_grid.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/results/described_json.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

void describe(Describer& d, SweepRange& r) {
  field(d, {"from", "First number.", true}, r.from);
  field(d, {"to", "Last number, included when a step ends there.", true}, r.to);
  field(d, {"step", "Distance between numbers."}, r.step, RealRange{.min = 0, .min_open = true});
  field(d, {"unit", "Written behind each number, such as ms for a duration."}, r.unit);
}

void describe(Describer& d, SweepLogRange& r) {
  const RealRange positive{.min = 0, .min_open = true};
  field(d, {"from", "First number.", true}, r.from, positive);
  field(d, {"to", "Last number.", true}, r.to, positive);
  field(d, {"points", "How many numbers, both ends included.", true}, r.points,
        IntRange{2, 10'000});
  field(d, {"integer", "Round to whole numbers; what becomes equal is kept once."}, r.integer);
  field(d, {"unit", "Written behind each number, such as ms for a duration."}, r.unit);
}

void describe(Describer& d, SweepAxis& a) {
  field(d, {"path", "Key of the scenario, as in --set: cluster.pools[vllm].replicas."}, a.path);
  field(d, {"name", "Name of the axis in rows and exclusions; the path when absent."}, a.name);
  field(d, {"values", "The values, a list of whatever the key may hold."}, a.values);
  field(d, {"labels", "Names of the values in rows, one each, for values that are long."},
        a.labels);
  field(d, {"range", "Numbers at equal distances."}, a.range);
  field(d, {"log_range", "Numbers at equal ratios."}, a.log_range);
}

void describe(Describer& d, SweepDimension& a) {
  describe(d, static_cast<SweepAxis&>(a));
  field(d, {"zip", "Axes of equal length that move together, instead of a path of its own."},
        a.zip);
}

void describe(Describer& d, SweepConfig& c) {
  field(d, {"name", "Name of the sweep, as printed in results.", true}, c.name);
  field(d, {"question", "The question the sweep answers, one sentence."}, c.question);
  field(d, {"scenario", "The base scenario, a path relative to this file.", true}, c.scenario);
  field(d, {"set", "Assignments made in every cell first: KEY=VALUE, as --set."}, c.set);
  field(d, {"variants", "Variants of the scenario; all of them when absent."}, c.variants);
  field(d, {"seed", "Seed of the first replication; the scenario's when absent."}, c.seed,
        IntRange{0});
  field(d, {"replications", "Runs per row, with consecutive seeds."}, c.replications,
        IntRange{1, 10'000});
  field(d, {"metrics", "What stands in a row, such as ttft_ms.p99; the usual ones when absent."},
        c.metrics);
  field(d,
        {"goals",
         "Bounds such as ttft_ms.p90 < 500: the page shows where they are met. Their metrics join "
         "those of a row."},
        c.goals);
  field(d, {"axes", "The grid's dimensions; the first one varies slowest.", true}, c.axes);
  field(d,
        {"exclude",
         "Cells to leave out: maps from axis names to a value, a list of values, or a bound such "
         "as \">= 40\"; all of a map's conditions must hold."},
        c.exclude);
}

namespace {

using Ptr = ConfigNode::Ptr;

/// Twelve significant digits: enough for any key, and 0.1 + 2 * 0.1 stays 0.3.
std::string clean_number(double v) { return number_text(with_digits(v, 12)); }

void write_node(JsonWriter& json, const ConfigNode& node) {
  switch (node.kind()) {
    case ConfigNode::Kind::kNull:
      json.null();
      return;
    case ConfigNode::Kind::kSequence:
      json.begin_array();
      for (const Ptr& item : node.items()) write_node(json, *item);
      json.end_array();
      return;
    case ConfigNode::Kind::kMap:
      json.begin_object();
      for (const ConfigNode::Member& member : node.members()) {
        json.key(member.key);
        write_node(json, *member.value);
      }
      json.end_object();
      return;
    case ConfigNode::Kind::kScalar:
      break;
  }
  const bool plain = node.style() == ConfigNode::Style::kPlain;
  const PlainType type = plain ? plain_type(node.text()) : PlainType::kText;
  const Parsed<double> number = type == PlainType::kInteger || type == PlainType::kReal
                                    ? parse_real(node, {})
                                    : Parsed<double>{};
  if (type == PlainType::kBool) {
    json.value(node.text() == "true" || node.text() == "True" || node.text() == "TRUE");
  } else if (number.value) {
    json.value(*number.value);
  } else {
    json.value(node.text());
  }
}

/// Builds the axes and reports what is wrong with each.
class AxisBuilder {
 public:
  AxisBuilder(const Provenance& provenance, Diagnostics& diagnostics)
      : provenance_(provenance), diagnostics_(diagnostics) {}

  Dimension dimension(const SweepDimension& config, const std::string& path) {
    Dimension dimension;
    if (config.zip.empty()) {
      dimension.axes.push_back(axis(config, path));
      return dimension;
    }
    if (!config.path.empty() || !config.values.empty() || config.range || config.log_range)
      error(path, "has both zip and a path or values of its own",
            "put every axis that moves into zip");
    for (std::size_t i = 0; i < config.zip.size(); ++i)
      dimension.axes.push_back(axis(config.zip[i], element_path(path + ".zip", i)));
    for (const Axis& other : dimension.axes)
      if (!other.values.empty() && other.values.size() != dimension.size())
        error(path, "zipped axes must have the same number of values (got " +
                        std::to_string(dimension.size()) + " of " +
                        printable(dimension.axes.front().name) + " and " +
                        std::to_string(other.values.size()) + " of " + printable(other.name) + ")");
    return dimension;
  }

 private:
  Axis axis(const SweepAxis& config, const std::string& path) {
    Axis axis{.name = config.name.empty() ? config.path : config.name,
              .path = config.path,
              .where = provenance_.nearest(path + ".path")};
    if (config.path.empty()) {
      error(path, "has no path", "for example path: cluster.pools[0].replicas");
      return axis;
    }
    if (auto steps = parse_key_path(config.path)) {
      axis.steps = std::move(*steps);
    } else {
      error(path + ".path", "is not a key path (got " + printable(config.path) + ")",
            "write keys with dots and list elements in brackets: a.b[0].c or a[name].c");
    }
    if (!axis.steps.empty() && axis.steps.front().key == "variants")
      error(path + ".path", "a cell has its own variants; they cannot be an axis",
            "name them in `variants`, or sweep the keys they override");
    const int forms =
        (config.values.empty() ? 0 : 1) + (config.range ? 1 : 0) + (config.log_range ? 1 : 0);
    if (forms != 1) {
      error(path, forms == 0 ? "has no values" : "has more than one of values, range, log_range",
            "give one of values, range, log_range");
      return axis;
    }
    if (config.range) {
      add_range(*config.range, path + ".range", axis);
    } else if (config.log_range) {
      add_log_range(*config.log_range, provenance_.nearest(path + ".log_range"), axis);
    } else {
      add_list(config.values, path + ".values", axis);
    }
    add_labels(config.labels, path + ".labels", axis);
    return axis;
  }

  void add_list(const Document& values, const std::string& path, Axis& axis) {
    if (values.root == nullptr || !values.root->is_sequence() || values.root->items().empty()) {
      error(path, "must be a list of at least one value", "write values: [1, 2, 3]");
      return;
    }
    for (const Ptr& item : values.root->items()) {
      if (item->is_null()) error(path, "holds an empty value");
      axis.values.push_back({item, node_json(*item)});
    }
  }

  void add_number(double v, const std::string& unit, const SourceLocation& where, Axis& axis) {
    const Ptr node =
        ConfigNode::make_scalar(clean_number(v) + unit, ConfigNode::Style::kPlain, where);
    axis.values.push_back({node, node_json(*node)});
  }

  void add_range(const SweepRange& range, const std::string& path, Axis& axis) {
    // A hair of slack: ten steps of 0.1 do meet 1.
    const double steps = std::floor(std::abs(range.to - range.from) / range.step + 1e-9);
    if (!(steps < static_cast<double>(kMostCells))) {
      error(path, "has more than " + std::to_string(kMostCells) + " values");
      return;
    }
    const double step = range.to < range.from ? -range.step : range.step;
    const SourceLocation where = provenance_.nearest(path);
    for (std::size_t i = 0; i <= static_cast<std::size_t>(steps); ++i)
      add_number(range.from + static_cast<double>(i) * step, range.unit, where, axis);
  }

  static void push_unique(const Ptr& node, Axis& axis) {
    std::string json = node_json(*node);
    if (axis.values.empty() || axis.values.back().json != json)
      axis.values.push_back({node, std::move(json)});
  }

  void add_log_range(const SweepLogRange& range, const SourceLocation& where, Axis& axis) {
    const double ratio = std::log(range.to / range.from);
    for (std::int64_t i = 0; i < range.points; ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(range.points - 1);
      // The ends are what was written, not what exp and log make of it.
      double v = range.from * std::exp(ratio * share);
      if (i == 0) v = range.from;
      if (i == range.points - 1) v = range.to;
      if (range.integer) v = std::round(v);
      push_unique(
          ConfigNode::make_scalar(clean_number(v) + range.unit, ConfigNode::Style::kPlain, where),
          axis);
    }
  }

  void add_labels(const std::vector<std::string>& labels, const std::string& path, Axis& axis) {
    if (labels.empty() || axis.values.empty()) return;
    if (labels.size() != axis.values.size()) {
      error(path, "must name every value (got " + std::to_string(labels.size()) + " names for " +
                      std::to_string(axis.values.size()) + " values)");
      return;
    }
    std::set<std::string> seen;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (!seen.insert(labels[i]).second)
        error(element_path(path, i), "names another value too (got " + printable(labels[i]) + ")",
              "give each value a label of its own");
      axis.values[i].json = json_string(labels[i]);
    }
  }

  void error(const std::string& path, const std::string& what, const std::string& hint = {}) {
    diagnostics_.error(provenance_.nearest(path), path, what, hint);
  }

  const Provenance& provenance_;
  Diagnostics& diagnostics_;
};

/// Text without the quotes of a JSON string, for people.
std::string without_quotes(const std::string& json) {
  const bool quoted = json.size() >= 2 && json.front() == '"';
  return quoted ? json.substr(1, json.size() - 2) : json;
}

/// One condition of an exclusion: the axis, and which of its values it matches.
struct Condition {
  std::size_t dimension = 0;
  std::vector<bool> matches = {};
};

/// `>= 40`: whether `value` meets the bound; nothing when `text` is not a bound.
std::optional<bool> meets_bound(const std::string& text, const std::string& value) {
  if (text.empty() || (text[0] != '<' && text[0] != '>')) return std::nullopt;
  const bool or_equal = text.size() > 1 && text[1] == '=';
  const std::size_t start = text.find_first_not_of(' ', or_equal ? 2 : 1);
  if (start == std::string::npos) return std::nullopt;
  const std::optional<double> bound = number_from(text.substr(start));
  const std::optional<double> v = number_from(value);
  if (!bound) return std::nullopt;
  if (!v) return false;
  if (or_equal && *v == *bound) return true;
  return text[0] == '<' ? *v < *bound : *v > *bound;
}

bool matches_value(const ConfigNode& wanted, const AxisValue& value) {
  if (wanted.is_sequence())
    return std::ranges::any_of(wanted.items(),
                               [&](const Ptr& item) { return matches_value(*item, value); });
  if (wanted.is_scalar())
    if (const std::optional<bool> met = meets_bound(wanted.text(), value.json)) return *met;
  const std::string json = node_json(wanted);
  return json == value.json || json == node_json(*value.node);
}

/// Reads one exclusion; nothing after an error.
std::vector<Condition> read_exclusion(const Document& exclusion, const std::string& path,
                                      const SweepGrid& grid, Diagnostics& diagnostics) {
  std::vector<Condition> conditions;
  const Ptr root = exclusion.root;
  if (root == nullptr || !root->is_map() || root->members().empty()) {
    diagnostics.error(root == nullptr ? SourceLocation{} : root->where(), path,
                      "must be a map from axis names to values", "for example {rate: [50, 60]}");
    return {};
  }
  for (const ConfigNode::Member& member : root->members()) {
    std::vector<std::string> names;
    bool found = false;
    for (std::size_t d = 0; d < grid.dimensions.size(); ++d)
      for (const Axis& axis : grid.dimensions[d].axes) {
        names.push_back(axis.name);
        if (axis.name != member.key) continue;
        found = true;
        Condition& condition = conditions.emplace_back(Condition{.dimension = d});
        for (const AxisValue& value : axis.values)
          condition.matches.push_back(matches_value(*member.value, value));
      }
    if (found) continue;
    diagnostics.error(member.key_where, child_path(path, member.key), "is not the name of an axis",
                      did_you_mean(member.key, names));
  }
  return conditions;
}

bool excluded(const GridCell& cell, const std::vector<Condition>& conditions) {
  return std::ranges::all_of(conditions,
                             [&](const Condition& c) { return c.matches[cell[c.dimension]]; });
}

/// Two axes must not share a name (rows could not be told apart) or a path (one would win).
void check_unique(const SweepGrid& grid, Diagnostics& diagnostics) {
  std::set<std::string> names;
  std::set<std::string> paths;
  for (const Dimension& dimension : grid.dimensions)
    for (const Axis& axis : dimension.axes) {
      if (axis.path.empty()) continue;
      if (!paths.insert(axis.path).second) {
        diagnostics.error(axis.where, "axes", "two axes set " + printable(axis.path));
      } else if (!names.insert(axis.name).second) {
        diagnostics.error(axis.where, "axes", "two axes are named " + printable(axis.name));
      }
    }
}

/// All cells in order; empty after an error.
std::vector<GridCell> all_cells(const SweepGrid& grid, const SourceLocation& where,
                                Diagnostics& diagnostics) {
  std::size_t count = 1;
  for (const Dimension& dimension : grid.dimensions) {
    if (dimension.size() == 0) return {};
    count *= dimension.size();
    if (count > kMostCells) {
      diagnostics.error(where, "axes",
                        "the grid has more than " + std::to_string(kMostCells) + " cells");
      return {};
    }
  }
  std::vector<GridCell> cells;
  GridCell cell(grid.dimensions.size(), 0);
  for (std::size_t n = 0; n < count; ++n) {
    cells.push_back(cell);
    for (std::size_t d = cell.size(); d-- > 0;) {
      if (++cell[d] < grid.dimensions[d].size()) break;
      cell[d] = 0;
    }
  }
  return cells;
}

}  // namespace

std::string node_json(const ConfigNode& node) {
  JsonWriter json(0);
  write_node(json, node);
  return json.str();
}

std::vector<std::pair<std::string, std::string>> SweepGrid::coordinates(
    const GridCell& cell) const {
  std::vector<std::pair<std::string, std::string>> all;
  for (std::size_t d = 0; d < dimensions.size(); ++d)
    for (const Axis& axis : dimensions[d].axes)
      all.emplace_back(axis.name, axis.values[cell[d]].json);
  return all;
}

std::string SweepGrid::label(const GridCell& cell) const {
  const std::string text = comma_list(coordinates(cell), [](const auto& axis) {
    return printable(axis.first) + "=" + printable(without_quotes(axis.second));
  });
  return text.empty() ? "the only cell" : text;
}

std::vector<Assignment> SweepGrid::assignments(const GridCell& cell) const {
  std::vector<Assignment> all;
  for (std::size_t d = 0; d < dimensions.size(); ++d)
    for (const Axis& axis : dimensions[d].axes) {
      const AxisValue& value = axis.values[cell[d]];
      all.push_back({.path = axis.path,
                     .steps = axis.steps,
                     .value = value.node,
                     .where = value.node->where()});
    }
  return all;
}

SweepGrid expand_grid(const SweepConfig& config, const Provenance& provenance,
                      Diagnostics& diagnostics) {
  SweepGrid grid;
  Diagnostics found;
  AxisBuilder builder(provenance, found);
  for (std::size_t i = 0; i < config.axes.size(); ++i)
    grid.dimensions.push_back(builder.dimension(config.axes[i], element_path("axes", i)));
  check_unique(grid, found);
  if (!found.has_errors()) grid.cells = all_cells(grid, provenance.nearest("axes"), found);
  for (std::size_t i = 0; i < config.exclude.size(); ++i) {
    const std::string path = element_path("exclude", i);
    const std::vector<Condition> conditions = read_exclusion(config.exclude[i], path, grid, found);
    if (conditions.empty() || found.has_errors()) continue;
    const std::size_t left_out =
        std::erase_if(grid.cells, [&](const GridCell& cell) { return excluded(cell, conditions); });
    if (left_out == 0) found.warning(provenance.nearest(path), path, "leaves out no cell");
  }
  if (!found.has_errors() && grid.cells.empty())
    found.error(provenance.nearest("exclude"), "exclude", "no cell is left");
  append(diagnostics, found);
  return grid;
}

}  // namespace routesim::tools
