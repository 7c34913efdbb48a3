// The load tool as the simulation sees it: something that sends requests when its own rules (due
// times, permits, turns, stage ends) allow, and is told when they complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "workloads/request.h"

namespace routesim::workloads {

/// Facts about a stage that a report needs.
struct StageInfo {
  std::string name{};  ///< "0", "1", … or the tool's own word.
  /// Requests/s; 0 for closed loops, infinity for "all at once". Where the load finds its rates
  /// while it runs (inference-perf's load.sweep): 0 until the stage starts.
  double requested_rate = 0;
  double duration_s = 0;           ///< Requested length; 0 when the tool has none.
  std::int64_t requests = 0;       ///< Requests the stage will send; -1 when only the end tells.
  std::int64_t concurrency = 0;    ///< Closed-loop level; 0 for open loops.
  std::int64_t in_flight_cap = 0;  ///< Requests the client keeps in flight at most; 0 = no limit.
  bool reported = true;            ///< False for warm-up stages the published tables leave out.
  /// Sent before the run, and no stage to the tool, which has no report for it (the test request of
  /// `vllm bench serve`). Never `reported`.
  bool is_preparation = false;
  /// Seconds before the first request is due that belong to the stage's time for a tool whose clock
  /// runs by then (`vllm bench serve`: the first gap between arrivals).
  double lead_s = 0;
  std::int32_t part = -1;  ///< Load of a mix that has the stage; -1 where there is no mix.
};

/// How a request ended, as the client saw it.
enum class Outcome { kSuccess, kTimeout, kError };

/// A deterministic load tool. The simulation calls `advance(now)` at `next_action()` and after
/// completions, and `on_completed` once per request it was given, in time order.
class LoadGenerator {
 public:
  virtual ~LoadGenerator() = default;

  /// The stages, in the order they run. Their number is fixed after construction, and what they
  /// hold, too; only a requested_rate, and with it a count of requests, may become known when its
  /// stage starts.
  virtual const std::vector<StageInfo>& stages() const = 0;

  /// The next instant at which something happens by itself; SimTime::max() when the generator only
  /// waits for completions, or has finished.
  virtual SimTime next_action() const = 0;

  /// Appends every request that is sent at `now` (send time = now) to `out`. `now` never goes back.
  virtual void advance(SimTime now, std::vector<Request>& out) = 0;

  /// The request that will be sent `i` requests after the next one (0 = the next one), as far as
  /// the generator has made it already; else null. A hint: what it holds is final, when it is sent
  /// is not. Void after the next call that is not const.
  virtual const Request* upcoming(std::size_t i) const {
    (void)i;
    return nullptr;
  }

  /// Tells that a request it sent has ended. May change next_action(), even to `now`.
  virtual void on_completed(const Request& request, Outcome outcome, SimTime now) = 0;

  /// True when every request has been sent and completed and no stage is left.
  virtual bool finished() const = 0;

  /// Facts that a reader of the results must know, a sentence each. For the end of the
  /// run.
  virtual std::vector<std::string> notes() const { return {}; }
};

/// A load whose requests are changed when they are sent.
class ChangedLoad : public LoadGenerator {
 public:
  explicit ChangedLoad(std::unique_ptr<LoadGenerator> load) : load_(std::move(load)) {}

  const std::vector<StageInfo>& stages() const final { return load_->stages(); }
  SimTime next_action() const final { return load_->next_action(); }
  void advance(SimTime now, std::vector<Request>& out) final {
    std::size_t i = out.size();
    load_->advance(now, out);
    for (; i < out.size(); ++i) change(out[i]);
  }
  void on_completed(const Request& request, Outcome outcome, SimTime now) final {
    load_->on_completed(request, outcome, now);
  }
  bool finished() const final { return load_->finished(); }
  std::vector<std::string> notes() const final { return load_->notes(); }

 protected:
  virtual void change(Request& request) = 0;
  const LoadGenerator& load() const { return *load_; }

 private:
  std::unique_ptr<LoadGenerator> load_;
};

}  // namespace routesim::workloads
