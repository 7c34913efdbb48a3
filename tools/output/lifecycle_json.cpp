#include "tools/output/lifecycle_json.h"

#include <array>

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

}  // namespace

void write_lifecycle(JsonWriter& json, const StageResult& stage, bool is_summary) {
  json.member("benchmark_time_seconds", stage.total_time_s());
  write_load(json, stage, is_summary);
  write_successes(json, stage);
  write_failures(json, stage);
}

}  // namespace routesim::tools
