// routesim schema: what a scenario file may contain, for editors and for people.
#include <array>
#include <string_view>

#include "base/printable.h"
#include "sim/plan/scenario.h"
#include "tools/cli/cli.h"
#include "tools/cli/key_reference.h"
#include "tools/ingest/catalogue_file.h"
#include "tools/ingest/schema_json.h"
#include "tools/ingest/vllm_serve_yaml.h"
#include "tools/study/plan/plan_config.h"
#include "tools/study/sweep/sweep_config.h"
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
  /// A scenario's required keys may stand in the base or in each variant.
  bool has_variants = false;
};

template <class T>
FieldDescription types_of() {
  T value;
  return describe_types([&value](Describer& d) { describe(d, value); });
}

constexpr std::array<SchemaKind, 5> kKinds = {{
    {"scenario", "routesim scenario",
     "A workload, the clusters and the routing policies it is compared on.",
     &types_of<sim::Scenario>, true},
    {"inference-perf", "inference-perf configuration",
     "A load for kubernetes-sigs/inference-perf, as routesim reads it.",
     &types_of<workloads::inference_perf::Config>},
    {"sweep", "routesim sweep", "A scenario and the values that some of its keys take in turn.",
     &types_of<SweepConfig>},
    {"plan", "routesim plan",
     "A demand, goals, and the fleets that may meet them, with their prices.",
     &types_of<PlanConfig>},
    {"catalogue", "routesim catalogue",
     "Accelerators, models and fitted curves besides the built-in ones.", &types_of<CatalogueFile>},
}};

const SchemaKind* find_kind(const std::string& name) {
  for (const SchemaKind& kind : kKinds)
    if (kind.name == name) return &kind;
  return nullptr;
}

/// `scenario, inference-perf, sweep`.
std::string kind_names(std::string_view separator) {
  std::string names;
  for (const SchemaKind& kind : kKinds)
    names.append(names.empty() ? "" : separator).append(kind.name);
  return names;
}

ExitCode run_schema(const OptionValues& options, Console& console) {
  const std::string what = options.positionals.empty() ? "scenario" : options.positionals.front();
  const std::string format = options.get("output", "json");
  if (what == "keys" && format == "markdown") {
    console.print(key_reference());
    return ExitCode::kSuccess;
  }
  if (what == "keys")
    return usage_error(console, "schema", "the page of keys has no JSON form: add -o markdown");
  const SchemaKind* const kind = find_kind(what);
  if (kind == nullptr)
    return usage_error(
        console, "schema",
        "no schema of " + printable(what) + ", one of " + kind_names(", ") + ", keys");
  if (format != "json" && format != "markdown")
    return usage_error(console, "schema",
                       "--output must be json or markdown (got " + printable(format) + ")");
  if (format == "markdown") {
    const bool article_is_an = what.front() == 'i';
    console.print(reference_markdown(kind->types(), std::string("Keys of ") +
                                                        (article_is_an ? "an " : "a ") + what +
                                                        (what == "scenario" ? "" : " file")));
    return ExitCode::kSuccess;
  }
  console.print(schema_json(
      kind->types(),
      {.id = {},
       .title = std::string(kind->title),
       .description = std::string(kind->description),
       .partial = kind->has_variants,
       .integer_shorthand = [](std::string_view key) { return workloads::is_length_key(key); },
       .text_shorthand =
           [](std::string_view key) { return key == "expect" || key == "vllm_bench"; },
       .other_name = what == "scenario" ? &vllm_spelling : nullptr,
       .flags = [](std::string_view key) { return key == "vllm_bench"; },
       .variants_key = kind->has_variants ? "variants" : ""}));
  return ExitCode::kSuccess;
}

}  // namespace

Command schema_command() {
  return {
      .name = "schema",
      .summary = "Print the JSON Schema or the reference page of a scenario or another file.",
      .positional = {.name = kind_names("|") + "|keys", .min = 0, .max = 1},
      .options =
          {{"output,o", "FORMAT", "json (default) or markdown.", false, {}, {"json", "markdown"}}},
      .run = &run_schema};
}

}  // namespace routesim::tools
