// Recorded sessions, of inference-perf, OpenTelemetry and Weka: from what stands in the files to
// calls and hits.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/simulation.h"
#include "tests/tools/command_fixture.h"
#include "tests/workloads/drive.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/traces/recordings.h"
#include "workloads/inference_perf/inference_perf.h"
#include "workloads/prompts.h"
#include "workloads/traces/text_scan.h"

namespace routesim::workloads {
namespace {

// Graphs of recorded sessions against those that inference-perf makes: data/replay/README.md.

std::string segments_of(const SessionCall& call, bool with_tokens) {
  std::string out;
  std::size_t next = 0;
  for (const PromptPart& part : call.parts) {
    const bool recorded = part.kind == PromptPart::Kind::kRecorded;
    out += recorded ? " r" : part.kind == PromptPart::Kind::kShared ? " s" : " a";
    out += std::to_string(part.messages);
    if (!recorded) out += "@" + std::to_string(part.source);
    for (std::uint32_t m = 0; recorded && with_tokens && m < part.messages; ++m) {
      std::int64_t tokens = 0;
      for (const Segment& s : *call.recorded[next]) tokens += s.length;
      ++next;
      out += (m == 0 ? ":" : ",") + std::to_string(tokens);
    }
  }
  return out;
}

std::string graph_of(const Session& session, bool with_tokens) {
  std::ostringstream out;
  for (std::size_t i = 0; i < session.calls.size(); ++i) {
    const SessionCall& call = session.calls[i];
    std::vector<std::uint32_t> predecessors = call.predecessors;
    std::sort(predecessors.begin(), predecessors.end());
    out << i << " p";
    for (const std::uint32_t p : predecessors) out << " " << p;
    out << " w " << call.wait.ns() / 1'000'000 << " o " << call.output_tokens << " s"
        << segments_of(call, with_tokens) << "\n";
  }
  return out.str();
}

TEST(ReplayGraphs, AreThoseOfTheTool) {
  const auto folder = std::filesystem::path(ROUTESIM_SOURCE_DIR) / "tests/workloads/data/replay";
  int traces = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const bool weka = entry.path().filename().string().starts_with("weka");
    WekaTraceReplay weka_settings;
    OtelTraceReplay otel_settings;
    weka_settings.max_wait_ms = otel_settings.max_wait_ms = 1'000'000'000;
    tools::SessionFiles files =
        weka ? tools::SessionFiles(weka_settings) : tools::SessionFiles(otel_settings);
    std::ifstream in(entry.path(), std::ios::binary);
    Diagnostics d;
    files.read(in, entry.path().string(), false, d);
    for (const Diagnostic& item : d.items()) ADD_FAILURE() << to_string(item);
    const Sessions sessions = files.take();
    ASSERT_EQ(sessions.size(), 1U) << entry.path();
    auto expected = entry.path();
    std::ifstream graph(expected.replace_extension(".graph"), std::ios::binary);
    std::ostringstream text;
    text << graph.rdbuf();
    EXPECT_EQ(graph_of(sessions[0], weka), text.str()) << entry.path();
    ++traces;
  }
  EXPECT_EQ(traces, 8);
}

// OpenTelemetry spans as sessions: which texts are the same tokens, and how many.

Sessions sessions_of(const std::string& text, const OtelTraceReplay& settings, Diagnostics& d,
                     bool lines = false) {
  tools::SessionFiles files(settings);
  std::istringstream in(text);
  files.read(in, "trace.json", lines, d);
  return files.take();
}

Session session_of(const std::string& text, const OtelTraceReplay& settings = {}) {
  Diagnostics d;
  Sessions sessions = sessions_of(text, settings, d);
  for (const Diagnostic& item : d.items()) ADD_FAILURE() << to_string(item);
  EXPECT_EQ(sessions.size(), 1U);
  return sessions.empty() ? Session{} : sessions.front();
}

std::string span(const std::string& id, int start, int end, const std::string& attributes,
                 const std::string& more = "") {
  return R"({"span_id": ")" + id + R"(", "name": "chat m", "start_time": "2026-02-25T10:00:)" +
         (start < 10 ? "0" : "") + std::to_string(start) + R"(Z", "end_time": "2026-02-25T10:00:)" +
         (end < 10 ? "0" : "") + std::to_string(end) + R"(.500000Z", "attributes": {)" +
         attributes + "}" + more + "}";
}

std::string document(const std::string& spans) { return R"({"spans": [)" + spans + "]}"; }

/// 20 and 40 characters; the answer 12.
constexpr const char* kSystem = R"({"role": "system", "content": "You answer in brief."})";
constexpr const char* kFirst =
    R"({"role": "user", "content": "Which of the two is the bigger one of it"})";

std::string first_span(const std::string& usage = "") {
  return span("1", 0, 2,
              std::string(R"("gen_ai.input.messages": [)") + kSystem + ", " + kFirst +
                  R"(], "gen_ai.output.text": "It is second")" + usage);
}
std::string second_span(const std::string& usage = "") {
  return span("2", 4, 5,
              std::string(R"("gen_ai.input.messages": [)") + kSystem + ", " + kFirst +
                  R"(, {"role": "assistant", "content": "It is second"},
                      {"role": "user", "content": "Why?"}], "gen_ai.output.text": "So")" +
                  usage);
}

std::int64_t tokens_of(const MessageTokens& message) { return message->front().length; }

TEST(OtelTrace, WithoutUsageATokenHasFourCharacters) {
  const Session s = session_of(document(first_span() + "," + second_span()));
  ASSERT_EQ(s.calls.size(), 2U);
  EXPECT_EQ(tokens_of(s.calls[0].recorded[0]), 5);
  EXPECT_EQ(tokens_of(s.calls[0].recorded[1]), 10);
  EXPECT_EQ(s.calls[0].output_tokens, 3);
  EXPECT_EQ(s.calls[1].predecessors, (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(s.calls[1].wait, Duration::milliseconds(1500));
  ASSERT_EQ(s.calls[1].parts.size(), 3U);
  EXPECT_EQ(s.calls[1].parts[0].messages, 2U);
  EXPECT_EQ(s.calls[1].parts[1].kind, PromptPart::Kind::kAnswer);
  EXPECT_EQ(tokens_of(s.calls[1].recorded[0]), 1);
  EXPECT_EQ(s.calls[1].output_tokens, 1);
}

TEST(OtelTrace, UsageTellsWhatNewTextsAddTogether) {
  const Session s = session_of(
      document(first_span(R"(, "gen_ai.usage.input_tokens": 30, "gen_ai.usage.output_tokens": 9)") +
               "," + second_span(R"(, "gen_ai.usage.prompt_tokens": 46)")));
  ASSERT_EQ(s.calls.size(), 2U);
  // 20 of 60 characters, and the rest.
  EXPECT_EQ(tokens_of(s.calls[0].recorded[0]), 10);
  EXPECT_EQ(tokens_of(s.calls[0].recorded[1]), 20);
  EXPECT_EQ(s.calls[0].output_tokens, 9);
  // 46 = 30 known + 9 answered + 7 for the question.
  EXPECT_EQ(tokens_of(s.calls[1].recorded[0]), 7);
}

TEST(OtelTrace, UsageThatLeavesOutTheCacheIsNotBelieved) {
  const Session s = session_of(document(first_span(R"(, "gen_ai.usage.input_tokens": 5)")));
  EXPECT_EQ(tokens_of(s.calls[0].recorded[1]), 10) << "5 tokens cannot be 60 characters";
}

TEST(OtelTrace, EqualTextsAreEqualTokensInAllSessions) {
  Diagnostics d;
  const Sessions sessions =
      sessions_of(document(first_span(R"(, "gen_ai.usage.input_tokens": 30)")) + "\n" +
                      document(span("9", 0, 1,
                                    std::string(R"("gen_ai.input.messages": [)") + kSystem +
                                        R"(, {"role": "user", "content": "Other"}], )" +
                                        R"("gen_ai.usage.input_tokens": 17)")),
                  {}, d, true);
  ASSERT_EQ(sessions.size(), 2U);
  const SessionCall& other = sessions[1].calls[0];
  EXPECT_EQ(*other.recorded[0], *sessions[0].calls[0].recorded[0]);
  EXPECT_EQ(tokens_of(other.recorded[1]), 7);
  EXPECT_EQ(other.output_tokens, 1) << "no answer was recorded";
}

TEST(OtelTrace, ToolsStandInFrontAndLetAnswersEnd) {
  const std::string tools =
      R"(, "gen_ai.tool.definitions": "[{\"name\": \"f\"}]", "gen_ai.usage.output_tokens": 20,
         "gen_ai.output.messages": [{"role": "assistant", "parts": [
           {"type": "tool_call", "id": "c", "name": "f", "arguments": {"x": 1}}]}])";
  const std::string text = document(
      span("1", 0, 1, std::string(R"("gen_ai.input.messages": [)") + kSystem + "]" + tools));
  const SessionCall call = session_of(text).calls[0];
  EXPECT_EQ(call.tools.length, 3) << R"([{"name": "f"}] has 15 characters)";
  EXPECT_TRUE(call.stops_by_itself);
  EXPECT_EQ(call.output_tokens, 20);
  EXPECT_EQ(call.max_tokens, 4096);
  OtelTraceReplay settings;
  settings.override_tool_call_max_tokens = false;
  EXPECT_EQ(session_of(text, settings).calls[0].max_tokens, 20);
}

TEST(OtelTrace, RecordedAnswersCanBeRepeatedInstead) {
  OtelTraceReplay settings;
  settings.disable_output_substitution = true;
  const Session s = session_of(
      document(first_span(R"(, "gen_ai.usage.output_tokens": 9)") + "," + second_span()), settings);
  ASSERT_EQ(s.calls[1].parts.size(), 1U);
  ASSERT_EQ(s.calls[1].recorded.size(), 4U);
  EXPECT_EQ(tokens_of(s.calls[1].recorded[2]), 9) << "as long as it was";
  EXPECT_EQ(s.calls[1].predecessors, (std::vector<std::uint32_t>{0})) << "waits all the same";
}

TEST(OtelTrace, OnlyDistinctChatSpansCount) {
  OtelTraceReplay settings;
  const std::string failed = span("3", 8, 9, R"("gen_ai.input.messages": [{"role": "user",
      "content": "x"}])",
                                  R"(, "status": {"code": 2})");
  const std::string tool = R"({"span_id": "4", "name": "tool", "start_time": "2026-02-25T10:00:00Z",
      "attributes": {"gen_ai.input.messages": "no JSON"}})";
  const std::string again = span("7", 0, 2,
                                 std::string(R"("gen_ai.output.text": "It is second",
      "gen_ai.input.messages": [)") + kSystem +
                                     ", " + kFirst + "]");
  const std::string text = document(first_span() + "," + failed + "," + tool + "," + again);
  EXPECT_EQ(session_of(text).calls.size(), 2U);
  settings.include_errors = false;
  EXPECT_EQ(session_of(text, settings).calls.size(), 1U);
}

TEST(OtelTrace, TimesHaveOffsets) {
  const std::string text = document(
      R"({"span_id": "1", "name": "chat m", "start_time": "2026-02-25T12:00:00.25+02:00",
          "end_time": "2026-02-25T12:00:01+02:00",
          "attributes": {"gen_ai.input.messages": [{"role": "user", "content": "a"}]}},
         {"span_id": "2", "name": "chat m", "start_time": "2026-02-25T10:00:03Z",
          "attributes": {"gen_ai.input.messages": [{"role": "user", "content": "b"}]}})");
  EXPECT_EQ(session_of(text).calls[1].wait, Duration::seconds(2));
}

std::string complaint(const std::string& text, bool skip = false) {
  Diagnostics d;
  OtelTraceReplay settings;
  settings.skip_invalid_files = skip;
  sessions_of(text, settings, d);
  return d.items().empty() ? "" : to_string(d.items().front());
}

TEST(OtelReader, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(complaint("{\"spans\": [}"),
            "trace.json:1:12: error: syntax error while parsing value - unexpected '}'; expected "
            "'[', '{', or a literal");
  EXPECT_EQ(complaint(std::string(100, '[') + std::string(100, ']')),
            "trace.json:1:1: error: nested too deeply");
  EXPECT_EQ(complaint("{}"),
            "trace.json:1:0: error: a record without a list `spans`\n"
            "  hint: each record is an object with a list `spans`");
  EXPECT_NE(complaint(R"({"resourceSpans": []})").find("an OTLP export is not read"),
            std::string::npos);
  EXPECT_NE(complaint(R"({"path": "/v1/messages", "request": {}})", true).find("warning"),
            std::string::npos);
  EXPECT_EQ(complaint(R"({"session_id": "s", "spans": []})"),
            "trace.json:1:0: warning: session s is left out: has no chat span with messages");
  EXPECT_EQ(
      complaint(document(span("1", 0, 1, R"("gen_ai.input.messages": "[{]")"))),
      "trace.json:1:0: warning: session is left out: span 1: gen_ai.input.messages is no JSON");
  EXPECT_EQ(complaint(document(span("1", 0, 1, R"("gen_ai.input.messages": [{"content": "a"}])"))),
            "trace.json:1:0: warning: session is left out: span 1: a message without role");
  EXPECT_NE(complaint(document(span("1", 0, 1, R"("gen_ai.input.messages": [{"role": "assistant",
                "tool_calls": [{"name": "f"}]}])")))
                .find("a tool call without id"),
            std::string::npos);
}

// Weka traces: from hashes and times to calls, computed by hand.

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

Session weka_session(const std::string& text, const WekaTraceReplay& settings = {}) {
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
  const Session s = weka_session(kTwoTurns);
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
  EXPECT_EQ(weka_session(kTwoTurns, settings).calls[1].wait, Duration::seconds(2));
  settings.trace_idle_gap_cap_seconds = 0;
  settings.max_wait_ms = 700;
  EXPECT_EQ(weka_session(kTwoTurns, settings).calls[1].wait, Duration::milliseconds(700));
}

TEST(WekaTrace, EveryLongGapIsCut) {
  WekaTraceReplay settings;
  settings.trace_idle_gap_cap_seconds = 10;
  const Session s = weka_session(
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
  const Session s = weka_session(kSubagent);
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
  const Session s = weka_session(
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

std::string weka_complaint(const std::string& text, bool skip = false, bool lines = false) {
  Diagnostics d;
  WekaTraceReplay settings;
  settings.skip_invalid_files = skip;
  sessions_of(text, settings, d, lines);
  return d.items().empty() ? "" : to_string(d.items().front());
}

TEST(WekaReader, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(weka_complaint("[1]"), "trace.json:1:1: error: expected an object");
  EXPECT_EQ(weka_complaint(R"({"block_size": 4, "requests": []})"),
            "trace.json:1:34: error: a trace without `id`");
  EXPECT_EQ(weka_complaint(R"({"id": "a", "block_size": 4})"),
            "trace.json:1:29: error: a trace without `requests`");
  EXPECT_EQ(
      weka_complaint("{\"id\": \"a\", \"requests\": [\n {\"t\": 0, \"type\": \"n\", \"in\": -1}]}"),
      "trace.json:2:32: error: in must be from 0 to 100000000 (got -1)");
  EXPECT_EQ(weka_complaint(R"({"id": "a", "requests": [{"t": 0, "type": "q"}]})"),
            "trace.json:1:47: error: a request whose type is not n, s or subagent");
  EXPECT_EQ(weka_complaint(R"({"id": "a", "requests": [{"type": "n", "in": 1, "out": 1}]})"),
            "trace.json:1:58: error: a request without `t`");
  const std::string good = R"({"id": "a", "block_size": 4, "requests": []})";
  EXPECT_EQ(weka_complaint(good + good), "trace.json:1:45: error: text behind the trace");
  EXPECT_EQ(weka_complaint(good + "\n" + good, false, /*lines=*/true),
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

namespace routesim::tools {
namespace {

// Recorded sessions, run on one server: starts and prefix-cache hits computed by hand.

class ReplayHits : public testing::FolderTest {
 protected:
  /// The requests of a run with this data and these stages, in the order they were sent.
  std::vector<sim::RequestRecord> run(const std::string& data) {
    write("s.yaml",
          "name: s\nworkload: {inference_perf: {api: {type: chat}, load: {type: "
          "trace_session_replay, base_seed: 1, stages: [{concurrent_sessions: 1}]}, data: {" +
              data +
              "}}}\ncluster: {pools: [{accelerator: H100-SXM, model: Qwen3-0.6B, engine: "
              "{block_size: 16}}]}\n");
    Diagnostics d;
    const LoadedScenario loaded =
        load_scenario({.path = path("s.yaml"), .sets = {}, .variants = {}, .seed = {}}, d);
    std::optional<sim::RunPlan> plan;
    if (!d.has_errors()) plan = prepare(loaded.variants.front(), d);
    for (const Diagnostic& item : d.items()) ADD_FAILURE() << to_string(item);
    if (!plan) return {};
    sim::Simulation simulation(
        *plan, {.seed = 1, .keep_requests = true, .check = true, .observers = {}}, d);
    std::vector<sim::RequestRecord> requests = simulation.run().requests;
    std::sort(requests.begin(), requests.end(),
              [](const auto& a, const auto& b) { return a.sent < b.sent; });
    return requests;
  }
};

TEST_F(ReplayHits, OfWekaTracesAreTheBlocksInCommonAndTheAnswers) {
  write("t.json",
        R"({"id": "a", "models": ["m"], "block_size": 16, "tool_tokens": 64, "requests": [
          {"t": 0, "type": "n", "model": "m", "in": 160, "out": 40, "api_time": 2,
           "hash_ids": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]},
          {"t": 5, "type": "n", "model": "m", "in": 260, "out": 20, "api_time": 1,
           "hash_ids": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]}]})");
  const auto r =
      run("type: weka_trace_replay, weka_trace_replay: {trace_files: [t.json], "
          "duplicate_sessions_target: 2}");
  ASSERT_EQ(r.size(), 4U);
  EXPECT_EQ(r[0].prompt_tokens, 160);
  EXPECT_EQ(r[0].cached_tokens, 0);
  EXPECT_EQ(r[1].sent, r[0].end + Duration::seconds(3));
  // 10 blocks, 40 tokens of the answer in place of three, three blocks, four tokens.
  EXPECT_EQ(r[1].prompt_tokens, 160 + 40 + 48 + 4);
  EXPECT_EQ(r[1].cached_tokens, (160 + 39) / 16 * 16) << "the last token was never computed on";
  // The duplicate has its own text before each of two messages, so it finds nothing of the first.
  EXPECT_EQ(r[2].sent, r[1].end);
  EXPECT_EQ(r[2].prompt_tokens, 160 + 2 * 14);
  EXPECT_EQ(r[2].cached_tokens, 0);
  EXPECT_EQ(r[3].prompt_tokens, 188 + 40 + 14 + 52);
  EXPECT_EQ(r[3].cached_tokens, (188 + 39) / 16 * 16);
}

TEST_F(ReplayHits, OfSpansAreTheTextsInCommonAndTheAnswers) {
  const auto span = [](const char* id, const char* start, const char* end,
                       const std::string& messages, int prompt, int answer) {
    return std::string(R"({"span_id": ")") + id +
           R"(", "name": "chat m", "start_time": "2026-01-01T00:00:)" + start +
           R"(Z", "end_time": "2026-01-01T00:00:)" + end +
           R"(Z", "attributes": {"gen_ai.output.text": "answer )" + id +
           R"(", "gen_ai.usage.input_tokens": )" + std::to_string(prompt) +
           R"(, "gen_ai.usage.output_tokens": )" + std::to_string(answer) +
           R"(, "gen_ai.input.messages": [{"role": "system", "content": "You help."})" + messages +
           "]}}";
  };
  const std::string first = R"(, {"role": "user", "content": "A question"})";
  const std::string more =
      R"(, {"role": "assistant", "content": "answer 1"}, {"role": "user", "content": "Another"})";
  write("t.json", R"({"spans": [)" + span("1", "00", "02", first, 64, 32) + "," +
                      span("2", "06", "07", first + more, 112, 8) + "," +
                      span("3", "06", "07", "", 30, 8) + "]}");
  const auto r = run("type: otel_trace_replay, otel_trace_replay: {trace_directory: .}");
  ASSERT_EQ(r.size(), 3U);
  EXPECT_EQ(r[0].prompt_tokens, 64);
  EXPECT_EQ(r[0].cached_tokens, 0);
  for (const std::size_t i : {1U, 2U}) EXPECT_EQ(r[i].sent, r[0].end + Duration::seconds(4));
  const sim::RequestRecord& second = r[1].prompt_tokens == 112 ? r[1] : r[2];
  const sim::RequestRecord& alone = r[1].prompt_tokens == 112 ? r[2] : r[1];
  EXPECT_EQ(second.prompt_tokens, 64 + 32 + 16);
  EXPECT_EQ(second.cached_tokens, (64 + 31) / 16 * 16);
  // The system message: 9 of the first prompt's 19 characters.
  EXPECT_EQ(alone.prompt_tokens, 30);
  EXPECT_EQ(alone.cached_tokens, 16);
}

}  // namespace
}  // namespace routesim::tools
