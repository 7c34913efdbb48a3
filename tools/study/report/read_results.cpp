#include "tools/study/report/read_results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/check.h"
#include "base/scalar_parse.h"
#include "base/tree_reader.h"
#include "tools/render/chart/svg.h"
#include "tools/render/document.h"
#include "tools/render/page/html_page.h"
#include "tools/results/described_json.h"
#include "tools/results/metric_name.h"
#include "tools/results/result_record.h"
#include "tools/results/text_table.h"
#include "tools/study/compare/comparison_record.h"
#include "tools/study/plan/plan_record.h"
#include "tools/study/run/render_run.h"
#include "tools/study/run/run_charts.h"
#include "tools/study/run/run_document.h"
#include "tools/study/sweep/sweep_goals.h"
#include "tools/study/tune/tune_record.h"
#include "tools/study/validate/validation_record.h"

namespace routesim::tools {

namespace {

/// A value of a table: text, or a number written as the shortest text that reads back.
struct FlatCell {
  std::string text;
  bool number = false;
};

FlatCell cell(const std::string& text) { return {.text = text, .number = false}; }
FlatCell cell(double value) {
  if (!std::isfinite(value)) return {};
  return {.text = number_text(value), .number = true};
}
FlatCell cell(const std::optional<double>& value) { return value ? cell(*value) : FlatCell{}; }

/// One table, written as CSV and as JSON lines.
class FlatTable {
 public:
  FlatTable(std::string name, std::vector<std::string> columns)
      : name_(std::move(name)), columns_(std::move(columns)) {
    for (std::size_t i = 0; i < columns_.size(); ++i)
      csv_.append(i > 0 ? "," : "").append(csv_field(columns_[i]));
    csv_ += "\n";
  }

  void add(const std::vector<FlatCell>& row) {
    JsonWriter json(0);
    json.begin_object();
    for (std::size_t i = 0; i < row.size(); ++i) {
      csv_.append(i > 0 ? "," : "").append(row[i].number ? row[i].text : csv_field(row[i].text));
      json.key(columns_[i]);
      if (row[i].text.empty())
        json.null();
      else if (row[i].number)
        json.raw(row[i].text);
      else
        json.value(row[i].text);
    }
    csv_ += "\n";
    lines_.append(json.end_object().str()).append("\n");
  }

  void put(std::vector<FolderFile>& files) const {
    if (lines_.empty()) return;
    files.push_back({.name = name_ + ".csv", .text = csv_});
    files.push_back({.name = name_ + ".jsonl", .text = lines_});
  }

 private:
  std::string name_;
  std::vector<std::string> columns_;
  std::string csv_, lines_;
};

void add_stage(FlatTable& table, const PageRun& run, const VariantView& variant,
               const StageView& stage, const std::string& name) {
  for (const auto& [key, datum] : stage.values) {
    const auto measured = stage.measured.find(key);
    table.add({cell(run.scenario), cell(variant.name), cell(name), cell(stage.rate),
               cell(stage.concurrency), cell(stage.reported ? "yes" : "no"), cell(key),
               cell(datum.value), cell(datum.low), cell(datum.high),
               measured == stage.measured.end() ? FlatCell{} : cell(measured->second)});
  }
}

void add_quantiles(FlatTable& table, const PageRun& run, const VariantView& variant,
                   const StageView& stage, const std::string& name) {
  for (const auto& [metric, values] : stage.quantiles)
    for (std::size_t i = 0; i < std::min(values.size(), run.quantile_levels.size()); ++i)
      table.add({cell(run.scenario), cell(variant.name), cell(name), cell(metric),
                 cell(run.quantile_levels[i]), cell(values[i])});
}

void add_series(FlatTable& table, const PageRun& run, const VariantView& variant) {
  for (const ServerSeries& server : variant.series)
    for (const auto& [key, values] : server.values)
      for (std::size_t i = 0; i < values.size(); ++i)
        table.add({cell(run.scenario), cell(variant.name), cell(server.name),
                   cell(variant.series_time_s[i]), cell(key), cell(values[i])});
}

void export_runs(const PageData& data, std::vector<FolderFile>& files) {
  const std::vector<std::string> stage_columns = {"scenario",    "variant",  "stage",   "rate",
                                                  "concurrency", "reported", "metric",  "value",
                                                  "low",         "high",     "measured"};
  FlatTable summary("summary", stage_columns);
  FlatTable stages("stages", stage_columns);
  FlatTable quantiles("quantiles", {"scenario", "variant", "stage", "metric", "percent", "value"});
  FlatTable servers("servers", {"scenario", "variant", "server", "metric", "value"});
  FlatTable series("series", {"scenario", "variant", "server", "time_s", "metric", "value"});
  for (const PageRun& run : data.runs)
    for (const VariantView& variant : run.variants) {
      add_stage(summary, run, variant, variant.summary, "summary");
      add_quantiles(quantiles, run, variant, variant.summary, "summary");
      for (const StageView& stage : variant.stages) {
        add_stage(stages, run, variant, stage, stage.name);
        add_quantiles(quantiles, run, variant, stage, stage.name);
      }
      for (const ServerView& server : variant.servers)
        for (const auto& [key, datum] : server.values)
          servers.add({cell(run.scenario), cell(variant.name), cell(server.name), cell(key),
                       cell(datum.value)});
      add_series(series, run, variant);
    }
  for (const FlatTable* table : {&summary, &stages, &quantiles, &servers, &series})
    table->put(files);
}

/// Tables of one name and the same columns become one, others of that name get a number.
void export_studies(const PageData& data, std::vector<FolderFile>& files) {
  std::vector<ExportTable> all;
  for (const PageBody& body : data.bodies)
    for (const ExportTable& table : body.data) {
      const auto same = std::ranges::find_if(all, [&](const ExportTable& other) {
        return other.name == table.name && other.columns == table.columns;
      });
      if (same == all.end())
        all.push_back(table);
      else
        same->rows.insert(same->rows.end(), table.rows.begin(), table.rows.end());
    }
  std::map<std::string, int> used;
  for (const ExportTable& t : all) {
    const int number = ++used[t.name];
    FlatTable table(number == 1 ? t.name : t.name + "-" + std::to_string(number), t.columns);
    for (const std::vector<ExportTable::Value>& row : t.rows) {
      std::vector<FlatCell> cells;
      for (const ExportTable::Value& value : row)
        cells.push_back(std::visit([](const auto& v) { return cell(v); }, value));
      table.add(cells);
    }
    table.put(files);
  }
}

/// The part of a style that charts need. `$name` is a variable of the page's style sheet, which
/// viewers of plain SVG mostly do not know, so that its value is written instead.
constexpr std::string_view kExportStyle = R"css(
.title{font-weight:600}text:not(.title){font-size:12px}
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
.plot text:not(.title){font-size:9px}.plot text.tight:not(.title){font-size:8px}
.line{fill:none;stroke-width:2;stroke-linejoin:round}.thin .line{stroke-width:1.2}
.d1{stroke-dasharray:7 3}.d2{stroke-dasharray:2 3}.d3{stroke-dasharray:9 3 2 3}
.d4{stroke-dasharray:14 4}.d5{stroke-dasharray:4 2 1 2}.d6{stroke-dasharray:1 3}
.d7{stroke-dasharray:10 2 2 2 2 2}.line.past{stroke-width:1.3;stroke-opacity:.5}
.mark{stroke:none}.measured .mark{stroke-width:1.8}.mark.past{stroke-width:1.2}
.interval{stroke-width:1.6}.goal{stroke-width:1.6;stroke-dasharray:1 4;stroke-linecap:round}
)css";
constexpr std::string_view kColourRules =
    ".paper,.measured .mark,.mark.past{fill:$card}text{fill:$mute}.unit,text.title{fill:$ink}\n"
    ".grid{stroke:$grid}.axis{stroke:$mute}.goal{stroke:$ink}\n";
constexpr std::string_view kSeriesColour =
    ".c# .line,.c# .interval,.c#.measured .mark,.c# .mark.past{stroke:$s#}"
    ".c#:not(.measured) .mark:not(.past){fill:$s#}\n";

/// The value the page gives a variable, for light or for dark.
std::string_view page_value(std::string_view name, bool dark) {
  const std::string_view page = page_style();
  const std::size_t theme = dark ? page.find("prefers-color-scheme:dark") : 0;
  const std::string declaration = "--" + std::string(name) + ":";
  const std::size_t at = page.find(declaration, theme);
  ROUTESIM_CHECK(at != std::string_view::npos, "the page has no such variable");
  const std::size_t begin = at + declaration.size();
  return page.substr(begin, page.find_first_of(";}", begin) - begin);
}

/// `rules` with the values of the variables in them.
std::string resolved(const std::string& rules, bool dark) {
  std::string out;
  for (std::size_t i = 0; i < rules.size();) {
    if (rules[i] != '$') {
      out += rules[i++];
      continue;
    }
    const std::size_t end = rules.find('}', i);
    out += page_value(std::string_view(rules).substr(i + 1, end - i - 1), dark);
    i = end;
  }
  return out;
}

std::string style() {
  std::string rules(kColourRules);
  for (std::size_t series = 0; series < kColours; ++series)
    for (const char c : kSeriesColour) c == '#' ? rules += std::to_string(series) : rules += c;
  return "<style>" + std::string(kExportStyle) + resolved(rules, false) +
         "@media (prefers-color-scheme:dark){\n" + resolved(rules, true) + "}\n</style>";
}

/// A nested drawing at a place and with a size of its own.
std::string placed_drawing(std::string svg, double x, double y, double width, double height) {
  const std::string attributes = "<svg x=\"" + fixed_text(x, 1) + "\" y=\"" + fixed_text(y, 1) +
                                 "\" width=\"" + fixed_text(width, 1) + "\" height=\"" +
                                 fixed_text(height, 1) + "\"";
  return svg.replace(0, 4, attributes);
}

/// The chart with title, legend and its own style sheet (light, and dark where the viewer asks for
/// it) as one SVG document; empty when there is nothing to draw. Plain SVG 1.1: no HTML inside.
std::string svg_file(const LineChart& chart) {
  constexpr double kMargin = 16, kScale = 1.5, kKeyWidth = 28, kKeyHeight = 14, kPerLetter = 6.6;
  const Drawing drawing = draw_lines(chart);
  if (drawing.svg.empty()) return {};
  const double width = kScale * drawing.width + 2 * kMargin;
  // No wider than the drawing: a letter of a bold face takes about 0.57 of its height.
  const double letters = std::max<double>(1, static_cast<double>(chart.title.size()));
  const double title_size = std::min(16.0, (width - 2 * kMargin) / (0.57 * letters));
  std::string out = "<g style=\"font-size:" + fixed_text(title_size, 1) + "px\">" +
                    svg_text(kMargin, 30, "start", chart.title, "title") + "</g>" +
                    svg_text(kMargin, 50, "start", chart.subtitle);
  double x = kMargin;
  for (const ChartSeries& s : chart.series) {
    const std::string name = s.name + (s.measured ? " (measured)" : "");
    out += placed_drawing(svg_key(s.colour, s.measured, s.markers), x, 62, kKeyWidth, kKeyHeight) +
           svg_text(x + kKeyWidth + 6, 73, "start", name);
    x += kKeyWidth + 24 + kPerLetter * static_cast<double>(name.size());
  }
  const double top = 84;
  const double height = top + kScale * drawing.height + kMargin;
  const std::string size = fixed_text(width, 0) + "\" height=\"" + fixed_text(height, 0);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + fixed_text(width, 0) + " " +
         fixed_text(height, 0) + "\" width=\"" + size + "\" role=\"img\">\n<title>" +
         html(chart.title) + "</title>\n" + style() + "\n<rect class=\"paper\" width=\"" + size +
         "\"/>\n" + out + "\n" + "<g class=\"plot\">" +
         placed_drawing(drawing.svg, kMargin, top, kScale * drawing.width,
                        kScale * drawing.height) +
         "</g>\n</svg>\n";
}

}  // namespace

std::vector<FolderFile> export_tables(const PageData& data) {
  std::vector<FolderFile> files;
  export_runs(data, files);
  export_studies(data, files);
  return files;
}

std::vector<FolderFile> export_charts(const PageData& data) {
  std::vector<FolderFile> files;
  for (std::size_t i = 0; i < data.runs.size(); ++i) {
    const std::string number = data.runs.size() > 1 ? std::to_string(i + 1) + "-" : "";
    for (const NamedChart& curve : load_curves(data.runs[i]))
      files.push_back({.name = number + curve.name + ".svg", .text = svg_file(curve.chart)});
  }
  return files;
}

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

Kind result_kind(const ConfigNode& value) {
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
void check_sweep_goals(const SweepRecord& sweep, bool is_given, const ResultText& result,
                       Diagnostics& diagnostics) {
  const SweepCells read = cells_of(sweep, "");
  for (const std::string& text : read.goals) {
    const Parsed<MetricGoal> goal = parse_metric_goal(text);
    const SourceLocation where = goal_place(result, text);
    if (!goal.value)
      diagnostics.error(is_given ? SourceLocation{.file = "--goal"} : where, "", goal.message,
                        goal.hint);
    else if (std::ranges::find(read.metrics, goal.value->metric.text) == read.metrics.end())
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

template <class T>
Show study(T record, StudyDocument (*document)(const T&, const std::string& path)) {
  return [record = std::move(record), document](PageData& data, const std::string& path) {
    data.bodies.push_back(page_body_of(document(record, path)));
  };
}

/// Reads a result of a known kind.
Show read_result(Kind kind, const ConfigNode& tree, const ResultText& result, bool goals_given,
                 Diagnostics& faults) {
  switch (kind) {
    case Kind::kRun:
      return
          [record = read_record<RunRecord>(tree, faults)](PageData& data, const std::string& path) {
            data.runs.push_back(page_run(record, path));
            data.bodies.push_back(body_of(data.runs.back()));
          };
    case Kind::kPlan:
      return study(read_record<PlanRecord>(tree, faults), plan_document);
    case Kind::kTuning:
      return study(read_record<TuneRecord>(tree, faults), tune_document);
    case Kind::kComparison:
      return study(read_record<ComparisonRecord>(tree, faults), comparison_document);
    case Kind::kValidation:
      return study(
          read_record<ValidationRecord>(tree, faults),
          +[](const ValidationRecord& record, const std::string& path) {
            return validation_document(record, true, path);
          });
    case Kind::kSweep: {
      SweepRecord record = read_record<SweepRecord>(tree, faults);
      check_sweep_goals(record, goals_given, result, faults);
      return study(
          std::move(record), +[](const SweepRecord& sweep, const std::string& path) {
            return sweep_document(sweep, "", path);
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
      const Kind kind = result_kind(*part);
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
