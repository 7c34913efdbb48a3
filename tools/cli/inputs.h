// The sources of the command's inputs: standard input (`routesim run -`), and the scenarios
// that ship with it, in ./scenarios of the repository or installed.
#pragma once

#include <string>

#include "tools/cli/options.h"
#include "tools/ingest/scenario/scenario_yaml.h"

namespace routesim::tools {

/// The argument that stands for standard input.
inline constexpr std::string_view kStandardInput = "-";

/// The scenario that the argument `file` names, with the command's `--set` and `--variant`. Reads
/// standard input for `-`, whose places are `<stdin>` and whose paths are relative to the working
/// directory. What cannot be read is a usage error.
ScenarioRequest scenario_request(Options& options, const std::string& file);

/// `name` itself when it is a path that exists. Otherwise the shipped file that it names:
/// `llm-d-qwen3-32b-16xh100`, `h100-rate-map` or `scenarios/plans/qwen3-32b-host-memory.yaml`.
/// `name` again when there is none, so that the reader says what is missing.
std::string find_shipped(const std::string& name);

/// `path` without the folder of the installed files, as find_shipped() takes it:
/// `scenarios/plans/qwen3-32b-host-memory.yaml`. Other paths stay.
std::string shown_path(const std::string& path);

/// `text` with every path in it as shown_path() has it, for messages.
std::string with_shown_paths(std::string text);

/// The folder where scenarios are looked for: `--folder`, ./scenarios, or the installed ones.
std::string scenario_folder(const Options& options);

/// `--folder` of the commands that look for scenarios.
OptionSpec folder_option(const std::string& help);

}  // namespace routesim::tools
