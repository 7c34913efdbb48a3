// A reader for the plain YAML of these tests (block maps and lists, scalars, literal blocks, flow
// lists of strings), so that the library's tests need no parser library. The real one is in tools/.
#pragma once

#include <string>

#include "policies/parameter_value.h"

namespace routesim::policies {

/// Throws std::runtime_error on anything outside the subset.
ParameterValue parse_mini_yaml(const std::string& text, const std::string& file = "test.yaml");
/// Reads a file below the repository root.
std::string read_repository_file(const std::string& path);

}  // namespace routesim::policies
