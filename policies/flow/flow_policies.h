// Ordering, fairness and usage-limit policies of flow control.
// llm-d-router pkg/epp/framework/plugins/flowcontrol.
#pragma once

#include <charconv>
#include <cmath>
#include <map>

#include "base/config_node.h"
#include "base/scalar_parse.h"
#include "policies/build_context.h"

namespace routesim::policies {

enum class HoldbackShape { kLinear };

enum class HoldbackDomain { kRank, kValue, kExplicit };

enum class FairnessStrategy { kLas, kTurnPriority };

}  // namespace routesim::policies

template <>
struct routesim::EnumNames<routesim::policies::HoldbackShape> {
  static constexpr std::array<std::string_view, 1> value = {"linear"};
};
template <>
struct routesim::EnumNames<routesim::policies::HoldbackDomain> {
  static constexpr std::array<std::string_view, 3> value = {"rank", "value", "explicit"};
};
template <>
struct routesim::EnumNames<routesim::policies::FairnessStrategy> {
  static constexpr std::array<std::string_view, 2> value = {"las", "turn-priority"};
};

namespace routesim::policies {

inline constexpr std::string_view kIdlePrograms =
    "a program is forgotten after an idle hour, upstream's default";

struct HoldbackParameters {
  std::optional<HoldbackShape> shape;  ///< Upstream has the one shape.
  HoldbackDomain domain = HoldbackDomain::kRank;
  std::optional<double> min_ceiling, max_ceiling;
  Document ceilings;  ///< A map of priorities.
};
inline void describe(Describer& d, HoldbackParameters& p) {
  field(d, {"shape", "How ceilings lie between the lowest and the highest; only linear."}, p.shape);
  field(d,
        {"domain",
         "Spread ceilings by rank or by value of the priority; explicit: take them from ceilings."},
        p.domain);
  field(d, {"minCeiling", "Saturation at which the lowest band stops; needed unless explicit."},
        p.min_ceiling, RealRange{.min = 0, .max = 1, .max_open = true});
  field(d, {"maxCeiling", "Saturation at which the highest band stops; 1 unless set."},
        p.max_ceiling, RealRange{.min = 0, .max = 1, .min_open = true});
  field(d, {"ceilings", "With domain explicit: a map from each priority to its ceiling."},
        p.ceilings);
}

struct ProgramAwareParameters {
  FairnessStrategy strategy = FairnessStrategy::kLas;
  double weight_service = 0.8, weight_head_wait = 0.2;
  double half_life_seconds = 60;
  double turn_time_weight = 0.5, turn_inactivity_seconds = 120;
  double eviction_ttl_seconds = 3600, eviction_sweep_seconds = 300;
};
inline void describe(Describer& d, ProgramAwareParameters& p) {
  field(d, {"strategy", "las: least attained service; turn-priority: the deepest session."},
        p.strategy);
  field(d, {"lasWeightService", "Weight of the service a program has not had."}, p.weight_service,
        RealRange{0});
  field(d, {"lasWeightHeadWait", "Weight of how long its first request waits."}, p.weight_head_wait,
        RealRange{0});
  field(d, {"lasHalfLifeSeconds", "Half-life of attained service; only 60 is modelled."},
        p.half_life_seconds, RealRange{60, 60});
  field(d, {"turnPriorityTimeWeight", "Turns that a second of waiting is worth."},
        p.turn_time_weight, RealRange{0});
  field(d,
        {"turnPriorityInactivitySeconds",
         "A program idle for longer is in its first turn; 0 = never."},
        p.turn_inactivity_seconds, RealRange{0});
  field(d, no_effect("evictionTtlSeconds", "When upstream forgets an idle program.", kIdlePrograms),
        p.eviction_ttl_seconds, RealRange{0});
  field(d, no_effect("evictionSweepSeconds", "How often it looks for them.", kIdlePrograms),
        p.eviction_sweep_seconds, RealRange{0});
}

struct StaticLimitParameters {
  double threshold = 1.0;
};
inline void describe(Describer& d, StaticLimitParameters& p) {
  field(d, {"threshold", "Saturation at which every band stops."}, p.threshold, RealRange{0});
}

// Min-max normalisation of one value; equal bounds give 0.
inline double normalise(double value, double lowest, double highest) {
  return highest > lowest ? (value - lowest) / (highest - lowest) : 0;
}

inline double wait_ms(const FlowQueue& q, SimTime now) {
  return (now - q.head->enqueued).to_milliseconds();
}

/// fcfs-ordering-policy.
class FcfsOrdering final : public OrderingPolicy {
 public:
  SimTime key(const QueuedRequest& r) const override { return r.enqueued; }
};

/// edf-ordering-policy: enqueue time plus time to live; requests without one come last.
class EdfOrdering final : public OrderingPolicy {
 public:
  SimTime key(const QueuedRequest& r) const override {
    // A time to live of centuries is none.
    const bool ends = r.ttl > Duration::zero() && r.ttl < SimTime::max() - r.enqueued;
    return ends ? r.enqueued + r.ttl : SimTime::max();
  }
};

/// slo-deadline-ordering-policy: receipt plus the TTFT objective; requests without one come last.
class SloDeadlineOrdering final : public OrderingPolicy {
 public:
  SimTime key(const QueuedRequest& r) const override {
    const Duration objective = Duration::from_seconds(r.slo_ttft_ms / 1000);
    const bool ends = r.slo_ttft_ms > 0 && objective < SimTime::max() - r.received;
    return ends ? r.received + objective : SimTime::max();
  }
};

/// global-strict-fairness-policy: the best head over all flows.
class GlobalStrictFairness final : public FairnessPolicy {
 public:
  std::size_t choose(std::span<const FlowQueue> queues, const std::string&,
                     SimTime) const override {
    std::size_t best = 0;
    for (std::size_t i = 1; i < queues.size(); ++i) {
      const FlowQueue& a = queues[i];
      const FlowQueue& b = queues[best];
      if (a.head_key < b.head_key ||
          (a.head_key == b.head_key && a.head_sequence < b.head_sequence))
        best = i;
    }
    return best;
  }
};

/// round-robin-fairness-policy: the flow after the last one served, in order of their keys.
class RoundRobinFairness final : public FairnessPolicy {
 public:
  std::size_t choose(std::span<const FlowQueue> queues, const std::string& last,
                     SimTime) const override {
    for (std::size_t i = 0; i < queues.size(); ++i)
      if (*queues[i].flow > last) return i;
    return 0;
  }
};

/// program-aware-fairness: least attained service, with some credit for waiting; or (strategy
/// turn-priority, llm-d-router PR 2116, strategy_turnpriority.go) the session that has had most
/// turns, whose prefix is most likely still cached.
class ProgramAwareFairness final : public FairnessPolicy {
 public:
  ProgramAwareFairness(const ProgramAwareParameters& p, const PluginSpec&, BuildContext&)
      : parameters_(p) {}
  std::size_t choose(std::span<const FlowQueue> queues, const std::string&,
                     SimTime now) const override {
    return parameters_.strategy == FairnessStrategy::kTurnPriority
               ? deepest_session(queues, now)
               : least_attained_service(queues, now);
  }

 private:
  std::size_t least_attained_service(std::span<const FlowQueue> queues, SimTime now) const {
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
  /// Equal scores go to the one that waits longest; upstream, in the order of a hash map.
  std::size_t deepest_session(std::span<const FlowQueue> queues, SimTime now) const {
    std::size_t best = 0;
    double best_score = -1;
    for (std::size_t i = 0; i < queues.size(); ++i) {
      const double waits_s = wait_ms(queues[i], now) / 1000;
      const double score =
          static_cast<double>(turn(queues[i])) + parameters_.turn_time_weight * waits_s;
      const bool longer = score == best_score && waits_s > wait_ms(queues[best], now) / 1000;
      if (score <= best_score && !longer) continue;
      best_score = score;
      best = i;
    }
    return best;
  }
  /// The turn of the flow's first request. Requests without a session share a flow without depth.
  std::int64_t turn(const FlowQueue& q) const {
    if (*q.flow == "default-flow") return 1;
    const Duration idle =
        q.last_end && q.in_flight == 0 ? q.head->enqueued - *q.last_end : Duration::zero();
    const Duration most = Duration::from_seconds(parameters_.turn_inactivity_seconds);
    const bool cold = most > Duration::zero() && idle > most;
    return cold ? 1 : q.sent + 1;
  }

  ProgramAwareParameters parameters_;
};

/// static-usage-limit-policy.
class StaticUsageLimit final : public UsageLimitPolicy {
 public:
  StaticUsageLimit(const StaticLimitParameters& p, const PluginSpec&, BuildContext&)
      : threshold_(p.threshold) {}
  void ceilings(std::span<const std::int32_t>, double, std::span<double> out) override {
    std::fill(out.begin(), out.end(), threshold_);
  }

 private:
  double threshold_;
};

/// priority-holdback-policy: lower bands stop earlier.
class PriorityHoldback final : public UsageLimitPolicy {
 public:
  PriorityHoldback(const HoldbackParameters& p, const PluginSpec& spec, BuildContext& context)
      : domain_(p.domain), lowest_(p.min_ceiling.value_or(0)), highest_(p.max_ceiling.value_or(1)) {
    const bool is_explicit = domain_ == HoldbackDomain::kExplicit;
    if (is_explicit) read_ceilings(p.ceilings, spec, context);
    if (is_explicit && (p.shape || p.min_ceiling || p.max_ceiling))
      context.error(spec, "domain", "explicit takes ceilings alone, no shape and no bounds");
    if (!is_explicit && !p.min_ceiling) context.error(spec, "minCeiling", "is missing");
    if (!is_explicit && !p.ceilings.empty())
      context.error(spec, "ceilings", "needs domain: explicit");
    if (!is_explicit && lowest_ >= highest_)
      context.error(spec, "maxCeiling", "must be above minCeiling");
  }
  void ceilings(std::span<const std::int32_t> priorities, double, std::span<double> out) override {
    const double range = highest_ - lowest_;
    const std::size_t n = priorities.size();
    for (std::size_t i = 0; i < n; ++i) {
      if (domain_ == HoldbackDomain::kExplicit) {
        const auto found = ceilings_.find(priorities[i]);
        out[i] = found == ceilings_.end() ? 0 : found->second;  // Upstream closes other bands.
      } else if (n == 1) {
        out[i] = highest_;
      } else if (domain_ == HoldbackDomain::kRank) {
        out[i] = highest_ - static_cast<double>(i) * range / static_cast<double>(n - 1);
      } else {
        const double first = priorities.front(), last = priorities.back();
        out[i] = lowest_ + (priorities[i] - last) / (first - last) * range;
      }
    }
  }

 private:
  void read_ceilings(const Document& given, const PluginSpec& spec, BuildContext& context) {
    if (given.root == nullptr || !given.root->is_map() || given.root->members().empty())
      return context.error(spec, "ceilings", "is missing, which domain explicit needs");
    for (const ConfigNode::Member& member : given.root->members()) {
      std::int32_t priority = 0;
      const char* const end = member.key.data() + member.key.size();
      const auto [stop, fault] = std::from_chars(member.key.data(), end, priority);
      const Parsed<double> ceiling = parse_real(*member.value, {.min = 0, .max = 1});
      if (fault != std::errc() || stop != end || !ceiling.value)
        context.error(spec, "ceilings", "needs whole priorities and ceilings from 0 to 1");
      else
        ceilings_[priority] = *ceiling.value;
    }
    double below = 0;  // From the lowest priority up.
    for (const auto& [priority, ceiling] : ceilings_) {
      if (ceiling < below)
        context.error(spec, "ceilings",
                      "must not fall with the priority (" + std::to_string(priority) + ")");
      below = ceiling;
    }
  }

  HoldbackDomain domain_;
  double lowest_, highest_;
  std::map<std::int32_t, double> ceilings_;
};

/// soft-reflective-ceiling-policy: lower bands are let through less and less often.
class SoftReflectiveCeiling final : public UsageLimitPolicy {
 public:
  void ceilings(std::span<const std::int32_t> priorities, double saturation,
                std::span<double> out) override {
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

 private:
  std::uint64_t tick_ = 0;
};

}  // namespace routesim::policies
