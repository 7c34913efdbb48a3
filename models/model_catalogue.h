// The two halves of the built-in models, and what both are written with.
#pragma once

#include <string>
#include <vector>

#include "models/specs.h"

namespace routesim::models {

/// Models whose every token visits every weight.
std::vector<ModelSpec> dense_models();

/// Mixtures of experts.
std::vector<ModelSpec> expert_models();

/// `m`, whose numbers are those of config.json in `repository` of Hugging Face; answers to the
/// repository's name, too.
ModelSpec published(const std::string& repository, ModelSpec m);

/// The same model with weights in another format, as "NAME" + `suffix`; every name of the original
/// is one with the suffix here, and with further endings that `suffix` is published under.
ModelSpec requantised(const ModelSpec& m, WeightDtype weights, const std::string& suffix,
                      const std::vector<std::string>& other_suffixes);

/// The same model with fp8 weights, by the endings such checkpoints are published under. Those of
/// Qwen3 have block scales, as their makers publish them.
ModelSpec fp8(const ModelSpec& m);

/// `m` in NVFP4 as NVIDIA publishes it: attention in bf16 where it is latent.
ModelSpec nvfp4(const ModelSpec& m);

}  // namespace routesim::models
