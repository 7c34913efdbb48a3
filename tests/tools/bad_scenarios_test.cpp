// All faults of files are told in one round, each error at its place.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/base/case_table.h"
#include "tests/base/messages.h"
#include "tests/tools/command_fixture.h"
#include "tools/cli/cli.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/study/plan/plan_space.h"
#include "tools/study/sweep/sweep_record.h"

namespace routesim::tools {
namespace {

// Every case of the tables in bad_scenarios is read and prepared as the scenario NAME.yaml; the
// diagnostics must be exactly those expected. Cases named warn_* may run, with a warning.

class BadScenarios : public testing::FolderTest,
                     public ::testing::WithParamInterface<case_table::CaseOfTable> {
 protected:
  /// What `routesim check` would say, with the folder's own path taken out.
  std::string complaints(const std::string& input, bool& has_errors) const {
    Diagnostics d;
    const LoadedScenario loaded =
        load_scenario({.path = input, .sets = {}, .variants = {}, .seed = {}}, d);
    if (!d.has_errors())
      for (const LoadedVariant& variant : loaded.variants) {
        (void)prepare(variant, d);
        (void)load_measured(variant, d);
      }
    has_errors = d.has_errors();
    std::string text = messages_of(tidy(d));
    const std::string folder = folder_.string() + "/";
    for (std::size_t p = text.find(folder); p != std::string::npos; p = text.find(folder))
      text.erase(p, folder.size());
    return text;
  }
};

/// Set ROUTESIM_UPDATE_EXPECTED=1 to write what is said now, then review the diff.
TEST_P(BadScenarios, GetsItsMessages) {
  const case_table::TableCase& one = GetParam().one;
  for (const auto& [name, text] : one.blocks)
    if (name != "input" && name != "expected") write(name, text);
  bool has_errors = false;
  const std::string text = complaints(write(one.name + ".yaml", one.block("input")), has_errors);
  if (std::getenv("ROUTESIM_UPDATE_EXPECTED") != nullptr) {
    case_table::replace_block(GetParam(), "expected", text);
    return;
  }
  EXPECT_EQ(has_errors, !one.name.starts_with("warn_"));
  EXPECT_NE(text, "");
  EXPECT_EQ(text, one.block("expected"));
}

INSTANTIATE_TEST_SUITE_P(Tables, BadScenarios,
                         ::testing::ValuesIn(case_table::cases_in(std::string(ROUTESIM_SOURCE_DIR) +
                                                                  "/tests/tools/bad_scenarios")),
                         [](const auto& given) { return given.param.one.name; });

// What is wrong with scenarios, plans and sweeps is said in one round, each error at its place.

class AllErrors : public testing::FolderTest {
 protected:
  /// What a command says, without the folder's path.
  std::string said_by(const std::vector<std::string>& command) const {
    testing::TestConsole console;
    EXPECT_EQ(run_command_line(command, console), ExitCode::kInvalid);
    return plain(console.errors);
  }

  std::string plain(std::string text) const {
    const std::string folder = folder_.string() + "/";
    for (std::size_t p = text.find(folder); p != std::string::npos; p = text.find(folder))
      text.erase(p, folder.size());
    return text;
  }

  /// The text must hold each of `lines`, and no other error.
  static void expect_errors(const std::string& text, const std::vector<std::string>& lines) {
    for (const std::string& line : lines)
      EXPECT_NE(text.find(line), std::string::npos) << line << "\nis not in\n" << text;
    std::size_t errors = 0;
    for (std::size_t p = text.find(": error: "); p != std::string::npos;
         p = text.find(": error: ", p + 1))
      ++errors;
    EXPECT_EQ(errors, lines.size()) << text;
  }

  std::string scenario(const std::string& name = "s.yaml") const {
    return write(name,
                 "name: s\n"
                 "workload: {groups: {requests: 10, rate: 5, prefix_len: 100}}\n"
                 "cluster:\n"
                 "  pools:\n"
                 "  - {name: a, accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2}\n");
  }

  std::string plan(const std::string& text) const {
    Diagnostics d;
    (void)load_plan({.path = write("p.yaml", text), .sets = {}, .seed = {}}, d);
    return plain(messages_of(d));
  }

  std::string sweep(const std::string& text) const {
    Diagnostics d;
    (void)load_sweep(
        {.path = write("w.yaml", text), .sets = {}, .seed = {}, .replications = {}, .jobs = 1}, d);
    return plain(messages_of(d));
  }
};

// Keys of the wrong type do not hide what the right ones say.
TEST_F(AllErrors, OfTrafficClassesAreAllSaid) {
  const std::string path =
      write("c.yaml",
            "name: c\n"
            "workload:\n"
            "  groups: {requests: 10, rate: 1}\n"
            "  classes:\n"
            "  - {name: '', share: 0.5}\n"
            "  - {name: a, share: 2, headers: [1]}\n"
            "  - {name: a, share: 0.1, priority: x}\n"
            "  - {name: b, share: 0.2, headers: {k: [1]}}\n"
            "cluster: {pools: [{name: v, accelerator: H100-SXM, model: Qwen3-8B}]}\n");
  expect_errors(said_by({"check", path}),
                {"c.yaml:5:12: error: workload.classes[0].name: must not be empty",
                 "c.yaml:6:22: error: workload.classes[1].share: must be at most 1",
                 "c.yaml:6:34: error: workload.classes[1].headers: must be a map",
                 "c.yaml:7:12: error: workload.classes[2].name: is listed twice",
                 "c.yaml:7:37: error: workload.classes[2].priority: must be a whole number",
                 "c.yaml:8:36: error: workload.classes[3].headers: every value must be a text"});
}

TEST_F(AllErrors, TenOfTenClassesShowInOneRound) {
  const std::string path =
      write("s.yaml",
            "name: s\n"
            "goodput: [ttft:500]\n"
            "expect: [ttft_ms.p99 ~ 3]\n"
            "measured: {csv: missing.csv, policy: x}\n"
            "workload:\n"
            "  trace: {file: missing.jsonl, time_scal: 2}\n"
            "cluster:\n"
            "  transfer: {setup: -1s}\n"
            "  pools:\n"
            "  - {name: a, accelerator: H100-SXN, model: Qwen3-32B, tensor_parallel: 2}\n"
            "  - {name: b, accelerator: H100-SXM, model: Qwen3-32C, tensor_parallel: 2}\n"
            "  - {name: c, accelerator: H100-SXM, model: Qwen3-32B, replicas: two}\n"
            "routing: {balancer: endpoint-picker, endpoint_picker: missing-epp.yaml}\n");
  for (const char* command : {"check", "run"})
    expect_errors(
        said_by({command, path}),
        {"s.yaml:2:11: error: goodput[0]: needs a bound with its unit",
         "s.yaml:3:10: error: expect[0]: must be METRIC < NUMBER",
         "s.yaml:4:17: error: measured.csv: cannot open missing.csv",
         "s.yaml:6:17: error: workload.trace.file: cannot open missing.jsonl",
         "s.yaml:6:32: error: workload.trace.time_scal: unknown key",
         "s.yaml:8:21: error: cluster.transfer.setup: must be at least 0s (got -1s)",
         "s.yaml:10:28: error: cluster.pools[0].accelerator: unknown accelerator (got H100-SXN)",
         "s.yaml:11:45: error: cluster.pools[1].model: unknown model (got Qwen3-32C)",
         "s.yaml:12:66: error: cluster.pools[2].replicas: must be a whole number (got two)",
         "s.yaml:13:55: error: routing.endpoint_picker: cannot open missing-epp.yaml"});
}

TEST_F(AllErrors, AMissingFileHidesNoTypo) {
  const std::string path = write("s.yaml",
                                 "name: s\n"
                                 "workload: {trace: {file: missing.jsonl}}\n"
                                 "cluster: {pools: [{accelerator: H100-SXM, model: Qwen3-32C}]}\n");
  expect_errors(said_by({"check", path}),
                {"s.yaml:2:26: error: workload.trace.file: cannot open missing.jsonl",
                 "s.yaml:3:50: error: cluster.pools[0].model: unknown model (got Qwen3-32C)"});
}

TEST_F(AllErrors, ATypoHidesNoWrongLoad) {
  const std::string path =
      write("s.yaml",
            "name: s\n"
            "workload: {inference_perf: {data: {type: random}, load: {type: constant, stages: "
            "[{rate: 1}]}}}\n"
            "cluster: {pools: [{accelerator: H100-SXM, model: Qwen3-32C}]}\n");
  const std::string said = said_by({"check", path});
  EXPECT_NE(said.find("unknown model (got Qwen3-32C)"), std::string::npos) << said;
  EXPECT_NE(said.find("workload.inference_perf.load.stages[0]"), std::string::npos) << said;
}

TEST_F(AllErrors, OfAPlan) {
  scenario();
  expect_errors(
      plan("name: p\n"
           "scenario: s.yaml\n"
           "demand:\n"
           "  rate: many\n"
           "  set: [rate, 'workload.groups.rate={rate}']\n"
           "goals: [3, ttft_ms.p98.p99 < 1, ttft_ms.p99, ttft_ms.p99 < x]\n"
           "goodput: {bounds: [ttft:5]}\n"
           "confidence: 2\n"
           "prices:\n"
           "- {accelerator: H100-SXM, per_hour: 3}\n"
           "- {accelerator: H1000, per_hour: 3}\n"
           "- {accelerator: H100-SXM, per_hour: 4}\n"
           "hardware:\n"
           "- {name: x, accelerator: H100-SXM}\n"
           "- {name: x, accelerator: L4, set: [cluster]}\n"
           "policies: [{variant: nobody}]\n"
           "pools: [{pool: a}, {pool: a}, {pool: b}, {pool: c, min: 9, max: 3}]\n"),
      {"p.yaml:4:9: error: demand.rate: must be a number (got many)",
       "p.yaml:5:9: error: rate: must be KEY=VALUE (got no '=')",
       "p.yaml:6:9: error: goals[0]: must be text (got 3)",
       "p.yaml:6:12: error: goals[1]: ", "p.yaml:6:33: error: goals[2]: must be METRIC < NUMBER",
       "p.yaml:6:46: error: goals[3]: the bound must be a number (got x)",
       "p.yaml:7:20: error: goodput.bounds[0]: needs a bound with its unit",
       "p.yaml:8:13: error: confidence: must be at most 0.9999 (got 2)",
       "p.yaml:11:17: error: prices[1].accelerator: is not a known accelerator (got H1000)",
       "p.yaml:12:17: error: prices[2].accelerator: has a price already (got H100-SXM, which is "
       "prices[0])",
       "p.yaml:15:3: error: hardware[1]: has the name of another hardware too (got x)",
       "p.yaml:15:36: error: hardware[1].set[0]: cluster: must be KEY=VALUE (got no '=')",
       "p.yaml:16:22: error: policies[0].variant: is no variant of the scenario (got nobody)",
       "p.yaml:17:27: error: pools[1].pool: is sized twice (got a)",
       "p.yaml:17:38: error: pools[2].pool: is no pool of the scenario (got b)",
       "p.yaml:17:49: error: pools[3].pool: is no pool of the scenario (got c)",
       "p.yaml:17:42: error: pools[3]: leaves no size between min and max less spares (got 9 to "
       "3)"});
}

TEST_F(AllErrors, OfAPlanAndItsScenario) {
  write("s.yaml",
        "name: s\n"
        "workload: {groups: {requests: 10, rates: 5}}\n"
        "cluster: {pools: [{name: a, accelerator: H100-SXM, model: Qwen3-32C}]}\n");
  const std::string rest =
      "demand: {rate: 5, set: ['workload.groups.rate={rate}']}\n"
      "goals: [ttft_ms.p99 < 500]\n"
      "prices: [{accelerator: H1000, per_hour: 3}]\n"
      "pools: [{pool: a}]\n";
  expect_errors(plan("name: p\nscenario: s.yaml\n" + rest),
                {"p.yaml:5:24: error: prices[0].accelerator: is not a known accelerator",
                 "s.yaml:2:35: error: workload.groups.rates: unknown key",
                 "s.yaml:3:59: error: cluster.pools[0].model: unknown model (got Qwen3-32C)"});
  expect_errors(plan("name: p\nscenario: missing.yaml\n" + rest),
                {"p.yaml:2:11: error: scenario: cannot open missing.yaml",
                 "p.yaml:5:24: error: prices[0].accelerator: is not a known accelerator"});
}

TEST_F(AllErrors, OfAPlansAssignmentsStandInThePlan) {
  scenario();
  // The path is no key, and the value none that the key may have: both stand where they were
  // written, not on a command line.
  expect_errors(plan("name: p\n"
                     "scenario: s.yaml\n"
                     "demand: {rate: 5, set: ['workload.groups.requests={requests}.5',\n"
                     "  'workload.groups.rate={rate}']}\n"
                     "goals: [ttft_ms.p99 < 500]\n"
                     "set: ['cluster.pools[a].engine.max_num_seqs=0']\n"
                     "prices: [{accelerator: H100-SXM, per_hour: 3}]\n"
                     "pools: [{pool: a}]\n"),
                {"p.yaml:3:25: error: workload.groups.requests: must be a whole number (got 600.5)",
                 "p.yaml:6:7: error: cluster.pools[0].engine.max_num_seqs: must be at least 1"});
}

TEST_F(AllErrors, NumbersOfAPlanDoNotOverflow) {
  scenario();
  expect_errors(
      plan("name: p\n"
           "scenario: s.yaml\n"
           "demand: {rate: 1.0e300, duration: 2000000h, set: ['workload.groups.rate={rate}']}\n"
           "goals: [ttft_ms.p99 < 500]\n"
           "prices: [{accelerator: H100-SXM, per_hour: 3}]\n"
           "pools: [{pool: a}]\n"),
      {"p.yaml:3:16: error: demand.rate: must be at most 10000000 (got 1.0e300)",
       "p.yaml:3:35: error: demand.duration: must be at most 2592000s (got 2000000h)"});
}

TEST_F(AllErrors, OfASweep) {
  scenario();
  expect_errors(sweep("name: w\n"
                      "scenario: s.yaml\n"
                      "set: [seed, 'a..b=3']\n"
                      "replications: 0\n"
                      "metrics: [ttft_ms.p99, nothing, ttft_ms.p99]\n"
                      "axes:\n"
                      "- path: cluster.pools[a].replicas\n"
                      "  values: [1, 2]\n"
                      "  labels: [x, x]\n"
                      "- {path: 'cluster..pools', values: [1]}\n"
                      "- {path: seed, values: []}\n"
                      "exclude: [{rat: 3}, 5]\n"),
                {"w.yaml:3:7: error: set[0]: seed: must be KEY=VALUE (got no '=')",
                 "w.yaml:3:13: error: set[1]: a..b: is not a key path",
                 "w.yaml:4:15: error: replications: must be at least 1 (got 0)",
                 "w.yaml:5:24: error: metrics[1]: ",
                 "w.yaml:5:33: error: metrics[2]: is named twice (got ttft_ms.p99)",
                 "w.yaml:9:15: error: axes[0].labels[1]: names another value too (got x)",
                 "w.yaml:10:10: error: axes[1].path: is not a key path (got cluster..pools)",
                 "w.yaml:11:24: error: axes[2].values: must be a list of at least one value",
                 "w.yaml:12:12: error: exclude[0].rat: is not the name of an axis",
                 "w.yaml:12:21: error: exclude[1]: must be "});
}

TEST_F(AllErrors, OfEveryValueOfASweep) {
  write("s.yaml",
        "name: s\n"
        "workload: {groups: {requests: 10, rate: 5}}\n"
        "cluster: {pools: [{name: a, accelerator: H100-SXM, model: Qwen3-32C}]}\n");
  expect_errors(sweep("name: w\n"
                      "scenario: s.yaml\n"
                      "axes:\n"
                      "- path: cluster.pools[a].replicas\n"
                      "  values: [one, -1, 2.5, 2]\n"),
                {"w.yaml:5:12: error: cluster.pools[0].replicas: must be a whole number (got one)",
                 "w.yaml:5:17: error: cluster.pools[0].replicas: must be at least 0 (got -1)",
                 "w.yaml:5:21: error: cluster.pools[0].replicas: must be a whole number (got 2.5)",
                 "s.yaml:3:59: error: cluster.pools[0].model: unknown model (got Qwen3-32C)"});
  expect_errors(sweep("name: w\n"
                      "scenario: missing.yaml\n"
                      "metrics: [nothing]\n"
                      "axes: []\n"),
                {"w.yaml:2:11: error: scenario: cannot open missing.yaml",
                 "w.yaml:3:11: error: metrics[0]: "});
}

TEST_F(AllErrors, OfTheGridStandInTheSweep) {
  scenario();
  expect_errors(sweep("name: w\n"
                      "scenario: s.yaml\n"
                      "metrics: [goodput]\n"
                      "axes:\n"
                      "- {path: workload.groups.rate, values: [1, 2]}\n"),
                {"w.yaml:3:10: error: goodput: is missing: the sweep's metric goodput"});
  expect_errors(sweep("name: w\n"
                      "scenario: s.yaml\n"
                      "axes:\n"
                      "- {path: workload.groups.rate, values: [1, 1]}\n"),
                {"w.yaml:4:1: error: axes: two cells are the same experiment"});
}

TEST_F(AllErrors, OfTheKeysAndTheParametersOfARouter) {
  const std::string path = write("epp.yaml",
                                 "apiVersion: llm-d.ai/v1alpha1\n"
                                 "kind: EndpointPickerConfig\n"
                                 "featureGates: [flowContrl]\n"
                                 "plugin: []\n"
                                 "plugins:\n"
                                 "- type: queue-scorer\n"
                                 "  parametres: {}\n"
                                 "- type: by-label\n"
                                 "  parameters: {label: '', validValues: [a]}\n"
                                 "- type: utilization-filter\n"
                                 "  parameters: {conditions: [{metric: quue, maxValue: 3}]}\n"
                                 "- type: disagg-profile-handler\n"
                                 "  parameters: {deciders: {prefill: nobody}}\n"
                                 "- type: prefix-cache-scorer\n"
                                 "  parameters: {prefixMatchInfoProducerName: queue-scorer}\n"
                                 "- type: max-score-picker\n"
                                 "  parameters: {maxNumOfEndpoints: many}\n"
                                 "- type: no-such-producer\n"
                                 "- type: no-hit-lru-scorer\n"
                                 "  parameters: {prefixMatchInfoProducerName: no-such-producer}\n"
                                 "- type: label-selector-filter\n"
                                 "  parameters: {matchLabels: {a: yes}}\n"
                                 "schedulingProfiles:\n"
                                 "- name: decode\n"
                                 "  plugins:\n"
                                 "  - pluginRef: missing\n"
                                 "  - {pluginRef: queue-scorer, weight: heavy}\n");
  // Nothing is said of what follows from another error: a producer of an unknown type produces
  // nothing, and a value that could not be read is no text.
  const std::vector<std::string> errors = {
      "epp.yaml:3:16: error: featureGates[0]: feature gate 'flowContrl' is unknown",
      "epp.yaml:4:1: error: plugin: unknown key",
      "epp.yaml:7:3: error: plugins[0].parametres: unknown key",
      "epp.yaml:9:23: error: plugins[1].parameters.label: must not be empty",
      "epp.yaml:11:28: error: plugins[2].parameters.conditions: metric 'quue' is unknown",
      "epp.yaml:13:36: error: plugins[3].parameters.deciders.prefill: references undefined plugin",
      "epp.yaml:15:45: error: plugins[4].parameters.prefixMatchInfoProducerName: plugin "
      "'queue-scorer' produces no prefix match info",
      "epp.yaml:17:35: error: plugins[5].parameters.maxNumOfEndpoints: must be a whole number",
      "epp.yaml:18:3: error: plugins[6]: plugin type 'no-such-producer' is not registered",
      "epp.yaml:22:33: error: plugins[8].parameters.matchLabels.a: is a boolean to the router's",
      "epp.yaml:26:5: error: schedulingProfiles[0].plugins[0]: references undefined plugin",
      "epp.yaml:27:39: error: schedulingProfiles[0].plugins[1].weight: must be a number"};
  expect_errors(said_by({"check", path}), errors);
  // A value that the YAML reader of the router takes for a boolean hides no parameter either.
  const std::string alone = write("epp.yaml",
                                  "apiVersion: llm-d.ai/v1alpha1\n"
                                  "kind: EndpointPickerConfig\n"
                                  "plugins:\n"
                                  "- type: by-label\n"
                                  "  parameters: {label: '', validValues: [a]}\n"
                                  "- type: label-selector-filter\n"
                                  "  parameters: {matchLabels: {a: yes}}\n");
  expect_errors(said_by({"check", alone}),
                {"epp.yaml:5:23: error: plugins[0].parameters.label: must not be empty",
                 "epp.yaml:7:33: error: plugins[1].parameters.matchLabels.a: is a boolean"});
}

TEST_F(AllErrors, AnEmptyFileStandsAtItsBegin) {
  const std::string empty = write("empty.yaml", "");
  for (const char* command : {"check", "run", "plan", "sweep", "explain", "validate"})
    EXPECT_TRUE(said_by({command, empty})
                    .starts_with("empty.yaml:1:1: error: must be a map (got "
                                 "nothing)"))
        << command;
}

}  // namespace
}  // namespace routesim::tools
