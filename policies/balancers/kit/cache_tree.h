// The caches of servers as the cache_aware policies of the SGLang gateway and of the vLLM router
// guess them: both came from one source.
#pragma once

#include <map>

#include "policies/balancers/kit/choose.h"
#include "policies/balancers/kit/legs.h"
#include "policies/balancers/kit/tenant_tree.h"

namespace routesim::policies {

/// A tree of the texts that each worker was sent.
class CacheTree {
 public:
  CacheTree(TenantTreeKind kind, std::uint64_t salt) : tree_(kind, salt) {}
  TenantTree& tree() { return tree_; }
  std::uint32_t tenant(std::uint32_t endpoint) const { return names_.tenant(endpoint); }
  void insert(const PromptText& text, std::uint32_t endpoint) {
    tree_.insert(text, tenant(endpoint));
  }
  /// The workers of a leg have changed. The tree forgets those that left, if it should.
  void on_workers(const Leg& leg, bool forgets) {
    names_.update(leg);
    std::vector<std::uint32_t>& known = known_[leg.name];
    for (const std::uint32_t t : known)
      if (forgets && !names_.endpoint(leg, t)) tree_.remove_tenant(t);
    known.clear();
    for (const std::uint32_t w : leg.workers) {
      known.push_back(tenant(w));
      tree_.add_tenant(known.back());
    }
  }
  /// The owner of the longest match, where more than a share of the text matches, else `otherwise`.
  /// Nothing where the owner may not get requests; the tree then forgets it, if it should.
  std::optional<std::uint32_t> owner(const Leg& leg, const PromptText& text, double share,
                                     std::uint32_t otherwise, bool forgets) {
    const TenantTree::Match match = tree_.match(text);
    if (match.rate() <= static_cast<float>(share)) return otherwise;
    const auto owner = match.tenant ? names_.endpoint(leg, *match.tenant) : std::nullopt;
    if (owner && leg.can_serve(*owner)) return owner;
    if (match.tenant && forgets) tree_.remove_tenant(*match.tenant);
    return std::nullopt;
  }

 private:
  TenantTree tree_;
  TenantNames names_;
  std::map<std::string_view, std::vector<std::uint32_t>> known_;  ///< Tenants by leg.
};

/// imbalanced() over the loads of workers.
inline bool loads_differ(const Leg& leg, std::span<const std::uint32_t> workers,
                         std::int64_t absolute, double relative) {
  const auto [least, most] =
      least_and_most(workers, [&leg](std::uint32_t w) { return leg.load(w); });
  return imbalanced(least, most, absolute, relative);
}

}  // namespace routesim::policies
