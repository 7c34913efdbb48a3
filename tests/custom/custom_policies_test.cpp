// Policies that users bring: formulas and shared objects.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/run_error.h"
#include "policies/index/prefix_index.h"
#include "sim/custom/expression.h"
#include "sim/custom/library.h"
#include "sim/custom/score_sheet.h"

namespace routesim::sim {
namespace {

using policies::BalancerAnswer;
using policies::BalancerEndpoint;
using policies::BalancerRequest;

/// Three servers of which the first two hold 2 and 5 blocks of 16 tokens of the prompt below.
class Pool {
 public:
  explicit Pool(std::unique_ptr<policies::Balancer> balancer) : balancer_(std::move(balancer)) {
    const std::vector<BalancerEndpoint> servers = {{.name = "a", .block_size = 16},
                                                   {.name = "b", .block_size = 16},
                                                   {.name = "c", .block_size = 16}};
    for (const BalancerEndpoint& s : servers) table_.add({.address = s.name, .pod_name = s.name});
    balancer_->set_endpoints(servers);
    if (policies::PrefixIndex* index = balancer_->prefix_index()) {
      index->stored(EndpointId(0), policies::kGpuTier, 0, std::span(keys_).first(2),
                    std::span(keys_).first(2));
      index->stored(EndpointId(1), policies::kGpuTier, 0, std::span(keys_).first(5),
                    std::span(keys_).first(5));
    }
  }
  void scrape(std::uint32_t server, double waiting, double running, double kv_usage) {
    table_.set_metrics(EndpointId(server), waiting, running, kv_usage, SimTime::zero());
  }
  BalancerAnswer pick(std::uint64_t id = 1) {
    BalancerRequest request;
    request.id = id;
    request.now = SimTime::zero() + Duration::seconds(2);
    request.prompt_tokens = 160;
    request.block_keys = keys_;
    request.metrics = &table_;
    const BalancerAnswer answer = balancer_->pick(request);
    if (answer) balancer_->on_sent(*answer, request);
    return answer;
  }
  std::uint32_t chosen(std::uint64_t id = 1) { return pick(id)->endpoint; }
  policies::Balancer& balancer() { return *balancer_; }

 private:
  std::vector<std::uint64_t> keys_ = {11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
  policies::EndpointTable table_;
  std::unique_ptr<policies::Balancer> balancer_;
};

Pool by_formula(const std::string& score, const std::string& filter = "") {
  return Pool(
      make_expression({.score = score, .filter = filter}, RandomStream(1, Stream::kBalancer)));
}

// ---- Formulas -----------------------------------------------------------------------------------

TEST(Expression, TellsTheScoresOfADecision) {
  Pool same = by_formula("10 * prefix_hit - waiting", "server < 2");
  same.scrape(0, 4, 0, 0);
  same.scrape(1, 3, 7, 0.25);
  ScoreSheet sheet;
  auto* const scores = dynamic_cast<KeepsScores*>(&same.balancer());
  ASSERT_NE(scores, nullptr);
  scores->keep_scores(&sheet);
  const std::uint32_t chosen = same.chosen();
  scores->keep_scores(nullptr);
  (void)same.pick();
  EXPECT_EQ(sheet.names, (std::vector<std::string>{"prefix_hit", "waiting"}));
  ASSERT_EQ(sheet.rows.size(), 2U)
      << "the filter leaves out the third, and the second pick is none";
  EXPECT_EQ(sheet.rows[1].endpoint, 1U);
  EXPECT_EQ(sheet.rows[1].inputs, (std::vector<double>{0.5, 3}));
  EXPECT_EQ(sheet.rows[1].score, 2);
  EXPECT_EQ(chosen, 1U);
}

TEST(Expression, EveryQuantityHasItsValue) {
  // The formula is 1 for the right value at server b, 0 for a wrong one, and 0.5 elsewhere.
  const auto expect_at_b = [](const std::string& name, const std::string& value) {
    Pool same = by_formula("server == 1 ? (abs(" + name + " - " + value + ") < 1e-12) : 0.5");
    same.scrape(1, 3, 7, 0.25);
    EXPECT_EQ(same.chosen(), 1U) << name << " is not " << value;
  };
  expect_at_b("prefix_tokens", "80");
  expect_at_b("prefix_hit", "0.5");
  expect_at_b("waiting", "3");
  expect_at_b("running", "7");
  expect_at_b("kv_usage", "0.25");
  expect_at_b("age", "2");
  expect_at_b("in_flight", "0");
  expect_at_b("in_flight_tokens", "0");
  expect_at_b("prompt_tokens", "160");
  expect_at_b("max_tokens", "0");
  expect_at_b("priority", "0");
  expect_at_b("servers", "3");
}

TEST(Expression, CountsItsOwnRequests) {
  Pool pool = by_formula("-in_flight_tokens");
  std::vector<int> counts(3, 0);
  for (std::uint64_t id = 1; id <= 9; ++id) ++counts[pool.chosen(id)];
  EXPECT_EQ(counts, (std::vector<int>{3, 3, 3}));
}

TEST(Expression, TheFilterLeavesServersOut) {
  Pool pool = by_formula("prefix_hit", "server != 1");
  EXPECT_EQ(pool.chosen(), 0U);
  Pool nobody = by_formula("1", "0");
  EXPECT_EQ(nobody.pick().http_status(), 503);
}

TEST(Expression, TiesAreDrawnEvenly) {
  Pool pool = by_formula("1");
  std::vector<int> counts(3, 0);
  for (std::uint64_t id = 1; id <= 3'000; ++id) ++counts[pool.chosen(id)];
  for (const int n : counts) EXPECT_NEAR(n, 1'000, 130);  // Five standard deviations.
}

TEST(Expression, AsksForNoMoreThanItNames) {
  EXPECT_FALSE(by_formula("in_flight").balancer().needs().metrics);
  EXPECT_FALSE(by_formula("waiting").balancer().needs().kv_events);
  EXPECT_TRUE(by_formula("waiting").balancer().needs().metrics);
  EXPECT_TRUE(by_formula("1", "prefix_hit > 0").balancer().needs().kv_events);
}

TEST(Expression, FaultsNameThePlaceAndTheNearestName) {
  const auto unknown = expression_fault("2 * prefix_hits");
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->position, 4U);
  EXPECT_EQ(unknown->hint, "did you mean prefix_hit?");
  EXPECT_TRUE(expression_fault("2 *"));
  EXPECT_TRUE(expression_fault("(waiting"));
  EXPECT_TRUE(expression_fault(""));
  for (const ExpressionName& n : expression_names())
    EXPECT_FALSE(expression_fault(std::string(n.name))) << n.name;
}

TEST(Expression, AnAssignmentIsAFault) {
  for (const char* formula : {"waiting = 0", "prefix_hit - (running = 2)", "=1"}) {
    const auto fault = expression_fault(formula);
    ASSERT_TRUE(fault) << formula;
    EXPECT_EQ(fault->position, std::string(formula).find('=')) << formula;
    EXPECT_EQ(fault->hint, "write == to compare");
  }
  for (const char* formula : {"waiting == 0", "waiting <= 3", "waiting >= 3", "waiting != 1"})
    EXPECT_FALSE(expression_fault(formula)) << formula;
}

TEST(Expression, SeveralValuesAreAFault) {
  const auto fault = expression_fault("0,5 * prefix_hit");
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->message, "gives 2 values, with a comma between them");
  EXPECT_EQ(fault->position, 1U);
  const auto behind = expression_fault("max(waiting, 1), 2");
  ASSERT_TRUE(behind);
  EXPECT_EQ(behind->position, 15U);
  EXPECT_FALSE(expression_fault("max(waiting, running, 0.5)"));
}

TEST(Expression, InfinityAndFiltersThatAreNoNumberNameTheRequest) {
  const auto message = [](const std::string& score, const std::string& filter) {
    Pool pool = by_formula(score, filter);
    try {
      pool.pick(42);
    } catch (const RunError& e) {
      return e.diagnostic().path + " " + e.diagnostic().message;
    }
    return std::string("none");
  };
  EXPECT_EQ(message("log(waiting)", ""),
            "routing.expression.score is infinite for request 42 at a (got log(waiting))");
  EXPECT_EQ(message("1", "sqrt(0 - 1)"),
            "routing.expression.filter is not a number for request 42 at a (got sqrt(0 - 1))");
  EXPECT_EQ(message("1", "1 / waiting"),
            "routing.expression.filter is infinite for request 42 at a (got 1 / waiting)");
}

TEST(Expression, NoNumberNamesTheRequest) {
  Pool pool = by_formula("sqrt(0 - 1)");
  try {
    pool.pick(42);
    FAIL() << "the score is NaN";
  } catch (const RunError& e) {
    EXPECT_NE(e.diagnostic().message.find("request 42 at a"), std::string::npos);
  }
}

// ---- Shared objects ---------------------------------------------------------------------------

const bool kAllowed = (set_foreign_code(ForeignCode::kAllowed), true);

LibrarySettings policy(const std::string& name, const std::string& options = "") {
  return {.path = std::string(ROUTESIM_POLICIES) + "/" + name, .options = options};
}

bool is_built(const LibrarySettings& settings) { return std::filesystem::exists(settings.path); }

Pool load(const LibrarySettings& settings) { return Pool(make_library(settings, 1, 0)); }

TEST(PolicyLibrary, CppExample) {
  const LibrarySettings settings = policy("least_tokens.so", "0.5");
  ASSERT_FALSE(library_fault(settings));
  Pool pool = load(settings);
  // To compute: a 128, b 80, c 160; a request in flight adds half of its 160 tokens.
  ScoreSheet sheet;
  auto* const scores = dynamic_cast<KeepsScores*>(&pool.balancer());
  ASSERT_NE(scores, nullptr);
  scores->keep_scores(&sheet);
  EXPECT_EQ(pool.chosen(1), 1U);  // -128, -80, -160.
  scores->keep_scores(nullptr);
  ASSERT_EQ(sheet.rows.size(), 3U);
  EXPECT_EQ(sheet.rows[0].score, -128);
  EXPECT_EQ(sheet.rows[1].score, -80);
  EXPECT_EQ(sheet.rows[2].score, -160);
  EXPECT_EQ(pool.chosen(2), 0U);               // -128, -160, -160.
  const std::uint32_t third = pool.chosen(3);  // -208, -160, -160.
  EXPECT_TRUE(third == 1 || third == 2);
}

TEST(PolicyLibrary, GoExample) {
  const LibrarySettings settings = policy("least_requests.so");
  if (!is_built(settings)) GTEST_SKIP() << "there is no Go compiler";
  ASSERT_FALSE(library_fault(settings));
  Pool pool = load(settings);
  std::vector<int> counts(3, 0);
  for (std::uint64_t id = 1; id <= 9; ++id) ++counts[pool.chosen(id)];
  EXPECT_EQ(counts, (std::vector<int>{3, 3, 3}));
}

TEST(PolicyLibrary, RustExample) {
  const LibrarySettings settings = policy("shortest_queue.so");
  if (!is_built(settings)) GTEST_SKIP() << "there is no Rust compiler";
  ASSERT_FALSE(library_fault(settings));
  Pool pool = load(settings);
  pool.scrape(0, 2, 0, 0);
  pool.scrape(1, 1, 0, 0);
  pool.scrape(2, 2, 0, 0);
  // -(10 * waiting + in flight): b is best until it has 10 more than the others.
  for (std::uint64_t id = 1; id <= 10; ++id) EXPECT_EQ(pool.chosen(id), 1U) << id;
  EXPECT_LT(pool.chosen(11), 3U);
}

TEST(PolicyLibrary, PythonExample) {
  const LibrarySettings settings =
      policy("python_policy.so", ROUTESIM_SOURCE_DIR "/docs/examples/policies/python/policy.py");
  if (!is_built(settings)) GTEST_SKIP() << "there are no files to embed Python";
  ASSERT_FALSE(library_fault(settings));
  Pool pool = load(settings);
  // 2 * cached / prompt - in flight / 64: b 1.0, a 0.4, c 0.
  for (std::uint64_t id = 1; id <= 38; ++id) EXPECT_EQ(pool.chosen(id), 1U) << id;
  for (std::uint64_t id = 39; id <= 40; ++id) pool.chosen(id);  // At 38 / 64 b falls to a's 0.4.
  EXPECT_GE(pool.balancer().in_flight()[0], 1U);
}

void expect_error(const std::string& mode, const std::string& part) {
  Pool pool = load(policy("bad_policy.so", mode));
  try {
    pool.pick(42);
    FAIL() << mode;
  } catch (const RunError& e) {
    EXPECT_NE(e.diagnostic().message.find(part), std::string::npos) << e.diagnostic().message;
    EXPECT_NE(e.diagnostic().message.find("for request 42"), std::string::npos);
  }
}

TEST(PolicyLibrary, ErrorsNameTheRequest) {
  expect_error("nan", "the score of b is NaN");
  expect_error("throw", "threw an exception (oh)");
  expect_error("error", "returned error 7");
  expect_error("infinite", "the score of a is infinite");
  expect_error("unwritten", "the score of a is NaN, or not written");
  expect_error("one more", "wrote more scores than there are servers");
}

TEST(PolicyLibrary, MayRefuse) {
  EXPECT_EQ(load(policy("bad_policy.so", "refuse it")).pick().http_status(), 503);
  EXPECT_EQ(load(policy("bad_policy.so", "nobody")).pick().http_status(), 503);
}

TEST(PolicyLibrary, FaultsAreKnownBeforeTheRun) {
  EXPECT_EQ(library_fault(policy("none.so"))->key, "path");
  EXPECT_EQ(library_fault(policy("bad_policy.so", "refuse"))->key, "options");
}

TEST(PolicyLibraryDeathTest, ACrashNamesTheRequest) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(load(policy("bad_policy.so", "crash")).pick(42), testing::ExitedWithCode(3),
              "bad_policy.so crashed while it decided request 42");
}

TEST(PolicyLibraryDeathTest, NothingElseEndsTheRunInSilence) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(load(policy("bad_policy.so", "exit")).pick(42), testing::ExitedWithCode(3),
              "bad_policy.so ended the process while it decided request 42");
  EXPECT_EXIT(library_fault(policy("bad_policy.so", "crash at once")), testing::ExitedWithCode(3),
              "bad_policy.so crashed while it was made");
}

TEST(PolicyLibrary, NothingIsLoadedUnlessAllowed) {
  set_foreign_code(ForeignCode::kRefused);
  const auto refused = library_fault(policy("none.so"));
  set_foreign_code(ForeignCode::kNotLoaded);
  const auto checked = library_fault(policy("none.so"));
  set_foreign_code(ForeignCode::kAllowed);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->message, "is code that runs only with --allow-library");
  EXPECT_FALSE(checked) << "it is not even looked at";
}

/// Exit code and standard output of a command about a scenario with the policy.
std::pair<int, std::string> command(const std::string& arguments, const std::string& options) {
  const std::string file = testing::TempDir() + "/library.yaml";
  std::ofstream(file) << "name: s\nworkload: {groups: {requests: 4, rate: 5, prefix_len: 100}}\n"
                         "cluster: {pools: [{accelerator: H100-SXM, model: Qwen3-8B}]}\n"
                         "routing:\n  balancer: library\n  library: {path: "
                      << policy("bad_policy.so").path << ", options: " << options << "}\n";
  const std::string line =
      std::string(ROUTESIM_BINARY) + " " + arguments + " " + file + " 2>/dev/null";
  std::FILE* const pipe = ::popen(line.c_str(), "r");
  std::string out;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) out += static_cast<char>(c);
  return {WEXITSTATUS(::pclose(pipe)), out};
}

TEST(PolicyLibrary, TheCommandLineMustAllowIt) {
  EXPECT_EQ(command("check", "crash at once").first, 0) << "check loads nothing";
  EXPECT_EQ(command("run -q", "x").first, 2);
  const auto [code, out] = command("run -q --allow-library -o json", "print");
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(out.starts_with("{") && out.find("nothing that JSON has") == std::string::npos);
  EXPECT_EQ(command("run -q --allow-library", "crash").first, 3) << "1 is a failed expectation";
}

TEST(PolicyLibraryDeathTest, ACrashNamesItsOwnLibrary) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto crash = [] {
    Pool bad = load(policy("bad_policy.so", "crash"));
    Pool loaded_later = load(policy("least_tokens.so"));
    loaded_later.pick(1);
    bad.pick(42);
  };
  EXPECT_EXIT(crash(), testing::ExitedWithCode(3),
              "bad_policy.so crashed while it decided request 42");
}

TEST(PolicyLibraryDeathTest, ACallThatBlocksNamesTheRequest) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  LibrarySettings settings = policy("bad_policy.so", "block");
  settings.call_timeout = Duration::milliseconds(200);
  EXPECT_EXIT(load(settings).pick(42), testing::ExitedWithCode(3),
              "did not return in time .* while it decided request 42");
}

}  // namespace
}  // namespace routesim::sim
