// What a stretch of a run at one rate says: when its warm-up ends, whether it is steady or its
// queue grows, and how much it answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace routesim::tools {

/// One span of time of a run, all of them equally long.
struct LoadBin {
  std::int64_t sent = 0;
  std::int64_t answered = 0;                          ///< Successes.
  std::int64_t turned_away = 0;                       ///< Ended by a time-out, 429 or 503.
  std::int64_t in_flight = 0;                         ///< At its end.
  std::int64_t prompt_tokens = 0, cached_tokens = 0;  ///< Of its successes.
  double lag_s = 0;  ///< The longest time by which the client sent a request late.
};

/// The answer of a stretch. Errors are standard errors.
struct SteadyWindow {
  std::size_t first = 0;  ///< The bin in which the warm-up has ended.
  double sent_per_s = 0, answered_per_s = 0;
  double answered_error = 0;
  /// Requests in flight gained per request sent, and its error as of a random walk: a queue at its
  /// critical load is one, and one below it is calmer.
  double growth = 0, growth_error = 0;
  double turned_away = 0;     ///< Share of what was sent.
  double answered_drift = 0;  ///< Answers/s of the second half less those of the first.
  double answered_drift_error = 0;
  double hit_drift = 0;  ///< Hit ratio of the second half less that of the first.
  double hit_drift_error = 0;
  bool is_settled = false;  ///< The warm-up ended in the first half.
};

/// The bin with which a series begins to be steady: the one that makes the standard error of the
/// rest least, in the first half (MSER: White, "An effective truncation heuristic for bias
/// reduction in simulation output", Simulation 69(6), 1997; bins are its batches). O(n).
std::size_t warm_up_end(std::span<const double> series);

/// The window behind the warm-up of the answers and of the hits. `bins` has at least 20, each of
/// `bin_s` > 0 seconds. O(n).
SteadyWindow steady_window(std::span<const LoadBin> bins, double bin_s);

}  // namespace routesim::tools
