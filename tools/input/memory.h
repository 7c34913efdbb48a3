// Whether a run can fit into this machine's memory, said before it is killed for trying.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/resolve.h"

namespace routesim::tools {

/// Bytes this process may still take: the least of what the kernel calls available, the address
/// space limit and the control group's limit. Nothing when the system does not tell.
std::optional<std::int64_t> available_memory();

/// The least a run of `plan` takes: its servers' KV block tables. Requests hardly count, because
/// results are kept as histograms; queues of an overloaded run come on top.
std::int64_t least_memory(const sim::RunPlan& plan);

/// An error when `plan` takes more than `available` bytes.
void check_memory(const sim::RunPlan& plan, std::optional<std::int64_t> available,
                  Diagnostics& diagnostics);

}  // namespace routesim::tools
