// What became of a fleet in one run. Plain data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace routesim::sim {

/// Something that happened.
struct FleetMark {
  double at_s = 0;
  std::string what;     ///< "crashes", "is ready", …
  std::string subject;  ///< A server, a pool or a router process.
};

/// Servers of a pool from an instant on.
struct FleetPoint {
  double at_s = 0;
  std::int64_t servers = 0, ready = 0;
  std::int64_t wanted = 0;  ///< By the Deployment that began with this pool, wherever it is now.
};

/// What became of one pool, from the first reported stage on.
struct FleetPoolResult {
  std::string pool;
  double mean_servers = 0;  ///< Pods that exist, over time: what is paid for.
  double mean_ready = 0;    ///< Servers that serve, over time.
  std::int64_t most_servers = 0, least_ready = 0;
  std::int64_t starts = 0;  ///< Processes that became ready.
  std::int64_t ends = 0;    ///< Processes that ended while they served or started.
  double server_hours = 0;  ///< Of pods that exist.
  double gpu_hours = 0;
  std::optional<double> price_per_hour{};  ///< Of one server, US dollars.
  std::optional<double> cost() const {
    return price_per_hour ? std::optional(*price_per_hour * server_hours) : std::nullopt;
  }
  std::vector<FleetPoint> points{};  ///< Each change of the whole run; the first kMostMarks.
};

struct FleetResult {
  /// Of all pools.
  double mean_servers() const {
    double servers = 0;
    for (const FleetPoolResult& pool : pools) servers += pool.mean_servers;
    return servers;
  }
  /// US dollars; nothing where a pool with servers has no price, or no pool has one.
  std::optional<double> cost() const {
    double all = 0;
    if (std::ranges::none_of(pools,
                             [](const auto& pool) { return pool.price_per_hour.has_value(); }))
      return std::nullopt;
    for (const FleetPoolResult& pool : pools) {
      if (pool.server_hours > 0 && !pool.price_per_hour) return std::nullopt;
      all += pool.cost().value_or(0);
    }
    return all;
  }
  std::vector<FleetPoolResult> pools;
  std::vector<FleetMark> marks;  ///< In time order; the first Fleet::kMostMarks.
  std::int64_t unmarked = 0;     ///< Those that are left out.
  std::int64_t lost = 0;         ///< Times that a request lost its server,
  std::int64_t sent_again = 0;   ///< and was sent once more; or found none, and was.
  std::int64_t fell_back = 0;    ///< Prompts of lost prefill servers that decode servers computed.
};

}  // namespace routesim::sim
