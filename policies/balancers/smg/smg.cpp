#include "policies/balancers/smg/smg.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/text.h"
#include "policies/balancers/kit/hashes.h"
#include "policies/balancers/kit/ring.h"
#include "policies/balancers/kit/text_blocks.h"
#include "policies/balancers/smg/smg_policies.h"

namespace routesim::policies {
namespace {

constexpr const char* kRoutingKey = "x-smg-routing-key";

class Passthrough final : public LegPolicy {
 public:
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& /*request*/) override {
    return leg.healthy.front();
  }
};

/// A turn for each set of healthy workers. A new set begins one place further than the last new one
/// (src/policies/round_robin.rs of smg 1.12.0).
class RoundRobinOfSets final : public LegPolicy {
 public:
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& /*request*/) override {
    std::vector<std::string> set;
    for (const std::uint32_t w : leg.healthy) set.push_back(leg.url(w));
    const auto [turn, is_new] = turns_.try_emplace(std::move(set), next_start_);
    if (is_new) ++next_start_;
    return leg.healthy[turn->second++ % leg.healthy.size()];
  }

 private:
  std::map<std::vector<std::string>, std::uint64_t> turns_;
  std::uint64_t next_start_ = 0;
};

/// 150 points per worker, by the first 8 bytes of BLAKE3 (model_gateway/src/worker/hash_ring.rs).
class SmgRing {
 public:
  void build(const Leg& leg) {
    constexpr int kPoints = 150;
    ring_.clear();
    for (const std::uint32_t w : leg.workers)
      for (int i = 0; i < kPoints; ++i)
        ring_.add(blake3_64(leg.url(w) + "#" + std::to_string(i)), w);
    ring_.close();
  }
  /// The first healthy worker from the key's position on. One is healthy.
  std::uint32_t find(const Leg& leg, std::string_view key) const {
    return ring_.owner(ring_.locate(blake3_64(key)),
                       [&leg](std::uint32_t w) { return leg.can_serve(w); });
  }

 private:
  Ring<> ring_;
};

class ConsistentHashing final : public LegPolicy {
 public:
  ConsistentHashing(const SmgSettings& s, const RandomStream& random)
      : release_(smg_release(s)), random_(random) {}
  BalancerNeeds needs() const override {
    return {.identity = true,
            .session_headers = {kRoutingKey},
            .other_headers = {"x-smg-target-worker", "authorization", "x-forwarded-for", "cookie"}};
  }
  void on_workers(const Leg& leg) override { ring_.build(leg); }
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& request) override {
    if (const auto target = request.header("x-smg-target-worker"); target && !target->empty())
      return worker(leg, *target);
    auto key = smg_routing_key(request, release_);
    // An API key names a tenant, not a session.
    if (!key && release_ < SmgRelease::k1_13) key = request.header("authorization");
    for (const char* name : {"x-forwarded-for", "cookie"})
      if (!key) key = request.header(name);
    if (!key || key->empty()) return leg.healthy[random_.below(leg.healthy.size())];
    return ring_.find(leg, *key);
  }

 private:
  static std::optional<std::uint32_t> worker(const Leg& leg, std::string_view number) {
    std::size_t i = 0;
    const char* end = number.data() + number.size();
    const auto [at, error] = std::from_chars(number.data(), end, i);
    if (error != std::errc() || at != end || i >= leg.workers.size()) return std::nullopt;
    const std::uint32_t w = leg.workers[i];
    return leg.can_serve(w) ? std::optional(w) : std::nullopt;
  }
  SmgRelease release_;
  SmgRing ring_;
  RandomStream random_;
};

/// A ring over the first tokens of prompts, else over their text, with a bound on loads.
class PrefixHashLeg final : public LegPolicy {
 public:
  explicit PrefixHashLeg(const SmgSettings& s) : settings_(s), release_(smg_release(s)) {
    depths_ = s.cache_boundaries;
    std::sort(depths_.rbegin(), depths_.rend());
  }
  BalancerNeeds needs() const override {
    const bool text = !settings_.grpc && release_ >= SmgRelease::k1_10;
    const std::int64_t deepest = depths_.empty()
                                     ? settings_.prefix_token_count
                                     : std::max(depths_.front(), settings_.prefix_token_count);
    return {.text = text,
            .leading_tokens = settings_.grpc ? deepest : 0,
            .identity = release_ >= SmgRelease::k1_13,
            .session_headers = release_ >= SmgRelease::k1_13 ? std::vector<std::string>{kRoutingKey}
                                                             : std::vector<std::string>()};
  }
  void on_workers(const Leg& leg) override { ring_.build(leg); }
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& request) override {
    find_keys(request);
    if (keys_.empty())
      return release_ >= SmgRelease::k1_10 ? std::optional(least_loaded(leg)) : std::nullopt;
    double total = 0;
    for (const std::uint32_t w : leg.healthy) total += leg.load(w);
    const double mean = (total + 1) / static_cast<double>(leg.healthy.size());
    double most = mean * settings_.prefix_hash_load_factor;
    if (release_ >= SmgRelease::k1_10)
      most =
          std::max(most, mean + static_cast<double>(settings_.prefix_hash_balance_abs_threshold));
    std::optional<std::uint32_t> first;
    for (const std::string& key : keys_) {
      const std::uint32_t owner = ring_.find(leg, hex_digits(xxh3_64(key)));
      if (total == 0 || leg.load(owner) <= most) return owner;
      if (!first) first = owner;
    }
    // The least loaded one is within the bound if anyone is.
    const std::uint32_t least = least_loaded(leg);
    return leg.load(least) <= most ? least : first;
  }

 private:
  static constexpr std::int64_t kCharactersPerToken = 4;

  /// Finds the keys that may be hashed, that of the deepest boundary of the prompt first.
  void find_keys(const BalancerRequest& request) {
    keys_.clear();
    if (release_ >= SmgRelease::k1_13)
      if (const auto key = smg_routing_key(request, release_)) {
        keys_.emplace_back(*key);
        return;
      }
    const bool tokens = settings_.grpc && !request.tokens.empty();
    const std::int64_t scale = tokens ? 1 : kCharactersPerToken;
    const auto length = static_cast<std::int64_t>(
        tokens ? static_cast<double>(request.tokens.size()) : request.text.characters());
    if (length == 0 || (!tokens && release_ < SmgRelease::k1_10)) return;
    const auto add = [&](std::int64_t depth) {
      keys_.push_back(tokens ? bytes_of(request.tokens, depth)
                             : text_name(request.text, depth * scale));
    };
    if (release_ >= SmgRelease::k1_10)
      for (const std::int64_t depth : depths_)
        if (depth * scale <= length) add(depth);
    if (keys_.empty()) add(settings_.prefix_token_count);
  }
  static std::string bytes_of(std::span<const std::uint32_t> tokens, std::int64_t count) {
    const std::size_t n = std::min(tokens.size(), static_cast<std::size_t>(count));
    return {reinterpret_cast<const char*>(tokens.data()), n * sizeof(std::uint32_t)};
  }
  SmgSettings settings_;
  SmgRelease release_;
  std::vector<std::int64_t> depths_;  ///< cache_boundaries, the deepest first.
  std::vector<std::string> keys_;
  SmgRing ring_;
};

template <class T>
constexpr auto make = make_policy<LegPolicy, T, SmgSettings>;

std::unique_ptr<LegPolicy> make_round_robin(const SmgSettings& s, const RandomStream& random) {
  return smg_release(s) >= SmgRelease::k1_12 ? make<RoundRobinOfSets>(s, random)
                                             : make<RoundRobinLeg>(s, random);
}

std::shared_ptr<LegPolicy> make_leg(SmgPolicy policy, const SmgSettings& s,
                                    const RandomStream& random) {
  static constexpr std::array kMakers = {
      make<RandomLeg>,      &make_round_robin,     make<Passthrough>,   &make_smg_power_of_two,
      &make_smg_least_load, &make_smg_cache_aware, make<PrefixHashLeg>, make<ConsistentHashing>,
      &make_smg_manual,     &make_smg_bucket};
  static_assert(kMakers.size() == SmgFamily::policies.size());
  return kMakers[static_cast<std::size_t>(policy)](s, random);
}

void describe_loads(Describer& d, SmgSettings& s) {
  field(d,
        {"load_monitor",
         "Servers answer the gateway's load poll. By default vLLM's do from release 1.5 on; "
         "without, power-of-two and least-load count requests in flight, and power-of-two of "
         "sglang-router takes all servers for equal."},
        s.load_monitor);
  field(d, {"load_monitor_interval", "Between two load polls."}, s.load_monitor_interval,
        DurationRange{.min = Duration::milliseconds(1)});
  field(d, {"power_of_two_load_metric", "power-of-two, from release 1.13 on: what is compared."},
        s.power_of_two_load_metric);
  field(d,
        {"least_load_kv_pressure_weight",
         "Expected wait: seconds that KV usage k costs, times k / (1 - k)."},
        s.least_load_kv_pressure_weight, RealRange{.min = 0, .max = 1e6});
  field(d, {"least_load_default_throughput", "Expected wait: tokens/s of a server."},
        s.least_load_default_throughput, RealRange{.min = 0, .max = 1e12, .min_open = true});
  field(d, {"least_load_mean_prefill_tokens", "Expected wait: tokens of a request, over HTTP."},
        s.least_load_mean_prefill_tokens, IntRange{1, 1'000'000'000});
  field(d,
        {"least_load_max_waiting_requests",
         "Expected wait: servers with so many waiting requests are passed over; 0 = none."},
        s.least_load_max_waiting_requests, IntRange{0, 1'000'000'000});
  field(d,
        {"worker_overload_protection",
         "From release 1.12 on: overloaded servers get nothing while another one is free."},
        s.worker_overload_protection);
  field(d, {"worker_overload_waiting_requests", "Waiting requests of an overloaded server."},
        s.worker_overload_waiting_requests, IntRange{1, 1'000'000'000});
  field(d, {"worker_overload_token_usage", "KV usage of an overloaded server."},
        s.worker_overload_token_usage, RealRange{.min = 0, .max = 1});
}

}  // namespace

std::optional<std::string_view> smg_routing_key(const BalancerRequest& request,
                                                SmgRelease release) {
  constexpr std::size_t kMostBytes = 128;
  const std::optional<std::string_view> key = request.header(kRoutingKey);
  if (!key || key->empty()) return std::nullopt;
  return release >= SmgRelease::k1_13 && key->size() > kMostBytes ? std::nullopt : key;
}

void describe(Describer& d, SmgSettings& s) {
  constexpr RealRange kShare{0, 1};
  field(d, {"prefill_policy", "Policy of prefill servers; the balancer's own where absent."},
        s.prefill_policy);
  field(d, {"decode_policy", "Policy of decode servers; the balancer's own where absent."},
        s.decode_policy);
  field(d,
        {"grpc",
         "Servers speak gRPC, so that the gateway sees tokens; with HTTP it sees text. Before "
         "release 1.10 prefix-hash serves nothing without it."},
        s.grpc);
  field(d, {"kv_events", "cache-aware with grpc: servers publish their KV events."}, s.kv_events);
  release_field(d, s.release);
  field(d, {"cache_threshold", "cache-aware: share of a prompt that must be matched and more."},
        s.cache_threshold, kShare);
  field(d,
        {"balance_abs_threshold",
         "cache-aware: loads may differ by this many requests, from release 1.10 on from their "
         "mean; bucket: by this many characters."},
        s.balance_abs_threshold, IntRange{0, 1'000'000'000});
  field(d, {"balance_rel_threshold", "cache-aware, bucket: and by this factor."},
        s.balance_rel_threshold, RealRange{.min = 0, .max = 1e9});
  field(d,
        {"eviction_interval",
         "cache-aware: between two evictions; manual: between two sweeps of idle keys; 0 = never."},
        s.eviction_interval);
  field(d,
        {"max_tree_size",
         "cache-aware: characters or tokens of a server after an eviction, from release 1.10 on of "
         "all servers."},
        s.max_tree_size, IntRange{0, std::int64_t{1} << 40});
  field(d,
        {"balance_token_usage_threshold",
         "cache-aware: KV usage of servers may differ by this much; 1 = off."},
        s.balance_token_usage_threshold, kShare);
  field(d,
        {"overload_token_usage_threshold",
         "cache-aware: KV usage above which the least loaded server gets everything; 1 = off."},
        s.overload_token_usage_threshold, kShare);
  describe_loads(d, s);
  field(d, {"prefix_token_count", "prefix-hash: tokens that are hashed."}, s.prefix_token_count,
        IntRange{1, 1'000'000});
  field(d, {"prefix_hash_load_factor", "prefix-hash: a load may be this many times the mean."},
        s.prefix_hash_load_factor, RealRange{.min = 0, .max = 1e9});
  field(d,
        {"prefix_hash_balance_abs_threshold",
         "prefix-hash, from release 1.10 on: or this many requests above the mean."},
        s.prefix_hash_balance_abs_threshold, IntRange{0, 1'000'000'000});
  field(d,
        {"cache_boundaries",
         "prefix-hash, from release 1.10 on: tokens that are hashed instead, as many as the prompt "
         "has; shorter ones are tried where the server is overloaded."},
        s.cache_boundaries, IntRange{1, 1'000'000});
  field(d, {"assignment_mode", "manual: how a new key gets its server."}, s.assignment_mode);
  field(d, {"max_idle", "manual: a key that is idle for so long is forgotten; 0 = never."},
        s.max_idle);
  field(d, {"bucket_adjust_interval", "bucket: between two adjustments, and the window counted."},
        s.bucket_adjust_interval, DurationRange{.min = Duration::milliseconds(1)});
  describe(d, s.breaker);
}

std::unique_ptr<Balancer> make_smg(SmgPolicy policy, const SmgSettings& settings,
                                   const RandomStream& random) {
  RandomStream seeds = random;
  const std::uint64_t seed = seeds.next();
  LegPolicies legs{.single = make_leg(policy, settings, random),
                   .prefill = make_leg(settings.prefill_policy.value_or(policy), settings,
                                       RandomStream(seed, Stream::kBalancer, 1)),
                   .decode = make_leg(settings.decode_policy.value_or(policy), settings,
                                      RandomStream(seed, Stream::kBalancer, 2)),
                   .breaker = settings.breaker};
  if (settings.worker_overload_protection && smg_polls(settings) &&
      smg_release(settings) >= SmgRelease::k1_12)
    legs.overload = {.waiting = static_cast<double>(settings.worker_overload_waiting_requests),
                     .kv_usage = settings.worker_overload_token_usage,
                     .interval = settings.load_monitor_interval,
                     .random = RandomStream(seed, Stream::kBalancer, 3)};
  return std::make_unique<LegBalancer>(std::move(legs));
}

}  // namespace routesim::policies
