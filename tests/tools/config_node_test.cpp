#include "base/config_node.h"

#include <gtest/gtest.h>

#include "tests/base/messages.h"
#include "tools/ingest/tree/config_merge.h"
#include "tools/ingest/tree/description.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim {
namespace {

ConfigNode::Ptr parse(const std::string& text, Diagnostics& diagnostics) {
  return parse_config(text, {.file = "t.yaml"}, diagnostics);
}

ConfigNode::Ptr at(const ConfigNode::Ptr& node, const std::string& key) {
  const ConfigNode::Member* member = node->find(key);
  return member == nullptr ? nullptr : member->value;
}

TEST(ConfigNode, KeepsRawTextStyleAndPlaces) {
  Diagnostics d;
  const auto root = parse("a: 010\nb:\n  - \"5\"\n  - ~\nc:\n", d);
  ASSERT_EQ(messages_of(d), "");
  EXPECT_EQ(at(root, "a")->text(), "010");
  EXPECT_EQ(at(root, "a")->where().line, 1);
  EXPECT_EQ(at(root, "a")->where().column, 4);
  const auto b = at(root, "b");
  ASSERT_EQ(b->items().size(), 2U);
  EXPECT_EQ(b->items()[0]->style(), ConfigNode::Style::kQuoted);
  EXPECT_EQ(b->items()[0]->where().line, 3);
  EXPECT_TRUE(b->items()[1]->is_null());
  EXPECT_EQ(b->items()[1]->where().line, 4);
  // A value that is not there stands where its key is, not at the end of the file.
  EXPECT_EQ(at(root, "c")->where().line, 5);
}

TEST(ConfigNode, ReadsJson) {
  Diagnostics d;
  const auto root = parse("{\n\t\"a\": [1, true, null],\n\t\"b\": {\"c\": \"x\"}\n}", d);
  ASSERT_EQ(messages_of(d), "");
  EXPECT_EQ(at(root, "a")->items().size(), 3U);
  EXPECT_EQ(at(at(root, "b"), "c")->text(), "x");
}

TEST(ConfigNode, ExpandsAliasesAndMergeKeys) {
  Diagnostics d;
  const auto root = parse("base: &b {x: 1, y: 2}\nuse:\n  <<: *b\n  y: 3\nsame: *b\n", d);
  ASSERT_EQ(messages_of(d), "");
  EXPECT_EQ(at(at(root, "use"), "x")->text(), "1");
  EXPECT_EQ(at(at(root, "use"), "y")->text(), "3");
  EXPECT_EQ(at(at(root, "same"), "y")->text(), "2");
}

TEST(ConfigNode, EscapesOfLatin1CharactersAreUtf8) {
  Diagnostics d;
  const auto root = parse("\"k\\_\": [\"a\\N\", \"\\x85\\xA0\\L\", \"\xC3\xA9\\_\xC3\xA9\"]\n", d);
  ASSERT_EQ(messages_of(d), "");
  const auto list = at(root, "k\xC2\xA0");
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(list->items()[0]->text(), "a\xC2\x85");
  EXPECT_EQ(list->items()[1]->text(), "\xC2\x85\xC2\xA0\xE2\x80\xA8");
  EXPECT_EQ(list->items()[2]->text(), "\xC3\xA9\xC2\xA0\xC3\xA9");
}

TEST(ConfigNode, WritesKeysThatYamlThinksTooLong) {
  const std::string escaped(200, '\x04');  // 1,200 characters when it is written.
  Diagnostics d;
  const auto root = parse("- ? \"" + escaped + "\"\n  : {" + escaped + ": 1}\n  b: 2\n- c\n", d);
  ASSERT_EQ(messages_of(d), "");
  const std::string written = tools::to_yaml(*root);
  const auto again = parse(written, d);
  ASSERT_EQ(messages_of(d), "") << written;
  EXPECT_EQ(at(at(again->items().at(0), escaped), escaped)->text(), "1");
  EXPECT_EQ(at(again->items().at(0), "b")->text(), "2");
  EXPECT_EQ(tools::to_yaml(*again), written);
}

TEST(ConfigNode, StopsABillionLaughs) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 20; ++i) {
    const std::string use = "*a" + std::to_string(i - 1);
    const std::string name = std::to_string(i);
    text.append("a").append(name).append(": &a").append(name).append(" [").append(use);
    for (int k = 0; k < 9; ++k) text.append(", ").append(use);
    text += "]\n";
  }
  Diagnostics d;
  EXPECT_EQ(parse(text, d), nullptr);
  EXPECT_NE(messages_of(d).find("more than 1000000 values"), std::string::npos) << messages_of(d);
}

TEST(ConfigNode, LimitsDepthThroughAliasesToo) {
  Diagnostics d;
  EXPECT_EQ(parse(std::string(70, '['), d), nullptr);
  EXPECT_NE(messages_of(d).find("nested deeper than 64"), std::string::npos) << messages_of(d);
  const std::string forty = std::string(40, '[') + std::string(40, ']');
  const std::string around = std::string(40, '[') + "*a" + std::string(40, ']');
  Diagnostics chained;
  EXPECT_EQ(parse("a: &a " + forty + "\nb: " + around + "\n", chained), nullptr);
  EXPECT_NE(messages_of(chained).find("nested deeper than 64"), std::string::npos)
      << messages_of(chained);
}

TEST(ConfigNode, LimitsSizeAndRefusesBinary) {
  Diagnostics d;
  EXPECT_EQ(parse_config("a: 1234567890", {.file = "t"}, d, {.max_bytes = 8}), nullptr);
  EXPECT_TRUE(d.has_errors());
  for (const std::string& bad : {std::string("a: \xff"), std::string("a: \xc0\x80"),
                                 std::string("a\0b", 3), std::string("a: \xed\xa0\x80"),
                                 std::string("a: \xf5\x80\x80\x80"), std::string("a: \xe2\x82")}) {
    Diagnostics binary;
    EXPECT_EQ(parse(bad, binary), nullptr);
    EXPECT_NE(messages_of(binary).find("not valid UTF-8"), std::string::npos)
        << messages_of(binary);
  }
}

TEST(ConfigNode, EmbeddedDocumentsKeepTheirPlace) {
  Diagnostics d;
  const auto root = parse("x:\n  file: |\n\n    a: 1\n    b:\n      c: 2\n", d);
  const auto inner = parse_embedded(*at(at(root, "x"), "file"), d);
  ASSERT_EQ(messages_of(d), "");
  const auto c = at(at(inner, "b"), "c");
  EXPECT_EQ(c->where().line, 6);
  EXPECT_EQ(c->where().column, 10);
}

TEST(ConfigMerge, MapsMergeNamedListsMergeOthersReplace) {
  Diagnostics d;
  const auto base = parse("a: {x: 1, y: 2}\np: [{name: u, n: 1}, {name: v, n: 2}]\nl: [1, 2]", d);
  const auto over = parse("a: {y: 3}\np: [{name: v, n: 5}, {name: w, n: 6}]\nl: [9]", d);
  const auto merged = tools::merge_configs(base, over);
  ASSERT_EQ(messages_of(d), "");
  EXPECT_EQ(at(at(merged, "a"), "x")->text(), "1");
  EXPECT_EQ(at(at(merged, "a"), "y")->text(), "3");
  const auto p = at(merged, "p");
  ASSERT_EQ(p->items().size(), 3U);
  EXPECT_EQ(at(p->items()[0], "n")->text(), "1");
  EXPECT_EQ(at(p->items()[1], "n")->text(), "5");
  EXPECT_EQ(at(p->items()[2], "name")->text(), "w");
  EXPECT_EQ(at(merged, "l")->items().size(), 1U);
  EXPECT_EQ(at(at(base, "a"), "y")->text(), "2") << "the base must not change";
}

TEST(ConfigMerge, AssignsByIndexByNameAndIntoNewMaps) {
  Diagnostics d;
  auto root = parse("c: {pools: [{name: prefill, n: 1}, {name: decode, n: 1}]}", d);
  for (const std::string& text :
       std::vector<std::string>{"c.pools[0].n=4", "c.pools[decode].n=7", "new.key=[1, 2]"}) {
    const auto assignment = tools::parse_assignment(text, d);
    ASSERT_TRUE(assignment.has_value());
    root = tools::apply_assignment(root, *assignment, d);
  }
  ASSERT_EQ(messages_of(d), "");
  const auto pools = at(at(root, "c"), "pools");
  EXPECT_EQ(at(pools->items()[0], "n")->text(), "4");
  EXPECT_EQ(at(pools->items()[0], "n")->where().file, "--set");
  EXPECT_EQ(at(pools->items()[1], "n")->text(), "7");
  EXPECT_EQ(at(at(root, "new"), "key")->items().size(), 2U);
}

TEST(ConfigMerge, RefusesBadAssignments) {
  Diagnostics d;
  const auto root = parse("c: {pools: [{name: prefill, n: 1}]}\ns: text", d);
  for (const std::string& text :
       std::vector<std::string>{"a", "=1", "a..b=1", "a[=1", "[0]=1", "a.=1", "a[0]b=1"})
    EXPECT_FALSE(tools::parse_assignment(text, d).has_value()) << text;
  for (const std::string& text : std::vector<std::string>{"c.pools[2].n=1", "c.pools[nope].n=1",
                                                          "c.pools.n=1", "s.x=1", "c[0]=1"}) {
    Diagnostics one;
    const auto assignment = tools::parse_assignment(text, one);
    ASSERT_TRUE(assignment.has_value()) << text;
    EXPECT_EQ(tools::apply_assignment(root, *assignment, one), root);
    EXPECT_EQ(one.items().size(), 1U) << text;
    EXPECT_EQ(one.items()[0].where.file, "--set");
  }
}

}  // namespace
}  // namespace routesim
