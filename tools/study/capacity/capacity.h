// The highest rate of a load that a fleet sustains, from simulated steady states.
#pragma once

#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/observe/observer.h"
#include "sim/plan/resolve.h"
#include "tools/results/report.h"
#include "tools/study/experiment/experiment.h"

namespace routesim::tools {

// What a stretch of a run at one rate says: when its warm-up ends, whether it is steady or its
// queue grows, and how much it answers.

/// One span of time of a run, all of them equally long.
struct LoadBin {
  std::int64_t sent = 0;
  std::int64_t answered = 0;     ///< Successes.
  std::int64_t turned_away = 0;  ///< Ended by a time-out, 429 or 503.
  std::int64_t in_flight = 0;    ///< At its end,
  std::int64_t queued = 0;       ///< and those of them that wait before or in a server.
  std::int64_t prompt_tokens = 0, cached_tokens = 0;  ///< Of its successes.
  double lag_s = 0;  ///< The longest time by which the client sent a request late.
};

/// The answer of a stretch. Errors are standard errors.
struct SteadyWindow {
  std::size_t first = 0;  ///< The bin in which the warm-up has ended, and servers are full.
  double sent_per_s = 0, answered_per_s = 0;
  double answered_error = 0;
  /// Requests in flight gained per request sent, and its error as of a random walk: a queue at its
  /// critical load is one, and one below it is calmer.
  double growth = 0, growth_error = 0;
  double queue_growth = 0, queue_growth_error = 0;  ///< The same of those that wait.
  double turned_away = 0;                           ///< Share of what was sent.
  double answered_drift = 0;  ///< Answers/s of the second half less those of the first.
  double answered_drift_error = 0;
  double hit_drift = 0;  ///< Hit ratio of the second half less that of the first.
  double hit_drift_error = 0;
  bool is_settled = false;  ///< The warm-up of answers and hits ended in the first half.
};

/// The bin with which a series begins to be steady: the one that makes the standard error of the
/// rest least, in the first half (MSER: White, "An effective truncation heuristic for bias
/// reduction in simulation output", Simulation 69(6), 1997; bins are its batches). O(n).
std::size_t warm_up_end(std::span<const double> series);

/// The window behind the warm-up of the answers, of the hits and of what servers run. `bins` has at
/// least 20, each of `bin_s` > 0 seconds. O(n).
SteadyWindow steady_window(std::span<const LoadBin> bins, double bin_s);

// Watches a run at one rate and ends it as soon as it has told whether the servers sustain it.

/// What keeps a fleet from answering more.
enum class Limit {
  kPrefill,
  kDecode,
  kKvBlocks,
  kMaxNumSeqs,
  kRouter,       ///< Its processes decide one request at a time.
  kFlowControl,  ///< Requests are held back until servers are not saturated.
  kBalancer,     ///< The same of a balancer with such a rule of its own.
  kGateway,
  kClient,
  kNone
};

/// Whether servers keep up with a rate.
enum class Sustains { kYes, kNo, kOpen };

struct WatchRules {
  double rate = 0;               ///< Requests/s asked for, > 0.
  std::int64_t most_sends = 0;   ///< The run ends then in any case; at least kWatchBins.
  double answered_error = 0.01;  ///< Standard error at which an overload has told its answers.
  /// Take no queue for one that grows while answers or hits still rise: caches and batches may
  /// fill.
  bool patient = false;
  std::int64_t least_sends = 0;  ///< Before which nothing is taken for steady.
};

inline constexpr std::int64_t kWatchBins = 240;

struct CapacityRules {
  double guess = 1;                  ///< Requests/s, > 0: where to look first.
  std::int64_t sends = 6'000;        ///< Of one probe.
  std::int64_t most_sends = 60'000;  ///< Of all probes together.
  double narrow = 1.05;              ///< high / low at which the search ends.
};

/// Brackets the rate with runs that end when they have told enough. Deterministic. Errors of the
/// plan's set-up go to `found`. Throws Stopped after a stop.
Capacity find_capacity(const sim::RunPlan& plan, const CapacityRules& rules, Experiment& experiment,
                       Diagnostics& found);

/// Where to look, and how long, after a run of the load as it is. The guess is 0 without a success.
CapacityRules capacity_rules(const sim::RunResult& result);

/// One run at `rate`, which ends as soon as it has told whether the servers sustain it.
struct RateProbe {
  std::string why_not = {};  ///< Why the load has no rate to hold; empty where it has one.
  double rate = 0;
  Sustains sustains = Sustains::kOpen;
  SteadyWindow window = {};
  Limit limit = Limit::kNone;
  std::int64_t sent = 0;
  double warm_up_s = 0;  ///< When the warm-up has ended.
  double answer_s = 0;   ///< How long an answer takes, by what is in flight (Little's law).
  double decisions_per_s = INFINITY;  ///< The most that the router makes.
};
RateProbe probe_rate(const sim::RunPlan& plan, const WatchRules& rules, Experiment& experiment,
                     Diagnostics& found);

}  // namespace routesim::tools
