#include "policies/balancers/aibrix/aibrix.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "policies/balancers/aibrix/aibrix_parts.h"
#include "policies/index/block_keys.h"

namespace routesim::policies {
namespace {

/// AIBRIX_POD_METRIC_REFRESH_INTERVAL_MS.
constexpr Duration kAibrixScrape = Duration::milliseconds(50);

class AibrixRandom : public AibrixBalancer {
 public:
  using AibrixBalancer::AibrixBalancer;

 private:
  BalancerAnswer route(const BalancerRequest& /*request*/) override { return pick_of(any_pod()); }
};

class AibrixLeastRequest final : public AibrixBalancer {
 public:
  using AibrixBalancer::AibrixBalancer;

 private:
  BalancerAnswer route(const BalancerRequest& /*request*/) override {
    return pick_of(least_request());
  }
};

/// A pod by the address that the client sends back, else by its session key, else any
/// (simple_session_affinity.go).
class AibrixSessionAffinity final : public AibrixBalancer {
 public:
  using AibrixBalancer::AibrixBalancer;
  BalancerNeeds needs() const override {
    return {.identity = true,
            .session_headers = {"x-aibrix-session-key"},
            .other_headers = {"x-session-id"}};
  }

 private:
  static constexpr std::size_t kMostKeyBytes = 256;

  /// FNV-1a of key, a zero byte and address.
  static std::uint64_t weight(std::string_view key, std::string_view address) {
    return fnv1a64(std::string(key) + '\0' + std::string(address));
  }
  BalancerAnswer route(const BalancerRequest& request) override {
    const std::string address =
        decode_base64(request.header("x-session-id").value_or("")).value_or("");
    for (const std::uint32_t i : ready())
      if (endpoints()[i].name == address) return pick_of(i);
    const std::string_view key = request.header("x-aibrix-session-key").value_or("");
    if (key.empty() || key.size() > kMostKeyBytes) return pick_of(any_pod());
    return pick_of(*std::max_element(ready().begin(), ready().end(), [&](auto a, auto b) {
      const std::string &x = endpoints()[a].name, &y = endpoints()[b].name;
      const std::uint64_t of_x = weight(key, x), of_y = weight(key, y);
      return of_x < of_y || (of_x == of_y && x > y);
    }));
  }
};

/// Takes the pod with the least score, of those that have one; without any it draws.
class AibrixLeastScore : public AibrixBalancer {
 public:
  AibrixLeastScore(const AibrixSettings& settings, const RandomStream& random, Ties ties)
      : AibrixBalancer(settings, random), ties_(ties) {}

 protected:
  virtual std::optional<double> score(std::uint32_t pod, const BalancerRequest& request) = 0;
  BalancerAnswer route(const BalancerRequest& request) override {
    Least<double> least(ties_, random());
    for (const std::uint32_t i : ready())
      if (const std::optional<double> own = score(i, request)) least.offer(i, *own);
    return pick_of(least.best() ? *least.best() : any_pod());
  }

 private:
  Ties ties_;
};

/// least-kv-cache and least-gpu-cache, where the engine has the metrics they ask for.
template <Ties kTies>
class AibrixLeastCache final : public AibrixLeastScore {
 public:
  AibrixLeastCache(const AibrixSettings& settings, const RandomStream& random)
      : AibrixLeastScore(settings, random, kTies) {}
  BalancerNeeds needs() const override {
    return {.metrics = true, .metrics_interval = kAibrixScrape};
  }

 private:
  std::optional<double> score(std::uint32_t pod, const BalancerRequest& request) override {
    if (request.metrics == nullptr || !request.metrics->has_metrics(pod)) return std::nullopt;
    return request.metrics->kv_usage()[pod];
  }
};
using AibrixLeastKvCache = AibrixLeastCache<Ties::kLast>;
using AibrixLeastGpuCache = AibrixLeastCache<Ties::kAllDrawn>;

/// A gateway's view of the requests of its servers.
class AibrixObserved : public AibrixLeastScore {
 public:
  using AibrixLeastScore::AibrixLeastScore;
  BalancerNeeds needs() const override { return {.first_tokens = true}; }
  void on_sent(const BalancerPick& pick, const BalancerRequest& request) override {
    AibrixLeastScore::on_sent(pick, request);
    const std::uint32_t pod = pods().number(pick.endpoint);
    open_[request.id] = {.pod = pod, .sent = request.now};
    if (seen_.size() <= pod) seen_.resize(pod + std::size_t{1});
  }
  void on_first_token(const BalancerPick& /*pick*/, std::uint64_t id, SimTime now) override {
    const auto at = open_.find(id);
    if (at == open_.end() || at->second.first_token) return;
    at->second.first_token = now;
    seen_[at->second.pod].prefill.add((now - at->second.sent).to_seconds());
  }
  void on_completed(const BalancerPick& pick, const BalancerOutcome& outcome) override {
    AibrixLeastScore::on_completed(pick, outcome);
    const auto at = open_.find(outcome.id);
    if (at == open_.end()) return;
    Seen& seen = seen_[at->second.pod];
    if (at->second.first_token)
      seen.decode.add((outcome.now - *at->second.first_token).to_seconds());
    seen.prompt.add(static_cast<double>(outcome.prompt_tokens));
    seen.output.add(static_cast<double>(outcome.output_tokens));
    open_.erase(at);
  }

 protected:
  struct Mean {
    double sum = 0, count = 0;
    void add(double x) {
      sum += x;
      ++count;
    }
    double value() const { return count == 0 ? 0 : sum / count; }
  };
  struct Seen {
    Mean prefill, decode;  ///< Seconds.
    Mean prompt, output;   ///< Tokens.
  };
  const Seen& seen(std::uint32_t pod) const {
    static const Seen kNothing;
    const std::uint32_t number = pods().number(pod);
    return number < seen_.size() ? seen_[number] : kNothing;
  }

 private:
  struct Open {
    std::uint32_t pod;
    SimTime sent{};
    std::optional<SimTime> first_token = {};
  };
  std::unordered_map<std::uint64_t, Open> open_;  ///< By request.
  std::vector<Seen> seen_;                        ///< By number.
};

/// Mean prefill time plus mean decode time since the start. The averages of tokens are read as 0,
/// so the guesses in the formula cancel; as intended they do not.
class AibrixLeastLatency final : public AibrixObserved {
 public:
  AibrixLeastLatency(const AibrixSettings& settings, const RandomStream& random)
      : AibrixObserved(settings, random, Ties::kLast) {}

 private:
  BalancerAnswer route(const BalancerRequest& request) override {
    if (settings().metrics_as_intended) guess();
    return AibrixObserved::route(request);
  }
  std::optional<double> score(std::uint32_t pod, const BalancerRequest& /*request*/) override {
    const Seen& s = seen(pod);
    if (!settings().metrics_as_intended) return s.prefill.value() + s.decode.value();
    const auto scaled = [](const Mean& time, const Mean& tokens, double guess) {
      return time.value() / (tokens.value() > 0 ? tokens.value() : guess) * guess;
    };
    return scaled(s.prefill, s.prompt, prompt_) + scaled(s.decode, s.output, output_);
  }
  void guess() {
    Mean prompt, output;
    for (const std::uint32_t i : ready()) {
      if (seen(i).prompt.value() > 0) prompt.add(seen(i).prompt.value());
      if (seen(i).output.value() > 0) output.add(seen(i).output.value());
    }
    prompt_ = prompt.count > 0 ? prompt.value() : 10;
    output_ = output.count > 0 ? output.value() : 100;
  }
  double prompt_ = 10, output_ = 100;
};

/// Mean tokens of a pod's requests, an output token counting half of a prompt token.
class AibrixThroughput final : public AibrixObserved {
 public:
  AibrixThroughput(const AibrixSettings& settings, const RandomStream& random)
      : AibrixObserved(settings, random, Ties::kAllDrawn) {}

 private:
  std::optional<double> score(std::uint32_t pod, const BalancerRequest& /*request*/) override {
    const Seen& s = seen(pod);
    if (s.prompt.count == 0) return std::nullopt;
    return 2 * s.prompt.value() + s.output.value();
  }
};

/// Counts live in Redis under keys of an hour, which expire 5 minutes after the last request.
class AibrixPowerOfTwo final : public AibrixBalancer {
 public:
  using AibrixBalancer::AibrixBalancer;

  void on_sent(const BalancerPick& pick, const BalancerRequest& request) override {
    AibrixBalancer::on_sent(pick, request);
    const Key key{pick.server, hour_of(request.now)};
    counts_[key] = {.value = count(key, request.now) + 1, .expires = request.now + kExpiry};
    keys_[request.id] = key;
  }
  void on_completed(const BalancerPick& pick, const BalancerOutcome& outcome) override {
    AibrixBalancer::on_completed(pick, outcome);
    const auto at = keys_.find(outcome.id);
    if (at == keys_.end()) return;
    const std::int64_t left = count(at->second, outcome.now) - 1;
    const auto old = counts_.find(at->second);
    const bool expired = old == counts_.end() || old->second.expires <= outcome.now;
    // A key that comes back by a decrement has no expiry, and its count is below 0.
    counts_[at->second] = {.value = left, .expires = expired ? kNever : old->second.expires};
    keys_.erase(at);
  }

 private:
  using Key = std::pair<std::uint32_t, std::int64_t>;  ///< Server and hour.
  struct Count {
    std::int64_t value = 0;
    SimTime expires{};
  };
  static constexpr Duration kExpiry = Duration::seconds(300);
  static constexpr SimTime kNever =
      SimTime::zero() + Duration::nanoseconds(std::numeric_limits<std::int64_t>::max());

  static std::int64_t hour_of(SimTime now) {
    return (now - SimTime::zero()).ns() / 3'600'000'000'000;
  }
  std::int64_t count(const Key& key, SimTime now) const {
    const auto at = counts_.find(key);
    return at == counts_.end() || at->second.expires <= now ? 0 : at->second.value;
  }
  BalancerAnswer route(const BalancerRequest& request) override {
    if (ready().size() == 1) return pick_of(ready().front());
    const auto [first, second] = draw_two(ready().size(), TwoDraws::kAgain, random());
    const BalancerPick a = pick_of(ready()[first]), b = pick_of(ready()[second]);
    const std::int64_t hour = hour_of(request.now);
    return count({a.server, hour}, request.now) <= count({b.server, hour}, request.now) ? a : b;
  }

  std::map<Key, Count> counts_;
  std::unordered_map<std::uint64_t, Key> keys_;  ///< Of requests in flight.
};

class AibrixPrefixCache final : public AibrixBalancer {
 public:
  AibrixPrefixCache(const AibrixSettings& settings, const RandomStream& random)
      : AibrixBalancer(settings, random), table_(settings) {}
  BalancerNeeds needs() const override { return {.text = true}; }

 private:
  BalancerAnswer route(const BalancerRequest& request) override {
    const auto& matches = table_.match(request.text, request.now);
    const std::optional<std::uint32_t> matched = best_match(matches);
    const BalancerPick pick = pick_of(settle(matched ? *matched : least_request()));
    table_.add(pods().number(pick.endpoint), request.now);
    return pick;
  }
  /// The longest match whose load is within the limit; of equals the least loaded.
  std::optional<std::uint32_t> best_match(const std::vector<AibrixPrefixTable::Match>& matches) {
    if (matches.empty()) return std::nullopt;
    loads_.clear();
    for (const std::uint32_t i : ready()) loads_.push_back(in_flight()[i]);
    const double limit = load_limit(loads_);
    const bool imbalanced = is_imbalanced();
    const auto load_of = [this](std::uint32_t i) { return in_flight()[i]; };
    const std::uint32_t least = least_and_most(ready(), load_of).first;
    Least<std::pair<std::int64_t, std::uint32_t>> best(Ties::kAllDrawn, random());
    for (const AibrixPrefixTable::Match& m : matches) {
      const auto i = pods().index(m.pod);
      if (!i || !endpoints()[*i].healthy || !offered(*i)) continue;
      const std::uint32_t load = in_flight()[*i];
      if ((imbalanced && load > least) || load > limit) continue;
      best.offer(*i, {-m.percent, load});
    }
    return best.best();
  }

  AibrixPrefixTable table_;
  std::vector<double> loads_;
};

/// Weighted tokens of users in a sliding window (vtc/token_tracker.go). A user's old buckets go
/// only when the user is looked at.
class AibrixTokenTracker {
 public:
  explicit AibrixTokenTracker(const AibrixSettings& s)
      : settings_(s), window_seconds_(60 * s.router_vtc_token_tracker_window_size) {}

  double tokens_of(const std::string& user, SimTime now) {
    const auto at = users_.find(user);
    if (at == users_.end()) return 0;
    prune(at->second, now);
    return at->second.total;
  }
  /// Tokens that stand for one pod.
  double bucket() const {
    const double least =
        totals_.empty() ? settings_.router_vtc_token_tracker_min_tokens : *totals_.begin();
    const double most =
        totals_.empty() ? settings_.router_vtc_token_tracker_max_tokens : *totals_.rbegin();
    return std::max(settings_.router_vtc_token_tracker_min_tokens, (least + most) / 2);
  }
  void add(const std::string& user, double tokens, SimTime now) {
    User& u = users_[user];
    prune(u, now);
    const std::int64_t second = second_of(now);
    if (!u.buckets.empty() && u.buckets.back().first == second)
      u.buckets.back().second += tokens;
    else
      u.buckets.emplace_back(second, tokens);
    set_total(u, u.total + tokens);
  }

 private:
  struct User {
    std::deque<std::pair<std::int64_t, double>> buckets;  ///< Second and tokens.
    double total = 0;
  };
  static std::int64_t second_of(SimTime now) {
    return (now - SimTime::zero()).ns() / 1'000'000'000;
  }
  void prune(User& u, SimTime now) {
    double left = u.total;
    while (!u.buckets.empty() && u.buckets.front().first < second_of(now) - window_seconds_) {
      left -= u.buckets.front().second;
      u.buckets.pop_front();
    }
    set_total(u, std::max(0.0, left));
  }
  void set_total(User& u, double total) {
    if (total == u.total) return;
    if (u.total > 0) totals_.erase(totals_.find(u.total));
    if (total > 0) totals_.insert(total);
    u.total = total;
  }

  AibrixSettings settings_;
  std::int64_t window_seconds_;
  std::map<std::string, User, std::less<>> users_;
  std::multiset<double> totals_;  ///< Those above 0.
};

/// Maps a user to a pod by the tokens the user has consumed. Nothing is queued.
class AibrixVtcBasic final : public AibrixBalancer {
 public:
  AibrixVtcBasic(const AibrixSettings& settings, const RandomStream& random)
      : AibrixBalancer(settings, random), tracker_(settings) {}
  BalancerNeeds needs() const override {
    return {.metrics = true, .metrics_interval = kAibrixScrape, .text = true, .identity = true};
  }

 private:
  BalancerAnswer route(const BalancerRequest& request) override {
    // An empty user is a user whose tokens are not counted; only a missing one is none.
    const std::string user(request.user.data() == nullptr ? request.session : request.user);
    if (user.empty() && request.user.data() == nullptr) return pick_of(any_pod());
    const double used = tracker_.tokens_of(user, request.now);
    const double place =
        std::min(used / tracker_.bucket(), static_cast<double>(ready().size() - 1));
    const std::uint32_t pod = least_score(place, request);
    if (user.empty()) return pick_of(pod);
    const double input = std::ceil(request.text.characters() / 4);
    const double output = std::ceil(1.5 * input);
    tracker_.add(user,
                 input * settings().router_vtc_basic_input_token_weight +
                     output * settings().router_vtc_basic_output_token_weight,
                 request.now);
    return pick_of(pod);
  }
  std::uint32_t least_score(double place, const BalancerRequest& request) {
    std::uint32_t best = ready().front();
    double least = std::numeric_limits<double>::max();
    for (std::size_t k = 0; k < ready().size(); ++k) {
      const std::uint32_t i = ready()[k];
      const bool known = request.metrics != nullptr && request.metrics->has_metrics(i);
      const double running = known ? request.metrics->running()[i] : 0;
      const double fairness = std::abs(static_cast<double>(k) - place);
      const double load = std::min(running / settings().router_vtc_basic_max_pod_load, 1.0);
      const double score = settings().router_vtc_basic_fairness_weight * fairness +
                           settings().router_vtc_basic_utilization_weight * load +
                           0.1 * random().uniform();
      if (score >= least) continue;
      least = score;
      best = i;
    }
    return best;
  }
  AibrixTokenTracker tracker_;
};

template <class T>
constexpr auto make = make_policy<Balancer, T, AibrixSettings>;

void describe_prefix_cache(Describer& d, AibrixSettings& s) {
  release_field(d, s.release);
  field(d,
        {"metrics_as_intended",
         "least-kv-cache, least-gpu-cache, throughput, least-latency: decide by the metrics that "
         "the code means. With today's vLLM the first three choose at random."},
        s.metrics_as_intended);
  field(d, {"prefix_cache_block_size", "prefix-cache, pd: bytes of a block."},
        s.prefix_cache_block_size, IntRange{1, 1'000'000});
  field(d, {"prefix_cache_block_number", "prefix-cache, pd: blocks kept for the whole fleet."},
        s.prefix_cache_block_number, IntRange{1, 1'000'000'000});
  field(d, {"prefix_cache_eviction_interval_seconds", "prefix-cache, pd: time between sweeps."},
        s.prefix_cache_eviction_interval_seconds, IntRange{1, 1'000'000});
  field(d,
        {"prefix_cache_eviction_duration_mins",
         "prefix-cache, pd: a block is dropped when it was not written for this time."},
        s.prefix_cache_eviction_duration_mins, IntRange{1, 1'000'000});
  field(d,
        {"prefix_cache_pod_running_request_imbalance_abs_count",
         "prefix-cache, prefix-cache-preble: loads that differ by more limit the choice to the "
         "least loaded pods."},
        s.prefix_cache_pod_running_request_imbalance_abs_count, IntRange{0, 1'000'000});
  field(
      d,
      {"prefix_cache_load_imbalance_factor",
       "The same from commit 01de8a5 on: the largest load is above this many times the mean + 1."},
      s.prefix_cache_load_imbalance_factor, RealRange{.min = 0, .max = 1e6});
  field(d, {"prefix_cache_load_imbalance_min_gap", "And above the least by so many."},
        s.prefix_cache_load_imbalance_min_gap, IntRange{0, 1'000'000});
  field(d,
        {"prefix_cache_standard_deviation_factor",
         "prefix-cache, pd: standard deviations above the mean load that a pod may have."},
        s.prefix_cache_standard_deviation_factor, IntRange{0, 1'000});
}

void describe_preble_and_vtc(Describer& d, AibrixSettings& s) {
  field(d, {"router_preble_target_gpu", "prefix-cache-preble: GPU of the cost model."},
        s.router_preble_target_gpu);
  field(d, {"router_preble_decoding_length", "prefix-cache-preble: expected output tokens."},
        s.router_preble_decoding_length, IntRange{0, 1'000'000});
  field(d, {"router_preble_sliding_window_period", "prefix-cache-preble: minutes that count."},
        s.router_preble_sliding_window_period, IntRange{1, 1'000'000});
  field(d,
        {"router_preble_eviction_loop_interval",
         "prefix-cache-preble: milliseconds between sweeps of the tree and the window."},
        s.router_preble_eviction_loop_interval, IntRange{1, 1'000'000'000});
  const RealRange positive{.min = 0, .max = 1e12, .min_open = true};
  const RealRange weight{.min = 0, .max = 1e6};
  field(d, {"router_vtc_basic_max_pod_load", "vtc-basic: running requests of a full pod."},
        s.router_vtc_basic_max_pod_load, positive);
  field(d, {"router_vtc_basic_input_token_weight", "vtc-basic: weight of a prompt token."},
        s.router_vtc_basic_input_token_weight, weight);
  field(d, {"router_vtc_basic_output_token_weight", "vtc-basic: weight of an output token."},
        s.router_vtc_basic_output_token_weight, weight);
  field(d, {"router_vtc_basic_fairness_weight", "vtc-basic: weight of the user's place."},
        s.router_vtc_basic_fairness_weight, weight);
  field(d, {"router_vtc_basic_utilization_weight", "vtc-basic: weight of the pod's load."},
        s.router_vtc_basic_utilization_weight, weight);
  field(d, {"router_vtc_token_tracker_window_size", "vtc-basic: minutes that tokens count."},
        s.router_vtc_token_tracker_window_size, IntRange{1, 1'000'000});
  field(d, {"router_vtc_token_tracker_min_tokens", "vtc-basic: tokens of a pod, at least."},
        s.router_vtc_token_tracker_min_tokens, positive);
  field(d,
        {"router_vtc_token_tracker_max_tokens", "vtc-basic: the most used while nobody has used."},
        s.router_vtc_token_tracker_max_tokens, positive);
}

void describe_pd(Describer& d, AibrixSettings& s) {
  field(d,
        {"prefill_load_imbalance_min_spread",
         "pd: prefills in flight that differ by more send a request to the least loaded pod."},
        s.prefill_load_imbalance_min_spread, IntRange{0, 1'000'000});
  field(d,
        {"decode_load_imbalance_min_spread",
         "pd: requests of decode pods that differ by this or more do the same."},
        s.decode_load_imbalance_min_spread, RealRange{.min = 0, .max = 1e6});
  field(d,
        {"decode_score_ratio_threshold",
         "pd: times to drain whose ratio is above this send a request to the quickest pod."},
        s.decode_score_ratio_threshold, RealRange{.min = 0, .max = 1e6});
  field(d, {"prefill_score_policy", "pd: how prefill pods are scored."}, s.prefill_score_policy);
  field(d, {"decode_score_policy", "pd: how decode pods are scored."}, s.decode_score_policy);
  field(d, {"decode_lb_weight_running", "pd: weight of running requests in load_balancing."},
        s.decode_lb_weight_running, RealRange{.min = 0, .max = 1e6});
  field(d, {"decode_lb_weight_throughput", "pd: weight of throughput in load_balancing."},
        s.decode_lb_weight_throughput, RealRange{.min = 0, .max = 1e6});
}

}  // namespace

void describe(Describer& d, AibrixSettings& s) {
  describe_prefix_cache(d, s);
  describe_preble_and_vtc(d, s);
  describe_pd(d, s);
  field(
      d,
      {"profiles",
       "slo: profiles of the GPU optimizer, one a deployment. Without any, slo is least-request."},
      s.profiles);
}

std::unique_ptr<Balancer> make_aibrix(AibrixPolicy policy, const AibrixSettings& settings,
                                      const RandomStream& random) {
  static constexpr std::array kMakers = {make<AibrixRandom>,       make<AibrixLeastRequest>,
                                         make<AibrixLeastKvCache>, make<AibrixLeastGpuCache>,
                                         make<AibrixLeastLatency>, make<AibrixThroughput>,
                                         make<AibrixPowerOfTwo>,   make<AibrixPrefixCache>,
                                         &make_aibrix_preble,      make<AibrixVtcBasic>,
                                         &make_aibrix_pd,          &make_aibrix_slo,
                                         make<AibrixRandom>,       make<AibrixSessionAffinity>};
  static_assert(kMakers.size() == AibrixFamily::policies.size());
  // No engine exports gpu_busy_time_ratio, vLLM V1 no cpu_cache_usage_perc and 0.12 no
  // gpu_cache_usage_perc, so every pod is skipped; throughput reads both averages as 0.
  const bool draws = policy == AibrixPolicy::kLeastKvCache ||
                     policy == AibrixPolicy::kLeastGpuCache || policy == AibrixPolicy::kThroughput;
  if (draws && !settings.metrics_as_intended) policy = AibrixPolicy::kRandom;
  return kMakers[static_cast<std::size_t>(policy)](settings, random);
}

}  // namespace routesim::policies
