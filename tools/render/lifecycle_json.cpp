#include <algorithm>
#include <cstdio>

#include "tools/render/report_files.h"

namespace routesim::tools {

namespace {

using sim::Samples;
using sim::StageResult;

/// inference-perf's name of a percentile: `p99.9`, and 50 is `median`.
std::string percentile_key(double q) {
  if (q == 50) return "median";
  char text[40];
  std::snprintf(text, sizeof text, "p%g", q);
  return text;
}

/// Writes a stage.
class Writer {
 public:
  Writer(JsonWriter& json, const StageResult& stage, const LifecycleForm& form)
      : json_(json), stage_(stage), form_(form) {}

  void load();
  void successes();
  void failures();

 private:
  void fields(const Samples& values) {
    json_.member("mean", values.mean()).member("min", values.min()).member("max", values.max());
    for (const double q : form_.percentiles) json_.member(percentile_key(q), values.percentile(q));
  }

  void goodput();

  void samples(std::string_view key, const Samples& values) {
    json_.key(key);
    if (values.count() == 0) {
      json_.null();
      return;
    }
    json_.begin_object();
    fields(values);
    json_.end_object();
  }

  JsonWriter& json_;
  const StageResult& stage_;
  const LifecycleForm& form_;
};

void Writer::load() {
  json_.key("load_summary").begin_object().member("count", stage_.requests);
  samples("schedule_delay", stage_.schedule_delay);
  if (!form_.is_summary) {
    const double duration = stage_.send_duration_s();
    json_.member("send_duration", duration);
    json_.member("requested_rate", form_.rate_is_count ? static_cast<double>(stage_.info.requests)
                                                       : stage_.info.requested_rate);
    json_.key("achieved_rate");
    if (duration > 0) {
      json_.value(static_cast<double>(stage_.requests) / duration);
    } else {
      json_.null();
    }
    if (stage_.info.concurrency > 0) json_.member("concurrency", stage_.info.concurrency);
  }
  json_.end_object();
}

void Writer::successes() {
  json_.key("successes").begin_object().member("count", stage_.successes);
  json_.key("latency").begin_object();
  samples("request_latency", stage_.request_latency);
  samples("normalized_time_per_output_token", stage_.normalized_time_per_output_token);
  samples("time_per_output_token", stage_.time_per_output_token);
  samples("time_to_first_token", stage_.time_to_first_token);
  samples("inter_token_latency", stage_.inter_token_latency);
  json_.end_object();

  const auto input = static_cast<double>(stage_.prompt_tokens_total);
  const auto output = static_cast<double>(stage_.output_tokens_total);
  json_.key("throughput").begin_object();
  json_.member("input_tokens_per_sec", stage_.per_second(input));
  json_.member("output_tokens_per_sec", stage_.per_second(output));
  json_.member("total_tokens_per_sec", stage_.per_second(input + output));
  json_.member("requests_per_sec", stage_.per_second(static_cast<double>(stage_.successes)));
  json_.end_object();

  // Releases up to v0.3 call it prompt_len; consumers of both generations find their key.
  samples("prompt_len", stage_.prompt_tokens);
  json_.key("prompt_tokens").begin_object();
  if (stage_.prompt_tokens.count() > 0) fields(stage_.prompt_tokens);
  json_.member("total", stage_.prompt_tokens_total);
  json_.member("cached", stage_.cached_tokens_total);
  json_.member("uncached", stage_.prompt_tokens_total - stage_.cached_tokens_total);
  json_.end_object();
  json_.key("output_tokens").begin_object();
  if (stage_.output_tokens.count() > 0) fields(stage_.output_tokens);
  json_.member("total", stage_.output_tokens_total).end_object();
  samples("output_len", stage_.output_tokens);
  if (form_.goodput != nullptr && stage_.successes > 0) goodput();
  json_.end_object();
}

void Writer::goodput() {
  const ToolGoodput& count = *form_.goodput;
  const auto total = static_cast<double>(stage_.successes);
  const double span = (count.last_end - count.first_send).to_seconds();
  const auto per_second = [span](std::int64_t n) {
    return span > 0 ? static_cast<double>(n) / span : 0;
  };
  json_.key("goodput_metrics").begin_object();
  json_.member("goodput_percentage", 100 * static_cast<double>(count.good) / total);
  json_.member("request_goodput", per_second(count.good));
  json_.member("token_goodput", per_second(count.good_tokens));
  json_.member("good_requests", count.good).member("total_requests", stage_.successes);
  for (const auto& [name, bound] : goal_list(*form_.goals))
    json_.member(std::string(name) + "_attainment_percentage",
                 100 * static_cast<double>(count.attained[goal_index(name)]) / total);
  json_.end_object();
}

void Writer::failures() {
  json_.key("failures").begin_object().member("count", stage_.failures);
  json_.key("request_latency").null().key("prompt_tokens").null();
  json_.key("by_label").begin_object();
  for (const auto& [label, count] : stage_.failures_by_label) {
    json_.key(label).begin_object().member("count", count);
    json_.key("messages").begin_array().end_array().end_object();
  }
  json_.end_object().end_object();
}

}  // namespace

std::vector<double> lifecycle_percentiles(const sim::Scenario& scenario) {
  std::vector<double> out;
  for (const double q : traits_of(scenario.workload.load).percentiles)
    if (std::find(out.begin(), out.end(), q) == out.end()) out.push_back(q);
  return out;
}

bool rate_is_count(const sim::Scenario& scenario) {
  return traits_of(scenario.workload.load).rate_is_count;
}

void write_lifecycle(JsonWriter& json, const StageResult& stage, const LifecycleForm& form) {
  json.member("benchmark_time_seconds", stage.total_time_s());
  Writer writer(json, stage, form);
  writer.load();
  writer.successes();
  writer.failures();
}

}  // namespace routesim::tools
