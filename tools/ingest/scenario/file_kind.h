// The kinds of routesim's files, told apart by the keys of their roots.
#pragma once

#include <initializer_list>
#include <string_view>

#include "base/config_node.h"
#include "base/diagnostic.h"

namespace routesim::tools {

/// The formats of routesim's files, told apart by the keys of their roots.
enum class FileKind {
  kScenario,
  kPlan,
  kSweep,
  kTune,
  kCatalogue,
  kInferencePerf,
  kEndpointPicker,
  kResult
};

/// `scenario`, `plan`, `sweep`, `tune`, `catalogue`, `inference-perf`, `EndpointPickerConfig` or
/// `result`.
std::string_view kind_name(FileKind kind);

/// Whether the map has one of these keys.
bool holds_any(const ConfigNode& root, std::initializer_list<std::string_view> keys);

/// A file that looks like none of the others is a scenario: its reader says what it lacks.
FileKind kind_of(const ConfigNode& root);

/// Whether the file may be of this kind: a scenario, a plan, a sweep, a tuning or a result. One
/// that is clearly of another kind is an error that names what takes it.
bool is_kind(const ConfigNode& root, FileKind wanted, Diagnostics& diagnostics);

}  // namespace routesim::tools
