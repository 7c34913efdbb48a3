// The raw score of llm-d's LongestPrefix scorer: which endpoints hold every key of a prompt so far,
// and what their blocks weigh.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <tuple>
#include <vector>

#include "policies/index/holder_sets.h"
#include "policies/index/prefix_index.h"

namespace routesim::policies {

/// Scores one prompt, run by run of keys with equal holders. Its state is in the MatchScratch, so
/// several threads may score at once. O(endpoints that hold all keys so far) per run.
class MatchScorer {
 public:
  /// `tier_weights`: by TierId; missing tiers weigh `unlisted`.
  MatchScorer(std::span<const double> tier_weights, double unlisted) {
    for (std::size_t tier = 0; tier < weights_.size(); ++tier)
      weights_[tier] = tier < tier_weights.size() ? tier_weights[tier] : unlisted;
  }

  /// The holders of the first key.
  void begin(std::span<const Row> rows, MatchScratch& scratch) const {
    index_best_weights(rows, scratch);
    ++scratch.epoch_;  // Each endpoint is taken when met first; from then on it is out of date.
    for (const Row row : rows) {
      const std::uint32_t e = row_endpoint(row);
      if (scratch.seen_[e] == scratch.epoch_) continue;
      scratch.seen_[e] = scratch.epoch_;
      scratch.alive_.push_back({.match = static_cast<std::uint32_t>(scratch.matches_.size()),
                                .endpoint = e,
                                .weight = scratch.best_[e]});
      scratch.matches_.push_back({.weighted = 0, .endpoint = EndpointId(e), .blocks = 0});
    }
  }
  /// The holders of a later key: drops every endpoint that is not among them.
  void narrow(std::span<const Row> rows, MatchScratch& scratch) const {
    index_best_weights(rows, scratch);
    std::erase_if(scratch.alive_, [&](MatchScratch::Alive& a) {
      if (a.endpoint >= scratch.seen_.size() || scratch.seen_[a.endpoint] != scratch.epoch_)
        return true;
      a.weight = scratch.best_[a.endpoint];
      return false;
    });
  }
  /// Adds `length` blocks to every endpoint that is left. The raw score is a sum of doubles in key
  /// order; a product gives the same bits only while everything is a small integer.
  static void credit(std::uint32_t length, MatchScratch& scratch) {
    if (length == 0) return;
    for (const MatchScratch::Alive& a : scratch.alive_) {
      PrefixMatch& m = scratch.matches_[a.match];
      m.blocks += length;
      if (a.weight == 1.0 && m.weighted == std::trunc(m.weighted)) {
        m.weighted += length;
      } else if (a.weight != 0) {
        for (std::uint32_t i = 0; i < length; ++i) m.weighted += a.weight;
      }
    }
  }

 private:
  void index_best_weights(std::span<const Row> rows, MatchScratch& scratch) const {
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
  double weight(Row row) const { return weights_[row_tier(row)]; }

  std::array<double, 128> weights_;  // By tier.
};

/// Counts the blocks of one prompt per tier and endpoint, run by run of keys with equal holders.
/// llm-d-router preciseprefixcache/utils.go.
class TierCounter {
 public:
  /// `rows`: the holders of the next `length` keys. False when no count can grow any more.
  bool add(std::span<const Row> rows, std::uint32_t length) {
    read(rows);
    if (first_) {
      for (const Row row : present_) counting_.push_back({.row = row, .blocks = 0});
      first_ = false;
    }
    const auto gone = [this](const Count& c) {
      return !std::binary_search(present_.begin(), present_.end(), c.row);
    };
    const auto end = std::partition(counting_.begin(), counting_.end(), std::not_fn(gone));
    done_.insert(done_.end(), end, counting_.end());
    counting_.erase(end, counting_.end());
    for (Count& c : counting_) c.blocks += length;
    return !counting_.empty();
  }
  void write(std::vector<TierCount>& counts) {
    done_.insert(done_.end(), counting_.begin(), counting_.end());
    std::sort(done_.begin(), done_.end(),
              [](const Count& a, const Count& b) { return order(a.row) < order(b.row); });
    for (const Count& c : done_)
      counts.push_back({.endpoint = EndpointId(row_endpoint(c.row)),
                        .rows = rows_of(c.row),
                        .tier = rows_of(c.row) == TierRows::kTier ? row_tier(c.row) : kNoTier,
                        .blocks = c.blocks});
  }

 private:
  struct Count {
    Row row;  // Without its cache group: rows of several groups are one block of their tier.
    std::uint32_t blocks;
  };
  // In place of the tier: no row has all of these bits.
  static constexpr Row kAnyTier = 0xff;

  static TierRows rows_of(Row row) {
    if ((row & 0xff) == kAnyTier) return TierRows::kConfirmed;
    return row_speculative(row) ? TierRows::kSpeculative : TierRows::kTier;
  }
  static std::tuple<std::uint32_t, TierRows, TierId> order(Row row) {
    return {row_endpoint(row), rows_of(row), row_tier(row)};
  }
  // All that `rows` can count for, ascending.
  void read(std::span<const Row> rows) {
    constexpr Row kGroup = Row{0xffffff} << 8;
    present_.clear();
    for (const Row row : rows) {
      present_.push_back(row & ~kGroup);
      if (!row_speculative(row)) present_.push_back((row & ~kGroup) | kAnyTier);
    }
    std::sort(present_.begin(), present_.end());
    present_.erase(std::unique(present_.begin(), present_.end()), present_.end());
  }

  bool first_ = true;
  std::vector<Row> present_;
  std::vector<Count> counting_, done_;
};

}  // namespace routesim::policies
