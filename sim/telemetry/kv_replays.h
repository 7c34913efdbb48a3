// KV events that a router asks an engine for again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "base/units.h"
#include "policies/kv_events/kv_events.h"
#include "sim/engine/kv_event_log.h"

namespace routesim::sim {

/// Keeps the batches that engines publish, and how far each router process has read them: as
/// llm-d-router v0.10.0 does with `replaySocketPort` (see ReplayTracker). O(processes) for a
/// batch, O(kBufferSteps) for a replay and in memory for an endpoint.
class KvReplays {
 public:
  /// An engine forgets older batches (buffer_steps in vllm/config/kv_events.py).
  static constexpr std::size_t kBufferSteps = 10'000;

  /// The knowledge of one process about one endpoint.
  class Index : public KvEventLog::Reader {
   public:
    virtual void clear() = 0;
  };

  /// A replay is there `round_trip` after it was asked for. `answers`, by endpoint: the engine
  /// sends frames that the router reads. Every process has subscribed to every endpoint.
  KvReplays(Duration round_trip, std::vector<bool> answers, std::size_t processes);

  /// A subscription begins, and asks for everything; or ends.
  void subscribe(std::size_t process, std::uint32_t endpoint, SimTime now);
  void unsubscribe(std::size_t process, std::uint32_t endpoint);
  /// The next batch of an endpoint.
  void add(std::uint32_t endpoint, const KvEventLog::Batch& batch,
           std::span<const std::uint64_t> words);
  /// Appends endpoints whose replays are there.
  void take_due(SimTime now, std::vector<std::uint32_t>& endpoints);
  /// Applies what one process has of an endpoint by `now`.
  void read(std::size_t process, std::uint32_t endpoint, SimTime now, Index& index);
  /// Replays that did not bring all that was asked for.
  std::int64_t failed() const { return failed_; }

 private:
  struct Stored {
    KvEventLog::Batch batch;
    std::uint32_t life = 0;  ///< How often the engine had started again.
    std::vector<std::uint64_t> words;
  };
  struct Ask {
    SimTime answered;
    std::uint64_t from = 0;
  };
  struct Subscription {
    bool open = true;
    bool asked = false;  ///< For the batch that is next.
    SimTime since = SimTime::from_ns(-1);
    SimTime free{};        ///< It waits for a replay until then.
    std::size_t next = 0;  ///< Batches read.
    std::optional<Ask> ask{};
    policies::ReplayTracker tracker{};
  };
  struct Stream {
    std::deque<Stored> stored;
    std::size_t gone = 0;  ///< Batches that are no longer stored.
    std::vector<Subscription> by_process;
  };

  void ask(Subscription& s, std::uint32_t endpoint, std::uint64_t from, SimTime now);
  void finish(Subscription& s, std::uint32_t endpoint, Index& index);
  static void forget_old(Stream& stream);

  Duration round_trip_;
  std::vector<bool> answers_;
  std::vector<Stream> streams_;  ///< By endpoint.
  struct Due {
    SimTime at;
    std::uint32_t endpoint;
  };
  std::vector<Due> due_;
  std::int64_t failed_ = 0;
};

}  // namespace routesim::sim
