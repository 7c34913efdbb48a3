#include "tools/results/described_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "base/scalar_parse.h"
#include "base/text.h"

namespace routesim::tools {

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += "\\u00" + hex_digits(byte, 2);
    } else {
      out += c;
    }
  }
  out += '"';
  return out;
}

void JsonWriter::new_line() {
  if (indent_ == 0) return;
  out_ += '\n';
  out_.append(has_items_.size() * static_cast<std::size_t>(indent_), ' ');
}

void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (has_items_.empty()) return;
  if (has_items_.back()) out_ += ',';
  has_items_.back() = true;
  new_line();
}

JsonWriter& JsonWriter::open(char bracket) {
  before_value();
  out_ += bracket;
  has_items_.push_back(false);
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  const bool had_items = has_items_.back();
  has_items_.pop_back();
  if (had_items) new_line();
  out_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  before_value();
  out_ += json_string(name);
  out_ += indent_ == 0 ? ":" : ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  before_value();
  out_ += json;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) { return raw(json_string(text)); }
JsonWriter& JsonWriter::value(bool b) { return raw(b ? "true" : "false"); }
JsonWriter& JsonWriter::value(double v) { return std::isfinite(v) ? raw(number_text(v)) : null(); }
JsonWriter& JsonWriter::value(std::int64_t v) { return raw(std::to_string(v)); }
JsonWriter& JsonWriter::value(std::uint64_t v) { return raw(std::to_string(v)); }
JsonWriter& JsonWriter::null() { return raw("null"); }

namespace {

using Json = nlohmann::ordered_json;

/// Whether brackets outside quotes nest too deep.
bool nests_too_deep(std::string_view text) {
  constexpr int kDeepest = 64;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if ((c == '[' || c == '{') && ++depth > kDeepest) return true;
    if (c == ']' || c == '}') --depth;
  }
  return false;
}

ConfigNode::Ptr tree_of(const Json& value, const SourceLocation& where) {
  if (value.is_null()) return ConfigNode::make_null(where);
  if (value.is_string())
    return ConfigNode::make_scalar(value.get<std::string>(), ConfigNode::Style::kQuoted, where);
  if (!value.is_structured())
    return ConfigNode::make_scalar(value.dump(), ConfigNode::Style::kPlain, where);
  std::vector<ConfigNode::Ptr> items;
  std::vector<ConfigNode::Member> members;
  for (const auto& [key, member] : value.items()) {
    if (value.is_array())
      items.push_back(tree_of(member, where));
    else
      members.push_back({.key = key, .key_where = where, .value = tree_of(member, where)});
  }
  return value.is_array() ? ConfigNode::make_sequence(std::move(items), where)
                          : ConfigNode::make_map(std::move(members), where);
}

}  // namespace

ConfigNode::Ptr json_tree(const std::string& text, const SourceLocation& where) {
  if (nests_too_deep(text)) return nullptr;
  const Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? nullptr : tree_of(value, where);
}

namespace {

class Writer final : public Describer {
 public:
  explicit Writer(JsonWriter& json) : json_(json) {}

  void boolean(const Field& f, bool& v) override { at(f).value(v); }
  void integer(const Field& f, std::int64_t& v, const IntRange&) override { at(f).value(v); }
  void real(const Field& f, double& v, const RealRange&) override { at(f).value(v); }
  void text(const Field& f, std::string& v) override { at(f).value(v); }
  void duration(const Field& f, Duration& v, const DurationRange&) override {
    at(f).value(duration_text(v));
  }
  void choice(const Field& f, std::size_t& index,
              std::span<const std::string_view> names) override {
    at(f).value(names[index]);
  }
  void document(const Field& f, Document& v) override {
    if (!v.empty()) at(f).raw(v.path);
  }
  void object(const Field& f, const std::function<void(Describer&)>& members) override {
    at(f).begin_object();
    members(*this);
    json_.end_object();
  }
  void list(const Field& f, ListAccess& items) override {
    if (f.one_line) {
      JsonWriter line(0);
      Writer inner(line);
      inner.elements(items);
      at(f).raw(line.str());
    } else {
      at(f);
      elements(items);
    }
  }
  void map(const Field& f, MapAccess& values) override {
    if (values.own_keys().takes == nullptr) at(f).begin_object();
    for (std::size_t i = 0; i < values.size(); ++i) {
      json_.key(values.key(i));
      values.visit(i, *this);
    }
    if (values.own_keys().takes == nullptr) json_.end_object();
  }
  void optional(const Field& f, OptionalAccess& value) override {
    if (value.engaged()) {
      at(f);
      value.visit(*this);
    } else if (f.null || f.name.empty()) {
      at(f).null();
    }
  }

 private:
  JsonWriter& at(const Field& f) { return f.name.empty() ? json_ : json_.key(f.name); }
  void elements(ListAccess& items) {
    json_.begin_array();
    for (std::size_t i = 0; i < items.size(); ++i) items.visit(i, *this);
    json_.end_array();
  }

  JsonWriter& json_;
};

void write_scalar_json(const ConfigNode& node, JsonWriter& json) {
  const std::string& text = node.text();
  if (node.style() != ConfigNode::Style::kPlain && node.style() != ConfigNode::Style::kUntyped) {
    json.value(text);
    return;
  }
  switch (plain_type(text)) {
    case PlainType::kBool:
      json.value(text[0] == 't' || text[0] == 'T');
      break;
    case PlainType::kInteger: {
      const Parsed<std::int64_t> parsed = parse_integer(node, {});
      parsed.value ? json.value(*parsed.value) : json.raw(text);  // Beyond 64 bits: as it stands.
      break;
    }
    case PlainType::kReal: {
      const Parsed<double> parsed = parse_real(node, {});
      parsed.value ? json.value(*parsed.value) : json.value(text);
      break;
    }
    case PlainType::kNotFinite:
    case PlainType::kText:
      json.value(text);
      break;
  }
}

}  // namespace

void write_tree(JsonWriter& json, const ConfigNode& node) {
  switch (node.kind()) {
    case ConfigNode::Kind::kNull:
      json.null();
      break;
    case ConfigNode::Kind::kScalar:
      write_scalar_json(node, json);
      break;
    case ConfigNode::Kind::kSequence:
      json.begin_array();
      for (const ConfigNode::Ptr& item : node.items()) write_tree(json, *item);
      json.end_array();
      break;
    case ConfigNode::Kind::kMap:
      json.begin_object();
      for (const ConfigNode::Member& member : node.members()) {
        json.key(member.key);
        write_tree(json, *member.value);
      }
      json.end_object();
      break;
  }
}

void write_members(JsonWriter& json, const DescribeFunction& describe_object) {
  Writer writer(json);
  describe_object(writer);
}

}  // namespace routesim::tools
