// The log of `vllm serve --enable-log-requests`. Private to workloads/traces.
//
// Sources: vllm-project/vllm, vllm/entrypoints/logger.py (0.9 to 0.26; request_logger.py in 0.27):
// RequestLogger.log_inputs and log_outputs; vllm/logger.py (`%m-%d %H:%M:%S`, no year); pull
// request 26713, which moved prompts to the level DEBUG; openai/serving_chat.py, which logs the
// deltas of a stream and then its whole text. A line of 0.16 stands in vLLM's issue 34503.
#pragma once

#include <istream>
#include <memory>
#include <string>

#include "workloads/traces/trace_readers.h"

namespace routesim::workloads {

/// One request per line "Received request", at that line's time: a whole second, or the stamp of
/// the container's log in front of it. Its prompt stands in that line (up to 0.11.0) or in the line
/// "Request ID details" (with VLLM_LOGGING_LEVEL=DEBUG), its answer in lines "Generated response"
/// (with --enable-log-outputs). Lengths are counts of token ids, or else estimated from the text.
/// A length that the log does not have is TraceReadOptions::missing, or an error at the request.
std::unique_ptr<TraceReader> make_vllm_log_reader(std::unique_ptr<std::istream> in,
                                                  std::string file,
                                                  const TraceReadOptions& options);

}  // namespace routesim::workloads
