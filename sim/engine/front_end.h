// Load balancing inside a server: one front end, several DP ranks (vLLM's internal balancing).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace routesim::sim {

/// The balancing rules of a vLLM release.
struct FrontEndRules {
  /// The score counts the front end's own requests and full caches, max(in flight, waiting +
  /// running) + 6 waiting max(0, kv - 0.5); else it is 4 waiting + running.
  bool newest_score = false;
  /// Ties go to the first rank from a start that moves on at each choice, else to the first rank.
  bool rotates = false;
  /// The ranks' counts are published. Those of dense models were not from December 2025
  /// (vllm-project/vllm#30739) to July 2026 (#49204): the front end then takes turns.
  bool sees_counts = true;
};

/// Chooses the rank with the smallest score, from counts that the coordinator published at most
/// every 100 ms; in between it adds what it sent itself. vLLM's DP client with one API server.
class FrontEnd {
 public:
  static constexpr Duration kPublication = Duration::milliseconds(100);

  /// The load that a rank reports of itself.
  struct RankLoad {
    std::int64_t waiting = 0;
    std::int64_t running = 0;
    double kv_usage = 0;  ///< 0..1.
  };

  /// The ranks are the endpoints [first, first + ranks).
  FrontEnd(std::uint32_t first, int ranks, const FrontEndRules& rules)
      : first_(first), rules_(rules), ranks_(static_cast<std::size_t>(ranks)) {}

  /// The endpoint for a request that comes now; `observe(endpoint)` gives a rank's load.
  template <class Observe>
  std::uint32_t choose(SimTime now, const Observe& observe) {
    if (rules_.sees_counts && now >= next_publication_) {
      for (std::size_t i = 0; i < ranks_.size(); ++i)
        ranks_[i].published = observe(first_ + static_cast<std::uint32_t>(i));
      next_publication_ = now + kPublication;
    }
    std::size_t best = start_;
    for (std::size_t i = 1; i < ranks_.size(); ++i) {
      const std::size_t rank = (start_ + i) % ranks_.size();
      if (score(ranks_[rank]) < score(ranks_[best])) best = rank;
    }
    if (rules_.rotates) start_ = (start_ + 1) % ranks_.size();
    ++ranks_[best].published.waiting;
    ++ranks_[best].in_flight;
    return first_ + static_cast<std::uint32_t>(best);
  }
  /// A request chosen for this endpoint has ended.
  void on_completed(std::uint32_t endpoint) { --ranks_[endpoint - first_].in_flight; }
  std::int64_t in_flight(std::uint32_t endpoint) const {
    return ranks_[endpoint - first_].in_flight;
  }

 private:
  struct Rank {
    RankLoad published;
    std::int64_t in_flight = 0;
  };
  double score(const Rank& r) const {
    const auto waiting = static_cast<double>(r.published.waiting);
    const auto running = static_cast<double>(r.published.running);
    if (!rules_.newest_score) return 4 * waiting + running;
    return std::max(static_cast<double>(r.in_flight), waiting + running) +
           6 * waiting * std::max(0.0, r.published.kv_usage - 0.5);
  }

  std::uint32_t first_;
  FrontEndRules rules_;
  std::size_t start_ = 0;
  SimTime next_publication_;
  std::vector<Rank> ranks_;
};

}  // namespace routesim::sim
