// Recorded sessions, run on one server: starts and prefix-cache hits computed by hand.
#include <gtest/gtest.h>

#include "sim/simulation.h"
#include "tests/tools/command_fixture.h"
#include "tools/ingest/scenario/prepare.h"

namespace routesim::tools {
namespace {

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
