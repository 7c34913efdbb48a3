// The data that clients send to the router beside the request: the headers its plugins look for.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
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

  /// `added` go with a request of each traffic class, before those of
  /// its session.
  explicit ClientSessions(const policies::Scheduler& scheduler, std::vector<Headers> added = {{}});

  /// Fills session and headers of `view`, which are valid until the next call.
  void send(const workloads::Request& request, policies::RequestView& view);
  /// The time to the first token that the request's headers want; 0 = none.
  double ttft_goal_ms(const workloads::Request& request) const {
    return added_.empty() ? 0 : goals_ms_[request.traffic_class][0];
  }
  /// The fairness id of a request.
  std::string flow(const workloads::Request& request) const;
  /// The answer that follows this decision carries the router's headers.
  void on_routed(const workloads::Request& request, const policies::Scheduler& scheduler,
                 const policies::Decision& decision, const policies::EndpointTable& table);
  void on_completed(const workloads::Request& request);

 private:
  std::optional<policies::SignalNeeds> needs_;  ///< None: nobody asks for sessions.
  bool tells_flows_apart_ = false;
  std::vector<Headers> added_;                   ///< By traffic class.
  std::vector<std::array<double, 2>> goals_ms_;  ///< TTFT and TPOT, by traffic class.
  std::string session_;
  std::vector<policies::Header> headers_;
  std::unordered_map<std::uint64_t, Headers> of_request_;  // Not answered yet.
  std::unordered_map<std::uint64_t, Headers> of_session_;  // Of its last answer.
};

}  // namespace routesim::sim
