// The latency predictor beside a router (llm-d-latency-predictor), as the router sees it: it is
// told what each candidate looks like and answers with latencies; later it hears what they were.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "policies/views.h"

namespace routesim::policies {

/// The stage that a server's role label names.
enum class ServerStage : std::uint8_t { kUnlabelled, kPrefill, kDecode, kOther };

/// The facts that the predictor gets about one request on one endpoint, as of the decision.
struct LatencyFeatures {
  EndpointRow endpoint = 0;
  ServerStage stage = ServerStage::kUnlabelled;
  double kv_usage = 0;  ///< 0 to 1, as last scraped.
  double waiting = 0;   ///< Requests in the engine's queue, as last scraped.
  std::int64_t prompt_tokens = 0;
  std::int64_t requests_in_flight = 0;  ///< Requests of this router.
  std::int64_t tokens_in_flight = 0;    ///< Uncached prompt tokens of this router's requests.
  double prefix_share = 0;              ///< Share of the prompt's blocks held there, 0 to 1.
};

/// One observation: a request's features and its times; 0 = this time was not observed.
struct LatencySample {
  LatencyFeatures features;
  double ttft_ms = 0;
  double tpot_ms = 0;
};

/// Predicts, and learns from what it observes. Predicting changes nothing.
class LatencyPredictor {
 public:
  virtual ~LatencyPredictor() = default;
  /// Time passes: train and take over new models as far as that is due. Instants do not go back.
  virtual void advance(SimTime now) = 0;
  /// One answer per candidate, in their order; `answers` has as many places.
  virtual void predict(const RequestView& request, std::span<const LatencyFeatures> candidates,
                       std::span<LatencyPrediction> answers) const = 0;
  virtual void observe(const LatencySample& sample, SimTime now) = 0;
};

}  // namespace routesim::policies
