#include "workloads/multi_round_qa/multi_round_qa.h"

#include <map>

#include "tests/base/messages.h"
#include "tests/workloads/drive.h"
#include "tests/workloads/memory_readers.h"
#include "workloads/conversations/conversation_data.h"

namespace routesim::workloads {
namespace {

using testing::drive;
using testing::fixed_latency;
using testing::seconds;
using testing::Sent;

std::vector<Sent> played(const MultiRoundQaConfig& config, Duration latency) {
  Diagnostics found;
  const auto load = make_load_generator(config, {}, {}, found);
  EXPECT_TRUE(found.items().empty());
  const auto all = drive(*load, fixed_latency(latency));
  EXPECT_TRUE(load->finished());
  return all;
}

/// Requests of the runs, without the warm-up.
std::vector<Sent> asked(const MultiRoundQaConfig& config, Duration latency) {
  std::vector<Sent> out;
  for (const Sent& s : played(config, latency))
    if (s.request.session != 0) out.push_back(s);
  return out;
}

// 2 users, 3 rounds, 1 request/s: a user asks every 2 s, is there for 4 s, and one joins every 2 s.
// At the start user 1 is through (offset 4 s), user 2 has missed two of three questions (offset
// 2 s) and asked just now. User 3 joins and asks at once. Steps are every 0.1 s, and a gap must
// be exceeded: 2.1 s.
MultiRoundQaConfig small() {
  MultiRoundQaConfig config;
  config.num_users = 2;
  config.num_rounds = 3;
  config.qps = 1;
  config.shared_system_prompt = 100;
  config.user_history_prompt = 50;
  config.answer_len = 10;
  config.time = 4.2;
  return config;
}

TEST(MultiRoundQa, UsersComeAskAndGo) {
  std::vector<std::pair<std::int64_t, std::uint64_t>> sent;  // Tenths of a second, user.
  const auto all = asked(small(), Duration::milliseconds(500));
  for (const Sent& s : all)
    sent.emplace_back(std::llround(10 * (seconds(s.sent) - 0.5)), s.request.session);
  EXPECT_EQ(sent, (std::vector<std::pair<std::int64_t, std::uint64_t>>{
                      {0, 3}, {21, 2}, {21, 3}, {21, 4}, {42, 3}, {42, 4}, {42, 5}}));
}

TEST(MultiRoundQa, ChatsGrowByTheRealAnswers) {
  const auto all = asked(small(), Duration::milliseconds(500));
  std::map<std::uint64_t, std::vector<const Request*>> of;
  for (const Sent& s : all) of[s.request.session].push_back(&s.request);
  ASSERT_EQ(of[3].size(), 3U);
  // 8 + 100 + 4 shared, 8 + 50 + 1 of the user, 19 of the question; then 10 + 19 a round.
  EXPECT_EQ(of[3][0]->prompt->tokens, 190);
  EXPECT_EQ(of[3][1]->prompt->tokens, 219);
  EXPECT_EQ(of[3][2]->prompt->tokens, 248);
  EXPECT_EQ(of[3][1]->prompt->segments[3], (Segment{of[3][0]->output_content, 0, 10}));
  const Segment system = of[3][0]->prompt->segments[0];
  EXPECT_EQ(system.length, 112);
  EXPECT_EQ(of[2][0]->prompt->segments[0], system);
  EXPECT_NE(of[2][0]->prompt->segments[1], of[3][0]->prompt->segments[1]);
  EXPECT_NE(of[2][0]->prompt->segments[2], of[3][0]->prompt->segments[2])
      << "user 2 asks question 3 first";
}

TEST(MultiRoundQa, EveryRoundBeginsWithTheTemplatesStart) {
  Diagnostics found;
  WorkloadOptions options;
  options.chat_template = {.preamble_tokens = 25, .message_tokens = 5, .reply_tokens = 4};
  const auto load = make_load_generator(small(), options, {}, found);
  std::map<std::uint64_t, std::vector<std::int64_t>> tokens;
  for (const Sent& s : drive(*load, fixed_latency(Duration::milliseconds(500)))) {
    EXPECT_EQ(s.request.prompt->preamble_tokens, 30);
    tokens[s.request.session].push_back(s.request.prompt->tokens);
  }
  // 190 tokens and the template's 34; then the answer's 10, a header, 19 of a question, a reply.
  EXPECT_EQ(tokens[3], (std::vector<std::int64_t>{224, 262, 300}));
}

// A chat of 8 messages begins with a question, one of 7 is taken to begin with an answer; one of 6
// is too short for 3 rounds. User n has the chat of number n, from 0, of those that are long
// enough.
TEST(MultiRoundQa, ShareGptUsersAskTheirOwnQuestions) {
  std::vector<Conversation> chats;
  for (std::uint64_t c = 0; c < 20; ++c) {
    Conversation& chat = chats.emplace_back();
    const std::size_t messages = c % 3 == 0 ? 8 : c % 3 == 1 ? 6 : 7;
    for (std::size_t m = 0; m < messages; ++m)
      chat.messages.push_back({.human = true,
                               .tokens = static_cast<std::int64_t>(100 * (c + 1) + m),
                               .text = 1000 * c + m});
  }
  MultiRoundQaConfig config = small();
  config.sharegpt = "ShareGPT.json";
  config.answer_len = 404;
  Diagnostics found;
  LoadInputs inputs;
  inputs.conversations = [&] { return workloads::testing::reader_of(chats); };
  const auto load = make_load_generator(config, {}, inputs, found);
  ASSERT_NE(load, nullptr);
  std::map<std::uint64_t, std::vector<Request>> of;
  for (const Sent& s : drive(*load, fixed_latency(Duration::milliseconds(500))))
    of[s.request.session].push_back(s.request);
  // Long enough are 0, 2, 3, 5, …: user 3 has chat 5, of 7 messages, 600 tokens and more; user 2
  // has chat 3, of 8 messages, and asks the third question first.
  ASSERT_EQ(of[3].size(), 3U);
  EXPECT_EQ(of[3][0].prompt->tokens, 112 + 59 + 601);
  EXPECT_EQ(of[3][0].max_tokens, 404);
  EXPECT_EQ(of[3][1].prompt->tokens, 112 + 59 + 601 + 404 + 603);
  EXPECT_EQ(of[2][0].prompt->tokens, 112 + 59 + 404);
  EXPECT_EQ(of[2][0].max_tokens, 404) << "its answer had 405";
  chats.resize(5);
  EXPECT_EQ(make_load_generator(config, {}, inputs, found), nullptr);
  EXPECT_NE(found.items().at(0).message.find("3 of its chats have more than 6 messages"),
            std::string::npos)
      << found.items().at(0).message;
}

TEST(MultiRoundQa, AUserWaitsForTheAnswer) {
  std::map<std::uint64_t, std::vector<double>> sent;
  for (const Sent& s : asked(small(), Duration::milliseconds(3000)))
    sent[s.request.session].push_back(seconds(s.sent) - 3);
  EXPECT_EQ(sent[3].size(), 2U);
  EXPECT_DOUBLE_EQ(sent[3][1], 3) << "the answer comes at 3.0 s, before the step";
}

TEST(MultiRoundQa, LengthsOfAnswersThatCannotBeAreRefused) {
  WorkloadOptions options;
  Distribution& natural = options.natural_answer.emplace();
  natural.type = DistributionType::kUniform;
  natural.min = 90;
  natural.max = 3;
  Diagnostics found;
  EXPECT_EQ(make_load_generator(small(), options, {}, found), nullptr);
  EXPECT_EQ(messages_of(found),
            "<input>: error: natural_answer.min: must not exceed max (got min 90, max 3)\n");
}

TEST(MultiRoundQa, RunsFollowEachOtherAndUsersReturn) {
  MultiRoundQaConfig config = small();
  config.runs = {{}, {.qps = 2}};
  Diagnostics found;
  const auto load = make_load_generator(config, {}, {}, found);
  ASSERT_EQ(load->stages().size(), 4U);
  EXPECT_FALSE(load->stages()[0].reported);
  EXPECT_EQ(load->stages()[1].name, "1");
  EXPECT_DOUBLE_EQ(load->stages()[3].requested_rate, 2);
  const auto all = drive(*load, fixed_latency(Duration::milliseconds(500)));
  std::map<std::uint32_t, std::vector<const Sent*>> of;
  for (const Sent& s : all) of[s.request.stage.value()].push_back(&s);
  EXPECT_EQ(of[0].size(), 10U);
  EXPECT_EQ(of[0][0]->request.prompt->tokens, 117);
  EXPECT_EQ(of[0][0]->request.output_tokens, 100);
  EXPECT_EQ(of[0][0]->request.prompt->segments[0], of[0][9]->request.prompt->segments[0]);
  // Warm-up 0.5 s, the run until 4.7 s, 10 s of pause.
  EXPECT_DOUBLE_EQ(seconds(of[2][0]->sent), 14.7);
  const auto first_of_3 = [&](std::uint32_t stage) {
    for (const Sent* s : of[stage])
      if (s->request.session == 3) return s->request;
    return Request{};
  };
  EXPECT_EQ(first_of_3(1).prompt->segments, first_of_3(3).prompt->segments);
  EXPECT_EQ(first_of_3(1).output_content, first_of_3(3).output_content);
}

TEST(MultiRoundQa, TheRateIsAboveTheOneAskedFor) {
  // run.sh: 320 users of 10 rounds at 2.1 requests/s. Users join every 320 / 2.1 * 9 / 320 = 4.29
  // s, 4.3 s by the clock of the steps, and each asks 10 times: 10 / 4.3 = 2.326, not 2.1.
  MultiRoundQaConfig config;
  config.num_users = 320;
  config.num_rounds = 10;
  config.qps = 2.1;
  config.time = 2000;
  const auto n = static_cast<double>(asked(config, Duration::seconds(1)).size());
  EXPECT_NEAR(n / 2000, 10 / 4.3, 0.01);
}

}  // namespace
}  // namespace routesim::workloads
