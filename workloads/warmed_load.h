// A load whose first requests warm the servers up.
#pragma once

#include <memory>

#include "workloads/load_generator.h"

namespace routesim::workloads {

/// `load`, whose last stage is split: requests that are due before `warm_up` belong to a stage that
/// is not reported, the others to one behind it. The requests and their times stay.
std::unique_ptr<LoadGenerator> with_warm_up(std::unique_ptr<LoadGenerator> load, Duration warm_up);

}  // namespace routesim::workloads
