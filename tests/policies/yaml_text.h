// YAML for the tests of policies, by the reader that the command uses.
#pragma once

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "tests/base/messages.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::policies {

/// The tree of a text that has no errors.
inline ConfigNode::Ptr parse_yaml(const std::string& text) {
  Diagnostics diagnostics;
  const ConfigNode::Ptr root = parse_config(text, {.file = "test.yaml"}, diagnostics);
  if (root == nullptr || diagnostics.has_errors())
    throw std::runtime_error(messages_of(diagnostics));
  return root;
}

/// Reads a file below the repository root.
inline std::string read_repository_file(const std::string& path) {
  std::ifstream in(std::string(ROUTESIM_SOURCE_DIR) + "/" + path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace routesim::policies
