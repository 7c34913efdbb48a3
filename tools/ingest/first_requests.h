// Whether the servers can take what the load sends, said before hours are spent on finding out.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/plan/resolve.h"

namespace routesim::tools {

/// The first `count` requests of the plan's load, as far as it sends them without an answer to
/// another; a few more where several are due at once.
std::vector<workloads::Request> first_requests(const sim::RunPlan& plan, std::size_t count);

/// Looks at the first requests of the load. A warning when they come from a trace that does not say
/// what prompts share, and the router routes by it. A warning when none of them fits any server, so
/// that the run will probably count failures and nothing else; an error when a prompt is longer
/// than any server can be told to take (the bound of `engine.max_model_len`), because such prompts
/// would fail only after hours of hashing.
void check_first_requests(const sim::RunPlan& plan, Diagnostics& diagnostics);

}  // namespace routesim::tools
