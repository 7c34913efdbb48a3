// What becomes of the keys of files: every one has a fate, and a reason where it does not count.
#include "tools/ingest/tree/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>

#include "policies/config/factory.h"
#include "policies/config/inert_keys.h"
#include "policies/parameters.h"
#include "tests/base/messages.h"
#include "tests/tools/scenario_fixture.h"
#include "tools/cli/check_file.h"
#include "tools/cli/cli.h"
#include "tools/ingest/loads/vllm_bench_yaml.h"
#include "tools/ingest/servers/kustomize.h"
#include "tools/ingest/servers/vllm_serve_flags.h"
#include "tools/ingest/traces/measured_file.h"
#include "tools/ingest/tree/data_table.h"
#include "tools/ingest/tree/description.h"
#include "tools/ingest/tree/kubernetes_file.h"
#include "tools/study/score/score.h"

namespace routesim::tools {
namespace {

using Place = std::tuple<std::string, int, int>;

Place place_of(const SourceLocation& where) { return {where.file, where.line, where.column}; }

/// Looks for the keys of a file that the ledger does not know.
class Missing {
 public:
  explicit Missing(const std::vector<KeyUse>& keys) {
    for (const KeyUse& use : keys) known_.insert(place_of(use.where));
  }

  std::string in(const ConfigNode& node) {
    visit(node, "", node.where());
    return missing_;
  }

 private:
  void visit(const ConfigNode& node, const std::string& path, const SourceLocation& key) {
    if (node.block_first_line() > 0 && holds_known(node)) return;
    const bool is_leaf =
        node.members().empty() && std::none_of(node.items().begin(), node.items().end(),
                                               [](const auto& i) { return !i->is_scalar(); });
    if (is_leaf && !path.empty() && !is_known(node, key))
      missing_ += std::to_string(key.line) + ": " + path + "\n";
    if (is_leaf || is_known(node, key)) return;
    for (const ConfigNode::Member& member : node.members())
      visit(*member.value, path + "." + member.key, member.key_where);
    for (const ConfigNode::Ptr& item : node.items()) visit(*item, path + "[]", item->where());
  }

  bool is_known(const ConfigNode& node, const SourceLocation& key) const {
    return known_.contains(place_of(key)) ||
           (node.members().empty() && known_.contains(place_of(node.where())));
  }

  /// Whether keys inside the text of a block are known: a document is embedded there.
  bool holds_known(const ConfigNode& node) const {
    const auto lines = std::count(node.text().begin(), node.text().end(), '\n');
    const auto first = known_.lower_bound({node.where().file, node.block_first_line(), 0});
    return first != known_.end() && std::get<0>(*first) == node.where().file &&
           std::get<1>(*first) <= node.block_first_line() + lines;
  }

  std::set<Place> known_;
  std::string missing_;
};

std::vector<std::string> published_files() {
  std::vector<std::string> files;
  const std::string root = ROUTESIM_SOURCE_DIR;
  for (const char* folder : {"/scenarios", "/scenarios/inputs", "/scenarios/holdout",
                             "/scenarios/holdout/inputs", "/scenarios/plans", "/docs/examples"})
    for (const auto& entry : std::filesystem::directory_iterator(root + folder)) {
      const std::string path = entry.path().string();
      if (path.ends_with(".yaml") && !path.ends_with("deployment.yaml")) files.push_back(path);
    }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(Ledger, EveryKeyOfEveryPublishedFileHasAFate) {
  int keys = 0;
  for (const std::string& path : published_files()) {
    SCOPED_TRACE(path);
    const CheckedFile checked = check_file({.path = path, .sets = {}, .variants = {}, .seed = {}});
    EXPECT_FALSE(checked.diagnostics.has_errors()) << messages_of(checked.diagnostics);
    const std::vector<KeyUse> uses = ledger(checked.diagnostics);
    Diagnostics unsaid;
    const ConfigNode::Ptr root = read_manifest_file(path, {}, {}, unsaid);
    ASSERT_NE(root, nullptr);
    std::string missing = Missing(uses).in(*root);
    // The splitter reads the names of variants before any reader.
    for (std::size_t at = 0; (at = missing.find(": .variants[].name\n")) != std::string::npos;) {
      const std::size_t line = missing.rfind('\n', at) + 1;
      missing.erase(line, at + std::string(": .variants[].name\n").size() - line);
    }
    EXPECT_EQ(missing, "");
    keys += static_cast<int>(uses.size());
  }
  EXPECT_GT(keys, 1000) << "the files are there";
}

TEST(Ledger, WhatDoesNotCountHasAReasonAndWhatIsLeftOutIsTold) {
  for (const std::string& path : published_files()) {
    SCOPED_TRACE(path);
    const CheckedFile checked = check_file({.path = path, .sets = {}, .variants = {}, .seed = {}});
    for (const KeyUse& use : checked.diagnostics.keys()) {
      EXPECT_EQ(use.fate == Fate::kUsed, use.why.empty()) << use.path;
      EXPECT_FALSE(use.format.empty()) << use.path;
      if (use.fate != Fate::kNotModelled) continue;
      const auto& items = checked.diagnostics.items();
      EXPECT_TRUE(std::any_of(items.begin(), items.end(), [&](const Diagnostic& d) {
        return d.where.line == use.where.line || d.path.ends_with(use.path);
      })) << use.path;
    }
  }
}

TEST(Ledger, TablesGiveReasonsAndNameAKeyOnce) {
  for (const KeyTable* table :
       {&policies::inert_keys(), &key_table("router values"), &key_table("server files"),
        &key_table("autoscaler manifest"), &key_table("kustomization"),
        &key_table("vllm bench serve"), &key_table("inference-perf report"),
        &key_table("vllm bench result")}) {
    SCOPED_TRACE(std::string(table->format));
    EXPECT_FALSE(table->source.empty());
    std::set<std::string_view> patterns;
    for (const KeyRule& rule : table->rules) {
      EXPECT_EQ(rule.fate == Fate::kUsed, rule.why.empty()) << rule.pattern;
      EXPECT_TRUE(patterns.insert(rule.pattern).second) << rule.pattern;
    }
  }
  for (const FlagRule& flag : all_flags())
    if (flag.fate != Fate::kUsed) {
      EXPECT_FALSE(flag.why.empty()) << flag.name;
    }
}

TEST(Ledger, EveryInertPluginTypeHasItsParametersInTheTable) {
  // These have none, by their source at the release that the table names.
  const std::set<std::string_view> kNone = {"core-metrics-extractor",
                                            "models-data-extractor",
                                            "dcgm-extractor",
                                            "endpoint-notification-source",
                                            "openai-parser",
                                            "anthropic-parser",
                                            "vllmhttp-parser",
                                            "vllmgrpc-parser",
                                            "sglanghttp-parser",
                                            "vertexai-parser",
                                            "passthrough-parser",
                                            "disagg-headers-handler",
                                            "prefill-header-handler",
                                            "encoder-header-handler",
                                            "sheddable-eviction-filter",
                                            "priority-then-time-eviction-order-policy"};
  for (const policies::PluginType& type : policies::standard_registry().types()) {
    if (type.support != policies::PluginType::Support::kInert || kNone.contains(type.type))
      continue;
    const std::string prefix = std::string(type.type) + ".";
    const auto& rules = policies::inert_keys().rules;
    EXPECT_TRUE(std::any_of(rules.begin(), rules.end(), [&](const KeyRule& rule) {
      return rule.pattern.starts_with(prefix);
    })) << type.type;
  }
}

TEST(Ledger, CountsAKeyOnceByTheFateThatSaysMost) {
  Diagnostics d;
  const auto add = [&](int line, Fate fate, const std::string& path) {
    d.key({.where = {.file = "f", .line = line, .column = 1},
           .format = "x",
           .path = path,
           .fate = fate,
           .why = {}});
  };
  add(2, Fate::kNoEffect, "b");
  add(1, Fate::kUsed, "a");
  add(2, Fate::kNotModelled, "b");
  add(2, Fate::kApproximated, "b");
  add(3, Fate::kNoEffect, "c");
  add(3, Fate::kUsed, "c");
  add(0, Fate::kUsed, "set.one");
  add(0, Fate::kUsed, "set.two");
  const std::vector<KeyUse> keys = ledger(d);
  EXPECT_EQ(summary_text(keys), "4 keys used, 1 not modelled");
  EXPECT_EQ(keys_text(keys),
            "f: used: set.one\nf: used: set.two\nf:1:1: used: a\nf:2:1: not modelled: b\n"
            "f:3:1: used: c\n");
  EXPECT_EQ(summary_text(std::span(keys).first(1)), "1 key used");
}

class LedgerFiles : public testing::ScenarioTest {
 protected:
  CheckedFile check(const std::string& name, const std::string& text) const {
    return check_file({.path = write(name, text), .sets = {}, .variants = {}, .seed = {}});
  }
  static std::string fates(const CheckedFile& file, std::string_view format) {
    std::string text;
    for (const KeyUse& use : ledger(file.diagnostics))
      if (use.format == format) text += use.path + ": " + std::string(fate_name(use.fate)) + "\n";
    return text;
  }
};

TEST_F(LedgerFiles, FlagsOfServersHaveFates) {
  const CheckedFile file = check("s.yaml",
                                 "name: s\n"
                                 "workload: {groups: {requests: 10, rate: 5, prefix_len: 100}}\n"
                                 "cluster:\n"
                                 "  pools:\n"
                                 "  - accelerator: H100-SXM\n"
                                 "    tensor_parallel: 2\n"
                                 "    vllm_serve: vllm serve Qwen/Qwen3-32B --port 8000 "
                                 "--max-num-seqs 64 -tp 4 --attention-backend FLASH_ATTN "
                                 "--enable-dbo --stream-interval 1\n");
  EXPECT_EQ(messages_of(file.diagnostics).find("error"), std::string::npos);
  EXPECT_EQ(fates(file, "vllm serve"),
            "cluster.pools[0].vllm_serve.attention-backend: approximated\n"
            "cluster.pools[0].vllm_serve.enable-dbo: not modelled\n"
            "cluster.pools[0].vllm_serve.max-num-seqs: used\n"
            "cluster.pools[0].vllm_serve.model: used\n"
            "cluster.pools[0].vllm_serve.port: no effect\n"
            "cluster.pools[0].vllm_serve.stream-interval: no effect\n"
            "cluster.pools[0].vllm_serve.tensor-parallel-size: no effect\n");
}

TEST_F(LedgerFiles, FlagsOfTheLoadToolHaveFates) {
  const CheckedFile file = check("s.yaml",
                                 "name: s\n"
                                 "workload:\n"
                                 "  vllm_bench:\n"
                                 "    num-prompts: 10\n"
                                 "    request-rate: 2\n"
                                 "    random-input-len: 100\n"
                                 "    save-result: true\n"
                                 "    probe-request-rate: 1\n"
                                 "cluster: {pools: [{accelerator: H100-SXM, model: Qwen3-32B, "
                                 "tensor_parallel: 2}]}\n");
  EXPECT_EQ(fates(file, "vllm bench serve"),
            "workload.vllm_bench.num-prompts: used\n"
            "workload.vllm_bench.request-rate: used\n"
            "workload.vllm_bench.random-input-len: used\n"
            "workload.vllm_bench.save-result: no effect\n"
            "workload.vllm_bench.probe-request-rate: not modelled\n");
}

TEST_F(LedgerFiles, KeysThatAreLeftOutCountOnlyWhereTheySwitchSomethingOn) {
  const auto check_load = [&](const std::string& load) {
    return check("s.yaml",
                 "name: s\nworkload:\n  inference_perf:\n"
                 "    load: {stages: [{rate: 1, duration: 2}], " +
                     load +
                     "}\n"
                     "    data: {type: shared_prefix, shared_prefix: {num_groups: 2}}\n"
                     "cluster: {pools: [{accelerator: H100-SXM, model: Qwen3-32B, "
                     "tensor_parallel: 2}]}\n");
  };
  const CheckedFile off =
      check_load("request_retries: 0, circuit_breakers: [], worker_max_tcp_connections: 100");
  EXPECT_EQ(messages_of(off.diagnostics), "");
  EXPECT_EQ(summary_text(ledger(off.diagnostics)), "8 keys used, 2 without effect, 1 approximated");
  const CheckedFile on = check_load("request_retries: 1, worker_max_tcp_connections: 99");
  const std::string said = messages_of(on.diagnostics);
  EXPECT_NE(said.find("request_retries: are not simulated: a request that loses its server fails"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("worker_max_tcp_connections: is below worker_max_concurrency"),
            std::string::npos)
      << said;
  EXPECT_EQ(summary_text(ledger(on.diagnostics)), "8 keys used, 1 approximated, 1 not modelled");
}

TEST_F(LedgerFiles, ColumnsOfTracesHaveFates) {
  write("t.csv",
        "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log "
        "Type\n1,2,3,ChatGPT,10,20,30,API log\n");
  const CheckedFile file = check("s.yaml",
                                 "name: s\nworkload: {trace: {file: t.csv}}\n"
                                 "cluster: {pools: [{accelerator: H100-SXM, model: Qwen3-32B, "
                                 "tensor_parallel: 2}]}\n");
  EXPECT_EQ(
      fates(file, "trace"),
      "workload.trace.file.Timestamp: used\nworkload.trace.file.Session ID: used\n"
      "workload.trace.file.Elapsed time: no effect\nworkload.trace.file.Model: no effect\n"
      "workload.trace.file.Request tokens: used\nworkload.trace.file.Response tokens: used\n"
      "workload.trace.file.Total tokens: no effect\nworkload.trace.file.Log Type: no effect\n");
}

// A text search finds "Time" in "Elapsed Time", and a key in the value before it.
TEST_F(LedgerFiles, ColumnsOfTracesStandWhereTheyStand) {
  const auto places = [&](const std::string& name, const std::string& text) {
    write(name, text);
    const CheckedFile file = check("s.yaml", "name: s\nworkload: {trace: {file: " + name +
                                                 "}}\n"
                                                 "cluster: {pools: [{accelerator: H100-SXM, model: "
                                                 "Qwen3-32B, tensor_parallel: 2}]}\n");
    std::string out;
    for (const KeyUse& use : ledger(file.diagnostics))
      if (use.format == "trace")
        out +=
            use.path.substr(use.path.rfind('.') + 1) + "@" + std::to_string(use.where.column) + " ";
    return out;
  };
  EXPECT_EQ(places("t.csv",
                   "Session IDs,\"Session ID\",Timestamp,Elapsed time,Request tokens,Response "
                   "tokens\n1,1,2,3,10,20\n"),
            "Session IDs@1 Session ID@13 Timestamp@26 Elapsed time@36 Request tokens@49 Response "
            "tokens@64 ");
  EXPECT_EQ(places("t.jsonl",
                   "{ \"note\": \"timestamp, input_length\" , \"timestamp\":0,\"input_length\": "
                   "10,\"output_length\":5,\"hash_ids\":[1]}\n"),
            "note@3 timestamp@39 input_length@53 output_length@72 hash_ids@90 ");
}

TEST_F(LedgerFiles, EveryKindOfFileIsChecked) {
  const std::string root = ROUTESIM_SOURCE_DIR;
  const auto kind = [&](const std::string& path) {
    const CheckedFile file =
        check_file({.path = root + path, .sets = {}, .variants = {}, .seed = {}});
    EXPECT_FALSE(file.diagnostics.has_errors()) << messages_of(file.diagnostics);
    return std::string(kind_name(file.kind)) + ": " + file.contents;
  };
  EXPECT_EQ(kind("/docs/examples/question.yaml"), "scenario: service, prefix-aware");
  EXPECT_EQ(kind("/docs/examples/plan.yaml"), "plan: 2 possible fleets of 2");
  EXPECT_EQ(kind("/docs/examples/sweep.yaml"), "sweep: 3 cells, 6 rows");
  EXPECT_EQ(kind("/docs/examples/epp.yaml"), "EndpointPickerConfig: 4 plugins, 1 profile");
  EXPECT_EQ(kind("/docs/examples/inference-perf.yaml"),
            "inference-perf: shared_prefix data, 3 stages");
  EXPECT_EQ(kind("/scenarios/inputs/heimdall-random.values.yaml"),
            "EndpointPickerConfig: 4 plugins, 2 profiles");
}

TEST_F(LedgerFiles, OfASweepHoldsTheKeysOfItsScenario) {
  write("e.yaml",
        "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins: [{type: "
        "queue-scorer}]\n");
  write("base.yaml",
        "name: s\n"
        "workload: {groups: {requests: 10, rate: 5}}\n"
        "cluster:\n"
        "  pools:\n"
        "  - {accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2}\n"
        "variants:\n"
        "- name: a\n"
        "- {name: b, routing: {endpoint_picker: e.yaml}}\n"
        "- {name: c, routing: {balancer: round-robin}}\n");
  const CheckedFile file = check("w.yaml",
                                 "name: w\n"
                                 "scenario: base.yaml\n"
                                 "variants: [a, b]\n"
                                 "axes:\n"
                                 "- {path: workload.groups.rate, values: [1, 2]}\n");
  EXPECT_FALSE(file.diagnostics.has_errors()) << messages_of(file.diagnostics);
  const std::vector<KeyUse> keys = ledger(file.diagnostics);
  std::string text = keys_text(keys);
  const std::string folder = folder_.string() + "/";
  for (std::size_t p = text.find(folder); p != std::string::npos; p = text.find(folder))
    text.erase(p, folder.size());
  EXPECT_EQ(text,
            "base.yaml:1:1: used: name\n"
            "base.yaml:2:21: used: workload.groups.requests\n"
            "base.yaml:2:35: used: workload.groups.rate\n"
            "base.yaml:5:6: used: cluster.pools[0].accelerator\n"
            "base.yaml:5:29: used: cluster.pools[0].model\n"
            "base.yaml:5:47: used: cluster.pools[0].tensor_parallel\n"
            "base.yaml:8:23: used: routing.endpoint_picker\n"
            "base.yaml:9:23: no effect: routing.balancer (every cell replaces it, or the sweep "
            "leaves out its variant)\n"
            "e.yaml:1:1: used: routing.endpoint_picker.apiVersion\n"
            "e.yaml:2:1: used: routing.endpoint_picker.kind\n"
            "e.yaml:3:12: used: routing.endpoint_picker.plugins[0].type\n"
            "w.yaml:1:1: used: name\n"
            "w.yaml:2:1: used: scenario\n"
            "w.yaml:3:1: used: variants\n"
            "w.yaml:5:4: used: axes[0].path\n"
            "w.yaml:5:32: used: axes[0].values\n");
  EXPECT_EQ(summary_text(keys), "15 keys used, 1 without effect");
}

TEST_F(LedgerFiles, CataloguesAreCheckedEntryByEntry) {
  const CheckedFile file = check("c.yaml", "accelerators: [{name: X}]\nmodels: 5\n");
  EXPECT_EQ(file.kind, FileKind::kCatalogue);
  EXPECT_NE(messages_of(file.diagnostics).find("c.yaml:2:9: error: models"), std::string::npos)
      << messages_of(file.diagnostics);
}

TEST_F(LedgerFiles, OptionsOfAnotherKindAreRefused) {
  const std::string path = write("e.yaml",
                                 "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n"
                                 "plugins: [{type: queue-scorer}]\n");
  const CheckedFile file =
      check_file({.path = path, .sets = {"a=1"}, .variants = {"x"}, .seed = {}});
  const std::string said = messages_of(file.diagnostics);
  EXPECT_NE(said.find("a file of kind EndpointPickerConfig takes no --set"), std::string::npos);
  EXPECT_NE(said.find("has no variants for --variant"), std::string::npos);
}

TEST_F(LedgerFiles, UndatedRouterDocumentsAreDatedAloud) {
  write("e.yaml",
        "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins: [{type: "
        "queue-scorer}]\n");
  const std::string scenario = base() + "routing: {endpoint_picker: e.yaml";
  EXPECT_EQ(check("s.yaml", scenario + "}\n").notes,
            std::vector<std::string>{"the router of default is taken for release 2026-08 (default: "
                                     "the head of August 2026; later ones differ in pulls and "
                                     "tiers); routing.era says otherwise"});
  EXPECT_EQ(check("s.yaml", scenario + ", era: v0.7.0}\n").notes, std::vector<std::string>{});
  EXPECT_EQ(check("s.yaml", scenario + ", balancer: least-load}\n").notes,
            std::vector<std::string>{});
}

TEST_F(LedgerFiles, ParametersOfPluginsWithoutAPartAreChecked) {
  const std::string head = "kind: EndpointPickerConfig\nplugins:\n- type: queue-scorer\n";
  const std::string plugins =
      "- type: token-producer\n  parameters: {modelNam: m, vllm: {url: u}}\n"
      "- type: file-discovery\n  parameters: {path: p, watchfile: true}\n";
  const CheckedFile strict = check("e.yaml", "apiVersion: llm-d.ai/v1alpha1\n" + head + plugins);
  const std::string said = messages_of(strict.diagnostics);
  EXPECT_NE(said.find("e.yaml:6:16: error: plugins[1].parameters.modelNam: unknown key"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("did you mean modelName?"), std::string::npos) << said;
  EXPECT_NE(said.find("plugins[2].parameters.watchfile: unknown key"), std::string::npos) << said;
  const CheckedFile older =
      check("e.yaml", "apiVersion: inference.networking.x-k8s.io/v1alpha1\n" + head +
                          "- type: dcgm-data-source\n  parameters: {ports: 1}\n");
  EXPECT_FALSE(older.diagnostics.has_errors()) << messages_of(older.diagnostics);
  EXPECT_NE(messages_of(older.diagnostics).find("unknown key, ignored by this release"),
            std::string::npos);
}

TEST_F(LedgerFiles, ATopicFilterCountsWhereItLeavesEnginesOut) {
  const auto fate_of = [&](const std::string& filter) {
    const CheckedFile file =
        check("e.yaml",
              "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n"
              "- type: precise-prefix-cache-scorer\n  parameters:\n    kvEventsConfig:\n"
              "      topicFilter: " +
                  filter + "\n");
    const std::string text = fates(file, policies::kDocumentFormat);
    const std::size_t at = text.find("topicFilter: ") + 13;
    return text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_EQ(fate_of("kv@"), "no effect");
  EXPECT_EQ(fate_of("events"), "used");
  EXPECT_EQ(fate_of("kv@10.0.0.1"), "approximated");
}

TEST_F(LedgerFiles, VariablesThatNobodyFilledInAreTold) {
  const CheckedFile file =
      check("e.yaml",
            "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n"
            "- type: token-producer\n  parameters: {modelName: \"${MODEL}\"}\n"
            "- type: load-aware-scorer\n  parameters: {threshold: \"${THRESHOLD}\"}\n");
  const std::string said = messages_of(file.diagnostics);
  EXPECT_NE(said.find("e.yaml:5:27: warning: the variable ${MODEL} has not been filled in"),
            std::string::npos)
      << said;
}

TEST_F(LedgerFiles, BenchmarkScenariosHoldTheirRouter) {
  const std::string document =
      "          pluginsConfigFile: a.yaml\n"
      "          pluginsCustomConfig:\n"
      "            a.yaml: |\n"
      "              apiVersion: llm-d.ai/v1alpha1\n"
      "              kind: EndpointPickerConfig\n"
      "              plugins: [{type: queue-scorer}]\n";
  const auto contents = [&](const std::string& text) {
    const CheckedFile file = check("b.yaml", text);
    return messages_of(file.diagnostics) + file.contents;
  };
  const std::string router = contents(
      "scenario:\n  - name: x\n    model: {name: m}\n    router:\n"
      "        epp:\n" +
      document);
  EXPECT_EQ(router, "1 plugin, 1 profile");
  EXPECT_EQ(contents("scenario:\n  - name: x\n    modelservice:\n      router:\n        epp:\n" +
                     document),
            router);
  EXPECT_EQ(contents("scenario:\n  - name: x\n  - name: y\nshared:\n    modelservice:\n"
                     "      router:\n        epp:\n" +
                     document),
            router);
  const std::string twice =
      contents("scenario:\n  - name: x\n    router:\n        epp:\n" + document +
               "  - name: y\n    router:\n        epp:\n" + document);
  EXPECT_NE(twice.find("is the router of a second stack in the file"), std::string::npos) << twice;
}

/// A value of the described type, as JSON. Maps with keys of the user's choice have one.
std::string sample(const FieldDescription& field) {
  using Kind = FieldDescription::Kind;
  switch (field.kind) {
    case Kind::kBool:
      return "true";
    case Kind::kInteger:
    case Kind::kReal:
    case Kind::kDuration:
      return "1";
    case Kind::kText:
      return "\"a\"";
    case Kind::kChoice:
      return "\"" + field.choices.front() + "\"";
    case Kind::kList:
      return "[" + sample(*field.element) + "]";
    case Kind::kDocument:
      return field.name == "headers" || field.name == "labels" || field.name == "attributes"
                 ? "{\"any\": 1}"
                 : "[1]";
    case Kind::kObject:
      break;
  }
  std::string out;
  for (const FieldDescription& member : field.members)
    out += (out.empty() ? "\"" : ", \"") + member.name + "\": " + sample(member);
  return "{" + out + "}";
}

// The samples have every key, so some contradict each other: what is said of them is not the point.
TEST_F(LedgerFiles, EveryKeyOfAScoreHasAFate) {
  const auto check_keys = [](const std::string& path, std::string_view format,
                             const Diagnostics& found) {
    Diagnostics unsaid;
    const ConfigNode::Ptr root = read_manifest_file(path, {}, {}, unsaid);
    ASSERT_NE(root, nullptr) << messages_of(unsaid);
    const std::vector<KeyUse> uses = ledger(found);
    EXPECT_GT(uses.size(), 10U);
    EXPECT_EQ(Missing(uses).in(*root), "");
    for (const KeyUse& use : uses) {
      EXPECT_EQ(use.format, format) << use.path;
      EXPECT_EQ(use.fate == Fate::kUsed, use.why.empty()) << use.path;
    }
  };
  const std::string endpoints =
      write("e.json", "[" + sample(describe_types(describe_score_endpoint)) + "]");
  Diagnostics of_endpoints;
  (void)read_score_pool(endpoints, SimTime::zero(), of_endpoints);
  check_keys(endpoints, kScoreEndpointsFormat, of_endpoints);

  const std::string request = write("r.json", sample(describe_types(describe_score_request)));
  Diagnostics of_request;
  (void)read_score_request(request, nullptr, of_request);
  check_keys(request, kScoreRequestFormat, of_request);

  std::string line = sample(describe_types(describe_score_line));
  const std::size_t at = line.find("\"events\": [1]");
  ASSERT_NE(at, std::string::npos) << line;
  line.replace(at, 13, "\"events\": [" + sample(describe_types(describe_score_event)) + "]");
  const std::string events = write("f.jsonl", line);
  Diagnostics of_events;
  (void)read_kv_messages(events, nullptr, of_events);
  check_keys(events, kScoreEventsFormat, of_events);
}

TEST(KeyReference, IsMadeFromTheTables) {
  const std::string page = key_reference();
  for (const char* row :
       {"| `requestHandler.propagatePriority` | not modelled | engines serve first come, first "
        "served |",
        "| `token-producer.modelName` | no effect | requests come with their tokens |",
        "| `--max-num-seqs` | used | engine.max_num_seqs |",
        "| `probe_request_rate` | not modelled | probe requests are not simulated |",
        "| `load-aware-scorer.threshold` | used |", "| `metrics.kv_usage` | used |",
        "| `text` | approximated | four bytes are taken for one token",
        "| `events[].lora_id` | no effect | the router goes by its name |"})
    EXPECT_NE(page.find(row), std::string::npos) << row;
}

}  // namespace
}  // namespace routesim::tools
