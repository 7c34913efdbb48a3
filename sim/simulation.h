// One run of one variant: owns everything, and is the only loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/engine/api_server.h"
#include "sim/engine/front_end.h"
#include "sim/engine/prompt_keys.h"
#include "sim/engine/replica.h"
#include "sim/event_queue.h"
#include "sim/network/transfer_fabric.h"
#include "sim/observe/metrics_collector.h"
#include "sim/observe/observer.h"
#include "sim/observe/run_result.h"
#include "sim/plan/resolve.h"
#include "sim/router/router.h"

namespace routesim::sim {

class InvariantChecker;

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

/// Thrown when requests are outstanding and nothing can ever happen again. The message says who
/// waits for what.
class StuckError : public InternalError {
 public:
  using InternalError::InternalError;
};

class Simulation {
 public:
  /// The plan must outlive the simulation.
  Simulation(const RunPlan& plan, const RunOptions& options, Diagnostics& diagnostics);
  ~Simulation();

  /// Runs to the end. Deterministic in (plan, seed). Call once.
  RunResult run();

 private:
  RunResult run_to_end();
  /// Where a request is on its way.
  enum class Leg : std::uint8_t {
    kToRouter,
    kQueued,     ///< Held back by the router's flow control.
    kToPrefill,  ///< PD: on its way to, or in, the prefill server.
    kPrefill,
    kToEngine,
    kEngine,   ///< In the (decode) engine.
    kToClient  ///< Finished; the last token is on its way.
  };
  struct Live {
    workloads::Request request;
    const PromptKeys* keys = nullptr;
    Route route;
    Leg leg = Leg::kToRouter;
    bool in_use = false;
    bool settled = false;  ///< The client is done with it; only the engine still has it.
    bool pulled = false;   ///< PD: the prefill side's blocks were notified free.
    bool pulling = false;  ///< PD: the decode side has blocks and waits for the KV.
    bool lost = false;     ///< PD: the lease was over before the KV was read.
    double pull_bytes = 0;
    std::uint32_t stamp = 0;
    std::int32_t preemptions = 0;
    const char* failure = "";
    SimTime sent, first_token, end;
    std::int64_t cached_tokens = 0;
    std::vector<std::uint64_t> answer_keys;  ///< Router keys of blocks behind the prompt's.
    policies::ChainState answer_state;
  };
  class Keys;
  class StepRelay;

  void start_observers(const RunView& view);
  void tick(SimTime until);
  void book_tick();
  void add_pool(std::uint32_t index, std::vector<EndpointHome>& endpoints);
  void add_replica(const ResolvedPool& pool, int ranks, std::uint64_t first_endpoint,
                   std::optional<std::uint64_t> front_end);
  EndpointId choose_rank(EndpointId server, SimTime now);
  void leave_rank(EndpointId endpoint);
  void handle(const Event& e);
  void client_action(SimTime now);
  void schedule_client(SimTime now);
  void send(workloads::Request&& sent, const PromptKeys& keys, SimTime now);
  void route(std::uint32_t handle, SimTime now);
  void apply_route(std::uint32_t handle, const Route& route, SimTime now);
  void hold_back(std::uint32_t handle, SimTime now);
  bool dispatch(std::uint32_t instance, SimTime now);
  void router_tick(SimTime now);
  void book_router_tick(SimTime now);
  void enter_server(std::uint32_t handle, EndpointId endpoint, SimTime now);
  void begin_round(std::uint32_t server, std::uint32_t process, SimTime now);
  void book_round(std::uint32_t server, const std::optional<ApiServer::Round>& round);
  /// What an API server calls when it knows when a request will be at its engine.
  auto booking() {
    return [this](const ApiServer::Visitor& v, SimTime at) {
      queue_.push(at, EventKind::kDelivery, v.handle, v.stamp);
    };
  }
  void deliver(std::uint32_t handle, SimTime now);
  void wake(std::uint32_t replica, SimTime now);
  void after_touch(std::uint32_t replica, SimTime now);
  void collect(std::uint32_t replica, SimTime now);
  void on_output(const EngineOutput& o, SimTime now);
  void on_finished(std::uint32_t handle, const EngineOutput& o);
  void prefill_finished(std::uint32_t handle, SimTime now);
  void start_transfer(std::uint32_t handle, std::int64_t blocks, SimTime now);
  void begin_pull(std::uint32_t handle, SimTime now);
  void book_lease(std::uint32_t handle, SimTime now);
  void end_leases(SimTime now);
  void lose_kv(std::uint32_t handle, SimTime now);
  void fail_load(std::uint32_t handle, SimTime now);
  void release_prefill(std::uint32_t handle, SimTime now);
  void transfer_tick(SimTime now);
  void schedule_transfer_tick();
  void fail(std::uint32_t handle, const char* label, workloads::Outcome outcome, SimTime now);
  void give_up(std::uint32_t handle, const char* label, workloads::Outcome outcome, SimTime now);
  void complete(std::uint32_t handle, workloads::Outcome outcome, SimTime now);
  void settle(std::uint32_t handle, workloads::Outcome outcome, SimTime now);
  void recycle(std::uint32_t handle);
  void enter_stage(StageId stage, SimTime now);
  void close_stage(StageId stage, SimTime now);
  double used_block_seconds(SimTime now);
  EngineRequest engine_request(std::uint32_t handle) const;
  const EndpointHome& home(EndpointId e) const { return router_->endpoints()[e.value()]; }
  void key_prompts(std::size_t i);
  std::uint32_t acquire_slot();
  std::string waits_for(const Live& live, SimTime now) const;
  [[noreturn]] void throw_end_of_time() const;
  [[noreturn]] void report_stuck(SimTime now) const;
  void verify() const;
  void note_long_waits();
  std::vector<StepTimes> step_times() const;
  RunResult result();

  const RunPlan& plan_;
  RunOptions options_;
  EventQueue queue_;
  std::unique_ptr<workloads::LoadGenerator> load_;
  std::unique_ptr<PromptKeyTable> prompt_keys_;
  std::unique_ptr<Keys> key_source_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::unique_ptr<Router> router_;
  std::unique_ptr<MetricsCollector> metrics_;
  TransferFabric fabric_;
  SimTime pending_tick_ = SimTime::max();
  /// A prefill server's promise to keep the blocks of a request.
  struct Lease {
    SimTime end;
    std::uint32_t handle = 0;
    std::uint32_t stamp = 0;
  };
  std::deque<Lease> leases_;  ///< By end; the event of the first one is booked.
  SimTime pending_lease_ = SimTime::max();
  /// When two servers (from, to) have shaken hands.
  std::map<std::pair<std::uint32_t, std::uint32_t>, SimTime> acquainted_;
  std::vector<EngineOutput> spare_outputs_;
  std::vector<ApiServer> api_servers_;
  std::vector<std::uint32_t> api_server_of_;  ///< By endpoint.
  std::vector<FrontEnd> front_ends_;          ///< Of servers that balance their own ranks.
  std::unordered_map<std::uint32_t, std::size_t> front_end_of_;  ///< By endpoint.
  bool router_tick_booked_ = false;
  std::int64_t lonely_ticks_ =
      0;  ///< Router ticks in a row before which nothing else could happen.
  std::vector<Live> live_;
  std::vector<std::uint32_t> free_live_;
  std::int64_t outstanding_ = 0;
  std::uint64_t arrivals_ = 0;
  SimTime pending_client_ = SimTime::max();
  StageId current_stage_;
  std::int64_t stage_outstanding_ = 0;
  double stage_start_usage_ = 0;
  std::unique_ptr<InvariantChecker> checker_;
  std::unique_ptr<StepRelay> step_relay_;
  SimTime next_tick_ = SimTime::max();  ///< The observers' earliest.
  std::vector<workloads::Request> to_send_;
  Samples unattributed_gaps_;
  RunResult result_;
  std::vector<std::int64_t> endpoint_requests_;
  bool stopped_ = false;
  bool private_answers_ = false;  ///< Blocks of answers that no prompt can contain go unannounced.
};

}  // namespace routesim::sim
