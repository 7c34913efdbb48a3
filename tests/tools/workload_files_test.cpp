// Every kind of load runs from a scenario, data files included.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/simulation.h"
#include "tests/base/messages.h"
#include "tests/tools/command_fixture.h"
#include "tests/tools/scenario_fixture.h"
#include "tools/ingest/scenario/demand_file.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/traces/trace_files.h"

namespace routesim::tools {
namespace {

// Every kind of load runs from a scenario, data files included, to its last request.

struct Case {
  const char* name;
  const char* workload;   ///< The YAML below `workload:`.
  std::int64_t requests;  ///< Of all reported stages.
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

/// Conversations of six turns and 3,000 characters, which pass every tool's filter.
std::string sharegpt() {
  std::string out = "[";
  for (int c = 0; c < 4; ++c) {
    out += c == 0 ? "" : ",";
    out += "{\"id\": \"" + std::to_string(c) + "\", \"conversations\": [";
    for (int t = 0; t < 12; ++t) {
      out += t == 0 ? "" : ",";
      out += std::string("{\"from\": \"") + (t % 2 == 0 ? "human" : "gpt") + "\", \"value\": \"";
      for (int w = 0; w < 100; ++w) out += "word" + std::to_string(c) + " ";
      out += "\"}";
    }
    out += "]}";
  }
  return out + "]";
}

class WorkloadFiles : public testing::FolderTest, public ::testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    write("sharegpt.json", sharegpt());
    write("custom.jsonl",
          "{\"prompt\": \"one two three four five\", \"output_tokens\": 5}\n"
          "{\"prompt\": \"six seven\", \"output_tokens\": 7}\n");
    write(
        "mooncake.jsonl",
        "{\"timestamp\": 0, \"input_length\": 700, \"output_length\": 5, \"hash_ids\": [1, 2]}\n"
        "{\"timestamp\": 40, \"input_length\": 900, \"output_length\": 6, \"hash_ids\": [1, 3]}\n");
    write("azure.csv",
          "TIMESTAMP,ContextTokens,GeneratedTokens\n"
          "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:46.9805900,300,10\n");
    write("burstgpt.csv",
          "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
          "5,GPT-4,472,18,490,Conversation log\n45,ChatGPT,100,20,120,Conversation log\n"
          "46,GPT-4,100,20,120,API log\n");
    write("own.csv", "at,prompt,answer,user\n100,50,5,a\n300,60,5,b\n");
    write("own.jsonl", "{\"at\": 100, \"prompt\": 50, \"answer\": 5}\n");
  }
};

TEST(TraceFormat, IsToldFromTheFirstLine) {
  const auto format = [](const char* line) { return sniff_trace_format(line).format; };
  using workloads::TraceFormat;
  EXPECT_EQ(format("{\"timestamp\": 0, \"input_length\": 7, \"hash_ids\": [0]}"),
            TraceFormat::kMooncake);
  EXPECT_EQ(format("{\"chat_id\": 159, \"timestamp\": 61.114, \"hash_ids\": [1]}"),
            TraceFormat::kJsonl)
      << "its times are seconds";
  EXPECT_EQ(format("TIMESTAMP,ContextTokens,GeneratedTokens"), TraceFormat::kAzure);
  EXPECT_EQ(format("{\"resourceSpans\": []}"), TraceFormat::kOtlp);
  EXPECT_EQ(format("INFO 02-13 11:30:00 [__init__.py:216] Automatically detected platform cuda."),
            TraceFormat::kVllmLog);
  EXPECT_EQ(format("(APIServer pid=7) INFO:     Started server process [7]"),
            TraceFormat::kVllmLog);
}

class TraceTimes : public testing::FolderTest {
 protected:
  /// What opening a trace of 30 requests says, `step` and then `step` more after `first`.
  std::string said(double first, double step, const char* ids, const std::string& format = {}) {
    std::string text;
    for (int i = 0; i < 30; ++i) {
      char line[160];
      std::snprintf(line, sizeof line,
                    "{\"timestamp\": %.10g, \"input_length\": 9, \"output_length\": 2%s}\n",
                    first + step * i, ids);
      text += line;
    }
    Diagnostics d;
    const TraceReference reference{.path = write("t.jsonl", text),
                                   .path_where = {},
                                   .path_key = "k",
                                   .format = format,
                                   .format_where = {},
                                   .format_key = {}};
    EXPECT_TRUE(open_trace(reference, d));
    EXPECT_FALSE(d.has_errors());
    return messages_of(d);
  }
};

TEST_F(TraceTimes, AreSaidWhereTheyMaySurprise) {
  EXPECT_EQ(said(0, 1000, ", \"hash_ids\": [1]"), "");
  EXPECT_EQ(said(0, 1000, ""), "");
  EXPECT_NE(said(1712345678000, 1000, "").find("begins at 1712345678 s: its requests are sent"),
            std::string::npos);
  const std::string seconds = said(0, 1, "");
  EXPECT_NE(seconds.find("read as milliseconds, as in a Mooncake trace: 30 requests in 0.029 s"),
            std::string::npos)
      << seconds;
  EXPECT_EQ(said(0, 1, ", \"hash_ids\": [1]"), "") << "it is one";
  EXPECT_EQ(said(0, 1, "", "mooncake"), "") << "somebody knows";
  EXPECT_EQ(said(1e6, 1, "", "jsonl"), "");
  EXPECT_EQ(said(1e6, 1, "", "timed_trace"), "");
}

class TraceArrays : public testing::FolderTest {
 protected:
  /// `line:tokens` of each record, and what was wrong.
  std::string read(const std::string& text) {
    Diagnostics d;
    const TraceReference reference{.path = write("t.json", text), .path_key = "k"};
    const workloads::TraceOpener opener = open_trace(reference, d);
    if (!opener) return messages_of(d);
    const auto reader = opener();
    std::string out;
    workloads::TraceRecord record;
    while (reader->next(record))
      out += std::to_string(record.line) + ":" + std::to_string(record.input_tokens) + " ";
    for (const Diagnostic& e : reader->diagnostics().items()) out += e.message;
    return out;
  }
};

// LiteLLM's /spend/logs answers with one array.
TEST_F(TraceArrays, HaveARecordPerElement) {
  const auto record = [](int tokens, const std::string& more = "") {
    return "{\"call_type\": \"completion\", \"startTime\": \"2025-01-24 09:20:" +
           std::to_string(tokens) + "\"," + more + "\n  \"completion_tokens\": 5, " +
           "\"prompt_tokens\": " + std::to_string(tokens) + "}";
  };
  const std::string text = R"("messages": [{"role": "user", "content": "a ], [ and \"b\", {"}],)";
  EXPECT_EQ(read("[\n" + record(10) + ",\n" + record(11, text) + ", " + record(12) + "\n]\n"),
            "2:10 4:11 5:12 ");
  EXPECT_EQ(read(R"([{"timestamp":0,"input_length":7,"output_length":1},)"
                 R"({"timestamp":1,"input_length":8,"output_length":1}])"),
            "1:7 2:8 ");
  EXPECT_NE(read("[" + record(10) + ",\n" + record(11)).find("expected an object"),
            std::string::npos)
      << "cut short";
}

TEST_P(WorkloadFiles, RunToTheLastRequest) {
  write("s.yaml", std::string("name: s\nworkload: {") + GetParam().workload +
                      "}\ncluster: {pools: [{accelerator: H100-SXM, model: Qwen3-0.6B}]}\n");
  Diagnostics d;
  const LoadedScenario loaded =
      load_scenario({.path = path("s.yaml"), .sets = {}, .variants = {}, .seed = {}}, d);
  std::optional<sim::RunPlan> plan;
  if (!d.has_errors()) plan = prepare(loaded.variants.front(), d);
  ASSERT_TRUE(plan) << messages_of(d);
  sim::Simulation simulation(*plan, {.seed = 1, .check = true, .observers = {}}, d);
  const sim::RunResult result = simulation.run();
  std::int64_t reported = 0;
  for (const sim::StageResult& stage : result.stages)
    if (stage.info.reported) reported += stage.successes;
  EXPECT_EQ(reported, GetParam().requests);
  EXPECT_EQ(result.summary.failures, 0);
}

constexpr Case kCases[] = {
    {"prefix_repetition",
     "vllm_bench: {dataset_name: prefix_repetition, num_prompts: 21, "
     "prefix_repetition: {num_prefixes: 4, output_len: 5}}",
     20},
    {"random",
     "vllm_bench: {num_prompts: 10, request_rate: 5, burstiness: 0.5, num_warmups: 2, "
     "random: {input_len: 50, output_len: 5, range_ratio: 0.3}}",
     10},
    {"ramp",
     "vllm_bench: {num_prompts: 10, ramp_up_strategy: linear, ramp_up_start_rps: 1, "
     "ramp_up_end_rps: 9, output_len: 5, max_concurrency: 2}",
     10},
    {"sharegpt",
     "vllm_bench: {dataset_name: sharegpt, dataset_path: sharegpt.json, num_prompts: 6}", 6},
    {"custom",
     "vllm_bench: {dataset_name: custom, dataset_path: custom.jsonl, num_prompts: 2, "
     "custom: {output_len: -1}}",
     2},
    {"bench_burstgpt",
     "vllm_bench: {dataset_name: burstgpt, dataset_path: burstgpt.csv, num_prompts: 2}", 2},
    {"timed_trace",
     "vllm_bench: {dataset_name: timed_trace, dataset_path: mooncake.jsonl, "
     "num_prompts: 2, timed_trace: {chunk_hash_size: 512}}",
     2},
    {"ip_random",
     "inference_perf: {load: {stages: [{rate: 5, duration: 2}]}, data: {type: random, "
     "input_distribution: {type: normal, mean: 100, std_dev: 10}, "
     "output_distribution: {type: fixed, mean: 10}}}",
     10},
    {"ip_shared_prefix_multi_turn",
     "inference_perf: {load: {type: poisson, num_workers: 1, stages: [{rate: 6, duration: 2}]}, "
     "data: {type: shared_prefix, shared_prefix: {num_groups: 2, num_prompts_per_group: 2, "
     "output_len: 5, enable_multi_turn_chat: true}}}",
     12},
    {"ip_conversation_replay",
     "inference_perf: {load: {stages: [{rate: 6, duration: 2}]}, data: {type: conversation_replay, "
     "conversation_replay: {num_conversations: 3, shared_system_prompt_len: 100}}}",
     12},
    {"ip_concurrent",
     "inference_perf: {load: {type: concurrent, stages: [{num_requests: 9, concurrency_level: "
     "3}]}, "
     "data: {type: shared_prefix, shared_prefix: {num_groups: 2, output_len: 5}}}",
     9},
    {"ip_trace_replay",
     "inference_perf: {load: {type: trace_replay, trace: {file: azure.csv}, "
     "stages: [{rate: 1, duration: 1}]}, data: {type: random, trace: {file: azure.csv}}}",
     2},
    {"ip_sharegpt",
     "inference_perf: {load: {stages: [{rate: 3, duration: 1}]}, "
     "data: {type: shareGPT, path: sharegpt.json}}",
     3},
    {"mooncake", "trace: {file: mooncake.jsonl}", 2},
    {"azure", "trace: {file: azure.csv, format: azure}", 2},
    {"burstgpt", "trace: {file: burstgpt.csv}", 3},
    {"own_csv",
     "trace: {file: own.csv, columns: {timestamp: at, input: prompt, output: answer, "
     "session: user, timestamp_unit_s: 0.001}}",
     2},
    {"own_jsonl",
     "trace: {file: own.jsonl, columns: {timestamp: at, input: prompt, output: answer}}", 1},
    {"kubeai", "conversations: {sharegpt_path: sharegpt.json, virtual_users: 2, threads: 4}", 24},
    {"kubeai_synthetic", "conversations: {virtual_users: 2, threads: 10}", 73}};

INSTANTIATE_TEST_SUITE_P(All, WorkloadFiles, ::testing::ValuesIn(kCases),
                         [](const auto& tested) { return std::string(tested.param.name); });

// Demand from files: the forms that a CSV writes times in, and a whole run by the hour.

class DemandFile : public testing::FolderTest {
 protected:
  /// `seconds:rate` of each point, or what was said.
  std::string read(const std::string& text) const {
    Diagnostics d;
    const std::string file = write("d.csv", text);
    std::string out;
    for (const workloads::DemandPoint& p : read_demand_csv(file, {}, "k", d))
      out += std::to_string(std::llround(p.at.to_seconds())) + ":" +
             std::to_string(std::llround(p.rate)) + " ";
    for (const Diagnostic& item : d.items())
      out += std::to_string(item.where.line) + ":" + std::to_string(item.where.column) + ": " +
             item.message;
    return out;
  }
};

TEST_F(DemandFile, HasTimesInThreeForms) {
  EXPECT_EQ(read("time,rate\n0,4\n3600,20\n"), "0:4 3600:20 ");
  EXPECT_EQ(read("time,rate\n0:00,4\n09:30,20\n33:00:05,1\n"), "0:4 34200:20 118805:1 ");
  EXPECT_EQ(read("time,rate\n2026-03-01T08:00:00Z,4\n2026-03-02 09:30:00,20\n"),
            "28800:4 120600:20 ")
      << "from the first day's midnight";
  EXPECT_EQ(read("time,rate\n2026-03-01 08:00,4\n"), "28800:4 ");
  EXPECT_EQ(read("rate,note,time\r\n4,\"a, b\",0\r\n5,,60\r\n\r\n"), "0:4 60:5 ");
  EXPECT_EQ(read("\xEF\xBB\xBFtime,rate\n0,1\n"), "0:1 ");
}

TEST_F(DemandFile, IsRefusedAtItsPlace) {
  EXPECT_EQ(read("at,rate\n0,1\n"), "1:1: the column `time` is missing");
  EXPECT_EQ(read("time,rate\n"), "0:0: " + path("d.csv") + " has no lines below its header");
  EXPECT_EQ(read("time,rate\n0,1\nnoon,2\n"),
            "3:1: must be seconds, hh:mm or a date with a time (got noon)");
  EXPECT_EQ(read("time,rate\n0,1\n9:5,2\n"),
            "3:1: must be seconds, hh:mm or a date with a time (got 9:5)");
  EXPECT_EQ(read("time,rate\n0,1\n09:00,2\n"),
            "3:1: is written in another way than the times before it (got 09:00)");
  EXPECT_EQ(read("time,rate\n60,1\n60,2\n"), "3:1: must be later than the line before it (got 60)");
  EXPECT_EQ(read("time,rate\n-1,1\n"), "2:1: must be within 100 days (got -1)");
  EXPECT_EQ(read("time,rate\n0,-2\n").substr(0, 21), "2:3: must be at least");
  EXPECT_EQ(read("time,rate\n0\n"), "2:2: the line ends before its time and rate");
}

class DemandScenario : public testing::ScenarioTest {
 protected:
  /// The run of base() with this demand.
  sim::RunResult run(const std::string& demand) const {
    Diagnostics d;
    const std::string text = base();
    const std::string groups = "output_len: 2, prefix_len: 100}";
    const std::size_t at = text.find("prefix_len: 100}");
    const LoadedScenario loaded =
        load_scenario({.path = write("s.yaml", text.substr(0, at) + groups + ", demand: {" +
                                                   demand + "}" + text.substr(at + 16)),
                       .sets = {},
                       .variants = {},
                       .seed = {}},
                      d);
    std::optional<sim::RunPlan> plan;
    if (!d.has_errors()) plan = prepare(loaded.variants.front(), d);
    EXPECT_TRUE(plan) << messages_of(d);
    if (!plan) return sim::RunResult();
    sim::Simulation simulation(*plan, {.seed = 1, .check = true, .observers = {}}, d);
    return simulation.run();
  }
};

TEST_F(DemandScenario, HasResultsByTheHour) {
  write("d.csv", "time,rate\n00:00,0.05\n01:00,0.2\n02:00,0.1\n");
  const sim::RunResult result = run("csv: d.csv, period: 3h, scale: 2");
  ASSERT_EQ(result.stages.size(), 3U);
  const double rates[] = {0.1, 0.4, 0.2};
  for (std::size_t i = 0; i < 3; ++i) {
    const sim::StageResult& stage = result.stages[i];
    EXPECT_EQ(stage.info.name, "0" + std::to_string(i) + ":00");
    EXPECT_DOUBLE_EQ(stage.info.requested_rate, rates[i]);
    const double mean = 3600 * rates[i];
    EXPECT_NEAR(static_cast<double>(stage.requests), mean, 4 * std::sqrt(mean));
    EXPECT_EQ(stage.successes, stage.requests);
  }
}

// Run with every check, although answers go on when the next stage has begun.
TEST_F(DemandScenario, MayHaveStagesThatOverlap) {
  const sim::RunResult result = run("profile: [{at: 0h, rate: 40}], period: 40s, report_every: 1s");
  ASSERT_EQ(result.stages.size(), 40U);
  std::int64_t overlapping = 0;
  for (std::size_t i = 0; i + 1 < result.stages.size(); ++i)
    overlapping += result.stages[i].last_end > result.stages[i + 1].first_send;
  EXPECT_GT(overlapping, 10);
  EXPECT_EQ(result.summary.successes, result.summary.requests);
}

TEST_F(DemandScenario, TakesTheTimesOfATrace) {
  write("t.csv",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:00:00,374,44\n"
        "2023-11-16 18:10:00,300,10\n2023-11-16 18:35:00,300,10\n");
  const sim::RunResult result = run("arrivals_of: t.csv, report_every: 30m");
  ASSERT_EQ(result.stages.size(), 2U);
  EXPECT_EQ(result.stages[0].requests, 2);
  EXPECT_EQ(result.stages[1].requests, 1);
  EXPECT_EQ(result.stages[1].info.name, "00:30");
}

}  // namespace
}  // namespace routesim::tools
