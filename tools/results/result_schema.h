// The JSON Schema of results, made from their description.
#pragma once

#include <string>

namespace routesim::tools {

/// Draft-07, with a definition for each kind of object: what `routesim schema result` prints.
std::string result_schema();

}  // namespace routesim::tools
