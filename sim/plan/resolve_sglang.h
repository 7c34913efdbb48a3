// What a pool with SGLang's engine may ask for.
#pragma once

#include <optional>
#include <string>

#include "models/specs.h"
#include "sim/plan/scenario.h"

namespace routesim::sim {

/// A key of a pool that cannot be what it is. `key` is below the pool.
struct PoolFault {
  std::string key, message, hint;
};

/// The first thing about a pool that the simulated SGLang does not have; nothing for vLLM.
std::optional<PoolFault> sglang_fault(const PoolConfig& pool, const models::ModelSpec& model);

/// The facts about its servers from which SGLang's defaults follow.
SglangDevice sglang_device(const PoolConfig& pool, const models::AcceleratorSpec& gpu);

}  // namespace routesim::sim
