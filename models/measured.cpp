#include "models/measured.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/ticks.h"

namespace routesim::models {

void describe(Describer& d, DecodePoint& p) {
  field(d, {"sequences", "Decoding sequences.", true}, p.sequences, IntRange{.min = 1});
  field(d, {"context", "Tokens of context of each sequence.", true}, p.context, IntRange{.min = 0});
  field(d, {"ms", "Measured step time, ms.", true}, p.ms, RealRange{.min = 0, .min_open = true});
}

void describe(Describer& d, PrefillPoint& p) {
  field(d, {"tokens", "New prompt tokens in the step.", true}, p.tokens, IntRange{.min = 1});
  field(d, {"visible", "Earlier tokens a new token sees, on average."}, p.visible,
        IntRange{.min = 0});
  field(d, {"ms", "Measured step time, ms.", true}, p.ms, RealRange{.min = 0, .min_open = true});
}

void describe(Describer& d, MeasuredTable& t) {
  field(d, {"decode", "Pure decode steps; a full grid of sequences and context.", true}, t.decode);
  field(d, {"prefill", "Pure prefill steps; a full grid of tokens and visible.", true}, t.prefill);
  field(d, {"shared_ms", "Part a mixed step pays once (weights, launches), ms."}, t.shared_ms,
        RealRange{.min = 0});
  field(d, {"provenance", "From what measurement."}, t.provenance);
}

namespace {

struct Point {
  std::int64_t x, y;
  double ms;
};

std::vector<std::int64_t> axis(const std::vector<Point>& points, std::int64_t Point::*member) {
  std::vector<std::int64_t> values;
  values.reserve(points.size());
  for (const Point& p : points) values.push_back(p.*member);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

/// Sorts points into a grid, or reports why they form none.
std::optional<TickGrid> make_grid(const char* path, const std::vector<Point>& points,
                                  std::size_t min_y, Diagnostics& out) {
  TickGrid grid{.x = axis(points, &Point::x), .y = axis(points, &Point::y), .ticks = {}};
  if (grid.x.size() < 2 || grid.y.size() < min_y) {
    out.error({}, path,
              "needs at least 2 x " + std::to_string(min_y) + " different points (got " +
                  std::to_string(grid.x.size()) + " x " + std::to_string(grid.y.size()) + ")");
    return std::nullopt;
  }
  if (points.size() != grid.x.size() * grid.y.size()) {
    out.error({}, path,
              "must hold every combination of its " + std::to_string(grid.x.size()) + " and " +
                  std::to_string(grid.y.size()) + " axis values once (got " +
                  std::to_string(points.size()) + " points)");
    return std::nullopt;
  }
  grid.ticks.assign(points.size(), 0);
  for (const Point& p : points) {
    const auto i = std::lower_bound(grid.x.begin(), grid.x.end(), p.x) - grid.x.begin();
    const auto j = std::lower_bound(grid.y.begin(), grid.y.end(), p.y) - grid.y.begin();
    std::int64_t& cell =
        grid.ticks[static_cast<std::size_t>(i) * grid.y.size() + static_cast<std::size_t>(j)];
    if (cell != 0 || !(p.ms > 0) || !std::isfinite(p.ms) || p.x < 1 || p.y < 0) {
      out.error(
          {}, path,
          cell != 0
              ? "holds the point (" + std::to_string(p.x) + ", " + std::to_string(p.y) + ") twice"
              : "needs positive finite times and axis values (got " + std::to_string(p.ms) +
                    " ms at " + std::to_string(p.x) + ", " + std::to_string(p.y) + ")");
      return std::nullopt;
    }
    cell = std::max<std::int64_t>(1, ms_to_ticks(p.ms));
  }
  return grid;
}

/// The cell of `axis` around `value`; edge cells reach beyond the axis.
std::size_t cell_of(const std::vector<std::int64_t>& axis, double value) {
  std::size_t i = 0;
  while (i + 2 < axis.size() && value >= static_cast<double>(axis[i + 1])) ++i;
  return i;
}

}  // namespace

std::optional<MeasuredLatency> MeasuredLatency::make(const MeasuredTable& table,
                                                     Diagnostics& diagnostics) {
  std::vector<Point> decode;
  std::vector<Point> prefill;
  for (const DecodePoint& p : table.decode) decode.push_back({p.sequences, p.context, p.ms});
  for (const PrefillPoint& p : table.prefill) prefill.push_back({p.tokens, p.visible, p.ms});
  auto decode_grid = make_grid("decode", decode, 2, diagnostics);
  auto prefill_grid = make_grid("prefill", prefill, 1, diagnostics);
  if (!decode_grid || !prefill_grid) return std::nullopt;
  MeasuredLatency m;
  m.decode_ = std::move(*decode_grid);
  m.prefill_ = std::move(*prefill_grid);
  m.shared_ = ms_to_ticks(table.shared_ms);
  m.provenance_ = "measured table: " +
                  (table.provenance.empty() ? std::string("no source given") : table.provenance);
  return m;
}

DecodeLine decode_line(const TickGrid& grid, std::int64_t b, std::int64_t context) {
  const std::vector<std::int64_t>& x = grid.x;
  const std::vector<std::int64_t>& y = grid.y;
  const std::size_t i = cell_of(x, static_cast<double>(b));
  const auto at = [&](std::size_t j) {  // Time at `b` sequences and context knot j.
    const std::int64_t low = grid.ticks[i * y.size() + j];
    const std::int64_t high = grid.ticks[(i + 1) * y.size() + j];
    return std::max<std::int64_t>(1, low + (high - low) * (b - x[i]) / (x[i + 1] - x[i]));
  };
  // Below the first knot time is flat: an extension could fall to nothing.
  if (context < b * y.front())
    return {.first = at(0), .slope = 0, .steps = (b * y.front() - context) / b + 1};
  std::size_t j = 0;
  while (j + 2 < y.size() && context >= b * y[j + 1]) ++j;
  // More context never takes less time, whatever the noise of the table.
  const std::int64_t slope = std::max<std::int64_t>(0, at(j + 1) - at(j)) / (b * (y[j + 1] - y[j]));
  const bool last = j + 2 == y.size();
  const std::int64_t to_knot = b * y[j + 1] - context;
  return {.first = at(j) + slope * (context - b * y[j]),
          .slope = slope,
          .steps = last ? kUnboundedSteps : (to_knot + b - 1) / b};
}

std::int64_t MeasuredLatency::prefill_ticks(const BatchShape& s) const {
  const std::vector<std::int64_t>& x = prefill_.x;
  const std::vector<std::int64_t>& y = prefill_.y;
  const double tokens = static_cast<double>(s.prefill_tokens);
  const double visible = static_cast<double>(s.prefill_pairs) / (2.0 * tokens);
  const auto at = [&](std::size_t i, std::size_t j) {
    return static_cast<double>(prefill_.ticks[i * y.size() + j]);
  };
  const std::size_t i = cell_of(x, tokens);
  const double u = (tokens - static_cast<double>(x[i])) / static_cast<double>(x[i + 1] - x[i]);
  const auto along = [&](std::size_t j) { return at(i, j) + (at(i + 1, j) - at(i, j)) * u; };
  double ticks = along(0);
  if (y.size() > 1) {
    const std::size_t j = cell_of(y, visible);
    const double v = (visible - static_cast<double>(y[j])) / static_cast<double>(y[j + 1] - y[j]);
    ticks = along(j) + (along(j + 1) - along(j)) * v;
  }
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(ticks + 0.5));
}

std::int64_t MeasuredLatency::step_ticks(const BatchShape& s) const {
  if (s.tokens() == 0) return s.group_tokens == 0 ? 0 : decode_line(decode_, 1, 0).first;
  const std::int64_t decode =
      s.decode_requests > 0 ? decode_line(decode_, s.decode_requests, s.decode_context).first : 0;
  if (s.prefill_tokens == 0) return decode;
  const std::int64_t prefill = prefill_ticks(s);
  return decode == 0 ? prefill : std::max(std::max(decode, prefill), decode + prefill - shared_);
}

DecodeRun MeasuredLatency::decode_run(const BatchShape& s) const {
  const DecodeLine line = decode_line(decode_, s.decode_requests, s.decode_context);
  return {line.first, line.slope * s.decode_requests, line.steps};
}

Trust MeasuredLatency::trust(const BatchShape& s) const {
  bool inside = true;
  if (s.decode_requests > 0)
    inside = inside && s.decode_requests >= decode_.x.front() &&
             s.decode_requests <= decode_.x.back() &&
             s.decode_context >= s.decode_requests * decode_.y.front() &&
             s.decode_context <= s.decode_requests * decode_.y.back();
  if (s.prefill_tokens > 0)
    inside = inside && s.prefill_tokens >= prefill_.x.front() &&
             s.prefill_tokens <= prefill_.x.back() &&
             s.prefill_pairs <= 2 * s.prefill_tokens * prefill_.y.back();
  return inside ? Trust::kFitted : Trust::kExtrapolated;
}

}  // namespace routesim::models
