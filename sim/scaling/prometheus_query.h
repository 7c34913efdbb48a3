// PromQL, as far as autoscalers of model servers use it: selectors, aggregations, rates, functions
// over ranges, quantiles of histograms, arithmetic, comparisons and set operators. Series have two
// labels, `pod` and `le`; all others are the same in the whole pool.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/units.h"
#include "sim/scaling/fleet_metrics.h"

namespace routesim::sim {

/// A known series, or the result of a recording rule.
using SeriesId = std::int32_t;
inline constexpr SeriesId kNoSeries = -1;  ///< Nobody exports it.
inline constexpr SeriesId kFirstRule = static_cast<SeriesId>(kFleetMetrics) * 4;
constexpr SeriesId id_of(SeriesName name) {
  return static_cast<SeriesId>(name.metric) * 4 + static_cast<SeriesId>(name.part);
}
constexpr SeriesName name_of(SeriesId id) {
  return {static_cast<FleetMetric>(id / 4), static_cast<HistogramPart>(id % 4)};
}

enum class PromType : std::uint8_t { kScalar, kVector, kRange };
enum class PromOp : std::uint8_t {
  kNumber,
  kSelect,
  kNegate,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kModulo,
  kPower,
  kEqual,
  kUnequal,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAnd,
  kOr,
  kUnless,
  kSum,
  kAvg,
  kMin,
  kMax,
  kCount,
  kRate,
  kIrate,
  kIncrease,
  kDelta,
  kAvgOverTime,
  kMinOverTime,
  kMaxOverTime,
  kSumOverTime,
  kCountOverTime,
  kLastOverTime,
  kHistogramQuantile,
  kClamp,
  kClampMin,
  kClampMax,
  kVector,
  kScalar,
  kAbs,
  kCeil,
  kFloor,
  kRound,
  kSqrt
};

struct PromNode {
  PromOp op = PromOp::kNumber;
  PromType type = PromType::kScalar;
  double number = 0;
  SeriesId series = 0;
  std::optional<double> le = {};             ///< The bucket that a matcher picks.
  Duration range = Duration::zero();         ///< Zero for an instant.
  bool keeps_pod = false, keeps_le = false;  ///< Of aggregations.
  bool is_bool = false;                      ///< Of comparisons: 0 or 1 in place of a filter.
  std::vector<std::shared_ptr<const PromNode>> args = {};
};

struct PromQuery {
  std::shared_ptr<const PromNode> root;
  std::vector<SeriesId> series;       ///< All that it reads.
  std::vector<std::string> missing;   ///< Names of series that nobody exports.
  std::vector<std::string> matchers;  ///< Those that select nothing here, as written.
  Duration longest_range = Duration::zero();
};

struct PromFault {
  std::size_t position = 0;  ///< In the text, from 0 on.
  std::string message;
  std::string hint = {};
};

/// `rules` are the names of recording rules; their ids are kFirstRule and up. Series of others than
/// `exporters` stay empty.
std::variant<PromQuery, PromFault> parse_promql(std::string_view text,
                                                const std::vector<std::string>& rules = {},
                                                FleetExporters exporters = kAllExporters);

}  // namespace routesim::sim
