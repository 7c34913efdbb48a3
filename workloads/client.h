// The load tool's own client: stages one after another, a FIFO of due requests, and a fixed number
// of permits. Every tool that has no turns to keep in order is a set of StagePlans for this client.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "workloads/load_generator.h"
#include "workloads/load_stages.h"
#include "workloads/sweep.h"

namespace routesim::workloads {

/// Makes the requests of a workload; the client draws a few of them ahead.
class RequestSource {
 public:
  virtual ~RequestSource() = default;
  /// Fills prompt, output_tokens, max_tokens, output_content, session and priority of request
  /// `index` (from 0) of stage `stage`. Called exactly once per request, in order, after the
  /// arrival of this request has been drawn and before the next one is.
  virtual void fill(std::size_t stage, std::int64_t index, Request& request) = 0;
};

inline constexpr std::int64_t kUnlimitedPermits = std::numeric_limits<std::int64_t>::max();

/// One stage: what to report, when requests are due, how many may be in flight. `arrivals` may be
/// null where a sweep makes them.
struct StagePlan {
  StageInfo info{};
  std::unique_ptr<ArrivalStream> arrivals{};
  std::int64_t permits = kUnlimitedPermits;
  Duration timeout = Duration::max();  ///< Request.timeout of its requests.
};

/// The pauses around a stage.
struct StageTiming {
  Duration lead = Duration::zero();      ///< From the start of a stage to the origin of due times.
  Duration poll = Duration::zero();      ///< A stage's end is noticed at multiples of this.
  Duration interval = Duration::zero();  ///< From the noticed end to the next start.
};

/// When a stage that started at `start` and whose last request ended at `last` is seen to be over.
SimTime stage_end(SimTime start, SimTime last, Duration poll);

/// A client of stages knows which stage it is in, when that began, and the probe of a sweep, which
/// is the first stage and has no interval behind it.
class StageClient : public LoadGenerator {
 public:
  const std::vector<StageInfo>& stages() const final { return infos_; }
  bool finished() const final { return stage_ == infos_.size(); }
  std::vector<std::string> notes() const final;

 protected:
  StageClient(StageTiming timing, std::unique_ptr<RateSweep> sweep);
  bool is_probe() const { return sweep_ != nullptr && stage_ == 0; }
  /// The stage begins. One whose rate the sweep found gets its arrivals.
  void begin_stage(SimTime start, std::unique_ptr<ArrivalStream>& arrivals);
  /// Tells a probe how many requests are under way.
  void see(std::int64_t under_way);
  /// The timeout of a request that is sent now: `own`, or what a probe's deadline leaves.
  Duration timeout(Duration own) const;
  /// The stage is over. Goes to the next and returns when that begins.
  SimTime next_stage();

  std::vector<StageInfo> infos_;
  StageTiming timing_;
  SimTime now_;
  SimTime stage_start_;
  SimTime limit_ = SimTime::max();  // A probe that still runs then is cut.
  std::size_t stage_ = 0;           // infos_.size() when finished.

 private:
  std::unique_ptr<RateSweep> sweep_;
};

/// A FIFO G/G/K station per stage: request i is sent at max(due_i, the instant at which at least
/// i - K + 1 earlier requests of the stage have completed). A stage ends when all its requests
/// have completed (whatever their outcome); stages never overlap.
class StagedClient final : public StageClient {
 public:
  StagedClient(std::vector<StagePlan> stages, std::unique_ptr<RequestSource> source,
               StageTiming timing, std::unique_ptr<RateSweep> sweep = nullptr);

  SimTime next_action() const override;
  void advance(SimTime now, std::vector<Request>& out) override;
  void on_completed(const Request& request, Outcome outcome, SimTime now) override;
  const Request* upcoming(std::size_t i) const override {
    return i < drawn_ - next_ ? &ahead_[next_ + i] : nullptr;
  }

 private:
  /// Requests are drawn a few at a time, for upcoming().
  static constexpr std::size_t kAhead = 8;

  void start_stage(SimTime start);
  void draw();
  void end_stage_if_over();
  bool all_sent() const { return next_ == drawn_; }

  std::vector<StagePlan> plans_;
  std::unique_ptr<RequestSource> source_;
  std::int64_t index_ = 0;             // Index of the stage's next request to draw.
  std::array<Request, kAhead> ahead_;  // From next_ to drawn_: still to be sent.
  std::size_t next_ = 0;
  std::size_t drawn_ = 0;
  std::int64_t in_flight_ = 0;
  std::uint64_t next_id_ = 0;
};

}  // namespace routesim::workloads
