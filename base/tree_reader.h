// Fills a described struct (base/describe.h) from a ConfigNode. Strict: unknown keys, wrong
// types, values out of range and missing keys are all reported, each at its line. Scenarios, plans,
// sweeps, catalogues, router documents and the parameters of plugins are all read here.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "base/describe.h"

namespace routesim {

/// Describes one object: calls `field` for each key of it.
using DescribeFunction = std::function<void(Describer&)>;

/// The place of each value that was read: `explain` prints it as origin, and a cross-field check
/// that only knows key paths finds its line by it.
class Provenance {
 public:
  void record(const std::string& path, const SourceLocation& where) { places_[path] = where; }
  /// The place of this very path, or null when the value is a default.
  const SourceLocation* find(const std::string& path) const;
  /// The place of the path or of its closest enclosing value that was read.
  SourceLocation nearest(const std::string& path) const;
  /// The files that values were read from.
  std::set<std::string> files() const;
  /// Gives a place to every diagnostic that has a path but no file yet. A path that was never read
  /// is also looked for below each of `prefixes`, since a library does not know where its part
  /// stands in the whole file; the diagnostic's path is completed then.
  Diagnostics located(const Diagnostics& diagnostics,
                      const std::vector<std::string>& prefixes = {}) const;

 private:
  std::map<std::string, SourceLocation> places_;
};

struct ReadOptions {
  std::string path = {};             ///< Key path of the root in messages, e.g. `workload.load`.
  Provenance* provenance = nullptr;  ///< Filled when given.
  /// Keys of the root map that someone else reads.
  std::vector<std::string> ignored_keys = {};
  /// Format that the ledger of keys lists what is read under, a literal; empty: not recorded.
  std::string_view format = "scenario";
  /// Values follow Go's decoder, as in the documents of routers: null keeps the default, 2.0 is a
  /// whole number, and durations are text such as 1h30m.
  bool go_values = false;
  /// Null stands for a number that does not exist, NaN, as in results.
  bool null_numbers = false;
  /// Releases of the router that ignore unknown keys get a warning instead of an error.
  Severity unknown_key = Severity::kError;
};

/// Reads `root` into whatever `describe` describes. Keys that are absent keep their value.
void read_config(const ConfigNode& root, const DescribeFunction& describe_object,
                 Diagnostics& diagnostics, const ReadOptions& options = {});

/// The same for a described struct.
template <class T>
void read_struct(const ConfigNode& root, T& value, Diagnostics& diagnostics,
                 const ReadOptions& options = {}) {
  read_config(
      root, [&value](Describer& d) { describe(d, value); }, diagnostics, options);
}

/// Whether a value switches nothing on: nothing, false, 0, an empty text, list or map.
bool is_off(const ConfigNode& node);

/// Called for each key that has a value of its own: not for a map, nor for a list of maps. `path`
/// is relative to the root.
using KeyVisitor = std::function<void(const ConfigNode& value, const std::string& path,
                                      const SourceLocation& key_where)>;
/// Visits every such key below `root`, except in the node `left_out` (null: nowhere).
void for_each_key(const ConfigNode& root, const ConfigNode* left_out, const KeyVisitor& visit);

/// Whether an error stands at this key path, above it or below it: then what was read there is not
/// what was written, and says nothing.
bool is_broken(const Diagnostics& diagnostics, const std::string& path);

/// Adds all of `from` to `to`.
void append(Diagnostics& to, const Diagnostics& from);

/// `parent.key`, or `key` at the root.
std::string child_path(const std::string& parent, std::string_view key);
/// `parent[2]`.
std::string element_path(const std::string& parent, std::size_t index);

}  // namespace routesim
