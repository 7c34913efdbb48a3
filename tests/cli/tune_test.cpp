// Tunings as a user runs them: a weight that is clearly wrong is found, nothing is found where
// nothing matters, and what is written can be deployed.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/cli_fixture.h"
#include "tools/ingest/tree/shell_words.h"

namespace routesim::tools::testing {
namespace {

using Json = nlohmann::json;

constexpr char kDocument[] =
    "# Ours.\n"
    "apiVersion: inference.networking.x-k8s.io/v1alpha1\n"
    "kind: EndpointPickerConfig\n"
    "plugins:\n"
    "- type: precise-prefix-cache-scorer\n"
    "  parameters:\n"
    "    tokenProcessorConfig: {blockSize: 16}\n"
    "- type: queue-scorer\n"
    "- type: max-score-picker\n"
    "schedulingProfiles:\n"
    "- name: default\n"
    "  plugins:\n"
    "  - pluginRef: precise-prefix-cache-scorer\n"
    "    weight: 0   # why?\n"
    "  - pluginRef: queue-scorer\n"
    "  - pluginRef: max-score-picker\n";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class Tune : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    scenario("s.yaml", 4, "epp.yaml");
    write("epp.yaml", kDocument);
  }

  void scenario(const std::string& name, int replicas, const std::string& document) const {
    write(name,
          "name: s\n"
          "workload:\n"
          "  groups: {requests: 300, rate: 14, groups: 24, prefix_len: 4096, suffix_len: 256,\n"
          "           output_len: 64}\n"
          "cluster:\n"
          "  pools:\n"
          "  - {name: a, replicas: " +
              std::to_string(replicas) +
              ", accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2,\n"
              "     engine: {kv_cache_tokens: 60000}}\n"
              "routing: {balancer: endpoint-picker, endpoint_picker: " +
              document + "}\n");
  }

  std::string weights(const std::string& more = "budget: 100\nfresh_seeds: 5\nshift: []\n",
                      const std::string& of = "s.yaml") const {
    return write("tune.yaml", "scenario: " + of + "\n" + more +
                                  "knobs:\n"
                                  "- {weight: precise-prefix-cache-scorer, values: [0, 1, 3]}\n"
                                  "- {weight: queue-scorer, values: [0, 1, 2]}\n");
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  Json tuned(const std::vector<std::string>& words, int code) const {
    std::vector<std::string> all = {"tune"};
    all.insert(all.end(), words.begin(), words.end());
    all.insert(all.end(), {"-o", "json"});
    const Result result = run(all);
    EXPECT_EQ(result.code, code) << result.err;
    return Json::parse(result.out, nullptr, false);
  }

  /// The mean of a metric that the printed command gives.
  double repeated(const Json& found, const std::string& metric) const {
    std::vector<std::string> words;
    ShellVariables none;
    Diagnostics diagnostics;
    for (const ShellCommand& command :
         split_shell(found["command"], places_in_file("c"), none, "c", diagnostics))
      for (const ShellWord& word : command) words.push_back(word.text);
    EXPECT_EQ(words.at(0), "routesim");
    words.erase(words.begin());
    words.insert(words.end(), {"--quiet", "-o", "json"});
    const Result result = run(words);
    EXPECT_EQ(result.code, 0) << result.err;
    const Json again = Json::parse(result.out, nullptr, false);
    return again["replications"]["variants"][0]["summary"]["metrics"][metric]["mean"];
  }

  /// Mean over the fresh seeds of a metric, by `run` alone.
  double measured(const std::string& file, const std::string& document,
                  const std::string& metric) const {
    const Result result = run({"run", file, "--quiet", "--seed", "10001", "--replications", "5",
                               "--set", "routing.endpoint_picker=" + document, "-o", "json"});
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(
        result.out)["replications"]["variants"][0]["summary"]["metrics"][metric]["mean"];
  }
};

// Requests share 24 prefixes, four servers hold about half of them, and the published document
// gives the prefix no weight.
TEST_F(Tune, FindsThatAWeightOfZeroIsWrong) {
  const std::string epp = path("tuned.yaml");
  const Json found = tuned({weights(), "-o", "epp=" + epp}, 0);
  EXPECT_EQ(found["verdict"]["decision"], "better");
  ASSERT_EQ(found["knobs"].size(), 2U);
  EXPECT_EQ(found["knobs"][0]["published"], "0");
  EXPECT_NE(found["knobs"][0]["best"], "0");
  EXPECT_GT(found["knobs"][0]["worth"][0]["low"], 0);
  EXPECT_EQ(found["candidates"][0]["dropped"], nullptr);

  // The gain of the goal: its interval lies above a quarter, and the difference is its own.
  const Json& judged = found["judged"][0];
  EXPECT_EQ(judged["metric"], "ttft_ms.p90");
  EXPECT_GT(judged["gain"]["low"], 25);
  EXPECT_NEAR(judged["candidate"].get<double>() - judged["published"].get<double>(),
              judged["difference"]["mean"].get<double>(), 1e-9);

  // The document differs in the weights alone, and `run` finds the numbers of the judgement.
  EXPECT_EQ(slurp(epp), found["epp"].get<std::string>());
  const std::vector<std::string> published = lines_of(kDocument);
  std::vector<std::string> changed;
  for (const std::string& line : lines_of(slurp(epp)))
    if (std::ranges::find(published, line) == published.end()) changed.push_back(line);
  EXPECT_FALSE(changed.empty());
  for (const std::string& line : changed)
    EXPECT_NE(line.find("weight: "), std::string::npos) << line;
  EXPECT_NE(slurp(epp).find("  # why?"), std::string::npos);
  EXPECT_EQ(run({"check", path("s.yaml"), "--set", "routing.endpoint_picker=" + epp}).code, 0);
  EXPECT_NEAR(measured(path("s.yaml"), epp, "ttft_ms.p90"), judged["candidate"].get<double>(),
              1e-6);
  EXPECT_NEAR(measured(path("s.yaml"), path("epp.yaml"), "ttft_ms.p90"),
              judged["published"].get<double>(), 1e-6);
}

// A tune file in another folder sets a load, the command line another number, and the scenario has
// two variants. The line that is printed gives the judged numbers.
TEST_F(Tune, TheCommandRepeatsTheBest) {
  std::string text = slurp(path("s.yaml"));
  const std::string routing = "routing: {balancer: endpoint-picker, endpoint_picker: epp.yaml}\n";
  text.replace(
      text.find(routing), routing.size(),
      "variants:\n- name: first\n  routing: {balancer: random}\n- name: my router\n  " + routing);
  write("two.yaml", text);
  const std::string file = weights(
      "variant: my router\nset: [workload.rate_scale=1.1, routing.endpoint_picker=epp.yaml]\n"
      "budget: 60\nfresh_seeds: 3\nshift: []\n",
      "two.yaml");
  const Json found = tuned({file, "--seed", "7", "--set", "workload.groups.requests=250"}, 0);
  EXPECT_EQ(found["set"][0], "workload.rate_scale=1.1");
  EXPECT_EQ(found["set"][1], "routing.endpoint_picker=" + path("epp.yaml"));
  EXPECT_EQ(found["set"][2], "workload.groups.requests=250");
  EXPECT_EQ(repeated(found, "ttft_ms.p90"), found["judged"][0]["candidate"].get<double>());
}

// With one server every choice is the same.
TEST_F(Tune, SaysThatNothingMattersWhereNothingDoes) {
  scenario("s.yaml", 1, "epp.yaml");
  const Json found = tuned({weights()}, 0);
  EXPECT_EQ(found["verdict"]["decision"], "nothing better");
  EXPECT_NE(found["verdict"]["headline"].get<std::string>().find("Nothing beats your file"),
            std::string::npos);
  EXPECT_EQ(found["epp"], kDocument);
  EXPECT_EQ(found["flags"], "");
  EXPECT_EQ(found["set"], Json::array());
  for (std::size_t i = 1; i < found["candidates"].size(); ++i)
    EXPECT_EQ(found["candidates"][i]["dropped"], "same results as #0");
}

// The published configuration waits a second before it answers.
TEST_F(Tune, WhoMeetsTheConditionsBeatsAFileThatBreaksThem) {
  const auto with = [this](const std::string& condition) {
    return write("tune.yaml",
                 "scenario: s.yaml\nset: [cluster.frontend_latency=1]\nbudget: 40\n"
                 "fresh_seeds: 5\nshift: []\ngoals: [maximise ttft_ms.mean]\nsubject_to: [" +
                     condition + "]\nknobs:\n- {set: cluster.frontend_latency, values: [0.001]}\n");
  };
  const Json found = tuned({with("ttft_ms.min < 900")}, 0);
  EXPECT_EQ(found["verdict"]["decision"], "better");
  EXPECT_LT(found["judged"][0]["gain"]["high"], 0);
  const std::string said = found["verdict"]["headline"];
  EXPECT_EQ(said.find("Your file breaks ttft_ms.min < 900, and 1 change of 1 knob meets it on 5 "
                      "fresh seeds: ttft_ms.mean -"),
            0U)
      << said;

  const Json none = tuned({with("ttft_ms.min < 0.5")}, 4);
  EXPECT_EQ(none["verdict"]["decision"], "conditions not met");
  EXPECT_EQ(none["verdict"]["headline"],
            "Nothing that was tried meets the conditions: your file breaks ttft_ms.min < 0.5, and "
            "the other candidate left the race.");
  EXPECT_EQ(none["command"], "");
}

// One sequence at a time answers fast, and most clients give up before it begins.
TEST_F(Tune, AGainIsNotPaidWithFailures) {
  const auto with = [this](const std::string& guards) {
    return write("tune.yaml",
                 "scenario: s.yaml\nbudget: 40\nfresh_seeds: 5\nshift: []\nsubject_to: []\n"
                 "set: [workload.groups.requests=60, workload.groups.timeout_s=2]\n"
                 "goals: [minimise tpot_ms.mean]\nguards: " +
                     guards +
                     "\nknobs:\n- {set: \"cluster.pools[a].engine.max_num_seqs\", values: [1]}\n");
  };
  const Json guarded = tuned({with("true")}, 0);
  EXPECT_EQ(guarded["guards"], Json({"tpot_ms.p90", "tpot_ms.p99", "failure_rate"}));
  EXPECT_EQ(guarded["candidates"][1]["dropped"], "breaks a guard");
  EXPECT_EQ(guarded["candidate"], 0);
  EXPECT_EQ(guarded["verdict"]["decision"], "nothing better");

  const Json bare = tuned({with("false")}, 0);
  EXPECT_EQ(bare["guards"], Json::array());
  EXPECT_EQ(bare["verdict"]["decision"], "better");
  const std::string said = bare["verdict"]["headline"];
  EXPECT_EQ(
      said.find("1 change of 1 knob beats your file on 5 fresh seeds: a gain of tpot_ms.mean"), 0U)
      << said;
  for (const Json& worse : bare["worse"])
    EXPECT_NE(said.find(worse["metric"].get<std::string>() + " is "), std::string::npos) << said;
  EXPECT_NE(said.find("failure_rate is "), std::string::npos) << said;
}

// Two blocks of two seeds convict nobody at this level, ten fresh seeds do. The next one is judged
// on ten others, and nobody who is refused as given is run under another load: 2 x 20 runs, and 10
// of the omniscient router.
TEST_F(Tune, TheNextOneIsJudgedOnSeedsOfItsOwn) {
  const Json found = tuned(
      {write("tune.yaml",
             "scenario: s.yaml\nbudget: 20\nblock: 2\nconfidence: 0.9999\nfresh_seeds: 10\n"
             "shift: [{rate: 1.25}]\nsubject_to: []\ngoals: [minimise tpot_ms.mean]\n"
             "set: [workload.groups.requests=40, workload.groups.timeout_s=2]\n"
             "knobs:\n- {set: \"cluster.pools[a].engine.max_num_seqs\", values: [1, 2, 3]}\n")},
      0);
  EXPECT_EQ(found["verdict"]["decision"], "nothing better");
  ASSERT_EQ(found["passed_over"].size(), 1U);
  const Json& other = found["passed_over"][0];
  EXPECT_NE(other["candidate"], found["candidate"]);
  for (std::uint64_t s = 0; s < 10; ++s) {
    EXPECT_EQ(found["fresh_seeds"][s], 10'001 + s);
    EXPECT_EQ(other["fresh_seeds"][s], 10'011 + s);
  }
  for (const Json* worse : {&found["worse"], &other["worse"]})
    EXPECT_TRUE(std::ranges::any_of(*worse, [](const Json& w) {
      return w["metric"] == "failure_rate" && w["guard"] == true && w["load"] == "as given";
    })) << *worse;
  EXPECT_EQ(found["loads"].size(), 1U);
  EXPECT_EQ(found["judgement_runs"], 50);
  const std::string said = found["verdict"]["headline"];
  EXPECT_NE(said.find(" breaks a guard on 10 fresh seeds: failure_rate is "), std::string::npos)
      << said;
  EXPECT_NE(said.find("Judged too, each on fresh seeds of its own: #" + other["candidate"].dump() +
                      ", which breaks the guard on failure_rate."),
            std::string::npos)
      << said;
}

TEST_F(Tune, GuardsFollowFromTheGoals) {
  const auto guards = [this](const std::string& keys) {
    return tuned({write("tune.yaml",
                        "scenario: s.yaml\nset: [workload.groups.requests=20]\nbudget: 20\n"
                        "fresh_seeds: 2\nshift: []\n" +
                            keys + "knobs:\n- {set: cluster.frontend_latency, values: [1]}\n")},
                 0)["guards"];
  };
  EXPECT_EQ(guards(""), Json({"ttft_ms.mean", "ttft_ms.p99", "failure_rate"}));
  EXPECT_EQ(guards("goals: [minimise itl_ms.mean]\n"),
            Json({"itl_ms.p90", "itl_ms.p99", "failure_rate"}));
  EXPECT_EQ(guards("goals: [minimise ttft_s.p99]\nsubject_to: [failed_requests < 5]\n"),
            Json({"ttft_s.mean", "ttft_s.p99.9"}));
  EXPECT_EQ(guards("goals: [maximise output_tokens_per_s]\n"),
            Json({"requests_per_s", "failure_rate"}));
}

// Half the GPUs are enough as given, and not for smaller ones.
TEST_F(Tune, ABestThatCannotRunUnderAnotherLoadIsBetterOnlyAsGiven) {
  std::string text = slurp(path("s.yaml"));
  const std::string engine = ",\n     engine: {kv_cache_tokens: 60000}";
  write("s.yaml", text.erase(text.find(engine), engine.size()));
  const Json found =
      tuned({write("tune.yaml",
                   "scenario: s.yaml\nbudget: 40\nfresh_seeds: 3\nsubject_to: []\n"
                   "set: [workload.groups.requests=50]\n"
                   "shift:\n- {name: small, set: [\"cluster.pools[a].accelerator=A100-40\"]}\n"
                   "goals: [maximise tpot_ms.mean]\n"
                   "knobs:\n- {set: \"cluster.pools[a].tensor_parallel\", values: [1]}\n")},
            0);
  EXPECT_EQ(found["verdict"]["decision"], "better only as given");
  EXPECT_EQ(found["loads"][0]["why_not"], "");
  const std::string why = found["loads"][1]["why_not"];
  EXPECT_EQ(why.find("#1 cannot run: cluster.pools[0]"), 0U) << why;
  EXPECT_EQ(found["notes"], Json({"small: " + why + "."}));
}

// Twelve candidates are the least for six knobs, and those that the search began with all left.
TEST_F(Tune, ASearchWithRunsLeftAsksForNoMore) {
  const Json found = tuned({write("tune.yaml",
                                  "scenario: s.yaml\nbudget: 100\nfresh_seeds: 2\nshift: []\n"
                                  "set: [workload.groups.requests=50]\n"
                                  "subject_to: [ttft_ms.p90 < 1]\n")},
                           4);
  EXPECT_LT(found["search_runs"].get<int>(), 70);
  EXPECT_LT(found["candidates"].size(), 13U);
  EXPECT_EQ(found["verdict"]["decision"], "conditions not met");
}

TEST_F(Tune, QuietSilencesTheNotes) {
  scenario("s.yaml", 1, "epp.yaml");
  const Result result =
      run({"tune", weights(), "--quiet", "-o", "flags", "-o", "epp=" + path("ours.yaml")});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
}

TEST_F(Tune, SaysWhatItSpendsAndThatThereAreNoFlags) {
  scenario("s.yaml", 1, "epp.yaml");
  const Result result = run({"tune", weights("shift: []\n"), "-o", "flags"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("note: -o flags is empty: the published flags stay\n"),
            std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("note: up to 1000 runs to search and 180 or more to judge, about "),
            std::string::npos)
      << result.err;
}

// Four candidates are the least for two knobs; a fifth of the budget is kept for simplification.
TEST_F(Tune, AFewCandidatesAreNoSearch) {
  scenario("s.yaml", 1, "epp.yaml");
  const Json found = tuned({weights("budget: 20\nfresh_seeds: 2\nshift: []\n")}, 4);
  EXPECT_EQ(found["verdict"]["decision"], "undecided");
  EXPECT_EQ(found["verdict"]["headline"],
            "Undecided: the search was small. It tried 2 candidates for 2 knobs in 15 of 20 runs, "
            "and none beat your file. Raise the budget to 47 runs or more.");
}

// A candidate that answers 10 microseconds earlier is beyond chance, and not worth a change.
TEST_F(Tune, AGainOfNothingMakesNoBest) {
  const std::string file =
      write("tune.yaml",
            "scenario: s.yaml\nset: [cluster.frontend_latency=0.01]\nbudget: 40\n"
            "fresh_seeds: 5\nshift: []\n"
            "knobs:\n- {set: cluster.frontend_latency, values: [0.01, 0.00999]}\n");
  const Json found = tuned({file}, 0);
  EXPECT_EQ(found["verdict"]["decision"], "nothing better");
  EXPECT_EQ(found["best"], 0);
  EXPECT_EQ(found["candidate"], 1);
  EXPECT_EQ(found["knobs"][0]["best"], found["knobs"][0]["published"]);
  EXPECT_EQ(found["knobs"][0]["candidate"], "0.00999");
  EXPECT_GT(found["judged"][0]["gain"]["low"], 0);
  EXPECT_EQ(found["set"], Json::array());
  const Json two =
      tuned({file, "--goal", "minimise ttft_ms.p90", "--goal", "minimise ttft_ms.mean"}, 0);
  EXPECT_EQ(two["verdict"]["headline"].get<std::string>().find(
                "Nothing beats your file by 1 % or more: #1, the only one judged, gains "),
            0U)
      << two["verdict"];
  const Result text = run({"tune", file});
  EXPECT_EQ(text.out.find("To repeat"), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find("the best  "), std::string::npos) << text.out;
}

// With four sequences at most, answers are fast and wait for a place.
TEST_F(Tune, ATradeSaysWhatIsGainedAndWhatIsLost) {
  const std::string file =
      write("tune.yaml",
            "scenario: s.yaml\nbudget: 40\nfresh_seeds: 5\nshift: []\nsubject_to: []\n"
            "goals: [minimise ttft_ms.p90, minimise tpot_ms.mean]\n"
            "knobs:\n- {set: \"cluster.pools[a].engine.max_num_seqs\", values: [4]}\n");
  const Json found = tuned({file}, 0);
  EXPECT_EQ(found["verdict"]["decision"], "a trade");
  const std::string said = found["verdict"]["headline"];
  EXPECT_EQ(said.find("No candidate beats your file in both goals: #1 loses ttft_ms.p90 -"), 0U);
  EXPECT_NE(said.find(" and gains tpot_ms.mean +"), std::string::npos) << said;
  EXPECT_NE(said.find(". On the front: #0 (your file), #1."), std::string::npos) << said;
  EXPECT_EQ(found["knobs"][0]["worth"][0]["metric"], "ttft_ms.p90");
  EXPECT_EQ(found["knobs"][0]["worth"][1]["metric"], "tpot_ms.mean");
  EXPECT_EQ(found["best"], 0);
  EXPECT_EQ(found["flags"], "");
  EXPECT_EQ(found["set"], Json({"cluster.pools[a].engine.max_num_seqs=4"}));
}

// The best one is made simpler after the race, so it is no member of the race's front.
TEST_F(Tune, NoMemberOfTheFrontIsWorseThanTheBestInBothGoals) {
  const Json found = tuned(
      {std::string(ROUTESIM_SOURCE_DIR) + "/docs/examples/question.yaml", "--variant",
       "prefix-aware", "--budget", "300", "--fresh-seeds", "10", "--set", "workload.rate_scale=1.5",
       "--set", "seed=2", "--goal", "minimise ttft_ms.p90", "--goal", "minimise tpot_ms.mean"},
      0);
  ASSERT_FALSE(found["front"].empty());
  for (const Json& member : found["front"]) {
    bool is_worse = true;
    for (std::size_t g = 0; g < 2; ++g)
      is_worse = is_worse && member["metrics"][found["judged"][g]["metric"]]["mean"] >
                                 found["judged"][g]["candidate"];
    EXPECT_FALSE(is_worse) << member;
  }
}

// Every answer has one token or two, so some runs have no time per output token.
TEST_F(Tune, NamesAGoalWithoutANumber) {
  const std::string file =
      write("tune.yaml",
            "scenario: s.yaml\nbudget: 20\nblock: 2\nfresh_seeds: 20\nshift: []\n"
            "set: [workload.groups.requests=2,\n"
            "      'workload.groups.output_len={type: uniform, min: 1, max: 2}']\n"
            "goals: [minimise tpot_ms.mean, minimise ttft_ms.mean]\nsubject_to: []\n"
            "knobs:\n- {set: cluster.frontend_latency, values: [0.1]}\n");
  const Json found = tuned({file}, 4);
  EXPECT_EQ(found["verdict"]["headline"],
            "Undecided: your file has no tpot_ms.mean in some run on 20 fresh seeds.");
}

// The changes of a pool that are no flags do not hide its flags.
TEST_F(Tune, FlagsStandOnALineOfTheirOwn) {
  scenario("s.yaml", 1, "epp.yaml");
  const Json found =
      tuned({write("tune.yaml",
                   "scenario: s.yaml\nbudget: 60\nfresh_seeds: 5\nshift: []\nsubject_to: []\n"
                   "set: [\"cluster.pools[a].engine.max_num_seqs=1\"]\n"
                   "knobs:\n- {set: \"cluster.pools[a].replicas\", values: [4]}\n"
                   "- {set: \"cluster.pools[a].engine.max_num_seqs\", values: [64]}\n")},
            0);
  EXPECT_EQ(found["flags"], "# 4 replicas\n--max-num-seqs 64\n");
}

// A flag is the engine's own, whichever knobs there are.
TEST_F(Tune, FlagsAreThoseOfThePoolsEngine) {
  write("g.yaml",
        "name: g\n"
        "workload: {groups: {requests: 200, rate: 8, prefix_len: 512, suffix_len: 64}}\n"
        "cluster:\n  pools:\n"
        "  - {name: a, accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2,\n"
        "     engine: {kind: sglang, max_num_seqs: 1}}\n"
        "routing: {balancer: k8s-service}\n");
  const Json found =
      tuned({write("tune.yaml",
                   "scenario: g.yaml\nbudget: 30\nfresh_seeds: 5\nshift: []\nsubject_to: []\n"
                   "knobs:\n- {set: 'cluster.pools[a].engine.max_num_seqs', values: [64]}\n")},
            0);
  EXPECT_EQ(found["flags"], "--max-running-requests 64\n");
}

TEST_F(Tune, TheAnswerDoesNotDependOnJobs) {
  const std::string file = weights("budget: 60\nfresh_seeds: 3\n");
  const Result one = run({"tune", file, "--jobs", "1", "-o", "json"});
  const Result three = run({"tune", file, "--jobs", "3", "-o", "json"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(one.out, three.out);
  const Json found = Json::parse(one.out);
  EXPECT_LE(found["search_runs"].get<int>(), 60);
  // Loads: as given, and two others.
  std::vector<std::string> loads;
  for (const Json& row : found["judged"])
    if (row["metric"] == "ttft_ms.p90") loads.push_back(row["load"]);
  EXPECT_EQ(loads, (std::vector<std::string>{"as given", "rates x 1.25", "rates x 0.8"}));
}

// Without a tune file the document itself says what there is to choose, and engines have flags.
TEST_F(Tune, AScenarioHasKnobsOfItsOwn) {
  const std::string flags = path("flags.txt");
  const Json found = tuned({path("s.yaml"), "--budget", "40", "--fresh-seeds", "2", "--goal",
                            "minimise request_latency_ms.mean", "--goal",
                            "maximise output_tokens_per_s", "-o", "flags=" + flags},
                           0);
  std::vector<std::string> names;
  for (const Json& knob : found["knobs"]) names.push_back(knob["name"]);
  const std::vector<std::string> expected = {"weight of precise-prefix-cache-scorer",
                                             "weight of queue-scorer",
                                             "picker",
                                             "speculativeIndexing of precise-prefix-cache-scorer",
                                             "max_num_seqs",
                                             "max_num_batched_tokens"};
  EXPECT_EQ(names, expected);
  EXPECT_EQ(found["goals"].size(), 2U);
  EXPECT_FALSE(found["front"].empty());
  EXPECT_EQ(slurp(flags), found["flags"].get<std::string>());
}

// The document stands as text inside Helm values: it is taken out, and the same numbers follow.
TEST_F(Tune, ReadsTheDocumentInsideHelmValues) {
  std::string values =
      "inferenceExtension:\n  pluginsConfigFile: ours.yaml\n"
      "  pluginsCustomConfig:\n    ours.yaml: |\n";
  for (const std::string& line : lines_of(kDocument)) values += "      " + line + "\n";
  write("values.yaml", values);
  scenario("wrapped.yaml", 4, "values.yaml");
  const Json inside =
      tuned({weights("budget: 100\nfresh_seeds: 5\nshift: []\n", "wrapped.yaml")}, 0);
  const Json bare = tuned({weights()}, 0);
  EXPECT_EQ(inside["epp"], bare["epp"]);
  EXPECT_EQ(inside["judged"], bare["judged"]);

  // The document has no key path there: the file that was written takes its place.
  EXPECT_EQ(inside["set"][0], "routing.endpoint_picker=tuned.yaml");
  EXPECT_EQ(inside["command_document"], "tuned.yaml");
  const std::string file = weights("budget: 100\nfresh_seeds: 5\nshift: []\n", "wrapped.yaml");
  const Result text = run({"tune", file, "--quiet"});
  EXPECT_NE(text.out.find("with its document from -o epp=tuned.yaml:\nroutesim run "),
            std::string::npos)
      << text.out;

  // Other settings of the values are not lost with them.
  values.insert(values.find('\n') + 1,
                "  replicas: 3\n  flags: {ha-enable-leader-election: false}\n");
  write("values.yaml", values);
  const Json written = tuned({file, "-o", "epp=" + path("ours.yaml")}, 0);
  EXPECT_EQ(written["set"][0], "routing.endpoint_picker=" + path("ours.yaml"));
  EXPECT_EQ(repeated(written, "ttft_ms.p90"), written["judged"][0]["candidate"].get<double>());
  EXPECT_NE(written["judged"][0]["published"], inside["judged"][0]["published"]);
}

TEST_F(Tune, WhatIsWrongIsSaidBeforeAnyRun) {
  const auto error_of = [this](const std::vector<std::string>& words) {
    std::vector<std::string> all = {"tune"};
    all.insert(all.end(), words.begin(), words.end());
    const Result result = run(all);
    EXPECT_EQ(result.code, 2) << result.err;
    EXPECT_TRUE(result.out.empty());
    return result.err;
  };
  EXPECT_NE(error_of({tiny()}).find(
                "tiny.yaml: error: variant: is missing, and the scenario has several variants\n"
                "  hint: choose one with variant: or --variant: rotation, chance"),
            std::string::npos);
  EXPECT_NE(error_of({path("s.yaml"), "--goal", "fast"}).find("minimise METRIC"),
            std::string::npos);
  EXPECT_NE(error_of({path("s.yaml"), "--goal", "maximise goodput"}).find("needs latency goals"),
            std::string::npos);
  EXPECT_NE(error_of({tiny(), "--variant", "chance", "-o", "epp"}).find("EndpointPickerConfig"),
            std::string::npos);
  EXPECT_NE(error_of({path("nowhere.yaml")}).find("nowhere.yaml"), std::string::npos);
}

}  // namespace
}  // namespace routesim::tools::testing
