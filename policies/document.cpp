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

LocatedDocument find_endpoint_picker_config(const ParameterValue& root) {
  const auto is_document = [](const ParameterValue& v) {
    const ParameterValue* kind = v.find("kind");
    return kind != nullptr && kind->is_string() && kind->string() == "EndpointPickerConfig";
  };
  using Kind = LocatedDocument::Kind;
  if (is_document(root)) return {Kind::kDocument, &root, "", Distribution::kLlmD};
  if (const ParameterValue* config = root.find("config"); config && is_document(*config))
    return {Kind::kDocument, config, "config", Distribution::kHeimdall};

  const ParameterValue* chart = root.find("inferenceExtension");
  std::string base = "inferenceExtension";
  if (const ParameterValue* router = root.find("router")) {
    if (const ParameterValue* epp = router->find("epp")) {
      chart = epp;
      base = "router.epp";
    }
  }
  if (chart != nullptr) {
    const ParameterValue* files = chart->find("pluginsCustomConfig");
    const ParameterValue* wanted = chart->find("pluginsConfigFile");
    if (files != nullptr && files->is_map() && !files->map().empty()) {
      const auto* chosen = &files->map().front();
      for (const auto& entry : files->map())
        if (wanted != nullptr && wanted->is_string() && entry.first == wanted->string())
          chosen = &entry;
      base += ".pluginsCustomConfig[" + chosen->first + "]";
      if (chosen->second.is_string())
        return {Kind::kText, &chosen->second, base, Distribution::kLlmD};
      if (chosen->second.is_map())
        return {Kind::kDocument, &chosen->second, base, Distribution::kLlmD};
    }
  }
  // A document with a wrong or missing kind is better reported than not found.
  if (root.find("plugins") != nullptr || root.find("schedulingProfiles") != nullptr)
    return {Kind::kDocument, &root, "", Distribution::kLlmD};
  return {};
}

}  // namespace routesim::policies
