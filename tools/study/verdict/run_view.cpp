// The values that a page and the verdict take from the result of a run.
#include "tools/study/verdict/run_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/results/described_json.h"
#include "tools/results/result_record.h"

namespace routesim::tools {

namespace {

/// Collects numbers with their places below `path`, a JSON pointer; NaN is no number.
class Values {
 public:
  Values(StageView::Values& out, std::string path) : out_(out), path_(std::move(path)) {}

  void put(const std::string& key, double value, std::string_view place) {
    if (std::isfinite(value))
      out_.insert_or_assign(key, Datum{.value = value, .path = fmt::format("{}/{}", path_, place)});
  }
  template <class T>
  void put(const std::string& key, T value, std::string_view place) {
    put(key, static_cast<double>(value), place);
  }

 private:
  StageView::Values& out_;
  std::string path_;
};

/// A latency as pages call it, and where it stands in a report.
struct Latency {
  std::string_view key, name;
  std::optional<SamplesRecord> LatencyRecord::*samples;
  std::optional<std::vector<double>> QuantilesRecord::*quantiles;
};
constexpr std::array<Latency, 4> kLatencies = {
    {{"ttft", "time_to_first_token", &LatencyRecord::time_to_first_token,
      &QuantilesRecord::time_to_first_token},
     {"itl", "inter_token_latency", &LatencyRecord::inter_token_latency,
      &QuantilesRecord::inter_token_latency},
     {"tpot", "time_per_output_token", &LatencyRecord::time_per_output_token,
      &QuantilesRecord::time_per_output_token},
     {"request_latency", "request_latency", &LatencyRecord::request_latency,
      &QuantilesRecord::request_latency}}};

void put_latency(const Latency& latency, const SamplesRecord& d, Values& values) {
  const auto put = [&](const std::string& statistic, double value) {
    values.put(fmt::format("{}.{}", latency.key, statistic), value,
               fmt::format("successes/latency/{}/{}", latency.name, statistic));
  };
  put("mean", d.mean);
  put("max", d.max);
  for (const auto& [name, value] : d.percentiles.items)
    if (name == "median" || name == "p90" || name == "p95" || name == "p99") put(name, value);
}

/// A limit of requests in flight keeps the queue in the load tool: no server's queue grows, but the
/// requests leave late and far slower than asked for. Chance alone changes a rate by much less.
bool is_held_back(const LoadRecord& load) {
  constexpr double kSlowest = 0.75;
  return load.stage && load.schedule_delay && load.schedule_delay->mean > 1 &&
         load.stage->achieved_rate < kSlowest * load.stage->requested_rate;
}

/// Takes the load that a stage is asked for.
void take_load(const LoadRecord& load, StageView& stage) {
  if (!load.stage) return;
  if (std::isfinite(load.stage->requested_rate)) stage.rate = load.stage->requested_rate;
  if (load.stage->concurrency) stage.concurrency = static_cast<double>(*load.stage->concurrency);
  // inference-perf writes the number of requests as the rate of a stage that keeps a concurrency.
  if (stage.concurrency.value_or(0) > 0 && stage.rate == static_cast<double>(load.count))
    stage.rate.reset();
  stage.held_back = stage.rate && is_held_back(load);
}

void take_measured(const std::vector<MeasuredRecord>& rows, StageView& stage) {
  for (const MeasuredRecord& row : rows) {
    const bool plain = row.metric.find("throughput") != std::string::npos;
    stage.measured.emplace(plain ? row.metric : row.metric + "." + row.statistic, row.value);
  }
}

StageView stage_view(const StageRecord& record, const std::string& path) {
  const LifecycleRecord& report = record.lifecycle;
  StageView stage;
  stage.name = record.name.value_or("");
  stage.reported = record.reported.value_or(true);
  stage.unfinished = record.kv_cache_usage && std::isnan(record.kv_cache_usage->mean);
  take_load(report.load, stage);
  stage.overloaded = stage.held_back || record.overloaded.value_or(false);
  Values v(stage.values, path);
  v.put("requests", report.load.count, "load_summary/count");
  if (report.load.stage) {
    v.put("achieved_rate", report.load.stage->achieved_rate, "load_summary/achieved_rate");
    v.put("send_duration", report.load.stage->send_duration, "load_summary/send_duration");
  }
  v.put("failures", report.failures.count, "failures/count");
  for (const auto& [label, of] : report.failures.by_label.items)
    if (label == "prompt_too_long")
      v.put("too_long", of.count, "failures/by_label/prompt_too_long/count");
  for (const Latency& latency : kLatencies) {
    if (const auto& samples = report.successes.latency.*latency.samples)
      put_latency(latency, *samples, v);
    if (const auto& quantiles = record.quantiles.*latency.quantiles)
      stage.quantiles.emplace(latency.key, *quantiles);
  }
  const ThroughputRecord& throughput = report.successes.throughput;
  v.put("output_throughput", throughput.output_tokens,
        "successes/throughput/output_tokens_per_sec");
  v.put("total_throughput", throughput.total_tokens, "successes/throughput/total_tokens_per_sec");
  v.put("request_throughput", throughput.requests, "successes/throughput/requests_per_sec");
  if (record.goodput) {
    v.put("goodput", record.goodput->requests_per_s, "goodput/requests_per_sec");
    v.put("goodput_percentage", record.goodput->percentage, "goodput/percentage");
  }
  v.put("hit_ratio", record.prefix_hit_ratio, "prefix_hit_ratio");
  if (record.kv_cache_usage) {
    v.put("kv_mean", record.kv_cache_usage->mean, "kv_cache_usage/mean");
    v.put("kv_max", record.kv_cache_usage->max, "kv_cache_usage/max");
  }
  v.put("preemptions", record.preemptions, "preemptions");
  if (record.measured) take_measured(*record.measured, stage);
  return stage;
}

ServerView server_view(const sim::ReplicaResult& r, const std::string& path) {
  ServerView server{.name = r.name, .pool = r.pool, .values = {}};
  Values v(server.values, path);
  v.put("requests", r.requests, "requests");
  v.put("busy_s", r.busy_s, "busy_s");
  v.put("kv_mean", r.kv_cache_usage_mean, "kv_cache_usage/mean");
  v.put("kv_max", r.kv_cache_usage_max, "kv_cache_usage/max");
  v.put("max_running", r.max_running, "max_running");
  v.put("max_waiting", r.max_waiting, "max_waiting");
  v.put("preemptions", r.preemptions, "preemptions");
  v.put("evicted_blocks", r.evicted_blocks, "evicted_blocks");
  v.put("hit_tokens", r.prefix_hit_tokens, "prefix_hit_tokens");
  v.put("query_tokens", r.prefix_query_tokens, "prefix_query_tokens");
  return server;
}

/// Every scalar below `node` with its path as `--set` writes it.
void flatten(const ConfigNode& node, const std::string& path,
             std::vector<std::pair<std::string, std::string>>& out) {
  for (const ConfigNode::Member& member : node.members())
    flatten(*member.value, path.empty() ? member.key : path + "." + member.key, out);
  for (std::size_t i = 0; i < node.items().size(); ++i)
    flatten(*node.items()[i], fmt::format("{}[{}]", path, i), out);
  if (node.is_scalar() || node.is_null())
    out.emplace_back(path, node.is_null() ? "null" : node.text());
}

std::vector<double> doubles(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

void take_series(const SeriesRecord& record, VariantView& variant) {
  variant.series_time_s = record.time_s;
  for (const SeriesRecord::Endpoint& e : record.endpoints) {
    ServerSeries& series = variant.series.emplace_back();
    series.name = e.name;
    const auto put = [&](const char* column, const std::vector<double>& values) {
      if (values.size() == record.time_s.size()) series.values.emplace(column, values);
    };
    put("waiting", doubles(e.waiting));
    put("running", doubles(e.running));
    put("in_flight", doubles(e.in_flight));
    put("kv_cache_usage", e.kv_cache_usage);
    put("prefix_hit_rate", e.prefix_hit_rate);
    put("step_time_s", e.step_time_s);
  }
}

std::vector<PublishedView> published_views(const std::vector<PublishedRecord>& rows,
                                           const std::string& path) {
  std::vector<PublishedView> out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const PublishedRecord& row = rows[i];
    if (!std::isfinite(row.simulated)) continue;
    const auto datum = [&](double value, const char* place) {
      return Datum{.value = value, .path = fmt::format("{}/published/{}/{}", path, i, place)};
    };
    out.push_back({.name = row.metric + " " + row.statistic.substr(0, row.statistic.find(" (")),
                   .unit = row.unit,
                   .simulated = datum(row.simulated, "simulated"),
                   .measured = datum(row.measured, "measured")});
  }
  return out;
}

/// Takes the values that only the whole run knows.
void take_whole_run(const VariantRecord& record, const std::string& path, StageView& summary) {
  Values v(summary.values, path);
  if (const std::optional<sim::TierResult>& tiers = record.kv_tiers) {
    v.put("tier_hit_ratio", tiers->hit_ratio(), "kv_tiers/hit_ratio");
    v.put("tier_load_wait", tiers->did.load_waits.mean_s(), "kv_tiers/load_wait_s/mean");
    v.put("tier_pull_wait", tiers->did.pull_waits.mean_s(), "kv_tiers/pull_wait_s/mean");
  }
  v.put("decisions", record.routing.decisions, "routing/decisions");
  v.put("rejected", record.routing.rejected, "routing/rejected");
  v.put("disaggregated", record.routing.disaggregated, "routing/disaggregated");
}

VariantView variant_view(const VariantRecord& record, const std::string& path) {
  VariantView variant;
  variant.name = record.name;
  variant.scan_of = record.scan_of.value_or("");
  variant.fleet_of = record.fleet_of.value_or("");
  for (std::size_t i = 0; i < record.stages.size(); ++i)
    variant.stages.push_back(stage_view(record.stages[i], fmt::format("{}/stages/{}", path, i)));
  variant.summary = stage_view(record.summary, path + "/summary");
  if (record.classes)
    for (std::size_t i = 0; i < record.classes->size(); ++i)
      variant.classes.push_back(
          stage_view((*record.classes)[i], fmt::format("{}/classes/{}", path, i)));
  for (std::size_t i = 0; i < record.replicas.size(); ++i)
    variant.servers.push_back(
        server_view(record.replicas[i], fmt::format("{}/replicas/{}", path, i)));
  take_whole_run(record, path, variant.summary);
  if (record.series) take_series(*record.series, variant);
  if (record.published) variant.published = published_views(*record.published, path);
  if (record.goodput_goals) variant.goals = record.goodput_goals->items;
  variant.trust = record.trust.text;
  if (record.capacity_band) variant.notes.push_back(record.capacity_band->text);
  variant.notes.insert(variant.notes.end(), record.notes.begin(), record.notes.end());
  if (record.resolved.root != nullptr) {
    flatten(*record.resolved.root, "", variant.resolved);
    JsonWriter json;
    write_tree(json, *record.resolved.root);
    variant.resolved_text = json.str();
  }
  return variant;
}

/// A metric with its statistic where replications list it, and as pages call it.
struct Replicated {
  std::string_view listed, key;
  double scale;  ///< From the listed unit to the base unit.
};
constexpr std::array<Replicated, 18> kReplicated = {
    {{"ttft_ms.mean", "ttft.mean", 1e-3},
     {"ttft_ms.median", "ttft.median", 1e-3},
     {"ttft_ms.p90", "ttft.p90", 1e-3},
     {"ttft_ms.p99", "ttft.p99", 1e-3},
     {"itl_ms.mean", "itl.mean", 1e-3},
     {"itl_ms.p99", "itl.p99", 1e-3},
     {"tpot_ms.mean", "tpot.mean", 1e-3},
     {"tpot_ms.p99", "tpot.p99", 1e-3},
     {"request_latency_ms.mean", "request_latency.mean", 1e-3},
     {"request_latency_ms.p90", "request_latency.p90", 1e-3},
     {"request_latency_ms.p99", "request_latency.p99", 1e-3},
     {"output_tokens_per_s", "output_throughput", 1},
     {"total_tokens_per_s", "total_throughput", 1},
     {"requests_per_s", "request_throughput", 1},
     {"good_requests_per_s", "goodput", 1},
     {"goodput", "goodput_percentage", 100},
     {"prefix_cache_hit_rate", "hit_ratio", 1},
     {"failed_requests", "failures", 1}}};

/// Means over the replications, with their intervals, in place of the first run's numbers.
void replace_by_means(const ReplicationsRecord::Stage& record, const std::string& path,
                      StageView& stage) {
  for (const Replicated& r : kReplicated)
    for (const auto& [name, metric] : record.metrics.items) {
      if (name != r.listed || !metric || !std::isfinite(metric->mean)) continue;
      Datum mean{.value = metric->mean * r.scale,
                 .path = fmt::format("{}/metrics/{}/mean", path, name),
                 .low = {},
                 .high = {},
                 .raw = metric->mean};
      if (std::isfinite(metric->low) && std::isfinite(metric->high)) {
        mean.low = metric->low * r.scale;
        mean.high = metric->high * r.scale;
      }
      stage.values.insert_or_assign(std::string(r.key), std::move(mean));
      std::vector<double> seeds = metric->values;
      for (double& value : seeds) value *= r.scale;
      stage.seeds.insert_or_assign(std::string(r.key), std::move(seeds));
    }
}

void take_differences(const std::vector<ReplicationsRecord::Pair>& pairs, const std::string& path,
                      PageRun& run) {
  for (std::size_t i = 0; i < pairs.size(); ++i)
    for (const Replicated& r : kReplicated)
      for (const auto& [name, change] : pairs[i].summary.metrics.items) {
        if (name != r.listed) continue;
        DifferenceView& d = run.differences.emplace_back();
        d.base = pairs[i].base;
        d.other = pairs[i].variant;
        d.metric = r.key;
        d.verdict = change.verdict;
        if (!change.percent) continue;
        d.relative = {
            .value = change.percent->mean,
            .path = fmt::format("{}/differences/{}/summary/metrics/{}/percent/mean", path, i, name),
            .low = change.percent->low,
            .high = change.percent->high,
            .raw = {}};
      }
}

void take_replications(const ReplicationsRecord& record, const std::string& path, PageRun& run) {
  run.replications = record.count;
  for (std::size_t i = 0; i < record.variants.size(); ++i) {
    const ReplicationsRecord::Variant& values = record.variants[i];
    const std::string at = fmt::format("{}/variants/{}", path, i);
    for (VariantView& variant : run.variants) {
      if (variant.name != values.name) continue;
      replace_by_means(values.summary, at + "/summary", variant.summary);
      for (std::size_t s = 0; s < values.stages.size(); ++s)
        for (StageView& stage : variant.stages)
          if (stage.name == values.stages[s].name) {
            replace_by_means(values.stages[s], fmt::format("{}/stages/{}", at, s), stage);
            stage.overloaded = stage.held_back || values.stages[s].overloaded;
          }
    }
  }
  take_differences(record.differences, path, run);
}

}  // namespace

const Datum* StageView::find(std::string_view key) const {
  const auto found = values.find(key);
  return found == values.end() ? nullptr : &found->second;
}

PageRun page_run(const RunRecord& record, const std::string& path) {
  PageRun run;
  run.scenario = record.scenario;
  run.question = record.question;
  run.version = record.version;
  run.commit = record.commit.value_or("");
  run.hash = record.scenario_hash.value_or("");
  run.seed = std::to_string(record.seed);
  run.interrupted = record.interrupted.value_or(false);
  run.command = record.command.value_or(RunCommand());
  run.quantile_levels = record.quantile_levels;
  for (std::size_t i = 0; i < record.variants.size(); ++i)
    run.variants.push_back(
        variant_view(record.variants[i], fmt::format("{}/variants/{}", path, i)));
  if (record.replications) take_replications(*record.replications, path + "/replications", run);
  if (record.expectations)
    for (const Judgement& j : *record.expectations)
      run.expectations.push_back({.scope = j.scope,
                                  .text = j.what,
                                  .decision = decision_text(j.decision),
                                  .detail = j.detail});
  return run;
}

}  // namespace routesim::tools
