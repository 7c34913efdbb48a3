// Which of the variants that face one load is best, and why: the order behind a verdict.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/render/document.h"
#include "tools/study/verdict/run_view.h"

namespace routesim::tools {

/// Smaller differences are not called differences.
inline constexpr double kNoticeable = 0.01;
/// A smaller difference between single runs may be chance.
inline constexpr double kClearChange = 0.05;

/// How far apart two variants are in a measure.
enum class Apart {
  kEqual,      ///< By less than kNoticeable.
  kUndecided,  ///< The interval of the difference over the replications holds zero.
  kSlight,     ///< Of single runs, by less than kClearChange.
  kClear
};

/// Why one variant stands before another.
enum class Reason {
  kFailures,  ///< The other fails more requests.
  kLoad,      ///< It holds more load before it is overloaded.
  kMeasure    ///< It has the better value of the measure.
};

/// A measure and the stages over which it is taken.
struct Yardstick {
  Measure by;
  std::vector<std::size_t> stages = {};  ///< Empty: the whole run.
};

/// The order of variants that face one load. With goals that all of them share, goodput decides.
/// Otherwise first come those that fail at most 1 % of the requests more than the best, among them
/// those that hold most load (within 10 %), among these the lowest mean request latency over the
/// stages that all of them hold. Where they hold no stage, output throughput decides.
class Contest {
 public:
  Contest(const PageRun& run, std::vector<std::size_t> members);

  const std::vector<std::size_t>& order() const { return order_; }
  std::size_t winner() const { return order_.front(); }
  /// The first variant of the file that is in the contest: all others are compared with it.
  std::size_t base() const { return base_; }
  bool by_goals() const { return by_goals_; }
  /// The measure that decides among the winner and the variants that hold as much load.
  const Yardstick& yardstick() const { return yardstick_; }

  Reason reason(std::size_t better, std::size_t worse) const;
  Apart apart(std::size_t a, std::size_t b) const;
  /// The value of the yardstick, when the variant has one.
  std::optional<double> value(std::size_t variant) const;
  /// The variants that cannot be told from the winner, the winner included, in order.
  std::vector<std::size_t> leaders() const;
  /// The clear leader of a stage; `before` stays one while nothing is clearly better.
  std::optional<std::size_t> leader_at(std::size_t stage, std::optional<std::size_t> before) const;
  /// Whether more seeds may change who is first.
  bool is_close() const;
  /// The stages in which the lead can change.
  std::vector<std::size_t> contested_stages() const;

 private:
  void rank(std::vector<std::size_t> members, int level);
  std::vector<std::size_t> peers() const;

  const PageRun& run_;
  std::size_t base_;
  bool by_goals_ = false;
  std::vector<std::size_t> order_;
  std::vector<int> level_;  ///< By variant: equal where the yardstick decides.
  Yardstick yardstick_;
};

/// Requests that no server takes at any load, because they are longer than its max_model_len.
double too_long(const StageView& stage);
/// Other failed requests over all requests.
double share_of_failures(const StageView& stage);
/// Whether more requests than failures make a difference are too long: those that are left are
/// another load.
bool is_cut(const StageView& stage);
/// Whether the servers hold the load of a stage: no queue grows, and at most 1 % of its requests
/// fail.
bool is_held(const StageView& stage);
/// Whether a load that keeps its rate says that it ends before it tells, or sends for less than
/// three of its answers: servers may then take all its requests at once, at any rate.
bool is_too_short(const StageView& stage);
/// Whether the servers hold the load of a stage, by what they sustain where that was found: a stage
/// may end before its queue shows.
bool holds_stage(const VariantView& variant, std::size_t stage);
/// Whether they hold every reported stage that ended, and each is long enough to tell.
bool holds_all(const VariantView& variant);
/// Positions of the reported stages that ended.
std::vector<std::size_t> reported_stages(const VariantView& variant);
/// Positions of the reported stages that ask the same of each variant.
std::vector<std::size_t> common_stages(const std::vector<const VariantView*>& variants);
/// Whether these stages are all that the variants report, so that their whole runs compare.
bool are_whole_runs(const std::vector<const VariantView*>& variants,
                    const std::vector<std::size_t>& stages);
/// How the value is compared, over the replications where there are several.
Apart apart(const StageView& a, const StageView& b, const Measure& by);

}  // namespace routesim::tools
