#include "tools/ingest/scenario/prepare.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <istream>
#include <set>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "policies/config/make_scheduler.h"
#include "policies/index/sha256.h"
#include "sim/plan/fleet_plan.h"
#include "sim/plan/mix.h"
#include "tools/ingest/scenario/run_checks.h"
#include "tools/ingest/servers/catalogue_file.h"
#include "tools/ingest/traces/measured_file.h"
#include "tools/ingest/traces/recordings.h"
#include "tools/ingest/traces/trace_files.h"
#include "tools/ingest/tree/description.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/ingest/tree/parse_config.h"
#include "tools/results/goodput.h"

namespace routesim::tools {

namespace {

/// The checks of some parts name keys without their place in the scenario: these prefixes.
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

/// Reports what cannot be read of the scenario's `goodput`, and of those of a mix.
void check_goals(const LoadedVariant& variant, Diagnostics& diagnostics) {
  const auto check = [&](const std::vector<std::string>& texts, const std::string& key) {
    GoodputGoals goals;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::string path = element_path(key, i);
      const std::string error = read_goal(texts[i], goals);
      if (!error.empty()) diagnostics.error(variant.provenance.nearest(path), path, error);
    }
  };
  check(variant.scenario.goodput, "goodput");
  const std::vector<sim::MixPart>& mix = variant.scenario.workload.mix;
  for (std::size_t i = 0; i < mix.size(); ++i)
    check(mix[i].goodput, sim::part_path(i) + ".goodput");
}

/// Whether the file a key names can be read; if not, says so at the key.
bool readable(const std::string& path, const SourceLocation& where, const std::string& key,
              Diagnostics& diagnostics) {
  std::string text;
  return read_text_file(path, where, key, ConfigLimits{}.max_bytes, text, diagnostics);
}

bool same_physics(const models::ModelSpec& a, const models::ModelSpec& b) {
  using models::KvDtype;
  return a.layers == b.layers && a.hidden == b.hidden && a.weights == b.weights &&
         models::total_parameters(a) == models::total_parameters(b) &&
         models::kv_bytes_per_token(a, KvDtype::kBf16) ==
             models::kv_bytes_per_token(b, KvDtype::kBf16);
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  // A pipe is refused where it is opened, which tells why.
  return std::filesystem::exists(path, ignored) && !std::filesystem::is_directory(path, ignored);
}

void add_folder(const std::string& path, const std::string& key, const SourceLocation& where,
                std::vector<ReferencedFile>& out, Diagnostics& diagnostics) {
  std::error_code error;
  std::vector<std::string> found;
  bool lines = false;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!is_file(entry->path().string())) continue;
    lines = lines || entry->path().extension() == ".jsonl";
    if (entry->path().extension() == ".json") found.push_back(entry->path().string());
  }
  if (error)
    diagnostics.error(where, key,
                      "cannot read the folder " + printable(path, 200) + ": " + error.message(),
                      "paths inside a file are relative to that file");
  else if (found.empty())
    diagnostics.error(where, key, "no *.json is in " + printable(path, 200),
                      lines ? "name its *.jsonl as trace_files" : "");
  std::sort(found.begin(), found.end());
  for (std::string& file : found) out.push_back({key, std::move(file)});
}

/// Whether a path as written asks for several files.
bool is_pattern(const std::string& path) { return path.find_first_of("*?") != std::string::npos; }

/// The regular files a path names, or those that a pattern matches in the order of their names.
std::vector<std::string> matching_files(const std::string& path) {
  if (!is_pattern(path)) {
    if (is_file(path)) return {path};
    return {};
  }
  std::vector<std::string> out;
  glob_t found{};
  if (::glob(path.c_str(), 0, nullptr, &found) == 0)
    for (std::size_t i = 0; i < found.gl_pathc; ++i)
      if (is_file(found.gl_pathv[i])) out.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  std::sort(out.begin(), out.end());
  return out;
}

/// The files of recorded sessions that the load at `place` replays, in the order they are read. A
/// folder without *.json, and a path without a file, are errors at their keys.
std::vector<ReferencedFile> replay_files(const LoadedVariant& variant, const std::string& place,
                                         const workloads::Load& load, Diagnostics& diagnostics) {
  using Kind = workloads::LoadFile::Kind;
  std::vector<ReferencedFile> out;
  for (const workloads::LoadFile& named : files_of(load)) {
    if (named.kind != Kind::kSessions && named.kind != Kind::kSessionFolder) continue;
    const std::string key = child_path(place, named.key);
    const SourceLocation where = variant.provenance.nearest(key);
    const std::string path = resolve_path(named.path, where);
    if (named.kind == Kind::kSessionFolder) {
      add_folder(path, key, where, out, diagnostics);
      continue;
    }
    const std::vector<std::string> files = matching_files(path);
    for (const std::string& file : files) {
      const bool known = std::any_of(out.begin(), out.end(), [&file](const ReferencedFile& asked) {
        return asked.path == file;
      });
      if (!known) out.push_back({key, file});
    }
    if (!files.empty()) continue;
    if (is_pattern(path))
      diagnostics.error(where, key, "no file matches " + printable(path, 200));
    else
      out.push_back({key, path});  // Opening it tells why it cannot be read.
  }
  return out;
}

/// Reads them all. Null when the load replays no files, or after an error.
std::shared_ptr<const workloads::Sessions> read_replay_sessions(const LoadedVariant& variant,
                                                                const std::string& place,
                                                                const workloads::Load& load,
                                                                Diagnostics& diagnostics) {
  Diagnostics found;
  const std::vector<ReferencedFile> files = replay_files(variant, place, load, found);
  std::shared_ptr<const workloads::Sessions> sessions;
  if (!files.empty()) {
    const std::unique_ptr<SessionFiles> reader = session_files(load);
    for (const ReferencedFile& file : files) {
      const std::unique_ptr<std::istream> in =
          open_records(file.path, variant.provenance.nearest(file.key), file.key, found);
      // After an error only what else is missing matters.
      if (in != nullptr && !found.has_errors())
        reader->read(*in, file.path, file.path.ends_with(".jsonl"), found);
    }
    if (!found.has_errors()) sessions = std::make_shared<const workloads::Sessions>(reader->take());
  }
  for (const Diagnostic& d : found.items()) diagnostics.add(d);
  return sessions;
}

/// Opens the files that the load at `place` names, and its demand.
workloads::LoadInputs open_load_files(const LoadedVariant& variant, const std::string& place,
                                      const workloads::Load& load,
                                      const std::optional<workloads::Demand>& demand,
                                      Diagnostics& diagnostics) {
  using Kind = workloads::LoadFile::Kind;
  workloads::LoadInputs inputs;
  const auto where_of = [&](const std::string& key) {
    return variant.provenance.nearest(child_path(place, key));
  };
  for (const workloads::LoadFile& file : files_of(load)) {
    const std::string key = child_path(place, file.key);
    const SourceLocation where = variant.provenance.nearest(key);
    const std::string path = path_at(variant, key, file.path);
    if (file.kind == Kind::kTrace)
      inputs.trace = open_trace(
          {.path = path,
           .path_where = where,
           .path_key = key,
           .format = file.format,
           .format_where = where_of(file.format_key),
           .format_key = child_path(place, file.format_key),
           .columns = file.columns == nullptr ? std::nullopt : std::optional(*file.columns),
           .columns_where = where_of(file.columns_key),
           .columns_key = child_path(place, file.columns_key),
           .missing = file.missing == nullptr ? std::nullopt : std::optional(*file.missing),
           .missing_where = where_of(file.missing_key),
           .missing_key = child_path(place, file.missing_key)},
          diagnostics);
    else if (file.kind == Kind::kShareGpt)
      inputs.conversations = open_conversations(path, where, key, diagnostics);
    else if (file.kind == Kind::kPrompts)
      inputs.conversations = open_prompts(path, where, key, diagnostics);
  }
  if (demand && !demand->arrivals_of.empty()) {
    const std::string key = place + ".demand.arrivals_of";
    inputs.demand_trace = open_trace({.path = path_at(variant, key, demand->arrivals_of),
                                      .path_where = variant.provenance.nearest(key),
                                      .path_key = key},
                                     diagnostics);
  }
  if (inputs.trace) inputs.survey = std::make_shared<workloads::TraceSurvey>();
  inputs.sessions = read_replay_sessions(variant, place, load, diagnostics);
  return inputs;
}

/// Warns of what only matters to other routers, or where servers fail.
void check_failures(const sim::RunPlan& plan, Diagnostics& diagnostics) {
  const sim::RoutingConfig& routing = plan.scenario.routing;
  const auto unused = [&](const auto& section, const std::string& key, bool opens) {
    const policies::CircuitBreakerSettings none, off{.disable_circuit_breaker = true};
    if (!section || section->breaker == none) return;
    if (const bool fails = sim::fleet_changes(plan.scenario); !fails || !opens)
      diagnostics.warning({}, key,
                          fails ? "never opens its circuit breakers with prefill servers"
                                : "has no effect: no server fails without events",
                          "leave the circuit breakers out");
    else if (section->breaker.disable_circuit_breaker && section->breaker != off)
      diagnostics.warning({}, key + ".disable_circuit_breaker",
                          "leaves the other settings of the circuit breakers without effect");
  };
  unused(routing.balancing.smg, "routing.smg", true);
  unused(routing.balancing.vllm_router, "routing.vllm_router", !plan.has_prefill());
  const std::optional<policies::Requirements> needed =
      plan.endpoint_picker ? policies::requirements(*plan.endpoint_picker) : std::nullopt;
  const bool hears = needed ? needed->signals.kv_events : sim::balancer_needs(routing).kv_events;
  const bool blind = needed && !needed->signals.metrics;
  for (std::size_t i = 0; i < plan.scenario.events.size(); ++i) {
    const auto kind = plan.scenario.events[i].kind;
    const char* why = nullptr;
    if (kind == sim::FleetEventKind::kScrapesLost && blind) why = "decides without metrics";
    if (kind == sim::FleetEventKind::kKvEventsLost && !hears) why = "hears no KV events";
    if (why != nullptr)
      diagnostics.warning({}, "events[" + std::to_string(i) + "].kind",
                          std::string("has no effect: this router ") + why);
  }
}

/// Compares the router's document with the servers.
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

/// Warns where one sequence of max_model_len does not fit into the KV cache: vLLM would not start.
/// A simulation can run, because requests may be shorter. A stated number of blocks is trusted.
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

/// A balancer sends every request to any of its servers, so these serve one model. The formats of
/// its weights may differ.
void check_one_model(const sim::Scenario& scenario, const models::Catalogue& catalogue,
                     Diagnostics& diagnostics) {
  const std::vector<sim::PoolConfig>& pools = scenario.cluster.pools;
  const auto same_architecture = [](const models::ModelSpec& a, const models::ModelSpec& b) {
    return a.layers == b.layers && a.hidden == b.hidden && a.heads == b.heads &&
           a.kv_heads == b.kv_heads && a.experts == b.experts && a.vocab == b.vocab;
  };
  const models::ModelSpec* first = nullptr;  // The model of pool `of_first`.
  std::size_t of_first = 0;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    // A name that is not in the catalogue is reported where it is looked up, and the two sides of a
    // disaggregated pair by check_handover().
    const models::ModelSpec* const model = catalogue.find_model(pools[i].model);
    if (model == nullptr || pools[i].role != sim::PoolRole::kBoth) continue;
    if (first == nullptr) {
      first = model;
      of_first = i;
    } else if (!same_architecture(*first, *model)) {
      diagnostics.error(
          {}, child_path(element_path("cluster.pools", i), "model"),
          "is another model than that of pool " + printable(pools[of_first].name) +
              ", but one balancer sends every request to any pool (got " +
              printable(pools[i].model) + " in pool " + printable(pools[i].name) + " and " +
              printable(pools[of_first].model) + ")",
          "simulate the pools and the traffic of each model in a scenario of its own");
    }
  }
}

/// Decode servers read what a prefill server computed: both have one model and one KV format.
void check_handover(const sim::Scenario& scenario, const models::Catalogue& catalogue,
                    Diagnostics& diagnostics) {
  // `auto` is bf16.
  const auto format = [](const sim::PoolConfig& c) {
    return c.kv_cache_dtype.starts_with("fp8") ? "fp8" : "bf16";
  };
  const std::vector<sim::PoolConfig>& pools = scenario.cluster.pools;
  const auto prefill = std::find_if(pools.begin(), pools.end(), [](const sim::PoolConfig& p) {
    return p.role == sim::PoolRole::kPrefill;
  });
  if (prefill == pools.end()) return;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    const sim::PoolConfig& pool = pools[i];
    if (pool.role == sim::PoolRole::kBoth) continue;
    const std::string path = element_path("cluster.pools", i);
    const std::string other = " of pool " + printable(prefill->name) + " (got ";
    // A name that is not in the catalogue is reported where it is looked up.
    const models::ModelSpec* const model = catalogue.find_model(pool.model);
    const models::ModelSpec* const first = catalogue.find_model(prefill->model);
    if (model != nullptr && first != nullptr && model != first)
      diagnostics.error({}, path + ".model",
                        "differs from the model" + other + printable(pool.model) + " and " +
                            printable(prefill->model) + ")",
                        "decode servers pull the KV of prefill servers, so both have one model");
    if (std::string_view(format(pool)) != format(*prefill))
      diagnostics.error(
          {}, path + ".kv_cache_dtype",
          "differs from the KV format" + other + format(pool) + " and " + format(*prefill) + ")",
          "decode servers pull the KV of prefill servers, so both have one format");
  }
}

/// Opens everything the variant names. Names of models become those of the catalogue.
sim::ScenarioInputs open_inputs(const LoadedVariant& variant, sim::Scenario& scenario,
                                Diagnostics& found) {
  sim::ScenarioInputs inputs;
  inputs.endpoint_picker = variant.endpoint_picker;
  Diagnostics catalogue;
  inputs.catalogue = scenario_catalogue(variant, scenario, catalogue);
  append(found, catalogue);
  for_each_load(variant.scenario.workload,
                [&](const std::string& place, const auto& load, const auto& demand) {
                  inputs.loads.push_back(open_load_files(variant, place, load, demand, found));
                });
  // A catalogue that cannot be read may hold any name.
  if (found.has_errors() && !catalogue.has_errors()) sim::check_names(scenario, inputs, found);
  return inputs;
}

}  // namespace

models::Catalogue scenario_catalogue(const LoadedVariant& variant, sim::Scenario& scenario,
                                     Diagnostics& diagnostics) {
  models::Catalogue catalogue = builtin_catalogue();
  for (std::size_t i = 0; i < scenario.catalogue.size(); ++i) {
    const std::string key = element_path("catalogue", i);
    const SourceLocation where = variant.provenance.nearest(key);
    const std::string path = resolve_path(scenario.catalogue[i], where);
    if (readable(path, where, key, diagnostics)) add_catalogue_file(path, catalogue, diagnostics);
  }
  for (std::size_t i = 0; i < scenario.cluster.pools.size(); ++i) {
    std::string& model = scenario.cluster.pools[i].model;
    if (!model.ends_with(".json")) continue;
    const std::string key = child_path(element_path("cluster.pools", i), "model");
    const SourceLocation where = variant.provenance.nearest(key);
    const std::string path = resolve_path(model, where);
    if (!readable(path, where, key, diagnostics)) continue;
    auto spec = read_hf_config(path, diagnostics);
    if (!spec) continue;
    const models::ModelSpec* taken = catalogue.find_model(spec->name);
    if (taken != nullptr && !same_physics(*taken, *spec))
      diagnostics.warning(where, key,
                          "replaces the catalogue's " + taken->name +
                              ", whose fitted curves it will use although it differs from it",
                          "give the folder of the config.json another name");
    model = spec->name;
    catalogue.add(std::move(*spec));
  }
  return catalogue;
}

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
  if (scenario.workload.mix.empty())
    workloads::check_traffic_classes(scenario.workload.classes, "workload.classes", found);
  else
    sim::check_mix(scenario.workload, found);
  Diagnostics more = variant.provenance.located(found, prefixes());
  check_goals(variant, more);
  (void)load_measured(variant, more);
  const Diagnostics known = diagnostics;
  for (const Diagnostic& d : more.items())
    if (!is_broken(known, d.path)) diagnostics.add(d);
}

std::optional<sim::RunPlan> prepare(const LoadedVariant& variant, Diagnostics& diagnostics,
                                    const std::function<void(models::Catalogue&)>& change) {
  Diagnostics found;
  sim::Scenario scenario = variant.scenario;
  sim::ScenarioInputs inputs = open_inputs(variant, scenario, found);
  if (change) change(inputs.catalogue);
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
    check_failures(*plan, found);
    check_lengths(*plan, found);
  }
  append(diagnostics, variant.provenance.located(found, prefixes()));
  Diagnostics goals;
  check_goals(variant, goals);
  append(diagnostics, goals);
  if (found.has_errors() || goals.has_errors()) return std::nullopt;
  return plan;
}

namespace {

ConfigNode::Ptr resolved_tree(const LoadedVariant& variant) {
  sim::Scenario scenario = variant.scenario;
  return to_node(describe_values([&scenario](Describer& d) { describe(d, scenario); }));
}

/// Without a line break at its end.
std::string json_text(const ConfigNode& tree) {
  std::string text = to_json(tree);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

std::string resolved_json(const LoadedVariant& variant) {
  return json_text(*resolved_tree(variant));
}

namespace {

/// The contents of a document of up to 32 KiB, else its SHA-256.
ConfigNode::Ptr contents_of(const std::string& path) {
  constexpr std::size_t kMostBytes = 32 * 1024;
  const SourceLocation where = {.file = path};
  std::string text;
  Diagnostics unread;  // A file that cannot be read was reported when it was needed.
  if (!read_text_file(path, where, "", ConfigLimits{}.max_bytes, text, unread)) return nullptr;
  if (is_config_name(path) && text.size() <= kMostBytes)
    if (ConfigNode::Ptr root = parse_manifest(text, {.file = path}, unread);
        root != nullptr && (root->is_map() || root->is_sequence()) && !unread.has_errors())
      return root;
  policies::Sha256 sha;
  sha.update(text.data(), text.size());
  return ConfigNode::make_scalar("sha256:" + encode_hex(sha.finish()), ConfigNode::Style::kUntyped,
                                 where);
}

}  // namespace

Document resolved_with_files(const LoadedVariant& variant) {
  std::vector<ConfigNode::Member> members;
  for (const ReferencedFile& file : referenced_files(variant))
    if (ConfigNode::Ptr contents = contents_of(file.path))
      members.push_back({.key = file.key, .key_where = {}, .value = std::move(contents)});
  const ConfigNode::Ptr values = resolved_tree(variant);
  Document out{.path = json_text(*values), .root = values};
  if (members.empty()) return out;
  const ConfigNode::Ptr files = ConfigNode::make_map(std::move(members), {});
  out.path.insert(out.path.rfind('}'), ", \"files\": " + json_text(*files));
  std::vector<ConfigNode::Member> all = values->members();
  all.push_back({.key = "files", .key_where = {}, .value = files});
  out.root = ConfigNode::make_map(std::move(all), {});
  return out;
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
    for_each_load(variant.scenario.workload,
                  [&](const std::string& place, const workloads::Load& load, const auto&) {
                    if (const Document* document = document_of(load))
                      add_file(child_path(place, load_key(load)), document->path);
                  });
  }
  return encode_hex(sha.finish());
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
  for_each_load(variant.scenario.workload,
                [&](const std::string& place, const workloads::Load& load, const auto& demand) {
                  if (const Document* document = document_of(load))
                    add_document(child_path(place, load_key(load)), *document);
                  for (const workloads::LoadFile& file : files_of(load))
                    if (file.kind != Kind::kSessions && file.kind != Kind::kSessionFolder &&
                        file.kind != Kind::kUnread)
                      add(child_path(place, file.key), file.path);
                  if (demand) {
                    add(place + ".demand.csv", demand->csv);
                    add(place + ".demand.arrivals_of", demand->arrivals_of);
                  }
                  Diagnostics unread;  // Reported when the files were needed.
                  for (ReferencedFile& file : replay_files(variant, place, load, unread))
                    files.push_back(std::move(file));
                });
  add_document("routing.endpoint_picker", variant.scenario.routing.endpoint_picker);
  if (variant.scenario.routing.library)
    add("routing.library.path", variant.scenario.routing.library->path);
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
    diagnostics.error(
        variant.provenance.nearest("measured.policy"), "measured.policy",
        "no row of " + printable(path, 200) + " has it (got " + printable(measured.policy) + ")",
        did_you_mean(measured.policy, policies));
  }
  return selected;
}

}  // namespace routesim::tools
