// Logs of other programs, read as traces: each request is a record.
#pragma once

#include <algorithm>
#include <array>
#include <istream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "workloads/traces/trace_readers.h"

namespace routesim::tools {

/// A reader of a trace in any format; see workloads::make_trace_reader.
std::unique_ptr<workloads::TraceReader> make_any_trace_reader(
    std::unique_ptr<std::istream> in, std::string file, const workloads::TraceReadOptions& options);

/// The keys of a LiteLLM log that are read.
inline constexpr std::array<std::string_view, 9> kLiteLlmKeys = {
    "startTime", "prompt_tokens", "completion_tokens",    "session_id", "trace_id",
    "messages",  "status",        "proxy_server_request", "cache_hit"};

/// Logs of the LiteLLM proxy, one JSON object per line: standard logging payloads and rows of the
/// spend logs, in any order, because LiteLLM writes a line when an answer ends. Left out: failures,
/// answers of LiteLLM's own cache, and rows without answer tokens, such as embeddings. Prompts
/// stand in `messages`, or else in `proxy_server_request`.
///
/// Source: BerriAI/litellm, tests/logging_callback_tests/gcs_pub_sub_body: standard_logging_payload
/// .json at 055a04e and spend_logs_payload.json at 00e7401; litellm/types/utils.py
/// (StandardLoggingPayload); the `ndjson` format of generic_api_callback.py at 0cc07ba.
std::unique_ptr<workloads::TraceReader> make_litellm_reader(
    std::unique_ptr<std::istream> in, std::string file, const workloads::TraceReadOptions& options);

/// Spans of requests in OTLP JSON, as the file exporter of OpenTelemetry's collector writes them:
/// one export per line. One request per span that has tokens of a prompt and of an answer. Of spans
/// inside each other, such as a gateway's and its server's, the outermost counts: a router sees
/// requests when the gateway does. Left out, with a warning: failed spans, spans without answer
/// tokens, and spans of agents, whose counts are sums. Several requests of one trace are turns of a
/// session, unless the spans name another.
///
/// Sources: opentelemetry-proto, opentelemetry/proto/trace/v1/trace.proto and its JSON mapping
/// (64-bit numbers are texts); vllm/tracing/utils.py of vLLM 0.27 (SpanAttributes, the span
/// `llm_request` begins when the request arrives); OpenTelemetry's semantic conventions for
/// generative AI 1.37; OpenInference's llm.token_count.*, which gateways write.
std::unique_ptr<workloads::TraceReader> make_otlp_reader(
    std::unique_ptr<std::istream> in, std::string file, const workloads::TraceReadOptions& options);

/// The log of `vllm serve --enable-log-requests`. One request per line "Received request", at that
/// line's time: a whole second, or the stamp of the container's log in front of it. Its prompt
/// stands in that line (up to 0.11.0) or in the line "Request ID details" (with
/// VLLM_LOGGING_LEVEL=DEBUG), its answer in lines "Generated response" (with --enable-log-outputs).
/// Lengths are counts of token ids, or else estimated from the text. A length that the log does not
/// have is TraceReadOptions::missing, or an error at the request.
///
/// Sources: vllm-project/vllm, vllm/entrypoints/logger.py (0.9 to 0.26; request_logger.py in 0.27):
/// RequestLogger.log_inputs and log_outputs; vllm/logger.py (`%m-%d %H:%M:%S`, no year); pull
/// request 26713, which moved prompts to the level DEBUG; openai/serving_chat.py, which logs the
/// deltas of a stream and then its whole text. A line of 0.16 stands in vLLM's issue 34503.
std::unique_ptr<workloads::TraceReader> make_vllm_log_reader(
    std::unique_ptr<std::istream> in, std::string file, const workloads::TraceReadOptions& options);

/// The base of readers of files that do not hold requests in the order of their times: reads the
/// whole file, then hands out the records in the order of their times, counted from the
/// first. Records of one instant keep the file's order. All records are in memory.
class SortedTraceReader : public workloads::TraceReader {
 public:
  SortedTraceReader(std::string file, bool from_first)
      : file_(std::move(file)), from_first_(from_first) {}

  const Diagnostics& diagnostics() const override { return diagnostics_; }
  std::string file() const final { return file_; }
  bool next(workloads::TraceRecord& record) final {
    if (!read_) read_all();
    if (position_ == records_.size()) return false;
    record = std::move(records_[position_++]);
    return true;
  }

 protected:
  /// Appends the records in the file's order. Whether there was no error.
  virtual bool collect(std::vector<workloads::TraceRecord>& records) = 0;

  std::string file_;
  Diagnostics diagnostics_;

 private:
  void read_all() {
    read_ = true;
    // Rows before a broken one are of no use: the error ends the run.
    if (!collect(records_)) records_.clear();
    std::stable_sort(records_.begin(), records_.end(),
                     [](const workloads::TraceRecord& a, const workloads::TraceRecord& b) {
                       return a.at < b.at;
                     });
    if (!from_first_ || records_.empty()) return;
    const Duration first = records_.front().at;
    for (workloads::TraceRecord& record : records_) record.at -= first;
  }

  bool from_first_;
  bool read_ = false;
  std::vector<workloads::TraceRecord> records_;
  std::size_t position_ = 0;
};

}  // namespace routesim::tools
