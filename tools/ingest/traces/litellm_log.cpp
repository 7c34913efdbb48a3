#include <optional>
#include <utility>
#include <vector>

#include "tools/ingest/traces/log_readers.h"
#include "workloads/traces/jsonl_trace.h"
#include "workloads/traces/line_trace_reader.h"
#include "workloads/traces/text_blocks.h"

namespace routesim::tools {
namespace {

using workloads::JsonScanner;
using workloads::LineTraceReader;
using workloads::read_prompt_text;
using workloads::read_trace_name;
using workloads::read_trace_time;
using workloads::TextBlocks;
using workloads::TraceReader;
using workloads::TraceReadOptions;
using workloads::TraceRecord;

/// The mark in place of a text that the proxy was told not to log.
constexpr std::string_view kRedacted = "redacted-by-litellm";

class LiteLlmReader final : public LineTraceReader {
 public:
  LiteLlmReader(std::unique_ptr<std::istream> in, std::string file, const TraceReadOptions& options)
      : LineTraceReader(std::move(in), std::move(file), /*from_first=*/false, /*in_order=*/false),
        text_scale_(options.text_scale) {}

 protected:
  Row parse(const std::string& line, TraceRecord& record) override {
    row_ = {};
    JsonScanner json(line, line_number());
    columns_of_values = {};
    (void)json.document([&](const std::string& key) { return read(json, line, key, record); });
    if (!json.ok()) return fail(json.error(), {}, json.column());
    if (row_.left_out || (row_.has_output && record.output_tokens == 0)) return Row::kSkip;
    if (!row_.has_time) return fail("`startTime` is missing");
    if (!row_.has_input) return fail("`prompt_tokens` is missing");
    if (!row_.has_output) return fail("`completion_tokens` is missing");
    record.session = row_.session != 0 ? row_.session : row_.trace;
    const std::optional<TextBlocks>& text = row_.messages ? row_.messages : row_.request;
    if (!text || line.find(kRedacted) != std::string::npos) return Row::kRecord;
    record.hash_ids = text->ids();
    record.id_tokens = workloads::kTextBlockTokens;
    record.text_tokens = text->tokens();
    return Row::kRecord;
  }

 private:
  struct RowState {
    bool has_time = false, has_input = false, has_output = false;
    bool left_out = false;
    std::uint64_t session = 0, trace = 0;
    std::optional<TextBlocks> messages, request;
  };

  bool read(JsonScanner& json, std::string_view line, const std::string& key, TraceRecord& record) {
    const int column = json.value_column();
    if (key == "startTime") {
      columns_of_values.time = column;
      row_.has_time = true;
      return read_trace_time(json, 1, record.at);
    }
    if (key == "prompt_tokens") {
      columns_of_values.input = column;
      row_.has_input = true;
      return json.read_integer(record.input_tokens);
    }
    if (key == "completion_tokens") {
      columns_of_values.output = column;
      row_.has_output = true;
      return json.read_integer(record.output_tokens);
    }
    if (key == "session_id") return read_trace_name(json, row_.session);
    if (key == "trace_id") return read_trace_name(json, row_.trace);
    if (key == "messages") return read_text(json, line, row_.messages);
    if (key == "proxy_server_request") return read_body(json, line);
    std::string_view value;
    if (!json.skip_raw(line, value)) return false;
    if (key == "status") row_.left_out = row_.left_out || value == "\"failure\"";
    // A payload has a truth value, a row of the spend logs its name in Python.
    if (key == "cache_hit") row_.left_out = row_.left_out || value == "true" || value == "\"True\"";
    return true;
  }

  /// Messages, or JSON of messages in a text, as the spend logs have them. Objects and empty texts
  /// stand for prompts that were not logged.
  bool read_text(JsonScanner& json, std::string_view line, std::optional<TextBlocks>& out) {
    if (json.peek() == JsonScanner::Kind::kArray) {
      out.emplace(text_scale_);
      return read_prompt_text(json, line, *out);
    }
    if (json.peek() != JsonScanner::Kind::kString) return json.skip();
    std::string text;
    if (!json.read_string(text)) return false;
    if (text.empty() || text == "{}" || text == "[]") return true;
    out.emplace(text_scale_);
    JsonScanner inner(text);
    if (text.front() == '[' && read_prompt_text(inner, text, *out)) return true;
    out.emplace(text_scale_);
    out->add(text);
    return true;
  }

  /// The body of the request, as JSON or as JSON in a text.
  bool read_body(JsonScanner& json, std::string_view line) {
    if (json.peek() == JsonScanner::Kind::kObject) return read_request(json, line);
    if (json.peek() != JsonScanner::Kind::kString) return json.skip();
    std::string text;
    if (!json.read_string(text)) return false;
    JsonScanner inner(text);
    if (inner.peek() == JsonScanner::Kind::kObject && !read_request(inner, text))
      row_.request.reset();
    return true;
  }

  bool read_request(JsonScanner& json, std::string_view line) {
    return json.members([&](const std::string& key) {
      return key == "messages" || key == "prompt" ? read_text(json, line, row_.request)
                                                  : json.skip();
    });
  }

  double text_scale_;
  RowState row_;
};

/// Hands out the records of another reader in the order of their times.
class SortedLiteLlmReader final : public SortedTraceReader {
 public:
  SortedLiteLlmReader(std::unique_ptr<TraceReader> reader, bool from_first)
      : SortedTraceReader(reader->file(), from_first), reader_(std::move(reader)) {}

  const Diagnostics& diagnostics() const override { return reader_->diagnostics(); }

 private:
  bool collect(std::vector<TraceRecord>& records) override {
    for (TraceRecord record; reader_->next(record);) records.push_back(record);
    return !reader_->diagnostics().has_errors();
  }

  std::unique_ptr<TraceReader> reader_;
};

}  // namespace

std::unique_ptr<TraceReader> make_litellm_reader(std::unique_ptr<std::istream> in, std::string file,
                                                 const TraceReadOptions& options) {
  return std::make_unique<SortedLiteLlmReader>(
      std::make_unique<LiteLlmReader>(std::move(in), std::move(file), options), options.from_first);
}

}  // namespace routesim::tools
