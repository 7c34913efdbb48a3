#include "policies/flow/reclamation.h"

#include <algorithm>
#include <cmath>

namespace routesim::policies {

void Reclamation::track(std::uint64_t request, std::int32_t priority) {
  const Victim victim{.priority = priority, .newest = next_--, .request = request};
  tracked_[request] = victim;
  if (priority < 0) evictable_.insert(victim);
}

void Reclamation::end(std::uint64_t request, SimTime now) {
  if (outstanding_.erase(request) > 0) quiet_until_ = std::max(quiet_until_, now + grace_);
  const auto it = tracked_.find(request);
  if (it == tracked_.end()) return;
  evictable_.erase(it->second);
  tracked_.erase(it);
}

bool Reclamation::may_decide(SimTime now) {
  if (!outstanding_.empty() && now - issued_ >= kConfirmation) {
    outstanding_.clear();
    quiet_until_ = std::max(quiet_until_, now + grace_);
  }
  return outstanding_.empty() && now >= quiet_until_;
}

std::vector<std::uint64_t> Reclamation::evict(std::size_t most, std::int32_t below, SimTime now) {
  std::vector<std::uint64_t> victims;
  while (victims.size() < most && !evictable_.empty() && evictable_.begin()->priority < below) {
    victims.push_back(evictable_.begin()->request);
    tracked_.erase(victims.back());
    evictable_.erase(evictable_.begin());
  }
  outstanding_.insert(victims.begin(), victims.end());
  issued_ = now;
  return victims;
}

std::vector<std::uint64_t> Reclamation::decide(double saturation,
                                               std::span<const BlockedBand> bands, SimTime now) {
  if (!may_decide(now)) return {};
  for (const BlockedBand& band : bands) {
    if (evictable_.empty() || band.priority <= evictable_.begin()->priority) return {};
    // A ceiling of zero blocks whatever ends.
    if (band.ceiling <= 0 || saturation < band.ceiling || !band.waits) continue;
    // The share of the saturation that a request takes, on average.
    const double share = saturation / static_cast<double>(tracked_.size());
    if (!(share > 0) || std::isinf(share)) return {};
    const auto wanted = std::max(1.0, std::ceil((saturation - band.ceiling) / share));
    const auto most = std::min(
        {wanted, static_cast<double>(kMostVictims), static_cast<double>(evictable_.size())});
    return evict(static_cast<std::size_t>(most), band.priority, now);
  }
  return {};
}

}  // namespace routesim::policies
