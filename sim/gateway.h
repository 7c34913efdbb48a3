// The proxy that carries requests from the router's decision to the servers: Envoy's limits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "sim/live_requests.h"
#include "sim/observe/run_result.h"
#include "sim/plan/scenario.h"

namespace routesim::sim {

/// Applies the circuit breakers of one Envoy cluster, whose hosts are the router's endpoints, and
/// decides about retries. Its owner moves the requests. From the sources
/// source/common/conn_pool/conn_pool_base.cc (@00dcf3fb), source/common/upstream/
/// resource_manager_impl.h (@01c2c1fa), source/common/router/retry_state_impl.cc (@00d9abb7) and
/// source/common/common/backoff_strategy.cc. Three simplifications: one worker thread, so hosts
/// have one pool each; connections open at once, so a request that gets one never waits; idle
/// connections close at once (vLLM closes them after 5 s) and so count for nothing.
class Gateway {
 public:
  /// `hosts` are rows of the router's endpoint table.
  Gateway(const RoutingConfig& routing, std::uint64_t seed, std::size_t hosts, std::size_t stages);

  /// A request for `host`; false: it is refused. Requests that may go are in take_ready(), this one
  /// or older ones of its host. O(1).
  bool enter(std::uint32_t handle, StageId stage, std::uint32_t host, SimTime now);
  /// A request that had been ready has ended.
  void leave(std::uint32_t host, SimTime now);
  /// A waiting request ends. O(waiting at the host).
  void cancel(std::uint32_t handle, std::uint32_t host, SimTime now);
  std::optional<std::uint32_t> take_ready();

  /// The back-off of a request that the router refused with `http_status`, or none if it is not
  /// sent again. Full jitter in whole milliseconds, drawn from (seed, request, retry).
  std::optional<Duration> retry(RequestId request, Retries& retries, int http_status);
  /// The same for a request whose server is gone before it has answered.
  std::optional<Duration> retry_lost(RequestId request, Retries& retries, Loss loss);
  /// Retries go to the server that was chosen first.
  bool keeps_choice() const { return picker_; }
  /// The retry is on its way to a server or over; it makes room for others.
  void end_retry(Retries& retries);

  const GatewayResult& result() const { return result_; }
  /// The effects of the limits, stage by stage.
  std::vector<std::string> notes(const std::vector<StageResult>& stages) const;

 private:
  enum class Limit : std::uint8_t { kRequests, kPending };
  struct Waiting {
    std::uint32_t handle = 0;
    SimTime since;
  };
  struct Host {
    std::deque<Waiting> waiting;  ///< Oldest first.
    std::int64_t active = 0;
  };
  bool refuse(Limit limit, StageId stage);
  bool has_connection(const Host& host) const;
  void start(Host& host, std::uint32_t handle);
  void start_oldest(Host& host, SimTime now);
  void end_wait(const Waiting& waiting, SimTime now);
  bool retries_status(int http_status) const;
  bool retries_loss(Loss loss) const;
  std::optional<Duration> back_off(RequestId request, Retries& retries);
  std::int64_t most_retries() const;

  const GatewayConfig& config_;
  bool picker_;  ///< The router decides inside the proxy, by ext_proc.
  std::uint64_t seed_;
  std::vector<Host> hosts_;
  std::vector<std::uint32_t> ready_;
  std::int64_t in_flight_ = 0, waiting_ = 0, retries_ = 0;
  std::vector<std::array<std::int64_t, 2>> refused_;  ///< By stage and limit.
  GatewayResult result_;
};

}  // namespace routesim::sim
