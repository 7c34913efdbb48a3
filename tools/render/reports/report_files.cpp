#include "tools/render/reports/report_files.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>

#include "base/text.h"
#include "policies/index/sha256.h"
#include "tools/results/described_json.h"
#include "tools/results/result_record.h"

namespace routesim::tools {

namespace {

using sim::PoolConfig;
using sim::Samples;
using sim::StageResult;

struct Quantile {
  std::string_view key;
  double q;
};
constexpr std::array<Quantile, 11> kQuantiles = {{{"p0p1", 0.1},
                                                  {"p1", 1},
                                                  {"p5", 5},
                                                  {"p10", 10},
                                                  {"p25", 25},
                                                  {"p50", 50},
                                                  {"p75", 75},
                                                  {"p90", 90},
                                                  {"p95", 95},
                                                  {"p99", 99},
                                                  {"p99p9", 99.9}}};

/// A statistics object; nothing at all without samples, since `mean` is required in it.
void write_statistics(JsonWriter& json, std::string_view key, std::string_view units,
                      const Samples& samples) {
  if (samples.count() == 0) return;
  json.key(key).begin_object().member("units", units);
  json.member("mean", samples.mean()).member("stddev", samples.stddev());
  json.member("min", samples.min());
  for (const Quantile& q : kQuantiles) json.member(q.key, samples.percentile(q.q));
  json.member("max", samples.max()).end_object();
}

void write_mean(JsonWriter& json, std::string_view key, std::string_view units, double mean) {
  json.key(key).begin_object().member("units", units).member("mean", mean).end_object();
}

void write_requests(JsonWriter& json, const StageResult& s) {
  json.key("requests").begin_object();
  json.member("total", s.requests).member("failures", s.failures).member("incomplete", 0);
  write_statistics(json, "input_length", "count", s.prompt_tokens);
  write_statistics(json, "output_length", "count", s.output_tokens);
  json.end_object();
}

void write_latency(JsonWriter& json, const StageResult& s) {
  json.key("latency").begin_object();
  write_statistics(json, "time_to_first_token", "s", s.time_to_first_token);
  write_statistics(json, "normalized_time_per_output_token", "s/token",
                   s.normalized_time_per_output_token);
  write_statistics(json, "time_per_output_token", "s/token", s.time_per_output_token);
  write_statistics(json, "inter_token_latency", "s/token", s.inter_token_latency);
  write_statistics(json, "request_latency", "s", s.request_latency);
  json.end_object();
}

std::string_view role_name(sim::PoolRole role) {
  return role == sim::PoolRole::kBoth ? "replica" : enum_name(role);
}

std::int64_t expert_parallel(const PoolConfig& p) {
  return p.expert_parallel ? p.tensor_parallel * p.data_parallel : 1;
}

/// The load tool whose file or flags the scenario holds, by the schema's names.
std::string_view load_tool(const sim::WorkloadConfig& workload) {
  const std::string_view tool = traits_of(workload).report_name;
  return tool.empty() ? "nop" : tool;
}

/// Version 0.1 lists one entry per server.
void write_host(JsonWriter& json, const sim::ClusterConfig& cluster) {
  json.key("host").begin_object().key("accelerator").begin_array();
  for (const PoolConfig& p : cluster.pools)
    for (std::int64_t i = 0; i < p.replicas; ++i) {
      json.begin_object().member("model", p.accelerator);
      json.member("count", p.gpus_per_server());
      json.key("parallelism").begin_object();
      json.member("dp", p.data_parallel).member("tp", p.tensor_parallel);
      json.member("pp", p.pipeline_parallel).member("ep", expert_parallel(p));
      json.end_object().end_object();
    }
  json.end_array().key("type").begin_array();
  for (const PoolConfig& p : cluster.pools)
    for (std::int64_t i = 0; i < p.replicas; ++i) json.value(role_name(p.role));
  json.end_array().end_object();
}

bool is_sglang_pool(const PoolConfig& p) { return p.engine.kind == sim::EngineKind::kSglang; }

/// The releases whose rules apply.
std::string_view releases_of(const PoolConfig& p) {
  return is_sglang_pool(p) ? "0.5" : enum_name(p.engine.preset);
}

void write_platform(JsonWriter& json, const sim::ClusterConfig& cluster) {
  json.key("platform").begin_object().key("engine").begin_array();
  for (const PoolConfig& p : cluster.pools)
    for (std::int64_t i = 0; i < p.replicas; ++i) {
      const std::string name(enum_name(p.engine.kind));
      json.begin_object().member("name", name + ", simulated");
      json.member("version", releases_of(p)).end_object();
    }
  json.end_array().end_object();
}

void write_parallelism(JsonWriter& json, const PoolConfig& p) {
  json.key("accelerator").begin_object().member("model", p.accelerator);
  json.member("count", p.gpus_per_server());
  json.key("parallelism").begin_object();
  json.member("tp", p.tensor_parallel).member("dp", p.data_parallel);
  json.member("dp_local", p.data_parallel).member("workers", 1);
  json.member("ep", expert_parallel(p)).member("pp", p.pipeline_parallel);
  json.end_object().end_object();
}

void write_engine_component(JsonWriter& json, const PoolConfig& p) {
  json.begin_object().key("metadata").begin_object();
  json.member("schema_version", "0.0.1").member("label", p.name).end_object();
  json.key("standardized").begin_object();
  json.member("kind", "inference_engine").member("tool", enum_name(p.engine.kind));
  json.member("tool_version", "simulated " + std::string(releases_of(p)));
  json.member("role", role_name(p.role)).member("replicas", p.replicas);
  json.key("model").begin_object().member("name", p.model).end_object();
  write_parallelism(json, p);
  json.end_object();
  json.key("native").begin_object().key("args").begin_object();
  if (is_sglang_pool(p))
    json.member("page-size", p.engine.sglang.value_or(sim::SglangConfig{}).page_size);
  else
    json.member("block-size", p.engine.block_size);
  if (p.engine.max_num_batched_tokens)
    json.member("max-num-batched-tokens", *p.engine.max_num_batched_tokens);
  if (p.engine.max_num_seqs)
    json.member(is_sglang_pool(p) ? "max-running-requests" : "max-num-seqs",
                *p.engine.max_num_seqs);
  if (p.engine.gpu_memory_utilization)
    json.member(is_sglang_pool(p) ? "mem-fraction-static" : "gpu-memory-utilization",
                *p.engine.gpu_memory_utilization);
  json.end_object().end_object().end_object();
}

void write_router_component(JsonWriter& json, const sim::RoutingConfig& routing) {
  json.begin_object().key("metadata").begin_object();
  json.member("schema_version", "0.0.1").member("label", "router").end_object();
  json.key("standardized").begin_object().member("kind", "generic");
  json.member("tool", enum_name(routing.balancer)).member("tool_version", "simulated");
  json.member("replicas", routing.router_replicas).end_object().end_object();
}

/// Lengths as they were met; the tool's own distributions are in its file.
void write_lengths(JsonWriter& json, std::string_view key, const Samples& samples) {
  json.key(key).begin_object();
  json.member("distribution", samples.min() == samples.max() ? "fixed" : "other");
  json.member("value", samples.mean()).member("std_dev", samples.stddev());
  json.member("min", samples.min()).member("max", samples.max()).end_object();
}

void write_load(JsonWriter& json, const sim::WorkloadConfig& workload, const StageResult& s,
                std::int64_t index) {
  json.key("load").begin_object();
  json.key("metadata").begin_object().member("schema_version", "0.0.1").end_object();
  json.key("standardized").begin_object();
  const std::string_view tool = load_tool(workload);
  json.member("tool", tool).member("tool_version", "simulated");
  json.member("parallelism", 1);
  json.member("source", tool == "nop" ? "unknown" : "random");
  json.member("stage", index);
  write_lengths(json, "input_seq_len", s.prompt_tokens);
  write_lengths(json, "output_seq_len", s.output_tokens);
  if (s.info.requested_rate > 0 && std::isfinite(s.info.requested_rate))
    json.member("rate_qps", s.info.requested_rate);
  if (s.info.concurrency > 0) json.member("concurrency", s.info.concurrency);
  json.end_object().end_object();
}

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
  const GoodputCount* const goodput = goodput_of(variant, stage);
  json.member("request_goodput", goodput != nullptr
                                     ? std::optional(per_second(static_cast<double>(goodput->good)))
                                     : std::nullopt);
  json.member("output_throughput", per_second(output));
  json.member("total_token_throughput", per_second(input + output));
  write_latency(json, "ttft", stage.time_to_first_token);
  write_latency(json, "tpot", stage.time_per_output_token);
  write_latency(json, "itl", stage.inter_token_latency);
  write_latency(json, "e2el", stage.request_latency);
  json.end_object();
  return json.str() + "\n";
}

/// Version 0.1 of a stage of the variant, the `number`-th of its load. Latencies in s and s/token,
/// duration is the send duration, as the importer of inference-perf results has it.
std::string benchmark_report_v01(const VariantReport& variant, const StageResult& s,
                                 std::int64_t number) {
  const sim::Scenario& scenario = variant.scenario;
  const auto input = static_cast<double>(s.prompt_tokens_total);
  const auto output = static_cast<double>(s.output_tokens_total);
  JsonWriter json;
  json.begin_object().member("version", "0.1").key("scenario").begin_object();
  json.member("description", scenario.name + ", " + variant.name);
  write_host(json, scenario.cluster);
  write_platform(json, scenario.cluster);
  json.key("model").begin_object();
  json.member("name", scenario.cluster.pools.empty() ? "" : scenario.cluster.pools.front().model);
  json.end_object().key("load").begin_object();
  json.member("name", load_tool(scenario.workload));
  json.key("metadata").begin_object().member("stage", number).end_object().end_object();
  json.end_object().key("metrics").begin_object();
  json.key("time").begin_object().member("duration", s.send_duration_s()).end_object();
  write_requests(json, s);
  write_latency(json, s);
  json.key("throughput").begin_object();
  json.member("input_tokens_per_sec", s.per_second(input));
  json.member("output_tokens_per_sec", s.per_second(output));
  json.member("total_tokens_per_sec", s.per_second(input + output));
  json.member("requests_per_sec", s.per_second(static_cast<double>(s.successes)));
  json.end_object().end_object().end_object();
  return json.str() + "\n";
}

/// Version 0.2: one stack component per pool and one for the router. Throughputs have only a mean.
std::string benchmark_report_v02(const VariantReport& variant, const StageResult& s,
                                 std::int64_t number) {
  const sim::Scenario& scenario = variant.scenario;
  const auto input = static_cast<double>(s.prompt_tokens_total);
  const auto output = static_cast<double>(s.output_tokens_total);
  JsonWriter json;
  json.begin_object().member("version", "0.2").key("run").begin_object();
  json.member("uid", scenario.name + "/" + variant.name + "/" +
                         std::to_string(variant.result.seed) + "/" + std::to_string(number));
  json.member("eid", scenario.name).member("description", scenario.question);
  json.end_object().key("scenario").begin_object().key("stack").begin_array();
  for (const PoolConfig& p : scenario.cluster.pools) write_engine_component(json, p);
  write_router_component(json, scenario.routing);
  json.end_array();
  write_load(json, scenario.workload, s, number);
  json.end_object().key("results").begin_object();
  json.key("request_performance").begin_object().key("aggregate").begin_object();
  write_requests(json, s);
  write_latency(json, s);
  json.key("throughput").begin_object();
  write_mean(json, "input_token_rate", "tokens/s", s.per_second(input));
  write_mean(json, "output_token_rate", "tokens/s", s.per_second(output));
  write_mean(json, "total_token_rate", "tokens/s", s.per_second(input + output));
  write_mean(json, "request_rate", "queries/s", s.per_second(static_cast<double>(s.successes)));
  json.end_object().end_object().end_object();
  json.key("observability").begin_object();
  write_mean(json, "prefix_cache_hit_rate", "percent", 100 * s.prefix_hit_ratio());
  write_mean(json, "kv_cache_usage", "percent", 100 * s.kv_cache_usage_mean);
  write_mean(json, "preemptions", "count", static_cast<double>(s.preemptions));
  json.end_object().end_object().end_object();
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
