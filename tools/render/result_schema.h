// What results look like, for programs that read them.
#pragma once

#include <string_view>

namespace routesim::tools {

/// JSON Schema (draft-07) of what render_json() writes.
std::string_view result_schema();

}  // namespace routesim::tools
