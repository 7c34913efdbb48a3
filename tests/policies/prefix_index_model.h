// The prefix index as one would write it first: lists, maps and no cleverness. The property tests
// compare the real one with it after every operation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "policies/index/prefix_index.h"

namespace routesim::test {

using policies::BlockKey;
using policies::HolderEntry;
using policies::PrefixMatch;

/// A bounded map that forgets the least recently used key, like hashicorp's LRU.
template <class Value>
class ModelLru {
 public:
  explicit ModelLru(std::size_t cap) : cap_(cap) {}
  Value* peek(std::uint64_t key) {
    for (auto& [k, v] : items_)
      if (k == key) return &v;
    return nullptr;
  }
  Value* get(std::uint64_t key) {
    for (auto it = items_.begin(); it != items_.end(); ++it) {
      if (it->first != key) continue;
      items_.splice(items_.end(), items_, it);
      return &items_.back().second;
    }
    return nullptr;
  }
  Value& put(std::uint64_t key, Value value) {
    if (Value* old = get(key)) return *old = std::move(value);
    items_.emplace_back(key, std::move(value));
    if (items_.size() > cap_) items_.pop_front();
    return items_.back().second;
  }
  void erase(std::uint64_t key) {
    items_.remove_if([key](const auto& item) { return item.first == key; });
  }
  std::list<std::pair<std::uint64_t, Value>>& items() { return items_; }

 private:
  std::size_t cap_;
  std::list<std::pair<std::uint64_t, Value>> items_;  // Least recently used first.
};

/// The reference index.
class ModelIndex {
 public:
  explicit ModelIndex(policies::PrefixIndexOptions options)
      : options_(std::move(options)), requests(options_.size), engines(options_.size) {}

  bool stored(const HolderEntry& entry, std::uint64_t parent,
              const std::vector<std::uint64_t>& engine_keys, const std::vector<BlockKey>& keys,
              bool tokens_present) {
    if (parent != 0 && !engines.get(parent)) return false;
    std::vector<std::uint64_t> counted = engine_keys;
    if (keys.empty()) {
      if (tokens_present) return true;
      bool any = false;
      for (const std::uint64_t e : engine_keys) {
        const auto* list = engines.get(e);
        if (!list) continue;
        place(list->back(), entry);
        any = true;
      }
      if (!any) return true;
    } else {
      add(engine_keys, keys, {entry});
    }
    if (options_.count_duplicates)
      for (const std::uint64_t e : counted) ++counts_[{e, entry}];
    return true;
  }

  void removed(const HolderEntry& entry, const std::vector<std::uint64_t>& engine_keys) {
    for (const std::uint64_t e : engine_keys) {
      if (options_.count_duplicates) {
        const auto at = counts_.find({e, entry});
        if (at != counts_.end()) {
          if (at->second > 1) {
            --at->second;
            continue;
          }
          counts_.erase(at);
        }
      }
      evict_engine_key(e, {entry});
    }
  }

  void clear(EndpointId endpoint) {
    for (auto& [key, holders] : requests.items())
      std::erase_if(holders, [&](const HolderEntry& h) { return h.endpoint == endpoint; });
    requests.items().remove_if([](const auto& item) { return item.second.empty(); });
    std::erase_if(counts_, [&](const auto& c) { return c.first.second.endpoint == endpoint; });
  }

  void add(const std::vector<std::uint64_t>& engine_keys, const std::vector<BlockKey>& keys,
           const std::vector<HolderEntry>& entries) {
    const std::size_t e = engine_keys.size();
    const std::size_t r = keys.size();
    std::vector<std::vector<BlockKey>> lists(e);
    if (e > 0)
      for (std::size_t i = 0, n = std::max(e, r); i < n; ++i)
        lists[i * e / n].push_back(keys[i * r / n]);
    for (std::size_t i = 0; i < e; ++i) engines.put(engine_keys[i], lists[i]);
    for (const BlockKey key : keys)
      for (const HolderEntry& entry : entries) place(key, entry);
  }

  void evict_engine_key(std::uint64_t engine_key, const std::vector<HolderEntry>& entries) {
    const auto* list = engines.get(engine_key);
    if (!list) return;
    const std::vector<BlockKey> keys = *list;
    bool empty = true;
    for (const BlockKey key : keys) evict_request_key(key, entries);
    for (const BlockKey key : keys) empty = empty && !requests.peek(key);
    if (empty) engines.erase(engine_key);
  }

  void evict_request_key(BlockKey key, const std::vector<HolderEntry>& entries) {
    auto* holders = requests.get(key);
    if (!holders) return;
    for (const HolderEntry& entry : entries) std::erase(*holders, entry);
    if (holders->empty()) requests.erase(key);
  }

  std::vector<PrefixMatch> match(const std::vector<BlockKey>& keys) {
    std::vector<PrefixMatch> result;
    std::vector<bool> alive;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto* holders = requests.get(keys[i]);
      if (i == 0 && holders)
        for (const HolderEntry& h : *holders)
          if (std::none_of(result.begin(), result.end(),
                           [&](const PrefixMatch& m) { return m.endpoint == h.endpoint; }))
            result.push_back({.weighted = 0, .endpoint = h.endpoint, .blocks = 0});
      if (i == 0) alive.assign(result.size(), true);
      for (std::size_t k = 0; k < result.size(); ++k) {
        std::optional<double> best;
        if (holders)
          for (const HolderEntry& h : *holders)
            if (h.endpoint == result[k].endpoint)
              best = best ? std::max(*best, weight(h)) : weight(h);
        alive[k] = alive[k] && best;
        if (!alive[k]) continue;
        ++result[k].blocks;
        result[k].weighted += *best;
      }
    }
    return result;
  }

  std::vector<policies::TierCount> tier_counts(const std::vector<BlockKey>& keys) {
    using policies::TierCount;
    using policies::TierRows;
    // What a row counts for, in the order in which the index reports it.
    using Kind = std::tuple<EndpointId, TierRows, policies::TierId>;
    const auto kinds_of = [](const HolderEntry& h) {
      if (h.speculative)
        return std::vector<Kind>{{h.endpoint, TierRows::kSpeculative, policies::kNoTier}};
      return std::vector<Kind>{{h.endpoint, TierRows::kTier, h.tier},
                               {h.endpoint, TierRows::kConfirmed, policies::kNoTier}};
    };
    std::map<Kind, std::uint32_t> blocks;
    for (std::uint32_t i = 0; i < keys.size(); ++i) {
      std::set<Kind> here;
      if (const auto* holders = requests.peek(keys[i]))
        for (const HolderEntry& h : *holders)
          for (const Kind& kind : kinds_of(h)) here.insert(kind);
      for (const Kind& kind : here)
        if (i == 0 || (blocks.contains(kind) && blocks[kind] == i)) blocks[kind] = i + 1;
    }
    std::vector<TierCount> counts;
    for (const auto& [kind, n] : blocks)
      counts.push_back({.endpoint = std::get<0>(kind),
                        .rows = std::get<1>(kind),
                        .tier = std::get<2>(kind),
                        .blocks = n});
    return counts;
  }

  std::optional<BlockKey> resolve(std::uint64_t engine_key) {
    const auto* list = engines.get(engine_key);
    if (!list) return std::nullopt;
    return list->back();
  }

 private:
  policies::PrefixIndexOptions options_;

 public:
  ModelLru<std::vector<HolderEntry>> requests;
  ModelLru<std::vector<BlockKey>> engines;

 private:
  double weight(const HolderEntry& h) const {
    return h.tier < options_.tier_weights.size() ? options_.tier_weights[h.tier]
                                                 : options_.unlisted_tier_weight;
  }
  void place(BlockKey key, const HolderEntry& entry) {
    auto* holders = requests.get(key);
    if (!holders) holders = &requests.put(key, {});
    std::erase(*holders, entry);
    holders->push_back(entry);
    if (holders->size() > options_.pod_cache_size) holders->erase(holders->begin());
  }

  std::map<std::pair<std::uint64_t, HolderEntry>, int> counts_;
};

}  // namespace routesim::test
