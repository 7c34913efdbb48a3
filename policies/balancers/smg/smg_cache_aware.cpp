// cache_aware of the SGLang gateway: src/policies/cache_aware.rs of sglang-router 0.3.2,
// model_gateway/src/policies/cache_aware.rs of lightseekorg/smg @73da68ca and of smg 1.10.1, 1.12.0
// and 1.13.0.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "policies/balancers/kit/cache_tree.h"
#include "policies/balancers/smg/smg_policies.h"

namespace routesim::policies {
namespace {

class CacheAware final : public LegPolicy {
 public:
  CacheAware(const SmgSettings& s, const RandomStream& random)
      : settings_(s),
        release_(smg_release(s)),
        tokens_(s.grpc && release_ >= SmgRelease::k1_5),
        cache_(tokens_ ? TenantTreeKind::kTokens : TenantTreeKind::kText,
               RandomStream(random).next()),
        wait_(s, RandomStream(RandomStream(random).next(), Stream::kBalancer, 2)),
        eviction_(s.eviction_interval) {}

  BalancerNeeds needs() const override {
    const bool polls = by_wait() ? smg_polls(settings_) : reads_usage();
    return {.metrics = polls,
            .metrics_interval = polls ? settings_.load_monitor_interval : Duration::zero(),
            .text = !tokens_,
            .chat_text_with_prefill = smg_chat_text(release_),
            .token_runs = tokens_,
            .block_keys = follows_events(),
            .kv_events = follows_events()};
  }
  void use_blocks(AnnouncedBlocks* blocks) override { blocks_ = blocks; }
  // A server that is deregistered leaves the trees; from 1.5 to 1.9 only evictions find it.
  void on_workers(const Leg& leg) override {
    cache_.on_workers(leg, by_wait() || release_ < SmgRelease::k1_5);
    wait_.on_workers(leg);
  }
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& request) override {
    const PromptText& text = tokens_ ? request.token_text : request.text;
    if (eviction_.due(request.now))
      by_wait() ? tree().evict_total(most_units()) : tree().evict(most_units());
    units_per_character_ = tokens_ ? 1 : 1 / text.characters_per_unit;
    if (by_wait()) return least_wait(leg, request, text);
    const std::uint32_t least = leg.settle(min_load(leg));
    if (is_imbalanced(leg, request)) {
      cache_.insert(text, least);
      return processed(least);
    }
    if (follows_events() && !blocks_->empty())
      return processed(leg.settle(best_overlap(leg, request).value_or(least)));
    return by_tree(leg, text, least);
  }

 private:
  TenantTree& tree() { return cache_.tree(); }
  bool by_wait() const { return release_ >= SmgRelease::k1_10; }
  bool reads_usage() const {
    return (settings_.balance_token_usage_threshold < 1 ||
            settings_.overload_token_usage_threshold < 1) &&
           smg_polls(settings_);
  }
  bool follows_events() const { return tokens_ && settings_.kv_events; }
  std::int64_t most_units() const {
    return std::llround(static_cast<double>(settings_.max_tree_size) * units_per_character_);
  }
  std::uint32_t processed(std::uint32_t endpoint) {
    const std::uint32_t tenant = cache_.tenant(endpoint);
    if (tenant >= processed_.size()) processed_.resize(tenant + std::size_t{1});
    ++processed_[tenant];
    return endpoint;
  }
  std::uint64_t times(std::uint32_t endpoint) const {
    const std::uint32_t tenant = cache_.tenant(endpoint);
    return tenant < processed_.size() ? processed_[tenant] : 0;
  }

  std::uint32_t min_load(const Leg& leg) const {
    if (release_ < SmgRelease::k1_5) return least_loaded(leg);
    std::uint32_t best = leg.healthy.front();
    for (const std::uint32_t w : leg.healthy)
      if (leg.load(w) < leg.load(best) || (leg.load(w) == leg.load(best) && times(w) < times(best)))
        best = w;
    return best;
  }
  bool is_imbalanced(const Leg& leg, const BalancerRequest& request) const {
    if (reads_usage() && request.metrics != nullptr && usage_is_imbalanced(leg, *request.metrics))
      return true;
    // Up to sglang-router 0.3.2 servers that are not healthy count, too.
    const auto& counted = release_ < SmgRelease::k1_5 ? leg.workers : leg.healthy;
    return loads_differ(leg, counted, settings_.balance_abs_threshold,
                        settings_.balance_rel_threshold);
  }
  bool usage_is_imbalanced(const Leg& leg, const EndpointTable& metrics) const {
    double least = 2, most = -1;
    for (const std::uint32_t w : leg.healthy) {
      if (!metrics.has_metrics(w)) continue;
      least = std::min(least, metrics.kv_usage()[w]);
      most = std::max(most, metrics.kv_usage()[w]);
    }
    if (most < 0) return false;
    return most > settings_.overload_token_usage_threshold ||
           most - least > settings_.balance_token_usage_threshold;
  }

  /// The last of the servers with the most blocks and then the least load.
  std::optional<std::uint32_t> best_overlap(const Leg& leg, const BalancerRequest& request) {
    std::optional<std::uint32_t> best;
    std::uint32_t most = 0;
    for (const PrefixMatch& m : blocks_->match(request.block_keys)) {
      const std::uint32_t w = m.endpoint.value();
      if (!leg.can_serve(w) || m.blocks == 0) continue;
      const auto rank = [&leg](std::uint32_t blocks, std::uint32_t e) {
        return std::tuple(blocks, -static_cast<std::int64_t>(leg.load(e)), e);
      };
      if (best && rank(m.blocks, w) < rank(most, *best)) continue;
      best = w;
      most = m.blocks;
    }
    return best;
  }

  std::uint32_t by_tree(const Leg& leg, const PromptText& text, std::uint32_t least) {
    const std::uint32_t otherwise = release_ == SmgRelease::k0_2 ? smallest_tree(leg) : least;
    const auto owner =
        cache_.owner(leg, text, settings_.cache_threshold, otherwise, release_ < SmgRelease::k1_5);
    if (!owner) return leg.healthy.front();
    const std::uint32_t chosen = leg.settle(*owner);
    cache_.insert(text, chosen);
    return processed(chosen);
  }
  std::uint32_t smallest_tree(const Leg& leg) {
    return *std::min_element(leg.healthy.begin(), leg.healthy.end(), [this](auto a, auto b) {
      return tree().size_of(cache_.tenant(a)) < tree().size_of(cache_.tenant(b));
    });
  }

  std::optional<std::uint32_t> least_wait(const Leg& leg, const BalancerRequest& request,
                                          const PromptText& text) {
    std::vector<std::uint32_t> among = leg.healthy;
    if (!(reads_usage() && request.metrics != nullptr &&
          usage_is_imbalanced(leg, *request.metrics))) {
      double sum = 0;
      for (const std::uint32_t w : leg.healthy) sum += leg.load(w);
      const double mean = sum / static_cast<double>(leg.healthy.size());
      const auto spills = [&](std::uint32_t w) { return is_pressed(leg.load(w), mean); };
      std::vector<std::uint32_t> holders = holders_of(leg, request, text);
      const bool miss = holders.empty();
      std::erase_if(holders, spills);
      std::vector<std::uint32_t> calm = leg.healthy;
      std::erase_if(calm, spills);
      if (!miss && !(holders.empty() && calm.empty())) among = holders.empty() ? calm : holders;
    }
    const auto chosen = wait_.pick(leg, request, among);
    if (chosen) cache_.insert(text, *chosen);
    return chosen;
  }
  /// Whether a server has so much more than the mean that its prefixes do not hold it.
  bool is_pressed(double load, double mean) const {
    constexpr double kLeastMargin = 4;
    auto margin = static_cast<double>(settings_.balance_abs_threshold);
    if (release_ >= SmgRelease::k1_13)
      margin = std::min(margin, std::max(std::ceil(2 * std::sqrt(mean)), kLeastMargin));
    const double factor = static_cast<float>(settings_.balance_rel_threshold);
    return load > mean * factor && load > mean + margin;
  }
  /// The servers that have the deepest match, where it is deep enough.
  std::vector<std::uint32_t> holders_of(const Leg& leg, const BalancerRequest& request,
                                        const PromptText& text) {
    std::vector<std::uint32_t> out;
    if (follows_events() && !blocks_->empty()) {
      std::uint32_t most = 1;
      for (const PrefixMatch& m : blocks_->match(request.block_keys)) {
        if (!leg.can_serve(m.endpoint.value()) || m.blocks < most) continue;
        if (m.blocks > most) out.clear();
        most = m.blocks;
        out.push_back(m.endpoint.value());
      }
      std::sort(out.begin(), out.end());
      return out;
    }
    const TenantTree::Match match = tree().match(text);
    if (match.matched == 0 || match.rate() <= static_cast<float>(settings_.cache_threshold))
      return out;
    for (const std::uint32_t w : leg.healthy)
      if (tree().owns(match.node, cache_.tenant(w))) out.push_back(w);
    return out;
  }

  SmgSettings settings_;
  SmgRelease release_;
  bool tokens_;
  CacheTree cache_;
  SmgExpectedWait wait_;
  Periodic eviction_;
  double units_per_character_ = 1;        ///< Of the texts so far.
  std::vector<std::uint64_t> processed_;  ///< Requests ever, by tenant.
  AnnouncedBlocks* blocks_ = nullptr;
};

}  // namespace

std::unique_ptr<LegPolicy> make_smg_cache_aware(const SmgSettings& s, const RandomStream& random) {
  return std::make_unique<CacheAware>(s, random);
}

}  // namespace routesim::policies
