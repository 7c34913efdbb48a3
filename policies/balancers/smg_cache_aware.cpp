// cache_aware of the SGLang gateway: model_gateway/src/policies/cache_aware.rs of lightseekorg/smg
// @73da68ca.
#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "policies/balancers/smg_policies.h"
#include "policies/balancers/tenant_tree.h"

namespace routesim::policies {
namespace {

class CacheAware final : public LegPolicy {
 public:
  CacheAware(const SmgSettings& s, const RandomStream& random)
      : settings_(s),
        tree_(s.grpc ? TenantTreeKind::kTokens : TenantTreeKind::kText,
              RandomStream(random).next()),
        eviction_(s.eviction_interval) {}

  BalancerNeeds needs() const override {
    return {.metrics = reads_usage(),
            .metrics_interval = reads_usage() ? settings_.load_monitor_interval : Duration::zero(),
            .text = !settings_.grpc,
            .token_runs = settings_.grpc,
            .block_keys = follows_events(),
            .kv_events = follows_events()};
  }
  void use_index(PrefixIndex* index) override { index_ = index; }
  void on_workers(const Leg& leg) override {
    names_.update(leg);
    for (const std::uint32_t w : leg.workers) tree_.add_tenant(names_.tenant(w));
  }
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& request) override {
    const PromptText& text = settings_.grpc ? request.token_text : request.text;
    if (eviction_.due(request.now)) tree_.evict(most_units());
    units_per_character_ = settings_.grpc ? 1 : 1 / text.characters_per_unit;
    const std::uint32_t least = min_load(leg);
    if (is_imbalanced(leg, request)) {
      insert(text, least);
      return processed(least);
    }
    if (follows_events() && index_->request_key_count() > 0)
      return processed(best_overlap(leg, request).value_or(least));
    return by_tree(leg, text, least);
  }

 private:
  bool reads_usage() const {
    return settings_.load_monitor && (settings_.balance_token_usage_threshold < 1 ||
                                      settings_.overload_token_usage_threshold < 1);
  }
  bool follows_events() const { return settings_.grpc && settings_.kv_events; }
  std::int64_t most_units() const {
    return std::llround(static_cast<double>(settings_.max_tree_size) * units_per_character_);
  }
  void insert(const PromptText& text, std::uint32_t endpoint) {
    tree_.insert(text, names_.tenant(endpoint));
  }
  std::uint32_t processed(std::uint32_t endpoint) {
    const std::uint32_t tenant = names_.tenant(endpoint);
    if (tenant >= processed_.size()) processed_.resize(tenant + std::size_t{1});
    ++processed_[tenant];
    return endpoint;
  }
  std::uint64_t times(std::uint32_t endpoint) const {
    const std::uint32_t tenant = names_.tenant(endpoint);
    return tenant < processed_.size() ? processed_[tenant] : 0;
  }

  std::uint32_t min_load(const Leg& leg) const {
    if (settings_.release != SmgRelease::kJune2026) return least_loaded(leg);
    std::uint32_t best = leg.healthy.front();
    for (const std::uint32_t w : leg.healthy)
      if (leg.load(w) < leg.load(best) || (leg.load(w) == leg.load(best) && times(w) < times(best)))
        best = w;
    return best;
  }
  bool is_imbalanced(const Leg& leg, const BalancerRequest& request) const {
    if (reads_usage() && request.metrics != nullptr && usage_is_imbalanced(leg, *request.metrics))
      return true;
    std::uint32_t least = leg.load(leg.healthy.front()), most = least;
    for (const std::uint32_t w : leg.healthy) {
      least = std::min(least, leg.load(w));
      most = std::max(most, leg.load(w));
    }
    return imbalanced(least, most, settings_.balance_abs_threshold,
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
    index_->match(request.block_keys, scratch_);
    std::optional<std::uint32_t> best;
    std::uint32_t most = 0;
    for (const PrefixMatch& m : scratch_.matches()) {
      const std::uint32_t w = m.endpoint.value();
      if (w >= leg.has.size() || !leg.has[w] || !leg.endpoints[w].healthy || m.blocks == 0)
        continue;
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
    const TenantTree::Match match = tree_.match(text);
    std::uint32_t chosen = least;
    if (match.rate() > static_cast<float>(settings_.cache_threshold)) {
      const auto owner = match.tenant ? names_.endpoint(leg, *match.tenant) : std::nullopt;
      if (!owner || !leg.endpoints[*owner].healthy) return leg.healthy.front();
      chosen = *owner;
    } else if (settings_.release == SmgRelease::kSeptember2025) {
      chosen = smallest_tree(leg);
    }
    insert(text, chosen);
    return processed(chosen);
  }
  std::uint32_t smallest_tree(const Leg& leg) const {
    return *std::min_element(leg.healthy.begin(), leg.healthy.end(), [this](auto a, auto b) {
      return tree_.size_of(names_.tenant(a)) < tree_.size_of(names_.tenant(b));
    });
  }

  SmgSettings settings_;
  TenantTree tree_;
  TenantNames names_;
  Periodic eviction_;
  double units_per_character_ = 1;        ///< Of the texts so far.
  std::vector<std::uint64_t> processed_;  ///< Requests ever, by tenant.
  PrefixIndex* index_ = nullptr;
  MatchScratch scratch_;
};

}  // namespace

std::shared_ptr<LegPolicy> make_smg_cache_aware(const SmgSettings& s, const RandomStream& random) {
  return std::make_shared<CacheAware>(s, random);
}

}  // namespace routesim::policies
