#include "tools/render/html_page.h"

#include "base/check.h"
#include "tools/render/numbers.h"
#include "tools/render/render.h"

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

}  // namespace routesim::tools
