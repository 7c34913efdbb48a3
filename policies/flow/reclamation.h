// Ends running requests of low priority while requests of higher priority wait for room: key
// flowControl.enableEviction. llm-d-router pull request 2093, at ebab6879 (August 2026):
// pkg/epp/flowcontrol/{controller/internal/reclamation.go,eviction}, cmd/epp/runner/runner.go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/units.h"

namespace routesim::policies {

/// A band whose requests wait, as dispatching found it.
struct BlockedBand {
  std::int32_t priority = 0;
  double ceiling = 0;  ///< Saturation from which it may not dispatch.
  bool waits = false;  ///< Some request of it is queued.
};

/// Tracks the requests in flight and chooses victims: below zero only (the sheddable filter), the
/// lowest priority first, then the newest. Of requests sent at one instant upstream takes any; here
/// the one tracked last. Whoever ends the victims calls end() for them as for all others.
///
/// One decision at a time: until every victim has ended, or ten seconds have passed, and then until
/// `grace` after that, no other is made. The router resets a victim's connection at once, so it
/// counts as ended when its stream has.
class Reclamation {
 public:
  static constexpr std::int64_t kMostVictims = 2;  ///< Of one decision.
  static constexpr Duration kConfirmation = Duration::seconds(10);

  /// `grace`: the time from a victim's end until the saturation shows it.
  explicit Reclamation(Duration grace) : grace_(grace) {}

  void track(std::uint64_t request, std::int32_t priority);
  /// A tracked request has ended, as a victim or by itself.
  void end(std::uint64_t request, SimTime now);
  /// Dispatching stopped at the first of these bands, which descend: the requests to end now.
  std::vector<std::uint64_t> decide(double saturation, std::span<const BlockedBand> bands,
                                    SimTime now);
  std::size_t tracked() const { return tracked_.size(); }

 private:
  // Ordered so that the first one is the next victim.
  struct Victim {
    std::int32_t priority;
    std::uint64_t newest;  ///< Counts down from the first request tracked.
    std::uint64_t request;
    auto operator<=>(const Victim&) const = default;
  };
  bool may_decide(SimTime now);
  std::vector<std::uint64_t> evict(std::size_t most, std::int32_t below, SimTime now);

  Duration grace_;
  std::unordered_map<std::uint64_t, Victim> tracked_;  // Never iterated.
  std::set<Victim> evictable_;
  std::uint64_t next_ = ~std::uint64_t{0};
  std::set<std::uint64_t> outstanding_;  ///< Victims that have not ended.
  SimTime issued_;                       ///< When they were told to.
  SimTime quiet_until_;                  ///< The latest grace ends.
};

}  // namespace routesim::policies
