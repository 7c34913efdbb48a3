// The state of one decision while it is being made: what plugins read, and the buffers they share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/units.h"
#include "policies/decision.h"
#include "policies/index/approx_prefix_index.h"
#include "policies/index/prefix_index.h"
#include "policies/views.h"

namespace routesim::policies {

/// The score of an endpoint that a scorer leaves out of its result. It clamps to 0, which is what
/// a missing entry contributes.
inline constexpr double kUnscored = -std::numeric_limits<double>::infinity();

/// How much of the request's prefix each endpoint holds, as one producer sees it. Arrays are by
/// endpoint row and valid only for rows below their size.
struct PrefixMatches {
  bool computed = false;  ///< The producer has run in this cycle.
  bool written = false;   ///< Match info exists; not when the prompt has no full block.
  std::int64_t keys = 0;  ///< Keys looked up, over all prompts.
  std::int64_t total_blocks = 0;
  std::int64_t block_size = 0;       ///< Tokens per block (bytes in the byte-hashing eras).
  std::int64_t key_tokens = 0;       ///< Tokens per key, whatever the era writes as block size.
  std::vector<double> raw;           ///< Tier-weighted blocks, before truncation.
  std::vector<std::int32_t> match;   ///< MatchBlocks: what scorers and uncached-token sums read.
  std::vector<std::int32_t> cached;  ///< Unweighted contiguous blocks: what deciders read.
  std::vector<EndpointRow> touched;  ///< Rows that may be nonzero, so that clearing is cheap.
  /// Blocks per tier by holder, if a plugin reads them; several prompts give several entries.
  std::vector<TierCount> tiers;
  bool has_tiers = false;  ///< The producer knows tiers, so no entry means no block.
  /// Raw scores of holders that are no candidates, where the era's score map has them, by holder.
  std::vector<std::pair<std::uint32_t, double>> others;
  /// Extremes of `raw` and `others`; zero when both are empty.
  double lowest = 0, highest = 0;

  /// Blocks of a holder in one tier, or of all that are confirmed. O(entries).
  std::int64_t tier_blocks(EndpointId holder, TierRows rows, TierId tier = kNoTier) const {
    std::int64_t blocks = 0;
    for (const TierCount& c : tiers)
      if (c.endpoint == holder && c.rows == rows && c.tier == tier) blocks += c.blocks;
    return blocks;
  }
  /// The share of the prompt that an endpoint holds; 0 without match info.
  double share(EndpointRow row) const {
    if (!written || total_blocks <= 0) return 0;
    return static_cast<double>(match[row]) / static_cast<double>(total_blocks);
  }
  /// Forgets everything and covers `rows` rows with zeros.
  void reset(std::size_t rows);
};

/// The estimate of predicted-latency-producer for this request on one endpoint.
struct LatencyEstimate {
  bool present = false;
  double ttft_ms = 0, tpot_ms = 0;
  double ttft_headroom_ms = 0;  ///< SLO minus prediction; negative = violation.
  double tpot_headroom_ms = 0;
  bool valid = false;           ///< Meets the SLOs.
  std::int64_t dispatched = 0;  ///< Requests this router has in flight there.
};

/// True when ascending `candidates` leave out no row, as they mostly do.
inline bool consecutive(std::span<const EndpointRow> candidates) {
  return !candidates.empty() && candidates.back() - candidates.front() + 1 == candidates.size();
}

/// Everything a plugin may look at for one decision. Owned by a Scratch; see Scheduler.
class Cycle {
 public:
  struct Start {
    const RequestView& request;
    const EndpointTable& endpoints;
    SimTime now;
    Decision& decision;
    std::uint64_t seed = 0;
    bool ordered_candidates = false;
    bool dry_run = false;
    std::size_t prefix_slots = 0;
    /// Identity of the deciding plugins; null = unknown, then nothing is kept between decisions.
    const std::shared_ptr<const char>* plugins = nullptr;
  };
  /// Begins a decision, reusing the buffers of the one before. The references must outlive it.
  void begin(const Start& start);

  const RequestView& request() const { return *request_; }
  const EndpointTable& endpoints() const { return *endpoints_; }
  SimTime now() const { return now_; }
  /// The candidates of the whole request, before any profile's filters, in ascending row order.
  std::span<const EndpointRow> candidates() const { return candidates_; }
  bool is_candidate(EndpointRow row) const;
  /// True when nothing may be remembered, not even recency (explain).
  bool dry_run() const { return dry_run_; }

  /// The matches of one producer slot; slots are handed out when plugins are built.
  PrefixMatches& prefix(std::size_t slot) { return prefix_[slot]; }
  const PrefixMatches& prefix(std::size_t slot) const { return prefix_[slot]; }

  /// Latency estimates by row; empty when nothing predicts.
  std::vector<LatencyEstimate>& latency() { return latency_; }
  const std::vector<LatencyEstimate>& latency() const { return latency_; }
  /// The estimate of one endpoint; null without one.
  const LatencyEstimate* latency_at(EndpointRow row) const {
    return row < latency_.size() && latency_[row].present ? &latency_[row] : nullptr;
  }

  /// The endpoint published by a disaggregation handler for topology plugins.
  std::optional<EndpointRow> peer() const { return peer_; }
  void set_peer(EndpointRow row) { peer_ = row; }

  Decision& decision() { return *decision_; }

  /// Draws keyed by the request, so that an explanation repeats the decision it explains.
  RandomStream& picker_random() { return stream(picker_stream_, Stream::kPicker); }
  RandomStream& exploration_random() { return stream(exploration_stream_, Stream::kExploration); }
  /// Puts rows into the arbitrary order in which upstream iterates a hash map; leaves them alone
  /// when the scheduler was built with ordered candidates.
  void arbitrary_order(std::span<EndpointRow> rows) {
    if (!ordered_) {
      RandomStream& random = stream(order_stream_, Stream::kCandidateOrder);
      random.shuffle(rows.begin(), rows.end());
    }
  }

  /// One byte per row that depends on the endpoints' cold facts only, kept from decision to
  /// decision while scheduler and table stay the same: `of(row)` is called when they changed.
  /// `plugin` is Plugin::index().
  template <class F>
  std::span<const std::uint8_t> row_flags(std::uint32_t plugin, F of) {
    if (flags_.size() <= plugin) flags_.resize(std::size_t{plugin} + 1);
    RowFlags& flags = flags_[plugin];
    if (flags.identity != endpoints_->identity()) {
      flags.identity = endpoints_->identity();
      flags.values.resize(endpoints_->rows());
      for (EndpointRow r = 0; r < flags.values.size(); ++r) flags.values[r] = of(r);
    }
    return flags.values;
  }

  /// The column's values of the candidates, in their order: a view where the candidates are
  /// consecutive rows, which they mostly are, otherwise a copy valid until the next call. Dense
  /// values let the compiler use vector instructions.
  std::span<const double> dense(std::span<const double> column,
                                std::span<const EndpointRow> candidates) {
    if (candidates.empty()) return {};
    if (consecutive(candidates)) return column.subspan(candidates.front(), candidates.size());
    buffers_.dense.resize(candidates.size());
    for (std::size_t i = 0; i < candidates.size(); ++i) buffers_.dense[i] = column[candidates[i]];
    return buffers_.dense;
  }

  /// Keeps the candidates that `holds(row)`; all of them where none does and `all_if_none`.
  template <class F>
  void keep_where(std::vector<EndpointRow>& candidates, bool all_if_none, F holds) {
    buffers_.rows.clear();
    for (const EndpointRow r : candidates)
      if (holds(r)) buffers_.rows.push_back(r);
    if (!buffers_.rows.empty() || !all_if_none)
      candidates.assign(buffers_.rows.begin(), buffers_.rows.end());
  }

  /// A buffer for a plugin's own use during one call.
  std::vector<EndpointRow>& row_buffer() { return buffers_.rows; }
  std::vector<double>& value_buffer() { return buffers_.values; }
  MatchScratch& match_scratch() { return buffers_.matches; }
  std::vector<std::uint32_t>& count_buffer() { return buffers_.counts; }

 private:
  RandomStream& stream(std::optional<RandomStream>& s, Stream kind) {
    if (!s) s.emplace(seed_, kind, request_->id);
    return *s;
  }

  const RequestView* request_ = nullptr;
  const EndpointTable* endpoints_ = nullptr;
  SimTime now_;
  std::span<const EndpointRow> candidates_;
  Decision* decision_ = nullptr;
  bool dry_run_ = false;
  bool ordered_ = false;
  std::uint64_t seed_ = 0;
  std::optional<EndpointRow> peer_;
  struct RowFlags {
    std::shared_ptr<const char> identity;
    std::vector<std::uint8_t> values;
  };
  std::vector<PrefixMatches> prefix_;
  std::vector<RowFlags> flags_;
  std::shared_ptr<const char> plugins_;  // The plugins that the flags belong to.
  std::vector<LatencyEstimate> latency_;
  std::optional<RandomStream> picker_stream_, exploration_stream_, order_stream_;
  struct Buffers {
    std::vector<EndpointRow> rows, subset;
    std::vector<double> values, dense;
    std::vector<std::uint32_t> counts;
    MatchScratch matches;
  } buffers_;
};

}  // namespace routesim::policies
