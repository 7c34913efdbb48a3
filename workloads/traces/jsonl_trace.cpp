#include "workloads/traces/jsonl_trace.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/rng.h"

namespace routesim::workloads {
namespace {

/// A message's content: a text, null, or parts of which those with a `text` count.
bool read_content(JsonScanner& json, std::string& out) {
  out.clear();
  if (json.peek() == JsonScanner::Kind::kString) return json.read_string(out);
  if (json.peek() != JsonScanner::Kind::kArray) return json.skip();
  std::string part;
  return json.elements([&] {
    return json.members([&](const std::string& key) {
      if (key != "text" || json.peek() != JsonScanner::Kind::kString) return json.skip();
      if (!json.read_string(part)) return false;
      out += part;
      return true;
    });
  });
}

/// One message, whose text is its content and its calls of tools, or else its parts as they stand
/// (OpenTelemetry), as ChatML writes it: <|im_start|>ROLE, a line end, the text, <|im_end|>, a line
/// end.
bool read_message(JsonScanner& json, std::string_view line, TextBlocks& out) {
  std::string role, content;
  std::string_view tool_calls;
  const bool good = json.members([&](const std::string& key) {
    if (key == "role") return json.read_string(role);
    if (key == "content") return read_content(json, content);
    if (key == "tool_calls" || key == "parts") return json.skip_raw(line, tool_calls);
    return json.skip();
  });
  out.add_tokens("<|im_start|>" + role + "\n", 3);
  out.add(content);
  out.add(tool_calls);
  out.add_tokens("<|im_end|>\n", 2);
  return good;
}

}  // namespace

TraceKey meaning_of(std::string_view key, const CsvColumns& columns) {
  const auto is_one_of = [&](const auto& names) {
    return std::find(names.begin(), names.end(), key) != names.end();
  };
  const std::pair<const std::string&, TraceKey> named[] = {
      {columns.timestamp, TraceKey::kTime},
      {columns.input, TraceKey::kInput},
      {columns.output, TraceKey::kOutput},
      {columns.session, TraceKey::kSession},
      {columns.prefix_group, TraceKey::kPrefixGroup},
      {columns.prefix_tokens, TraceKey::kPrefixTokens},
      {columns.text, TraceKey::kText},
      {columns.answer_text, TraceKey::kAnswerText},
  };
  if (key.empty()) return TraceKey::kNone;
  for (const auto& [name, meaning] : named)
    if (key == name) return meaning;
  if (key == "hash_ids") return TraceKey::kHashIds;
  if (key == "delay") return TraceKey::kDelay;
  if (columns.session == CsvColumns().session && is_one_of(kSessionKeys)) return TraceKey::kSession;
  if (columns.text.empty() && is_one_of(kPromptKeys)) return TraceKey::kText;
  if (columns.answer_text.empty() && is_one_of(kAnswerKeys)) return TraceKey::kAnswerText;
  return TraceKey::kNone;
}

bool read_prompt_text(JsonScanner& json, std::string_view line, TextBlocks& out) {
  std::string text;
  if (json.peek() == JsonScanner::Kind::kString) {
    if (!json.read_string(text)) return false;
    out.add(text);
    return true;
  }
  bool messages = false;
  const bool good = json.elements([&] {
    if (json.peek() == JsonScanner::Kind::kObject) {
      messages = true;
      return read_message(json, line, out);
    }
    std::int64_t token = 0;
    if (!json.read_integer(token)) return false;
    out.add_tokens(std::to_string(token) + ' ', 1);
    return true;
  });
  if (messages) out.add_tokens("<|im_start|>assistant\n", 3);
  return good;
}

bool read_trace_time(JsonScanner& json, double unit_s, Duration& out) {
  const int column = json.value_column();
  if (json.peek() == JsonScanner::Kind::kString) {
    std::string text;
    if (!json.read_string(text)) return false;
    const std::optional<std::int64_t> at = parse_date_time_ns(text);
    if (!at)
      return json.fail_at("expected a number or a date and time (got \"" + text + "\")", column);
    out = Duration::nanoseconds(*at);
    return true;
  }
  double value = 0;
  if (!json.read_real(value)) return false;
  const std::optional<Duration> at = trace_time(value, unit_s);
  if (!at) return json.fail_at("the time is negative or too large", column);
  out = *at;
  return true;
}

bool read_trace_name(JsonScanner& json, std::uint64_t& name) {
  if (json.peek() == JsonScanner::Kind::kNull) return json.skip();
  if (json.peek() == JsonScanner::Kind::kString) {
    std::string text;
    if (!json.read_string(text)) return false;
    name = text.empty() ? 0 : hash_bytes(text) | 1;
    return true;
  }
  std::int64_t id = 0;
  if (!json.read_integer(id)) return false;
  name = mix64(static_cast<std::uint64_t>(id)) | 1;
  return true;
}

namespace {

/// JSONL with Mooncake's keys, or with keys of the user's choice.
class JsonlReader final : public LineTraceReader {
 public:
  JsonlReader(std::unique_ptr<std::istream> in, std::string file, const TraceReadOptions& options,
              CsvColumns columns)
      : LineTraceReader(std::move(in), std::move(file), options.from_first),
        columns_(std::move(columns)),
        text_scale_(options.text_scale) {}

 protected:
  Row parse(const std::string& line, TraceRecord& record) override {
    JsonScanner json(line, line_number());
    record.at = Duration::zero();
    columns_of_values = {};
    seen_.fill(false);
    session_key_.clear();
    TextBlocks text(text_scale_);
    (void)json.document([&](const std::string& key) {
      const TraceKey meaning = meaning_of(key, columns_);
      if (meaning == TraceKey::kNone) return json.skip();
      const int column = json.value_column();
      // If the session has several names, the one in `columns` counts.
      const bool other_name = meaning == TraceKey::kSession && key != session_key_;
      if (other_name && seen(meaning) && key != columns_.session) return json.skip();
      if (std::exchange(seen(meaning), true) && !other_name)
        return twice(json, key, meaning, column);
      if (meaning == TraceKey::kSession) session_key_ = key;
      if (meaning == TraceKey::kText) {
        text_key_ = key;
        return read_prompt_text(json, line, text);
      }
      return read(json, meaning, column, record);
    });
    if (!json.ok()) return fail(json.error(), {}, json.column());
    return complete(text, record);
  }

 private:
  bool& seen(TraceKey key) { return seen_[static_cast<std::size_t>(key)]; }

  bool twice(JsonScanner& json, const std::string& key, TraceKey meaning, int column) {
    const bool same = meaning != TraceKey::kText || key == text_key_;
    return json.fail_at(same ? "the key `" + key + "` stands here twice"
                             : "`" + text_key_ + "` and `" + key +
                                   "` are both texts of the prompt: name one in columns.text",
                        column);
  }

  /// Reads the value of a key that is not the prompt's text.
  bool read(JsonScanner& json, TraceKey meaning, int column, TraceRecord& record) {
    Columns& at = columns_of_values;
    switch (meaning) {
      case TraceKey::kTime:
        at.time = column;
        return read_trace_time(json, columns_.timestamp_unit_s, record.at);
      case TraceKey::kInput:
        at.input = column;
        return json.read_integer(record.input_tokens);
      case TraceKey::kOutput:
        at.output = column;
        return json.read_integer(record.output_tokens);
      case TraceKey::kHashIds:
        record.ids_column = column;
        return json.read_integers(record.hash_ids);
      case TraceKey::kSession:
        return read_trace_name(json, record.session);
      case TraceKey::kPrefixGroup:
        return read_trace_name(json, record.prefix_group);
      case TraceKey::kPrefixTokens:
        at.prefix = column;
        return json.read_integer(record.prefix_tokens);
      case TraceKey::kDelay:
        return read_trace_time(json, columns_.timestamp_unit_s, record.delay.emplace());
      default:
        return read_answer(json);
    }
  }

  /// Checks that nothing is missing, and fills in what a text says.
  Row complete(const TextBlocks& text, TraceRecord& record) {
    const bool has_text = seen(TraceKey::kText) && record.hash_ids.empty();
    if (!seen(TraceKey::kInput) && !has_text) return fail("`" + columns_.input + "` is missing");
    if (!seen(TraceKey::kOutput) && !seen(TraceKey::kAnswerText))
      return fail("`" + columns_.output + "` is missing");
    if (!seen(TraceKey::kTime) && !record.delay && !columns_.timestamp.empty())
      return fail("`" + columns_.timestamp + "` is missing");
    if (record.prefix_group != 0 && !seen(TraceKey::kPrefixTokens))
      return fail("`" + columns_.prefix_tokens + "` is missing");
    if (!seen(TraceKey::kOutput)) record.output_tokens = answer_tokens_;
    if (!has_text) return Row::kRecord;
    record.hash_ids = text.ids();
    record.id_tokens = kTextBlockTokens;
    if (seen(TraceKey::kInput))
      record.text_tokens = text.tokens();
    else
      record.input_tokens = text.tokens();
    return Row::kRecord;
  }

  /// An answer that is no text, such as a whole response of the API, tells no length.
  bool read_answer(JsonScanner& json) {
    if (json.peek() != JsonScanner::Kind::kString) {
      seen(TraceKey::kAnswerText) = false;
      return json.skip();
    }
    if (!json.read_string(text_)) return false;
    TextBlocks answer(text_scale_);
    answer.add(text_);
    answer_tokens_ = answer.tokens();
    return true;
  }

  CsvColumns columns_;
  double text_scale_;
  std::string text_;                    ///< Scratch.
  std::string text_key_, session_key_;  ///< As they are called in this line.
  std::int64_t answer_tokens_ = 0;
  std::array<bool, static_cast<std::size_t>(TraceKey::kAnswerText) + 1> seen_{};
};

}  // namespace

std::unique_ptr<TraceReader> make_jsonl_reader(std::unique_ptr<std::istream> in, std::string file,
                                               const TraceReadOptions& options,
                                               const CsvColumns& columns) {
  return std::make_unique<JsonlReader>(std::move(in), std::move(file), options, columns);
}

}  // namespace routesim::workloads
