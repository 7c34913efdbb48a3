// Pulls of KV chunks between the host-memory tiers of two engines.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "sim/event_queue.h"
#include "sim/kv_disks.h"
#include "sim/live_requests.h"
#include "sim/servers.h"
#include "sim/transfers.h"

namespace routesim::sim {

/// Carries the messages and the bytes of pulls: the engine that computes a prompt asks the one that
/// the router named, which answers, and sends what it has and the other has room for. Each side
/// acts when its running step ends. A pull that takes too long fails, and the prompt is computed
/// (vLLM v0.27.1 v1/kv_offload/tiering/p2p/session/client.py). The engine never weighs a pull
/// against computing: only the router's minCachedTokenDelta does.
class KvPulls final : public TransferOwner, public DiskReader {
 public:
  /// All arguments outlive this.
  KvPulls(Servers& servers, Transfers& transfers, KvDisks& disks, EventQueue& queue,
          RequestFlow& flow);

  /// Sends the messages of a replica.
  void send(std::uint32_t replica, SimTime now);
  void on_transferred(std::uint64_t id, SimTime now) override;
  void on_read(std::uint32_t pull, SimTime now) override;
  /// EventKind::kPullStep: the next message of a pull arrives, or its time is over.
  void step(std::uint32_t id, bool deadline, SimTime now);

 private:
  struct Running {
    std::unique_ptr<KvPull> pull;
    std::uint32_t asks = 0, has = 0;   ///< Endpoints.
    SimTime begin, sent;               ///< Of the pull, and of the bytes it moves.
    PullNews next = PullNews::kAsked;  ///< What arrives next,
    bool to_asker = false;             ///< and at which side.
    bool over = false;
  };
  void begin(std::uint32_t endpoint, std::unique_ptr<KvPull> pull, SimTime now);
  void on_message(std::uint32_t endpoint, PullMessage& message, SimTime now);
  void book(Running& r, PullNews news, bool to_asker, SimTime at);
  void tell(std::uint32_t endpoint, PullNews news, KvPull& pull, SimTime now);

  Servers& servers_;
  Transfers& transfers_;
  KvDisks& disks_;
  EventQueue& queue_;
  RequestFlow& flow_;
  std::vector<std::uint32_t> first_endpoint_;  ///< By replica.
  /// All pulls of the run: an engine may still hold a message about one that is over.
  std::map<std::uint32_t, Running> running_;
  std::uint32_t pulls_ = 0;
};

}  // namespace routesim::sim
