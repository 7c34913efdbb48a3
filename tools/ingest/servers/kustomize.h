// Kustomize folders: what `kubectl kustomize FOLDER` would print, for what published guides use.
#pragma once

#include <string>
#include <vector>

#include "base/config_node.h"
#include "base/key_fate.h"

namespace routesim::tools {

/// The file that makes `folder` a kustomize folder; empty when there is none.
std::string kustomization_in(const std::string& folder);

/// Whether `path` is itself such a file, by its name.
bool is_kustomization(const std::string& path);

/// A folder, built.
struct Kustomized {
  /// A `kind: List` of the objects. Each value keeps its place in the file that wrote it last.
  ConfigNode::Ptr objects;
  /// The files with whole objects and those of ConfigMaps, in the order in which they are read.
  std::vector<std::string> files = {};
};

/// Builds the folder of a kustomization file: resources and bases, components, ConfigMap
/// generators, patches (strategic merge and JSON 6902), prefixes of names, labels, replicas and
/// images. What is not read (remote resources, replacements, charts) is a warning at its line. Null
/// objects after an error. Lists of objects that are no built-in kind are replaced whole by a
/// patch, as kustomize does, unless an `openapi` schema is named: then they merge as those of pods
/// do.
Kustomized build_kustomization(const std::string& file, const SourceLocation& asked_from,
                               const std::string& key_path, Diagnostics& diagnostics);

}  // namespace routesim::tools
