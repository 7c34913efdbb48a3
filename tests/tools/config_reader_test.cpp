// Every case of bad_inputs.table is read into a struct that has one field of each kind; the
// diagnostics must be exactly those expected.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>

#include "base/scalar_parse.h"
#include "base/tree_reader.h"
#include "tests/base/case_table.h"
#include "tests/base/messages.h"
#include "tools/ingest/tree/config_merge.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {
namespace {

enum class Colour { kRed, kGreen };

struct Inner {
  std::string name;
  std::int64_t replicas = 1;
};
void describe(Describer& d, Inner& t) {
  field(d, {"name", "Name of the pool.", true}, t.name);
  field(d, {"replicas", "Servers."}, t.replicas, IntRange{1, 64});
}

struct Everything {
  bool flag = false;
  std::int64_t whole = 3;
  double number = 0.5;
  double open = 1;
  double limit = 1;
  std::string text = "none";
  Duration time = Duration::seconds(1);
  Colour colour = Colour::kRed;
  std::vector<Inner> pools = {{.name = "default", .replicas = 5}};
  std::vector<std::int64_t> sizes = {7};
  std::optional<double> maybe;
  Inner inner{.name = "inner", .replicas = 2};
  Document document;
};

}  // namespace
}  // namespace routesim::tools

template <>
struct routesim::EnumNames<routesim::tools::Colour> {
  static constexpr std::array<std::string_view, 2> value = {"red", "green"};
};

namespace routesim::tools {
namespace {

void describe(Describer& d, Everything& t) {
  field(d, {"flag", "A switch."}, t.flag);
  field(d, {"whole", "A count."}, t.whole, IntRange{1, 100});
  field(d, {"number", "A share."}, t.number, RealRange{0, 1});
  field(d, {"open", "A rate."}, t.open, RealRange{.min = 0, .min_open = true});
  field(d, {"limit", "May be infinite."}, t.limit, RealRange{.min = 0, .allow_infinity = true});
  field(d, {"text", "Words."}, t.text);
  field(d, {"time", "A span."}, t.time);
  field(d, {"colour", "Paint."}, t.colour);
  field(d, {"pools", "Pools."}, t.pools);
  field(d, {"sizes", "Sizes."}, t.sizes, IntRange{0});
  field(d, {"maybe", "Absent means none."}, t.maybe, RealRange{0});
  field(d, {"inner", "A nested struct."}, t.inner);
  field(d, {"document", "Another file."}, t.document);
}

Everything read_text(const std::string& text, Diagnostics& d, Provenance* provenance = nullptr) {
  Everything value;
  const ConfigNode::Ptr root = parse_config(text, {.file = "in.yaml"}, d);
  if (root != nullptr)
    read_struct(*root, value, d, {.path = {}, .provenance = provenance, .ignored_keys = {}});
  return value;
}

TEST(ConfigReader, ReadsOneOfEachKind) {
  Diagnostics d;
  const Everything v = read_text(
      "flag: true\nwhole: +42\nnumber: 5e-1\nlimit: .inf\ntext: \"010\"\ntime: 250ms\n"
      "colour: green\npools: [{name: a}, {name: b, replicas: 3}]\nsizes: [1, 2]\nmaybe: 2.5\n"
      "inner: {name: x}\ndocument: sub/file.yaml\n",
      d);
  ASSERT_EQ(messages_of(d), "");
  EXPECT_TRUE(v.flag);
  EXPECT_EQ(v.whole, 42);
  EXPECT_EQ(v.number, 0.5);
  EXPECT_EQ(v.limit, std::numeric_limits<double>::infinity());
  EXPECT_EQ(v.text, "010");
  EXPECT_EQ(v.time, Duration::milliseconds(250));
  EXPECT_EQ(v.colour, Colour::kGreen);
  ASSERT_EQ(v.pools.size(), 2U);
  EXPECT_EQ(v.pools[0].replicas, 1) << "the default list's elements must not shine through";
  EXPECT_EQ(v.pools[1].replicas, 3);
  EXPECT_EQ(v.sizes, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(v.maybe, 2.5);
  EXPECT_EQ(v.inner.name, "x");
  EXPECT_EQ(v.inner.replicas, 2) << "a nested struct keeps what is not mentioned";
  EXPECT_EQ(v.document.path, "sub/file.yaml");
}

TEST(ConfigReader, DurationsAreExact) {
  const std::vector<std::pair<std::string, std::int64_t>> cases = {
      {"1", 1'000'000'000}, {"0.3", 300'000'000},      {"2m", 120'000'000'000},
      {"300us", 300'000},   {"1.5s", 1'500'000'000},   {"10ns", 10},
      {"0.1ms", 100'000},   {"1h", 3'600'000'000'000}, {"0", 0}};
  for (const auto& [text, ns] : cases) {
    Diagnostics d;
    EXPECT_EQ(read_text("time: " + text, d).time.ns(), ns) << text;
    EXPECT_EQ(messages_of(d), "") << text;
  }
}

TEST(ConfigReader, ProvenanceKnowsWhereValuesCameFrom) {
  Diagnostics d;
  Provenance provenance;
  read_text("whole: 4\npools:\n  - name: a\n    replicas: 2\n", d, &provenance);
  ASSERT_EQ(messages_of(d), "");
  ASSERT_NE(provenance.find("pools[0].replicas"), nullptr);
  EXPECT_EQ(provenance.find("pools[0].replicas")->line, 4);
  EXPECT_EQ(provenance.find("number"), nullptr);
  EXPECT_EQ(provenance.nearest("pools[0].accelerator").line, 3);
  Diagnostics cross;
  cross.error({}, "pools[0].replicas", "does not fit");
  EXPECT_EQ(messages_of(provenance.located(cross)),
            "in.yaml:4:15: error: pools[0].replicas: does not fit\n");
}

TEST(ConfigReader, CommandLineWordsMayBeTextOrNumbers) {
  Diagnostics d;
  ConfigNode::Ptr root = parse_config("{}", {.file = "in.yaml"}, d);
  for (const std::string& text :
       std::vector<std::string>{"text=5", "whole=6", "flag=true", "maybe=null"}) {
    const auto assignment = parse_assignment(text, d);
    ASSERT_TRUE(assignment.has_value());
    root = apply_assignment(root, *assignment, d);
  }
  Everything value;
  value.maybe = 1.0;
  read_struct(*root, value, d);
  ASSERT_EQ(messages_of(d), "");
  EXPECT_EQ(value.text, "5");
  EXPECT_EQ(value.whole, 6);
  EXPECT_FALSE(value.maybe.has_value());
}

TEST(ConfigReader, EscapesWhatCouldDriveATerminal) {
  Diagnostics d;
  read_text("colour: \"\\e[31m\\u009b\"\n", d);
  const std::string text = messages_of(d);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos);
  EXPECT_NE(text.find("\\x1b[31m"), std::string::npos) << text;
}

class BadInputs : public ::testing::TestWithParam<case_table::CaseOfTable> {};

/// Set ROUTESIM_UPDATE_EXPECTED=1 to write what the reader says now, then review the diff.
TEST_P(BadInputs, GetsItsMessages) {
  const case_table::TableCase& one = GetParam().one;
  Diagnostics d;
  Everything value;
  const auto root = parse_config(one.block("input"), {.file = one.name + ".yaml"}, d);
  if (root != nullptr) read_struct(*root, value, d);
  if (std::getenv("ROUTESIM_UPDATE_EXPECTED") != nullptr) {
    case_table::replace_block(GetParam(), "expected", messages_of(d));
    return;
  }
  EXPECT_TRUE(d.has_errors());
  EXPECT_EQ(messages_of(d), one.block("expected"));
}

INSTANTIATE_TEST_SUITE_P(Table, BadInputs,
                         ::testing::ValuesIn(case_table::cases_in(std::string(ROUTESIM_SOURCE_DIR) +
                                                                  "/tests/tools")),
                         [](const auto& given) { return given.param.one.name; });

}  // namespace
}  // namespace routesim::tools
