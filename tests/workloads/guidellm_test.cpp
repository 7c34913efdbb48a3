#include "workloads/guidellm/guidellm.h"

#include <cmath>
#include <map>
#include <set>

#include "tests/base/messages.h"
#include "tests/workloads/drive.h"

namespace routesim::workloads::guidellm {
namespace {

using testing::drive;
using testing::fixed_latency;
using testing::seconds;
using testing::Sent;

Config config(ProfileKind kind) {
  Config c;
  c.profile.kind = kind;
  c.data.prompt.average = 100;
  c.data.output.average = 10;
  return c;
}

std::vector<Sent> played(const Config& c, Duration latency,
                         std::vector<StageInfo>* infos = nullptr) {
  Diagnostics found;
  const auto load = make_load_generator(c, {}, {}, found);
  EXPECT_EQ(messages_of(found), "");
  if (load == nullptr) return {};
  auto all = drive(*load, fixed_latency(latency));
  EXPECT_TRUE(load->finished());
  if (infos != nullptr) *infos = load->stages();
  return all;
}

std::vector<double> times(const std::vector<Sent>& all) {
  std::vector<double> out;
  for (const Sent& s : all) out.push_back(seconds(s.sent));
  return out;
}

using Times = std::vector<double>;

TEST(Guidellm, ConstantSlotsBeginAfterOneGapAndEndWithTheTime) {
  Config c = config(ProfileKind::kConstant);
  c.profile.rate = {2, 4};
  c.max_seconds = {1.5, 1};
  // 1/2, 2/2, and not 3/2: the time is over, and the second request is cut. Then 1/4, 2/4 and 3/4.
  EXPECT_EQ(times(played(c, Duration::milliseconds(1000))), (Times{0.5, 1, 1.75, 2, 2.25}));
  c.profile.rate = {2};
  c.profile.rampup_duration =
      4;  // 4 requests in the ramp: the first at once, then sqrt(2 n 4 / 2).
  c.max_seconds = {5};
  const Times ramp = times(played(c, Duration::milliseconds(1)));
  ASSERT_EQ(ramp.size(), 5U);
  EXPECT_EQ(ramp[0], 0);
  EXPECT_NEAR(ramp[1], std::sqrt(8.0), 1e-9);
  EXPECT_NEAR(ramp[2], std::sqrt(12.0), 1e-9);
  EXPECT_DOUBLE_EQ(ramp[3], 4);
  EXPECT_DOUBLE_EQ(ramp[4], 4.5);
}

TEST(Guidellm, ConcurrentStreamsAreAClosedLoopWithATimeLimit) {
  Config c = config(ProfileKind::kConcurrent);
  c.profile.streams = {2, 1};
  c.max_seconds = {2.5};
  std::vector<StageInfo> infos;
  // Two at a time until 2.5 s, when two are cut; then one at a time.
  EXPECT_EQ(times(played(c, Duration::milliseconds(1000), &infos)),
            (Times{0, 0, 1, 1, 2, 2, 2.5, 3.5, 4.5}));
  EXPECT_EQ(infos[0].name, "concurrent@2");
  EXPECT_EQ(infos[1].concurrency, 1);
  c.profile.streams = {4};
  c.profile.rampup_duration = 2;  // Slots 1, 2, 3 at 0.5, 1 and 1.5 s; the fourth is not delayed.
  c.max_seconds = {};
  c.max_requests = {4};
  EXPECT_EQ(times(played(c, Duration::milliseconds(9000))), (Times{0.5, 1, 1.5, 1.5}));
}

TEST(Guidellm, ThroughputSendsAllAtOnceUpToItsCap) {
  Config c = config(ProfileKind::kThroughput);
  c.max_requests = {5};
  EXPECT_EQ(times(played(c, Duration::milliseconds(500))), (Times{0, 0, 0, 0, 0}));
  c.profile.max_concurrency = 2;
  EXPECT_EQ(times(played(c, Duration::milliseconds(500))), (Times{0, 0, 0.5, 0.5, 1}));
}

TEST(Guidellm, PoissonGapsHaveTheirMean) {
  Config c = config(ProfileKind::kPoisson);
  c.profile.rate = {50};
  c.max_requests = {20'000};
  const Times at = times(played(c, Duration::milliseconds(1)));
  // The sum of 20,000 gaps of 0.02 s: 400 s, deviation 0.02 sqrt(20,000) = 2.8 s.
  EXPECT_NEAR(at.back(), 400, 4 * 2.83);
}

TEST(Guidellm, TurnsGoBeforeNewConversations) {
  Config c = config(ProfileKind::kConcurrent);
  c.profile.streams = {2};
  c.data.turns = 3;
  c.data.prefix_buckets = {{.bucket_weight = 100, .prefix_count = 2, .prefix_tokens = 1000}};
  c.max_requests = {7};  // Two conversations of three turns, and one turn of the next.
  const std::vector<Sent> all = played(c, Duration::milliseconds(1000));
  ASSERT_EQ(all.size(), 7U);
  std::vector<std::pair<std::uint64_t, std::int64_t>> sent;  // Session, tokens.
  for (const Sent& s : all) sent.emplace_back(s.request.session, s.request.prompt->tokens);
  EXPECT_EQ(sent,
            (std::vector<std::pair<std::uint64_t, std::int64_t>>{
                {1, 1100}, {2, 1100}, {1, 1210}, {2, 1210}, {1, 1320}, {2, 1320}, {3, 1100}}));
  const Request &first = all[0].request, &second = all[2].request;
  EXPECT_EQ(second.prompt->segments[0], first.prompt->segments[0]);
  EXPECT_EQ(second.prompt->segments[2], (Segment{first.output_content, 0, 10}));
}

TEST(Guidellm, BucketsHaveTheirWeights) {
  Config c = config(ProfileKind::kThroughput);
  c.data.prefix_buckets = {{.bucket_weight = 3, .prefix_count = 1, .prefix_tokens = 20},
                           {.bucket_weight = 1, .prefix_count = 2, .prefix_tokens = 40}};
  c.max_requests = {8000};
  std::map<std::pair<std::uint64_t, std::int64_t>, int> seen;
  std::set<std::uint64_t> contents;
  for (const Sent& s : played(c, Duration::milliseconds(1))) {
    const Segment& prefix = s.request.prompt->segments[0];
    ++seen[{prefix.content, prefix.length}];
    contents.insert(prefix.content);
  }
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(contents.size(), 3U) << "prefixes of two buckets share no token";
  for (const auto& [prefix, n] : seen) {
    const double expected = prefix.second == 20 ? 6000 : 1000;
    EXPECT_NEAR(n, expected, 4 * std::sqrt(expected)) << prefix.second;
  }
}

TEST(Guidellm, LengthsAreDrawnAsTheToolDraws) {
  Config c = config(ProfileKind::kThroughput);
  c.data.prompt = {.average = 50, .stdev = 10, .min = 45, .max = 100};
  c.data.output = {.average = 8, .stdev = {}, .min = 6, .max = {}};
  c.max_requests = {4000};
  std::map<std::int64_t, int> prompts, answers;
  for (const Sent& s : played(c, Duration::milliseconds(1))) {
    ++prompts[s.request.prompt->tokens];
    ++answers[s.request.output_tokens];
    EXPECT_EQ(s.request.max_tokens, s.request.output_tokens);
  }
  // A clipped normal: P(X < 45.5) = 0.326 at the lower end. Without deviation 6, 7 or 8, evenly.
  EXPECT_NEAR(prompts[45] / 4000.0, 0.326, 0.03);
  EXPECT_LE(prompts.rbegin()->first, 100);
  ASSERT_EQ(answers.size(), 3U);
  for (const auto& [length, n] : answers) EXPECT_NEAR(n, 4000 / 3.0, 4 * 30) << length;
}

TEST(Guidellm, SamplesAreSentAgainInEveryStrategy) {
  Config c = config(ProfileKind::kConcurrent);
  c.profile.streams = {2, 1};
  c.samples = 3;
  const std::vector<Sent> all = played(c, Duration::milliseconds(100));
  ASSERT_EQ(all.size(), 6U) << "samples end a strategy";
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(all[i].request.prompt->segments, all[i + 3].request.prompt->segments);
  c.samples = -1;
  c.max_requests = {3};
  std::set<std::uint64_t> contents;
  for (const Sent& s : played(c, Duration::milliseconds(100)))
    contents.insert(s.request.prompt->segments[0].content);
  EXPECT_EQ(contents.size(), 6U) << "new texts";
}

TEST(Guidellm, ASweepFindsItsRates) {
  Config c = config(ProfileKind::kSweep);
  c.profile.sweep_size = 4;
  c.profile.max_concurrency = 8;
  c.max_seconds = {10.1};
  std::vector<StageInfo> infos;
  const std::vector<Sent> all = played(c, Duration::milliseconds(500), &infos);
  // In 10.1 s come 20 answers one by one, and 160 with 8 in flight; then linspace(20 / 10.1,
  // 160 / 10.1, 3) without the first.
  ASSERT_EQ(infos.size(), 4U);
  EXPECT_DOUBLE_EQ(infos[2].requested_rate, 90 / 10.1);
  EXPECT_DOUBLE_EQ(infos[3].requested_rate, 160 / 10.1);
  std::map<std::size_t, int> sent;
  for (const Sent& s : all) ++sent[s.request.stage.value()];
  EXPECT_EQ(sent[0], 21) << "the last one is cut";
  EXPECT_EQ(sent[1], 168);
  EXPECT_EQ(sent[2], 89) << "slots at i / rate before 10.1 s";
}

TEST(Guidellm, SaysWhatIsMissing) {
  const auto said = [](const Config& c) {
    Diagnostics found;
    EXPECT_EQ(make_load_generator(c, {}, {}, found), nullptr);
    return messages_of(found);
  };
  Config c = config(ProfileKind::kConcurrent);
  EXPECT_NE(said(c).find("guidellm.profile.streams: is missing"), std::string::npos) << said(c);
  EXPECT_NE(said(c).find("nothing ends the strategies"), std::string::npos);
  c.profile.streams = {4, 0};
  EXPECT_NE(said(c).find("profile.streams: must be greater than 0 (got 0)"), std::string::npos);
  c = config(ProfileKind::kSynchronous);
  c.max_requests = {1};
  c.data.output.average = 0;
  c.data.prompt.min = 200;
  EXPECT_NE(said(c).find("data.output_tokens: must be at least 1"), std::string::npos) << said(c);
  EXPECT_NE(said(c).find("data.prompt_tokens: must be at least 1"), std::string::npos) << said(c);
}

}  // namespace
}  // namespace routesim::workloads::guidellm
