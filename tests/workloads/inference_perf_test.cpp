// shared_prefix: the ladder, the pool, the stages, and users who keep talking.
#include <map>
#include <set>

#include "tests/workloads/inference_perf_ladder.h"

namespace routesim::workloads::inference_perf {
namespace {

TEST(SharedPrefix, TheLadderSendsWhatItsFileSays) {
  const Config c = ladder();
  EXPECT_EQ(requests_per_stage(c), (std::vector<std::int64_t>{750, 60, 200, 760}));
  WorkloadOptions options;
  options.warmup_stages = 1;
  auto load = make(c, options);
  ASSERT_EQ(load->stages().size(), 4U);
  EXPECT_FALSE(load->stages()[0].reported);
  EXPECT_TRUE(load->stages()[1].reported);
  EXPECT_EQ(load->stages()[1].requested_rate, 3);
  EXPECT_EQ(load->stages()[1].requests, 60);
  const auto stages = by_stage(drive(*load, fixed_latency(Duration::seconds(20))));
  EXPECT_TRUE(load->finished());
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(stages[i].size(), static_cast<std::size_t>(requests_per_stage(c)[i]));
  for (const Sent& s : stages[1]) {
    EXPECT_EQ(s.request.prompt->tokens, 7200);
    EXPECT_EQ(s.request.prompt->segments.size(), 2U);
    EXPECT_EQ(s.request.output_tokens, 1000);
    EXPECT_EQ(s.request.max_tokens, 1000);
    EXPECT_EQ(s.request.timeout, Duration::seconds(300));
    EXPECT_EQ(s.sent, s.request.due) << "224 workers x 100 permits never bind here";
  }
}

TEST(SharedPrefix, StagesPauseAsTheToolDoes) {
  auto load = make(ladder());
  const auto stages = by_stage(drive(*load, fixed_latency(Duration::seconds(20))));
  SimTime start;
  for (const auto& stage : stages) {
    // Due times start one second after the stage.
    EXPECT_GT(stage.front().request.due, start + Duration::seconds(1));
    SimTime last;
    for (const Sent& s : stage) last = std::max(last, s.done);
    // The end is seen at the next whole second of the stage, then the interval is slept.
    const std::int64_t polls = ((last - start).ns() + 999'999'999) / 1'000'000'000;
    start = start + Duration::seconds(polls) + Duration::seconds(30);
  }
  EXPECT_EQ(stages.size(), 4U);
}

TEST(SharedPrefix, EachPromptOncePerCycleAndSharingByGroup) {
  auto load = make(ladder());
  const auto stages = by_stage(drive(*load, fixed_latency(Duration::seconds(1))));
  std::map<const Prompt*, int> seen;
  std::map<std::uint64_t, int> groups;
  std::set<std::uint64_t> questions, ids, answers;
  for (const Sent& s : stages[0]) {
    ++seen[s.request.prompt.get()];
    ++groups[s.request.prompt->segments[0].content];
    questions.insert(s.request.prompt->segments[1].content);
    ids.insert(s.request.prompt->id);
    answers.insert(s.request.output_content);
    EXPECT_TRUE(s.request.prompt->reusable);
  }
  EXPECT_EQ(seen.size(), 750U);
  EXPECT_EQ(questions.size(), 750U);
  EXPECT_EQ(ids.size(), 750U);
  EXPECT_EQ(*ids.rbegin(), 749U) << "ids are dense";
  EXPECT_EQ(answers.size(), 750U);
  EXPECT_EQ(groups.size(), 150U);
  for (const auto& [content, n] : groups) EXPECT_EQ(n, 5);
}

TEST(SharedPrefix, TheIndexRestartsOrContinues) {
  WorkloadOptions options;
  auto restart = make(ladder(), options);
  auto a = by_stage(drive(*restart, fixed_latency(Duration::seconds(1))));
  for (std::size_t i = 0; i < 60; ++i) EXPECT_EQ(a[1][i].request.prompt, a[0][i].request.prompt);
  EXPECT_EQ(a[3][755].request.prompt, a[0][5].request.prompt) << "cycled within the stage";
  options.prompt_indexing = PromptIndexing::kContinue;
  auto go_on = make(ladder(), options);
  auto b = by_stage(drive(*go_on, fixed_latency(Duration::seconds(1))));
  for (std::size_t i = 0; i < 200; ++i)
    EXPECT_EQ(b[2][i].request.prompt->id, b[0][60 + i].request.prompt->id);
}

TEST(SharedPrefix, SeedsAndLatenciesChangeWhatTheyShould) {
  WorkloadOptions options;
  auto one = make(ladder(), options), same = make(ladder(), options);
  const auto a = drive(*one, fixed_latency(Duration::seconds(1)));
  const auto b = drive(*same, fixed_latency(Duration::seconds(40)));
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].request.prompt->segments, b[i].request.prompt->segments);
    EXPECT_EQ(a[i].request.output_content, b[i].request.output_content);
  }
  // Arrivals relative to the first of the stage do not depend on how long earlier stages took.
  const auto sa = by_stage(a), sb = by_stage(b);
  for (std::size_t i = 0; i < 760; ++i)
    EXPECT_EQ(sa[3][i].request.due - sa[3][0].request.due,
              sb[3][i].request.due - sb[3][0].request.due);
  options.seed = 2;
  auto other = make(ladder(), options);
  const auto c = drive(*other, fixed_latency(Duration::seconds(1)));
  EXPECT_NE(a[0].request.due, c[0].request.due);
  EXPECT_NE(a[0].request.prompt->segments, c[0].request.prompt->segments);
}

TEST(SharedPrefix, RetokenisingLengthensThePrompt) {
  WorkloadOptions options;
  options.prompt_token_scale = 6320.0 / 6000.0;
  auto load = make(ladder(), options);
  const auto sent = drive(*load, fixed_latency(Duration::seconds(1)), 10);
  EXPECT_EQ(sent[0].request.prompt->tokens, 7584);
  EXPECT_EQ(sent[0].request.prompt->segments[0].length, 6320);
  EXPECT_EQ(sent[0].request.prompt->segments[1].length, 1264);
}

TEST(SharedPrefix, ClientCapTurnsItIntoAClosedLoop) {
  // The MI300X experiment's client: 4 workers x 500 permits.
  Config c = ladder();
  c.load.num_workers = 4;
  c.load.worker_max_concurrency = 500;
  c.load.request_timeout = 1200;
  c.load.stages = {{.rate = 80, .duration = 80}};
  auto load = make(c);
  const auto sent = drive(*load, fixed_latency(Duration::seconds(200)));
  ASSERT_EQ(sent.size(), 6400U);
  std::vector<SimTime> done;
  for (const Sent& s : sent) done.push_back(s.done);
  for (std::size_t i = 2000; i < sent.size(); ++i)
    EXPECT_EQ(sent[i].sent, std::max(sent[i].request.due, done[i - 2000]));
  EXPECT_EQ(sent[0].request.timeout, Duration::seconds(1200));
}

TEST(SharedPrefix, LengthDistributionsDifferByGroupAndPrompt) {
  Config c = ladder();
  Distribution d;
  d.mean = 500;
  d.std_dev = 100;
  c.data.shared_prefix->system_prompt_len = d;
  c.data.shared_prefix->question_distribution = d;
  auto load = make(c);
  const auto sent = drive(*load, fixed_latency(Duration::seconds(1)), 750);
  std::map<std::uint64_t, std::set<std::int64_t>> prefix_lengths;
  std::set<std::int64_t> question_lengths;
  for (const Sent& s : sent) {
    prefix_lengths[s.request.prompt->segments[0].content].insert(
        s.request.prompt->segments[0].length);
    question_lengths.insert(s.request.prompt->segments[1].length);
  }
  for (const auto& [content, lengths] : prefix_lengths)
    EXPECT_EQ(lengths.size(), 1U) << "a group has one system prompt";
  EXPECT_GT(question_lengths.size(), 100U);
}

Config multi_turn() {
  Config c = ladder();
  c.data.shared_prefix->num_groups = 4;
  c.data.shared_prefix->num_prompts_per_group = 5;
  c.data.shared_prefix->system_prompt_len = Distribution::fixed(1000);
  c.data.shared_prefix->question_len = Distribution::fixed(200);
  c.data.shared_prefix->output_len = Distribution::fixed(50);
  c.data.shared_prefix->enable_multi_turn_chat = true;
  c.load.num_workers = 2;
  c.load.worker_max_concurrency = 10;
  c.load.stages = {{.rate = 2, .duration = 50}, {.rate = 2, .duration = 20}};
  return c;
}

TEST(MultiTurn, ContextsGrowByPromptAndAnswer) {
  for (const MultiTurnStyle style :
       {MultiTurnStyle::kRepeatPrompt, MultiTurnStyle::kAppendQuestion}) {
    WorkloadOptions options;
    options.multi_turn = style;
    auto load = make(multi_turn(), options);
    const auto stages = by_stage(drive(*load, fixed_latency(Duration::milliseconds(300))));
    ASSERT_EQ(stages[0].size(), 100U);
    ASSERT_EQ(stages[1].size(), 40U);
    for (const auto& stage : stages) {
      std::map<std::uint64_t, std::vector<Sent>> users;
      for (const Sent& s : stage) users[s.request.session].push_back(s);
      EXPECT_EQ(users.size(), 20U);
      for (const auto& [user, rounds] : users) {
        for (std::size_t r = 0; r < rounds.size(); ++r) {
          const auto n = static_cast<std::int64_t>(r);
          const std::int64_t want = style == MultiTurnStyle::kRepeatPrompt
                                        ? (n + 1) * 1200 + n * 50
                                        : 1000 + (n + 1) * 200 + n * 50;
          EXPECT_EQ(rounds[r].request.prompt->tokens, want);
          if (r == 0) continue;
          // The earlier prompt and its real answer are a prefix of the next prompt.
          const auto& before = rounds[r - 1].request;
          const auto& now = rounds[r].request.prompt->segments;
          const auto& old = before.prompt->segments;
          ASSERT_GT(now.size(), old.size());
          EXPECT_TRUE(std::equal(old.begin(), old.end(), now.begin()));
          EXPECT_EQ(now[old.size()].content, before.output_content);
          EXPECT_EQ(now[old.size()].length, 50);
          EXPECT_GE(rounds[r].sent, rounds[r - 1].done) << "rounds are serialised";
        }
      }
    }
  }
}

TEST(MultiTurn, ARoundWaitsForItsPredecessorAndHoldsAPermit) {
  Config c = multi_turn();
  c.data.shared_prefix->num_groups = 1;
  c.data.shared_prefix->num_prompts_per_group = 2;  // Two users, both on worker 0.
  c.load.worker_max_concurrency = 3;
  c.load.stages = {{.rate = 100, .duration = 1}};
  auto load = make(c);
  const auto sent = drive(*load, fixed_latency(Duration::seconds(5)));
  ASSERT_EQ(sent.size(), 100U);
  // Everything is due within the first second: two users answer every 5 s each, never three.
  for (std::size_t i = 2; i < sent.size(); ++i)
    EXPECT_GE(sent[i].sent, sent[i - 2].done) << "request " << i;
  EXPECT_TRUE(load->finished());
}

TEST(MultiTurn, AFailedRoundLeavesTheContextOfTheRoundBefore) {
  Config c = multi_turn();
  c.load.request_timeout = 1;
  auto load = make(c);
  int n = 0;
  const auto stages = by_stage(drive(*load, [&](const Request&) {
    return Duration::milliseconds(++n <= 20 ? 2000 : 10);  // All first rounds time out.
  }));
  std::map<std::uint64_t, int> rounds;
  for (const Sent& s : stages[0]) {
    if (++rounds[s.request.session] != 2) continue;
    EXPECT_EQ(s.request.prompt->tokens, 1200);
  }
  EXPECT_EQ(rounds.size(), 20U);
}

}  // namespace
}  // namespace routesim::workloads::inference_perf
