#include "policies/flow/flow_policies.h"

#include <algorithm>
#include <cmath>

namespace routesim::policies {
namespace {

// Min-max normalisation of one value; equal bounds give 0.
double normalise(double value, double lowest, double highest) {
  return highest > lowest ? (value - lowest) / (highest - lowest) : 0;
}

double wait_ms(const FlowQueue& q, SimTime now) {
  return (now - q.head->enqueued).to_milliseconds();
}

}  // namespace

std::size_t GlobalStrictFairness::choose(std::span<const FlowQueue> queues, const std::string&,
                                         SimTime) const {
  std::size_t best = 0;
  for (std::size_t i = 1; i < queues.size(); ++i) {
    const FlowQueue& a = queues[i];
    const FlowQueue& b = queues[best];
    if (a.head_key < b.head_key || (a.head_key == b.head_key && a.head_sequence < b.head_sequence))
      best = i;
  }
  return best;
}

std::size_t RoundRobinFairness::choose(std::span<const FlowQueue> queues, const std::string& last,
                                       SimTime) const {
  for (std::size_t i = 0; i < queues.size(); ++i)
    if (*queues[i].flow > last) return i;
  return 0;
}

ProgramAwareFairness::ProgramAwareFairness(const ProgramAwareParameters& p, const PluginSpec& spec,
                                           BuildContext& context)
    : parameters_(p) {
  if (p.strategy == FairnessStrategy::kTurnPriority)
    context.error(spec, "strategy",
                  "turn-priority is not modelled; leave the strategy out for least attained "
                  "service");
}

std::size_t ProgramAwareFairness::choose(std::span<const FlowQueue> queues, const std::string&,
                                         SimTime now) const {
  double least = queues[0].service, most = least;
  double shortest = wait_ms(queues[0], now), longest = shortest;
  for (const FlowQueue& q : queues) {
    least = std::min(least, q.service);
    most = std::max(most, q.service);
    shortest = std::min(shortest, wait_ms(q, now));
    longest = std::max(longest, wait_ms(q, now));
  }
  std::size_t best = 0;
  double best_score = -1;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    const double score =
        parameters_.weight_service * (1 - normalise(queues[i].service, least, most)) +
        parameters_.weight_head_wait * normalise(wait_ms(queues[i], now), shortest, longest);
    if (score <= best_score) continue;
    best_score = score;
    best = i;
  }
  return best;
}

void StaticUsageLimit::ceilings(std::span<const std::int32_t>, double, std::span<double> out) {
  std::fill(out.begin(), out.end(), threshold_);
}

PriorityHoldback::PriorityHoldback(const HoldbackParameters& p, const PluginSpec& spec,
                                   BuildContext& context)
    : parameters_(p) {
  if (p.max_ceiling < p.min_ceiling)
    context.error(spec, "maxCeiling", "must not be below minCeiling");
}

void PriorityHoldback::ceilings(std::span<const std::int32_t> priorities, double,
                                std::span<double> out) {
  const double range = parameters_.max_ceiling - parameters_.min_ceiling;
  const std::size_t n = priorities.size();
  for (std::size_t i = 0; i < n; ++i) {
    if (n == 1) {
      out[i] = parameters_.max_ceiling;
    } else if (parameters_.domain == HoldbackDomain::kRank) {
      out[i] =
          parameters_.max_ceiling - static_cast<double>(i) * range / static_cast<double>(n - 1);
    } else {
      const double lowest = priorities.back(), highest = priorities.front();
      out[i] = parameters_.min_ceiling + (priorities[i] - lowest) / (highest - lowest) * range;
    }
  }
}

void SoftReflectiveCeiling::ceilings(std::span<const std::int32_t> priorities, double saturation,
                                     std::span<double> out) {
  ++tick_;
  const std::size_t n = priorities.size();
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = 1;
    if (i == 0) continue;
    const double share = 1 - static_cast<double>(i) * saturation / static_cast<double>(n - 1);
    if (saturation < share) continue;
    if (saturation >= 1) {
      out[i] = 0;
      continue;
    }
    const double gap = std::round(saturation / (1 - saturation + 1e-9));
    const auto period = static_cast<std::uint64_t>(std::max(1.0, gap));
    out[i] = tick_ % period == 0 ? 1 : 0;
  }
}

}  // namespace routesim::policies
