#include "sim/fleet/roll_out.h"

#include <algorithm>

namespace routesim::sim {

RollOutStep roll_out_step(const RollOutCounts& c) {
  RollOutStep next{.new_spec = c.new_spec, .old_spec = c.old_spec};
  const std::int64_t max_unavailable =
      c.max_surge == 0 ? std::max<std::int64_t>(1, c.max_unavailable) : c.max_unavailable;
  if (c.new_spec > c.replicas) {
    next.new_spec = c.replicas;
    return next;
  }
  const std::int64_t all = c.new_spec + c.old_spec;
  if (c.new_spec < c.replicas && all < c.replicas + c.max_surge) {
    next.new_spec += std::min(c.replicas + c.max_surge - all, c.replicas - c.new_spec);
    return next;
  }
  if (c.old_spec == 0) return next;
  const std::int64_t least = c.replicas - std::min(max_unavailable, c.replicas);
  const std::int64_t new_unavailable = c.new_spec - c.new_available;
  std::int64_t most = all - least - new_unavailable;
  if (most <= 0) return next;
  // Old servers that are not ready go first: nobody misses them.
  const std::int64_t unready = std::min(most, c.old_spec - c.old_available);
  next.old_spec -= unready;
  const std::int64_t spare = c.new_available + c.old_available - least;
  if (spare > 0) next.old_spec -= std::min(spare, next.old_spec);
  return next;
}

}  // namespace routesim::sim
