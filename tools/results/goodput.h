// Goodput: how many requests met every latency goal at once.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/observe/observer.h"
#include "sim/observe/run_result.h"
#include "sim/plan/scenario.h"

namespace routesim::tools {

/// Bounds in seconds (per token for tpot, ntpot and itl), as inference-perf's `report.goodput`
/// names them. A request is good when it succeeds and meets all of them. The mean gap between a
/// request's tokens is its time per output token, so `itl` bounds the same number as `tpot`.
struct GoodputGoals {
  std::optional<double> ttft, tpot, itl, ntpot, request_latency;
  /// Those of each load of a mix, in place of the others; empty where there is no mix.
  std::vector<GoodputGoals> of_parts = {};

  bool operator==(const GoodputGoals& other) const = default;
  bool empty() const {
    return !ttft && !tpot && !itl && !ntpot && !request_latency &&
           std::all_of(of_parts.begin(), of_parts.end(),
                       [](const GoodputGoals& part) { return part.empty(); });
  }
  /// The goals that hold for a load of the mix; -1: for the whole run.
  const GoodputGoals& of(std::int64_t part) const {
    return part < 0 || of_parts.empty() ? *this : of_parts[static_cast<std::size_t>(part)];
  }
};

/// The goals that are set, by name, in a fixed order.
std::vector<std::pair<std::string_view, double>> goal_list(const GoodputGoals& goals);

/// The place at which ToolGoodput counts the goal with this name.
std::size_t goal_index(std::string_view name);

/// Reads one `name:bound` as `vllm bench serve --goodput` takes it, such as `ttft:500ms`; a bound
/// without a unit is in milliseconds there, so here the unit is asked for. On failure returns what
/// is wrong.
std::string read_goal(const std::string& text, GoodputGoals& goals);

/// The same over successes, as inference-perf's reports count it: answers of one token have no
/// TTFT, TPOT and ITL there, and do not meet their bounds.
struct ToolGoodput {
  std::int64_t good = 0;
  std::int64_t good_tokens = 0;            ///< Prompt and output tokens of them.
  std::array<std::int64_t, 5> attained{};  ///< Requests that met a goal, by goal_index().
  SimTime first_send = SimTime::max();     ///< Of the successes, like the next.
  SimTime last_end;

  void add(const ToolGoodput& other);
};

struct GoodputCount {
  std::int64_t good = 0;         ///< Requests that met every goal.
  std::int64_t good_tokens = 0;  ///< Their output tokens, as the client counts them.
  ToolGoodput tool{};
};

struct GoodputResult {
  GoodputGoals goals;
  std::vector<GoodputCount> stages;      ///< By stage.
  GoodputCount summary = {};             ///< Of the reported stages.
  std::vector<GoodputCount> parts = {};  ///< The same by load of a mix.
};

/// The goals a scenario states: its own `goodput`, else its load tool's `report.goodput`. A load of
/// a mix has its own before both. A goal that cannot be read is left out.
GoodputGoals goals_of(const sim::Scenario& scenario);

/// The share of requests within the goals that a scenario expects of the whole run, as in
/// `goodput > 0.99`; the highest of several. Nothing where it expects none, or only beside another
/// variant.
std::optional<double> expected_share(const sim::Scenario& scenario);

/// Counts while a run goes on; over time, too, where the fleet or the load changes.
class GoodputObserver final : public sim::Observer {
 public:
  /// `output_token_scale`: tokens the client counts per token generated. A client that sees no
  /// single tokens has no TTFT, TPOT and ITL, and a bound of those is not met.
  GoodputObserver(const GoodputGoals& goals, double output_token_scale, bool sees_tokens = true)
      : goals_(goals), output_token_scale_(output_token_scale), sees_tokens_(sees_tokens) {}

  /// Whether a run of the scenario has a timeline, goals or not.
  static bool keeps_time(const sim::Scenario& scenario);

  void on_start(const sim::RunView& view) override;
  void on_sent(const workloads::Request& request, SimTime now) override;
  void on_done(const sim::RequestRecord& record) override;
  /// Fills in `good_requests` of the stages, of the loads of a mix and of the whole run.
  void complete(sim::RunResult& run) const;
  /// Nothing where no timeline is kept.
  const std::optional<sim::TimelineCounter>& over_time() const { return over_time_; }
  /// The same of each load of a mix that has goals, by the load's number. Empty without a mix.
  std::map<std::int64_t, sim::TimelineCounter> loads_over_time() const;
  /// The counts, with the summary over the reported stages of `run`.
  GoodputResult result(const sim::RunResult& run) const;

 private:
  /// Whether an answered request is good.
  bool count(const sim::RequestRecord& record);

  GoodputGoals goals_;
  double output_token_scale_;
  bool sees_tokens_;
  std::vector<GoodputCount> stages_;
  const std::vector<workloads::StageInfo>* in_run_ = nullptr;
  std::optional<sim::TimelineCounter> over_time_;
  std::map<std::int64_t, sim::TimelineCounter> loads_;  ///< By StageInfo::part.
};

}  // namespace routesim::tools
