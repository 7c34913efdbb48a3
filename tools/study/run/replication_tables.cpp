#include "tools/study/run/replication_tables.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/text.h"
#include "tools/results/difference.h"
#include "tools/results/metric_name.h"
#include "tools/results/result_record.h"
#include "tools/results/text_table.h"

namespace routesim::tools {

namespace {

/// Shown stage by stage.
constexpr std::array<std::string_view, 5> kLadderMetrics = {
    "output_tokens_per_s", "ttft_ms.mean", "ttft_ms.p90", "ttft_ms.p99", "itl_ms.mean"};
/// Shown of the whole run.
constexpr std::array<std::string_view, 16> kWhole = {"output_tokens_per_s",
                                                     "total_tokens_per_s",
                                                     "requests_per_s",
                                                     "ttft_ms.mean",
                                                     "ttft_ms.median",
                                                     "ttft_ms.p90",
                                                     "ttft_ms.p99",
                                                     "itl_ms.mean",
                                                     "itl_ms.p99",
                                                     "tpot_ms.mean",
                                                     "request_latency_ms.mean",
                                                     "request_latency_ms.p99",
                                                     "prefix_cache_hit_rate",
                                                     "failed_requests",
                                                     "goodput",
                                                     "preemptions"};

/// Shown in pull requests.
constexpr std::array<std::string_view, 9> kMarkdownMetrics = {
    "ttft_ms.mean",          "ttft_ms.p90",         "ttft_ms.p99",
    "itl_ms.mean",           "output_tokens_per_s", "requests_per_s",
    "prefix_cache_hit_rate", "failed_requests",     "tier_hit_rate"};

std::string rate_text(const StageValues& stage) {
  if (stage.concurrency > 0) return "c=" + std::to_string(stage.concurrency);
  return stage.rate > 0 ? number_text(stage.rate) : "-";
}

/// The metric of the set that is called so; null when it has none: goodput, where nothing says what
/// is good.
const MetricName* find_metric_of(const ResultSet& set, std::string_view text) {
  const auto found = std::ranges::find(set.metrics, text, &MetricName::text);
  return found == set.metrics.end() ? nullptr : &*found;
}

/// Every variant, then every later one beside the first. A brief table has each change behind its
/// variant.
void add_columns(const ResultSet& set, bool brief, Table& table) {
  const auto changes = {Table::Column{"change %"}, {"verdict", true}};
  for (const VariantValues& variant : set.variants) {
    table.columns.push_back({printable(variant.name)});
    if (brief && &variant != &set.variants.front())
      table.columns.insert(table.columns.end(), changes);
  }
  for (std::size_t v = 1; v < set.variants.size() && !brief; ++v) {
    table.groups.push_back(
        {table.columns.size(), 3,
         printable(set.variants[v].name) + " - " + printable(set.variants[0].name)});
    table.columns.push_back({"difference"});
    table.columns.insert(table.columns.end(), changes);
  }
}

/// The cells of one metric of one stage, or of the whole run, below these columns.
void add_cells(const ResultSet& set, const MetricName& metric, std::string_view stage, bool brief,
               std::vector<Cell>& row) {
  std::vector<std::optional<std::vector<double>>> values;
  const auto add_change = [&](std::size_t v) {
    if (!values[0] || !values[v]) {
      row.insert(row.end(), brief ? 2 : 3, Cell{.text = "-"});
      return;
    }
    const Difference d =
        difference_of(*values[0], *values[v], metric, set.variants[v].unpaired.empty());
    if (!brief) row.push_back({.text = estimate_text(d.difference)});
    row.push_back({.text = percent_text(d)});
    row.push_back({.text = replication_verdict(set, v, stage, d, metric)});
  };
  for (std::size_t v = 0; v < set.variants.size(); ++v) {
    const StageValues* const found = find_stage(set.variants[v], stage);
    values.push_back(found != nullptr ? set.values(*found, metric) : std::nullopt);
    row.push_back({.text = values[v] ? (found->overloaded && !stage.empty() ? "! " : "") +
                                           estimate_text(sim::estimate(*values[v]))
                                     : "-"});
    if (brief && v > 0) add_change(v);
  }
  for (std::size_t v = 1; v < values.size() && !brief; ++v) add_change(v);
}

Table ladder_table(const ResultSet& set, std::string_view text) {
  Table table{.title = std::string(text), .columns = {{"stage", true}, {"rate"}}};
  add_columns(set, false, table);
  const MetricName* const metric = find_metric_of(set, text);
  for (const StageValues& stage : set.variants.front().stages) {
    if (stage.stage.empty() || !stage.reported || metric == nullptr) continue;
    const bool one_rate = std::ranges::all_of(set.variants, [&](const VariantValues& v) {
      const StageValues* const other = find_stage(v, stage.stage);
      return other == nullptr || other->rate == stage.rate;
    });
    std::vector<Cell>& row = table.rows.emplace_back();
    row = {{.text = printable(stage.stage)}, {.text = one_rate ? rate_text(stage) : "-"}};
    add_cells(set, *metric, stage.stage, false, row);
  }
  return table;
}

Table whole_run_table(const ResultSet& set, std::span<const std::string_view> metrics, bool brief) {
  Table table{.columns = {{"whole run", true}}};
  add_columns(set, brief, table);
  for (const std::string_view text : metrics)
    if (const MetricName* const metric = find_metric_of(set, text)) {
      std::vector<Cell>& row = table.rows.emplace_back();
      row.push_back({.text = metric->text, .code = brief});
      add_cells(set, *metric, "", brief, row);
    }
  return table;
}

/// Which variants are overloaded, and what is not judged for that.
std::vector<std::string> overload_lines(const ResultSet& set) {
  std::vector<std::string> lines;
  for (const VariantValues& v : set.variants) {
    std::string stages;
    for (const StageValues& s : v.stages)
      if (!s.stage.empty() && s.reported && s.overloaded)
        stages += (stages.empty() ? "" : ", ") + printable(s.stage);
    if (stages.empty()) continue;
    lines.push_back(
        printable(v.name) + " is overloaded (!) in " + stages +
        ": more is asked than answered, so latencies depend on how long the stage lasts" +
        (pooled_overload(v, "").empty()
             ? ""
             : "; the whole run, which pools these stages, is not judged"));
  }
  return lines;
}

/// How the differences to the first variant were taken.
std::vector<std::string> pairing_lines(const ResultSet& set) {
  if (set.variants.size() < 2) return {};
  if (set.all_paired())
    return {"differences are paired: every variant faces the same load with the same seed"};
  std::vector<std::string> lines;
  for (const VariantValues& v : set.variants)
    if (!v.unpaired.empty())
      lines.push_back(printable(v.name) + " is not paired with " +
                      printable(set.variants.front().name) + ": " + v.unpaired +
                      ", so the difference is one of independent runs");
  return lines;
}

}  // namespace

void add_replications(const ResultSet& set, std::vector<Block>& blocks) {
  const auto say = [&](std::string text) { blocks.push_back({Paragraph{std::move(text)}}); };
  say("");
  say(std::to_string(set.seeds.size()) +
      " replications; mean ± half width of the 95 % interval (Student-t over runs)");
  for (std::string& line : pairing_lines(set)) say(std::move(line));
  for (std::string& line : overload_lines(set)) say(std::move(line));
  if (set.until)
    say(set.until->rule + ": " +
        (set.until->reached ? "reached" : "not reached, " + set.until->reason));
  const auto stages = std::ranges::count_if(
      set.variants.front().stages,
      [](const StageValues& stage) { return !stage.stage.empty() && stage.reported; });
  if (stages > 1)
    for (const std::string_view text : kLadderMetrics) blocks.push_back({ladder_table(set, text)});
  say("");
  blocks.push_back({whole_run_table(set, kWhole, false)});
}

Table markdown_numbers(const ResultSet& set) {
  return whole_run_table(set, kMarkdownMetrics, true);
}

ResultSet result_set_of(const Report& report) {
  if (report.replications) return *report.replications;
  std::vector<std::string> names;
  for (const VariantReport& variant : report.variants) names.push_back(variant.name);
  std::vector<MetricName> metrics = standard_metrics();
  if (std::any_of(report.variants.begin(), report.variants.end(),
                  [](const VariantReport& v) { return v.result.summary.tiers.has_value(); }))
    metrics = metrics_with(std::array{*parse_metric_name("tier_hit_rate").value});
  ResultSetBuilder builder(names, metrics);
  for (std::size_t v = 0; v < names.size(); ++v) builder.add(v, 0, report.variants[v].result);
  return builder.take(builder.complete());
}

}  // namespace routesim::tools
