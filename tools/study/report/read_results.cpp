#include "tools/study/report/read_results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/tree_reader.h"
#include "tools/render/page/html_page.h"
#include "tools/results/metric_goal.h"
#include "tools/results/result_record.h"
#include "tools/study/compare/comparison_record.h"
#include "tools/study/run/render_run.h"
#include "tools/study/run/run_document.h"
#include "tools/study/validate/validation_record.h"

namespace routesim::tools {

using Json = nlohmann::ordered_json;

namespace {

/// JSON lines, one object each; discarded when a line is not one.
Json parse_lines(const std::string& text) {
  Json rows = Json::array();
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    Json row = Json::parse(line, nullptr, false);
    if (!row.is_object()) return Json(Json::value_t::discarded);
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Whether brackets outside quotes nest deeper than every document of ours. The library parses
/// without recursion, but writes with it.
bool nests_too_deep(std::string_view text) {
  constexpr int kDeepest = 64;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if ((c == '[' || c == '{') && ++depth > kDeepest) return true;
    if (c == ']' || c == '}') --depth;
  }
  return false;
}

/// Reads a file's results, one or more, as one value.
Json parse_result(const std::string& text) {
  const std::optional<std::string> block = data_block(text);
  if (nests_too_deep(block ? *block : text)) return Json(Json::value_t::discarded);
  Json value = Json::parse(block ? *block : text, nullptr, false);
  if (!value.is_discarded()) return value;
  Json rows = parse_lines(text);
  if (rows.is_discarded() || rows.empty()) return Json(Json::value_t::discarded);
  return Json{{"sweep_rows", std::move(rows)}};
}

enum class Kind { kUnknown, kRun, kSweep, kPlan, kComparison, kTuning, kValidation };

Kind kind_of(const Json& value) {
  if (!value.is_object()) return Kind::kUnknown;
  if (value.contains("sweep_rows")) {
    const Json& rows = value["sweep_rows"];
    const auto is_row = [](const Json& row) { return row.contains("cell"); };
    return std::any_of(rows.begin(), rows.end(), is_row) ? Kind::kSweep : Kind::kUnknown;
  }
  const auto has_rows = [&value](const char* key) {
    return value.contains(key) && value[key].is_array() && !value[key].empty() &&
           value[key].front().is_object();
  };
  if (value.contains("plans") && value.contains("families")) return Kind::kPlan;
  if (has_rows("pairs") && value.contains("gates")) return Kind::kComparison;
  if (value.contains("tune") && value.contains("judged")) return Kind::kTuning;
  if (has_rows("scenarios")) return Kind::kValidation;
  if (has_rows("variants")) return Kind::kRun;
  return Kind::kUnknown;
}

/// The value as a tree, all at one place.
ConfigNode::Ptr tree_of(const Json& value, const SourceLocation& where) {
  if (value.is_null()) return ConfigNode::make_null(where);
  if (value.is_string())
    return ConfigNode::make_scalar(value.get<std::string>(), ConfigNode::Style::kQuoted, where);
  if (!value.is_structured())
    return ConfigNode::make_scalar(value.dump(), ConfigNode::Style::kPlain, where);
  std::vector<ConfigNode::Ptr> items;
  std::vector<ConfigNode::Member> members;
  for (const auto& [key, member] : value.items()) {
    if (value.is_array())
      items.push_back(tree_of(member, where));
    else
      members.push_back({.key = key, .key_where = where, .value = tree_of(member, where)});
  }
  return value.is_array() ? ConfigNode::make_sequence(std::move(items), where)
                          : ConfigNode::make_map(std::move(members), where);
}

/// The place where `text` stands in quotes behind "goals"; the start of the file when it does not.
SourceLocation goal_place(const ResultText& result, const std::string& text) {
  const std::size_t at = result.text.find('"' + text + '"', result.text.find("\"goals\""));
  if (at == std::string::npos) return {.file = result.file, .line = 1, .column = 1};
  const std::size_t start = result.text.rfind('\n', at) + 1;
  const auto line =
      std::count(result.text.begin(), result.text.begin() + static_cast<int>(at), '\n');
  return {.file = result.file,
          .line = static_cast<int>(line) + 1,
          .column = static_cast<int>(at - start) + 1};
}

/// Each goal of a sweep must be one, and be about a metric of its rows. `is_given`: by --goal.
void check_goals(const Json& sweep, bool is_given, const ResultText& result,
                 Diagnostics& diagnostics) {
  const PageSweep read = read_sweep(sweep.dump(), "");
  for (const std::string& text : read.goals) {
    const Parsed<MetricGoal> goal = parse_metric_goal(text);
    const SourceLocation where = goal_place(result, text);
    if (!goal.value)
      diagnostics.error(is_given ? SourceLocation{.file = "--goal"} : where, "", goal.message,
                        goal.hint);
    else if (std::find(read.metrics.begin(), read.metrics.end(), goal.value->metric.text) ==
             read.metrics.end())
      diagnostics.error(where, "",
                        "has no " + goal.value->metric.text + ", which " +
                            (is_given ? "--goal" : "a goal") + " needs",
                        fmt::format("its metrics are {}", fmt::join(read.metrics, ", ")));
  }
}

/// A page of a run is called as its scenario, not by its question.
PageBody body_of(const PageRun& run) {
  return {.title = run.scenario, .body = page_body_of(run_document(run)).body};
}

/// The results that are described, by their position among all.
struct Records {
  std::map<std::size_t, RunRecord> runs;
  std::map<std::size_t, ComparisonRecord> comparisons;
  std::map<std::size_t, ValidationRecord> validations;
};

/// Adds a result, and its part of the page. It is the i-th, and stands at `path`.
void add_result(const Json& value, std::size_t i, const std::string& path, const Records& records,
                PageData& data) {
  switch (kind_of(value)) {
    case Kind::kRun:
      data.runs.push_back(page_run(records.runs.at(i), path));
      data.bodies.push_back(body_of(data.runs.back()));
      break;
    case Kind::kPlan:
      data.plans.push_back(read_plan(value.dump(), path));
      data.bodies.push_back({data.plans.back().name, plan_sections(data.plans.back())});
      break;
    case Kind::kComparison:
      data.bodies.push_back(page_body_of(comparison_document(records.comparisons.at(i), path)));
      break;
    case Kind::kTuning:
      data.bodies.push_back({"the best configuration", tune_sections({value.dump(), path})});
      break;
    case Kind::kValidation:
      data.bodies.push_back(
          page_body_of(validation_document(records.validations.at(i), true, path)));
      break;
    case Kind::kSweep:
      data.sweeps.push_back(read_sweep(value.dump(), path));
      data.bodies.push_back({data.sweeps.back().name, sweep_sections(data.sweeps.back())});
      break;
    case Kind::kUnknown:
      break;
  }
}

}  // namespace

PageData read_results(const std::vector<ResultText>& results, Diagnostics& diagnostics,
                      const std::vector<std::string>& goals) {
  Json all = Json::array();
  Records records;
  for (const ResultText& result : results) {
    Json value = parse_result(result.text);
    const SourceLocation where{.file = result.file, .line = 1, .column = 1};
    const std::string hint =
        "give the JSON of `run`, `plan`, `tune`, `compare` or `validate`, the JSON lines of "
        "`sweep`, or a page made by `report`";
    if (value.is_discarded()) {
      diagnostics.error(where, "", "is not a result of routesim", hint);
      continue;
    }
    Json parts = value.is_object() && value.contains("results") ? value["results"]
                                                                : Json::array({std::move(value)});
    for (Json& part : parts) {
      if (kind_of(part) == Kind::kSweep) {
        if (!goals.empty()) part["goals"] = goals;
        check_goals(part, !goals.empty(), result, diagnostics);
      }
      Diagnostics faults;
      if (kind_of(part) == Kind::kUnknown)
        faults.error(where, "", "is JSON, but not a result of routesim", hint);
      else if (kind_of(part) == Kind::kRun)
        records.runs[all.size()] = read_run_record(*tree_of(part, where), faults);
      else if (kind_of(part) == Kind::kComparison)
        records.comparisons[all.size()] = read_comparison_record(*tree_of(part, where), faults);
      else if (kind_of(part) == Kind::kValidation)
        records.validations[all.size()] = read_validation_record(*tree_of(part, where), faults);
      if (!faults.has_errors()) all.push_back(std::move(part));
      append(diagnostics, faults);
    }
  }
  PageData data;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string path = all.size() == 1 ? "" : "/results/" + std::to_string(i);
    add_result(all[i], i, path, records, data);
  }
  const Json block = all.size() == 1 ? all[0] : Json{{"results", all}};
  // The text came from files: what is not UTF-8 is replaced, not refused.
  data.block = make_data_block(block.dump(-1, ' ', false, Json::error_handler_t::replace));
  return data;
}

std::string render_html(const Report& report) {
  RunRecord record = run_record(report);
  for (VariantRecord& variant : record.variants)
    if (const Json resolved = Json::parse(variant.resolved.path, nullptr, false);
        resolved.is_object())
      variant.resolved.root = tree_of(resolved, {});
  const PageRun run = page_run(record, "");
  return render_page({body_of(run)}, make_data_block(render_json(report)));
}

std::string page_of(const std::string& json) {
  Diagnostics diagnostics;
  const PageData data = read_results({{.file = "result", .text = json}}, diagnostics);
  ROUTESIM_CHECK(!diagnostics.has_errors(), "a result does not read back");
  return render_page(data);
}

}  // namespace routesim::tools
