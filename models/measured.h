// Step times as measured, interpolated linearly. For users with a profile and no wish to fit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "models/latency_model.h"

namespace routesim::models {

/// A pure decode step: `sequences` sequences of `context` tokens each took `ms`.
struct DecodePoint {
  std::int64_t sequences = 1;
  std::int64_t context = 0;
  double ms = 0;
};

/// A pure prefill step: `tokens` new tokens, each seeing `visible` earlier tokens on average
/// (tokens already computed plus half the chunk), took `ms`.
struct PrefillPoint {
  std::int64_t tokens = 1;
  std::int64_t visible = 0;
  double ms = 0;
};

/// The table. Each list must form a full grid over its two axes, with at least two sequences values
/// and two contexts (prefill: two token counts, one or more visibles).
struct MeasuredTable {
  std::vector<DecodePoint> decode;
  std::vector<PrefillPoint> prefill;
  double shared_ms = 0;  ///< Part of a step that a mixed step pays once (weights, launches).
  std::string provenance;
};

void describe(Describer& d, DecodePoint& p);
void describe(Describer& d, PrefillPoint& p);
void describe(Describer& d, MeasuredTable& t);

/// A full grid of values in ticks over two sorted axes.
struct TickGrid {
  std::vector<std::int64_t> x;      ///< Sequences or tokens.
  std::vector<std::int64_t> y;      ///< Context or visible tokens.
  std::vector<std::int64_t> ticks;  ///< x.size()·y.size(), row by row of x.
};

/// Pure decode steps of one batch size: how they grow with the context.
struct DecodeLine {
  std::int64_t first = 0;  ///< Ticks at the shape's context.
  std::int64_t slope = 0;  ///< Ticks per token of total context.
  std::int64_t steps = 1;  ///< Steps until the next context knot.
};
/// For `sequences` >= 1 of `context` tokens in all, over a grid of sequences and context.
DecodeLine decode_line(const TickGrid& grid, std::int64_t sequences, std::int64_t context);

/// Interpolates inside the grid, extends its edge cells linearly outside, never below one tick.
/// Within a cell of the context axis a decode run is affine to the last tick.
class MeasuredLatency final : public LatencyModel {
 public:
  /// Nothing, with errors in `diagnostics`, when a list is not a grid or a time is not positive.
  static std::optional<MeasuredLatency> make(const MeasuredTable& table, Diagnostics& diagnostics);

  std::int64_t step_ticks(const BatchShape& shape) const override;
  DecodeRun decode_run(const BatchShape& shape) const override;
  Trust trust(const BatchShape& shape) const override;
  std::string provenance() const override { return provenance_; }

 private:
  MeasuredLatency() = default;
  std::int64_t prefill_ticks(const BatchShape& shape) const;

  TickGrid decode_, prefill_;
  std::int64_t shared_ = 0;
  std::string provenance_;
};

}  // namespace routesim::models
