// predictor kind `perfect`: what a latency predictor could know at best.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "policies/latency_predictor.h"
#include "sim/engine/endpoints.h"
#include "sim/engine/replica.h"
#include "sim/kv/prompt_keys.h"
#include "sim/plan/resolve.h"

namespace routesim::sim {

/// Computes latencies from the truth: the engines' own caches and batches as they are now, their
/// step times, and every prompt token that some router process has sent and no engine has computed.
/// TTFT is the time of the steps that compute those tokens, then the request's own, beside today's
/// decodes; TPOT is a step of today's decodes and this one. It takes today for ever: no request
/// comes, ends, is preempted or waits for KV room. Nothing is learnt from observations.
class PerfectPredictor final : public policies::LatencyPredictor {
 public:
  /// All outlive this.
  PerfectPredictor(const RunPlan& plan, const Endpoints& endpoints,
                   const std::vector<std::unique_ptr<Replica>>& replicas)
      : plan_(plan), endpoints_(endpoints), replicas_(replicas), ahead_(endpoints.rows()) {}

  /// The questions to come are about this prompt, at `now`.
  void set_prompt(const PromptKeys& keys, SimTime now) {
    keys_ = &keys;
    now_ = now;
  }
  /// The request goes to the row that computes its prompt.
  void on_routed(std::uint64_t request, std::uint32_t row, std::int64_t prompt_tokens);
  /// Its prompt is computed, or never will be.
  void on_computed(std::uint64_t request);

  void advance(SimTime) override {}
  void predict(const policies::RequestView& request,
               std::span<const policies::LatencyFeatures> candidates,
               std::span<policies::LatencyPrediction> answers) const override;
  void observe(const policies::LatencySample&, SimTime) override {}

 private:
  struct Sent {
    std::uint32_t row;
    std::int64_t tokens;
  };
  std::int64_t cached_tokens(const EndpointHome& home, std::int64_t prompt_tokens) const;
  std::int64_t most_cached(std::uint32_t row, std::int64_t prompt_tokens) const;
  policies::LatencyPrediction predict(const EndpointHome& home, std::int64_t ahead,
                                      std::int64_t prompt_tokens) const;

  const RunPlan& plan_;
  const Endpoints& endpoints_;
  const std::vector<std::unique_ptr<Replica>>& replicas_;
  const PromptKeys* keys_ = nullptr;
  SimTime now_;
  std::vector<std::int64_t> ahead_;  ///< Uncached prompt tokens sent and not computed, by row.
  std::unordered_map<std::uint64_t, Sent> sent_;  ///< Never iterated.
};

}  // namespace routesim::sim
