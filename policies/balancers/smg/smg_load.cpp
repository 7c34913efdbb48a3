// The policies of the SGLang gateway that weigh what servers report: src/policies/{least_load.rs,
// power_of_two.rs} of smg 1.13.0, power_of_two.rs of sglang-router 0.3.2, least_load.rs of
// lightseekorg/smg @73da68ca.
#include <algorithm>
#include <limits>

#include "policies/balancers/kit/choose.h"
#include "policies/balancers/smg/smg_policies.h"

namespace routesim::policies {
namespace {

/// Waits that differ by no more seconds are equal.
constexpr double kTie = 1e-6;

/// least_load over all servers, power_of_two over a pair.
class Waiting final : public LegPolicy {
 public:
  Waiting(const SmgSettings& s, bool of_two, const RandomStream& random)
      : settings_(s),
        release_(smg_release(s)),
        of_two_(of_two),
        wait_(s, RandomStream(RandomStream(random).next(), Stream::kBalancer, 0)),
        random_(random) {}
  BalancerNeeds needs() const override { return wait_.needs(); }
  void on_workers(const Leg& leg) override { wait_.on_workers(leg); }
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& request) override {
    const std::uint64_t n = leg.healthy.size();
    if (n == 1 && (of_two_ || settings_.least_load_max_waiting_requests == 0))
      return leg.healthy.front();
    std::vector<std::uint32_t> among = leg.healthy;
    if (!of_two_) return wait_.pick(leg, request, among);
    // The setting came with 1.13.
    const SmgLoadMetric metric = release_ < SmgRelease::k1_13 ? SmgLoadMetric::kExpectedWait
                                                              : settings_.power_of_two_load_metric;
    if (metric != SmgLoadMetric::kLeastRequests) {
      const auto [first, second] = draw_two(n, TwoDraws::kDistance, random_);
      among = {leg.healthy[first], leg.healthy[second]};
    }
    if (release_ < SmgRelease::k1_13) return less_loaded(leg, request, among[0], among[1]);
    if (metric != SmgLoadMetric::kExpectedWait)
      among = all_least(among, [&](std::uint32_t w) { return leg.load(w); });
    return wait_.pick(leg, request, among);
  }

 private:
  std::uint32_t less_loaded(const Leg& leg, const BalancerRequest& request, std::uint32_t a,
                            std::uint32_t b) const {
    const EndpointTable* metrics = request.metrics;
    // A poll that fails is the number -1, which is as good as any other: all are equal.
    if (metrics == nullptr && release_ <= SmgRelease::k0_3) return a;
    if ((smg_polls(settings_) || release_ <= SmgRelease::k0_3) && metrics != nullptr &&
        metrics->has_metrics(a) && metrics->has_metrics(b))
      return metrics->kv_usage()[a] <= metrics->kv_usage()[b] ? a : b;
    return leg.load(a) <= leg.load(b) ? a : b;
  }
  SmgSettings settings_;
  SmgRelease release_;
  bool of_two_;
  SmgExpectedWait wait_;
  RandomStream random_;
};

}  // namespace

BalancerNeeds SmgExpectedWait::needs() const {
  return {.metrics = polls_, .metrics_interval = settings_.load_monitor_interval};
}

// A server that leaves is forgotten.
void SmgExpectedWait::on_workers(const Leg& leg) {
  names_.update(leg);
  for (const std::uint32_t w : leg.workers)
    sent_.resize(std::max<std::size_t>(sent_.size(), names_.tenant(w) + std::size_t{1}));
  for (std::uint32_t tenant = 0; tenant < sent_.size(); ++tenant)
    if (!names_.endpoint(leg, tenant)) sent_[tenant] = {};
}

// The next report replaces what was sent.
void SmgExpectedWait::read_report(const EndpointTable& metrics, std::uint32_t w) {
  const Sent fresh{.report = metrics.updated()[w],
                   .waiting = metrics.waiting()[w],
                   .running = metrics.running()[w],
                   .kv_usage = metrics.kv_usage()[w]};
  Sent& old = sent(w);
  if (old.report != fresh.report || old.waiting != fresh.waiting || old.running != fresh.running ||
      old.kv_usage != fresh.kv_usage)
    old = fresh;
}

// Requests that the router holds there, and that neither the report nor what was sent since knows.
double SmgExpectedWait::unaccounted(const Leg& leg, std::uint32_t w) {
  const Sent& own = sent(w);
  if (release_ < SmgRelease::k1_13) return 0;
  return std::max(0.0, leg.load(w) - own.waiting - own.running - own.requests);
}

double SmgExpectedWait::seconds(const Leg& leg, std::uint32_t w) {
  const Sent& own = sent(w);
  // Before 1.10 tokens of the queue count alone, of which vLLM reports none.
  const double waiting = release_ >= SmgRelease::k1_10 ? own.waiting : 0;
  const double running = release_ >= SmgRelease::k1_13 ? own.running : 0;
  const double requests = waiting + running + unaccounted(leg, w);
  const double k = std::clamp(own.kv_usage, 0.0, 0.999);
  return (requests * request_tokens() + own.tokens) / settings_.least_load_default_throughput +
         settings_.least_load_kv_pressure_weight * k / (1 - k);
}

std::optional<std::uint32_t> SmgExpectedWait::pick(const Leg& leg, const BalancerRequest& request,
                                                   std::vector<std::uint32_t> candidates) {
  const auto reports = [&](std::uint32_t w) {
    return polls_ && request.metrics != nullptr && request.metrics->has_metrics(w);
  };
  for (const std::uint32_t w : candidates)
    if (reports(w)) read_report(*request.metrics, w);
  const auto cap = static_cast<double>(settings_.least_load_max_waiting_requests);
  if (cap > 0)
    std::erase_if(candidates, [&](std::uint32_t w) {
      return reports(w) && sent(w).waiting + sent(w).requests + unaccounted(leg, w) >= cap;
    });
  double known = std::numeric_limits<double>::infinity();
  for (const std::uint32_t w : candidates)
    if (reports(w)) known = std::min(known, seconds(leg, w));
  const bool nobody = known == std::numeric_limits<double>::infinity();
  const bool draws = release_ >= SmgRelease::k1_12;
  std::optional<std::uint32_t> best;
  double least = 0;
  std::uint64_t ties = 1;
  for (const std::uint32_t w : candidates) {
    double cost = leg.load(w);
    if (reports(w))
      cost = seconds(leg, w);
    else if (!nobody)
      cost =
          (draws ? known : 0) + cost * request_tokens() / settings_.least_load_default_throughput;
    if (!best || cost < least - (draws ? kTie : 0)) {
      best = w;
      least = cost;
      ties = 1;
    } else if (draws && cost - least <= kTie) {
      least = std::min(least, cost);
      if (random_.below(++ties) == 0) best = w;
    }
  }
  if (leg.forced) best = leg.forced;
  if (!best) return best;
  sent(*best).requests += 1;
  sent(*best).tokens +=
      settings_.grpc ? static_cast<double>(request.prompt_tokens) : request_tokens();
  return best;
}

std::unique_ptr<LegPolicy> make_smg_power_of_two(const SmgSettings& s, const RandomStream& random) {
  return std::make_unique<Waiting>(s, true, random);
}
std::unique_ptr<LegPolicy> make_smg_least_load(const SmgSettings& s, const RandomStream& random) {
  return std::make_unique<Waiting>(s, false, random);
}

}  // namespace routesim::policies
