#include "policies/balancers/envoy/envoy.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "base/check.h"
#include "policies/balancers/kit/hashes.h"
#include "policies/balancers/kit/ring.h"
#include "policies/index/block_keys.h"

namespace routesim::policies {
namespace {

/// The seed of MURMUR_HASH_2, which is MurmurHash64A (source/common/common/murmur_hash.cc).
constexpr std::uint64_t kMurmurSeed = 0xc70f6907;
/// EdfScheduler::createWithPicks starts at a random number of picks below this.
constexpr std::uint64_t kMostInitialPicks = 429'496'729;

/// Earliest deadline first, which is weighted round robin (source/common/upstream/edf_scheduler.h).
class EdfSchedule {
 public:
  void clear() {
    heap_.clear();
    now_ = 0;
    order_ = 0;
  }
  /// Hosts 0 … n - 1 after `picks` picks. Whole turns are counted, the rest is played, as
  /// createWithPicks does it: weights are larger by kMore and a turn is taken back where rounding
  /// has counted too many, which decides the order of equal deadlines from then on.
  void start(const std::vector<double>& weights, std::uint64_t picks) {
    constexpr double kMore = 1e-13;
    clear();
    double sum = 0;
    for (const double w : weights) sum += w + kMore;
    const auto all = static_cast<double>(picks);
    std::uint64_t done = 0;
    for (std::uint32_t i = 0; i < weights.size(); ++i) {
      const double weight = weights[i] + kMore;
      double turns = std::floor(weight * all / sum);
      if (turns > 0 && turns / weight >= all / sum) --turns;
      done += static_cast<std::uint64_t>(turns);
      now_ = std::max(now_, turns / weight);
      insert_at((turns + 1) / weight, i);
    }
    for (; done < picks; ++done) {
      const std::uint32_t host = take();
      add(host, weights[host]);
    }
  }
  void add(std::uint32_t host, double weight) { insert_at(now_ + 1 / weight, host); }
  std::uint32_t take() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Entry entry = heap_.back();
    heap_.pop_back();
    now_ = entry.deadline;
    return entry.host;
  }

 private:
  struct Entry {
    double deadline;
    std::uint64_t order;
    std::uint32_t host;
  };
  static bool later(const Entry& a, const Entry& b) {
    return std::pair(a.deadline, a.order) > std::pair(b.deadline, b.order);
  }
  void insert_at(double deadline, std::uint32_t host) {
    heap_.push_back({deadline, order_++, host});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  std::vector<Entry> heap_;
  double now_ = 0;
  std::uint64_t order_ = 0;
};

/// Hosts that may get requests: the healthy ones, and degraded ones for what the healthy cannot
/// serve, or all of them in a panic.
class EnvoyBalancer : public Balancer {
 public:
  explicit EnvoyBalancer(const EnvoySettings& settings) : settings_(settings) {}

  void set_endpoints(std::span<const BalancerEndpoint> endpoints) override {
    Balancer::set_endpoints(endpoints);
    for (auto& set : sets_) set.clear();
    for (std::uint32_t i = 0; i < size(); ++i)
      if (const EnvoyHealth health = health_of(i); health <= EnvoyHealth::kHealthy)
        sets_[0].push_back(i);
      else if (health == EnvoyHealth::kDegraded)
        sets_[1].push_back(i);
    share_loads();
    for (set_ = sets_.size(); set_-- > 0;) on_hosts_changed();
    set_ = 0;
  }

 protected:
  virtual void on_hosts_changed() {}
  const EnvoySettings& settings() const { return settings_; }
  /// Indices of endpoints, of the set that a request is for.
  const std::vector<std::uint32_t>& hosts() const { return sets_[set_]; }
  /// 0 = healthy hosts, 1 = degraded ones.
  std::size_t set() const { return set_; }
  void choose_set(RandomStream& random) {
    set_ = degraded_load_ == 0 ? 0 : degraded_load_ == 100 ? 1 : random.below(100) < degraded_load_;
  }
  std::uint32_t active(std::uint32_t host) const { return in_flight()[hosts()[host]]; }
  std::vector<double> weights() const {
    std::vector<double> out;
    for (const std::uint32_t i : hosts())
      out.push_back(i < settings_.weights.size() ? settings_.weights[i] : endpoints()[i].weight);
    return out;
  }
  bool may_serve(std::uint32_t host) const { return offered(hosts()[host]); }
  /// The host that `once` chooses, or, as with Envoy's host predicates, the first offered one of
  /// those that it chooses at its attempts number 0, 1, 2, ….
  template <class F>
  BalancerAnswer answer(F once) const {
    if (offered(hosts()).empty()) return std::nullopt;
    std::uint32_t host = once(0);
    for (std::uint64_t attempt = 1; !may_serve(host); ++attempt) host = once(attempt);
    return pick_of(hosts()[host]);
  }

 private:
  EnvoyHealth health_of(std::uint32_t i) const {
    if (!endpoints()[i].healthy) return EnvoyHealth::kUnhealthy;
    if (endpoints()[i].degraded) return EnvoyHealth::kDegraded;
    return i < settings_.health_status.size() ? settings_.health_status[i] : EnvoyHealth::kUnknown;
  }
  /// Percent of the requests that degraded hosts get. Whole numbers, as in the product.
  void share_loads() {
    constexpr std::uint64_t kOverprovisioning = 140;  // Percent.
    degraded_load_ = 0;
    const std::uint64_t n = std::max<std::uint64_t>(1, size());
    const auto available = [n](const auto& set) {
      return std::min<std::uint64_t>(100, kOverprovisioning * set.size() / n);
    };
    const std::uint64_t healthy = available(sets_[0]), degraded = available(sets_[1]);
    const std::uint64_t both = std::min<std::uint64_t>(100, healthy + degraded);
    const double share = 100.0 * static_cast<double>(sets_[0].size() + sets_[1].size());
    if (both < 100 && share < settings_.healthy_panic_threshold * static_cast<double>(size())) {
      sets_[0].resize(size());
      for (std::uint32_t i = 0; i < size(); ++i) sets_[0][i] = i;
    } else if (both > 0) {
      // The rest of a division goes to the healthy set, which has none where all are degraded.
      degraded_load_ = std::min(100 - healthy * 100 / both, degraded * 100 / both);
    }
  }

  EnvoySettings settings_;
  std::array<std::vector<std::uint32_t>, 2> sets_;
  std::size_t set_ = 0;
  std::uint64_t degraded_load_ = 0;
};

class EnvoyRandom final : public EnvoyBalancer {
 public:
  EnvoyRandom(const EnvoySettings& settings, const RandomStream& random)
      : EnvoyBalancer(settings), random_(random) {}
  BalancerAnswer pick(const BalancerRequest&) override {
    choose_set(random_);
    return answer([this](std::uint64_t) {
      return static_cast<std::uint32_t>(random_.next() % hosts().size());
    });
  }

 private:
  RandomStream random_;
};

/// round_robin and least_request: both keep an EDF schedule where weights differ.
class EnvoyWeighted : public EnvoyBalancer {
 public:
  EnvoyWeighted(const EnvoySettings& settings, const RandomStream& random)
      : EnvoyBalancer(settings), random_(random), seed_(random_.next()) {}

  BalancerAnswer pick(const BalancerRequest&) override {
    choose_set(random_);
    return answer([this](std::uint64_t) {
      Turns& turns = turns_[set()];
      if (!turns.scheduled) return unweighted();
      const std::uint32_t host = turns.schedule.take();
      turns.schedule.add(host, weight_now(host));
      return host;
    });
  }

 protected:
  /// Decides where all weights are equal.
  virtual std::uint32_t unweighted() = 0;
  /// The weight with which a host goes back into the schedule.
  virtual double weight_now(std::uint32_t host) const { return weight(host); }
  virtual bool always_scheduled() const { return false; }
  double weight(std::uint32_t host) const { return turns_[set()].weights[host]; }
  RandomStream& random() { return random_; }
  std::uint64_t seed() const { return seed_; }

 private:
  struct Turns {
    std::vector<double> weights;
    bool scheduled = false;
    EdfSchedule schedule;
  };
  void on_hosts_changed() override {
    Turns& turns = turns_[set()];
    turns.weights = weights();
    const bool equal = std::all_of(turns.weights.begin(), turns.weights.end(),
                                   [&turns](double w) { return w == turns.weights.front(); });
    turns.scheduled = !hosts().empty() && (!equal || always_scheduled());
    if (!turns.scheduled) return;
    std::vector<double> start;
    for (std::uint32_t h = 0; h < hosts().size(); ++h) start.push_back(weight_now(h));
    turns.schedule.start(start, seed_ % kMostInitialPicks);
  }

  RandomStream random_;
  std::uint64_t seed_;
  std::array<Turns, 2> turns_;  ///< By set.
};

class EnvoyRoundRobin final : public EnvoyWeighted {
 public:
  EnvoyRoundRobin(const EnvoySettings& settings, const RandomStream& random)
      : EnvoyWeighted(settings, random), next_{seed(), seed()} {}

 private:
  std::uint32_t unweighted() override {
    return static_cast<std::uint32_t>(next_[set()]++ % hosts().size());
  }
  std::array<std::uint64_t, 2> next_;  ///< By set; survives changes of the hosts.
};

class EnvoyLeastRequest final : public EnvoyWeighted {
 public:
  using EnvoyWeighted::EnvoyWeighted;

 private:
  std::uint32_t unweighted() override {
    return settings().selection_method == EnvoySelection::kFullScan ? full_scan() : n_choices();
  }
  /// Draws with replacement, so the same host may be drawn again.
  std::uint32_t n_choices() {
    std::uint32_t best = draw();
    for (std::int64_t k = 1; k < settings().choice_count; ++k) {
      const std::uint32_t other = draw();
      if (active(other) < active(best)) best = other;
    }
    return best;
  }
  /// Reservoir sampling among the least active.
  std::uint32_t full_scan() {
    std::uint32_t best = 0;
    while (!may_serve(best)) ++best;
    std::uint64_t ties = 1;
    for (std::uint32_t h = best + 1; h < hosts().size(); ++h) {
      if (!may_serve(h) || active(h) > active(best)) continue;
      ties = active(h) < active(best) ? 1 : ties + 1;
      if (random().below(ties) == 0) best = h;
    }
    return best;
  }
  std::uint32_t draw() { return static_cast<std::uint32_t>(random().next() % hosts().size()); }
  double weight_now(std::uint32_t host) const override {
    const double given = settings().active_request_bias.value_or(1.0);
    const double bias = given >= 0 ? given : 1.0;  // Also of NaN.
    if (bias == 0) return weight(host);
    return weight(host) / std::pow(static_cast<double>(active(host)) + 1, bias);
  }
  /// A bias that is set counts with equal weights, too (guard
  /// least_request_lb_active_request_bias_forces_weighted).
  bool always_scheduled() const override { return settings().active_request_bias.has_value(); }
};

/// The hash of a request from a route's hash_policy (source/common/http/hash_policy.cc).
class RequestHash {
 public:
  explicit RequestHash(std::vector<EnvoyHashPolicy> policies) : policies_(std::move(policies)) {}

  /// Nothing where no policy has a value.
  std::optional<std::uint64_t> operator()(const BalancerRequest& request) {
    std::optional<std::uint64_t> hash;
    for (const EnvoyHashPolicy& policy : policies_) {
      if (const auto own = value_hash(policy, request))
        hash = hash ? std::rotl(*hash, 1) ^ *own : *own;
      if (policy.terminal && hash) break;
    }
    return hash;
  }

 private:
  std::optional<std::uint64_t> value_hash(const EnvoyHashPolicy& policy,
                                          const BalancerRequest& request) {
    if (policy.source_ip)
      return request.session.empty() ? std::nullopt : std::optional(xxh64(request.session));
    if (!policy.cookie.empty()) return cookie_hash(policy, request);
    values_.clear();
    for (const Header& h : request.headers)
      if (same_header(h.name, policy.header)) values_.push_back(h.value);
    if (values_.empty()) return std::nullopt;
    std::sort(values_.begin(), values_.end());
    text_.clear();
    for (const std::string_view value : values_) text_ += value;
    return xxh64(text_);
  }
  std::optional<std::uint64_t> cookie_hash(const EnvoyHashPolicy& policy,
                                           const BalancerRequest& request) {
    for (const Header& h : request.headers) {
      if (!same_header(h.name, "cookie")) continue;
      for (std::string_view rest = h.value; !rest.empty();) {
        const std::size_t end = std::min(rest.find(';'), rest.size());
        std::string_view pair = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        pair.remove_prefix(std::min(pair.find_first_not_of(' '), pair.size()));
        const std::size_t equals = pair.find('=');
        if (equals == std::string_view::npos || pair.substr(0, equals) != policy.cookie) continue;
        std::string_view value = pair.substr(equals + 1);
        if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
          value = value.substr(1, value.size() - 2);
        if (!value.empty()) return xxh64(value);
      }
    }
    // Envoy makes a cookie from the addresses of the connection. A client sends one session.
    if (!policy.has_ttl || request.session.empty()) return std::nullopt;
    return xxh64(request.session);
  }

  std::vector<EnvoyHashPolicy> policies_;
  std::vector<std::string_view> values_;
  std::string text_;
};

/// ring_hash and maglev, with bounded loads where a balance factor is set
/// (common/thread_aware_lb_impl.cc).
class EnvoyHashed : public EnvoyBalancer {
 public:
  EnvoyHashed(const EnvoySettings& settings, const RandomStream& random)
      : EnvoyBalancer(settings), hash_(settings.hash_policy), random_(random) {}

  BalancerNeeds needs() const override {
    BalancerNeeds needs{.identity = true};
    for (const EnvoyHashPolicy& policy : settings().hash_policy) {
      if (!policy.header.empty()) needs.session_headers.push_back(policy.header);
      if (policy.cookie.empty()) continue;
      needs.session_cookies.push_back(policy.cookie);
      needs.other_headers = {"cookie"};
    }
    return needs;
  }
  BalancerAnswer pick(const BalancerRequest& request) override {
    if (hosts().empty()) return std::nullopt;
    const std::optional<std::uint64_t> given = hash_(request);
    const std::uint64_t hash = given ? *given : random_.next();
    return answer([this, hash](std::uint64_t attempt) {
      const std::uint32_t host = owner(hash, attempt);
      return settings().hash_balance_factor == 0 ? host : bounded(host, hash);
    });
  }

 protected:
  /// Another host at the next attempt, sooner or later each.
  virtual std::uint32_t owner(std::uint64_t hash, std::uint64_t attempt) const = 0;
  /// Weights of the hosts that sum to 1.
  const std::vector<double>& shares() const { return shares_; }
  const std::string& key(std::uint32_t host) const {
    const std::uint32_t i = hosts()[host];
    const auto& given = settings().hash_keys;
    if (i < given.size() && !given[i].empty()) return given[i];
    const BalancerEndpoint& e = endpoints()[i];
    return e.hash_key.empty() ? e.name : e.hash_key;
  }
  virtual void build() = 0;

 private:
  /// Degraded hosts have no place on a ring (normalizeWeights of thread_aware_lb_impl.cc).
  void on_hosts_changed() override {
    if (set() != 0) return;
    shares_ = weights();
    double sum = 0;
    for (const double w : shares_) sum += w;
    for (double& w : shares_) w /= sum;
    if (!hosts().empty()) build();
  }
  /// Requests in flight against slots; above 1 = overloaded.
  double overload(std::uint32_t host) const {
    if (!may_serve(host)) return std::numeric_limits<double>::infinity();
    const auto factor = static_cast<std::uint64_t>(settings().hash_balance_factor);
    const std::uint64_t total = ((total_in_flight() + 1) * factor + 99) / 100;
    const double slots = std::max(std::ceil(static_cast<double>(total) * shares_[host]), 1.0);
    return static_cast<double>(active(host)) / slots;
  }
  std::uint32_t bounded(std::uint32_t hashed, std::uint64_t hash) const {
    if (overload(hashed) <= 1) return hashed;
    std::mt19937 generator(static_cast<std::uint32_t>(hash));
    const auto below = [&generator](std::uint32_t k) {
      std::uint64_t x = k;
      while (x >= k) x = generator() / ((std::uint64_t{1} << 32) / k);
      return static_cast<std::uint32_t>(x);
    };
    const auto n = static_cast<std::uint32_t>(hosts().size());
    std::vector<std::uint32_t> order(n);
    for (std::uint32_t i = 0; i < n; ++i) order[i] = i;
    std::uint32_t least = hashed;
    double least_overload = overload(hashed);
    for (std::uint32_t i = 0; i < n; ++i) {
      std::swap(order[i], order[i + below(n - i)]);
      if (order[i] == hashed) continue;
      const double factor = overload(order[i]);
      if (factor <= 1) return order[i];
      if (factor < least_overload) {
        least = order[i];
        least_overload = factor;
      }
    }
    return least;
  }

  RequestHash hash_;
  RandomStream random_;
  std::vector<double> shares_;
};

class EnvoyRingHash final : public EnvoyHashed {
 public:
  using EnvoyHashed::EnvoyHashed;

 private:
  void build() override {
    ring_.clear();
    const double least = *std::min_element(shares().begin(), shares().end());
    const double scale =
        std::min(std::ceil(least * static_cast<double>(settings().minimum_ring_size)) / least,
                 static_cast<double>(settings().maximum_ring_size));
    double current = 0, target = 0;
    for (std::uint32_t h = 0; h < hosts().size(); ++h) {
      target += scale * shares()[h];
      for (std::uint64_t i = 0; current < target; ++i, ++current)
        ring_.add(envoy_hash(settings().hash_function, key(h) + "_" + std::to_string(i)), h);
    }
    ring_.close();
  }
  std::uint32_t owner(std::uint64_t hash, std::uint64_t attempt) const override {
    return ring_.owner(ring_.locate(hash) + attempt);
  }

  Ring<> ring_;  ///< Of hosts.
};

class EnvoyMaglev final : public EnvoyHashed {
 public:
  EnvoyMaglev(const EnvoySettings& settings, const RandomStream& random)
      : EnvoyHashed(settings, random) {
    ROUTESIM_CHECK(is_maglev_table_size(settings.table_size),
                   "a maglev table has a prime number of slots");
  }

 private:
  struct Entry {
    std::uint32_t host;
    std::uint64_t offset, skip, next = 0;
    double weight, target = 0;
  };
  void build() override {
    const auto slots = static_cast<std::uint64_t>(settings().table_size);
    const double most = *std::max_element(shares().begin(), shares().end());
    std::vector<Entry> entries;
    for (std::uint32_t h = 0; h < hosts().size(); ++h)
      entries.push_back({.host = h,
                         .offset = xxh64(key(h)) % slots,
                         .skip = xxh64(key(h), 1) % (slots - 1) + 1,
                         .weight = shares()[h]});
    std::stable_sort(entries.begin(), entries.end(),
                     [this](const Entry& a, const Entry& b) { return key(a.host) < key(b.host); });
    constexpr std::uint32_t kFree = ~std::uint32_t{0};
    table_.assign(slots, kFree);
    std::uint64_t filled = 0;
    for (std::uint64_t round = 1; filled < slots; ++round) {
      for (Entry& e : entries) {
        if (static_cast<double>(round) * e.weight < e.target) continue;
        e.target += most;
        std::uint64_t at = (e.offset + e.skip * e.next) % slots;
        while (table_[at] != kFree) at = (e.offset + e.skip * ++e.next) % slots;
        table_[at] = e.host;
        ++e.next;
        if (++filled == slots) break;
      }
    }
  }
  std::uint32_t owner(std::uint64_t hash, std::uint64_t attempt) const override {
    return table_[(hash ^ (0 - attempt)) % table_.size()];
  }

  std::vector<std::uint32_t> table_;  ///< Host by slot.
};

template <class T>
constexpr auto make = make_policy<Balancer, T, EnvoySettings>;

}  // namespace

bool is_maglev_table_size(std::int64_t slots) {
  for (std::int64_t d = 2; d * d <= slots; ++d)
    if (slots % d == 0) return false;
  return slots > 1;
}

std::uint64_t envoy_hash(EnvoyHashFunction function, std::string_view bytes) {
  return function == EnvoyHashFunction::kXxHash ? xxh64(bytes)
                                                : murmur_hash_64a(bytes, kMurmurSeed);
}

void describe(Describer& d, EnvoyHashPolicy& p) {
  field(d, {"header", "The header whose value is hashed."}, p.header);
  field(d, {"cookie", "The cookie whose value is hashed."}, p.cookie);
  field(d, {"has_ttl", "cookie: Envoy makes the cookie for a client that has none (ttl is set)."},
        p.has_ttl);
  field(d, {"source_ip", "The client's address is hashed: one address per session."}, p.source_ip);
  field(d, {"terminal", "No later policy counts where this one has a value."}, p.terminal);
}

void describe(Describer& d, EnvoySettings& s) {
  release_field(d, s.release);
  field(d, {"weights", "load_balancing_weight by server, 1 where the list ends."}, s.weights,
        RealRange{.min = 0, .max = 1e9, .min_open = true});
  field(
      d,
      {"health_status",
       "By server, as in a cluster's load assignment: UNHEALTHY, DRAINING and TIMEOUT get nothing "
       "outside a panic, DEGRADED what the healthy ones cannot serve."},
      s.health_status);
  field(d,
        {"hash_keys",
         "ring-hash and maglev, by server: metadata envoy.lb.hash_key; its name where "
         "empty and where the list ends."},
        s.hash_keys);
  field(d, {"choice_count", "least-request, equal weights: hosts drawn, with replacement."},
        s.choice_count, IntRange{2, 1'000'000});
  field(d, {"selection_method", "least-request, equal weights: a few draws or a full scan."},
        s.selection_method);
  field(d,
        {"active_request_bias",
         "least-request: exponent of the active requests in a weight; 1 where absent. Setting it "
         "makes equal weights a weighted rotation, too."},
        s.active_request_bias, RealRange{.min = 0, .max = 100});
  field(d, {"minimum_ring_size", "ring-hash: points, at least."}, s.minimum_ring_size,
        IntRange{1, 8'388'608});
  field(d, {"maximum_ring_size", "ring-hash: points, at most."}, s.maximum_ring_size,
        IntRange{1, 8'388'608});
  field(d, {"hash_function", "ring-hash: the hash of the points."}, s.hash_function);
  field(d, {"table_size", "maglev: slots, a prime number."}, s.table_size, IntRange{2, 5'000'011});
  field(d,
        {"hash_balance_factor",
         "ring-hash and maglev: percent of the mean load that a host may reach; 0 = no bound."},
        s.hash_balance_factor, IntRange{0, 1'000'000});
  field(d, {"healthy_panic_threshold", "Percent of healthy hosts below which all count."},
        s.healthy_panic_threshold, RealRange{.min = 0, .max = 100});
  field(d,
        {"hash_policy",
         "ring-hash and maglev: what is hashed, as in a route's hash_policy. Without a value the "
         "choice is random."},
        s.hash_policy);
}

void EnvoyFamily::add_faults(const EnvoySettings& envoy, std::string_view /*balancer*/,
                             std::vector<SettingFault>& faults) {
  if (envoy.minimum_ring_size > envoy.maximum_ring_size)
    faults.push_back({"envoy.minimum_ring_size", "is above maximum_ring_size", ""});
  // Out of bounds is out of bounds already.
  if (is_maglev_table_size(envoy.table_size) || envoy.table_size < 2) return;
  std::int64_t prime = envoy.table_size;
  while (!is_maglev_table_size(prime)) ++prime;
  faults.push_back({"envoy.table_size",
                    "must be a prime number (got " + std::to_string(envoy.table_size) + ")",
                    "the next one is " + std::to_string(prime)});
}

std::unique_ptr<Balancer> make_envoy(EnvoyPolicy policy, const EnvoySettings& settings,
                                     const RandomStream& random) {
  static constexpr std::array kMakers = {make<EnvoyRoundRobin>, make<EnvoyLeastRequest>,
                                         make<EnvoyRingHash>, make<EnvoyMaglev>, make<EnvoyRandom>};
  static_assert(kMakers.size() == EnvoyFamily::policies.size());
  return kMakers[static_cast<std::size_t>(policy)](settings, random);
}

}  // namespace routesim::policies
