// The arrival processes of the load tools, to the letter. Each is a stream of due times relative
// to the start of its stage; memory does not grow with the number of requests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/units.h"

namespace routesim::workloads {

/// Due times of one stage, in order.
class ArrivalStream {
 public:
  virtual ~ArrivalStream() = default;
  /// Stores the next due time, counted from the stage's origin. False when there is none left.
  virtual bool next(Duration& due) = 0;
};

/// No load is as long (the longest a run accepts takes days): what is due later is due then, so
/// that sums of times cannot overflow before the load is refused.
Duration within_a_century(double seconds);

/// A rate or the like with six digits at most, for names and notes.
std::string short_number(double value);

/// Requests of a rate stage: int(rate * duration), truncated (inference-perf).
std::int64_t requests_of_stage(double rate, double duration_s);

/// inference-perf `constant`: exponential gaps scaled so that the N = requests_of_stage arrivals
/// end exactly at `duration`: N uniform order statistics, not an even spacing. Costs two passes
/// over the random stream and no memory.
std::unique_ptr<ArrivalStream> constant_arrivals(double rate, double duration_s,
                                                 RandomStream random);

/// inference-perf `poisson`: each second holds Poisson(rate) arrivals (at least one, or the second
/// is skipped) whose exponential gaps are scaled to fill that second exactly, so the last arrival
/// of every second sits on its end; stops after N = requests_of_stage arrivals, so the count is
/// fixed and the span is random. `rate` must be in (0, 1e7].
std::unique_ptr<ArrivalStream> poisson_arrivals(double rate, double duration_s,
                                                RandomStream random);

/// A textbook Poisson process: `requests` arrivals with exponential gaps of mean 1/rate.
std::unique_ptr<ArrivalStream> exponential_arrivals(double rate, std::int64_t requests,
                                                    RandomStream random);

/// `requests` arrivals at time zero: closed loops, "rate inf".
std::unique_ptr<ArrivalStream> immediate_arrivals(std::int64_t requests);

/// How `vllm bench serve` raises its rate over the run.
enum class RampUp { kNone, kLinear, kExponential };

/// The arrival options of `vllm bench serve`.
struct VllmArrivals {
  std::int64_t requests = 0;
  double rate = 0;        ///< Requests/s (> 0); infinity = all at once. Ignored while ramping up.
  double burstiness = 1;  ///< Shape of the gamma gaps (> 0); infinity = evenly spaced.
  RampUp ramp_up = RampUp::kNone;
  double ramp_start = 0;  ///< Requests/s of the first request (> 0).
  double ramp_end = 0;    ///< Requests/s of the last request (> 0).
  /// Versions before the rescaling: the first request leaves at once, gaps follow each send, and
  /// the last arrival falls where it may.
  bool legacy = false;
};

/// Gamma(burstiness, 1 / (rate * burstiness)) gaps, cumulated and (without ramp-up) rescaled so
/// that the last of n arrivals is exactly at n / rate. With ramp-up request j has its own rate,
/// start + (end - start) j / (n - 1) or start (end / start)^(j / (n - 1)), and nothing is rescaled.
std::unique_ptr<ArrivalStream> vllm_arrivals(const VllmArrivals& options, RandomStream random);

/// The rate request j of a ramp asks for.
double ramp_rate(const VllmArrivals& options, std::int64_t j);

/// Due times from a function that returns false at the end (traces, tests).
std::unique_ptr<ArrivalStream> callback_arrivals(std::function<bool(Duration&)> next);

}  // namespace routesim::workloads
