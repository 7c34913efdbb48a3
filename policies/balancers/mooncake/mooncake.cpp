#include "policies/balancers/mooncake/mooncake.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "policies/balancers/kit/block_loads.h"

namespace routesim::policies {
namespace {

/// Prefill and decode servers, and the tokens of a prompt that each has, in whatever tier. Without
/// prefill servers every server serves whole requests.
class MooncakeBalancer : public RolePools {
 public:
  BalancerNeeds needs() const override { return {.block_keys = true, .kv_events = true}; }
  PrefixIndex* prefix_index() override { return &announced_.index(); }
  void set_endpoints(std::span<const BalancerEndpoint> endpoints) override {
    RolePools::set_endpoints(endpoints);
    announced_.set_endpoints(*this);
  }

 protected:
  bool split() const { return !prefill().empty(); }
  const std::vector<std::uint32_t>& computing() const { return split() ? prefill() : decode(); }
  std::int64_t block_tokens(std::uint32_t i, std::int64_t blocks) const {
    constexpr std::int64_t kUnknownBlock = 16;
    return blocks * (endpoints()[i].block_size > 0 ? endpoints()[i].block_size : kUnknownBlock);
  }
  /// By endpoint. Valid until the next call.
  std::vector<std::int64_t>& find_prefixes(const BalancerRequest& request) {
    const auto& held = announced_.held(request.block_keys);
    prefixes_.resize(size());
    for (std::uint32_t i = 0; i < size(); ++i) prefixes_[i] = block_tokens(i, held[i].all);
    return prefixes_;
  }

 private:
  AnnouncedBlocks announced_;
  std::vector<std::int64_t> prefixes_;
};

/// Algorithm 1: the least estimated time to the first token. Of equals the first server.
class MooncakeConductor final : public MooncakeBalancer {
 public:
  explicit MooncakeConductor(const MooncakeSettings& settings) : settings_(settings) {}

  BalancerNeeds needs() const override {
    BalancerNeeds needs = MooncakeBalancer::needs();
    needs.first_tokens = true;
    return needs;
  }
  void set_endpoints(std::span<const BalancerEndpoint> endpoints) override {
    MooncakeBalancer::set_endpoints(endpoints);
    auto servers = static_cast<std::uint32_t>(queue_.size());
    for (std::uint32_t i = 0; i < size(); ++i) servers = std::max(servers, pick_of(i).server + 1);
    queue_.resize(servers);
    scheduled_.resize(servers);
  }

  BalancerAnswer pick(const BalancerRequest& request) override {
    if (decode().empty()) return std::nullopt;
    std::vector<std::int64_t>& prefixes = find_prefixes(request);
    // Blocks of requests on their way count as cached from their scheduling on.
    for (const PrefixMatch& m : scheduled_.match(request.block_keys))
      if (const auto i = index_of(m.endpoint.value()))
        prefixes[*i] = std::max(prefixes[*i], block_tokens(*i, m.blocks));
    const auto [chosen, ttft] = best(request, prefixes);
    const auto load = in_flight();
    std::uint32_t decoder = chosen;
    if (split())
      decoder = *std::min_element(decode().begin(), decode().end(),
                                  [&load](auto a, auto b) { return load[a] < load[b]; });
    const Duration tbt =
        ms(settings_.tbt_base_ms + settings_.tbt_ms_per_request * (load[decoder] + 1));
    if (ttft > settings_.ttft_slo.value_or(Duration::max()) ||
        tbt > settings_.tbt_slo.value_or(Duration::max()))
      return BalancerAnswer::refused(429);
    return split() ? pick_of(chosen, decoder) : pick_of(chosen);
  }
  void on_sent(const BalancerPick& pick, const BalancerRequest& request) override {
    Balancer::on_sent(pick, request);
    Waiting waiting{.server = pick.prefill ? pick.prefill_server : pick.server,
                    .prefill = estimate(pick.prefill.value_or(pick.endpoint)),
                    .keys = {request.block_keys.begin(), request.block_keys.end()}};
    queue_[waiting.server] += waiting.prefill;
    scheduled_.add(waiting.server, waiting.keys);
    waiting_.insert_or_assign(request.id, std::move(waiting));
  }
  void on_first_token(const BalancerPick&, std::uint64_t id, SimTime) override { leave_queue(id); }
  void on_completed(const BalancerPick& pick, const BalancerOutcome& outcome) override {
    Balancer::on_completed(pick, outcome);
    leave_queue(outcome.id);
  }

 private:
  struct Waiting {
    std::uint32_t server = 0;  ///< It computes the prompt.
    Duration prefill;          ///< As estimated.
    std::vector<BlockKey> keys;
  };
  struct Best {
    std::uint32_t endpoint = 0;
    Duration ttft = Duration::max();
  };

  Best best(const BalancerRequest& request, const std::vector<std::int64_t>& prefixes) {
    std::int64_t longest = 0;
    for (const std::uint32_t i : computing()) longest = std::max(longest, prefixes[i]);
    prefill_.assign(size(), Duration::zero());
    Best best{.endpoint = computing().front()};
    for (const std::uint32_t i : computing()) {
      const auto local = static_cast<double>(prefixes[i]), most = static_cast<double>(longest);
      const bool transfers = settings_.kvcache_balancing_threshold &&
                             most > local * *settings_.kvcache_balancing_threshold;
      prefill_[i] =
          execution_time(static_cast<double>(request.prompt_tokens), transfers ? most : local);
      Duration ttft = queue_[pick_of(i).server] + prefill_[i];
      if (transfers) ttft += ms(settings_.transfer_ms_per_token * (most - local));
      if (ttft < best.ttft) best = {.endpoint = i, .ttft = ttft};
    }
    return best;
  }
  /// The prefill of the last request there; nothing where there was none to estimate.
  Duration estimate(std::uint32_t i) const {
    return i < prefill_.size() ? prefill_[i] : Duration::zero();
  }
  static Duration ms(double milliseconds) { return Duration::from_seconds(milliseconds / 1000); }
  /// A polynomial of the second degree in the length and the cached prefix.
  Duration execution_time(double length, double prefix) const {
    return ms(settings_.prefill_base_ms + settings_.prefill_ms_per_token * (length - prefix) +
              settings_.prefill_ms_per_token_squared * (length * length - prefix * prefix));
  }
  void leave_queue(std::uint64_t id) {
    const auto at = waiting_.find(id);
    if (at == waiting_.end()) return;
    queue_[at->second.server] -= at->second.prefill;
    scheduled_.remove(at->second.server, at->second.keys);
    waiting_.erase(at);
  }

  MooncakeSettings settings_;
  std::vector<Duration> queue_;    ///< By server.
  std::vector<Duration> prefill_;  ///< By endpoint, for the request last picked for.
  ActiveBlocks scheduled_;
  std::unordered_map<std::uint64_t, Waiting> waiting_;  ///< Until their first token.
};

/// The proxy of the repository: the longest match, and rotations of three kinds.
class MooncakeProxy final : public MooncakeBalancer {
 public:
  BalancerAnswer pick(const BalancerRequest& request) override {
    if (decode().empty()) return std::nullopt;
    const std::vector<std::int64_t>& prefixes = find_prefixes(request);
    std::int64_t most = 0;
    for (const std::uint32_t i : computing()) most = std::max(most, prefixes[i]);
    std::uint32_t chosen = 0;
    if (most == 0) {
      chosen = computing()[unmatched_++ % computing().size()];
    } else {
      std::map<std::string, std::uint32_t> leaders;  // By name, as the product sorts them.
      std::vector<std::string> names;
      for (const std::uint32_t i : computing())
        if (prefixes[i] == most) leaders.emplace(endpoints()[i].name, i);
      for (const auto& [name, i] : leaders) names.push_back(name);
      chosen = leaders[names[ties_[names]++ % names.size()]];
    }
    return split() ? pick_of(chosen, decode()[decoded_++ % decode().size()]) : pick_of(chosen);
  }

 private:
  std::uint64_t unmatched_ = 0, decoded_ = 0;
  std::map<std::vector<std::string>, std::uint64_t> ties_;  ///< Rotations, one a set of leaders.
};

}  // namespace

void describe(Describer& d, MooncakeSettings& s) {
  release_field(d, s.release);
  const RealRange ms{.min = 0, .max = 1e9};
  field(
      d,
      {"kvcache_balancing_threshold",
       "conductor: a server whose prefix is shorter than the longest one by more than this factor "
       "is assumed to get the rest transferred. Absent = nobody does. kv_tiers decides whether "
       "servers really pull."},
      s.kvcache_balancing_threshold, RealRange{.min = 0, .max = 1e9});
  field(d, {"ttft_slo", "conductor: refuse (429) requests with a longer estimated TTFT."},
        s.ttft_slo);
  field(d, {"tbt_slo", "conductor: the same for the estimated time between tokens."}, s.tbt_slo);
  field(d, {"prefill_base_ms", "conductor: milliseconds of any prefill."}, s.prefill_base_ms, ms);
  field(d, {"prefill_ms_per_token", "conductor: and of each token that is not cached."},
        s.prefill_ms_per_token, ms);
  field(d,
        {"prefill_ms_per_token_squared",
         "conductor: and times the square of the length less that of the cached prefix."},
        s.prefill_ms_per_token_squared, ms);
  field(d, {"transfer_ms_per_token", "conductor: of a token's KV between servers."},
        s.transfer_ms_per_token, ms);
  field(d, {"tbt_base_ms", "conductor: time between tokens of an idle decode server."},
        s.tbt_base_ms, ms);
  field(d, {"tbt_ms_per_request", "conductor: and of each request there, the new one included."},
        s.tbt_ms_per_request, ms);
}

std::unique_ptr<Balancer> make_mooncake(MooncakePolicy policy, const MooncakeSettings& settings,
                                        const RandomStream& /*random*/) {
  if (policy == MooncakePolicy::kProxy) return std::make_unique<MooncakeProxy>();
  return std::make_unique<MooncakeConductor>(settings);
}

}  // namespace routesim::policies
