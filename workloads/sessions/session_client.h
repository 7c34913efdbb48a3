// inference-perf's client for data with turns: one queue per worker instead of a shared one, and a
// lock per session, so that round r of a user waits for round r - 1 even when it is due.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "workloads/client.h"
#include "workloads/timers.h"

namespace routesim::workloads {

/// Makes the turns of a workload. `index` counts the requests of a stage from 0.
class SessionSource {
 public:
  virtual ~SessionSource() = default;
  /// The lock request `index` needs. Equal values are serialised in order of their due times.
  virtual std::uint64_t session_of(std::size_t stage, std::int64_t index) const = 0;
  /// The number request `index` asks for as its worker; taken modulo the active workers.
  virtual std::int64_t worker_of(std::int64_t index) const = 0;
  /// Fills the request. Called at the moment it is sent: its predecessors have completed.
  virtual void fill(std::size_t stage, std::int64_t index, Request& request) = 0;
  /// Takes the answer into the session, which stays locked (as the permit does) for
  /// Request::held_open after a success.
  virtual void completed(std::size_t stage, std::int64_t index, const Request& request,
                         Outcome outcome) = 0;
  /// Forgets what the tool forgets between stages.
  virtual void end_of_stage(std::size_t stage) = 0;
};

/// Worker w has `permits[w]` permits. It takes a permit before it takes the next request of its own
/// queue, then waits for the due time, then for the session's lock, then sends, and returns the
/// permit when the turn is over. A round that waits for its predecessor therefore holds a permit.
class SessionClient final : public StageClient {
 public:
  struct Stage {
    StageInfo info;
    std::unique_ptr<ArrivalStream> arrivals;
    std::vector<std::int64_t> permits;  ///< One number per active worker; none is zero.
    Duration timeout = Duration::max();
  };

  SessionClient(std::vector<Stage> stages, std::unique_ptr<SessionSource> source,
                StageTiming timing, std::unique_ptr<RateSweep> sweep = nullptr);

  SimTime next_action() const override;
  void advance(SimTime now, std::vector<Request>& out) override;
  void on_completed(const Request& request, Outcome outcome, SimTime now) override;

 private:
  enum class What { kDue, kSend, kRelease, kLimit };
  struct Event {
    What what;
    std::int64_t index;
  };
  struct Lock {
    bool held = false;
    std::deque<std::int64_t> waiting;
  };

  void start_stage(SimTime start);
  void admit(std::size_t worker);
  void send(std::int64_t index, std::vector<Request>& out);
  void release(std::int64_t index);
  void cut();
  void end_stage();
  void change_under_way(std::int64_t by);
  std::size_t worker_of(std::int64_t index) const;

  std::vector<Stage> plans_;
  std::unique_ptr<SessionSource> source_;
  std::int64_t under_way_ = 0;                                // Due and not over, in a probe.
  std::vector<SimTime> due_;                                  // One per request of the stage.
  std::vector<std::vector<std::int64_t>> queues_;             // One per worker, in order.
  std::vector<std::size_t> heads_;                            // Next request of each queue.
  std::unordered_map<std::uint64_t, Lock> locks_;             // Looked up, never iterated.
  std::unordered_map<std::uint32_t, std::int64_t> index_of_;  // In-flight request -> index.
  Timers<Event> events_;
  std::int64_t unfinished_ = 0;
  std::uint64_t next_id_ = 0;
};

}  // namespace routesim::workloads
