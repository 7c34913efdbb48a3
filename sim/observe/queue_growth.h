// How fast the queue of a stage grows while the stage sends: whether it ever ends.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace routesim::sim {

/// The share of its requests that a stage does not answer, 0..1 in a steady state: the growth of
/// the time to first token in seconds per second of sending, or of the requests in flight per
/// request that is sent. Whole numbers, so the order of additions cannot change a result. O(1) per
/// request.
class QueueGrowth {
 public:
  /// A request that is sent `since_first_send` after the stage's first one, and how many of the
  /// stage are in flight with it.
  void on_sent(Duration since_first_send, std::int64_t in_flight);
  /// A success that was sent `since_first_send` after the stage's first one.
  void on_answered(Duration since_first_send, Duration ttft, Duration latency);

  /// The larger growth of the two, from the middle third of the `send_s` seconds in which the stage
  /// sent to the last third, less 1.5 standard errors. The error takes the value for a random walk
  /// with the steps that are seen, as a queue at its critical load is one: a queue below it is
  /// calmer. Requests in flight count from three mean answers of the first third on, less what a
  /// fleet that starts empty still gains then. 0 with fewer than 10 requests in either third.
  double per_second(double send_s) const;
  /// The same with 1.5 standard errors more: the most that the stage may really grow. Infinite with
  /// fewer than 10 requests in either third.
  double most_per_second(double send_s) const;

 private:
  static constexpr double kFewest = 10;  ///< Requests in a third.
  struct Mean {
    double value = 0, requests = 0;
  };

  /// Values by when their requests were sent, in at most kBins bins of equal width. Bins decide
  /// where a third begins, so it is off by at most one of 120.
  class Series {
   public:
    void add(Duration at, std::int64_t value);
    Mean between(double from_s, double to_s) const;
    /// Standard error of the difference between the last two thirds, as of a random walk. Infinite
    /// where too few parts of them have a value.
    double error(double third_s) const;

   private:
    static constexpr std::size_t kBins = 240;
    struct Bin {
      std::int64_t requests = 0, sum = 0;
    };
    std::int64_t width_ns_ = 1'000'000;
    std::vector<Bin> bins_;
  };

  double growth_of_ttft(double third_s, double errors) const;
  double growth_in_flight(double third_s, double errors) const;

  Series ttft_us_, latency_us_, in_flight_;
};

}  // namespace routesim::sim
