#include <cmath>

#include "workloads/vllm_bench/vllm_bench.h"

namespace routesim::workloads::vllm_bench {
namespace {

/// How the tool reads the file of a data set; kUnread where it reads none.
LoadFile::Kind kind_of(Dataset data_set) {
  switch (data_set) {
    case Dataset::kShareGpt:
      return LoadFile::Kind::kShareGpt;
    case Dataset::kCustom:
      return LoadFile::Kind::kPrompts;
    case Dataset::kBurstGpt:
    case Dataset::kTimedTrace:
      return LoadFile::Kind::kTrace;
    default:
      return LoadFile::Kind::kUnread;
  }
}

}  // namespace

LoadTraits traits_of(const Config& c) {
  LoadTraits traits;
  traits.report_name = "vllm-benchmark";
  traits.random_text =
      c.dataset_name == Dataset::kRandom || c.dataset_name == Dataset::kPrefixRepetition;
  traits.burstiness = c.burstiness;
  for (const std::string& name : c.lora_modules)
    traits.adapters.shares.push_back(
        {.name = name, .split = 1.0 / static_cast<double>(c.lora_modules.size())});
  traits.adapters.assignment = c.lora_assignment;
  traits.adapters.warms_up_base = true;
  traits.adapters.key = "vllm_bench.lora_modules";
  return traits;
}

std::vector<LoadFile> files_of(const Config& c) {
  if (!c.dataset_path) return {};
  const std::string key = "vllm_bench.dataset_path";
  LoadFile file{.kind = kind_of(c.dataset_name), .key = key, .path = *c.dataset_path};
  if (file.kind == LoadFile::Kind::kTrace) {
    file.format = std::string(enum_name(c.dataset_name));
    file.format_key = key;
  }
  return {file};
}

std::string scale_rates(Config& c, double by) {
  if (c.dataset_name == Dataset::kTimedTrace && c.timed_trace.self_timed) {
    c.timed_trace.sec_multiplier /= by;
    return {};
  }
  bool scaled = false;
  const auto scale = [&](double& rate) {
    if (!std::isfinite(rate)) return;
    rate *= by;
    scaled = true;
  };
  scale(c.request_rate);
  for (auto* rate : {&c.ramp_up_start_rps, &c.ramp_up_end_rps})
    if (*rate) scale(**rate);
  for (Run& run : c.runs)
    if (run.request_rate) scale(*run.request_rate);
  return scaled ? "" : "request_rate is inf: all requests are sent at once";
}

void set_release_defaults(Config& c, bool old_servers) {
  if (!c.initial_test_request) c.initial_test_request = old_servers;
}

}  // namespace routesim::workloads::vllm_bench
