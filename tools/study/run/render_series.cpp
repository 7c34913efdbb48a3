// Time series as rows of CSV.
#include "base/scalar_parse.h"
#include "tools/render/render.h"
#include "tools/results/report.h"
#include "tools/study/run/render_run.h"

namespace routesim::tools {

namespace {

using sim::EndpointPoint;
using sim::EndpointSeries;

std::string rate_text(double rate) { return rate >= 0 ? number_text(rate) : std::string(); }

}  // namespace

std::string render_series_csv(const Report& report) {
  std::string out =
      "variant,endpoint,pool,time_s,waiting,running,in_flight,kv_cache_usage,prefix_hit_rate,"
      "step_time_s\n";
  for (const VariantReport& variant : report.variants) {
    if (!variant.series) continue;
    for (const EndpointSeries& e : variant.series->endpoints) {
      const std::string head =
          csv_field(variant.name) + "," + csv_field(e.name) + "," + csv_field(e.pool) + ",";
      for (std::size_t i = 0; i < e.points.size(); ++i) {
        const EndpointPoint& p = e.points[i];
        out += head + number_text(variant.series->time_s(i)) + "," + std::to_string(p.waiting) +
               "," + std::to_string(p.running) + "," + std::to_string(p.in_flight) + "," +
               number_text(e.kv_cache_usage(i)) + "," + rate_text(e.prefix_hit_rate(i)) + "," +
               rate_text(e.step_time_s(i)) + "\n";
      }
    }
  }
  if (report.interrupted) out += kPartialLine;
  return out;
}

}  // namespace routesim::tools
