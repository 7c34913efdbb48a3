#include "sim/fleet/roll_out.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace routesim::sim {

namespace {

std::int64_t sum(std::span<const RollOutSet> sets, std::int64_t RollOutSet::*what) {
  return std::accumulate(sets.begin(), sets.end(), std::int64_t{0},
                         [what](std::int64_t all, const RollOutSet& s) { return all + s.*what; });
}

void resize(const RollOutState& d, RollOutSet& set, std::int64_t spec) {
  if (spec == set.spec) return;
  set.spec = spec;
  set.most = d.replicas + d.max_surge;
}

/// Takes up to `most` servers from old sets, the oldest first; of each set up to what `of` says.
template <class Of>
std::int64_t shrink(RollOutState& d, std::int64_t most, Of of) {
  const std::int64_t all = most;
  for (std::size_t i = 0; i + 1 < d.sets.size(); ++i) {
    const std::int64_t fewer = std::clamp<std::int64_t>(of(d.sets[i]), 0, most);
    resize(d, d.sets[i], d.sets[i].spec - fewer);
    most -= fewer;
  }
  return all - most;
}

}  // namespace

bool roll_out_step(RollOutState& d) {
  RollOutSet& newest = d.sets.back();
  const std::int64_t all = sum(d.sets, &RollOutSet::spec);
  const std::int64_t room = d.replicas + d.max_surge - all;
  const std::int64_t lacks = d.replicas - newest.spec;
  if (lacks < 0 || (lacks > 0 && room > 0)) {
    resize(d, newest, newest.spec + std::min(lacks, std::max<std::int64_t>(room, 0)));
    return true;
  }
  const std::int64_t missing =
      d.max_surge == 0 ? std::max<std::int64_t>(1, d.max_unavailable) : d.max_unavailable;
  const std::int64_t least = d.replicas - std::min(missing, d.replicas);
  const std::int64_t most = all - least - (newest.spec - newest.available);
  if (all == newest.spec || most <= 0) return false;
  // Old servers that are not ready go first: nobody misses them.
  const std::int64_t unready =
      shrink(d, most, [](const RollOutSet& s) { return s.spec - s.available; });
  const std::int64_t spare = sum(d.sets, &RollOutSet::available) - least;
  return unready + shrink(d, std::max<std::int64_t>(0, spare),
                          [](const RollOutSet& s) { return s.spec; }) >
         0;
}

bool recreate_step(RollOutState& d, bool old_servers_left) {
  if (shrink(d, sum(d.sets, &RollOutSet::spec), [](const RollOutSet& s) { return s.spec; }) > 0)
    return true;
  if (old_servers_left || d.sets.back().spec == d.replicas) return false;
  resize(d, d.sets.back(), d.replicas);
  return true;
}

void share_out(RollOutState& d, bool recreates) {
  std::vector<RollOutSet*> active;
  for (RollOutSet& set : d.sets)
    if (set.spec > 0) active.push_back(&set);
  if (active.size() == 1) resize(d, *active.front(), d.replicas);
  if (active.size() < 2 || recreates) return;
  const std::int64_t most = d.replicas + d.max_surge;
  const std::int64_t more = (d.replicas > 0 ? most : 0) - sum(d.sets, &RollOutSet::spec);
  // The largest first; of equal ones the newer one where sets grow, the older one where they
  // shrink.
  if (more > 0) std::reverse(active.begin(), active.end());
  std::stable_sort(active.begin(), active.end(),
                   [](const RollOutSet* a, const RollOutSet* b) { return a->spec > b->spec; });
  std::int64_t left = more;
  for (RollOutSet* set : active) {
    const std::int64_t before = set->spec;
    if (left != 0) {
      const double size = static_cast<double>(before) * static_cast<double>(most) /
                          static_cast<double>(std::max<std::int64_t>(1, set->most));
      const std::int64_t share = d.replicas == 0 ? -before : std::llround(size) - before;
      set->spec += more > 0 ? std::min(share, left) : std::max(share, left);
      left -= set->spec - before;
    }
    set->most = most;
  }
  active.front()->spec = std::max<std::int64_t>(0, active.front()->spec + left);
}

}  // namespace routesim::sim
