// Which of routesim's formats a file has, by the keys of its root.
#pragma once

#include <string_view>

#include "base/config_node.h"

namespace routesim::tools {

enum class FileKind { kScenario, kPlan, kSweep, kCatalogue, kInferencePerf, kEndpointPicker };

/// `scenario`, `plan`, `sweep`, `catalogue`, `inference-perf` or `EndpointPickerConfig`.
std::string_view kind_name(FileKind kind);

/// A file that looks like none of the others is a scenario: its reader says what it lacks.
FileKind kind_of(const ConfigNode& root);

}  // namespace routesim::tools
