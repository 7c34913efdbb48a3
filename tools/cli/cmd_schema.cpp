// routesim schema: what a scenario file may contain, for editors and for people.
#include "sim/scenario.h"
#include "tools/cli/cli.h"
#include "tools/input/schema_json.h"
#include "tools/output/printable.h"
#include "workloads/distributions.h"
#include "workloads/inference_perf.h"

namespace routesim::tools {

namespace {

FieldDescription scenario_types() {
  sim::Scenario scenario;
  return describe_types([&scenario](Describer& d) { describe(d, scenario); });
}

FieldDescription inference_perf_types() {
  workloads::inference_perf::Config config;
  return describe_types([&config](Describer& d) { describe(d, config); });
}

ExitCode run_schema(const OptionValues& options, Console& console) {
  const std::string what = options.positionals.empty() ? "scenario" : options.positionals.front();
  const std::string format = options.get("output", "json");
  if (what != "scenario" && what != "inference-perf")
    return usage_error(console, "schema",
                       "no schema of " + printable(what) + ", one of scenario, inference-perf");
  if (format != "json" && format != "markdown")
    return usage_error(console, "schema",
                       "--output must be json or markdown (got " + printable(format) + ")");
  const bool is_scenario = what == "scenario";
  const FieldDescription types = is_scenario ? scenario_types() : inference_perf_types();
  if (format == "markdown") {
    console.print(reference_markdown(
        types, is_scenario ? "Keys of a scenario" : "Keys of an inference-perf file"));
    return ExitCode::kSuccess;
  }
  SchemaOptions schema{
      .id = {},
      .title = is_scenario ? "routesim scenario" : "inference-perf configuration",
      .description = is_scenario
                         ? "A workload, the clusters and the routing policies it is compared on."
                         : "A load for kubernetes-sigs/inference-perf, as routesim reads it.",
      // A scenario's required keys may stand in the base or in each variant.
      .partial = is_scenario,
      .integer_shorthand = [](std::string_view key) { return workloads::is_length_key(key); },
      .variants_key = is_scenario ? "variants" : ""};
  console.print(schema_json(types, schema));
  return ExitCode::kSuccess;
}

}  // namespace

Command schema_command() {
  return {.name = "schema",
          .summary = "Print the JSON Schema or the reference page of a scenario file.",
          .positional = {.name = "scenario|inference-perf", .min = 0, .max = 1},
          .options = {{"output,o", "FORMAT", "json (default) or markdown.", false}},
          .run = &run_schema};
}

}  // namespace routesim::tools
