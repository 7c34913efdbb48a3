// routesim schema: what a scenario file or a result may contain, for editors and for people.
#include <array>
#include <string_view>
#include <vector>

#include "policies/config/factory.h"
#include "policies/config/inert_keys.h"
#include "policies/parameters.h"
#include "sim/plan/scenario.h"
#include "tools/cli/cli.h"
#include "tools/ingest/loads/guidellm_yaml.h"
#include "tools/ingest/loads/vllm_bench_yaml.h"
#include "tools/ingest/scenario/schema_json.h"
#include "tools/ingest/servers/catalogue_file.h"
#include "tools/ingest/servers/vllm_serve_flags.h"
#include "tools/ingest/servers/vllm_serve_yaml.h"
#include "tools/ingest/tree/data_table.h"
#include "tools/ingest/tree/description.h"
#include "tools/ingest/tree/ledger.h"
#include "tools/results/result_record.h"
#include "tools/study/plan/plan_goal.h"
#include "tools/study/score/score.h"
#include "tools/study/sweep/sweep_grid.h"
#include "tools/study/tune/tune_space.h"
#include "workloads/distributions.h"
#include "workloads/inference_perf/inference_perf.h"

namespace routesim::tools {

namespace {

/// One kind of file and what its schema says.
struct SchemaKind {
  std::string_view name;
  std::string_view title;
  std::string_view description;
  FieldDescription (*types)();
};

template <class T>
FieldDescription types_of() {
  T value;
  return describe_types([&value](Describer& d) { describe(d, value); });
}

constexpr std::array<SchemaKind, 6> kKinds = {{
    {"scenario", "routesim scenario",
     "A workload, the clusters and the routing policies it is compared on.",
     &types_of<sim::Scenario>},
    {"inference-perf", "inference-perf configuration",
     "A load for kubernetes-sigs/inference-perf, as routesim reads it.",
     &types_of<workloads::inference_perf::Config>},
    {"sweep", "routesim sweep", "A scenario and the values that some of its keys take in turn.",
     &types_of<SweepConfig>},
    {"plan", "routesim plan",
     "A demand, goals, and the fleets that may meet them, with their prices.",
     &types_of<PlanConfig>},
    {"tune", "routesim tune", "A scenario, what may be changed in it, and what is better.",
     &types_of<TuneConfig>},
    {"catalogue", "routesim catalogue",
     "Accelerators, models and fitted curves besides the built-in ones.", &types_of<CatalogueFile>},
}};

std::string kind_names() {
  std::string names;
  for (const SchemaKind& kind : kKinds) names.append(kind.name).append("|");
  return names + "result|keys";
}

/// A table cell; a bar would end it.
std::string bar_safe(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string row(std::string_view key, Fate fate, std::string_view why) {
  return "| `" + bar_safe(key) + "` | " + std::string(fate_name(fate)) + " | " + bar_safe(why) +
         " |\n";
}

std::string heading(std::string_view format, std::string_view source) {
  return "\n## " + std::string(format) + "\n\nFrom " + std::string(source) +
         ".\n\n| Key | Fate | Why |\n|---|---|---|\n";
}

std::string section(const KeyTable& table) {
  std::string out = heading(table.format, table.source);
  for (const KeyRule& rule : table.rules) out += row(rule.pattern, rule.fate, rule.why);
  return out;
}

std::string flags_section(std::string_view format, std::string_view source,
                          sim::EngineKind engine) {
  std::string out = heading(format, source);
  for (const FlagRule& rule : all_flags(engine))
    out += row("--" + std::string(rule.name), rule.fate,
               rule.fate == Fate::kUsed ? rule.key : rule.why);
  return out;
}

/// The rows of all keys below `path`; those of a map that is not simply used share its fate.
void add_rows(const FieldDescription& field, const std::string& path, Fate fate,
              std::string_view why, std::string& out) {
  const FieldDescription* content = &field;
  std::string below = path;
  if (field.kind == FieldDescription::Kind::kList) {
    content = field.element.get();
    below += "[]";
  }
  if (content->members.empty()) {
    out += row(below, fate, fate == Fate::kUsed ? field.doc : why);
    return;
  }
  for (const FieldDescription& member : content->members) {
    const bool is_own = member.fate != Fate::kUsed;
    add_rows(member, below + "." + member.name, is_own ? member.fate : fate,
             is_own ? member.why : why, out);
  }
}

std::string plugins_section() {
  std::string out = heading("parameters of plugins", "policies/plugins, by plugin type");
  const policies::PluginRegistry& registry = policies::standard_registry();
  for (const std::string& name : registry.type_names()) {
    const policies::PluginType* type = registry.find(name);
    if (!type->describe_parameters) continue;
    const FieldDescription types = describe_types(type->describe_parameters);
    if (!types.members.empty()) add_rows(types, name, Fate::kUsed, {}, out);
  }
  return out;
}

/// The rows of a described struct; `path` ends in a dot or is empty.
std::string rows_of(const DescribeFunction& describe_object, const std::string& path) {
  std::string out;
  for (const FieldDescription& member : describe_types(describe_object).members)
    add_rows(member, path + member.name, member.fate, member.why, out);
  return out;
}

std::string score_sections() {
  return heading(kScoreEndpointsFormat, "`routesim score --endpoints`, a list of these") +
         rows_of(describe_score_endpoint, {}) +
         heading(kScoreRequestFormat, "`routesim score --request`") +
         rows_of(describe_score_request, {}) +
         heading(kScoreEventsFormat, "`routesim score --events`, one per line") +
         rows_of(describe_score_line, {}) + rows_of(describe_score_event, "events[].");
}

std::string schema_text(const SchemaKind& kind) {
  const bool is_scenario = kind.name == "scenario";
  return schema_json(
      kind.types(),
      {.id = {},
       .title = std::string(kind.title),
       .description = std::string(kind.description),
       .partial = is_scenario,
       .integer_shorthand = [](std::string_view key) { return workloads::is_length_key(key); },
       .text_shorthand =
           [](std::string_view key) {
             return key == "expect" || key == "vllm_bench" || key == "guidellm";
           },
       .other_name = is_scenario ? &vllm_spelling : nullptr,
       .flags = [](std::string_view key) { return key == "vllm_bench" || key == "guidellm"; },
       .variants_key = is_scenario ? "variants" : ""});
}

std::string reference_text(const SchemaKind& kind) {
  const std::string article = kind.name.front() == 'i' ? "an " : "a ";
  return reference_markdown(kind.types(), "Keys of " + article + std::string(kind.name) +
                                              (kind.name == "scenario" ? "" : " file"));
}

ExitCode run_schema(Options& options, Console& console) {
  const std::string what =
      options.positionals().empty() ? "scenario" : options.positionals().front();
  const bool markdown = options.choice("output") == "markdown";
  if (what == "keys" && !markdown)
    options.fail("the page of keys has no JSON form: add -o markdown");
  if (what == "result" && markdown)
    options.fail("the schema of results has no page: docs/metrics.md defines the numbers");
  if (!options.ok()) return refuse(options, console);
  if (what == "keys") console.print(key_reference());
  if (what == "result") console.print(result_schema());
  for (const SchemaKind& kind : kKinds)
    if (kind.name == what) console.print(markdown ? reference_text(kind) : schema_text(kind));
  return ExitCode::kSuccess;
}

}  // namespace

std::string key_reference() {
  std::string out =
      "# What becomes of every key\n\n"
      "`routesim schema keys -o markdown` writes this page from the tables that the readers use. "
      "`routesim check --keys FILE` says it of the keys of one file.\n\n"
      "- *used*: the result depends on it, as in the real system.\n"
      "- *no effect*: the result would not depend on it in the real system either, or routesim "
      "knows by other means what it says.\n"
      "- *approximated*: used, but more simply than the real system uses it.\n"
      "- *not modelled*: the real system uses it and routesim does not. A warning says so, or an "
      "error where the answer would be another one.\n\n"
      "In a key, `*` stands for any one key, `[]` for any index and `**` for any keys. The most "
      "precise row counts. The pages of [scenarios](scenario.md), "
      "[inference-perf](inference-perf.md), [plans](plan.md), [sweeps](sweep.md), "
      "[tunings](tune.md) and [catalogues](catalogue.md) list the keys of these formats: one that "
      "is not simply used says "
      "so. Of traces, the columns of times, lengths, prefixes, texts and sessions are used, and "
      "others have no effect.\n";
  out +=
      heading(policies::kDocumentFormat,
              "llm-d-router, apix/config and pkg/epp/config, and its predecessors from v0.2.1 on") +
      rows_of(policies::describe_document, {}) + plugins_section() +
      section(policies::inert_keys());
  for (const char* format :
       {"router values", "server files", "autoscaler manifest", "kustomization"})
    out += section(key_table(format));
  out += flags_section(
             kServeFormat,
             "vllm/engine/arg_utils.py and vllm/entrypoints/openai/cli_args.py, v0.9 to v0.26",
             sim::EngineKind::kVllm) +
         flags_section(kLaunchFormat, "sglang/srt/server_args.py, 0.5.9", sim::EngineKind::kSglang);
  for (const std::string_view format :
       {kTransferFormat, std::string_view("kv-transfer-config between servers"),
        std::string_view("LMCache"), std::string_view("Mooncake store"), kBenchFormat,
        kGuidellmFormat, std::string_view("inference-perf report"),
        std::string_view("vllm bench result")})
    out += section(key_table(format));
  return out + score_sections();
}

Command schema_command() {
  return {.name = "schema",
          .summary = "Print the JSON Schema or the reference page of a file, or of results.",
          .positional = {.name = kind_names(), .min = 0, .max = 1},
          .options = {{.name = "output,o",
                       .value_name = "FORMAT",
                       .help = "json (default) or markdown.",
                       .choices = {"json", "markdown"}}},
          .examples = {{"routesim schema scenario", "A JSON Schema for editors."},
                       {"routesim schema plan -o markdown", "Every key of a plan file."}},
          .run = &run_schema};
}

}  // namespace routesim::tools
