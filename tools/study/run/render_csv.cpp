#include <array>
#include <cmath>

#include "base/scalar_parse.h"
#include "tools/render/render.h"
#include "tools/results/metrics.h"
#include "tools/results/report.h"
#include "tools/study/run/render_run.h"

namespace routesim::tools {

namespace {

struct CsvMetric {
  std::string_view metric;
  std::string_view unit;
  bool sampled;
};
constexpr std::array<CsvMetric, 27> kMetrics = {{
    {"successful_requests", "count", false},
    {"failed_requests", "count", false},
    {"requests_per_sec_sent", "req/s", false},
    {"request_throughput", "req/s", false},
    {"input_throughput", "tok/s", false},
    {"output_throughput", "tok/s", false},
    {"total_throughput", "tok/s", false},
    {"failure_rate", "ratio", false},
    {"goodput", "ratio", false},
    {"good_request_throughput", "req/s", false},
    {"kv_cache_usage", "ratio", false},
    {"preemptions", "count", false},
    {"overloaded", "count", false},
    {"prefix_cache_hit_rate", "ratio", false},
    {"tier_hit_rate", "ratio", false},
    {"tier_loaded_gigabytes", "GB", false},
    {"tier_load_wait", "s", false},
    {"tier_pulled_gigabytes", "GB", false},
    {"tier_pull_wait", "s", false},
    {"ttft", "s", true},
    {"tpot", "s", true},
    {"ntpot", "s", true},
    {"itl", "s", true},
    {"request_latency", "s", true},
    {"schedule_delay", "s", true},
    {"input_length", "tokens", true},
    {"output_length", "tokens", true},
}};
constexpr std::array<std::string_view, 6> kStatistics = {"mean", "median", "p75",
                                                         "p90",  "p95",    "p99"};

class CsvWriter {
 public:
  explicit CsvWriter(const Report& report) : report_(report) {}

  std::string str() {
    out_ = "scenario,variant,stage,rate,metric,statistic,unit,value,measured,error_percent\n";
    for (const VariantReport& variant : report_.variants) {
      for (const sim::StageResult& stage : variant.result.stages)
        if (!stage.info.is_preparation) add_stage(variant, stage, stage.info.name);
      add_stage(variant, variant.result.summary, "all");
    }
    if (report_.interrupted && !report_.variants.empty())
      out_ += csv_field(report_.scenario) + "," + csv_field(report_.variants.back().name) +
              ",all,,interrupted,count,count,1,,\n";
    return out_;
  }

 private:
  void add_stage(const VariantReport& variant, const sim::StageResult& stage,
                 const std::string& name) {
    for (const CsvMetric& metric : kMetrics) {
      if (!metric.sampled) {
        add(variant, stage, name, metric, metric.unit == "count" ? "count" : "mean");
        continue;
      }
      for (const std::string_view statistic : kStatistics)
        add(variant, stage, name, metric, statistic);
    }
  }

  void add(const VariantReport& variant, const sim::StageResult& stage, const std::string& name,
           const CsvMetric& metric, std::string_view statistic) {
    const std::optional<double> value = metric_value(stage, metric.metric, statistic, metric.unit);
    if (!value) return;
    const bool is_whole_run = name == "all";
    const bool has_rate = !is_whole_run && std::isfinite(stage.info.requested_rate);
    std::optional<double> measured;
    if (!is_whole_run) measured = measured_value(variant, stage, metric.metric, statistic);
    out_ += csv_field(report_.scenario) + "," + csv_field(variant.name) + "," + csv_field(name) +
            "," + (has_rate ? number_text(stage.info.requested_rate) : std::string()) + ",";
    out_.append(metric.metric).append(",").append(statistic).append(",").append(metric.unit);
    out_ += "," + number_text(*value) + "," + (measured ? number_text(*measured) : std::string()) +
            "," +
            (measured && *measured != 0 ? number_text(error_percent(*value, *measured))
                                        : std::string()) +
            "\n";
  }

  const Report& report_;
  std::string out_;
};

/// One row per variant, stage and metric.
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
        if (!values || m.metric == "overloaded") continue;  // Its row stands above.
        const sim::Estimate e = sim::estimate(*values);
        const bool bounded = std::isfinite(e.half_width);
        out += place + m.text + "," + std::to_string(e.n) + "," + number_text(e.mean) + "," +
               number_text(e.sd) + "," +
               (bounded ? number_text(e.low()) + "," + number_text(e.high()) : ",") + "\n";
      }
    }
  return out;
}

}  // namespace

std::string render_csv(const Report& report) {
  if (!report.replications) return CsvWriter(report).str();
  const std::string mark = csv_field(report.scenario) + ",,all,,interrupted,1,1,0,,\n";
  return replications_csv(*report.replications) + (report.interrupted ? mark : "");
}

}  // namespace routesim::tools
