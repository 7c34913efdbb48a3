#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "base/scalar_parse.h"
#include "tools/render/json_node.h"
#include "tools/render/page/page_data.h"
#include "tools/render/sweep_goals.h"

namespace routesim::tools {

namespace {

using Json = nlohmann::ordered_json;

const Json& json_of(const Node& node) { return *static_cast<const Json*>(node.value()); }

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
