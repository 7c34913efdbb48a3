// The drafter of a pool that speculates.
#pragma once

#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "models/catalogue.h"
#include "models/speculation.h"
#include "sim/plan/scenario.h"

namespace routesim::sim {

/// A speculating pool's drafter; nothing, and at least one error in `diagnostics`, where the pool
/// cannot have it. `path` is the pool's. The pool must have engine.speculative.
std::optional<models::Drafter> plan_drafter(const PoolConfig& pool, const models::ModelSpec& model,
                                            const models::KvLayout& layout,
                                            const models::Parallelism& parallelism,
                                            const models::Catalogue& catalogue,
                                            const std::string& path, Diagnostics& diagnostics);

}  // namespace routesim::sim
