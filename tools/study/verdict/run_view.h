// A run as its verdict and its page see it. Every number keeps the place it has in the result file,
// so that a test (or a reader) can hold the tables of a page against its data block.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/render/page/html_page.h"
#include "tools/results/result_record.h"

namespace routesim::tools {

/// One load stage of one variant, or the whole run.
struct StageView {
  std::string name;
  bool reported = true;
  bool unfinished = false;            ///< The run was interrupted before the stage ended.
  bool overloaded = false;            ///< Its queue grew until it ended, here or in the load tool.
  std::optional<double> telling_s;    ///< Set where it is too short to tell: how long would tell.
  bool held_back = false;             ///< The load tool could not send as fast as it was asked to.
  std::optional<double> rate;         ///< Requests/s asked for.
  std::optional<double> concurrency;  ///< Of a closed loop.
  /// What a load of a mix asks for, in place of the two: stages side by side are no ladder.
  std::optional<double> part_rate, part_concurrency;
  /// By key of the metric table: `ttft.mean`, `output_throughput`, ... And a few beside it.
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
  std::string pool;  ///< May be empty in results of early builds.
  std::map<std::string, Datum, std::less<>> values =
      {};  ///< `requests`, `hit_ratio`, `kv_mean`, ...
};

/// A row in which a publication sums up its ladder.
struct PublishedView {
  std::string name;
  std::string unit;
  Datum simulated, measured;
};

/// A fleet from an instant on.
struct FleetMoment {
  double at_s = 0;
  std::int64_t ready = 0;
  std::optional<double> price_per_hour = {};  ///< Of the servers that exist, US dollars.
};

struct VariantView {
  std::string name;
  std::string scan_of;   ///< The variant that a scan of rates runs at this one's rate; else empty.
  std::string fleet_of;  ///< The variant that a scan of replicas runs with other servers; or empty.
  std::vector<StageView> stages;
  StageView summary;
  std::vector<StageView> classes;  ///< By traffic class, over the reported stages.
  std::vector<ServerView> servers;
  std::vector<ServerView> pools;         ///< What became of each pool, where the fleet changed.
  std::vector<FleetMoment> fleet;        ///< Of all pools, at each change.
  std::vector<sim::FleetMark> happened;  ///< In time order.
  std::optional<sim::Timeline> timeline;
  bool by_clock = false;  ///< The load is a demand, and the run begins at its 00:00.
  std::vector<double> series_time_s;
  std::vector<ServerSeries> series;
  std::vector<PublishedView> published;
  std::vector<std::pair<std::string, double>> goals;  ///< Goodput goals, seconds.
  std::optional<Capacity> capacity = {};              ///< With a rate; where it was found.
  std::string trust;  ///< What it rests on, and how far such results were off; may be empty.
  std::vector<std::string> notes;
  std::vector<std::pair<std::string, std::string>> resolved;  ///< Path and value of each scalar.
  std::string resolved_text;                                  ///< The same, indented.
};

/// The result of `routesim run`.
struct PageRun {
  std::string scenario, question, version, commit, hash, seed;
  std::int64_t replications = 1;
  bool interrupted = false;  ///< It was stopped: its numbers are partial.
  RunCommand command;        ///< Empty in results of early builds.
  std::vector<double> quantile_levels;
  std::vector<VariantView> variants;
  std::vector<Judgement> expectations;
};

/// The result of `routesim run`, which stands at `path` in the data block.
PageRun page_run(const RunRecord& record, const std::string& path);

}  // namespace routesim::tools
