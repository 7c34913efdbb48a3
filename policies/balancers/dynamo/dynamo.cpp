#include "policies/balancers/dynamo/dynamo.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <unordered_map>

#include "policies/balancers/kit/announced_blocks.h"
#include "policies/balancers/kit/block_loads.h"
#include "policies/balancers/kit/choose.h"

namespace routesim::policies {
namespace {

constexpr double kOff = std::numeric_limits<double>::infinity();
constexpr Duration kStaleAfter = Duration::milliseconds(300'000);

/// Limits of load; kOff = none.
struct Thresholds {
  double queue = kOff;  ///< Times max_num_batched_tokens.
  double decode_blocks = kOff;
  double prefill_tokens = kOff;
  double prefill_frac = kOff;  ///< Times max_num_batched_tokens.
};
constexpr std::array<double, kDynamoReleases.size()> kQueueThresholds = {
    kOff, 4, 4, 4, 16, kOff, kOff};  // src/scheduling/config.rs of dynamo-kv-router 1.1.0 to 1.6.1.
/// Two of five decode workers never get a request, as the report of #7836 counts.
constexpr std::size_t kUnregisteredOf = 5, kUnregistered = 2;

DynamoRelease release_of(const DynamoSettings& s) {
  return release_of<DynamoRelease>(kDynamoReleases, s.release);
}

Thresholds thresholds_of(const DynamoSettings& s) {
  const double usual = kQueueThresholds[static_cast<std::size_t>(release_of(s))];
  return {.queue = s.queue_threshold.value_or(usual),
          .decode_blocks = s.decode_blocks_threshold.value_or(kOff),
          .prefill_tokens = s.prefill_tokens_threshold.value_or(kOff),
          .prefill_frac = s.prefill_tokens_threshold_frac.value_or(kOff)};
}

using Candidates = std::vector<std::uint32_t>;  // Indices of endpoints.

/// The modes that look at nothing but requests in flight. Both pools are served alike.
class DynamoPush final : public RolePools {
 public:
  DynamoPush(DynamoPolicy policy, const DynamoSettings& settings, const RandomStream& random)
      : policy_(policy),
        random_ties_(release_of(settings) >= DynamoRelease::k1_2),
        random_(random) {}

  BalancerAnswer pick(const BalancerRequest&) override {
    if (decode().empty()) return std::nullopt;
    if (prefill().empty()) return pick_of(choose(decode(), next_decode_));
    const std::uint32_t computes = choose(prefill(), next_prefill_);
    return pick_of(computes, choose(decode(), next_decode_));
  }

 private:
  std::uint32_t choose(const Candidates& among, std::uint64_t& next) {
    const std::size_t n = among.size();
    switch (policy_) {
      case DynamoPolicy::kRoundRobin:
        return among[next++ % n];
      case DynamoPolicy::kPowerOfTwo:
        return less_loaded_of_two(among);
      case DynamoPolicy::kLeastLoaded: {
        Least<std::uint32_t> least(random_ties_ ? Ties::kDrawn : Ties::kFirst, random_);
        for (const std::uint32_t i : among) least.offer(i, in_flight()[i]);
        return *least.best();
      }
      case DynamoPolicy::kRandom:
      case DynamoPolicy::kKv:
        break;
    }
    return among[random_.below(n)];
  }
  std::uint32_t less_loaded_of_two(const Candidates& among) {
    if (among.size() == 1) return among[random_.below(1)];  // It draws nevertheless.
    const auto [first, second] = draw_two(among.size(), TwoDraws::kDistance, random_);
    const auto load = in_flight();
    return load[among[second]] < load[among[first]] ? among[second] : among[first];
  }

  DynamoPolicy policy_;
  bool random_ties_;
  RandomStream random_;
  std::uint64_t next_prefill_ = 0, next_decode_ = 0;
};

/// The parts of the settings that costs are made of.
struct CostRule {
  explicit CostRule(const DynamoSettings& s)
      : release(release_of(s)), credit(s.overlap_score_credit), scale(s.prefill_load_scale) {
    if (s.overlap_score_weight) scale = *s.overlap_score_weight;
    if (s.overlap_score_weight && scale == 0) credit = 0;
    predicts = credit > 0 && (!s.kv_events || s.predicted_ttl);
  }
  DynamoRelease release;
  double credit, scale;
  bool predicts = false;  ///< Whether the router remembers what it sent.
};

/// The router's counts for a request, kept until it ends.
struct DynamoRequestLoad {
  std::uint32_t server = 0;   ///< The server with the prefill tokens: the prefill worker, in PD.
  std::uint32_t decoder = 0;  ///< The server with the blocks.
  bool disaggregated = false;
  bool in_prefill = true;
  std::int64_t tokens = 0;
  std::vector<BlockKey> keys;
};

/// Cost of a worker: blocks of prompt it would have to compute, and blocks it holds for decoding.
class DynamoKv final : public RolePools {
 public:
  DynamoKv(const DynamoSettings& settings, const RandomStream& random)
      : settings_(settings),
        limits_(thresholds_of(settings)),
        rule_(settings),
        random_(random),
        predicted_(settings.kv_events ? settings.predicted_ttl.value_or(Duration::zero())
                                      : settings.ttl) {}

  BalancerNeeds needs() const override {
    return {.block_keys = true,
            .kv_events = settings_.kv_events && rule_.credit > 0,
            .first_tokens = true};
  }
  PrefixIndex* prefix_index() override {
    return settings_.kv_events && rule_.credit > 0 ? &announced_.index() : nullptr;
  }

  void set_endpoints(std::span<const BalancerEndpoint> endpoints) override {
    RolePools::set_endpoints(endpoints);
    announced_.set_endpoints(*this);
    std::uint32_t servers = static_cast<std::uint32_t>(tokens_.size());
    for (std::uint32_t i = 0; i < size(); ++i) servers = std::max(servers, pick_of(i).server + 1);
    tokens_.resize(servers, 0);
    separate_.resize(servers, 0);
    registered_ = decode();
    if (rule_.release <= DynamoRelease::k1_0 && !prefill().empty())
      registered_.resize(registered_.size() - registered_.size() * kUnregistered / kUnregisteredOf);
    active_.resize(servers);
    block_ = endpoints.empty() || endpoints[0].block_size == 0
                 ? kUnknownBlock
                 : static_cast<double>(endpoints[0].block_size);
  }

  BalancerAnswer pick(const BalancerRequest& request) override {
    if (decode().empty()) return std::nullopt;
    forget_stale(request.now);
    const bool split = !prefill().empty();
    const Candidates& registered = offered(registered_);
    const Candidates* computing = free_of(split ? prefill() : registered, free_prefill_);
    const Candidates* decoding = split ? free_of(registered, free_decode_) : computing;
    if (terms().forced) find_overlaps(request);  // Even if it refuses or holds the request.
    if (computing->empty() || decoding->empty())
      return BalancerAnswer::refused(rule_.release >= DynamoRelease::k1_3 ? 529 : 503);
    if (all_queue(*computing)) return BalancerAnswer::held();
    find_overlaps(request);
    find_active(request);
    const std::uint32_t computes = choose(*computing, request, Part::kPrefill);
    if (!split) return pick_of(computes);
    return pick_of(computes, choose(*decoding, request, Part::kDecode));
  }

  void on_sent(const BalancerPick& pick, const BalancerRequest& request) override {
    Balancer::on_sent(pick, request);
    DynamoRequestLoad load;
    load.disaggregated = pick.prefill.has_value();
    load.server = load.disaggregated ? pick.prefill_server : pick.server;
    load.decoder = pick.server;
    const std::uint32_t computes = pick.prefill.value_or(pick.endpoint);
    if (settings_.track_prefill_tokens)
      load.tokens = std::max<std::int64_t>(
          0, request.prompt_tokens - std::llround(block_ * cached_blocks(computes)));
    load.keys.assign(request.block_keys.begin(), request.block_keys.end());
    tokens_[load.server] += load.tokens;
    hold_blocks(load.decoder, load.keys, reuses(load.disaggregated));
    if (load.disaggregated) hold_blocks(load.server, load.keys, settings_.assume_kv_reuse);
    if (rule_.predicts) predicted_.add(load.server, load.keys, request.now);
    ages_.emplace_back(request.now, request.id);
    loads_.insert_or_assign(request.id, std::move(load));
  }

  void on_first_token(const BalancerPick&, std::uint64_t id, SimTime) override {
    const auto at = loads_.find(id);
    if (at != loads_.end()) end_prefill(at->second);
  }

  void on_completed(const BalancerPick& pick, const BalancerOutcome& outcome) override {
    Balancer::on_completed(pick, outcome);
    release(outcome.id);
  }

 private:
  static constexpr double kUnknownBlock = 16;
  /// A decode worker in PD has no prompt to compute.
  enum class Part : std::uint8_t { kPrefill, kDecode };
  struct Overlap {
    std::uint32_t device = 0, lower = 0;  ///< Blocks; lower = beyond the device's, in lower tiers.
  };

  /// The override for decode workers: no block counts as shared (pull request 6253).
  bool reuses(bool decodes_only) const {
    return settings_.assume_kv_reuse && !(decodes_only && rule_.release >= DynamoRelease::k1_0);
  }
  void hold_blocks(std::uint32_t server, std::span<const BlockKey> keys, bool reuse) {
    if (!settings_.track_active_blocks) return;
    if (reuse)
      active_.add(server, keys);
    else
      separate_[server] += std::ssize(keys);
  }
  void drop_blocks(std::uint32_t server, std::span<const BlockKey> keys, bool reuse) {
    if (!settings_.track_active_blocks) return;
    if (reuse)
      active_.remove(server, keys);
    else
      separate_[server] -= std::ssize(keys);
  }
  std::int64_t held_blocks(std::uint32_t server) const {
    return active_.distinct(server) + separate_[server];
  }
  void end_prefill(DynamoRequestLoad& load) {
    if (!load.in_prefill) return;
    load.in_prefill = false;
    tokens_[load.server] -= load.tokens;
    if (load.disaggregated) drop_blocks(load.server, load.keys, settings_.assume_kv_reuse);
  }
  void release(std::uint64_t id) {
    const auto at = loads_.find(id);
    if (at == loads_.end()) return;
    end_prefill(at->second);
    drop_blocks(at->second.decoder, at->second.keys, reuses(at->second.disaggregated));
    loads_.erase(at);
  }
  void forget_stale(SimTime now) {
    for (; !ages_.empty() && now - ages_.front().first > kStaleAfter; ages_.pop_front())
      release(ages_.front().second);
  }

  bool busy(std::uint32_t i) const {
    const BalancerEndpoint& e = endpoints()[i];
    const std::uint32_t server = pick_of(i).server;
    const auto tokens = static_cast<double>(tokens_[server]);
    if (tokens > limits_.prefill_tokens) return true;
    if (e.max_batched_tokens > 0 &&
        tokens > limits_.prefill_frac * static_cast<double>(e.max_batched_tokens))
      return true;
    return e.kv_blocks > 0 && static_cast<double>(held_blocks(server)) >
                                  limits_.decode_blocks * static_cast<double>(e.kv_blocks);
  }
  const Candidates* free_of(const Candidates& all, Candidates& out) const {
    if (std::none_of(all.begin(), all.end(), [&](std::uint32_t i) { return busy(i); })) return &all;
    out.clear();
    for (const std::uint32_t i : all)
      if (!busy(i)) out.push_back(i);
    return &out;
  }
  bool all_queue(const Candidates& among) const {
    if (limits_.queue == kOff) return false;
    return std::all_of(among.begin(), among.end(), [&](std::uint32_t i) {
      const std::int64_t batch = endpoints()[i].max_batched_tokens;
      return batch > 0 && static_cast<double>(tokens_[pick_of(i).server]) >
                              limits_.queue * static_cast<double>(batch);
    });
  }

  void find_overlaps(const BalancerRequest& request) {
    overlaps_.assign(size(), {});
    if (prefix_index() != nullptr) {
      const auto& held = announced_.held(request.block_keys);
      for (std::uint32_t i = 0; i < size(); ++i)
        overlaps_[i] = {.device = held[i].device,
                        .lower = std::max(held[i].all, held[i].device) - held[i].device};
    }
    if (!rule_.predicts) return;
    predicted_.expire(request.now);
    for (const PrefixMatch& m : predicted_.match(request.block_keys)) {
      const auto i = index_of(m.endpoint.value());
      if (!i || m.blocks <= overlaps_[*i].device) continue;
      Overlap& o = overlaps_[*i];
      const std::uint32_t all = o.device + o.lower;
      o = {.device = m.blocks, .lower = all > m.blocks ? all - m.blocks : 0};
    }
  }
  void find_active(const BalancerRequest& request) {
    shared_.assign(size(), 0);
    if (!settings_.track_active_blocks || !settings_.assume_kv_reuse) return;
    for (const PrefixMatch& m : active_.match(request.block_keys))
      if (const auto i = index_of(m.endpoint.value())) shared_[*i] = m.blocks;
  }
  double cached_blocks(std::uint32_t i) const {
    if (i >= overlaps_.size()) return 0;
    return overlaps_[i].device + settings_.host_cache_hit_weight * overlaps_[i].lower;
  }
  double prompt_cost(std::uint32_t i, double request_tokens, double least_tokens) const {
    const auto active = static_cast<double>(tokens_[pick_of(i).server]);
    double decay = 1;
    if (settings_.overlap_score_credit_decay > 0 && request_tokens > 0)
      decay =
          1 / (1 + settings_.overlap_score_credit_decay * (active - least_tokens) / request_tokens);
    const double credit = rule_.credit > 0
                              ? rule_.credit * decay * overlaps_[i].device +
                                    settings_.host_cache_hit_weight * overlaps_[i].lower
                              : 0;
    return rule_.scale * std::max(0.0, (active + request_tokens) / block_ - credit);
  }
  double decode_cost(std::uint32_t i, const BalancerRequest& request, bool decodes_only) const {
    const std::uint32_t shared = reuses(decodes_only) ? shared_[i] : 0;
    return static_cast<double>(held_blocks(pick_of(i).server) + std::ssize(request.block_keys) -
                               shared) +
           settings_.active_request_weight * in_flight()[i];
  }

  std::uint32_t choose(const Candidates& among, const BalancerRequest& request, Part part) {
    costs_.clear();
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const std::uint32_t i : among) least = std::min(least, tokens_[pick_of(i).server]);
    for (const std::uint32_t i : among) {
      double cost = decode_cost(i, request, part == Part::kDecode);
      if (part == Part::kPrefill)
        cost +=
            prompt_cost(i, static_cast<double>(request.prompt_tokens), static_cast<double>(least));
      costs_.push_back(cost);
    }
    if (settings_.temperature > 0) return among[sample()];
    if (rule_.release < DynamoRelease::k1_2) keep_small_trees(among);
    return among[cheapest()];
  }
  /// Among equal costs only the smallest tree stays. The size of a tree is known where a block of
  /// the prompt was found, and 0 elsewhere (src/scheduling/selector.rs and find_matches of
  /// src/indexer of dynamo-kv-router 1.1.1).
  void keep_small_trees(const Candidates& among) {
    const double least = *std::min_element(costs_.begin(), costs_.end());
    if (std::count(costs_.begin(), costs_.end(), least) == 1) return;
    const auto size_of = [&](std::uint32_t i) -> std::size_t {
      if (overlaps_[i].device + overlaps_[i].lower == 0) return 0;
      return prefix_index() != nullptr ? announced_.block_count(*this, i)
                                       : predicted_.block_count(pick_of(i).server);
    };
    std::size_t smallest = std::numeric_limits<std::size_t>::max();
    for (std::size_t k = 0; k < among.size(); ++k)
      if (costs_[k] == least) smallest = std::min(smallest, size_of(among[k]));
    for (std::size_t k = 0; k < among.size(); ++k)
      if (costs_[k] == least && size_of(among[k]) > smallest) costs_[k] = kOff;
  }
  /// The cheapest endpoint; among equals each has the same probability.
  std::size_t cheapest() {
    Least<double, std::size_t> least(Ties::kDrawn, random_);
    for (std::size_t i = 0; i < costs_.size(); ++i) least.offer(i, costs_[i]);
    return *least.best();
  }
  // Probabilities depend on where a cost stands between the least and the most of them.
  std::size_t sample() {
    const auto [least, most] = std::minmax_element(costs_.begin(), costs_.end());
    const double low = *least;
    const double spread = *most - low;
    if (spread == 0) return random_.below(costs_.size());
    double sum = 0;
    for (double& c : costs_) {
      c = std::exp(-(c - low) / (spread * settings_.temperature));
      sum += c;
    }
    const double draw = random_.uniform() * sum;
    double up_to = 0;
    for (std::size_t i = 0; i < costs_.size(); ++i) {
      up_to += costs_[i];
      if (up_to >= draw) return i;
    }
    return costs_.size() - 1;
  }

  DynamoSettings settings_;
  Thresholds limits_;
  CostRule rule_;
  RandomStream random_;
  AnnouncedBlocks announced_;
  PredictedBlocks predicted_;  ///< By server.
  ActiveBlocks active_;
  Candidates registered_;               ///< Those of decode() that may be chosen.
  std::vector<std::int64_t> separate_;  ///< By server: blocks of its requests that share none.
  std::vector<std::int64_t> tokens_;    ///< By server: tokens of prompts in prefill.
  double block_ = kUnknownBlock;        ///< Tokens.
  std::unordered_map<std::uint64_t, DynamoRequestLoad> loads_;  ///< By request.
  std::deque<std::pair<SimTime, std::uint64_t>> ages_;          ///< Requests, oldest first.
  // Values of the last pick, by endpoint.
  std::vector<Overlap> overlaps_;
  std::vector<std::uint32_t> shared_;  ///< Blocks that requests under way have there.
  Candidates free_prefill_, free_decode_;
  std::vector<double> costs_;
};

}  // namespace

void describe(Describer& d, DynamoSettings& s) {
  const RealRange share{.min = 0, .max = 1e9};
  const RealRange limit{.min = 0, .allow_infinity = true};
  release_field(d, s.release);
  field(d, {"router_kv_overlap_score_credit", "kv: credit per block in GPU memory."},
        s.overlap_score_credit, share);
  field(d,
        {"router_kv_overlap_score_weight",
         "kv, old flag: scales the prefill load instead; 0 ignores caches and prompts."},
        s.overlap_score_weight, share);
  field(d,
        {"router_kv_overlap_score_credit_decay",
         "kv: how fast credit falls with the prefill load of a worker; 0 = not at all."},
        s.overlap_score_credit_decay, share);
  field(d, {"router_prefill_load_scale", "kv: weight of prefill against decode blocks."},
        s.prefill_load_scale, share);
  field(d,
        {"router_host_cache_hit_weight",
         "kv: credit per block in lower tiers beyond those in GPU memory."},
        s.host_cache_hit_weight, RealRange{.min = 0, .max = 1});
  field(d, {"decode_active_request_weight", "kv: cost of a request in flight, in blocks."},
        s.active_request_weight, share);
  field(d,
        {"router_temperature",
         "kv: 0 takes the least cost; above, a draw by cost relative to the spread of costs."},
        s.temperature, share);
  field(d, {"router_kv_events", "kv: read KV events; otherwise remember own decisions."},
        s.kv_events);
  field(d, {"router_ttl_secs", "kv without events: life of a remembered block since its last use."},
        s.ttl, DurationRange{.min = Duration::milliseconds(1)});
  field(d, {"router_predicted_ttl_secs", "kv with events: remember own decisions, too."},
        s.predicted_ttl, DurationRange{.min = Duration::milliseconds(1)});
  field(d, {"router_track_active_blocks", "kv: count blocks of requests under way."},
        s.track_active_blocks);
  field(d, {"router_track_prefill_tokens", "kv: count tokens of prompts in prefill."},
        s.track_prefill_tokens);
  field(d, {"router_assume_kv_reuse", "kv: blocks that requests share count once."},
        s.assume_kv_reuse);
  field(d,
        {"router_queue_threshold",
         "kv: requests wait while all workers have more prefill tokens than this many times "
         "max_num_batched_tokens; .inf = none."},
        s.queue_threshold, limit);
  field(d,
        {"active_decode_blocks_threshold",
         "kv: share of its KV blocks above which a worker gets nothing; .inf = none."},
        s.decode_blocks_threshold, limit);
  field(d,
        {"active_prefill_tokens_threshold",
         "kv: prefill tokens above which a worker gets nothing; .inf = none."},
        s.prefill_tokens_threshold, limit);
  field(d,
        {"active_prefill_tokens_threshold_frac",
         "kv: the same as a multiple of max_num_batched_tokens; .inf = none."},
        s.prefill_tokens_threshold_frac, limit);
}

std::unique_ptr<Balancer> make_dynamo(DynamoPolicy policy, const DynamoSettings& settings,
                                      const RandomStream& random) {
  if (policy == DynamoPolicy::kKv) return std::make_unique<DynamoKv>(settings, random);
  return std::make_unique<DynamoPush>(policy, settings, random);
}

}  // namespace routesim::policies
