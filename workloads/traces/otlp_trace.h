// Spans of requests in OTLP JSON, as the file exporter of OpenTelemetry's collector writes them:
// one export per line. Private to workloads/traces.
//
// Sources: opentelemetry-proto, opentelemetry/proto/trace/v1/trace.proto and its JSON mapping
// (64-bit numbers are texts); vllm/tracing/utils.py of vLLM 0.27 (SpanAttributes, the span
// `llm_request` begins when the request arrives); OpenTelemetry's semantic conventions for
// generative AI 1.37; OpenInference's llm.token_count.*, which gateways write.
#pragma once

#include <istream>
#include <memory>
#include <string>

#include "workloads/traces/trace_readers.h"

namespace routesim::workloads {

/// One request per span that has tokens of a prompt and of an answer. Of spans inside each other,
/// such as a gateway's and its server's, the outermost counts: a router sees requests when the
/// gateway does. Left out, with a warning: failed spans, spans without answer tokens, and spans of
/// agents, whose counts are sums. Several requests of one trace are turns of a session, unless the
/// spans name another.
std::unique_ptr<TraceReader> make_otlp_reader(std::unique_ptr<std::istream> in, std::string file,
                                              const TraceReadOptions& options);

}  // namespace routesim::workloads
