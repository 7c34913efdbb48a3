// How EndpointPickerConfig documents and the parameters of their plugins are read, and under which
// name the ledger lists their keys.
#pragma once

#include <string>
#include <string_view>

#include "base/tree_reader.h"
#include "policies/endpoint_picker_config.h"
#include "policies/era.h"

namespace routesim::policies {

/// Name of the format in the ledger.
inline constexpr std::string_view kDocumentFormat = "EndpointPickerConfig";

/// How this era treats parameters that it does not know.
inline Severity unknown_keys(const EraTraits& traits) {
  return traits.strict_parameters ? Severity::kError : Severity::kWarning;
}

/// Options to read a part of a document that stands at `path`.
inline ReadOptions document_options(std::string path, Severity unknown_key = Severity::kError) {
  return {.path = std::move(path),
          .format = kDocumentFormat,
          .go_values = true,
          .unknown_key = unknown_key};
}

/// The parameters of a plugin; absent ones keep their default.
template <class P>
P read_parameters(const PluginSpec& spec, Severity unknown_key, Diagnostics& diagnostics) {
  P p{};
  const std::string path = spec.path.empty() ? spec.name : spec.path + ".parameters";
  read_struct(*spec.parameters, p, diagnostics, document_options(path, unknown_key));
  return p;
}

}  // namespace routesim::policies
