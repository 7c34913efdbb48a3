#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "tools/render/render.h"
#include "tools/results/difference.h"
#include "tools/results/report.h"
#include "tools/results/result_record.h"
#include "tools/results/text_table.h"
#include "tools/study/run/render_run.h"

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

const MetricName& metric_called(const ResultSet& set, std::string_view text) {
  for (const MetricName& m : set.metrics)
    if (m.text == text) return m;
  static const MetricName none;
  return none;
}

std::string rate_text(const StageValues& stage) {
  if (stage.concurrency > 0) return "c=" + std::to_string(stage.concurrency);
  return stage.rate > 0 ? number_text(stage.rate) : "-";
}

/// Cells of one metric of one stage: every variant, then every later one beside the first.
class RowMaker {
 public:
  explicit RowMaker(const ResultSet& set) : set_(set) {}

  void add_head(TextTable& table, std::vector<std::string> head) const {
    for (const VariantValues& variant : set_.variants) head.push_back(printable(variant.name));
    for (std::size_t v = 1; v < set_.variants.size(); ++v) {
      table.add_heading(
          head.size(), 3,
          printable(set_.variants[v].name) + " - " + printable(set_.variants[0].name));
      head.insert(head.end(), {"difference", "change %", "verdict"});
    }
    table.add_row(std::move(head));
  }

  void add_cells(std::vector<std::string>& row, const MetricName& metric, std::string_view stage) {
    std::vector<std::optional<std::vector<double>>> values;
    for (const VariantValues& variant : set_.variants) {
      const StageValues* const found = find_stage(variant, stage);
      values.push_back(found != nullptr ? set_.values(*found, metric) : std::nullopt);
      row.push_back(values.back() ? (found->overloaded && !stage.empty() ? "! " : "") +
                                        estimate_text(sim::estimate(*values.back()))
                                  : "-");
    }
    for (std::size_t v = 1; v < values.size(); ++v) {
      if (!values[0] || !values[v]) {
        row.insert(row.end(), {"-", "-", "-"});
        continue;
      }
      const Difference d =
          difference_of(*values[0], *values[v], metric, set_.variants[v].unpaired.empty());
      row.push_back(estimate_text(d.difference));
      row.push_back(percent_text(d));
      row.push_back(replication_verdict(set_, v, stage, d, metric));
    }
  }

 private:
  const ResultSet& set_;
};

std::string ladder_table(const ResultSet& set, std::string_view text) {
  TextTable table(1);
  RowMaker maker(set);
  maker.add_head(table, {"stage", "rate"});
  const MetricName& metric = metric_called(set, text);
  for (const StageValues& stage : set.variants.front().stages) {
    if (stage.stage.empty() || !stage.reported) continue;
    const bool one_rate =
        std::all_of(set.variants.begin(), set.variants.end(), [&](const VariantValues& v) {
          const StageValues* const other = find_stage(v, stage.stage);
          return other == nullptr || other->rate == stage.rate;
        });
    std::vector<std::string> row = {printable(stage.stage), one_rate ? rate_text(stage) : "-"};
    maker.add_cells(row, metric, stage.stage);
    table.add_row(std::move(row));
  }
  return std::string(text) + "\n" + table.str();
}

std::size_t stages_of(const ResultSet& set) {
  std::size_t n = 0;
  for (const StageValues& stage : set.variants.front().stages)
    if (!stage.stage.empty() && stage.reported) ++n;
  return n;
}

std::string whole_run_table(const ResultSet& set) {
  TextTable table(1);
  RowMaker maker(set);
  maker.add_head(table, {"whole run"});
  for (const std::string_view text : kWhole) {
    if (metric_called(set, text).text.empty())
      continue;  // goodput, where nothing says what is good
    std::vector<std::string> row = {std::string(text)};
    maker.add_cells(row, metric_called(set, text), "");
    table.add_row(std::move(row));
  }
  return table.str();
}

/// Which variants are overloaded, and what is not judged for that.
std::string overload_text(const ResultSet& set) {
  std::string out;
  for (const VariantValues& v : set.variants) {
    std::string stages;
    for (const StageValues& s : v.stages)
      if (!s.stage.empty() && s.reported && s.overloaded)
        stages += (stages.empty() ? "" : ", ") + printable(s.stage);
    if (stages.empty()) continue;
    out += printable(v.name) + " is overloaded (!) in " + stages +
           ": more is asked than answered, so latencies depend on how long the stage lasts";
    out += pooled_overload(v, "").empty()
               ? "\n"
               : "; the whole run, which pools these stages, is not judged\n";
  }
  return out;
}

/// How the differences to the first variant were taken.
std::string pairing_text(const ResultSet& set) {
  if (set.variants.size() < 2) return {};
  if (set.all_paired())
    return "differences are paired: every variant faces the same load with the same seed\n";
  std::string out;
  for (const VariantValues& v : set.variants)
    if (!v.unpaired.empty())
      out += printable(v.name) + " is not paired with " + printable(set.variants.front().name) +
             ": " + v.unpaired + ", so the difference is one of independent runs\n";
  return out;
}

}  // namespace

std::string replications_text(const ResultSet& set) {
  std::string out = std::to_string(set.seeds.size()) +
                    " replications; mean ± half width of the 95 % interval (Student-t over runs)\n";
  out += pairing_text(set) + overload_text(set);
  if (set.until)
    out += set.until->rule + ": " +
           (set.until->reached ? "reached" : "not reached, " + set.until->reason) + "\n";
  if (stages_of(set) > 1)
    for (const std::string_view text : kLadderMetrics)
      out.append("\n").append(ladder_table(set, text));
  return out + "\n" + whole_run_table(set);
}

std::string replications_csv(const ResultSet& set) {
  std::string out = "scenario,variant,stage,rate,metric,n,mean,sd,low,high\n";
  for (const VariantValues& variant : set.variants)
    for (const StageValues& stage : variant.stages) {
      const std::string place = csv_field(set.scenario) + "," + csv_field(variant.name) + "," +
                                csv_field(stage.stage.empty() ? "all" : stage.stage) + "," +
                                (stage.rate > 0 ? number_text(stage.rate) : "") + ",";
      out += place + "overloaded," + std::to_string(set.seeds.size()) + "," +
             (stage.overloaded ? "1" : "0") + ",0,,\n";
      for (const MetricName& m : set.metrics) {
        const std::optional<std::vector<double>> values = set.values(stage, m);
        if (!values) continue;
        const sim::Estimate e = sim::estimate(*values);
        const bool bounded = std::isfinite(e.half_width);
        out += place + m.text + "," + std::to_string(e.n) + "," + number_text(e.mean) + "," +
               number_text(e.sd) + "," +
               (bounded ? number_text(e.low()) + "," + number_text(e.high()) : ",") + "\n";
      }
    }
  return out;
}

}  // namespace routesim::tools
