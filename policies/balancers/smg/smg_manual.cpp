// manual of the SGLang gateway: model_gateway/src/policies/manual.rs of lightseekorg/smg @73da68ca.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "policies/balancers/kit/choose.h"
#include "policies/balancers/smg/smg_policies.h"

namespace routesim::policies {
namespace {

/// A key keeps its server while that is healthy, and remembers two.
class Manual final : public LegPolicy {
 public:
  Manual(const SmgSettings& s, const RandomStream& random)
      : mode_(s.assignment_mode),
        release_(smg_release(s)),
        max_idle_(s.max_idle),
        random_(random),
        sweep_(s.eviction_interval) {}

  BalancerNeeds needs() const override {
    return {.identity = true, .session_headers = {"x-smg-routing-key"}};
  }
  void on_workers(const Leg& leg) override { names_.update(leg); }
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& request) override {
    if (max_idle_ > Duration::zero() && sweep_.due(request.now))
      std::erase_if(keys_,
                    [&](const auto& k) { return sweep_.last() - k.second.used >= max_idle_; });
    const std::string_view key = key_of(request);
    if (key.empty()) return assign(leg);
    Entry& entry = keys_[std::string(key)];
    entry.used = request.now;
    std::optional<std::uint32_t> kept;
    for (const std::uint32_t tenant : entry.tenants) {
      const auto at = names_.endpoint(leg, tenant);
      if (!kept && at && leg.can_serve(*at)) kept = at;
    }
    const std::uint32_t chosen = leg.settle(kept ? *kept : assign(leg));
    if (kept == chosen) return chosen;
    std::erase(entry.tenants, names_.tenant(chosen));
    if (entry.tenants.size() == 2) entry.tenants.erase(entry.tenants.begin());
    entry.tenants.push_back(names_.tenant(chosen));
    return chosen;
  }
  void on_sent(const Leg& /*leg*/, std::uint32_t endpoint,
               const BalancerRequest& request) override {
    const std::string_view key = key_of(request);
    if (mode_ != SmgAssignment::kMinGroup || key.empty()) return;
    Sent& sent = sent_[request.id];
    sent = {.tenant = names_.tenant(endpoint), .key = std::string(key)};
    ++groups_[sent.tenant][sent.key];
  }
  void on_completed(const Leg& /*leg*/, std::uint64_t id) override {
    const auto at = sent_.find(id);
    if (at == sent_.end()) return;
    auto& keys = groups_[at->second.tenant];
    if (--keys[at->second.key] == 0) keys.erase(at->second.key);
    sent_.erase(at);
  }

 private:
  struct Entry {
    std::vector<std::uint32_t> tenants;  ///< The oldest first, two at most.
    SimTime used;
  };
  struct Sent {
    std::uint32_t tenant = 0;
    std::string key;
  };
  std::string_view key_of(const BalancerRequest& request) const {
    return smg_routing_key(request, release_).value_or("");
  }
  /// The number that the mode compares: requests, or keys that have requests in flight.
  std::uint64_t weight(const Leg& leg, std::uint32_t endpoint) const {
    if (mode_ == SmgAssignment::kMinLoad) return leg.load(endpoint);
    const auto at = groups_.find(names_.tenant(endpoint));
    return at == groups_.end() ? 0 : at->second.size();
  }
  std::uint32_t assign(const Leg& leg) {
    if (mode_ == SmgAssignment::kRandom) return leg.healthy[random_.below(leg.healthy.size())];
    const auto best = all_least(leg.healthy, [&](std::uint32_t w) { return weight(leg, w); });
    return best.size() == 1 ? best.front() : best[random_.below(best.size())];
  }

  SmgAssignment mode_;
  SmgRelease release_;
  Duration max_idle_;
  RandomStream random_;
  TenantNames names_;
  Periodic sweep_;
  std::unordered_map<std::string, Entry> keys_;
  std::unordered_map<std::uint64_t, Sent> sent_;  ///< In flight with a key, by id.
  std::unordered_map<std::uint32_t, std::map<std::string, std::uint32_t>> groups_;  ///< By tenant.
};

}  // namespace

std::unique_ptr<LegPolicy> make_smg_manual(const SmgSettings& s, const RandomStream& random) {
  return std::make_unique<Manual>(s, random);
}

}  // namespace routesim::policies
