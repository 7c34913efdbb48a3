// Weka traces: from hashes and times to calls, computed by hand.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/workloads/drive.h"
#include "tools/ingest/traces/recordings.h"
#include "workloads/inference_perf/inference_perf.h"
#include "workloads/prompts.h"
#include "workloads/traces/text_scan.h"

namespace routesim::workloads {
namespace {

constexpr const char* kTwoTurns =
    R"({"id": "a", "models": ["m"], "block_size": 4, "tool_tokens": 4, "requests": [
      {"t": 0, "type": "n", "model": "m", "in": 10, "out": 5, "hash_ids": [1, 2], "api_time": 2},
      {"t": 5, "type": "s", "model": "m", "in": 22, "out": 3, "hash_ids": [1, 2, 3, 4, 5],
       "api_time": 1, "ttft": 0.5, "think_time": null}]})";

/// The same with a sub-agent, whose two requests overlap; their times count from its own start.
constexpr const char* kSubagent =
    R"({"id": "a", "models": ["m"], "block_size": 4, "tool_tokens": 4, "requests": [
      {"t": 0, "type": "n", "model": "m", "in": 10, "out": 5, "hash_ids": [1, 2], "api_time": 2},
      {"t": 2.5, "type": "subagent", "agent_id": "x", "subagent_type": "Explore", "requests": [
        {"t": 0.5, "type": "n", "model": "m", "in": 8, "out": 4, "hash_ids": [1, 9], "api_time": 1},
        {"t": 0.6, "type": "n", "model": "m", "in": 4, "out": 4, "hash_ids": [8], "api_time": 1}]},
      {"t": 5, "type": "n", "model": "m", "in": 22, "out": 3, "hash_ids": [1, 2, 3, 4, 5],
       "api_time": 1}]})";

Sessions sessions_of(const std::string& text, const WekaTraceReplay& settings, Diagnostics& d,
                     bool lines = false) {
  tools::SessionFiles files(settings);
  std::istringstream in(text);
  files.read(in, "trace.json", lines, d);
  return files.take();
}

Session session_of(const std::string& text, const WekaTraceReplay& settings = {}) {
  Diagnostics d;
  Sessions sessions = sessions_of(text, settings, d);
  for (const Diagnostic& item : d.items()) ADD_FAILURE() << to_string(item);
  EXPECT_EQ(sessions.size(), 1U);
  return sessions.empty() ? Session{} : sessions.front();
}

Segment block(std::uint64_t hash) {
  return {.content = content_id(0, ContentKind::kTraceBlock, hash_bytes("a"), hash),
          .offset = 0,
          .length = 4};
}

TEST(WekaTrace, MessagesAreCutOutOfTheBlocks) {
  const Session s = session_of(kTwoTurns);
  ASSERT_EQ(s.calls.size(), 2U);
  const SessionCall& first = s.calls[0];
  ASSERT_EQ(first.recorded.size(), 2U);
  EXPECT_EQ(*first.recorded[0], (std::vector<Segment>{block(1)})) << "the tools' prompt";
  ASSERT_EQ(first.recorded[1]->size(), 2U);
  EXPECT_EQ(first.recorded[1]->front(), block(2));
  EXPECT_EQ(first.recorded[1]->back().length, 2) << "what no block covers";
  EXPECT_EQ(first.output_tokens, 5);
  EXPECT_TRUE(first.predecessors.empty());
  const SessionCall& second = s.calls[1];
  EXPECT_EQ(second.predecessors, (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(second.wait, Duration::seconds(3));
  // Only the system message is the same in both: the user's lost its tail. Blocks 3 and 4 hold the
  // five tokens of the answer.
  ASSERT_EQ(second.parts.size(), 4U);
  EXPECT_EQ(second.parts[0].kind, PromptPart::Kind::kShared);
  EXPECT_EQ(second.parts[0].messages, 1U);
  EXPECT_EQ(second.parts[1].kind, PromptPart::Kind::kRecorded);
  EXPECT_EQ(second.parts[2].kind, PromptPart::Kind::kAnswer);
  EXPECT_EQ(second.parts[3].kind, PromptPart::Kind::kRecorded);
  ASSERT_EQ(second.recorded.size(), 2U);
  EXPECT_EQ(*second.recorded[0], (std::vector<Segment>{block(2)}));
  EXPECT_EQ(second.recorded[1]->front(), block(5));
  EXPECT_EQ(second.recorded[1]->back().length, 2);
  EXPECT_NE(second.recorded[1]->back().content, first.recorded[1]->back().content);
}

TEST(WekaTrace, GapsAndWaitsAreCapped) {
  WekaTraceReplay settings;
  settings.trace_idle_gap_cap_seconds = 4;
  EXPECT_EQ(session_of(kTwoTurns, settings).calls[1].wait, Duration::seconds(2));
  settings.trace_idle_gap_cap_seconds = 0;
  settings.max_wait_ms = 700;
  EXPECT_EQ(session_of(kTwoTurns, settings).calls[1].wait, Duration::milliseconds(700));
}

TEST(WekaTrace, EveryLongGapIsCut) {
  WekaTraceReplay settings;
  settings.trace_idle_gap_cap_seconds = 10;
  const Session s = session_of(
      R"({"id": "a", "block_size": 4, "requests": [
        {"t": 0, "type": "n", "in": 4, "out": 4, "hash_ids": [1], "api_time": 1},
        {"t": 100, "type": "n", "in": 8, "out": 4, "hash_ids": [1, 2], "api_time": 2},
        {"t": 200, "type": "n", "in": 12, "out": 4, "hash_ids": [1, 2, 3], "api_time": 1}]})",
      settings);
  ASSERT_EQ(s.calls.size(), 3U);
  // Starts at 0, 10 and 20 s.
  EXPECT_EQ(s.calls[1].wait, Duration::seconds(9));
  EXPECT_EQ(s.calls[2].wait, Duration::seconds(8));
}

TEST(WekaTrace, SubagentsFollowWhatHadEndedAndAreFollowedByTheSession) {
  const Session s = session_of(kSubagent);
  ASSERT_EQ(s.calls.size(), 4U);
  // By start: the parent at 0, the sub-agent at 3 and, beside that, at 3.1, the parent at 5.
  EXPECT_EQ(s.calls[1].predecessors, (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(s.calls[1].wait, Duration::seconds(1));
  EXPECT_EQ(s.calls[2].predecessors, (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(s.calls[2].wait, Duration::milliseconds(1100));
  // Its answer made it follow 0, its time the latest that had ended.
  EXPECT_EQ(s.calls[3].predecessors, (std::vector<std::uint32_t>{0, 2}));
  EXPECT_EQ(s.calls[3].wait, Duration::milliseconds(900));
  EXPECT_EQ(*s.calls[1].recorded[0], (std::vector<Segment>{block(1), block(9)}))
      << "a block is the same for the whole session";
}

/// Prompts that go back before the previous one's end.
TEST(WekaTrace, ARewoundConversationKeepsWhatIsCommon) {
  const Session s = session_of(
      R"({"id": "a", "block_size": 4, "requests": [
        {"t": 0, "type": "n", "in": 12, "out": 4, "hash_ids": [1, 2, 3]},
        {"t": 9, "type": "n", "in": 13, "out": 4, "hash_ids": [1, 7, 8]}]})");
  ASSERT_EQ(s.calls.size(), 2U);
  const SessionCall& second = s.calls[1];
  // Block 7 stands where the answer would be, and was the recorded answer.
  ASSERT_EQ(second.parts.size(), 3U);
  EXPECT_EQ(second.parts[0].kind, PromptPart::Kind::kRecorded);
  EXPECT_EQ(second.parts[1].kind, PromptPart::Kind::kAnswer);
  EXPECT_EQ(*second.recorded[0], (std::vector<Segment>{block(1)}));
  EXPECT_EQ(second.recorded[1]->size(), 2U) << "block 8 and a tail of one token";
}

TEST(WekaTrace, ALoadOfItSendsWhenItsWaitsAreOver) {
  Diagnostics d;
  inference_perf::Config config;
  config.api.type = inference_perf::ApiType::kChat;
  config.load.type = inference_perf::LoadType::kTraceSessionReplay;
  config.load.stages = {{.concurrent_sessions = 1}};
  config.data.type = inference_perf::DataType::kWekaTraceReplay;
  config.data.weka_trace_replay.emplace();
  config.data.weka_trace_replay->trace_files = {"trace.json"};
  LoadInputs inputs;
  inputs.sessions =
      std::make_shared<const Sessions>(sessions_of(kSubagent, *config.data.weka_trace_replay, d));
  const auto load = inference_perf::make_load_generator(config, {}, inputs, d);
  ASSERT_NE(load, nullptr);
  EXPECT_EQ(load->stages()[0].requests, 4);
  const auto sent = testing::drive(*load, testing::fixed_latency(Duration::seconds(1)));
  ASSERT_EQ(sent.size(), 4U);
  const auto at = [&sent](std::size_t i) {
    return (sent[i].sent - SimTime::zero()).ns() / 1000000;
  };
  EXPECT_EQ(at(0), 0);
  EXPECT_EQ(at(1), 2000);
  EXPECT_EQ(at(2), 2100);
  EXPECT_EQ(at(3), 4000) << "0.9 s after the sub-agent's second answer";
  EXPECT_EQ(sent[0].request.prompt->tokens, 10);
  // 22 were recorded; the answer has 5 tokens, not two blocks.
  EXPECT_EQ(sent[3].request.prompt->tokens, 22 - 8 + 5);
  EXPECT_EQ(sent[3].request.prompt->segments[2],
            (Segment{.content = sent[0].request.output_content, .offset = 0, .length = 5}));
}

TEST(WekaReader, LinesAreTracesUpToTheLimit) {
  const std::string one = R"({"id": "1", "block_size": 0, "requests": [{"t": 0, "type": "n", )"
                          R"("in": 3, "out": 0}]})";
  const std::string two = R"({"id": "2", "block_size": 4, "requests": []})";
  const std::string three = R"({"id": "3", "block_size": 4, "requests": [{"t": 0, "type": "n", )"
                            R"("in": 3, "out": 2}]})";
  Diagnostics d;
  WekaTraceReplay settings;
  const Sessions all = sessions_of(one + "\n" + two + "\n" + three, settings, d, true);
  ASSERT_EQ(all.size(), 2U) << "a trace without requests is no session";
  EXPECT_EQ(all[0].calls[0].output_tokens, 30) << "the client's own maximum";
  EXPECT_EQ(all[1].name, "3");
  settings.num_dataset_entries = 1;
  EXPECT_EQ(sessions_of(one + "\n" + three, settings, d, true).size(), 1U);
  EXPECT_FALSE(d.has_errors());
}

std::string complaint(const std::string& text, bool skip = false, bool lines = false) {
  Diagnostics d;
  WekaTraceReplay settings;
  settings.skip_invalid_files = skip;
  sessions_of(text, settings, d, lines);
  return d.items().empty() ? "" : to_string(d.items().front());
}

TEST(WekaReader, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(complaint("[1]"), "trace.json:1:1: error: expected an object");
  EXPECT_EQ(complaint(R"({"block_size": 4, "requests": []})"),
            "trace.json:1:34: error: a trace without `id`");
  EXPECT_EQ(complaint(R"({"id": "a", "block_size": 4})"),
            "trace.json:1:29: error: a trace without `requests`");
  EXPECT_EQ(
      complaint("{\"id\": \"a\", \"requests\": [\n {\"t\": 0, \"type\": \"n\", \"in\": -1}]}"),
      "trace.json:2:32: error: in must be from 0 to 100000000 (got -1)");
  EXPECT_EQ(complaint(R"({"id": "a", "requests": [{"t": 0, "type": "q"}]})"),
            "trace.json:1:47: error: a request whose type is not n, s or subagent");
  EXPECT_EQ(complaint(R"({"id": "a", "requests": [{"type": "n", "in": 1, "out": 1}]})"),
            "trace.json:1:58: error: a request without `t`");
  const std::string good = R"({"id": "a", "block_size": 4, "requests": []})";
  EXPECT_EQ(complaint(good + good), "trace.json:1:45: error: text behind the trace");
  EXPECT_EQ(complaint(good + "\n" + good, false, /*lines=*/true),
            "trace.json:2:0: error: a second trace with the id a\n"
            "  hint: each trace is one session, and is read once");
}

TEST(WekaReader, SkipsBrokenLinesWhenTold) {
  const std::string good = R"({"id": "b", "block_size": 4, "requests": [{"t": 0, "type": "n", )"
                           R"("in": 3, "out": 2}]})";
  Diagnostics d;
  WekaTraceReplay settings;
  settings.skip_invalid_files = true;
  const Sessions sessions = sessions_of("{\"id\": [{\n" + good, settings, d, true);
  EXPECT_EQ(sessions.size(), 1U);
  ASSERT_EQ(d.items().size(), 1U);
  EXPECT_EQ(to_string(d.items()[0]), "trace.json:1:8: warning: expected a string: left out");
}

}  // namespace
}  // namespace routesim::workloads
