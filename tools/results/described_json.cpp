#include "tools/results/described_json.h"

#include "base/scalar_parse.h"

namespace routesim::tools {

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
