#include "policies/balancers/vllm_router.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "policies/balancers/hashes.h"
#include "policies/balancers/legs.h"
#include "policies/balancers/tenant_tree.h"

namespace routesim::policies {
namespace {

constexpr std::array<const char*, 6> kSessionHeaders = {
    "x-session-id", "x-user-id", "x-tenant-id", "x-correlation-id", "x-request-id", "x-trace-id"};

/// The key of the first header that names a session, a user or a request; "" for none.
std::string header_key(const BalancerRequest& request) {
  for (const char* name : kSessionHeaders) {
    const std::string_view value = request.header(name).value_or("");
    if (!value.empty()) return std::string("header:").append(name).append(":").append(value);
  }
  return {};
}

std::string hex(std::uint64_t v) {
  std::string digits(16, '0');
  for (std::size_t i = 16; i-- > 0; v >>= 4) digits[i] = "0123456789abcdef"[v & 15];
  return digits;
}

/// The text itself, or a name of the text where it is a simulated one.
std::string text_name(const PromptText& text) {
  std::string name;
  bool real = true;
  std::uint64_t hash = 0;
  for (const TextRun& r : text.runs) {
    real = real && r.length == 1 && r.offset == 0 && r.content < 256;
    if (real) name += static_cast<char>(r.content);
    hash = mix64(mix64(mix64(hash, r.content), static_cast<std::uint64_t>(r.offset)),
                 static_cast<std::uint64_t>(r.length));
  }
  return real ? name : "simulated " + hex(hash) + std::string(100, '.');
}

/// hash_key.rs: a session of the headers or the body, else the content.
std::string hash_key(const BalancerRequest& request) {
  std::string key = header_key(request);
  if (!key.empty()) return key;
  if (!request.user.empty()) return std::string("user:").append(request.user);
  const std::string text = text_name(request.text);
  return text.size() > 100 ? "request_hash:" + hex(fbi_hash(text)) : "request:" + text;
}

BalancerNeeds hash_needs() {
  return {.text = true,
          .identity = true,
          .session_headers = {kSessionHeaders.front()},
          .other_headers = {kSessionHeaders.begin() + 1, kSessionHeaders.end()}};
}

/// 160 points per worker, healthy or not; of two workers at one point the later one has it.
class ConsistentHash final : public LegPolicy {
 public:
  BalancerNeeds needs() const override { return hash_needs(); }
  void on_workers(const Leg& leg) override {
    constexpr int kPoints = 160;
    auto& ring = rings_[leg.name];
    ring.clear();
    for (const std::uint32_t w : leg.workers)
      for (int i = 0; i < kPoints; ++i) ring[fbi_hash(leg.url(w) + ":" + std::to_string(i))] = w;
  }
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& request) override {
    const auto& ring = rings_[leg.name];
    auto at = ring.lower_bound(fbi_hash(hash_key(request)));
    if (at == ring.end()) at = ring.begin();
    return leg.endpoints[at->second].healthy ? at->second : leg.healthy.front();
  }

 private:
  std::map<std::string_view, std::map<std::uint64_t, std::uint32_t>> rings_;  ///< By leg.
};

class RendezvousHash final : public LegPolicy {
 public:
  BalancerNeeds needs() const override { return hash_needs(); }
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& request) override {
    const std::string key = hash_key(request) + ":";
    std::uint32_t best = leg.healthy.front();
    std::uint64_t most = 0;
    for (const std::uint32_t w : leg.healthy) {
      const std::uint64_t score = fbi_hash(key + leg.url(w));
      if (score < most) continue;
      most = score;
      best = w;
    }
    return best;
  }
};

class PowerOfTwo final : public LegPolicy {
 public:
  PowerOfTwo(const VllmRouterSettings& s, const RandomStream& random)
      : monitor_(s.load_monitor), random_(random) {}
  BalancerNeeds needs() const override {
    return {.metrics = monitor_, .metrics_interval = Duration::seconds(5)};
  }
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& request) override {
    const std::uint64_t n = leg.healthy.size();
    if (n == 1) return leg.healthy.front();
    const std::uint64_t first = random_.below(n);
    std::uint64_t second = random_.below(n);
    while (second == first) second = random_.below(n);
    const std::uint32_t a = leg.healthy[first], b = leg.healthy[second];
    return load(leg, request, a) <= load(leg, request, b) ? a : b;
  }

 private:
  /// The server's own count at the last poll, and the router's count now.
  double load(const Leg& leg, const BalancerRequest& request, std::uint32_t w) const {
    const EndpointTable* metrics = monitor_ ? request.metrics : nullptr;
    if (metrics == nullptr || !metrics->has_metrics(w)) return leg.load(w);
    return metrics->waiting()[w] + metrics->running()[w] + leg.load(w);
  }
  bool monitor_;
  RandomStream random_;
};

class CacheAware final : public LegPolicy {
 public:
  CacheAware(const VllmRouterSettings& s, const RandomStream& random)
      : settings_(s),
        tree_(TenantTreeKind::kText, RandomStream(random).next()),
        eviction_(s.eviction_interval) {}

  BalancerNeeds needs() const override { return hash_needs(); }
  void on_workers(const Leg& leg) override {
    names_.update(leg);
    std::vector<std::uint32_t>& known = known_[leg.name];
    for (const std::uint32_t tenant : known)
      if (!names_.endpoint(leg, tenant)) tree_.remove_tenant(tenant);
    known.clear();
    for (const std::uint32_t w : leg.workers) {
      known.push_back(names_.tenant(w));
      tree_.add_tenant(known.back());
    }
  }
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& request) override {
    if (eviction_.due(request.now))
      tree_.evict(
          std::llround(static_cast<double>(settings_.max_tree_size) * units_per_character_));
    units_per_character_ = 1 / request.text.characters_per_unit;
    const std::uint32_t least = least_loaded(leg);
    if (is_imbalanced(leg)) {
      if (request.text.units() > 0) tree_.insert(request.text, names_.tenant(least));
      return least;
    }
    if (request.text.units() > 0) return by_tree(leg, request.text, least);
    // The key of the session stands for the text; its bytes are runs of one unit.
    key_runs_.clear();
    for (const char c : header_key(request))
      key_runs_.push_back({.content = static_cast<unsigned char>(c), .offset = 0, .length = 1});
    return by_tree(leg, {.runs = key_runs_, .characters_per_unit = 1}, least);
  }

 private:
  bool is_imbalanced(const Leg& leg) const {  // Servers that are not healthy count.
    std::uint32_t least = leg.load(leg.workers.front()), most = least;
    for (const std::uint32_t w : leg.workers) {
      least = std::min(least, leg.load(w));
      most = std::max(most, leg.load(w));
    }
    return imbalanced(least, most, settings_.balance_abs_threshold,
                      settings_.balance_rel_threshold);
  }
  std::uint32_t by_tree(const Leg& leg, const PromptText& text, std::uint32_t least) {
    const TenantTree::Match match = tree_.match(text);
    std::uint32_t chosen = least;
    if (match.rate() > static_cast<float>(settings_.cache_threshold)) {
      const auto owner = match.tenant ? names_.endpoint(leg, *match.tenant) : std::nullopt;
      if (!owner || !leg.endpoints[*owner].healthy) {
        if (match.tenant) tree_.remove_tenant(*match.tenant);
        return leg.healthy.front();
      }
      chosen = *owner;
    }
    tree_.insert(text, names_.tenant(chosen));
    return chosen;
  }

  VllmRouterSettings settings_;
  TenantTree tree_;
  TenantNames names_;
  Periodic eviction_;
  double units_per_character_ = 1;
  std::map<std::string_view, std::vector<std::uint32_t>> known_;  ///< Tenants by leg.
  std::vector<TextRun> key_runs_;
};

std::shared_ptr<LegPolicy> make_leg(VllmRouterPolicy policy, const VllmRouterSettings& s,
                                    const RandomStream& random) {
  switch (policy) {
    case VllmRouterPolicy::kRandom:
      return std::make_shared<RandomLeg>(random);
    case VllmRouterPolicy::kRoundRobin:
      return std::make_shared<RoundRobinLeg>();
    case VllmRouterPolicy::kPowerOfTwo:
      return std::make_shared<PowerOfTwo>(s, random);
    case VllmRouterPolicy::kConsistentHash:
      return std::make_shared<ConsistentHash>();
    case VllmRouterPolicy::kRendezvousHash:
      return std::make_shared<RendezvousHash>();
    case VllmRouterPolicy::kCacheAware:
      break;
  }
  return std::make_shared<CacheAware>(s, random);
}

}  // namespace

void describe(Describer& d, VllmRouterSettings& s) {
  field(d,
        {"prefill_policy",
         "Policy of prefill servers; the balancer's own where absent. If decode_policy is absent, "
         "too, both share one object: one counter, one tree."},
        s.prefill_policy);
  field(d, {"decode_policy", "Policy of decode servers; likewise."}, s.decode_policy);
  field(d, {"cache_threshold", "cache-aware: share of a prompt that must be matched and more."},
        s.cache_threshold, RealRange{0, 1});
  field(d, {"balance_abs_threshold", "cache-aware: loads may differ by this many requests."},
        s.balance_abs_threshold, IntRange{0, 1'000'000'000});
  field(d, {"balance_rel_threshold", "cache-aware: and by this factor."}, s.balance_rel_threshold,
        RealRange{.min = 0, .max = 1e9});
  field(d, {"eviction_interval", "cache-aware: between two evictions; 0 = never."},
        s.eviction_interval);
  field(d, {"max_tree_size", "cache-aware: characters of a server after an eviction."},
        s.max_tree_size, IntRange{0, std::int64_t{1} << 40});
  field(d,
        {"load_monitor",
         "power-of-two: the router polls /load every 5s. Without, it counts its own requests."},
        s.load_monitor);
}

std::unique_ptr<Balancer> make_vllm_router(VllmRouterPolicy policy,
                                           const VllmRouterSettings& settings,
                                           const RandomStream& random) {
  RandomStream seeds = random;
  const std::uint64_t seed = seeds.next();
  const auto leg = [&](const std::optional<VllmRouterPolicy>& own, std::uint64_t entity,
                       const std::shared_ptr<LegPolicy>& common) {
    return own ? make_leg(*own, settings, RandomStream(seed, Stream::kBalancer, entity)) : common;
  };
  const std::shared_ptr<LegPolicy> common = make_leg(policy, settings, random);
  return std::make_unique<LegBalancer>(
      LegPolicies{.single = common,
                  .prefill = leg(settings.prefill_policy, 1, common),
                  .decode = leg(settings.decode_policy, 2, common)});
}

}  // namespace routesim::policies
