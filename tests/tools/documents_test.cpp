// The bridges to other formats: EndpointPickerConfig, Helm values, inference-perf, scenarios.
#include <gtest/gtest.h>

#include "policies/config/factory.h"
#include "tests/base/messages.h"
#include "tests/tools/scenario_fixture.h"
#include "tools/ingest/loads/inference_perf_yaml.h"
#include "tools/ingest/routers/endpoint_picker_yaml.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {
namespace {

std::string input(const std::string& name) {
  return std::string(ROUTESIM_SOURCE_DIR) + "/tests/tools/inputs/" + name;
}

std::optional<policies::EndpointPickerConfig> load_epp(const std::string& text, Diagnostics& d) {
  const ConfigNode::Ptr root = parse_config(text, {.file = "epp.yaml"}, d);
  return root == nullptr ? std::nullopt : load_endpoint_picker(root, {}, d);
}

TEST(EndpointPickerYaml, LoadsPublishedHelmValues) {
  struct Case {
    std::string file;
    std::size_t profiles;
    std::size_t entries_of_last;
  };
  for (const Case& c :
       {Case{"llm-d-precise.values.yaml", 1, 6}, Case{"llm-d-precise-2026-01.values.yaml", 1, 4},
        Case{"heimdall-values.yaml", 2, 5}, Case{"heimdall-values-random.yaml", 2, 2}}) {
    Diagnostics d;
    const ConfigNode::Ptr root =
        read_config_file(std::string(ROUTESIM_SOURCE_DIR) + "/tests/policies/data/" + c.file, d);
    ASSERT_NE(root, nullptr) << messages_of(d);
    const auto config = load_endpoint_picker(root, {}, d);
    ASSERT_TRUE(config.has_value()) << c.file << "\n" << messages_of(d);
    ASSERT_EQ(config->profiles.size(), c.profiles) << c.file;
    EXPECT_EQ(config->profiles.back().plugins.size(), c.entries_of_last) << c.file;
  }
}

TEST(EndpointPickerYaml, ErrorsInsideHelmTextPointIntoTheOuterFile) {
  Diagnostics d;
  const auto config = load_epp(
      "router:\n"                                         // 1
      "  epp:\n"                                          // 2
      "    pluginsConfigFile: p.yaml\n"                   // 3
      "    pluginsCustomConfig:\n"                        // 4
      "      p.yaml: |\n"                                 // 5
      "        apiVersion: llm-d.ai/v1alpha1\n"           // 6
      "        kind: EndpointPickerConfig\n"              // 7
      "        plugins:\n"                                // 8
      "          - type: queue-scorrer\n"                 // 9
      "          - type: kv-cache-utilization-scorer\n",  // 10
      d);
  EXPECT_FALSE(config.has_value());
  ASSERT_FALSE(d.items().empty());
  EXPECT_EQ(d.items()[0].where.file, "epp.yaml");
  EXPECT_EQ(d.items()[0].where.line, 9) << messages_of(d);
  EXPECT_NE(messages_of(d).find("queue-scorer"), std::string::npos) << "a suggestion is expected";
}

TEST(EndpointPickerYaml, RefusesWhatGoWouldReadDifferently) {
  for (const std::string& value : std::vector<std::string>{"yes", "OFF", "010", ".nan", ".inf"}) {
    Diagnostics d;
    const auto config = load_epp(
        "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n"
        "- type: load-aware-scorer\n  parameters:\n    threshold: " +
            value + "\n",
        d);
    EXPECT_FALSE(config.has_value()) << value;
    ASSERT_FALSE(d.items().empty()) << value;
    EXPECT_EQ(d.items()[0].where.line, 6) << messages_of(d);
    EXPECT_EQ(d.items()[0].path, "plugins[0].parameters.threshold") << messages_of(d);
  }
}

TEST(EndpointPickerYaml, SaysWhenThereIsNoDocument) {
  Diagnostics d;
  EXPECT_FALSE(load_epp("replicas: 3\n", d).has_value());
  EXPECT_NE(messages_of(d).find("holds no EndpointPickerConfig"), std::string::npos)
      << messages_of(d);
}

/// The document of one plugin type, indented.
std::string document_with(const std::string& type, const std::string& indent) {
  return indent + "apiVersion: llm-d.ai/v1alpha1\n" + indent + "kind: EndpointPickerConfig\n" +
         indent + "plugins:\n" + indent + "- type: " + type + "\n";
}

std::string config_map() {
  return "apiVersion: v1\nkind: ConfigMap\n"
         "metadata:\n  annotations:\n    last: \"kind: EndpointPickerConfig\"\n"
         "data:\n  envoy.yaml: x\n  a.yaml: |\n" +
         document_with("queue-scorer", "    ");
}

/// The first plugin type of what is found in these objects, or what was said.
std::string first_type(const std::string& text) {
  Diagnostics d;
  const ConfigNode::Ptr root = parse_manifest(text, {.file = "m.yaml"}, d);
  if (root == nullptr) return messages_of(d);
  const auto config = load_endpoint_picker(root, {}, d, "p");
  return config ? config->plugins.at(0).type : messages_of(d);
}

TEST(EndpointPickerYaml, IsFoundInsideKubernetesObjects) {
  const std::string service = "---\nkind: Service\napiVersion: v1\n---\n";
  EXPECT_EQ(first_type(config_map()), "queue-scorer");
  EXPECT_EQ(first_type(service + config_map()), "queue-scorer");
  EXPECT_EQ(first_type("apiVersion: serving.kserve.io/v1alpha1\nkind: LLMInferenceService\n"
                       "spec:\n  args:\n  - --config-text\n  - |\n" +
                       document_with("random-picker", "    ")),
            "random-picker");
  EXPECT_EQ(first_type("apiVersion: serving.kserve.io/v1alpha2\nkind: LLMInferenceService\n"
                       "spec:\n  config:\n    inline:\n" +
                       document_with("random-picker", "      ")),
            "random-picker");
  EXPECT_EQ(first_type("apiVersion: argoproj.io/v1alpha1\nkind: Application\n"
                       "spec:\n  values: |\n    router:\n      pluginsCustomConfig:\n"
                       "        a.yaml: |\n" +
                       document_with("load-aware-scorer", "          ")),
            "load-aware-scorer");
}

TEST(EndpointPickerYaml, AContainerSaysWhichOfSeveralIsRead) {
  const std::string two = config_map() + "  b.yaml: |\n" + document_with("random-picker", "    ");
  EXPECT_NE(first_type(two).find("m.yaml:1:1: error: p: holds no EndpointPickerConfig\n"
                                 "  hint: it holds several (a.yaml, b.yaml)"),
            std::string::npos)
      << first_type(two);
  const std::string deployment = "---\napiVersion: apps/v1\nkind: Deployment\nspec:\n  args:\n";
  EXPECT_EQ(first_type(two + deployment + "  - --config-file=/etc/epp/b.yaml\n"), "random-picker");
  EXPECT_EQ(first_type(two + deployment + "  - -configFile\n  - /etc/epp/a.yaml\n"),
            "queue-scorer");
}

TEST(EndpointPickerYaml, ErrorsInsideAManifestPointIntoIt) {
  const std::string text = "kind: Service\napiVersion: v1\n---\n" + config_map();
  const std::string wrong = text + "    - type: queue-scorrer\n";
  EXPECT_NE(first_type(wrong).find("m.yaml:16:7: error: p.plugins[1]: plugin type 'queue-scorrer'"),
            std::string::npos)
      << first_type(wrong);
  EXPECT_NE(first_type("kind: Service\napiVersion: v1\n").find("it is a Kubernetes Service"),
            std::string::npos);
  EXPECT_NE(first_type("a: 1\n---\nb: 2\n").find("a second document starts here"),
            std::string::npos);
  EXPECT_NE(first_type("apiVersion: v1\nkind: ConfigMap\ndata:\n  notes: no EndpointPickerConfig\n")
                .find("m.yaml:4:1: error: p: holds no EndpointPickerConfig"),
            std::string::npos)
      << "prose is no document";
}

TEST(InferencePerfYaml, LoadsPublishedFilesUnchanged) {
  for (const std::string& file :
       std::vector<std::string>{"llm-d-guide-inference-perf.yaml", "moreh-inference-perf.yaml"}) {
    Diagnostics d;
    const ConfigNode::Ptr root = read_config_file(input(file), d);
    ASSERT_NE(root, nullptr);
    const auto config = load_inference_perf(root, {}, d);
    EXPECT_EQ(messages_of(d), "") << file;
    ASSERT_TRUE(config.data.shared_prefix.has_value());
    EXPECT_EQ(config.data.shared_prefix->output_len.type, workloads::DistributionType::kFixed);
    EXPECT_EQ(config.data.shared_prefix->output_len.mean, 1000);
  }
}

TEST(InferencePerfYaml, ToleratesDriftWithWarnings) {
  Diagnostics d;
  const ConfigNode::Ptr root = parse_config(
      "load: {stages: [{rate: 1, duration: 2}]}\n"
      "data:\n"
      "  type: random\n"
      "  input_distribution: {type: normal, mean: 50, std: 5}\n"
      "  output_distribution: 20\n"
      "server: {name: vllm}\n"
      "report: {prometheus: true}\n",
      {.file = "perf.yaml"}, d);
  const auto config = load_inference_perf(root, {}, d);
  EXPECT_FALSE(d.has_errors()) << messages_of(d);
  EXPECT_EQ(d.items().size(), 2U) << messages_of(d);
  EXPECT_EQ(config.data.input_distribution->std_dev, 200) << "the tool does not know std";
  EXPECT_NE(messages_of(d).find("data.input_distribution.std: has no effect, as in the tool"),
            std::string::npos)
      << messages_of(d);
  EXPECT_EQ(config.data.input_distribution->max, 1024) << "the tool's default, not the struct's";
  EXPECT_EQ(config.data.output_distribution->type, workloads::DistributionType::kFixed);
  EXPECT_TRUE(config.report.prometheus.summary);
}

TEST(InferencePerfYaml, RefusesBothNamesOfOneKey) {
  Diagnostics d;
  const ConfigNode::Ptr root =
      parse_config("data: {shared_prefix: {num_groups: 2, num_unique_system_prompts: 3}}\n",
                   {.file = "perf.yaml"}, d);
  (void)load_inference_perf(root, {}, d);
  EXPECT_TRUE(d.has_errors());
  EXPECT_NE(messages_of(d).find("is another name of data.shared_prefix.num_groups"),
            std::string::npos)
      << messages_of(d);
}

/// The document read from a file with this text, and what was said about it.
struct ReadPerf {
  explicit ReadPerf(const std::string& text) {
    const ConfigNode::Ptr root = parse_config(text, {.file = "perf.yaml"}, found);
    config =
        load_inference_perf(root, {.path = "w", .provenance = nullptr, .ignored_keys = {}}, found);
    said = messages_of(found);
  }
  Diagnostics found;
  workloads::inference_perf::Config config;
  std::string said;
};

TEST(InferencePerfYaml, TakesTheToolsOwnSpellingsWithoutAWord) {
  const ReadPerf perf(
      "data:\n  type: shared_prefix\n"
      "  shared_prefix: {num_unique_system_prompts: 3, num_users_per_system_prompt: 4}\n"
      "report: {request_lifecycle: {metrics_only: true}}\n"
      "metrics: {type: prometheus, prometheus: {url: x, bearer_token: t, verify_ssl: false,\n"
      "          headers: {a: b}}}\n"
      "tokenizer: {load_timeout: 5.5}\n"
      "observability: {metrics: {enabled: false}}\n");
  EXPECT_EQ(perf.said, "");
  EXPECT_EQ(perf.config.data.shared_prefix->num_groups, 3);
  EXPECT_EQ(perf.config.data.shared_prefix->num_prompts_per_group, 4);
}

TEST(InferencePerfYaml, ReadsTheDistributionsOfEarly2026WithTheirDefaults) {
  const ReadPerf perf(
      "data: {type: shared_prefix, shared_prefix: {question_len: {distribution: lognormal,\n"
      "       mean: 200}, output_len: {type: normal, mean: 200}}}\n");
  EXPECT_EQ(perf.said, "");
  const workloads::Distribution& early = perf.config.data.shared_prefix->question_len;
  EXPECT_EQ(early.type, workloads::DistributionType::kLognormal);
  EXPECT_EQ(early.min, 0);
  EXPECT_EQ(early.max, 4096);
  EXPECT_EQ(early.std_dev, 0);
  EXPECT_EQ(perf.config.data.shared_prefix->output_len.max, 1024);
}

TEST(InferencePerfYaml, KeysOfTheServerThatTheToolHasNotAreLeftOut) {
  const ReadPerf perf(
      "load: {stages: [{rate: 1, duration: 2}]}\ndata: {type: mock}\n"
      "server: {type: vllm, max_model_len: 4096, ignore_eos: false}\n");
  EXPECT_FALSE(perf.found.has_errors()) << perf.said;
  EXPECT_NE(perf.said.find("perf.yaml:3:22: warning: w.server.max_model_len: has no effect"),
            std::string::npos)
      << perf.said;
  EXPECT_FALSE(perf.config.server.ignore_eos);
}

TEST(InferencePerfYaml, ReadsTheDocumentInTheChartsValues) {
  const ReadPerf perf(
      "job: {image: {tag: x}}\nlogLevel: INFO\nmetrics: {interval: 15s}\n"
      "config:\n  load: {stages: [{rate: 3, duration: 2}]}\n  data: {type: mock}\n");
  EXPECT_EQ(perf.said, "");
  ASSERT_EQ(perf.config.load.stages.size(), 1U);
  EXPECT_EQ(perf.config.load.stages[0].rate, 3);
  const ReadPerf wrong("config:\n  load: {stagez: []}\n");
  EXPECT_NE(wrong.said.find("perf.yaml:2:10: error: w.load.stagez: unknown key"), std::string::npos)
      << wrong.said;
}

TEST(InferencePerfYaml, ReadsTheWorkloadOfABenchmarkTemplate) {
  const std::string head =
      "endpoint: {model: &model Qwen/Qwen3-32B}\nharness: {name: inference-perf}\nworkload:\n";
  const std::string one =
      "  rates:\n    load: {stages: [{rate: 3, duration: 2}]}\n    data: {type: mock}\n"
      "    server: {type: vllm, model_name: *model}\n";
  const ReadPerf perf(head + one + "  other: {target: x}\n");
  EXPECT_EQ(perf.said, "");
  EXPECT_EQ(perf.config.load.stages.at(0).rate, 3);
  EXPECT_EQ(perf.config.server.model_name, "Qwen/Qwen3-32B");
  const ReadPerf two(head + one + "  more: {load: {stages: []}, data: {type: mock}}\n");
  EXPECT_NE(two.said.find("perf.yaml:8:3: error: w: is a second workload in the file: rates, more"),
            std::string::npos)
      << two.said;
}

TEST(InferencePerfYaml, ReadsTheDocumentOfAConfigMap) {
  const ReadPerf perf(
      "apiVersion: v1\nkind: ConfigMap\ndata:\n  run.sh: \"load: x\"\n  config.yml: |\n"
      "    load: {stages: [{rate: 3, duration: 2}]}\n    data: {type: mock}\n    wrong: 1\n");
  EXPECT_EQ(perf.said.substr(0, perf.said.find('\n')),
            "perf.yaml:8:5: error: w.wrong: unknown key");
  ASSERT_EQ(perf.config.load.stages.size(), 1U);
  EXPECT_EQ(perf.config.load.stages[0].rate, 3);
}

TEST(InferencePerfYaml, TakesTheConfigurationBesideItsReports) {
  const ReadPerf perf(
      "api: {headers: null, streaming: true, type: completion}\ncircuit_breakers: null\n"
      "load: {stages: [{rate: 1.0, duration: 2, num_requests: null}], sweep: null, trace: null}\n"
      "data: {type: mock, input_distribution: null, path: null, some_newer_data: null}\n"
      "report:\n  prometheus: null\n  goodput: {constraints: {ttft: 1}, percentile: p90}\n"
      "  request_lifecycle: {per_request: null, per_request_fields: {request: false}}\n"
      "tokenizer: {trust_remote_code: null, token: null}\n");
  EXPECT_FALSE(perf.found.has_errors()) << perf.said;
  EXPECT_EQ(perf.found.items().size(), 1U) << perf.said;
  EXPECT_NE(perf.said.find("w.report.goodput.percentile: has no effect here"), std::string::npos)
      << perf.said;
  EXPECT_EQ(perf.config.report.goodput.constraints.ttft, 1);
  EXPECT_FALSE(perf.config.load.sweep.has_value());
}

TEST(InferencePerfYaml, APlaceholderIsCalledOne) {
  const ReadPerf perf(
      "load: {type: concurrent, stages: [{num_requests: REPLACE_ENV_X_COUNT,\n"
      "       concurrency_level: many}]}\ndata: {type: mock}\n");
  EXPECT_NE(perf.said.find("num_requests: must be a whole number (got REPLACE_ENV_X_COUNT)\n"
                           "  hint: a placeholder of llm-d-benchmark"),
            std::string::npos)
      << perf.said;
  EXPECT_NE(perf.said.find("(got many)\n"), std::string::npos) << perf.said;
}

TEST(InferencePerfYaml, SaysThatAKubernetesObjectIsNone) {
  const ReadPerf perf("apiVersion: batch/v1\nkind: Job\nspec: {a: 1}\n");
  EXPECT_EQ(perf.found.items().size(), 1U) << perf.said;
  EXPECT_NE(perf.said.find("w: is a Kubernetes Job, not an inference-perf file"), std::string::npos)
      << perf.said;
}

TEST(InferencePerfYaml, AnAutomaticStageIsTheSweepOfToday) {
  const ReadPerf perf("load: {auto_stage: {gen_type: linear, num_stages: 3}}\ndata: {}\n");
  EXPECT_FALSE(perf.found.has_errors()) << perf.said;
  ASSERT_TRUE(perf.config.load.sweep.has_value());
  EXPECT_EQ(perf.config.load.sweep->type, workloads::inference_perf::SweepType::kLinear);
  EXPECT_EQ(perf.config.load.sweep->num_stages, 3);
}

/// A scenario file in a folder of its own.
class ScenarioYaml : public testing::ScenarioTest {};

TEST_F(ScenarioYaml, OneKeyOfALengthLeavesTheOthersAtTheirDefaults) {
  const std::string path = write(
      "s.yaml",
      "name: s\n"
      "workload: {groups: {requests: 10, suffix_len: {type: fixed}, output_len: {type: uniform}}}\n"
      "cluster: {pools: [{name: a, accelerator: H200, model: Qwen3-32B}]}\n");
  Diagnostics d;
  const LoadedScenario loaded = load_scenario(
      {.path = path, .sets = {"workload.groups.prefix_len.mean=2048"}, .variants = {}, .seed = {}},
      d);
  ASSERT_EQ(messages_of(d), "");
  const workloads::GroupLoadConfig& groups =
      *loaded.variants[0].scenario.workload.load.get<workloads::GroupLoadConfig>();
  EXPECT_EQ(groups.prefix_len, workloads::GroupLoadConfig{}.prefix_len);
  EXPECT_EQ(groups.suffix_len, workloads::GroupLoadConfig{}.suffix_len);
  EXPECT_EQ(groups.output_len.max, 1024);
}

TEST_F(ScenarioYaml, VariantsOverrideTheBase) {
  const std::string path = write("s.yaml", base() +
                                               "variants:\n"
                                               "- {name: one, routing: {balancer: random}}\n"
                                               "- name: two\n"
                                               "  cluster: {pools: [{name: a, replicas: 7}]}\n");
  Diagnostics d;
  const LoadedScenario loaded =
      load_scenario({.path = path, .sets = {}, .variants = {}, .seed = 9}, d);
  ASSERT_EQ(messages_of(d), "");
  ASSERT_EQ(loaded.variants.size(), 2U);
  EXPECT_EQ(loaded.variants[0].scenario.variant, "one");
  EXPECT_EQ(loaded.variants[0].scenario.routing.balancer, sim::BalancerKind::kRandom);
  EXPECT_EQ(loaded.variants[0].scenario.cluster.pools[0].replicas, 1);
  EXPECT_EQ(loaded.variants[1].scenario.cluster.pools[0].replicas, 7);
  EXPECT_EQ(loaded.variants[1].scenario.cluster.pools[0].tensor_parallel, 2);
  EXPECT_EQ(loaded.variants[1].scenario.seed, 9U);
  EXPECT_EQ(
      loaded.variants[1].scenario.workload.load.get<workloads::GroupLoadConfig>()->prefix_len.mean,
      100);
}

TEST_F(ScenarioYaml, SetWinsOverVariantsAndReachesIntoFiles) {
  write("load.yaml",
        "load: {interval: 30, stages: [{rate: 1, duration: 2}]}\n"
        "data: {type: shared_prefix, shared_prefix: {num_groups: 3}}\n");
  const std::string path =
      write("s.yaml",
            "name: s\nworkload: {inference_perf: load.yaml}\n"
            "cluster: {pools: [{name: a, accelerator: H100-SXM, model: Qwen3-32B}]}\n"
            "variants:\n- {name: v, cluster: {pools: [{name: a, replicas: 2}]}}\n");
  Diagnostics d;
  const LoadedScenario loaded =
      load_scenario({.path = path,
                     .sets = {"cluster.pools[a].replicas=3",
                              "workload.inference_perf.load.interval=0", "variants[v].name=w"},
                     .variants = {},
                     .seed = {}},
                    d);
  ASSERT_EQ(messages_of(d), "");
  const sim::Scenario& s = loaded.variants.at(0).scenario;
  EXPECT_EQ(s.variant, "w");
  EXPECT_EQ(s.cluster.pools[0].replicas, 3);
  ASSERT_NE(s.workload.load.get<workloads::inference_perf::Workload>(), nullptr);
  EXPECT_EQ(s.workload.load.get<workloads::inference_perf::Workload>()->config->load.interval, 0);
  EXPECT_EQ(s.workload.load.get<workloads::inference_perf::Workload>()
                ->config->data.shared_prefix->num_groups,
            3);
}

// A benchmark template, the chart's values, a ConfigMap, and a template inline.
TEST_F(ScenarioYaml, SetReachesIntoTheDocumentInsideAFile) {
  const std::string document =
      "load: {stages: [{rate: 1, duration: 2}]}, data: {type: shared_prefix}";
  write("template.yaml", "harness: {name: x}\nworkload: {rates: {" + document + "}}\n");
  write("values.yaml", "job: {image: x}\nconfig: {" + document + "}\n");
  write("map.yaml",
        "apiVersion: v1\nkind: ConfigMap\ndata:\n  config.yml: |\n    {" + document + "}\n");
  for (const std::string& file : std::initializer_list<std::string>{
           "template.yaml", "values.yaml", "map.yaml",
           "{harness: {name: x}, workload: {rates: {" + document + "}}}"}) {
    Diagnostics d;
    const LoadedScenario loaded = load_scenario(
        {.path =
             write("s.yaml",
                   "name: s\nworkload: {inference_perf: " + file +
                       "}\ncluster: {pools: [{name: a, accelerator: H200, model: Qwen3-8B}]}\n"),
         .sets = {"workload.inference_perf.load.stages=[{rate: 7, duration: 3}]",
                  "workload.inference_perf.data.shared_prefix.num_groups=5",
                  "workload.inference_perf.load.interval=4"},
         .variants = {},
         .seed = {}},
        d);
    ASSERT_FALSE(d.has_errors()) << file << "\n" << messages_of(d);
    const auto& config = *loaded.variants.at(0)
                              .scenario.workload.load.get<workloads::inference_perf::Workload>()
                              ->config;
    ASSERT_EQ(config.load.stages.size(), 1U) << file;
    EXPECT_EQ(config.load.stages[0].rate, 7) << file;
    EXPECT_EQ(config.load.interval, 4) << file;
    EXPECT_EQ(config.data.shared_prefix->num_groups, 5) << file;
  }
  Diagnostics d;
  const LoadedScenario around = load_scenario(
      {.path = write("s.yaml",
                     "name: s\nworkload: {inference_perf: values.yaml}\n"
                     "cluster: {pools: [{name: a, accelerator: H200, model: Qwen3-8B}]}\n"),
       .sets = {"workload.inference_perf.config.load.interval=9"},
       .variants = {},
       .seed = {}},
      d);
  ASSERT_FALSE(d.has_errors()) << "a path from the file's own root: " << messages_of(d);
  EXPECT_EQ(around.variants.at(0)
                .scenario.workload.load.get<workloads::inference_perf::Workload>()
                ->config->load.interval,
            9);
}

TEST_F(ScenarioYaml, HeadersOfTheLoadGoToTheRouterOrAreSaidToMatterToNothing) {
  const auto prepared = [&](const std::string& routing, std::string& said) {
    Diagnostics d;
    const LoadedScenario loaded = load_scenario(
        {.path = write("s.yaml",
                       "name: s\nworkload:\n  inference_perf:\n"
                       "    api: {headers: {X-Zone: eu, Authorization: Bearer x}}\n"
                       "    load: {stages: [{rate: 7, duration: 3}]}\n"
                       "    data: {type: shared_prefix, shared_prefix: {num_groups: 2}}\n"
                       "cluster: {pools: [{name: a, accelerator: H200, model: Qwen3-8B}]}\n" +
                           routing),
         .sets = {},
         .variants = {},
         .seed = {}},
        d);
    auto plan = prepare(loaded.variants.front(), d);
    said = messages_of(d);
    return plan;
  };
  std::string said;
  auto plan = prepared("", said);
  ASSERT_TRUE(plan) << said;
  EXPECT_NE(said.find("s.yaml:4:20: warning: workload.inference_perf.api.headers: has no effect on "
                      "results: the balancer k8s-service reads no headers (got X-Zone, "
                      "Authorization)"),
            std::string::npos)
      << said;
  plan = prepared(
      "routing:\n  endpoint_picker:\n    apiVersion: llm-d.ai/v1alpha1\n"
      "    kind: EndpointPickerConfig\n    plugins:\n"
      "    - {type: header-label-affinity-scorer, parameters: {headerName: x-zone, labelKey: "
      "zone}}\n"
      "    schedulingProfiles:\n"
      "    - {name: default, plugins: [{pluginRef: header-label-affinity-scorer}]}\n",
      said);
  ASSERT_TRUE(plan) << said;
  ASSERT_EQ(plan->headers.front().size(), 2U);
  EXPECT_EQ(plan->headers[0][0], (std::pair<std::string, std::string>("X-Zone", "eu")));
  EXPECT_NE(said.find("no plugin of the router that is simulated reads Authorization\n"),
            std::string::npos)
      << said;
  EXPECT_EQ(said.find("runs without its input"), std::string::npos) << said;
}

TEST_F(ScenarioYaml, AClassesHeaderTakesThePlaceOfTheLoadsAndIdleKeysAreNamed) {
  Diagnostics d;
  const LoadedScenario loaded = load_scenario(
      {.path = write("s.yaml",
                     "name: s\nworkload:\n  inference_perf:\n"
                     "    api: {headers: {X-Zone: eu}}\n"
                     "    load: {stages: [{rate: 7, duration: 3}]}\n"
                     "    data: {type: shared_prefix, shared_prefix: {num_groups: 2}}\n"
                     "  classes:\n"
                     "  - {name: a, share: 0.5, objective: 3}\n"
                     "  - {name: b, share: 0.5, priority: 1, headers: {x-zone: us}}\n"
                     "cluster: {pools: [{name: a, accelerator: H200, model: Qwen3-8B}]}\n"),
       .sets = {},
       .variants = {},
       .seed = {}},
      d);
  const auto plan = prepare(loaded.variants.front(), d);
  const std::string said = messages_of(d);
  ASSERT_TRUE(plan) << said;
  using Headers = std::vector<std::pair<std::string, std::string>>;
  ASSERT_EQ(plan->headers.size(), 2U);
  EXPECT_EQ(plan->headers[0], (Headers{{"X-Zone", "eu"}}));
  EXPECT_EQ(plan->headers[1], (Headers{{"x-zone", "us"}}));
  for (const char* key : {"s.yaml:8:38: warning: workload.classes[0].objective: has no effect",
                          "s.yaml:9:37: warning: workload.classes[1].priority: has no effect",
                          "workload.classes[1].headers: has no effect on results"})
    EXPECT_NE(said.find(key), std::string::npos) << said;
}

TEST_F(ScenarioYaml, ReportsEveryErrorOnceInFileOrder) {
  write("load.yaml", "load: {stages: [{rate: -1, duration: 2}], worker: 3}\n");
  const std::string file =
      write("s.yaml",
            "name: s\n"
            "workload: {inference_perf: load.yaml}\n"
            "cluster: {pools: [{name: a, accelerator: H100-SXM, model: Qwen3-32B, replicas: -1}]}\n"
            "routing: {endpoint_picker: nowhere.yaml}\n"
            "sead: 4\n"
            "variants:\n- name: one\n- name: one\n- {}\n- name: two\n");
  Diagnostics d;
  load_scenario({.path = file, .sets = {"routing.balancr=random"}, .variants = {}, .seed = {}}, d);
  const std::string s = file + ":";
  const std::string load = path("load.yaml") + ":";
  EXPECT_EQ(messages_of(d),
            s + "3:80: error: cluster.pools[0].replicas: must be at least 0 (got -1)\n" +  //
                s + "4:28: error: routing.endpoint_picker: cannot open " + path("nowhere.yaml") +
                ": No such file or directory\n"
                "  hint: paths inside a file are relative to that file\n" +
                s + "5:1: error: sead: unknown key\n  hint: did you mean seed?\n" +  //
                s + "8:9: error: variants[1].name: is the name of another variant too (got one)\n" +
                s + "9:3: error: variants[2].name: is missing\n  hint: every variant has a name\n" +
                "--set: error: routing.balancr: unknown key\n  hint: did you mean balancer?\n" +
                load +
                "1:24: error: workload.inference_perf.load.stages[0].rate: must be greater than 0 "
                "(got -1)\n" +
                load +
                "1:43: error: workload.inference_perf.load.worker: unknown key\n"
                "  hint: did you mean num_workers?\n");
}

TEST_F(ScenarioYaml, UnknownVariantGetsASuggestion) {
  const std::string path = write("s.yaml", base() + "variants: [{name: precise}]\n");
  Diagnostics d;
  load_scenario({.path = path, .sets = {}, .variants = {"precize"}, .seed = {}}, d);
  EXPECT_EQ(messages_of(d),
            "--variant: error: there is no variant 'precize'\n  hint: did you mean precise?\n");
}

}  // namespace
}  // namespace routesim::tools
