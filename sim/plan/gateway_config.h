// The proxy in front of the servers: its limits, and which refusals it sends to the router again.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/describe.h"

namespace routesim::sim {

enum class UpstreamProtocol : std::uint8_t { kHttp1, kHttp2 };
/// Envoy's retry conditions. The last three hold only where servers end (`events`).
enum class RetryOn : std::uint8_t {
  k5xx,
  kGatewayError,
  kRetriable4xx,
  kRetriableStatusCodes,
  kConnectFailure,
  kReset,
  kRefusedStream
};

struct RetryBudgetConfig {
  double budget_percent = 20;
  std::int64_t min_retry_concurrency = 3;
};
void describe(Describer& d, RetryBudgetConfig& c);

/// Envoy's RetryPolicy.
struct RetryConfig {
  std::vector<RetryOn> retry_on;
  std::vector<std::int64_t> retriable_status_codes;
  std::int64_t num_retries = 1;
  Duration base_interval = Duration::milliseconds(25);
  std::optional<Duration> max_interval;  ///< Absent: ten times base_interval.
  bool picker_refusals = false;
};
void describe(Describer& d, RetryConfig& c);

/// Envoy's circuit breakers of the cluster of servers. Names and defaults are those of its
/// api/envoy/config/cluster/v3/circuit_breaker.proto (@01c2c1fa); the back-off's are those of
/// source/common/router/retry_state_impl.cc (@00d9abb7).
struct GatewayConfig {
  UpstreamProtocol protocol = UpstreamProtocol::kHttp1;
  std::int64_t max_connections = 1024;
  std::int64_t max_pending_requests = 1024;
  std::int64_t max_requests = 1024;
  std::int64_t max_retries = 3;
  std::optional<RetryBudgetConfig> retry_budget;
  std::optional<RetryConfig> retry;
};
void describe(Describer& d, GatewayConfig& c);

}  // namespace routesim::sim

template <>
struct routesim::EnumNames<routesim::sim::UpstreamProtocol> {
  static constexpr std::array<std::string_view, 2> value = {"http1", "http2"};
};
template <>
struct routesim::EnumNames<routesim::sim::RetryOn> {
  static constexpr std::array<std::string_view, 7> value = {
      "5xx",   "gateway-error", "retriable-4xx", "retriable-status-codes", "connect-failure",
      "reset", "refused-stream"};
};
