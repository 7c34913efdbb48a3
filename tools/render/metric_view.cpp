#include "tools/render/metric_view.h"

#include <algorithm>
#include <array>

#include "tools/results/metric_name.h"

namespace routesim::tools {

namespace {

struct Title {
  std::string_view metric, title;
  Unit unit;
};
constexpr std::array<Title, 17> kTitles = {
    {{"ttft", "TTFT", Unit::kSeconds},
     {"tpot", "TPOT", Unit::kSeconds},
     {"itl", "ITL", Unit::kSeconds},
     {"ntpot", "latency per output token", Unit::kSeconds},
     {"request_latency", "request latency", Unit::kSeconds},
     {"schedule_delay", "schedule delay", Unit::kSeconds},
     {"benchmark_duration", "benchmark duration", Unit::kSeconds},
     {"output_throughput", "output tokens/s", Unit::kTokensPerSecond},
     {"input_throughput", "input tokens/s", Unit::kTokensPerSecond},
     {"total_throughput", "total tokens/s", Unit::kTokensPerSecond},
     {"request_throughput", "requests/s", Unit::kRequestsPerSecond},
     {"requests_per_sec_sent", "requests/s sent", Unit::kRequestsPerSecond},
     {"good_request_throughput", "good requests/s", Unit::kRequestsPerSecond},
     {"prefix_cache_hit_rate", "prefix cache hits", Unit::kRatio},
     {"kv_cache_usage", "KV cache in use", Unit::kRatio},
     {"failure_rate", "failed requests", Unit::kRatio},
     {"goodput", "goodput", Unit::kRatio}}};

std::string with_statistic(std::string title, const std::string& statistic) {
  if (statistic.empty()) return title;
  if (statistic == "mean" || statistic == "median") return statistic + " " + title;
  return title + " " + statistic;
}

}  // namespace

MetricView metric_view(std::string_view name) {
  MetricView view{.title = std::string(name)};
  const Parsed<MetricName> parsed = parse_metric_name(name);
  if (!parsed.value) return view;
  const MetricName& m = *parsed.value;
  const std::string statistic = name.find('.') == std::string_view::npos ? "" : m.statistic;
  view.has_direction = m.has_direction;
  view.less_is_better = m.direction == sim::Direction::kSmallerIsBetter;
  for (const Title& t : kTitles) {
    if (t.metric != m.metric) continue;
    view.title = with_statistic(std::string(t.title), statistic);
    view.unit = t.unit == Unit::kRatio && m.unit == "%" ? Unit::kPercent : t.unit;
    if (view.unit == Unit::kSeconds) view.scale = m.unit == "ms" ? 1e-3 : m.unit == "us" ? 1e-6 : 1;
    return view;
  }
  view.title = m.metric;
  std::replace(view.title.begin(), view.title.end(), '_', ' ');
  view.title = with_statistic(view.title, statistic);
  view.unit = Unit::kCount;
  return view;
}

Datum in_base_unit(Datum datum, const MetricView& view) {
  if (view.scale == 1) return datum;
  datum.raw = datum.value;
  datum.value *= view.scale;
  if (datum.low) *datum.low *= view.scale;
  if (datum.high) *datum.high *= view.scale;
  return datum;
}

}  // namespace routesim::tools
