// Trees made from other trees: a variant's overrides laid over the base, and `--set` assignments.
// Both happen before typing, so everything goes through the same strict reader afterwards.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "base/tree_reader.h"

namespace routesim::tools {

/// `over` laid on `base`. Maps merge key by key. Lists whose elements all carry a `name` (or all a
/// `pluginRef`) merge element by element, new names are appended; any other value replaces.
ConfigNode::Ptr merge_configs(const ConfigNode::Ptr& base, const ConfigNode::Ptr& over);

/// The map with the value of one key changed; what is no map, or has no such key, stays as it is.
ConfigNode::Ptr change_member(const ConfigNode::Ptr& map, std::string_view key,
                              const std::function<ConfigNode::Ptr(const ConfigNode::Ptr&)>& change);

/// The same tree with every node at `where`.
ConfigNode::Ptr moved_to(const ConfigNode::Ptr& node, const SourceLocation& where);

/// Whether a value stands on the command line (`--set`), not in a file.
bool is_from_command_line(const SourceLocation& where);

/// A path written in a file, resolved against that file's folder; from the command line or from
/// /dev/stdin and /dev/fd, against the working directory.
std::string resolve_path(const std::string& path, const SourceLocation& written_at);

/// One step of a key path.
struct PathStep {
  std::string key;                   ///< A key, or the name of a list element.
  bool in_brackets = false;          ///< `[prefill]` or `[0]`: selects from a list.
  std::optional<std::size_t> index;  ///< Set when the brackets hold a number.
};

/// `cluster.pools[0].replicas=4`, taken apart.
struct Assignment {
  std::string path;  ///< As written, for messages.
  std::vector<PathStep> steps;
  ConfigNode::Ptr value;
  SourceLocation where = {.file = "--set"};  ///< Place of the assignment, for messages.
};

/// Takes a key path apart; nothing when it is malformed.
std::optional<std::vector<PathStep>> parse_key_path(std::string_view path);

/// Parses one `--set` argument. A value that opens with `[`, `{` or a quote is YAML, any other is a
/// bare word. Returns nothing, with a diagnostic placed at `--set`, when it is malformed.
std::optional<Assignment> parse_assignment(const std::string& argument, Diagnostics& diagnostics);

/// The same for text of a file: the assignment and its errors stand at `where`, not on the command
/// line.
std::optional<Assignment> parse_assignment_at(const std::string& text, const SourceLocation& where,
                                              Diagnostics& diagnostics);

/// The list of assignments at `path` of a file that `provenance` describes, without the elements
/// that could not be read (`read` has their errors); `--set` arguments when `provenance` is null.
std::vector<Assignment> parse_assignments(const std::vector<std::string>& texts,
                                          const std::string& path, const Provenance* provenance,
                                          const Diagnostics& read, Diagnostics& diagnostics);

/// Warns of every assignment of the command line among `early` whose key one of `late`, which are
/// made after it, sets too: it has no effect. `by` says where the late ones stand, `pools` how the
/// pools are called, which paths name by number or by name.
void warn_overridden(const std::vector<Assignment>& early, const std::vector<Assignment>& late,
                     const std::string& by, const std::vector<std::string>& pools,
                     Diagnostics& diagnostics);

/// Loads a file that a scalar refers to, so that an assignment can reach into it; null when the
/// scalar is not such a reference.
using ReferenceLoader = std::function<ConfigNode::Ptr(const ConfigNode&)>;

/// The tree with the assignment made; missing maps on the way are created. On error adds a
/// diagnostic and returns `root` unchanged.
ConfigNode::Ptr apply_assignment(const ConfigNode::Ptr& root, const Assignment& assignment,
                                 Diagnostics& diagnostics, const ReferenceLoader& load = {});

}  // namespace routesim::tools
