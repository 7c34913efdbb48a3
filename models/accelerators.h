// The built-in accelerators by how well they are known.
#pragma once

#include <string_view>
#include <vector>

#include "models/specs.h"

namespace routesim::models {

/// Those whose efficiencies come from measured operators or deployments, for others with their
/// chip.
AcceleratorSpec h100_sxm();
AcceleratorSpec a100_80();
AcceleratorSpec b200();
AcceleratorSpec mi300x();

/// Those known from data sheets only.
std::vector<AcceleratorSpec> data_sheet_accelerators();

/// Whether the efficiencies of an accelerator of this name come from measurements of it.
bool has_measured_efficiencies(std::string_view name);

}  // namespace routesim::models
