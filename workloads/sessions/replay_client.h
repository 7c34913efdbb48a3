// inference-perf's client for recorded sessions: a pool of sessions, each a graph of calls.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "workloads/assemble.h"
#include "workloads/load_generator.h"
#include "workloads/sessions/replay_corpus.h"
#include "workloads/timers.h"

namespace routesim::workloads {

/// A stage takes the next `sessions` of the order and keeps up to `concurrent` of them going; with
/// a rate, one starts at a time. A session is over when all its calls have succeeded, or when one
/// has failed.
struct ReplayStage {
  StageInfo info{};
  std::int64_t sessions = 0;
  std::int64_t concurrent = 0;           ///< 0: all.
  std::optional<double> session_rate{};  ///< Sessions/s (> 0).
  Duration limit = Duration::max();      ///< From its start on, no more calls are sent.
  Duration grace{};                      ///< What is under way then may take that much longer.
};

struct ReplayClientOptions {
  std::vector<std::int64_t> permits{1};  ///< Of each worker (>= 1).
  Duration request_timeout = Duration::max();
  Duration interval{};          ///< Between stages.
  Duration predecessor_wait{};  ///< A call that waits longer fails; zero: never.
  bool mark_sessions = false;   ///< Each session puts a text of its own before recorded messages.
  bool ignore_eos = true;
};

/// One run of a session.
struct ReplaySlot {
  std::uint32_t session = 0;  ///< Of the corpus.
  bool duplicate = false;     ///< Has a text of its own like with mark_sessions.
};

/// All calls of a session belong to one worker, drawn by the session's number. A worker takes its
/// calls in their order; each holds a permit from then on, while it waits for its predecessors and
/// its pause, until its answer has come. After a failure in the session, calls that are still
/// queued, and those that wait for the failed one, fail too; others go on. A stage ends when all
/// its sessions are over, a second later at least, and when nothing is under way.
class ReplayClient final : public LoadGenerator {
 public:
  ReplayClient(std::shared_ptr<const ReplayCorpus> corpus, std::vector<ReplaySlot> slots,
               std::vector<ReplayStage> stages, const ReplayClientOptions& client,
               const WorkloadOptions& options);

  const std::vector<StageInfo>& stages() const override { return infos_; }
  SimTime next_action() const override;
  void advance(SimTime now, std::vector<Request>& out) override;
  void on_completed(const Request& request, Outcome outcome, SimTime now) override;
  bool finished() const override { return stage_ == stages_.size(); }

 private:
  enum class What { kStage, kSession, kSend, kGiveUp, kLimit };
  enum class State : std::uint8_t { kQueued, kWaiting, kPausing, kSent, kDone, kFailed };
  struct Event {
    What what;
    std::size_t slot = 0;
    std::uint32_t call = 0;
  };
  struct Call {
    State state = State::kQueued;
    std::uint32_t missing = 0;  // Predecessors not done yet.
    std::int64_t answer_tokens = 0;
  };
  struct Active {
    const ReplaySession* session = nullptr;
    std::vector<Call> calls;
    std::vector<std::vector<std::uint32_t>> successors;
    std::size_t ended = 0;  // Calls done or failed.
    std::size_t done = 0;
    bool failed = false;
  };
  struct Worker {
    std::int64_t permits = 0;
    std::deque<std::pair<std::size_t, std::uint32_t>> queue;
  };

  void start_stage(SimTime start);
  void start_sessions();
  void start_session(std::size_t slot);
  void pump(std::size_t worker);
  void settle(std::size_t worker);
  void begin_call(std::size_t slot, std::uint32_t call);
  void end_call(std::size_t slot, std::uint32_t call, bool success);
  void send(std::size_t slot, std::uint32_t call, std::vector<Request>& out);
  void stop_sending();
  void end_stage_if_over();
  std::size_t worker_of(std::size_t slot) const;
  std::shared_ptr<const Prompt> prompt_of(std::size_t slot, std::uint32_t call);
  std::uint64_t answer_content(std::size_t slot, std::uint32_t call) const;

  std::shared_ptr<const ReplayCorpus> corpus_;
  std::vector<ReplaySlot> slots_;
  std::vector<ReplayStage> stages_;
  std::vector<StageInfo> infos_;
  ReplayClientOptions client_;
  std::uint64_t seed_;
  ChatTemplate template_;
  AnswerLength answer_;

  std::size_t stage_ = 0;
  SimTime now_, stage_start_, next_session_;
  std::optional<SimTime> over_;  // When the stage's last session ended, or its limit came.
  std::size_t next_slot_ = 0, last_slot_ = 0;    // Of the stage, still to start.
  std::int64_t running_ = 0;                     // Sessions.
  std::vector<std::unique_ptr<Active>> active_;  // By slot.
  std::vector<Worker> workers_;
  std::unordered_map<std::uint32_t, std::pair<std::size_t, std::uint32_t>> in_flight_;
  Timers<Event> events_;
  std::uint64_t next_id_ = 0;
  PromptIds prompts_;
};

}  // namespace routesim::workloads
