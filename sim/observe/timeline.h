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
  };
  double bin_s = 0;
  std::vector<std::int64_t> sent, answered, failed;  ///< By bin, from the start of the run.
  std::optional<Goals> goals{};

  /// From the first bin with a request to the last one.
  double minutes() const;
  /// Those of the missed stretches, without the bins in them that have no request.
  double missed_minutes() const;
};

/// The share of requests within the goals that is looked for where a scenario expects none.
inline constexpr double kUsualShare = 0.95;

/// The stretches of `t.goals` below its share. Bins without a request, up to 5 min of them, are
/// part of the stretch around them. A stretch counts when it has kFewestJudged requests, and chance
/// alone leaves so few good ones, where each is good with that share, in fewer than 1 of 1,000.
std::vector<MissedSpan> missed_spans(const Timeline& t);
inline constexpr std::int64_t kFewestJudged = 5;

/// Counts in bins that become twice as wide whenever there are more than kMostBins: memory is flat,
/// and counts stay exact. O(1) per request.
class TimelineCounter {
 public:
  /// Doubled, this makes whole minutes; a day has bins of one.
  static constexpr Duration kFirstWidth = Duration::seconds(15);
  static constexpr std::size_t kMostBins = 1'500;

  void on_sent(SimTime at) { ++bin(at).sent; }
  /// `good` meets the goals; of a failed request it is not asked.
  void on_done(SimTime sent, SimTime end, bool answered, bool good);
  /// Without its misses.
  Timeline timeline() const;
  std::vector<std::int64_t> good() const;
  /// When the last request ended that was sent in this stretch and did not meet the goals, s.
  double last_miss_s(const MissedSpan& span) const;

 private:
  struct Bin {
    std::int64_t sent = 0, answered = 0, good = 0, failed = 0;
    SimTime last_miss;
  };
  Bin& bin(SimTime at);
  double width_s() const { return static_cast<double>(width_.ns()) / 1e9; }  ///< Without rounding.
  std::vector<std::int64_t> column(std::int64_t Bin::*member) const;

  Duration width_ = kFirstWidth;
  std::vector<Bin> bins_;
};

}  // namespace routesim::sim
