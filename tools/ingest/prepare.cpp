#include "tools/ingest/prepare.h"

#include <set>

#include "base/printable.h"
#include "base/scalar_parse.h"
#include "policies/config/make_scheduler.h"
#include "policies/index/sha256.h"
#include "tools/ingest/catalogue_file.h"
#include "tools/ingest/config_file.h"
#include "tools/ingest/description.h"
#include "tools/ingest/measured_file.h"
#include "tools/ingest/pool_checks.h"
#include "tools/ingest/replay_files.h"
#include "tools/ingest/request_headers.h"
#include "tools/ingest/trace_files.h"
#include "tools/results/goodput.h"

namespace routesim::tools {

namespace {

/// Where the parts stand whose own checks name keys without their place in the scenario.
const std::vector<std::string>& prefixes() {
  static const std::vector<std::string> kPrefixes = [] {
    std::vector<std::string> out;
    for (const std::string& key : workloads::load_keys()) out.push_back("workload." + key);
    out.emplace_back("workload.options");
    return out;
  }();
  return kPrefixes;
}

/// A path written at `key`, resolved against the file it was written in.
std::string path_at(const LoadedVariant& variant, const std::string& key,
                    const std::string& written) {
  return resolve_path(written, variant.provenance.nearest(key));
}

/// Reports what cannot be read of the scenario's `goodput`.
void check_goals(const LoadedVariant& variant, Diagnostics& diagnostics) {
  GoodputGoals goals;
  for (std::size_t i = 0; i < variant.scenario.goodput.size(); ++i) {
    const std::string path = element_path("goodput", i);
    const std::string error = read_goal(variant.scenario.goodput[i], goals);
    if (!error.empty()) diagnostics.error(variant.provenance.nearest(path), path, error);
  }
}

/// Opens the files that the load names.
void open_load_files(const LoadedVariant& variant, workloads::LoadInputs& inputs,
                     Diagnostics& diagnostics) {
  using Kind = workloads::LoadFile::Kind;
  for (const workloads::LoadFile& file : files_of(variant.scenario.workload.load)) {
    const std::string key = "workload." + file.key;
    const SourceLocation where = variant.provenance.nearest(key);
    const std::string path = path_at(variant, key, file.path);
    if (file.kind == Kind::kTrace)
      inputs.trace = open_trace(
          {.path = path,
           .path_where = where,
           .path_key = key,
           .format = file.format,
           .format_where = variant.provenance.nearest("workload." + file.format_key),
           .format_key = "workload." + file.format_key,
           .columns = file.columns == nullptr ? std::nullopt : std::optional(*file.columns),
           .columns_where = variant.provenance.nearest("workload." + file.columns_key),
           .columns_key = "workload." + file.columns_key},
          diagnostics);
    else if (file.kind == Kind::kShareGpt)
      inputs.conversations = open_conversations(path, where, key, diagnostics);
    else if (file.kind == Kind::kPrompts)
      inputs.conversations = open_prompts(path, where, key, diagnostics);
  }
  if (inputs.trace) inputs.survey = std::make_shared<workloads::TraceSurvey>();
  inputs.sessions = read_replay_sessions(variant, diagnostics);
}

/// What the router's document and the servers say about each other.
void check_router(const sim::RunPlan& plan, Diagnostics& diagnostics) {
  if (!plan.endpoint_picker) return;
  const policies::EndpointPickerConfig& config = *plan.endpoint_picker;
  const std::optional<policies::Requirements> needed = policies::requirements(config);
  if (!needed) return;
  const policies::PluginSpec* handler = config.find(config.profile_handler);
  const bool disaggregates = handler != nullptr && (handler->type.starts_with("pd-") ||
                                                    handler->type.starts_with("disagg-"));
  for (const sim::ResolvedPool& pool : plan.pools) {
    if (pool.config.role == sim::PoolRole::kPrefill && !disaggregates)
      diagnostics.warning({}, "routing.endpoint_picker",
                          "prefill pool " + printable(pool.config.name) +
                              " is never sent a prefill: the document's profile handler is " +
                              (handler == nullptr ? "absent" : printable(handler->type)),
                          "use disagg-profile-handler (older releases: pd-profile-handler)");
    const std::int64_t router = needed->block_keys.block_size;
    const std::int64_t engine = pool.rules.block_size;
    if (needed->precise_index && router != engine)
      diagnostics.warning({}, "routing.endpoint_picker",
                          "the precise prefix index counts in blocks of " + std::to_string(router) +
                              " tokens, the engines of pool " + printable(pool.config.name) +
                              " in blocks of " + std::to_string(engine) +
                              ": what it expects and what they hold can differ",
                          "set tokenProcessorConfig.blockSize to the engine's block_size");
  }
}

/// vLLM does not start where one sequence of the longest length does not fit. A simulation can:
/// whether requests get that long is another matter. Whoever states the blocks knows them.
void check_lengths(const sim::RunPlan& plan, Diagnostics& diagnostics) {
  for (std::size_t i = 0; i < plan.pools.size(); ++i) {
    const sim::ResolvedPool& pool = plan.pools[i];
    const std::int64_t held = pool.rules.num_gpu_blocks * pool.rules.block_size;
    if (pool.kv_plan.explicit_blocks || pool.rules.max_model_len <= held) continue;
    diagnostics.warning({}, "cluster.pools[" + std::to_string(i) + "].engine.max_model_len",
                        "vLLM would not start: one sequence of " +
                            std::to_string(pool.rules.max_model_len) +
                            " tokens does not fit into the KV cache of " + std::to_string(held),
                        "set engine.max_model_len, as the servers' command line must");
  }
}

}  // namespace

namespace {

/// Opens everything the variant names. Names of models become those of the catalogue.
sim::ScenarioInputs open_inputs(const LoadedVariant& variant, sim::Scenario& scenario,
                                Diagnostics& found) {
  sim::ScenarioInputs inputs;
  inputs.endpoint_picker = variant.endpoint_picker;
  Diagnostics catalogue;
  inputs.catalogue = scenario_catalogue(variant, scenario, catalogue);
  append(found, catalogue);
  open_load_files(variant, inputs.load, found);
  inputs.headers = request_headers(variant);
  // A catalogue that cannot be read may hold any name.
  if (found.has_errors() && !catalogue.has_errors()) sim::check_names(scenario, inputs, found);
  return inputs;
}

}  // namespace

void check_variant(const LoadedVariant& variant, Diagnostics& diagnostics) {
  if (!diagnostics.has_errors()) {
    (void)prepare(variant, diagnostics);
    (void)load_measured(variant, diagnostics);
    return;
  }
  Diagnostics found;
  sim::Scenario scenario = variant.scenario;
  const sim::ScenarioInputs inputs = open_inputs(variant, scenario, found);
  if (!found.has_errors()) sim::check_names(scenario, inputs, found);
  Diagnostics more = variant.provenance.located(found, prefixes());
  check_goals(variant, more);
  (void)load_measured(variant, more);
  const Diagnostics known = diagnostics;
  for (const Diagnostic& d : more.items())
    if (!is_broken(known, d.path)) diagnostics.add(d);
}

std::optional<sim::RunPlan> prepare(const LoadedVariant& variant, Diagnostics& diagnostics) {
  Diagnostics found;
  sim::Scenario scenario = variant.scenario;
  const sim::ScenarioInputs inputs = open_inputs(variant, scenario, found);
  warn_unread_headers(variant, found);
  check_handover(scenario, inputs.catalogue, found);
  check_one_model(scenario, inputs.catalogue, found);
  std::optional<sim::RunPlan> plan;
  if (!found.has_errors()) plan = sim::resolve(scenario, inputs, found);
  if (plan) {
    plan->where = [places = variant.provenance](const std::string& path) {
      return places.nearest(path);
    };
    check_router(*plan, found);
    check_lengths(*plan, found);
  }
  append(diagnostics, variant.provenance.located(found, prefixes()));
  Diagnostics goals;
  check_goals(variant, goals);
  append(diagnostics, goals);
  if (found.has_errors() || goals.has_errors()) return std::nullopt;
  return plan;
}

std::string resolved_json(const LoadedVariant& variant) {
  sim::Scenario scenario = variant.scenario;
  const FieldDescription values =
      describe_values([&scenario](Describer& d) { describe(d, scenario); });
  std::string text = to_json(*to_node(values));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string scenario_hash(const LoadedScenario& scenario) {
  policies::Sha256 sha;
  const auto add = [&sha](std::string_view text) {
    const std::uint64_t size = text.size();
    sha.update(&size, sizeof size);
    sha.update(text.data(), text.size());
  };
  for (const LoadedVariant& variant : scenario.variants) {
    add(variant.scenario.variant);
    add(resolved_json(variant));
    const auto add_file = [&](const std::string& key, const std::string& path) {
      std::string text;
      Diagnostics unread;  // A file that cannot be read was reported when it was needed.
      if (!path.empty() &&
          read_text_file(path_at(variant, key, path), variant.provenance.nearest(key), key,
                         ConfigLimits{}.max_bytes, text, unread))
        add(text);
    };
    add_file("routing.endpoint_picker", variant.scenario.routing.endpoint_picker.path);
    const workloads::Load& load = variant.scenario.workload.load;
    if (const Document* document = document_of(load))
      add_file("workload." + std::string(load_key(load)), document->path);
  }
  std::string text;
  for (const std::uint8_t byte : sha.finish()) {
    text += "0123456789abcdef"[byte >> 4U];
    text += "0123456789abcdef"[byte & 0xFU];
  }
  return text;
}

std::vector<ReferencedFile> referenced_files(const LoadedVariant& variant) {
  std::vector<ReferencedFile> files;
  const auto add = [&](const std::string& key, const std::string& written) {
    if (!written.empty()) files.push_back({key, path_at(variant, key, written)});
  };
  const auto add_document = [&](const std::string& key, const Document& document) {
    if (!document.path.empty())
      files.push_back({key, resolve_path(document.path, document.root->where())});
  };
  using Kind = workloads::LoadFile::Kind;
  const workloads::Load& load = variant.scenario.workload.load;
  if (const Document* document = document_of(load))
    add_document("workload." + std::string(load_key(load)), *document);
  for (const workloads::LoadFile& file : files_of(load))
    if (file.kind != Kind::kSessions && file.kind != Kind::kSessionFolder &&
        file.kind != Kind::kUnread)
      add("workload." + file.key, file.path);
  Diagnostics unread;  // Reported when the files were needed.
  for (ReplayFile& file : replay_files(variant, unread))
    files.push_back({std::move(file.key), std::move(file.path)});
  add_document("routing.endpoint_picker", variant.scenario.routing.endpoint_picker);
  for (std::size_t i = 0; i < variant.scenario.catalogue.size(); ++i)
    add(element_path("catalogue", i), variant.scenario.catalogue[i]);
  for (std::size_t i = 0; i < variant.scenario.cluster.pools.size(); ++i) {
    const std::string& model = variant.scenario.cluster.pools[i].model;
    if (model.ends_with(".json")) add(element_path("cluster.pools", i) + ".model", model);
  }
  return files;
}

std::vector<std::string> files_read(const LoadedScenario& scenario) {
  std::set<std::string> files = {scenario.path};
  for (const LoadedVariant& variant : scenario.variants) {
    files.merge(variant.provenance.files());
    for (ReferencedFile& file : referenced_files(variant)) files.insert(std::move(file.path));
    if (!variant.scenario.measured.csv.empty())
      files.insert(path_at(variant, "measured.csv", variant.scenario.measured.csv));
  }
  return {files.begin(), files.end()};
}

std::vector<std::string> files_read(std::span<const std::string> scenario_paths) {
  std::vector<std::string> files;
  for (const std::string& path : scenario_paths) {
    Diagnostics unsaid;
    const LoadedScenario scenario =
        load_scenario({.path = path, .sets = {}, .variants = {}, .seed = {}}, unsaid);
    for (std::string& file : files_read(scenario)) files.push_back(std::move(file));
  }
  return files;
}

std::vector<std::string> files_named(const std::vector<Assignment>& assignments) {
  // A bare word or a number is a value, even where a file is called so.
  const auto is_path = [](const ConfigNode& value) {
    return value.is_scalar() && value.text().find_first_of("./") != std::string::npos &&
           !parse_real(value, {}).value;
  };
  std::vector<std::string> files;
  for (const Assignment& assignment : assignments)
    if (assignment.value != nullptr && is_path(*assignment.value))
      files.push_back(resolve_path(assignment.value->text(), assignment.where));
  return files;
}

MeasuredTable load_measured(const LoadedVariant& variant, Diagnostics& diagnostics) {
  const sim::MeasuredConfig& measured = variant.scenario.measured;
  if (measured.csv.empty()) return {};
  const SourceLocation where = variant.provenance.nearest("measured.csv");
  const std::string path = resolve_path(measured.csv, where);
  Diagnostics found;
  const MeasuredTable table = read_measured(path, measured.policy, where, "measured.csv", found);
  append(diagnostics, found);
  if (found.has_errors() || measured.policy.empty()) return {};
  MeasuredTable selected = select_rows(table, measured.experiment, measured.policy);
  if (selected.rows.empty()) {
    std::vector<std::string> policies;
    for (const MeasuredRow& row : table.rows) policies.push_back(row.policy);
    const std::string close = nearest(measured.policy, policies);
    diagnostics.error(
        variant.provenance.nearest("measured.policy"), "measured.policy",
        "no row of " + printable(path, 200) + " has it (got " + printable(measured.policy) + ")",
        close.empty() ? "" : "did you mean " + close + "?");
  }
  return selected;
}

}  // namespace routesim::tools
