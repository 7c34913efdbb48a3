// A run over time: requests by when they were sent, and the stretches in which goals are missed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace routesim::sim {

/// Adjacent bins in which fewer requests meet the goals than should.
struct MissedSpan {
  double from_s = 0, to_s = 0;
  std::int64_t sent = 0, good = 0;
  std::string why{};  ///< What the fleet did then.
};

/// Requests of the reported stages, by the bin in which they were sent. Each that was sent is
/// answered or failed, but for those that a stopped run leaves open.
struct Timeline {
  /// Where there are latency goals.
  struct Goals {
    std::vector<std::int64_t> good;  ///< Of the answered ones: those that meet every goal.
    double share = 0;                ///< Of the requests that should.
    bool expected = false;           ///< The scenario says so; else it is kUsualShare.
    std::vector<MissedSpan> missed{};
    double missed_minutes = 0;  ///< Of those stretches, without times in which nothing is sent.
  };
  double bin_s = 0;
  std::vector<std::int64_t> sent, answered, failed;  ///< By bin, from the start of the run.
  std::optional<Goals> goals{};

  /// From the first bin with a request to the last one.
  double minutes() const;
  /// The bins of Goals::missed, but for minutes in which nothing is sent.
  std::vector<bool> missed_bins() const;
};

/// The share of requests within the goals that is looked for where a scenario expects none.
inline constexpr double kUsualShare = 0.95;

/// The stretches of `t.goals` below its share. Bins without a request, up to 5 min of them, are
/// part of the stretch around them. A stretch counts when it has kFewestJudged requests, and chance
/// alone leaves so few good ones, where each is good with that share, in fewer than 1 of 1,000.
std::vector<MissedSpan> missed_spans(const Timeline& t);
inline constexpr std::int64_t kFewestJudged = 5;

/// Counts in bins that become twice as wide whenever there are more than kMostBins; bins of a
/// minute do so only beyond kMostMinutes, so that goals are judged by the minute in runs of a
/// quarter of a day or of 100 days. Memory is flat, and counts stay exact. O(1) per request.
class TimelineCounter {
 public:
  /// Doubled, this makes whole minutes.
  static constexpr Duration kFirstWidth = Duration::seconds(15);
  static constexpr std::size_t kMostBins = 1'500, kMostMinutes = 150'000;

  void on_sent(SimTime at) { ++bin(at).sent; }
  /// The bins of `whole`, which counts these requests, too.
  TimelineCounter in_bins_of(const TimelineCounter& whole) const;
  /// `good` meets the goals; of a failed request it is not asked.
  void on_done(SimTime sent, SimTime end, bool answered, bool good);
  /// Without its misses.
  Timeline timeline() const;
  /// The same in at most kMostBins, to be shown.
  TimelineCounter folded() const;
  std::vector<std::int64_t> good() const;
  /// When the last request ended that was sent in this stretch and did not meet the goals, s.
  double last_miss_s(const MissedSpan& span) const;

 private:
  struct Bin {
    std::int64_t sent = 0, answered = 0, good = 0, failed = 0;
    SimTime last_miss;
  };
  Bin& bin(SimTime at);
  void double_width();
  double width_s() const { return static_cast<double>(width_.ns()) / 1e9; }  ///< Without rounding.
  std::vector<std::int64_t> column(std::int64_t Bin::*member) const;

  Duration width_ = kFirstWidth;
  std::vector<Bin> bins_;
};

}  // namespace routesim::sim
