// The values that a page and the verdict take from the result of a run.
#include "tools/study/verdict/run_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "tools/results/described_json.h"
#include "tools/results/metric_name.h"
#include "tools/results/metrics.h"
#include "tools/results/result_record.h"
#include "tools/results/statistics.h"

namespace routesim::tools {

namespace {

/// `ttft.p90`, `output_throughput`: the key of a metric in StageView::values.
std::string value_key(const std::string& metric, const std::string& statistic) {
  return statistic.empty() ? metric : metric + "." + statistic;
}

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

/// Takes every metric that a result file has of a stage.
void take_metrics(const StageRecord& record, const std::string& path, StageView& stage) {
  for (const MetricRow& row : metric_table()) {
    if (row.place.empty()) continue;
    std::vector<std::string> statistics = {""};
    if (row.has_many_values()) statistics = {"mean", "median", "p90", "p95", "p99", "max"};
    if (row.quantity == MetricKind::kUsage) statistics = {"mean", "max"};
    for (const std::string& statistic : statistics) {
      MetricName name;
      name.metric = row.key;
      name.statistic = statistic;
      const std::optional<double> value = record_value(record, name);
      if (!value || !std::isfinite(*value)) continue;
      Datum datum{.value = *value, .path = fmt::format("{}/{}", path, row.place)};
      if (!statistic.empty()) datum.path.append("/").append(statistic);
      if (row.key == "goodput") datum.raw = record.goodput->percentage;
      stage.values.insert_or_assign(value_key(name.metric, statistic), std::move(datum));
    }
  }
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

/// Takes the published numbers of the metrics that pages and verdicts hold beside simulated ones.
void take_measured(const std::vector<MeasuredRecord>& rows, StageView& stage) {
  constexpr std::array<std::string_view, 7> kHeldBeside = {"ttft",
                                                           "itl",
                                                           "tpot",
                                                           "request_latency",
                                                           "output_throughput",
                                                           "total_throughput",
                                                           "request_throughput"};
  for (const MeasuredRecord& row : rows) {
    if (std::ranges::find(kHeldBeside, row.metric) == kHeldBeside.end()) continue;
    const bool plain = !find_metric(row.metric)->has_many_values();
    stage.measured.emplace(value_key(row.metric, plain ? "" : row.statistic), row.value);
  }
}

StageView stage_view(const StageRecord& record, const std::string& path) {
  const LifecycleRecord& report = record.lifecycle;
  StageView stage;
  stage.name = record.name.value_or("");
  stage.reported = record.reported.value_or(true);
  stage.unfinished = record.kv_cache_usage && std::isnan(record.kv_cache_usage->mean);
  take_load(report.load, stage);
  if (record.part) {
    stage.part_rate = std::exchange(stage.rate, std::nullopt);
    stage.part_concurrency = std::exchange(stage.concurrency, std::nullopt);
  }
  if (record.steady) stage.telling_s = record.steady->telling_s;
  stage.overloaded = stage.held_back || record.overloaded.value_or(false);
  take_metrics(record, path, stage);
  Values v(stage.values, path);
  if (report.load.stage)
    v.put("send_duration", report.load.stage->send_duration, "load_summary/send_duration");
  for (const auto& [label, of] : report.failures.by_label.items)
    if (label == "prompt_too_long")
      v.put("too_long", of.count, "failures/by_label/prompt_too_long/count");
  for (const MetricRow& row : metric_table())
    if (row.quantiles != nullptr && record.quantiles.*row.quantiles)
      stage.quantiles.emplace(row.key, *(record.quantiles.*row.quantiles));
  if (record.measured) take_measured(*record.measured, stage);
  return stage;
}

ServerView server_view(const sim::ReplicaResult& r, const std::string& path) {
  ServerView server{.name = r.name, .pool = r.pool};
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
  if (r.speculation)
    v.put("acceptance_length", r.speculation->mean_length(), "speculation/mean_acceptance_length");
  return server;
}

/// Every scalar below `node` with its path as `--set` writes it.
void add_scalars(const ConfigNode& node, const std::string& path,
                 std::vector<std::pair<std::string, std::string>>& out) {
  for (const ConfigNode::Member& member : node.members())
    add_scalars(*member.value, path.empty() ? member.key : path + "." + member.key, out);
  for (std::size_t i = 0; i < node.items().size(); ++i)
    add_scalars(*node.items()[i], fmt::format("{}[{}]", path, i), out);
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
    v.put("tier_hit_rate", tiers->hit_ratio(), "kv_tiers/hit_ratio");
    v.put("tier_load_wait", tiers->did.load_waits.mean_s(), "kv_tiers/load_wait_s/mean");
    v.put("tier_pull_wait", tiers->did.pull_waits.mean_s(), "kv_tiers/pull_wait_s/mean");
  }
  v.put("decisions", record.routing.decisions, "routing/decisions");
  v.put("rejected", record.routing.rejected, "routing/rejected");
  v.put("disaggregated", record.routing.disaggregated, "routing/disaggregated");
  if (record.routing.priced)
    v.put("regret_s", record.routing.mean_regret_s(), "routing/mean_regret_s");
  if (const auto& gateway = record.routing.gateway) {
    v.put("gateway_refused", gateway->refused, "routing/gateway/refused");
    v.put("gateway_retries", gateway->retries, "routing/gateway/retries");
    v.put("gateway_most_in_flight", gateway->most_in_flight, "routing/gateway/max_in_flight");
  }
}

/// The pools of a fleet together, at each change of one of them.
std::vector<FleetMoment> moments_of(const sim::FleetResult& fleet) {
  std::map<double, std::map<std::size_t, const sim::FleetPoint*>> changes;
  for (std::size_t p = 0; p < fleet.pools.size(); ++p)
    for (const sim::FleetPoint& point : fleet.pools[p].points) changes[point.at_s][p] = &point;
  std::vector<sim::FleetPoint> now(fleet.pools.size());
  std::vector<FleetMoment> moments;
  for (const auto& [at, changed] : changes) {
    for (const auto& [pool, point] : changed) now[pool] = *point;
    FleetMoment& moment = moments.emplace_back(FleetMoment{.at_s = at});
    double price = 0;
    for (std::size_t p = 0; p < now.size(); ++p) {
      moment.ready += now[p].ready;
      price += fleet.pools[p].price_per_hour.value_or(0) * static_cast<double>(now[p].servers);
    }
    if (fleet.cost()) moment.price_per_hour = price;
  }
  return moments;
}

/// Takes what happened to the fleet. Which pool's servers requests lost is not counted.
void take_fleet(const sim::FleetResult& fleet, const std::string& path, VariantView& variant) {
  for (std::size_t i = 0; i < fleet.pools.size(); ++i) {
    const sim::FleetPoolResult& p = fleet.pools[i];
    ServerView& pool = variant.pools.emplace_back(ServerView{.name = p.pool, .pool = p.pool});
    Values v(pool.values, fmt::format("{}/fleet/pools/{}", path, i));
    v.put("mean_servers", p.mean_servers, "mean_servers");
    v.put("max_servers", p.most_servers, "max_servers");
    v.put("mean_ready", p.mean_ready, "mean_ready");
    v.put("min_ready", p.least_ready, "min_ready");
    v.put("starts", p.starts, "starts");
    v.put("ends", p.ends, "ends");
    if (const auto cost = p.cost()) v.put("cost", *cost, "cost");
  }
  variant.happened = fleet.marks;
  variant.fleet = moments_of(fleet);
  if (variant.pools.empty()) return;
  if (fleet.pools.size() > 1) variant.pools.push_back({.name = "all pools", .pool = ""});
  Values v(variant.pools.back().values, path + "/fleet");
  v.put("lost", fleet.lost, "lost");
  v.put("sent_again", fleet.sent_again, "sent_again");
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
  if (record.fleet) take_fleet(*record.fleet, path, variant);
  variant.timeline = record.timeline;
  variant.by_clock =
      !record.preparation && std::ranges::any_of(variant.stages, [](const StageView& s) {
        return s.name.ends_with("00:00");  // Of a load of a mix with its name before.
      });
  if (record.series) take_series(*record.series, variant);
  if (record.published) variant.published = published_views(*record.published, path);
  if (record.goodput_goals) variant.goals = record.goodput_goals->items;
  if (record.capacity && record.capacity->rate) variant.capacity = record.capacity;
  variant.trust = record.trust.text;
  if (record.capacity_band) variant.notes.push_back(record.capacity_band->text);
  variant.notes.insert(variant.notes.end(), record.notes.begin(), record.notes.end());
  if (record.resolved.root != nullptr) {
    add_scalars(*record.resolved.root, "", variant.resolved);
    JsonWriter json;
    write_tree(json, *record.resolved.root);
    variant.resolved_text = json.str();
  }
  return variant;
}

/// Means over the replications, with their intervals, in place of the first run's numbers.
void replace_by_means(const ReplicationsRecord::Stage& record, const std::string& path,
                      StageView& stage) {
  for (const auto& [listed, metric] : record.metrics.items) {
    const Parsed<MetricName> name = parse_metric_name(listed);
    if (!name.value || !metric || !std::isfinite(metric->mean)) continue;
    const double scale = to_base_unit(1, name.value->unit).value_or(1);
    const bool has_statistic = listed.find('.') != std::string::npos;
    const std::string key =
        value_key(name.value->metric, has_statistic ? name.value->statistic : "");
    Datum mean{.value = metric->mean * scale,
               .path = fmt::format("{}/metrics/{}/mean", path, listed),
               .raw = metric->mean};
    if (std::isfinite(metric->low) && std::isfinite(metric->high)) {
      mean.low = metric->low * scale;
      mean.high = metric->high * scale;
    }
    stage.values.insert_or_assign(key, std::move(mean));
    std::vector<double>& seeds = stage.seeds[key] = metric->values;
    for (double& value : seeds) value *= scale;
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
}

}  // namespace

const Datum* StageView::find(std::string_view key) const {
  const auto found = values.find(key);
  return found == values.end() ? nullptr : &found->second;
}

double StageView::number(std::string_view key, double otherwise) const {
  const Datum* const found = find(key);
  return found == nullptr ? otherwise : found->value;
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
  run.expectations = record.expectations.value_or(std::vector<Judgement>());
  return run;
}

namespace {

constexpr std::string_view kGoodput = "good_request_throughput";
constexpr std::string_view kGoodShare = "goodput";
constexpr std::string_view kLatency = "request_latency.mean";
constexpr std::string_view kOutput = "output_throughput";
constexpr double kMoreFailures = 0.01;  ///< Share of the requests; fewer are no difference.
/// Two values this close may change places with other seeds.
constexpr double kClose = 1.25;
constexpr double kMoreLoad = 1.1;     ///< Less than so much more load is no more load.
constexpr int kFailingLevel = 1'000;  ///< Above every level of a variant that does not fail.

/// A number of a variant, and its value of every replication where there are several.
struct Sample {
  double value = 0;
  std::vector<double> seeds;
};

std::optional<Sample> sample_of(const StageView& stage, std::string_view key) {
  const Datum* datum = stage.find(key);
  if (datum == nullptr) return std::nullopt;
  const auto seeds = stage.seeds.find(key);
  return Sample{datum->value, seeds == stage.seeds.end() ? std::vector<double>{} : seeds->second};
}

/// The mean over stages, each weighted by its requests.
std::optional<Sample> sample_of(const VariantView& v, const Yardstick& yardstick) {
  if (yardstick.stages.empty()) return sample_of(v.summary, yardstick.by.key);
  Sample mean;
  double weights = 0;
  bool has_seeds = true;  // Every stage has the same number of seeds.
  for (const std::size_t i : yardstick.stages) {
    const std::optional<Sample> one = sample_of(v.stages[i], yardstick.by.key);
    if (!one) return std::nullopt;
    const double weight = v.stages[i].number("requests", 1);
    weights += weight;
    mean.value += weight * one->value;
    if (i == yardstick.stages.front()) mean.seeds.resize(one->seeds.size());
    has_seeds = has_seeds && mean.seeds.size() == one->seeds.size();
    if (!has_seeds) mean.seeds.clear();
    for (std::size_t s = 0; s < mean.seeds.size(); ++s) mean.seeds[s] += weight * one->seeds[s];
  }
  if (weights <= 0) return std::nullopt;
  mean.value /= weights;
  for (double& seed : mean.seeds) seed /= weights;
  return mean;
}

Apart apart_by(const Sample& a, const Sample& b) {
  if (a.seeds.size() > 1 && a.seeds.size() == b.seeds.size() &&
      sim::paired_difference(a.seeds, b.seeds).holds(0))
    return a.seeds == b.seeds ? Apart::kEqual : Apart::kUndecided;
  const double change = std::abs(a.value - b.value);
  const double scale = std::max(std::abs(a.value), std::abs(b.value));
  if (change <= kNoticeable * scale) return Apart::kEqual;
  return a.seeds.size() < 2 && change < kClearChange * scale ? Apart::kSlight : Apart::kClear;
}

/// Smaller is better.
double rank_value(const std::optional<double>& value, const Measure& by) {
  if (!value) return INFINITY;
  return by.less_is_better ? *value : -*value;
}

/// How much load a variant holds: what it sustains where that was found for all; else the highest
/// rate below the first that it does not hold, or the number of stages that it holds where stages
/// have no rate.
double load_held(const PageRun& run, const VariantView& v) {
  if (std::ranges::all_of(run.variants,
                          [](const VariantView& other) { return other.capacity.has_value(); }))
    return *v.capacity->rate;
  std::vector<std::size_t> stages = reported_stages(v);
  // A variant that was interrupted may hold the stages that it did not reach.
  std::erase_if(stages, [&](std::size_t i) {
    return std::ranges::any_of(run.variants, [i](const VariantView& other) {
      return i < other.stages.size() && other.stages[i].unfinished;
    });
  });
  double first = INFINITY, held = 0;
  std::size_t healthy = 0;
  bool rates = true;
  for (const std::size_t i : stages) {
    const StageView& stage = v.stages[i];
    rates = rates && stage.rate && !stage.concurrency;
    healthy += is_held(stage) ? 1 : 0;
    if (!is_held(stage) && stage.rate) first = std::min(first, *stage.rate);
  }
  if (!rates) return static_cast<double>(healthy);
  for (const std::size_t i : stages)
    if (*v.stages[i].rate < first) held = std::max(held, *v.stages[i].rate);
  return held;
}

bool share_goals(const PageRun& run, const std::vector<std::size_t>& members) {
  const VariantView& first = run.variants[members.front()];
  return std::ranges::all_of(members, [&](std::size_t i) {
    const VariantView& v = run.variants[i];
    return v.summary.find(kGoodput) != nullptr && v.goals == first.goals;
  });
}

std::vector<const VariantView*> views(const PageRun& run, const std::vector<std::size_t>& which) {
  std::vector<const VariantView*> all;
  for (const std::size_t i : which) all.push_back(&run.variants[i]);
  return all;
}

/// Whether the load sends both the same, whatever is answered, and the share of goods is known.
bool is_open_loop(const VariantView& v, const VariantView& other) {
  return v.summary.find(kGoodShare) != nullptr && v.stages.size() == other.stages.size() &&
         std::ranges::all_of(reported_stages(v), [&](std::size_t i) {
           const StageView& s = v.stages[i];
           if (s.number("requests") != other.stages[i].number("requests")) return false;
           return s.number("requests") == 0 ||
                  (s.rate.value_or(s.part_rate.value_or(0)) > 0 && !s.held_back &&
                   s.concurrency.value_or(s.part_concurrency.value_or(0)) <= 0);
         });
}

/// The measure that decides among variants that hold as much load.
Yardstick yardstick_of(const PageRun& run, const std::vector<std::size_t>& members, bool by_goals) {
  const std::vector<const VariantView*> all = views(run, members);
  const auto over = [&](std::string_view key, std::vector<std::size_t> stages, bool held = false) {
    if (are_whole_runs(all, stages)) stages.clear();
    Yardstick yardstick{.by = measure(key), .stages = std::move(stages), .held = held};
    // Sentences name them so.
    yardstick.by.title = metric_view(key == kGoodput ? kGoodShare : key).title;
    return yardstick;
  };
  const std::vector<std::size_t> common = common_stages(all);
  const auto same = [&](const VariantView* v) { return is_open_loop(*v, *all[0]); };
  if (by_goals) return over(std::ranges::all_of(all, same) ? kGoodShare : kGoodput, common);
  std::vector<std::size_t> held = common;
  bool overloaded = false;
  for (const std::size_t v : members)
    for (const StageView& stage : run.variants[v].stages)
      overloaded = overloaded || (stage.reported && stage.overloaded);
  std::erase_if(held, [&](std::size_t i) {
    return std::ranges::any_of(all, [&](const VariantView* v) { return !holds_stage(*v, i); });
  });
  if (!held.empty() || !overloaded) return over(kLatency, held, true);
  return over(end_late(all, common) ? kLatency : kOutput, common);
}

}  // namespace

double too_long(const StageView& stage) { return stage.number("too_long", 0); }

double share_of_failures(const StageView& stage) {
  const double failures = stage.number("failed_requests", 0) - too_long(stage);
  return failures > 0 ? failures / stage.number("requests", INFINITY) : 0;
}

bool is_cut(const StageView& stage) {
  return too_long(stage) > kMoreFailures * stage.number("requests");
}

bool is_held(const StageView& stage) {
  return !stage.overloaded && share_of_failures(stage) <= kMoreFailures;
}

bool is_too_short(const StageView& stage) {
  if (stage.telling_s) return is_held(stage);
  return stage.rate.value_or(0) > 0 && is_held(stage) &&
         stage.number("send_duration") < sim::kFewestAnswers * stage.number("request_latency.mean");
}

bool end_late(const std::vector<const VariantView*>& variants,
              const std::vector<std::size_t>& stages) {
  const auto is_late = [](const StageView& s) {
    return s.number("requests") - s.number("failed_requests") >
           (1 + kNoticeable) * s.number("request_throughput") *
               (s.number("send_duration") + s.number("request_latency.max"));
  };
  return std::ranges::any_of(variants, [&](const VariantView* v) {
    return std::ranges::any_of(stages, [&](std::size_t i) { return is_late(v->stages[i]); });
  });
}

bool holds_stage(const VariantView& variant, std::size_t stage) {
  const StageView& s = variant.stages[stage];
  return is_held(s) && (!variant.capacity || !s.rate || *s.rate <= *variant.capacity->rate);
}

bool holds_all(const VariantView& variant) {
  return std::ranges::all_of(reported_stages(variant), [&](std::size_t i) {
    return holds_stage(variant, i) && (variant.capacity || !is_too_short(variant.stages[i]));
  });
}

std::vector<std::size_t> reported_stages(const VariantView& variant) {
  std::vector<std::size_t> reported;
  for (std::size_t i = 0; i < variant.stages.size(); ++i)
    if (variant.stages[i].reported && !variant.stages[i].unfinished) reported.push_back(i);
  return reported;
}

bool are_whole_runs(const std::vector<const VariantView*>& variants,
                    const std::vector<std::size_t>& stages) {
  return std::ranges::all_of(variants, [&](const VariantView* v) {
    return std::ranges::count_if(v->stages, &StageView::reported) == std::ssize(stages);
  });
}

std::vector<std::size_t> common_stages(const std::vector<const VariantView*>& variants) {
  const VariantView& first = *variants.front();
  std::vector<std::size_t> common = reported_stages(first);
  std::erase_if(common, [&](std::size_t i) {
    return std::ranges::any_of(variants, [&](const VariantView* v) {
      return i >= v->stages.size() || v->stages[i].unfinished ||
             v->stages[i].rate != first.stages[i].rate ||
             v->stages[i].concurrency != first.stages[i].concurrency;
    });
  });
  return common;
}

Apart apart(const StageView& a, const StageView& b, const Measure& by) {
  const std::optional<Sample> x = sample_of(a, by.key);
  const std::optional<Sample> y = sample_of(b, by.key);
  if (!x || !y) return x || y ? Apart::kClear : Apart::kEqual;
  return apart_by(*x, *y);
}

Contest::Contest(const PageRun& run, std::vector<std::size_t> members)
    : run_(run),
      base_(members.front()),
      by_goals_(share_goals(run, members)),
      level_(run.variants.size()) {
  if (by_goals_) {
    rank(std::move(members), 0);
    yardstick_ = yardstick_of(run, order_, true);
    return;
  }
  double least = INFINITY;
  for (const std::size_t i : members)
    least = std::min(least, share_of_failures(run.variants[i].summary));
  const auto fails = std::stable_partition(members.begin(), members.end(), [&](std::size_t i) {
    return share_of_failures(run.variants[i].summary) <= least + kMoreFailures;
  });
  rank({members.begin(), fails}, 0);
  if (fails != members.end()) rank({fails, members.end()}, kFailingLevel);
  yardstick_ = yardstick_of(run, peers(), false);
}

void Contest::rank(std::vector<std::size_t> members, int level) {
  while (!members.empty()) {
    double most = 0;
    for (const std::size_t i : members) most = std::max(most, load_held(run_, run_.variants[i]));
    const auto less = std::stable_partition(members.begin(), members.end(), [&](std::size_t i) {
      return by_goals_ || load_held(run_, run_.variants[i]) * kMoreLoad >= most;
    });
    std::vector<std::size_t> same(members.begin(), less);
    members.erase(members.begin(), less);
    const Yardstick yardstick = yardstick_of(run_, same, by_goals_);
    const auto rank_of = [&](std::size_t i) {
      const std::optional<Sample> sample = sample_of(run_.variants[i], yardstick);
      return rank_value(sample ? std::optional(sample->value) : std::nullopt, yardstick.by);
    };
    std::ranges::stable_sort(same, {}, rank_of);
    for (const std::size_t i : same) level_[i] = level;
    order_.insert(order_.end(), same.begin(), same.end());
    ++level;
  }
}

std::vector<std::size_t> Contest::peers() const {
  std::vector<std::size_t> same;
  for (const std::size_t i : order_)
    if (level_[i] == level_[winner()]) same.push_back(i);
  std::ranges::sort(same);
  return same;
}

Reason Contest::reason(std::size_t better, std::size_t worse) const {
  if (level_[better] == level_[worse]) return Reason::kMeasure;
  return level_[better] < kFailingLevel && level_[worse] >= kFailingLevel ? Reason::kFailures
                                                                          : Reason::kLoad;
}

Apart Contest::apart(std::size_t a, std::size_t b) const {
  if (level_[a] != level_[b]) return Apart::kClear;
  const std::optional<Sample> x = sample_of(run_.variants[a], yardstick_);
  const std::optional<Sample> y = sample_of(run_.variants[b], yardstick_);
  if (!x || !y) return x || y ? Apart::kClear : Apart::kEqual;
  return apart_by(*x, *y);
}

std::optional<double> Contest::value(std::size_t variant) const {
  const std::optional<Sample> sample = sample_of(run_.variants[variant], yardstick_);
  return sample ? std::optional(sample->value) : std::nullopt;
}

std::vector<std::size_t> Contest::leaders() const {
  std::vector<std::size_t> same = {winner()};
  for (const std::size_t i : order_) {
    if (i == winner()) continue;
    const Apart how = apart(winner(), i);
    if (how == Apart::kEqual || how == Apart::kUndecided) same.push_back(i);
  }
  return same;
}

std::vector<std::size_t> Contest::contested_stages() const {
  if (yardstick_.by.key == kOutput) return {};
  return yardstick_.stages.empty() ? common_stages(views(run_, peers())) : yardstick_.stages;
}

bool Contest::is_close() const {
  if (order_.size() < 2) return false;
  const Apart how = apart(winner(), order_[1]);
  if (run_.replications > 1) return how == Apart::kUndecided;  // Else the seeds have decided.
  if (how != Apart::kClear) return true;
  const std::optional<double> a = value(winner());
  const std::optional<double> b = value(order_[1]);
  return reason(winner(), order_[1]) == Reason::kMeasure && a && b &&
         std::max(*a, *b) < kClose * std::min(*a, *b);
}

std::optional<std::size_t> Contest::leader_at(std::size_t stage,
                                              std::optional<std::size_t> before) const {
  const auto stage_of = [&](std::size_t v) -> const StageView& {
    return run_.variants[v].stages[stage];
  };
  std::optional<std::size_t> best;
  double least = INFINITY;
  for (const std::size_t v : peers()) {
    const std::optional<Sample> sample = sample_of(stage_of(v), yardstick_.by.key);
    const double value =
        rank_value(sample ? std::optional(sample->value) : std::nullopt, yardstick_.by);
    if (value < least) best = v;
    least = std::min(least, value);
  }
  if (!best) return before;
  const auto clear = [&](std::size_t v) {
    return tools::apart(stage_of(*best), stage_of(v), yardstick_.by) == Apart::kClear;
  };
  if (before) return clear(*before) ? best : before;
  for (const std::size_t v : peers())
    if (v != *best && !clear(v)) return std::nullopt;
  return best;
}

}  // namespace routesim::tools
