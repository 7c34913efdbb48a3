// Pages of studies that are watched while they run, stopped, and come to their end.
#include <signal.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/cli/cli_fixture.h"

namespace routesim::tools::testing {
namespace {

/// Studies of each kind over the same two servers; `requests` decides how long they take.
class Watch : public Cli {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::string base(int requests) const {
    return write("base.yaml", "name: base\n" + two_servers("requests: " + std::to_string(requests) +
                                                           ", rate: 20, groups: 4, prefix_len: "
                                                           "512, suffix_len: 64, output_len: 32"));
  }

  std::vector<std::string> sweep(int requests) const {
    base(requests);
    return {"sweep",
            write("sweep.yaml",
                  "name: nine\nscenario: base.yaml\nquestion: How many?\n"
                  "axes:\n- {name: rate, path: workload.groups.rate, values: [5, 10, 20]}\n"
                  "- {name: replicas, path: 'cluster.pools[a].replicas', range: {from: 1, "
                  "to: 3}}\nmetrics: [ttft_ms.mean]\ngoals: [ttft_ms.mean < 100]\n")};
  }

  /// Rates are held for as long as `duration` says.
  std::vector<std::string> plan(const std::string& duration) const {
    base(300);
    return {"plan", write("plan.yaml",
                          "name: small\nscenario: base.yaml\n"
                          "demand: {rate: 20, duration: " +
                              duration +
                              ", set: ['workload.groups.rate={rate}', "
                              "'workload.groups.requests={requests}']}\n"
                              "goals: [ttft_ms.p90 < 150]\nknee_limit: 1.5\n"
                              "prices: [{accelerator: H100-SXM, per_hour: 3}]\n"
                              "hardware: [{accelerator: H100-SXM, tensor_parallel: 2}]\n"
                              "policies: [{variant: rotation}]\n"
                              "pools: [{pool: a, min: 1, max: 8}]\n")};
  }

  std::vector<std::string> tune(int requests, int budget) const {
    base(requests);
    return {
        "tune",
        write("tune.yaml",
              "scenario: base.yaml\nvariant: rotation\nbudget: " + std::to_string(budget) +
                  "\nset: [workload.groups.suffix_len=2000, workload.groups.rate=8]\n"
                  "fresh_seeds: 3\nshift: []\nsubject_to: []\nguards: false\nknobs:\n"
                  "- {set: 'cluster.pools[a].engine.max_num_seqs', values: [16, 32, 64, 128]}\n"
                  "- {set: 'cluster.pools[a].engine.max_num_batched_tokens', values: [512, 2048, "
                  "4096, 8192]}\n")};
  }

  static std::vector<std::string> with(std::vector<std::string> words,
                                       const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  /// A study that is watched leaves the page that it would have written anyway.
  void expect_final(const std::vector<std::string>& study) const {
    const Result result = run(with(study, {"--watch", path("watched.html"), "-o",
                                           "html=" + path("page.html"), "--jobs", "2"}));
    EXPECT_TRUE(result.code == 0 || result.code == 4) << result.err;
    const std::string page = slurp(path("page.html"));
    EXPECT_EQ(slurp(path("watched.html")), page);
    EXPECT_EQ(page.find("http-equiv=\"refresh\""), std::string::npos);
    EXPECT_EQ(page.find("Not finished"), std::string::npos);
  }

  /// Starts the study, waits until its page has `finding`, and stops it. The page that is left.
  std::string stopped(const std::vector<std::string>& study, const std::string& finding) const {
    const std::string page = path("watched.html");
    const pid_t child = start(with(study, {"--watch", page}), path("stdout"), path("stderr"));
    std::string seen;
    for (int i = 0; i < 600 && seen.find(finding) == std::string::npos; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (fs::exists(page)) seen = slurp(page);
    }
    EXPECT_NE(seen.find(finding), std::string::npos) << slurp(path("stderr"));
    EXPECT_NE(seen.find("<meta http-equiv=\"refresh\""), std::string::npos);
    EXPECT_NE(seen.find("Not finished: "), std::string::npos);
    EXPECT_TRUE(seen.ends_with("</html>\n")) << "the page is half written";
    ::kill(child, SIGINT);
    EXPECT_EQ(wait_for(child), 130) << slurp(path("stderr"));
    for (const auto& file : fs::directory_iterator(folder_))
      EXPECT_EQ(file.path().string().find(".tmp-"), std::string::npos) << file.path();
    const std::string left = slurp(page);
    EXPECT_NE(left.find("<p class=\"big\">Interrupted"), std::string::npos);
    EXPECT_NE(left.find(finding), std::string::npos) << "what was found is lost";
    EXPECT_EQ(left.find("http-equiv=\"refresh\""), std::string::npos);
    EXPECT_EQ(left.find("Not finished"), std::string::npos);
    return left;
  }
};

TEST_F(Watch, EveryStudyEndsWithItsPage) {
  expect_final(sweep(60));
  expect_final(plan("5s"));
  expect_final(tune(60, 60));
}

TEST_F(Watch, AStoppedSweepKeepsItsRows) {
  const std::string left = stopped(with(sweep(60'000), {"--jobs", "1"}), "So far: ");
  EXPECT_NE(left.find(" of 18 rows.</p>"), std::string::npos);
  // The page is a result file of the rows that are finished.
  const Result report = run({"report", path("watched.html"), "-o", path("again.html")});
  EXPECT_EQ(report.code, 0) << report.err;
  EXPECT_NE(slurp(path("again.html")).find("ttft_ms.mean"), std::string::npos);
}

TEST_F(Watch, AStoppedTuningKeepsItsRace) {
  const std::string left =
      stopped(with(tune(8'000, 4000), {"--jobs", "1"}), "runs of the search were made");
  EXPECT_NE(left.find("So far: Candidate "), std::string::npos);
  EXPECT_NE(left.find("in the race, not judged yet"), std::string::npos);
  EXPECT_NE(slurp(path("stderr")).find("interrupted, nothing was judged"), std::string::npos);
}

TEST_F(Watch, AStoppedPlanPrintsWhatItHas) {
  const std::string left =
      stopped(with(plan("20000s"), {"-o", "table", "-o", "json=" + path("plan.json")}),
              "The cheapest fleet so far that meets the goals is");
  EXPECT_NE(left.find("This plan is partial: the search is in step "), std::string::npos);
  EXPECT_NE(slurp(path("stderr")).find("interrupted, the plan is partial"), std::string::npos);
  const std::string text = slurp(path("stdout"));
  EXPECT_NE(text.find("The cheapest fleet so far that meets the goals is"), std::string::npos);
  EXPECT_NE(text.find("This plan is partial"), std::string::npos) << text;
  EXPECT_FALSE(fs::exists(path("plan.json"))) << "the file of complete plans";
  const auto found = nlohmann::json::parse(slurp(path("plan.json.partial")));
  EXPECT_TRUE(found["partial"].get<std::string>().starts_with("step ")) << found["partial"];
  EXPECT_EQ(found["met"], true);
  ASSERT_EQ(found["plans"].size(), 1U);
  const auto& best = found["plans"][0];
  EXPECT_EQ(best["price_per_hour"], 6 * best["replicas"]["a"].get<int>());
  EXPECT_GT(best["goals"][0]["values"].size(), 1U);
  EXPECT_FALSE(best.contains("spare_replicas_today")) << "the last step was not reached";
  for (const auto& fleet : found["evaluated"]) EXPECT_GT(fleet["runs"], 0);
  const Result report = run({"report", path("plan.json.partial"), "-o", path("again.html")});
  EXPECT_EQ(report.code, 0) << report.err;
  EXPECT_NE(slurp(path("again.html")).find("This plan is partial"), std::string::npos);
}

TEST_F(Watch, ThePageIsAnOutputLikeOthers) {
  const Result twice =
      run(with(sweep(60), {"--watch", path("p.html"), "-o", "html=" + path("p.html")}));
  EXPECT_EQ(twice.code, 2);
  EXPECT_NE(twice.err.find("two formats go to"), std::string::npos) << twice.err;
  const Result nowhere = run(with(plan("5s"), {"--watch", path("no/folder/p.html")}));
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_NE(nowhere.err.find("p.html"), std::string::npos) << nowhere.err;
}

}  // namespace
}  // namespace routesim::tools::testing
