// Measures what KV tiers gave to the requests of a run, and what computing it would have cost.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/observe/observer.h"
#include "sim/router/decision_probe.h"
#include "tools/results/json_writer.h"

namespace routesim::tools {

/// The gain from one tier: for one request, or for all.
struct TierShare {
  std::int64_t requests = 0;  ///< That hit it.
  std::int64_t tokens = 0;
  double wait_s = 0;       ///< For the load (host memory) or the pull (another server).
  double recompute_s = 0;  ///< Prefill time of the tokens, alone in its steps, by the model.
  void add(const TierShare& other);
};

/// One request, at the server that computes its prompt.
struct TierRequest {
  std::int64_t id = 0;
  std::string server;
  std::string pull_source;  ///< The server that the router named; empty without one.
  std::int64_t prompt_tokens = 0;
  std::int64_t expected_tokens = -1;  ///< By the router's index; -1 = it has none.
  /// By its precise index, tier by tier; a token in two tiers is in both.
  std::vector<std::pair<std::string, std::int64_t>> expected;
  TierShare hbm, host, pulled;
};

/// Collects the requests that were answered by servers with tiers.
class TierStudy {
 public:
  void on_start(const sim::RunView& view);
  void on_decision(const sim::DecisionRecord& record);
  void on_routed(std::int64_t request, const sim::Route& route);
  void on_done(const sim::RequestRecord& record);

  const std::vector<TierRequest>& requests() const { return requests_; }

 private:
  /// The hits that the router expected of each endpoint, until it is known which one computes.
  struct Expected {
    std::vector<std::int64_t> tokens;  ///< By row.
    std::vector<policies::TierHits> tiers;
  };
  struct Open {
    std::uint32_t computes = 0;
    TierRequest request;
  };

  const sim::RunView* view_ = nullptr;
  std::vector<std::uint32_t> row_of_;  ///< By endpoint.
  std::map<std::int64_t, Expected> expected_;
  std::map<std::int64_t, Open> open_;
  std::vector<TierRequest> requests_;
};

/// A table of tiers, and one of the requests that waited longest.
std::string render_tiers_text(const TierStudy& study);
/// Writes the members `tiers` and `tier_requests`.
void write_tier_study(JsonWriter& json, const TierStudy& study);

}  // namespace routesim::tools
