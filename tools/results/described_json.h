// JSON of described structs (base/describe.h): results, which readers of JSON take back.
#pragma once

#include "base/tree_reader.h"
#include "tools/results/json_writer.h"

namespace routesim::tools {

/// Writes the members of a described struct into the open object, in their order. An optional that
/// is absent is left out, or null where its field says so; NaN is null.
void write_members(JsonWriter& json, const DescribeFunction& describe_object);

/// The whole struct as one JSON value. Writing changes nothing in it.
template <class T>
void write_value(JsonWriter& json, T& value) {
  json.begin_object();
  write_members(json, [&value](Describer& d) { describe(d, value); });
  json.end_object();
}

/// A tree as JSON: plain scalars keep their types.
void write_tree(JsonWriter& json, const ConfigNode& node);

}  // namespace routesim::tools
