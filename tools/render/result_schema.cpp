#include "tools/render/result_schema.h"

#include "tools/render/result_schema_json.h"

namespace routesim::tools {

std::string_view result_schema() { return kResultSchemaJson; }

}  // namespace routesim::tools
