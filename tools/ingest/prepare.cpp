#include "tools/ingest/prepare.h"

#include <set>

#include "base/printable.h"
#include "base/scalar_parse.h"
#include "policies/index/sha256.h"
#include "policies/scheduler.h"
#include "tools/ingest/catalogue_file.h"
#include "tools/ingest/config_file.h"
#include "tools/ingest/description.h"
#include "tools/ingest/measured_file.h"
#include "tools/ingest/pool_checks.h"
#include "tools/ingest/replay_files.h"
#include "tools/ingest/request_headers.h"
#include "tools/ingest/trace_files.h"
#include "tools/render/goodput.h"

namespace routesim::tools {

namespace {

/// Where the parts stand whose own checks name keys without their place in the scenario.
const std::vector<std::string>& prefixes() {
  static const std::vector<std::string> kPrefixes = {
      "workload.inference_perf", "workload.vllm_bench", "workload.conversations",
      "workload.trace",          "workload.groups",     "workload.options"};
  return kPrefixes;
}

/// A path written at `key`, resolved against the file it was written in.
std::string path_at(const LoadedVariant& variant, const std::string& key,
                    const std::string& written) {
  return resolve_path(written, variant.provenance.nearest(key));
}

/// The trace written at `key` (a map with `file`, `format` and perhaps `columns`).
workloads::TraceOpener open_trace_at(
    const LoadedVariant& variant, const std::string& key, const std::string& file,
    const std::string& format, Diagnostics& diagnostics,
    const std::optional<workloads::CsvColumns>& columns = std::nullopt) {
  const std::string file_key = key + ".file";
  const std::string format_key = key + ".format";
  return open_trace({.path = path_at(variant, file_key, file),
                     .path_where = variant.provenance.nearest(file_key),
                     .path_key = file_key,
                     .format = format,
                     .format_where = variant.provenance.nearest(format_key),
                     .format_key = format_key,
                     .columns = columns,
                     .columns_where = variant.provenance.nearest(key + ".columns"),
                     .columns_key = key + ".columns"},
                    diagnostics);
}

void open_inference_perf_data(const LoadedVariant& variant, sim::ScenarioInputs& inputs,
                              Diagnostics& diagnostics) {
  const auto& config = variant.scenario.workload.inference_perf_config;
  if (!config) return;
  const std::string root = "workload.inference_perf.";
  const auto open = [&](const auto& trace, const std::string& key) {
    if (trace) inputs.trace = open_trace_at(variant, key, trace->file, trace->format, diagnostics);
  };
  open(config->load.trace, root + "load.trace");
  open(config->data.trace, root + "data.trace");
  if (config->data.type == workloads::inference_perf::DataType::kShareGpt && config->data.path) {
    const std::string key = root + "data.path";
    inputs.conversations = open_conversations(path_at(variant, key, *config->data.path),
                                              variant.provenance.nearest(key), key, diagnostics);
  }
  inputs.sessions = read_replay_sessions(variant, diagnostics);
}

/// The file of a `vllm bench` data set, which decides by its name how the file is read.
void open_vllm_bench_data(const LoadedVariant& variant, sim::ScenarioInputs& inputs,
                          Diagnostics& diagnostics) {
  using workloads::vllm_bench::Dataset;
  const auto& config = variant.scenario.workload.vllm_bench;
  if (!config || !config->dataset_path) return;
  const std::string key = "workload.vllm_bench.dataset_path";
  const SourceLocation where = variant.provenance.nearest(key);
  const std::string path = path_at(variant, key, *config->dataset_path);
  const auto trace = [&](const std::string& format) {
    inputs.trace = open_trace({.path = path,
                               .path_where = where,
                               .path_key = key,
                               .format = format,
                               .format_where = where,
                               .format_key = key},
                              diagnostics);
  };
  switch (config->dataset_name) {
    case Dataset::kShareGpt:
      inputs.conversations = open_conversations(path, where, key, diagnostics);
      return;
    case Dataset::kCustom:
      inputs.conversations = open_prompts(path, where, key, diagnostics);
      return;
    case Dataset::kBurstGpt:
      trace("burstgpt");
      return;
    case Dataset::kTimedTrace:
      trace("timed_trace");
      return;
    case Dataset::kSonnet:
      return;  // The tool cuts its prompts from this text; here only their lengths count.
    default:
      diagnostics.error(where, key,
                        "data set " + std::string(enum_name(config->dataset_name)) +
                            " has no file (got " + printable(*config->dataset_path) + ")");
  }
}

void open_conversations_data(const LoadedVariant& variant, sim::ScenarioInputs& inputs,
                             Diagnostics& diagnostics) {
  const auto& config = variant.scenario.workload.conversations;
  if (!config || !config->sharegpt_path) return;
  const std::string key = "workload.conversations.sharegpt_path";
  inputs.conversations = open_conversations(path_at(variant, key, *config->sharegpt_path),
                                            variant.provenance.nearest(key), key, diagnostics);
}

/// What the router's document and the servers say about each other.
void check_router(const sim::RunPlan& plan, Diagnostics& diagnostics) {
  if (!plan.endpoint_picker) return;
  const policies::EndpointPickerConfig& config = *plan.endpoint_picker;
  Diagnostics known;  // The plugins were checked when the document was read.
  const policies::Scheduler scheduler(config, {}, known);
  if (!scheduler.valid()) return;
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
    const std::int64_t router = scheduler.block_key_scheme().block_size;
    const std::int64_t engine = pool.rules.block_size;
    if (scheduler.precise_index() != nullptr && router != engine)
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
  open_inference_perf_data(variant, inputs, found);
  open_vllm_bench_data(variant, inputs, found);
  open_conversations_data(variant, inputs, found);
  if (const auto& trace = variant.scenario.workload.trace; trace && !trace->file.empty())
    inputs.trace =
        open_trace_at(variant, "workload.trace", trace->file, trace->format, found, trace->columns);
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
    add_file("workload.inference_perf", variant.scenario.workload.inference_perf.path);
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
  const sim::WorkloadConfig& workload = variant.scenario.workload;
  add_document("workload.inference_perf", workload.inference_perf);
  if (const auto& config = workload.inference_perf_config) {
    const std::string root = "workload.inference_perf.";
    if (config->load.trace) add(root + "load.trace.file", config->load.trace->file);
    if (config->data.trace) add(root + "data.trace.file", config->data.trace->file);
    if (config->data.path) add(root + "data.path", *config->data.path);
    Diagnostics unread;  // Reported when the files were needed.
    for (std::string& file : replay_files(variant, unread))
      files.push_back(
          {root + "data." + std::string(enum_name(config->data.type)), std::move(file)});
  }
  if (workload.trace) add("workload.trace.file", workload.trace->file);
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
