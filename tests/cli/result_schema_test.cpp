// `routesim schema result` and `routesim run --output json` say the same: no result has a key that
// the schema does not declare, and every declared key is in some result.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "tests/cli/cli_fixture.h"

namespace routesim::tools::testing {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// Holds values against the part of draft-07 that the schema of results uses. A keyword that it
/// does not know is a finding too.
class SchemaReader {
 public:
  explicit SchemaReader(const OrderedJson& schema) : root_(schema) {}

  /// `scope` is the definition that holds `schema`; `path` is the place of `value`.
  void check(const OrderedJson& schema, const OrderedJson& value, const std::string& scope,
             const std::string& path) {
    for (const auto& [keyword, rule] : schema.items()) {
      if (keyword == "$ref") {
        const std::string name =
            rule.get<std::string>().substr(std::string("#/definitions/").size());
        check(root_["definitions"].at(name), value, name, path);
      } else if (keyword == "anyOf") {
        if (rule.size() == 1) {
          check(rule.at(0), value, scope, path);
        } else if (value.is_null() || !rule.at(1).contains("type")) {
          expect(rule.at(1) == OrderedJson{{"type", "null"}}, path, "unknown form of anyOf");
        } else {
          check(rule.at(0), value, scope, path);
        }
      } else if (keyword == "type") {
        const OrderedJson types = rule.is_array() ? rule : OrderedJson::array({rule});
        expect(std::ranges::any_of(types, [&](const OrderedJson& t) { return has_type(value, t); }),
               path, "is no " + rule.dump());
      } else if (keyword == "enum") {
        expect(std::ranges::find(rule, value) != rule.end(), path, "is none of " + rule.dump());
      } else if (keyword == "pattern") {
        expect(std::regex_match(value.get<std::string>(), std::regex(rule.get<std::string>())),
               path, "does not match");
      } else if (keyword == "required") {
        for (const OrderedJson& key : rule)
          expect(value.contains(key.get<std::string>()), path, "lacks " + key.dump());
      } else if (keyword == "items") {
        for (const OrderedJson& item : value) check(rule, item, scope, path + "[]");
      } else {
        const std::set<std::string> known = {"$schema",
                                             "title",
                                             "description",
                                             "definitions",
                                             "properties",
                                             "patternProperties",
                                             "additionalProperties"};
        expect(known.contains(keyword), path, "unknown keyword " + keyword);
      }
    }
    if (value.is_object()) check_members(schema, value, scope, path);
  }

  const std::set<std::string>& findings() const { return findings_; }
  /// `definition.key` of every declared key that was there.
  const std::set<std::string>& seen() const { return seen_; }

 private:
  void expect(bool holds, const std::string& path, const std::string& what) {
    if (!holds) findings_.insert(path + " " + what);
  }

  static bool has_type(const OrderedJson& value, const OrderedJson& type) {
    if (type == "number") return value.is_number();
    if (type == "integer") return value.is_number_integer();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "array") return value.is_array();
    if (type == "object") return value.is_object();
    return type == "null" && value.is_null();
  }

  void check_members(const OrderedJson& schema, const OrderedJson& value, const std::string& scope,
                     const std::string& path) {
    if (!schema.contains("type")) return;
    const OrderedJson none = OrderedJson::object();
    const OrderedJson& properties = schema.contains("properties") ? schema["properties"] : none;
    const OrderedJson& patterns =
        schema.contains("patternProperties") ? schema["patternProperties"] : none;
    for (const auto& [key, member] : value.items()) {
      const std::string at = path + "." + key;
      if (properties.contains(key)) {
        seen_.insert(scope + "." + key);
        check(properties[key], member, scope, at);
        continue;
      }
      const auto pattern = std::find_if(
          patterns.items().begin(), patterns.items().end(),
          [name = key](const auto& p) { return std::regex_match(name, std::regex(p.key())); });
      if (pattern != patterns.items().end()) {
        check(pattern.value(), member, scope, at);
      } else if (schema.contains("additionalProperties")) {
        const OrderedJson& rule = schema["additionalProperties"];
        if (rule.is_object())
          check(rule, member, scope, at);
        else
          expect(rule == true, at, "is not declared");
      }
    }
  }

  const OrderedJson& root_;
  std::set<std::string> findings_;
  std::set<std::string> seen_;
};

std::set<std::string> declared_keys(const OrderedJson& schema) {
  std::set<std::string> keys;
  for (const auto& [key, rule] : schema["properties"].items()) keys.insert("." + key);
  for (const auto& [name, definition] : schema["definitions"].items())
    for (const auto& [key, rule] : definition["properties"].items()) keys.insert(name + "." + key);
  return keys;
}

// Replications with a stopping rule, goals, expectations, KV tiers in host memory and files, and a
// gateway that refuses.
constexpr const char* kTiny = R"(name: tiny
question: Does it run?
workload:
  groups: {requests: 200, rate: 20, groups: 4, prefix_len: 512, suffix_len: 64, output_len: 16}
cluster:
  pools:
  - {name: a, replicas: 2, accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2,
     engine: {preset: 2026-H2, num_gpu_blocks: 120,
              kv_tiers: {cpu_chunks: 110, disk: {root: /kv, read_threads: 1}}}}
routing: {gateway: {max_connections: 4, max_pending_requests: 0}}
expect: [ttft_ms.p99 < 500]
variants:
- {name: rotation, routing: {balancer: round-robin}}
- {name: chance, routing: {balancer: random}}
)";

TEST_F(Cli, TheSchemaOfResultsDeclaresEveryKeyAndNoOther) {
  const OrderedJson schema = OrderedJson::parse(run({"schema", "result"}).out);
  const std::string source = ROUTESIM_SOURCE_DIR;
  const std::vector<std::vector<std::string>> runs = {
      {write("tiny.yaml", kTiny), "--until", "ttft_ms.mean+-20%", "--replications", "20",
       "--goodput", "ttft:1s", "--goodput", "tpot:1s", "--goodput", "itl:1s", "--goodput",
       "ntpot:1s", "--goodput", "request_latency:9s"},
      // Traffic classes.
      {source + "/docs/examples/tenants.yaml", "--series"},
      // Loads side by side.
      {source + "/scenarios/mix-chat-and-batch-2xh100.yaml"},
      // Stages of a fixed concurrency, after requests that the load tool does not report.
      {source + "/scenarios/holdout/vllm-router-llama-3.1-8b-pd-dp8.yaml"},
      // Published numbers, and KV blocks that matter.
      {source + "/scenarios/llm-d-qwen3-32b-16xh100.yaml", "--regret"},
      // A fleet that changes.
      {source + "/scenarios/fleet-rollout-and-crash-8xh100.yaml", "--no-capacity", "--set",
       "cluster.pools[0].gpu_price_per_hour=3"},
      // Drafts.
      {source + "/scenarios/qwen3-32b-2xh200-speculative.yaml", "--no-capacity"},
      {source + "/docs/examples/question.yaml", "--variant", "prefix-aware", "--rate", "1x,2x",
       "--replicas", "2,4"}};
  SchemaReader reader(schema);
  for (std::vector<std::string> arguments : runs) {
    arguments.insert(arguments.begin(), "run");
    arguments.insert(arguments.end(), {"--quiet", "--output", "json"});
    const Result result = run(arguments);
    ASSERT_EQ(result.code, 0) << result.err;
    reader.check(schema, OrderedJson::parse(result.out), "", "");
  }
  EXPECT_EQ(reader.findings(), std::set<std::string>());
  std::set<std::string> never;
  std::ranges::set_difference(declared_keys(schema), reader.seen(),
                              std::inserter(never, never.end()));
  // No run of this test ends early.
  EXPECT_EQ(never, std::set<std::string>({".interrupted"}));
}

// 10 answers of 16 tokens: behind the first token, 15 tokens in five steps of three, or one by one.
TEST_F(Cli, DraftsAreCountedAsVllmCountsThem) {
  const auto counts = [&](const std::string& acceptance) {
    const Result result = run(
        {"run",
         write(
             "drafts.yaml",
             "name: s\n"
             "workload: {groups: {requests: 10, rate: 5, prefix_len: 100, output_len: 16}}\n"
             "cluster:\n"
             "  pools:\n"
             "  - {accelerator: H100-SXM, model: Qwen3-8B, engine: {speculative: {method: ngram,\n"
             "     num_speculative_tokens: 2, acceptance: " +
                 acceptance + "}}}\n"),
         "--quiet", "--no-capacity", "--output", "json"});
    EXPECT_EQ(result.code, 0) << result.err;
    return OrderedJson::parse(result.out)["variants"][0]["replicas"][0]["speculation"].dump();
  };
  EXPECT_EQ(counts("[1, 1]"),
            "{\"mean_acceptance_length\":3,\"num_drafts\":50,\"num_draft_tokens\":100,"
            "\"num_accepted_tokens\":100,\"num_accepted_tokens_per_pos\":[50,50]}");
  EXPECT_EQ(counts("[0, 0]"),
            "{\"mean_acceptance_length\":1,\"num_drafts\":150,\"num_draft_tokens\":300,"
            "\"num_accepted_tokens\":0,\"num_accepted_tokens_per_pos\":[0,0]}");
}

TEST_F(Cli, TheSchemaOfResultsSaysWhatEveryKeyMeans) {
  const OrderedJson schema = OrderedJson::parse(run({"schema", "result"}).out);
  const auto describes = [&](const OrderedJson& part) {
    return part.contains("description") || part.contains("$ref");
  };
  for (const auto& [name, definition] : schema["definitions"].items()) {
    EXPECT_TRUE(describes(definition)) << name;
    for (const auto& [key, rule] : definition["properties"].items())
      EXPECT_TRUE(describes(rule)) << name << "." << key;
  }
  for (const auto& [key, rule] : schema["properties"].items()) EXPECT_TRUE(describes(rule)) << key;
  EXPECT_EQ(run({"schema", "result", "-o", "markdown"}).code, 2) << "it has no page";
}

// A descriptor lies in no folder, so what it names is looked for where the command runs.
TEST_F(Cli, PathsInAnOpenFileAreRelativeToTheWorkingFolder) {
  const fs::path examples = fs::path(ROUTESIM_SOURCE_DIR) / "docs" / "examples";
  const std::string script = "cd '" + examples.string() +
                             "' && '" ROUTESIM_BINARY
                             "' run /dev/stdin -q -o csv < question.yaml > '" +
                             (folder_ / "from_stdin").string() + "'";
  ASSERT_EQ(std::system(script.c_str()), 0);
  EXPECT_EQ(slurp((folder_ / "from_stdin").string()),
            run({"run", (examples / "question.yaml").string(), "-q", "-o", "csv"}).out);
}

}  // namespace
}  // namespace routesim::tools::testing
