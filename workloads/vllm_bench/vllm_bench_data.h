// The data sets of `vllm bench serve`. Private to workloads/.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "workloads/vllm_bench/vllm_bench.h"

namespace routesim::workloads::vllm_bench {

/// One sample of a data set.
struct Sample {
  std::vector<Segment> text{};
  std::int64_t output = 0;
};

/// The samples in the order they are sent.
struct Samples {
  std::int64_t size = 0;                       ///< May be fewer than num_prompts.
  std::function<Sample(std::int64_t)> make{};  ///< Called with 0, 1, 2 … once each.
};

/// Reads and checks what the data set needs. After an error there are no samples.
Samples make_samples(const Config& config, const WorkloadOptions& options, const LoadInputs& inputs,
                     Diagnostics& diagnostics);

}  // namespace routesim::workloads::vllm_bench
