// Ordering, fairness and usage-limit policies of flow control.
// llm-d-router pkg/epp/framework/plugins/flowcontrol.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/describe.h"
#include "base/field_fates.h"
#include "policies/build_context.h"

namespace routesim::policies {

enum class HoldbackDomain { kRank, kValue };

enum class FairnessStrategy { kLas, kTurnPriority };

}  // namespace routesim::policies

template <>
struct routesim::EnumNames<routesim::policies::HoldbackDomain> {
  static constexpr std::array<std::string_view, 2> value = {"rank", "value"};
};
template <>
struct routesim::EnumNames<routesim::policies::FairnessStrategy> {
  static constexpr std::array<std::string_view, 2> value = {"las", "turn-priority"};
};

namespace routesim::policies {

inline constexpr std::string_view kIdlePrograms = "an idle program keeps no requests waiting";

struct HoldbackParameters {
  HoldbackDomain domain = HoldbackDomain::kRank;
  double min_ceiling = 0;
  double max_ceiling = 1;
};
inline void describe(Describer& d, HoldbackParameters& p) {
  field(d, {"domain", "Spread ceilings by rank or by value of the priority."}, p.domain);
  field(d, {"minCeiling", "Saturation at which the lowest band stops.", true}, p.min_ceiling,
        RealRange{.min = 0, .max = 1, .max_open = true});
  field(d, {"maxCeiling", "Saturation at which the highest band stops."}, p.max_ceiling,
        RealRange{0});
}

struct ProgramAwareParameters {
  FairnessStrategy strategy = FairnessStrategy::kLas;
  double weight_service = 0.8, weight_head_wait = 0.2;
  double half_life_seconds = 60;
  double eviction_ttl_seconds = 3600, eviction_sweep_seconds = 300;
};
inline void describe(Describer& d, ProgramAwareParameters& p) {
  field(d, {"strategy", "Least attained service; turn-priority is not modelled."}, p.strategy);
  field(d, {"lasWeightService", "Weight of the service a program has not had."}, p.weight_service,
        RealRange{0});
  field(d, {"lasWeightHeadWait", "Weight of how long its first request waits."}, p.weight_head_wait,
        RealRange{0});
  field(d, {"lasHalfLifeSeconds", "Half-life of attained service; only 60 is modelled."},
        p.half_life_seconds, RealRange{60, 60});
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

/// fcfs-ordering-policy.
class FcfsOrdering final : public OrderingPolicy {
 public:
  FcfsOrdering(const NoParameters&, const PluginSpec&, BuildContext&) {}
  SimTime key(const QueuedRequest& r) const override { return r.enqueued; }
};

/// edf-ordering-policy: enqueue time plus time to live; requests without one come last.
class EdfOrdering final : public OrderingPolicy {
 public:
  EdfOrdering(const NoParameters&, const PluginSpec&, BuildContext&) {}
  SimTime key(const QueuedRequest& r) const override {
    // A time to live of centuries is none.
    const bool ends = r.ttl > Duration::zero() && r.ttl < SimTime::max() - r.enqueued;
    return ends ? r.enqueued + r.ttl : SimTime::max();
  }
};

/// slo-deadline-ordering-policy: receipt plus the TTFT objective; requests without one come last.
class SloDeadlineOrdering final : public OrderingPolicy {
 public:
  SloDeadlineOrdering(const NoParameters&, const PluginSpec&, BuildContext&) {}
  SimTime key(const QueuedRequest& r) const override {
    const Duration objective = Duration::from_seconds(r.slo_ttft_ms / 1000);
    const bool ends = r.slo_ttft_ms > 0 && objective < SimTime::max() - r.received;
    return ends ? r.received + objective : SimTime::max();
  }
};

/// global-strict-fairness-policy: the best head over all flows.
class GlobalStrictFairness final : public FairnessPolicy {
 public:
  GlobalStrictFairness(const NoParameters&, const PluginSpec&, BuildContext&) {}
  std::size_t choose(std::span<const FlowQueue> queues, const std::string& last,
                     SimTime now) const override;
};

/// round-robin-fairness-policy: the flow after the last one served, in order of their keys.
class RoundRobinFairness final : public FairnessPolicy {
 public:
  RoundRobinFairness(const NoParameters&, const PluginSpec&, BuildContext&) {}
  std::size_t choose(std::span<const FlowQueue> queues, const std::string& last,
                     SimTime now) const override;
};

/// program-aware-fairness: least attained service, with some credit for waiting.
class ProgramAwareFairness final : public FairnessPolicy {
 public:
  ProgramAwareFairness(const ProgramAwareParameters& p, const PluginSpec& spec,
                       BuildContext& context);
  std::size_t choose(std::span<const FlowQueue> queues, const std::string& last,
                     SimTime now) const override;

 private:
  ProgramAwareParameters parameters_;
};

/// static-usage-limit-policy.
class StaticUsageLimit final : public UsageLimitPolicy {
 public:
  StaticUsageLimit(const StaticLimitParameters& p, const PluginSpec&, BuildContext&)
      : threshold_(p.threshold) {}
  void ceilings(std::span<const std::int32_t> priorities, double saturation,
                std::span<double> ceilings) override;

 private:
  double threshold_;
};

/// priority-holdback-policy: lower bands stop earlier.
class PriorityHoldback final : public UsageLimitPolicy {
 public:
  PriorityHoldback(const HoldbackParameters& p, const PluginSpec& spec, BuildContext& context);
  void ceilings(std::span<const std::int32_t> priorities, double saturation,
                std::span<double> ceilings) override;

 private:
  HoldbackParameters parameters_;
};

/// soft-reflective-ceiling-policy: lower bands are let through less and less often.
class SoftReflectiveCeiling final : public UsageLimitPolicy {
 public:
  SoftReflectiveCeiling(const NoParameters&, const PluginSpec&, BuildContext&) {}
  void ceilings(std::span<const std::int32_t> priorities, double saturation,
                std::span<double> ceilings) override;

 private:
  std::uint64_t tick_ = 0;
};

}  // namespace routesim::policies
