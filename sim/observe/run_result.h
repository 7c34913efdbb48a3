// The findings of one run of one variant. Plain data: rendering lives in tools/.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/describe.h"
#include "base/units.h"
#include "models/latency_model.h"
#include "sim/fleet/fleet_result.h"
#include "sim/network/links.h"
#include "sim/observe/timeline.h"
#include "sim/statistics/samples.h"
#include "sim/tiers/tier_counters.h"
#include "workloads/load_generator.h"

namespace routesim::sim {

/// The most that a stage may leave unanswered of what it is asked; see StageResult::unanswered().
/// Beyond it requests pile up until the stage ends, or time out, or are refused.
inline constexpr double kMostQueueGrowth = 0.02;

/// Linux gives up a connection to a machine that no longer answers when 15 retransmissions have
/// failed (net.ipv4.tcp_retries2: 924.6 s with the shortest time-outs).
inline constexpr Duration kConnectionLost = Duration::milliseconds(924'600);

/// Whether a stage shows what its load would do without end.
enum class StageState {
  kSteady,   ///< No queue grows, and it is long enough to tell.
  kGrowing,  ///< StageResult::overloaded().
  kTooShort  ///< It ends before it tells.
};

/// A stage tells no more than what comes from so many of its mean answers.
inline constexpr double kFewestAnswers = 3;

/// KV blocks outside GPU memory: what one endpoint did with them, or all that have some.
struct TierResult {
  std::int64_t hbm_query_tokens = 0;  ///< Prompt tokens looked up in GPU memory first,
  std::int64_t hbm_hit_tokens = 0;    ///< and found there.
  TierCounters did;
  double capacity_bytes = 0;
  double used_bytes = 0;  ///< At the end of the run.
  LinkUse links;          ///< Of several endpoints: the mean.
  /// Prompt tokens loaded over all looked up: with the hits in GPU memory, the hits of all caches.
  double hit_ratio() const {
    return hbm_query_tokens > 0
               ? static_cast<double>(did.hit_tokens) / static_cast<double>(hbm_query_tokens)
               : 0;
  }
};

/// What the timeline and the fleet of a run come to.
struct FleetNumbers {
  std::optional<double> mean_servers{};  ///< Of all pools: what is paid for.
  std::optional<double> lost{};          ///< FleetResult::lost.
  std::optional<double> cost{};          ///< US dollars.
  /// In which goals are missed; absent without goals. The simulator leaves it to an observer.
  std::optional<double> missed_minutes{};
};

/// One load stage, or the whole run, with inference-perf's definitions. Latency metrics are of
/// successful requests, in seconds, as the client sees them.
struct StageResult {
  workloads::StageInfo info;
  std::int64_t requests = 0;  ///< Sent.
  std::int64_t successes = 0;
  std::int64_t failures = 0;
  std::map<std::string, std::int64_t> failures_by_label;
  SimTime first_send = SimTime::max();
  SimTime last_send;
  SimTime last_end;
  Samples schedule_delay;
  Samples request_latency;
  Duration held_open;  ///< Part of the latencies: workloads::Request::held_open, summed.
  Samples time_to_first_token;
  Samples time_per_output_token;
  Samples normalized_time_per_output_token;
  Samples inter_token_latency;  ///< All gaps pooled; none without a success.
  Samples prompt_tokens;
  Samples output_tokens;                 ///< As the client counts them.
  std::int64_t prompt_tokens_total = 0;  ///< Of successes.
  std::int64_t cached_tokens_total = 0;  ///< Prompt tokens served from a prefix cache, successes.
  std::int64_t output_tokens_total = 0;  ///< As the client counts them, successes.
  std::int64_t preemptions = 0;
  /// Successes that met the caller's latency goals; absent when there were none. The simulator
  /// leaves it to an observer.
  std::optional<std::int64_t> good_requests{};
  /// In the summary, where some pool has tiers: all of the run, unreported stages included.
  std::optional<TierResult> tiers{};
  FleetNumbers fleet{};  ///< In the summary.
  /// Time-weighted over endpoints, first send to last end, 0..1; NaN of a run that was stopped
  /// before the stage ended.
  double kv_cache_usage_mean = 0;
  double kv_cache_usage_max = 0;
  /// Only a load that keeps its rate has these; the whole run has those of its worst stages.
  double queue_growth = 0;  ///< QueueGrowth::per_second().
  double most_growth = 0;   ///< QueueGrowth::most_per_second().
  double turned_away = 0;   ///< Share that time-outs and refusals end, less two standard errors.

  /// Share of what the stage is asked that it does not answer in time.
  double unanswered() const { return std::max(queue_growth, turned_away); }
  /// Whether the stage is asked more than it answers; of the whole run whether any stage is.
  bool overloaded() const { return unanswered() > kMostQueueGrowth; }
  /// Nothing where it was sent nothing, or all at once.
  std::optional<StageState> state() const {
    if (requests == 0 || successes == 0 || send_duration_s() <= 0) return std::nullopt;
    if (overloaded()) return StageState::kGrowing;
    const bool few = send_duration_s() < kFewestAnswers * request_latency.mean();
    return few || !(most_growth <= kMostQueueGrowth) ? StageState::kTooShort : StageState::kSteady;
  }
  /// Seconds for which a stage that is too short should send to tell: several answers, and a queue
  /// whose error, which falls as that of a random walk, leaves no doubt. At most 100 times as long.
  double telling_s() const {
    const double sent = send_duration_s(), answers = kFewestAnswers * request_latency.mean();
    const double left = kMostQueueGrowth - std::max(0.0, queue_growth);
    const double error = most_growth - std::max(0.0, queue_growth);
    const double longer = std::isfinite(error) && left > 0
                              ? std::clamp(error * error / (left * left), 1.0, 100.0)
                              : 100;
    return most_growth <= kMostQueueGrowth ? answers : std::max(answers, sent * longer);
  }
  /// Whether its load sends at a rate, whatever is answered.
  bool keeps_rate() const { return info.requested_rate > 0 && std::isfinite(info.requested_rate); }
  double send_duration_s() const {
    return requests > 0 ? (last_send - first_send).to_seconds() : 0;
  }
  /// max(end) - min(send), the denominator of every throughput.
  double total_time_s() const { return requests > 0 ? (last_end - first_send).to_seconds() : 0; }
  double per_second(double total) const {
    const double t = total_time_s();
    return t > 0 ? total / t : 0;
  }
  double prefix_hit_ratio() const {
    return prompt_tokens_total > 0
               ? static_cast<double>(cached_tokens_total) / static_cast<double>(prompt_tokens_total)
               : 0;
  }
};

/// What became of drafts on one endpoint, as vLLM counts it.
struct SpeculationResult {
  std::int64_t drafts = 0;           ///< Verifications with drafts.
  std::int64_t draft_tokens = 0;     ///< Guessed.
  std::int64_t accepted_tokens = 0;  ///< Of these.
  std::vector<std::int64_t> accepted_per_position;
  /// Mean tokens that a verification yields, before an answer's end cuts them.
  double mean_length() const {
    return drafts > 0 ? 1 + static_cast<double>(accepted_tokens) / static_cast<double>(drafts) : 1;
  }
};

/// One endpoint (replica and DP rank) over the whole run.
struct ReplicaResult {
  std::string name;  ///< `pool-replica` or `pool-replica-rank-n`.
  std::string pool;
  std::int64_t requests = 0;  ///< Requests routed to it.
  std::int64_t steps = 0;     ///< Engine steps executed.
  double busy_s = 0;          ///< Time in steps.
  std::int64_t prefix_query_tokens = 0;
  std::int64_t prefix_hit_tokens = 0;  ///< In GPU memory.
  std::int64_t preemptions = 0;
  std::int64_t num_gpu_blocks = 0;
  std::int64_t kv_cache_tokens = 0;  ///< The same as vLLM's log counts it.
  std::int64_t evicted_blocks = 0;   ///< Cached blocks recycled for new content.
  double kv_cache_usage_mean = 0;    ///< Time-weighted over the run, 0..1.
  double kv_cache_usage_max = 0;
  std::int64_t max_running = 0;
  std::int64_t max_waiting = 0;
  std::optional<TierResult> tiers;               ///< Set where the pool has some.
  std::optional<SpeculationResult> speculation;  ///< Set where the pool speculates.
};

/// The basis of the step times of a pool.
struct StepTimes {
  std::string pool;
  models::Trust trust = models::Trust::kFitted;  ///< kExtrapolated when much time was outside.
  double busy_s = 0;                             ///< Busy time of its engines.
  double extrapolated_s = 0;  ///< The part of it in batches outside the range of the measurements.
};

/// The largest share of a pool's busy time outside the fitted range that passes as fitted.
inline constexpr double kMostExtrapolated = 0.05;

/// The results of the gateway.
struct GatewayResult {
  std::int64_t refused = 0;  ///< Requests that a limit answered with 503.
  std::int64_t retries = 0;  ///< Refusals of the router that it sent there again.
  std::int64_t retries_refused =
      0;                    ///< Refusals it passed on because of max_retries or the budget.
  std::int64_t waited = 0;  ///< Requests that waited for a connection.
  Duration longest_wait;
  std::int64_t most_in_flight = 0;  ///< At once on the way to servers or there.
  std::int64_t most_waiting = 0;
};

/// The results of the router.
struct RoutingResult {
  std::int64_t decisions = 0;
  std::int64_t rejected = 0;                ///< Refused by the router, and not retried.
  std::int64_t predicted_hit_tokens = 0;    ///< Tokens the router's index expected to hit.
  std::int64_t disaggregated = 0;           ///< Decisions with a prefill endpoint.
  std::optional<double> mean_wait_s{};      ///< For a router process, where decisions take time,
  double longest_wait_s = 0;                ///< and the longest wait.
  std::optional<double> decisions_per_s{};  ///< The most that all its processes make.
  bool priced = false;                      ///< RunPlan::price_decisions.
  double regret_s = 0;                      ///< Then: over all routed requests, in client-seconds.
  std::int64_t prompt_tokens = 0;
  std::int64_t hit_tokens = 0;  ///< Tokens the engines really hit.
  std::optional<GatewayResult> gateway{};
  double mean_regret_s() const {
    return decisions > 0 ? regret_s / static_cast<double>(decisions) : 0;
  }
  double prefix_hit_ratio() const {
    return prompt_tokens > 0 ? static_cast<double>(hit_tokens) / static_cast<double>(prompt_tokens)
                             : 0;
  }
};

/// The tokens that a request got from caches, and its waits for them.
struct TierHit {
  std::int64_t hbm_tokens = 0;     ///< Hit in GPU memory, where the prompt is computed.
  std::int64_t loaded_tokens = 0;  ///< Hit at first admission, beyond GPU memory.
  std::int64_t pulled_tokens = 0;  ///< The part of these that came from another server.
  Duration load_wait, pull_wait;   ///< Waits for all loads; for a pull that brought something.
};

/// One request, kept when the caller asks for per-request records.
struct RequestRecord {
  std::int64_t id = 0;
  std::int32_t stage = 0;
  std::int32_t endpoint = -1;
  std::int32_t prefill_endpoint = -1;
  SimTime due, sent, first_token, end;
  Duration held_open;  ///< workloads::Request::held_open of a success.
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int32_t preemptions = 0;
  std::uint32_t traffic_class = 0;         ///< Of WorkloadConfig::classes.
  std::uint32_t adapter = 0;               ///< LoRA adapter, RunPlan::adapters; 0 = the base model.
  std::int64_t predicted_hit_tokens = -1;  ///< What the router's index expected; -1 = no index.
  workloads::Outcome outcome = workloads::Outcome::kSuccess;
  double regret_s = 0;       ///< Price of its decision above the best one; see Omniscient.
  const char* failure = "";  ///< Label of the failure, a literal.
  TierHit tier;
};

struct RunResult {
  std::string scenario;
  std::string variant;
  std::uint64_t seed = 0;
  std::vector<StageResult> stages;
  StageResult summary;
  /// The requests of each traffic class in the reported stages. They know no gaps between tokens,
  /// no KV usage and no growth of queues, which are the servers'.
  std::vector<StageResult> classes;
  RoutingResult routing;
  std::vector<ReplicaResult> replicas;
  std::optional<FleetResult> fleet;     ///< Where it changes.
  std::optional<Timeline> timeline;     ///< Where it or the load does; an observer's, too.
  std::vector<StepTimes> step_times;    ///< By pool.
  std::vector<RequestRecord> requests;  ///< Empty unless asked for.
  SimTime end;                          ///< Simulated length of the run.
  std::uint64_t fingerprint = 0;        ///< Order-dependent hash of every token-visible event.
  std::vector<std::string> notes;       ///< Trust labels and warnings, in a fixed order.

  /// The least known of the pools.
  models::Trust trust() const {
    models::Trust least = models::Trust::kFitted;
    for (const StepTimes& pool : step_times) least = std::max(least, pool.trust);
    return least;
  }
};

}  // namespace routesim::sim

template <>
struct routesim::EnumNames<routesim::sim::StageState> {
  static constexpr std::array<std::string_view, 3> value = {"steady", "growing", "too-short"};
};
