#include "models/kernels/make_latency_model.h"

#include <utility>

#include "base/check.h"
#include "models/kernels/kernel_latency.h"

namespace routesim::models {

namespace {

std::shared_ptr<const LatencyModel> measured_steps(const Catalogue& catalogue,
                                                   const AcceleratorSpec& a, const ModelSpec& m,
                                                   const Parallelism& p) {
  const MeasuredSteps* steps = catalogue.find_measured_steps(a.name, m.name, p);
  if (steps == nullptr) return nullptr;
  Diagnostics none;
  auto model = MeasuredLatency::make(steps->table, none);
  ROUTESIM_CHECK(model.has_value(), "a table of step times in the catalogue is no grid");
  return std::make_shared<MeasuredLatency>(*std::move(model));
}

}  // namespace

std::shared_ptr<const LatencyModel> make_latency_model(const Catalogue& catalogue,
                                                       const AcceleratorSpec& a, const ModelSpec& m,
                                                       const Parallelism& p,
                                                       std::string_view preset,
                                                       const RooflineOptions& options) {
  if (auto measured = measured_steps(catalogue, a, m, p)) return measured;
  // Curves are fitted on vLLM.
  const FittedCurve* curve =
      options.engine == ServingEngine::kVllm
          ? catalogue.find_cost_curve(a.name, m.name, p, preset, true, options.kv_dtype)
          : nullptr;
  if (curve == nullptr) {
    if (auto kernels = KernelLatency::make(a, m, p, options))
      return std::make_shared<KernelLatency>(*std::move(kernels));
    return std::make_shared<Roofline>(a, m, p, options);
  }
  std::string provenance =
      "cost curve " + curve->accelerator + " / " + curve->model + " tp" + std::to_string(p.tp);
  if (p.dp > 1) provenance += " dp" + std::to_string(p.dp);
  if (p.ep > 1) provenance += " ep" + std::to_string(p.ep);
  if (!curve->preset.empty()) provenance += " (" + curve->preset + ")";
  provenance += ": " + curve->provenance;
  if (!curve->preset.empty() && curve->preset != preset)
    provenance += "; fitted on another engine preset than the requested " + std::string(preset);
  return std::make_shared<CostCurve>(curve->parameters, curve->range, std::move(provenance));
}

std::shared_ptr<const LatencyModel> latency_model_named(
    std::string_view name, const Catalogue& catalogue, const AcceleratorSpec& a, const ModelSpec& m,
    const Parallelism& p, std::string_view preset, const RooflineOptions& options,
    std::string& why) {
  if (name == "roofline") return std::make_shared<Roofline>(a, m, p, options);
  if (name == "measured") {
    auto measured = measured_steps(catalogue, a, m, p);
    if (measured == nullptr)
      why = "no catalogue has step_times of " + m.name + " on " + a.name + " tp" +
            std::to_string(p.tp);
    return measured;
  }
  if (name == "kernels") {
    if (auto kernels = KernelLatency::make(a, m, p, options))
      return std::make_shared<KernelLatency>(*std::move(kernels));
    why = kernels::not_covered(a, m, p, options.engine);
    return nullptr;
  }
  return make_latency_model(catalogue, a, m, p, preset, options);
}

std::shared_ptr<const LatencyModel> make_speculative_latency(
    std::shared_ptr<const LatencyModel> target, const Drafter& drafter, const AcceleratorSpec& a,
    const Parallelism& p, RooflineOptions options, bool kernels) {
  options.draft_pass = true;
  options.async_scheduling = false;
  std::shared_ptr<const LatencyModel> pass;
  if (drafter.model.layers > 0) {
    auto measured = kernels ? KernelLatency::make(a, drafter.model, p, options) : std::nullopt;
    if (measured) {
      pass = std::make_shared<KernelLatency>(*std::move(measured));
    } else {
      AcceleratorSpec gpu = a;
      gpu.gpu_step_ms = 0;  // Inputs and sampler of the step: the target's.
      pass = std::make_shared<Roofline>(gpu, drafter.model, p, options);
    }
  }
  return std::make_shared<SpeculativeLatency>(std::move(target), std::move(pass), drafter, a);
}

}  // namespace routesim::models
