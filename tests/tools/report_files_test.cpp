// Results in other tools' file formats: every field name as those tools write it.
#include "tools/render/reports/report_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace routesim::tools {
namespace {

using nlohmann::json;

/// Three requests with TTFT 1, 2 and 3 s over 10 s; 100 tokens in and 50 out each.
Report three_requests() {
  sim::StageResult s;
  s.info = {.name = "0", .requested_rate = 2, .duration_s = 5, .requests = 3, .concurrency = 4};
  s.requests = 4;
  s.successes = 3;
  s.failures = 1;
  s.failures_by_label["TimeoutError"] = 1;
  s.first_send = SimTime::zero();
  s.last_send = SimTime::zero() + Duration::seconds(4);
  s.last_end = SimTime::zero() + Duration::seconds(10);
  for (int i = 1; i <= 3; ++i) {
    s.time_to_first_token.add(i);
    s.time_per_output_token.add(0.02);
    s.normalized_time_per_output_token.add(0.05);
    s.request_latency.add(i + 1);
    s.prompt_tokens.add(100);
    s.output_tokens.add(50);
  }
  s.inter_token_latency.add_nano(20'000'000, 147);
  s.prompt_tokens_total = 300;
  s.output_tokens_total = 150;
  s.cached_tokens_total = 75;
  VariantReport v;
  v.name = "a b/c";
  v.result.stages = {s};
  v.result.summary = s;
  v.result.seed = 7;
  v.scenario.name = "mine";
  v.scenario.question = "why?";
  v.scenario.cluster.pools = {{.name = "pre",
                               .role = sim::PoolRole::kPrefill,
                               .replicas = 2,
                               .accelerator = "H100-SXM",
                               .model = "Qwen3-32B",
                               .tensor_parallel = 2,
                               .engine = {},
                               .api_server = {},
                               .labels = {},
                               .vllm_serve = {}},
                              {.name = "dec",
                               .role = sim::PoolRole::kDecode,
                               .accelerator = "H100-SXM",
                               .model = "Qwen3-32B",
                               .tensor_parallel = 4,
                               .engine = {},
                               .api_server = {},
                               .labels = {},
                               .vllm_serve = {}}};
  v.scenario.workload.load.emplace<workloads::vllm_bench::Config>();
  v.scenario.workload.load.get<workloads::vllm_bench::Config>()->burstiness = 0.5;
  Report r;
  r.variants.push_back(v);
  return r;
}

std::map<std::string, json> files(FileFormat format) {
  std::map<std::string, json> out;
  for (const FolderFile& f : report_files(three_requests(), format))
    out[f.name] = json::parse(f.text);
  return out;
}

TEST(FileNames, DifferentNamesNeverShareAFile) {
  const std::string long_a = std::string(300, 'x') + "a", long_b = std::string(300, 'x') + "b";
  const std::vector<std::string> names = {
      "a/b", "a_b", "a:b",   "a%2Fb", "a b", "",       "%",    ".",    "..",   ".hidden",
      "K8s", "k8s", "plain", "a\nb",  "é",   "v0.7.0", long_a, long_b, "A/B%", "../../x"};
  const std::vector<std::string> files = file_names(names);
  const std::vector<std::string> expected = {
      "a%2Fb", "a_b",       "a%3Ab", "a%252Fb", "a%20b", "%",     "%25",    "%2E",
      "%2E.",  "%2Ehidden", "%4B8s", "k8s",     "plain", "a%0Ab", "%C3%A9", "v0.7.0"};
  std::set<std::string> seen;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (i < expected.size()) {
      EXPECT_EQ(files[i], expected[i]) << names[i];
    }
    std::string folded = files[i];
    std::transform(folded.begin(), folded.end(), folded.begin(), ::tolower);
    EXPECT_TRUE(seen.insert(folded).second) << names[i] << " shares " << files[i];
    EXPECT_LE(files[i].size(), 150U);
    EXPECT_EQ(files[i].find('/'), std::string::npos);
  }
}

TEST(ReportFiles, InferencePerfLifecycleFiles) {
  const auto all = files(FileFormat::kInferencePerf);
  ASSERT_EQ(all.size(), 2U);
  const json& stage = all.at("a%20b%2Fc/stage_0_lifecycle_metrics.json");
  EXPECT_EQ(stage["load_summary"]["count"], 4);
  EXPECT_EQ(stage["load_summary"]["send_duration"], 4.0);
  EXPECT_EQ(stage["load_summary"]["requested_rate"], 2.0);
  EXPECT_EQ(stage["load_summary"]["achieved_rate"], 1.0);
  EXPECT_EQ(stage["load_summary"]["concurrency"], 4);
  const json& good = stage["successes"];
  EXPECT_EQ(good["count"], 3);
  EXPECT_EQ(good["latency"]["time_to_first_token"]["median"], 2.0);
  EXPECT_NEAR(good["latency"]["time_to_first_token"]["p90"].get<double>(), 2.8, 1e-9);
  for (const char* metric : {"request_latency", "normalized_time_per_output_token",
                             "time_per_output_token", "inter_token_latency"})
    EXPECT_TRUE(good["latency"].contains(metric)) << metric;
  EXPECT_EQ(good["throughput"]["output_tokens_per_sec"], 15.0);
  EXPECT_EQ(good["throughput"]["total_tokens_per_sec"], 45.0);
  EXPECT_EQ(good["prompt_tokens"]["cached"], 75);
  EXPECT_EQ(good["prompt_len"]["mean"], 100.0) << "what older consumers read";
  EXPECT_EQ(stage["failures"]["by_label"]["TimeoutError"]["count"], 1);
  const json& summary = all.at("a%20b%2Fc/summary_lifecycle_metrics.json");
  EXPECT_FALSE(summary["load_summary"].contains("requested_rate"));
}

TEST(ReportFiles, LifecycleFilesHaveThePercentilesTheirConfigLists) {
  Report r = three_requests();
  auto& config = r.variants[0]
                     .scenario.workload.load.emplace<workloads::inference_perf::Workload>()
                     .config.emplace();
  config.report.request_lifecycle.percentiles = {50, 99.99, 12.5, 50};
  for (const FolderFile& f : report_files(r, FileFormat::kInferencePerf)) {
    const json ttft = json::parse(f.text)["successes"]["latency"]["time_to_first_token"];
    EXPECT_EQ(ttft.size(), 6U) << ttft;
    EXPECT_EQ(ttft["median"], 2.0);
    EXPECT_TRUE(ttft.contains("p99.99"));
    EXPECT_TRUE(ttft.contains("p12.5"));
  }
}

TEST(ReportFiles, TheRateOfAConcurrentStageIsItsNumberOfRequests) {
  Report r = three_requests();
  r.variants[0].result.stages[0].info.requested_rate = 0;
  r.variants[0].result.stages[0].info.requests = 9;
  auto& config = r.variants[0]
                     .scenario.workload.load.emplace<workloads::inference_perf::Workload>()
                     .config.emplace();
  config.load.type = workloads::inference_perf::LoadType::kConcurrent;
  const json stage = json::parse(report_files(r, FileFormat::kInferencePerf)[0].text);
  EXPECT_EQ(stage["load_summary"]["requested_rate"], 9.0);
}

TEST(ReportFiles, CountTheStagesOfTheLoadOnly) {
  Report r = three_requests();
  sim::StageResult test = r.variants[0].result.stages[0];
  test.info.reported = false;
  test.info.is_preparation = true;
  sim::StageResult warm_up = test;
  warm_up.info.is_preparation = false;
  std::vector<sim::StageResult>& stages = r.variants[0].result.stages;
  stages = {test, warm_up, stages[0]};
  const std::vector<FolderFile> perf = report_files(r, FileFormat::kInferencePerf);
  ASSERT_EQ(perf.size(), 3U) << "two stages and the summary";
  EXPECT_EQ(perf[1].name, "a%20b%2Fc/stage_1_lifecycle_metrics.json");
  const std::vector<FolderFile> vllm = report_files(r, FileFormat::kVllmBench);
  ASSERT_EQ(vllm.size(), 1U);
  EXPECT_EQ(vllm[0].name, "a%20b%2Fc/stage_1.json");
}

TEST(ReportFiles, BenchmarkReportOfVersion01) {
  const json r =
      files(FileFormat::kBenchmarkReportV01).at("a%20b%2Fc/benchmark_report,_stage_0.yaml");
  EXPECT_EQ(r["version"], "0.1");
  const json& host = r["scenario"]["host"];
  ASSERT_EQ(host["accelerator"].size(), 3U) << "one per server";
  EXPECT_EQ(host["type"], (json{"prefill", "prefill", "decode"}));
  EXPECT_EQ(host["accelerator"][2]["count"], 4);
  EXPECT_EQ(host["accelerator"][2]["parallelism"],
            (json{{"dp", 1}, {"tp", 4}, {"pp", 1}, {"ep", 1}}));
  EXPECT_EQ(r["scenario"]["platform"]["engine"].size(), 3U);
  EXPECT_EQ(r["scenario"]["model"]["name"], "Qwen3-32B");
  EXPECT_EQ(r["scenario"]["load"]["name"], "vllm-benchmark");
  EXPECT_EQ(r["scenario"]["load"]["metadata"]["stage"], 0);
  EXPECT_EQ(r["metrics"]["time"]["duration"], 4.0) << "the send duration";
  EXPECT_EQ(r["metrics"]["requests"]["total"], 4);
  EXPECT_EQ(r["metrics"]["requests"]["failures"], 1);
  EXPECT_EQ(r["metrics"]["requests"]["input_length"]["units"], "count");
  const json& ttft = r["metrics"]["latency"]["time_to_first_token"];
  EXPECT_EQ(ttft["units"], "s");
  EXPECT_EQ(ttft["p50"], 2.0);
  for (const char* key : {"mean", "stddev", "min", "p0p1", "p1", "p5", "p10", "p25", "p75", "p90",
                          "p95", "p99", "p99p9", "max"})
    EXPECT_TRUE(ttft.contains(key)) << key;
  EXPECT_EQ(r["metrics"]["latency"]["inter_token_latency"]["units"], "s/token");
  EXPECT_EQ(r["metrics"]["throughput"], (json{{"input_tokens_per_sec", 30.0},
                                              {"output_tokens_per_sec", 15.0},
                                              {"total_tokens_per_sec", 45.0},
                                              {"requests_per_sec", 0.3}}));
}

TEST(ReportFiles, BenchmarkReportOfVersion02) {
  const json r =
      files(FileFormat::kBenchmarkReport).at("a%20b%2Fc/benchmark_report_v0.2,_stage_0.yaml");
  EXPECT_EQ(r["version"], "0.2");
  EXPECT_EQ(r["run"]["uid"], "mine/a b/c/7/0");
  const json& stack = r["scenario"]["stack"];
  ASSERT_EQ(stack.size(), 3U) << "two pools and the router";
  EXPECT_EQ(stack[0]["standardized"]["kind"], "inference_engine");
  EXPECT_EQ(stack[0]["standardized"]["role"], "prefill");
  EXPECT_EQ(stack[0]["standardized"]["replicas"], 2);
  EXPECT_EQ(stack[1]["standardized"]["accelerator"]["parallelism"]["tp"], 4);
  EXPECT_EQ(stack[2]["standardized"]["kind"], "generic");
  const json& load = r["scenario"]["load"]["standardized"];
  for (const char* key : {"tool", "tool_version", "source", "input_seq_len"})
    EXPECT_TRUE(load.contains(key)) << key;
  EXPECT_EQ(load["input_seq_len"]["distribution"], "fixed");
  EXPECT_EQ(load["input_seq_len"]["value"], 100.0);
  EXPECT_EQ(load["rate_qps"], 2.0);
  EXPECT_EQ(load["concurrency"], 4);
  const json& aggregate = r["results"]["request_performance"]["aggregate"];
  EXPECT_EQ(aggregate["throughput"]["output_token_rate"],
            (json{{"units", "tokens/s"}, {"mean", 15.0}}));
  EXPECT_EQ(aggregate["throughput"]["request_rate"]["units"], "queries/s");
  EXPECT_EQ(aggregate["latency"]["request_latency"]["max"], 4.0);
  EXPECT_EQ(aggregate["requests"]["output_length"]["mean"], 50.0);
  EXPECT_EQ(r["results"]["observability"]["prefix_cache_hit_rate"]["mean"], 25.0);
}

TEST(ReportFiles, ResultFileOfVllmBench) {
  const json r = files(FileFormat::kVllmBench).at("a%20b%2Fc/stage_0.json");
  EXPECT_EQ(r["num_prompts"], 4);
  EXPECT_EQ(r["request_rate"], 2.0);
  EXPECT_EQ(r["burstiness"], 0.5);
  EXPECT_EQ(r["max_concurrency"], 4);
  EXPECT_EQ(r["duration"], 10.0);
  EXPECT_EQ(r["completed"], 3);
  EXPECT_EQ(r["failed"], 1);
  EXPECT_EQ(r["total_input_tokens"], 300);
  EXPECT_EQ(r["total_output_tokens"], 150);
  EXPECT_EQ(r["request_throughput"], 0.3);
  EXPECT_EQ(r["output_throughput"], 15.0);
  EXPECT_EQ(r["total_token_throughput"], 45.0);
  EXPECT_EQ(r["mean_ttft_ms"], 2000.0);
  EXPECT_EQ(r["median_ttft_ms"], 2000.0);
  EXPECT_NEAR(r["std_ttft_ms"].get<double>(), 816.5, 0.1);
  EXPECT_NEAR(r["p90_ttft_ms"].get<double>(), 2800.0, 1e-9);
  EXPECT_EQ(r["mean_tpot_ms"], 20.0);
  EXPECT_NEAR(r["p99_itl_ms"].get<double>(), 20, 0.1);
  EXPECT_EQ(r["mean_e2el_ms"], 3000.0);
  EXPECT_TRUE(r["request_goodput"].is_null());
  Report late = three_requests();
  late.variants[0].result.stages[0].info.lead_s = 2;
  late.variants[0].goodput =
      GoodputResult{.goals = {}, .stages = {{.good = 6, .good_tokens = 0}}, .summary = {}};
  const json waited = json::parse(report_files(late, FileFormat::kVllmBench)[0].text);
  EXPECT_EQ(waited["duration"], 12.0) << "with the gap before the first request";
  EXPECT_EQ(waited["output_throughput"], 12.5);
  EXPECT_EQ(waited["request_goodput"], 0.5);
}

}  // namespace
}  // namespace routesim::tools
