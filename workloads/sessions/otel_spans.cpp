#include "workloads/sessions/otel_spans.h"

#include <algorithm>
#include <set>
#include <utility>

#include "workloads/sessions/otel_text.h"

namespace routesim::workloads {
namespace {

constexpr std::int64_t kMostTokens = 100'000'000;
constexpr std::int64_t kMillisecond = 1'000'000;

/// Nanoseconds since 1970 of an ISO 8601 time with any offset.
std::optional<std::int64_t> time_of(std::string_view text) {
  std::int64_t offset_s = 0;
  if (text.size() > 16) {
    const std::string_view zone = text.substr(text.size() - 6);
    if ((zone[0] == '+' || zone[0] == '-') && zone[3] == ':') {
      const auto hours = parse_integer(zone.substr(1, 2));
      const auto minutes = parse_integer(zone.substr(4, 2));
      if (!hours || !minutes || *hours < 0 || *minutes < 0) return std::nullopt;
      offset_s = (*hours * 60 + *minutes) * (zone[0] == '+' ? 60 : -60);
      text.remove_suffix(6);
    }
  }
  const std::optional<std::int64_t> local = parse_date_time_ns(text);
  if (!local) return std::nullopt;
  return *local - offset_s * 1'000'000'000;
}

std::optional<std::int64_t> tokens_of(const JsonValue& attributes, std::string_view first,
                                      std::string_view second) {
  const JsonValue* value = attributes.find(first);
  if (value == nullptr || value->kind == JsonValue::Kind::kNull) value = attributes.find(second);
  if (value == nullptr) return std::nullopt;
  const std::optional<std::int64_t> tokens = parse_integer(value->text);
  if (!tokens || *tokens < 0 || *tokens > kMostTokens) return std::nullopt;
  return tokens;
}

/// An attribute that is a value, or a text that holds one.
std::optional<JsonValue> attribute(const JsonValue& attributes, std::string_view key) {
  const JsonValue* value = attributes.find(key);
  if (value == nullptr) return std::nullopt;
  return value->is_string() ? parse_value(value->text) : *value;
}

const JsonValue& attributes_of(const JsonValue& span) {
  static const JsonValue kNone;
  const JsonValue* attributes = span.find("attributes");
  return attributes == nullptr ? kNone : *attributes;
}

bool is_call(const JsonValue& span, bool include_errors) {
  const JsonValue& attributes = attributes_of(span);
  if (attributes.string("gen_ai.operation.name") != "chat" &&
      !span.string("name").starts_with("chat "))
    return false;
  const JsonValue* messages = attributes.find("gen_ai.input.messages");
  if (messages == nullptr || messages->is_empty()) return false;
  const JsonValue* status = span.find("status");
  const JsonValue* code = status == nullptr ? nullptr : status->find("code");
  return include_errors || code == nullptr || code->kind != JsonValue::Kind::kNumber ||
         code->text != "2";
}

/// The spans in the order of their ids, without those that repeat another.
std::vector<const JsonValue*> distinct(const JsonValue& spans) {
  std::vector<const JsonValue*> sorted, out;
  for (const JsonValue& span : spans.items) sorted.push_back(&span);
  std::stable_sort(sorted.begin(), sorted.end(), [](const JsonValue* a, const JsonValue* b) {
    return a->string("span_id") < b->string("span_id");
  });
  std::set<std::string> seen;
  for (const JsonValue* span : sorted) {
    std::string text(span->string("start_time"));
    text.append("|").append(span->string("end_time")).append("|");
    text += attributes_of(*span).sorted_dump();
    if (seen.insert(std::move(text)).second) out.push_back(span);
  }
  return out;
}

bool has_nameless_call(const JsonValue& message) {
  const JsonValue* parts = message.find("parts");
  const JsonValue* calls = message.find("tool_calls");
  const auto nameless = [](const JsonValue& call) {
    const JsonValue* id = call.find("id");
    return id == nullptr || id->kind == JsonValue::Kind::kNull;
  };
  if (parts != nullptr)
    for (const JsonValue& part : parts->items)
      if (part.string("type") == "tool_call" && nameless(part)) return true;
  return calls != nullptr && std::any_of(calls->items.begin(), calls->items.end(), nameless);
}

RecordedMessagePtr plain_answer(std::string_view text) {
  auto message = std::make_shared<RecordedMessage>();
  message->role = "assistant";
  message->text = text;
  return message;
}

/// Sets the answer, when one was recorded. False when it cannot be understood.
bool read_answer(const JsonValue& attributes, SpanCall& out, std::string& problem) {
  for (const char* key : {"gen_ai.output.text", "gen_ai.completion", "gen_ai.output"}) {
    const JsonValue* value = attributes.find(key);
    if (value == nullptr || !value->is_string()) continue;
    out.call.answer = plain_answer(value->text);
    return true;
  }
  if (attributes.find("gen_ai.output.messages") == nullptr) return true;
  const std::optional<JsonValue> messages = attribute(attributes, "gen_ai.output.messages");
  if (!messages) {
    problem = "gen_ai.output.messages is no JSON";
    return false;
  }
  if (!messages->is_array() || messages->items.empty() || !messages->items[0].is_object())
    return true;
  if (messages->items.size() > 1) {
    problem = "gen_ai.output.messages has more than one message";
    return false;
  }
  const JsonValue& first = messages->items.front();
  auto message = std::make_shared<RecordedMessage>();
  message->role = "assistant";
  message->text = output_text(first);
  message->parts = parts_of(first);
  message->call_ids = call_ids_of(first);
  out.answer_calls = std::any_of(message->parts.begin(), message->parts.end(),
                                 [](const RecordedPart& part) { return part.tool_call; });
  const JsonValue* calls = first.find("tool_calls");
  out.answer_calls = out.answer_calls || (calls != nullptr && !calls->is_empty());
  out.call.answer = std::move(message);
  return true;
}

bool read_messages(const JsonValue& attributes, SpanCall& out, std::string& problem) {
  const std::optional<JsonValue> messages = attribute(attributes, "gen_ai.input.messages");
  if (!messages) {
    problem = "gen_ai.input.messages is no JSON";
    return false;
  }
  for (const JsonValue& message : messages->items) {
    out.call.messages.push_back(message_of(message, problem));
    if (out.call.messages.back() == nullptr) return false;
  }
  return true;
}

/// One span; times in nanoseconds since 1970, still.
bool read_span(const JsonValue& span, SpanCall& out, std::string& problem) {
  const JsonValue& attributes = attributes_of(span);
  const std::optional<std::int64_t> start = time_of(span.string("start_time"));
  const std::string_view end_text = span.string("end_time");
  const std::optional<std::int64_t> end = end_text.empty() ? start : time_of(end_text);
  if (!start || !end) {
    problem = !start ? "start_time is no time" : "end_time is no time";
    return false;
  }
  out.call.start_ms = *start;
  out.call.end_ms = *end;
  out.prompt_tokens =
      tokens_of(attributes, "gen_ai.usage.prompt_tokens", "gen_ai.usage.input_tokens");
  out.completion_tokens =
      tokens_of(attributes, "gen_ai.usage.completion_tokens", "gen_ai.usage.output_tokens");
  const std::optional<JsonValue> tools = attribute(attributes, "gen_ai.tool.definitions");
  if (tools && tools->is_array() && !tools->is_empty()) out.tools = tools->dump();
  return read_messages(attributes, out, problem) && read_answer(attributes, out, problem);
}

}  // namespace

RecordedMessagePtr message_of(const JsonValue& message, std::string& problem) {
  if (message.string("role").empty()) {
    problem = "a message without role";
    return nullptr;
  }
  if (has_nameless_call(message)) {
    problem = "a tool call without id, which no result can refer to";
    return nullptr;
  }
  auto out = std::make_shared<RecordedMessage>();
  // The servers' name for the newer word.
  out->role = message.string("role") == "developer" ? "system" : message.string("role");
  const JsonValue* calls = message.find("tool_calls");
  if (message.find("content") != nullptr && calls != nullptr &&
      calls->kind != JsonValue::Kind::kNull) {
    const JsonValue parts = with_parts(message);
    out->text = input_text(parts);
    out->call_ids = call_ids_of(parts);
  } else {
    out->text = input_text(message);
    out->call_ids = call_ids_of(message);
  }
  return out;
}

std::vector<SpanCall> calls_of_spans(const JsonValue& spans, bool include_errors,
                                     std::string& problem) {
  struct Named {
    std::string_view id;
    SpanCall call;
  };
  std::vector<Named> named;
  for (const JsonValue* span : distinct(spans)) {
    if (!is_call(*span, include_errors)) continue;
    named.push_back({span->string("span_id"), {}});
    if (read_span(*span, named.back().call, problem)) continue;
    problem = "span " + std::string(named.back().id) + ": " + problem;
    return {};
  }
  std::stable_sort(named.begin(), named.end(), [](const Named& a, const Named& b) {
    return a.call.call.start_ms != b.call.call.start_ms
               ? a.call.call.start_ms < b.call.call.start_ms
               : a.id < b.id;
  });
  std::vector<SpanCall> out;
  std::size_t messages = 0;
  for (Named& n : named) {
    messages += n.call.call.messages.size();
    out.push_back(std::move(n.call));
  }
  if (out.size() > kMostCalls || messages > kMostMessages) {
    problem = "has " + std::to_string(out.size()) + " calls, too many for one session";
    return {};
  }
  const std::int64_t first = out.empty() ? 0 : out.front().call.start_ms;
  for (SpanCall& c : out)
    for (std::int64_t* t : {&c.call.start_ms, &c.call.end_ms})
      *t = (*t - first + (*t < first ? -kMillisecond / 2 : kMillisecond / 2)) / kMillisecond;
  if (out.empty()) problem = "has no chat span with messages";
  return out;
}

}  // namespace routesim::workloads
