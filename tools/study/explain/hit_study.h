// The hit-rate ladder of a run, and the reasons for each step down.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/observe/observer.h"
#include "sim/plan/resolve.h"
#include "sim/router/decision_probe.h"
#include "tools/results/described_json.h"

namespace routesim::tools {

// Measures what KV tiers gave to the requests of a run, and what computing it would have cost.

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
    TierRequest request = {};
  };

  const sim::RunView* view_ = nullptr;
  std::vector<std::uint32_t> row_of_;  ///< By endpoint.
  std::map<std::int64_t, Expected> expected_;
  std::map<std::int64_t, Open> open_;
  std::vector<TierRequest> requests_;
};

/// Why a request did not go where most of its prompt was cached.
enum class Loss : std::uint8_t {
  kNone,
  kStale,  ///< The index did not show that another endpoint held more, or promised what was gone.
  kLoad,   ///< The router knew, and other scorers outweighed it.
  kTie,    ///< The other endpoint scored no less: the picker drew.
  kBlind   ///< Nothing in the router looks at caches.
};

/// All numbers in prompt tokens, summed over the requests that were routed. Every rung is at most
/// the one above it.
///
/// - infinite: every block is computed once, by whoever can least reuse it, and never forgotten.
///   No order of the same requests can hit more.
/// - one_cache: the fleet's KV blocks in one pool, shared by all, with the best replacement there
///   is (Belady's, which knows the future), requests in the order they were routed; or best_routing
///   where that is more, since a pool that may delay requests as the fleet did can do the same.
/// - best_routing: each request at the candidate endpoint that held most of it when it was routed,
///   caches being what they were in this run; at least what it really hit.
/// - predicted: what the router's index promised for the endpoint it picked, as far as it lies
///   between delivered and best_routing. Without an index: what that endpoint held.
/// - delivered: what the engines hit.
struct HitLadder {
  std::int64_t prompt = 0;
  std::int64_t infinite = 0;
  std::int64_t one_cache = 0;
  std::int64_t best_routing = 0;
  std::int64_t predicted = 0;
  std::int64_t delivered = 0;
};

/// infinite - delivered, by cause; the parts add up to it.
struct HitLosses {
  std::int64_t capacity = 0;  ///< infinite - one_cache: no pool of this size could have kept it.
  std::int64_t split = 0;     ///< one_cache - best_routing: copies, and evictions where it stood.
  std::int64_t stale = 0, load = 0, tie = 0, blind = 0;  ///< best_routing - held at the pick.
  std::int64_t waiting = 0;  ///< Held at the pick when routed, gone when the engine looked.
};

struct HitStudy {
  std::string scenario, variant;
  std::uint64_t seed = 0;
  std::int64_t requests = 0;
  HitLadder ladder;
  HitLosses losses;
  std::int64_t promised_in_vain = 0;  ///< Promised by the index for the pick and not there.
  std::int64_t not_promised = 0;      ///< There, and not promised.
  std::optional<TierStudy> tiers;     ///< Where some pool has KV tiers.
};

/// Runs `plan` once and accounts for every request. Blocks are counted in the first pool's size.
std::optional<HitStudy> study_hits(const sim::RunPlan& plan, Diagnostics& diagnostics);

std::string render_hits_text(const HitStudy& study);
std::string render_hits_json(const HitStudy& study);

/// Blocks hit by a cache of `capacity` blocks under Belady's replacement with bypass, for requests
/// that touch `keys[begin, hit_end)` of the stream, of which a leading run can hit, and then hold
/// `keys[begin, end)`.
struct StreamRequest {
  std::size_t begin = 0, hit_end = 0, end = 0;
};
std::int64_t belady_hits(const std::vector<std::uint32_t>& keys,
                         const std::vector<StreamRequest>& requests, std::int64_t capacity);

/// Blocks hit when nothing is forgotten, in the best order of the requests.
std::int64_t infinite_hits(const std::vector<std::uint32_t>& keys,
                           const std::vector<StreamRequest>& requests);

}  // namespace routesim::tools
