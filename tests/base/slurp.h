// Reads a whole file.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace routesim {

/// All bytes of a file; empty when it cannot be read.
inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

}  // namespace routesim
