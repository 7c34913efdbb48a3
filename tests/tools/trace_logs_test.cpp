// Traces that other programs wrote as logs: exports of OpenTelemetry's collector, LiteLLM's and
// vLLM's request logs.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/base/messages.h"
#include "tools/ingest/traces/log_readers.h"

namespace routesim::workloads {
namespace {

struct ReadTrace {
  ReadTrace(TraceFormat format, const std::string& text, MissingLengths missing = {}) {
    TraceReadOptions options;
    options.format = format;
    options.missing = missing;
    const auto reader =
        tools::make_any_trace_reader(std::make_unique<std::istringstream>(text), "log", options);
    for (TraceRecord record; reader->next(record);) rows.push_back(record);
    found = reader->diagnostics();
    said = messages_of(found);
  }
  /// `time_ns input output` of each row.
  std::vector<std::string> lines() const {
    std::vector<std::string> out;
    for (const TraceRecord& r : rows)
      out.push_back(std::to_string(r.at.ns()) + " " + std::to_string(r.input_tokens) + " " +
                    std::to_string(r.output_tokens));
    return out;
  }
  /// `line:column name fate` of each key.
  std::vector<std::string> keys() const {
    std::vector<std::string> out;
    for (const KeyUse& key : found.keys())
      out.push_back(std::to_string(key.where.line) + ":" + std::to_string(key.where.column) + " " +
                    key.path + " " + std::string(fate_name(key.fate)));
    return out;
  }

  std::vector<TraceRecord> rows;
  Diagnostics found;
  std::string said;
};

using Lines = std::vector<std::string>;

// --- OTLP ---

std::string attribute(const std::string& key, const std::string& value) {
  return R"({"key":")" + key + R"(","value":{)" + value + "}}";
}
std::string tokens(const std::string& key, int n) {
  return attribute("gen_ai.usage." + key, R"("intValue":")" + std::to_string(n) + "\"");
}
/// A span as the collector writes it: 64-bit numbers are texts.
std::string span(const std::string& trace, const std::string& id, const std::string& parent,
                 const std::string& start_ns, const std::string& attributes,
                 const std::string& status = "{}") {
  return R"({"traceId":")" + trace + R"(","spanId":")" + id + R"(","parentSpanId":")" + parent +
         R"(","name":"llm_request","kind":2,"startTimeUnixNano":")" + start_ns +
         R"(","endTimeUnixNano":"1700000009000000000","attributes":[)" + attributes +
         R"(],"status":)" + status + "}";
}
std::string export_of(const std::string& spans) {
  return R"({"resourceSpans":[{"resource":{"attributes":[)" +
         attribute("service.name", R"("stringValue":"vllm")") +
         R"(]},"scopeSpans":[{"scope":{"name":"vllm.llm_engine"},"spans":[)" + spans + "]}]}]}\n";
}
std::string usage(int prompt, int completion) {
  return tokens("prompt_tokens", prompt) + "," + tokens("completion_tokens", completion);
}

TEST(OtlpTrace, OneRequestPerSpanInTheOrderOfTheirStarts) {
  const ReadTrace trace(
      TraceFormat::kOtlp,
      export_of(span("a1", "01", "", "1700000001500000000",
                     attribute("gen_ai.latency.e2e", R"("doubleValue":1.25)") + "," +
                         attribute("gen_ai.request.max_tokens", R"("intValue":"64")") + "," +
                         usage(1000, 40)) +
                "," + span("a2", "02", "", "1700000001250000001", usage(7, 1))) +
          export_of(span("a3", "03", "", "1700000001000000000",
                         tokens("input_tokens", 30) + "," + tokens("output_tokens", 4) + "," +
                             tokens("prompt_tokens", 31))));
  EXPECT_EQ(trace.said, "");
  EXPECT_EQ(trace.lines(), (Lines{"0 30 4", "250000001 7 1", "500000000 1000 40"}));
  for (const TraceRecord& row : trace.rows) EXPECT_EQ(row.session, 0U) << "one call of a trace";
  EXPECT_EQ(trace.rows[0].line, 2);
  EXPECT_EQ(trace.rows[2].line, 1);
  Lines names;
  for (const std::string& key : trace.keys()) names.push_back(key.substr(key.find(' ') + 1));
  EXPECT_EQ(names, (Lines{"gen_ai.latency.e2e no effect", "gen_ai.request.max_tokens no effect",
                          "gen_ai.usage.prompt_tokens used", "gen_ai.usage.completion_tokens used",
                          "gen_ai.usage.input_tokens used", "gen_ai.usage.output_tokens used"}));
  EXPECT_EQ(trace.keys()[4].substr(0, 2), "2:");
}

TEST(OtlpTrace, TheOutermostSpanOfARequestCounts) {
  const std::string gateway = attribute("llm.token_count.prompt", R"("intValue":"500")") + "," +
                              attribute("llm.token_count.completion", R"("intValue":9)");
  const std::string error = R"({"code":2,"message":"aborted"})";
  const ReadTrace trace(
      TraceFormat::kOtlp,
      // The server's span ends first; between it and the gateway's is one of the HTTP client.
      export_of(span("t", "server", "http", "1700000000200000000", usage(501, 9)) + "," +
                span("t", "http", "gateway", "1700000000100000000", "") + "," +
                span("t", "gateway", "", "1700000000000000000", gateway)) +
          export_of(span("u", "failed", "", "1700000000000000000", usage(5, 1), error) + "," +
                    span("v", "embedding", "", "1700000000000000000", tokens("input_tokens", 5)) +
                    "," +
                    span("w", "agent", "", "1700000000000000000",
                         attribute("gen_ai.operation.name", R"("stringValue":"invoke_agent")") +
                             "," + usage(900, 90))));
  EXPECT_EQ(trace.lines(), (Lines{"0 500 9"}));
  EXPECT_EQ(trace.said,
            "log: warning: spans left out: 1 of failed requests, 1 inside the span of the same "
            "request, 1 without answer tokens, 1 of other operations, such as agents, tools and "
            "embeddings\n");
}

TEST(OtlpTrace, CallsOfOneTraceAreTurnsUnlessTheyNameTheirConversation) {
  const std::string chat = attribute("gen_ai.operation.name", R"("stringValue":"chat")") + ",";
  const std::string named =
      attribute("gen_ai.conversation.id", R"("stringValue":"c-7")") + "," + chat;
  const ReadTrace trace(
      TraceFormat::kOtlp,
      export_of(span("t", "agent", "", "1700000000000000000",
                     attribute("gen_ai.operation.name", R"("stringValue":"invoke_agent")")) +
                "," + span("t", "1", "agent", "1700000001000000000", chat + usage(10, 2)) + "," +
                span("t", "2", "agent", "1700000002000000000", chat + usage(20, 2)) + "," +
                span("x", "3", "", "1700000003000000000", named + usage(5, 2)) + "," +
                span("y", "4", "", "1700000004000000000", named + usage(9, 2))));
  ASSERT_EQ(trace.rows.size(), 4U);
  EXPECT_NE(trace.rows[0].session, 0U);
  EXPECT_EQ(trace.rows[1].session, trace.rows[0].session);
  EXPECT_NE(trace.rows[2].session, trace.rows[0].session);
  EXPECT_EQ(trace.rows[3].session, trace.rows[2].session);
}

TEST(OtlpTrace, MessagesSayWhatIsShared) {
  const auto messages = [](const std::string& question) {
    return attribute(
        "gen_ai.input.messages",
        R"("stringValue":"[{\"role\":\"system\",\"parts\":[{\"type\":\"text\",)"
        R"(\"content\":\")" +
            std::string(400, 's') +
            R"(\"}]},{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\")" + question +
            R"(\"}]}]")");
  };
  const ReadTrace trace(
      TraceFormat::kOtlp,
      export_of(span("a", "1", "", "1700000001000000000", messages("one") + "," + usage(130, 2)) +
                "," +
                span("b", "2", "", "1700000002000000000", messages("two") + "," + usage(130, 2))));
  ASSERT_EQ(trace.rows.size(), 2U);
  const auto &first = trace.rows[0].hash_ids, &second = trace.rows[1].hash_ids;
  // 3 of the role, then 400 s and 32 characters of JSON around them at 4.3 per token: 103.5 tokens.
  ASSERT_GE(first.size(), 7U);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(first[i], second[i]) << i;
  EXPECT_NE(first.back(), second.back());
}

TEST(OtlpTrace, ErrorsHaveAPlace) {
  const auto said = [](const std::string& text) {
    return ReadTrace(TraceFormat::kOtlp, text).said;
  };
  EXPECT_EQ(said("\n{\"resourceSpans\": [}\n").substr(0, 14), "log:2:20: erro");
  const std::string bad = export_of(
      span("a", "1", "", "1", tokens("prompt_tokens", -4) + "," + tokens("completion_tokens", 1)));
  EXPECT_EQ(said(bad).substr(0, said(bad).find('\n')),
            "log:1:" + std::to_string(bad.find("\"-4\"") + 1) +
                ": error: tokens must be a whole number between 0 and 100,000,000 (got \"-4\")");
  EXPECT_NE(said(export_of(span("a", "1", "", "soon", usage(1, 1))))
                .find("`startTimeUnixNano` is missing or no time"),
            std::string::npos);
  EXPECT_NE(said(export_of("")).find("log: error: no span of a request has token counts"),
            std::string::npos);
  EXPECT_EQ(ReadTrace(TraceFormat::kOtlp, export_of("")).rows.size(), 0U);
}

// --- LiteLLM ---

ReadTrace read_litellm(const std::string& text) { return {TraceFormat::kLiteLlm, text}; }

/// LiteLLM's published example (tests/logging_callback_tests/gcs_pub_sub_body), less its prices.
std::string litellm(const std::string& start, const std::string& more) {
  return R"({"id":"chatcmpl-2299b6a2","call_type":"acompletion","stream":true,"startTime":")" +
         start + R"(","prompt_tokens":10,"completion_tokens":20,"response":{"choices":[]},)" +
         R"("session_id":"1234567890","metadata":"{\"a\": 1}")" + more + "}\n";
}

TEST(LiteLlmLog, PayloadsInAnyOrder) {
  const std::string text = R"([{"role":"user","content":"Hello, world!"}])";
  const auto rows =
      read_litellm(litellm("2025-01-24 09:20:47.847371",
                           R"(,"status":"success","cache_hit":null,"messages":)" + text) +
                   litellm("2025-01-24 09:20:46.347371", R"(,"cache_hit":"None","messages":"{}")") +
                   litellm("2025-01-24 09:20:48", R"(,"status":"failure")") +
                   litellm("2025-01-24 09:20:48", R"(,"cache_hit":"True")") +
                   litellm("2025-01-24 09:20:48", R"(,"cache_hit":true)") +
                   litellm("2025-01-24 09:20:49",
                           R"(,"messages":[{"role":"user","content":"redacted-by-litellm"}])"))
          .rows;
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].line, 2) << "the earlier start";
  EXPECT_EQ(rows[0].at, Duration::zero());
  EXPECT_EQ(rows[1].at, Duration::milliseconds(1500));
  EXPECT_EQ(rows[1].input_tokens, 10);
  EXPECT_EQ(rows[1].output_tokens, 20);
  EXPECT_NE(rows[1].session, 0U);
  EXPECT_TRUE(rows[0].hash_ids.empty()) << "the prompt was not logged";
  EXPECT_EQ(rows[1].hash_ids.size(), 1U);
  EXPECT_EQ(rows[1].text_tokens, 12) << "5 + 13/4.3 + 3";
  EXPECT_TRUE(rows[2].hash_ids.empty()) << "the prompt was redacted";
}

TEST(LiteLlmLog, PromptsMayStandInTexts) {
  const std::string quoted = R"("[{\"role\":\"user\",\"content\":\"Hello, world!\"}]")";
  const std::string body =
      R"("{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"Hello, world!\"}]}")";
  const auto ids = [](const std::string& more) {
    return read_litellm(litellm("2025-01-24 09:20:46", more)).rows[0].hash_ids;
  };
  const auto plain = ids(R"(,"messages":[{"role":"user","content":"Hello, world!"}])");
  ASSERT_EQ(plain.size(), 1U);
  EXPECT_EQ(ids(",\"messages\":" + quoted), plain);
  EXPECT_EQ(ids(R"(,"messages":"{}","proxy_server_request":)" + body), plain);
  EXPECT_NE(ids(R"(,"messages":"Hello, world!")"), plain) << "a text without a template";
}

TEST(LiteLlmLog, ErrorsAreNamed) {
  const ReadTrace broken = read_litellm(litellm("2025-01-24 09:20:46", "") + litellm("soon", ""));
  ASSERT_EQ(broken.found.items().size(), 1U);
  const Diagnostic& d = broken.found.items()[0];
  EXPECT_EQ(d.message, "expected a number or a date and time (got \"soon\")");
  EXPECT_EQ(d.where.line, 2);
  EXPECT_EQ(read_litellm(R"({"startTime":1,"prompt_tokens":3})").said,
            "log:1:1: error: `completion_tokens` is missing\n");
}

// --- vLLM ---

constexpr const char* kParams =
    "params: SamplingParams(n=1, presence_penalty=0.0, frequency_penalty=0.0, "
    "repetition_penalty=1.0, temperature=0.7, top_p=0.95, top_k=0, min_p=0.0, seed=None, stop=[], "
    "stop_token_ids=[], bad_words=[], include_stop_str_in_output=False, ignore_eos=False, "
    "max_tokens=100, min_tokens=0, logprobs=None, extra_args=None)";

std::string at(const std::string& time) { return "(APIServer pid=90458) INFO " + time + " "; }

/// The line of vLLM 0.16 in vLLM's issue 34503.
std::string received(const std::string& time, const std::string& id,
                     const std::string& lora = "None") {
  return at(time) + "[logger.py:49] Received request " + id + ": " + kParams +
         ", lora_request: " + lora + ".\n";
}
std::string details(const std::string& time, const std::string& id, const std::string& prompt) {
  return "(APIServer pid=90458) DEBUG " + time + " [logger.py:41] Request " + id +
         " details: prompt: " + prompt + ", prompt_embeds shape: None.\n";
}
std::string generated(const std::string& time, const std::string& id, const std::string& rest) {
  return at(time) + "[logger.py:65] Generated response " + id + ": output: " + rest + "\n";
}

TEST(VllmLog, PairsPromptsAnswersAndRequests) {
  const ReadTrace log(
      TraceFormat::kVllmLog,
      "(APIServer pid=90458) INFO:     Started server process [90458]\n" +
          details("02-13 11:33:33", "chatcmpl-1",
                  R"('<|im_start|>user\nIt\'s "x"', prompt_token_ids: [151644, 872, 198, 7])") +
          received("02-13 11:33:33", "chatcmpl-1") + at("02-13 11:33:33") +
          "[async_llm.py:382] Added request chatcmpl-1-a8a65d16.\n" +
          details("02-13 11:33:35", "chatcmpl-2", "'Hello', prompt_token_ids: [151644, 872]") +
          received("02-13 11:33:35", "chatcmpl-2") + at("02-13 11:33:39") +
          "[loggers.py:257] Engine 000: Avg prompt throughput: 0.8\n" +
          generated("02-13 11:33:36", "chatcmpl-2",
                    "'Hi.', output_token_ids: [13, 14, 15], finish_reason: stop") +
          generated("02-13 11:33:37", "chatcmpl-1",
                    "'a', output_token_ids: None, finish_reason: length"));
  EXPECT_EQ(log.said,
            "log: warning: 1 texts have no token ids: their lengths are estimated, 4.3 "
            "characters to a token\n");
  EXPECT_EQ(log.lines(), (Lines{"0 4 1", "2000000000 2 3"}));
  EXPECT_EQ(log.rows[0].hash_ids.size(), 1U);
  EXPECT_EQ(log.rows[0].line, 3);
  EXPECT_EQ(log.keys(), (Lines{"2:59 prompt_token_ids used", "3:58 params no effect",
                               "8:58 output_token_ids used", "9:58 output used"}));
}

TEST(VllmLog, StreamsAddUp) {
  const std::string prompt = "'p', prompt_token_ids: [1]";
  const auto stream = [](const std::string& id, const std::string& kind, const std::string& rest) {
    return at("02-13 11:33:37") + "[logger.py:65] Generated response " + id + " (streaming " +
           kind + "): output: " + rest + "\n";
  };
  std::string text;
  for (const char* id : {"chatcmpl-a", "chatcmpl-b", "chatcmpl-c"})
    text += details("02-13 11:33:33", id, prompt) + received("02-13 11:33:33", id);
  const ReadTrace log(
      TraceFormat::kVllmLog,
      text + stream("chatcmpl-a", "delta", "'x', output_token_ids: [5, 6], finish_reason: None") +
          stream("chatcmpl-a", "delta", "'y', output_token_ids: [7], finish_reason: stop") +
          stream("chatcmpl-a", "complete",
                 "'xy', output_token_ids: None, finish_reason: streaming_complete") +
          // Deltas may be switched off; tool calls leave a count.
          stream("chatcmpl-b", "complete",
                 "'<streaming_complete: 31 tokens>', output_token_ids: None, finish_reason: x") +
          stream("chatcmpl-c", "complete",
                 "'" + std::string(43, 'z') + "', output_token_ids: None, finish_reason: x"));
  EXPECT_EQ(log.lines(), (Lines{"0 1 3", "0 1 31", "0 1 10"})) << log.said;
  EXPECT_NE(log.said.find("1 texts have no token ids"), std::string::npos);
}

TEST(VllmLog, OldLinesHoldThePrompt) {
  const ReadTrace log(
      TraceFormat::kVllmLog,
      "INFO 10-01 18:43:27 logger.py:36] Received request cmpl-c52d-0: prompt: 'How to make "
      "pizza, params: x', params: SamplingParams(n=1, stop=[], max_tokens=16), prompt_token_ids: "
      "[4438, 311, 1304, 23317], lora_request: None, prompt_adapter_request: None.\n" +
          generated("10-01 18:43:29", "cmpl-c52d", "'a', output_token_ids: [1], finish_reason: x"));
  EXPECT_EQ(log.lines(), (Lines{"0 4 1"})) << log.said;
}

TEST(VllmLog, WhatIsMissingIsSaidOnce) {
  const std::string text =
      received("02-13 11:33:33", "chatcmpl-1") +
      received("02-13 11:33:35", "chatcmpl-2", "LoRARequest(lora_name='sql', lora_int_id=1)") +
      at("02-13 11:33:36") +
      "[logger.py:49] Received request embd-1: params: PoolingParams(task="
      "'embed'), lora_request: None.\n";
  EXPECT_EQ(ReadTrace(TraceFormat::kVllmLog, text).said,
            "log:1:1: error: the prompt of chatcmpl-1 is not in the log, or cut\n"
            "  hint: record with VLLM_LOGGING_LEVEL=DEBUG and without --max-log-len, or say how "
            "long such prompts are (missing.input_tokens)\n");
  EXPECT_EQ(ReadTrace(TraceFormat::kVllmLog, text, {.input_tokens = 300}).said,
            "log:1:1: error: the answer of chatcmpl-1 is not in the log, or cut (max_tokens was "
            "100)\n  hint: record with --enable-log-outputs and without --max-log-len, or say how "
            "long such answers are (missing.output_tokens)\n");
  const ReadTrace log(TraceFormat::kVllmLog, text, {.input_tokens = 300, .output_tokens = 20});
  EXPECT_EQ(log.lines(), (Lines{"0 300 20", "2000000000 300 20"}));
  EXPECT_TRUE(log.rows[0].hash_ids.empty());
  EXPECT_EQ(log.said,
            "log: warning: 2 of 2 prompts are not in the log: each is new and has 300 tokens\n"
            "log: warning: 2 of 2 answers are not in the log: each has 20 tokens\n"
            "log: warning: 1 requests without answers, such as embeddings, are left out\n"
            "log: warning: 1 requests ask for LoRA adapters, which are not read\n");
}

TEST(VllmLog, ACutPromptIsMissing) {
  // --max-log-len 20 leaves 20 characters and 20 token ids.
  std::string ids = "[1";
  for (int i = 2; i <= 20; ++i) ids += ", " + std::to_string(i);
  const ReadTrace log(TraceFormat::kVllmLog,
                      details("02-13 11:33:33", "chatcmpl-1",
                              "'" + std::string(20, 'x') + "', prompt_token_ids: " + ids + "]") +
                          received("02-13 11:33:33", "chatcmpl-1"));
  EXPECT_NE(log.said.find("the prompt of chatcmpl-1 is not in the log, or cut"), std::string::npos)
      << log.said;
}

TEST(VllmLog, TimesHaveNoYear) {
  const auto times = [](const Lines& stamps) {
    std::string text;
    int n = 0;
    for (const std::string& stamp : stamps)
      text += received(stamp, "chatcmpl-" + std::to_string(n++));
    std::vector<double> seconds;
    for (const TraceRecord& row : ReadTrace(TraceFormat::kVllmLog, text, {1, 1}).rows)
      seconds.push_back(row.at.to_seconds());
    return seconds;
  };
  using Seconds = std::vector<double>;
  EXPECT_EQ(times({"12-31 23:59:58", "01-01 00:00:01"}), (Seconds{0, 3}));
  EXPECT_EQ(times({"02-28 23:59:58", "03-01 00:00:01"}), (Seconds{0, 3})) << "no leap year";
  EXPECT_EQ(times({"02-28 23:59:58", "02-29 00:00:01", "03-01 00:00:01"}), (Seconds{0, 3, 86403}));
  EXPECT_EQ(times({"2026-02-13 11:33:33,250", "2026-02-13 11:33:34,500"}), (Seconds{0, 1.25}));
  EXPECT_EQ(times({"02-13 11:33:35", "02-13 11:33:34"}), (Seconds{0, 1})) << "several API servers";
  const ReadTrace stamped(TraceFormat::kVllmLog,
                          "2026-02-13T11:33:33.5Z " + received("02-13 11:33:33", "chatcmpl-1") +
                              "2026-02-13T11:33:34.125Z " +
                              received("02-13 11:33:34", "chatcmpl-2"),
                          {1, 1});
  EXPECT_EQ(stamped.lines(), (Lines{"0 1 1", "625000000 1 1"}));
}

TEST(VllmLog, ErrorsHaveAPlace) {
  EXPECT_EQ(ReadTrace(TraceFormat::kVllmLog, "INFO nothing here\n").said,
            "log:1:1: error: no line has a request\n"
            "  hint: start vllm serve with --enable-log-requests --enable-log-outputs\n");
  EXPECT_EQ(ReadTrace(TraceFormat::kVllmLog, "x\n[logger.py:49] Received request a: params: b\n")
                .said.substr(0, 44),
            "log:2:16: error: the line has no time\n  hint");
}

}  // namespace
}  // namespace routesim::workloads
