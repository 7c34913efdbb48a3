#include <array>

#include "tools/output/json_writer.h"
#include "tools/output/report.h"

namespace routesim::tools {

namespace {

using sim::Samples;
using sim::StageResult;

struct Percentile {
  std::string_view key;
  double q;
};
/// inference-perf's default `percentiles` list; it prints 50 as "median".
constexpr std::array<Percentile, 11> kPercentiles = {{{"p0.1", 0.1},
                                                      {"p1", 1},
                                                      {"p5", 5},
                                                      {"p10", 10},
                                                      {"p25", 25},
                                                      {"median", 50},
                                                      {"p75", 75},
                                                      {"p90", 90},
                                                      {"p95", 95},
                                                      {"p99", 99},
                                                      {"p99.9", 99.9}}};

void write_fields(JsonWriter& json, const Samples& samples) {
  json.member("mean", samples.mean()).member("min", samples.min()).member("max", samples.max());
  for (const Percentile& p : kPercentiles) json.member(p.key, samples.percentile(p.q));
}

void write_samples(JsonWriter& json, std::string_view key, const Samples& samples) {
  json.key(key);
  if (samples.count() == 0) {
    json.null();
    return;
  }
  json.begin_object();
  write_fields(json, samples);
  json.end_object();
}

void write_load(JsonWriter& json, const StageResult& stage, bool is_summary) {
  json.key("load_summary").begin_object().member("count", stage.requests);
  write_samples(json, "schedule_delay", stage.schedule_delay);
  if (!is_summary) {
    const double duration = stage.send_duration_s();
    json.member("send_duration", duration);
    json.member("requested_rate", stage.info.requested_rate);
    json.key("achieved_rate");
    if (duration > 0) {
      json.value(static_cast<double>(stage.requests) / duration);
    } else {
      json.null();
    }
    if (stage.info.concurrency > 0) json.member("concurrency", stage.info.concurrency);
  }
  json.end_object();
}

void write_successes(JsonWriter& json, const StageResult& stage) {
  json.key("successes").begin_object().member("count", stage.successes);
  json.key("latency").begin_object();
  write_samples(json, "request_latency", stage.request_latency);
  write_samples(json, "normalized_time_per_output_token", stage.normalized_time_per_output_token);
  write_samples(json, "time_per_output_token", stage.time_per_output_token);
  write_samples(json, "time_to_first_token", stage.time_to_first_token);
  write_samples(json, "inter_token_latency", stage.inter_token_latency);
  json.end_object();

  const auto input = static_cast<double>(stage.prompt_tokens_total);
  const auto output = static_cast<double>(stage.output_tokens_total);
  json.key("throughput").begin_object();
  json.member("input_tokens_per_sec", stage.per_second(input));
  json.member("output_tokens_per_sec", stage.per_second(output));
  json.member("total_tokens_per_sec", stage.per_second(input + output));
  json.member("requests_per_sec", stage.per_second(static_cast<double>(stage.successes)));
  json.end_object();

  // Releases up to v0.3 call it prompt_len; consumers of both generations find their key.
  write_samples(json, "prompt_len", stage.prompt_tokens);
  json.key("prompt_tokens").begin_object();
  if (stage.prompt_tokens.count() > 0) write_fields(json, stage.prompt_tokens);
  json.member("total", stage.prompt_tokens_total);
  json.member("cached", stage.cached_tokens_total);
  json.member("uncached", stage.prompt_tokens_total - stage.cached_tokens_total);
  json.end_object();
  json.key("output_tokens").begin_object();
  if (stage.output_tokens.count() > 0) write_fields(json, stage.output_tokens);
  json.member("total", stage.output_tokens_total).end_object();
  write_samples(json, "output_len", stage.output_tokens);
  json.end_object();
}

void write_failures(JsonWriter& json, const StageResult& stage) {
  json.key("failures").begin_object().member("count", stage.failures);
  json.key("request_latency").null().key("prompt_tokens").null();
  json.key("by_label").begin_object();
  for (const auto& [label, count] : stage.failures_by_label) {
    json.key(label).begin_object().member("count", count);
    json.key("messages").begin_array().end_array().end_object();
  }
  json.end_object().end_object();
}

/// An inference-perf lifecycle report, with what only a simulator knows added at its end.
void write_stage(JsonWriter& json, const StageResult& stage, bool is_summary) {
  json.begin_object();
  if (!is_summary) json.member("name", stage.info.name).member("reported", stage.info.reported);
  json.member("benchmark_time_seconds", stage.total_time_s());
  write_load(json, stage, is_summary);
  write_successes(json, stage);
  write_failures(json, stage);
  json.member("prefix_hit_ratio", stage.prefix_hit_ratio());
  json.key("kv_cache_usage").begin_object();
  json.member("mean", stage.kv_cache_usage_mean).member("max", stage.kv_cache_usage_max);
  json.end_object();
  json.member("preemptions", stage.preemptions);
  json.end_object();
}

void write_routing(JsonWriter& json, const sim::RoutingResult& routing) {
  json.key("routing").begin_object();
  json.member("prefix_hit_ratio", routing.prefix_hit_ratio());
  json.member("decisions", routing.decisions).member("rejected", routing.rejected);
  json.member("predicted_hit_tokens", routing.predicted_hit_tokens);
  json.member("hit_tokens", routing.hit_tokens);
  json.member("prompt_tokens", routing.prompt_tokens);
  json.member("disaggregated", routing.disaggregated);
  json.end_object();
}

std::string hexadecimal(std::uint64_t v) {
  std::string out(16, '0');
  for (std::size_t i = 16; i-- > 0; v >>= 4U) out[i] = "0123456789abcdef"[v & 0xFU];
  return out;
}

void write_replica(JsonWriter& json, const sim::ReplicaResult& replica) {
  json.begin_object();
  json.member("name", replica.name).member("pool", replica.pool);
  json.member("requests", replica.requests).member("steps", replica.steps);
  json.member("busy_s", replica.busy_s);
  json.member("prefix_query_tokens", replica.prefix_query_tokens);
  json.member("prefix_hit_tokens", replica.prefix_hit_tokens);
  json.member("preemptions", replica.preemptions);
  json.member("num_gpu_blocks", replica.num_gpu_blocks);
  json.member("evicted_blocks", replica.evicted_blocks);
  json.key("kv_cache_usage").begin_object();
  json.member("mean", replica.kv_cache_usage_mean).member("max", replica.kv_cache_usage_max);
  json.end_object();
  json.member("max_running", replica.max_running).member("max_waiting", replica.max_waiting);
  json.end_object();
}

}  // namespace

std::string render_json(const Report& report) {
  JsonWriter json;
  json.begin_object();
  json.member("scenario", report.scenario).member("seed", report.seed);
  json.member("version", report.version);
  json.key("variants").begin_array();
  for (const VariantReport& variant : report.variants) {
    const sim::RunResult& result = variant.result;
    json.begin_object().member("name", variant.name);
    json.key("stages").begin_array();
    for (const StageResult& stage : result.stages) write_stage(json, stage, false);
    json.end_array();
    json.key("summary");
    write_stage(json, result.summary, true);
    write_routing(json, result.routing);
    json.key("replicas").begin_array();
    for (const sim::ReplicaResult& replica : result.replicas) write_replica(json, replica);
    json.end_array();
    if (variant.series) {
      json.key("series");
      write_series(json, *variant.series);
    }
    json.member("simulated_s", result.end.to_seconds());
    // As text: 64 bits do not survive a reader that keeps every number as a double.
    json.member("fingerprint", hexadecimal(result.fingerprint));
    json.key("notes").begin_array();
    for (const std::string& note : result.notes) json.value(note);
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return json.str() + "\n";
}

}  // namespace routesim::tools
