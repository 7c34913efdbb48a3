#include "workloads/sessions/json_value.h"

#include <algorithm>

namespace routesim::workloads {
namespace {

void dump_unit(std::uint32_t unit, std::string& out) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kDigits[(unit >> shift) & 0xFU];
}

/// The character at `i`, and moves behind it. What is no UTF-8 counts byte by byte.
std::uint32_t take_character(std::string_view text, std::size_t& i) {
  const auto byte = [&text](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const std::uint32_t lead = byte(i++);
  const std::size_t more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
  std::uint32_t code = more == 0 ? lead : lead & (0x3FU >> more);
  for (std::size_t k = 0; k < more && i < text.size() && (byte(i) & 0xC0U) == 0x80; ++k)
    code = (code << 6U) | (byte(i++) & 0x3FU);
  return code;
}

void dump_string(std::string_view text, std::string& out) {
  static constexpr std::string_view kPlain = "\"\\\b\f\n\r\t";
  static constexpr std::string_view kNames = "\"\\bfnrt";
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t special = kPlain.find(text[i]);
    const std::uint32_t c = take_character(text, i);
    if (special != std::string_view::npos) {
      out += '\\';
      out += kNames[special];
    } else if (c >= 0x10000) {
      dump_unit(0xD800 + ((c - 0x10000) >> 10U), out);
      dump_unit(0xDC00 + ((c - 0x10000) & 0x3FFU), out);
    } else if (c < 0x20 || c >= 0x80) {
      dump_unit(c, out);
    } else {
      out += static_cast<char>(c);
    }
  }
  out += '"';
}

bool read_word(JsonScanner& json, JsonValue& out) {
  out.kind =
      json.peek() == JsonScanner::Kind::kNull ? JsonValue::Kind::kNull : JsonValue::Kind::kBoolean;
  return json.read_word_text(out.text);
}

bool read_container(JsonScanner& json, JsonValue& out, bool object) {
  out.kind = object ? JsonValue::Kind::kObject : JsonValue::Kind::kArray;
  if (!(object ? json.begin_object() : json.begin_array())) return false;
  std::string key;
  while (object ? json.next_member(key) : json.next_element()) {
    JsonValue inner;
    if (!read_value(json, inner)) return false;
    if (object)
      out.members.emplace_back(key, std::move(inner));
    else
      out.items.push_back(std::move(inner));
  }
  return json.ok();
}

}  // namespace

const JsonValue* JsonValue::find(std::string_view key) const {
  for (auto member = members.rbegin(); member != members.rend(); ++member)
    if (member->first == key) return &member->second;
  return nullptr;
}

std::string_view JsonValue::string(std::string_view key) const {
  const JsonValue* value = find(key);
  return value != nullptr && value->is_string() ? std::string_view(value->text)
                                                : std::string_view();
}

bool JsonValue::is_empty() const {
  switch (kind) {
    case Kind::kNull:
      return true;
    case Kind::kBoolean:
      return text == "false";
    case Kind::kNumber:
      return parse_real(text).value_or(1) == 0;
    case Kind::kString:
      return text.empty();
    case Kind::kArray:
      return items.empty();
    case Kind::kObject:
      return members.empty();
  }
  return true;
}

void JsonValue::dump(std::string& out, bool sorted) const {
  if (is_string()) {
    dump_string(text, out);
  } else if (is_array()) {
    out += '[';
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += ", ";
      items[i].dump(out, sorted);
    }
    out += ']';
  } else if (is_object()) {
    std::vector<const std::pair<std::string, JsonValue>*> order;
    for (const auto& member : members) order.push_back(&member);
    if (sorted)
      std::stable_sort(order.begin(), order.end(),
                       [](const auto* a, const auto* b) { return a->first < b->first; });
    out += '{';
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i > 0) out += ", ";
      dump_string(order[i]->first, out);
      out += ": ";
      order[i]->second.dump(out, sorted);
    }
    out += '}';
  } else {
    out += kind == Kind::kNull ? std::string("null") : text;
  }
}

std::string JsonValue::dump() const {
  std::string out;
  dump(out, false);
  return out;
}

std::string JsonValue::sorted_dump() const {
  std::string out;
  dump(out, true);
  return out;
}

bool read_value(JsonScanner& json, JsonValue& out) {
  switch (json.peek()) {
    case JsonScanner::Kind::kObject:
      return read_container(json, out, true);
    case JsonScanner::Kind::kArray:
      return read_container(json, out, false);
    case JsonScanner::Kind::kString:
      out.kind = JsonValue::Kind::kString;
      return json.read_string(out.text);
    case JsonScanner::Kind::kNumber:
      out.kind = JsonValue::Kind::kNumber;
      return json.read_number_text(out.text);
    case JsonScanner::Kind::kBoolean:
    case JsonScanner::Kind::kNull:
      return read_word(json, out);
    case JsonScanner::Kind::kEnd:
    case JsonScanner::Kind::kInvalid:
      break;
  }
  return json.fail("expected a value");
}

std::optional<JsonValue> parse_value(std::string_view text) {
  JsonScanner json(text);
  JsonValue value;
  if (!read_value(json, value) || !json.at_end()) return std::nullopt;
  return value;
}

}  // namespace routesim::workloads
