// The llm-d ladder and shorthands for tests of inference-perf loads.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "tests/workloads/drive.h"
#include "workloads/inference_perf/inference_perf.h"

namespace routesim::workloads::inference_perf {

using workloads::testing::drive;
using workloads::testing::fixed_latency;
using workloads::testing::seconds;
using workloads::testing::Sent;

/// The llm-d guide's benchmark of its precise prefix router on 16 H100.
inline Config ladder() {
  Config c;
  c.api.streaming = true;
  c.load.type = LoadType::kPoisson;
  c.load.interval = 30;
  for (const auto& [rate, duration] :
       std::vector<std::pair<double, int>>{{15, 50}, {3, 20}, {10, 20}, {20, 38}})
    c.load.stages.push_back({.rate = rate, .duration = duration});
  c.data.type = DataType::kSharedPrefix;
  c.data.shared_prefix = SharedPrefix{};
  SharedPrefix& p = *c.data.shared_prefix;
  p.num_groups = 150;
  p.num_prompts_per_group = 5;
  p.system_prompt_len = Distribution::fixed(6000);
  p.question_len = Distribution::fixed(1200);
  p.output_len = Distribution::fixed(1000);
  return c;
}

inline std::unique_ptr<LoadGenerator> make(const Config& c, const WorkloadOptions& options = {},
                                           const LoadInputs& inputs = {}) {
  Diagnostics found;
  auto load = make_load_generator(c, options, inputs, found);
  for (const Diagnostic& d : found.items()) EXPECT_NE(d.severity, Severity::kError) << to_string(d);
  return load;
}

inline std::vector<Diagnostic> errors_of(const Config& c, const WorkloadOptions& options = {}) {
  Diagnostics found;
  EXPECT_EQ(make_load_generator(c, options, {}, found), nullptr);
  return found.items();
}

inline std::vector<std::vector<Sent>> by_stage(const std::vector<Sent>& sent) {
  std::vector<std::vector<Sent>> out;
  for (const Sent& s : sent) {
    out.resize(std::max<std::size_t>(out.size(), s.request.stage.value() + 1));
    out[s.request.stage.value()].push_back(s);
  }
  return out;
}

}  // namespace routesim::workloads::inference_perf
