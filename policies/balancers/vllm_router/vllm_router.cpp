#include "policies/balancers/vllm_router/vllm_router.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "policies/balancers/kit/cache_tree.h"
#include "policies/balancers/kit/choose.h"
#include "policies/balancers/kit/hashes.h"
#include "policies/balancers/kit/legs.h"
#include "policies/balancers/kit/ring.h"
#include "policies/balancers/kit/text_blocks.h"

namespace routesim::policies {
namespace {

constexpr std::array<const char*, 6> kSessionHeaders = {
    "x-session-id", "x-user-id", "x-tenant-id", "x-correlation-id", "x-request-id", "x-trace-id"};

/// The first header that names a session, a user or a request; an empty value for none.
Header session_header(const BalancerRequest& request) {
  for (const char* name : kSessionHeaders)
    if (const std::string_view value = request.header(name).value_or(""); !value.empty())
      return {.name = name, .value = value};
  return {};
}

/// hash_key.rs: a session of the headers or the body, else the content.
std::string hash_key(const BalancerRequest& request) {
  if (const Header header = session_header(request); !header.value.empty())
    return std::string("header:").append(header.name).append(":").append(header.value);
  if (!request.user.empty()) return std::string("user:").append(request.user);
  const std::string text = text_name(request.text);
  return text.size() > 100 ? "request_hash:" + hex_digits(fbi_hash(text)) : "request:" + text;
}

// Outside P/D the router sees a completion's prompt, or of a chat the session in its
// session_params, which no load sends (src/protocols/spec.rs, extract_text_for_routing).
BalancerNeeds hash_needs() {
  return {.text = true,
          .chat_text = ChatText::kNone,
          .body_with_prefill_only = true,
          .identity = true,
          .session_headers = {kSessionHeaders.front()},
          .other_headers = {kSessionHeaders.begin() + 1, kSessionHeaders.end()}};
}

/// 160 points per worker that is available; of two workers at one point the later one has it.
class ConsistentHash final : public LegPolicy {
 public:
  BalancerNeeds needs() const override { return hash_needs(); }
  void on_workers(const Leg& leg) override {
    constexpr int kPoints = 160;
    Ring<>& ring = rings_[leg.name];
    ring.clear();
    for (const std::uint32_t w : leg.healthy)
      for (int i = 0; i < kPoints; ++i) ring.add(fbi_hash(leg.url(w) + ":" + std::to_string(i)), w);
    ring.close(true);
  }
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& request) override {
    const Ring<>& ring = rings_[leg.name];
    return ring.owner(ring.locate(fbi_hash(hash_key(request))),
                      [&leg](std::uint32_t w) { return leg.can_serve(w); });
  }

 private:
  std::map<std::string_view, Ring<>> rings_;  ///< By leg.
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
    const auto [first, second] = draw_two(n, TwoDraws::kAgain, random_);
    const std::uint32_t a = leg.healthy[first], b = leg.healthy[second];
    return load(leg, request, a) <= load(leg, request, b) ? a : b;
  }

 private:
  /// The server's own count at the last poll, and the router's count now.
  static double load(const Leg& leg, const BalancerRequest& request, std::uint32_t w) {
    const EndpointTable* metrics = request.metrics;
    if (metrics == nullptr || !metrics->has_metrics(w)) return leg.load(w);
    return metrics->waiting()[w] + metrics->running()[w] + leg.load(w);
  }
  bool monitor_;
  RandomStream random_;
};

/// A session stays where it began; new ones go to the server with the fewest sessions, equals by
/// the highest random weight (sticky_least_loaded.rs).
class StickyLeastLoaded final : public LegPolicy {
 public:
  explicit StickyLeastLoaded(const VllmRouterSettings& s) : expiration_(s.sll_session_expiration) {}
  BalancerNeeds needs() const override { return hash_needs(); }
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& request) override {
    if (request.now - swept_ >= Duration::seconds(60)) {
      swept_ = request.now;
      std::erase_if(sessions_, [&](const auto& s) { return expired(s.second, request.now, true); });
    }
    std::string id(session_header(request).value);
    if (id.empty()) id = request.user;
    if (id.empty()) return fewest(leg, text_name(request.text));
    const auto known = sessions_.find(id);
    if (known != sessions_.end()) {
      const bool old = expired(known->second, request.now, false);
      for (const std::uint32_t w : leg.healthy)
        if (!old && leg.url(w) == known->second.server && leg.settle(w) == w) {
          known->second.used = request.now;
          return w;
        }
      --active_[known->second.server];
      sessions_.erase(known);
    }
    const std::uint32_t chosen = leg.settle(fewest(leg, id));
    ++active_[leg.url(chosen)];
    sessions_[id] = {.server = leg.url(chosen), .used = request.now};
    return chosen;
  }

 private:
  struct Session {
    std::string server;
    SimTime used;
  };
  bool expired(const Session& session, SimTime now, bool leave) {
    const bool old = now - session.used >= expiration_;
    if (old && leave) --active_[session.server];
    return old;
  }
  std::uint32_t fewest(const Leg& leg, const std::string& key) {
    std::optional<std::uint32_t> best;
    std::pair<std::int64_t, std::uint64_t> most;  // Minus sessions, weight.
    for (const std::uint32_t w : leg.healthy) {
      const std::pair own(-active_[leg.url(w)], fbi_hash(key + ":" + leg.url(w)));
      if (best && own <= most) continue;
      best = w;
      most = own;
    }
    return *best;
  }
  Duration expiration_;
  SimTime swept_;
  std::map<std::string, Session, std::less<>> sessions_;
  std::map<std::string, std::int64_t, std::less<>> active_;  ///< Sessions, by server.
};

class CacheAware final : public LegPolicy {
 public:
  CacheAware(const VllmRouterSettings& s, const RandomStream& random)
      : settings_(s),
        tokens_(vllm_router_release(s) >= VllmRouterRelease::k0_1_17),
        cache_(TenantTreeKind::kText, RandomStream(random).next()),
        eviction_(s.eviction_interval) {}

  BalancerNeeds needs() const override {
    return {.text = !tokens_, .chat_text = ChatText::kNone, .token_runs = tokens_};
  }
  void on_workers(const Leg& leg) override { cache_.on_workers(leg, true); }
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& request) override {
    if (eviction_.due(request.now)) evict();
    units_per_character_ = tokens_ ? 1 / kTokenWidth : 1 / request.text.characters_per_unit;
    const std::uint32_t least = leg.settle(least_loaded(leg));
    // The policy's own method without tokens has the text rules still; no route of 0.1.17 calls it.
    // Another leg's policy may ask for the text.
    const bool has_tokens = request.token_text.units() > 0 || request.text.units() == 0;
    if (tokens_ && has_tokens) return by_shares(leg, request.token_text, least);
    if (!is_imbalanced(leg)) return by_tree(leg, request.text, least);
    if (request.text.units() > 0) cache_.insert(request.text, least);
    return least;
  }

 private:
  static constexpr double kTokenWidth = 8;  ///< Characters that a token is in the tree.

  void evict() {
    const std::int64_t most = settings_.max_tree_size.value_or(tokens_ ? 33'554'432 : 67'108'864);
    cache_.tree().evict(std::llround(static_cast<double>(most) * units_per_character_));
  }
  bool is_imbalanced(const Leg& leg) const {
    return loads_differ(leg, leg.healthy, settings_.balance_abs_threshold,
                        settings_.balance_rel_threshold);
  }
  /// select_prepared of 0.1.17. Nothing is learned of a prompt whose tokens are not known.
  std::uint32_t by_shares(const Leg& leg, const PromptText& text, std::uint32_t least) {
    const std::int64_t length = text.units();
    if (length == 0) return least;
    std::vector<std::int64_t> matched(leg.endpoints.size());
    std::int64_t best = 0;
    for (const std::uint32_t w : leg.healthy)
      best = std::max(best, matched[w] = cache_.tree().matched_of(text, cache_.tenant(w)));
    const double rate = static_cast<double>(best) / static_cast<double>(length);
    std::uint32_t chosen = least;
    if (!is_imbalanced(leg) && rate > static_cast<float>(settings_.cache_threshold)) {
      std::optional<std::uint32_t> holder;
      for (const std::uint32_t w : leg.healthy)
        if (matched[w] == best && (!holder || leg.load(w) < leg.load(*holder))) holder = w;
      chosen = leg.settle(*holder);
    }
    cache_.insert(text, chosen);
    return chosen;
  }
  std::uint32_t by_tree(const Leg& leg, const PromptText& text, std::uint32_t least) {
    const auto owner = cache_.owner(leg, text, settings_.cache_threshold, least, true);
    if (!owner) return leg.healthy.front();
    const std::uint32_t chosen = leg.settle(*owner);
    cache_.insert(text, chosen);
    return chosen;
  }

  VllmRouterSettings settings_;
  bool tokens_;
  CacheTree cache_;
  Periodic eviction_;
  double units_per_character_ = 1;
};

template <class T>
constexpr auto make = make_policy<LegPolicy, T, VllmRouterSettings>;

std::shared_ptr<LegPolicy> make_leg(VllmRouterPolicy policy, const VllmRouterSettings& s,
                                    const RandomStream& random) {
  static constexpr std::array kMakers = {
      make<RandomLeg>,      make<RoundRobinLeg>,  make<CacheAware>,    make<PowerOfTwo>,
      make<ConsistentHash>, make<RendezvousHash>, &make_vllm_kv_aware, make<StickyLeastLoaded>};
  static_assert(kMakers.size() == VllmRouterFamily::policies.size());
  return kMakers[static_cast<std::size_t>(policy)](s, random);
}

}  // namespace

void describe(Describer& d, VllmRouterSettings& s) {
  release_field(d, s.release);
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
  field(
      d,
      {"max_tree_size",
       "cache-aware: characters of a server after an eviction, where a token counts 8; by default "
       "67108864, from release 0.1.17 on 33554432."},
      s.max_tree_size, IntRange{0, std::int64_t{1} << 40});
  field(
      d,
      {"load_monitor",
       "power-of-two: servers answer the poll of their load every 5s, and what they say counts on "
       "top of the router's own requests. vLLM has no /get_load, which the releases ask for."},
      s.load_monitor);
  field(d,
        {"sll_session_expiration",
         "sticky-least-loaded: a session ends after so long without a request."},
        s.sll_session_expiration, DurationRange{.min = Duration::seconds(1)});
  field(d, {"router_temperature", "kv-aware: 0 takes the least cost; above, a draw by cost."},
        s.router_temperature, RealRange{.min = 0, .max = 1e9});
  field(d, {"kv_penalty_host", "kv-aware: credit of a block in a lower tier."}, s.kv_penalty_host,
        RealRange{.min = 0, .max = 1});
  describe(d, s.breaker);
}

/// A leg's own policy must be in the release, too.
void VllmRouterFamily::add_faults(const VllmRouterSettings& s, std::string_view /*balancer*/,
                                  std::vector<SettingFault>& faults) {
  if (!find_release(kVllmRouterReleases, s.release)) return;  // Said before.
  if (vllm_router_release(s) >= VllmRouterRelease::k0_1_17) return;
  for (const auto& [key, own] :
       {std::pair("prefill_policy", s.prefill_policy), std::pair("decode_policy", s.decode_policy)})
    if (own && *own >= VllmRouterPolicy::kKvAware)
      faults.push_back(
          {std::string("vllm_router.") + key,
           std::string(enum_name(*own)) + " is in no release before 0.1.17 (got " + s.release + ")",
           ""});
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
  // src/routers/http/vllm_pd_router.rs reads breakers and tells them nothing.
  return std::make_unique<LegBalancer>(
      LegPolicies{.single = common,
                  .prefill = leg(settings.prefill_policy, 1, common),
                  .decode = leg(settings.decode_policy, 2, common),
                  .breaker = settings.breaker,
                  .breaks_with_prefill = false});
}

}  // namespace routesim::policies
