// The requests that are under way.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "policies/index/block_keys.h"
#include "sim/kv/prompt_keys.h"
#include "sim/observe/observer.h"
#include "sim/router/route.h"
#include "workloads/load_generator.h"
#include "workloads/request.h"

namespace routesim::sim {

/// The place of a request on its way.
enum class Leg : std::uint8_t {
  kToRouter,
  kDeciding,    ///< In a router process, from `entered` on; before, on its way there.
  kQueued,      ///< Held back by the router's flow control or balancer.
  kBackingOff,  ///< In the router, which lost its server and is to try again.
  kAtGateway,   ///< Decided; waits for a connection of the gateway.
  kToPrefill,   ///< PD: on its way to the prefill server.
  kPrefill,     ///< PD: in the prefill server.
  kToEngine,
  kEngine,   ///< In the (decode) engine.
  kToClient  ///< Finished; the last token is on its way.
};

/// The retries of one request.
struct Retries {
  std::int64_t made = 0;   ///< By the gateway.
  bool under_way = false;  ///< From the refusal to the way to a server.
  int by_router = 0;
  bool kept = false;  ///< The choice of an endpoint picker for an earlier attempt holds.
};

struct LiveRequest {
  /// kSettled: the client is done with it; only the engine still has it.
  enum class State : std::uint8_t { kFree, kOpen, kSettled };

  workloads::Request request;
  const PromptKeys* keys = nullptr;
  Route route;
  Leg leg = Leg::kToRouter;
  State state = State::kFree;
  bool kv_released = false;  ///< PD: the prefill side's blocks were notified free.
  bool pulling = false;      ///< PD: the decode side has blocks and waits for the KV.
  bool kv_lost = false;      ///< PD: the lease was over before the KV was read.
  double pull_bytes = 0;
  Retries retries;
  std::uint32_t stamp = 0;  ///< Grows with every user of the slot.
  std::int32_t preemptions = 0;
  const char* failure = "";
  SimTime sent, first_token, end;
  SimTime entered;  ///< Its (last) server, or the router process that decides about it.
  std::int64_t cached_tokens = 0;
  TierHit tier;                            ///< Of the engine that computes the prompt.
  std::vector<std::uint64_t> answer_keys;  ///< Router keys of blocks behind the prompt's.
  policies::ChainState answer_state;

  bool open() const { return state == State::kOpen; }
};

/// Owns the requests under way. A request's handle is its slot; slots are reused, and their stamp
/// tells users apart.
class LiveRequests {
 public:
  LiveRequest& operator[](std::uint32_t handle) { return live_[handle]; }
  const LiveRequest& operator[](std::uint32_t handle) const { return live_[handle]; }
  const std::vector<LiveRequest>& all() const { return live_; }
  /// Requests whose client waits.
  std::int64_t outstanding() const { return outstanding_; }
  /// The most at one instant, so far.
  std::int64_t most_outstanding() const { return most_outstanding_; }

  std::uint32_t open() {
    std::uint32_t handle = static_cast<std::uint32_t>(live_.size());
    if (free_.empty()) {
      live_.emplace_back();
    } else {
      handle = free_.back();
      free_.pop_back();
    }
    live_[handle].state = LiveRequest::State::kOpen;
    most_outstanding_ = std::max(most_outstanding_, ++outstanding_);
    return handle;
  }
  void settle(std::uint32_t handle) {
    live_[handle].state = LiveRequest::State::kSettled;
    --outstanding_;
  }
  void recycle(std::uint32_t handle) {
    const std::uint32_t stamp = live_[handle].stamp + 1;
    live_[handle] = LiveRequest{};
    live_[handle].stamp = stamp;
    free_.push_back(handle);
  }

 private:
  std::vector<LiveRequest> live_;
  std::vector<std::uint32_t> free_;
  std::int64_t outstanding_ = 0, most_outstanding_ = 0;
};

/// How a request loses its server.
enum class Loss : std::uint8_t {
  kRefused,  ///< There is no connection.
  kReset     ///< The connection breaks.
};

/// The calls that the parts of a simulation make to its loop.
class RequestFlow {
 public:
  virtual ~RequestFlow() = default;
  /// The router decided about a request.
  virtual void apply_route(std::uint32_t handle, const Route& route, SimTime now) = 0;
  /// The router refuses a request.
  virtual void refuse(std::uint32_t handle, int http_status, SimTime now) = 0;
  /// The request fails although the client still waits: the engine hears of it, too.
  virtual void give_up(std::uint32_t handle, const char* label, workloads::Outcome outcome,
                       SimTime now) = 0;
  /// The server of a request is gone: the gateway sends it again, or it fails.
  virtual void lose(std::uint32_t handle, Loss loss, SimTime now) = 0;
  /// The prefill server of a request is gone: its decode server computes the prompt.
  virtual void fall_back(std::uint32_t handle, SimTime now) = 0;
  /// No engine knows of a request whose client is done with it.
  virtual void free(std::uint32_t handle) = 0;
  /// The fleet may get a server that it does not have.
  virtual bool fleet_may_grow() const = 0;
  /// There are other servers or routers than before: held requests may find one.
  virtual void fleet_changed(SimTime now) = 0;
  /// A server was told something: reads its outputs and books its next wake.
  virtual void after_touch(std::uint32_t replica, SimTime now) = 0;
  /// For the observers.
  virtual void report(const CopySpan& span) = 0;
  /// Ends the run: nothing can happen any more.
  [[noreturn]] virtual void report_stuck(SimTime now) const = 0;
};

}  // namespace routesim::sim
