// Looking into single routing decisions, and making one of them differently. Only the router
// itself can say what it saw, so this is a hook and no Observer; without one a decision costs a
// null check more.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "policies/decision.h"
#include "policies/scheduler.h"
#include "sim/custom/score_sheet.h"
#include "sim/engine/gauges.h"
#include "workloads/request.h"

namespace routesim::sim {

/// One endpoint at the instant of a decision: what the router knew, and what was true.
struct EndpointFacts {
  std::string name;
  bool is_known = true;  ///< The router knows that it is there.
  bool scraped = false;  ///< The router has read its metrics at all.
  SimTime scraped_at;    ///< When the metrics it read were taken.
  double known_waiting = 0, known_running = 0, known_kv_usage = 0;
  double waiting = 0, running = 0, kv_usage = 0;  ///< In the engine now; KV use 0..1.
  std::int64_t predicted_tokens = -1;             ///< Prefix the index promised; -1 = no index.
  /// Prefix really in its cache, whole blocks, at least one token left to compute.
  std::int64_t cached_tokens = 0;
  std::int64_t tier_tokens = 0;  ///< Of these, those that only its host memory has.
  AdapterGauges adapters;        ///< In the engine now.
};

/// One decision. Rows of the explanations are positions in `endpoints`.
struct DecisionRecord {
  std::int64_t request = 0;
  SimTime now;
  std::uint32_t instance = 0;  ///< Which router process decided.
  bool routed = false;
  bool scored = false;       ///< By a scheduler; the explanations are filled then.
  std::uint32_t picked = 0;  ///< Row.
  std::int64_t prompt_tokens = 0;
  std::vector<EndpointFacts> endpoints;
  std::vector<double>
      totals;  ///< Per row, weighted score of the primary profile; NaN = not scored.
  std::vector<policies::TierHits> tier_hits;  ///< By the precise index; empty without one.
  policies::Explanation seen;                 ///< How the router decided.
  ScoreSheet sheet;  ///< The same of a formula; without rows for every other policy.
  /// How the same configuration would decide if every gauge and every cache were known as they
  /// are; its own counts of requests in flight stay what they are. Filled when asked for.
  policies::Explanation omniscient;
  policies::Decision omniscient_decision;
};

/// Asked about every decision; told about those it wants.
class DecisionProbe {
 public:
  virtual ~DecisionProbe() = default;
  virtual bool wants(const workloads::Request& request) = 0;
  /// Fill DecisionRecord::omniscient as well. It leaves traces in the router's indexes, so the run
  /// is no good after the decision: stop it.
  virtual bool wants_omniscient() const { return false; }
  virtual void on_decision(const DecisionRecord& record) = 0;
  /// The row a request must go to instead of the one chosen, or -1. Everything else, every random
  /// draw included, stays as it was until the consequences differ.
  virtual std::int64_t forced_row(const workloads::Request& /*request*/) { return -1; }
};

}  // namespace routesim::sim
