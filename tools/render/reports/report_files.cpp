#include "tools/render/reports/report_files.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "base/text.h"
#include "policies/index/sha256.h"
#include "tools/results/described_json.h"
#include "tools/results/result_record.h"

namespace routesim::tools {

namespace {

using sim::Samples;
using sim::StageResult;

/// A reader of the tool's files passes over the mark, a person does not.
void write_mark(JsonWriter& json, const Report& report) {
  if (report.interrupted) json.member("interrupted", true);
}

/// The goodput count of a stage, or of the summary; null without goals.
const GoodputCount* goodput_of(const VariantReport& variant, const StageResult& stage) {
  if (!variant.goodput) return nullptr;
  if (&stage == &variant.result.summary) return &variant.goodput->summary;
  const auto index = static_cast<std::size_t>(&stage - variant.result.stages.data());
  return &variant.goodput->stages[index];
}

std::string lifecycle_text(const Report& report, const VariantReport& variant,
                           const StageResult& stage) {
  LifecycleForm form = lifecycle_form(variant.scenario);
  if (const GoodputCount* goodput = goodput_of(variant, stage)) {
    form.goals = &variant.goodput->goals.of(stage.info.part);
    form.goodput = &goodput->tool;
  }
  LifecycleRecord record = lifecycle_record(stage, form, &stage == &variant.result.summary);
  JsonWriter json;
  json.begin_object();
  write_mark(json, report);
  write_members(json, [&record](Describer& d) { describe(d, record); });
  json.end_object();
  return json.str() + "\n";
}

/// `mean_ttft_ms`, `median_ttft_ms`, `std_ttft_ms` and `p<q>_ttft_ms`; zeros without samples, as
/// the tool writes them.
void write_latency(JsonWriter& json, const std::string& name, const Samples& samples) {
  json.member(fmt::format("mean_{}_ms", name), 1e3 * samples.mean());
  json.member(fmt::format("median_{}_ms", name), 1e3 * samples.percentile(50));
  json.member(fmt::format("std_{}_ms", name), 1e3 * samples.stddev());
  for (const int q : {25, 50, 75, 90, 95, 99})
    json.member(fmt::format("p{}_{}_ms", q, name), 1e3 * samples.percentile(q));
}

void write_request_rate(JsonWriter& json, double rate) {
  json.key("request_rate");
  if (rate > 0 && std::isfinite(rate))
    json.value(rate);
  else
    json.value("inf");
}

std::string vllm_bench_text(const Report& report, const VariantReport& variant,
                            const StageResult& stage) {
  const auto& pools = variant.scenario.cluster.pools;
  const std::string model = pools.empty() ? std::string() : pools.front().model;
  const auto input = static_cast<double>(stage.prompt_tokens_total);
  const auto output = static_cast<double>(stage.output_tokens_total);
  // The tool's clock starts before the gap to its first request.
  const double duration = stage.total_time_s() + stage.info.lead_s;
  const auto per_second = [duration](double total) { return duration > 0 ? total / duration : 0; };
  JsonWriter json;
  json.begin_object();
  write_mark(json, report);
  json.member("endpoint_type", "routesim").member("backend", "routesim");
  json.member("label", variant.name).member("model_id", model).member("tokenizer_id", model);
  json.member("num_prompts", stage.requests);
  write_request_rate(json, stage.info.requested_rate);
  json.member("burstiness", traits_of(variant.scenario.workload).burstiness);
  json.member("max_concurrency",
              stage.info.concurrency > 0 ? std::optional(stage.info.concurrency) : std::nullopt);
  json.member("duration", duration);
  json.member("completed", stage.successes).member("failed", stage.failures);
  json.member("total_input_tokens", stage.prompt_tokens_total);
  json.member("total_output_tokens", stage.output_tokens_total);
  json.member("request_throughput", per_second(static_cast<double>(stage.successes)));
  json.key("request_goodput");
  if (const GoodputCount* goodput = goodput_of(variant, stage); goodput != nullptr)
    json.value(per_second(static_cast<double>(goodput->good)));
  else
    json.null();
  json.member("output_throughput", per_second(output));
  json.member("total_token_throughput", per_second(input + output));
  write_latency(json, "ttft", stage.time_to_first_token);
  write_latency(json, "tpot", stage.time_per_output_token);
  write_latency(json, "itl", stage.inter_token_latency);
  write_latency(json, "e2el", stage.request_latency);
  json.end_object();
  return json.str() + "\n";
}

FolderFile stage_file(const Report& report, const VariantReport& variant, const StageResult& stage,
                      std::int64_t index, FileFormat format) {
  const std::string number = std::to_string(index);
  // The format has no key for it, but its files are YAML.
  const std::string mark = report.interrupted ? "# interrupted: the results are partial\n" : "";
  switch (format) {
    case FileFormat::kBenchmarkReportV01:
      return {"benchmark_report,_stage_" + number + ".yaml",
              mark + benchmark_report_v01(variant, stage, index)};
    case FileFormat::kBenchmarkReport:
      return {"benchmark_report_v0.2,_stage_" + number + ".yaml",
              mark + benchmark_report_v02(variant, stage, index)};
    case FileFormat::kVllmBench:
      return {"stage_" + number + ".json", vllm_bench_text(report, variant, stage)};
    case FileFormat::kInferencePerf:
      break;
  }
  return {"stage_" + number + "_lifecycle_metrics.json", lifecycle_text(report, variant, stage)};
}

constexpr std::size_t kMostBytes = 150;  ///< File systems allow 255, with room for a suffix.
constexpr std::string_view kCapitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

std::string encoded(const std::string& name, bool escape_capitals) {
  if (name.empty()) return "%";
  std::string keep = "abcdefghijklmnopqrstuvwxyz0123456789-_";
  if (!escape_capitals) keep += kCapitals;
  // No file is hidden: a first dot is escaped.
  std::string out = percent_encoded(name.substr(0, 1), keep);
  out += percent_encoded(name.substr(1), keep + '.');
  if (out.size() <= kMostBytes) return out;
  policies::Sha256 hash;
  hash.update(name.data(), name.size());
  // No other name has %~ in it.
  out.resize(kMostBytes - 2 - 2 * 8);
  out += "%~";
  return out + encode_hex(hash.finish()).substr(0, 16);
}

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace

std::vector<FolderFile> report_files(const Report& report, FileFormat format) {
  std::vector<FolderFile> files;
  std::vector<std::string> names;
  for (const VariantReport& variant : report.variants) names.push_back(variant.name);
  const std::vector<std::string> folders = file_names(names);
  for (std::size_t v = 0; v < report.variants.size(); ++v) {
    const VariantReport& variant = report.variants[v];
    const std::string folder = folders[v] + "/";
    std::int64_t next = 0;
    for (const StageResult& stage : variant.result.stages) {
      if (stage.info.is_preparation) continue;
      const std::int64_t index = next++;
      if (format == FileFormat::kVllmBench && !stage.info.reported) continue;
      FolderFile file = stage_file(report, variant, stage, index, format);
      file.name = folder + file.name;
      files.push_back(std::move(file));
    }
    if (format == FileFormat::kInferencePerf)
      files.push_back({folder + "summary_lifecycle_metrics.json",
                       lifecycle_text(report, variant, variant.result.summary)});
  }
  return files;
}

std::vector<std::string> file_names(const std::vector<std::string>& names) {
  std::map<std::string, int> sharing;
  for (const std::string& name : names) ++sharing[lower_case(encoded(name, false))];
  std::vector<std::string> files;
  files.reserve(names.size());
  for (const std::string& name : names)
    files.push_back(encoded(name, sharing[lower_case(encoded(name, false))] > 1));
  return files;
}

}  // namespace routesim::tools
