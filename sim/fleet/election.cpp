#include "sim/fleet/election.h"

#include <cmath>
#include <utility>

#include "base/rng.h"

namespace routesim::sim {

namespace {

// controller-runtime v0.23 pkg/manager/manager.go: LeaseDuration, RetryPeriod. The leader renews
// its lease every RetryPeriod, and the others try after 1 to 2.2 of them (JitterFactor in client-go
// tools/leaderelection).
constexpr Duration kLease = Duration::seconds(15);
constexpr double kRetryS = 2, kJitter = 1.2;
/// readinessProbe of the chart (config/charts/routerlib, templates/_deployment.yaml).
constexpr double kProbeS = 2;
constexpr std::uint64_t kSalt = 0x1ea5e;

Duration seconds_of_draw(double s) { return Duration::nanoseconds(std::llround(s * 1e9)); }

}  // namespace

double Election::draw(std::uint32_t process, std::uint64_t turn) const {
  const std::uint64_t key = mix64(mix64(kSalt, process), static_cast<std::uint64_t>(number_));
  return RandomStream(seed_, Stream::kFleet, mix64(key, turn)).uniform();
}

// The first try after the lease has run out, which counts from when the process saw it renewed.
SimTime Election::acquires(std::uint32_t process, SimTime seen) const {
  SimTime at = seen;
  for (std::uint64_t turn = 3; at - seen < kLease; ++turn)
    at = at + seconds_of_draw(kRetryS * (1 + kJitter * draw(process, turn)));
  return at;
}

void Election::end(std::uint32_t process, bool asked, SimTime now) {
  Candidate& ended = candidates_[process];
  if (!ended.runs) return;
  ended = {.runs = false, .drains = ended.drains};
  if (!term_ || term_->leader != process) return;
  const bool held = acquired_ <= now;
  ++number_;
  if (held) released_ = asked;
  for (std::uint32_t p = 0; held && p < candidates_.size(); ++p) {
    if (!candidates_[p].runs) continue;
    // Tries come at any phase.
    const Duration wait = seconds_of_draw(kRetryS * (1 + kJitter * draw(p, 0)) * draw(p, 1));
    const Duration renewed = seconds_of_draw(kRetryS * draw(process, 2));
    candidates_[p].acquires = asked ? now + wait : acquires(p, now - renewed + wait);
  }
  choose();
}

void Election::begin(std::uint32_t process, SimTime now) {
  candidates_[process].runs = true;
  if (term_ && acquired_ <= now) return;
  ++number_;
  candidates_[process].acquires = released_ ? now : acquires(process, now);
  choose();
}

void Election::choose() {
  term_.reset();
  for (std::uint32_t p = 0; p < candidates_.size(); ++p) {
    const Candidate& c = candidates_[p];
    if (!c.runs || c.acquires == SimTime::max() || (term_ && c.acquires >= acquired_)) continue;
    acquired_ = c.acquires;
    term_ = Term{.leader = p, .ready = c.acquires + seconds_of_draw(kProbeS * draw(p, 99))};
  }
}

bool Election::begin_drain(std::uint32_t process) {
  return !std::exchange(candidates_[process].drains, true);
}

bool Election::end_drain(std::uint32_t process) {
  return std::exchange(candidates_[process].drains, false);
}

}  // namespace routesim::sim
