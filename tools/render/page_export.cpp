#include "tools/render/page_export.h"

#include <cmath>

#include "base/scalar_parse.h"
#include "tools/render/render.h"
#include "tools/render/run_charts.h"
#include "tools/render/svg_file.h"
#include "tools/results/json_writer.h"

namespace routesim::tools {

namespace {

/// A value of a table: text, or a number written as the shortest text that reads back.
struct Cell {
  std::string text;
  bool number = false;
};

Cell cell(const std::string& text) { return {.text = text, .number = false}; }
Cell cell(double value) {
  if (!std::isfinite(value)) return {};
  return {.text = number_text(value), .number = true};
}
Cell cell(const std::optional<double>& value) { return value ? cell(*value) : Cell{}; }

/// One table, written as CSV and as JSON lines.
class Table {
 public:
  Table(std::string name, std::vector<std::string> columns)
      : name_(std::move(name)), columns_(std::move(columns)) {
    for (std::size_t i = 0; i < columns_.size(); ++i)
      csv_.append(i > 0 ? "," : "").append(csv_field(columns_[i]));
    csv_ += "\n";
  }

  void add(const std::vector<Cell>& row) {
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

  void put(std::vector<ExportFile>& files) const {
    if (lines_.empty()) return;
    files.push_back({.name = name_ + ".csv", .content = csv_});
    files.push_back({.name = name_ + ".jsonl", .content = lines_});
  }

 private:
  std::string name_;
  std::vector<std::string> columns_;
  std::string csv_, lines_;
};

void add_stage(Table& table, const PageRun& run, const VariantView& variant, const StageView& stage,
               const std::string& name) {
  for (const auto& [key, datum] : stage.values) {
    const auto measured = stage.measured.find(key);
    table.add({cell(run.scenario), cell(variant.name), cell(name), cell(stage.rate),
               cell(stage.concurrency), cell(stage.reported ? "yes" : "no"), cell(key),
               cell(datum.value), cell(datum.low), cell(datum.high),
               measured == stage.measured.end() ? Cell{} : cell(measured->second)});
  }
}

void add_quantiles(Table& table, const PageRun& run, const VariantView& variant,
                   const StageView& stage, const std::string& name) {
  for (const auto& [metric, values] : stage.quantiles)
    for (std::size_t i = 0; i < std::min(values.size(), run.quantile_levels.size()); ++i)
      table.add({cell(run.scenario), cell(variant.name), cell(name), cell(metric),
                 cell(run.quantile_levels[i]), cell(values[i])});
}

void add_series(Table& table, const PageRun& run, const VariantView& variant) {
  for (const ServerSeries& server : variant.series)
    for (const auto& [key, values] : server.values)
      for (std::size_t i = 0; i < values.size(); ++i)
        table.add({cell(run.scenario), cell(variant.name), cell(server.name),
                   cell(variant.series_time_s[i]), cell(key), cell(values[i])});
}

void export_runs(const PageData& data, std::vector<ExportFile>& files) {
  const std::vector<std::string> stage_columns = {"scenario",    "variant",  "stage",   "rate",
                                                  "concurrency", "reported", "metric",  "value",
                                                  "low",         "high",     "measured"};
  Table summary("summary", stage_columns);
  Table stages("stages", stage_columns);
  Table quantiles("quantiles", {"scenario", "variant", "stage", "metric", "percent", "value"});
  Table servers("servers", {"scenario", "variant", "server", "metric", "value"});
  Table series("series", {"scenario", "variant", "server", "time_s", "metric", "value"});
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
  for (const Table* table : {&summary, &stages, &quantiles, &servers, &series}) table->put(files);
}

void export_sweeps(const PageData& data, std::vector<ExportFile>& files) {
  for (std::size_t i = 0; i < data.sweeps.size(); ++i) {
    const PageSweep& sweep = data.sweeps[i];
    std::vector<std::string> columns = {"sweep", "variant"};
    columns.insert(columns.end(), sweep.axes.begin(), sweep.axes.end());
    columns.insert(columns.end(), {"metric", "value", "low", "high"});
    Table table(data.sweeps.size() == 1 ? "sweep" : "sweep-" + std::to_string(i + 1), columns);
    for (const PageSweep::Row& row : sweep.rows)
      for (const auto& [metric, datum] : row.values) {
        std::vector<Cell> cells = {cell(sweep.name), cell(row.variant)};
        for (const std::string& value : row.cell) cells.push_back(cell(value));
        cells.insert(cells.end(),
                     {cell(metric), cell(datum.value), cell(datum.low), cell(datum.high)});
        table.add(cells);
      }
    table.put(files);
  }
}

void export_plans(const PageData& data, std::vector<ExportFile>& files) {
  Table table("plan", {"plan", "hardware", "policy", "fleet", "metric", "value"});
  for (const PagePlan& plan : data.plans) {
    for (const PagePlan::Choice& choice : plan.plans)
      for (const auto& [metric, datum] : choice.values)
        table.add({cell(plan.name), cell(choice.hardware), cell(choice.policy), cell(choice.fleet),
                   cell(metric), cell(datum.value)});
    for (const PagePlan::Family& family : plan.families)
      if (family.price)
        table.add({cell(plan.name), cell(family.hardware), cell(family.policy), cell(family.fleet),
                   cell("cheapest_price_per_hour"), cell(family.price->value)});
  }
  table.put(files);
}

}  // namespace

std::vector<ExportFile> export_tables(const PageData& data) {
  std::vector<ExportFile> files;
  export_runs(data, files);
  export_sweeps(data, files);
  export_plans(data, files);
  return files;
}

std::vector<ExportFile> export_charts(const PageData& data) {
  std::vector<ExportFile> files;
  for (std::size_t i = 0; i < data.runs.size(); ++i) {
    const std::string number = data.runs.size() > 1 ? std::to_string(i + 1) + "-" : "";
    for (const NamedChart& curve : load_curves(data.runs[i]))
      files.push_back({.name = number + curve.name + ".svg", .content = svg_file(curve.chart)});
  }
  return files;
}

}  // namespace routesim::tools
