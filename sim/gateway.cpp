#include "sim/gateway.h"

#include <algorithm>

#include "base/check.h"
#include "base/rng.h"

namespace routesim::sim {

namespace {

/// Envoy opens as many connections at most when a request comes.
constexpr int kConnectionsPerRequest = 3;

/// These decide in an ext_proc filter. Their refusals are Envoy's own answers, which its router
/// filter, where retries happen, never sees.
bool decides_in_ext_proc(const RoutingConfig& routing) {
  return routing.balancer == BalancerKind::kEndpointPicker ||
         policies::balancer_row(routing.balancer).section == "aibrix";
}

std::string with_commas(std::int64_t n) {
  std::string text = std::to_string(n);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, ',');
  return text;
}

}  // namespace

Gateway::Gateway(const RoutingConfig& routing, std::uint64_t seed, std::size_t hosts,
                 std::size_t stages)
    : config_(*routing.gateway),
      picker_(decides_in_ext_proc(routing)),
      seed_(seed),
      hosts_(hosts),
      refused_(stages) {}

bool Gateway::enter(std::uint32_t handle, StageId stage, std::uint32_t host, SimTime now) {
  Host& to = hosts_[host];
  if (to.waiting.empty() && has_connection(to)) {
    if (in_flight_ >= config_.max_requests) return refuse(Limit::kRequests, stage);
    start(to, handle);
    return true;
  }
  // A request that finds others waiting waits, too, although some of them may go now.
  if (waiting_ >= config_.max_pending_requests) return refuse(Limit::kPending, stage);
  to.waiting.push_back({.handle = handle, .since = now});
  ++result_.waited;
  result_.most_waiting = std::max(result_.most_waiting, ++waiting_);
  for (int i = 0; i < kConnectionsPerRequest && !to.waiting.empty() && has_connection(to) &&
                  in_flight_ < config_.max_requests;
       ++i)
    start_oldest(to, now);
  return true;
}

bool Gateway::refuse(Limit limit, StageId stage) {
  ++refused_[static_cast<std::size_t>(stage.value())][static_cast<std::size_t>(limit)];
  ++result_.refused;
  return false;
}

// A host without any connection gets one beyond the limit.
bool Gateway::has_connection(const Host& host) const {
  return config_.protocol == UpstreamProtocol::kHttp2 || host.active == 0 ||
         in_flight_ < config_.max_connections;
}

void Gateway::start(Host& host, std::uint32_t handle) {
  ++host.active;
  result_.most_in_flight = std::max(result_.most_in_flight, ++in_flight_);
  ready_.push_back(handle);
}

void Gateway::start_oldest(Host& host, SimTime now) {
  const Waiting oldest = host.waiting.front();
  host.waiting.pop_front();
  end_wait(oldest, now);
  start(host, oldest.handle);
}

void Gateway::end_wait(const Waiting& waiting, SimTime now) {
  --waiting_;
  result_.longest_wait = std::max(result_.longest_wait, now - waiting.since);
}

// The connection goes to the oldest request of its own host; other hosts do not hear of it.
void Gateway::leave(std::uint32_t host, SimTime now) {
  Host& from = hosts_[host];
  --from.active;
  --in_flight_;
  if (!from.waiting.empty()) start_oldest(from, now);
}

void Gateway::cancel(std::uint32_t handle, std::uint32_t host, SimTime now) {
  std::deque<Waiting>& queue = hosts_[host].waiting;
  const auto at = std::find_if(queue.begin(), queue.end(),
                               [&](const Waiting& w) { return w.handle == handle; });
  ROUTESIM_CHECK(at != queue.end(), "a request that waits at the gateway is in its queue");
  end_wait(*at, now);
  queue.erase(at);
}

std::optional<std::uint32_t> Gateway::take_ready() {
  if (ready_.empty()) return std::nullopt;
  const std::uint32_t first = ready_.front();
  ready_.erase(ready_.begin());
  return first;
}

bool Gateway::retries_status(int status) const {
  const RetryConfig& retry = *config_.retry;
  return std::any_of(retry.retry_on.begin(), retry.retry_on.end(), [&](RetryOn on) {
    switch (on) {
      case RetryOn::k5xx:
        return status >= 500;
      case RetryOn::kGatewayError:
        return status >= 502 && status <= 504;
      case RetryOn::kRetriable4xx:
        return status == 409;
      case RetryOn::kRetriableStatusCodes:
        return std::count(retry.retriable_status_codes.begin(), retry.retriable_status_codes.end(),
                          status) > 0;
      default:
        return false;
    }
  });
}

std::int64_t Gateway::most_retries() const {
  if (!config_.retry_budget) return config_.max_retries;
  const double share = config_.retry_budget->budget_percent / 100;
  return std::max(static_cast<std::int64_t>(share * static_cast<double>(in_flight_ + waiting_)),
                  config_.retry_budget->min_retry_concurrency);
}

std::optional<Duration> Gateway::retry(RequestId request, Retries& retries, int http_status) {
  end_retry(retries);
  if (!config_.retry || (picker_ && !config_.retry->picker_refusals)) return std::nullopt;
  if (!retries_status(http_status)) return std::nullopt;
  return back_off(request, retries);
}

// A reset and a failed connection count as gateway errors (retry_state_impl.cc,
// wouldRetryFromReset).
bool Gateway::retries_loss(Loss loss) const {
  const std::vector<RetryOn>& on = config_.retry->retry_on;
  return std::any_of(on.begin(), on.end(), [loss](RetryOn one) {
    return one == RetryOn::k5xx || one == RetryOn::kGatewayError || one == RetryOn::kReset ||
           (one == RetryOn::kConnectFailure && loss == Loss::kRefused);
  });
}

std::optional<Duration> Gateway::retry_lost(RequestId request, Retries& retries, Loss loss) {
  end_retry(retries);
  if (!config_.retry || !retries_loss(loss)) return std::nullopt;
  return back_off(request, retries);
}

std::optional<Duration> Gateway::back_off(RequestId request, Retries& retries) {
  const RetryConfig& retry = *config_.retry;
  if (retries.made >= retry.num_retries) return std::nullopt;
  if (retries_ >= most_retries()) {
    ++result_.retries_refused;
    return std::nullopt;
  }
  const Duration most = retry.max_interval.value_or(retry.base_interval * 10);
  Duration bound = retry.base_interval;
  for (std::int64_t i = 0; i < retries.made && bound < most; ++i) bound = std::min(bound * 2, most);
  ++retries.made;
  retries.under_way = true;
  ++retries_;
  ++result_.retries;
  const std::uint64_t entity = mix64(request.value(), static_cast<std::uint64_t>(retries.made));
  RandomStream random(seed_, Stream::kGateway, entity);
  const auto range = static_cast<std::uint64_t>(std::max<std::int64_t>(1, bound.ns() / 1'000'000));
  return Duration::milliseconds(static_cast<std::int64_t>(random.below(range)));
}

void Gateway::end_retry(Retries& retries) {
  if (!retries.under_way) return;
  retries.under_way = false;
  --retries_;
}

std::vector<std::string> Gateway::notes(const std::vector<StageResult>& stages) const {
  std::vector<std::string> out;
  const std::array<std::string, 2> limits = {
      "limit of " + with_commas(config_.max_requests) +
          " requests in flight (routing.gateway.max_requests)",
      "limit of " + with_commas(config_.max_pending_requests) + " requests that wait for one of " +
          with_commas(config_.max_connections) +
          " connections (routing.gateway.max_pending_requests, max_connections)"};
  for (std::size_t limit = 0; limit < limits.size(); ++limit) {
    std::string where;
    for (std::size_t s = 0; s < refused_.size(); ++s)
      if (refused_[s][limit] > 0)
        where += (where.empty() ? "" : ", ") + with_commas(refused_[s][limit]) +
                 " requests in stage " + stages[s].info.name;
    if (!where.empty()) out.push_back("the gateway's " + limits[limit] + " refused " + where);
  }
  if (result_.longest_wait > Duration::seconds(1))
    out.push_back("the gateway's " + with_commas(config_.max_connections) +
                  " connections (routing.gateway.max_connections) were in use: requests waited up "
                  "to " +
                  std::to_string(result_.longest_wait.ns() / 1'000'000'000) + " s for one");
  if (result_.retries_refused > 0)
    out.push_back("the gateway did not retry " + with_commas(result_.retries_refused) +
                  " refused requests, because " +
                  (config_.retry_budget ? "its retry budget (routing.gateway.retry_budget)"
                                        : with_commas(config_.max_retries) +
                                              " retries (routing.gateway.max_retries)") +
                  (config_.retry_budget ? " was used up" : " were under way"));
  return out;
}

}  // namespace routesim::sim
