// The basis of a fleet's step times.
#pragma once

#include <string>

#include "sim/resolve.h"

namespace routesim::tools {

/// From the best known to the least.
enum class Basis { kFitted, kRoofline, kDataSheet };

/// The class of one pool. A roofline on an accelerator that is not among the built-in ones with
/// measured efficiencies is one of a data sheet.
Basis basis_of(const sim::ResolvedPool& pool);

/// `fitted`, `roofline` or `data sheet`.
std::string basis_name(Basis basis);

/// A clause: `step times that were fitted to measurements`, ...
std::string basis_text(Basis basis);

}  // namespace routesim::tools
