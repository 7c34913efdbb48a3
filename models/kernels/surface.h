// The time of a step of one deployment on the GPU, put together from its operations once, at the
// start of a run: sums over all layers, by what a batch is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/kernels/operations.h"
#include "models/measured.h"
#include "models/roofline.h"
#include "models/specs.h"

namespace routesim::models::kernels {

/// One operation of a step, for who asks where the time goes.
struct OperationTime {
  std::string name;    ///< "qkv", "decode attention", "experts" ...
  std::string kernel;  ///< The section of the table.
  Origin origin = Origin::kTable;
  Curve by_tokens;            ///< All layers; empty for attention, whose time is in the sheets.
  bool of_all_ranks = false;  ///< By the tokens of all data-parallel ranks.
};

struct StepSurface {
  Curve tokens;     ///< Layers without attention, by tokens of the batch.
  Curve group;      ///< Experts that ranks share, by the tokens of all of them; else empty.
  Curve sampled;    ///< Output projection and sampler, by sequences that get a token.
  TickGrid decode;  ///< Decode attention of all layers, by sequences and context.
  Sheet context;    ///< Attention of whole prompts, all layers, by prompts and length.
  Sheet states;     ///< Layers with a state, by prompts and their new tokens; else empty.
  std::vector<OperationTime> operations;
  Origin attention = Origin::kTable;  ///< The least known kind of attention layer.
};

/// Why tables do not cover a deployment, in words; empty where they do.
std::string not_covered(const AcceleratorSpec& gpu, const ModelSpec& m, const Parallelism& p,
                        ServingEngine engine = ServingEngine::kVllm);

/// Not covered: nothing. A deployment that passed check_parallelism takes a few milliseconds.
std::optional<StepSurface> make_surface(const AcceleratorSpec& gpu, const ModelSpec& m,
                                        const Parallelism& p, const RooflineOptions& options);

}  // namespace routesim::models::kernels
