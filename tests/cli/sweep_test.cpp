// Sweeps as a user runs them: any number of threads, killed at any moment, in shards.
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <thread>

#include "tests/cli/cli_fixture.h"

namespace routesim::tools::testing {
namespace {

/// Twelve cells of two variants, 24 rows of two replications; a row takes some milliseconds.
class Sweep : public Cli {
 protected:
  std::string sweep(const std::string& rates = "[5, 10, 20, 40]", int requests = 300) const {
    write("base.yaml",
          "name: base\n" + two_servers("requests: " + std::to_string(requests) +
                                       ", rate: 20, groups: 4, prefix_len: 512, suffix_len: 64, "
                                       "output_len: 32"));
    return write("sweep.yaml",
                 "name: twelve\n"
                 "scenario: base.yaml\n"
                 "replications: 2\n"
                 "axes:\n"
                 "- {name: rate, path: workload.groups.rate, values: " +
                     rates +
                     "}\n"
                     "- {name: replicas, path: 'cluster.pools[a].replicas', range: {from: 1, to: "
                     "3}}\n"
                     "metrics: [ttft_ms.mean, ttft_ms.p99]\n");
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// Runs `sweep SWEEP --output jsonl=NAME` with more arguments.
  Result run_to(const std::string& file, const std::string& name,
                std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"sweep", file, "--output", "jsonl=" + path(name)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }

  pid_t start_to(const std::string& file, const std::string& name,
                 std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"sweep", file, "--output", "jsonl=" + path(name)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return start(arguments, path("stdout"), path("stderr"));
  }

  static std::vector<std::string> whole_lines(const std::string& text) {
    std::vector<std::string> lines;
    std::size_t from = 0;
    for (std::size_t end = text.find('\n'); end != std::string::npos;
         from = end + 1, end = text.find('\n', from))
      lines.push_back(text.substr(from, end - from));
    return lines;
  }

  static std::set<std::string> keys(const std::string& text) {
    std::set<std::string> keys;
    for (const std::string& line : whole_lines(text))
      keys.insert(nlohmann::json::parse(line)["key"].get<std::string>());
    return keys;
  }
};

// The same requests at twice the rate: the first arrivals come in half the time.
TEST_F(Sweep, TheScaleOfTheRateIsAnAxis) {
  write("base.yaml",
        "name: base\n" + two_servers("requests: 200, rate: 5, groups: 4, prefix_len: 512, "
                                     "suffix_len: 64, output_len: 4"));
  const std::string file =
      write("scale.yaml",
            "name: scale\nscenario: base.yaml\n"
            "axes: [{name: scale, path: workload.rate_scale, values: [1, 4]}]\n"
            "metrics: [achieved_rate]\n");
  const Result result = run_to(file, "rows.jsonl");
  ASSERT_EQ(result.code, 0) << result.err;
  std::vector<double> rates;
  for (const std::string& line : whole_lines(slurp(path("rows.jsonl")))) {
    const auto row = nlohmann::json::parse(line);
    if (line.find("rotation") != std::string::npos)
      rates.push_back(row["summary"]["metrics"].begin().value()["mean"]);
  }
  ASSERT_EQ(rates.size(), 2U);
  EXPECT_NEAR(rates[1] / rates[0], 4, 0.4);
}

TEST_F(Sweep, RowsComeInGridOrderWhateverTheThreads) {
  const std::string file = sweep();
  ASSERT_EQ(run_to(file, "one", {"--jobs", "1"}).code, 0);
  const std::string one = slurp(path("one"));
  const std::vector<std::string> lines = whole_lines(one);
  ASSERT_EQ(lines.size(), 24U);
  // `routesim 0.2.0 (COMMIT), …`: a row says which build made it, since resuming keeps rows.
  std::string build = run({"--version"}).out;
  const std::size_t open = build.find('(');
  build = open == std::string::npos ? "" : build.substr(open + 1, build.find(')') - open - 1);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto row = nlohmann::json::parse(lines[i]);
    EXPECT_EQ(row["index"], i);
    EXPECT_EQ(row["of"], 24);
    EXPECT_EQ(row.value("commit", ""), build);
    EXPECT_EQ(row["cell"]["rate"], (std::vector{5, 10, 20, 40}[i / 6]));
    EXPECT_EQ(row["cell"]["replicas"], 1 + i / 2 % 3);
    EXPECT_EQ(row["variant"], i % 2 == 0 ? "rotation" : "chance");
    const auto& metric = row["summary"]["metrics"]["ttft_ms.mean"];
    const double a = metric["values"][0], b = metric["values"][1];
    EXPECT_DOUBLE_EQ(metric["mean"], (a + b) / 2);
    // Student's t with one degree of freedom at 97.5 %: 12.706; sd of two values is |a - b|/sqrt 2.
    EXPECT_NEAR(metric["half_width"], 12.7062 * std::abs(a - b) / 2, 1e-3 * std::abs(a - b));
  }
  for (const char* jobs : {"2", "5"}) {
    ASSERT_EQ(run_to(file, jobs, {"--jobs", jobs}).code, 0);
    EXPECT_EQ(slurp(path(jobs)), one) << jobs;
  }
  EXPECT_EQ(run({"sweep", file, "--output", "jsonl"}).out, one);
  EXPECT_FALSE(fs::exists(path("one.partial")));
}

TEST_F(Sweep, ARowIsWhatRunPrints) {
  const std::string file = sweep();
  ASSERT_EQ(run_to(file, "rows", {"--replications", "1"}).code, 0);
  const auto row =
      nlohmann::json::parse(whole_lines(slurp(path("rows")))[7]);  // rate 10, 1, chance
  const Result single =
      run({"run", path("base.yaml"), "--variant", "chance", "--set", "workload.groups.rate=10",
           "--set", "cluster.pools[a].replicas=1", "--output", "json"});
  const auto report = nlohmann::json::parse(single.out);
  const double ttft_s =
      report["variants"][0]["summary"]["successes"]["latency"]["time_to_first_token"]["p99"];
  EXPECT_DOUBLE_EQ(row["summary"]["metrics"]["ttft_ms.p99"]["mean"], 1e3 * ttft_s);
}

TEST_F(Sweep, KilledAtTwentyMomentsItEndsWithTheSameBytes) {
  const std::string file = sweep();
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(run_to(file, "whole").code, 0);
  const std::chrono::duration<double> whole_s = std::chrono::steady_clock::now() - begin;
  const std::string whole = slurp(path("whole"));

  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::set<std::string> kept;
  int killed = 0;
  for (int round = 0; killed < 20 && round < 200; ++round) {
    const pid_t child = start_to(file, "rows", {"--resume"});
    // Anywhere in a run, the reading of files and the final rename included.
    const double share = static_cast<double>(random() % 1000) / 1000;
    std::this_thread::sleep_for(whole_s * share);
    ::kill(child, SIGKILL);
    const int code = wait_for(child);
    const bool got_through = code != 128 + SIGKILL;
    if (got_through) {
      ASSERT_EQ(code, 0) << slurp(path("stderr"));
    } else {
      ++killed;
    }
    std::set<std::string> now = keys(slurp(path("rows.partial")));
    now.merge(keys(slurp(path("rows"))));
    for (const std::string& key : kept) EXPECT_TRUE(now.contains(key)) << "a row was lost";
    kept = std::move(now);
    if (got_through) {  // It got through: the next round starts afresh.
      EXPECT_EQ(slurp(path("rows")), whole);
      fs::remove(path("rows"));
      kept.clear();
    }
  }
  EXPECT_EQ(killed, 20);
  ASSERT_EQ(run_to(file, "rows", {"--resume"}).code, 0);
  EXPECT_EQ(slurp(path("rows")), whole);
  EXPECT_FALSE(fs::exists(path("rows.partial")));
}

TEST_F(Sweep, ATornLastLineIsDroppedAndNothingElse) {
  const std::string file = sweep();
  ASSERT_EQ(run_to(file, "whole").code, 0);
  const std::string whole = slurp(path("whole"));
  const std::vector<std::string> lines = whole_lines(whole);
  // Every length at which the line can tear, in steps.
  for (std::size_t cut = 0; cut <= lines[2].size(); cut += 97) {
    write("rows.partial", lines[5] + "\n" + lines[0] + "\n" + lines[2].substr(0, cut));
    const Result result = run_to(file, "rows", {"--resume"});
    ASSERT_EQ(result.code, 0) << result.err;
    EXPECT_NE(result.err.find("22 rows to compute, 2 taken up"), std::string::npos) << result.err;
    EXPECT_EQ(slurp(path("rows")), whole);
    fs::remove(path("rows"));
    if (cut > 400) break;
  }
  write("rows.partial", lines[5] + "\nnonsense\n" + lines[0] + "\n");
  const Result damaged = run_to(file, "rows", {"--resume"});
  EXPECT_EQ(damaged.code, 2);
  EXPECT_NE(damaged.err.find("rows.partial:2:1: error: is not a row"), std::string::npos);
  EXPECT_EQ(whole_lines(slurp(path("rows.partial"))).size(), 3U) << "the file is not touched";
}

TEST_F(Sweep, UnfinishedRowsAreNotOverwrittenAndForeignOnesNotLost) {
  const std::string file = sweep();
  ASSERT_EQ(run_to(file, "rows").code, 0);
  const std::string whole = slurp(path("rows"));
  write("rows.partial", whole_lines(whole)[0] + "\n");
  const Result refused = run_to(file, "rows");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("--resume"), std::string::npos);
  fs::remove(path("rows.partial"));

  // A larger grid takes up what a smaller one computed, and ends as if computed at once.
  sweep("[5, 10, 15, 20, 40]");
  const Result larger = run_to(file, "rows", {"--resume"});
  ASSERT_EQ(larger.code, 0) << larger.err;
  EXPECT_NE(larger.err.find("6 rows to compute, 24 taken up"), std::string::npos) << larger.err;
  ASSERT_EQ(run_to(file, "fresh").code, 0);
  EXPECT_EQ(slurp(path("rows")), slurp(path("fresh")));

  // A smaller one would lose rows.
  sweep("[5]");
  const Result smaller = run_to(file, "rows", {"--resume"});
  EXPECT_EQ(smaller.code, 2);
  EXPECT_EQ(slurp(path("rows")), slurp(path("fresh")));

  // The key holds what the files say: other contents, other rows.
  sweep("[5, 10, 15, 20, 40]", 301);
  EXPECT_EQ(run_to(file, "rows", {"--resume"}).code, 2);
}

TEST_F(Sweep, ShardsMergeIntoTheWhole) {
  const std::string file = sweep();
  ASSERT_EQ(run_to(file, "whole").code, 0);
  std::vector<std::string> merge = {"sweep", "--merge"};
  for (const char* shard : {"1/5", "2/5", "3/5", "4/5", "5/5"}) {
    const std::string name = std::string("shard-") + shard[0];
    ASSERT_EQ(run_to(file, name, {"--shard", shard}).code, 0);
    merge.push_back(path(name));
  }
  const Result merged = run(merge);
  EXPECT_EQ(merged.code, 0) << merged.err;
  EXPECT_EQ(merged.out, slurp(path("whole")));

  merge.pop_back();
  const Result gap = run(merge);
  EXPECT_EQ(gap.code, 2);
  EXPECT_EQ(gap.out, "");
  EXPECT_NE(gap.err.find("4 of 24 rows are missing: 4, 9, 14, 19"), std::string::npos) << gap.err;
}

TEST_F(Sweep, AChangedDigitOfAStoredRowIsNoResult) {
  const std::string file = sweep("[5]", 20);
  ASSERT_EQ(run_to(file, "rows", {"--shard", "1/2"}).code, 0);
  std::string rows = slurp(path("rows"));
  ASSERT_EQ(run_to(file, "rows", {"--shard", "1/2", "--resume"}).code, 0) << "whole rows are taken";
  const std::size_t digit = rows.find("\"mean\":") + 8;
  rows[digit] = rows[digit] == '9' ? '8' : '9';
  for (const char* name : {"rows", "rows.partial"}) {
    write(name, rows);
    const Result resumed = run_to(file, "rows", {"--shard", "1/2", "--resume"});
    EXPECT_EQ(resumed.code, 2) << resumed.err;
    // At the cell that does not fit: the checksum's value, 19 bytes before the line's end.
    const std::size_t column = rows.find('\n') - 18;
    EXPECT_NE(resumed.err.find(std::string(name) + ":1:" + std::to_string(column) +
                               ": error: this row is damaged: its checksum does not fit"),
              std::string::npos)
        << resumed.err;
    fs::remove(path(name));
  }
  write("rows", rows);
  for (const std::vector<std::string>& reader : std::vector<std::vector<std::string>>{
           {"sweep", "--merge", path("rows")}, {"report", path("rows"), "--output", "-"}}) {
    const Result read = run(reader);
    EXPECT_EQ(read.code, 2) << reader.front();
    EXPECT_NE(read.err.find("error: this row is damaged"), std::string::npos) << read.err;
  }
}

TEST_F(Sweep, AShardGoesOnOnlyAsTheSameShard) {
  const std::string file = sweep("[5]", 20);
  ASSERT_EQ(run_to(file, "rows", {"--shard", "2/3"}).code, 0);
  for (const char* other : {"none", "2/6", "1/3"}) {
    const Result result = run_to(file, "rows", {"--shard", other, "--resume"});
    EXPECT_EQ(result.code, 2) << other;
    const std::size_t column = slurp(path("rows")).find("\"shard\":") + 9;
    EXPECT_NE(result.err.find("rows:1:" + std::to_string(column) +
                              ": error: this row was written by shard 2/3, and this is "),
              std::string::npos)
        << result.err;
  }
  // One task of eight, submitted again on its own.
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"ID", "2"}, {"COUNT", "1"}, {"MIN", "2"}, {"MAX", "2"}, {"STEP", "1"}})
    ::setenv(("SLURM_ARRAY_TASK_" + name).c_str(), value.c_str(), 1);
  const Result alone = run_to(file, "alone");
  for (const char* name : {"ID", "COUNT", "MIN", "MAX", "STEP"})
    ::unsetenv((std::string("SLURM_ARRAY_TASK_") + name).c_str());
  EXPECT_EQ(alone.code, 2);
  EXPECT_NE(alone.err.find("which may be a part of a larger array"), std::string::npos)
      << alone.err;
  EXPECT_FALSE(fs::exists(path("alone")));
}

TEST_F(Sweep, AReportOfSomeRowsSaysThatOthersAreMissing) {
  const std::string file = sweep("[5]", 20);
  ASSERT_EQ(run_to(file, "rows", {"--shard", "1/2"}).code, 0);
  const Result report = run({"report", path("rows"), "--output", "-"});
  EXPECT_EQ(report.code, 0);
  EXPECT_NE(report.err.find("warning: is partial: it has 3 of the 6 rows of the sweep"),
            std::string::npos)
      << report.err;
}

TEST_F(Sweep, ASetThatAnAxisReplacesIsNamed) {
  const Result result =
      run_to(sweep("[5]", 20), "rows",
             {"--set", "workload.groups.rate=7", "--set", "cluster.pools[0].replicas=9", "--set",
              "workload.groups.output_len=9"});
  EXPECT_EQ(result.code, 0) << result.err;
  for (const char* key : {"workload.groups.rate", "cluster.pools[0].replicas"})
    EXPECT_NE(result.err.find(std::string(key) + ": has no effect: an axis of the sweep sets"),
              std::string::npos)
        << result.err;
  EXPECT_EQ(result.err.find("output_len: has no effect"), std::string::npos) << result.err;
}

TEST_F(Sweep, ShardsOfOtherExperimentsDoNotMerge) {
  const std::string file = sweep("[5, 10]", 30);
  ASSERT_EQ(run_to(file, "first", {"--shard", "1/2"}).code, 0);
  const std::vector<std::vector<std::string>> others = {
      {"--seed", "7"}, {"--replications", "3"}, {"--set", "workload.groups.output_len=9"}};
  for (const std::vector<std::string>& other : others) {
    std::vector<std::string> options = {"--shard", "2/2"};
    options.insert(options.end(), other.begin(), other.end());
    ASSERT_EQ(run_to(file, "second", options).code, 0) << other.front();
    const Result merged = run({"sweep", "--merge", path("first"), path("second")});
    EXPECT_EQ(merged.code, 2) << other.front();
    EXPECT_NE(merged.err.find("is a row of another experiment than"), std::string::npos)
        << merged.err;
    EXPECT_EQ(run({"sweep", "--merge", path("first"), path("second"), "--output",
                   "jsonl=" + path("first")})
                  .code,
              2);
  }
}

TEST_F(Sweep, ASignalLeavesWholeRowsAndNoOutput) {
  const std::string file = sweep("[5, 10, 20, 40]", 3000);
  for (const int signal : {SIGINT, SIGTERM}) {
    const pid_t child = start_to(file, "rows", {"--resume", "--output", "table"});
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (slurp(path("rows.partial")).find('\n') == std::string::npos &&
           std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ::kill(child, signal);
    ASSERT_EQ(wait_for(child), 130) << slurp(path("stderr"));
    EXPECT_EQ(slurp(path("stdout")), "");
    EXPECT_NE(slurp(path("stderr")).find("continue with --resume"), std::string::npos);
    EXPECT_FALSE(fs::exists(path("rows")));
    const std::string partial = slurp(path("rows.partial"));
    ASSERT_FALSE(partial.empty());
    EXPECT_EQ(partial.back(), '\n');
    EXPECT_LT(keys(partial).size(), 24U);
    if (signal == SIGINT) fs::remove(path("rows.partial"));
  }
}

TEST_F(Sweep, AFileBelongsToOneSweepAtATime) {
  const std::string file = sweep("[5, 10, 20, 40]", 3000);
  const pid_t first = start_to(file, "rows");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (slurp(path("rows.partial")).empty() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const Result second =
      run({"sweep", file, "--output", "jsonl=" + path("rows"), "--resume", "--quiet"});
  ::kill(first, SIGKILL);
  wait_for(first);
  EXPECT_EQ(second.code, 2);
  EXPECT_NE(second.err.find("another sweep is writing this file"), std::string::npos) << second.err;
}

TEST_F(Sweep, EveryInvalidCellIsNamedBeforeAnythingRuns) {
  sweep();
  const std::string file = write("wrong.yaml",
                                 "name: wrong\n"
                                 "scenario: base.yaml\n"
                                 "axes:\n"
                                 "- {name: n, path: 'cluster.pools[a].replicas', values: [1, -1]}\n"
                                 "- {name: rate, path: workload.groups.rate, values: [1, two]}\n"
                                 "- {path: routing.kv_event_dealy, values: [1ms]}\n");
  const Result result = run_to(file, "rows");
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");
  const std::string expected[] = {
      "wrong.yaml:4:60: error: cluster.pools[0].replicas: must be at least 0 (got -1) [in n=-1, "
      "rate=1, routing.kv_event_dealy=1ms; n=-1, rate=two, routing.kv_event_dealy=1ms]",
      "wrong.yaml:5:56: error: workload.groups.rate: must be a number (got two) [in n=1, rate=two,",
      "wrong.yaml:6:43: error: routing.kv_event_dealy: unknown key\n"};
  for (const std::string& text : expected)
    EXPECT_NE(result.err.find(text), std::string::npos) << text << "\n" << result.err;
  EXPECT_FALSE(fs::exists(path("rows")) || fs::exists(path("rows.partial")));

  const std::string twice =
      write("twice.yaml",
            "name: twice\n"
            "scenario: base.yaml\n"
            "axes: [{name: rate, path: workload.groups.rate, values: [3, 3.0]}]\n");
  const Result same = run_to(twice, "rows");
  EXPECT_EQ(same.code, 2);
  EXPECT_NE(
      same.err.find("two cells are the same experiment [rate=3 and rate=3, variant rotation]"),
      std::string::npos)
      << same.err;
}

TEST_F(Sweep, UsageErrorsExitWithTwo) {
  const std::string file = sweep();
  const std::vector<std::vector<std::string>> wrong = {
      {"sweep"},
      {"sweep", file, file},
      {"sweep", file, "--resume"},
      {"sweep", file, "--shard", "3/2"},
      {"sweep", file, "--jobs", "0"},
      {"sweep", file, "--output", "csv"},
      {"sweep", file, "--output", "table", "--output", "jsonl"},
      {"sweep", file, "--set", "cluster.pools[zz].replicas=1"},
      {"sweep", "--merge", path("nowhere")},
      {"sweep", "--merge", file},
      {"sweep", path("nowhere")},
      {"sweep", path("base.yaml")},
  };
  for (const auto& arguments : wrong) {
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 2) << arguments.back() << result.err;
    EXPECT_EQ(result.out, "") << arguments.back();
    EXPECT_NE(result.err.find("error"), std::string::npos) << arguments.back();
  }
}

TEST_F(Sweep, ShippedSweepsAreValid) {
  for (const auto& entry :
       fs::directory_iterator(fs::path(ROUTESIM_SOURCE_DIR) / "scenarios/sweeps")) {
    if (entry.path().extension() != ".yaml" ||
        entry.path().filename().string().find("kubernetes") != std::string::npos)
      continue;
    // A shard that is empty checks every cell and computes none.
    const Result result = run({"sweep", entry.path().string(), "--shard", "1000/1000"});
    EXPECT_EQ(result.code, 0) << entry.path() << result.err;
  }
}

}  // namespace
}  // namespace routesim::tools::testing
