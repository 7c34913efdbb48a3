#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tools/render/render.h"
#include "tools/render/report_files.h"
#include "tools/render/run_verdict.h"
#include "tools/results/json_writer.h"
#include "tools/results/metrics.h"
#include "tools/results/report.h"
#include "tools/results/trust_errors.h"

namespace routesim::tools {

namespace {

using sim::Samples;
using sim::StageResult;

void write_quantiles(JsonWriter& json, const StageResult& stage) {
  struct Metric {
    std::string_view key;
    const Samples& samples;
  };
  const std::array<Metric, 4> metrics = {{{"time_to_first_token", stage.time_to_first_token},
                                          {"inter_token_latency", stage.inter_token_latency},
                                          {"time_per_output_token", stage.time_per_output_token},
                                          {"request_latency", stage.request_latency}}};
  json.key("quantiles").begin_object();
  for (const Metric& metric : metrics) {
    json.key(metric.key);
    if (metric.samples.count() == 0) {
      json.null();
      continue;
    }
    json.begin_array();
    for (const double level : quantile_levels()) json.value(metric.samples.percentile(level));
    json.end_array();
  }
  json.end_object();
}

/// Goodput of all that was sent, as docs/metrics.md has it; the tool's own block, which is of
/// successes, stands among them.
void write_goodput(JsonWriter& json, const StageResult& stage, const GoodputCount& count) {
  const auto total = static_cast<double>(stage.requests);
  json.key("goodput").begin_object();
  json.member("good_requests", count.good).member("sent_requests", stage.requests);
  json.member("percentage", total > 0 ? std::optional(100 * static_cast<double>(count.good) / total)
                                      : std::nullopt);
  json.member("requests_per_sec", stage.per_second(static_cast<double>(count.good)));
  json.member("output_tokens_per_sec", stage.per_second(static_cast<double>(count.good_tokens)));
  json.end_object();
}

/// Published numbers that belong to this stage, in base units.
void write_stage_measured(JsonWriter& json, const VariantReport& variant,
                          const StageResult& stage) {
  json.key("measured").begin_array();
  for (const MeasuredRow& row : variant.measured.rows) {
    const std::optional<double> value = measured_row_value(variant, row, stage);
    if (!value) continue;
    json.begin_object().member("metric", canonical_metric(row.metric));
    json.member("statistic", row.statistic).member("value", *value);
    json.member("source", row.source).end_object();
  }
  json.end_array();
}

/// An inference-perf lifecycle report, with what only a simulator knows added at its end.
void write_stage(JsonWriter& json, const VariantReport& variant, const StageResult& stage,
                 const GoodputCount* goodput) {
  const bool is_summary = &stage == &variant.result.summary;
  json.begin_object();
  if (!is_summary) json.member("name", stage.info.name).member("reported", stage.info.reported);
  write_lifecycle(json, stage,
                  {.is_summary = is_summary,
                   .percentiles = lifecycle_percentiles(variant.scenario),
                   .rate_is_count = rate_is_count(variant.scenario),
                   .goals = variant.goodput ? &variant.goodput->goals : nullptr,
                   .goodput = goodput != nullptr ? &goodput->tool : nullptr});
  json.member("prefix_hit_ratio", stage.prefix_hit_ratio());
  json.key("kv_cache_usage").begin_object();
  json.member("mean", stage.kv_cache_usage_mean).member("max", stage.kv_cache_usage_max);
  json.end_object();
  json.member("preemptions", stage.preemptions).member("overloaded", stage.overloaded());
  write_quantiles(json, stage);
  if (goodput != nullptr) write_goodput(json, stage, *goodput);
  if (!is_summary && !variant.measured.rows.empty()) write_stage_measured(json, variant, stage);
  json.end_object();
}

/// The requests of one traffic class, as a lifecycle report.
void write_class(JsonWriter& json, const VariantReport& variant, const StageResult& requests) {
  json.begin_object().member("name", requests.info.name);
  write_lifecycle(json, requests,
                  {.is_summary = true,
                   .percentiles = lifecycle_percentiles(variant.scenario),
                   .rate_is_count = false,
                   .goals = nullptr,
                   .goodput = nullptr});
  json.member("prefix_hit_ratio", requests.prefix_hit_ratio());
  json.member("preemptions", requests.preemptions);
  write_quantiles(json, requests);
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
  if (routing.mean_wait_s) {
    json.member("mean_wait_s", *routing.mean_wait_s);
    json.member("max_wait_s", routing.longest_wait_s);
  }
  if (routing.gateway) {
    const sim::GatewayResult& gateway = *routing.gateway;
    json.key("gateway").begin_object();
    json.member("refused", gateway.refused).member("retries", gateway.retries);
    json.member("retries_refused", gateway.retries_refused).member("waited", gateway.waited);
    json.member("max_wait_s", gateway.longest_wait.to_seconds());
    json.member("max_in_flight", gateway.most_in_flight);
    json.member("max_waiting", gateway.most_waiting).end_object();
  }
  if (routing.priced) json.member("mean_regret_s", routing.mean_regret_s());
  json.end_object();
}

void write_waits(JsonWriter& json, std::string_view key, const sim::Waits& waits) {
  json.key(key).begin_object().member("count", waits.count).member("mean", waits.mean_s());
  json.member("max", waits.longest.to_seconds()).end_object();
}

/// The tiers of one server, or of all.
void write_tiers(JsonWriter& json, const sim::TierResult& tiers) {
  const sim::TierCounters& did = tiers.did;
  json.key("kv_tiers").begin_object();
  json.member("hit_ratio", tiers.hit_ratio());
  json.member("hbm_query_tokens", tiers.hbm_query_tokens);
  json.member("hbm_hit_tokens", tiers.hbm_hit_tokens);
  json.member("query_tokens", did.query_tokens).member("hit_tokens", did.hit_tokens);
  json.member("loads", did.loads).member("loaded_bytes", did.loaded_bytes);
  json.member("stored_chunks", did.stored_chunks).member("stored_bytes", did.stored_bytes);
  json.member("evicted_chunks", did.evicted_chunks);
  json.member("refused_stores", did.refused_stores);
  json.member("pulls", did.pulls).member("pulls_arrived", did.pulls_arrived);
  json.member("pulls_failed", did.pulls_failed).member("pulls_served", did.pulls_served);
  json.member("pulled_bytes", did.pulled_bytes);
  if (did.disk_lookups + did.disk_writes > 0) {
    json.member("disk_lookups", did.disk_lookups).member("disk_reads", did.disk_reads);
    json.member("disk_read_bytes", did.disk_read_bytes).member("disk_writes", did.disk_writes);
    write_waits(json, "disk_wait_s", did.disk_waits);
  }
  write_waits(json, "load_wait_s", did.load_waits);
  write_waits(json, "pull_wait_s", did.pull_waits);
  json.member("capacity_bytes", tiers.capacity_bytes).member("used_bytes", tiers.used_bytes);
  json.key("link_use").begin_object().member("to_gpus", tiers.links.to_gpus);
  json.member("to_host", tiers.links.to_host).member("host_memory", tiers.links.host_memory);
  json.member("nic_out", tiers.links.nic_out).member("nic_in", tiers.links.nic_in);
  json.end_object().end_object();
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
  json.member("kv_cache_tokens", replica.kv_cache_tokens);
  json.member("evicted_blocks", replica.evicted_blocks);
  json.key("kv_cache_usage").begin_object();
  json.member("mean", replica.kv_cache_usage_mean).member("max", replica.kv_cache_usage_max);
  json.end_object();
  json.member("max_running", replica.max_running).member("max_waiting", replica.max_waiting);
  if (replica.tiers) write_tiers(json, *replica.tiers);
  json.end_object();
}

/// The rows in which the publication sums up its ladder, beside what the simulation gives.
void write_published(JsonWriter& json, const VariantReport& variant) {
  const auto stages = reported_stages(variant.result);
  json.key("published").begin_array();
  for (const MeasuredRow& row : variant.measured.rows) {
    if (row.stage != "all") continue;
    const auto simulated = ladder_value(stages, row.metric, row.statistic, row.unit);
    if (!simulated) continue;
    json.begin_object().member("metric", row.metric).member("statistic", row.statistic);
    json.member("unit", row.unit).member("simulated", *simulated).member("measured", row.value);
    json.member("source", row.source).end_object();
  }
  json.end_array();
}

void write_goals(JsonWriter& json, const GoodputGoals& goals) {
  json.key("goodput_goals").begin_object();
  for (const auto& [name, bound] : goal_list(goals)) json.member(name, bound);
  json.end_object();
}

/// The stages of the load, or what the tool sent before its run.
void write_stages(JsonWriter& json, const char* key, const VariantReport& variant,
                  bool preparation) {
  json.key(key).begin_array();
  for (std::size_t i = 0; i < variant.result.stages.size(); ++i) {
    const StageResult& stage = variant.result.stages[i];
    if (stage.info.is_preparation == preparation)
      write_stage(json, variant, stage, variant.goodput ? &variant.goodput->stages[i] : nullptr);
  }
  json.end_array();
}

void write_side(JsonWriter& json, std::string_view key, const StageSide& side) {
  json.key(key).begin_object().member("ttft_mean_s", side.ttft_mean_s);
  json.member("overloaded", side.overloaded).end_object();
}

/// What a few per cent of the KV blocks change near a knee.
void write_capacity_band(JsonWriter& json, const VariantReport& variant) {
  json.key("kv_capacity_band").begin_object().member("band", kCapacityBand);
  json.member("text", capacity_text(variant)).key("stages").begin_array();
  for (const StageBand& band : variant.capacity_band) {
    json.begin_object().member("name", band.stage);
    write_side(json, "as_is", band.as_is);
    write_side(json, "fewer", band.fewer);
    write_side(json, "more", band.more);
    json.end_object();
  }
  json.end_array().end_object();
}

void write_variant(JsonWriter& json, const VariantReport& variant) {
  const sim::RunResult& result = variant.result;
  const GoodputResult* goodput = variant.goodput ? &*variant.goodput : nullptr;
  json.begin_object().member("name", variant.name);
  if (!variant.scan_of.empty()) json.member("scan_of", variant.scan_of);
  if (!variant.fleet_of.empty()) json.member("fleet_of", variant.fleet_of);
  if (goodput != nullptr) write_goals(json, goodput->goals);
  write_stages(json, "stages", variant, false);
  json.key("summary");
  write_stage(json, variant, result.summary, goodput != nullptr ? &goodput->summary : nullptr);
  if (!result.classes.empty()) {
    json.key("classes").begin_array();
    for (const StageResult& requests : result.classes) write_class(json, variant, requests);
    json.end_array();
  }
  write_routing(json, result.routing);
  if (result.summary.tiers) write_tiers(json, *result.summary.tiers);
  json.key("replicas").begin_array();
  for (const sim::ReplicaResult& replica : result.replicas) write_replica(json, replica);
  json.end_array();
  json.key("trust");
  write_trust(json, result);
  if (!variant.capacity_band.empty()) write_capacity_band(json, variant);
  const bool prepared = std::any_of(result.stages.begin(), result.stages.end(),
                                    [](const StageResult& s) { return s.info.is_preparation; });
  if (prepared) write_stages(json, "preparation", variant, true);
  if (variant.series) {
    json.key("series");
    write_series(json, *variant.series);
  }
  if (!variant.measured.rows.empty()) write_published(json, variant);
  json.member("simulated_s", result.end.to_seconds());
  // As text: 64 bits do not survive a reader that keeps every number as a double.
  json.member("fingerprint", fmt::format("{:016x}", result.fingerprint));
  json.key("notes").begin_array();
  for (const std::string& note : result.notes) json.value(note);
  json.end_array();
  if (!variant.resolved.empty()) json.key("resolved").raw(variant.resolved);
  json.end_object();
}

/// Everything but the verdict, in an object that is still open.
void write_body(JsonWriter& json, const Report& report) {
  json.begin_object();
  json.member("scenario", report.scenario).member("question", report.question);
  json.member("seed", report.seed).member("version", report.version);
  if (!report.commit.empty()) json.member("commit", report.commit);
  if (!report.scenario_hash.empty()) json.member("scenario_hash", report.scenario_hash);
  if (report.interrupted) json.member("interrupted", true);
  if (const RunCommand& command = report.command; !command.input.empty()) {
    json.key("command").begin_object().member("input", command.input);
    json.member("variants", command.variants).member("options", command.options);
    json.member("scan", command.scan).end_object();
  }
  json.key("quantile_levels").begin_array();
  for (const double level : quantile_levels()) json.value(level);
  json.end_array();
  json.key("variants").begin_array();
  for (const VariantReport& variant : report.variants) write_variant(json, variant);
  json.end_array();
  if (report.replications) {
    json.key("replications");
    write_replications(json, *report.replications);
  }
  if (!report.expectations.empty()) {
    json.key("expectations");
    write_judgements(json, report.expectations);
  }
}

}  // namespace

std::string render_json(const Report& report) {
  JsonWriter json;
  write_body(json, report);
  json.key("verdict");
  // The verdict is made from what stands in the result, so that every reader comes to the same one.
  write_verdict(json, verdict_of(read_run(json.str() + "null}", "")));
  json.end_object();
  return json.str() + "\n";
}

Verdict verdict_of(const Report& report) {
  JsonWriter json;
  write_body(json, report);
  json.end_object();
  return verdict_of(read_run(json.str(), ""));
}

}  // namespace routesim::tools
