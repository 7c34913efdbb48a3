#include "tools/render/html_page.h"

#include <cmath>

#include "base/check.h"
#include "base/scalar_parse.h"
#include "tools/render/numbers.h"
#include "tools/render/render.h"
#include "tools/render/svg_chart.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

std::string title_of(const PageData& data) {
  std::string title;
  for (const PageRun& run : data.runs) title += (title.empty() ? "" : ", ") + run.scenario;
  for (const PageSweep& sweep : data.sweeps) title += (title.empty() ? "" : ", ") + sweep.name;
  for (const PagePlan& plan : data.plans) title += (title.empty() ? "" : ", ") + plan.name;
  return title.empty() ? "routesim" : title + " · routesim";
}

}  // namespace

std::string render_page(const PageData& data) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
      "<meta name=\"generator\" content=\"routesim\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>";
  out += html(title_of(data));
  out += "</title>\n<style>";
  out += page_style();
  out += "</style>\n</head>\n<body>\n<main>\n";
  for (const PageRun& run : data.runs) out += run_sections(run);
  for (const PageSweep& sweep : data.sweeps) out += sweep_sections(sweep);
  for (const PagePlan& plan : data.plans) out += plan_sections(plan);
  out +=
      "<footer>Made by routesim. This page is also a result file: <code>routesim report</code> "
      "reads it, and the exact numbers behind every table and chart stand in it as JSON. Times are "
      "simulated.</footer>\n</main>\n<div id=\"tip\" role=\"status\"></div>\n";
  out += data.block;
  out += "\n<script>";
  out += page_script();
  out += "</script>\n</body>\n</html>\n";
  return out;
}

std::string render_html(const Report& report) {
  Diagnostics diagnostics;
  const PageData data =
      read_results({{.file = "result", .text = render_json(report)}}, diagnostics);
  ROUTESIM_CHECK(!diagnostics.has_errors(), "the JSON of a run does not read back");
  return render_page(data);
}

std::string number_cell(const Datum* datum, Unit unit) {
  if (datum == nullptr) return "<td>–</td>";
  std::string out = "<td data-path=\"" + html(datum->path) + "\" data-value=\"" +
                    number_text(datum->raw.value_or(datum->value)) + "\">" +
                    human(datum->value, unit, false);
  if (datum->low && datum->high && *datum->low < *datum->high)
    out += " <small>" + human(*datum->low, unit, false) + " … " + human(*datum->high, unit, false) +
           "</small>";
  return out + "</td>";
}

std::string change_text(double from, double to, Unit unit) {
  if (unit == Unit::kRatio) return signed_percent(100 * (to - from)) + " points";
  return from == 0 ? "–" : signed_percent(100 * (to - from) / from) + " %";
}

std::string change_cell(const Datum* from, const Datum* to, const Shown& shown) {
  if (from == nullptr || to == nullptr) return "<td>–</td>";
  const double scale = shown.unit == Unit::kRatio ? 1 : std::abs(from->value);
  const double change = to->value - from->value;
  const std::string text = change_text(from->value, to->value, shown.unit);
  if (std::abs(change) < 0.01 * scale || scale == 0) return "<td>" + text + "</td>";
  const bool good = (change < 0) == shown.less_is_better;
  return std::string("<td class=\"") + (good ? "good" : "bad") + "\">" + text + "</td>";
}

std::string series_heading(std::size_t colour, const std::string& name, std::size_t columns) {
  std::string out = "<th";
  if (columns > 1) out += " colspan=\"" + std::to_string(columns) + "\"";
  return out + ">" + svg_key(colour, false, true) + html(name) + "</th>";
}

}  // namespace routesim::tools
