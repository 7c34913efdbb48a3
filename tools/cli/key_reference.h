// The reference page of the ledger: what becomes of the keys of every format that is not
// routesim's own.
#pragma once

#include <string>

namespace routesim::tools {

/// Markdown, made from the tables that the readers use.
std::string key_reference();

}  // namespace routesim::tools
