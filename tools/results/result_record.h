// The content of a result file of `routesim run`, as values that are described once: JSON is
// written and read by that description. The parts that a simulation hands out as they are (servers,
// routing, tiers, series) are described on its own structs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/config_node.h"
#include "base/describe.h"
#include "sim/observe/run_result.h"
#include "sim/observe/time_series.h"
#include "tools/results/report.h"
#include "tools/results/result_set.h"

namespace routesim::tools {

/// Statistics of one value per request (of inter-token latency: per token).
struct SamplesRecord {
  double mean = 0, min = 0, max = 0;
  Named<double> percentiles;  ///< `median`, `p90`, …: those that the load tool lists, in its order.
};

/// The requests that a stage sent.
struct LoadRecord {
  struct Stage {
    double send_duration = 0;   ///< Seconds.
    double requested_rate = 0;  ///< Requests/s; NaN: all at once.
    double achieved_rate = 0;   ///< Requests/s; NaN: all at once.
    std::optional<std::int64_t> concurrency = {};
  };
  std::int64_t count = 0;
  std::optional<SamplesRecord> schedule_delay;
  std::optional<Stage> stage = Stage();  ///< Of one stage only.
};

/// Seconds, as the client sees them. Absent without a value.
struct LatencyRecord {
  std::optional<SamplesRecord> request_latency, normalized_time_per_output_token;
  std::optional<SamplesRecord> time_per_output_token, time_to_first_token, inter_token_latency;
};

/// Per second from the first send to the last end.
struct ThroughputRecord {
  double input_tokens = 0, output_tokens = 0, total_tokens = 0, requests = 0;
};

/// Tokens of prompts or answers.
struct TokensRecord {
  struct Cache {
    std::int64_t cached = 0, uncached = 0;
  };
  std::optional<double> mean{}, min{}, max{};  ///< Of the successes, where there is one.
  Named<double> percentiles{};
  std::int64_t total = 0;
  std::optional<Cache> cache;  ///< Of prompts.
};

/// Goodput as inference-perf counts it.
struct ToolGoodputRecord {
  double percentage = 0, requests_per_s = 0, tokens_per_s = 0;
  std::int64_t good = 0, total = 0;
  Named<double> attained = {};  ///< `ttft_attainment_percentage`, …
};

struct SuccessesRecord {
  std::int64_t count = 0;
  LatencyRecord latency;
  ThroughputRecord throughput;
  std::optional<SamplesRecord> prompt_len, output_len;
  TokensRecord prompt_tokens{.cache = TokensRecord::Cache()}, output_tokens;
  std::optional<ToolGoodputRecord> goodput;
};

struct FailuresRecord {
  struct Label {
    std::int64_t count = 0;
    std::vector<std::string> messages = {};  ///< Always empty: a simulation has none.
  };
  std::int64_t count = 0;
  std::optional<SamplesRecord> request_latency, prompt_tokens;  ///< Always absent.
  Named<Label> by_label;
};

/// An inference-perf lifecycle report.
struct LifecycleRecord {
  double benchmark_time_s = 0;
  LoadRecord load;
  SuccessesRecord successes;
  FailuresRecord failures;
};

struct UsageRecord {
  double mean = 0, max = 0;  ///< NaN of a run that was stopped.
};

/// Latencies at each of quantile_levels(), seconds. Absent without a value.
struct QuantilesRecord {
  std::optional<std::vector<double>> time_to_first_token, inter_token_latency;
  std::optional<std::vector<double>> time_per_output_token, request_latency;
};

struct GoodputRecord {
  std::int64_t good = 0, sent = 0;
  double percentage = 0;  ///< NaN when none was sent.
  double requests_per_s = 0, output_tokens_per_s = 0;
};

/// A published number of a stage.
struct MeasuredRecord {
  std::string metric, statistic;
  double value = 0;
  std::string source;
};

/// A load stage, the whole run, or the requests of one traffic class: what only some of these have
/// is optional, and present in a stage.
struct StageRecord {
  /// Whether the stage shows what its load would do without end.
  struct Steady {
    sim::StageState state = sim::StageState::kSteady;
    std::optional<double> telling_s = {};  ///< For how long it should send; where it is too short.
  };

  std::optional<std::string> name = "";
  std::optional<bool> reported = true;
  std::optional<std::string> part = {};  ///< Name of the load, of a mix.
  LifecycleRecord lifecycle;
  double prefix_hit_ratio = 0;
  std::optional<UsageRecord> kv_cache_usage = UsageRecord();
  std::int64_t preemptions = 0;
  std::optional<bool> overloaded = false;
  std::optional<Steady> steady = {};
  std::optional<double> requests_sent_per_s =
      {};  ///< Of a whole run; stages have it in their load.
  QuantilesRecord quantiles;
  std::optional<GoodputRecord> goodput;
  std::optional<std::vector<MeasuredRecord>> measured;

  static StageRecord whole_run();
  static StageRecord traffic_class();
};

/// The requests of one traffic class.
struct ClassRecord : StageRecord {
  std::optional<Named<double>> goodput_goals;  ///< Of a load of a mix, seconds.
  ClassRecord() : StageRecord(traffic_class()) {}
};

/// The basis of the step times of a variant.
struct TrustRecord {
  struct Pool {
    std::string name, step_times;
    double outside_fitted_range = 0;  ///< Share of its busy time.
  };
  struct Validation {
    std::string quantity;
    std::int64_t published_numbers = 0;
    double mean_absolute_error_percent = 0, worst_error_percent = 0;
  };
  std::string step_times, text;
  std::vector<Pool> pools = {};
  std::vector<Validation> validation;
};

void describe(Describer& d, TrustRecord::Validation& r);

/// The errors that validation found for a class of step times.
std::vector<TrustRecord::Validation> validation_of(models::Trust trust);

/// The effect of kCapacityBand of the KV blocks near a knee.
struct CapacityBandRecord {
  double band = 0;
  std::string text;
  std::vector<StageBand> stages;
};

/// Points of every server over time, column by column.
struct SeriesRecord {
  struct Cluster {
    std::vector<std::int64_t> sent, done, failed, outstanding, unrouted;
  };
  struct Endpoint {
    std::string name, pool;
    std::vector<std::int64_t> waiting, running, in_flight;
    std::vector<double> kv_cache_usage, prefix_hit_rate, step_time_s;  ///< NaN: none there.
  };
  double interval_s = 0;
  std::vector<double> time_s;
  Cluster cluster;
  std::vector<Endpoint> endpoints;
};

/// A row in which a publication sums up its ladder.
struct PublishedRecord {
  std::string metric, statistic, unit;
  double simulated = 0, measured = 0;
  std::string source;
};

/// One variant: its run, or with replications the one of the first seed.
struct VariantRecord {
  std::string name;
  std::optional<std::string> scan_of, fleet_of;
  std::optional<Named<double>> goodput_goals;  ///< Seconds.
  std::vector<StageRecord> stages;
  StageRecord summary = StageRecord::whole_run();
  std::optional<std::vector<ClassRecord>> classes;
  sim::RoutingResult routing;
  std::optional<sim::TierResult> kv_tiers;
  std::optional<sim::FleetResult> fleet;
  std::optional<sim::Timeline> timeline;
  std::vector<sim::ReplicaResult> replicas;
  TrustRecord trust;
  std::optional<CapacityBandRecord> capacity_band;
  std::optional<Capacity> capacity;
  std::optional<std::vector<StageRecord>> preparation;
  std::optional<SeriesRecord> series;
  std::optional<std::vector<PublishedRecord>> published;
  double simulated_s = 0;
  std::string fingerprint;
  std::vector<std::string> notes;
  Document resolved;  ///< Read: its root. To be written: its JSON text as the path.
};

/// The numbers of all seeds.
struct ReplicationsRecord {
  struct Spread {
    double mean = 0, sd = 0, half_width = 0, low = 0, high = 0;  ///< NaN with one run.
  };
  struct Metric : Spread {
    std::optional<double> median = {}, median_low = {}, median_high = {};
    std::vector<double> values;
  };
  struct Stage {
    std::optional<std::string> name = "";
    std::optional<bool> reported = true;
    bool overloaded = false;
    Named<std::optional<Metric>> metrics;
  };
  struct Variant {
    std::string name;
    std::vector<std::uint64_t> seeds;
    std::vector<Stage> stages;
    Stage summary = {.name = {}, .reported = {}, .overloaded = false, .metrics = {}};
  };
  struct Percent {
    double mean = 0;
    std::optional<double> low = {}, high = {};
  };
  struct Change : Spread {
    std::optional<Percent> percent = {};
    std::string verdict;
  };
  struct StageChanges {
    std::optional<std::string> name = "";
    Named<Change> metrics;
  };
  struct Pair {
    std::string base, variant;
    bool paired = true;
    std::string note;
    std::vector<StageChanges> stages;
    StageChanges summary = {.name = {}, .metrics = {}};
  };
  std::int64_t count = 0;
  std::vector<std::uint64_t> seeds;
  double confidence = 0;
  std::optional<UntilOutcome> until;
  std::vector<Variant> variants;
  std::vector<Pair> differences;
};

/// The verdict, with plain spaces.
struct VerdictRecord {
  struct Line {
    std::string text;
    std::optional<bool> better;
  };
  struct Knee {
    std::string variant, text;
    std::optional<double> last_held, first_overloaded;  ///< Requests/s.
  };
  std::string headline, base;
  std::optional<std::string> winner;
  bool close = false;
  std::vector<std::string> failed;
  std::vector<Line> lines;
  std::string ranking;
  std::vector<Knee> knees;
  std::string overload, goals, trust;
  std::vector<std::string> next;
};

struct RunRecord {
  std::string scenario, question;
  std::uint64_t seed = 0;
  std::string version;
  std::optional<std::string> commit, scenario_hash;
  std::optional<bool> interrupted;
  std::optional<RunCommand> command;
  std::vector<double> quantile_levels;
  std::vector<VariantRecord> variants;
  std::optional<ReplicationsRecord> replications;
  std::optional<std::vector<Judgement>> expectations;
  std::optional<VerdictRecord> verdict;
};

void describe(Describer& d, LifecycleRecord& r);
void describe(Describer& d, StageRecord& r);
void describe(Describer& d, ClassRecord& r);
void describe(Describer& d, VariantRecord& r);
void describe(Describer& d, ReplicationsRecord::Percent& r);
void describe(Describer& d, ReplicationsRecord& r);
void describe(Describer& d, Judgement& j);
void describe(Describer& d, VerdictRecord& r);
void describe(Describer& d, TrustRecord& r);
void describe(Describer& d, RunRecord& r);

/// The form of a report, as far as the tool's settings decide it.
struct LifecycleForm {
  std::vector<double> percentiles{};
  bool rate_is_count = false;  ///< Stages of `concurrent` load: the tool sets rate = num_requests.
  const GoodputGoals* goals = nullptr;  ///< And the stage's count, when there are any.
  const ToolGoodput* goodput = nullptr;
};
/// The relative change; nothing when the base is zero.
std::optional<ReplicationsRecord::Percent> percent_record(const Difference& d);

/// The form of `scenario`, without goodput.
LifecycleForm lifecycle_form(const sim::Scenario& scenario);

/// The report of a stage; of a summary its load has only its count and schedule delay.
LifecycleRecord lifecycle_record(const sim::StageResult& stage, const LifecycleForm& form,
                                 bool is_summary);

ReplicationsRecord replications_record(const ResultSet& set);

/// The verdict on a difference to the first variant, unless either run pools overloaded and healthy
/// stages; then kNotJudged.
std::string replication_verdict(const ResultSet& set, std::size_t variant, std::string_view stage,
                                const Difference& d, const MetricName& metric);

/// Everything but the verdict.
RunRecord run_record(const Report& report);

/// The JSON Schema of results, made from their description, draft-07, with a definition for each
/// kind of object: what `routesim schema result` prints.
std::string result_schema();

}  // namespace routesim::tools
