// What clients tell the router about their sessions: the headers its plugins look for.
#pragma once

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
  /// `scheduler` outlives this.
  explicit ClientSessions(const policies::Scheduler& scheduler);

  /// Fills session and headers of `view`, which are valid until the next call.
  void send(const workloads::Request& request, policies::RequestView& view);
  /// The fairness id of a request.
  std::string flow(const workloads::Request& request) const;
  /// The answer that follows this decision carries the router's headers.
  void on_routed(const workloads::Request& request, const policies::Scheduler& scheduler,
                 const policies::Decision& decision, const policies::EndpointTable& table);
  void on_completed(const workloads::Request& request);

 private:
  using Tokens = std::vector<std::pair<std::string, std::string>>;  // Value by header name.

  const policies::SignalNeeds* needs_ = nullptr;
  bool tells_flows_apart_ = false;
  std::string session_;
  std::vector<policies::Header> headers_;
  std::unordered_map<std::uint64_t, Tokens> of_request_;  // Not answered yet.
  std::unordered_map<std::uint64_t, Tokens> of_session_;  // Of its last answer.
};

}  // namespace routesim::sim
