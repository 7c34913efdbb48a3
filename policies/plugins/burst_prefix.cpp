#include "policies/plugins/burst_prefix.h"

#include <map>

namespace routesim::policies {

void describe(Describer& d, BurstPrefixParameters& p) {
  field(d, {"windowDurationMs", "Milliseconds for which requests are gathered."}, p.window_ms,
        IntRange{1, 10'000});
  field(d, {"maxPerReplica", "Requests with one prompt per endpoint; -1 = no limit."},
        p.max_per_replica, IntRange{-1});
  field(d, {"blockSizeTokens", "Tokens per block."}, p.block_size_tokens, IntRange{1});
  field(d, {"maxPrefixTokensToMatch", "Cap of a prompt in tokens; 0 = 2048 blocks."},
        p.max_prefix_tokens, IntRange{0});
  field(d,
        {"minColocateBlocks",
         "Leading blocks that different prompts must share to be placed together; 0 = never."},
        p.min_colocate_blocks, IntRange{0});
  field(d, {"maxBatchSize", "Requests of one window; -1 = no limit."}, p.max_batch_size,
        IntRange{-1});
  field(d, {"balanceBy", "What endpoints get equally of: requests or tokens."}, p.balance_by);
}

namespace {

using Hashes = std::vector<std::uint64_t>;

/// Requests with one prompt.
struct Unit {
  const Hashes* hashes = nullptr;
  std::vector<std::size_t> members;
  std::int64_t blocks() const { return std::ssize(*hashes); }
};

/// The placement of one batch, unit by unit.
class Placement {
 public:
  Placement(std::span<const BurstReplica> replicas, const BurstRules& rules, std::int64_t total)
      : replicas_(replicas),
        rules_(rules),
        fair_share_((total + std::ssize(replicas) - 1) / std::ssize(replicas)),
        load_(replicas.size()) {}

  void place(const Unit& unit, std::vector<std::optional<std::size_t>>& placed) {
    const std::vector<std::int64_t> matches = matched_blocks(*unit.hashes);
    std::vector<std::int64_t> here(replicas_.size());  // Requests of the unit.
    bool is_first = true;
    for (std::size_t next = 0; next < unit.members.size(); is_first = false) {
      std::optional<std::size_t> target;
      if (is_first && rules_.min_colocate_blocks > 0) target = best_match(matches);
      if (!target) target = least_loaded(here);
      auto run = std::ssize(unit.members) - static_cast<std::int64_t>(next);
      // With every replica at its limit they go round one by one.
      if (rules_.max_per_replica >= 0)
        run = std::min(run, std::max<std::int64_t>(1, rules_.max_per_replica - here[*target]));
      for (std::int64_t i = 0; i < run; ++i) placed[unit.members[next++]] = target;
      if (!rules_.balance_tokens)
        load_[*target] += run;
      else if (here[*target] == 0)  // Blocks that an earlier unit brings there cost nothing.
        load_[*target] += std::max<std::int64_t>(0, unit.blocks() - matches[*target]);
      here[*target] += run;
    }
    for (std::size_t r = 0; r < here.size(); ++r)
      if (here[r] > 0)
        for (const std::uint64_t hash : *unit.hashes) hold(hash, r);
  }

 private:
  bool is_better(std::size_t a, std::size_t b) const {
    if (load_[a] != load_[b]) return load_[a] < load_[b];
    if (replicas_[a].running != replicas_[b].running)
      return replicas_[a].running < replicas_[b].running;
    return replicas_[a].name < replicas_[b].name;
  }
  /// The longest shared prefix among replicas below their fair share.
  std::optional<std::size_t> best_match(const std::vector<std::int64_t>& matches) const {
    std::optional<std::size_t> best;
    for (std::size_t r = 0; r < replicas_.size(); ++r) {
      if (load_[r] >= fair_share_ || matches[r] < rules_.min_colocate_blocks) continue;
      if (!best || matches[r] > matches[*best] ||
          (matches[r] == matches[*best] && is_better(r, *best)))
        best = r;
    }
    return best;
  }
  /// Among replicas below the limit of one unit, or among all when there is none.
  std::size_t least_loaded(const std::vector<std::int64_t>& here) const {
    const auto is_open = [&](std::size_t r) {
      return rules_.max_per_replica < 0 || here[r] < rules_.max_per_replica;
    };
    std::size_t best = 0;
    for (std::size_t r = 1; r < replicas_.size(); ++r)
      if (is_open(r) != is_open(best) ? is_open(r) : is_better(r, best)) best = r;
    return best;
  }
  /// Leading blocks that each replica holds; a block nobody holds ends the walk.
  std::vector<std::int64_t> matched_blocks(const Hashes& hashes) const {
    std::vector<std::int64_t> matches(replicas_.size());
    for (const std::uint64_t hash : hashes) {
      const auto it = holders_.find(hash);
      if (it == holders_.end()) break;
      for (const std::size_t r : it->second) ++matches[r];
    }
    return matches;
  }
  void hold(std::uint64_t hash, std::size_t replica) {
    std::vector<std::size_t>& holders = holders_[hash];
    if (std::find(holders.begin(), holders.end(), replica) == holders.end())
      holders.push_back(replica);
  }

  std::span<const BurstReplica> replicas_;
  const BurstRules& rules_;
  std::int64_t fair_share_;
  std::vector<std::int64_t> load_;  ///< Of the batch, in requests or blocks.
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> holders_;  // Never iterated.
};

/// Groups of one prompt, in order of arrival.
std::vector<Unit> units_of(std::span<const Hashes> prompts) {
  std::vector<Unit> units;
  std::map<Hashes, std::size_t> at;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    if (prompts[i].empty()) continue;
    const auto [it, is_new] = at.emplace(prompts[i], units.size());
    if (is_new) units.push_back({.hashes = &prompts[i], .members = {}});
    units[it->second].members.push_back(i);
  }
  return units;
}

/// Per unit: at least `blocks` leading blocks are also those of another request.
std::vector<bool> shares_prefix(const std::vector<Unit>& units, std::int64_t blocks) {
  const auto lead = [&](const Unit& u) {
    return Hashes(u.hashes->begin(), u.hashes->begin() + blocks);
  };
  std::map<Hashes, std::size_t> requests;
  for (const Unit& u : units)
    if (blocks > 0 && u.blocks() >= blocks) requests[lead(u)] += u.members.size();
  std::vector<bool> shares;
  for (const Unit& u : units)
    shares.push_back(blocks > 0 && u.blocks() >= blocks && requests[lead(u)] >= 2);
  return shares;
}

}  // namespace

std::vector<std::optional<std::size_t>> place_burst(std::span<const Hashes> prompts,
                                                    std::span<const BurstReplica> replicas,
                                                    const BurstRules& rules) {
  std::vector<std::optional<std::size_t>> placed(prompts.size());
  if (replicas.empty()) return placed;
  const std::vector<Unit> all = units_of(prompts);
  const std::vector<bool> shares = shares_prefix(all, rules.min_colocate_blocks);
  std::vector<Unit> units;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].members.size() < 2 && !shares[i]) continue;
    units.push_back(all[i]);
    total += rules.balance_tokens ? all[i].blocks() : std::ssize(all[i].members);
  }
  // Groups before single requests, and long prompts first.
  std::stable_sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) {
    const bool a_group = a.members.size() >= 2, b_group = b.members.size() >= 2;
    return a_group != b_group ? a_group : a.blocks() > b.blocks();
  });
  Placement placement(replicas, rules, total);
  for (const Unit& unit : units) placement.place(unit, placed);
  return placed;
}

BurstPrefixProducer::BurstPrefixProducer(const BurstPrefixParameters& p, const PluginSpec& spec,
                                         BuildContext& context)
    : rules_{.max_per_replica = p.max_per_replica,
             .min_colocate_blocks = p.min_colocate_blocks,
             .balance_tokens = p.balance_by == "tokens"},
      window_(Duration::milliseconds(p.window_ms)),
      max_batch_size_(p.max_batch_size),
      slot_(context.prefix_slot(spec.name)) {
  for (const auto& [key, value] :
       {std::pair("maxPerReplica", p.max_per_replica), std::pair("maxBatchSize", p.max_batch_size)})
    if (value == 0) context.error(spec, key, "must be -1 (no limit) or at least 1 (got 0)");
  if (p.balance_by != "requests" && p.balance_by != "tokens" && !p.balance_by.empty())
    context.error(spec, "balanceBy", "must be requests or tokens (got '" + p.balance_by + "')");
  if (p.max_prefix_tokens > 0 && p.max_prefix_tokens < p.block_size_tokens)
    context.error(spec, "maxPrefixTokensToMatch", "must be 0 or at least blockSizeTokens");
  const ApproxSettings settings{.auto_tune = false,
                                .exact = true,
                                .block_size = p.block_size_tokens,
                                .max_tokens = p.max_prefix_tokens,
                                .max_blocks = 2048};
  scheme_ = settings.scheme(0);
  context.needs().approx_hashes = context.needs().metrics = true;
  if (!context.plugins().approx.want(settings))
    context.error(spec, "", "has other blocks than an approximate prefix producer of the document",
                  "give both the same block size");
  context.plugins().approx.slots.push_back(slot_);
}

std::vector<std::uint64_t> BurstPrefixProducer::hashes_of(const RequestView& request) const {
  std::vector<std::uint64_t> all;
  for_each_prompt(request.approx_hashes, request.approx_hash_ends,
                  [&](std::span<const std::uint64_t> hashes) {
                    const auto own = scheme_.capped(hashes);
                    all.insert(all.end(), own.begin(), own.end());
                  });
  return all;
}

bool BurstPrefixProducer::is_full() const {
  return max_batch_size_ >= 0 && std::ssize(batch_->requests) >= max_batch_size_;
}

SimTime BurstPrefixProducer::on_arrived(const RequestView& request, const EndpointTable& endpoints,
                                        SimTime now) {
  if (placed_.find(request.id) != placed_.end()) return now;
  if (!batch_) {
    batch_.emplace();
    batch_->end = now + window_;
  }
  Batch& batch = *batch_;
  if (std::find(batch.requests.begin(), batch.requests.end(), request.id) != batch.requests.end())
    return batch.end;
  if (is_full()) {
    placed_[request.id] = {.in_batch = false};
    return now;
  }
  batch.requests.push_back(request.id);
  batch.prompts.push_back(hashes_of(request));
  if (batch.replicas.empty() && !batch.prompts.back().empty())
    for (const EndpointRow r : request.subset.empty() ? endpoints.candidates() : request.subset) {
      batch.rows.push_back(r);
      batch.replicas.push_back({.name = endpoints.info(r).id(),
                                .running = static_cast<std::int64_t>(endpoints.running()[r])});
    }
  return batch.end;
}

void BurstPrefixProducer::advance(SimTime now) {
  if (!batch_ || now < batch_->end) return;
  const Batch batch = std::move(*batch_);
  batch_.reset();
  placed_.clear();
  const auto placed = place_burst(batch.prompts, batch.replicas, rules_);
  for (std::size_t i = 0; i < placed.size(); ++i) {
    Placed& p = placed_[batch.requests[i]];
    if (placed[i]) p.row = batch.rows[*placed[i]];
  }
}

void BurstPrefixProducer::produce(Cycle& cycle) const {
  PrefixMatches& m = cycle.prefix(slot_);
  if (m.computed) return;
  m.computed = true;
  const auto it = placed_.find(cycle.request().id);
  // A request that nobody gathered, as in an explanation, was alone in its window.
  const Placed placed = it == placed_.end() ? Placed{} : it->second;
  if (!placed.in_batch) return;
  m.written = true;
  m.keys = m.total_blocks = std::ssize(hashes_of(cycle.request()));
  m.block_size = m.key_tokens = scheme_.block_size;
  if (!placed.row || !cycle.is_candidate(*placed.row)) return;
  m.touched.push_back(*placed.row);
  m.raw[*placed.row] = static_cast<double>(m.total_blocks);
  m.match[*placed.row] = m.cached[*placed.row] = static_cast<std::int32_t>(m.total_blocks);
}

}  // namespace routesim::policies
