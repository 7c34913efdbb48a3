#include "policies/document.h"

#include "policies/document_loader.h"
#include "policies/factory.h"

namespace routesim::policies {

const PluginSpec* EndpointPickerConfig::find(const std::string& plugin) const {
  for (const PluginSpec& spec : plugins)
    if (spec.name == plugin) return &spec;
  return nullptr;
}

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
    config.era_origin = "set";
  } else {
    infer_era(root, config, references, found);
  }
  const PluginRegistry& registry =
      options.registry != nullptr ? *options.registry : PluginRegistry::standard();
  if (root.is_map()) complete_document(config, references, registry, found);
  // The scheduler will read the parameters, but there will be none, so this is the time to say
  // what is wrong with them.
  if (found.has_errors())
    for (const PluginSpec& spec : config.plugins)
      if (const PluginType* type = registry.find(spec.type); type && type->check_parameters)
        type->check_parameters(spec, traits(config.era), found);
  for (const Diagnostic& d : found.items()) diagnostics.add(d);
  if (found.has_errors()) return std::nullopt;
  return config;
}

namespace {

using Kind = LocatedDocument::Kind;

/// Charts put pluginsCustomConfig below one key (`inferenceExtension`, `inferencePool`) or two
/// (`router.epp`).
constexpr int kChartDepth = 2;

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

LocatedDocument find_in_values(const ParameterValue& chart, const std::string& path, int depth) {
  const ParameterValue* files = chart.find("pluginsCustomConfig");
  if (files != nullptr && files->is_map() && !files->map().empty()) {
    LocatedDocument found =
        chosen_file(*files, chart.find("pluginsConfigFile"), below(path, "pluginsCustomConfig"));
    if (found.kind != Kind::kNotFound) return found;
  }
  if (depth == 0 || !chart.is_map()) return {};
  for (const auto& [key, value] : chart.map()) {
    LocatedDocument found = find_in_values(value, below(path, key), depth - 1);
    if (found.kind != Kind::kNotFound) return found;
  }
  return {};
}

/// Why there is no document, for files whose kind is plain.
std::string hint_without_document(const ParameterValue& root) {
  for (const char* chart : {"inferenceExtension", "inferencePool", "router"})
    if (root.find(chart) != nullptr)
      return "these Helm values leave the plugins to the chart's default: write the "
             "EndpointPickerConfig out";
  return "expected kind: EndpointPickerConfig, or Helm values with config: or "
         "pluginsCustomConfig:";
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
  return {.path = {}, .hint = hint_without_document(root)};
}

}  // namespace routesim::policies
