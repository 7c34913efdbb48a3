#include "policies/config/document.h"

#include "policies/config/document_loader.h"
#include "policies/config/document_wiring.h"
#include "policies/config/factory.h"
#include "policies/config/inert_keys.h"

namespace routesim::policies {

namespace {

/// Builds the plugins of a document, only to report what is wrong with their parameters.
void build_plugins(EndpointPickerConfig config, const PluginRegistry& registry,
                   Diagnostics& diagnostics) {
  PluginSet plugins;
  SignalNeeds needs;
  BuildContext(config, registry, plugins, needs, false, diagnostics).build_all();
}

}  // namespace

std::optional<EndpointPickerConfig> load_endpoint_picker_config(const ParameterValue& root,
                                                                const LoadOptions& options,
                                                                Diagnostics& diagnostics) {
  EndpointPickerConfig config;
  DocumentReferences references;
  Diagnostics found;
  decode_document(root, config, references, found);
  fold_old_names(config, references, found);
  if (options.distribution) config.distribution = *options.distribution;
  if (options.era) {
    config.era = *options.era;
    config.era_origin = options.era_origin;
  } else {
    infer_era(root, config, references, found);
  }
  const PluginRegistry& registry =
      options.registry != nullptr ? *options.registry : standard_registry();
  if (root.is_map()) complete_document(config, references, registry, found);
  for (const PluginSpec& spec : config.plugins)
    if (const PluginType* type = registry.find(spec.type);
        type != nullptr && type->support == PluginType::Support::kInert)
      check_inert_parameters(spec, unknown_keys(traits(config.era)), found);
  if (!found.has_errors()) check_wiring(config, found);
  // A scheduler checks the parameters, but nobody will build one.
  if (found.has_errors() && root.is_map()) build_plugins(config, registry, found);
  for (const Diagnostic& d : found.items()) diagnostics.add(d);
  for (const KeyUse& use : found.keys()) diagnostics.key(use);
  if (found.has_errors()) return std::nullopt;
  return config;
}

namespace {

using Kind = LocatedDocument::Kind;

/// Charts put pluginsCustomConfig below one key (`inferenceExtension`, `inferencePool`) or two
/// (`router.epp`).
constexpr int kChartDepth = 2;
constexpr std::string_view kChartDefaultFile = "default-plugins.yaml";

bool is_document(const ParameterValue& v) {
  const ParameterValue* kind = v.find("kind");
  return kind != nullptr && kind->is_string() && kind->string() == "EndpointPickerConfig";
}

std::string below(const std::string& base, const std::string& key) {
  return base.empty() ? key : base + "." + key;
}

/// The document in `files`, a map of file names to documents or their text.
LocatedDocument chosen_file(const ParameterValue& files, const ParameterValue* wanted,
                            const std::string& path) {
  const auto* chosen = &files.map().front();
  for (const auto& entry : files.map())
    if (wanted != nullptr && wanted->is_string() && entry.first == wanted->string())
      chosen = &entry;
  if (!chosen->second.is_string() && !chosen->second.is_map()) return {};
  return {.kind = chosen->second.is_string() ? Kind::kText : Kind::kDocument,
          .node = &chosen->second,
          .path = path + "[" + chosen->first + "]"};
}

/// Whether the image is the endpoint picker of llm-d; charts name it or leave it to their default.
bool is_router_image(const ParameterValue& image) {
  bool named = false;
  for (const char* key : {"name", "repository"}) {
    const ParameterValue* v = image.find(key);
    if (v == nullptr || !v->is_string()) continue;
    named = true;
    for (const char* product : {"llm-d-inference-scheduler", "llm-d-router"})
      if (v->string().find(product) != std::string::npos) return true;
  }
  return !named;
}

ChartValues chart_values(const ParameterValue& chart) {
  ChartValues values;
  const ParameterValue* image = chart.find("image");
  const ParameterValue* tag = image == nullptr ? nullptr : image->find("tag");
  if (tag != nullptr && tag->is_string() && is_router_image(*image))
    values.image_tag = tag->string();
  values.replicas = chart.find("replicas");
  // The second form is how a flag with a value passes through charts that only write names.
  const ParameterValue* flags = chart.find("flags");
  if (flags == nullptr) return values;
  const ParameterValue* elect = flags->find("ha-enable-leader-election");
  values.all_replicas_serve = (elect != nullptr && elect->to_text() == "false") ||
                              flags->find("ha-enable-leader-election=false") != nullptr;
  return values;
}

LocatedDocument find_in_values(const ParameterValue& chart, const std::string& path, int depth) {
  const ParameterValue* files = chart.find("pluginsCustomConfig");
  if (files != nullptr && files->is_map() && !files->map().empty()) {
    LocatedDocument found =
        chosen_file(*files, chart.find("pluginsConfigFile"), below(path, "pluginsCustomConfig"));
    found.chart = chart_values(chart);
    if (found.kind != Kind::kNotFound) return found;
  }
  if (depth == 0 || !chart.is_map()) return {};
  for (const auto& [key, value] : chart.map()) {
    LocatedDocument found = find_in_values(value, below(path, key), depth - 1);
    if (found.kind != Kind::kNotFound) return found;
  }
  return {};
}

/// The values of the endpoint picker itself, which stand below another key in each chart.
const ParameterValue* picker_values(const ParameterValue& root) {
  if (const ParameterValue* router = root.find("router")) return router->find("epp");
  return root.find("inferenceExtension");
}

LocatedDocument without_document(const ParameterValue& root) {
  bool is_chart = false;
  for (const char* chart : {"inferenceExtension", "inferencePool", "router"})
    is_chart = is_chart || root.find(chart) != nullptr;
  if (!is_chart)
    return {.path = {},
            .hint =
                "expected kind: EndpointPickerConfig, or Helm values with config: or "
                "pluginsCustomConfig:"};
  const ParameterValue* picker = picker_values(root);
  const ParameterValue* file = picker == nullptr ? nullptr : picker->find("pluginsConfigFile");
  if (file != nullptr && (!file->is_string() || file->string() != kChartDefaultFile))
    return {.path = {},
            .hint = "these Helm values name " + file->to_text() +
                    ", which they do not hold: write the EndpointPickerConfig out"};
  LocatedDocument found{.kind = Kind::kChartDefault, .node = &root, .path = {}};
  if (picker != nullptr) found.chart = chart_values(*picker);
  return found;
}

ParameterValue map_at(const SourceLocation& where, ParameterValue::Map map) {
  ParameterValue value(std::move(map));
  value.where = where;
  return value;
}

}  // namespace

LocatedDocument find_endpoint_picker_config(const ParameterValue& root) {
  if (is_document(root)) return {.kind = Kind::kDocument, .node = &root, .path = ""};
  if (const ParameterValue* config = root.find("config"); config && is_document(*config))
    return {.kind = Kind::kDocument,
            .node = config,
            .path = "config",
            .distribution = Distribution::kHeimdall};
  LocatedDocument found = find_in_values(root, "", kChartDepth);
  if (found.kind != Kind::kNotFound) return found;
  // A document with a wrong or missing kind is better reported than not found.
  if (root.find("plugins") != nullptr || root.find("schedulingProfiles") != nullptr)
    return {.kind = Kind::kDocument, .node = &root, .path = ""};
  return without_document(root);
}

// llm-d-router pkg/epp/config/loader/defaults.go, config/charts/routerlib/templates/_config.yaml.
ParameterValue default_document(const SourceLocation& at, const std::string& api_version) {
  ParameterValue::List plugins, entries;
  for (const auto& [type, weight] :
       {std::pair("queue-scorer", 2.0), std::pair("kv-cache-utilization-scorer", 2.0),
        std::pair("prefix-cache-scorer", 3.0)}) {
    plugins.push_back(map_at(at, {{"type", ParameterValue(std::string(type))}}));
    entries.push_back(map_at(at, {{"pluginRef", ParameterValue(std::string(type))},
                                  {"weight", ParameterValue(weight)}}));
  }
  ParameterValue profile = map_at(at, {{"name", ParameterValue(std::string("default"))},
                                       {"plugins", ParameterValue(std::move(entries))}});
  return map_at(at,
                {{"apiVersion", ParameterValue(api_version)},
                 {"kind", ParameterValue(std::string("EndpointPickerConfig"))},
                 {"plugins", ParameterValue(std::move(plugins))},
                 {"schedulingProfiles", ParameterValue(ParameterValue::List{std::move(profile)})}});
}

ParameterValue chart_default_document(const ParameterValue& values) {
  return default_document(values.where, values.find("router") != nullptr
                                            ? "llm-d.ai/v1alpha1"
                                            : "inference.networking.x-k8s.io/v1alpha1");
}

}  // namespace routesim::policies
