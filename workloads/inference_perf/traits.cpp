#include <cmath>

#include "base/check.h"
#include "workloads/inference_perf/inference_perf.h"

namespace routesim::workloads::inference_perf {
namespace {

std::string key_of(std::string_view rest) { return "inference_perf." + std::string(rest); }

/// The files of recorded sessions. Two sources are an error, and neither is read.
void add_sessions(const Config& config, std::vector<LoadFile>& out) {
  const SessionReplay* replay = session_replay(config);
  if (replay == nullptr || (replay->trace_directory && !replay->trace_files.empty())) return;
  const std::string root = key_of("data.") + std::string(enum_name(config.data.type)) + ".";
  if (replay->trace_directory)
    out.push_back({.kind = LoadFile::Kind::kSessionFolder,
                   .key = root + "trace_directory",
                   .path = *replay->trace_directory});
  for (std::size_t i = 0; i < replay->trace_files.size(); ++i)
    out.push_back({.kind = LoadFile::Kind::kSessions,
                   .key = root + "trace_files[" + std::to_string(i) + "]",
                   .path = replay->trace_files[i]});
}

/// Multiplies a rate that is there and finite; says whether it did.
bool scale(std::optional<double>& rate, double by) {
  if (!rate || !std::isfinite(*rate)) return false;
  *rate *= by;
  return true;
}

}  // namespace

LoadTraits traits_of(const Workload& workload) {
  LoadTraits traits;
  if (!workload.config) return traits;
  const Config& c = *workload.config;
  traits.report_name = "inference-perf";
  traits.streams = c.api.streaming;
  traits.random_text = c.data.type == DataType::kRandom || c.data.type == DataType::kSharedPrefix;
  traits.finds_rates = c.load.sweep.has_value();
  traits.rate_is_count = c.load.type == LoadType::kConcurrent;
  traits.interval_s = c.load.interval;
  traits.percentiles = c.report.request_lifecycle.percentiles;
  traits.goodput = c.report.goodput.constraints;
  traits.headers = c.api.headers;
  traits.headers_key = key_of("api.headers");
  if (c.load.lora_traffic_split) traits.adapters.shares = *c.load.lora_traffic_split;
  traits.adapters.base_name = c.server.model_name;
  traits.adapters.key = key_of("load.lora_traffic_split");
  return traits;
}

std::vector<LoadFile> files_of(const Workload& workload) {
  std::vector<LoadFile> out;
  if (!workload.config) return out;
  const Config& c = *workload.config;
  const auto add_trace = [&out](const std::optional<TraceFile>& trace, const std::string& key) {
    if (trace)
      out.push_back({.kind = LoadFile::Kind::kTrace,
                     .key = key + ".file",
                     .path = trace->file,
                     .format = trace->format,
                     .format_key = key + ".format"});
  };
  add_trace(c.load.trace, key_of("load.trace"));
  add_trace(c.data.trace, key_of("data.trace"));
  if (c.data.path)
    out.push_back({.kind = c.data.type == DataType::kShareGpt ? LoadFile::Kind::kShareGpt
                                                              : LoadFile::Kind::kUnread,
                   .key = key_of("data.path"),
                   .path = *c.data.path});
  add_sessions(c, out);
  return out;
}

std::string scale_rates(Workload& workload, double by) {
  if (!workload.config) return {};
  Load& load = workload.config->load;
  if (load.sweep) return "load.sweep finds its rates itself";
  if (load.type == LoadType::kTraceReplay)
    return "load type trace_replay has the times of its file";
  bool scaled = false;
  for (Stage& stage : load.stages) {
    const bool requests = scale(stage.rate, by);
    const bool sessions = scale(stage.session_rate, by);
    scaled = scaled || requests || sessions;
  }
  return scaled || load.stages.empty() ? "" : "its stages have a concurrency, and no rate";
}

std::unique_ptr<LoadGenerator> make_load_generator(const Workload& workload,
                                                   const WorkloadOptions& options,
                                                   const LoadInputs& inputs,
                                                   Diagnostics& diagnostics) {
  ROUTESIM_CHECK(workload.config.has_value(), "an inference-perf document that was not read");
  return make_load_generator(*workload.config, options, inputs, diagnostics);
}

}  // namespace routesim::workloads::inference_perf
