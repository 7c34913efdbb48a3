// From OpenTelemetry spans to recorded calls. Follows inference-perf's otel_trace_to_replay_graph
// and otel_trace_utils. Private to workloads/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workloads/sessions/json_value.h"
#include "workloads/sessions/replay_graph.h"

namespace routesim::workloads {

/// What a span tells of its call.
struct SpanCall {
  RecordedCall call;
  std::optional<std::int64_t> prompt_tokens, completion_tokens;
  std::string tools;          ///< The definitions as text; empty without any.
  bool answer_calls = false;  ///< The recorded answer calls tools.
};

/// The calls of a session by start, times in milliseconds since the first. `problem` says why there
/// are none when the spans cannot be replayed.
std::vector<SpanCall> calls_of_spans(const JsonValue& spans, bool include_errors,
                                     std::string& problem);

/// A recorded message of a prompt. Null, with `problem` set, when it has no role.
RecordedMessagePtr message_of(const JsonValue& message, std::string& problem);

}  // namespace routesim::workloads
