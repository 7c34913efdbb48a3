// PrefixIndex: the public face. prefix_index_impl.h has the work.
#include "policies/index/prefix_index.h"

#include "policies/index/prefix_index_impl.h"

namespace routesim::policies {

using Impl = PrefixIndexImpl;

namespace {
Row row_of(EndpointId endpoint, TierId tier, std::optional<std::uint32_t> group) {
  return pack_row({.endpoint = endpoint, .tier = tier, .speculative = false, .group = group});
}
HolderEntry speculative(EndpointId endpoint) {
  return {.endpoint = endpoint, .tier = kNoTier, .speculative = true, .group = std::nullopt};
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

void PrefixIndex::match(std::span<const BlockKey> keys, MatchScratch& scratch, bool dry_run) {
  impl_->match(keys, scratch, dry_run);
}

void PrefixIndex::tier_counts(std::span<const BlockKey> keys,
                              std::vector<TierCount>& counts) const {
  counts.clear();
  impl_->tier_counts(keys, counts);
}

std::optional<BlockKey> PrefixIndex::resolve_engine_key(std::uint64_t engine_key) {
  return impl_->resolve_engine_key(engine_key);
}

std::vector<BlockKey> PrefixIndex::request_keys_of(std::uint64_t engine_key) const {
  const std::uint32_t s = impl_->find(engine_key);
  if (s == kNoSlot || !Impl::is_engine(impl_->slots[s])) return {};
  const auto keys = impl_->mapped_keys(s);
  return {keys.begin(), keys.end()};
}

std::vector<HolderEntry> PrefixIndex::holders(BlockKey key) const {
  std::vector<HolderEntry> result;
  const std::uint32_t s = impl_->find(key);
  if (s == kNoSlot) return result;
  for (const Row row : impl_->sets.rows(impl_->slots[s].set)) result.push_back(unpack_row(row));
  return result;
}

std::vector<BlockKey> PrefixIndex::keys_by_recency() const {
  std::vector<BlockKey> keys;
  for (const std::uint32_t s : impl_->requests.order(impl_->slots, Impl::is_request))
    keys.push_back(impl_->slots.key(s));
  return keys;
}

std::size_t PrefixIndex::block_count(EndpointId endpoint) const {
  std::size_t blocks = 0;
  const auto holds = [endpoint](Row row) { return row_endpoint(row) == endpoint.value(); };
  for (std::uint32_t s = 0; s < impl_->slots.size();) {
    if (!impl_->slots.live(s)) {
      ++s;
      continue;
    }
    const auto& run = impl_->slots[s];
    const std::span<const Row> rows = impl_->sets.rows(run.set);
    if (std::any_of(rows.begin(), rows.end(), holds)) blocks += run.end() - s;
    s = run.end();
  }
  return blocks;
}

std::size_t PrefixIndex::request_key_count() const { return impl_->requests.count(); }
std::size_t PrefixIndex::engine_key_count() const { return impl_->engines.count(); }
const PrefixIndexOptions& PrefixIndex::options() const { return impl_->options; }

std::size_t PrefixIndex::memory_bytes() const {
  std::size_t lists = impl_->mappings.capacity() * sizeof(Mapping);
  for (const auto& m : impl_->mappings) lists += m.several.capacity() * sizeof(BlockKey);
  return sizeof(Impl) + impl_->slots.memory_bytes() + impl_->requests.memory_bytes() +
         impl_->engines.memory_bytes() + impl_->free_mappings.capacity() * sizeof(std::uint32_t) +
         impl_->table.memory_bytes() + impl_->sets.memory_bytes() + impl_->counts.memory_bytes() +
         lists;
}

// ---- Speculative entries -----------------------------------------------------------------------

void SpeculativeEntries::add(PrefixIndex& index, EndpointId endpoint,
                             std::span<const BlockKey> keys, SimTime now) {
  if (keys.empty()) return;
  const HolderEntry entry = speculative(endpoint);
  index.add({}, keys, std::span(&entry, 1));
  Item& item = queue_.emplace_back();
  item.due = ttl_ < SimTime::max() - now ? now + ttl_ : SimTime::max();
  item.endpoint = endpoint;
  if (!spare_.empty()) {
    item.keys = std::move(spare_.back());
    spare_.pop_back();
  }
  item.keys.assign(keys.begin(), keys.end());
}

void SpeculativeEntries::expire(PrefixIndex& index, SimTime now) {
  for (; !queue_.empty() && queue_.front().due <= now; queue_.pop_front()) {
    Item& item = queue_.front();
    const HolderEntry entry = speculative(item.endpoint);
    index.evict_request_keys(item.keys, std::span(&entry, 1));
    spare_.push_back(std::move(item.keys));
  }
}

}  // namespace routesim::policies
