#include "workloads/traces/trace_replay.h"

#include <map>
#include <set>
#include <sstream>

#include "tests/workloads/drive.h"
#include "tests/workloads/memory_readers.h"
#include "workloads/traces/text_blocks.h"
#include "workloads/traces/text_scan.h"

namespace routesim::workloads {
namespace {

using testing::drive;
using testing::fixed_latency;
using testing::Sent;

TraceOpener opener(const std::string& text, const TraceReadOptions& options = {}) {
  return [text, options] {
    return make_trace_reader(std::make_unique<std::istringstream>(text), "trace", options);
  };
}

TraceReadOptions format(TraceFormat f) {
  TraceReadOptions options;
  options.format = f;
  return options;
}

std::vector<TraceRecord> read(const std::string& text, const TraceReadOptions& options) {
  const auto reader = opener(text, options)();
  std::vector<TraceRecord> out;
  TraceRecord record;
  while (reader->next(record)) out.push_back(record);
  for (const Diagnostic& d : reader->diagnostics().items()) ADD_FAILURE() << to_string(d);
  return out;
}

Diagnostic error_of(const std::string& text, const TraceReadOptions& options) {
  const auto reader = opener(text, options)();
  TraceRecord record;
  while (reader->next(record)) {
  }
  EXPECT_EQ(reader->diagnostics().items().size(), 1U) << text;
  EXPECT_FALSE(reader->next(record)) << "an error ends the reading";
  return reader->diagnostics().items().empty() ? Diagnostic{} : reader->diagnostics().items()[0];
}

/// Rows in the manner of the Mooncake traces, shortened ids.
std::string mooncake() {
  const auto ids = [](int first, int n) {
    std::string out = "[";
    for (int i = 0; i < n; ++i) out += (i ? ", " : "") + std::to_string(i < 12 ? i : first + i);
    return out + "]";
  };
  return "{\"timestamp\": 0, \"input_length\": 6755, \"output_length\": 500, \"hash_ids\": " +
         ids(100, 14) +
         "}\n"
         "{\"timestamp\": 0, \"input_length\": 7319, \"output_length\": 490, \"hash_ids\": " +
         ids(200, 15) +
         "}\n\n"
         "{\"timestamp\": 3052, \"input_length\": 2287, \"output_length\": 316, \"hash_ids\": "
         "[900, 901, 902, 903, 904]}\n";
}

TEST(TraceReader, Mooncake) {
  const auto records = read(mooncake(), format(TraceFormat::kMooncake));
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[2].at, Duration::milliseconds(3052));
  EXPECT_EQ(records[0].input_tokens, 6755);
  EXPECT_EQ(records[1].hash_ids.size(), 15U);
  EXPECT_EQ(records[2].line, 4) << "blank lines count";
}

TEST(TraceReader, MooncakeBeginsWithItsFirstRequest) {
  const std::string text =
      "{\"timestamp\": 1712345678000, \"input_length\": 9, \"output_length\": 2}\n"
      "{\"timestamp\": 1712345679500, \"input_length\": 9, \"output_length\": 2}\n";
  TraceReadOptions options = format(TraceFormat::kMooncake);
  EXPECT_EQ(read(text, options)[0].at, Duration::zero());
  EXPECT_EQ(read(text, options)[1].at, Duration::milliseconds(1500));
  options.from_first = false;  // vLLM's timed_trace.
  EXPECT_EQ(read(text, options)[0].at, Duration::milliseconds(1712345678000));
}

TEST(TraceReader, Azure2023And2024) {
  const std::string csv =
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
      "2023-11-16 18:15:46.6805900,374,44\r\n"
      "2023-11-16 18:15:50.9951690,396,109\r\n";
  auto records = read(csv, format(TraceFormat::kAzure));
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].at, Duration::zero());
  EXPECT_EQ(records[1].at.ns(), 4'314'579'000);
  EXPECT_EQ(records[1].output_tokens, 109);
  // inference-perf keeps two digits: .68 and .99.
  TraceReadOptions coarse = format(TraceFormat::kAzure);
  coarse.truncate_to_10ms = true;
  EXPECT_EQ(read(csv, coarse)[1].at, Duration::milliseconds(4310));
  // 2024 has a time zone, and some files have no header.
  records = read("2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 00:00:01+00:00,2399,6\n",
                 format(TraceFormat::kAzure));
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].at.ns(), 990'070'000);
}

TEST(TraceReader, BurstGptSkipsOtherModelsAndFailures) {
  const std::string csv =
      "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "5,ChatGPT,472,18,490,Conversation log\n"
      "45,GPT-4,1087,230,1317,API log\n"
      "118,GPT-4,417,0,417,API log\n"
      "120.5,GPT-4,10,20,30,\"a \"\"quoted\"\", field\"\n";
  EXPECT_EQ(read(csv, format(TraceFormat::kBurstGpt)).size(), 3U);
  TraceReadOptions only = format(TraceFormat::kBurstGpt);
  only.model = "GPT-4";
  const auto records = read(csv, only);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].at, Duration::milliseconds(75'500));
  only.skip_failed = false;
  EXPECT_EQ(read(csv, only).size(), 3U);
}

TEST(TraceReader, VidurAndGenericFiles) {
  auto records = read("arrived_at,num_prefill_tokens,num_decode_tokens\n1.5,10,20\n2,30,40\n",
                      format(TraceFormat::kVidur));
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].at, Duration::zero());
  EXPECT_EQ(records[1].at, Duration::milliseconds(500)) << "from the first record";
  TraceReadOptions mine = format(TraceFormat::kCsv);
  mine.columns = {.timestamp = "t_ms",
                  .input = "in",
                  .output = "out",
                  .session = "user",
                  .timestamp_unit_s = 1e-3};
  records = read("user,out,in,t_ms\nann,1,2,1000\nbob,3,4,1250\nann,5,6,1250\n", mine);
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[1].at, Duration::milliseconds(250)) << "from the first record";
  EXPECT_EQ(records[1].input_tokens, 4);
  EXPECT_EQ(records[0].session, records[2].session);
  EXPECT_NE(records[0].session, records[1].session);
  mine.format = TraceFormat::kJsonl;
  records = read("{\"in\": 2, \"out\": 1, \"t_ms\": 7, \"user\": \"ann\", \"more\": [{}]}\n", mine);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_NE(records[0].session, 0U);
}

TEST(TraceReader, BrokenLinesAreNamed) {
  const std::string good = "{\"timestamp\": 5, \"input_length\": 1, \"output_length\": 1}\n";
  const std::vector<std::pair<std::string, std::string>> jsonl = {
      {"{\"timestamp\": 6, \"input_length\": 1}", "`output_length` is missing"},
      {"{\"timestamp\": 6, \"output_length\": 1}", "`input_length` is missing"},
      {"{\"input_length\": 1, \"output_length\": 1}", "`timestamp` is missing"},
      {"{\"timestamp\": 6, \"input_length\": 1.5, \"output_length\": 1}", "whole number"},
      {"{\"timestamp\": 6, \"input_length\": -1, \"output_length\": 1}", "between 0 and"},
      {"{\"timestamp\": 1, \"input_length\": 1, \"output_length\": 1}", "goes back"},
      {"{\"timestamp\": -1, \"input_length\": 1, \"output_length\": 1}", "negative"},
      {"{\"timestamp\": 1e300, \"input_length\": 1, \"output_length\": 1}", "too large"},
      {"{\"timestamp\": nan, \"input_length\": 1, \"output_length\": 1}", "expected a number"},
      {"{\"timestamp\": 6, \"input_length\": 1, \"output_length\": 1} 7", "behind the object"},
      {"{\"timestamp\": 6, \"input_length\": 1, \"output_length\": 1", "expected ',' or '}'"},
      {"[]", "expected an object"},
      {"{\"timestamp\": 6, \"hash_ids\": [1,], \"output_length\": 1}", "expected a value"},
  };
  for (const auto& [line, message] : jsonl) {
    const Diagnostic d = error_of(good + line + "\n", format(TraceFormat::kMooncake));
    EXPECT_NE(d.message.find(message), std::string::npos) << line << ": " << d.message;
    EXPECT_EQ(d.where.line, 2) << line;
    EXPECT_GE(d.where.column, 1);
  }
  const std::string header = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  const std::vector<std::pair<std::string, std::string>> csv = {
      {"yesterday,1,2", "not a date and time"},
      {"2023-02-29 00:00:00,1,2", "not a date and time"},
      {"2023-11-16 18:15:46,x,2", "not a whole number"},
      {"2023-11-16 18:15:46,1", "expected 3 fields (got 2)"},
      {"2023-11-16 18:15:46,1,\"2", "quote"},
      {"2023-11-16 18:15:46,1,999999999999", "between 0 and"},
  };
  for (const auto& [line, message] : csv) {
    const Diagnostic d = error_of(header + line + "\n", format(TraceFormat::kAzure));
    EXPECT_NE(d.message.find(message), std::string::npos) << line << ": " << d.message;
    EXPECT_EQ(d.where.line, 2) << line;
  }
}

TEST(TraceReader, ErrorsStandAtTheirValues) {
  const auto column = [](const std::string& text, TraceFormat f) {
    return error_of(text, format(f)).where.column;
  };
  const std::string csv = "timestamp,input_length,output_length\n5,1,1\n";
  EXPECT_EQ(column(csv + "6,x,1\n", TraceFormat::kCsv), 3);
  EXPECT_EQ(column(csv + "6,\"1\",-1\n", TraceFormat::kCsv), 7);
  EXPECT_EQ(column(csv + "6,123456789012,1\n", TraceFormat::kCsv), 3);
  EXPECT_EQ(column("input_length,timestamp,output_length\n1,5,1\n1,4,1\n", TraceFormat::kCsv), 3);
  EXPECT_EQ(column(csv + "6,1,1,1\n", TraceFormat::kCsv), 7) << "the first field too many";
  EXPECT_EQ(column(csv + "6,1,\"1\n", TraceFormat::kCsv), 5);
  EXPECT_EQ(column("timestamp,input_length,timestamp,output_length\n", TraceFormat::kCsv), 24);
  const auto jsonl = [&](const std::string& line) { return column(line, TraceFormat::kMooncake); };
  const std::string lengths = R"("input_length": 1, "output_length": 1})";
  EXPECT_EQ(jsonl(R"({"timestamp": -1, )" + lengths), 15);
  EXPECT_EQ(jsonl(R"({"timestamp": 1e300, )" + lengths), 15);
  EXPECT_EQ(jsonl(R"({"timestamp": 1, "input_length": 1.5, "output_length": 1})"), 34);
  EXPECT_EQ(jsonl(R"({"timestamp": 1, "output_length": 1, "input_length": 999999999})"), 54);
  EXPECT_EQ(jsonl(R"({"timestamp": 9, )" + lengths + "\n" + R"({"timestamp": 8, )" + lengths), 15);
}

TEST(TraceReader, AKeyThatStandsTwiceIsRefused) {
  const auto message = [](const std::string& line) {
    return error_of(line, format(TraceFormat::kMooncake));
  };
  const std::string lengths = R"("input_length": 1, "output_length": 1})";
  const Diagnostic d = message(R"({"timestamp": 1, "input_length": 5, )" + lengths);
  EXPECT_EQ(d.message, "the key `input_length` stands here twice");
  EXPECT_EQ(d.where.column, 53);
  EXPECT_EQ(message(R"({"timestamp": 1, "hash_ids": [], "hash_ids": [1], )" + lengths).message,
            "the key `hash_ids` stands here twice");
  // Keys that are not read may do as they like.
  EXPECT_EQ(
      read(R"({"timestamp": 1, "x": 1, "x": 2, )" + lengths + "\n", format(TraceFormat::kMooncake))
          .size(),
      1U);
}

TEST(TraceReplay, ErrorsOfRecordsStandInTheTrace) {
  const std::string line = R"({"timestamp": 0, "input_length": 5, "output_length": 1, )";
  const auto said = [](const std::string& text) {
    Diagnostics d;
    (void)make_load_generator(TraceReplayConfig{}, WorkloadOptions{},
                              {.trace = opener(text, format(TraceFormat::kMooncake))}, d);
    return d.items().empty() ? std::string() : to_string(d.items().front());
  };
  EXPECT_TRUE(said(line + "\"hash_ids\": [1]}\n" +
                   R"({"timestamp": 0, "input_length": 5000, "output_length": 1, "hash_ids": [1]})")
                  .starts_with("trace:2:72: error: hash_ids: 5000 input tokens are 10 blocks"));
  EXPECT_TRUE(said(R"({"timestamp": 0, "input_length": 0, "output_length": 1})"
                   "\n"
                   R"({"timestamp": 0, "input_length": 0, "output_length": 1})")
                  .starts_with("trace:1:34: warning: a prompt of 0 tokens, which vLLM refuses: it "
                               "is sent with 1, as 1 more are"));
}

TEST(TraceReader, EveryMissingColumnIsNamed) {
  const auto reader = opener("a,num_prefill_tokens,c\n1,2,3\n", format(TraceFormat::kVidur))();
  TraceRecord record;
  EXPECT_FALSE(reader->next(record));
  ASSERT_EQ(reader->diagnostics().items().size(), 1U);
  EXPECT_EQ(reader->diagnostics().items()[0].message,
            "the header has no column `arrived_at`, `num_decode_tokens`");
}

TEST(TraceReader, AColumnThatStandsTwiceIsRefused) {
  const auto message = [](const std::string& header) {
    return error_of(header + "\n1,2,3,4\n", format(TraceFormat::kCsv)).message;
  };
  EXPECT_EQ(message("timestamp,input_length,input_length,output_length"),
            "the header has the column `input_length` more than once");
  EXPECT_EQ(message("timestamp,input_length,output_length,session_id,session_id"),
            "the header has the column `session_id` more than once");
  EXPECT_EQ(message("timestamp,note,note,output_length"), "the header has no column `input_length`")
      << "columns that are not read may do as they like";
}

TEST(TextScan, DatesAndNumbers) {
  EXPECT_EQ(parse_date_time_ns("1970-01-01 00:00:01"), 1'000'000'000);
  EXPECT_EQ(parse_date_time_ns("2000-02-29T12:00:00Z"), 951'825'600'000'000'000);
  EXPECT_FALSE(parse_date_time_ns("1900-01-01 00:00:00"));
  EXPECT_FALSE(parse_date_time_ns("2024-01-01 24:00:00"));
  EXPECT_FALSE(parse_date_time_ns("2024-01-01 00:00:00+02:00"));
  EXPECT_EQ(parse_integer("9223372036854775807"), 9223372036854775807LL);
  EXPECT_EQ(parse_integer(" 12.0 "), 12);
  EXPECT_FALSE(parse_integer("0x10"));
  EXPECT_FALSE(parse_integer(""));
  EXPECT_FALSE(parse_real("inf"));
  EXPECT_FALSE(parse_real("nan"));
  EXPECT_FALSE(parse_real("1e999"));
  EXPECT_FALSE(parse_real("1 2"));
}

TEST(TextScan, JsonSkipsAnythingWithinItsDepth) {
  JsonScanner json(
      "{\"a\": [1, -2.5e3, {\"b\": [true, false, null, \"x\\u00e9\\ud83d\\ude00\"]}]}");
  EXPECT_TRUE(json.skip());
  EXPECT_TRUE(json.at_end());
  const std::string deep(100, '[');
  JsonScanner too_deep(deep);
  EXPECT_FALSE(too_deep.skip());
  EXPECT_EQ(too_deep.error(), "nested too deeply");
}

TEST(TraceReplay, EqualHashIdsShareTheirTokens) {
  Diagnostics found;
  auto load = make_load_generator(TraceReplayConfig{}, {}, {.trace = opener(mooncake())}, found);
  ASSERT_NE(load, nullptr);
  EXPECT_EQ(load->stages()[0].requests, 3);
  const auto sent = drive(*load, fixed_latency(Duration::seconds(60)));
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(sent[2].sent, SimTime::zero() + Duration::milliseconds(3052)) << "open loop";
  const auto& a = sent[0].request.prompt->segments;
  const auto& b = sent[1].request.prompt->segments;
  ASSERT_EQ(a.size(), 14U);
  ASSERT_EQ(b.size(), 15U);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(a[i], b[i]);
  EXPECT_NE(a[12], b[12]);
  EXPECT_EQ(a[13].length, 6755 - 13 * 512) << "the last block is partial";
  EXPECT_EQ(sent[0].request.prompt->tokens, 6755);
  EXPECT_EQ(sent[0].request.output_tokens, 500);
  EXPECT_TRUE(load->finished());
}

TEST(TraceReplay, IdsThatDoNotFitAreAnErrorOrCutThePrompt) {
  const std::string text =
      "{\"timestamp\": 0, \"input_length\": 1300, \"output_length\": 1, \"hash_ids\": [1]}\n";
  Diagnostics found;
  EXPECT_EQ(make_load_generator(TraceReplayConfig{}, {}, {.trace = opener(text)}, found), nullptr);
  ASSERT_EQ(found.items().size(), 1U);
  EXPECT_EQ(found.items()[0].where.line, 1);
  TraceReplayConfig config;
  config.hash_length = HashLengthRule::kTruncateToIds;
  Diagnostics none;
  auto load = make_load_generator(config, {}, {.trace = opener(text)}, none);
  EXPECT_EQ(drive(*load, fixed_latency(Duration::seconds(1)))[0].request.prompt->tokens, 512);
  // A floor instead of a ceiling is accepted: the rest is text of the request's own.
  config = {};
  config.hash_block_tokens = 1000;
  load = make_load_generator(config, {}, {.trace = opener(text)}, none);
  const auto sent = drive(*load, fixed_latency(Duration::seconds(1)));
  EXPECT_EQ(sent[0].request.prompt->tokens, 1300);
  EXPECT_EQ(sent[0].request.prompt->segments.size(), 2U);
}

TEST(TraceReplay, TimeScaleLimitAndPermits) {
  std::vector<TraceRecord> records(10);
  for (std::size_t i = 0; i < records.size(); ++i) {
    records[i].at = Duration::seconds(static_cast<std::int64_t>(i));
    records[i].input_tokens = 10;
    records[i].output_tokens = 1;
  }
  const TraceOpener open = [records] { return workloads::testing::reader_of(records); };
  Diagnostics found;
  TraceReplayConfig config;
  config.time_scale = 0.5;
  config.max_requests = 4;
  config.max_concurrency = 1;
  auto load = make_load_generator(config, {}, {.trace = open}, found);
  const auto sent = drive(*load, fixed_latency(Duration::seconds(3)));
  ASSERT_EQ(sent.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(sent[i].request.due,
              SimTime::zero() + Duration::milliseconds(500 * static_cast<std::int64_t>(i)));
    EXPECT_EQ(sent[i].sent, SimTime::zero() + Duration::seconds(3 * static_cast<std::int64_t>(i)));
  }
  EXPECT_DOUBLE_EQ(load->stages()[0].duration_s, 1.5);
}

TEST(TraceReplay, PromptsWithoutIdsShareNothing) {
  std::string text = "arrived_at,num_prefill_tokens,num_decode_tokens\n";
  for (int i = 0; i < 50; ++i) text += "0,100,5\n";
  Diagnostics found;
  auto load = make_load_generator(TraceReplayConfig{}, {},
                                  {.trace = opener(text, format(TraceFormat::kVidur))}, found);
  std::set<std::uint64_t> contents;
  for (const Sent& s : drive(*load, fixed_latency(Duration::seconds(1))))
    contents.insert(s.request.prompt->segments[0].content);
  EXPECT_EQ(contents.size(), 50U);
}

/// Sends the whole trace, one request at a time.
std::vector<Sent> replay(const std::string& text, const TraceReadOptions& options,
                         const TraceReplayConfig& config = {}) {
  Diagnostics found;
  auto load = make_load_generator(config, {}, {.trace = opener(text, options)}, found);
  for (const Diagnostic& d : found.items()) ADD_FAILURE() << to_string(d);
  return load == nullptr ? std::vector<Sent>() : drive(*load, fixed_latency(Duration::seconds(1)));
}

/// Tokens that two prompts have in common at their start.
std::int64_t shared(const Prompt& a, const Prompt& b) {
  std::int64_t n = 0;
  for (std::size_t i = 0; i < std::min(a.segments.size(), b.segments.size()); ++i) {
    const Segment& x = a.segments[i];
    const Segment& y = b.segments[i];
    if (x.content != y.content || x.offset != y.offset) break;
    n += std::min(x.length, y.length);
    if (x.length != y.length) break;
  }
  return n;
}

TEST(TraceReplay, RowsOfAPrefixGroupBeginWithTheSameTokens) {
  const std::string csv =
      "timestamp,input_length,output_length,prefix_group,prefix_tokens\n"
      "0,100,5,a,40\n1,90,5,a,40\n2,100,5,b,40\n3,50,5,a,20\n4,40,5,,\n5,40,5,a,40\n";
  const auto sent = replay(csv, format(TraceFormat::kCsv));
  ASSERT_EQ(sent.size(), 6U);
  const auto of = [&](std::size_t i) -> const Prompt& { return *sent[i].request.prompt; };
  EXPECT_EQ(shared(of(0), of(1)), 40);
  EXPECT_EQ(shared(of(0), of(2)), 0) << "another group";
  EXPECT_EQ(shared(of(0), of(3)), 20) << "the shorter prefix of the same group";
  EXPECT_EQ(shared(of(0), of(4)), 0) << "no group";
  EXPECT_EQ(shared(of(0), of(5)), 40) << "a prompt of nothing but the prefix";
  EXPECT_EQ(of(0).tokens, 100);
  EXPECT_EQ(of(5).segments.size(), 1U);
  const std::string json =
      R"({"timestamp":0,"input_length":9,"output_length":1,"prefix_group":7,"prefix_tokens":4})"
      "\n"
      R"({"timestamp":0,"input_length":8,"output_length":1,"prefix_group":7,"prefix_tokens":4})";
  const auto again = replay(json, format(TraceFormat::kJsonl));
  EXPECT_EQ(shared(*again[0].request.prompt, *again[1].request.prompt), 4);
}

TEST(TraceReader, APrefixThatCannotBeIsNamed) {
  const auto error = [](const std::string& rest) {
    return error_of(R"({"timestamp":0,"input_length":9,"output_length":1,)" + rest + "}",
                    format(TraceFormat::kJsonl));
  };
  EXPECT_EQ(error(R"("prefix_group":"a")").message, "`prefix_tokens` is missing");
  EXPECT_EQ(error(R"("prefix_tokens":3)").message, "prefix tokens without a prefix group");
  const Diagnostic longer = error(R"("prefix_group":"a","prefix_tokens":10)");
  EXPECT_EQ(longer.message, "the prefix has 10 tokens, the prompt only 9");
  EXPECT_EQ(longer.where.column, 86);
  EXPECT_EQ(error(R"("prefix_group":"a","prefix_tokens":9,"hash_ids":[1])").message,
            "hash ids or a text and a prefix group: both say what the prompt shares");
  const Diagnostic alone = error_of("timestamp,input_length,output_length,prefix_group\n0,1,1,a\n",
                                    format(TraceFormat::kCsv));
  EXPECT_EQ(alone.message, "the column `prefix_group` needs a column `prefix_tokens`");
  EXPECT_EQ(alone.where.column, 38);
}

TEST(TraceReplay, ATurnBeginsWithTheTurnBeforeAndItsAnswer) {
  // Turn 2 of s holds turn 1 (10) and its answer (5), then 7 new tokens. Turn 3 is shorter than
  // that history of 22 + 3, and is cut from it.
  const std::string csv =
      "timestamp,input_length,output_length,conversation_id\n"
      "0,10,5,s\n1,12,5,other\n2,22,3,s\n3,24,1,s\n";
  const auto sent = replay(csv, format(TraceFormat::kCsv));
  ASSERT_EQ(sent.size(), 4U);
  const Request& first = sent[0].request;
  const std::vector<Segment>& second = sent[2].request.prompt->segments;
  ASSERT_EQ(second.size(), 3U);
  EXPECT_EQ(second[0], first.prompt->segments[0]);
  EXPECT_EQ(second[1], (Segment{first.output_content, 0, 5}));
  EXPECT_EQ(second[2].length, 7);
  const std::vector<Segment>& third = sent[3].request.prompt->segments;
  ASSERT_EQ(third.size(), 4U);
  EXPECT_EQ(third[2], second[2]);
  EXPECT_EQ(third[3], (Segment{sent[2].request.output_content, 0, 2}));
  EXPECT_EQ(shared(*first.prompt, *sent[1].request.prompt), 0) << "another session";
}

TEST(TraceReplay, LengthsOfTurnsMayCountTheirOwnTextOnly) {
  const std::string csv =
      "timestamp,input_length,output_length,session\n0,10,5,s\n2,7,3,s\n4,4,1,s\n";
  TraceReplayConfig config;
  config.history = SessionHistory::kAdded;
  auto sent = replay(csv, format(TraceFormat::kCsv), config);
  EXPECT_EQ(sent[1].request.prompt->tokens, 10 + 5 + 7);
  EXPECT_EQ(sent[2].request.prompt->tokens, 22 + 3 + 4);
  EXPECT_EQ(sent[2].request.prompt->segments.size(), 5U);
  config.history = SessionHistory::kNone;
  sent = replay(csv, format(TraceFormat::kCsv), config);
  EXPECT_EQ(sent[1].request.prompt->tokens, 7);
  EXPECT_EQ(shared(*sent[0].request.prompt, *sent[1].request.prompt), 0);
  // The default takes the lengths for whole prompts, and says that they do not look so.
  Diagnostics found;
  (void)make_load_generator(TraceReplayConfig{}, {},
                            {.trace = opener(csv, format(TraceFormat::kCsv))}, found);
  ASSERT_EQ(found.items().size(), 1U);
  EXPECT_TRUE(found.items()[0].message.starts_with("2 of 2 later turns have a shorter prompt"));
  // Half of the later turns are no reason to doubt the file.
  Diagnostics half;
  const std::string rows = csv.substr(0, csv.find("4,4,1")) + "4,25,1,s\n";
  (void)make_load_generator(TraceReplayConfig{}, {},
                            {.trace = opener(rows, format(TraceFormat::kCsv))}, half);
  EXPECT_TRUE(half.items().empty());
}

TEST(TraceReplay, AGroupsPrefixStandsBeforeTheHistory) {
  const std::string csv =
      "timestamp,input_length,output_length,session,prefix_group,prefix_tokens\n"
      "0,10,5,s,g,4\n1,20,5,s,g,4\n2,20,5,t,g,4\n";
  const auto sent = replay(csv, format(TraceFormat::kCsv));
  const Prompt& turn = *sent[1].request.prompt;
  EXPECT_EQ(shared(*sent[0].request.prompt, turn), 10);
  EXPECT_EQ(turn.segments.size(), 4U) << "prefix, first text, answer, own text";
  EXPECT_EQ(shared(turn, *sent[2].request.prompt), 4);
}

std::string with_text(const std::string& text, const std::string& more = "") {
  return R"({"timestamp":0,"output_length":1,"prompt":")" + text + "\"" + more + "}\n";
}

TEST(TraceReplay, TextsShareAsFarAsTheyAreEqual) {
  // 16 tokens of 4.3 characters are 68.8: a block ends with character 69, the next with 138.
  const std::string common(138, 'x');
  const auto sent = replay(with_text(common + "first") + with_text(common + "second one") +
                               with_text(common.substr(1)) + with_text(common.substr(0, 137)),
                           format(TraceFormat::kJsonl));
  ASSERT_EQ(sent.size(), 4U);
  const auto of = [&](std::size_t i) -> const Prompt& { return *sent[i].request.prompt; };
  EXPECT_EQ(of(0).tokens, 34) << "143 / 4.3 = 33.3";
  EXPECT_EQ(shared(of(0), of(1)), 32);
  EXPECT_EQ(shared(of(0), of(2)), 16) << "the second block of 137 characters is not whole";
  EXPECT_EQ(shared(of(0), of(3)), 16);
  const auto other =
      replay(with_text("y" + common) + with_text(common), format(TraceFormat::kJsonl));
  EXPECT_EQ(shared(*other[0].request.prompt, *other[1].request.prompt), 0);
}

TEST(TraceReplay, AStatedLengthCountsAndTheTextSaysWhatIsShared) {
  const std::string text(137, 'x');  // 31.9 tokens: one whole block.
  const auto sent =
      replay(with_text(text, R"(,"input_length":100)") + with_text(text, R"(,"input_length":10)"),
             format(TraceFormat::kJsonl));
  EXPECT_EQ(sent[0].request.prompt->tokens, 100);
  EXPECT_EQ(sent[0].request.prompt->segments.back().length, 100 - 32) << "what no text explains";
  EXPECT_EQ(sent[1].request.prompt->tokens, 10);
  const auto rows = read(with_text(text, R"(,"input_length":100)"), format(TraceFormat::kJsonl));
  EXPECT_EQ(rows[0].text_tokens, 32);
  // A file whose texts have twice the tokens: 137 / 4.3 * 2 = 63.7.
  TraceReadOptions twice = format(TraceFormat::kJsonl);
  twice.text_scale = 2;
  EXPECT_EQ(read(with_text(text), twice)[0].input_tokens, 64);
}

TEST(TraceReplay, AChatBeginsWithTheMessagesOfTheTurnBefore) {
  const std::string system = R"({"role":"system","content":")" + std::string(300, 's') + R"("})";
  const auto chat = [&](const std::string& more) {
    return R"({"timestamp":"2026-01-02T03:04:05Z","response":"12345","messages":[)" + system +
           more + "]}\n";
  };
  const std::string user =
      R"(,{"role":"user","content":[{"type":"text","text":"hello"},{"type":"image_url"}]})";
  const auto sent = replay(chat(user) + chat(user + R"(,{"role":"assistant","content":"ok"})"),
                           format(TraceFormat::kJsonl));
  ASSERT_EQ(sent.size(), 2U);
  // 5 tokens around each message, 3 for the answer's header: 5 + 300/4.3 + 5 + 5/4.3 + 3.
  EXPECT_EQ(sent[0].request.prompt->tokens, 84);
  EXPECT_EQ(shared(*sent[0].request.prompt, *sent[1].request.prompt), 80);
  EXPECT_EQ(sent[0].request.output_tokens, 2) << "5 characters";
  EXPECT_EQ(read(chat(user), format(TraceFormat::kJsonl))[0].at, Duration::zero());
}

TEST(TraceReader, TheTextsOfAMessageAreOneText) {
  const std::string part = R"({"type":"text","text":")" + std::string(43, 'x') + R"("})";
  const auto rows =
      read(R"({"timestamp":0,"output_length":1,"messages":[{"role":"user","content":[)" + part +
               "," + part + "]}]}",
           format(TraceFormat::kJsonl));
  EXPECT_EQ(rows[0].input_tokens, 5 + 20 + 3) << "86 / 4.3 = 20";
}

TEST(TraceReader, AResponseOfTheApiIsNoAnswerText) {
  const auto rows = read(R"({"timestamp":0,"prompt":"a","output_length":7,"response":{"id":1}})",
                         format(TraceFormat::kJsonl));
  EXPECT_EQ(rows[0].output_tokens, 7);
  EXPECT_EQ(
      error_of(R"({"timestamp":0,"prompt":"a","response":{"id":1}})", format(TraceFormat::kJsonl))
          .message,
      "`output_length` is missing");
}

TEST(TraceReader, TokenIdsAreTokens) {
  const auto row =
      read(R"({"timestamp":0,"output_length":1,"prompt":[1,22,333]})", format(TraceFormat::kJsonl));
  EXPECT_EQ(row[0].input_tokens, 3);
  EXPECT_EQ(row[0].id_tokens, 16);
  EXPECT_EQ(row[0].hash_ids.size(), 1U);
}

TEST(TraceReader, TwoTextsAreAnError) {
  EXPECT_EQ(error_of(R"({"timestamp":0,"output_length":1,"prompt":"a","text":"b"})",
                     format(TraceFormat::kJsonl))
                .message,
            "`prompt` and `text` are both texts of the prompt: name one in columns.text");
  TraceReadOptions named = format(TraceFormat::kJsonl);
  named.columns.text = "text";
  EXPECT_EQ(read(R"({"timestamp":0,"output_length":1,"prompt":"a","text":"12345678"})", named)[0]
                .input_tokens,
            2);
}

TEST(TraceReader, TheNamedSessionColumnCounts) {
  const auto session = [](const std::string& keys) {
    return read(R"({"timestamp":0,"input_length":1,"output_length":1,)" + keys + "}",
                format(TraceFormat::kJsonl))[0]
        .session;
  };
  const std::uint64_t a = session(R"("session_id":"a")");
  EXPECT_EQ(session(R"("conversation_id":"b","session_id":"a")"), a);
  EXPECT_EQ(session(R"("session_id":"a","session":"b")"), a);
  EXPECT_EQ(session(R"("session":"a")"), a);
  EXPECT_EQ(session(R"("session_id":null)"), 0U);
}

TEST(TraceReader, TimesOfCsvMayBeDates) {
  const auto rows = read(
      "timestamp,input_length,output_length\n2026-01-02 03:04:05,1,1\n2026-01-02T03:05:05.5Z,1,1\n",
      format(TraceFormat::kCsv));
  EXPECT_EQ(rows[1].at, Duration::milliseconds(60'500));
}

/// Makes records as they are asked for.
class EndlessReader final : public TraceReader {
 public:
  explicit EndlessReader(std::int64_t records) : left_(records) {}
  bool next(TraceRecord& record) override {
    if (left_-- == 0) return false;
    record = {};
    record.at = Duration::milliseconds(++position_);
    record.input_tokens = 1024;
    record.output_tokens = 10;
    record.hash_ids = {1, static_cast<std::uint64_t>(position_)};
    record.session = static_cast<std::uint64_t>(position_);
    return true;
  }
  const Diagnostics& diagnostics() const override { return diagnostics_; }

 private:
  std::int64_t left_;
  std::int64_t position_ = 0;
  Diagnostics diagnostics_;
};

TEST(TraceReplay, LoadsThatShareASurveyReadTheTraceThroughOnce) {
  int opened = 0;
  const TraceOpener open = [&opened] {
    ++opened;
    return std::make_unique<EndlessReader>(10);
  };
  const LoadInputs inputs = {.trace = open, .survey = std::make_shared<TraceSurvey>()};
  Diagnostics found;
  TraceReplayConfig config;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto load = make_load_generator(config, {.seed = seed}, inputs, found);
    EXPECT_EQ(load->stages()[0].requests, 10);
  }
  EXPECT_EQ(opened, 1 + 3) << "a survey, and the replays";
  config.max_requests = 4;
  EXPECT_EQ(make_load_generator(config, {}, inputs, found)->stages()[0].requests, 4);
  EXPECT_EQ(opened, 6) << "another question needs another survey";
}

TEST(TraceReplay, StreamsWithoutKeepingRequests) {
  Diagnostics found;
  auto load = make_load_generator(
      TraceReplayConfig{}, {}, {.trace = [] { return std::make_unique<EndlessReader>(100'000); }},
      found);
  std::vector<Request> batch;
  std::int64_t n = 0;
  while (!load->finished()) {
    batch.clear();
    const SimTime now = load->next_action();
    load->advance(now, batch);
    for (const Request& r : batch) {
      ASSERT_EQ(r.prompt.use_count(), 1) << "only the caller holds the prompt";
      load->on_completed(r, Outcome::kSuccess, now);
      ++n;
    }
  }
  EXPECT_EQ(n, 100'000);
}

TEST(TraceReplay, DelayedTurnsWaitForTheirSession) {
  const std::string text =
      "{\"timestamp\": 0, \"session_id\": \"a\", \"input_length\": 10, \"output_length\": 1}\n"
      "{\"delay\": 500, \"session_id\": \"a\", \"input_length\": 20, \"output_length\": 1}\n"
      "{\"delay\": 250, \"session_id\": \"a\", \"input_length\": 30, \"output_length\": 1}\n"
      "{\"timestamp\": 100, \"session_id\": \"b\", \"input_length\": 40, \"output_length\": 1}\n"
      "{\"timestamp\": 9000, \"session_id\": \"c\", \"input_length\": 50, \"output_length\": 1}\n"
      "{\"delay\": 100, \"session_id\": \"b\", \"input_length\": 60, \"output_length\": 1}\n";
  Diagnostics found;
  auto load = make_load_generator(TraceReplayConfig{}, {}, {.trace = opener(text)}, found);
  ASSERT_NE(load, nullptr);
  std::map<std::int64_t, std::int64_t> at;
  for (const Sent& s : drive(*load, fixed_latency(Duration::seconds(1))))
    at[s.request.prompt->tokens] = s.sent.ns() / 1'000'000;
  // b's second turn stands behind a record due at 9 s and is read only then.
  EXPECT_EQ(at, (std::map<std::int64_t, std::int64_t>{
                    {10, 0}, {20, 1500}, {30, 2750}, {40, 100}, {50, 9000}, {60, 9000}}));
  EXPECT_TRUE(load->finished());
}

TEST(TraceReplay, TheTimeScaleMultipliesDelaysBetweenTurns) {
  const std::string text =
      "{\"timestamp\": 2000, \"session_id\": \"a\", \"input_length\": 10, \"output_length\": 1}\n"
      "{\"delay\": 500, \"session_id\": \"a\", \"input_length\": 20, \"output_length\": 1}\n";
  TraceReadOptions options;
  options.from_first = false;
  Diagnostics found;
  const auto load = make_load_generator(TraceReplayConfig{.time_scale = 3}, {},
                                        {.trace = opener(text, options)}, found);
  const auto sent = drive(*load, fixed_latency(Duration::seconds(1)));
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].sent, SimTime::zero() + Duration::seconds(6));
  // 6 s, an answer of 1 s, and three times 0.5 s.
  EXPECT_EQ(sent[1].sent, SimTime::zero() + Duration::milliseconds(8500));
}

TEST(TraceReplay, PromptsOfEqualIdsAndOtherLengthsAreOtherPrompts) {
  std::vector<TraceRecord> rows;
  for (const std::int64_t tokens : {1024, 1024, 900, 1024, 900}) {
    TraceRecord& row = rows.emplace_back();
    row.input_tokens = tokens;
    row.output_tokens = 1;
    row.hash_ids = {7, 8};
  }
  Diagnostics found;
  const auto load =
      make_load_generator(TraceReplayConfig{}, {},
                          {.trace = [&] { return workloads::testing::reader_of(rows); }}, found);
  const auto sent = drive(*load, fixed_latency(Duration::seconds(1)));
  ASSERT_EQ(sent.size(), 5U);
  for (std::size_t i = 0; i < sent.size(); ++i)
    EXPECT_EQ(sent[i].request.prompt->tokens, rows[i].input_tokens) << i;
  EXPECT_EQ(sent[1].request.prompt, sent[3].request.prompt) << "kept when it came again";
  EXPECT_EQ(shared(*sent[0].request.prompt, *sent[2].request.prompt), 900);
}

TEST(JsonScanner, AHalfOfASurrogatePairIsAReplacementCharacter) {
  std::string text;
  JsonScanner json(R"("\ud800x\ude00")");
  ASSERT_TRUE(json.read_string(text));
  EXPECT_EQ(text, "\xEF\xBF\xBDx\xEF\xBF\xBD");
}

TEST(TextBlocks, WideCharactersAreSevenTenthsOfAToken) {
  TextBlocks wide, narrow;
  for (int i = 0; i < 10; ++i) {
    wide.add("\xE6\xBC\xA2");
    narrow.add("\xC3\xA9");
  }
  EXPECT_EQ(wide.tokens(), 7);
  EXPECT_EQ(narrow.tokens(), 3) << "10 / 4.3, rounded up";
}

TEST(TextBlocks, OnlyABlockThatWasBegunHasAnId) {
  TextBlocks text;
  text.add_tokens("a", kTextBlockTokens);
  EXPECT_EQ(text.ids().size(), 1U);
  text.add_tokens("b", 1);
  EXPECT_EQ(text.ids().size(), 2U);
}

TEST(TraceReplay, ABrokenLineStopsTheUserBeforeTheRun) {
  Diagnostics found;
  EXPECT_EQ(
      make_load_generator(TraceReplayConfig{}, {}, {.trace = opener(mooncake() + "{")}, found),
      nullptr);
  ASSERT_TRUE(found.has_errors());
  EXPECT_EQ(found.items()[0].where.line, 5);
  Diagnostics empty;
  EXPECT_EQ(make_load_generator(TraceReplayConfig{}, {}, {.trace = opener("\n")}, empty), nullptr);
  EXPECT_TRUE(empty.has_errors());
}

}  // namespace
}  // namespace routesim::workloads
