// The data that a page shows, read from result files. Every number keeps the place it has in the
// page's data block, so that a test (or a reader) can hold the tables against the data.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "tools/results/report.h"

namespace routesim::tools {

/// One number of the data block.
struct Datum {
  double value = 0;                     ///< In base units: seconds, tokens, ratios.
  std::string path;                     ///< JSON pointer into the data block.
  std::optional<double> low{}, high{};  ///< 95 % interval over replications, where there is one.
  std::optional<double> raw{};          ///< As it stands in the block, where that has another unit.
};

/// One load stage of one variant, or the whole run.
struct StageView {
  std::string name;
  bool reported = true;
  bool unfinished = false;            ///< The run was interrupted before the stage ended.
  bool overloaded = false;            ///< Its queue grew until it ended, here or in the load tool.
  bool held_back = false;             ///< The load tool could not send as fast as it was asked to.
  std::optional<double> rate;         ///< Requests/s asked for.
  std::optional<double> concurrency;  ///< Of a closed loop.
  /// `ttft.mean`, `itl.p99`, `output_throughput`, `requests`, `hit_ratio`, `goodput`, ...
  using Values = std::map<std::string, Datum, std::less<>>;
  Values values;
  /// Published values under the same keys, in base units.
  std::map<std::string, double, std::less<>> measured;
  /// `ttft`, `itl`, `tpot`, `request_latency`: values at PageRun::quantile_levels.
  std::map<std::string, std::vector<double>, std::less<>> quantiles;
  /// Values of every seed of replications under the same keys, in base units.
  std::map<std::string, std::vector<double>, std::less<>> seeds;

  /// The number under a key, or null.
  const Datum* find(std::string_view key) const;
};

/// One server over time; missing values are NaN.
struct ServerSeries {
  std::string name;
  std::map<std::string, std::vector<double>, std::less<>> values;  ///< `running`, `waiting`, ...
};

/// One server over the whole run.
struct ServerView {
  std::string name;
  std::string pool;                                  ///< May be empty in results of early builds.
  std::map<std::string, Datum, std::less<>> values;  ///< `requests`, `hit_ratio`, `kv_mean`, ...
};

/// A row in which a publication sums up its ladder.
struct PublishedView {
  std::string name;
  std::string unit;
  Datum simulated, measured;
};

struct VariantView {
  std::string name;
  std::string scan_of;   ///< The variant that a scan of rates runs at this one's rate; else empty.
  std::string fleet_of;  ///< The variant that a scan of replicas runs with other servers; or empty.
  std::vector<StageView> stages;
  StageView summary;
  std::vector<StageView> classes;  ///< By traffic class, over the reported stages.
  std::vector<ServerView> servers;
  std::vector<double> series_time_s;
  std::vector<ServerSeries> series;
  std::vector<PublishedView> published;
  std::vector<std::pair<std::string, double>> goals;  ///< Goodput goals, seconds.
  std::string trust;  ///< What it rests on, and how far such results were off; may be empty.
  std::vector<std::string> notes;
  std::vector<std::pair<std::string, std::string>> resolved;  ///< Path and value of each scalar.
  std::string resolved_text;                                  ///< The same, indented.
};

/// The verdict on one expectation of the scenario.
struct ExpectationView {
  std::string scope;     ///< Of which variants and stages.
  std::string text;      ///< As written.
  std::string decision;  ///< `holds`, `fails` or `undecided`.
  std::string detail;    ///< What was found.
};

/// A paired difference between two variants over replications.
struct DifferenceView {
  std::string base, other;  ///< Variant names.
  std::string metric;
  std::string verdict;  ///< `better`, `worse`, `not distinguishable`, ...
  Datum relative;       ///< Relative change in percent, with its interval.
};

struct RunRecord;

/// The result of `routesim run`.
struct PageRun {
  std::string scenario, question, version, commit, hash, seed;
  std::int64_t replications = 1;
  bool interrupted = false;  ///< It was stopped: its numbers are partial.
  RunCommand command;        ///< Empty in results of early builds.
  std::vector<double> quantile_levels;
  std::vector<VariantView> variants;
  std::vector<ExpectationView> expectations;
  std::vector<DifferenceView> differences;
};

/// The rows of `routesim sweep`. Where no axis is a rate and the load of each row has several,
/// there is one per reported stage, with the rate as a further axis.
struct PageSweep {
  struct Row {
    std::vector<std::string> cell;  ///< Value of each axis, as text.
    std::string variant;
    bool overloaded = false;  ///< The queue of some reported stage grew until it ended.
    std::string step_times;   ///< What they rest on; empty in rows of early builds.
    std::map<std::string, Datum, std::less<>> values;  ///< Metric name to mean and interval.
  };
  std::string name, version;
  std::vector<std::string> axes;
  std::vector<std::string> metrics;  ///< In the order of the first row.
  std::vector<std::string> goals;    ///< `ttft_ms.p90 < 500`.
  std::int64_t replications = 1;
  std::vector<Row> rows;
};

/// The answer of `routesim plan`.
struct PagePlan {
  struct GoalView {
    std::string goal, name, verdict;  ///< `ttft_ms.p99 < 500`, `ttft_ms.p99`, `meets`.
    Datum found;
    std::optional<double> bound = {};
  };
  /// A fleet that was run at the planned rate.
  struct Evaluated {
    std::string hardware, policy, fleet;
    std::string verdict;              ///< `meets`, `misses` or `open`.
    std::optional<Datum> price;       ///< Per hour.
    std::optional<Datum> ttft, tpot;  ///< p90, seconds.
    std::optional<GoalView> worst;    ///< The goal it misses by most.
  };
  /// A fleet that meets the goals.
  struct Choice {
    std::string hardware, policy, fleet, step_times;
    std::string binds;                                 ///< What would run out first.
    std::map<std::string, Datum, std::less<>> values;  ///< `price_per_hour`, `gpus`, ...
    std::vector<GoalView> goals;
  };
  /// One kind of hardware with one policy, whatever came of it.
  struct Family {
    std::string hardware, policy, method, impossible, fleet, near_miss;
    std::string seed, hash;
    std::vector<std::string> sources;  ///< By pool: where its step times come from.
    std::optional<Datum> tried, price;
  };
  std::string name, question, version, commit;
  std::string rests_on;    ///< What the first plan rests on, as a clause.
  std::string robustness;  ///< Whether it survives another KV capacity, as a sentence.
  std::string scenario;    ///< File.
  std::vector<std::pair<std::string, double>> prices;  ///< Accelerator, dollars an hour.
  std::optional<Datum> rate, confidence;
  std::vector<std::string> goals;
  std::vector<Choice> plans;  ///< Cheapest first.
  std::vector<Family> families;
  std::vector<Evaluated> evaluated;  ///< Empty in files of early builds.
};

/// A result that its sections read themselves.
struct PageDocument {
  std::string text;  ///< JSON.
  std::string path;  ///< Where it stands in the data block.
};

/// A result whose study made its body.
struct PageBody {
  std::string title, body;
};

/// Everything one page shows.
struct PageData {
  std::vector<PageBody> bodies;  ///< Of `routesim compare` and `routesim validate`.
  std::vector<PageRun> runs;
  std::vector<PageSweep> sweeps;
  std::vector<PagePlan> plans;
  std::vector<PageDocument> tunings;  ///< Of `routesim tune`.
  std::string block;  ///< The data block: compact JSON, safe inside a <script> element.
};

/// The data block of a page, or nothing when `text` is no page of ours.
std::optional<std::string> data_block(std::string_view text);

/// `json` as the element that is a page's data block.
std::string make_data_block(const std::string& json);

/// The result of `routesim run`, which stands at `path` in the data block.
PageRun page_run(const RunRecord& record, const std::string& path);

/// The JSON of `routesim plan`.
PagePlan read_plan(const std::string& json_text, const std::string& path);

/// `{"sweep_rows": [...]}`: the lines of `routesim sweep`.
PageSweep read_sweep(const std::string& json_text, const std::string& path);

}  // namespace routesim::tools
