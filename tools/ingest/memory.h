// Whether a run can fit into this machine's memory, said before it is killed for trying.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/plan/resolve.h"

namespace routesim::tools {

/// Bytes this process may still take: the least of what the kernel calls available, the address
/// space limit and the control group's limit. Nothing when the system does not tell.
std::optional<std::int64_t> available_memory();

/// Bytes of a run. Requests hardly count, because results are kept as histograms; queues of an
/// overloaded run come on top.
struct MemoryNeed {
  std::int64_t idle = 0;  ///< Its servers before the first request: the least it takes.
  std::int64_t full = 0;  ///< With every prefix cache full, and in the routers' indexes.
};
MemoryNeed memory_need(const sim::RunPlan& plan);

/// An error when `plan` takes more than `available` bytes, a warning when it may come to do so.
void check_memory(const sim::RunPlan& plan, std::optional<std::int64_t> available,
                  Diagnostics& diagnostics);

}  // namespace routesim::tools
