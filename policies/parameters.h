// Reads the described parameters of plugins.
#pragma once

#include "policies/document_keys.h"
#include "policies/endpoint_picker_config.h"

namespace routesim::policies {

/// The parameters of a plugin; absent ones keep their default.
template <class P>
P read_parameters(const PluginSpec& spec, Severity unknown_key, Diagnostics& diagnostics) {
  P p{};
  const std::string path = spec.path.empty() ? spec.name : spec.path + ".parameters";
  read_struct(*spec.parameters, p, diagnostics, document_options(path, unknown_key));
  return p;
}

}  // namespace routesim::policies
