// Demand that changes over a day, a week or a month: rates by the clock, or the arrivals of a
// trace. It takes the place of the rates that a load has; prompts and answers stay the load's own.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "base/diagnostic.h"
#include "base/rng.h"
#include "workloads/load_generator.h"
#include "workloads/load_stages.h"
#include "workloads/load_traits.h"

namespace routesim::workloads {

/// The rate between two points of a profile.
enum class RateShape {
  kSteps,   ///< That of the point before.
  kLinear,  ///< A line between the two.
};

/// From `at` on, counted from the start of each period, requests come at `rate`.
struct DemandPoint {
  Duration at;
  double rate = 0;  ///< Requests/s.
};
void describe(Describer& d, DemandPoint& p);

struct Demand {
  std::vector<DemandPoint> profile;  ///< Readers put the rows of `csv` here, too.
  std::string csv;                   ///< Path, relative to the scenario.
  std::string arrivals_of;           ///< Path of a trace, relative to the scenario.
  RateShape interpolate = RateShape::kSteps;
  std::optional<Duration> period;  ///< Absent: the whole days that the profile has.
  std::optional<double> days;      ///< Absent: one period.
  double growth_per_month = 0;
  double scale = 1;
  Duration report_every = Duration::seconds(3600);
};
void describe(Describer& d, Demand& t);

/// A stretch of time in which the rate is a line. `from` holds at `start`, `to` at `end`.
struct RatePiece {
  Duration start, end;
  double from = 0, to = 0;
  /// Requests that are expected in it.
  double area() const { return (from + to) / 2 * (end - start).to_seconds(); }
};

/// The rate at every instant of a demand that has a profile without a fault. A question costs
/// O(log points).
class DemandCurve {
 public:
  explicit DemandCurve(const Demand& demand);
  Duration length() const { return length_; }
  /// The longest piece that begins at `at`, which is before the end.
  RatePiece piece(Duration at) const;
  /// Requests that are expected between two instants.
  double expected(Duration from, Duration to) const;

 private:
  std::vector<RatePiece> period_pieces_;  ///< In order; they fill one period.
  Duration period_, length_;
  double growth_per_day_ = 1;  ///< Factor from one day to the next.
};

/// A Poisson process with the rates of `curve`: unit-rate arrivals whose clock is the curve's
/// integral, which is inverted in closed form on each piece (Cinlar 1975, section 4.7). Memory does
/// not grow with the number of arrivals.
std::unique_ptr<ArrivalStream> curve_arrivals(DemandCurve curve, RandomStream random);

/// The arrivals of a demand and what is known of them beforehand.
struct DemandArrivals {
  /// Makes the same due times at each call.
  std::function<std::unique_ptr<ArrivalStream>()> make{};
  Duration length{};               ///< The last one is not later.
  std::vector<double> requests{};  ///< Expected ones (of a trace: real ones) by report stage.
};

/// Nothing when `diagnostics` received an error: keys that do not fit, a profile that makes no
/// sense, a trace (LoadInputs::demand_trace) without records or times.
std::optional<DemandArrivals> demand_arrivals(const Demand& demand, std::uint64_t seed,
                                              const LoadInputs& inputs, Diagnostics& diagnostics);

/// `load`, whose last stage is split by when requests are due: a stage for each `report_every`, by
/// the name of its start, such as 09:00. `load` was made with `arrivals`.
std::unique_ptr<LoadGenerator> with_report_stages(std::unique_ptr<LoadGenerator> load,
                                                  const DemandArrivals& arrivals,
                                                  Duration report_every);

}  // namespace routesim::workloads

template <>
struct routesim::EnumNames<routesim::workloads::RateShape> {
  static constexpr std::array<std::string_view, 2> value = {"steps", "linear"};
};
