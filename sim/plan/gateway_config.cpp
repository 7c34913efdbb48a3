#include "sim/plan/gateway_config.h"

namespace routesim::sim {

namespace {
constexpr IntRange kCount{0, 4'294'967'295};
/// Envoy's is that of kCount. A back-off of 1 ms may draw 0, so that time alone ends no row of
/// retries; published files have at most 10.
constexpr IntRange kRetries{0, 1'000};
}  // namespace

void describe(Describer& d, RetryBudgetConfig& c) {
  field(d, {"budget_percent", "Retries under way, in percent of requests in flight or waiting."},
        c.budget_percent, RealRange{.min = 0, .max = 100});
  field(d, {"min_retry_concurrency", "So many retries are always allowed."},
        c.min_retry_concurrency, kCount);
}

void describe(Describer& d, RetryConfig& c) {
  field(d,
        {"retry_on",
         "Conditions of a retry. The router's refusals meet 5xx, gateway-error (502 to 504), "
         "retriable-4xx (409) and retriable-status-codes. A lost server meets 5xx, gateway-error "
         "and reset, and connect-failure where there is no connection; nothing meets "
         "refused-stream."},
        c.retry_on);
  field(d, {"retriable_status_codes", "Statuses for retriable-status-codes, such as 429."},
        c.retriable_status_codes, IntRange{100, 599});
  field(d, {"num_retries", "Most retries of a request."}, c.num_retries, kRetries);
  field(d,
        {"base_interval",
         "The first retry comes after a random time below this; the bound doubles with each."},
        c.base_interval, DurationRange{Duration::milliseconds(1), Duration::seconds(3600)});
  field(d, {"max_interval", "The largest bound; by default ten times base_interval."},
        c.max_interval, DurationRange{Duration::milliseconds(1), Duration::seconds(3600)});
  field(d,
        {"picker_refusals",
         "Also retry what an endpoint picker or AIBrix refuses. Envoy does not, because the answer "
         "is ext_proc's and not a server's; a second gateway in front of that Envoy does."},
        c.picker_refusals);
}

void describe(Describer& d, GatewayConfig& c) {
  field(d,
        {"protocol",
         "Between gateway and servers. http1 (vLLM, SGLang): a request takes a connection, and "
         "without one it waits; http2: max_requests alone limits."},
        c.protocol);
  field(d, {"max_connections", "Connections to all servers; http1 only."}, c.max_connections,
        kCount);
  field(d,
        {"max_pending_requests",
         "Requests that wait for a connection; another one gets status 503. http1 only."},
        c.max_pending_requests, kCount);
  field(d, {"max_requests", "Requests in flight to all servers; another one gets status 503."},
        c.max_requests, kCount);
  field(d, {"max_retries", "Retries under way at once; more requests are not retried."},
        c.max_retries, kCount);
  field(d, {"retry_budget", "Limits retries by a share of requests, in place of max_retries."},
        c.retry_budget);
  field(d, {"retry", "Sends refused requests to the router again, for a fresh decision."}, c.retry);
}

}  // namespace routesim::sim
