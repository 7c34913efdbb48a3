// Time series as data: columns in JSON, rows in CSV.
#include <limits>

#include "base/scalar_parse.h"
#include "tools/render/render.h"
#include "tools/results/report.h"

namespace routesim::tools {

namespace {

using sim::EndpointPoint;
using sim::EndpointSeries;
using sim::TimeSeries;

/// A column on one line.
template <class F>
void write_column(JsonWriter& json, std::string_view key, std::size_t points, const F& at) {
  JsonWriter line(0);
  line.begin_array();
  for (std::size_t i = 0; i < points; ++i) line.value(at(i));
  json.key(key).raw(line.end_array().str());
}

/// A rate that does not exist at some points.
template <class F>
void write_rate(JsonWriter& json, std::string_view key, std::size_t points, const F& at) {
  write_column(json, key, points, [&](std::size_t i) {
    const double rate = at(i);
    return rate >= 0 ? rate : std::numeric_limits<double>::quiet_NaN();  // becomes null
  });
}

void write_cluster(JsonWriter& json, const TimeSeries& series) {
  const std::size_t n = series.size();
  const auto& c = series.cluster;
  json.key("cluster").begin_object();
  write_column(json, "sent", n, [&](std::size_t i) { return c[i].sent; });
  write_column(json, "done", n, [&](std::size_t i) { return c[i].done; });
  write_column(json, "failed", n, [&](std::size_t i) { return c[i].failed; });
  write_column(json, "outstanding", n, [&](std::size_t i) { return c[i].outstanding; });
  write_column(json, "unrouted", n, [&](std::size_t i) { return c[i].unrouted; });
  json.end_object();
}

void write_endpoint(JsonWriter& json, const EndpointSeries& e) {
  const std::size_t n = e.points.size();
  json.begin_object().member("name", e.name).member("pool", e.pool);
  write_column(json, "waiting", n, [&](std::size_t i) { return e.points[i].waiting; });
  write_column(json, "running", n, [&](std::size_t i) { return e.points[i].running; });
  write_column(json, "in_flight", n, [&](std::size_t i) { return e.points[i].in_flight; });
  write_column(json, "kv_cache_usage", n, [&](std::size_t i) { return e.kv_cache_usage(i); });
  write_rate(json, "prefix_hit_rate", n, [&](std::size_t i) { return e.prefix_hit_rate(i); });
  write_rate(json, "step_time_s", n, [&](std::size_t i) { return e.step_time_s(i); });
  json.end_object();
}

std::string rate_text(double rate) { return rate >= 0 ? number_text(rate) : std::string(); }

}  // namespace

void write_series(JsonWriter& json, const TimeSeries& series) {
  json.begin_object().member("interval_s", series.interval.to_seconds());
  write_column(json, "time_s", series.size(), [&](std::size_t i) { return series.time_s(i); });
  write_cluster(json, series);
  json.key("endpoints").begin_array();
  for (const EndpointSeries& endpoint : series.endpoints) write_endpoint(json, endpoint);
  json.end_array().end_object();
}

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
