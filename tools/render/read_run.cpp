#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "base/scalar_parse.h"
#include "tools/render/json_node.h"
#include "tools/render/page_data.h"
#include "tools/render/sweep_goals.h"

namespace routesim::tools {

namespace {

using Json = nlohmann::ordered_json;

const Json& json_of(const Node& node) { return *static_cast<const Json*>(node.value()); }

std::vector<double> numbers(const Node& node) {
  std::vector<double> out;
  for (const Node& item : node.items()) out.push_back(item.number());
  return out;
}

struct Latency {
  std::string_view key;
  const char* member;
};
constexpr std::array<Latency, 4> kLatencies = {{{"ttft", "time_to_first_token"},
                                                {"itl", "inter_token_latency"},
                                                {"tpot", "time_per_output_token"},
                                                {"request_latency", "request_latency"}}};
constexpr std::array<const char*, 6> kSummaryStatistics = {"mean", "median", "p90",
                                                           "p95",  "p99",    "max"};

using Values = std::map<std::string, Datum, std::less<>>;

void put(Values& values, const std::string& key, const Node& node) {
  if (std::optional<Datum> datum = node.datum()) values.insert_or_assign(key, std::move(*datum));
}

/// A limit of requests in flight keeps the queue in the load tool: no server's queue grows, but the
/// requests leave late and far slower than asked for. Chance alone changes a rate by much less.
bool is_held_back(const Node& load) {
  constexpr double kSlowest = 0.75;
  const auto asked = load["requested_rate"].datum(), sent = load["achieved_rate"].datum();
  const auto delay = load["schedule_delay"]["mean"].datum();
  return asked && sent && delay && delay->value > 1 && sent->value < kSlowest * asked->value;
}

StageView read_stage(const Node& node) {
  StageView stage;
  stage.name = node["name"].text();
  stage.reported = !json_of(node["reported"]).is_boolean() || json_of(node["reported"]).get<bool>();
  const Json& usage = json_of(node["kv_cache_usage"]);
  stage.unfinished = usage.is_object() && usage.contains("mean") && usage["mean"].is_null();
  const Node load = node["load_summary"];
  if (const auto rate = load["requested_rate"].datum()) stage.rate = rate->value;
  if (const auto level = load["concurrency"].datum()) stage.concurrency = level->value;
  // inference-perf writes the number of requests as the rate of a stage that keeps a concurrency.
  if (const auto count = load["count"].datum();
      stage.concurrency.value_or(0) > 0 && stage.rate && count && *stage.rate == count->value)
    stage.rate.reset();
  stage.held_back = stage.rate && is_held_back(load);
  stage.overloaded = stage.held_back || node["overloaded"].text() == "true";
  Values& v = stage.values;
  put(v, "requests", load["count"]);
  put(v, "achieved_rate", load["achieved_rate"]);
  put(v, "send_duration", load["send_duration"]);
  put(v, "failures", node["failures"]["count"]);
  put(v, "too_long", node["failures"]["by_label"]["prompt_too_long"]["count"]);
  const Node successes = node["successes"];
  for (const Latency& latency : kLatencies) {
    const Node samples = successes["latency"][latency.member];
    for (const char* statistic : kSummaryStatistics)
      put(v, std::string(latency.key) + "." + statistic, samples[statistic]);
    const std::vector<double> quantiles = numbers(node["quantiles"][latency.member]);
    if (!quantiles.empty()) stage.quantiles.emplace(latency.key, quantiles);
  }
  const Node throughput = successes["throughput"];
  put(v, "output_throughput", throughput["output_tokens_per_sec"]);
  put(v, "total_throughput", throughput["total_tokens_per_sec"]);
  put(v, "request_throughput", throughput["requests_per_sec"]);
  put(v, "goodput", node["goodput"]["requests_per_sec"]);
  put(v, "goodput_percentage", node["goodput"]["percentage"]);
  put(v, "hit_ratio", node["prefix_hit_ratio"]);
  put(v, "kv_mean", node["kv_cache_usage"]["mean"]);
  put(v, "kv_max", node["kv_cache_usage"]["max"]);
  put(v, "preemptions", node["preemptions"]);
  for (const Node& row : node["measured"].items()) {
    const auto value = row["value"].datum();
    if (!value) continue;
    const std::string metric = row["metric"].text();
    const bool plain = metric.find("throughput") != std::string::npos;
    stage.measured.emplace(plain ? metric : metric + "." + row["statistic"].text(), value->value);
  }
  return stage;
}

ServerView read_server(const Node& node) {
  ServerView server;
  server.name = node["name"].text();
  server.pool = node["pool"].text();
  put(server.values, "requests", node["requests"]);
  put(server.values, "busy_s", node["busy_s"]);
  put(server.values, "kv_mean", node["kv_cache_usage"]["mean"]);
  put(server.values, "kv_max", node["kv_cache_usage"]["max"]);
  put(server.values, "max_running", node["max_running"]);
  put(server.values, "max_waiting", node["max_waiting"]);
  put(server.values, "preemptions", node["preemptions"]);
  put(server.values, "evicted_blocks", node["evicted_blocks"]);
  put(server.values, "hit_tokens", node["prefix_hit_tokens"]);
  put(server.values, "query_tokens", node["prefix_query_tokens"]);
  return server;
}

/// Every scalar below `value` with its path as `--set` writes it.
void flatten(const Json& value, const std::string& path,
             std::vector<std::pair<std::string, std::string>>& out) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.items())
      flatten(member, path.empty() ? key : path + "." + key, out);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i)
      flatten(value[i], path + "[" + std::to_string(i) + "]", out);
  } else {
    out.emplace_back(path, value.is_string() ? value.get<std::string>() : value.dump());
  }
}

void read_series(const Node& node, VariantView& variant) {
  variant.series_time_s = numbers(node["time_s"]);
  constexpr std::array<const char*, 6> kColumns = {
      "waiting", "running", "in_flight", "kv_cache_usage", "prefix_hit_rate", "step_time_s"};
  for (const Node& endpoint : node["endpoints"].items()) {
    ServerSeries series;
    series.name = endpoint["name"].text();
    for (const char* column : kColumns) {
      std::vector<double> values = numbers(endpoint[column]);
      if (values.size() == variant.series_time_s.size()) series.values.emplace(column, values);
    }
    variant.series.push_back(std::move(series));
  }
}

VariantView read_variant(const Node& node) {
  VariantView variant;
  variant.name = node["name"].text();
  variant.scan_of = node["scan_of"].text();
  variant.fleet_of = node["fleet_of"].text();
  for (const Node& stage : node["stages"].items()) variant.stages.push_back(read_stage(stage));
  variant.summary = read_stage(node["summary"]);
  for (const Node& requests : node["classes"].items())
    variant.classes.push_back(read_stage(requests));
  for (const Node& server : node["replicas"].items())
    variant.servers.push_back(read_server(server));
  const Node tiers = node["kv_tiers"];
  put(variant.summary.values, "tier_hit_ratio", tiers["hit_ratio"]);
  put(variant.summary.values, "tier_load_wait", tiers["load_wait_s"]["mean"]);
  put(variant.summary.values, "tier_pull_wait", tiers["pull_wait_s"]["mean"]);
  put(variant.summary.values, "decisions", node["routing"]["decisions"]);
  put(variant.summary.values, "rejected", node["routing"]["rejected"]);
  put(variant.summary.values, "disaggregated", node["routing"]["disaggregated"]);
  read_series(node["series"], variant);
  for (const Node& row : node["published"].items()) {
    const auto simulated = row["simulated"].datum();
    const auto measured = row["measured"].datum();
    if (!simulated || !measured) continue;
    const std::string statistic = row["statistic"].text();
    variant.published.push_back(
        {.name = row["metric"].text() + " " + statistic.substr(0, statistic.find(" (")),
         .unit = row["unit"].text(),
         .simulated = *simulated,
         .measured = *measured});
  }
  const Node goals = node["goodput_goals"];
  if (const Json& bounds = json_of(goals); bounds.is_object())
    for (const auto& [name, bound] : bounds.items())
      if (bound.is_number()) variant.goals.emplace_back(name, bound.get<double>());
  variant.trust = node["trust"]["text"].text();
  if (const std::string band = node["kv_capacity_band"]["text"].text(); !band.empty())
    variant.notes.push_back(band);
  for (const Node& note : node["notes"].items()) variant.notes.push_back(note.text());
  const Node settings = node["resolved"];
  if (const Json& resolved = json_of(settings); resolved.is_object()) {
    flatten(resolved, "", variant.resolved);
    variant.resolved_text = resolved.dump(2, ' ', false, Json::error_handler_t::replace);
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
void replace_by_means(const Node& metrics, StageView& stage) {
  for (const Replicated& r : kReplicated) {
    const Node of = metrics[std::string(r.listed)];
    std::optional<Datum> mean = of["mean"].datum();
    if (!mean) continue;
    mean->raw = mean->value;
    mean->value *= r.scale;
    const auto low = of["low"].datum();
    const auto high = of["high"].datum();
    if (low && high) {
      mean->low = low->value * r.scale;
      mean->high = high->value * r.scale;
    }
    stage.values.insert_or_assign(std::string(r.key), *mean);
    std::vector<double> seeds = numbers(of["values"]);
    for (double& value : seeds) value *= r.scale;
    stage.seeds.insert_or_assign(std::string(r.key), std::move(seeds));
  }
}

void read_differences(const Node& node, PageRun& run) {
  for (const Node& pair : node.items())
    for (const Replicated& r : kReplicated) {
      const Node of = pair["summary"]["metrics"][std::string(r.listed)];
      const std::optional<Datum> percent = of["percent"]["mean"].datum();
      if (of["verdict"].text().empty()) continue;
      DifferenceView d{.base = pair["base"].text(),
                       .other = pair["variant"].text(),
                       .metric = std::string(r.key),
                       .verdict = of["verdict"].text(),
                       .relative = percent.value_or(Datum{})};
      const auto low = of["percent"]["low"].datum();
      const auto high = of["percent"]["high"].datum();
      if (low && high) {
        d.relative.low = low->value;
        d.relative.high = high->value;
      }
      run.differences.push_back(std::move(d));
    }
}

void read_replications(const Node& node, PageRun& run) {
  const std::optional<Datum> count = node["count"].datum();
  if (!count) return;
  run.replications = static_cast<std::int64_t>(count->value);
  for (const Node& values : node["variants"].items())
    for (VariantView& variant : run.variants) {
      if (variant.name != values["name"].text()) continue;
      replace_by_means(values["summary"]["metrics"], variant.summary);
      for (const Node& numbers_of_stage : values["stages"].items())
        for (StageView& stage : variant.stages)
          if (stage.name == numbers_of_stage["name"].text()) {
            replace_by_means(numbers_of_stage["metrics"], stage);
            stage.overloaded = stage.held_back || numbers_of_stage["overloaded"].text() == "true";
          }
    }
  read_differences(node["differences"], run);
}

void read_expectations(const Node& node, PageRun& run) {
  for (const Node& e : node.items())
    run.expectations.push_back({.scope = e["of"].text(),
                                .text = e["expected"].text(),
                                .decision = e["decision"].text(),
                                .detail = e["found"].text()});
}

}  // namespace

PageRun read_run(const std::string& json_text, const std::string& path) {
  const JsonDocument document(json_text);
  const Node root = document.root(path);
  PageRun run;
  run.scenario = root["scenario"].text();
  run.question = root["question"].text();
  run.version = root["version"].text();
  run.commit = root["commit"].text();
  run.hash = root["scenario_hash"].text();
  run.seed = root["seed"].text();
  run.interrupted = root["interrupted"].text() == "true";
  const Node command = root["command"];
  run.command = {.input = command["input"].text(),
                 .variants = command["variants"].text(),
                 .options = command["options"].text(),
                 .scan = command["scan"].text()};
  run.quantile_levels = numbers(root["quantile_levels"]);
  for (const Node& variant : root["variants"].items())
    run.variants.push_back(read_variant(variant));
  read_replications(root["replications"], run);
  read_expectations(root["expectations"], run);
  return run;
}

namespace {

/// The axis that stages make.
constexpr char kStageRate[] = "stage rate";

std::string cell_text(const Node& value) {
  std::string text = value.text();
  if (text.size() > 40) text.replace(37, std::string::npos, "...");
  return text;
}

/// A row, or one of its stages where `stage` is not null.
PageSweep::Row read_row(const Node& node, const Node& numbers_of, const PageSweep& sweep) {
  PageSweep::Row row;
  row.variant = node["variant"].text();
  row.step_times = node["step_times"].text();
  row.overloaded = numbers_of["overloaded"].is_true();
  for (const std::string& axis : sweep.axes) {
    const Node cell = node["cell"][axis];
    row.cell.push_back(cell_text(json_of(cell).is_null() ? numbers_of["requested_rate"] : cell));
  }
  const Node metrics = numbers_of["metrics"];
  for (const std::string& metric : sweep.metrics) {
    const Node numbers_of_metric = metrics[metric];
    std::optional<Datum> mean = numbers_of_metric["mean"].datum();
    if (!mean) continue;
    if (const auto half = numbers_of_metric["half_width"].datum()) {
      mean->low = mean->value - half->value;
      mean->high = mean->value + half->value;
    }
    row.values.emplace(metric, *mean);
  }
  return row;
}

/// The reported stages of a row when they differ in their rates; else nothing.
std::vector<Node> stages_by_rate(const Node& row) {
  std::vector<Node> stages;
  std::set<double> rates;
  for (const Node& stage : row["stages"].items()) {
    if (!stage["reported"].is_true()) continue;
    const double rate = stage["requested_rate"].number();
    if (!(rate > 0) || !rates.insert(rate).second) return {};
    stages.push_back(stage);
  }
  return stages.size() < 2 ? std::vector<Node>{} : stages;
}

void read_head(const Node& root, const Node& first, PageSweep& sweep) {
  sweep.name = first["sweep"].text();
  sweep.version = first["version"].text();
  if (const auto n = first["replications"].datum())
    sweep.replications = static_cast<std::int64_t>(n->value);
  sweep.axes = first["cell"].keys();
  sweep.metrics = first["summary"]["metrics"].keys();
  const Node goals = root["goals"].items().empty() ? first["goals"] : root["goals"];
  for (const Node& goal : goals.items()) sweep.goals.push_back(goal.text());
}

}  // namespace

PageSweep read_sweep(const std::string& json_text, const std::string& path) {
  const JsonDocument document(json_text);
  const Node root = document.root(path);
  const std::vector<Node> rows = root["sweep_rows"].items();
  PageSweep sweep;
  if (rows.empty()) return sweep;
  read_head(root, rows.front(), sweep);
  const bool has_rate = std::any_of(sweep.axes.begin(), sweep.axes.end(),
                                    [](const auto& axis) { return has_word(axis, "rate qps"); });
  const bool by_stage = !has_rate && std::all_of(rows.begin(), rows.end(), [](const Node& row) {
    return !stages_by_rate(row).empty();
  });
  if (by_stage) sweep.axes.emplace_back(kStageRate);
  for (const Node& node : rows) {
    if (!by_stage) sweep.rows.push_back(read_row(node, node["summary"], sweep));
    if (by_stage)
      for (const Node& stage : stages_by_rate(node))
        sweep.rows.push_back(read_row(node, stage, sweep));
  }
  return sweep;
}

namespace {

/// `vllm 8`, or `prefill 2, decode 6`.
std::string fleet_text(const Node& replicas) {
  std::string text;
  if (!json_of(replicas).is_object()) return text;
  for (const auto& [pool, count] : json_of(replicas).items()) {
    text += text.empty() ? "" : ", ";
    text.append(count.dump()).append(" × ").append(pool);
  }
  return text;
}

std::optional<PagePlan::GoalView> read_goal(const Node& node) {
  std::optional<Datum> mean = node["mean"].datum();
  if (!mean) return std::nullopt;
  if (const auto half = node["half_width"].datum()) {
    mean->low = mean->value - half->value;
    mean->high = mean->value + half->value;
  }
  PagePlan::GoalView view{.goal = node["goal"].text(),
                          .name = node["name"].text(),
                          .verdict = node["verdict"].text(),
                          .found = *mean};
  if (const auto bound = node["bound"].datum()) view.bound = bound->value;
  return view;
}

PagePlan::Choice read_choice(const Node& node) {
  PagePlan::Choice choice;
  choice.hardware = node["hardware"].text();
  choice.policy = node["policy"].text();
  choice.fleet = fleet_text(node["replicas"]);
  choice.binds = node["binding"]["resource"].text();
  choice.step_times = node["step_times"].text();
  const auto put = [&](const char* name) {
    if (std::optional<Datum> datum = node[name].datum()) choice.values.emplace(name, *datum);
  };
  for (const char* name : {"gpus", "price_per_hour", "price_per_million_output_tokens",
                           "output_tokens_per_s", "knee_requests_per_s", "spare_replicas_today"})
    put(name);
  for (const Node& goal : node["goals"].items())
    if (std::optional<PagePlan::GoalView> view = read_goal(goal))
      choice.goals.push_back(std::move(*view));
  return choice;
}

PagePlan::Evaluated read_evaluated(const Node& node) {
  PagePlan::Evaluated fleet{.hardware = node["hardware"].text(),
                            .policy = node["policy"].text(),
                            .fleet = fleet_text(node["replicas"]),
                            .verdict = node["verdict"].text(),
                            .price = node["price_per_hour"].datum(),
                            .ttft = node["ttft_s.p90"].datum(),
                            .tpot = node["tpot_s.p90"].datum(),
                            .worst = read_goal(node["worst"])};
  return fleet;
}

PagePlan::Family read_family(const Node& node) {
  PagePlan::Family family;
  family.hardware = node["hardware"].text();
  family.policy = node["policy"].text();
  family.method = node["method"].text();
  family.impossible = node["impossible"].text();
  family.seed = node["seed"].text();
  family.hash = node["scenario_hash"].text();
  for (const Node& source : node["sources"].items()) family.sources.push_back(source.text());
  family.fleet = fleet_text(node["replicas"]);
  family.near_miss = fleet_text(node["near_miss"]["replicas"]);
  family.tried = node["sizes_tried"].datum();
  family.price = node["price_per_hour"].datum();
  return family;
}

}  // namespace

PagePlan read_plan(const std::string& json_text, const std::string& path) {
  const JsonDocument document(json_text);
  const Node root = document.root(path);
  PagePlan plan;
  plan.name = root["plan"].text();
  plan.question = root["question"].text();
  plan.version = root["version"].text();
  plan.commit = root["commit"].text();
  plan.rests_on = root["rests_on"].text();
  plan.robustness = root["robustness"].text();
  plan.scenario = root["scenario"].text();
  for (const Node& price : root["prices"].items())
    if (const std::optional<Datum> per_hour = price["per_hour"].datum())
      plan.prices.emplace_back(price["accelerator"].text(), per_hour->value);
  plan.rate = root["planned_rate"].datum();
  plan.confidence = root["confidence"].datum();
  for (const Node& goal : root["goals"].items()) plan.goals.push_back(goal.text());
  for (const Node& node : root["plans"].items()) plan.plans.push_back(read_choice(node));
  for (const Node& node : root["families"].items()) plan.families.push_back(read_family(node));
  for (const Node& node : root["evaluated"].items()) plan.evaluated.push_back(read_evaluated(node));
  return plan;
}

}  // namespace routesim::tools
