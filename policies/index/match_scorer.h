// The raw score of llm-d's LongestPrefix scorer: which endpoints hold every key of a prompt so far,
// and what their blocks weigh.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "policies/index/holder_sets.h"
#include "policies/index/prefix_index.h"

namespace routesim::policies {

/// Scores one prompt, run by run of keys with equal holders. Its state is in the MatchScratch, so
/// several threads may score at once. O(endpoints that hold all keys so far) per run.
class MatchScorer {
 public:
  /// `tier_weights`: by TierId; missing tiers weigh 1.
  explicit MatchScorer(std::span<const double> tier_weights);

  /// The holders of the first key.
  void begin(std::span<const Row> rows, MatchScratch& scratch) const;
  /// The holders of a later key: drops every endpoint that is not among them.
  void narrow(std::span<const Row> rows, MatchScratch& scratch) const;
  /// Adds `length` blocks to every endpoint that is left.
  static void credit(std::uint32_t length, MatchScratch& scratch);

 private:
  bool best_weight(std::span<const Row> rows, std::uint32_t endpoint, double& best) const;
  void index_best_weights(std::span<const Row> rows, MatchScratch& scratch) const;
  double weight(Row row) const { return weights_[row_tier(row)]; }

  std::array<double, 128> weights_;  // By tier.
};

}  // namespace routesim::policies
