// Whether a published result is of the load that a scenario simulates.
#pragma once

#include "sim/plan/resolve.h"
#include "tools/ingest/measured_file.h"

namespace routesim::tools {

/// Compares what the results of a load tool state about their run with the plan: model, request
/// rate, requests, concurrency, and the mean lengths of prompts and answers (within a fifth, or 64
/// tokens: samples differ, and the chat template counts here only). Every difference is an error at
/// the value in the result, or a warning when `force` is set. A scenario of several stages is
/// compared by its model alone, since no stage says which result is of it.
void compare_stated_load(const sim::RunPlan& plan, const models::Catalogue& catalogue,
                         const MeasuredTable& table, bool force, Diagnostics& diagnostics);

}  // namespace routesim::tools
