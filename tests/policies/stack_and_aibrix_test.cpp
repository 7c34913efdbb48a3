// Properties of the balancers of the vLLM production stack and of AIBrix; their decisions one by
// one are in tests/policies/data/balancers.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "policies/balancers/balancers.h"
#include "policies/balancers/kit/hashes.h"
#include "policies/balancers/kit/text_blocks.h"

namespace routesim::policies {
namespace {

std::unique_ptr<Balancer> make(std::string_view name, const BalancerSettings& settings = {}) {
  for (std::size_t i = 0; i < kBalancers.size(); ++i)
    if (kBalancers[i].name == name) return make_balancer(static_cast<BalancerKind>(i), settings, 1);
  ADD_FAILURE() << "no balancer is called " << name;
  return nullptr;
}

std::vector<BalancerEndpoint> servers(std::size_t n) {
  std::vector<BalancerEndpoint> out;
  for (std::size_t i = 0; i < n; ++i)
    out.push_back({.name = "http://10.0.0." + std::to_string(i) + ":8000"});
  return out;
}

/// Counts of picks; every request stays in flight only with `keep`.
std::vector<int> counts(Balancer& b, int requests, bool keep) {
  std::vector<int> out(b.size());
  for (int i = 0; i < requests; ++i) {
    const BalancerRequest request{.id = static_cast<std::uint64_t>(i)};
    const BalancerAnswer answer = b.pick(request);
    EXPECT_TRUE(answer.has_value());
    b.on_sent(*answer, request);
    if (!keep) b.on_completed(*answer, {.id = request.id});
    ++out[answer->endpoint];
  }
  return out;
}

// Chi-square with 7 degrees of freedom: the 99.9 % quantile is 24.3.
double chi_square(const std::vector<int>& counts) {
  double n = 0, sum = 0;
  for (const int c : counts) n += c;
  const double mean = n / static_cast<double>(counts.size());
  for (const int c : counts) sum += (c - mean) * (c - mean) / mean;
  return sum;
}

std::string hex(const Md5Number& n) {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(n.high),
                static_cast<unsigned long long>(n.low));
  return text;
}

TEST(Md5, VectorsOfRfc1321) {
  EXPECT_EQ(hex(md5("")), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(hex(md5("abc")), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(hex(md5("message digest")), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(hex(md5("12345678901234567890123456789012345678901234567890123456789012345678901234567"
                    "890")),
            "57edf4a22be3c955ac49da2e2107b67a");
}

TEST(TextBlocks, TheSplitOfATextDoesNotMatter) {
  const std::vector<TextRun> whole = {{.content = 7, .offset = 0, .length = 10},
                                      {.content = 9, .offset = 3, .length = 5}};
  const std::vector<TextRun> pieces = {{.content = 7, .offset = 0, .length = 1},
                                       {.content = 7, .offset = 1, .length = 6},
                                       {.content = 7, .offset = 7, .length = 3},
                                       {.content = 9, .offset = 3, .length = 4},
                                       {.content = 9, .offset = 7, .length = 1}};
  TextBlocks a, b;
  for (const std::int64_t units : {1, 2, 4, 7, 15, 16})
    for (const bool tail : {false, true}) {
      const auto left = a.cut({.runs = whole}, units, tail);
      const auto right = b.cut({.runs = pieces}, units, tail);
      EXPECT_TRUE(std::equal(left.begin(), left.end(), right.begin(), right.end()));
      EXPECT_EQ(left.size(),
                static_cast<std::size_t>(tail ? (15 + units - 1) / units : 15 / units));
    }
}

// The store against a list of blocks with sets of holders.
TEST(BlockStore, EqualsAPlainList) {
  RandomStream random(3, Stream::kTest);
  BlockStore store(40);
  std::vector<std::pair<std::uint64_t, std::set<std::uint32_t>>> list;  // Oldest first.
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::uint64_t> blocks;
    for (std::uint64_t k = 0, n = 1 + random.below(8), tree = random.below(12); k < n; ++k)
      blocks.push_back(tree * 100 + k);
    std::map<std::uint32_t, std::uint32_t> expected;
    for (std::uint32_t server = 0; server < 5; ++server)
      for (const std::uint64_t block : blocks) {
        const auto at = std::find_if(list.begin(), list.end(),
                                     [block](const auto& e) { return e.first == block; });
        if (at == list.end() || !at->second.contains(server)) break;
        ++expected[server];
      }
    std::map<std::uint32_t, std::uint32_t> got;
    for (const BlockStore::Match& m : store.match(blocks)) got[m.server] = m.blocks;
    ASSERT_EQ(got, expected) << "round " << round;
    const auto server = static_cast<std::uint32_t>(random.below(5));
    store.add(blocks, server, SimTime::zero());
    for (const std::uint64_t block : blocks) {
      const auto at = std::find_if(list.begin(), list.end(),
                                   [block](const auto& e) { return e.first == block; });
      std::set<std::uint32_t> holders;
      if (at != list.end()) {
        holders = at->second;
        list.erase(at);
      }
      holders.insert(server);
      list.emplace_back(block, holders);
      if (list.size() > 40) list.erase(list.begin());
    }
    ASSERT_EQ(store.size(), list.size());
  }
}

TEST(ProductionStack, ASessionMovesOnlyWhenItsServerLeaves) {
  BalancerSettings settings;
  settings.production_stack.emplace().session_key = "x-user-id";
  auto b = make("production-stack-session", settings);
  const auto all = servers(8);
  const auto owners = [&](std::span<const BalancerEndpoint> pool) {
    b->set_endpoints(pool);
    std::vector<std::string> out;
    for (int s = 0; s < 2000; ++s) {
      const std::string session = "session-" + std::to_string(s);
      const std::vector<Header> headers = {{.name = "x-user-id", .value = session}};
      out.push_back(pool[b->pick({.headers = headers})->endpoint].name);
    }
    return out;
  };
  const auto before = owners(all);
  const auto after = owners(std::span(all).first(7));
  int moved = 0;
  for (std::size_t s = 0; s < before.size(); ++s) {
    if (before[s] == after[s]) continue;
    ++moved;
    EXPECT_EQ(before[s], all[7].name);
  }
  EXPECT_EQ(moved, std::count(before.begin(), before.end(), all[7].name));
}

TEST(ProductionStack, PrefixAwareDrawsUniformlyWithoutAMatch) {
  auto b = make("production-stack-prefixaware");
  b->set_endpoints(servers(8));
  std::vector<int> seen(8);
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const std::vector<TextRun> runs = {{.content = i + 1, .offset = 0, .length = 300}};
    ++seen[b->pick({.id = i, .text = {.runs = runs}})->endpoint];
  }
  EXPECT_LT(chi_square(seen), 24.3);
}

TEST(Aibrix, RandomChoicesAreUniform) {
  for (const std::string_view name :
       {"aibrix-random", "aibrix-least-kv-cache", "aibrix-least-gpu-cache", "aibrix-throughput",
        "aibrix-least-request", "aibrix-power-of-two"}) {
    SCOPED_TRACE(name);
    auto b = make(name);
    b->set_endpoints(servers(8));
    EXPECT_LT(chi_square(counts(*b, 4000, false)), 24.3);
  }
}

TEST(Aibrix, LeastRequestLevelsTheLoad) {
  auto b = make("aibrix-least-request");
  b->set_endpoints(servers(8));
  for (const int c : counts(*b, 400, true)) EXPECT_EQ(c, 50);
}

// Two different pods are drawn, so the most loaded of all never gets the next request.
TEST(Aibrix, PowerOfTwoNeverTakesTheMostLoaded) {
  auto b = make("aibrix-power-of-two");
  const auto all = servers(3);
  b->set_endpoints(std::span(all).first(1));
  counts(*b, 100, true);
  b->set_endpoints(all);
  const auto seen = counts(*b, 150, true);
  EXPECT_EQ(seen[0], 0);
  EXPECT_NEAR(seen[1], seen[2], 10);
}

TEST(Aibrix, ATextThatFitsTheTableIsFollowedAndALargerOneIsNot) {
  BalancerSettings settings;
  settings.aibrix.emplace();
  settings.aibrix->prefix_cache_block_number = 100;
  for (const std::int64_t length : {100, 101}) {
    auto b = make("aibrix-prefix-cache", settings);
    b->set_endpoints(servers(8));
    const std::vector<TextRun> runs = {{.content = 1, .offset = 0, .length = length}};
    std::set<std::uint32_t> seen;
    for (std::uint64_t i = 0; i < 50; ++i)
      seen.insert(b->pick({.id = i, .text = {.runs = runs, .characters_per_unit = 4}})->endpoint);
    EXPECT_EQ(seen.size() == 1, length == 100);
  }
}

}  // namespace
}  // namespace routesim::policies
