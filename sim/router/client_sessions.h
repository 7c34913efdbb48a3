// What clients send to the router beside the request: the headers its plugins look for.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policies/decision.h"
#include "policies/scheduler.h"
#include "policies/views.h"
#include "workloads/request.h"

namespace routesim::sim {

/// Every client is taken to name its session in the headers that the configuration reads, and to
/// send back what the router's answers carry for it. A request without a session sends nothing.
class ClientSessions {
 public:
  ClientSessions() = default;
  using Headers = std::vector<std::pair<std::string, std::string>>;  // Value by header name.

  /// `scheduler` outlives this. `added` go with every request, before those of its session.
  explicit ClientSessions(const policies::Scheduler& scheduler, Headers added = {});

  /// Fills session and headers of `view`, which are valid until the next call.
  void send(const workloads::Request& request, policies::RequestView& view);
  /// What the headers say of the time to the first token that clients want; 0 = nothing.
  double ttft_goal_ms() const { return goals_ms_[0]; }
  /// The fairness id of a request.
  std::string flow(const workloads::Request& request) const;
  /// The answer that follows this decision carries the router's headers.
  void on_routed(const workloads::Request& request, const policies::Scheduler& scheduler,
                 const policies::Decision& decision, const policies::EndpointTable& table);
  void on_completed(const workloads::Request& request);

 private:
  const policies::SignalNeeds* needs_ = nullptr;
  bool tells_flows_apart_ = false;
  Headers added_;
  std::array<double, 2> goals_ms_{};  ///< TTFT, TPOT.
  std::string session_;
  std::vector<policies::Header> headers_;
  std::unordered_map<std::uint64_t, Headers> of_request_;  // Not answered yet.
  std::unordered_map<std::uint64_t, Headers> of_session_;  // Of its last answer.
};

}  // namespace routesim::sim
