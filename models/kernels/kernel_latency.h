// Step times as sums of measured kernels: nothing fitted to the deployment.
//
//   GPU  = layers (products, experts, collectives, small kernels) by tokens
//        + attention of decodes by sequences and context + attention of prompts + output and
//        sampler
//   step = GPU + host, or the longer of both with asynchronous scheduling
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/cost_curve.h"
#include "models/kernels/surface.h"
#include "models/latency_model.h"
#include "models/roofline.h"

namespace routesim::models {

class KernelLatency final : public LatencyModel {
 public:
  /// `p` must have passed check_parallelism for `m`. Nothing where kernels::not_covered says why.
  static std::optional<KernelLatency> make(const AcceleratorSpec& gpu, const ModelSpec& m,
                                           const Parallelism& p, const RooflineOptions& options);

  std::int64_t step_ticks(const BatchShape& shape) const override;
  DecodeRun decode_run(const BatchShape& shape) const override;
  Trust trust(const BatchShape&) const override { return Trust::kKernels; }
  std::string provenance() const override { return provenance_; }

  /// The cost curve closest to these sums, read off at small batches: the prior of a fit.
  CostCurveParameters as_cost_curve() const;

  /// The time of each operation in a step, ns, in the same order for every step. The last one is
  /// what the sum leaves: the host, and steps without a full graph.
  struct Share {
    std::string operation, kernel;
    kernels::Origin origin = kernels::Origin::kTable;
    double ns = 0;
  };
  std::vector<Share> shares(const BatchShape& shape) const;

 private:
  KernelLatency() = default;
  std::int64_t rows(const BatchShape& s) const;
  double launches_ns(const BatchShape& s) const;
  double fixed_ns(const BatchShape& s) const;
  double prompt_ns(const BatchShape& s) const;
  DecodeLine decode_line(const BatchShape& s) const;
  std::int64_t host_ticks(const BatchShape& s) const;

  kernels::StepSurface surface_;
  RooflineOptions options_;
  double chunk_ns_ = 0;          ///< Of a step with more than one token of a prompt: no full graph.
  bool fast_memory_ = false;     ///< L2 saves less than on an H100.
  double beside_prompt_ns_ = 0;  ///< Per token of decode context where prompts slow it down.
  std::string provenance_;
};

}  // namespace routesim::models
