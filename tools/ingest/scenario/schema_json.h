// JSON Schema (draft-07) and the reference page of a described struct, for editors and people.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "tools/ingest/tree/description.h"

namespace routesim::tools {

struct SchemaOptions {
  std::string id;  ///< `$id`; may be empty.
  std::string title;
  std::string description;
  /// Leave `required` out at every level: another part of the file may still supply the keys.
  bool partial = false;
  /// Map-valued keys that may also be written as a bare integer.
  std::function<bool(std::string_view)> integer_shorthand;
  /// Maps, and lists of maps, that (whose elements) may also be written as bare text: a path, or
  /// the short form of an expectation.
  std::function<bool(std::string_view)> text_shorthand;
  /// Another tool's name for a key, under which it may stand as well; empty when it has none.
  std::function<std::string_view(std::string_view)> other_name;
  /// Maps whose keys may also be spelled as another tool's flags, which only the reader knows.
  std::function<bool(std::string_view)> flags;
  /// Objects that this key may hold a list of: the same object again, plus a required `name`.
  std::string variants_key;
};

/// The schema of an object built by describe_types.
std::string schema_json(const FieldDescription& object, const SchemaOptions& options);

/// One table per map: key, type, default, bounds, meaning. `path` names the root in headings.
std::string reference_markdown(const FieldDescription& object, const std::string& title);

}  // namespace routesim::tools
