// A run as its verdict and its page see it. Every number keeps the place it has in the result file,
// so that a test (or a reader) can hold the tables of a page against its data block.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/render/document.h"
#include "tools/render/page/html_page.h"
#include "tools/results/result_record.h"

namespace routesim::tools {

/// One load stage of one variant, or the whole run.
struct StageView {
  std::string name;
  bool reported = true;
  bool unfinished = false;            ///< The run was interrupted before the stage ended.
  bool overloaded = false;            ///< Its queue grew until it ended, here or in the load tool.
  std::optional<double> telling_s;    ///< Set where it is too short to tell: how long would tell.
  bool held_back = false;             ///< The load tool could not send as fast as it was asked to.
  std::optional<double> rate;         ///< Requests/s asked for.
  std::optional<double> concurrency;  ///< Of a closed loop.
  /// What a load of a mix asks for, in place of the two: stages side by side are no ladder.
  std::optional<double> part_rate, part_concurrency;
  /// By key of the metric table: `ttft.mean`, `output_throughput`, ... And a few beside it.
  using Values = std::map<std::string, Datum, std::less<>>;
  Values values;
  /// Published values under the same keys, in base units.
  std::map<std::string, double, std::less<>> measured;
  /// `ttft`, `itl`, `tpot`, `request_latency`: values at PageRun::quantile_levels.
  std::map<std::string, std::vector<double>, std::less<>> quantiles;
  /// Values of every seed of replications under the same keys, in base units.
  std::map<std::string, std::vector<double>, std::less<>> seeds;

  /// The number under a key, or null.
  const Datum* find(std::string_view key) const;
  double number(std::string_view key, double otherwise = NAN) const;
};

/// One server over time; missing values are NaN.
struct ServerSeries {
  std::string name;
  std::map<std::string, std::vector<double>, std::less<>> values;  ///< `running`, `waiting`, ...
};

/// One server over the whole run.
struct ServerView {
  std::string name;
  std::string pool;  ///< May be empty in results of early builds.
  std::map<std::string, Datum, std::less<>> values =
      {};  ///< `requests`, `hit_ratio`, `kv_mean`, ...
};

/// A row in which a publication sums up its ladder.
struct PublishedView {
  std::string name;
  std::string unit;
  Datum simulated, measured;
};

/// A fleet from an instant on.
struct FleetMoment {
  double at_s = 0;
  std::int64_t ready = 0;
  std::optional<double> price_per_hour = {};  ///< Of the servers that exist, US dollars.
};

struct VariantView {
  std::string name;
  std::string scan_of;   ///< The variant that a scan of rates runs at this one's rate; else empty.
  std::string fleet_of;  ///< The variant that a scan of replicas runs with other servers; or empty.
  std::vector<StageView> stages;
  StageView summary;
  std::vector<StageView> classes;  ///< By traffic class, over the reported stages.
  std::vector<ServerView> servers;
  /// What became of each pool, where the fleet changed; last what several have together.
  std::vector<ServerView> pools;
  std::vector<FleetMoment> fleet;        ///< Of all pools, at each change.
  std::vector<sim::FleetMark> happened;  ///< In time order.
  std::optional<sim::Timeline> timeline;
  bool by_clock = false;  ///< The load is a demand, and the run begins at its 00:00.
  std::vector<double> series_time_s;
  std::vector<ServerSeries> series;
  std::vector<PublishedView> published;
  std::vector<std::pair<std::string, double>> goals;  ///< Goodput goals, seconds.
  std::optional<Capacity> capacity = {};              ///< With a rate; where it was found.
  std::string trust;  ///< What it rests on, and how far such results were off; may be empty.
  std::vector<std::string> notes;
  std::vector<std::pair<std::string, std::string>> resolved;  ///< Path and value of each scalar.
  std::string resolved_text;                                  ///< The same, indented.
};

/// The result of `routesim run`.
struct PageRun {
  std::string scenario, question, version, commit, hash, seed;
  std::int64_t replications = 1;
  bool interrupted = false;  ///< It was stopped: its numbers are partial.
  RunCommand command;        ///< Empty in results of early builds.
  std::vector<double> quantile_levels;
  std::vector<VariantView> variants;
  std::vector<Judgement> expectations;
};

/// The result of `routesim run`, which stands at `path` in the data block.
PageRun page_run(const RunRecord& record, const std::string& path);

// Which of the variants that face one load is best, and why: the order behind a verdict.

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
  bool held = false;                     ///< All hold these stages.
};

/// The order of variants that face one load. With goals that all of them share, goodput decides: of
/// a load that keeps its rates the share of requests within the goals, else their number a second.
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
/// Whether failures, as of TCP connections, end some stage long after its last answer: no rate over
/// that time is one of the servers.
bool end_late(const std::vector<const VariantView*>& variants,
              const std::vector<std::size_t>& stages);
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
