// The data sets of `vllm bench serve`. Private to workloads/.
#pragma once

#include <memory>

#include "workloads/vllm_bench/vllm_bench.h"

namespace routesim::workloads::vllm_bench {

/// One sample of a data set.
struct Sample {
  std::vector<Segment> text{};
  std::int64_t output = 0;
};

/// The samples in the order they are sent.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  /// How many there are (may be fewer than num_prompts).
  virtual std::int64_t size() const = 0;
  /// Sample i; called with i = 0, 1, 2 … once each.
  virtual Sample make(std::int64_t i) = 0;
};

/// Reads and checks what the data set needs. Null after an error.
std::unique_ptr<SampleSource> make_samples(const Config& config, const WorkloadOptions& options,
                                           const LoadInputs& inputs, Diagnostics& diagnostics);

}  // namespace routesim::workloads::vllm_bench
