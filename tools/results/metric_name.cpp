#include "tools/results/metric_name.h"

#include <fmt/format.h>

#include <array>

#include "base/check.h"
#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/results/metrics.h"

namespace routesim::tools {

namespace {

using sim::Direction;

struct Unit {
  std::string_view suffix;
  std::string_view unit;  ///< metric_value()'s name.
};
constexpr std::array<Unit, 3> kTimeUnits = {{{"_ms", "ms"}, {"_us", "us"}, {"_s", "s"}}};
constexpr std::array<Unit, 1> kShareUnits = {{{"_percent", "%"}}};

std::span<const Unit> units_of(const MetricRow& row) {
  if (row.is_time()) return kTimeUnits;
  if (row.is_share()) return kShareUnits;
  return {};
}

bool is_called(const MetricRow& row, std::string_view word) {
  if (word.empty() || row.name.empty()) return false;
  return word == row.name || word == row.key || word == row.report_name ||
         std::ranges::find(row.aliases, word) != row.aliases.end();
}

struct Found {
  const MetricRow* kind = nullptr;
  Unit unit{};
};

/// `ttft_ms` is a kind and a unit; a name that is a kind as it stands (`requests_per_s`) goes
/// first.
Found find_kind(std::string_view word) {
  for (const MetricRow& kind : metric_table())
    if (is_called(kind, word)) return {&kind, kind.is_time() ? Unit{"_s", "s"} : Unit{"", ""}};
  for (const MetricRow& kind : metric_table())
    for (const Unit& unit : units_of(kind))
      if (word.ends_with(unit.suffix) &&
          is_called(kind, word.substr(0, word.size() - unit.suffix.size())))
        return {&kind, unit};
  return {};
}

/// The one spelling of a statistic; nothing when it is none.
std::optional<std::string> parse_statistic(std::string_view word) {
  if (word == "avg") return "mean";
  if (word == "mean" || word == "median" || word == "min" || word == "max" || word == "std")
    return std::string(word);
  const std::optional<double> q = percentile_of(word);
  if (!q) return std::nullopt;
  return *q == 50 ? "median" : fmt::format("p{}", number_text(*q));
}

/// Splits `ttft_ms.p99` or vllm's `p99_ttft_ms`.
std::pair<std::string_view, std::string_view> split_name(std::string_view text) {
  const std::size_t dot = text.find('.');
  const std::size_t bar = text.find('_');
  if (bar != std::string_view::npos && parse_statistic(text.substr(0, bar)) &&
      find_kind(text.substr(bar + 1)).kind != nullptr)
    return {text.substr(bar + 1), text.substr(0, bar)};
  if (dot == std::string_view::npos) return {text, {}};
  return {text.substr(0, dot), text.substr(dot + 1)};
}

std::string example(const MetricRow& kind) {
  switch (kind.quantity) {
    case MetricKind::kTime:
      return std::string(kind.name) + "_ms.p99";
    case MetricKind::kTokens:
      return std::string(kind.name) + ".mean";
    case MetricKind::kUsage:
      return std::string(kind.name) + ".max";
    default:
      return std::string(kind.name);
  }
}

/// `ttft_ms.p99` of `ttft_p99` or `p99_ttft`: names that have their parts in another order. Empty
/// for others.
std::string reordered(std::string_view text) {
  std::string rest;
  std::string statistic;
  for (std::size_t begin = 0, end = 0; end != std::string_view::npos; begin = end + 1) {
    end = text.find_first_of("_.", begin);
    const std::string_view part =
        text.substr(begin, end == std::string_view::npos ? end : end - begin);
    if (const auto found = parse_statistic(part); found && statistic.empty())
      statistic = *found;
    else
      rest.append(rest.empty() ? "" : "_").append(part);
  }
  const Found found = find_kind(rest);
  if (statistic.empty() || found.kind == nullptr) return {};
  const bool has_unit = !found.unit.suffix.empty() && rest.ends_with(found.unit.suffix);
  const std::string_view unit = has_unit                                    ? found.unit.suffix
                                : found.kind->quantity == MetricKind::kTime ? "_ms"
                                                                            : "";
  const std::string name = std::string(found.kind->name).append(unit);
  return found.kind->has_many_values() ? name + "." + statistic : name;
}

Parsed<MetricName> unknown_metric(std::string_view text, std::string_view word,
                                  std::string_view written) {
  std::vector<std::string> names;
  std::string list;
  for (const MetricRow& kind : metric_table()) {
    if (kind.name.empty()) continue;
    names.emplace_back(kind.name);
    list.append(list.empty() ? "" : ", ").append(kind.name);
    for (const std::string_view alias : {kind.key, kind.report_name})
      if (!alias.empty() && alias != kind.name) names.emplace_back(alias);
    for (const std::string_view alias : kind.aliases)
      if (!alias.empty()) names.emplace_back(alias);
    for (const Unit& unit : units_of(kind))
      names.push_back(std::string(kind.name).append(unit.suffix));
  }
  std::string close = reordered(text);
  if (close.empty()) {
    close = nearest(std::string(word), names);
    if (!close.empty() && parse_statistic(written)) close.append(".").append(written);
  }
  return {{},
          "is not a metric (got " + printable(text) + ")",
          close.empty() ? "metrics: " + list : "did you mean " + close + "?"};
}

/// The fault of this statistic of this metric; empty when there is none.
std::string statistic_error(const MetricRow& kind, std::string_view written,
                            const std::optional<std::string>& statistic) {
  if (!written.empty() && !statistic)
    return "has an unknown statistic " + printable(written) +
           ", known are mean, median, min, max, std and pNN such as p99 or p99.9";
  if (written.empty() && (kind.has_many_values() || kind.quantity == MetricKind::kUsage))
    return "needs a statistic";
  if (written.empty() || kind.has_many_values()) return {};
  const bool maximum = kind.quantity == MetricKind::kUsage && *statistic == "max";
  if (*statistic == "mean" || maximum) return {};
  return "has one value per stage, so there is no " + *statistic + " of it";
}

}  // namespace

Parsed<MetricName> parse_metric_name(std::string_view text) {
  const auto [word, written] = split_name(text);
  const Found found = find_kind(word);
  if (found.kind == nullptr) return unknown_metric(text, word, written);
  const MetricRow& kind = *found.kind;
  const std::optional<std::string> statistic = parse_statistic(written);
  const bool dangling = text.ends_with('.');
  std::string error = statistic_error(kind, written, statistic);
  if (error.empty() && dangling) error = "ends in a dot";
  if (!error.empty())
    return {{}, error + " (got " + printable(text) + ")", "for example " + example(kind)};

  MetricName name{.text = std::string(kind.name).append(found.unit.suffix),
                  .metric = std::string(kind.key),
                  .statistic = statistic.value_or("mean"),
                  .unit = std::string(found.unit.unit),
                  .direction = kind.better == Better::kLarger ? Direction::kLargerIsBetter
                                                              : Direction::kSmallerIsBetter,
                  .has_direction = kind.better != Better::kNeither && statistic != "std"};
  if (kind.has_many_values() || kind.quantity == MetricKind::kUsage)
    name.text += "." + name.statistic;
  return {std::move(name), {}, {}};
}

std::optional<double> metric_value(const sim::StageResult& stage, const MetricName& name) {
  return metric_value(stage, name.metric, name.statistic, name.unit);
}

MetricName goodput_metric() { return *parse_metric_name("goodput").value; }

bool needs_goals(const MetricName& name) {
  return name.metric == "goodput" || name.metric == "good_request_throughput" ||
         name.metric == "minutes_missed";
}

bool is_of_run(const MetricName& m) {
  return m.metric == "minutes_missed" || m.metric.starts_with("fleet_");
}

std::string owners_of(const MetricName& m) {
  if (m.metric == "fleet_cost") return "only runs whose pools have gpu_price_per_hour have it";
  if (m.metric.starts_with("fleet_"))
    return "only runs with events, an autoscaler or gpu_price_per_hour have it";
  if (m.metric == "minutes_missed")
    return "only runs with goals, and with events, an autoscaler, gpu_price_per_hour or "
           "workload.demand have it";
  return m.metric.starts_with("tier_") ? "only pools with engine.kv_tiers have it" : "";
}

const std::vector<MetricName>& standard_metrics() {
  static const std::vector<MetricName> metrics = [] {
    std::vector<std::string> texts;
    for (const std::string time :
         {"ttft_ms", "tpot_ms", "itl_ms", "request_latency_ms", "ntpot_ms"})
      for (const std::string statistic : {".mean", ".median", ".p90", ".p95", ".p99"})
        texts.push_back(time + statistic);
    for (const char* text : {"output_tokens_per_s", "input_tokens_per_s", "total_tokens_per_s",
                             "requests_per_s", "requests_sent_per_s", "prefix_cache_hit_rate",
                             "failed_requests", "failure_rate", "preemptions"})
      texts.emplace_back(text);
    std::vector<MetricName> names;
    for (const std::string& text : texts) {
      Parsed<MetricName> parsed = parse_metric_name(text);
      ROUTESIM_CHECK(parsed.value.has_value(), text + " " + parsed.message);
      names.push_back(std::move(*parsed.value));
    }
    return names;
  }();
  return metrics;
}

Parsed<MetricGoal> parse_metric_goal(std::string_view text) {
  const std::string hint = "for example ttft_ms.p99 < 500 or output_tokens_per_s > 8000";
  const std::size_t sign = text.find_first_of("<>");
  if (sign == std::string_view::npos)
    return {{}, "must be METRIC < NUMBER or METRIC > NUMBER (got " + printable(text) + ")", hint};
  const bool or_equal = sign + 1 < text.size() && text[sign + 1] == '=';
  const Parsed<double> bound = parse_real(trimmed(text.substr(sign + (or_equal ? 2 : 1))), {});
  const Parsed<MetricName> metric = parse_metric_name(trimmed(text.substr(0, sign)));
  if (!bound.value) return {{}, "the bound " + bound.message, hint};
  if (!metric.value) return {{}, metric.message, metric.hint.empty() ? hint : metric.hint};
  MetricGoal goal{.metric = *metric.value, .upper = text[sign] == '<', .bound = *bound.value};
  goal.text = goal.metric.text + (goal.upper ? " < " : " > ") + number_text(goal.bound);
  return {std::move(goal), {}, {}};
}

}  // namespace routesim::tools
