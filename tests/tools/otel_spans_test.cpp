// OpenTelemetry spans as sessions: which texts are the same tokens, and how many.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/workloads/drive.h"
#include "tools/ingest/traces/recordings.h"

namespace routesim::workloads {
namespace {

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

}  // namespace
}  // namespace routesim::workloads
