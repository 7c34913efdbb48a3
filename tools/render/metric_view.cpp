#include "tools/render/metric_view.h"

#include "tools/results/metric_name.h"
#include "tools/results/metric_table.h"

namespace routesim::tools {

namespace {

Unit unit_of(const MetricRow& row) {
  if (row.is_time()) return Unit::kSeconds;
  if (row.is_share()) return Unit::kRatio;
  if (row.quantity == MetricKind::kTokenRate) return Unit::kTokensPerSecond;
  return row.quantity == MetricKind::kRequestRate ? Unit::kRequestsPerSecond : Unit::kCount;
}

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
  const MetricRow& row = *find_metric(m.metric);
  view.title = with_statistic(std::string(row.title), statistic);
  view.unit = row.is_share() && m.unit == "%" ? Unit::kPercent : unit_of(row);
  if (row.is_time()) view.scale = m.unit == "ms" ? 1e-3 : m.unit == "us" ? 1e-6 : 1;
  return view;
}

Measure measure(std::string_view key) {
  const std::size_t dot = key.find('.');
  Measure out{.key = std::string(key), .title = std::string(key)};
  const MetricRow* const row = find_metric(key.substr(0, dot));
  if (row == nullptr) return out;
  out.title = row->words.empty() ? row->title : row->words;
  if (dot != key.npos) out.title.append(", ").append(key.substr(dot + 1));
  out.unit = unit_of(*row);
  out.less_is_better = row->better == Better::kSmaller;
  out.has_direction = row->better != Better::kNeither;
  return out;
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
