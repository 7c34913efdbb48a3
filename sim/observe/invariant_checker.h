// Holds a run to the numbered invariants of sim/README.md while it lasts. It watches from outside
// and never helps: everything it knows, observations told it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "sim/observe/observer.h"

namespace routesim::sim {

/// A numbered invariant does not hold. The message starts with its number.
class InvariantError : public InternalError {
 public:
  InvariantError(int number, const std::string& what)
      : InternalError("invariant " + std::to_string(number) + ": " + what), number_(number) {}
  /// The number of the invariant in sim/README.md.
  int number() const { return number_; }

 private:
  int number_;
};

/// The visible state of one endpoint at an instant.
struct EndpointObservation {
  std::int64_t running = 0;
  std::int64_t waiting = 0;  ///< In the waiting queue, those that wait for remote KV included.
  std::int64_t loading = 0;  ///< The part of these that waits for remote KV.
  std::int64_t held = 0;     ///< PD: finished prefills whose blocks are kept.
  std::int64_t storing = 0;  ///< Finished, blocks kept until they are copied to the host.
  bool copying = false;      ///< Blocks are copied from or to the host.
  std::int64_t inbox = 0;    ///< Inputs the engine has not drained.
  std::int64_t used_blocks = 0;
  std::int64_t free_blocks = 0;
  std::int64_t usable_blocks = 0;
  std::int64_t max_num_seqs = 0;
  std::int64_t query_tokens = 0;  ///< Counter.
  std::int64_t hit_tokens = 0;    ///< Counter.
  bool stepping = false;
};

/// Throws InvariantError at the first observation that breaks an invariant.
class InvariantChecker final : public Observer {
 public:
  void on_start(const RunView& view) override;
  void on_sent(const workloads::Request& request, SimTime now) override;
  void on_routed(const workloads::Request& request, const Route& route, SimTime now) override;
  void on_delivered(const workloads::Request& request, EndpointId to, SimTime now) override;
  void on_prefilled(const workloads::Request& request, SimTime now) override;
  void on_first_token(const workloads::Request& request, SimTime now) override;
  void on_lost(const workloads::Request& request, SimTime now) override;
  void on_done(const RequestRecord& record) override;
  void on_replica_advanced(const Replica& replica, SimTime now) override;
  bool wants_steps() const override { return true; }
  void on_step(const StepSpan& span) override;
  void on_result(const RunResult& result, bool complete) override;

  /// The parts of the checks above that need no live server; tests doctor what they are told.
  void check_endpoint(std::uint32_t endpoint, const EndpointObservation& seen, SimTime now);
  /// A router decided at `now` with gauges scraped at `scraped`; the next scrape is at `next`.
  static void check_signal(SimTime scraped, SimTime next, Duration interval, SimTime now);
  /// For tests: `endpoints` servers, stages and limits without a simulation.
  void start(std::size_t endpoints, std::vector<workloads::StageInfo> stages,
             std::int64_t max_num_seqs, std::int64_t max_num_batched_tokens,
             std::size_t pipeline_stages = 1);

 private:
  enum class Phase : std::uint8_t {
    kSent,
    kRouted,
    kPrefilling,
    kPrefilled,
    kDelivered,
    kAnswering
  };
  struct Pending {
    Phase phase = Phase::kSent;
    std::uint32_t stage = 0;
    std::uint32_t endpoint = 0;
    std::int64_t prefill = -1;  ///< Endpoint, or -1.
    bool lost = false;          ///< It goes on without another decision, or with one.
    std::int64_t prompt = 0;
    std::int64_t output = 0;
    SimTime sent, first_token;
  };
  struct StageCount {
    std::int64_t sent = 0, done = 0, failed = 0, gaps = 0, begun_anew = 0;
  };
  struct Endpoint {
    std::int64_t open_holds = 0;  ///< Prefilled for a request that has not read the blocks.
    std::int64_t delivered = 0;
    std::int64_t query_tokens = 0, hit_tokens = 0;
    std::int64_t max_num_seqs = 0, max_num_batched_tokens = 0;
    std::vector<SimTime> last_step;  ///< Per pipeline stage: the end of its last span.
    std::deque<SimTime> batch_ends;  ///< Of the last batches, as many as there are stages.
    bool lock_step = false;
  };

  Pending& pending(const workloads::Request& request, const char* event);
  void note_time(SimTime now);
  void close_hold(Pending& p);
  void check_order(Endpoint& e, std::uint32_t index, const StepSpan& span) const;
  void check_success(const Pending& p, const RequestRecord& r) const;
  void check_stage(std::size_t index, const StageResult& stage) const;
  EndpointObservation observe(std::uint32_t endpoint) const;

  const RunView* view_ = nullptr;
  std::vector<workloads::StageInfo> stages_;
  std::vector<StageCount> counts_;
  std::vector<Endpoint> endpoints_;
  std::vector<std::uint32_t> first_endpoint_;  ///< Per replica.
  std::unordered_map<const Replica*, std::uint32_t> number_;
  std::unordered_map<std::int64_t, Pending> pending_;  ///< By request; never iterated.
  std::vector<bool> seen_;                             ///< Requests ever sent, by id.
  SimTime now_;
  std::int64_t verify_credit_ = 0;
  bool fleet_changes_ = false;
};

}  // namespace routesim::sim
