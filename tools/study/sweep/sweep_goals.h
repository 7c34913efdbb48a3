// The cells of a sweep that meet the goals, and the smallest fleet that does at each rate. Without
// goals, a cell counts that is not overloaded.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/render/chart/chart.h"
#include "tools/render/page/html_page.h"
#include "tools/results/metric_name.h"
#include "tools/study/sweep/sweep_record.h"

namespace routesim::tools {

/// The cells of a sweep. Where no axis is a rate and the load of each row has several, there is one
/// per reported stage, with the rate as a further axis.
struct SweepCells {
  struct Row {
    std::vector<std::string> cell;  ///< Value of each axis, as text.
    std::string variant;
    bool overloaded = false;  ///< The queue of some reported stage grew until it ended.
    std::map<std::string, Datum, std::less<>> values;  ///< Metric name to mean and interval.
  };
  std::vector<std::string> axes;
  std::vector<std::string> metrics;  ///< In the order of the first row.
  std::vector<std::string> goals;    ///< `ttft_ms.p90 < 500`.
  std::vector<Row> rows;
};

/// `path` is where the record stands in the data block of a page.
SweepCells cells_of(const SweepRecord& record, const std::string& path);

/// The value of an axis as text, at most 40 characters.
std::string axis_value(const Document& value);

/// Whether one of the words stands in the name: in the last part of a key path, between `_`, `-` or
/// spaces, in the singular or the plural.
bool has_word(const std::string& path, std::string_view words);

/// An axis with more than one value.
struct PageAxis {
  std::size_t axis = 0;                  ///< Into SweepCells::axes.
  std::vector<std::string> values = {};  ///< Ascending where they are numbers, else as the rows go.
  std::vector<double> numbers = {};      ///< The same; empty when one is no number.
  bool is_numeric() const { return !numbers.empty(); }
};

/// Rows that differ only in the drawn axes and the variant.
struct SweepPanel {
  std::string title;  ///< `tp 2, model 8B`; empty when there is but one.
  std::vector<const SweepCells::Row*> rows = {};
};

class SweepGoals {
 public:
  /// Keeps a reference to `cells`.
  explicit SweepGoals(const SweepCells& cells);

  const SweepCells& cells() const { return cells_; }
  const std::string& name_of(const PageAxis& axis) const { return cells_.axes[axis.axis]; }
  const std::vector<MetricGoal>& goals() const { return goals_; }
  const std::vector<std::string>& variants() const { return variants_; }
  /// The drawn axes, at most two: rate and fleet size where the sweep has both, else those with the
  /// most values.
  const std::vector<PageAxis>& drawn() const { return drawn_; }
  const std::vector<SweepPanel>& panels() const { return panels_; }
  /// The one of drawn() that is the rate, and the one that is the number of servers.
  const PageAxis* rate() const { return find(kRateWords); }
  const PageAxis* fleet() const { return find(kFleetWords); }

  CellState state_of(const SweepCells::Row& row) const;
  /// The row of a variant at these values of drawn(); null when it was not run.
  const SweepCells::Row* row_at(const SweepPanel& panel, const std::string& variant,
                                const std::vector<std::string>& values) const;
  /// Indices into the values of `d`, one of drawn(), that a variant was run at, at one value of the
  /// other drawn axis where there is one.
  std::vector<std::size_t> tried(const SweepPanel& panel, const std::string& variant,
                                 const PageAxis& d, const std::string& other) const;
  /// The smallest fleet of a variant that meets the goals, at one value of the other drawn axis
  /// where there is one; an index into the values of fleet(), or nothing when none does.
  std::optional<std::size_t> smallest_fleet(const SweepPanel& panel, const std::string& variant,
                                            const std::string& other) const;
  /// The last value of rate() up to which every tried one meets the goals, at one value of the
  /// other drawn axis; nothing when the first does not.
  std::optional<std::size_t> highest_rate(const SweepPanel& panel, const std::string& variant,
                                          const std::string& other) const;

 private:
  static constexpr const char* kRateWords = "rate qps load concurrency";
  static constexpr const char* kFleetWords = "replicas servers nodes fleet gpus";

  const PageAxis* find(std::string_view words) const;
  const SweepCells::Row* row_beside(const SweepPanel& panel, const std::string& variant,
                                    const PageAxis& d, std::size_t at,
                                    const std::string& other) const;
  void choose_axes(std::vector<PageAxis> all);
  void make_panels(const std::vector<PageAxis>& all);

  const SweepCells& cells_;
  std::vector<MetricGoal> goals_;
  std::vector<std::string> variants_;
  std::vector<PageAxis> drawn_;
  std::vector<SweepPanel> panels_;
};

}  // namespace routesim::tools
