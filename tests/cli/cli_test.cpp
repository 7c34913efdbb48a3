// The command as a user runs it: what goes to which stream, exit codes, files, signals.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <yaml-cpp/yaml.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "tests/cli/cli_fixture.h"

namespace routesim::tools::testing {
namespace {

TEST_F(Cli, VersionAndHelpGoToStandardOutput) {
  const Result version = run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out.rfind("routesim ", 0), 0U);
  const Result help = run({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.out.find("Exit codes"), std::string::npos);
  const Result command = run({"run", "--help"});
  EXPECT_EQ(command.code, 0);
  EXPECT_NE(command.out.find("--set KEY=VALUE"), std::string::npos);
  EXPECT_EQ(version.err + help.err + command.err, "");
}

TEST_F(Cli, UsageErrorsExitWithTwoAndPrintNothing) {
  const std::string s = tiny();
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"rnu"},
      {"run"},
      {"run", s, "extra"},
      {"run", s, "--sed", "1"},
      {"run", s, "--seed", "-1"},
      {"run", s, "--seed", "1.5"},
      {"run", s, "--seed", "1", "--seed", "2"},
      {"run", s, "--seed"},
      {"run", s, "--output", "jsn"},
      {"run", s, "-o", "json", "-o", "csv"},
      {"run", s, "--progress", "maybe"},
      {"run", s, "--variant", "nobody"},
      {"run", s, "--set", "cluster"},
      {"run", s, "--set", "cluster.pools[zz].replicas=2"},
      {"run", s, "--set", "cluster.pools[a].replicas=0"},
      {"list", "sandwiches"},
      {"check"},
      {"check", s, "--output", "xml"},
      {"run", (folder_ / "nowhere.yaml").string()},
      {"run", folder_.string()},
  };
  for (const auto& arguments : wrong) {
    const Result result = run(arguments);
    const std::string shown = arguments.empty() ? "" : arguments.back();
    EXPECT_EQ(result.code, 2) << shown << result.err;
    EXPECT_EQ(result.out, "") << shown;
    EXPECT_NE(result.err, "") << shown;
  }
  EXPECT_NE(run({"rnu"}).err.find("did you mean run?"), std::string::npos);
  EXPECT_NE(run({"run", s, "--sedd", "1"}).err.find("did you mean --seed?"), std::string::npos);
}

TEST_F(Cli, RunPrintsTheSameBytesForTheSameSeed) {
  const std::string s = tiny();
  const Result first = run({"run", s, "--output", "json"});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(run({"run", s, "--output", "json"}).out, first.out);
  EXPECT_NE(run({"run", s, "--output", "json", "--seed", "2"}).out, first.out);
  const auto doc = nlohmann::json::parse(first.out);
  EXPECT_EQ(doc["scenario"], "tiny");
  ASSERT_EQ(doc["variants"].size(), 2U);
  EXPECT_EQ(doc["variants"][0]["name"], "rotation");
  EXPECT_EQ(doc["variants"][0]["summary"]["successes"]["count"], 40);
  EXPECT_EQ(doc["variants"][1]["replicas"].size(), 2U);
}

TEST_F(Cli, RunOneVariantWithOverrides) {
  const Result result = run({"run", tiny(), "--variant", "chance", "--set",
                             "cluster.pools[a].replicas=3", "-o", "json", "--quiet", "--check"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const auto doc = nlohmann::json::parse(result.out);
  ASSERT_EQ(doc["variants"].size(), 1U);
  EXPECT_EQ(doc["variants"][0]["replicas"].size(), 3U);
}

TEST_F(Cli, EveryErrorAtOnceOnStandardErrorOnly) {
  const std::string s = write("bad.yaml",
                              "name: bad\n"
                              "workload: {groups: {requests: 1, rate: .nan}}\n"
                              "cluster:\n"
                              "  pools:\n"
                              "  - {name: a, accelerator: H100-SXM, model: 5, replicas: -1}\n"
                              "  - {accelerater: H100}\n"
                              "routing: {endpoint_picker: missing.yaml}\n");
  for (const std::string& command : std::vector<std::string>{"run", "check"}) {
    const Result result = run({command, s});
    EXPECT_EQ(result.code, 2);
    EXPECT_EQ(result.out, "");
    for (const std::string& part : std::vector<std::string>{
             "bad.yaml:2:40: error: workload.groups.rate: must be a number (got .nan)",
             "bad.yaml:5:45: error: cluster.pools[0].model: must be text (got 5)",
             "bad.yaml:5:58: error: cluster.pools[0].replicas: must be at least 0 (got -1)",
             "bad.yaml:6:5: error: cluster.pools[1].model: is missing",
             "bad.yaml:6:6: error: cluster.pools[1].accelerater: unknown key",
             "did you mean accelerator?", "bad.yaml:7:28: error: routing.endpoint_picker: cannot"})
      EXPECT_NE(result.err.find(part), std::string::npos) << part << "\n" << result.err;
  }
  const Result data = run({"check", s, "--output", "json"});
  EXPECT_EQ(data.code, 2);
  const auto doc = nlohmann::json::parse(data.out);
  EXPECT_EQ(doc[0]["ok"], false);
  EXPECT_GE(doc[0]["diagnostics"].size(), 6U);
  EXPECT_EQ(doc[0]["diagnostics"][0]["line"], 2);
}

TEST_F(Cli, CheckListsTheKeysOfAFile) {
  const std::string e = write("e.yaml",
                              "apiVersion: llm-d.ai/v1alpha1\n"
                              "kind: EndpointPickerConfig\n"
                              "plugins:\n"
                              "- type: load-aware-scorer\n"
                              "  parameters: {threshold: 4}\n"
                              "- type: file-discovery\n"
                              "  parameters: {path: p}\n"
                              "requestHandler: {propagatePriority: false}\n");
  const Result text = run({"check", "--keys", e});
  EXPECT_EQ(text.code, 0) << text.err;
  for (const std::string part :
       {"e.yaml: ok (EndpointPickerConfig: 2 plugins, 1 profile), 5 keys used, 2 without effect\n",
        "e.yaml: note: the router is taken for release 2026-08 (default: the head of August 2026; "
        "later ones differ in pulls and tiers)",
        "e.yaml:5:16: used: plugins[0].parameters.threshold\n",
        "e.yaml:7:16: no effect: plugins[1].parameters.path (the servers are the scenario's)\n",
        "e.yaml:8:18: no effect: requestHandler.propagatePriority (it is switched off)\n"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part << text.out;
  const auto doc = nlohmann::json::parse(run({"check", "--keys", e, "-o", "json"}).out);
  EXPECT_EQ(doc[0]["kind"], "EndpointPickerConfig");
  EXPECT_EQ(doc[0]["notes"].size(), 1U);
  EXPECT_EQ(doc[0]["keys"].size(), 7U);
  const auto& key = doc[0]["keys"][6];
  EXPECT_EQ(key["line"], 8);
  EXPECT_EQ(key["column"], 18);
  EXPECT_EQ(key["format"], "EndpointPickerConfig");
  EXPECT_EQ(key["path"], "requestHandler.propagatePriority");
  EXPECT_EQ(key["fate"], "no effect");
  EXPECT_EQ(key["why"], "it is switched off");
  EXPECT_FALSE(nlohmann::json::parse(run({"check", e, "-o", "json"}).out)[0].contains("keys"));
  EXPECT_EQ(run({"schema", "keys"}).code, 2) << "it has no JSON form";
}

TEST_F(Cli, CrossFieldErrorsHavePlacesToo) {
  const std::string s = write("cross.yaml",
                              "name: cross\n"
                              "workload: {groups: {requests: 1}}\n"
                              "cluster:\n"
                              "  pools:\n"
                              "  - name: a\n"
                              "    accelerator: H100-SXN\n"
                              "    model: Qwen3-32B\n");
  const Result result = run({"check", s});
  EXPECT_EQ(result.code, 2);
  EXPECT_NE(result.err.find("cross.yaml:6:18: error: cluster.pools[0].accelerator"),
            std::string::npos)
      << result.err;
}

TEST_F(Cli, FilesAppearCompleteOrNotAtAll) {
  const std::string json = (folder_ / "out.json").string();
  const std::string csv = (folder_ / "out.csv").string();
  const Result result =
      run({"run", tiny(), "-o", "json=" + json, "-o", "csv=" + csv, "-o", "table", "--quiet"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(slurp(json))["scenario"], "tiny");
  EXPECT_EQ(slurp(csv).rfind("scenario,variant,", 0), 0U);
  EXPECT_NE(result.out.find("tiny, seed 1"), std::string::npos);
  for (const auto& entry : fs::directory_iterator(folder_))
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();

  const Result nowhere = run({"run", tiny(), "-o", "json=" + json + "/x", "--quiet"});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_EQ(nowhere.out, "");
  EXPECT_NE(nowhere.err.find("cannot write"), std::string::npos);
}

TEST_F(Cli, ALinkStaysALinkToWhatIsWritten) {
  fs::create_directories(folder_ / "store");
  write("store/real.json", "old");
  fs::create_symlink("store/real.json", folder_ / "link.json");
  fs::create_symlink(folder_ / "nowhere" / "x.json", folder_ / "dangling.json");
  const std::string tiny_path = tiny();
  const auto into = [&](const char* name) {
    return run({"run", tiny_path, "-q", "-o", "json=" + (folder_ / name).string()});
  };
  EXPECT_EQ(into("link.json").code, 0);
  EXPECT_TRUE(fs::is_symlink(folder_ / "link.json"));
  EXPECT_EQ(nlohmann::json::parse(slurp(folder_ / "store" / "real.json"))["scenario"], "tiny");
  EXPECT_EQ(into("dangling.json").code, 2);
  EXPECT_TRUE(fs::is_symlink(folder_ / "dangling.json"));
}

TEST_F(Cli, TimeSeriesOnRequest) {
  const auto plain = nlohmann::json::parse(run({"run", tiny(), "-q", "-o", "json"}).out);
  EXPECT_FALSE(plain["variants"][0].contains("series"));
  const std::string csv = (folder_ / "series.csv").string();
  const Result result =
      run({"run", "--series=250ms", tiny(), "-q", "-o", "json", "-o", "series=" + csv});
  ASSERT_EQ(result.code, 0) << result.err;
  auto doc = nlohmann::json::parse(result.out);
  const auto series = doc["variants"][0]["series"];
  EXPECT_EQ(series["interval_s"], 0.25);
  EXPECT_EQ(series["time_s"][2], 0.5);
  const std::size_t points = series["time_s"].size();
  ASSERT_EQ(series["endpoints"].size(), 2U);
  for (const char* column : {"waiting", "running", "in_flight", "kv_cache_usage", "step_time_s"})
    EXPECT_EQ(series["endpoints"][1][column].size(), points) << column;
  EXPECT_TRUE(series["endpoints"][0]["prefix_hit_rate"][0].is_null());
  EXPECT_EQ(series["cluster"]["sent"][0], 0);
  const std::string text = slurp(csv);
  EXPECT_EQ(text.rfind("variant,endpoint,pool,time_s,waiting", 0), 0U);
  EXPECT_NE(text.find("\nchance,a-1,a,0.25,"), std::string::npos) << text.substr(0, 300);
  // Watching changes nothing.
  for (auto& variant : doc["variants"]) variant.erase("series");
  EXPECT_EQ(doc, plain);
  EXPECT_EQ(run({"run", tiny(), "--series=0"}).code, 2);
  EXPECT_EQ(run({"run", tiny(), "--series=often"}).code, 2);
}

TEST_F(Cli, OneRecordPerRequest) {
  const std::string csv = (folder_ / "r.csv").string();
  const std::string lines = (folder_ / "r.jsonl").string();
  ASSERT_EQ(run({"run", tiny(), "-q", "--records", csv}).code, 0);
  ASSERT_EQ(run({"run", tiny(), "-q", "--records", lines, "--variant", "chance"}).code, 0);
  const std::string text = slurp(csv);
  EXPECT_EQ(
      text.rfind("variant,id,stage,endpoint,prefill_endpoint,due_s,sent_s,first_token_s,end_s,"
                 "prompt_tokens,cached_tokens,predicted_hit_tokens,output_tokens,preemptions,"
                 "outcome,failure,adapter,class\n",
                 0),
      0U);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 2 * 40);
  EXPECT_NE(text.find("\nrotation,0,0,a-0,,0.107170006,0.107170006,"), std::string::npos)
      << text.substr(0, 400);
  std::istringstream in(slurp(lines));
  std::string line;
  std::set<std::int64_t> ids;
  double last_end = 0;
  while (std::getline(in, line)) {
    const auto r = nlohmann::json::parse(line);
    ids.insert(r["id"].get<std::int64_t>());
    EXPECT_LE(r["sent_s"].get<double>(), r["first_token_s"].get<double>());
    EXPECT_LE(last_end, r["end_s"].get<double>());
    last_end = r["end_s"].get<double>();
    EXPECT_EQ(r["prompt_tokens"], 576);
    EXPECT_EQ(r["output_tokens"], 16);
    EXPECT_EQ(r["outcome"], "success");
    EXPECT_FALSE(r.contains("failure"));
    EXPECT_FALSE(r.contains("adapter"));
    EXPECT_FALSE(r.contains("predicted_hit_tokens")) << "a balancer has no index";
  }
  EXPECT_EQ(ids.size(), 40U);
  EXPECT_EQ(*ids.rbegin(), 39);
  EXPECT_EQ(run({"run", tiny(), "--records", "r.txt"}).code, 2);
  EXPECT_EQ(run({"run", tiny(), "--records", csv + "/x.csv"}).code, 2);
  for (const auto& entry : fs::directory_iterator(folder_))
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();
}

TEST_F(Cli, RecordsNameTheAdapter) {
  const std::string csv = (folder_ / "r.csv").string();
  ASSERT_EQ(run({"run", tiny(), "-q", "--records", csv, "--set",
                 "workload.lora_traffic_split=[{name: x, split: 1}]", "--set",
                 "cluster.pools[0].engine.max_loras=2"})
                .code,
            0);
  const std::string text = slurp(csv);
  std::size_t named = 0;
  for (std::size_t at = 0; (at = text.find(",success,,x,\n", at)) != std::string::npos; ++at)
    ++named;
  EXPECT_EQ(named, 80U);
}

TEST_F(Cli, RecordsNameTheTrafficClass) {
  const std::string csv = (folder_ / "r.csv").string();
  ASSERT_EQ(run({"run", tiny(), "-q", "--records", csv, "--set",
                 "workload.classes=[{name: chat, share: 1}, {name: batch, share: 0}]"})
                .code,
            0);
  const std::string text = slurp(csv);
  std::size_t named = 0;
  for (std::size_t at = 0; (at = text.find(",success,,,chat\n", at)) != std::string::npos; ++at)
    ++named;
  EXPECT_EQ(named, 80U);
}

TEST_F(Cli, ATraceShowsStepsRequestsAndCounters) {
  const std::string path = (folder_ / "t.json").string();
  ASSERT_EQ(run({"run", tiny(), "-q", "-o", "trace=" + path, "--check"}).code, 0);
  const auto trace = nlohmann::json::parse(slurp(path));
  EXPECT_EQ(trace["otherData"]["dropped_events"], 0);
  std::map<std::string, int> kinds;
  std::map<std::pair<int, int>, double> last;  // By thread: the end of its last slice.
  std::map<std::string, int> open;
  std::set<std::string> processes;
  int steps = 0;
  for (const auto& e : trace["traceEvents"]) {
    const std::string kind = e["ph"];
    ++kinds[kind];
    if (kind == "M" && e["name"] == "process_name") processes.insert(e["args"]["name"]);
    if (kind == "b") ++open[e["id"]];
    if (kind == "e") --open[e["id"]];
    if (kind != "X") continue;
    double& end = last[{e["pid"], e["tid"]}];
    EXPECT_GE(e["ts"].get<double>(), end - 1e-4) << "steps overlap";
    end = e["ts"].get<double>() + e["dur"].get<double>();
    steps += e["args"]["steps"].get<int>();
  }
  EXPECT_EQ(processes, (std::set<std::string>{"rotation: a-0", "rotation: a-1", "chance: a-0",
                                              "chance: a-1"}));
  EXPECT_EQ(open.size(), 40U);
  for (const auto& [id, n] : open) EXPECT_EQ(n, 0) << id;
  EXPECT_EQ(kinds["b"], 2 * 40 * 5)
      << "the request, to the router, the API server, to the first token, the answer";
  EXPECT_GT(kinds["C"], 20);
  EXPECT_GT(steps, kinds["X"]) << "decode steps are merged";
}

TEST_F(Cli, AStuckRunSaysWhoWaitsForWhatAndHowToRepeatIt) {
  // Negative priorities are let through below a saturation of 0, and nothing ever expires.
  const std::string s =
      write("stuck.yaml",
            "name: stuck\n"
            "workload:\n"
            "  groups: {requests: 1, rate: 20}\n"
            "  sheddable_fraction: 1\n"
            "cluster:\n"
            "  pools:\n"
            "  - {name: a, accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2}\n"
            "routing:\n"
            "  balancer: endpoint-picker\n"
            "  endpoint_picker:\n"
            "    apiVersion: llm-d.ai/v1alpha1\n"
            "    kind: EndpointPickerConfig\n"
            "    featureGates: [flowControl]\n"
            "    plugins:\n"
            "    - type: queue-scorer\n"
            "    - type: max-score-picker\n"
            "    - type: single-profile-handler\n"
            "    - {type: priority-holdback-policy, parameters: {minCeiling: 0}}\n"
            "    flowControl:\n"
            "      defaultRequestTTL: 0s\n"
            "      usageLimitPolicyPluginRef: priority-holdback-policy\n"
            "      priorityBands: [{priority: 0}, {priority: -1}]\n"
            "    schedulingProfiles:\n"
            "    - name: default\n"
            "      plugins: [{pluginRef: queue-scorer}, {pluginRef: max-score-picker}]\n");
  const Result result = run({"run", s, "--seed", "23", "--quiet", "--check"});
  EXPECT_EQ(result.code, 3) << result.err;
  EXPECT_EQ(result.out, "");
  for (const char* part : {"request 0, sent at", "waits for room in the pool", "with seed 23",
                           "this is a bug in routesim "})
    EXPECT_NE(result.err.find(part), std::string::npos) << part << "\n" << result.err;
}

TEST_F(Cli, AFullDiskIsAnErrorAClosedPipeIsNot) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  const std::string err = (folder_ / "stderr").string();
  EXPECT_EQ(wait_for(start({"run", tiny(), "--quiet"}, "/dev/full", err)), 2);
  EXPECT_NE(slurp(err).find("cannot write to standard output"), std::string::npos);
  EXPECT_EQ(run({"run", tiny(), "--quiet", "-o", "json=/dev/full"}).code, 2);

  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  const std::string pipe = "/proc/self/fd/" + std::to_string(ends[1]);
  EXPECT_EQ(wait_for(start({"run", tiny(), "--quiet"}, pipe, err)), 0);
  EXPECT_EQ(slurp(err), "");
  ::close(ends[1]);
}

TEST_F(Cli, AnInterruptedRunIsPartialAndSaysSo) {
  const std::string out = (folder_ / "stdout").string();
  const std::string err = (folder_ / "stderr").string();
  const std::string json = (folder_ / "r.json").string();
  const std::string junit = (folder_ / "r.xml").string();
  const pid_t child =
      start({"run", tiny(50'000'000), "--progress", "never", "-o", "github", "-o", "json=" + json,
             "-o", "junit=" + junit, "-o", "inference-perf=" + (folder_ / "perf").string(), "-o",
             "vllm-bench=" + (folder_ / "bench").string(), "-o",
             "benchmark-report=" + (folder_ / "llmd").string()},
            out, err);
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  ::kill(child, SIGINT);
  EXPECT_EQ(wait_for(child), 130);
  EXPECT_NE(slurp(err).find("interrupted"), std::string::npos) << slurp(err);
  EXPECT_FALSE(fs::exists(json));
  if (!fs::exists(json + ".partial")) return;  // It came before the run began.
  const auto partial = nlohmann::json::parse(slurp(json + ".partial"));
  EXPECT_NE(partial["verdict"]["headline"].get<std::string>().find(
                "1 stage did not end and is left out. No stage ended."),
            std::string::npos)
      << partial["verdict"];
  const auto summary = partial["variants"][0]["summary"];
  EXPECT_LT(summary["load_summary"]["count"], 50'000'000);
  EXPECT_TRUE(summary["kv_cache_usage"]["mean"].is_null());
  EXPECT_NE(slurp(out).find("::error "), std::string::npos) << slurp(out);
  EXPECT_NE(slurp(junit + ".partial").find("failures=\"1\""), std::string::npos);
  for (const char* file : {"perf.partial/rotation/summary_lifecycle_metrics.json",
                           "perf.partial/rotation/stage_0_lifecycle_metrics.json",
                           "bench.partial/rotation/stage_0.json"})
    EXPECT_EQ(nlohmann::json::parse(slurp(folder_ / file))["interrupted"], true) << file;
  const std::string report =
      slurp(folder_ / "llmd.partial/rotation/benchmark_report_v0.2,_stage_0.yaml");
  EXPECT_TRUE(report.starts_with("# interrupted")) << report.substr(0, 80);
  EXPECT_EQ(YAML::Load(report)["version"].as<std::string>(), "0.2");
  const Result compared =
      run({"compare", json + ".partial", json + ".partial", "--fail-if", "ttft_ms.mean>+5%"});
  EXPECT_EQ(compared.code, 4) << compared.out << compared.err;
}

TEST_F(Cli, ListsAndSchema) {
  for (const std::string& what : std::vector<std::string>{"models", "accelerators", "plugins"}) {
    const Result result = run({"list", what});
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_GT(std::count(result.out.begin(), result.out.end(), '\n'), 3) << what;
  }
  const Result all = run({"list"});
  EXPECT_EQ(all.code, 0);
  for (const char* what : {"models", "accelerators", "plugins", "balancers", "scenarios"})
    EXPECT_NE(all.out.find(std::string("routesim list ") + what + "\n"), std::string::npos);
  const Result scenarios = run({"list", "scenarios", "--folder", folder_.string()});
  EXPECT_EQ(scenarios.code, 0);
  tiny();
  EXPECT_NE(run({"list", "scenarios", "--folder", folder_.string()}).out.find("Does it run?"),
            std::string::npos);
  const Result schema = run({"schema"});
  EXPECT_EQ(schema.code, 0);
  EXPECT_EQ(nlohmann::json::parse(schema.out)["type"], "object");
}

// What the reader takes under another tool's name, an editor must not mark as wrong.
TEST_F(Cli, TheSchemaKnowsVllmsSpellings) {
  const auto scenario = nlohmann::json::parse(run({"schema"}).out)["properties"];
  const auto pool = scenario["cluster"]["properties"]["pools"]["items"]["properties"];
  for (const auto& [vllm, here] : {std::pair("tensor_parallel_size", "tensor_parallel"),
                                   std::pair("pipeline_parallel_size", "pipeline_parallel"),
                                   std::pair("data_parallel_size", "data_parallel"),
                                   std::pair("enable_expert_parallel", "expert_parallel")}) {
    EXPECT_TRUE(pool.contains(vllm)) << vllm;
    EXPECT_EQ(pool[vllm], pool[here]);
  }
  EXPECT_EQ(scenario["workload"]["properties"]["vllm_bench"]["additionalProperties"], true);
  EXPECT_EQ(scenario["workload"]["properties"]["groups"]["additionalProperties"], false);
  EXPECT_EQ(run({"schema", "plan"}).out.find("tensor_parallel_size"), std::string::npos);
}

TEST_F(Cli, ExplainedYamlIsYaml) {
  const Result both = run({"explain", tiny(), "--yaml"});
  ASSERT_EQ(both.code, 0) << both.err;
  EXPECT_TRUE(both.out.starts_with("# variant rotation\n")) << both.out.substr(0, 80);
  EXPECT_NE(both.out.find("\n---\n# variant chance\n"), std::string::npos);
  const std::vector<YAML::Node> documents = YAML::LoadAll(both.out);
  ASSERT_EQ(documents.size(), 2U);
  EXPECT_EQ(documents[1]["routing"]["balancer"].as<std::string>(), "random");
  // What it prints is a scenario, which says the same.
  const Result one = run({"explain", tiny(), "--yaml", "--variant", "chance"});
  const Result again = run({"explain", write("again.yaml", one.out), "--yaml"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out.substr(again.out.find('\n')), one.out.substr(one.out.find('\n')));
}

TEST_F(Cli, ExplainNamesOrigins) {
  const std::string s = tiny();
  const Result result =
      run({"explain", s, "--variant", "chance", "--set", "cluster.pools[a].replicas=3"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("--set"), std::string::npos);
  EXPECT_NE(result.out.find("tiny.yaml:11:"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("default"), std::string::npos);
  EXPECT_NE(result.out.find("KV blocks"), std::string::npos);
}

}  // namespace
}  // namespace routesim::tools::testing
