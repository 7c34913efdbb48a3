// Turns request records into stage results with inference-perf's definitions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/observe/queue_growth.h"
#include "sim/observe/run_result.h"
#include "sim/plan/scenario.h"
#include "workloads/load_generator.h"

namespace routesim::sim {

/// Whether the load tool streams its answers (inference-perf: `api.streaming`). Without that it has
/// no time of any token: no TTFT, TPOT and ITL.
bool client_sees_tokens(const WorkloadConfig& workload);
/// Takes those from the stages and the summary, and says so.
void forget_token_times(RunResult& result);

/// Whether a failure with this label is a time-out or a refusal (429, 503). Those keep a queue from
/// growing, and the load is no less for that.
bool is_turned_away(std::string_view failure_label);

class MetricsCollector {
 public:
  MetricsCollector(const std::vector<workloads::StageInfo>& stages, const WorkloadConfig& workload);

  void on_sent(const workloads::Request& request, SimTime now);
  /// A gap that was longer than a step, of a request of `stage`.
  void on_gap(StageId stage, Duration gap);
  void on_done(const RequestRecord& record, const char* failure_label);
  /// A request of the stage is_turned_away() although there was always somebody to serve it.
  void on_turned_away(StageId stage) { ++turned_away_[stage.value()]; }
  StageResult& stage(StageId id) { return stages_[id.value()]; }
  /// Of all reported stages so far.
  SimTime first_send() const;
  std::vector<StageResult>& stages() { return stages_; }
  std::vector<StageResult>& classes() { return classes_; }
  /// Tokens the client counts for `generated` tokens; at least 1.
  std::int64_t counted(std::int64_t generated) const;
  /// Forgets the gaps of stages without a success: latencies are those of successes. Gaps are
  /// counted a step at a time, so where some requests succeeded those of the others stay among
  /// them.
  void drop_gaps_without_success();
  /// For a stopped run: values that are only known when a stage ends become unknown, not zero.
  void forget_unfinished();
  /// Fills in how fast the queue of each stage grew.
  void measure_growth();
  /// The reported stages pooled.
  StageResult summary() const;

 private:
  /// Counts what a stage and a traffic class have in common.
  void count_sent(StageResult& s, const workloads::Request& request, SimTime now) const;
  void count_done(StageResult& s, const RequestRecord& record, const char* failure_label) const;

  double output_token_scale_;
  std::vector<StageResult> stages_;
  std::vector<StageResult> classes_;       ///< By traffic class.
  std::vector<QueueGrowth> growth_;        ///< By stage.
  std::vector<std::int64_t> turned_away_;  ///< By stage.
};

}  // namespace routesim::sim
