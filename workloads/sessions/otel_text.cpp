#include "workloads/sessions/otel_text.h"

#include <utility>

namespace routesim::workloads {
namespace {

/// A value as Python would put it into a text.
std::string as_text(const JsonValue& value) {
  return value.is_string() ? value.text : value.dump();
}

/// The first of two members that holds something.
const JsonValue* either(const JsonValue& object, std::string_view first, std::string_view second) {
  const JsonValue* value = object.find(first);
  return value != nullptr && !value->is_empty() ? value : object.find(second);
}

std::string tool_call_text(const JsonValue& call) {
  const JsonValue* name = call.find("name");
  const JsonValue* arguments = either(call, "arguments", "input");
  return "<|tool_call|>" + (name == nullptr ? "unknown_tool" : as_text(*name)) + "<|tool_args|>" +
         (arguments == nullptr ? "{}" : as_text(*arguments)) + "<|end|>";
}

std::string tool_result_text(const JsonValue& result) {
  const JsonValue* id = either(result, "tool_use_id", "id");
  const JsonValue* content = either(result, "content", "result");
  const JsonValue* failed = result.find("is_error");
  return "<tool_result: " + (id == nullptr ? "unknown" : as_text(*id)) +
         (failed != nullptr && !failed->is_empty() ? " [ERROR]" : "") + ">\n" +
         (content == nullptr ? "" : as_text(*content)) + "\n</tool_result>";
}

void join(std::string& text, bool& any, const std::string& piece) {
  if (any) text += '\n';
  text += piece;
  any = true;
}

const JsonValue* text_of_piece(const JsonValue& piece) {
  const JsonValue* text = piece.find("text");
  return text != nullptr ? text : piece.find("content");
}

/// One piece of a message in pieces; `listed` when they are its content, not its parts.
void add_piece(const JsonValue& piece, bool listed, std::string& text, bool& any) {
  const std::string_view type = piece.string("type");
  if (listed && piece.is_string()) return join(text, any, piece.text);
  if (!piece.is_object()) return;
  if (type == "tool_result" || type == "tool_call_response")
    return join(text, any, tool_result_text(piece));
  if (type == "tool_use" || (type == "tool_call" && !listed))
    return join(text, any, tool_call_text(piece));
  const JsonValue* inner = type == "text" || listed ? text_of_piece(piece) : nullptr;
  if (inner != nullptr) join(text, any, as_text(*inner));
}

std::string pieces_text(const JsonValue& pieces, bool listed) {
  std::string text;
  bool any = false;
  for (const JsonValue& piece : pieces.items) add_piece(piece, listed, text, any);
  return text;
}

/// Name and arguments of a tool call, whether it nests them in `function` or not.
std::optional<JsonValue> plain_call(const JsonValue& call) {
  const JsonValue* function = call.find("function");
  const JsonValue* from = function != nullptr && function->is_object() ? function : &call;
  if (from == &call && call.find("name") == nullptr) return std::nullopt;
  JsonValue out;
  out.kind = JsonValue::Kind::kObject;
  JsonValue type;
  type.kind = JsonValue::Kind::kString;
  type.text = "tool_call";
  out.members.emplace_back("type", std::move(type));
  const auto copy = [&out](const JsonValue& source, const char* key) {
    const JsonValue* value = source.find(key);
    out.members.emplace_back(key, value == nullptr ? JsonValue{} : *value);
  };
  copy(call, "id");
  copy(*from, "name");
  copy(*from, "arguments");
  return out;
}

std::vector<JsonValue> calls_of(const JsonValue& message) {
  std::vector<JsonValue> out;
  if (const JsonValue* calls = message.find("tool_calls"); calls != nullptr)
    for (const JsonValue& call : calls->items)
      if (std::optional<JsonValue> plain = plain_call(call)) out.push_back(std::move(*plain));
  if (const JsonValue* parts = message.find("parts"); parts != nullptr)
    for (const JsonValue& part : parts->items)
      if (part.string("type") == "tool_call") out.push_back(part);
  return out;
}

}  // namespace

std::string input_text(const JsonValue& message) {
  const JsonValue* content = message.find("content");
  if (content != nullptr && content->is_string()) return content->text;
  if (content != nullptr && content->is_array()) return pieces_text(*content, true);
  if (content != nullptr && content->kind != JsonValue::Kind::kNull) return {};
  if (const JsonValue* parts = message.find("parts"); parts != nullptr)
    return pieces_text(*parts, false);
  std::string text;
  bool any = false;
  for (const JsonValue& call : calls_of(message)) join(text, any, tool_call_text(call));
  return text;
}

std::string output_text(const JsonValue& message) {
  std::string text;
  bool any = false;
  const auto add = [&](const JsonValue* value) {
    if (value != nullptr) join(text, any, as_text(*value));
  };
  const JsonValue* content = message.find("content");
  if (content != nullptr && content->is_string() && !content->text.empty()) add(content);
  if (content != nullptr && content->is_array())
    for (const JsonValue& piece : content->items)
      add(piece.is_string() ? &piece : piece.find("text"));
  if (const JsonValue* parts = message.find("parts"); parts != nullptr)
    for (const JsonValue& part : parts->items)
      if (part.string("type") == "text") add(text_of_piece(part));
  for (const JsonValue& call : calls_of(message)) join(text, any, tool_call_text(call));
  if (const JsonValue* call = message.find("function_call"); call != nullptr && call->is_object())
    join(text, any, tool_call_text(*call));
  return text;
}

JsonValue with_parts(const JsonValue& message) {
  JsonValue parts;
  parts.kind = JsonValue::Kind::kArray;
  const JsonValue* content = message.find("content");
  if (content != nullptr && content->is_string() && !content->text.empty()) {
    JsonValue part;
    part.kind = JsonValue::Kind::kObject;
    JsonValue type = *content;
    type.text = "text";
    part.members = {{"type", type}, {"content", *content}};
    parts.items.push_back(std::move(part));
  } else if (content != nullptr && content->is_array()) {
    parts.items = content->items;
  }
  for (JsonValue& call : calls_of(message)) parts.items.push_back(std::move(call));
  JsonValue out;
  out.kind = JsonValue::Kind::kObject;
  out.members.emplace_back("parts", std::move(parts));
  return out;
}

std::vector<RecordedPart> parts_of(const JsonValue& message) {
  std::vector<RecordedPart> out;
  const JsonValue* parts = message.find("parts");
  if (parts == nullptr) return out;
  for (const JsonValue& part : parts->items) {
    const bool call = part.string("type") == "tool_call";
    const JsonValue* content = part.find("content");
    out.push_back({.tool_call = call,
                   .text = call                 ? tool_call_text(part)
                           : content == nullptr ? std::string()
                                                : as_text(*content),
                   .id = std::string(call ? part.string("id") : "")});
  }
  return out;
}

std::vector<std::string> call_ids_of(const JsonValue& message) {
  std::vector<std::string> out;
  const JsonValue* calls = message.find("tool_calls");
  const bool nested = calls != nullptr && calls->is_array();
  if (!nested) calls = message.find("parts");
  if (calls == nullptr) return out;
  for (const JsonValue& call : calls->items) {
    const std::string_view id = call.string("id");
    if (!id.empty() && (nested || call.string("type") == "tool_call")) out.emplace_back(id);
  }
  return out;
}

}  // namespace routesim::workloads
