// Flow control (feature gate flowControl): requests wait in queues per (priority, fairness id)
// until the pool has room. llm-d-router pkg/epp/flowcontrol. Driven by its owner: enqueue on
// arrival, dispatch on arrival and every kDispatchPeriod, expire every kExpiryPeriod.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policies/flow/reclamation.h"
#include "policies/plugins.h"
#include "policies/scheduler.h"

namespace routesim::policies {

class FlowControl {
 public:
  static constexpr Duration kDispatchPeriod = Duration::milliseconds(1);
  static constexpr Duration kExpiryPeriod = Duration::seconds(1);

  /// `scheduler` must outlive this and have the gate on.
  explicit FlowControl(Scheduler& scheduler);

  /// HTTP status of a refusal: 429, or 503 while the pool is empty; 0 when queued. Limits are the
  /// global and the band's requests and bytes. A zero `ttl` means the configured one.
  int enqueue(QueuedRequest request, const EndpointTable& endpoints, SimTime now);
  /// One dispatch attempt: the request to send now, if any.
  std::optional<std::uint64_t> dispatch(const EndpointTable& endpoints, SimTime now);

  struct Expired {
    std::uint64_t request;
    int http_status;  ///< 429, or 503 while the pool is empty.
  };
  /// Drops requests whose time to live is over, and idle flows and bands.
  std::vector<Expired> expire(const EndpointTable& endpoints, SimTime now);
  /// The client went away. False when the request is not queued.
  bool cancel(std::uint64_t request, SimTime now);
  /// A dispatched request of `flow` was forwarded to an endpoint (program-aware fairness).
  void on_routed(const std::string& flow, SimTime now);
  /// It has ended, and used this many tokens.
  void on_completed(const std::string& flow, std::int64_t prompt_tokens,
                    std::int64_t completion_tokens, SimTime now);

  /// With enableEviction: a dispatched request was forwarded.
  void track(std::uint64_t request, std::int32_t priority) {
    if (reclamation_) reclamation_->track(request, priority);
  }
  /// It has ended, however.
  void end(std::uint64_t request, SimTime now) {
    if (reclamation_) reclamation_->end(request, now);
  }
  /// Tracked requests that the last dispatch() wants ended, so that others get their room.
  std::vector<std::uint64_t> take_victims() { return std::exchange(victims_, {}); }

  std::size_t queued() const { return where_.size(); }
  std::int64_t queued_bytes() const { return bytes_; }

  /// The fairness id of a request: its header, `agent` if there is one, else "default-flow".
  static std::string flow_of(const RequestView& request, std::string_view agent = {});
  /// max of the detector over prefill-capable and over decode-capable endpoints; over the whole
  /// pool when no endpoint has a role.
  double saturation(const EndpointTable& endpoints, SimTime now) const;

 private:
  // The head is the smallest (key, sequence).
  struct Slot {
    SimTime key;
    std::uint64_t sequence;
    auto operator<=>(const Slot&) const = default;
  };
  struct Flow {
    std::map<Slot, QueuedRequest> queue;
    SimTime last_active;
  };
  struct Band {
    PriorityBandSpec spec;
    const OrderingPolicy* ordering = nullptr;
    const FairnessPolicy* fairness = nullptr;
    bool configured = false;
    std::map<std::string, Flow> flows;
    std::string last_flow;
    std::int64_t requests = 0, bytes = 0;
    SimTime last_active;
  };
  struct Position {
    std::int32_t priority;
    std::string flow;
    Slot slot;
  };
  struct Turns {
    std::int64_t sent = 0, in_flight = 0;
    std::optional<SimTime> last_end;
    SimTime at;
  };
  struct Service {
    double tokens = 0;
    SimTime at;
  };

  Band make_band(PriorityBandSpec spec, bool configured) const;
  Band& band(std::int32_t priority);
  void note_pool(bool empty, SimTime now);
  QueuedRequest take(Band& band, Flow& flow, const Slot& slot, SimTime now);
  double service(const std::string& flow, SimTime now) const;
  std::optional<std::uint64_t> dispatch_from(Band& band, SimTime now);
  void reclaim(double saturation, std::size_t blocked, std::span<const double> ceilings,
               SimTime now);
  void collect_idle(SimTime now);

  Scheduler& scheduler_;
  FlowControlSpec spec_;
  UsageLimitPolicy* usage_limit_ = nullptr;
  const SaturationDetector* detector_ = nullptr;
  std::map<std::int32_t, Band, std::greater<>> bands_;  // Highest priority first.
  std::unordered_map<std::uint64_t, Position> where_;   // Never iterated.
  std::map<std::string, Service> service_;
  std::map<std::string, Turns> turns_;
  std::int64_t bytes_ = 0;
  std::uint64_t next_sequence_ = 0;
  std::optional<Reclamation> reclamation_;
  std::vector<std::uint64_t> victims_;
  std::optional<bool> pool_empty_;
  SimTime pool_changed_;
};

}  // namespace routesim::policies
