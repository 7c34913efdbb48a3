// Checks of a plan before it runs: whether the servers can take its load, this machine its memory,
// and whether anything reads its HTTP headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/plan/resolve.h"
#include "tools/ingest/scenario/scenario_yaml.h"

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

/// Names and values that some request has: of the load tools, then of the traffic classes. Entries
/// that are no text are left out.
std::vector<std::pair<std::string, std::string>> request_headers(const LoadedVariant& variant);

/// Warns of headers that nothing before the servers reads. Servers do not look at them.
void warn_unread_headers(const LoadedVariant& variant, Diagnostics& diagnostics);

}  // namespace routesim::tools
