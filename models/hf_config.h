// A ModelSpec from the fields of a Hugging Face config.json. Reading the JSON is the tools' part.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "models/specs.h"

namespace routesim::models {

/// The scalar fields of a config.json, flattened with dots ("quantization_config.quant_method",
/// "text_config.hidden_size"); booleans are 0 or 1. Lists of strings keep their elements.
struct HfConfig {
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> strings;
  std::map<std::string, std::vector<std::string>> lists;  ///< E.g. "layer_types".
};

/// The architecture behind `config`, called `name`. Understands the Llama, Qwen2, Qwen3 (dense and
/// MoE), Llama 4, Mistral, Mixtral, Gemma, GLM, gpt-oss and DeepSeek V2/V3 families by their keys.
/// Nothing, with errors naming each missing key, when the keys do not describe a known
/// architecture, or say that layers are not what is simulated (linear attention, state spaces).
std::optional<ModelSpec> model_from_hf_config(const std::string& name, const HfConfig& config,
                                              Diagnostics& diagnostics);

}  // namespace routesim::models
