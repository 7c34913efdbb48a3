#include "policies/index/approx_prefix_index.h"

#include <deque>

#include "base/check.h"
#include "policies/index/holder_sets.h"
#include "policies/index/slot_table.h"

namespace routesim::policies {

namespace {

/// Leading places at which both lists are equal and differs(i) is 0, looked at eight at a time.
template <class F>
std::size_t count_equal(const std::uint64_t* a, const std::uint64_t* b, std::size_t n, F differs) {
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    std::uint64_t difference = 0;
    for (std::size_t k = i; k < i + 8; ++k) difference |= (a[k] ^ b[k]) | differs(k);
    if (difference != 0) break;
  }
  while (i < n && ((a[i] ^ b[i]) | differs(i)) == 0) ++i;
  return i;
}

}  // namespace

/// One endpoint's LRU of hashes: nodes in arrays, linked by number. The blocks of a prompt come in
/// the order they came in last time, and mostly got neighbouring nodes then: they move together.
class HashLru {
 public:
  /// 0 until the first insertion fixes it.
  std::size_t capacity() const { return capacity_; }
  void set_capacity(std::size_t capacity) {
    capacity_ = capacity;
    // Large ones mostly fill up, and memory that is not touched costs nothing.
    const std::size_t nodes = std::min<std::size_t>(capacity, 1 << 17);
    hashes_.reserve(nodes);
    older_.reserve(nodes);
    newer_.reserve(nodes);
  }
  std::size_t size() const { return table_.count(); }

  /// Makes the hashes the newest, one after the other; calls f(hash) for each one this pushes out.
  template <class F>
  void touch(std::span<const std::uint64_t> hashes, F f) {
    for (std::size_t i = 0; i < hashes.size();) {
      const std::uint32_t n = table_.find(*this, hashes[i]);
      if (n != kNoSlot) {
        i += move_to_end(n, hashes.subspan(i));
        continue;
      }
      table_.look_ahead(hashes, i);
      if (const auto pushed_out = insert(hashes[i++])) f(*pushed_out);
    }
  }
  std::uint64_t key(std::uint32_t n) const { return hashes_[n]; }
  template <class F>
  void for_each(F f) const {
    for (std::uint32_t n = oldest_; n != kNoSlot; n = newer_[n]) f(hashes_[n]);
  }

 private:
  // The node of the first hash and those behind it, as long as they are those of the next hashes.
  // Returns how many moved.
  std::size_t move_to_end(std::uint32_t first, std::span<const std::uint64_t> hashes) {
    std::uint32_t last = first;
    std::size_t moved = 1;
    for (;;) {
      const std::size_t n = count_neighbours(last, hashes.subspan(moved));
      last += static_cast<std::uint32_t>(n);
      moved += n;
      const std::uint32_t next = newer_[last];
      if (moved == hashes.size() || next == kNoSlot || hashes_[next] != hashes[moved]) break;
      last = next;
      ++moved;
    }
    if (last == newest_) return moved;
    unlink(first, last);
    link(first, last);
    return moved;
  }
  // How many of `hashes` have nodes with the numbers behind `last`, each the next newer one.
  std::size_t count_neighbours(std::uint32_t last, std::span<const std::uint64_t> hashes) const {
    const std::size_t most = std::min(hashes.size(), hashes_.size() - last - 1);
    const std::uint32_t* const newer = newer_.data() + last;
    return count_equal(hashes_.data() + last + 1, hashes.data(), most, [&](std::size_t i) {
      return newer[i] ^ (last + static_cast<std::uint32_t>(i) + 1);
    });
  }
  std::optional<std::uint64_t> insert(std::uint64_t hash) {
    std::optional<std::uint64_t> pushed_out;
    std::uint32_t n = oldest_;
    if (table_.count() >= capacity_) {
      pushed_out = hashes_[n];
      if (n + kAhead < hashes_.size()) table_.prefetch(hashes_[n + kAhead]);
      table_.erase(*pushed_out, n);
      unlink(n, n);
      hashes_[n] = hash;
    } else {
      n = static_cast<std::uint32_t>(hashes_.size());
      hashes_.push_back(hash);
      older_.push_back(kNoSlot);
      newer_.push_back(kNoSlot);
    }
    table_.insert(hash, n);
    link(n, n);
    return pushed_out;
  }
  // Nodes that follow each other, the older one first.
  void unlink(std::uint32_t first, std::uint32_t last) {
    const std::uint32_t older = older_[first], newer = newer_[last];
    (older == kNoSlot ? oldest_ : newer_[older]) = newer;
    (newer == kNoSlot ? newest_ : older_[newer]) = older;
  }
  void link(std::uint32_t first, std::uint32_t last) {
    older_[first] = newest_;
    newer_[last] = kNoSlot;
    (newest_ == kNoSlot ? oldest_ : newer_[newest_]) = first;
    newest_ = last;
  }
  /// Nodes that are pushed out are mostly neighbours, too.
  static constexpr std::uint32_t kAhead = 8;

  std::size_t capacity_ = 0;
  std::vector<std::uint64_t> hashes_;  // By node, as are the next two.
  std::vector<std::uint32_t> older_, newer_;
  SlotTable table_;
  std::uint32_t oldest_ = kNoSlot;
  std::uint32_t newest_ = kNoSlot;
};

class ApproxPrefixIndex::Impl {
 public:
  explicit Impl(std::size_t capacity) : default_capacity(capacity), sets(1, RowOrder::kSorted) {
    ROUTESIM_CHECK(capacity >= 1, "an endpoint's LRU has room for at least one hash");
  }

  std::uint64_t key(std::uint32_t n) const { return hash[n]; }
  std::uint32_t find(std::uint64_t h) const { return table.find(*this, h); }
  std::uint32_t follow(std::uint32_t previous, std::uint64_t h) const {
    if (previous != kNoSlot) {
      if (previous + 1 < hash.size() && is(previous + 1, h)) return previous + 1;
      if (is(hint[previous], h)) return hint[previous];
    }
    return find(h);
  }
  bool is(std::uint32_t n, std::uint64_t h) const { return hash[n] == h && set[n] != 0; }
  /// So many of `hashes` stand in the entries from n on, which have the same holders.
  std::size_t count_run(std::uint32_t n, std::span<const std::uint64_t> hashes) const {
    const std::size_t most = std::min(hashes.size(), hash.size() - n);
    const SetId* const sets_of = set.data() + n;
    return count_equal(hash.data() + n, hashes.data(), most,
                       [&](std::size_t i) { return sets_of[i] ^ sets_of[0]; });
  }
  std::uint32_t new_entry(std::uint64_t h) {
    auto n = static_cast<std::uint32_t>(hash.size());
    if (free.empty()) {
      hash.push_back(h);
      set.push_back(0);
      hint.push_back(0);
    } else {
      n = free.front();
      free.pop_front();
      hash[n] = h;
    }
    table.insert(h, n);
    return n;
  }
  void set_holder(std::span<const std::uint64_t> hashes, Row row) {
    std::uint32_t previous = kNoSlot;
    SetId from = kNoSlot, to = 0;
    for (std::size_t i = 0; i < hashes.size();) {
      std::uint32_t n = follow(previous, hashes[i]);
      if (n == kNoSlot) {
        table.look_ahead(hashes, i);
        n = new_entry(hashes[i]);
      }
      if (previous != kNoSlot && n != previous + 1) hint[previous] = n;
      // Others that are new are not in the table yet.
      const std::size_t run = set[n] == 0 ? 1 : count_run(n, hashes.subspan(i));
      if (set[n] != from) {
        from = set[n];
        to = sets.with(from, row).set;
      }
      replace(n, run, to);
      previous = n + static_cast<std::uint32_t>(run) - 1;
      i += run;
    }
  }
  /// Takes one holder of hashes away, which mostly follow each other in a prompt.
  struct Dropped {
    std::uint32_t previous = kNoSlot;
    SetId from = kNoSlot, to = 0;
  };
  void drop_holder(std::uint64_t h, Row row, Dropped& last) {
    const std::uint32_t n = follow(last.previous, h);
    if (n == kNoSlot) return;
    last.previous = n;
    if (set[n] != last.from) {
      last.from = set[n];
      last.to = sets.without(last.from, row);
    }
    replace(n, 1, last.to);
    if (last.to != 0) return;
    table.erase(h, n);
    free.push_back(n);
  }
  /// Gives other holders to `run` entries from n on, which have the same.
  void replace(std::uint32_t n, std::size_t run, SetId to) {
    const SetId from = set[n];
    if (from == to) return;
    if (to != 0) sets.acquire(to, static_cast<std::uint32_t>(run));
    if (from != 0) sets.release(from, static_cast<std::uint32_t>(run));
    std::fill_n(set.begin() + n, run, to);
  }
  /// Calls f(set, run length) for runs of equal holders, up to the first hash without any.
  template <class F>
  void for_each_run(std::span<const std::uint64_t> hashes, F f) const {
    std::uint32_t previous = kNoSlot;
    for (std::size_t i = 0; i < hashes.size();) {
      const std::uint32_t n = follow(previous, hashes[i]);
      if (n == kNoSlot) break;
      const std::size_t run = count_run(n, hashes.subspan(i));
      f(set[n], static_cast<std::uint32_t>(run));
      previous = n + static_cast<std::uint32_t>(run) - 1;
      i += run;
    }
  }

  std::size_t default_capacity;
  // Entries: the hash, its endpoints as sorted rows (0 = the entry is free), and the entry that
  // followed it in a prompt, unless that is the next one.
  std::vector<std::uint64_t> hash;
  std::vector<SetId> set;
  std::vector<std::uint32_t> hint;
  /// The first one is used first: then the blocks of a prompt get neighbouring entries.
  std::deque<std::uint32_t> free;
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
  if (lru.capacity() == 0) lru.set_capacity(capacity != 0 ? capacity : impl_->default_capacity);
  const Row row = endpoint.value();
  Impl::Dropped dropped;
  lru.touch(hashes, [&](std::uint64_t hash) { impl_->drop_holder(hash, row, dropped); });
  impl_->set_holder(hashes, row);
}

void ApproxPrefixIndex::remove_endpoint(EndpointId endpoint) {
  if (endpoint.value() >= impl_->lrus.size()) return;
  HashLru& lru = impl_->lrus[endpoint.value()];
  Impl::Dropped dropped;
  lru.for_each([&](std::uint64_t hash) { impl_->drop_holder(hash, endpoint.value(), dropped); });
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
  if (n == kNoSlot) return result;
  for (const Row row : impl_->sets.rows(impl_->set[n])) result.emplace_back(row);
  return result;
}

std::size_t ApproxPrefixIndex::lru_size(EndpointId endpoint) const {
  return endpoint.value() < impl_->lrus.size() ? impl_->lrus[endpoint.value()].size() : 0;
}

std::size_t ApproxPrefixIndex::distinct_hashes() const { return impl_->table.count(); }

}  // namespace routesim::policies
