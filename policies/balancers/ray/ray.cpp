#include "policies/balancers/ray/ray.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "policies/balancers/kit/choose.h"
#include "policies/balancers/kit/legs.h"
#include "policies/balancers/kit/tenant_tree.h"

namespace routesim::policies {
namespace {

constexpr std::int64_t kTasksPerReplica = 2;
constexpr std::int64_t kMostTasks = 50;  // max_num_routing_tasks_cap.

/// The queue lengths that a router remembers, by server, and what it takes from them.
class QueueLengths {
 public:
  explicit QueueLengths(const RaySettings& s)
      : most_(s.max_ongoing_requests),
        timeout_(Duration::from_seconds(s.queue_length_cache_timeout_s)) {}

  void set(std::uint32_t server, std::int64_t length, SimTime now) {
    if (server >= entries_.size()) entries_.resize(server + std::size_t{1});
    entries_[server] = {.length = length, .at = now};
  }
  /// Nothing where the entry is too old.
  std::optional<std::int64_t> get(std::uint32_t server, SimTime now) const {
    if (now - entries_[server].at > timeout_) return std::nullopt;
    return entries_[server].length;
  }
  /// The same, for a choice: a full server is asked, so that nobody waits for the entry to age.
  std::optional<std::int64_t> usable(std::uint32_t server, SimTime now) const {
    const auto length = get(server, now);
    return length && *length < most_ ? length : std::nullopt;
  }

 private:
  struct Entry {
    std::int64_t length = 0;
    SimTime at;
  };
  std::int64_t most_;
  Duration timeout_;
  std::vector<Entry> entries_;
};

/// RequestRouter: attempts with backoff, each of which takes the candidate with the shortest queue.
/// A probe of a server answers at once with the requests of this router there.
class RayRouter : public Balancer {
 public:
  RayRouter(const RaySettings& settings, const RandomStream& random)
      : settings_(settings),
        decrements_(settings.decrement_queue_len_cache.value_or(
            release_of<RayRelease>(kRayReleases, settings.release) >= RayRelease::k2_55)),
        random_(random),
        lengths_(settings) {}

  BalancerNeeds needs() const override {
    return {.tried_per_endpoint = kTasksPerReplica, .tried_at_most = kMostTasks};
  }
  void set_endpoints(std::span<const BalancerEndpoint> endpoints) override {
    Balancer::set_endpoints(endpoints);
    std::vector<std::uint32_t> known;
    replicas_.clear();
    for (std::uint32_t i = 0; i < size(); ++i) {
      if (!endpoints[i].healthy) continue;
      replicas_.push_back(i);
      known.push_back(server(i));
      // update_replicas probes those that are new.
      if (std::find(known_.begin(), known_.end(), server(i)) == known_.end()) probe(i);
    }
    known_ = std::move(known);
  }
  BalancerAnswer pick(const BalancerRequest& request) final {
    now_ = request.now;
    // The product waits for replicas without attempts.
    if (replicas().empty())
      return BalancerAnswer::held(Duration::from_seconds(settings_.max_backoff_s));
    if (fails_on(request)) return BalancerAnswer::refused(500);
    const auto at = sleeps_.find(request.turn);
    std::optional<std::uint32_t> chosen = attempt(request);
    // The second attempt follows the first without a pause.
    if (!chosen && at == sleeps_.end()) chosen = attempt(request);
    if (chosen || terms().forced) {
      sleeps_.erase(request.turn);
      return pick_of(settle(chosen.value_or(0)));
    }
    return BalancerAnswer::held(backoff(sleeps_[request.turn]++));
  }
  void on_sent(const BalancerPick& pick, const BalancerRequest& request) override {
    Balancer::on_sent(pick, request);
    // The replica answers with its queue length, this request included.
    probe(pick.endpoint);
  }
  void on_completed(const BalancerPick& pick, const BalancerOutcome& outcome) override {
    Balancer::on_completed(pick, outcome);
    now_ = outcome.now;
    if (!decrements_ || !index_of(pick.server)) return;
    if (const auto length = lengths_.get(pick.server, now_))
      lengths_.set(pick.server, std::max<std::int64_t>(0, *length - 1), now_);
  }

 protected:
  virtual bool fails_on(const BalancerRequest& /*request*/) { return false; }
  /// The candidates of one attempt. There are replicas.
  virtual std::span<const std::uint32_t> choose(const BalancerRequest& request) = 0;

  const RaySettings& settings() const { return settings_; }
  const std::vector<std::uint32_t>& replicas() const { return offered(replicas_); }
  std::uint32_t server(std::uint32_t i) const { return pick_of(i).server; }
  std::optional<std::int64_t> usable_length(std::uint32_t i) const {
    return lengths_.usable(server(i), now_);
  }
  std::int64_t probe(std::uint32_t i) {
    lengths_.set(server(i), in_flight()[i], now_);
    return in_flight()[i];
  }
  /// Two replicas in random order, or the only one.
  std::span<const std::uint32_t> two_replicas() {
    const std::size_t n = replicas().size();
    if (n == 1) return replicas();
    const auto [first, second] = draw_two(n, TwoDraws::kOthers, random_);
    two_ = {replicas()[first], replicas()[second]};
    return two_;
  }

 private:
  /// An event loop does not sleep for less than a millisecond, so that attempts come to an end.
  Duration backoff(int sleeps) const {
    return std::max(
        Duration::milliseconds(1),
        Duration::from_seconds(
            std::min(settings_.initial_backoff_s * std::pow(settings_.backoff_multiplier, sleeps),
                     settings_.max_backoff_s)));
  }
  /// _select_from_candidate_replicas: the first of the shortest queues. Servers without a usable
  /// entry are asked, and compete only where no server has one.
  std::optional<std::uint32_t> attempt(const BalancerRequest& request) {
    std::optional<std::uint32_t> best;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    asked_.clear();
    for (const std::uint32_t i : choose(request)) {
      const auto length = usable_length(i);
      if (!length) {
        asked_.push_back(i);
      } else if (*length < least) {
        least = *length;
        best = i;
      }
    }
    const bool compete = !best;
    for (const std::uint32_t i : asked_) {
      const std::int64_t length = probe(i);
      if (!compete || length >= settings_.max_ongoing_requests || length >= least) continue;
      least = length;
      best = i;
    }
    return best;
  }

  RaySettings settings_;
  bool decrements_;
  RandomStream random_;
  QueueLengths lengths_;
  std::vector<std::uint32_t> replicas_;            ///< Indices of those that run.
  std::vector<std::uint32_t> known_;               ///< Their servers.
  std::unordered_map<std::uint64_t, int> sleeps_;  ///< By turn of a held request.
  std::vector<std::uint32_t> asked_;
  std::array<std::uint32_t, 2> two_{};
  SimTime now_;  ///< Of the latest call; a change of endpoints has no time of its own.
};

class RayPowerOfTwo final : public RayRouter {
 public:
  using RayRouter::RayRouter;
  BalancerNeeds needs() const override {
    BalancerNeeds needs = RayRouter::needs();
    needs.in_order = true;  // FIFOMixin.
    return needs;
  }

 private:
  std::span<const std::uint32_t> choose(const BalancerRequest&) override { return two_replicas(); }
};

/// Replicas that got the same beginning of text; the tree knows no answers.
class RayPrefixCacheAffinity final : public RayRouter {
 public:
  RayPrefixCacheAffinity(const RaySettings& s, const RandomStream& random)
      : RayRouter(s, random),
        limit_(s.imbalanced_threshold.value_or(default_limit(s.release))),
        tree_(TenantTreeKind::kInsertions),
        eviction_(s.do_eviction ? Duration::from_seconds(s.eviction_interval_secs)
                                : Duration::zero()) {}

  BalancerNeeds needs() const override {
    BalancerNeeds needs = RayRouter::needs();
    needs.text = true;
    return needs;
  }
  void set_endpoints(std::span<const BalancerEndpoint> endpoints) override {
    RayRouter::set_endpoints(endpoints);
    std::vector<std::uint32_t> tenants;
    for (const std::uint32_t i : replicas()) tenants.push_back(server(i));
    for (const std::uint32_t tenant : tenants_)
      if (std::find(tenants.begin(), tenants.end(), tenant) == tenants.end())
        tree_.remove_tenant(tenant);
    for (const std::uint32_t tenant : tenants) tree_.add_tenant(tenant);
    tenants_ = std::move(tenants);
  }
  void on_sent(const BalancerPick& pick, const BalancerRequest& request) override {
    RayRouter::on_sent(pick, request);
    tree_.insert(request.text, pick.server);
  }

 private:
  /// An empty prompt, not a missing one: the match is divided by its length, where the load lets it
  /// be looked up (_prefix_match_best_replicas @2.60.0). The product's request then waits for ever.
  bool fails_on(const BalancerRequest& request) override {
    return request.text.runs.data() != nullptr && request.text.units() == 0 && !is_imbalanced();
  }
  std::span<const std::uint32_t> choose(const BalancerRequest& request) override {
    if (eviction_.due(request.now)) evict();
    characters_ = request.text.characters_per_unit;
    const auto fallback = two_replicas();
    const std::int64_t length = request.text.units();
    if (length == 0 || is_imbalanced()) return fallback;
    const TenantTree::Place place = tree_.find(request.text);
    chosen_.clear();
    if (static_cast<double>(place.matched) / static_cast<double>(length) <
        settings().match_rate_threshold)
      chosen_ = all_least(replicas(), [&](std::uint32_t i) { return tree_.size_of(server(i)); });
    else
      for (const std::uint32_t i : replicas())
        if (tree_.owns(place.node, server(i))) chosen_.push_back(i);
    return chosen_.empty() ? fallback : chosen_;
  }
  /// initialize_state of prefix_aware_router.py: 10 in 2.49.0 to 2.53.0, infinite in 2.54.0.
  static double default_limit(const std::string& release) {
    if (release_of<RayRelease>(kRayReleases, release) < RayRelease::k2_54) return 10;
    return std::numeric_limits<double>::infinity();
  }
  bool is_imbalanced() {
    const auto [least, most] = least_and_most(replicas(), [this](std::uint32_t i) {
      const auto usable = usable_length(i);
      return usable ? *usable : probe(i);
    });
    return static_cast<double>(most - least) > limit_;
  }
  void evict() {
    const auto units = [this](std::int64_t characters) {
      return static_cast<std::int64_t>(static_cast<double>(characters) / characters_);
    };
    for (const std::uint32_t tenant : tenants_)
      if (tree_.size_of(tenant) > units(settings().eviction_threshold_chars))
        tree_.evict_insertions(tenant,
                               tree_.size_of(tenant) - units(settings().eviction_target_chars));
  }

  double limit_;  ///< Of the difference of queue lengths.
  TenantTree tree_;
  Periodic eviction_;
  double characters_ = 1;  ///< Per unit of text.
  std::vector<std::uint32_t> tenants_, chosen_;
};

}  // namespace

void describe(Describer& d, RaySettings& s) {
  const RealRange seconds{.min = 0, .max = 1e6, .min_open = true};
  release_field(d, s.release);
  field(d,
        {"max_ongoing_requests",
         "Requests in flight at a replica; further ones wait at the router and are tried again."},
        s.max_ongoing_requests, IntRange{1, 1'000'000'000});
  field(d, {"initial_backoff_s", "Seconds between the second and the third attempt."},
        s.initial_backoff_s, seconds);
  field(d, {"backoff_multiplier", "Each later pause is so many times as long."},
        s.backoff_multiplier, RealRange{.min = 1, .max = 1e6});
  field(d, {"max_backoff_s", "The longest pause, in seconds."}, s.max_backoff_s, seconds);
  field(d, {"queue_length_cache_timeout_s", "Seconds that a queue length counts as known."},
        s.queue_length_cache_timeout_s, RealRange{.min = 0, .max = 1e6});
  field(
      d,
      {"decrement_queue_len_cache",
       "Known queue lengths fall when a request ends, as by default from release 2.55 on. Before, "
       "they fell only when the replica was asked or got a request."},
      s.decrement_queue_len_cache);
  field(
      d,
      {"imbalanced_threshold",
       "prefix-cache-affinity: queue lengths may differ by this many; beyond, two random replicas "
       "compete. .inf = any number, as where absent; before release 2.54 that means 10."},
      s.imbalanced_threshold, RealRange{.min = 0, .allow_infinity = true});
  field(d,
        {"match_rate_threshold",
         "prefix-cache-affinity: share of the text that must match; below, the replicas that got "
         "the least text compete. Above 1 nothing matches."},
        s.match_rate_threshold, RealRange{.min = 0, .max = 1e9});
  field(d, {"do_eviction", "prefix-cache-affinity: the tree forgets old texts."}, s.do_eviction);
  field(d,
        {"eviction_threshold_chars",
         "prefix-cache-affinity: characters of a replica above which it loses texts."},
        s.eviction_threshold_chars, IntRange{0, std::int64_t{1} << 40});
  field(d, {"eviction_target_chars", "prefix-cache-affinity: characters it then keeps."},
        s.eviction_target_chars, IntRange{0, std::int64_t{1} << 40});
  field(d, {"eviction_interval_secs", "prefix-cache-affinity: seconds between two evictions."},
        s.eviction_interval_secs, seconds);
}

std::unique_ptr<Balancer> make_ray(RayPolicy policy, const RaySettings& settings,
                                   const RandomStream& random) {
  if (policy == RayPolicy::kPowerOfTwo) return std::make_unique<RayPowerOfTwo>(settings, random);
  return std::make_unique<RayPrefixCacheAffinity>(settings, random);
}

}  // namespace routesim::policies
