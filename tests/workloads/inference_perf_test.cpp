// inference-perf's loads: shared prefixes, the other data and load types, and what is refused.
#include <map>
#include <set>

#include "tests/base/messages.h"
#include "tests/workloads/inference_perf_ladder.h"
#include "tests/workloads/memory_readers.h"

namespace routesim::workloads::inference_perf {
namespace {

// shared_prefix: the ladder, the pool, the stages, and users who keep talking.

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

// The other data and load types, and what is refused.

TEST(Concurrent, KeepsTheLevelAndSpreadsTheStartOverOneSecond) {
  Config c = ladder();
  c.load.type = LoadType::kConcurrent;
  c.load.stages = {{.num_requests = 512, .concurrency_level = 32}};
  auto load = make(c);
  EXPECT_EQ(load->stages()[0].concurrency, 32);
  const auto sent = drive(*load, fixed_latency(Duration::seconds(7)));
  ASSERT_EQ(sent.size(), 512U);
  EXPECT_EQ(sent.back().request.due, SimTime::zero() + Duration::seconds(2));
  for (std::size_t i = 32; i < sent.size(); ++i) EXPECT_EQ(sent[i].sent, sent[i - 32].done);
}

TEST(Random, SharesNothingAndRepeatsLengthsInEveryStage) {
  Config c = ladder();
  c.data.type = DataType::kRandom;
  c.data.shared_prefix.reset();
  Distribution d;
  d.type = DistributionType::kUniform;
  d.min = 100;
  d.max = 1000;
  c.data.input_distribution = d;
  c.data.output_distribution = d;
  c.load.type = LoadType::kConstant;
  c.load.stages = {{.rate = 5, .duration = 20}, {.rate = 5, .duration = 20}};
  auto load = make(c);
  const auto stages = by_stage(drive(*load, fixed_latency(Duration::seconds(1))));
  std::set<std::uint64_t> contents, ids, answers;
  for (std::size_t i = 0; i < 100; ++i) {
    const Request& a = stages[0][i].request;
    const Request& b = stages[1][i].request;
    answers.insert(a.output_content);
    answers.insert(b.output_content);
    EXPECT_EQ(a.prompt->tokens, b.prompt->tokens);
    EXPECT_EQ(a.output_tokens, b.output_tokens);
    contents.insert(a.prompt->segments[0].content);
    contents.insert(b.prompt->segments[0].content);
    ids.insert(a.prompt->id);
    ids.insert(b.prompt->id);
  }
  EXPECT_EQ(contents.size(), 200U);
  EXPECT_EQ(ids.size(), 200U);
  EXPECT_EQ(answers.size(), 200U) << "no answer is the same text twice";
}

TEST(Bimodal, DrawsTwoKindsOfRequestsFromGroupsOfTheirOwn) {
  Config c = ladder();
  c.data.type = DataType::kBimodal;
  c.data.shared_prefix.reset();
  c.data.bimodal = Bimodal{.mode_a_system_prompt_len = 100,
                           .mode_b_system_prompt_len = 0,
                           .mode_a_groups = 2,
                           .mode_a_user_prompt_len = Distribution::fixed(50),
                           .mode_a_output_len = Distribution::fixed(7),
                           .mode_a_ratio = 0.7};
  c.load.type = LoadType::kConstant;
  c.load.stages = {{.rate = 100, .duration = 20}, {.rate = 100, .duration = 20}};
  auto load = make(c);
  const auto stages = by_stage(drive(*load, fixed_latency(Duration::seconds(1))));
  std::map<std::uint64_t, int> system_prompts;
  std::set<std::uint64_t> texts;
  int short_ones = 0;
  for (std::size_t i = 0; i < 2000; ++i) {
    const Request& r = stages[0][i].request;
    const bool is_a = r.max_tokens == 7;
    short_ones += is_a;
    EXPECT_EQ(r.prompt->tokens, is_a ? 150 : 1024);
    EXPECT_EQ(r.max_tokens, is_a ? 7 : 1024);
    ASSERT_EQ(r.prompt->segments.size(), is_a ? 2U : 1U);
    if (is_a) ++system_prompts[r.prompt->segments[0].content];
    texts.insert(r.prompt->segments.back().content);
    EXPECT_EQ(r.prompt->segments.back().content,
              stages[1][i].request.prompt->segments.back().content)
        << "every stage sends the same prompts";
  }
  EXPECT_NEAR(short_ones, 1400, 80);
  ASSERT_EQ(system_prompts.size(), 2U);
  EXPECT_NEAR(system_prompts.begin()->second, short_ones / 2.0, 80);
  EXPECT_EQ(texts.size(), 2000U);
}

TEST(Random, AnswersMayEndByThemselvesUnlessEosIsIgnored) {
  Config c = ladder();
  c.server.ignore_eos = false;
  WorkloadOptions options;
  Distribution natural;
  natural.mean = 400;
  natural.std_dev = 300;
  natural.max = 3000;
  options.natural_answer = natural;
  auto load = make(c, options);
  double sum = 0;
  int capped = 0;
  const auto sent = drive(*load, fixed_latency(Duration::seconds(1)), 750);
  for (const Sent& s : sent) {
    EXPECT_GE(s.request.output_tokens, 1);
    EXPECT_LE(s.request.output_tokens, 1000);
    sum += static_cast<double>(s.request.output_tokens);
    capped += s.request.output_tokens == 1000;
  }
  EXPECT_NEAR(sum / 750, 415, 40);
  EXPECT_GT(capped, 0);
  c.server.ignore_eos = true;
  auto ignoring = make(c, options);
  EXPECT_EQ(drive(*ignoring, fixed_latency(Duration::seconds(1)), 1)[0].request.output_tokens,
            1000);
}

TEST(Chat, TheTemplateSurroundsThePrompt) {
  Config c = ladder();
  c.api.type = ApiType::kChat;
  WorkloadOptions options;
  options.chat_template = {.preamble_tokens = 25, .message_tokens = 4, .reply_tokens = 3};
  auto load = make(c, options);
  const auto sent = drive(*load, fixed_latency(Duration::seconds(1)), 2);
  EXPECT_EQ(sent[0].request.prompt->tokens, 7200 + 32);
  EXPECT_EQ(sent[0].request.prompt->preamble_tokens, 29);
  EXPECT_EQ(sent[0].request.prompt->segments[0], sent[1].request.prompt->segments[0]);
}

TEST(ConversationReplay, TurnsGrowAndSlotsStartAgain) {
  Config c = ladder();
  c.data.type = DataType::kConversationReplay;
  c.data.conversation_replay = ConversationReplay{};
  ConversationReplay& r = *c.data.conversation_replay;
  r.num_conversations = 3;
  r.shared_system_prompt_len = 1000;
  r.dynamic_system_prompt_len = Distribution::fixed(100);
  r.turns_per_conversation = Distribution::fixed(4);
  r.input_tokens_per_turn = Distribution::fixed(50);
  r.output_tokens_per_turn = Distribution::fixed(20);
  r.tool_call_latency_sec = Distribution::fixed(2);
  c.load.type = LoadType::kConcurrent;
  c.load.num_workers = 1;
  c.load.stages = {{.num_requests = 24, .concurrency_level = 3},
                   {.num_requests = 24, .concurrency_level = 3}};
  auto load = make(c);
  const auto stages = by_stage(drive(*load, fixed_latency(Duration::seconds(1))));
  ASSERT_EQ(stages.size(), 2U);
  std::map<std::uint64_t, std::vector<Sent>> sessions;
  for (const Sent& s : stages[0]) sessions[s.request.session].push_back(s);
  EXPECT_EQ(sessions.size(), 6U) << "three slots, two conversations each";
  for (const auto& [session, turns] : sessions) {
    ASSERT_EQ(turns.size(), 4U);
    for (std::size_t t = 0; t < 4; ++t) {
      EXPECT_EQ(turns[t].request.prompt->tokens, 1100 + 50 + static_cast<std::int64_t>(t) * 70);
      EXPECT_EQ(turns[t].request.held_open, Duration::seconds(2)) << "the tool call is in there";
      if (t == 0) continue;
      EXPECT_GE(turns[t].sent, turns[t - 1].done + Duration::seconds(2)) << "tool call";
    }
  }
  WorkloadOptions busy;
  busy.turn_work = Duration::milliseconds(500);
  const auto later = drive(*make(c, busy), fixed_latency(Duration::seconds(1)));
  EXPECT_EQ(later.front().request.held_open, Duration::milliseconds(2'500));
  // The same slot says the same words again, in both stages; the shared prompt is the stage's own.
  EXPECT_EQ(stages[0][0].request.prompt->segments, stages[0][12].request.prompt->segments);
  const auto& a = stages[0][0].request.prompt->segments;
  const auto& b = stages[1][0].request.prompt->segments;
  EXPECT_NE(a[0].content, b[0].content);
  EXPECT_EQ(a[1], b[1]);
}

/// One conversation of ten turns of 512 and 256 tokens after a system prompt.
Config one_conversation(std::int64_t system_prompt, std::int64_t max_model_len) {
  Config c = ladder();
  c.data.type = DataType::kConversationReplay;
  c.data.conversation_replay = ConversationReplay{};
  ConversationReplay& r = *c.data.conversation_replay;
  r.num_conversations = 1;
  r.shared_system_prompt_len = system_prompt;
  r.turns_per_conversation = Distribution::fixed(10);
  r.max_model_len = max_model_len;
  c.load.type = LoadType::kConcurrent;
  c.load.stages = {{.num_requests = 10, .concurrency_level = 1}};
  return c;
}

std::vector<std::int64_t> prompt_lengths(const Config& c) {
  auto load = make(c);
  std::vector<std::int64_t> out;
  for (const Sent& s : drive(*load, fixed_latency(Duration::seconds(1))))
    out.push_back(s.request.prompt->tokens);
  return out;
}

// 2,500 tokens less 256 for the answer and 200 that stay free are 2,044: beside 100 + 512 there is
// room for one turn of 768, not for two.
TEST(ConversationReplay, TheOldestTurnsAreDroppedWhole) {
  Config c = one_conversation(100, 2500);
  EXPECT_EQ(prompt_lengths(c),
            (std::vector<std::int64_t>{612, 1380, 1380, 1380, 1380, 1380, 1380, 1380, 1380, 1380}));
  c.data.conversation_replay->max_model_len = 2604;
  EXPECT_EQ(prompt_lengths(c)[2], 2148) << "exactly the budget";
  auto load = make(c);
  const auto sent = drive(*load, fixed_latency(Duration::seconds(1)));
  const auto& third = sent[2].request.prompt->segments;
  const auto& fourth = sent[3].request.prompt->segments;
  ASSERT_EQ(fourth.size(), 6U);
  EXPECT_EQ(fourth[0], third[0]) << "the system prompt stays";
  EXPECT_EQ(fourth[1], third[3]) << "the first turn and its answer went together";
}

TEST(ConversationReplay, ThenTheSystemPromptIsCutThenTheInput) {
  // 1,500 - 456 is room for 1,044 tokens: the input and 532 of the system prompt.
  const Config c = one_conversation(1000, 1500);
  EXPECT_EQ(prompt_lengths(c), std::vector<std::int64_t>(10, 1044));
  auto load = make(c);
  const auto sent = drive(*load, fixed_latency(Duration::seconds(1)));
  EXPECT_EQ(sent[0].request.prompt->segments[0].length, 532) << "its beginning";
  EXPECT_EQ(sent[9].request.prompt->segments[0], sent[0].request.prompt->segments[0]);
  EXPECT_EQ(prompt_lengths(one_conversation(1000, 700)), std::vector<std::int64_t>(10, 244));
}

// The first conversation's last answer comes while the second, of the same slot, is under way.
TEST(ConversationReplay, ALateAnswerIsNotInTheNextConversation) {
  Config c = one_conversation(100, 225'000);
  c.data.conversation_replay->turns_per_conversation = Distribution::fixed(2);
  c.load.num_workers = 1;
  c.load.stages = {{.num_requests = 4, .concurrency_level = 2}};
  const auto sent = drive(*make(c), [](const Request& r) {
    return Duration::milliseconds(r.id.value() == 1 ? 500 : 1000);
  });
  ASSERT_EQ(sent.size(), 4U);
  EXPECT_EQ(sent[1].request.session, 1U);
  EXPECT_EQ(sent[2].request.session, 2U);
  EXPECT_LT(sent[1].done, sent[2].done);
  for (const std::size_t first : {0U, 2U}) {
    EXPECT_EQ(sent[first].request.prompt->tokens, 100 + 512);
    EXPECT_EQ(sent[first + 1].request.prompt->tokens, 100 + 512 + 256 + 512);
  }
}

TEST(ConversationReplay, AnAnswerThatLeavesNoRoomIsRefusedAsTheToolDoes) {
  Diagnostics diagnostics;
  Config c = one_conversation(100, 456);
  EXPECT_EQ(make_load_generator(c, {}, {}, diagnostics), nullptr);
  EXPECT_NE(messages_of(diagnostics)
                .find("data.conversation_replay.max_model_len: leaves no room for a prompt "
                      "beside an answer of 256 tokens"),
            std::string::npos);
  c.data.conversation_replay->max_model_len = 457;
  EXPECT_EQ(prompt_lengths(c), std::vector<std::int64_t>(10, 1));
}

TEST(TraceReplay, ArrivalsAndLengthsComeFromTheRows) {
  Config c = ladder();
  c.data.type = DataType::kRandom;
  c.data.trace = TraceFile{.file = "t.csv"};
  c.load.type = LoadType::kTraceReplay;
  c.load.stages = {{.rate = 1, .duration = 1}};
  std::vector<TraceRecord> rows(3);
  for (std::size_t i = 0; i < 3; ++i) {
    rows[i].at = Duration::milliseconds(static_cast<std::int64_t>(i) * 250);
    rows[i].input_tokens = 100 + static_cast<std::int64_t>(i);
    rows[i].output_tokens = 10 + static_cast<std::int64_t>(i);
  }
  const LoadInputs inputs{.trace = [rows] { return workloads::testing::reader_of(rows); }};
  auto load = make(c, {}, inputs);
  const auto sent = drive(*load, fixed_latency(Duration::seconds(1)));
  ASSERT_EQ(sent.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(sent[i].sent, SimTime::zero() + Duration::seconds(1) + rows[i].at);
    EXPECT_EQ(sent[i].request.prompt->tokens, rows[i].input_tokens);
    EXPECT_EQ(sent[i].request.output_tokens, rows[i].output_tokens);
  }
  EXPECT_EQ(load->stages()[0].requests, 3);
}

TEST(ShareGpt, StreamsTheFileInOrderWithoutItsFirstRecord) {
  std::vector<Conversation> file;
  for (std::int64_t i = 0; i < 5; ++i) {
    Conversation conversation;
    conversation.messages = {
        {.human = true, .tokens = 100 + i, .text = static_cast<std::uint64_t>(i)},
        {.human = false, .tokens = 10 + i}};
    file.push_back(conversation);
  }
  file[2].messages.resize(1);  // Not usable: no answer.
  Config c = ladder();
  c.data.type = DataType::kShareGpt;
  c.load.stages = {{.rate = 7, .duration = 1}};
  const LoadInputs inputs{.conversations = [file] { return workloads::testing::reader_of(file); }};
  auto load = make(c, {}, inputs);
  std::vector<std::int64_t> prompts;
  for (const Sent& s : drive(*load, fixed_latency(Duration::seconds(1)))) {
    prompts.push_back(s.request.prompt->tokens);
    EXPECT_EQ(s.request.output_tokens, s.request.prompt->tokens - 90);
  }
  EXPECT_EQ(prompts, (std::vector<std::int64_t>{101, 103, 104, 100, 101, 103, 104}));
}

TEST(Errors, EveryProblemIsNamedAtOnce) {
  Config c = ladder();
  c.load.stages = {{.rate = 0.3, .duration = 3}, {.duration = 3, .num_requests = 7}};
  c.data.shared_prefix->question_len = Distribution{.min = 5, .max = 4};
  const auto found = errors_of(c);
  std::set<std::string> paths;
  for (const Diagnostic& d : found) paths.insert(d.path);
  EXPECT_EQ(paths,
            (std::set<std::string>{"load.stages[0].rate", "load.stages[1].num_requests",
                                   "load.stages[1].rate", "data.shared_prefix.question_len.min"}));
}

TEST(Errors, OptionsAreCheckedToo) {
  WorkloadOptions options;
  options.warmup_stages = 4;
  Distribution natural;
  natural.min = 2000;
  options.natural_answer = natural;
  const auto found = errors_of(ladder(), options);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].path, "natural_answer.min");
  EXPECT_EQ(found[1].path, "warmup_stages");
}

TEST(Errors, WhatASimulationCannotDoIsRefused) {
  Config c = ladder();
  c.data.type = DataType::kVisionArena;
  EXPECT_EQ(errors_of(c).at(0).path, "data.type");
  c = ladder();
  c.load.type = LoadType::kTraceSessionReplay;
  EXPECT_EQ(errors_of(c).at(0).path, "load.type");
  c = ladder();
  c.load.stages.clear();
  EXPECT_EQ(errors_of(c).at(0).path, "load.stages");
  c = ladder();
  c.data.shared_prefix.reset();
  EXPECT_EQ(errors_of(c).at(0).path, "data.shared_prefix");
}

}  // namespace
}  // namespace routesim::workloads::inference_perf
