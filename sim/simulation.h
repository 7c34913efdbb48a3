// One run of one variant: owns everything, and is the only loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/run_error.h"
#include "sim/client.h"
#include "sim/event_queue.h"
#include "sim/gateway.h"
#include "sim/held_picks.h"
#include "sim/held_requests.h"
#include "sim/kv_moves.h"
#include "sim/live_keys.h"
#include "sim/live_requests.h"
#include "sim/observe/observer_list.h"
#include "sim/observe/run_result.h"
#include "sim/outages.h"
#include "sim/plan/resolve.h"
#include "sim/router/router.h"
#include "sim/run_recorder.h"
#include "sim/servers.h"

namespace routesim::sim {

/// How far a run has come, for a progress bar in another thread.
struct Progress {
  std::atomic<std::int64_t> completed{0};
  std::atomic<std::int64_t> total{0};  ///< 0 while unknown.
  std::atomic<bool> stop{false};       ///< Set to end the run early; the result says so.
};

struct RunOptions {
  std::uint64_t seed = 1;
  bool reference = false;      ///< One visit per step and sequence: slow, the same results.
  bool keep_requests = false;  ///< Fill RunResult::requests.
  bool check = false;          ///< Hold the run to the numbered invariants (InvariantChecker).
  Progress* progress = nullptr;
  DecisionProbe* probe = nullptr;  ///< Looks into routing decisions.
  std::vector<Observer*> observers;
};

/// Thrown when requests are outstanding and nothing can ever happen again. The message says which
/// requests wait for what.
class StuckError : public InternalError {
 public:
  using InternalError::InternalError;
};

/// Thrown when every open request waits at a router, a pool has no server, and none is to come. The
/// input is at fault: its fleet shrinks to nothing under load.
class NoServerError : public RunError {
 public:
  using RunError::RunError;
};

/// Leads every request from the load tool through the router and the servers to its client.
class Simulation final : private RequestFlow {
 public:
  /// The plan must outlive the simulation.
  Simulation(const RunPlan& plan, const RunOptions& options, Diagnostics& diagnostics);
  ~Simulation() override;

  /// Runs to the end. Deterministic in (plan, seed). Call once.
  RunResult run();

 private:
  RunResult run_to_end();
  SimTime idle_until(SimTime least);
  /// Nothing is sent before something is answered.
  bool load_waits() const {
    return client_->load().next_action() == SimTime::max() && !client_->load().finished();
  }
  void handle(const Event& e);
  [[noreturn]] void throw_end_of_time() const;
  /// The pool whose servers the open requests wait for; nothing where they wait for something else.
  std::optional<std::size_t> awaited_pool() const;
  void verify() const;

  void send(workloads::Request&& sent, const PromptKeys& keys, SimTime now);

  // On the way to an engine.
  void book_decision(std::uint32_t handle, SimTime arrival);
  void route(std::uint32_t handle, SimTime now);
  void apply_route(std::uint32_t handle, const Route& route, SimTime now) override;
  void refuse(std::uint32_t handle, int http_status, SimTime now) override;
  bool try_again(std::uint32_t handle, int http_status, SimTime now);
  void back_off(std::uint32_t handle, std::uint32_t instance, SimTime until);
  void enter_gateway(std::uint32_t handle, SimTime now);
  void leave_gateway(SimTime now);
  void unroute(std::uint32_t handle, SimTime now);
  void dispatch(std::uint32_t handle, SimTime now);
  void enter_server(std::uint32_t handle, EndpointId endpoint, SimTime now);
  void begin_round(std::uint32_t server, std::uint32_t process, SimTime now);
  void book_round(std::uint32_t server, const std::optional<ApiServer::Round>& round);
  /// The function that an API server calls when it knows when a request will be at its engine.
  auto booking() {
    return [this](const ApiServer::Visitor& v, SimTime at) {
      queue_.push(at, EventKind::kDelivery, v.handle, v.stamp);
    };
  }
  EngineRequest engine_request(std::uint32_t handle) const;
  void deliver(std::uint32_t handle, SimTime now);

  // News from engines.
  void after_touch(std::uint32_t replica, SimTime now) override;
  void collect(std::uint32_t replica, SimTime now);
  void on_output(const EngineOutput& o, SimTime now);
  void on_finished(std::uint32_t handle, const EngineOutput& o);
  void prefill_finished(std::uint32_t handle, SimTime now);

  // The end of a request.
  void fail(std::uint32_t handle, const char* label, workloads::Outcome outcome, SimTime now);
  void give_up(std::uint32_t handle, const char* label, workloads::Outcome outcome,
               SimTime now) override;
  void lose(std::uint32_t handle, Loss loss, SimTime now) override;
  void go_again(std::uint32_t handle, SimTime now);
  void lose_connection(std::uint32_t handle, SimTime now);
  void fall_back(std::uint32_t handle, SimTime now) override;
  void free(std::uint32_t handle) override { recycle(handle); }
  bool fleet_may_grow() const override { return outages_ && outages_->fleet().may_grow(); }
  void fleet_changed(SimTime now) override;
  std::uint32_t succeed(std::uint32_t handle);
  void end_at_engine(std::uint32_t handle, Leg leg, SimTime now);
  void complete(std::uint32_t handle, workloads::Outcome outcome, SimTime now);
  void settle(std::uint32_t handle, workloads::Outcome outcome, SimTime now);
  void recycle(std::uint32_t handle);
  void report(const CopySpan& span) override {
    for (Observer* o : observers_) o->on_copy(span);
  }
  [[noreturn]] void report_stuck(SimTime now) const override;

  const RunPlan& plan_;
  RunOptions options_;
  EventQueue queue_;
  std::optional<PromptKeyTable> prompt_keys_;
  std::optional<Client> client_;
  LiveRequests live_;
  std::optional<LiveKeys> live_keys_;
  std::optional<Servers> servers_;
  std::optional<Router> router_;
  std::optional<RunRecorder> recorder_;
  std::optional<KvMoves> moves_;
  std::optional<Outages> outages_;  ///< Where the fleet changes.
  /// Requests that wait at the router, for flow control or for a balancer; and behind it.
  struct AtRouter {
    std::optional<HeldRequests> by_flow;
    std::optional<HeldPicks> by_balancer;
    std::optional<Gateway> gateway;
  };
  AtRouter at_router_;
  ObserverList observers_;
  std::uint64_t arrivals_ = 0;
  std::vector<EngineOutput> outputs_;  ///< Scratch of collect().
  bool stopped_ = false;
  bool private_answers_ = false;  ///< Blocks of answers that no prompt can contain go unannounced.
};

}  // namespace routesim::sim
