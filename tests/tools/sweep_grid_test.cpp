// A sweep's cells, by hand: values, order, zips, exclusions, and what is wrong with a file.
#include "tools/study/sweep/sweep_grid.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/config_node.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {
namespace {

struct Expanded {
  SweepGrid grid;
  std::vector<std::string> errors;    ///< `line: path: message`.
  std::vector<std::string> warnings;  ///< The same.
};

Expanded expand(const std::string& axes) {
  const std::string text = "name: t\nscenario: s.yaml\n" + axes;
  Diagnostics diagnostics;
  Provenance provenance;
  SweepConfig config;
  const ConfigNode::Ptr root = parse_config(text, {.file = "t.yaml"}, diagnostics);
  read_struct(*root, config, diagnostics,
              {.path = {}, .provenance = &provenance, .ignored_keys = {}});
  Expanded out;
  out.grid = expand_grid(config, provenance, diagnostics);
  for (const Diagnostic& d : diagnostics.items())
    (d.severity == Severity::kError ? out.errors : out.warnings)
        .push_back(std::to_string(d.where.line) + ": " + d.path + ": " + d.message);
  return out;
}

std::vector<std::string> labels(const Expanded& expanded) {
  std::vector<std::string> all;
  for (const GridCell& cell : expanded.grid.cells) all.push_back(expanded.grid.label(cell));
  return all;
}

/// The texts an axis sets its key to.
std::vector<std::string> texts(const Expanded& expanded) {
  std::vector<std::string> all;
  for (const AxisValue& value : expanded.grid.dimensions.at(0).axes.at(0).values)
    all.push_back(value.node->text());
  return all;
}

using Strings = std::vector<std::string>;

TEST(SweepGrid, TheFirstAxisVariesSlowest) {
  const Expanded e = expand(
      "axes:\n"
      "- {path: a.b, name: x, values: [1, 2]}\n"
      "- {path: c, values: [p, true, 2.50]}\n");
  EXPECT_EQ(e.errors, Strings{});
  EXPECT_EQ(labels(e), (Strings{"x=1, c=p", "x=1, c=true", "x=1, c=2.5", "x=2, c=p", "x=2, c=true",
                                "x=2, c=2.5"}));
  const std::vector<Assignment> made = e.grid.assignments(e.grid.cells[3]);
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[0].path, "a.b");
  EXPECT_EQ(made[0].steps.size(), 2U);
  EXPECT_EQ(made[0].value->text(), "2");
  EXPECT_EQ(made[0].where.line, 4);
  EXPECT_EQ(made[1].value->text(), "p");
}

TEST(SweepGrid, RangesMeetTheirEnds) {
  EXPECT_EQ(texts(expand("axes: [{path: a, range: {from: 1, to: 4}}]")),
            (Strings{"1", "2", "3", "4"}));
  // In floating point 0.1 + 2 * 0.1 is 0.30000000000000004, and 9 steps of 0.1 fall short of 1.
  EXPECT_EQ(texts(expand("axes: [{path: a, range: {from: 0.1, to: 1, step: 0.1}}]")),
            (Strings{"0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1"}));
  EXPECT_EQ(texts(expand("axes: [{path: a, range: {from: 5, to: 0, step: 2}}]")),
            (Strings{"5", "3", "1"}));
  EXPECT_EQ(texts(expand("axes: [{path: a, range: {from: 0, to: 50, step: 25, unit: ms}}]")),
            (Strings{"0ms", "25ms", "50ms"}));
}

TEST(SweepGrid, LogRangesHaveEqualRatios) {
  EXPECT_EQ(texts(expand("axes: [{path: a, log_range: {from: 1, to: 1000, points: 4}}]")),
            (Strings{"1", "10", "100", "1000"}));
  EXPECT_EQ(texts(expand("axes: [{path: a, log_range: {from: 8, to: 1, points: 4, unit: s}}]")),
            (Strings{"8s", "4s", "2s", "1s"}));
  // 1, 1.41, 2, 2.83, 4 round to 1, 1, 2, 3, 4: the second 1 is not a cell of its own.
  EXPECT_EQ(
      texts(expand("axes: [{path: a, log_range: {from: 1, to: 4, points: 5, integer: true}}]")),
      (Strings{"1", "2", "3", "4"}));
}

TEST(SweepGrid, ZippedAxesMoveTogether) {
  const Expanded e = expand(
      "axes:\n"
      "- zip:\n"
      "  - {path: tp, values: [1, 2, 4]}\n"
      "  - {path: replicas, values: [8, 4, 2]}\n"
      "- {path: rate, values: [3, 6]}\n");
  EXPECT_EQ(e.errors, Strings{});
  EXPECT_EQ(labels(e), (Strings{"tp=1, replicas=8, rate=3", "tp=1, replicas=8, rate=6",
                                "tp=2, replicas=4, rate=3", "tp=2, replicas=4, rate=6",
                                "tp=4, replicas=2, rate=3", "tp=4, replicas=2, rate=6"}));
}

TEST(SweepGrid, ExclusionsNameValuesListsAndBounds) {
  const std::string axes =
      "axes:\n"
      "- {path: policy, values: [a, b]}\n"
      "- {path: rate, values: [10, 20, 30, 40]}\n";
  EXPECT_EQ(labels(expand(axes + "exclude: [{policy: a, rate: [10, 40]}]")),
            (Strings{"policy=a, rate=20", "policy=a, rate=30", "policy=b, rate=10",
                     "policy=b, rate=20", "policy=b, rate=30", "policy=b, rate=40"}));
  EXPECT_EQ(labels(expand(axes + "exclude: [{policy: b, rate: '>= 30'}, {rate: '<20'}]")),
            (Strings{"policy=a, rate=20", "policy=a, rate=30", "policy=a, rate=40",
                     "policy=b, rate=20"}));
  const Expanded none = expand(axes + "exclude: [{rate: 11}]");
  EXPECT_EQ(none.warnings, (Strings{"6: exclude[0]: leaves out no cell"}));
  EXPECT_EQ(none.grid.cells.size(), 8U);
}

TEST(SweepGrid, LongValuesMayHaveLabels) {
  const Expanded e = expand(
      "axes:\n"
      "- {path: load.stages, labels: [calm, burst],\n"
      "   values: [[{rate: 3}], [{rate: 3}, {rate: 60, on: true}]]}\n");
  EXPECT_EQ(labels(e), (Strings{"load.stages=calm", "load.stages=burst"}));
  EXPECT_EQ(node_json(*e.grid.dimensions[0].axes[0].values[1].node),
            R"([{"rate":3},{"rate":60,"on":true}])");
}

TEST(SweepGrid, NoAxesAreOneCell) {
  const Expanded e = expand("axes: []");
  EXPECT_EQ(e.errors, Strings{});
  EXPECT_EQ(labels(e), (Strings{"the only cell"}));
}

TEST(SweepGrid, EveryErrorIsFound) {
  const Expanded e = expand(
      "axes:\n"
      "- {values: [1]}\n"                                               // 4
      "- {path: 'a[', values: [1]}\n"                                   // 5
      "- {path: b}\n"                                                   // 6
      "- {path: c, values: [1], range: {from: 1, to: 2}}\n"             // 7
      "- {path: d, values: []}\n"                                       // 8
      "- {path: e, values: [1, 2], labels: [one]}\n"                    // 9
      "- {zip: [{path: f, values: [1, 2]}, {path: g, values: [1]}]}\n"  // 10
      "- {path: h, values: [1], zip: [{path: i, values: [1]}]}\n"       // 11
      "- {path: b, values: [1]}\n"                                      // 12
      "- {path: j, name: e, values: [1]}\n"                             // 13
      "- {path: 'variants[0].name', values: [x]}\n");                   // 14
  EXPECT_EQ(e.errors,
            (Strings{"4: axes[0]: has no path", "5: axes[1].path: is not a key path (got a[)",
                     "6: axes[2]: has no values",
                     "7: axes[3]: has more than one of values, range, log_range",
                     "8: axes[4].values: must be a list of at least one value",
                     "9: axes[5].labels: must name every value (got 1 names for 2 values)",
                     "10: axes[6]: zipped axes must have the same number of values "
                     "(got 2 of f and 1 of g)",
                     "11: axes[7]: has both zip and a path or values of its own",
                     "14: axes[10].path: a cell has its own variants; they cannot be an axis",
                     "12: axes: two axes set b", "13: axes: two axes are named e"}));
  EXPECT_EQ(expand("axes: [{path: a, values: [1]}]\nexclude: [{b: 1}]").errors,
            (Strings{"4: exclude[0].b: is not the name of an axis"}));
  EXPECT_EQ(expand("axes: [{path: a, values: [1]}]\nexclude: [{a: 1}]").errors,
            (Strings{"4: exclude: no cell is left"}));
  EXPECT_EQ(expand("axes: [{path: a, range: {from: 0, to: 1e9}}]").errors,
            (Strings{"3: axes[0].range: has more than 1000000 values"}));
  EXPECT_EQ(expand("axes:\n"
                   "- {path: a, range: {from: 1, to: 2000}}\n"
                   "- {path: b, range: {from: 1, to: 2000}}\n")
                .errors,
            (Strings{"4: axes: the grid has more than 1000000 cells"}));
}

}  // namespace
}  // namespace routesim::tools
