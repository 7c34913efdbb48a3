#include "tools/ingest/shell_places.h"

namespace routesim::tools {

ShellPlaces places_in(const ConfigNode& scalar) {
  const int first_line = scalar.block_first_line();
  const int indent = scalar.block_indent();
  return [at = scalar.where(), first_line, indent](int line, int column) {
    SourceLocation where = at;
    if (first_line > 0) {
      where.line = first_line + line;
      where.column = indent + column + 1;
    }
    return where;
  };
}

ShellPlaces places_in_file(const std::string& path) {
  return [path](int line, int column) {
    return SourceLocation{.file = path, .line = line + 1, .column = column + 1};
  };
}

std::string shell_text(const ConfigNode& scalar) {
  std::string text = scalar.text();
  if (scalar.block_first_line() == 0)
    for (std::size_t p = text.find("\\ "); p != std::string::npos; p = text.find("\\ ", p))
      text[p] = ' ';
  return text;
}

}  // namespace routesim::tools
