// From files and texts to trees: reads YAML and JSON strictly, with the place of every value.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/config_node.h"
#include "base/diagnostic.h"

namespace routesim {

/// Limits on hostile input. They are far above any honest file.
struct ConfigLimits {
  std::size_t max_bytes = 16U << 20;  ///< Size of one file.
  int max_depth = 64;                 ///< Nesting, aliases expanded.
  std::size_t max_nodes = 1'000'000;  ///< Values, aliases expanded.
};

/// The place of a text inside an outer file.
struct TextPlacement {
  std::string file;       ///< Name used in diagnostics.
  int line_offset = 0;    ///< Added to every line number.
  int column_offset = 0;  ///< Added to every column number.
};

/// Parses YAML 1.2 (JSON included) strictly: duplicate keys, tags, further documents, keys that are
/// not text and invalid UTF-8 are errors; aliases and merge keys are expanded. Returns the tree
/// whenever one could be built, even if errors were added, so that a reader can go on and find the
/// rest; null after a syntax error or an exceeded limit.
ConfigNode::Ptr parse_config(const std::string& text, const TextPlacement& placement,
                             Diagnostics& diagnostics, const ConfigLimits& limits = {});

/// Like `parse_config` for a file of Kubernetes objects, which may hold several documents: these
/// become the items of one `kind: List`, as `kubectl get -o yaml` prints them.
ConfigNode::Ptr parse_manifest(const std::string& text, const TextPlacement& placement,
                               Diagnostics& diagnostics, const ConfigLimits& limits = {});

/// Reads and parses a file. A file that cannot be read is a diagnostic too.
ConfigNode::Ptr read_config_file(const std::string& path, Diagnostics& diagnostics,
                                 const ConfigLimits& limits = {});

/// Parses the YAML text held by a scalar (Helm values do this), with places in the outer file.
ConfigNode::Ptr parse_embedded(const ConfigNode& scalar, Diagnostics& diagnostics,
                               const ConfigLimits& limits = {});

/// Reads a whole file into `text`. On failure adds a diagnostic placed at `asked_from` (the
/// reference that named the file, or the file itself) and returns false.
bool read_text_file(const std::string& path, const SourceLocation& asked_from,
                    const std::string& key_path, std::size_t max_bytes, std::string& text,
                    Diagnostics& diagnostics);

}  // namespace routesim
