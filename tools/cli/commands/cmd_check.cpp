// routesim check: every error of a file, not the first, and what becomes of each of its keys.
#include <algorithm>
#include <array>
#include <filesystem>

#include "base/text.h"
#include "sim/plan/unsupplied_inputs.h"
#include "tools/cli/check_file.h"
#include "tools/cli/cli.h"
#include "tools/cli/inputs.h"
#include "tools/ingest/loads/inference_perf_yaml.h"
#include "tools/ingest/routers/endpoint_picker_yaml.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/scenario/run_checks.h"
#include "tools/ingest/servers/catalogue_file.h"
#include "tools/ingest/tree/kubernetes_file.h"
#include "tools/ingest/tree/ledger.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/results/described_json.h"
#include "tools/results/text_table.h"
#include "tools/study/compare/expectation.h"
#include "tools/study/init/init.h"
#include "tools/study/init/user_file.h"
#include "tools/study/plan/plan_space.h"
#include "tools/study/sweep/sweep_record.h"
#include "tools/study/tune/tune_space.h"

namespace routesim::tools {

namespace {

/// Empty when the document or the user tells the release.
std::string assumed_release(const policies::EndpointPickerConfig& config) {
  const std::string& origin = config.era_origin;
  if (!origin.starts_with("default") && !origin.starts_with("inferred")) return {};
  return std::string(policies::name(config.era)) + " (" + origin + ")";
}

void check_as_scenario(const ScenarioRequest& request, CheckedFile& file) {
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

/// The parts that a file of another product plays in a scenario, and the keys that read it.
std::string roles_of(const std::vector<UserFile>& files) {
  constexpr std::array<std::pair<LoadKind, const char*>, 5> kLoads = {
      {{LoadKind::kInferencePerf, "a load of inference-perf for workload.inference_perf"},
       {LoadKind::kVllmBench, "a load of vllm bench serve for workload.vllm_bench"},
       {LoadKind::kGuidellm, "a load of GuideLLM for workload.guidellm"},
       {LoadKind::kTrace, "a trace of requests for workload.trace"},
       {LoadKind::kBenchResult, "a result of a load tool, of which init makes a load"}}};
  std::vector<std::string> parts;
  const auto add = [&parts](std::string part) {
    if (std::ranges::find(parts, part) == parts.end()) parts.push_back(std::move(part));
  };
  for (const UserFile& file : files) {
    const auto name = [](const ServerStart& start) { return printable(start.name); };
    if (!file.servers.empty())
      add("servers " + comma_list(file.servers, name) + " for a pool's vllm_serve");
    if (file.has_picker) add("an EndpointPickerConfig for routing.endpoint_picker");
    if (!file.balancer.empty()) add("the router " + file.balancer + " for routing.config");
    for (const auto& [kind, words] : kLoads)
      if (file.load == kind) add(words);
  }
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

/// Whether a scenario can name the file or folder, which is none of routesim's own and no document
/// that is checked by itself.
bool is_deployment(const std::vector<UserFile>& files, FileKind kind) {
  const auto plays = [kind](const UserFile& file) {
    if (!file.is_used()) return false;
    if (kind == FileKind::kInferencePerf) return file.load != LoadKind::kInferencePerf;
    if (kind == FileKind::kEndpointPicker)
      return !file.has_picker || !file.servers.empty() || !file.balancer.empty();
    return true;
  };
  return std::ranges::any_of(files, plays);
}

/// Checks what a scenario reads of the file, by the one that `init` makes of it. What it says of
/// the scenario itself, which is assumed, is left out.
void check_deployment(const std::string& path, const std::vector<UserFile>& files,
                      CheckedFile& file) {
  const std::filesystem::path given(path);
  const bool is_folder = std::filesystem::is_directory(given);
  const std::string scenario =
      ((is_folder ? given : given.parent_path()) / "routesim-check.yaml").string();
  Diagnostics found;
  const InitScenario made = make_scenario({.paths = {path}, .output = scenario, .name = {}}, found);
  if (!found.has_errors()) (void)load_scenario({.path = scenario, .text = made.text}, found);
  for (const Diagnostic& d : found.items())
    if (d.where.file != scenario) file.diagnostics.add(d);
  for (KeyUse& use : ledger(found))
    if (use.where.file != scenario) file.diagnostics.key(std::move(use));
  file.contents = roles_of(files);
  for (const std::string& unused : made.unused) file.notes.push_back("not used: " + unused);
}

/// Files of other products are told apart by `init`; the file is checked as such when it is one.
bool checked_as_deployment(const ScenarioRequest& request, const ConfigNode* root,
                           CheckedFile& file) {
  const bool is_other = root == nullptr || !root->is_map() ||
                        file.kind == FileKind::kEndpointPicker || file.kind == FileKind::kResult ||
                        file.kind == FileKind::kInferencePerf ||
                        (file.kind == FileKind::kScenario && root->find("workload") == nullptr &&
                         root->find("cluster") == nullptr);
  if (request.text || !is_other) return false;
  Diagnostics unsaid;  // The scenario's reader says it again.
  const std::vector<UserFile> files = read_user_files({request.path}, unsaid);
  if (!is_deployment(files, file.kind)) return false;
  file.is_deployment = true;
  check_deployment(request.path, files, file);
  return true;
}

/// Plans, sweeps and so on are read by their names.
bool refused_from_stream(const ScenarioRequest& request, CheckedFile& file) {
  const bool by_name = file.kind == FileKind::kPlan || file.kind == FileKind::kSweep ||
                       file.kind == FileKind::kTune || file.kind == FileKind::kCatalogue;
  if (!request.text || !by_name) return false;
  file.diagnostics.error(
      {.file = request.path, .line = 1, .column = 1}, {},
      "a file of kind " + std::string(kind_name(file.kind)) + " is not read from standard input",
      "give the name of a file");
  return true;
}

/// `deployment`, or the name of its kind.
std::string kind_text(const CheckedFile& file) {
  return file.is_deployment ? "deployment" : std::string(kind_name(file.kind));
}

/// Options that the kind of file has no use for.
void refuse_options(const ScenarioRequest& request, CheckedFile& file) {
  const bool is_set =
      !file.is_deployment && (file.kind == FileKind::kScenario || file.kind == FileKind::kPlan ||
                              file.kind == FileKind::kSweep || file.kind == FileKind::kTune);
  const std::string kind = kind_text(file);
  if (!request.sets.empty() && !is_set)
    file.diagnostics.error({.file = request.path}, {},
                           "a file of kind " + kind + " takes no --set");
  if (!request.variants.empty() && (file.is_deployment || file.kind != FileKind::kScenario))
    file.diagnostics.error({.file = request.path}, {},
                           "a file of kind " + kind + " has no variants for --variant");
}

/// Reads a file of one of routesim's kinds; `read` has what was found in `root`.
void check_kind(const ScenarioRequest& request, const ConfigNode::Ptr& root,
                const Diagnostics& read, CheckedFile& file) {
  switch (file.kind) {
    case FileKind::kScenario:
    case FileKind::kResult:
      check_as_scenario(request, file);
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
      append(file.diagnostics, read);
      check_inference_perf(root, file);
      break;
    case FileKind::kEndpointPicker:
      append(file.diagnostics, read);
      check_router_document(root, file);
      break;
  }
}

}  // namespace

CheckedFile check_file(const ScenarioRequest& request) {
  CheckedFile file{.path = request.path};
  Diagnostics unsaid;  // The reader of the kind reports it.
  const ConfigNode::Ptr root = request.text
                                   ? parse_manifest(*request.text, {.file = request.path}, unsaid)
                                   : read_manifest_file(request.path, {}, {}, unsaid);
  if (root != nullptr) file.kind = kind_of(*root);
  const bool done =
      refused_from_stream(request, file) || checked_as_deployment(request, root.get(), file);
  refuse_options(request, file);
  if (!done) check_kind(request, root, unsaid, file);
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
  json.member("kind", kind_text(checked));
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
  const std::string path = shown_path(checked.path);
  const std::vector<KeyUse> keys = ledger(checked.diagnostics);
  if (!checked.diagnostics.has_errors()) {
    // Of routesim's own files, the words say what they are.
    const bool is_named =
        checked.kind == FileKind::kEndpointPicker || checked.kind == FileKind::kInferencePerf;
    const std::string kind =
        is_named && !checked.is_deployment ? kind_text(checked) + ": " : std::string();
    const std::string contents =
        checked.contents.empty() ? "" : " (" + kind + checked.contents + ")";
    console.print(path + ": ok" + contents + ", " + summary_text(keys) + "\n");
  }
  for (const std::string& note : checked.notes) console.print(path + ": note: " + note + "\n");
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
    const CheckedFile checked = check_file(scenario_request(options, path));
    if (!options.ok()) return refuse(options, console);
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
                    "Every key with what becomes of it."},
                   {"routesim check deployment.yaml inference-perf.yaml",
                    "What files of other products are, and what a scenario reads of them."}},
      .run = &run_check};
}

}  // namespace routesim::tools
