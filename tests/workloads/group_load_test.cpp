#include "workloads/groups/group_load.h"

#include <map>
#include <set>

#include "tests/workloads/drive.h"

namespace routesim::workloads {
namespace {

using testing::drive;
using testing::fixed_latency;
using testing::Sent;

std::unique_ptr<LoadGenerator> make(const GroupLoadConfig& c, std::uint64_t seed = 1) {
  Diagnostics found;
  WorkloadOptions options;
  options.seed = seed;
  auto load = make_load_generator(c, options, {}, found);
  for (const Diagnostic& d : found.items()) ADD_FAILURE() << to_string(d);
  return load;
}

TEST(GroupLoad, UniqueSuffixesShareTheirGroupsPrefix) {
  GroupLoadConfig c;
  c.requests = 20'000;
  c.groups = 50;
  c.zipf_exponent = 1;
  auto load = make(c);
  std::map<std::uint64_t, int> groups;
  std::set<std::uint64_t> suffixes;
  const auto sent = drive(*load, fixed_latency(Duration::milliseconds(10)));
  ASSERT_EQ(sent.size(), 20'000U);
  for (const Sent& s : sent) {
    EXPECT_EQ(s.request.prompt->tokens, 2048 + 128);
    EXPECT_FALSE(s.request.prompt->reusable);
    ++groups[s.request.prompt->segments[0].content];
    suffixes.insert(s.request.prompt->segments[1].content);
  }
  EXPECT_EQ(groups.size(), 50U);
  EXPECT_EQ(suffixes.size(), 20'000U);
  std::vector<int> counts;
  for (const auto& [content, n] : groups) counts.push_back(n);
  std::sort(counts.rbegin(), counts.rend());
  // Zipf with exponent 1 over 50: the first has 1 / H(50) = 22 %, twice the second.
  EXPECT_NEAR(counts[0], 20'000 / 4.4992, 250);
  EXPECT_NEAR(counts[1], 20'000 / 4.4992 / 2, 200);
  // 20,000 arrivals at 1,000/s.
  EXPECT_NEAR(sent.back().sent.to_seconds(), 20, 0.5);
}

TEST(GroupLoad, EveryAnswerHasAToken) {
  GroupLoadConfig c;
  c.requests = 100;
  c.output_len.type = DistributionType::kUniform;
  c.output_len.min = 0;
  c.output_len.max = 1;
  auto load = make(c);
  for (const Sent& s : drive(*load, fixed_latency(Duration::milliseconds(10)))) {
    EXPECT_EQ(s.request.max_tokens, 1);
    EXPECT_EQ(s.request.output_tokens, 1);
  }
}

TEST(GroupLoad, PoolPromptsAreTheSameObjectWheneverTheyComeUp) {
  GroupLoadConfig c;
  c.requests = 5000;
  c.groups = 10;
  c.prompts_per_group = 5;
  auto load = make(c);
  std::map<std::uint64_t, const Prompt*> by_id;
  for (const Sent& s : drive(*load, fixed_latency(Duration::milliseconds(10)))) {
    EXPECT_TRUE(s.request.prompt->reusable);
    const auto [it, fresh] = by_id.emplace(s.request.prompt->id, s.request.prompt.get());
    EXPECT_EQ(it->second, s.request.prompt.get());
  }
  EXPECT_EQ(by_id.size(), 50U);
  EXPECT_EQ(by_id.rbegin()->first, 49U) << "ids are dense";
}

TEST(GroupLoad, APoolPromptsLengthDoesNotDependOnWhenItIsDrawn) {
  std::map<std::uint64_t, std::int64_t> tokens;  // By the text of its own.
  for (const double exponent : {0.0, 1.5}) {
    GroupLoadConfig c;
    c.requests = 500;
    c.groups = 4;
    c.prompts_per_group = 5;
    c.zipf_exponent = exponent;
    c.suffix_len = {.type = DistributionType::kUniform, .min = 1, .max = 100'000};
    for (const Sent& s : drive(*make(c), fixed_latency(Duration::milliseconds(10)))) {
      const Segment& own = s.request.prompt->segments.back();
      const auto [known, is_new] = tokens.emplace(own.content, own.length);
      ASSERT_EQ(known->second, own.length);
    }
  }
  EXPECT_EQ(tokens.size(), 20U);
}

TEST(GroupLoad, StreamsWithoutKeepingRequests) {
  // The prompt of a finished request is gone: nothing but the caller holds it.
  GroupLoadConfig c;
  c.requests = 1'000'000;
  auto load = make(c);
  std::vector<Request> batch;
  for (int i = 0; i < 1000; ++i) {
    batch.clear();
    const SimTime now = load->next_action();
    load->advance(now, batch);
    for (const Request& r : batch) {
      EXPECT_EQ(r.prompt.use_count(), 1);
      load->on_completed(r, Outcome::kSuccess, now);
    }
  }
}

TEST(GroupLoad, CountsItsRequestsAndFinishes) {
  GroupLoadConfig c;
  c.requests = 3;
  c.max_concurrency = 1;
  auto load = make(c);
  EXPECT_EQ(drive(*load, fixed_latency(Duration::seconds(1))).size(), 3U);
  EXPECT_TRUE(load->finished());
  Diagnostics found;
  c.groups = 1'000'000;
  c.prompts_per_group = 1'000'000;
  EXPECT_EQ(make_load_generator(c, {}, {}, found), nullptr);
  EXPECT_EQ(found.items()[0].path, "prompts_per_group");
}

}  // namespace
}  // namespace routesim::workloads
