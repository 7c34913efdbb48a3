// The rules themselves, on snippets that break them and on snippets that only look as if.
#include "tests/architecture/rules.h"

#include <gtest/gtest.h>

#include <string>

namespace routesim::architecture {
namespace {

std::size_t includes(const std::string& path, const std::string& text) {
  return check_includes({.path = path, .text = text}).size();
}

TEST(Strip, BlanksCommentsAndLiteralsButKeepsLines) {
  EXPECT_EQ(strip_comments_and_literals("a // b\nc"), "a     \nc");
  EXPECT_EQ(strip_comments_and_literals("a /* b\n */ c"), "a     \n    c");
  EXPECT_EQ(strip_comments_and_literals("f(\"{\\\"\", '{')"), "f(     ,    )");
  EXPECT_EQ(strip_comments_and_literals("x = 1'000 + y;"), "x = 1'000 + y;");
  EXPECT_EQ(strip_comments_and_literals("s = R\"a({\")a\";"), "s =          ;");
  EXPECT_EQ(strip_comments_and_literals("/**/x"), "    x");
}

TEST(Includes, FollowTheArrows) {
  EXPECT_EQ(includes("base/rng.h", "#include \"sim/event.h\"\n"), 1U);
  EXPECT_EQ(includes("base/rng.h", "#include \"base/ids.h\"\n"), 0U);
  EXPECT_EQ(includes("policies/a.h", "#include \"models/specs.h\"\n"), 1U);
  EXPECT_EQ(includes("policies/a.h", "#include \"base/ids.h\"\n"), 0U);
  EXPECT_EQ(includes("policies/a.h", "#include \"basement.h\"\n"), 1U);
  EXPECT_EQ(includes("models/a.cpp", "#include \"workloads/request.h\"\n"), 1U);
  EXPECT_EQ(includes("workloads/a.cpp", "#include \"policies/views.h\"\n"), 1U);
  EXPECT_EQ(includes("sim/a.cpp", "#include \"tools/results/report.h\"\n"), 1U);
  EXPECT_EQ(includes("sim/a.cpp", "#include \"policies/views.h\"\n"), 0U);
  EXPECT_EQ(includes("tools/cli/a.cpp", "#include \"tests/x.h\"\n"), 1U);
  EXPECT_EQ(includes("tools/cli/a.cpp", "#include \"report.h\"\n"), 1U);
  EXPECT_EQ(includes("tools/results/a.cpp", "#include \"tools/render/render.h\"\n"), 1U);
  EXPECT_EQ(includes("tools/study/plan/a.cpp", "#include \"tools/study/sweep/a.h\"\n"), 1U);
  EXPECT_EQ(includes("tools/cli/a.cpp", "// #include \"report.h\"\n"), 0U);
}

TEST(Includes, ThirdPartyHeadersStayAtHome) {
  EXPECT_EQ(includes("tools/cli/a.cpp", "#include <yaml-cpp/yaml.h>\n"), 0U);
  EXPECT_EQ(includes("tools/cli/a.h", "#include <yaml-cpp/yaml.h>\n"), 1U);
  EXPECT_EQ(includes("sim/a.cpp", "#include <nlohmann/json.hpp>\n"), 1U);
  EXPECT_EQ(includes("tests/sim/a.h", "#include <nlohmann/json.hpp>\n"), 0U);
  EXPECT_EQ(includes("tools/cli/a.cpp", "#include <boost/program_options/parsers.hpp>\n"), 0U);
  EXPECT_EQ(includes("sim/a.cpp", "#include <boost/program_options/parsers.hpp>\n"), 1U);
  EXPECT_EQ(includes("models/calibration.cpp", "#include <Eigen/Dense>\n"), 0U);
  EXPECT_EQ(includes("models/roofline.cpp", "#include <Eigen/Dense>\n"), 1U);
  EXPECT_EQ(includes("sim/prediction/bayesian_ridge.h", "#include <Eigen/Dense>\n"), 1U);
  EXPECT_EQ(includes("policies/a.cpp", "#include <unistd.h>\n"), 1U);
  EXPECT_EQ(includes("tools/cli/a.cpp", "#include <unistd.h>\n"), 0U);
  EXPECT_EQ(includes("tools/cli/a.cpp", "#include <never/heard.h>\n"), 1U);
  EXPECT_EQ(includes("tools/cli/a.cpp", "#include <vector>\n"), 0U);
}

TEST(HeaderForm, WantsPragmaOnceFirst) {
  const auto count = [](const char* text) {
    return check_header_form({.path = "sim/a.h", .text = text}).size();
  };
  EXPECT_EQ(count("// What.\n#pragma once\n\nint f();\n"), 0U);
  EXPECT_EQ(count("#include <vector>\n#pragma once\n"), 1U);
  EXPECT_EQ(count("#pragma once\nusing namespace std;\n"), 1U);
}

TEST(LibraryPurity, FindsPrintsExitsAndClocks) {
  const auto count = [](const std::string& path, const std::string& text) {
    return check_library_purity({.path = path, .text = text}).size();
  };
  EXPECT_EQ(count("sim/a.cpp", "#include <iostream>\nvoid f() { std::cout << 1; }\n"), 2U);
  EXPECT_EQ(count("policies/a.cpp", "#include <chrono>\n"), 1U);
  EXPECT_EQ(count("models/a.cpp", "std::uniform_int_distribution<int> d(0, 9);\n"), 1U);
  EXPECT_EQ(count("models/a.cpp", "std::shuffle(a.begin(), a.end(), r);\nr.shuffle(a);\n"), 1U);
  EXPECT_EQ(count("models/a.cpp", "#include <random>\nstd::mt19937 r(7);\n"), 0U);
  EXPECT_EQ(count("workloads/a.cpp", "void f() { exit(1); }\n"), 1U);
  EXPECT_EQ(count("workloads/a.cpp", "void f() { door.exit(); int exit = 1; }\n"), 0U);
  EXPECT_EQ(count("sim/a.h", "void abort(int);\nvoid A::abort(int) {}\n"), 0U);
  EXPECT_EQ(count("sim/a.cpp", "  return exit(1);\n  ::abort();\n  std::abort();\n"), 3U);
  EXPECT_EQ(count("sim/a.cpp", "// prints to std::cout\nconst char* s = \"printf(\";\n"), 0U);
  EXPECT_EQ(count("tools/a.cpp", "#include <iostream>\n"), 0U);
}

TEST(BuildFlags, RefuseFastMath) {
  EXPECT_EQ(check_build_flags({.path = "sim/CMakeLists.txt", .text = "add(-Ofast)\n"}).size(), 1U);
  EXPECT_EQ(check_build_flags({.path = "cmake/a.cmake", .text = "# no -Ofast here\n"}).size(), 0U);
}

TEST(EarlyReaders, AreFoundWherePipesCanFail) {
  const std::string strict = "set -euo pipefail\n";
  EXPECT_EQ(check_early_readers({"tools/x", strict + "a | grep -q b\na | grep -xq b\n"}).size(),
            2u);
  EXPECT_EQ(check_early_readers({"tools/x", strict + "a | sort | head -n 1\n"}).size(), 1u);
  EXPECT_EQ(check_early_readers({"tools/x", strict + "a | grep b >/dev/null\n"}).size(), 0u);
  EXPECT_EQ(check_early_readers({"tools/x", strict + "grep -q b file || c\n"}).size(), 0u);
  EXPECT_EQ(check_early_readers({"tools/x", "set -eu\na | grep -q b\n"}).size(), 0u);
}

TEST(Notes, WantAnIssueNumber) {
  const auto count = [](const char* text) {
    return check_notes({.path = "sim/a.h", .text = text}).size();
  };
  EXPECT_EQ(count("// TODO: later\n"), 1U);
  EXPECT_EQ(count("// FIXME(joe) later\n"), 1U);
  EXPECT_EQ(count("// TODO(#12): later\n"), 0U);
  EXPECT_EQ(count("// MYTODOS\n"), 0U);
}

TEST(MachinePaths, AreRefusedOnlyWhenAbsolute) {
  const auto count = [](const char* text) {
    return check_machine_paths({.path = "README.md", .text = text}).size();
  };
  EXPECT_EQ(count("see /work/main/x\n"), 1U);
  EXPECT_EQ(count("\"/home/joe/models\"\n"), 1U);
  EXPECT_EQ(count("https://example.org/work/main\n"), 0U);
  EXPECT_EQ(count("$HOME/.cache\n"), 0U);
}

TEST(Whitespace, FindsEachFlaw) {
  const auto count = [](const std::string& text) {
    return check_whitespace({.path = "sim/a.cpp", .text = text}).size();
  };
  EXPECT_EQ(count("int a;\n"), 0U);
  EXPECT_EQ(count("int a;"), 1U);
  EXPECT_EQ(count("int a; \n"), 1U);
  EXPECT_EQ(count("\tint a;\n"), 1U);
  EXPECT_EQ(count("int a;\r\n"), 1U);
  EXPECT_EQ(count(std::string(101, 'x') + "\n"), 1U);
  std::string multibyte = "// ";
  for (int i = 0; i < 97; ++i) multibyte += "µ";
  EXPECT_EQ(count(multibyte + "\n"), 0U);
  EXPECT_EQ(check_whitespace({.path = "tests/vectors/a.json", .text = "{}"}).size(), 0U);
  EXPECT_EQ(check_whitespace({.path = "scenarios/a.yaml", .text = "a: 1 \n"}).size(), 1U);
}

TEST(FunctionLength, LooksIntoScopesAndNotIntoData) {
  const auto count = [](const std::string& text) {
    return check_function_length({.path = "sim/a.cpp", .text = text}).size();
  };
  std::string body;
  for (std::size_t i = 0; i < kMaxFunctionLines; ++i) body += "  g({1, 2});\n";
  const std::string shorter = body.substr(body.find('\n') + 1);
  const std::string fits = shorter.substr(shorter.find('\n') + 1);
  EXPECT_EQ(count("void f() {\n" + fits + "}\n"), 0U);
  EXPECT_EQ(count("void f() {\n" + shorter + "}\n"), 1U);
  EXPECT_EQ(count("namespace a {\nclass B : public C {\n  int f() const override {\n" + body +
                  "  }\n};\n}\n"),
            1U);
  EXPECT_EQ(count("void f()\n{ if (x) {\n" + body + "} }\nvoid g() {}\n"), 1U);
  EXPECT_EQ(count("const int kTable[] = {\n" + body + "};\n"), 0U);
  EXPECT_EQ(count("#define F() {\nvoid g() {}\n"), 0U);
  EXPECT_EQ(count("// {\nconst char* s = \"{\";\nvoid g() {}\n" + fits), 0U);
}

TEST(Members, CountsTheStateOfEachClass) {
  const auto count = [](const std::string& text) {
    return members_of_classes({.path = "sim/a.h", .text = text});
  };
  const auto found = count(
      "namespace a {\nclass B final : public C<int, 3> {\n public:\n"
      "  explicit B(int x) : x_(x), y_{2} { z_ = 3; }\n"
      "  int x() const { return x_; }\n  void f(int a_ = 3, std::map<int, int> b_ = {});\n"
      "  enum class Kind { kA, kB };\n  using T = std::map<int, int>;\n"
      " private:\n  struct Inner {\n    int plain;\n    int own_ = 0;\n  };\n"
      "  int x_, y_ = 2;\n  std::map<int, std::vector<int>> z_{{1, {}}};\n"
      "  std::function<void(int, int)> call_ = [](int, int) {};\n"
      "  alignas(64) std::atomic<int> n_;\n  int table_[3];  // int no_;\n"
      "  static int shared_;\n  friend class D;\n  B* next_ = nullptr;\n};\n"
      "struct Plain { int a; int b; };\n}\n");
  EXPECT_EQ(found.at("B"), 7U);
  EXPECT_EQ(found.at("B::Inner"), 1U);
  EXPECT_EQ(found.at("Plain"), 0U);
}

TEST(Files, FindsClassesThatAreSliced) {
  const std::vector<SourceFile> files = {
      {.path = "sim/a.cpp", .text = "int A::f() const {\n}\nA::A() {}\nvoid B::Impl::g() {\n}\n"},
      {.path = "sim/b.cpp", .text = "std::vector<int> A::g(int x) {\n  A::h(x);\n}\n"},
      {.path = "sim/c.cpp",
       .text = "// void A::h() {}\nint x = A::h(3);\nvoid C::Impl::g() {\n}\n"},
      {.path = "tests/c.cpp", .text = "void A::h() {}\n"}};
  const auto found = files_of_classes(files);
  EXPECT_EQ(found.at("A"), (std::set<std::string>{"sim/a.cpp", "sim/b.cpp"}));
  EXPECT_EQ(found.at("B::Impl"), (std::set<std::string>{"sim/a.cpp"}));
}

TEST(Circles, AreFoundOverAnyNumberOfFolders) {
  const auto file = [](const std::string& path, const std::string& include) {
    return SourceFile{.path = path, .text = "#include \"" + include + "\"\n"};
  };
  const std::vector<SourceFile> files = {
      file("sim/a/x.h", "sim/b/x.h"), file("sim/b/x.h", "sim/c/x.h"),
      file("sim/c/x.h", "sim/a/x.h"), file("sim/d/x.h", "sim/a/x.h"),
      file("sim/d/y.h", "sim/d/x.h")};
  EXPECT_EQ(folders_in_circles(files), (std::set<std::string>{"sim/a", "sim/b", "sim/c"}));
}

}  // namespace
}  // namespace routesim::architecture
