// A sweep's cells, and the shards that compute them.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/study/experiment/journal.h"
#include "tools/study/sweep/sweep_grid.h"
#include "tools/study/sweep/sweep_record.h"
#include "tools/study/sweep/sweep_run.h"

namespace routesim::tools {
namespace {

// A sweep's cells, by hand: values, order, zips, exclusions, and what is wrong with a file.

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

// Which shard a process is, from the option and from the variables of Slurm and Kubernetes; and
// joining what shards wrote.

using Variables = std::map<std::string, std::string>;

/// `I/N` counted from 0, or the error.
std::string shard(const std::optional<std::string>& option, const Variables& variables) {
  std::string error;
  const auto chosen = choose_shard(
      option,
      [&](const std::string& name) -> std::optional<std::string> {
        const auto it = variables.find(name);
        return it == variables.end() ? std::nullopt : std::optional(it->second);
      },
      error);
  return chosen ? std::to_string(chosen->index) + "/" + std::to_string(chosen->count) : error;
}

TEST(SweepShard, TheOptionCountsFromOne) {
  EXPECT_EQ(shard({}, {}), "0/1");
  EXPECT_EQ(shard("1/8", {}), "0/8");
  EXPECT_EQ(shard("8/8", {}), "7/8");
  EXPECT_EQ(shard("none", {{"SLURM_ARRAY_TASK_ID", "3"}, {"SLURM_ARRAY_TASK_COUNT", "4"}}), "0/1");
  EXPECT_EQ(shard("0/8", {}), "--shard names shard 0 of 8; shards count from 1 to 8");
  EXPECT_EQ(shard("9/8", {}), "--shard names shard 9 of 8; shards count from 1 to 8");
  for (const char* wrong : {"", "8", "1/", "/8", "a/8", "1/8x", "-1/8", "1.5/8"})
    EXPECT_EQ(shard(wrong, {}),
              "--shard must be I/N, the first of 8 being 1/8 and the last 8/8, or none (got " +
                  std::string(wrong) + ")");
}

Variables slurm(const char* id, const char* count, const char* first, const char* last) {
  return {{"SLURM_ARRAY_TASK_ID", id},
          {"SLURM_ARRAY_TASK_COUNT", count},
          {"SLURM_ARRAY_TASK_MIN", first},
          {"SLURM_ARRAY_TASK_MAX", last},
          {"SLURM_ARRAY_TASK_STEP", "1"}};
}

TEST(SweepShard, OnlyAWholeSlurmArraySaysTheShare) {
  EXPECT_EQ(shard({}, slurm("3", "4", "1", "4")), "2/4");
  EXPECT_EQ(shard({}, slurm("3", "4", "0", "3")), "3/4");
  // Lost tasks, submitted again: --array=2, --array=2-3, --array=1,4 and --array=1.
  EXPECT_EQ(shard({}, slurm("2", "1", "2", "2")),
            "the Slurm array has 1 tasks from 2 to 2, which may be a part of a larger array, so it "
            "does not say the share of task 2: give --shard I/N, or --shard none for all rows");
  for (const Variables& part : {slurm("2", "2", "2", "3"), slurm("4", "2", "1", "4"),
                                slurm("1", "1", "1", "1"), slurm("0", "1", "0", "0")})
    EXPECT_NE(shard({}, part).find("which may be a part of a larger array"), std::string::npos);
  EXPECT_EQ(shard("2/4", slurm("2", "1", "2", "2")), "1/4");
  EXPECT_EQ(shard({}, slurm("5", "4", "1", "4")),
            "SLURM_ARRAY_TASK_ID names shard 5 of 4; shards count from 1 to 4");
  EXPECT_EQ(shard({}, {{"SLURM_ARRAY_TASK_ID", "3"}}),
            "SLURM_ARRAY_TASK_MAX is not set: give --shard I/N");
  EXPECT_EQ(shard({}, slurm("x", "4", "1", "4")),
            "SLURM_ARRAY_TASK_ID is not a whole number (got x): give --shard I/N");
}

TEST(SweepShard, KubernetesCountsFromZeroAndMustBeToldHowMany) {
  EXPECT_EQ(shard({}, {{"JOB_COMPLETION_INDEX", "0"}, {"JOB_COMPLETIONS", "8"}}), "0/8");
  EXPECT_EQ(shard({}, {{"JOB_COMPLETION_INDEX", "7"}, {"JOB_COMPLETIONS", "8"}}), "7/8");
  EXPECT_EQ(shard({}, {{"JOB_COMPLETION_INDEX", "8"}, {"JOB_COMPLETIONS", "8"}}),
            "JOB_COMPLETION_INDEX names shard 9 of 8; shards count from 1 to 8");
  EXPECT_EQ(shard({}, {{"JOB_COMPLETION_INDEX", "9223372036854775807"}, {"JOB_COMPLETIONS", "8"}}),
            "JOB_COMPLETION_INDEX names shard 9223372036854775808 of 8; shards count from 1 to 8");
  EXPECT_EQ(shard({}, {{"JOB_COMPLETION_INDEX", "0"}}).substr(0, 26), "JOB_COMPLETIONS is not set");
}

/// The value at a path of keys and list indices.
std::string at(ConfigNode::Ptr node, const std::vector<std::string>& path) {
  for (const std::string& step : path) {
    const bool is_index = node->is_sequence();
    const ConfigNode::Member* member = is_index ? nullptr : node->find(step);
    if (!is_index && member == nullptr) return "no " + step;
    node = is_index ? node->items().at(std::stoul(step)) : member->value;
  }
  return node->text();
}

TEST(SweepShard, TheKubernetesManifestSaysHowManyTwice) {
  Diagnostics diagnostics;
  const ConfigNode::Ptr job =
      read_config_file(ROUTESIM_SOURCE_DIR "/docs/ci/kubernetes-indexed-job.yaml", diagnostics);
  ASSERT_TRUE(job != nullptr && diagnostics.items().empty());
  EXPECT_EQ(at(job, {"spec", "completionMode"}), "Indexed");
  const std::vector<std::string> env = {"spec", "template", "spec", "containers", "0", "env", "0"};
  std::vector<std::string> name = env, value = env;
  name.emplace_back("name");
  value.emplace_back("value");
  EXPECT_EQ(at(job, name), "JOB_COMPLETIONS");
  EXPECT_EQ(at(job, value), at(job, {"spec", "completions"}));
}

std::string row(int index, int of, char key, const std::string& value,
                const std::string& shard = {}) {
  return sealed_row("{\"key\":\"" + std::string(32, key) + "\",\"index\":" + std::to_string(index) +
                        ",\"of\":" + std::to_string(of) +
                        ",\"sweep\":\"t\",\"cell\":{\"variant\":\"x\"}",
                    ",\"variant\":\"v\",\"value\":" + value, shard);
}

struct Merged {
  std::string text;
  std::vector<std::string> messages;
};

Merged merge(const std::vector<std::string>& files) {
  std::vector<RowFile> inputs;
  for (std::size_t i = 0; i < files.size(); ++i)
    inputs.push_back({.path = std::string(1, static_cast<char>('a' + i)), .text = files[i]});
  Diagnostics diagnostics;
  Merged merged{.text = merge_rows(inputs, diagnostics), .messages = {}};
  for (const Diagnostic& d : diagnostics.items())
    merged.messages.push_back(d.where.file + ":" + std::to_string(d.where.line) + ":" +
                              std::to_string(d.where.column) + ": " + d.message);
  return merged;
}

using Strings = std::vector<std::string>;

TEST(SweepMerge, RowsComeInGridOrder) {
  const std::string r0 = row(0, 4, 'a', "1"), r1 = row(1, 4, 'b', "1"), r2 = row(2, 4, 'c', "1"),
                    r3 = row(3, 4, 'd', "1");
  const Merged merged = merge({row(1, 4, 'b', "1", "2/2") + row(3, 4, 'd', "1", "2/2"), r0 + r2});
  EXPECT_EQ(merged.messages, Strings{});
  EXPECT_EQ(merged.text, r0 + r1 + r2 + r3);
}

TEST(SweepMerge, GapsAreNamed) {
  const Merged merged = merge({row(1, 8, 'b', "1") + row(4, 8, 'e', "1")});
  EXPECT_EQ(merged.messages, (Strings{"--merge:0:0: 6 of 8 rows are missing: 0, 2-3, 5-7"}));
  EXPECT_EQ(merged.text, "");
  EXPECT_EQ(merge({""}).messages, (Strings{"--merge:0:0: there are no rows"}));
}

TEST(SweepMerge, DuplicatesAreKeptOnceAndClashesRefused) {
  const std::string r0 = row(0, 2, 'a', "1"), r1 = row(1, 2, 'b', "1");
  const Merged twice = merge({r0 + r1, r1});
  EXPECT_EQ(twice.text, r0 + r1);
  EXPECT_EQ(twice.messages, (Strings{"b:1:51: the same row stands at a:2: kept once"}));

  const Merged other_result = merge({r0 + r1, row(1, 2, 'b', "2")});
  EXPECT_EQ(other_result.text, "");
  EXPECT_EQ(other_result.messages, (Strings{"b:1:51: row 1 of the grid has another row at a:2"}));

  const Merged other_key = merge({r0 + r1, row(1, 2, 'c', "1")});
  EXPECT_EQ(other_key.messages, (Strings{"b:1:51: row 1 of the grid has another row at a:2"}));

  const Merged same_key = merge({r0, row(1, 2, 'a', "1")});
  EXPECT_EQ(same_key.messages,
            (Strings{"b:1:8: key " + std::string(32, 'a') + " has another row at a:1"}));
}

TEST(SweepMerge, ForeignAndDamagedRowsAreRefused) {
  const std::string r0 = row(0, 2, 'a', "1"), r1 = row(1, 2, 'b', "1");
  EXPECT_EQ(merge({r0, row(1, 3, 'b', "1")}).messages.front(),
            "b:1:58: row 1 of 3 among rows of a grid of 2");
  EXPECT_EQ(merge({r0, "{}\n"}).messages.front(), "b:1:3: is not a row of a sweep");
  EXPECT_EQ(merge({r0, r1.substr(0, r1.size() - 5)}).messages.front(),
            "b:1:145: the last row is torn");
  EXPECT_EQ(merge({r0, r1.substr(0, 50) + "\n"}).messages.front(),
            "b:1:51: is not a row of a sweep");
}

// The names in a row must not be taken for its members.
TEST(SweepRow, MembersStandWhereTheyStand) {
  const std::string line =
      R"({"key":"k","sweep":"\"index\":","cell":{"index":7,"of":8},"index":3,"of":4})";
  EXPECT_EQ(column_of(line, "key"), 8);
  EXPECT_EQ(column_of(line, "index"), static_cast<int>(line.rfind("3,")) + 1);
  EXPECT_EQ(column_of(line, "of"), static_cast<int>(line.size()) - 1);
  EXPECT_EQ(column_of(line, "shard"), static_cast<int>(line.size()) + 1) << "it has none";
  EXPECT_EQ(damage_column(R"({"key":"k","of":x})"), 17);
  EXPECT_EQ(damage_column(R"({"key":"k"} more)"), 13);
  EXPECT_EQ(damage_column("nonsense"), 1);
  EXPECT_EQ(damage_column(R"({"key":"k"})"), 8) << "JSON, but no key";
}

TEST(SweepMerge, NoChangedByteOfARowIsTakenForAResult) {
  const std::string r0 = row(0, 2, 'a', "1"), r1 = row(1, 2, 'b', "12.5", "2/2");
  ASSERT_EQ(merge({r0, r1}).messages, Strings{});
  for (std::size_t i = 0; i + 1 < r1.size(); ++i)
    for (const char c : {'0', '7', 'x', '"'}) {
      if (r1[i] == c) continue;
      std::string changed = r1;
      changed[i] = c;
      const Merged merged = merge({r0, changed});
      EXPECT_EQ(merged.text, "") << changed;
      EXPECT_FALSE(merged.messages.empty()) << changed;
    }
}

TEST(SweepMerge, ALineWithoutAChecksumIsNoRow) {
  const Merged merged = merge({"{\"key\":\"" + std::string(32, 'a') +
                               "\",\"index\":0,\"of\":1,\"cell\":{},\"variant\":\"v\"}\n"});
  EXPECT_EQ(merged.text, "");
  EXPECT_FALSE(merged.messages.empty());
}

}  // namespace
}  // namespace routesim::tools
