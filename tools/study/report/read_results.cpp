#include "tools/study/report/read_results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "base/tree_reader.h"
#include "tools/render/page/html_page.h"
#include "tools/results/described_json.h"
#include "tools/results/json_tree.h"
#include "tools/results/metric_goal.h"
#include "tools/results/result_record.h"
#include "tools/study/compare/comparison_record.h"
#include "tools/study/plan/plan_record.h"
#include "tools/study/run/render_run.h"
#include "tools/study/run/run_document.h"
#include "tools/study/sweep/sweep_goals.h"
#include "tools/study/tune/tune_record.h"
#include "tools/study/validate/validation_record.h"

namespace routesim::tools {

namespace {

/// JSON lines, one object each; null when a line is not one.
ConfigNode::Ptr parse_lines(const std::string& text, const SourceLocation& where) {
  std::vector<ConfigNode::Ptr> rows;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    rows.push_back(json_tree(line, where));
    if (rows.back() == nullptr || !rows.back()->is_map()) return nullptr;
  }
  return rows.empty() ? nullptr
                      : tree::map({{"sweep_rows", tree::list(std::move(rows), where)}}, where);
}

/// Reads a file's results, one or more, as one value; null when it has none.
ConfigNode::Ptr parse_result(const std::string& text, const SourceLocation& where) {
  const std::optional<std::string> block = data_block(text);
  const ConfigNode::Ptr value = json_tree(block ? *block : text, where);
  return value != nullptr ? value : parse_lines(text, where);
}

enum class Kind { kUnknown, kRun, kSweep, kPlan, kComparison, kTuning, kValidation };

Kind kind_of(const ConfigNode& value) {
  const auto has = [&value](const char* key) { return value.child(key) != nullptr; };
  const auto has_rows = [&value](const char* key) {
    const ConfigNode* const rows = value.child(key);
    return rows != nullptr && rows->is_sequence() && !rows->items().empty() &&
           rows->items().front()->is_map();
  };
  if (!value.is_map()) return Kind::kUnknown;
  if (has("sweep_rows")) {
    const auto is_row = [](const ConfigNode::Ptr& row) { return row->child("cell") != nullptr; };
    const bool some =
        has_rows("sweep_rows") && std::ranges::any_of(value.child("sweep_rows")->items(), is_row);
    return some ? Kind::kSweep : Kind::kUnknown;
  }
  if (has("plans") && has("families")) return Kind::kPlan;
  if (has_rows("pairs") && has("gates")) return Kind::kComparison;
  if (has("tune") && has("judged")) return Kind::kTuning;
  if (has_rows("scenarios")) return Kind::kValidation;
  if (has_rows("variants")) return Kind::kRun;
  return Kind::kUnknown;
}

/// The rows of a sweep with other goals.
ConfigNode::Ptr with_goals(const ConfigNode& sweep, const std::vector<std::string>& goals) {
  std::vector<ConfigNode::Member> members = sweep.members();
  std::erase_if(members, [](const ConfigNode::Member& m) { return m.key == "goals"; });
  std::vector<ConfigNode::Ptr> list;
  for (const std::string& goal : goals) list.push_back(tree::text(goal, sweep.where()));
  members.push_back({.key = "goals",
                     .key_where = sweep.where(),
                     .value = tree::list(std::move(list), sweep.where())});
  return ConfigNode::make_map(std::move(members), sweep.where());
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
void check_goals(const SweepRecord& sweep, bool is_given, const ResultText& result,
                 Diagnostics& diagnostics) {
  const SweepCells read = cells_of(sweep, "");
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

PageBody body_of(const PageRun& run) {
  return {.title = run.scenario, .body = page_body_of(run_document(run)).body};
}

/// Adds one result to a page; the argument says where it stands in the data block.
using Show = std::function<void(PageData& data, const std::string& path)>;

Show study(std::function<StudyDocument(const std::string& path)> document) {
  return [document = std::move(document)](PageData& data, const std::string& path) {
    data.bodies.push_back(page_body_of(document(path)));
  };
}

/// Reads a result of a known kind.
Show read_result(Kind kind, const ConfigNode& tree, const ResultText& result, bool goals_given,
                 Diagnostics& faults) {
  switch (kind) {
    case Kind::kRun:
      return [record = read_run_record(tree, faults)](PageData& data, const std::string& path) {
        data.runs.push_back(page_run(record, path));
        data.bodies.push_back(body_of(data.runs.back()));
      };
    case Kind::kPlan:
      return study([record = read_plan_record(tree, faults)](const std::string& path) {
        return plan_document(record, path);
      });
    case Kind::kTuning:
      return study([record = read_tune_record(tree, faults)](const std::string& path) {
        return tune_document(record, path);
      });
    case Kind::kComparison:
      return study([record = read_comparison_record(tree, faults)](const std::string& path) {
        return comparison_document(record, path);
      });
    case Kind::kValidation:
      return study([record = read_validation_record(tree, faults)](const std::string& path) {
        return validation_document(record, true, path);
      });
    case Kind::kSweep: {
      SweepRecord record = read_sweep_record(tree, faults);
      check_goals(record, goals_given, result, faults);
      return study([record = std::move(record)](const std::string& path) {
        return sweep_document(record, "", path);
      });
    }
    case Kind::kUnknown:
      break;
  }
  return nullptr;
}

}  // namespace

PageData read_results(const std::vector<ResultText>& results, Diagnostics& diagnostics,
                      const std::vector<std::string>& goals) {
  PageData data;
  std::vector<ConfigNode::Ptr> all;
  std::vector<Show> shown;
  for (const ResultText& result : results) {
    const SourceLocation where{.file = result.file, .line = 1, .column = 1};
    const ConfigNode::Ptr value = parse_result(result.text, where);
    const std::string hint =
        "give the JSON of `run`, `plan`, `tune`, `compare` or `validate`, the JSON lines of "
        "`sweep`, or a page made by `report`";
    if (value == nullptr) {
      diagnostics.error(where, "", "is not a result of routesim", hint);
      continue;
    }
    const ConfigNode* const several = value->child("results");
    for (ConfigNode::Ptr part : several != nullptr ? several->items() : std::vector{value}) {
      const Kind kind = kind_of(*part);
      if (kind == Kind::kSweep && !goals.empty()) part = with_goals(*part, goals);
      data.has_sweep |= kind == Kind::kSweep;
      if (kind == Kind::kUnknown)
        diagnostics.error(where, "", "is JSON, but not a result of routesim", hint);
      else
        shown.push_back(read_result(kind, *part, result, !goals.empty(), diagnostics));
      all.push_back(std::move(part));
    }
  }
  if (diagnostics.has_errors()) return data;
  for (std::size_t i = 0; i < all.size(); ++i)
    shown[i](data, all.size() == 1 ? "" : "/results/" + std::to_string(i));
  JsonWriter block(0);
  write_tree(block, all.size() == 1 ? *all[0] : *tree::map({{"results", tree::list(all)}}));
  data.block = make_data_block(block.str());
  return data;
}

std::string render_html(const Report& report) {
  RunRecord record = run_record(report);
  for (VariantRecord& variant : record.variants)
    variant.resolved.root = json_tree(variant.resolved.path, {});
  return render_page({body_of(page_run(record, ""))}, make_data_block(render_json(report)));
}

}  // namespace routesim::tools
