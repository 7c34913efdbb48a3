#include "policies/balancers/smg.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "policies/balancers/hashes.h"
#include "policies/balancers/smg_policies.h"

namespace routesim::policies {
namespace {

constexpr const char* kRoutingKey = "x-smg-routing-key";

class Passthrough final : public LegPolicy {
 public:
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& /*request*/) override {
    return leg.healthy.front();
  }
};

/// The servers' metrics as the gateway polls them.
class LoadReader : public LegPolicy {
 public:
  explicit LoadReader(const SmgSettings& s) : settings_(s) {}
  BalancerNeeds needs() const override {
    return {.metrics = settings_.load_monitor, .metrics_interval = settings_.load_monitor_interval};
  }

 protected:
  const SmgSettings& settings() const { return settings_; }
  bool has_load(const BalancerRequest& request, std::uint32_t endpoint) const {
    return settings_.load_monitor && request.metrics != nullptr &&
           request.metrics->has_metrics(endpoint);
  }

 private:
  SmgSettings settings_;
};

class PowerOfTwo final : public LoadReader {
 public:
  PowerOfTwo(const SmgSettings& s, const RandomStream& random) : LoadReader(s), random_(random) {}
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& request) override {
    const std::uint64_t n = leg.healthy.size();
    if (n == 1) return leg.healthy.front();
    const std::uint64_t first = random_.below(n);
    const std::uint32_t a = leg.healthy[first];
    const std::uint32_t b = leg.healthy[(first + 1 + random_.below(n - 1)) % n];
    if (has_load(request, a) && has_load(request, b)) {
      const auto usage = request.metrics->kv_usage();
      return usage[a] <= usage[b] ? a : b;
    }
    return leg.load(a) <= leg.load(b) ? a : b;
  }

 private:
  RandomStream random_;
};

/// The time that a server's queue and the pressure on its memory cost, in seconds.
class LeastLoad final : public LoadReader {
 public:
  using LoadReader::LoadReader;
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& request) override {
    if (leg.healthy.size() == 1) return leg.healthy.front();
    credits_.resize(leg.endpoints.size());
    const bool polled = std::any_of(leg.healthy.begin(), leg.healthy.end(),
                                    [&](std::uint32_t w) { return has_load(request, w); });
    std::uint32_t best = leg.healthy.front();
    double least = score(leg, request, best, polled);
    for (const std::uint32_t w : leg.healthy) {
      const double cost = score(leg, request, w, polled);
      if (cost >= least) continue;
      best = w;
      least = cost;
    }
    credits_[best].tokens +=
        settings().grpc ? static_cast<double>(request.prompt_tokens) : kMeanPrefillTokens;
    return best;
  }
  void on_workers(const Leg& /*leg*/) override { credits_.clear(); }

 private:
  static constexpr double kPressureWeight = 0.15;  // Seconds.
  static constexpr double kMeanPrefillTokens = 1024;
  static constexpr double kThroughput = 2000;  // Tokens/s of a server that reports none.

  /// Tokens sent since the poll of that time.
  struct Credit {
    SimTime poll;
    double tokens = 0;
  };
  double score(const Leg& leg, const BalancerRequest& request, std::uint32_t w, bool polled) {
    const double load = leg.load(w);
    if (!polled) return load;
    if (!has_load(request, w)) return load * kMeanPrefillTokens / kThroughput;
    Credit& credit = credits_[w];
    const SimTime poll = request.metrics->updated()[w];
    if (credit.poll != poll) credit = {.poll = poll, .tokens = 0};
    const double queued = request.metrics->waiting()[w] * kMeanPrefillTokens;
    const double k = std::clamp(request.metrics->kv_usage()[w], 0.0, 0.999);
    return (queued + credit.tokens) / kThroughput + kPressureWeight * k / (1 - k);
  }
  std::vector<Credit> credits_;  ///< By endpoint.
};

/// 150 points per worker, by the first 8 bytes of BLAKE3 (model_gateway/src/worker/hash_ring.rs).
class SmgRing {
 public:
  void build(const Leg& leg) {
    constexpr int kPoints = 150;
    points_.clear();
    for (const std::uint32_t w : leg.workers)
      for (int i = 0; i < kPoints; ++i)
        points_.emplace_back(blake3_64(leg.url(w) + "#" + std::to_string(i)), w);
    std::sort(points_.begin(), points_.end());
  }
  /// The first healthy worker from the key's position on. One is healthy.
  std::uint32_t find(const Leg& leg, std::string_view key) const {
    const std::pair<std::uint64_t, std::uint32_t> from{blake3_64(key), 0};
    auto at = std::lower_bound(points_.begin(), points_.end(), from);
    for (;; ++at) {
      if (at == points_.end()) at = points_.begin();
      if (leg.endpoints[at->second].healthy) return at->second;
    }
  }

 private:
  std::vector<std::pair<std::uint64_t, std::uint32_t>> points_;  ///< Position and endpoint.
};

class ConsistentHashing final : public LegPolicy {
 public:
  explicit ConsistentHashing(const RandomStream& random) : random_(random) {}
  BalancerNeeds needs() const override {
    return {.identity = true,
            .session_headers = {kRoutingKey},
            .other_headers = {"x-smg-target-worker", "authorization", "x-forwarded-for", "cookie"}};
  }
  void on_workers(const Leg& leg) override { ring_.build(leg); }
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& request) override {
    if (const auto target = request.header("x-smg-target-worker")) return worker(leg, *target);
    auto key = request.header(kRoutingKey);
    if (!key || key->empty()) {
      key = std::nullopt;
      for (const char* name : {"authorization", "x-forwarded-for", "cookie"})
        if (!key) key = request.header(name);
    }
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
    return leg.endpoints[w].healthy ? std::optional(w) : std::nullopt;
  }
  SmgRing ring_;
  RandomStream random_;
};

/// A ring over the first tokens of prompts, with a bound on loads.
class PrefixHashLeg final : public LegPolicy {
 public:
  explicit PrefixHashLeg(const SmgSettings& s) : settings_(s) {}
  BalancerNeeds needs() const override {
    return {.leading_tokens = settings_.grpc ? settings_.prefix_token_count : 0};
  }
  void on_workers(const Leg& leg) override { ring_.build(leg); }
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& request) override {
    if (!settings_.grpc || request.tokens.empty()) return std::nullopt;
    const std::size_t n =
        std::min(request.tokens.size(), static_cast<std::size_t>(settings_.prefix_token_count));
    const std::uint64_t hash =
        xxh3_64({reinterpret_cast<const char*>(request.tokens.data()), n * sizeof(std::uint32_t)});
    const std::uint32_t first = ring_.find(leg, hex(hash));
    double total = 0;
    for (const std::uint32_t w : leg.healthy) total += leg.load(w);
    const double most =
        (total + 1) / static_cast<double>(leg.healthy.size()) * settings_.prefix_hash_load_factor;
    if (total == 0 || leg.load(first) <= most) return first;
    // The least loaded one is within the bound if anyone is.
    const std::uint32_t least = least_loaded(leg);
    return leg.load(least) <= most ? least : first;
  }

 private:
  static std::string hex(std::uint64_t v) {
    std::string digits(16, '0');
    for (std::size_t i = 16; i-- > 0; v >>= 4) digits[i] = "0123456789abcdef"[v & 15];
    return digits;
  }
  SmgSettings settings_;
  SmgRing ring_;
};

std::shared_ptr<LegPolicy> make_leg(SmgPolicy policy, const SmgSettings& s,
                                    const RandomStream& random) {
  switch (policy) {
    case SmgPolicy::kRandom:
      return std::make_shared<RandomLeg>(random);
    case SmgPolicy::kRoundRobin:
      return std::make_shared<RoundRobinLeg>();
    case SmgPolicy::kPassthrough:
      return std::make_shared<Passthrough>();
    case SmgPolicy::kPowerOfTwo:
      return std::make_shared<PowerOfTwo>(s, random);
    case SmgPolicy::kLeastLoad:
      return std::make_shared<LeastLoad>(s);
    case SmgPolicy::kPrefixHash:
      return std::make_shared<PrefixHashLeg>(s);
    case SmgPolicy::kConsistentHashing:
      return std::make_shared<ConsistentHashing>(random);
    case SmgPolicy::kManual:
      return make_smg_manual(s, random);
    case SmgPolicy::kBucket:
      return make_smg_bucket(s, random);
    case SmgPolicy::kCacheAware:
      break;
  }
  return make_smg_cache_aware(s, random);
}

}  // namespace

void describe(Describer& d, SmgSettings& s) {
  constexpr RealRange kShare{0, 1};
  field(d, {"prefill_policy", "Policy of prefill servers; the balancer's own where absent."},
        s.prefill_policy);
  field(d, {"decode_policy", "Policy of decode servers; the balancer's own where absent."},
        s.decode_policy);
  field(d,
        {"grpc",
         "Servers speak gRPC, so that the gateway sees tokens; with HTTP it sees text. prefix-hash "
         "serves nothing without it."},
        s.grpc);
  field(d, {"kv_events", "cache-aware with grpc: servers publish their KV events."}, s.kv_events);
  field(d, {"release", "cache-aware: the month that a rule begins with, see policies/README.md."},
        s.release);
  field(d, {"cache_threshold", "cache-aware: share of a prompt that must be matched and more."},
        s.cache_threshold, kShare);
  field(d,
        {"balance_abs_threshold",
         "cache-aware: loads may differ by this many requests; bucket: by this many characters."},
        s.balance_abs_threshold, IntRange{0, 1'000'000'000});
  field(d, {"balance_rel_threshold", "cache-aware, bucket: and by this factor."},
        s.balance_rel_threshold, RealRange{.min = 0, .max = 1e9});
  field(d, {"eviction_interval", "cache-aware: between two evictions; 0 = never."},
        s.eviction_interval);
  field(d, {"max_tree_size", "cache-aware: characters or tokens of a server after an eviction."},
        s.max_tree_size, IntRange{0, std::int64_t{1} << 40});
  field(d,
        {"balance_token_usage_threshold",
         "cache-aware: KV usage of servers may differ by this much; 1 = off."},
        s.balance_token_usage_threshold, kShare);
  field(d,
        {"overload_token_usage_threshold",
         "cache-aware: KV usage above which the least loaded server gets everything; 1 = off."},
        s.overload_token_usage_threshold, kShare);
  field(d,
        {"load_monitor",
         "Servers answer the gateway's load poll, as SGLang's do. Without, power-of-two and "
         "least-load count requests in flight."},
        s.load_monitor);
  field(d, {"load_monitor_interval", "Between two load polls."}, s.load_monitor_interval,
        DurationRange{.min = Duration::milliseconds(1)});
  field(d, {"prefix_token_count", "prefix-hash: tokens that are hashed."}, s.prefix_token_count,
        IntRange{1, 1'000'000});
  field(d, {"prefix_hash_load_factor", "prefix-hash: a load may be this many times the mean."},
        s.prefix_hash_load_factor, RealRange{.min = 0, .max = 1e9});
  field(d, {"assignment_mode", "manual: how a new key gets its server."}, s.assignment_mode);
  field(d, {"max_idle", "manual: a key that is idle for so long is forgotten; 0 = never."},
        s.max_idle);
  field(d, {"bucket_adjust_interval", "bucket: between two adjustments, and the window counted."},
        s.bucket_adjust_interval, DurationRange{.min = Duration::milliseconds(1)});
}

std::unique_ptr<Balancer> make_smg(SmgPolicy policy, const SmgSettings& settings,
                                   const RandomStream& random) {
  RandomStream seeds = random;
  const std::uint64_t seed = seeds.next();
  return std::make_unique<LegBalancer>(
      LegPolicies{.single = make_leg(policy, settings, random),
                  .prefill = make_leg(settings.prefill_policy.value_or(policy), settings,
                                      RandomStream(seed, Stream::kBalancer, 1)),
                  .decode = make_leg(settings.decode_policy.value_or(policy), settings,
                                     RandomStream(seed, Stream::kBalancer, 2))});
}

}  // namespace routesim::policies
