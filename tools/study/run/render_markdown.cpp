#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tools/render/render.h"
#include "tools/results/difference.h"
#include "tools/results/report.h"
#include "tools/study/run/render_run.h"

namespace routesim::tools {

namespace {

constexpr std::array<std::string_view, 9> kMarkdownMetrics = {
    "output_tokens_per_s",   "requests_per_s",  "ttft_ms.mean",
    "ttft_ms.p90",           "ttft_ms.p99",     "itl_ms.mean",
    "prefix_cache_hit_rate", "failed_requests", "tier_hit_rate"};

/// The numbers of the first seed, where there are no others.
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

std::string numbers_table(const ResultSet& set) {
  if (set.seeds.empty()) return {};
  std::string head = "| whole run |";
  std::string line = "|---|";
  for (std::size_t v = 0; v < set.variants.size(); ++v) {
    head += fmt::format(" {} |", markdown_cell(set.variants[v].name));
    line += "--:|";
    if (v == 0) continue;
    head += " change % | verdict |";
    line += "--:|---|";
  }
  std::string out = head + "\n" + line + "\n";
  for (const MetricName& m : set.metrics) {
    if (std::find(kMarkdownMetrics.begin(), kMarkdownMetrics.end(), m.text) ==
        kMarkdownMetrics.end())
      continue;
    out += fmt::format("| `{}` |", m.text);
    std::optional<std::vector<double>> base;
    for (std::size_t v = 0; v < set.variants.size(); ++v) {
      const auto values = set.values(set.variants[v].stages.back(), m);
      out += fmt::format(" {} |", values ? estimate_text(sim::estimate(*values)) : "-");
      if (v == 0) base = values;
      if (v == 0) continue;
      if (!base || !values) {
        out += " - | - |";
        continue;
      }
      const Difference d = difference_of(*base, *values, m, set.variants[v].unpaired.empty());
      const bool pooled = !pooled_overload(set.variants[0], "").empty() ||
                          !pooled_overload(set.variants[v], "").empty();
      out += fmt::format(" {} | {} |", percent_text(d),
                         pooled ? std::string(kNotJudged) : verdict_text(d, m));
    }
    out += "\n";
  }
  return out;
}

}  // namespace

std::string render_markdown(const Report& report) {
  const ResultSet set = result_set_of(report);
  std::string out = "### " + markdown_cell(report.scenario) + "\n\n";
  if (!report.question.empty()) out += markdown_cell(report.question) + "\n\n";
  const std::string expected = judgements_markdown(report.expectations);
  if (report.interrupted) out += "**Interrupted: these results are partial.**\n\n";
  if (!expected.empty()) out += expected + "\n";
  out += numbers_table(set) + "\n";
  for (const VariantValues& v : set.variants) {
    const std::string pooled = pooled_overload(v, "");
    if (!pooled.empty())
      out += "Not judged: " + markdown_cell(pooled) + ".\n\n";
    else if (v.stages.back().overloaded)
      out += "Overloaded: " + markdown_cell(v.name) +
             "; more is asked than answered, so latencies depend on its length.\n\n";
  }
  for (const VariantReport& variant : report.variants)
    if (const std::string band = capacity_text(variant); !band.empty())
      out += markdown_cell(variant.name) + ": " + markdown_cell(band) + ".\n\n";
  for (const std::string& line : trust_lines(report)) out += markdown_cell(line) + ".\n\n";
  out += set.seeds.size() > 1
             ? std::to_string(set.seeds.size()) +
                   " replications; mean ± half width of the 95 % interval, " +
                   (set.all_paired() ? "paired differences."
                                     : "differences of independent runs where loads differ.")
             : "One run (seed " + std::to_string(report.seed) +
                   "), no interval: add `--replications 5` for a verdict.";
  return out + " routesim " + report.version + "\n";
}

}  // namespace routesim::tools
