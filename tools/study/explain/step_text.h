// What a step of a pool's servers takes, and where the time goes, as text.
#pragma once

#include <string>

#include "sim/plan/resolve.h"

namespace routesim::tools {

/// The basis of the step times, and three steps: 1 and 64 sequences that decode, and a prompt. For
/// sums of measured kernels each operation with its share, its kernel and how well it is known.
std::string step_text(const sim::ResolvedPool& pool);

}  // namespace routesim::tools
