// Where the characters of a shell's text stand: in a scalar of a YAML file, or in a file of their
// own.
#pragma once

#include <functional>
#include <string>

#include "base/config_node.h"

namespace routesim::tools {

/// The place of a text's character, from its line (from 0) and its column (from 0).
using ShellPlaces = std::function<SourceLocation(int line, int column)>;

/// The places inside a scalar: exact in a literal block, else the scalar's own.
ShellPlaces places_in(const ConfigNode& scalar);
/// The places inside a file.
ShellPlaces places_in_file(const std::string& path);

/// The text of a scalar as a shell reads it. Where YAML has joined its lines (it is no literal
/// block), a backslash before a blank stood at the end of a line.
std::string shell_text(const ConfigNode& scalar);

}  // namespace routesim::tools
