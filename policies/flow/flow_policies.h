// Ordering, fairness and usage-limit policies of flow control.
// llm-d-router pkg/epp/framework/plugins/flowcontrol.
#pragma once

#include <cstdint>

#include "policies/config/factory.h"

namespace routesim::policies {

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
