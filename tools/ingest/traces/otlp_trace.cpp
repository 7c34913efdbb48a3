#include <array>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tools/ingest/traces/log_readers.h"
#include "workloads/traces/jsonl_trace.h"
#include "workloads/traces/line_trace_reader.h"
#include "workloads/traces/text_blocks.h"

namespace routesim::tools {
namespace {

using workloads::hash_bytes;
using workloads::JsonScanner;
using workloads::LineReader;
using workloads::parse_integer;
using workloads::read_prompt_text;
using workloads::TextBlocks;
using workloads::TraceReader;
using workloads::TraceReadOptions;
using workloads::TraceRecord;

/// The meaning of an attribute of a span to this reader.
enum class Meaning : std::uint8_t { kInput, kOutput, kSession, kOperation, kMessages };
constexpr std::size_t kMeanings = 5;

/// If a span has several names of one meaning, the first in this list counts.
constexpr std::array<std::pair<std::string_view, Meaning>, 12> kAttributes = {{
    {"gen_ai.usage.input_tokens", Meaning::kInput},
    {"gen_ai.usage.prompt_tokens", Meaning::kInput},
    {"llm.token_count.prompt", Meaning::kInput},
    {"llm.usage.prompt_tokens", Meaning::kInput},
    {"gen_ai.usage.output_tokens", Meaning::kOutput},
    {"gen_ai.usage.completion_tokens", Meaning::kOutput},
    {"llm.token_count.completion", Meaning::kOutput},
    {"llm.usage.completion_tokens", Meaning::kOutput},
    {"gen_ai.conversation.id", Meaning::kSession},
    {"session.id", Meaning::kSession},
    {"gen_ai.operation.name", Meaning::kOperation},
    {"gen_ai.input.messages", Meaning::kMessages},
}};
constexpr std::size_t kMostKeys = 1000;
/// A batch of the collector has 8,192 spans by default, and spans may hold prompts.
constexpr std::size_t kLongestLine = 256U << 20U;

class OtlpReader final : public SortedTraceReader {
 public:
  OtlpReader(std::unique_ptr<std::istream> in, std::string file, const TraceReadOptions& options)
      : SortedTraceReader(std::move(file), options.from_first),
        in_(std::move(in)),
        text_scale_(options.text_scale) {}

 private:
  struct Value {
    std::string text{};
    int column = 0;                         ///< 0: the span has none.
    std::size_t rank = kAttributes.size();  ///< Its name's place in kAttributes.
  };
  /// The span that is being read.
  struct Span {
    std::string trace{}, id{}, parent{}, start{};
    bool failed = false;
    int column = 1;
    std::array<Value, kMeanings> values{};
    std::vector<std::pair<std::string, int>> keys{};
  };
  struct Request {
    std::uint64_t span, trace;
    TraceRecord record{};
  };
  struct Node {
    std::uint64_t parent;
    bool is_request;
  };

  bool collect(std::vector<TraceRecord>& records) override {
    LineReader lines(*in_, kLongestLine);
    while (lines.next(line_)) {
      JsonScanner json(line_, lines.line_number());
      json_ = &json;
      const auto spans = [&] { return under({"spans"}, [&] { return read_span(); }); };
      const auto scopes = [&] {
        return under({"scopeSpans", "instrumentationLibrarySpans"}, spans);
      };
      (void)under({"resourceSpans"}, scopes);
      if (json.ok() && !json.at_end()) json.fail("text behind the object");
      if (json.ok()) continue;
      diagnostics_.error({file_, static_cast<int>(json.line()), json.column()}, "", json.error(),
                         "each line is one export; jq -c . makes lines of a file with breaks");
      return false;
    }
    if (lines.too_long())
      diagnostics_.error({file_, static_cast<int>(lines.line_number()), 1}, "",
                         "the line is longer than 256 MiB", "export smaller batches");
    return !lines.too_long() && choose(records);
  }

  /// Calls `f` for each item of the lists with these names in an object.
  template <class F>
  bool under(std::initializer_list<std::string_view> names, const F& f) {
    return json_->members([&](const std::string& key) {
      const bool wanted = std::find(names.begin(), names.end(), key) != names.end();
      return wanted ? json_->elements(f) : json_->skip();
    });
  }

  bool read_span() {
    span_ = {};
    span_.column = json_->value_column();
    const bool good = json_->members([&](const std::string& key) {
      if (key == "traceId") return read_scalar(span_.trace);
      if (key == "spanId") return read_scalar(span_.id);
      if (key == "parentSpanId") return read_scalar(span_.parent);
      if (key == "startTimeUnixNano") return read_scalar(span_.start);
      if (key == "attributes") return json_->elements([&] { return read_attribute(); });
      if (key != "status") return json_->skip();
      return json_->members([&](const std::string& member) {
        std::string code;
        if (!read_scalar(code)) return false;
        span_.failed |= member == "code" && (code == "2" || code == "STATUS_CODE_ERROR");
        return true;
      });
    });
    return good && finish_span();
  }

  bool read_attribute() {
    std::string key, text;
    int key_column = 1, column = 1;
    bool is_structure = false;
    const bool good = json_->members([&](const std::string& member) {
      if (member == "key") {
        key_column = json_->value_column();
        return json_->read_string(key);
      }
      if (member != "value") return json_->skip();
      return json_->members([&](const std::string&) {
        column = json_->value_column();
        is_structure = json_->peek() == JsonScanner::Kind::kObject;
        return read_scalar(text);
      });
    });
    if (!good) return false;
    if (is_structure && key == kAttributes.back().first) ++structures_;
    for (std::size_t rank = 0; rank < kAttributes.size(); ++rank) {
      Value& value = span_.values[static_cast<std::size_t>(kAttributes[rank].second)];
      if (key == kAttributes[rank].first && rank < value.rank)
        value = {.text = std::move(text), .column = column, .rank = rank};
    }
    span_.keys.emplace_back(std::move(key), key_column);
    return true;
  }

  /// A text, or a number as it stands; empty for other values, which are skipped.
  bool read_scalar(std::string& out) {
    out.clear();
    const auto kind = json_->peek();
    if (kind == JsonScanner::Kind::kString) return json_->read_string(out);
    std::string_view value;
    if (!json_->skip_raw(line_, value)) return false;
    if (kind == JsonScanner::Kind::kNumber) out = value;
    return true;
  }

  const Value& value(Meaning meaning) const {
    return span_.values[static_cast<std::size_t>(meaning)];
  }

  bool finish_span() {
    const std::string& operation = value(Meaning::kOperation).text;
    const bool is_call = operation.empty() || operation == "chat" ||
                         operation == "text_completion" || operation == "generate_content";
    const bool has_counts = value(Meaning::kInput).column > 0 && value(Meaning::kOutput).column > 0;
    Request request{.span = hash_bytes(span_.trace + span_.id), .trace = hash_bytes(span_.trace)};
    TraceRecord& record = request.record;
    if (has_counts && (!read_count(Meaning::kInput, record.input_tokens) ||
                       !read_count(Meaning::kOutput, record.output_tokens)))
      return false;
    const bool is_request = is_call && has_counts && record.output_tokens > 0;
    nodes_.try_emplace(request.span, Node{hash_bytes(span_.trace + span_.parent), is_request});
    if (!is_call && value(Meaning::kInput).column > 0) ++other_;
    if (is_call && !is_request && value(Meaning::kInput).column > 0) ++unanswered_;
    if (!is_request) return true;
    note_keys();
    if (span_.failed) {
      ++failed_;
      return true;
    }
    const auto start = parse_integer(span_.start);
    if (!start || !workloads::trace_time(static_cast<double>(*start), 1e-9))
      return json_->fail_at("`startTimeUnixNano` is missing or no time", span_.column);
    record.at = Duration::nanoseconds(*start);
    record.line = json_->line();
    record.input_column = value(Meaning::kInput).column;
    const std::string& session = value(Meaning::kSession).text;
    record.session = session.empty() ? 0 : hash_bytes(session) | 1;
    read_text(record);
    requests_.push_back(std::move(request));
    return true;
  }

  bool read_count(Meaning meaning, std::int64_t& out) {
    const auto count = parse_integer(value(meaning).text);
    out = count.value_or(-1);
    return (out >= 0 && out <= workloads::kMaxTokens) ||
           json_->fail_at("tokens must be a whole number between 0 and 100,000,000 (got \"" +
                              value(meaning).text + "\")",
                          value(meaning).column);
  }

  void read_text(TraceRecord& record) const {
    const std::string& messages = value(Meaning::kMessages).text;
    if (messages.empty()) return;
    TextBlocks text(text_scale_);
    JsonScanner inner(messages);
    if (messages.front() != '[' || !read_prompt_text(inner, messages, text)) {
      text = TextBlocks(text_scale_);
      text.add(messages);
    }
    record.hash_ids = text.ids();
    record.id_tokens = workloads::kTextBlockTokens;
    record.text_tokens = text.tokens();
  }

  /// Notes the attributes of a request's span, each at its first place.
  void note_keys() {
    for (const auto& [key, column] : span_.keys) {
      if (noted_.size() == kMostKeys || !noted_.insert(key).second) continue;
      const bool used = std::any_of(kAttributes.begin(), kAttributes.end(),
                                    [&](const auto& known) { return known.first == key; });
      diagnostics_.key(key_use({file_, static_cast<int>(json_->line()), column}, "trace", key,
                               used ? Fate::kUsed : Fate::kNoEffect,
                               used ? "" : "requests have times, lengths, texts and sessions"));
    }
  }

  bool is_inside_a_request(std::uint64_t span) const {
    constexpr int kMostLevels = 64;  // Parents may form a circle in a broken file.
    auto node = nodes_.find(span);
    for (int level = 0; level < kMostLevels && node != nodes_.end(); ++level) {
      node = nodes_.find(node->second.parent);
      if (node != nodes_.end() && node->second.is_request) return true;
    }
    return false;
  }

  /// Takes the outermost spans and says which are left out.
  bool choose(std::vector<TraceRecord>& records) {
    std::unordered_map<std::uint64_t, std::int64_t> turns;
    const std::size_t before = requests_.size();
    std::erase_if(requests_, [&](const Request& r) { return is_inside_a_request(r.span); });
    for (const Request& r : requests_) ++turns[r.trace];
    for (Request& r : requests_) {
      if (r.record.session == 0 && turns[r.trace] > 1) r.record.session = r.trace | 1;
      records.push_back(std::move(r.record));
    }
    std::string what;
    const auto add = [&](std::size_t n, const char* which) {
      if (n > 0) what += (what.empty() ? "" : ", ") + std::to_string(n) + " " + which;
    };
    add(failed_, "of failed requests");
    add(before - requests_.size(), "inside the span of the same request");
    add(unanswered_, "without answer tokens");
    add(other_, "of other operations, such as agents, tools and embeddings");
    if (!what.empty()) diagnostics_.warning({.file = file_}, "", "spans left out: " + what);
    if (structures_ > 0)
      diagnostics_.warning({.file = file_}, "",
                           "the messages of " + std::to_string(structures_) +
                               " spans are structures, which are not read: their prompts share "
                               "nothing by text",
                           "export " + std::string(kAttributes.back().first) + " as one text");
    if (!records.empty()) return true;
    diagnostics_.error({.file = file_}, "", "no span of a request has token counts",
                       "such as gen_ai.usage.prompt_tokens and gen_ai.usage.completion_tokens; "
                       "vLLM writes them with --otlp-traces-endpoint");
    return false;
  }

  std::unique_ptr<std::istream> in_;
  std::string line_;
  double text_scale_;
  JsonScanner* json_ = nullptr;
  Span span_;
  std::unordered_map<std::uint64_t, Node> nodes_;  ///< Every span: its parent.
  std::vector<Request> requests_;
  std::set<std::string> noted_;
  std::size_t failed_ = 0, unanswered_ = 0, other_ = 0;
  std::size_t structures_ = 0;  ///< Messages that are no text.
};

}  // namespace

std::unique_ptr<TraceReader> make_otlp_reader(std::unique_ptr<std::istream> in, std::string file,
                                              const TraceReadOptions& options) {
  return std::make_unique<OtlpReader>(std::move(in), std::move(file), options);
}

}  // namespace routesim::tools
