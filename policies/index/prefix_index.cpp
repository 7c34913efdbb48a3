// PrefixIndex: lookups, and the public face.
#include "policies/index/prefix_index.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "policies/index/prefix_index_impl.h"

namespace routesim::policies {

using Impl = PrefixIndexImpl;

namespace {
// Above this many comparisons a set is indexed by endpoint instead of searched.
constexpr std::size_t kSearchLimit = 512;
}  // namespace

// The slot of a request key, or kNone.
template <bool Shared>
std::uint32_t Impl::locate(std::uint32_t previous, std::uint64_t key, bool likely) {
  const std::uint32_t near = guess<Shared>(previous, key);
  if (near != kNone) return slots[near].set != 0 ? near : kNone;
  const std::uint32_t s = likely ? find(key) : table.find_unlikely(slots, key);
  if (s == kNone || slots[s].set == 0) return kNone;
  remember<Shared>(previous, s);
  return s;
}

// Concurrent readers only write `hint` and `request_recency`.
template <bool Shared>
bool Impl::match(std::span<const BlockKey> keys, MatchScratch& scratch) {
  scratch.matches_.clear();
  scratch.alive_.clear();
  std::uint64_t stamp = Shared ? requests.reserve_stamps(keys.size()) : 0;
  SetId run_set = 0;
  std::uint32_t length = 0;
  std::uint32_t previous = kNone;
  bool scoring = true;
  for (std::size_t i = 0; i < keys.size();) {
    const std::uint32_t s = locate<Shared>(previous, keys[i], scoring);
    const std::uint32_t last = std::exchange(previous, s);
    if (s == kNone) {
      // The rest cannot score any more, but keys further on are still used, which refreshes them.
      if (scoring) credit_run(length, scratch);
      if (scoring) table.look_at(keys.subspan(i + 1));
      scoring = false;
      table.look_ahead(keys, ++i);
      continue;
    }
    const std::size_t n = slots.common(s, keys.subspan(i));
    if constexpr (Shared) {
      KeyRun& run = slots.shared(s);
      if (run.length != n) return false;
      std::atomic_ref(run.request_recency).store(stamp, std::memory_order_relaxed);
      stamp += n;
    } else if (requests.linked()) [[unlikely]] {
      requests.touch(slots, s);
    } else {
      requests.stamp(slots.cut(s, n));
      slots.join(last, s);
    }
    const SetId set = slots[s].set;
    if (scoring && set == run_set) {
      length += static_cast<std::uint32_t>(n);
    } else if (scoring) {
      credit_run(length, scratch);
      run_set = set;
      length = static_cast<std::uint32_t>(n);
      i == 0 ? begin_alive(run_set, scratch) : narrow_alive(run_set, scratch);
      if (scratch.alive_.empty()) scoring = false;
    }
    previous = s + static_cast<std::uint32_t>(n) - 1;
    i += n;
  }
  if (scoring) credit_run(length, scratch);
  return true;
}

// Adds `length` blocks to every endpoint still alive. The raw score is a sum of doubles in key
// order; a product gives the same bits only while everything is a small integer.
void Impl::credit_run(std::uint32_t length, MatchScratch& scratch) {
  if (length == 0) return;
  for (const MatchScratch::Alive& a : scratch.alive_) {
    PrefixMatch& m = scratch.matches_[a.match];
    m.blocks += length;
    if (a.weight == 1.0 && m.weighted == std::trunc(m.weighted)) {
      m.weighted += length;
    } else {
      for (std::uint32_t i = 0; i < length; ++i) m.weighted += a.weight;
    }
  }
}

void Impl::begin_alive(SetId set, MatchScratch& scratch) const {
  const auto rows = sets.rows(set);
  const bool large = rows.size() * rows.size() > kSearchLimit;
  if (large) {
    index_best_weights(rows, scratch);
    ++scratch.epoch_;  // Each endpoint is taken when met first; from then on it is out of date.
  }
  for (const Row row : rows) {
    const std::uint32_t e = row_endpoint(row);
    double w = 0;
    if (large) {
      if (scratch.seen_[e] == scratch.epoch_) continue;
      scratch.seen_[e] = scratch.epoch_;
      w = scratch.best_[e];
    } else {
      if (std::any_of(scratch.alive_.begin(), scratch.alive_.end(),
                      [e](const MatchScratch::Alive& a) { return a.endpoint == e; }))
        continue;
      best_weight(rows, e, w);
    }
    scratch.alive_.push_back(
        {.match = static_cast<std::uint32_t>(scratch.matches_.size()), .endpoint = e, .weight = w});
    scratch.matches_.push_back({.weighted = 0, .endpoint = EndpointId(e), .blocks = 0});
  }
}

void Impl::narrow_alive(SetId set, MatchScratch& scratch) const {
  const auto rows = sets.rows(set);
  const bool large = rows.size() * scratch.alive_.size() > kSearchLimit;
  if (large) index_best_weights(rows, scratch);
  std::size_t kept = 0;
  for (MatchScratch::Alive a : scratch.alive_) {
    if (large) {
      if (a.endpoint >= scratch.seen_.size() || scratch.seen_[a.endpoint] != scratch.epoch_)
        continue;
      a.weight = scratch.best_[a.endpoint];
    } else if (!best_weight(rows, a.endpoint, a.weight)) {
      continue;
    }
    scratch.alive_[kept++] = a;
  }
  scratch.alive_.resize(kept);
}

// The largest weight among an endpoint's rows; false when it has none.
bool Impl::best_weight(std::span<const Row> rows, std::uint32_t endpoint, double& best) const {
  bool found = false;
  for (const Row row : rows) {
    if (row_endpoint(row) != endpoint) continue;
    best = found ? std::max(best, weight(row)) : weight(row);
    found = true;
  }
  return found;
}

void Impl::index_best_weights(std::span<const Row> rows, MatchScratch& scratch) const {
  ++scratch.epoch_;
  for (const Row row : rows) {
    const std::uint32_t e = row_endpoint(row);
    if (e >= scratch.seen_.size()) {
      scratch.seen_.resize(e + 1, 0);
      scratch.best_.resize(e + 1, 0);
    }
    const bool first = scratch.seen_[e] != scratch.epoch_;
    scratch.seen_[e] = scratch.epoch_;
    scratch.best_[e] = first ? weight(row) : std::max(scratch.best_[e], weight(row));
  }
}

std::vector<TierCount> Impl::tier_counts(std::span<const BlockKey> keys,
                                         EndpointId endpoint) const {
  std::vector<TierCount> result;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::uint32_t s = find(keys[i]);
    if (s == kNone || slots[s].set == 0) break;
    bool any = false;
    for (const Row row : sets.rows(slots[s].set)) {
      if (row_endpoint(row) != endpoint.value()) continue;
      // Rows of several cache groups are one block of their tier.
      const auto same = std::find_if(result.begin(), result.end(), [row](const TierCount& c) {
        return c.tier == row_tier(row) && c.speculative == row_speculative(row);
      });
      if (same == result.end()) {
        if (i == 0)
          result.push_back(
              {.tier = row_tier(row), .speculative = row_speculative(row), .blocks = 1});
        any = any || i == 0;
      } else if (same->blocks == i) {
        same->blocks = static_cast<std::uint32_t>(i + 1);
        any = true;
      } else if (same->blocks == i + 1) {
        any = true;
      }
    }
    if (!any) break;
  }
  std::sort(result.begin(), result.end(), [](const TierCount& a, const TierCount& b) {
    return std::pair(a.speculative, a.tier) < std::pair(b.speculative, b.tier);
  });
  return result;
}

std::optional<BlockKey> Impl::resolve_engine_key(std::uint64_t engine_key) {
  const std::uint32_t s = find(engine_key);
  if (s == kNone || !is_engine(slots[s])) return std::nullopt;
  engines.touch(slots, s);
  return mapped_keys(s).back();
}

// ---- Public face
// ----------------------------------------------------------------------------------

namespace {
Row row_of(EndpointId endpoint, TierId tier, std::optional<std::uint32_t> group) {
  return pack_row({.endpoint = endpoint, .tier = tier, .speculative = false, .group = group});
}
}  // namespace

PrefixIndex::PrefixIndex(PrefixIndexOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
PrefixIndex::~PrefixIndex() = default;
PrefixIndex::PrefixIndex(PrefixIndex&&) noexcept = default;
PrefixIndex& PrefixIndex::operator=(PrefixIndex&&) noexcept = default;

bool PrefixIndex::stored(EndpointId endpoint, TierId tier, std::uint64_t parent,
                         std::span<const std::uint64_t> engine_keys,
                         std::span<const BlockKey> request_keys, bool tokens_present,
                         std::optional<std::uint32_t> group) {
  return impl_->stored(row_of(endpoint, tier, group), parent, engine_keys, request_keys,
                       tokens_present);
}

void PrefixIndex::removed(EndpointId endpoint, TierId tier,
                          std::span<const std::uint64_t> engine_keys,
                          std::optional<std::uint32_t> group) {
  impl_->removed(row_of(endpoint, tier, group), engine_keys);
}

void PrefixIndex::cleared(EndpointId endpoint) {
  if (impl_->options.clear_on_all_blocks_cleared) impl_->clear(endpoint.value());
}

void PrefixIndex::remove_endpoint(EndpointId endpoint) { impl_->clear(endpoint.value()); }

void PrefixIndex::add(std::span<const std::uint64_t> engine_keys,
                      std::span<const BlockKey> request_keys,
                      std::span<const HolderEntry> entries) {
  impl_->add(engine_keys, request_keys, entries);
}

void PrefixIndex::evict_engine_key(std::uint64_t engine_key, std::span<const HolderEntry> entries) {
  impl_->evict_engine_key(engine_key, entries);
}

void PrefixIndex::evict_request_key(BlockKey request_key, std::span<const HolderEntry> entries) {
  impl_->evict_request_keys({&request_key, 1}, entries);
}

void PrefixIndex::evict_request_keys(std::span<const BlockKey> request_keys,
                                     std::span<const HolderEntry> entries) {
  impl_->evict_request_keys(request_keys, entries);
}

void PrefixIndex::expect(BlockKey first) const { impl_->table.prefetch(first); }

void PrefixIndex::match(std::span<const BlockKey> keys, MatchScratch& scratch) {
  impl_->match<false>(keys, scratch);
}

void PrefixIndex::match(std::span<const BlockKey> keys, std::span<const EndpointId> candidates,
                        std::span<PrefixMatch> out, MatchScratch& scratch) {
  ROUTESIM_CHECK(out.size() == candidates.size(), "one result per candidate");
  impl_->match<false>(keys, scratch);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    out[i].weighted = 0;
    out[i].endpoint = candidates[i];
    out[i].blocks = 0;
  }
  for (const PrefixMatch& m : scratch.matches_) {
    const std::size_t e = m.endpoint.value();
    if (e < candidates.size() && candidates[e] == m.endpoint) {
      out[e] = m;
      continue;
    }
    const auto at = std::find(candidates.begin(), candidates.end(), m.endpoint);
    if (at != candidates.end()) out[static_cast<std::size_t>(at - candidates.begin())] = m;
  }
}

std::vector<TierCount> PrefixIndex::tier_counts(std::span<const BlockKey> keys,
                                                EndpointId endpoint) const {
  return impl_->tier_counts(keys, endpoint);
}

std::optional<BlockKey> PrefixIndex::resolve_engine_key(std::uint64_t engine_key) {
  return impl_->resolve_engine_key(engine_key);
}

std::vector<BlockKey> PrefixIndex::request_keys_of(std::uint64_t engine_key) const {
  const std::uint32_t s = impl_->find(engine_key);
  if (s == kNone || !Impl::is_engine(impl_->slots[s])) return {};
  const auto keys = impl_->mapped_keys(s);
  return {keys.begin(), keys.end()};
}

std::vector<HolderEntry> PrefixIndex::holders(BlockKey key) const {
  std::vector<HolderEntry> result;
  const std::uint32_t s = impl_->find(key);
  if (s == kNone) return result;
  for (const Row row : impl_->sets.rows(impl_->slots[s].set)) result.push_back(unpack_row(row));
  return result;
}

std::vector<BlockKey> PrefixIndex::keys_by_recency() const {
  std::vector<BlockKey> keys;
  for (const std::uint32_t s : impl_->requests.order(impl_->slots, Impl::is_request))
    keys.push_back(impl_->slots.key(s));
  return keys;
}

std::size_t PrefixIndex::request_key_count() const { return impl_->requests.count(); }
std::size_t PrefixIndex::engine_key_count() const { return impl_->engines.count(); }
const PrefixIndexOptions& PrefixIndex::options() const { return impl_->options; }

std::size_t PrefixIndex::memory_bytes() const {
  std::size_t lists = impl_->mappings.capacity() * sizeof(Impl::Mapping);
  for (const auto& m : impl_->mappings) lists += m.several.capacity() * sizeof(BlockKey);
  return sizeof(Impl) + impl_->slots.memory_bytes() +
         (impl_->free_slots.capacity() + impl_->free_mappings.capacity()) * sizeof(std::uint32_t) +
         impl_->table.memory_bytes() + impl_->sets.memory_bytes() + impl_->once.memory_bytes() +
         impl_->counts.memory_bytes() + lists;
}

bool PrefixIndex::supports_shared_match() const { return !impl_->requests.linked(); }

bool PrefixIndex::match_shared(std::span<const BlockKey> keys, MatchScratch& scratch) const {
  ROUTESIM_DCHECK(supports_shared_match(), "lookups relink keys once the cap has bound");
  return impl_->match<true>(keys, scratch);
}

// ---- Speculative entries
// --------------------------------------------------------------------------

void SpeculativeEntries::add(PrefixIndex& index, EndpointId endpoint,
                             std::span<const BlockKey> keys, SimTime now) {
  if (keys.empty()) return;
  const HolderEntry entry{
      .endpoint = endpoint, .tier = kNoTier, .speculative = true, .group = std::nullopt};
  index.add({}, keys, std::span(&entry, 1));
  Item& item = queue_.emplace_back();
  item.due = ttl_ < SimTime::max() - now ? now + ttl_ : SimTime::max();
  item.endpoint = endpoint;
  if (!spare_.empty()) {
    item.keys = std::move(spare_.back());
    spare_.pop_back();
  }
  item.first = keys.front();
  item.keys.assign(keys.begin(), keys.end());
}

void SpeculativeEntries::expire(PrefixIndex& index, SimTime now) {
  for (; !queue_.empty() && queue_.front().due <= now; queue_.pop_front()) {
    Item& item = queue_.front();
    const HolderEntry entry{
        .endpoint = item.endpoint, .tier = kNoTier, .speculative = true, .group = std::nullopt};
    index.evict_request_keys(item.keys, std::span(&entry, 1));
    spare_.push_back(std::move(item.keys));
  }
  if (!queue_.empty()) index.expect(queue_.front().first);
}

}  // namespace routesim::policies
