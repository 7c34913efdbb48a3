// What the world outside can do to a run: signals, limits, places that cannot be written to.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/cli/cli_fixture.h"
#include "tools/ingest/scenario/run_checks.h"

namespace routesim::tools::testing {
namespace {

using Robustness = Cli;

std::vector<std::string> leftovers(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().string().find(".tmp-") != std::string::npos)
      names.push_back(entry.path().string());
  return names;
}

TEST_F(Robustness, SignalsEndARunWithMarkedPartialResultsInEveryFormat) {
  ::signal(SIGHUP, SIG_DFL);  // nohup may run the tests.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string json = (folder_ / "out.json").string();
    const std::string csv = (folder_ / "out.csv").string();
    for (const std::string& complete : {json, csv}) std::ofstream(complete) << "complete";
    const std::string out = (folder_ / "stdout").string();
    const std::string err = (folder_ / "stderr").string();
    const pid_t child =
        start({"run", tiny(50'000'000), "--progress", "never", "-o", "json=" + json, "-o",
               "csv=" + csv, "-o", "table", "-o", "vllm-bench=" + (folder_ / "bench").string()},
              out, err);
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    ::kill(child, signal);
    EXPECT_EQ(wait_for(child), 130);
    EXPECT_NE(slurp(err).find("interrupted, the results are partial"), std::string::npos);
    for (const std::string& complete : {json, csv}) EXPECT_EQ(slurp(complete), "complete");
    EXPECT_FALSE(fs::exists(folder_ / "bench")) << "the folder of complete results";
    EXPECT_TRUE(fs::exists(folder_ / "bench.partial"));
    const auto parsed = nlohmann::json::parse(slurp(json + ".partial"));
    EXPECT_EQ(parsed["interrupted"], true);
    EXPECT_EQ(parsed["variants"].size(), 1U) << "the second variant never began";
    EXPECT_NE(slurp(csv + ".partial").find("tiny,rotation,all,,interrupted,count,count,1,,"),
              std::string::npos);
    EXPECT_NE(slurp(out).find("The run was interrupted, so its numbers are partial"),
              std::string::npos);
    EXPECT_TRUE(leftovers(folder_).empty());
  }
}

TEST_F(Robustness, PartialSeriesTraceAndRecordsSaySo) {
  const auto at = [this](const std::string& name) { return (folder_ / name).string(); };
  for (const char* records : {"r.csv", "r.jsonl"}) {
    const pid_t child =
        start({"run", tiny(50'000'000), "--progress", "never", "-o", "series=" + at("s.csv"), "-o",
               "trace=" + at("t.json"), "-o", "html=" + at("p.html"), "--records", at(records)},
              at("stdout"), at("stderr"));
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    ::kill(child, SIGINT);
    ASSERT_EQ(wait_for(child), 130);
    for (const char* name : {"s.csv", "t.json", "p.html", records})
      EXPECT_FALSE(fs::exists(at(name))) << name;
  }
  const std::string mark = "\n# interrupted: the results are partial\n";
  EXPECT_TRUE(slurp(at("s.csv.partial")).ends_with(mark));
  EXPECT_TRUE(slurp(at("r.csv.partial")).ends_with(mark));
  EXPECT_TRUE(slurp(at("r.jsonl.partial")).ends_with("\n{\"interrupted\":true}\n"));
  const auto trace = nlohmann::json::parse(slurp(at("t.json.partial")));
  EXPECT_EQ(trace["otherData"]["interrupted"], true);
  EXPECT_EQ(trace["otherData"]["note"], "interrupted: the trace is partial");
  // A page is read by its name.
  const std::string page = at("p.html.partial");
  const Result compared = run({"compare", page, page});
  EXPECT_EQ(compared.code, 0) << compared.err;
  EXPECT_NE(compared.out.find("the base was interrupted"), std::string::npos) << compared.out;
  EXPECT_TRUE(leftovers(folder_).empty());
}

TEST_F(Robustness, AMeasuredResultOfAnInterruptedRunIsRefused) {
  write("part.json", "{\"interrupted\": true, \"mean_ttft_ms\": 5}");
  const std::string file =
      write("s.yaml", slurp(tiny()) + "measured: {csv: part.json, policy: x}\n");
  const Result checked = run({"check", file});
  EXPECT_EQ(checked.code, 2);
  EXPECT_NE(checked.err.find("part.json:1:17: error: interrupted: is a result of an interrupted "
                             "run: its numbers are partial"),
            std::string::npos)
      << checked.err;
}

TEST_F(Robustness, VariantsWithSimilarNamesGetFoldersOfTheirOwn) {
  std::string text = slurp(tiny());
  text.resize(text.find("variants:"));
  const std::string file = write(
      "names.yaml", text + "variants: [{name: a/b}, {name: a_b}, {name: 'a:b'}, {name: A_b}]\n");
  const std::string folder = (folder_ / "files").string();
  const Result result = run({"run", file, "-q", "-o", "inference-perf=" + folder});
  ASSERT_EQ(result.code, 0) << result.err;
  for (const char* name : {"a%2Fb", "a_b", "a%3Ab", "%41_b"})
    EXPECT_TRUE(fs::exists(folder_ / "files" / name / "summary_lifecycle_metrics.json")) << name;
}

TEST_F(Robustness, ACompleteRunIsNotMarked) {
  const Result result = run({"run", tiny(), "-q", "-o", "json"});
  ASSERT_EQ(result.code, 0);
  EXPECT_FALSE(nlohmann::json::parse(result.out).contains("interrupted"));
  EXPECT_EQ(run({"run", tiny(), "-q", "-o", "csv"}).out.find("interrupted"), std::string::npos);
}

TEST_F(Robustness, ARunThatCannotFitIsRefusedBeforeItStarts) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve more address space than the limit leaves";
#endif
  const std::string scenario = tiny();
  const std::string out = (folder_ / "stdout").string();
  const std::string err = (folder_ / "stderr").string();
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const struct rlimit small = {.rlim_cur = rlim_t{600} << 20U, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &small), 0);
  const pid_t child = start({"run", scenario, "-q", "--set", "cluster.pools[a].replicas=60000",
                             "--set", "cluster.pools[a].data_parallel=8"},
                            out, err);
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(wait_for(child), 2);
  EXPECT_EQ(slurp(out), "");
  EXPECT_NE(slurp(err).find("the run takes at least"), std::string::npos) << slurp(err);
  EXPECT_NE(slurp(err).find("0.5 GiB are available"), std::string::npos) << slurp(err);
  // `check` is about the scenario, not about this machine.
  EXPECT_EQ(run({"check", scenario, "--set", "cluster.pools[a].replicas=60000"}).code, 0);
}

TEST_F(Robustness, MemoryThatRunsOutIsNoBug) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers take all the address space they want";
#endif
  const std::string scenario =
      write("pool.yaml", "name: pool\n" + two_servers("requests: 10, rate: 5, groups: 10000000"));
  const std::string out = (folder_ / "stdout").string();
  const std::string err = (folder_ / "stderr").string();
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const struct rlimit small = {.rlim_cur = rlim_t{200} << 20U, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &small), 0);
  const pid_t child = start({"check", scenario}, out, err);
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(wait_for(child), 2);
  EXPECT_EQ(slurp(err).find("routesim: error: out of memory\n  hint: "), 0U) << slurp(err);
}

TEST_F(Robustness, TheEstimateOfMemoryCountsServersAndTheirCaches) {
  sim::RunPlan plan;
  plan.pools.resize(2);
  for (sim::ResolvedPool& pool : plan.pools) {
    pool.config.replicas = 3;
    pool.config.data_parallel = 2;
    pool.rules.block_size = 16;
    pool.rules.num_gpu_blocks = 1'000'000;
  }
  const MemoryNeed need = memory_need(plan);
  EXPECT_EQ(need.idle, 12 * std::int64_t{3500 + 24 * 16});
  EXPECT_EQ(need.full, need.idle + 12'000'000 * std::int64_t{10});
  plan.pools[1].rules.enable_prefix_caching = false;
  EXPECT_EQ(memory_need(plan).full, need.idle + 6'000'000 * std::int64_t{10});
  plan.endpoint_picker.emplace();
  plan.scenario.routing.router_replicas = 2;
  const MemoryNeed routed = memory_need(plan);
  EXPECT_EQ(routed.full, need.idle + 6'000'000 * std::int64_t{10 + 2 * 50});
  const auto found = [&plan](std::optional<std::int64_t> available) {
    Diagnostics d;
    check_memory(plan, available, d);
    return d.has_errors() ? "error" : d.items().empty() ? "nothing" : "warning";
  };
  EXPECT_STREQ(found(routed.full), "nothing");
  EXPECT_STREQ(found(routed.full - 1), "warning");
  EXPECT_STREQ(found(routed.idle), "warning");
  EXPECT_STREQ(found(routed.idle - 1), "error");
  EXPECT_STREQ(found(std::nullopt), "nothing");
  const auto available = available_memory();
  if (fs::exists("/proc/meminfo")) {
    ASSERT_TRUE(available.has_value());
    EXPECT_GT(*available, std::int64_t{1} << 20U);
  }
}

TEST_F(Robustness, RequestsThatNoServerTakesAreSaidBeforeTheRun) {
  const std::string file = write("long.yaml",
                                 "name: long\n"
                                 "workload: {groups: {groups: 2, requests: 3, prefix_len: 50000, "
                                 "suffix_len: 10, output_len: 3}}\n"
                                 "cluster:\n"
                                 "  pools:\n"
                                 "  - {name: a, accelerator: H100-SXM, model: Qwen3-32B, "
                                 "tensor_parallel: 2}\n");
  const Result warned = run({"check", file});
  EXPECT_EQ(warned.code, 0);
  EXPECT_NE(warned.err.find("long.yaml:2:11: warning: workload: the first 3 requests have at least "
                            "50013 tokens of prompt and answer, and no server takes more than "
                            "40960: they will fail"),
            std::string::npos)
      << warned.err;
  EXPECT_EQ(run({"run", file, "--quiet"}).code, 0) << "a run of failures is still a run";
  const std::string length = "cluster.pools[0].engine.max_model_len=";
  EXPECT_EQ(run({"check", file, "--set", length + "50013"}).err, "");
  EXPECT_NE(run({"check", file, "--set", length + "50012"}).err, "");
  const std::string blocks = "cluster.pools[0].engine.num_gpu_blocks=";
  const auto warns = [&](const std::string& number) {
    return run({"check", file, "--set", length + "60000", "--set", blocks + number})
               .err.find("they will fail") != std::string::npos;
  };
  EXPECT_FALSE(warns("3127"));
  EXPECT_TRUE(warns("3126"));
  const std::string prefix = "workload.groups.prefix_len=";
  for (const char* command : {"check", "run"}) {
    const Result refused = run({command, file, "--set", prefix + "16777216"});
    EXPECT_EQ(refused.code, 2);
    EXPECT_EQ(refused.out, "");
    EXPECT_NE(refused.err.find("has a prompt of 16777226 tokens"), std::string::npos)
        << refused.err;
  }
  EXPECT_EQ(run({"check", file, "--set", length + "16777217"}).code, 2) << "the engine's bound";
  EXPECT_EQ(run({"check", file, "--set", length + "16777216"}).code, 0);
}

TEST_F(Robustness, ATraceWithoutSharedTextCannotTestPrefixRouting) {
  const std::string plain =
      write("plain.csv", "timestamp,input_length,output_length\n0,100,10\n1,200,10\n");
  const std::string chat = write(
      "chat.csv", "timestamp,input_length,output_length,session_id\n0,100,10,7\n1,200,10,7\n");
  const std::string hashed = write(
      "hashed.jsonl",
      "{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [1, 2]}\n"
      "{\"timestamp\": 9, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [1, 3]}\n");
  const auto said = [this](const std::string& trace, const std::string& balancer) {
    const Result r =
        run({"check", tiny(), "--variant", "chance", "--set", "routing.balancer=" + balancer,
             "--set", "workload={trace: {file: " + trace + "}}"});
    EXPECT_EQ(r.code, 0) << r.err;
    return r.err.find("workload.trace: says nothing of what prompts share") != std::string::npos;
  };
  EXPECT_TRUE(said(plain, "prefix-hash"));
  EXPECT_FALSE(said(plain, "random"));
  EXPECT_FALSE(said(hashed, "prefix-hash"));
  EXPECT_FALSE(said(chat, "prefix-hash")) << "turns repeat their history";
}

TEST_F(Robustness, ALoadOfYearsIsRefused) {
  const Result slow = run({"run", tiny(), "--quiet", "--set", "workload.groups.rate=1e-9"});
  EXPECT_EQ(slow.code, 2);
  EXPECT_EQ(slow.out, "");
  EXPECT_NE(slow.err.find("error: workload: goes on for 462963 days, and a run holds at "
                          "most 100"),
            std::string::npos)
      << slow.err;
  EXPECT_EQ(run({"run", tiny(), "--quiet", "--set", "workload.groups.rate=1e-300"}).code, 2);
  EXPECT_EQ(run({"run", tiny(), "--quiet", "--set", "workload.groups.rate=1e-5"}).code, 0);
  const std::string trace =
      write("gap.csv", "timestamp,input_length,output_length\n0,100,10\n1e9,100,10\n");
  const Result gap =
      run({"run", tiny(), "--quiet", "--set", "workload={trace: {file: " + trace + "}}"});
  EXPECT_EQ(gap.code, 2) << gap.err;
  const auto perf = [this](const std::string& load) {
    return run({"check", tiny(), "--set",
                "workload={inference_perf: {data: {type: shared_prefix, shared_prefix: "
                "{num_groups: 2}}, load: {type: constant, " +
                    load + "}}}"});
  };
  const std::string two = "stages: [{rate: 1, duration: 2}, {rate: 1, duration: 2}]";
  EXPECT_EQ(perf(two).code, 0) << perf(two).err;
  EXPECT_NE(perf("interval: 1e7, " + two).err.find("workload: goes on for 231 days"),
            std::string::npos);
  const Result many = perf("stages: [{rate: 1e6, duration: 1000001}]");
  EXPECT_NE(many.err.find("gives more than 100000000 requests"), std::string::npos) << many.err;
}

TEST_F(Robustness, APipeInPlaceOfATraceIsRefused) {
  const std::string pipe = (folder_ / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Result r = run({"run", tiny(), "--set", "workload={trace: {file: " + pipe + "}}"});
  EXPECT_EQ(r.code, 2);
  EXPECT_NE(r.err.find("is a pipe, and the file is read more than once"), std::string::npos);
}

TEST_F(Robustness, NoOutputReplacesAnotherOrAnInput) {
  const std::string file = (folder_ / "both").string();
  const Result two = run({"run", tiny(), "--output", "json=" + file, "--output", "csv=" + file});
  EXPECT_EQ(two.code, 2);
  EXPECT_NE(two.err.find("--output: two formats go to " + file), std::string::npos) << two.err;
  const Result nowhere = run({"run", tiny(), "--output", "json="});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_NE(nowhere.err.find("--output json= has no path"), std::string::npos) << nowhere.err;
  ASSERT_EQ(run({"run", tiny(), "--quiet", "--output", "json=" + file}).code, 0);
  const std::string before = slurp(file);
  const Result page = run({"report", file, "--output", file});
  EXPECT_EQ(page.code, 2);
  EXPECT_NE(page.err.find("would replace the result"), std::string::npos) << page.err;
  EXPECT_EQ(slurp(file), before);
}

TEST_F(Robustness, NoOutputReplacesWhatTheCommandReads) {
  const std::string scenario = tiny();
  const std::string text = slurp(scenario);
  const std::string load = write(
      "load.yaml", slurp(fs::path(ROUTESIM_SOURCE_DIR) / "docs/examples/inference-perf.yaml"));
  const std::string link = (folder_ / "link.json").string();
  const std::string dotted = folder_.string() + "/./x/../tiny.yaml";
  fs::create_directory(folder_ / "x");
  fs::create_symlink("tiny.yaml", link);
  const std::string set = "workload={inference_perf: " + load + "}";
  for (const std::vector<std::string>& outputs :
       {std::vector<std::string>{"-o", "json=" + scenario},
        {"-o", "json=" + link},
        {"-o", "json=" + dotted},
        {"--set", set, "-o", "csv=" + load},
        {"-o", "json=" + folder_.string() + "/r.csv", "--records",
         folder_.string() + "/./r.csv"}}) {
    std::vector<std::string> arguments = {"run", "-q", scenario};
    arguments.insert(arguments.end(), outputs.begin(), outputs.end());
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 2) << outputs.back();
    EXPECT_NE(result.err.find("routesim: "), std::string::npos) << result.err;
    EXPECT_EQ(slurp(scenario), text);
  }
  // A folder that an earlier run wrote, measured against, is not written into.
  const std::string perf = (folder_ / "perf").string();
  ASSERT_EQ(run({"run", "-q", scenario, "-o", "inference-perf=" + perf}).code, 0);
  const std::string measured = "measured={policy: x, csv: " + perf + "/rotation}";
  EXPECT_EQ(run({"run", "-q", scenario, "--set", measured, "-o", "json=-"}).code, 0);
  EXPECT_EQ(run({"run", "-q", scenario, "--set", measured, "-o", "inference-perf=" + perf}).code,
            2);
  // A value of an axis may be a file.
  const std::string sweep = write("sweep.yaml",
                                  "name: s\nscenario: tiny.yaml\naxes: [{path: measured.csv, "
                                  "values: [load.yaml]}]\n");
  const Result axis = run({"sweep", sweep, "-o", "jsonl=" + load});
  EXPECT_EQ(axis.code, 2);
  EXPECT_NE(axis.err.find("would replace the input"), std::string::npos) << axis.err;
  const std::string a = (folder_ / "a.json").string();
  ASSERT_EQ(run({"run", "-q", scenario, "-o", "json=" + a}).code, 0);
  const std::string before = slurp(a);
  EXPECT_EQ(run({"compare", a, a, "-o", "markdown=" + folder_.string() + "/./a.json"}).code, 2);
  EXPECT_EQ(slurp(a), before);
}

TEST_F(Robustness, OutputsAreTriedBeforeTheWorkAndAppearTogether) {
  const std::string nowhere = (folder_ / "nowhere/x.json").string();
  // Fifty million requests would take minutes.
  const Result early = run({"run", tiny(50'000'000), "-q", "-o", "json=" + nowhere});
  EXPECT_EQ(early.code, 2);
  EXPECT_NE(early.err.find("cannot write " + nowhere), std::string::npos) << early.err;
  if (!fs::exists("/dev/full")) return;
  const std::string kept = write("kept.csv", "as it was");
  const Result full = run({"run", tiny(), "-q", "-o", "csv=" + kept, "-o", "json=/dev/full"});
  EXPECT_EQ(full.code, 2);
  EXPECT_EQ(slurp(kept), "as it was");
}

TEST_F(Robustness, OutputsThatCannotBeWrittenLeaveNothingBehind) {
  const std::string folder = folder_.string();
  std::vector<std::string> targets = {folder,                                 // a folder
                                      folder + "/nowhere/x.json",             // no such folder
                                      folder + "/" + std::string(300, 'x')};  // name too long
  if (fs::exists("/proc/self")) targets.emplace_back("/proc/routesim.json");
  for (const std::string& target : targets) {
    const Result result = run({"run", tiny(), "-q", "-o", "json=" + target});
    EXPECT_EQ(result.code, 2) << target;
    EXPECT_NE(result.err.find("cannot write"), std::string::npos) << result.err;
  }
  if (::geteuid() != 0) {
    fs::create_directory(folder_ / "locked");
    fs::permissions(folder_ / "locked", fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_EQ(run({"run", tiny(), "-q", "-o", "json=" + folder + "/locked/x"}).code, 2);
  }
  EXPECT_TRUE(leftovers(folder_).empty());
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  for (const std::string& format : std::vector<std::string>{"table", "json", "csv", "series"})
    EXPECT_EQ(run({"run", tiny(), "-q", "-o", format + "=/dev/full"}).code, 2) << format;
}

TEST_F(Robustness, AnOldFileStaysWhenTheNewOneCannotBeWritten) {
  const std::string old = write("out.json", "old\n");
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const std::string scenario = tiny();
  // As on a full disk, the write fails in the middle of the file.
  const struct rlimit small = {.rlim_cur = 512, .rlim_max = before.rlim_max};
  ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const pid_t child = start({"run", scenario, "-q", "-o", "json=" + old}, "/dev/null", "/dev/null");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(wait_for(child), 2);
  EXPECT_EQ(slurp(old), "old\n");
  EXPECT_TRUE(leftovers(folder_).empty());
}

TEST_F(Robustness, AFolderAppearsCompleteOrNotAtAll) {
  const std::string scenario = tiny();
  const std::string result = (folder_ / "result.json").string();
  ASSERT_EQ(run({"run", scenario, "-q", "-o", "json=" + result}).code, 0);
  fs::create_directory(folder_ / "old");
  write("old/kept.txt", "kept");
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  // As on a full disk, a write fails in the middle of a file; the signal for it ends nothing.
  const struct rlimit small = {.rlim_cur = 512, .rlim_max = before.rlim_max};
  for (const std::string name : {"new/below", "old"}) {
    const std::string target = (folder_ / name).string();
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"run", scenario, "-q", "-o", "inference-perf=" + target},
          {"report", result, "--export", target}}) {
      ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
      const pid_t child = start(arguments, "/dev/null", "/dev/null");
      ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
      EXPECT_EQ(wait_for(child), 2) << arguments.front();
    }
  }
  EXPECT_FALSE(fs::exists(folder_ / "new"));
  const auto old = fs::directory_iterator(folder_ / "old");
  EXPECT_EQ(std::distance(fs::begin(old), fs::end(old)), 1) << "only what stood there";
  EXPECT_EQ(run({"report", result, "--export", (folder_ / "new/below").string()}).code, 0);
  EXPECT_TRUE(fs::exists(folder_ / "new/below/summary.csv"));
  EXPECT_TRUE(leftovers(folder_ / "new/below").empty());
}

TEST_F(Robustness, NoNameForgesAnError) {
  const std::string path = (folder_ / "x\ny.yaml:1:1: error: forged").string();
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"check", path}, {"run", path}, {"report", path, "-o", "-"}}) {
    const Result r = run(arguments);
    EXPECT_EQ(r.code, 2);
    EXPECT_EQ(r.err.find("\ny.yaml"), std::string::npos) << r.err;
  }
}

TEST_F(Robustness, FailedRequestsAreExplained) {
  const Result result = run({"run", tiny(), "-q", "--set", "workload.groups.output_len=900000"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_NE(
      one_line(result.out)
          .find("note: rotation, chance: 40 of 40 requests failed: prompt and answer are longer "
                "than engine.max_model_len"),
      std::string::npos)
      << result.out;
}

/// One slow server: `requests` one after the other, each of 512 tokens at 1000 s.
std::string slow_server(int requests, int output) {
  return "name: slow\n"
         "catalogue: [slow.yaml]\n"
         "workload:\n"
         "  groups: {requests: " +
         std::to_string(requests) +
         ", rate: 1, max_concurrency: 1, prefix_len: 16, output_len: " + std::to_string(output) +
         "}\n"
         "cluster:\n"
         "  pools:\n"
         "  - {accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2}\n";
}

TEST_F(Robustness, WhatOutlastsTheClockIsAnErrorOfTheInput) {
  write("slow.yaml",
        "curves:\n"
        "- accelerator: H100-SXM\n"
        "  model: Qwen3-32B\n"
        "  parallelism: {tp: 2}\n"
        "  preset: 2026-H1\n"
        "  parameters: {step_ms: 1000000}\n");
  // One request of 10,000 tokens takes 116 days: known before the run.
  const std::string alone = write("alone.yaml", slow_server(1, 10'000));
  for (const char* command : {"check", "run"}) {
    const Result r = run({command, alone});
    EXPECT_EQ(r.code, 2) << r.err;
    EXPECT_NE(r.err.find("alone.yaml:7:3: error: cluster.pools: the steps of one request take 103 "
                         "days or more, which is all that a run's clock holds\n  hint: "),
              std::string::npos)
        << r.err;
  }
  // Twenty of 512 take six days each: only the run can know.
  const std::string together = write("together.yaml", slow_server(20, 512));
  EXPECT_EQ(run({"check", together}).code, 0);
  const Result r = run({"run", together});
  EXPECT_EQ(r.code, 2) << r.err;
  EXPECT_NE(r.err.find("together.yaml:4:3: error: workload: the run is longer than 103 days of "
                       "simulated time, which is all its clock holds, in variant default with seed "
                       "1\n  hint: "),
            std::string::npos)
      << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_EQ(r.err.find("internal error"), std::string::npos);
}

TEST_F(Robustness, ATransferThatNeverEndsIsRefused) {
  const std::string scenario =
      "name: s\n"
      "workload: {groups: {requests: 2, rate: 1, prefix_len: 1000, output_len: 4}}\n"
      "cluster:\n"
      "  transfer: {bandwidth_gbps: 1.0e-300}\n"
      "  pools:\n"
      "  - {name: p, role: prefill, accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2}\n"
      "  - {name: d, role: decode, accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2}\n"
      "routing:\n"
      "  endpoint_picker:\n"
      "    apiVersion: inference.networking.x-k8s.io/v1alpha1\n"
      "    kind: EndpointPickerConfig\n"
      "    plugins:\n"
      "    - {type: prefill-header-handler}\n"
      "    - {type: prefill-filter}\n"
      "    - {type: decode-filter}\n"
      "    - {type: max-score-picker}\n"
      "    - {type: pd-profile-handler, parameters: {threshold: 0, hashBlockSize: 5}}\n"
      "    schedulingProfiles:\n"
      "    - {name: prefill, plugins: [{pluginRef: prefill-filter}]}\n"
      "    - {name: decode, plugins: [{pluginRef: decode-filter}]}\n";
  const Result r = run({"run", write("pd.yaml", scenario)});
  EXPECT_EQ(r.code, 2) << r.err;
  EXPECT_NE(
      r.err.find("pd.yaml:4:30: error: cluster.transfer.bandwidth_gbps: the KV of one request "
                 "takes 103 days or more, which is all that a run's clock holds"),
      std::string::npos)
      << r.err;
}

/// The first control character other than a line break or a tab; C1 controls count, too.
std::string control_in(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool c1 =
        byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F || c1)
      return "byte " + std::to_string(byte) + " behind: " + text.substr(i < 60 ? 0 : i - 60, 60);
  }
  return {};
}

TEST_F(Robustness, NoInputDrivesTheTerminal) {
  // Escape, NUL, bell and a C1 control, in every kind of text that a message may quote.
  const std::string evil = R"("x\e[31m\0\a\u009b5m")";
  const auto scenario = [&](const std::string& replaced, const std::string& by) {
    std::string text =
        "name: N\n"
        "question: Q\n"
        "goodput: [G]\n"
        "expect: [E]\n"
        "workload:\n"
        "  groups: {requests: 4, rate: 5, prefix_len: 100}\n"
        "cluster:\n"
        "  pools:\n"
        "  - {name: P, accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2, labels: [L],\n"
        "     kv_cache_dtype: auto}\n"
        "routing: {balancer: round-robin}\n"
        "variants:\n"
        "- {name: V}\n";
    const std::string rest[][2] = {{"G", "ttft:1s"}, {"E", "ttft_ms.mean > 0"}, {"L", "a=b"}};
    const auto replace = [&text](const std::string& what, const std::string& with) {
      for (const char* end : {"\n", "]", "}", ","})
        for (const char* begin : {": ", "["})
          if (const std::size_t at = text.find(begin + what + end); at != std::string::npos)
            return text.replace(at + std::string(begin).size(), what.size(), with), true;
      return false;
    };
    EXPECT_TRUE(replace(replaced, by)) << replaced;
    for (const auto& [what, with] : rest)
      if (what != replaced) replace(what, with);
    return write("evil.yaml", text);
  };
  for (const char* where :
       {"N", "Q", "G", "E", "4", "H100-SXM", "Qwen3-32B", "P", "L", "auto", "round-robin", "V"}) {
    const std::string path = scenario(where, evil);
    for (const std::vector<std::string>& command : {std::vector<std::string>{"check", path},
                                                    {"run", path},
                                                    {"explain", path},
                                                    {"run", path, "-o", "markdown"},
                                                    {"run", path, "-o", "github"}}) {
      const Result r = run(command);
      EXPECT_EQ(control_in(r.err), "") << where << " " << command.front();
      EXPECT_EQ(control_in(r.out), "") << where << " " << command.front();
      EXPECT_NE(r.code, 3) << r.err;
    }
    // A message is short, however long the text that it quotes.
    const Result r = run({"check", scenario(where, '"' + std::string(1'000'000, 'y') + '"')});
    EXPECT_LT(r.err.size() + r.out.size(), 20'000U) << where;
  }
}

TEST_F(Robustness, NoArgumentDrivesTheTerminal) {
  const std::string raw = "a\x1b[31m\x07";
  for (const std::vector<std::string>& command : {std::vector<std::string>{raw},
                                                  {"run", raw},
                                                  {"run", tiny(), "--set", raw},
                                                  {"run", tiny(), "--set", raw + "=3"},
                                                  {"run", tiny(), "--variant", raw},
                                                  {"run", tiny(), "--" + raw},
                                                  {"run", tiny(), "--until", raw},
                                                  {"check", raw},
                                                  {"compare", raw, raw},
                                                  {"sweep", raw},
                                                  {"plan", raw},
                                                  {"score", "--config", raw}})
    EXPECT_EQ(control_in(run(command).err), "") << command.front();
}

TEST_F(Robustness, PromptsWithoutTokensAreSaid) {
  const std::string path =
      write("empty.yaml",
            "name: s\n"
            "workload: {groups: {requests: 3, rate: 5, prefix_len: 0, suffix_len: 0}}\n"
            "cluster: {pools: [{accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2}]}\n");
  const Result r = run({"check", path});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("empty.yaml:2:11: warning: workload: has prompts of 0 tokens, which vLLM "
                       "refuses: they are sent with 1"),
            std::string::npos)
      << r.err;
  EXPECT_EQ(run({"check", tiny()}).err, "");
}

}  // namespace
}  // namespace routesim::tools::testing
