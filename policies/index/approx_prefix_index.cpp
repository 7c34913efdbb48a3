#include "policies/index/approx_prefix_index.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "policies/index/holder_sets.h"
#include "policies/index/slot_table.h"

namespace routesim::policies {

/// One endpoint's LRU of hashes: nodes in an array, linked by number.
class HashLru {
 public:
  std::size_t capacity = 0;  ///< 0 until the first insertion fixes it.
  std::size_t size() const { return table_.count(); }

  /// Makes `hash` the newest; returns the hash this pushed out, if any.
  std::optional<std::uint64_t> touch(std::uint64_t hash) {
    std::uint32_t n = find(hash);
    if (n != kNone) {
      if (n == newest_) return std::nullopt;
      unlink(n);
      link(n);
      return std::nullopt;
    }
    std::optional<std::uint64_t> pushed_out;
    if (table_.count() >= capacity) {
      n = oldest_;
      pushed_out = nodes_[n].hash;
      table_.erase(*pushed_out, n);
      unlink(n);
    } else {
      n = static_cast<std::uint32_t>(nodes_.size());
      nodes_.emplace_back();
    }
    nodes_[n].hash = hash;
    table_.insert(hash, n);
    link(n);
    return pushed_out;
  }
  std::uint64_t key(std::uint32_t n) const { return nodes_[n].hash; }
  template <class F>
  void for_each(F f) const {
    for (std::uint32_t n = oldest_; n != kNone; n = nodes_[n].newer) f(nodes_[n].hash);
  }

 private:
  struct Node {
    std::uint64_t hash = 0;
    std::uint32_t older = kNone;
    std::uint32_t newer = kNone;
  };
  // The blocks of a prompt mostly come in the order they came in last time, so the node behind the
  // previous one is tried first. Nodes are never free, so its hash can be trusted.
  std::uint32_t find(std::uint64_t hash) {
    std::uint32_t n = expected_;
    if (n == kNone || nodes_[n].hash != hash) n = table_.find(*this, hash);
    expected_ = n == kNone ? kNone : nodes_[n].newer;
    return n;
  }
  void unlink(std::uint32_t n) {
    const Node& node = nodes_[n];
    (node.older == kNone ? oldest_ : nodes_[node.older].newer) = node.newer;
    (node.newer == kNone ? newest_ : nodes_[node.newer].older) = node.older;
  }
  void link(std::uint32_t n) {
    nodes_[n].older = newest_;
    nodes_[n].newer = kNone;
    (newest_ == kNone ? oldest_ : nodes_[newest_].newer) = n;
    newest_ = n;
  }
  std::vector<Node> nodes_;
  SlotTable table_;
  std::uint32_t oldest_ = kNone;
  std::uint32_t newest_ = kNone;
  std::uint32_t expected_ = kNone;
};

class ApproxPrefixIndex::Impl {
 public:
  explicit Impl(std::size_t capacity) : default_capacity(capacity), sets(1, RowOrder::kSorted) {
    ROUTESIM_CHECK(capacity >= 1, "an endpoint's LRU has room for at least one hash");
  }

  struct Entry {
    std::uint64_t hash = 0;
    SetId set = 0;           ///< Endpoints, as sorted rows; 0 = the entry is free.
    std::uint32_t hint = 0;  ///< The entry that followed this one in a prompt, probably.
  };

  std::uint64_t key(std::uint32_t n) const { return entries[n].hash; }
  std::uint32_t find(std::uint64_t hash) const { return table.find(*this, hash); }
  std::uint32_t follow(std::uint32_t previous, std::uint64_t hash) const {
    if (previous != kNone) {
      const Entry& next = entries[entries[previous].hint];
      if (next.hash == hash && next.set != 0) return entries[previous].hint;
    }
    return find(hash);
  }
  std::uint32_t set_holder(std::uint32_t previous, std::uint64_t hash, Row row) {
    std::uint32_t n = follow(previous, hash);
    if (n == kNone) {
      if (free.empty()) {
        n = static_cast<std::uint32_t>(entries.size());
        entries.emplace_back();
      } else {
        n = free.back();
        free.pop_back();
      }
      entries[n] = {.hash = hash};
      table.insert(hash, n);
    }
    if (previous != kNone) entries[previous].hint = n;
    replace(n, sets.with(entries[n].set, row).set);
    return n;
  }
  void drop_holder(std::uint64_t hash, Row row) {
    const std::uint32_t n = find(hash);
    if (n == kNone) return;
    replace(n, sets.without(entries[n].set, row));
    if (entries[n].set != 0) return;
    table.erase(hash, n);
    free.push_back(n);
  }
  void replace(std::uint32_t n, SetId to) {
    const SetId from = entries[n].set;
    if (from == to) return;
    if (to != 0) sets.acquire(to);
    if (from != 0) sets.release(from);
    entries[n].set = to;
  }
  /// Calls f(set, run length) for runs of hashes with equal holders, up to the first hash without
  /// any.
  template <class F>
  void for_each_run(std::span<const std::uint64_t> hashes, F f) const {
    SetId set = 0;
    std::uint32_t run = 0;
    std::uint32_t previous = kNone;
    for (const std::uint64_t hash : hashes) {
      previous = follow(previous, hash);
      if (previous == kNone) break;
      if (entries[previous].set != set) {
        if (run > 0) f(set, run);
        set = entries[previous].set;
        run = 0;
      }
      ++run;
    }
    if (run > 0) f(set, run);
  }

  std::size_t default_capacity;
  std::vector<Entry> entries;
  std::vector<std::uint32_t> free;
  SlotTable table;
  HolderSets sets;
  std::vector<HashLru> lrus;  // By endpoint.
};

ApproxPrefixIndex::ApproxPrefixIndex(std::size_t default_capacity)
    : impl_(std::make_unique<Impl>(default_capacity)) {}
ApproxPrefixIndex::~ApproxPrefixIndex() = default;
ApproxPrefixIndex::ApproxPrefixIndex(ApproxPrefixIndex&&) noexcept = default;
ApproxPrefixIndex& ApproxPrefixIndex::operator=(ApproxPrefixIndex&&) noexcept = default;

void ApproxPrefixIndex::add(EndpointId endpoint, std::span<const std::uint64_t> hashes,
                            std::size_t capacity) {
  if (endpoint.value() >= impl_->lrus.size()) impl_->lrus.resize(endpoint.value() + 1);
  HashLru& lru = impl_->lrus[endpoint.value()];
  if (lru.capacity == 0) lru.capacity = capacity != 0 ? capacity : impl_->default_capacity;
  const Row row = endpoint.value();
  for (const std::uint64_t hash : hashes)
    if (const auto pushed_out = lru.touch(hash)) impl_->drop_holder(*pushed_out, row);
  std::uint32_t previous = kNone;
  for (const std::uint64_t hash : hashes) previous = impl_->set_holder(previous, hash, row);
}

void ApproxPrefixIndex::remove_endpoint(EndpointId endpoint) {
  if (endpoint.value() >= impl_->lrus.size()) return;
  HashLru& lru = impl_->lrus[endpoint.value()];
  lru.for_each([&](std::uint64_t hash) { impl_->drop_holder(hash, endpoint.value()); });
  lru = {};
}

void ApproxPrefixIndex::add_matches(std::span<const std::uint64_t> hashes,
                                    std::span<std::uint32_t> counts) const {
  impl_->for_each_run(hashes, [&](SetId set, std::uint32_t run) {
    for (const Row row : impl_->sets.rows(set))
      if (row < counts.size()) counts[row] += run;
  });
}

std::vector<EndpointId> ApproxPrefixIndex::holders(std::uint64_t hash) const {
  std::vector<EndpointId> result;
  const std::uint32_t n = impl_->find(hash);
  if (n == kNone) return result;
  for (const Row row : impl_->sets.rows(impl_->entries[n].set)) result.emplace_back(row);
  return result;
}

std::size_t ApproxPrefixIndex::lru_size(EndpointId endpoint) const {
  return endpoint.value() < impl_->lrus.size() ? impl_->lrus[endpoint.value()].size() : 0;
}

std::size_t ApproxPrefixIndex::distinct_hashes() const { return impl_->table.count(); }

}  // namespace routesim::policies
