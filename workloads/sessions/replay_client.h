// inference-perf's client for recorded sessions: a pool of sessions, each a graph of calls.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "workloads/load_generator.h"
#include "workloads/prompts.h"
#include "workloads/sessions/session.h"
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
  Duration grace{};                      ///< Calls in flight then may take that much longer.
};

struct ReplayClientOptions {
  std::vector<std::int64_t> permits{1};  ///< One number per worker (>= 1).
  Duration request_timeout = Duration::max();
  Duration interval{};          ///< Between stages.
  Duration predecessor_wait{};  ///< A call that waits longer fails; zero: never.
  bool mark_sessions = false;   ///< Each session puts a text of its own before recorded messages.
  bool ignore_eos = true;
};

/// One run of a session.
struct ReplaySlot {
  std::uint32_t session = 0;  ///< Index in the sessions.
  bool duplicate = false;     ///< Has a text of its own like with mark_sessions.
};

/// One session that is going on: what has become of its calls, and what each still waits for.
class SessionRun {
 public:
  explicit SessionRun(const Session& session);

  const SessionCall& recorded(std::uint32_t call) const { return session_->calls[call]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(calls_.size()); }
  bool is_waiting(std::uint32_t call) const { return calls_[call].state == State::kWaiting; }
  bool has_failed() const { return failed_; }
  /// Every call has ended.
  bool has_ended() const { return ended_ == calls_.size(); }
  bool has_succeeded() const { return done_ == calls_.size(); }

  /// A call has its permit. True when nothing is left to wait for but its pause.
  bool begin(std::uint32_t call);
  void send(std::uint32_t call, std::int64_t answer_tokens);
  /// Tokens of the answer of a call that was sent.
  std::int64_t answer_tokens(std::uint32_t call) const { return calls_[call].answer_tokens; }
  /// A call has ended. Returns how many have ended with it, itself included: after a failure those
  /// that wait for it fail too. `ready` receives the calls whose pauses begin now.
  std::int64_t end(std::uint32_t call, bool success, std::vector<std::uint32_t>& ready);

 private:
  enum class State : std::uint8_t { kQueued, kWaiting, kPausing, kSent, kDone, kFailed };
  struct Call {
    State state = State::kQueued;
    std::uint32_t missing = 0;  // Predecessors that are not done yet.
    std::int64_t answer_tokens = 0;
    std::vector<std::uint32_t> successors;
  };

  const Session* session_;
  std::vector<Call> calls_;
  std::size_t ended_ = 0;  // Calls done or failed.
  std::size_t done_ = 0;
  bool failed_ = false;
};

/// Makes the prompts of all sessions: what was recorded, and the answers that really came.
class SessionPrompts {
 public:
  /// With `mark` each session puts a text of its own before recorded messages.
  SessionPrompts(std::shared_ptr<const Sessions> sessions, std::vector<ReplaySlot> slots, bool mark,
                 const WorkloadOptions& options);

  std::size_t slots() const { return slots_.size(); }
  const Session& session(std::size_t slot) const;
  std::uint64_t answer_content(std::size_t slot, std::uint32_t call) const;
  /// The prompt of a call whose predecessors have succeeded in `run`. Linear in its messages.
  std::shared_ptr<const Prompt> make(std::size_t slot, std::uint32_t call, const SessionRun& run);

 private:
  std::shared_ptr<const Sessions> sessions_;
  std::vector<ReplaySlot> slots_;
  bool mark_;
  std::uint64_t seed_;
  ChatFrame frame_;
  PromptIds ids_;
};

/// All calls of a session belong to one worker, drawn by the session's number. A worker takes its
/// calls in their order; each holds a permit from then on, while it waits for its predecessors and
/// its pause, until its answer has come. After a failure in the session, calls that are still
/// queued, and those that wait for the failed one, fail too; others go on. A stage ends when all
/// its sessions are over, a second later at least, and when nothing is under way.
class ReplayClient final : public LoadGenerator {
 public:
  ReplayClient(std::shared_ptr<const Sessions> sessions, std::vector<ReplaySlot> slots,
               std::vector<ReplayStage> stages, const ReplayClientOptions& client,
               const WorkloadOptions& options);

  const std::vector<StageInfo>& stages() const override { return infos_; }
  SimTime next_action() const override;
  void advance(SimTime now, std::vector<Request>& out) override;
  void on_completed(const Request& request, Outcome outcome, SimTime now) override;
  bool finished() const override { return stage_ == stages_.size(); }

 private:
  enum class What { kStage, kSession, kSend, kGiveUp, kLimit };
  struct Event {
    What what;
    std::size_t slot = 0;
    std::uint32_t call = 0;
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
  void pause(std::size_t slot, std::uint32_t call);
  void end_call(std::size_t slot, std::uint32_t call, bool success);
  void send(std::size_t slot, std::uint32_t call, std::vector<Request>& out);
  void stop_sending();
  void end_stage_if_over();
  std::size_t worker_of(std::size_t slot) const;

  SessionPrompts prompts_;
  std::vector<ReplayStage> stages_;
  std::vector<StageInfo> infos_;
  ReplayClientOptions client_;
  std::uint64_t seed_;
  AnswerLength answer_;

  std::size_t stage_ = 0;
  SimTime now_, stage_start_, next_session_;
  std::optional<SimTime> over_;  // When the stage's last session ended, or its limit came.
  std::size_t next_slot_ = 0, last_slot_ = 0;        // Slots of the stage still to start.
  std::int64_t running_ = 0;                         // Sessions.
  std::vector<std::unique_ptr<SessionRun>> active_;  // By slot.
  std::vector<Worker> workers_;
  std::unordered_map<std::uint32_t, std::pair<std::size_t, std::uint32_t>> in_flight_;
  Timers<Event> events_;
  std::uint64_t next_id_ = 0;
};

}  // namespace routesim::workloads
