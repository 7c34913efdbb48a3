// The data of sweeps and plans that a page shows, read from result files. Every number keeps the
// place it has in the page's data block, so that a test (or a reader) can hold the tables against
// the data.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace routesim::tools {

/// One number of the data block.
struct Datum {
  double value = 0;                     ///< In base units: seconds, tokens, ratios.
  std::string path;                     ///< JSON pointer into the data block.
  std::optional<double> low{}, high{};  ///< 95 % interval over replications, where there is one.
  std::optional<double> raw{};          ///< As it stands in the block, where that has another unit.
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

/// The JSON of `routesim plan`.
PagePlan read_plan(const std::string& json_text, const std::string& path);

/// `{"sweep_rows": [...]}`: the lines of `routesim sweep`.
PageSweep read_sweep(const std::string& json_text, const std::string& path);

/// The sections of one result: the part of a page between its head and its foot.
std::string sweep_sections(const PageSweep& sweep);
std::string plan_sections(const PagePlan& plan);
std::string tune_sections(const PageDocument& document);

}  // namespace routesim::tools
