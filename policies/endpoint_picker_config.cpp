#include "policies/endpoint_picker_config.h"

namespace routesim::policies {

const PluginSpec* EndpointPickerConfig::find(const std::string& plugin) const {
  for (const PluginSpec& spec : plugins)
    if (spec.name == plugin) return &spec;
  return nullptr;
}

const std::string* openai_parser(const EndpointPickerConfig& config) {
  for (const std::string& name : config.parsers) {
    const PluginSpec* spec = config.find(name);
    const std::string& type = spec == nullptr ? name : spec->type;  // Defaults are not declared.
    if (type == "openai-parser" || type == "passthrough-parser") return &name;
  }
  return nullptr;
}

bool reads_prompts(const EndpointPickerConfig& config) {
  const std::string* parser = openai_parser(config);
  if (parser == nullptr) return true;
  const PluginSpec* spec = config.find(*parser);
  return (spec == nullptr ? *parser : spec->type) != "passthrough-parser";
}

}  // namespace routesim::policies
