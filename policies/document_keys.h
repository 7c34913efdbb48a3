// The ledger of an EndpointPickerConfig's own keys; the parameters of plugins are described in
// config.h, those of plugins without a part in decisions in inert_keys.cpp.
#pragma once

#include <string>

#include "base/diagnostic.h"
#include "base/key_fate.h"
#include "policies/parameter_value.h"

namespace routesim::policies {

/// Name of the format in the ledger.
inline constexpr std::string_view kDocumentFormat = "EndpointPickerConfig";

/// Every key of the document outside `plugins[].parameters`.
const KeyTable& document_keys();

/// Whether the value has no keys of its own.
bool is_leaf(const ParameterValue& value);

/// Records the fate of a key of the document that has a value of its own; others are recorded key
/// by key. `path` is relative to the document.
void note_document_key(const ParameterValue& value, const std::string& path,
                       Diagnostics& diagnostics);

}  // namespace routesim::policies
