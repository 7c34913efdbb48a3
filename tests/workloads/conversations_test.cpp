#include "workloads/conversations/conversations.h"

#include <cmath>
#include <map>
#include <set>
#include <sstream>

#include "tests/workloads/drive.h"

namespace routesim::workloads {
namespace {

using testing::drive;
using testing::fixed_latency;
using testing::Sent;

std::unique_ptr<LoadGenerator> make(const ConversationsConfig& c, std::uint64_t seed = 1,
                                    const ConversationOpener& open = {}) {
  Diagnostics found;
  WorkloadOptions options;
  options.seed = seed;
  auto load = make_load_generator(c, options, {.conversations = open}, found);
  for (const Diagnostic& d : found.items()) ADD_FAILURE() << to_string(d);
  return load;
}

TEST(SyntheticThreads, MatchTheTotalsOfThePublishedRuns) {
  // KubeAI, k6 over ShareGPT: 7,341 requests, 4.99 M prompt tokens, 68 k completion tokens.
  const ConversationsConfig c;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::int64_t requests = 0, prompts = 0, answers = 0, longest = 0, most_turns = 0;
    std::vector<std::size_t> turns;
    for (const ChatThread& thread : synthetic_threads(c, seed)) {
      requests += static_cast<std::int64_t>(thread.turns.size());
      turns.push_back(thread.turns.size());
      prompts += prompt_tokens(thread, c.chat_template);
      std::int64_t human = 0;
      for (const ChatThread::Turn& turn : thread.turns) {
        human += turn.tokens;
        answers += turn.answer_tokens;
        EXPECT_GE(turn.tokens, 1);
        EXPECT_LE(turn.answer_tokens, 10);
      }
      EXPECT_GE(thread.turns.size(), 5U) << "the scenario's filter";
      EXPECT_GE(static_cast<double>(human) * kCharactersPerToken, 2500.0);
      longest = std::max(longest, human);
      most_turns = std::max(most_turns, static_cast<std::int64_t>(thread.turns.size()));
    }
    EXPECT_EQ(turns.size(), 1000U);
    EXPECT_EQ(requests, 7341);
    EXPECT_NEAR(static_cast<double>(prompts), 4.99e6, 0.01 * 4.99e6);
    EXPECT_NEAR(static_cast<double>(answers), 68'062, 0.01 * 68'062);
    // Heavy tail: the published iterations last 46 s on average, 41 s in the median, 253 s at
    // most, with requests of 6.3 s.
    std::sort(turns.begin(), turns.end());
    EXPECT_EQ(turns[500], 6U);
    EXPECT_GE(most_turns, 25);
    EXPECT_LE(most_turns, 60);
    EXPECT_LT(longest, 16'384) << "the model's context";
  }
}

TEST(SyntheticThreads, OtherSizesScaleInProportion) {
  ConversationsConfig c;
  c.threads = 250;
  std::int64_t requests = 0, prompts = 0;
  for (const ChatThread& thread : synthetic_threads(c, 3)) {
    requests += static_cast<std::int64_t>(thread.turns.size());
    prompts += prompt_tokens(thread, c.chat_template);
  }
  EXPECT_EQ(requests, 1835);
  EXPECT_NEAR(static_cast<double>(prompts), 4.99e6 / 4, 0.01 * 4.99e6 / 4);
}

TEST(SyntheticThreads, UnreachableTotalsAreSaid) {
  ConversationsConfig c;
  c.threads = 100;
  c.totals.prompt_tokens = 100'000;  // The filter's minimum alone is more.
  Diagnostics found;
  EXPECT_NE(make_load_generator(c, {}, {}, found), nullptr);
  ASSERT_EQ(found.items().size(), 1U);
  EXPECT_EQ(found.items()[0].severity, Severity::kWarning);
  EXPECT_EQ(found.items()[0].path, "totals.prompt_tokens");
}

TEST(PromptTokens, CountHistoriesAndTemplate) {
  ChatThread thread;
  thread.turns = {{.content = 1, .tokens = 100, .answer_tokens = 10},
                  {.content = 2, .tokens = 50, .answer_tokens = 9}};
  // 25+5+100+4 = 134; then 134+10+5+50+4 = 203.
  EXPECT_EQ(prompt_tokens(thread, ConversationsConfig().chat_template), 134 + 203);
}

TEST(Conversations, UsersShareThreadsAndContextsGrow) {
  ConversationsConfig c;
  c.threads = 60;
  c.virtual_users = 8;
  auto load = make(c);
  const auto sent = drive(*load, [](const Request& r) {
    return Duration::milliseconds(100 + static_cast<std::int64_t>(r.id.value() % 7));
  });
  EXPECT_TRUE(load->finished());
  std::map<std::uint64_t, std::vector<Sent>> threads;
  std::map<SimTime, int> changes;
  for (const Sent& s : sent) {
    threads[s.request.session].push_back(s);
    ++changes[s.sent];
    --changes[s.done];
  }
  EXPECT_EQ(threads.size(), 60U) << "every thread runs exactly once";
  int level = 0, most = 0;
  for (const auto& [at, change] : changes) most = std::max(most, level += change);
  EXPECT_EQ(most, 8);
  const auto want = synthetic_threads(c, 1);
  for (const auto& [session, turns] : threads) {
    ASSERT_EQ(turns.size(), want[session - 1].turns.size());
    for (std::size_t k = 1; k < turns.size(); ++k) {
      EXPECT_EQ(turns[k].sent, turns[k - 1].done) << "no think time";
      // The whole earlier prompt, then the real answer, then something new.
      const Request& before = turns[k - 1].request;
      const auto& now = turns[k].request.prompt->segments;
      const auto& old = before.prompt->segments;
      ASSERT_GT(now.size(), old.size());
      EXPECT_TRUE(std::equal(old.begin(), old.end(), now.begin()));
      EXPECT_EQ(now[old.size()], (Segment{before.output_content, 0, before.output_tokens}));
      EXPECT_EQ(turns[k].request.prompt->preamble_tokens, 30);
    }
    std::int64_t tokens = 0;
    for (const Sent& s : turns) tokens += s.request.prompt->tokens;
    EXPECT_EQ(tokens, prompt_tokens(want[session - 1], c.chat_template));
  }
}

TEST(Conversations, APreloadingRunAsksTheSameAndIsNotReported) {
  ConversationsConfig c;
  c.threads = 20;
  c.virtual_users = 4;
  c.preloaded = true;
  auto load = make(c);
  ASSERT_EQ(load->stages().size(), 2U);
  EXPECT_FALSE(load->stages()[0].reported);
  const auto sent = drive(*load, fixed_latency(Duration::milliseconds(100)));
  const std::size_t half = sent.size() / 2;
  ASSERT_EQ(sent.size(), 2 * half);
  for (std::size_t i = 0; i < half; ++i) {
    EXPECT_EQ(sent[i].request.stage, StageId(0));
    EXPECT_EQ(sent[half + i].request.stage, StageId(1));
    EXPECT_EQ(sent[i].request.prompt->segments, sent[half + i].request.prompt->segments);
    EXPECT_EQ(sent[i].request.output_content, sent[half + i].request.output_content);
    EXPECT_NE(sent[i].request.prompt->id, sent[half + i].request.prompt->id);
  }
}

TEST(Conversations, StopsStartingThreadsAndThenCuts) {
  ConversationsConfig c;
  c.threads = 1000;
  c.virtual_users = 4;
  c.max_duration_s = 20;
  c.graceful_stop_s = 3;
  auto load = make(c);
  const auto sent = drive(*load, fixed_latency(Duration::milliseconds(1700)));
  EXPECT_TRUE(load->finished());
  SimTime last;
  std::map<std::uint64_t, SimTime> started;
  bool cut = false;
  for (const Sent& s : sent) {
    last = std::max(last, s.done);
    started.emplace(s.request.session, s.sent);
    cut = cut || s.outcome == Outcome::kTimeout;
  }
  EXPECT_LE(last, SimTime::zero() + Duration::seconds(23));
  EXPECT_TRUE(cut);
  for (const auto& [session, at] : started) EXPECT_LT(at, SimTime::zero() + Duration::seconds(20));
}

TEST(Conversations, AFailureEndsTheThread) {
  ConversationsConfig c;
  c.threads = 2;
  c.virtual_users = 1;
  c.max_duration_s = 0;
  auto load = make(c);
  std::vector<Request> batch;
  load->advance(SimTime::zero(), batch);
  ASSERT_EQ(batch.size(), 1U);
  load->on_completed(batch[0], Outcome::kError, SimTime::from_ns(5));
  EXPECT_EQ(load->next_action(), SimTime::from_ns(5));
  std::vector<Request> next;
  load->advance(SimTime::from_ns(5), next);
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0].session, 2U);
}

TEST(Conversations, AfterATimeoutTheUserGoesOnWithoutAnAnswer) {
  ConversationsConfig c;
  c.threads = 1;
  c.virtual_users = 1;
  auto load = make(c);
  const auto sent =
      drive(*load, [](const Request& r) { return Duration::seconds(r.id.value() == 0 ? 100 : 1); });
  EXPECT_EQ(sent[0].outcome, Outcome::kTimeout);
  EXPECT_EQ(sent[1].sent, SimTime::zero() + Duration::seconds(60)) << "k6's own timeout";
  // Preamble, header, message 1, header, message 2, reply header.
  const auto& segments = sent[1].request.prompt->segments;
  ASSERT_EQ(segments.size(), 6U);
  EXPECT_EQ(segments[2], sent[0].request.prompt->segments[2]);
  EXPECT_EQ(segments[1].content, segments[3].content);
}

std::string sharegpt_file() {
  const std::string big(700, 'x');
  std::ostringstream out;
  const auto conversation = [&](const char* id, const char* first, int humans,
                                const std::string& text) {
    out << R"({"id": ")" << id << R"(", "conversations": [)";
    for (int i = 0; i < humans; ++i)
      out << (i ? "," : "") << R"({"from": ")" << (i == 0 ? first : "human") << R"(", "value": ")"
          << text << i << R"("}, {"from": "gpt", "value": "answer \u00e9\n"})";
    out << "]}";
  };
  out << "[";
  conversation("short", "human", 5, "hi");
  out << ",\n";
  conversation("few", "human", 4, big);
  out << ",\n";
  conversation("bot first", "gpt", 6, big);
  out << ",\n";
  conversation("good", "human", 5, big);
  out << "]\n";
  return out.str();
}

ConversationOpener opener(const std::string& text) {
  return [text] {
    return make_sharegpt_reader(std::make_unique<std::istringstream>(text), "share.json");
  };
}

TEST(ShareGptThreads, KeepWhatTheScenarioKeeps) {
  ConversationsConfig c;
  c.threads = 3;
  const auto reader = opener(sharegpt_file())();
  auto threads = sharegpt_threads(c, 1, *reader);
  ASSERT_EQ(threads.size(), 1U);
  repeat_threads(3, threads);
  ASSERT_EQ(threads.size(), 3U) << "iteration i takes thread i mod kept";
  EXPECT_EQ(threads[0].turns.size(), 5U);
  EXPECT_EQ(threads[0].turns[0].tokens, static_cast<std::int64_t>(std::ceil(701 / 4.3)));
  EXPECT_EQ(threads[1].turns[2].content, threads[0].turns[2].content);
  EXPECT_NE(threads[0].turns[1].content, threads[0].turns[2].content);
}

TEST(ShareGptReader, CountsCharactersNotBytes) {
  const auto reader = opener(sharegpt_file())();
  Conversation conversation;
  ASSERT_TRUE(reader->next(conversation));
  EXPECT_EQ(conversation.messages.size(), 10U);
  EXPECT_TRUE(conversation.messages[0].human);
  EXPECT_FALSE(conversation.messages[1].human);
  EXPECT_EQ(conversation.messages[1].characters, 9) << "answer é and a line end";
  EXPECT_EQ(conversation.messages[1].tokens, 3);
}

TEST(ShareGptReader, WideCharactersAreMoreThanAQuarterOfAToken) {
  const auto tokens = [](const std::string& text) {
    const auto reader =
        opener("[{\"conversations\": [{\"from\": \"human\", \"value\": \"" + text + "\"}]}]")();
    Conversation conversation;
    EXPECT_TRUE(reader->next(conversation));
    return conversation.messages.at(0).tokens;
  };
  std::string chinese, quoted, mixed = "forty-three characters of Latin script here";
  for (int i = 0; i < 10; ++i) chinese += "\u6F22";
  for (int i = 0; i < 43; ++i) quoted += "\u2019";
  EXPECT_EQ(tokens(chinese), 7);
  EXPECT_EQ(tokens(quoted), 10) << "punctuation of Latin text";
  EXPECT_EQ(tokens(mixed), 10);
  EXPECT_EQ(tokens(mixed + chinese), 17);
}

TEST(ShareGptReader, BrokenFilesAreNamedWithLineAndColumn) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{}", "expected an array"},
      {"[{\"id\": 1}]", "without `conversations`"},
      {"[{\"conversations\": [{\"from\": \"human\"}]}]", "without `from` or `value`"},
      {"[{\"conversations\": []},\n]", "expected a value"},
      {"[{\"conversations\": []}", "expected ',' or ']'"},
      {"[{\"conversations\": [{\"from\": \"human\", \"value\": \"a\nb\"}]}]", "control character"},
      {"[{\"conversations\": []}] x", "behind the end"},
      {"[{\"conversations\": [}]", "expected a value"},
      {"[{\"id\": \"\\q\"}]", "unknown escape"},
      {"[{\"id\": 01}]", "leading zero"},
  };
  for (const auto& [text, message] : cases) {
    const auto reader = opener(text)();
    Conversation conversation;
    while (reader->next(conversation)) {
    }
    ASSERT_EQ(reader->diagnostics().items().size(), 1U) << text;
    const Diagnostic& d = reader->diagnostics().items()[0];
    EXPECT_NE(d.message.find(message), std::string::npos) << text << ": " << d.message;
    EXPECT_EQ(d.where.file, "share.json");
    EXPECT_GE(d.where.line, 1);
  }
}

TEST(Conversations, ABrokenFileIsAnError) {
  Diagnostics found;
  EXPECT_EQ(make_load_generator(ConversationsConfig(), {}, {.conversations = opener("[1]")}, found),
            nullptr);
  EXPECT_TRUE(found.has_errors());
  Diagnostics none;
  EXPECT_EQ(make_load_generator(ConversationsConfig(), {}, {.conversations = opener("[]")}, none),
            nullptr);
  EXPECT_NE(none.items().at(0).message.find("passes the scenario's filter"), std::string::npos);
}

TEST(Conversations, MoreThanMemoryHoldsIsRefusedBeforeItIsMade) {
  ConversationsConfig c;
  c.threads = 10'000'000;
  c.totals.requests = 7'000;
  Diagnostics d;
  EXPECT_EQ(make_load_generator(c, WorkloadOptions{}, {}, d), nullptr);
  ASSERT_EQ(d.items().size(), 1U);
  EXPECT_EQ(d.items()[0].path, "threads");
  EXPECT_EQ(d.items()[0].message,
            "the threads have 70000000 requests, and all are kept in memory: at most 10000000");
  // A file's threads are repeated: five messages each.
  c.threads = 2'000'001;
  d = {};
  EXPECT_EQ(
      make_load_generator(c, WorkloadOptions{}, {.conversations = opener(sharegpt_file())}, d),
      nullptr);
  ASSERT_EQ(d.items().size(), 1U);
  EXPECT_EQ(d.items()[0].message,
            "the threads have 10000005 requests, and all are kept in memory: at most 10000000");
}

TEST(PromptReader, EmptyPromptsAndRepeatedKeysAreRefused) {
  const auto said = [](const std::string& line) {
    const auto reader =
        make_prompt_reader(std::make_unique<std::istringstream>(line), "prompts.jsonl");
    Conversation conversation;
    EXPECT_FALSE(reader->next(conversation)) << line;
    return to_string(reader->diagnostics().items().at(0));
  };
  EXPECT_EQ(said(R"({"prompt": ""})"),
            "prompts.jsonl:1:12: error: the prompt is empty, which vLLM refuses");
  EXPECT_EQ(said(R"({"prompt": "a", "prompt": "b"})"),
            "prompts.jsonl:1:27: error: the key `prompt` stands here twice");
  EXPECT_EQ(said(R"({"prompt": "a", "output_tokens": 1, "output_tokens": 2})"),
            "prompts.jsonl:1:54: error: the key `output_tokens` stands here twice");
  EXPECT_EQ(said(R"({"output_tokens": -1, "prompt": "a"})"),
            "prompts.jsonl:1:19: error: output_tokens must not be negative");
}

}  // namespace
}  // namespace routesim::workloads
