// routesim check: every error of a file, not the first, and what becomes of each of its keys.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "sim/plan/unsupplied_inputs.h"
#include "tools/cli/check_file.h"
#include "tools/cli/cli.h"
#include "tools/ingest/loads/inference_perf_yaml.h"
#include "tools/ingest/routers/endpoint_picker_yaml.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/scenario/run_checks.h"
#include "tools/ingest/servers/catalogue_file.h"
#include "tools/ingest/tree/kubernetes_file.h"
#include "tools/ingest/tree/ledger.h"
#include "tools/results/json_writer.h"
#include "tools/results/text_table.h"
#include "tools/study/compare/expectation.h"
#include "tools/study/plan/plan_space.h"
#include "tools/study/sweep/sweep_plan.h"
#include "tools/study/tune/tune_space.h"

namespace routesim::tools {

namespace {

/// Empty when the document or the user tells the release.
std::string assumed_release(const policies::EndpointPickerConfig& config) {
  const std::string& origin = config.era_origin;
  if (!origin.starts_with("default") && !origin.starts_with("inferred")) return {};
  return std::string(policies::name(config.era)) + " (" + origin + ")";
}

void check_scenario(const ScenarioRequest& request, CheckedFile& file) {
  Diagnostics& found = file.diagnostics;
  const LoadedScenario loaded = load_scenario(request, found);
  const bool readable = !found.has_errors();
  for (const LoadedVariant& variant : loaded.variants) {
    const std::string& name = variant.scenario.variant;
    file.variants.push_back(name);
    file.contents += (file.contents.empty() ? "" : ", ") + printable(name);
    // Defaults stand in for values that were not read, so a judgement would mislead.
    if (!readable) {
      check_variant(variant, found);
      check_conditions(variant, found);
      continue;
    }
    if (const std::optional<sim::RunPlan> plan = prepare(variant, found)) {
      (void)load_expectations(loaded, variant, *plan, !request.variants.empty(), found);
      Diagnostics requests;
      check_first_requests(*plan, requests);
      append(found, variant.provenance.located(requests));
    }
    (void)load_measured(variant, found);
  }
  file.notes = assumed_releases(loaded);
  for (const LoadedVariant& variant : loaded.variants) {
    const sim::RoutingConfig& routing = variant.scenario.routing;
    if (const std::string rules = policies::release_note(routing.balancer, routing.balancing);
        !rules.empty())
      file.notes.push_back("the router of " + printable(variant.scenario.variant) + " decides as " +
                           rules);
  }
}

void check_plan(const ScenarioRequest& request, CheckedFile& file) {
  const PlanSpace space = load_plan({.path = request.path, .sets = request.sets}, file.diagnostics);
  const auto possible = std::count_if(space.families.begin(), space.families.end(),
                                      [](const PlanFamily& f) { return f.impossible.empty(); });
  file.contents = counted(static_cast<std::size_t>(possible), "possible fleet") + " of " +
                  std::to_string(space.families.size());
}

void check_sweep(const ScenarioRequest& request, CheckedFile& file) {
  SweepRequest sweep;
  sweep.path = request.path;
  sweep.sets = request.sets;
  sweep.with_ledger = true;
  const SweepPlan plan = load_sweep(sweep, file.diagnostics);
  file.contents = counted(plan.grid.cells.size(), "cell") + ", " + counted(plan.rows.size(), "row");
}

void check_tune(const ScenarioRequest& request, CheckedFile& file) {
  const TuneSpace space = load_tune({.path = request.path, .sets = request.sets}, file.diagnostics);
  file.contents = counted(space.knobs.size(), "knob");
}

void check_catalogue(const std::string& path, CheckedFile& file) {
  models::Catalogue catalogue = builtin_catalogue();
  add_catalogue_file(path, catalogue, file.diagnostics);
}

void check_inference_perf(const ConfigNode::Ptr& root, CheckedFile& file) {
  const workloads::inference_perf::Config config =
      load_inference_perf(root, {.format = kInferencePerfFormat}, file.diagnostics);
  file.contents = std::string(enum_name(config.data.type)) + " data, " +
                  counted(config.load.stages.size(), "stage");
}

void check_router_document(const ConfigNode::Ptr& root, CheckedFile& file) {
  auto config = load_endpoint_picker(root, {}, file.diagnostics);
  if (!config) return;
  check_plugins(*config, file.diagnostics);
  // Which servers it is for is not known here.
  sim::warn_unsupplied_inputs(*config, {}, file.diagnostics,
                              {.headers = {}, .predictions = true, .tiers = true});
  const auto declared =
      std::count_if(config->plugins.begin(), config->plugins.end(),
                    [](const policies::PluginSpec& plugin) { return !plugin.implicit; });
  file.contents = counted(static_cast<std::size_t>(declared), "plugin") + ", " +
                  counted(config->profiles.size(), "profile");
  if (const std::string release = assumed_release(*config); !release.empty())
    file.notes.push_back("the router is taken for release " + release +
                         "; routing.era of a scenario says otherwise");
}

/// Options that the kind of file has no use for.
void refuse_options(const ScenarioRequest& request, CheckedFile& file) {
  const bool is_set = file.kind == FileKind::kScenario || file.kind == FileKind::kPlan ||
                      file.kind == FileKind::kSweep || file.kind == FileKind::kTune;
  const std::string kind(kind_name(file.kind));
  if (!request.sets.empty() && !is_set)
    file.diagnostics.error({.file = request.path}, {},
                           "a file of kind " + kind + " takes no --set");
  if (!request.variants.empty() && file.kind != FileKind::kScenario)
    file.diagnostics.error({.file = request.path}, {},
                           "a file of kind " + kind + " has no variants for --variant");
}

}  // namespace

CheckedFile check_file(const ScenarioRequest& request) {
  CheckedFile file{.path = request.path};
  Diagnostics unsaid;  // The reader of the kind reports it.
  const ConfigNode::Ptr root =
      request.text ? nullptr : read_manifest_file(request.path, {}, {}, unsaid);
  if (root != nullptr) file.kind = kind_of(*root);
  refuse_options(request, file);
  switch (file.kind) {
    case FileKind::kScenario:
    case FileKind::kResult:
      check_scenario(request, file);
      break;
    case FileKind::kPlan:
      check_plan(request, file);
      break;
    case FileKind::kSweep:
      check_sweep(request, file);
      break;
    case FileKind::kTune:
      check_tune(request, file);
      break;
    case FileKind::kCatalogue:
      check_catalogue(request.path, file);
      break;
    case FileKind::kInferencePerf:
      append(file.diagnostics, unsaid);
      check_inference_perf(root, file);
      break;
    case FileKind::kEndpointPicker:
      append(file.diagnostics, unsaid);
      check_router_document(root, file);
      break;
  }
  file.diagnostics = tidy(file.diagnostics);
  return file;
}

std::vector<std::string> assumed_releases(const LoadedScenario& scenario) {
  std::vector<std::string> notes;
  for (const LoadedVariant& variant : scenario.variants) {
    const bool routes = variant.scenario.routing.balancer == sim::BalancerKind::kEndpointPicker;
    if (!variant.endpoint_picker || !routes) continue;
    const std::string release = assumed_release(*variant.endpoint_picker);
    if (release.empty()) continue;
    notes.push_back("the router of " + printable(variant.scenario.variant) +
                    " is taken for release " + release + "; routing.era says otherwise");
  }
  return notes;
}

namespace {

void write_place(JsonWriter& json, const SourceLocation& where) {
  json.member("file", where.file);
  if (where.line > 0) json.member("line", where.line).member("column", where.column);
}

void write_keys(JsonWriter& json, const Diagnostics& diagnostics) {
  json.key("keys").begin_array();
  for (const KeyUse& use : ledger(diagnostics)) {
    json.begin_object();
    write_place(json, use.where);
    json.member("format", use.format).member("path", use.path).member("fate", fate_name(use.fate));
    json.member("why", use.why).end_object();
  }
  json.end_array();
}

void write_json(JsonWriter& json, const CheckedFile& checked, bool with_keys) {
  // The name of the first member is older than the kinds.
  json.begin_object().member("scenario", checked.path);
  json.member("kind", kind_name(checked.kind));
  json.member("ok", !checked.diagnostics.has_errors());
  json.key("variants").begin_array();
  for (const std::string& name : checked.variants) json.value(name);
  json.end_array().key("diagnostics").begin_array();
  for (const Diagnostic& d : checked.diagnostics.items()) {
    json.begin_object().member("severity", d.severity == Severity::kError ? "error" : "warning");
    write_place(json, d.where);
    json.member("path", d.path).member("message", d.message).member("hint", d.hint);
    json.end_object();
  }
  json.end_array().key("notes").begin_array();
  for (const std::string& note : checked.notes) json.value(note);
  json.end_array();
  if (with_keys) write_keys(json, checked.diagnostics);
  json.end_object();
}

void print_text(const CheckedFile& checked, bool with_keys, Console& console) {
  console.complain(checked.diagnostics);
  const std::vector<KeyUse> keys = ledger(checked.diagnostics);
  if (!checked.diagnostics.has_errors()) {
    const std::string contents = checked.contents.empty() ? "" : " (" + checked.contents + ")";
    console.print(checked.path + ": ok" + contents + ", " + summary_text(keys) + "\n");
  }
  for (const std::string& note : checked.notes)
    console.print(checked.path + ": note: " + note + "\n");
  if (with_keys) console.print(keys_text(keys));
}

ExitCode run_check(Options& options, Console& console) {
  const bool is_json = options.choice("output") == "json";
  if (!options.ok()) return refuse(options, console);
  bool ok = true;
  JsonWriter json;
  json.begin_array();
  const bool with_keys = options.has("keys");
  for (const std::string& path : options.positionals()) {
    const CheckedFile checked =
        check_file({.path = path, .sets = options.all("set"), .variants = options.all("variant")});
    ok = ok && !checked.diagnostics.has_errors();
    if (is_json)
      write_json(json, checked, with_keys);
    else
      print_text(checked, with_keys, console);
  }
  if (is_json) {
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
      .summary = "Report what is wrong with files, and what becomes of their keys; run nothing.",
      .positional = {.name = "FILE", .min = 1, .max = 10'000, .ships = true},
      .options = {variant_option(),
                  set_option(),
                  {"keys", "", "List every key with its place and its fate."},
                  {.name = "output,o",
                   .value_name = "FORMAT",
                   .help = "text (default) or json.",
                   .choices = {"text", "json"}}},
      .examples = {{"routesim check question.yaml",
                    "Everything that is wrong with it, without running it."},
                   {"routesim check question.yaml epp.yaml --keys",
                    "Every key with what becomes of it."}},
      .run = &run_check};
}

}  // namespace routesim::tools
