#include "tools/ingest/routers/endpoint_picker_yaml.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "base/tree_reader.h"
#include "policies/config/make_scheduler.h"
#include "sim/plan/scenario.h"
#include "tools/ingest/tree/data_table.h"
#include "tools/ingest/tree/kubernetes_file.h"
#include "tools/ingest/tree/ledger.h"
#include "tools/ingest/tree/nodes.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {

namespace {

using policies::LocatedDocument;

/// Words that YAML 1.1 readers, Go's among them, take for booleans.
bool is_yaml_1_1_bool(const std::string& text) {
  return has_word("yes Yes YES no No NO on On ON off Off OFF", text);
}

/// Reports values that the router's YAML reader, which is Go's, takes differently.
void check_scalar(const ConfigNode& node, const std::string& path, Diagnostics& diagnostics) {
  const auto expect = [&](const auto& parsed) {
    if (!parsed.value) diagnostics.error(node.where(), path, parsed.message, parsed.hint);
  };
  if (node.style() != ConfigNode::Style::kPlain && node.style() != ConfigNode::Style::kUntyped)
    return;
  const PlainType type = plain_type(node.text());
  if (type == PlainType::kInteger) expect(parse_integer(node, {}));
  if (type == PlainType::kReal || type == PlainType::kNotFinite) expect(parse_real(node, {}));
  if (node.style() == ConfigNode::Style::kPlain && is_yaml_1_1_bool(node.text()))
    diagnostics.error(node.where(), path,
                      "is a boolean to the router's YAML reader (" + got(node) + ")",
                      "write true or false, or put quotes around it");
}

void check_scalars(const ConfigNode& node, const std::string& path, Diagnostics& diagnostics) {
  if (node.is_scalar()) check_scalar(node, path, diagnostics);
  for (std::size_t i = 0; i < node.items().size(); ++i)
    check_scalars(*node.items()[i], element_path(path, i), diagnostics);
  for (const ConfigNode::Member& member : node.members())
    check_scalars(*member.value, child_path(path, member.key), diagnostics);
}

bool same_place(const SourceLocation& a, const SourceLocation& b) {
  return a.line == b.line && a.column == b.column && a.file == b.file;
}

/// Drops judgements of values that could not be read: the judge took them for null.
Diagnostics without_places_of(const Diagnostics& unread, const Diagnostics& judged) {
  Diagnostics out;
  for (const Diagnostic& d : judged.items())
    if (std::none_of(unread.items().begin(), unread.items().end(),
                     [&](const Diagnostic& known) { return same_place(known.where, d.where); }))
      out.add(d);
  for (const KeyUse& use : judged.keys()) out.key(use);
  return out;
}

/// Adds what was found in a document that stands at `path`.
void add_below(const std::string& path, const Diagnostics& found, Diagnostics& diagnostics) {
  for (Diagnostic d : found.items()) {
    if (!path.empty() && !d.path.empty()) d.path = path + "." + d.path;
    diagnostics.add(std::move(d));
  }
  for (KeyUse use : found.keys()) {
    if (!path.empty()) use.path = path + "." + use.path;
    diagnostics.key(std::move(use));
  }
}

bool is_picker_document(const ConfigNode& map) {
  return text_at(map, {"kind"}) == "EndpointPickerConfig";
}

bool may_hold_picker_document(const std::string& text) {
  return text.find("EndpointPickerConfig") != std::string::npos;
}

/// The node inside Kubernetes objects, or `root` itself when it is no such object. Null, with an
/// error, when there is none.
ConfigNode::Ptr find_document(const ConfigNode::Ptr& root, const std::string& path,
                              Diagnostics& diagnostics) {
  // A document of a wrong kind is better reported than not found.
  const bool is_meant = root->find("plugins") != nullptr || root->find("schedulingProfiles");
  if (!is_kubernetes_object(*root) || is_picker_document(*root) || is_meant) return root;
  const DocumentSearch search{
      .is_document = is_picker_document,
      .may_hold = may_hold_picker_document,
      .file_keys = {"config-file", "configFile", "pluginsConfigFile"},
  };
  FoundDocument found = find_in_objects(root, search);
  if (found.node == nullptr) {
    if (found.hint.empty())
      found.hint =
          "it is a Kubernetes " + printable(root->find("kind")->value->text()) +
          ": give the EndpointPickerConfig itself, or the ConfigMap or Helm values with it";
    diagnostics.error(root->where(), path, "holds no EndpointPickerConfig", found.hint);
  }
  return found.node;
}

/// The router of one stack of llm-d-benchmark (config/scenarios/**), or null.
ConfigNode::Ptr stack_router(const ConfigNode& stack) {
  const ConfigNode::Ptr router = value_at(stack, {"router"});
  return router != nullptr ? router : value_at(stack, {"modelservice", "router"});
}

/// The values of the router inside a scenario file of llm-d-benchmark, as its chart would get them;
/// `root` itself for any other file. Null, with an error, when several stacks have one.
ConfigNode::Ptr unwrap_benchmark(const ConfigNode::Ptr& root, const std::string& path,
                                 Diagnostics& diagnostics) {
  const ConfigNode::Member* stacks = root->find("scenario");
  if (stacks == nullptr || !stacks->value->is_sequence()) return root;
  ConfigNode::Ptr router;
  for (const ConfigNode::Ptr& stack : stacks->value->items()) {
    const ConfigNode::Ptr own = stack_router(*stack);
    if (own != nullptr && router != nullptr) {
      diagnostics.error(own->where(), path, "is the router of a second stack in the file",
                        "give the EndpointPickerConfig of one of them");
      return nullptr;
    }
    if (own != nullptr) router = own;
  }
  const ConfigNode* shared = root->child("shared");
  if (router == nullptr && shared != nullptr) router = stack_router(*shared);
  if (router == nullptr) return root;
  return ConfigNode::make_map({{"router", router->where(), router}}, root->where());
}

/// A variable of the shell that stands in a text, such as `${NAME}`; empty when there is none.
std::string variable_in(const std::string& text) {
  const std::size_t start = text.find("${");
  const std::size_t end = start == std::string::npos ? start : text.find('}', start);
  return end == std::string::npos ? std::string() : text.substr(start, end + 1 - start);
}

void find_variables(const ConfigNode& node, std::vector<const ConfigNode*>& found) {
  if (node.is_scalar() && !variable_in(node.text()).empty()) found.push_back(&node);
  for (const ConfigNode::Ptr& child : children_of(node)) find_variables(*child, found);
}

/// Tells of variables that nobody has filled in: an error where the value is wrong for it, else a
/// warning.
Diagnostics explain_variables(const ConfigNode& document, const Diagnostics& found) {
  std::vector<const ConfigNode*> variables;
  find_variables(document, variables);
  if (variables.empty()) return found;
  const auto words = [](const ConfigNode& node) {
    return "the variable " + printable(variable_in(node.text())) + " has not been filled in";
  };
  const std::string hint = "write its value, or pass the file through envsubst";
  Diagnostics out;
  std::vector<const ConfigNode*> told;
  for (Diagnostic d : found.items()) {
    const auto at = std::find_if(variables.begin(), variables.end(), [&](const ConfigNode* node) {
      return same_place(node->where(), d.where);
    });
    if (at != variables.end()) {
      d.message += ": " + words(**at);
      d.hint = hint;
      told.push_back(*at);
    }
    out.add(std::move(d));
  }
  for (const ConfigNode* node : variables)
    if (std::find(told.begin(), told.end(), node) == told.end())
      out.warning(node->where(), {}, words(*node), hint);
  for (const KeyUse& use : found.keys()) out.key(use);
  return out;
}

/// The release of the image decides like one that was asked for, unless one was.
void take_image_tag(const std::string& tag, policies::LoadOptions& options) {
  if (options.era) return;
  options.era = policies::parse_era(tag);
  const std::string note = policies::era_note(tag);
  if (options.era) options.era_origin = "image tag " + (note.empty() ? tag : note);
}

/// The copies that the chart's values ask for. A template turns text that is a number into it.
policies::RouterReplicas router_replicas(const policies::ChartValues& chart, Diagnostics& found) {
  policies::RouterReplicas replicas;
  replicas.all_serve = chart.all_replicas_serve;
  if (chart.replicas == nullptr) return replicas;
  replicas.where = chart.replicas->where();
  if (chart.replicas->is_null()) return replicas;
  const ConfigNode::Ptr number = plain(chart.replicas->text(), replicas.where);
  const Parsed<std::int64_t> count = parse_integer(
      chart.replicas->is_scalar() ? *number : *chart.replicas, IntRange{0, 1'000'000});
  if (count.value)
    replicas.count = *count.value;
  else
    found.error(replicas.where, "replicas", count.message, count.hint);
  return replicas;
}

std::optional<policies::EndpointPickerConfig> load_located(const ConfigNode& document,
                                                           const LocatedDocument& located,
                                                           policies::LoadOptions options,
                                                           Diagnostics& found) {
  if (!options.distribution) options.distribution = located.distribution;
  take_image_tag(located.chart.image_tag, options);
  std::optional<policies::EndpointPickerConfig> config =
      policies::load_endpoint_picker_config(document, options, found);
  if (config) config->replicas = router_replicas(located.chart, found);
  return config;
}

/// The environment of the predictor's servers as the chart writes it.
ConfigNode::Ptr predictor_environment(const ConfigNode& values, Diagnostics& diagnostics) {
  std::vector<ConfigNode::Member> variables;
  const ConfigNode* predictor = policies::chart_predictor(values);
  if (predictor == nullptr) return ConfigNode::make_null({});
  for (const auto& [server, syncs] :
       {std::pair("trainingServer", false), std::pair("predictionServers", true)}) {
    const ConfigNode* config = node_at(*predictor, {server, "config"});
    if (config == nullptr) continue;
    // Both have a MODEL_TYPE and an OBJECTIVE_TYPE; only the one that trains decides by them.
    for (const ConfigNode::Member& m : config->members())
      if ((m.key == "MODEL_SYNC_INTERVAL_SEC") == syncs) variables.push_back(m);
  }
  ConfigNode::Ptr environment = ConfigNode::make_map(std::move(variables), predictor->where());
  (void)sim::settings_of(*environment, diagnostics);
  return environment;
}

/// A file without a byte: comments alone do not pass for an empty document upstream.
bool is_empty_file(const ConfigNode& root) {
  std::error_code failed;
  return root.kind() == ConfigNode::Kind::kNull &&
         std::filesystem::file_size(root.where().file, failed) == 0 && !failed;
}

// llm-d-router 0.9.0 pkg/epp/config/loader/configloader.go.
std::optional<policies::EndpointPickerConfig> load_empty(const SourceLocation& where,
                                                         const LocatedDocument& located,
                                                         const policies::LoadOptions& options,
                                                         Diagnostics& diagnostics,
                                                         const std::string& path) {
  const ConfigNode::Ptr document = policies::default_document(where, "llm-d.ai/v1alpha1");
  std::optional<policies::EndpointPickerConfig> config =
      load_located(*document, located, options, diagnostics);
  if (config && !policies::traits(config->era).default_document) {
    diagnostics.error(where, path,
                      "is empty: routers of era " + std::string(policies::name(config->era)) +
                          " do not start without a document");
    return std::nullopt;
  }
  diagnostics.warning(where, path,
                      "is empty, so the router's default is used: queue-scorer 2, "
                      "kv-cache-utilization-scorer 2, prefix-cache-scorer 3");
  return config;
}

std::optional<policies::EndpointPickerConfig> load_chart_default(
    const ConfigNode& values, const LocatedDocument& located, const policies::LoadOptions& options,
    Diagnostics& diagnostics, const std::string& path) {
  const bool predicts =
      values.find("router") != nullptr && policies::chart_predictor(values) != nullptr;
  diagnostics.warning(
      values.where(), path,
      std::string("holds no EndpointPickerConfig, so the chart's default is used: ") +
          (predicts ? "latency-scorer with predictions"
                    : "queue-scorer 2, kv-cache-utilization-scorer 2, "
                      "prefix-cache-scorer 3"),
      "write the EndpointPickerConfig out if another file of values has one");
  return load_located(*policies::chart_default_document(values), located, options, diagnostics);
}

}  // namespace

void check_plugins(policies::EndpointPickerConfig& config, Diagnostics& diagnostics,
                   const std::string& path) {
  Diagnostics found;
  if (auto needs = policies::requirements(config, found))
    config.needs = std::make_shared<const policies::Requirements>(std::move(*needs));
  add_below(path, found, diagnostics);
}

std::optional<PickerDocument> find_picker_document(const std::string& path) {
  Diagnostics known;  // Reported when the scenario was read.
  PickerDocument document;
  const ConfigNode::Ptr root = read_manifest_file(path, {.file = path}, {}, known);
  if (root == nullptr || is_empty_file(*root)) return std::nullopt;
  constexpr std::size_t kMostBytes = std::size_t{16} << 20U;
  if (!read_text_file(path, {.file = path}, {}, kMostBytes, document.text, known))
    return std::nullopt;
  const ConfigNode::Ptr values = unwrap_benchmark(root, {}, known);
  ConfigNode::Ptr node = values == nullptr ? nullptr : find_document(values, {}, known);
  // Values hold the document as text, and that text may be a manifest again; no file goes deeper.
  for (int depth = 0; node != nullptr && depth < 4; ++depth) {
    if (!node->is_scalar()) {
      const LocatedDocument located = policies::find_endpoint_picker_config(*node);
      if (located.kind == LocatedDocument::Kind::kDocument) {
        document.root = ConfigNode::Ptr(node, located.node);
        document.is_bare = document.root == root;
        return document;
      }
      if (located.kind != LocatedDocument::Kind::kText) return std::nullopt;
      node = ConfigNode::Ptr(node, located.node);
    }
    document.text = node->text();
    node = parse_config(document.text, {.file = path}, known);
  }
  return std::nullopt;
}

std::optional<policies::EndpointPickerConfig> load_endpoint_picker(
    const ConfigNode::Ptr& root, const policies::LoadOptions& options, Diagnostics& diagnostics,
    const std::string& path) {
  if (is_empty_file(*root)) return load_empty(root->where(), {}, options, diagnostics, path);
  const ConfigNode::Ptr values = unwrap_benchmark(root, path, diagnostics);
  const ConfigNode::Ptr file =
      values == nullptr ? nullptr : find_document(values, path, diagnostics);
  if (file == nullptr) return std::nullopt;
  if (file != values) note_keys(*root, path, key_table("router values"), file.get(), diagnostics);
  if (file->is_scalar() && file != values) {
    const ConfigNode::Ptr embedded = parse_embedded(*file, diagnostics);
    return embedded == nullptr ? std::nullopt
                               : load_endpoint_picker(embedded, options, diagnostics, path);
  }
  const LocatedDocument located = policies::find_endpoint_picker_config(*file);
  if (located.kind == LocatedDocument::Kind::kNotFound) {
    diagnostics.error(file->where(), path, "holds no EndpointPickerConfig", located.hint);
    return std::nullopt;
  }
  const ConfigNode& whole = file == values ? *root : *file;
  if (located.kind == LocatedDocument::Kind::kChartDefault) {
    note_keys(whole, path, key_table("router values"), nullptr, diagnostics);
    std::optional<policies::EndpointPickerConfig> config =
        load_chart_default(*file, located, options, diagnostics, path);
    if (config) config->predictor = predictor_environment(*file, diagnostics);
    return config;
  }
  const bool is_text = located.kind == LocatedDocument::Kind::kText;
  const ConfigNode* node = located.node;
  if (is_text && node->text().empty())
    return load_empty(node->where(), located, options, diagnostics, path);
  if (node != file.get()) note_keys(whole, path, key_table("router values"), node, diagnostics);
  Diagnostics found;
  ConfigNode::Ptr embedded;
  if (is_text) {
    embedded = parse_embedded(*node, found);
    node = embedded.get();
  }
  std::optional<policies::EndpointPickerConfig> config;
  if (node != nullptr) {
    Diagnostics judged;
    check_scalars(*node, {}, found);
    config = load_located(*node, located, options, judged);
    // The plugins of a file with errors are never built later, so they are checked now.
    if (config && (found.has_errors() || judged.has_errors())) check_plugins(*config, judged);
    append(found, without_places_of(found, judged));
  }
  if (config) config->predictor = predictor_environment(*file, diagnostics);
  add_below(path, node == nullptr ? found : explain_variables(*node, found), diagnostics);
  return found.has_errors() ? std::nullopt : std::move(config);
}

}  // namespace routesim::tools
