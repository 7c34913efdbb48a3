// The shape of a described struct, as data: the one visitor behind the resolved-config echo, the
// JSON Schema and the reference page.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "base/describe.h"
#include "base/tree_reader.h"

namespace routesim::tools {

/// One key, its type, its bounds and its present value.
struct FieldDescription {
  enum class Kind { kBool, kInteger, kReal, kText, kDuration, kChoice, kDocument, kObject, kList };

  Kind kind = Kind::kObject;
  std::string name;  ///< Empty for the root, list elements and optional contents.
  std::string doc;   ///< Without `why`; see documentation().
  Fate fate = Fate::kUsed;
  std::string_view why;  ///< The reason for a fate other than used: KeyRule::why.
  bool required = false;
  bool optional = false;  ///< May be null, which means absent.
  bool engaged = true;    ///< False when optional and absent: there is no value.
  std::string value;      ///< Scalars: as it would be written in YAML, without quotes.
  IntRange integer_range;
  RealRange real_range;
  DurationRange duration_range;
  std::vector<std::string> choices;
  std::vector<FieldDescription> members;      ///< Members of an object, elements of a list.
  std::shared_ptr<FieldDescription> element;  ///< A default element of a list (types only).
  Document document;
};

/// The object with its present values; the described value is not changed.
FieldDescription describe_values(const DescribeFunction& describe_object);

/// The object's types: every optional is opened and every list has an element. The described value
/// is changed, so give it a throw-away one.
FieldDescription describe_types(const DescribeFunction& describe_object);

/// The meaning of the key, and why it does not simply count.
std::string documentation(const FieldDescription& field);

/// `integer`, `number`, `list of objects`, ...: the type in words.
std::string type_name(const FieldDescription& field);

/// The bounds in words; empty when there are none.
std::string bounds_text(const FieldDescription& field);

/// The present value as a tree that reads back to the same struct. Absent optionals are left out.
ConfigNode::Ptr to_node(const FieldDescription& object);

/// A tree as YAML text, and as indented JSON.
std::string to_yaml(const ConfigNode& node);
std::string to_json(const ConfigNode& node);

/// One value with the place it came from.
struct ResolvedValue {
  std::string path;
  std::string value;
  std::string origin;  ///< `default`, `file:line:column` or `--set`.
};

/// Every scalar of the object in order, with its origin.
std::vector<ResolvedValue> resolved_values(const FieldDescription& object,
                                           const Provenance& provenance);

}  // namespace routesim::tools
