#include "tools/study/sweep/sweep_row.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/describe.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/results/json_writer.h"
#include "tools/results/statistics.h"
#include "tools/results/text_table.h"
#include "tools/results/trust_errors.h"
#include "tools/results/version.h"

namespace routesim::tools {

namespace {

StageNumbers stage_numbers(const sim::StageResult& stage, const std::vector<MetricName>& metrics) {
  StageNumbers numbers{.name = stage.info.name,
                       .requested_rate = stage.info.requested_rate,
                       .reported = stage.info.reported,
                       .requests = stage.requests,
                       .unanswered = stage.unanswered(),
                       .values = {}};
  for (const MetricName& metric : metrics) numbers.values.push_back(metric_value(stage, metric));
  return numbers;
}

/// Mean, half width and the values themselves; a value that a run does not have is null, and the
/// mean is over the runs that have one.
void write_metric(JsonWriter& json, const std::vector<std::optional<double>>& values) {
  std::vector<double> known;
  for (const std::optional<double>& v : values)
    if (v) known.push_back(*v);
  const sim::Estimate estimate = sim::estimate(known);
  json.begin_object().key("mean");
  known.empty() ? json.null() : json.value(estimate.mean);
  json.member("half_width", estimate.half_width);  // Infinity is written as null.
  json.list("values", values).end_object();
}

/// One stage over all replications; `stage` finds it in each.
template <class Stage>
void write_metrics(JsonWriter& json, const std::vector<MetricName>& metrics,
                   const std::vector<RunNumbers>& runs, const Stage& stage) {
  json.key("metrics").begin_object();
  for (std::size_t m = 0; m < metrics.size(); ++m) {
    std::vector<std::optional<double>> values;
    values.reserve(runs.size());
    for (const RunNumbers& run : runs) values.push_back(stage(run).values[m]);
    json.key(metrics[m].text);
    write_metric(json, values);
  }
  json.end_object();
}

/// Whether the stage was asked for more than it answered, in the mean of the replications.
template <class Stage>
bool is_overloaded(const std::vector<RunNumbers>& runs, const Stage& stage) {
  double unanswered = 0;
  for (const RunNumbers& run : runs) unanswered += stage(run).unanswered;
  return unanswered / static_cast<double>(runs.size()) > sim::kMostQueueGrowth;
}

template <class Stage>
void write_requests(JsonWriter& json, const std::vector<RunNumbers>& runs, const Stage& stage) {
  json.key("requests").begin_array();
  for (const RunNumbers& run : runs) json.value(stage(run).requests);
  json.end_array();
}

}  // namespace

RunNumbers numbers_of(const sim::RunResult& result, const std::vector<MetricName>& metrics) {
  RunNumbers numbers{
      .summary = stage_numbers(result.summary, metrics), .stages = {}, .trust = result.trust()};
  for (const sim::StageResult& stage : result.stages)
    numbers.stages.push_back(stage_numbers(stage, metrics));
  return numbers;
}

std::string row_head(const SweepPlan& plan, std::size_t row) {
  JsonWriter json(0);
  json.begin_object().member("key", plan.rows[row].key);
  json.member("index", row).member("of", plan.rows.size());
  json.member("sweep", plan.config.name).member("experiment", plan.experiment);
  if (!plan.config.goals.empty()) json.list("goals", plan.config.goals);
  json.key("cell").begin_object();
  const GridCell& cell = plan.grid.cells[plan.rows[row].cell];
  for (const auto& [name, value] : plan.grid.coordinates(cell)) json.key(name).raw(value);
  json.end_object();
  return json.str();
}

std::string row_tail(const SweepPlan& plan, const SweepRow& row,
                     const std::vector<RunNumbers>& runs) {
  const std::vector<MetricName>& metrics = plan.metrics;
  JsonWriter json(0);
  json.begin_object().member("variant", row.variant).member("seed", row.seed);
  json.member("replications", runs.size()).member("version", version());
  if (!commit().empty()) json.member("commit", commit());
  models::Trust trust = models::Trust::kFitted;
  for (const RunNumbers& run : runs) trust = std::max(trust, run.trust);
  json.member("step_times", enum_name(trust));
  const auto summary = [](const RunNumbers& run) -> const StageNumbers& { return run.summary; };
  bool any_overloaded = false;
  for (std::size_t s = 0; s < runs.front().stages.size(); ++s)
    any_overloaded =
        any_overloaded || (runs.front().stages[s].reported &&
                           is_overloaded(runs, [s](const RunNumbers& run) -> const StageNumbers& {
                             return run.stages[s];
                           }));
  json.key("summary").begin_object().member("overloaded", any_overloaded);
  write_requests(json, runs, summary);
  write_metrics(json, metrics, runs, summary);
  json.end_object().key("stages").begin_array();
  for (std::size_t s = 0; s < runs.front().stages.size(); ++s) {
    const auto stage = [s](const RunNumbers& run) -> const StageNumbers& { return run.stages[s]; };
    const StageNumbers& first = stage(runs.front());
    json.begin_object().member("name", first.name);
    const bool one_rate = std::all_of(runs.begin(), runs.end(), [&](const RunNumbers& run) {
      return stage(run).requested_rate == first.requested_rate;
    });
    json.member("requested_rate", one_rate ? first.requested_rate : 0);
    json.member("reported", first.reported).member("overloaded", is_overloaded(runs, stage));
    write_requests(json, runs, stage);
    if (first.reported) write_metrics(json, metrics, runs, stage);
    json.end_object();
  }
  json.end_array().end_object();
  // The head has opened the object already, and the seal closes it.
  std::string tail = json.str();
  tail.front() = ',';
  tail.pop_back();
  return tail;
}

namespace {

using Json = nlohmann::ordered_json;

/// The first metrics; of the usual ones, those that say most.
std::vector<std::string> columns_of(const SweepPlan& plan) {
  constexpr std::size_t kMost = 6;
  if (plan.config.metrics.empty())
    return {"output_tokens_per_s", "ttft_ms.mean", "ttft_ms.p99", "tpot_ms.mean",
            "prefix_cache_hit_rate"};
  std::vector<std::string> columns;
  for (const MetricName& metric : plan.metrics)
    if (columns.size() < kMost) columns.push_back(metric.text);
  return columns;
}

/// Enough decimals for four digits.
int decimals_for(double v) {
  const double size = std::abs(v);
  if (size >= 1000 || size == 0) return 0;
  if (size >= 100) return 1;
  if (size >= 10) return 2;
  return 3;
}

std::string metric_text(const Json& metric) {
  if (!metric["mean"].is_number()) return "-";
  const double mean = metric["mean"].get<double>();
  const int decimals = decimals_for(mean);
  std::string text = fixed_text(mean, decimals);
  if (metric["half_width"].is_number())
    text += " ±" + fixed_text(metric["half_width"].get<double>(), decimals);
  return text;
}

std::string value_text(const Json& value) {
  if (value.is_string()) return printable(value.get<std::string>(), 30);
  if (value.is_number()) return number_text(value.get<double>());
  return printable(value.dump(), 30);
}

void add_stage(const Json& row, const Json& stage, const std::string& name,
               const std::vector<std::string>& columns, TextTable& table) {
  std::vector<std::string> cells;
  for (const auto& [axis, value] : row["cell"].items()) cells.push_back(value_text(value));
  cells.push_back(printable(row["variant"].get<std::string>()));
  if (!name.empty()) cells.push_back(name);
  const bool overloaded = stage["overloaded"].get<bool>();
  for (const std::string& column : columns)
    cells.push_back((overloaded ? "! " : "") + metric_text(stage["metrics"][column]));
  table.add_row(std::move(cells));
}

std::vector<const Json*> reported(const Json& row) {
  std::vector<const Json*> stages;
  for (const Json& stage : row["stages"])
    if (stage["reported"].get<bool>()) stages.push_back(&stage);
  return stages;
}

std::string rate_text(const Json& stage) {
  const Json& rate = stage["requested_rate"];
  const bool known = rate.is_number() && rate.get<double>() > 0;
  return known ? number_text(rate.get<double>()) : printable(stage["name"].get<std::string>());
}

/// The step times that the rows rest on, a line per class.
std::string trust_notes(const std::vector<Json>& rows) {
  std::string text;
  for (const models::Trust trust : {models::Trust::kFitted, models::Trust::kExtrapolated,
                                    models::Trust::kRoofline, models::Trust::kDataSheet}) {
    const auto rests = std::ranges::count_if(rows, [&](const Json& row) {
      return row.value("step_times", std::string()) == enum_name(trust);
    });
    if (rests > 0)
      text += "note: " + std::to_string(rests) + " of " + std::to_string(rows.size()) +
              " rows rest on " + std::string(trust_clause(trust)) + "; " +
              trust_errors_text(trust) + "\n";
  }
  return text;
}

}  // namespace

std::string sweep_text(const SweepPlan& plan, const std::vector<std::string>& rows) {
  const std::vector<std::string> columns = columns_of(plan);
  std::vector<Json> parsed;
  bool by_stage = false;
  for (const std::string& line : rows) {
    parsed.push_back(Json::parse(line));
    by_stage = by_stage || reported(parsed.back()).size() > 1;
  }
  std::vector<std::string> header;
  for (const Dimension& dimension : plan.grid.dimensions)
    for (const Axis& axis : dimension.axes) header.push_back(printable(axis.name));
  header.emplace_back("variant");
  if (by_stage) header.emplace_back("stage rate");
  TextTable table(header.size());
  header.insert(header.end(), columns.begin(), columns.end());
  table.add_row(std::move(header));
  for (const Json& row : parsed) {
    if (!by_stage) add_stage(row, row["summary"], "", columns, table);
    if (by_stage)
      for (const Json* stage : reported(row))
        add_stage(row, *stage, rate_text(*stage), columns, table);
  }
  std::string text = plan.config.name + "\n";
  if (!plan.config.question.empty()) text += plan.config.question + "\n";
  const std::string body = table.str();
  text += "\n" + body;
  if (body.find("! ") != std::string::npos)
    text += "! overloaded: the stage is asked for more than it answers\n";
  return text + trust_notes(parsed);
}

}  // namespace routesim::tools
