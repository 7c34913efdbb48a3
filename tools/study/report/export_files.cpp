
#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.h"
#include "base/scalar_parse.h"
#include "tools/render/chart/svg.h"
#include "tools/render/render.h"
#include "tools/results/json_writer.h"
#include "tools/results/text_table.h"
#include "tools/study/report/read_results.h"
#include "tools/study/run/run_charts.h"

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
std::string placed(std::string svg, double x, double y, double width, double height) {
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
    out += placed(svg_key(s.colour, s.measured, s.markers), x, 62, kKeyWidth, kKeyHeight) +
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
         placed(drawing.svg, kMargin, top, kScale * drawing.width, kScale * drawing.height) +
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

}  // namespace routesim::tools
