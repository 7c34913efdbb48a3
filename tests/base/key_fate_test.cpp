#include "base/key_fate.h"

#include <gtest/gtest.h>

#include <array>

namespace routesim {
namespace {

constexpr std::array kRules = {
    KeyRule{"load.stages[].rate"},
    KeyRule{"load.*", Fate::kNoEffect, "one key, any name"},
    KeyRule{"load.**", Fate::kNotModelled, "anything below"},
    KeyRule{"load.type", Fate::kApproximated, "literal"},
    KeyRule{"matrix[][]", Fate::kUsed},
};
constexpr KeyTable kTable = {"test", "nowhere", kRules};

std::string_view reason(std::string_view path) {
  const KeyRule* rule = find_rule(kTable, path);
  return rule == nullptr ? "none" : rule->why;
}

TEST(KeyTable, PrefersTheMostSpecificRule) {
  EXPECT_EQ(reason("load.stages[12].rate"), "");
  EXPECT_EQ(reason("load.type"), "literal");
  EXPECT_EQ(reason("load.other"), "one key, any name");
  EXPECT_EQ(reason("load.other.deep"), "anything below");
  EXPECT_EQ(reason("load.stages[0].other"), "anything below");
  EXPECT_EQ(reason("matrix[1][2]"), "");
}

TEST(KeyTable, AnswersNothingForOtherPaths) {
  EXPECT_EQ(reason("load"), "none");
  EXPECT_EQ(reason("loader.type"), "none");
  EXPECT_EQ(reason("matrix[1]"), "none");
  EXPECT_EQ(reason("matrix.a"), "none");
  EXPECT_EQ(reason(""), "none");
}

TEST(KeyTable, TwoStarsInFrontStandForAnyKeysOrNone) {
  constexpr std::array kDeep = {
      KeyRule{"**", Fate::kNoEffect, "anything"},
      KeyRule{"**.image.tag", Fate::kApproximated, "a tag"},
      KeyRule{"spec.image.tag", Fate::kApproximated, "this tag"},
      KeyRule{"**.env[].*", Fate::kApproximated, "a variable"},
  };
  const KeyTable table = {"test", "nowhere", kDeep};
  const auto why = [&](std::string_view path) { return find_rule(table, path)->why; };
  EXPECT_EQ(why("image.tag"), "a tag");
  EXPECT_EQ(why("a.b[2].image.tag"), "a tag");
  EXPECT_EQ(why("spec.image.tag"), "this tag");
  EXPECT_EQ(why("image.tag.more"), "anything");
  EXPECT_EQ(why("pod.env[3].name"), "a variable");
}

}  // namespace
}  // namespace routesim
