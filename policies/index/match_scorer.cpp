#include "policies/index/match_scorer.h"

#include <algorithm>
#include <cmath>

namespace routesim::policies {
namespace {
// Above this many comparisons a set is indexed by endpoint instead of searched.
constexpr std::size_t kSearchLimit = 512;
}  // namespace

MatchScorer::MatchScorer(std::span<const double> tier_weights) {
  for (std::size_t tier = 0; tier < weights_.size(); ++tier)
    weights_[tier] = tier < tier_weights.size() ? tier_weights[tier] : 1.0;
}

// Adds `length` blocks to every endpoint still alive. The raw score is a sum of doubles in key
// order; a product gives the same bits only while everything is a small integer.
void MatchScorer::credit(std::uint32_t length, MatchScratch& scratch) {
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

void MatchScorer::begin(std::span<const Row> rows, MatchScratch& scratch) const {
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

void MatchScorer::narrow(std::span<const Row> rows, MatchScratch& scratch) const {
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
bool MatchScorer::best_weight(std::span<const Row> rows, std::uint32_t endpoint,
                              double& best) const {
  bool found = false;
  for (const Row row : rows) {
    if (row_endpoint(row) != endpoint) continue;
    best = found ? std::max(best, weight(row)) : weight(row);
    found = true;
  }
  return found;
}

void MatchScorer::index_best_weights(std::span<const Row> rows, MatchScratch& scratch) const {
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

}  // namespace routesim::policies
