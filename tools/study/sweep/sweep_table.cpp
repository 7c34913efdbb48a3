#include "tools/study/sweep/sweep_table.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/describe.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/results/text_table.h"
#include "tools/results/trust_errors.h"

namespace routesim::tools {

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
  // Rows of early builds do not say it.
  const bool overloaded = stage.value("overloaded", false);
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

/// What the rows rest on, a line per class. Rows of early builds do not say it.
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
    text += "! overloaded: the queue grows until the stage ends\n";
  return text + trust_notes(parsed);
}

}  // namespace routesim::tools
