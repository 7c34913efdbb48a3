#include "tools/study/trace/trace_study.h"

#include <algorithm>
#include <random>
#include <sstream>

#include "tests/tools/command_fixture.h"
#include "tools/cli/cli.h"
#include "workloads/traces/trace_replay.h"

namespace routesim::tools {
namespace {

/// Studies JSON lines of `{"t":TIME,"in":TOKENS,"out":TOKENS,"hash_ids":[...]}`, 10 tokens per id.
TraceStudy study(const std::string& text, std::int64_t block_size = 10, std::int64_t most = 0) {
  workloads::TraceReadOptions options;
  options.format = workloads::TraceFormat::kJsonl;
  options.columns.timestamp = "t";
  options.columns.input = "in";
  options.columns.output = "out";
  options.columns.session = "s";
  const workloads::TraceOpener open = [=] {
    return workloads::make_trace_reader(std::make_unique<std::istringstream>(text), "trace",
                                        options);
  };
  Diagnostics found;
  const auto load = make_load_generator(workloads::TraceReplayConfig{.hash_block_tokens = 10}, {},
                                        {.trace = open}, found);
  for (const Diagnostic& d : found.items()) ADD_FAILURE() << to_string(d);
  return study_trace(*load, block_size, most);
}

TEST(LruStack, DepthIsTheNumberOfBlocksUsedSince) {
  LruStack stack;
  std::vector<std::uint32_t> list;  // The obvious one, most recent last.
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    const auto block = static_cast<std::uint32_t>(random() % 2000);
    const auto at = std::find(list.begin(), list.end(), block);
    ASSERT_EQ(stack.depth(block), at == list.end() ? 0 : list.end() - at) << i;
    if (at != list.end()) list.erase(at);
    list.push_back(block);
    stack.touch(block);
  }
}

TEST(TraceStudy, CountsTheBlocksThatRepeat) {
  // B repeats two blocks of A. C repeats A whole, but its last token is always computed: 2 blocks.
  const TraceStudy s = study(R"({"t":0,"in":30,"out":1,"hash_ids":[1,2,3]})"
                             "\n"
                             R"({"t":1,"in":35,"out":1,"hash_ids":[1,2,4,5]})"
                             "\n"
                             R"({"t":5,"in":30,"out":1,"hash_ids":[1,2,3]})");
  EXPECT_EQ(s.requests, 3);
  EXPECT_EQ(s.prompt_tokens, 95);
  EXPECT_EQ(s.hit_tokens, 40);
  EXPECT_EQ(s.answer_hit_tokens, 0);
  EXPECT_EQ(s.held_tokens, 40) << "blocks 1, 2, 3 and 4; 5 is not whole";
  EXPECT_DOUBLE_EQ(s.span_s, 5);
  EXPECT_DOUBLE_EQ(s.mean_rate, 0.6);
  EXPECT_DOUBLE_EQ(s.peak_second, 1);
  EXPECT_DOUBLE_EQ(s.prompt.mean, 95.0 / 3);
  EXPECT_EQ(s.prompt.p50, 30);
  EXPECT_EQ(s.prompt.p90, 35);
  ASSERT_EQ(s.prefixes.size(), 2U);
  EXPECT_EQ(s.prefixes[0].tokens, 20) << "2 repeats of 20 tokens";
  EXPECT_EQ(s.prefixes[0].requests, 3);
  EXPECT_EQ(s.prefixes[1].tokens, 30) << "1 repeat of 30";
  EXPECT_EQ(s.prefixes[1].requests, 2);
  EXPECT_EQ(s.families, 1);
  EXPECT_EQ(s.family_requests, 3);
}

TEST(TraceStudy, ASmallCacheForgetsTheEndOfAPromptFirst) {
  // A (4 blocks), B (3 blocks), A again. From the most recent: B1 B2 B3 A1 A2 A3 A4. The last
  // block of A holds its last token, so A2 and A3 are of use: A1 needs 4 blocks of cache, A3 6.
  const std::string a = R"(,"in":40,"out":1,"hash_ids":[1,2,3,4]})";
  const TraceStudy s =
      study(R"({"t":0)" + a + "\n" + R"({"t":1,"in":30,"out":1,"hash_ids":[7,8,9]})" + "\n" +
            R"({"t":2)" + a);
  EXPECT_EQ(s.hit_tokens, 30);
  EXPECT_EQ(s.half, 50) << "15 of 30 tokens are passed with A2";
  EXPECT_EQ(s.most, 60);
  ASSERT_EQ(s.caches.size(), 1U);
  EXPECT_EQ(s.caches[0].hit_tokens, 30);
}

TEST(TraceStudy, CachesAreListedUpToAllBlocks) {
  std::string text;
  for (int turn = 0; turn < 2; ++turn)
    for (int i = 0; i < 30; ++i) {
      text += R"({"t":0,"in":100,"out":1,"hash_ids":[)";
      for (int k = 0; k < 10; ++k) text += (k > 0 ? "," : "") + std::to_string(100 * i + k);
      text += "]}\n";
    }
  const TraceStudy s = study(text);
  EXPECT_EQ(s.hit_tokens, 30 * 90) << "the last block of each is computed again";
  ASSERT_EQ(s.caches.size(), 3U);
  EXPECT_EQ(s.caches[0].cache_tokens, 1000);
  EXPECT_EQ(s.caches[0].hit_tokens, 0) << "29 other prompts of 100 tokens came between";
  EXPECT_EQ(s.caches[1].cache_tokens, 2000);
  EXPECT_EQ(s.caches[1].hit_tokens, 0);
  EXPECT_EQ(s.caches[2].cache_tokens, 5000);
  EXPECT_EQ(s.caches[2].hit_tokens, 30 * 90);
  EXPECT_EQ(s.half, 2950) << "2,900 tokens between, and five blocks";
  EXPECT_EQ(study(text, 10, 40).hit_tokens, 10 * 90) << "the first 40 requests";
}

TEST(TraceStudy, AnAnswerIsHitByTheNextTurn) {
  // 100 + 99 computed tokens are 19 blocks of 10: 10 of the prompt, 9 of the answer.
  const TraceStudy s = study(R"({"t":0,"in":100,"out":100,"s":"a"})"
                             "\n"
                             R"({"t":1,"in":300,"out":1,"s":"a"})"
                             "\n"
                             R"({"t":2,"in":302,"out":1,"s":"a"})");
  EXPECT_EQ(s.hit_tokens, 190 + 300);
  EXPECT_EQ(s.answer_hit_tokens, 90) << "the third turn repeats a prompt";
  EXPECT_EQ(s.sessions, 1);
  EXPECT_EQ(s.session_requests, 3);
  EXPECT_EQ(s.longest_session, 3);
}

class TraceCommand : public testing::FolderTest {
 protected:
  ExitCode run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "trace");
    return run_command_line(arguments, console_);
  }
  testing::TestConsole console_;
};

TEST_F(TraceCommand, SaysWhatIsSharedAndWhatIsNotUsed) {
  const std::string file = write("log.csv",
                                 "when,tokens,answer,session,customer\n"
                                 "2026-01-01 00:00:00,100,5,a,x\n2026-01-01 00:01:40,120,5,a,x\n");
  EXPECT_EQ(run({file, "--columns", "{timestamp: when, input: tokens, output: answer}"}),
            ExitCode::kSuccess)
      << console_.errors;
  const std::string text = console_.output();
  EXPECT_NE(text.find("2 requests in 100.0 s: 0.020 requests/s, 0.017 in the busiest minute, 1 in "
                      "the busiest second\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("1 sessions of 2.0 requests on average, 2 at most\n"), std::string::npos);
  EXPECT_NE(text.find("43.6 % of the prompt tokens repeat"), std::string::npos) << "96 of 220";
  EXPECT_NE(text.find("\nnot used: customer\n"), std::string::npos);
}

TEST_F(TraceCommand, ReadsTheLoadOfAScenario) {
  const std::string scenario =
      std::string(ROUTESIM_SOURCE_DIR) + "/scenarios/llm-d-qwen3-32b-16xh100.yaml";
  EXPECT_EQ(run({scenario, "--requests", "100", "-o", "json"}), ExitCode::kSuccess)
      << console_.errors;
  EXPECT_NE(console_.output().find("\"requests\": 100,"), std::string::npos);
}

TEST_F(TraceCommand, RefusesOptionsOfTheOtherKind) {
  EXPECT_EQ(run({"a.csv", "--set", "a=b"}), ExitCode::kInvalid);
  EXPECT_NE(console_.errors.find("--set is for a scenario"), std::string::npos);
  EXPECT_EQ(run({"a.yaml", "--history", "none"}), ExitCode::kInvalid);
  EXPECT_NE(console_.errors.find("--history is for a trace"), std::string::npos);
}

TEST_F(TraceCommand, ReadsTheLogsOfServersAndCollectors) {
  const std::string span =
      R"({"traceId":"a","spanId":"1","startTimeUnixNano":"1700000000000000000","attributes":[)"
      R"({"key":"gen_ai.usage.prompt_tokens","value":{"intValue":"100"}},)"
      R"({"key":"gen_ai.usage.completion_tokens","value":{"intValue":"5"}},)"
      R"({"key":"gen_ai.request.temperature","value":{"doubleValue":1}}]})";
  EXPECT_EQ(run({write("spans.json",
                       R"({"resourceSpans":[{"scopeSpans":[{"spans":[)" + span + "]}]}]}\n")}),
            ExitCode::kSuccess)
      << console_.errors;
  EXPECT_NE(console_.output().find("1 request"), std::string::npos) << console_.output();
  EXPECT_NE(console_.output().find("not used: gen_ai.request.temperature"), std::string::npos)
      << console_.output();
  std::string ids = "[1";
  for (int i = 2; i <= 40; ++i) ids += ", " + std::to_string(i);
  std::string text;
  for (const char* id : {"cmpl-1", "cmpl-2"})
    text += "DEBUG 02-13 11:33:33 [logger.py:41] Request " + std::string(id) +
            " details: prompt: 'x', prompt_token_ids: " + ids + "], prompt_embeds shape: None.\n" +
            "INFO 02-13 11:33:33 [logger.py:49] Received request " + id +
            ": params: SamplingParams(n=1, max_tokens=9), lora_request: None.\n";
  console_ = {};
  EXPECT_EQ(run({write("dated.log", "[2026-11-01 10:00:00] start\n" + text), "--format", "vllm-log",
                 "--missing-output", "9"}),
            ExitCode::kSuccess)
      << "no JSON array: " << console_.errors;
  const std::string log = write("vllm.log", text);
  console_ = {};
  EXPECT_EQ(run({log}), ExitCode::kInvalid);
  EXPECT_NE(console_.errors.find("vllm.log:2:1: error: the answer of cmpl-1 is not in the log"),
            std::string::npos)
      << console_.errors;
  console_ = {};
  EXPECT_EQ(run({log, "--missing-output", "9"}), ExitCode::kSuccess) << console_.errors;
  // Two equal prompts of 40 tokens: two whole blocks of 16 of the second one are hits.
  EXPECT_NE(console_.output().find("40.0 % of the prompt tokens repeat"), std::string::npos)
      << console_.output();
  EXPECT_NE(console_.output().find("not used: params"), std::string::npos) << console_.output();
  console_ = {};
  EXPECT_EQ(run({write("t.csv", "timestamp,input_length,output_length\n0,1,1\n"),
                 "--missing-output", "9"}),
            ExitCode::kInvalid);
  EXPECT_NE(console_.errors.find("missing: a trace in the format csv has all lengths"),
            std::string::npos)
      << console_.errors;
}

TEST_F(TraceCommand, NamesAColumnThatIsNotOne) {
  const std::string file = write("log.csv", "timestamp,input_length,output_length\n0,1,1\n");
  EXPECT_EQ(run({file, "--columns", "{imput: x}"}), ExitCode::kInvalid);
  EXPECT_NE(console_.errors.find("--columns:1:2: error: columns.imput: unknown key"),
            std::string::npos)
      << console_.errors;
}

}  // namespace
}  // namespace routesim::tools
