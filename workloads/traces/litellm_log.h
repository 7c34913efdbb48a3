// Logs of the LiteLLM proxy, one JSON object per line. Private to workloads/traces.
//
// Source: BerriAI/litellm, tests/logging_callback_tests/gcs_pub_sub_body: standard_logging_payload
// .json at 055a04e and spend_logs_payload.json at 00e7401; litellm/types/utils.py
// (StandardLoggingPayload); the `ndjson` format of generic_api_callback.py at 0cc07ba.
#pragma once

#include <array>
#include <istream>
#include <memory>
#include <string>
#include <string_view>

#include "workloads/traces/trace_readers.h"

namespace routesim::workloads {

/// The keys that are read.
inline constexpr std::array<std::string_view, 9> kLiteLlmKeys = {
    "startTime", "prompt_tokens", "completion_tokens",    "session_id", "trace_id",
    "messages",  "status",        "proxy_server_request", "cache_hit"};

/// Reads standard logging payloads and rows of the spend logs, in any order: LiteLLM writes a line
/// when an answer ends. Left out: failures, answers of LiteLLM's own cache, and rows without answer
/// tokens, such as embeddings. Prompts stand in `messages`, or else in `proxy_server_request`.
/// All records are in memory.
std::unique_ptr<TraceReader> make_litellm_reader(std::unique_ptr<std::istream> in, std::string file,
                                                 const TraceReadOptions& options);

}  // namespace routesim::workloads
