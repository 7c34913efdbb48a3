// AIBrix's routing of prefill and decode pods (algorithms/pd_disaggregation.go and pd/).
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <set>
#include <unordered_map>

#include "policies/balancers/aibrix/aibrix_parts.h"

namespace routesim::policies {
namespace {

/// The gateway's knowledge of the servers of either role.
class AibrixPdTracker {
 public:
  void on_sent(const BalancerPick& pick, std::uint64_t id) {
    ++at(pick.prefill_server).prefills;
    at(pick.server);
    prefilling_[id] = pick.prefill_server;
  }
  /// The prefill request has been answered, and the decode pod has its request.
  void on_prefilled(const BalancerPick& pick, std::uint64_t id) {
    const auto found = prefilling_.find(id);
    if (found == prefilling_.end()) return;
    --servers_[found->second].prefills;
    prefilling_.erase(found);
    servers_[pick.server].has_run = true;
  }
  void on_completed(const BalancerPick& pick, const BalancerOutcome& outcome) {
    on_prefilled(pick, outcome.id);
    servers_[pick.server].completed.push_back(outcome.now);
  }
  double prefills(std::uint32_t server) { return at(server).prefills; }
  /// The count of running requests exists from the first request on.
  bool has_run(std::uint32_t server) { return at(server).has_run; }
  /// Completed requests per second over the last minute.
  double drain_rate(std::uint32_t server, SimTime now) {
    std::deque<SimTime>& times = at(server).completed;
    while (!times.empty() && times.front() + Duration::seconds(60) <= now) times.pop_front();
    return static_cast<double>(times.size()) / 60;
  }

 private:
  struct Server {
    std::uint32_t prefills = 0;
    bool has_run = false;
    std::deque<SimTime> completed;
  };
  Server& at(std::uint32_t server) {
    if (servers_.size() <= server) servers_.resize(server + std::size_t{1});
    return servers_[server];
  }
  std::vector<Server> servers_;
  std::unordered_map<std::uint64_t, std::uint32_t> prefilling_;  ///< Request -> prefill server.
};

class AibrixPd final : public AibrixBalancer {
 public:
  AibrixPd(const AibrixSettings& settings, const RandomStream& random)
      : AibrixBalancer(settings, random), table_(settings) {}

  BalancerNeeds needs() const override {
    return {.metrics = true,
            .metrics_interval = Duration::milliseconds(50),
            .text = settings().prefill_score_policy == AibrixPrefillScore::kPrefixCache,
            .first_tokens = true};
  }
  void on_sent(const BalancerPick& pick, const BalancerRequest& request) override {
    AibrixBalancer::on_sent(pick, request);
    tracker_.on_sent(pick, request.id);
  }
  void on_first_token(const BalancerPick& pick, std::uint64_t id, SimTime /*now*/) override {
    tracker_.on_prefilled(pick, id);
  }
  void on_completed(const BalancerPick& pick, const BalancerOutcome& outcome) override {
    AibrixBalancer::on_completed(pick, outcome);
    tracker_.on_completed(pick, outcome);
  }

 private:
  using ByGroup = std::map<std::string_view, Least<double>>;

  std::uint32_t server(std::uint32_t pod) const { return pick_of(pod).server; }
  const std::string& group(std::uint32_t pod) const { return endpoints()[pod].group; }

  /// Role sets without a pod of either role are left out.
  void on_pods_changed() override {
    std::set<std::string_view> with_prefill, with_decode;
    for (const std::uint32_t i : ready()) {
      if (endpoints()[i].role == ServerRole::kPrefill) with_prefill.insert(group(i));
      if (endpoints()[i].role == ServerRole::kDecode) with_decode.insert(group(i));
    }
    prefill_.clear();
    decode_.clear();
    for (const std::uint32_t i : ready()) {
      if (!with_prefill.contains(group(i)) || !with_decode.contains(group(i))) continue;
      if (endpoints()[i].role == ServerRole::kPrefill) prefill_.push_back(i);
      if (endpoints()[i].role == ServerRole::kDecode) decode_.push_back(i);
    }
  }

  BalancerAnswer route(const BalancerRequest& request) override {
    std::vector<std::uint32_t> prefill = offered(prefill_), decode = offered(decode_);
    if (prefill.empty()) return std::nullopt;
    if (const auto pod = idle_prefill(prefill)) {
      prefill = {*pod};
      std::erase_if(decode, [&](std::uint32_t i) { return group(i) != group(*pod); });
    }
    find_maxima(decode, request);
    if (const auto pod = idle_decode(decode, request)) {
      decode = {*pod};
      std::erase_if(prefill, [&](std::uint32_t i) { return group(i) != group(*pod); });
    }
    return choose(score_prefill(prefill, request), score_decode(decode, request), request);
  }

  /// One of the pods with the fewest prefills, if the counts differ too much.
  std::optional<std::uint32_t> idle_prefill(const std::vector<std::uint32_t>& pods) {
    const Range counts = range(
        pods, [this](std::uint32_t i) { return std::optional(tracker_.prefills(server(i))); });
    const double spread = counts.most - counts.least;
    const bool differ = spread > static_cast<double>(settings().prefill_load_imbalance_min_spread);
    return differ ? counts.pod : std::nullopt;
  }

  std::optional<std::uint32_t> idle_decode(const std::vector<std::uint32_t>& pods,
                                           const BalancerRequest& request) {
    const auto by_count = [this](std::uint32_t i) -> std::optional<double> {
      if (!tracker_.has_run(server(i))) return std::nullopt;
      return in_flight()[i];
    };
    const Range counts = range(pods, by_count);
    if (counts.pod && counts.most - counts.least >= settings().decode_load_imbalance_min_spread)
      return counts.pod;
    bool all = true;
    const auto by_drain = [&](std::uint32_t i) -> std::optional<double> {
      // The gateway keeps this rate for pods named so.
      const bool named = endpoints()[i].name.find("decode") != std::string::npos;
      const double rate = named ? tracker_.drain_rate(server(i), request.now) : 0;
      all = all && rate > 0;
      return in_flight()[i] / std::max(rate, 0.1);
    };
    const Range drains = range(pods, by_drain);
    if (all && drains.least > 0 &&
        drains.most / drains.least > settings().decode_score_ratio_threshold)
      return drains.pod;
    return std::nullopt;
  }
  /// The least and the most of what some pods have, and one of those with the least.
  struct Range {
    std::optional<std::uint32_t> pod;
    double least = 0, most = 0;
  };
  template <class F>
  Range range(const std::vector<std::uint32_t>& pods, F value_of) {
    Least<double> least(Ties::kAllDrawn, random());
    double most = 0;
    for (const std::uint32_t i : pods) {
      const std::optional<double> value = value_of(i);
      if (!value) continue;
      most = std::max(most, *value);
      least.offer(i, *value);
    }
    return {.pod = least.best(), .least = least.value(), .most = most};
  }

  ByGroup score_prefill(const std::vector<std::uint32_t>& pods, const BalancerRequest& request) {
    std::vector<double> counts;
    double most = 1;
    for (const std::uint32_t i : pods) {
      counts.push_back(tracker_.prefills(server(i)));
      most = std::max(most, counts.back());
    }
    const double limit = load_limit(counts);
    std::map<std::uint32_t, std::int64_t> percent;  // By number.
    const bool by_prefix = settings().prefill_score_policy == AibrixPrefillScore::kPrefixCache;
    if (by_prefix)
      for (const AibrixPrefixTable::Match& m : table_.match(request.text, request.now))
        percent[m.pod] = m.percent;
    ByGroup best;
    most_prefill_ = 1;
    for (std::size_t k = 0; k < pods.size(); ++k) {
      if (counts[k] > limit) continue;
      double score = counts[k];
      if (by_prefix) {
        const auto at = percent.find(AibrixBalancer::pods().number(pods[k]));
        const double match = at == percent.end() ? 0 : static_cast<double>(at->second);
        score = (100 - match) * 0.1 + counts[k] / most;
      }
      keep(best, pods[k], score);
      most_prefill_ = std::max(most_prefill_, score);
    }
    return best;
  }

  ByGroup score_decode(const std::vector<std::uint32_t>& pods, const BalancerRequest& request) {
    bool any_has_run = false;
    for (const std::uint32_t i : pods) any_has_run = any_has_run || tracker_.has_run(server(i));
    ByGroup best;
    most_decode_ = 0.01;
    for (const std::uint32_t i : pods) {
      const double count = in_flight()[i];
      double score = count;
      if (any_has_run && !tracker_.has_run(server(i)))
        score = 1 + count;  // All of them are pending.
      else if (settings().decode_score_policy == AibrixDecodeScore::kLoadBalancing)
        // vLLM V1 has no throughput metric: it counts as 0.
        score = (settings().decode_lb_weight_running * (count / most_running_) +
                 settings().decode_lb_weight_throughput) /
                (free_percent(i, request) / most_free_);
      keep(best, i, score);
      most_decode_ = std::max(most_decode_, score);
    }
    return best;
  }
  void find_maxima(const std::vector<std::uint32_t>& pods, const BalancerRequest& request) {
    most_running_ = most_free_ = 1;
    for (const std::uint32_t i : pods) {
      most_running_ = std::max(most_running_, static_cast<double>(in_flight()[i]));
      most_free_ = std::max(most_free_, free_percent(i, request));
    }
  }
  static double free_percent(std::uint32_t i, const BalancerRequest& request) {
    const bool known = request.metrics != nullptr && request.metrics->has_metrics(i);
    const double free = std::round(100 - (known ? request.metrics->kv_usage()[i] : 0) * 100);
    return free <= 0 ? 0.1 : free;
  }
  /// Keeps the least score of each role set, and of equals any.
  void keep(ByGroup& best, std::uint32_t pod, double score) {
    best.try_emplace(group(pod), Ties::kAllDrawn, random()).first->second.offer(pod, score);
  }

  BalancerAnswer choose(const ByGroup& prefill, const ByGroup& decode,
                        const BalancerRequest& request) {
    Least<double, std::pair<std::uint32_t, std::uint32_t>> least(Ties::kAllDrawn, random());
    for (const auto& [name, p] : prefill)
      if (const auto d = decode.find(name); d != decode.end())
        least.offer({*p.best(), *d->second.best()},
                    p.value() / most_prefill_ + d->second.value() / most_decode_);
    const auto& best = least.best();
    if (!best) return std::nullopt;
    if (settings().prefill_score_policy == AibrixPrefillScore::kPrefixCache)
      table_.add(pods().number(terms().forced_prefill.value_or(best->first)), request.now);
    return pick_of(best->first, best->second);
  }

  AibrixPrefixTable table_;
  AibrixPdTracker tracker_;
  std::vector<std::uint32_t> prefill_, decode_;  ///< Servers of role sets that have both.
  // For the request at hand: the greatest scores, and the greatest values of decode pods.
  double most_prefill_ = 1, most_decode_ = 1, most_running_ = 1, most_free_ = 1;
};

}  // namespace

std::unique_ptr<Balancer> make_aibrix_pd(const AibrixSettings& settings,
                                         const RandomStream& random) {
  return std::make_unique<AibrixPd>(settings, random);
}

}  // namespace routesim::policies
