// Sessions of agents that were never recorded, as graphs of calls. Private to workloads/.
#pragma once

#include <cstdint>

#include "workloads/inference_perf/inference_perf_agentic.h"
#include "workloads/sessions/replay_corpus.h"

namespace routesim::workloads {

/// Session `index` of the tool's generator of August 2026 (sub-agents report one by one): a
/// function of the settings, `seed` and `index`. Its random numbers are ours, its distributions the
/// tool's.
///
/// A turn of the root: a principal call, then a call per result of its tools, the last of which
/// answers. With sub-agents: a call that spawns them, one that acknowledges, and one per report, in
/// the order of the sub-agents; the last answers. Each call's prompt is the one before, its answer,
/// and what is new. No more than max_events_per_session calls: a turn that does not fit is left
/// out, sub-agents that do not fit are not spawned.
ReplaySession synthetic_session(const inference_perf::SyntheticAgentic& settings,
                                std::uint64_t seed, std::uint32_t index);

}  // namespace routesim::workloads
