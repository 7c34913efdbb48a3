// Text split into commands and words as a POSIX shell splits it.
#include "tools/ingest/tree/shell_words.h"

#include <gtest/gtest.h>

namespace routesim::tools {
namespace {

/// The words between bars, the commands between semicolons; `?` stands before one with an unknown.
std::string split(const std::string& text, ShellVariables variables = {},
                  std::string* complaint = nullptr) {
  Diagnostics d;
  std::string out;
  for (const ShellCommand& command :
       split_shell(text, places_in_file("f.sh"), variables, "key", d)) {
    if (!out.empty()) out += " ; ";
    for (std::size_t i = 0; i < command.size(); ++i)
      out += (i == 0 ? "" : "|") + std::string(command[i].unknown.empty() ? "" : "?") +
             command[i].text;
  }
  for (const Diagnostic& item : d.items())
    if (complaint != nullptr) *complaint += to_string(item);
  if (complaint == nullptr) {
    EXPECT_TRUE(d.items().empty()) << text;
  }
  return out;
}

ShellVariables with(const std::string& name, const std::string& value) {
  return {{name, {.text = value}}};
}

TEST(ShellWords, QuotesAndBackslashes) {
  EXPECT_EQ(split("a  b\tc"), "a|b|c");
  EXPECT_EQ(split("a 'b c' \"d 'e'\" f\\ g"), "a|b c|d 'e'|f g");
  EXPECT_EQ(split(R"(--x '{"a": "b c"}' --y="{\"a\":1}")"), R"(--x|{"a": "b c"}|--y={"a":1})");
  EXPECT_EQ(split("a'b'\"c\"d"), "abcd");
  EXPECT_EQ(split("'' \"\" x"), "||x");
  EXPECT_EQ(split(R"("a\nb\\c")"), R"(a\nb\c)") << "other backslashes stay in double quotes";
  EXPECT_EQ(split("'a\\'"), "a\\");
  EXPECT_EQ(split(""), "");
  EXPECT_EQ(split("a \\"), "a");
}

TEST(ShellWords, LinesAndComments) {
  EXPECT_EQ(split("a \\\n  b \\\r\n  c\n"), "a|b|c");
  EXPECT_EQ(split("a # b c\nd#e"), "a ; d#e");
  EXPECT_EQ(split("a \\ \nb"), "a|  ; b") << "a blank after the backslash ends the command";
  EXPECT_EQ(split("# only\n\n"), "");
  EXPECT_EQ(split("\"a\\\nb\""), "ab");
}

TEST(ShellWords, CommandsAndRedirections) {
  EXPECT_EQ(split("a && b || c; d & e | f"), "a ; b ; c ; d ; e ; f");
  EXPECT_EQ(split("a > file 2>&1 b"), "a|b");
  EXPECT_EQ(split("a >>file x2>y <in z"), "a|x2|z");
}

TEST(ShellWords, KnownVariables) {
  EXPECT_EQ(split("a $X ${X}b '$X' \"$X\" $(X)", with("X", "1 2")), "a|1|2|1|2b|$X|1 2|1|2");
  EXPECT_EQ(split("X=5\nexport Y=$X Z='a b'\nrun $Y \"$Z\""), "run|5|a b");
  EXPECT_EQ(split("X=5 run $X", with("X", "1")), "X=5|run|1")
      << "an assignment before a command is that command's own";
  EXPECT_EQ(split("a ${X:-7} ${X-8} ${X-}|"), "a|7|8");
  EXPECT_EQ(split("a ${X:-7}", with("X", "1")), "a|1");
  EXPECT_EQ(split("a $EMPTY b \"$EMPTY\"", with("EMPTY", "")), "a|b|");
  EXPECT_EQ(split("a ${X:+--flag} ${X+--flag} b"), "a|b");
  EXPECT_EQ(split("a ${X:+--flag=$X} ${X+y z}", with("X", "1")), "a|--flag=1|y|z");
  EXPECT_EQ(split("a ${X:+b} ${X+c}", with("X", "")), "a|c");
}

TEST(ShellWords, UnknownVariablesStayAsWritten) {
  EXPECT_EQ(split("a $X --y=${Z} \"$(date +%s)\" $@ $1 '$X'"),
            "a|?$X|?--y=${Z}|?$(date +%s)|?$@|?$1|$X");
  EXPECT_EQ(split("a ${X:=1} ${X:-$Y}"), "a|?${X:=1}|?${X:-$Y}");
  EXPECT_EQ(split("a ${X:+--flag=$Y}", with("X", "1")), "a|?${X:+--flag=$Y}");
  EXPECT_EQ(split("Y=$X\nrun ${Y:+--flag}"), "run|?${Y:+--flag}") << "set, but to what?";
  EXPECT_EQ(split("A=1 && B=2; x || B=3; run $A $B"), "x ; run|1|?$B") << "whether x fails";
  EXPECT_EQ(split("Y=$X\nrun $Y"), "run|?$X");
  EXPECT_EQ(split("cost $ 5$"), "cost|$|5$");
  EXPECT_EQ(split("a ${X%.*} ${#X} ${unclosed", with("X", "1")), "a|?${X%.*}|?${#X}|?${unclosed");
}

TEST(ShellWords, CommandsOfBlocksAreCommandsAndWhatTheyAssignIsNotKnown) {
  EXPECT_EQ(split("A=1\nif [ $A = 1 ]; then B=2; else B=3; fi; run $A $B"), "run|1|?$B");
  EXPECT_EQ(split("for R in 1 2; do A=$R; run $R; done; B=2; run $A $B"), "run|?$R ; run|?$A|2");
  EXPECT_EQ(split("R=9\nfor R in 1 2; do run $R; done; run $R"), "run|?$R ; run|?$R");
  EXPECT_EQ(split("while ! ready; do sleep 1; done\nexec run x"), "sleep|1 ; exec|run|x");
  EXPECT_EQ(split("[[ -n $X && -f y ]] || exit 1\nrun"), "[[|-n|?$X ; -f|y|]] ; exit|1 ; run");
  EXPECT_EQ(split("if a; then if b; then C=1; fi; D=1; fi; E=1; run $C $D $E"), "run|?$C|?$D|1");
}

TEST(ShellWords, ListsFunctionsAndBackQuotesAreRefusedAtTheirPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"A=1\n  case $A in 1) run;; esac", "f.sh:2:15: error: key: ')'"},
      {"function start { run; }", "f.sh:1:1: error: key: 'function'"},
      {"run `id`", "f.sh:1:5: error: key: '`'"},
      {"X=(1 2)\nrun $X", "f.sh:1:3: error: key: '('"},
      {"start() { run; }", "f.sh:1:6: error: key: '('"}};
  for (const auto& [text, begin] : cases) {
    std::string complaint;
    EXPECT_EQ(split(text, {}, &complaint), "") << text;
    EXPECT_EQ(complaint,
              std::string(begin) +
                  " is not read: only plain commands and variables are\n"
                  "  hint: write the one command as it runs, with values in place of variables");
  }
}

// As llm-d's guides/wide-ep-lws/modelserver/gpu/vllm/base/decode.yaml computes ranks.
TEST(ShellWords, ProductsOfWholeNumbers) {
  const ShellVariables two = with("N", "2");
  EXPECT_EQ(split("$((N * ${M:-4})) $(( ${M:-0} * N )) $((3*N*N))", two), "8|0|12");
  EXPECT_EQ(split("$((N + 1)) $((M)) $((N *)) $(( (N) * 2 ))", two),
            "?$((N + 1))|?$((M))|?$((N *))|?$(( (N) * 2 ))");
  EXPECT_EQ(split("$((1000000 * 2))"), "?$((1000000 * 2))") << "no overflow";
}

TEST(ShellWords, EveryWordHasItsPlace) {
  Diagnostics d;
  ShellVariables none;
  const auto commands = split_shell("one \\\n  two 'three\nlines' \\\n --four\n",
                                    places_in_file("f.sh"), none, "", d);
  ASSERT_EQ(commands.size(), 1U);
  ASSERT_EQ(commands[0].size(), 4U);
  const int lines[] = {1, 2, 2, 4};
  const int columns[] = {1, 3, 7, 2};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(commands[0][i].where.line, lines[i]) << i;
    EXPECT_EQ(commands[0][i].where.column, columns[i]) << i;
  }
}

TEST(ShellWords, AnOpenQuoteIsAnErrorAtItsPlace) {
  for (const std::string quote : {"'", "\""}) {
    std::string complaint;
    split("a\nb " + quote + "c", {}, &complaint);
    EXPECT_EQ(complaint, "f.sh:2:3: error: key: a quote (" + quote + ") is not closed");
  }
}

TEST(ShellWords, VariablesThatDoubleEachOtherStayBounded) {
  std::string text = "A=xxxxxxxx\n";
  for (int i = 0; i < 60; ++i) text += "A=\"$A$A\"\n";
  Diagnostics d;
  ShellVariables variables;
  const auto commands = split_shell(text + "run $A", places_in_file("f"), variables, "", d);
  ASSERT_EQ(commands.size(), 1U);
  EXPECT_LT(commands[0][1].text.size(), std::size_t{4} << 20U);
}

TEST(ShellWords, KubernetesKnowsOneForm) {
  const auto word = [](const std::string& text) {
    return kubernetes_word(*ConfigNode::make_scalar(text, ConfigNode::Style::kQuoted, {}),
                           with("X", "1 2"));
  };
  EXPECT_EQ(word("a$(X)b $X 'q'").text, "a1 2b $X 'q'");
  EXPECT_EQ(word("$(Y)").unknown, "$(Y)");
  EXPECT_EQ(word("$(Y) $(X)").text, "$(Y) 1 2");
  EXPECT_EQ(word("$(X").text, "$(X");
}

}  // namespace
}  // namespace routesim::tools
