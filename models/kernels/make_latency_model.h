// The choice of the latency model of a deployment.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "models/catalogue.h"
#include "models/latency_model.h"
#include "models/roofline.h"
#include "models/specs.h"
#include "models/speculation.h"

namespace routesim::models {

/// The best latency model known for a deployment: step times that a user measured, else its fitted
/// curve, else the sum of measured kernels, else the roofline. The curve's own async_scheduling
/// wins over `options`.
std::shared_ptr<const LatencyModel> make_latency_model(const Catalogue& catalogue,
                                                       const AcceleratorSpec& a, const ModelSpec& m,
                                                       const Parallelism& p,
                                                       std::string_view preset,
                                                       const RooflineOptions& options = {});

/// The latency model of this name: "auto", "measured", "kernels" or "roofline". Null, and why in
/// `why`, where there is none for the deployment.
std::shared_ptr<const LatencyModel> latency_model_named(
    std::string_view name, const Catalogue& catalogue, const AcceleratorSpec& a, const ModelSpec& m,
    const Parallelism& p, std::string_view preset, const RooflineOptions& options,
    std::string& why);

/// The latency model of a server that speculates: `target` without, and the drafter's passes, by
/// kernels where they cover it and `kernels` is set, else by the roofline.
std::shared_ptr<const LatencyModel> make_speculative_latency(
    std::shared_ptr<const LatencyModel> target, const Drafter& drafter, const AcceleratorSpec& a,
    const Parallelism& p, RooflineOptions options, bool kernels);

}  // namespace routesim::models
