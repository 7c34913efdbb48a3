// LLM calls recorded as OpenTelemetry spans. Follows inference-perf's
// otel_trace_to_replay_graph and otel_trace_utils.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "tools/ingest/traces/recordings.h"
#include "workloads/traces/text_scan.h"

namespace routesim::tools {
namespace {

using workloads::RecordedCall;
using workloads::RecordedMessage;
using workloads::RecordedMessagePtr;
using workloads::RecordedPart;
using workloads::Recording;

/// Keeps the order of members, because recorded texts are written from it.
using Json = nlohmann::ordered_json;

constexpr int kMostNesting = 64;
constexpr std::int64_t kMillisecond = 1'000'000;

/// An error in a JSON text, and its byte, counted from 1.
struct JsonProblem {
  std::string what;
  std::size_t byte = 0;
};

/// The value of a JSON text. Nothing, with `problem` set, when it has none.
std::optional<Json> parse_json(std::string_view text, JsonProblem& problem) {
  bool too_deep = false;
  const auto keep = [&too_deep](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kMostNesting;
    return depth <= kMostNesting;
  };
  try {
    Json value = Json::parse(text.begin(), text.end(), keep);
    if (!too_deep) return value;
    problem = {"nested too deeply", 1};
  } catch (const Json::parse_error& e) {
    const std::string_view what = e.what();
    const std::size_t place = what.find("column ");
    problem = {printable(what.substr(what.find(": ", std::min(place, what.size())) + 2), 200),
               e.byte};
  }
  return std::nullopt;
}

/// The member of an object; null when it has none of that name.
const Json* member_of(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(std::string(key));
  return found == object.end() ? nullptr : &*found;
}

/// The text of a member that is a text, else empty.
std::string_view member_text(const Json& object, std::string_view key) {
  const Json* value = member_of(object, key);
  return value != nullptr && value->is_string()
             ? std::string_view(value->get_ref<const std::string&>())
             : std::string_view();
}

/// The items of a member that is a list, else none.
const Json::array_t& list_at(const Json& object, std::string_view key) {
  static const Json::array_t kNone;
  const Json* value = member_of(object, key);
  return value != nullptr && value->is_array() ? value->get_ref<const Json::array_t&>() : kNone;
}

/// Whether Python takes the value for false: absent, null, false, zero, or empty.
bool is_empty(const Json* value) {
  if (value == nullptr || value->is_null()) return true;
  if (value->is_boolean()) return !value->get<bool>();
  if (value->is_number()) return value->get<double>() == 0;
  return value->is_string() ? value->get_ref<const std::string&>().empty() : value->empty();
}

/// The value as Python's json.dumps writes it.
std::string dump(const Json& value) {
  if (!value.is_structured()) return value.dump(-1, ' ', /*ensure_ascii=*/true);
  std::string out(1, value.is_object() ? '{' : '[');
  for (const auto& [key, item] : value.items()) {
    if (out.size() > 1) out += ", ";
    if (value.is_object()) out += Json(key).dump(-1, ' ', true) + ": ";
    out += dump(item);
  }
  return out + (value.is_object() ? '}' : ']');
}

/// A value as Python puts it into a text.
std::string as_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : dump(value);
}

/// The first of two members that holds something.
const Json* either(const Json& object, std::string_view first, std::string_view second) {
  const Json* value = member_of(object, first);
  return is_empty(value) ? member_of(object, second) : value;
}

std::string tool_call_text(const Json& call) {
  const Json* name = member_of(call, "name");
  const Json* arguments = either(call, "arguments", "input");
  return "<|tool_call|>" + (name == nullptr ? "unknown_tool" : as_text(*name)) + "<|tool_args|>" +
         (arguments == nullptr ? "{}" : as_text(*arguments)) + "<|end|>";
}

std::string tool_result_text(const Json& result) {
  const Json* id = either(result, "tool_use_id", "id");
  const Json* content = either(result, "content", "result");
  return "<tool_result: " + (id == nullptr ? "unknown" : as_text(*id)) +
         (is_empty(member_of(result, "is_error")) ? "" : " [ERROR]") + ">\n" +
         (content == nullptr ? "" : as_text(*content)) + "\n</tool_result>";
}

const Json* text_of_piece(const Json& piece) {
  const Json* text = member_of(piece, "text");
  return text != nullptr ? text : member_of(piece, "content");
}

/// Lines of text, joined as they come.
class Lines {
 public:
  void add(const std::string& line) {
    if (any_) text_ += '\n';
    text_ += line;
    any_ = true;
  }
  void add(const Json* value) {
    if (value != nullptr) add(as_text(*value));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  bool any_ = false;
};

/// The text of a message in pieces; `listed` when they are its content, not its parts.
std::string pieces_text(const Json::array_t& pieces, bool listed) {
  Lines lines;
  for (const Json& piece : pieces) {
    const std::string_view type = member_text(piece, "type");
    if (listed && piece.is_string())
      lines.add(&piece);
    else if (type == "tool_result" || type == "tool_call_response")
      lines.add(tool_result_text(piece));
    else if (type == "tool_use" || (type == "tool_call" && !listed))
      lines.add(tool_call_text(piece));
    else if (type == "text" || listed)
      lines.add(text_of_piece(piece));
  }
  return lines.take();
}

/// The tool calls of a message as parts: name and arguments may be nested in `function`.
Json::array_t calls_of(const Json& message) {
  Json::array_t out;
  for (const Json& call : list_at(message, "tool_calls")) {
    const Json* function = member_of(call, "function");
    const bool nested = function != nullptr && function->is_object();
    const Json& from = nested ? *function : call;
    if (!nested && member_of(call, "name") == nullptr) continue;
    const auto value = [](const Json& object, const char* key) {
      const Json* found = member_of(object, key);
      return found == nullptr ? Json() : *found;
    };
    out.push_back({{"type", "tool_call"},
                   {"id", value(call, "id")},
                   {"name", value(from, "name")},
                   {"arguments", value(from, "arguments")}});
  }
  for (const Json& part : list_at(message, "parts"))
    if (member_text(part, "type") == "tool_call") out.push_back(part);
  return out;
}

/// The text of a prompt's message: content (a text or pieces), parts, or tool calls.
std::string input_text(const Json& message) {
  const Json* content = member_of(message, "content");
  if (content != nullptr && content->is_string()) return content->get<std::string>();
  if (content != nullptr && content->is_array())
    return pieces_text(list_at(message, "content"), true);
  if (content != nullptr && !content->is_null()) return {};
  if (member_of(message, "parts") != nullptr) return pieces_text(list_at(message, "parts"), false);
  return pieces_text(calls_of(message), false);
}

/// The text of an answer: its content, then its tool calls.
std::string output_text(const Json& message) {
  Lines lines;
  if (!member_text(message, "content").empty()) lines.add(member_of(message, "content"));
  for (const Json& piece : list_at(message, "content"))
    lines.add(piece.is_string() ? &piece : member_of(piece, "text"));
  for (const Json& part : list_at(message, "parts"))
    if (member_text(part, "type") == "text") lines.add(text_of_piece(part));
  for (const Json& call : calls_of(message)) lines.add(tool_call_text(call));
  const Json* call = member_of(message, "function_call");
  if (call != nullptr && call->is_object()) lines.add(tool_call_text(*call));
  return lines.take();
}

/// Content and tool calls of a message as parts, in that order.
Json::array_t as_parts(const Json& message) {
  Json::array_t parts = list_at(message, "content");
  if (const std::string_view text = member_text(message, "content"); !text.empty())
    parts.push_back({{"type", "text"}, {"content", text}});
  for (Json& call : calls_of(message)) parts.push_back(std::move(call));
  return parts;
}

std::vector<std::string> ids_of(const Json::array_t& calls, bool only_typed) {
  std::vector<std::string> out;
  for (const Json& call : calls) {
    const std::string_view id = member_text(call, "id");
    if (!id.empty() && (!only_typed || member_text(call, "type") == "tool_call"))
      out.emplace_back(id);
  }
  return out;
}

/// Ids of the tool calls that a message makes.
std::vector<std::string> call_ids_of(const Json& message) {
  const Json* calls = member_of(message, "tool_calls");
  if (calls != nullptr && calls->is_array()) return ids_of(list_at(message, "tool_calls"), false);
  return ids_of(list_at(message, "parts"), true);
}

/// The pieces of an answer that has parts.
std::vector<RecordedPart> answer_parts(const Json& message) {
  std::vector<RecordedPart> out;
  for (const Json& part : list_at(message, "parts")) {
    const bool call = member_text(part, "type") == "tool_call";
    const Json* content = member_of(part, "content");
    out.push_back({.tool_call = call,
                   .text = call                 ? tool_call_text(part)
                           : content == nullptr ? std::string()
                                                : as_text(*content),
                   .id = std::string(call ? member_text(part, "id") : "")});
  }
  return out;
}

bool has_call_without_id(const Json& message) {
  const auto without_id = [](const Json& call) {
    const Json* id = member_of(call, "id");
    return id == nullptr || id->is_null();
  };
  for (const Json& part : list_at(message, "parts"))
    if (member_text(part, "type") == "tool_call" && without_id(part)) return true;
  const Json::array_t& calls = list_at(message, "tool_calls");
  return std::any_of(calls.begin(), calls.end(), without_id);
}

/// A recorded message of a prompt. Null, with `problem` set, when it has no role.
RecordedMessagePtr message_of(const Json& message, std::string& problem) {
  const std::string_view role = member_text(message, "role");
  if (role.empty() || has_call_without_id(message)) {
    problem = role.empty() ? "a message without role"
                           : "a tool call without id, which no result can refer to";
    return nullptr;
  }
  auto out = std::make_shared<RecordedMessage>();
  // `developer` is the newer word for what servers call `system`.
  out->role = role == "developer" ? "system" : role;
  const Json* calls = member_of(message, "tool_calls");
  if (member_of(message, "content") != nullptr && calls != nullptr && !calls->is_null()) {
    const Json::array_t parts = as_parts(message);
    out->text = pieces_text(parts, false);
    out->call_ids = ids_of(parts, true);
  } else {
    out->text = input_text(message);
    out->call_ids = call_ids_of(message);
  }
  return out;
}

/// Nanoseconds since 1970 of an ISO 8601 time with any offset.
std::optional<std::int64_t> nanoseconds_of(std::string_view text) {
  std::int64_t offset_s = 0;
  if (text.size() > 16) {
    const std::string_view zone = text.substr(text.size() - 6);
    if ((zone[0] == '+' || zone[0] == '-') && zone[3] == ':') {
      const auto hours = workloads::parse_integer(zone.substr(1, 2));
      const auto minutes = workloads::parse_integer(zone.substr(4, 2));
      if (!hours || !minutes || *hours < 0 || *minutes < 0) return std::nullopt;
      offset_s = (*hours * 60 + *minutes) * (zone[0] == '+' ? 60 : -60);
      text.remove_suffix(6);
    }
  }
  const std::optional<std::int64_t> local = workloads::parse_date_time_ns(text);
  if (!local) return std::nullopt;
  return *local - offset_s * 1'000'000'000;
}

std::optional<std::int64_t> tokens_at(const Json& attributes, std::string_view first,
                                      std::string_view second) {
  const Json* value = member_of(attributes, first);
  if (value == nullptr || value->is_null()) value = member_of(attributes, second);
  if (value == nullptr) return std::nullopt;
  const std::optional<std::int64_t> tokens = workloads::parse_integer(as_text(*value));
  if (!tokens || *tokens < 0 || *tokens > kMostRecordedTokens) return std::nullopt;
  return tokens;
}

/// An attribute that is a value, or a text that holds one.
std::optional<Json> attribute(const Json& attributes, std::string_view key) {
  const Json* value = member_of(attributes, key);
  if (value == nullptr) return std::nullopt;
  JsonProblem ignored;
  return value->is_string() ? parse_json(value->get_ref<const std::string&>(), ignored) : *value;
}

const Json& attributes_of(const Json& span) {
  static const Json kNone;
  const Json* attributes = member_of(span, "attributes");
  return attributes == nullptr ? kNone : *attributes;
}

bool is_call(const Json& span, bool include_errors) {
  const Json& attributes = attributes_of(span);
  if (member_text(attributes, "gen_ai.operation.name") != "chat" &&
      !member_text(span, "name").starts_with("chat "))
    return false;
  if (is_empty(member_of(attributes, "gen_ai.input.messages"))) return false;
  const Json* status = member_of(span, "status");
  const Json* code = status == nullptr ? nullptr : member_of(*status, "code");
  return include_errors || code == nullptr || !code->is_number() || code->get<double>() != 2;
}

/// The spans in the order of their ids, without those that repeat another.
std::vector<const Json*> distinct(const Json::array_t& spans) {
  std::vector<const Json*> sorted, out;
  for (const Json& span : spans) sorted.push_back(&span);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Json* a, const Json* b) {
    return member_text(*a, "span_id") < member_text(*b, "span_id");
  });
  std::set<std::string> seen;
  for (const Json* span : sorted) {
    std::string text(member_text(*span, "start_time"));
    text.append("|").append(member_text(*span, "end_time")).append("|");
    text += nlohmann::json(attributes_of(*span)).dump();  // Members in the order of their names.
    if (seen.insert(std::move(text)).second) out.push_back(span);
  }
  return out;
}

/// Sets the answer, when one was recorded. False when it cannot be understood.
bool read_answer(const Json& attributes, RecordedCall& out, std::string& problem) {
  auto message = std::make_shared<RecordedMessage>();
  message->role = "assistant";
  for (const char* key : {"gen_ai.output.text", "gen_ai.completion", "gen_ai.output"}) {
    const Json* value = member_of(attributes, key);
    if (value == nullptr || !value->is_string()) continue;
    message->text = value->get<std::string>();
    out.answer = std::move(message);
    return true;
  }
  if (member_of(attributes, "gen_ai.output.messages") == nullptr) return true;
  const std::optional<Json> messages = attribute(attributes, "gen_ai.output.messages");
  if (!messages) {
    problem = "gen_ai.output.messages is no JSON";
    return false;
  }
  if (!messages->is_array() || messages->empty() || !messages->front().is_object()) return true;
  if (messages->size() > 1) {
    problem = "gen_ai.output.messages has more than one message";
    return false;
  }
  const Json& first = messages->front();
  message->text = output_text(first);
  message->parts = answer_parts(first);
  message->call_ids = call_ids_of(first);
  out.answer_calls_tools = !is_empty(member_of(first, "tool_calls")) ||
                           std::any_of(message->parts.begin(), message->parts.end(),
                                       [](const RecordedPart& part) { return part.tool_call; });
  out.answer = std::move(message);
  return true;
}

bool read_messages(const Json& attributes, RecordedCall& out, std::string& problem) {
  const std::optional<Json> messages = attribute(attributes, "gen_ai.input.messages");
  if (!messages) {
    problem = "gen_ai.input.messages is no JSON";
    return false;
  }
  if (!messages->is_array()) return true;
  for (const Json& message : *messages) {
    out.messages.push_back(message_of(message, problem));
    if (out.messages.back() == nullptr) return false;
  }
  return true;
}

/// One span; its times are in nanoseconds since 1970 still.
bool read_span(const Json& span, RecordedCall& out, std::string& problem) {
  const Json& attributes = attributes_of(span);
  const std::optional<std::int64_t> start = nanoseconds_of(member_text(span, "start_time"));
  const std::string_view end_text = member_text(span, "end_time");
  const std::optional<std::int64_t> end = end_text.empty() ? start : nanoseconds_of(end_text);
  if (!start || !end) {
    problem = !start ? "start_time is no time" : "end_time is no time";
    return false;
  }
  out.start_ms = *start;
  out.end_ms = *end;
  out.prompt_tokens =
      tokens_at(attributes, "gen_ai.usage.prompt_tokens", "gen_ai.usage.input_tokens");
  out.output_tokens =
      tokens_at(attributes, "gen_ai.usage.completion_tokens", "gen_ai.usage.output_tokens");
  const std::optional<Json> tools = attribute(attributes, "gen_ai.tool.definitions");
  if (tools && tools->is_array() && !tools->empty()) out.tools = dump(*tools);
  return read_messages(attributes, out, problem) && read_answer(attributes, out, problem);
}

/// The calls of a session by start. `problem` says why there are none when the spans cannot be
/// replayed.
std::vector<RecordedCall> calls_of_spans(const Json::array_t& spans, bool include_errors,
                                         std::string& problem) {
  std::vector<std::pair<std::string_view, RecordedCall>> named;  // By the ids of their spans.
  for (const Json* span : distinct(spans)) {
    if (!is_call(*span, include_errors)) continue;
    named.emplace_back(member_text(*span, "span_id"), RecordedCall{});
    if (read_span(*span, named.back().second, problem)) continue;
    problem = "span " + std::string(named.back().first) + ": " + problem;
    return {};
  }
  std::stable_sort(named.begin(), named.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.start_ms, a.first) < std::pair(b.second.start_ms, b.first);
  });
  std::vector<RecordedCall> out;
  std::size_t messages = 0;
  for (auto& [id, call] : named) {
    messages += call.messages.size();
    out.push_back(std::move(call));
  }
  if (out.size() > workloads::kMostCalls || messages > workloads::kMostMessages) {
    problem = "has " + std::to_string(out.size()) + " calls, too many for one session";
    return {};
  }
  const std::int64_t first = out.empty() ? 0 : out.front().start_ms;
  for (RecordedCall& c : out)
    for (std::int64_t* t : {&c.start_ms, &c.end_ms})
      *t = (*t - first + (*t < first ? -kMillisecond / 2 : kMillisecond / 2)) / kMillisecond;
  if (out.empty()) problem = "has no chat span with messages";
  return out;
}

/// The place of byte `byte`, counted from 1, of a text that begins at `start`.
SourceLocation place_of_byte(std::string_view text, std::size_t byte, SourceLocation start) {
  text = text.substr(0, std::min(byte == 0 ? 0 : byte - 1, text.size()));
  start.line += static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  const std::size_t newline = text.rfind('\n');
  start.column = static_cast<int>(newline == std::string_view::npos ? text.size()
                                                                    : text.size() - newline - 1) +
                 1;
  return start;
}

class OtelReader final : public RecordReader {
 public:
  explicit OtelReader(const OtelSpanOptions& options)
      : RecordReader(options.skip_invalid), include_errors_(options.include_errors) {}

 private:
  Result read_record(std::string_view text, const SourceLocation& where, Recording& recording,
                     Diagnostics& out) override {
    JsonProblem problem;
    const std::optional<Json> record = parse_json(text, problem);
    if (record)
      take_record(*record, where, recording, out);
    else
      complain(place_of_byte(text, problem.byte, where), problem.what, {}, out);
    return record ? Result::kTaken : Result::kBroken;
  }

  void take_record(const Json& record, const SourceLocation& where, Recording& recording,
                   Diagnostics& out) {
    const Json* spans = member_of(record, "spans");
    if (spans == nullptr || !spans->is_array()) {
      const char* hint = "each record is an object with a list `spans`";
      if (member_of(record, "resourceSpans") != nullptr)
        hint = "an OTLP export is not read: the tool wants one list `spans`, attributes as a map";
      else if (member_of(record, "request") != nullptr)
        hint = "captures of HTTP calls are not read: give OpenTelemetry spans";
      return complain(where, "a record without a list `spans`", hint, out);
    }
    std::string name(member_text(record, "session_id"));
    if (name.empty()) name = member_text(record, "trace_id");
    std::string problem;
    recording.calls = calls_of_spans(list_at(record, "spans"), include_errors_, problem);
    if (!problem.empty())
      out.warning(where, {},
                  "session " + (name.empty() ? "" : name + " ") + "is left out: " + problem);
    recording.name = std::move(name);
  }

  bool include_errors_;
};

}  // namespace

std::unique_ptr<RecordReader> make_otel_reader(const OtelSpanOptions& options) {
  return std::make_unique<OtelReader>(options);
}

}  // namespace routesim::tools
