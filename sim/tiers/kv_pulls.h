// Pulls of KV chunks between the host-memory tiers of two engines.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "sim/network/transfers.h"
#include "sim/tiers/kv_disks.h"
#include "sim/tiers/kv_pull.h"
#include "sim/tiers/tier_engines.h"

namespace routesim::sim {

/// Carries the messages and the bytes of pulls: the engine that computes a prompt asks the one that
/// the router named, which answers, and sends what it has and the other has room for. Each side
/// acts when its running step ends. A pull that takes too long fails, and the prompt is computed
/// (vLLM v0.27.1 v1/kv_offload/tiering/p2p/session/client.py). The same happens when the other side
/// is gone, which a side hears as soon as its connection ends, or from ZeroMQ's heartbeat
/// (control/zmq.py, P2PSession.close()). The engine never weighs a pull against computing: only the
/// router's minCachedTokenDelta does.
class KvPulls final : public TransferOwner, public DiskReader {
 public:
  /// All arguments outlive this.
  KvPulls(Transfers& transfers, KvDisks& disks, TierEngines& engines)
      : transfers_(transfers), disks_(disks), engines_(engines) {}

  /// An engine sends a message.
  void on_message(std::uint32_t endpoint, PullMessage& message, SimTime now);
  void on_transferred(std::uint64_t id, SimTime now) override;
  void on_read(std::uint32_t pull, SimTime now) override;
  /// The next message of a pull arrives, or its time is over.
  void step(std::uint32_t id, bool deadline, SimTime now);
  /// An engine is gone. `silent`: nobody closes its connections.
  void drop(std::uint32_t endpoint, bool silent, SimTime now);

 private:
  struct Running {
    std::unique_ptr<KvPull> pull;
    std::uint32_t asks = 0, has = 0;   ///< Endpoints.
    SimTime begin, sent;               ///< Of the pull, and of the bytes it moves.
    PullNews next = PullNews::kAsked;  ///< What arrives next,
    SimTime at;                        ///< when,
    bool to_asker = false;             ///< and at which side.
    bool lost = false;                 ///< The other side is gone.
    bool over = false;
  };
  void begin(std::uint32_t endpoint, std::unique_ptr<KvPull> pull, SimTime now);
  void book(Running& r, PullNews news, bool to_asker, SimTime at);

  Transfers& transfers_;
  KvDisks& disks_;
  TierEngines& engines_;
  /// All pulls of the run: an engine may still hold a message about one that is over.
  std::map<std::uint32_t, Running> running_;
  std::uint32_t pulls_ = 0;
};

}  // namespace routesim::sim
