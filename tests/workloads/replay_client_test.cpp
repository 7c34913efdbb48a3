// Recorded sessions as a load: when which call is sent, and what its prompt is made of.
#include "workloads/sessions/replay_client.h"

#include <gtest/gtest.h>

#include "tests/workloads/drive.h"
#include "workloads/inference_perf/inference_perf.h"
#include "workloads/sessions/python_random.h"
#include "workloads/sessions/recording.h"

namespace routesim::workloads {
namespace {

using testing::drive;
using testing::fixed_latency;
using testing::Sent;

MessageTokens tokens(std::uint64_t content, std::int64_t length) {
  return std::make_shared<const std::vector<Segment>>(
      std::vector<Segment>{{.content = content, .offset = 0, .length = length}});
}

/// A call of one message that waits for `predecessors`.
SessionCall call(std::vector<std::uint32_t> predecessors = {}, double wait_s = 0) {
  SessionCall c;
  c.predecessors = std::move(predecessors);
  c.wait = Duration::from_seconds(wait_s);
  c.parts = {{.kind = PromptPart::Kind::kRecorded, .source = 0, .messages = 1}};
  c.recorded = {tokens(7, 16)};
  c.output_tokens = c.max_tokens = 5;
  return c;
}

/// A chain of `calls` without pauses.
Session chain(std::uint32_t calls) {
  Session session = {.name = "chain", .calls = {}};
  for (std::uint32_t i = 0; i < calls; ++i)
    session.calls.push_back(i == 0 ? call() : call({i - 1}));
  return session;
}

struct Replayed {
  std::vector<Session> sessions;
  std::vector<ReplayStage> stages;
  ReplayClientOptions client{.permits = {100}};
  std::vector<ReplaySlot> slots{};  ///< Empty: each session once.

  std::unique_ptr<ReplayClient> make() const {
    std::vector<ReplaySlot> order = slots;
    for (std::uint32_t i = 0; slots.empty() && i < sessions.size(); ++i)
      order.push_back({.session = i});
    return std::make_unique<ReplayClient>(std::make_shared<const Sessions>(sessions), order, stages,
                                          client, WorkloadOptions{});
  }
  std::vector<Sent> run(double latency_s = 1) const {
    const auto load = make();
    std::vector<Sent> sent = drive(*load, fixed_latency(Duration::from_seconds(latency_s)));
    EXPECT_TRUE(load->finished());
    return sent;
  }
};

std::vector<double> times(const std::vector<Sent>& sent) {
  std::vector<double> out;
  for (const Sent& s : sent) out.push_back(static_cast<double>(s.sent.ns()) / 1e9);
  return out;
}

TEST(ReplayClient, KeepsSoManySessionsGoing) {
  Replayed s{.sessions = {chain(1), chain(2), chain(1)},
             .stages = {{.sessions = 3, .concurrent = 2}}};
  // The third starts when the first is over; the chain's second call follows its first.
  EXPECT_EQ(times(s.run(10)), (std::vector<double>{0, 0, 10, 10}));
  s.stages[0].concurrent = 1;
  EXPECT_EQ(times(s.run(10)), (std::vector<double>{0, 10, 20, 30}));
  s.stages[0].concurrent = 0;
  EXPECT_EQ(times(s.run(10)), (std::vector<double>{0, 0, 0, 10}));
}

TEST(ReplayClient, StartsSessionsAtTheirRate) {
  Replayed s{.sessions = {chain(1), chain(1), chain(1), chain(1)},
             .stages = {{.sessions = 4, .concurrent = 0, .session_rate = 0.5}}};
  EXPECT_EQ(times(s.run(1)), (std::vector<double>{0, 2, 4, 6}));
  // Two at once, five seconds each: a free place is taken at once when the rate is behind.
  s.stages[0].concurrent = 2;
  EXPECT_EQ(times(s.run(5)), (std::vector<double>{0, 2, 5, 7}));
}

TEST(ReplayClient, ARateThatIsBehindIsNotMadeUpFor) {
  const Replayed s{.sessions = std::vector<Session>(6, chain(1)),
                   .stages = {{.sessions = 6, .concurrent = 3, .session_rate = 0.5}}};
  const auto load = s.make();
  // The first three begin at 0, 2 and 4 s, and all end at 30 s. One that is late begins at once,
  // and so does the next; the one after it keeps its distance.
  const std::vector<Sent> sent = drive(*load, [](const Request& r) {
    return Duration::seconds(r.session <= 3 ? 32 - 2 * static_cast<std::int64_t>(r.session) : 5);
  });
  EXPECT_EQ(times(sent), (std::vector<double>{0, 2, 4, 30, 30, 32}));
}

TEST(ReplayClient, WaitsForAllPredecessorsAndThenItsPause) {
  Session fan = {.name = "fan", .calls = {call(), call({0}, 1), call({0}, 3), call({1, 2}, 2)}};
  const Replayed s{.sessions = {fan}, .stages = {{.sessions = 1, .concurrent = 1}}};
  // 0 ends at 1; 1 at 2 to 3; 2 at 4 to 5; the last 2 s after that.
  EXPECT_EQ(times(s.run(1)), (std::vector<double>{0, 2, 4, 7}));
}

TEST(ReplayClient, CallsThatWaitHoldTheWorkersPermits) {
  Replayed s{.sessions = {chain(2), chain(1)}, .stages = {{.sessions = 2, .concurrent = 0}}};
  s.client.permits = {1};
  EXPECT_EQ(times(s.run(1)), (std::vector<double>{0, 1, 2}));
  s.client.permits = {2};
  EXPECT_EQ(times(s.run(1)), (std::vector<double>{0, 1, 1}));
  s.client.permits = {3};
  EXPECT_EQ(times(s.run(1)), (std::vector<double>{0, 0, 1}));
}

TEST(ReplayClient, AStageIsCutAtTheFirstOfItsDurationAndItsTimeout) {
  inference_perf::Config c;
  c.api.type = inference_perf::ApiType::kChat;
  c.load.type = inference_perf::LoadType::kTraceSessionReplay;
  c.data.type = inference_perf::DataType::kWekaTraceReplay;
  c.data.weka_trace_replay.emplace().trace_files = {"trace.json"};
  // The second call would leave at 13 s.
  const Session session = {.name = "a", .calls = {call(), call({0}, 12)}};
  const auto sent = [&](std::int64_t duration, double timeout) {
    c.load.stages = {{.duration = duration, .concurrent_sessions = 1, .timeout = timeout}};
    const LoadInputs inputs = {.sessions = std::make_shared<const Sessions>(Sessions{session})};
    Diagnostics d;
    const auto load = inference_perf::make_load_generator(c, {}, inputs, d);
    return drive(*load, fixed_latency(Duration::seconds(1))).size();
  };
  EXPECT_EQ(sent(20, 20), 2U);
  EXPECT_EQ(sent(10, 20), 1U);
  EXPECT_EQ(sent(20, 10), 1U);
}

TEST(ReplayClient, ASessionThatFailedMakesRoomAndItsLaterCallsAreNotSent) {
  Replayed s{.sessions = {chain(3), chain(1)}, .stages = {{.sessions = 2, .concurrent = 1}}};
  s.client.request_timeout = Duration::seconds(2);
  const auto load = s.make();
  const std::vector<Sent> sent = drive(*load, [](const Request& r) {
    return Duration::seconds(r.session == 1 && r.id.value() == 1 ? 9 : 1);
  });
  // The second call of the first session is given up after 2 s; the third is never sent.
  EXPECT_EQ(times(sent), (std::vector<double>{0, 1, 3}));
  EXPECT_EQ(sent[1].outcome, Outcome::kTimeout);
  EXPECT_EQ(sent[2].request.session, 2U);
  EXPECT_TRUE(load->finished());
}

TEST(ReplayClient, ACallGivesUpWaitingForItsPredecessors) {
  Replayed s{.sessions = {chain(2)}, .stages = {{.sessions = 1, .concurrent = 1}}};
  s.client.predecessor_wait = Duration::seconds(4);
  EXPECT_EQ(s.run(4.5).size(), 1U);
  EXPECT_EQ(s.run(3.5).size(), 2U);
}

TEST(ReplayClient, StagesTakeTheNextSessionsAndEndASecondLater) {
  Replayed s{
      .sessions = {chain(1), chain(1), chain(1)},
      .stages = {
          {.sessions = 1, .concurrent = 1}, {.sessions = 0}, {.sessions = 2, .concurrent = 0}}};
  s.client.interval = Duration::seconds(10);
  const std::vector<Sent> sent = s.run(1.5);
  // Over at 1.5, seen at 2.5, slept until 12.5; an empty stage costs the interval only.
  EXPECT_EQ(times(sent), (std::vector<double>{0, 22.5, 22.5}));
  EXPECT_EQ(sent[2].request.stage, StageId(2));
  EXPECT_EQ(sent[2].request.session, 3U);
}

TEST(ReplayClient, AtItsLimitAStageSendsNoMore) {
  Replayed s{.sessions = {chain(5), chain(1)},
             .stages = {{.sessions = 1,
                         .concurrent = 1,
                         .limit = Duration::seconds(5),
                         .grace = Duration::seconds(20)},
                        {.sessions = 1, .concurrent = 1}}};
  s.client.interval = Duration::seconds(1);
  s.client.request_timeout = Duration::seconds(300);
  const std::vector<Sent> sent = s.run(3);
  // Sent at 0 and 3; the second ends at 6, one second after the limit, and is counted.
  EXPECT_EQ(times(sent), (std::vector<double>{0, 3, 7}));
  EXPECT_EQ(sent[0].request.timeout, Duration::seconds(25));
  EXPECT_EQ(sent[1].request.timeout, Duration::seconds(22));
  EXPECT_EQ(sent[1].outcome, Outcome::kSuccess);
}

TEST(ReplayClient, PromptsHoldWhatWasSentAndAnswered) {
  SessionCall first = call();
  first.parts[0].messages = 2;
  first.recorded = {tokens(1, 10), tokens(2, 20)};
  SessionCall second = call({0});
  second.parts = {{.kind = PromptPart::Kind::kShared, .source = 0, .messages = 2},
                  {.kind = PromptPart::Kind::kAnswer, .source = 0, .messages = 1},
                  {.kind = PromptPart::Kind::kRecorded, .source = 0, .messages = 1}};
  second.recorded = {tokens(3, 30)};
  // Begins as the second, but for its last two messages.
  SessionCall third = call({1});
  third.parts = {{.kind = PromptPart::Kind::kShared, .source = 1, .messages = 2},
                 {.kind = PromptPart::Kind::kRecorded, .source = 0, .messages = 1}};
  third.recorded = {tokens(4, 40)};
  Replayed s{.sessions = {{.name = "x", .calls = {first, second, third}}},
             .stages = {{.sessions = 1, .concurrent = 1}}};
  const std::vector<Sent> sent = s.run();
  ASSERT_EQ(sent.size(), 3U);
  const auto& segments = sent[1].request.prompt->segments;
  ASSERT_EQ(segments.size(), 4U);
  EXPECT_EQ(segments[1], (Segment{.content = 2, .offset = 0, .length = 20}));
  EXPECT_EQ(segments[2],
            (Segment{.content = sent[0].request.output_content, .offset = 0, .length = 5}));
  EXPECT_EQ(segments[3], (Segment{.content = 3, .offset = 0, .length = 30}));
  EXPECT_EQ(sent[2].request.prompt->tokens, 10 + 20 + 40);
  EXPECT_EQ(sent[2].request.prompt->segments[2].content, 4U);
}

TEST(ReplayClient, ADuplicateSharesNothingWithItsOriginal) {
  Replayed s{
      .sessions = {chain(1)},
      .stages = {{.sessions = 3, .concurrent = 0}},
      .slots = {
          {.session = 0}, {.session = 0, .duplicate = true}, {.session = 0, .duplicate = true}}};
  const std::vector<Sent> sent = s.run();
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(sent[0].request.prompt->segments.size(), 1U);
  ASSERT_EQ(sent[1].request.prompt->segments.size(), 2U);
  EXPECT_NE(sent[1].request.prompt->segments[0].content,
            sent[2].request.prompt->segments[0].content);
  EXPECT_EQ(sent[1].request.prompt->segments[1], sent[0].request.prompt->segments[0]);
}

TEST(CallGraph, ACallFollowsTheOneThatEndedAsItStarted) {
  const auto second = [](std::int64_t start_ms) {
    RecordedCall first, next;
    first.end_ms = 100;
    next.start_ms = start_ms;
    next.end_ms = 200;
    return build_call_graph({first, next}, TextUnit::kCharacters)[1];
  };
  EXPECT_TRUE(second(99).predecessors.empty());
  EXPECT_EQ(second(100).predecessors, (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(second(100).wait_ms, 0);
  EXPECT_EQ(second(130).wait_ms, 30);
}

TEST(SessionMaker, AnAnswerOfNoTokensHasTheClientsDefault) {
  const auto answer = [](std::optional<std::int64_t> output_tokens) {
    RecordedCall call;
    call.output_tokens = output_tokens;
    SessionMaker maker(RecordingRules{});
    maker.add({.name = "a", .unit = TextUnit::kCharacters, .calls = {call}});
    return maker.take().at(0).calls.at(0).output_tokens;
  };
  EXPECT_EQ(answer(0), 30);
  EXPECT_EQ(answer(7), 7);
  EXPECT_EQ(answer(std::nullopt), 1) << "no answer was recorded";
}

TEST(PythonRandom, ShufflesAsPythonDoes) {
  const auto shuffled = [](std::int64_t seed) {
    std::vector<int> items = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    PythonRandom(seed).shuffle(items);
    return items;
  };
  // python3 -c 'import random; x = list(range(10)); random.seed(42); random.shuffle(x); print(x)'
  EXPECT_EQ(shuffled(42), (std::vector<int>{7, 3, 2, 8, 5, 6, 9, 4, 0, 1}));
  EXPECT_EQ(shuffled(0), (std::vector<int>{7, 8, 1, 5, 3, 4, 2, 0, 9, 6}));
  EXPECT_EQ(shuffled(1753000000123), (std::vector<int>{7, 1, 6, 0, 5, 9, 2, 4, 3, 8}));
  EXPECT_EQ(shuffled(-7), (std::vector<int>{8, 3, 1, 4, 7, 0, 9, 6, 2, 5}));
  std::vector<int> many(1000);
  for (int i = 0; i < 1000; ++i) many[static_cast<std::size_t>(i)] = i;
  PythonRandom(42).shuffle(many);  // Goes through the state more than once.
  EXPECT_EQ(many[0], 776);
  EXPECT_EQ(many[999], 654);
}

}  // namespace
}  // namespace routesim::workloads
