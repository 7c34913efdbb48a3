// routesim check: every diagnostic of a scenario, not the first.
#include "tools/cli/cli.h"
#include "tools/compare/expectation.h"
#include "tools/input/first_requests.h"
#include "tools/input/prepare.h"
#include "tools/input/scenario_yaml.h"
#include "tools/output/json_writer.h"
#include "tools/output/printable.h"

namespace routesim::tools {

namespace {

struct Checked {
  std::string path;
  std::vector<std::string> variants;
  Diagnostics diagnostics;
};

Checked check_scenario(const ScenarioRequest& request) {
  Checked checked{.path = request.path, .variants = {}, .diagnostics = {}};
  Diagnostics found;
  const LoadedScenario loaded = load_scenario(request, found);
  const bool readable = !found.has_errors();
  for (const LoadedVariant& variant : loaded.variants) {
    checked.variants.push_back(variant.scenario.variant);
    // What was not read cannot be judged: its defaults would give misleading messages.
    if (!readable) continue;
    if (const std::optional<sim::RunPlan> plan = prepare(variant, found)) {
      (void)load_expectations(loaded, variant, *plan, !request.variants.empty(), found);
      Diagnostics requests;
      check_first_requests(*plan, requests);
      append(found, variant.provenance.located(requests));
    }
    (void)load_measured(variant, found);
  }
  checked.diagnostics = tidy(found);
  return checked;
}

void write_json(JsonWriter& json, const Checked& checked) {
  json.begin_object().member("scenario", checked.path);
  json.member("ok", !checked.diagnostics.has_errors());
  json.key("variants").begin_array();
  for (const std::string& name : checked.variants) json.value(name);
  json.end_array().key("diagnostics").begin_array();
  for (const Diagnostic& d : checked.diagnostics.items()) {
    json.begin_object().member("severity", d.severity == Severity::kError ? "error" : "warning");
    json.member("file", d.where.file);
    if (d.where.line > 0) json.member("line", d.where.line).member("column", d.where.column);
    json.member("path", d.path).member("message", d.message).member("hint", d.hint);
    json.end_object();
  }
  json.end_array().end_object();
}

ExitCode run_check(const OptionValues& options, Console& console) {
  const std::string format = options.get("output", "text");
  if (format != "text" && format != "json")
    return usage_error(console, "check",
                       "--output must be text or json (got " + printable(format) + ")");
  bool ok = true;
  JsonWriter json;
  json.begin_array();
  for (const std::string& path : options.positionals) {
    const Checked checked = check_scenario(
        {.path = path, .sets = options.all("set"), .variants = options.all("variant"), .seed = {}});
    ok = ok && !checked.diagnostics.has_errors();
    if (format == "json") {
      write_json(json, checked);
      continue;
    }
    console.complain(checked.diagnostics);
    if (!checked.diagnostics.has_errors()) {
      std::string names;
      for (const std::string& name : checked.variants)
        names += (names.empty() ? "" : ", ") + printable(name);
      console.print(path + ": ok (" + names + ")\n");
    }
  }
  if (format == "json") {
    // The data is the answer, so it is printed even when the exit code says "invalid".
    console.print(json.end_array().str() + "\n");
    console.keep_output();
  }
  return ok ? ExitCode::kSuccess : ExitCode::kInvalid;
}

}  // namespace

Command check_command() {
  return {
      .name = "check",
      .summary = "Report everything that is wrong with scenarios, without running them.",
      .positional = {.name = "SCENARIO", .min = 1, .max = 10'000},
      .options = {{"variant", "NAME", "Only this variant.", true},
                  {"set", "KEY=VALUE", "Override a value, as in `run`.", true},
                  {"output,o", "FORMAT", "text (default) or json.", false, {}, {"text", "json"}}},
      .run = &run_check};
}

}  // namespace routesim::tools
