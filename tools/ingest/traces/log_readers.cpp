#include "tools/ingest/traces/log_readers.h"

#include <utility>

namespace routesim::tools {

std::unique_ptr<workloads::TraceReader> make_any_trace_reader(
    std::unique_ptr<std::istream> in, std::string file,
    const workloads::TraceReadOptions& options) {
  switch (options.format) {
    case workloads::TraceFormat::kLiteLlm:
      return make_litellm_reader(std::move(in), std::move(file), options);
    case workloads::TraceFormat::kOtlp:
      return make_otlp_reader(std::move(in), std::move(file), options);
    case workloads::TraceFormat::kVllmLog:
      return make_vllm_log_reader(std::move(in), std::move(file), options);
    default:
      return workloads::make_trace_reader(std::move(in), std::move(file), options);
  }
}

}  // namespace routesim::tools
