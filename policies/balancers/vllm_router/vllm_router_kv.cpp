// kv_aware of the vLLM router: src/policies/kv_aware.rs of vllm-router 0.1.17, and what
// src/routers/http/pd_router.rs asks of it.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "policies/balancers/kit/choose.h"
#include "policies/balancers/kit/legs.h"
#include "policies/balancers/vllm_router/vllm_router.h"

namespace routesim::policies {
namespace {

/// Tokens that a server would compute, times its requests; in P/D the tokens alone at prefill
/// servers, and decode servers by requests.
class KvAware final : public LegPolicy {
 public:
  KvAware(const VllmRouterSettings& s, const RandomStream& random)
      : settings_(s), random_(random) {}
  BalancerNeeds needs() const override {
    return {.block_keys = true, .kv_events = true, .first_tokens = true};
  }
  void use_blocks(AnnouncedBlocks* blocks) override { blocks_ = blocks; }
  std::optional<std::uint32_t> pick(const Leg& leg, const BalancerRequest& request) override {
    if (leg.name == "decode") return fewest_in_turn(leg);
    find_tokens(leg, request);
    std::vector<double> costs;
    for (const std::uint32_t w : leg.healthy) {
      const double tokens = static_cast<double>(new_tokens_[w] + backlog(leg, w));
      costs.push_back(leg.name == "prefill" ? tokens : tokens * (leg.load(w) + 1.0));
    }
    const bool free = std::find(costs.begin(), costs.end(), 0.0) != costs.end();
    if (settings_.router_temperature > 0 &&
        (!free || *std::max_element(costs.begin(), costs.end()) > 0))
      return leg.healthy[draw(costs)];
    // Only work that is nothing, or that of a prefill server, ties by requests.
    const bool by_load = leg.name == "prefill" || free;
    std::size_t best = 0;
    for (std::size_t i = 1; i < costs.size(); ++i)
      if (costs[i] < costs[best] || (by_load && costs[i] == costs[best] &&
                                     leg.load(leg.healthy[i]) < leg.load(leg.healthy[best])))
        best = i;
    return leg.healthy[best];
  }
  void on_sent(const Leg& leg, std::uint32_t endpoint, const BalancerRequest& request) override {
    if (leg.name == "decode") return;
    Prefill& prefill = prefills_[request.id];
    // A caller may send it although no server was healthy enough to be asked.
    prefill = {
        .url = leg.url(endpoint),
        .tokens = endpoint < new_tokens_.size() ? new_tokens_[endpoint] : request.prompt_tokens};
    backlog_[prefill.url] += prefill.tokens;
  }
  void on_first_token(std::uint64_t id) override {
    const auto at = prefills_.find(id);
    if (at == prefills_.end()) return;
    backlog_[at->second.url] -= at->second.tokens;
    prefills_.erase(at);
  }
  void on_completed(const Leg& /*leg*/, std::uint64_t id) override { on_first_token(id); }

 private:
  struct Prefill {
    std::string url;
    std::int64_t tokens = 0;
  };
  std::int64_t backlog(const Leg& leg, std::uint32_t w) const {
    const auto at = backlog_.find(leg.url(w));
    return at == backlog_.end() ? 0 : at->second;
  }
  /// Tokens of the prompt that each server lacks. The last one is always computed, so that the last
  /// block never counts as a hit where it ends the prompt.
  void find_tokens(const Leg& leg, const BalancerRequest& request) {
    const std::int64_t length = request.prompt_tokens;
    new_tokens_.assign(leg.endpoints.size(), length);
    const auto& held = blocks_->held(request.block_keys);
    for (const std::uint32_t w : leg.healthy) {
      const std::int64_t block = std::max<std::int64_t>(1, leg.endpoints[w].block_size);
      const std::int64_t here =
          std::min<std::int64_t>(held[w].device, std::max<std::int64_t>(0, length - 1) / block);
      const double lower = settings_.kv_penalty_host *
                           static_cast<double>(std::max<std::int64_t>(0, held[w].all - here));
      const double credit =
          std::min((static_cast<double>(here) + lower) * static_cast<double>(block),
                   static_cast<double>(std::max<std::int64_t>(0, length - 1)));
      new_tokens_[w] = std::llround(std::ceil(static_cast<double>(length) - credit));
    }
  }
  /// The fewest requests; equals take turns.
  std::uint32_t fewest_in_turn(const Leg& leg) {
    const auto equal = all_least(leg.healthy, [&](std::uint32_t w) { return leg.load(w); });
    return equal[next_decode_++ % equal.size()];
  }
  std::size_t draw(std::vector<double> costs) {
    const double least = *std::min_element(costs.begin(), costs.end());
    double sum = 0;
    for (double& c : costs) sum += c = std::exp((least - c) / settings_.router_temperature);
    double left = random_.uniform() * sum;
    for (std::size_t i = 0; i < costs.size(); ++i) {
      if (left < costs[i]) return i;
      left -= costs[i];
    }
    return costs.size() - 1;
  }

  VllmRouterSettings settings_;
  RandomStream random_;
  AnnouncedBlocks* blocks_ = nullptr;
  std::vector<std::int64_t> new_tokens_;                   ///< By endpoint, of the last pick.
  std::unordered_map<std::uint64_t, Prefill> prefills_;    ///< Under way, by request.
  std::unordered_map<std::string, std::int64_t> backlog_;  ///< Their tokens, by server.
  std::uint64_t next_decode_ = 0;
};

}  // namespace

std::unique_ptr<LegPolicy> make_vllm_kv_aware(const VllmRouterSettings& s,
                                              const RandomStream& random) {
  return std::make_unique<KvAware>(s, random);
}

}  // namespace routesim::policies
